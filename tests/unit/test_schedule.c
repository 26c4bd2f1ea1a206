/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules: of ordinary patterns, of rings, the barrier between batches, and what is refused.
 */
#include "schedule_sim.h"
#include "test_patterns_util.h"

#include <string.h>

static const bool no = false;

static void run(const struct pattern_request *request)
{
    struct pattern_plan *plan = plan_of(request);

    assert_true(pattern_is_scheduled(plan));
    assert_true(pattern_verifies(plan));
    assert_int_equal(pattern_iterations(plan), 0);
    for (uint32_t phase = 0; phase < pattern_phases(plan); phase++) {
        struct schedule_sim *sim = schedule_sim_make(plan, phase, request->n, 7);

        if (!schedule_sim_run(sim, 3))
            fail_msg("%s of %u ranks is stuck", request->name, request->n);
        schedule_sim_verify(sim);
        schedule_sim_free(sim);
    }
    pattern_plan_free(plan);
}

static void ordinary_patterns_are_steps(void **state)
{
    static const char *const partners[] = {"neighbours", "halves", "random"};
    static const uint64_t sizes[] = {0, 1, 13, 64};

    for (uint32_t n = 2; n <= 33; n++)
        for (size_t i = 0; i < 4; i++) {
            struct pattern_request request = {.n = n, .local = true, .bytes = sizes[i], .seed = n};

            request.name = "chain";
            run(&request);
            request.forward = true;
            run(&request);
            request.forward = false;
            request.name = "aapc";
            run(&request);
            request.order = "pairwise";
            run(&request);
            request.order = "naive";
            run(&request);
            request.order = NULL;
            request.name = "pairs";
            request.partners = partners[i % 3];
            run(&request);
            request.partners = NULL;
            request.count = 3;
            request.name = "random";
            run(&request);
            request.name = "ring";
            run(&request);
        }
}

static void an_all_to_all_has_a_step_a_distance(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "aapc", .n = 5, .local = true, .bytes = 9});
    struct schedule schedule;
    char name[32];

    assert_int_equal(pattern_phases(plan), 1);
    pattern_phase_name(plan, 0, name, sizeof(name));
    assert_string_equal(name, "4 phases");
    assert_int_equal(pattern_schedule(plan, 0, 3, &schedule), 0);
    assert_int_equal(schedule.steps, 4);
    assert_int_equal(schedule.count, 8);
    assert_int_equal(schedule.memory, 18);
    assert_false(schedule.reduces);
    for (uint32_t step = 0; step < 4; step++) {
        const struct schedule_op *ops = &schedule.ops[2 * step];

        assert_int_equal(ops[0].action, SCHEDULE_SEND);
        assert_int_equal(ops[0].peer, (3 + step + 1) % 5);
        assert_int_equal(ops[1].action, SCHEDULE_RECEIVE);
        assert_int_equal(ops[1].peer, (3 + 4 - step) % 5);
        assert_int_equal(ops[0].step, step);
        assert_int_equal(ops[1].step, step);
        assert_int_equal(ops[1].bytes, 9);
    }
    schedule_free(&schedule);
    pattern_plan_free(plan);
}

static void a_chain_forwards_in_a_step_of_its_own(void **state)
{
    struct pattern_plan *plan = plan_of(&(struct pattern_request){
        .name = "chain", .n = 3, .local = true, .forward = true, .bytes = 5});
    struct schedule schedule;

    assert_int_equal(pattern_schedule(plan, 0, 1, &schedule), 0);
    assert_int_equal(schedule.steps, 2);
    assert_int_equal(schedule.ops[0].action, SCHEDULE_RECEIVE);
    assert_int_equal(schedule.ops[1].action, SCHEDULE_SEND);
    assert_int_equal(schedule.ops[0].at, schedule.ops[1].at);
    schedule_free(&schedule);
    pattern_plan_free(plan);
}

static void rings_exchange_by_both_methods(void **state)
{
    static const char *const methods[] = {"sendrecv", "nonblocking"};
    static const uint64_t sizes[] = {0, 8, 2001};

    for (uint32_t n = 2; n <= 33; n++)
        for (size_t i = 0; i < 6; i++)
            run(&(struct pattern_request){.name = "ring",
                                          .n = n,
                                          .count = 3,
                                          .seed = n,
                                          .method = methods[i % 2],
                                          .bytes = sizes[i / 2]});
}

static void a_method_decides_the_steps(void **state)
{
    static const struct {
        const char *method;
        uint32_t steps;
    } some[] = {{"sendrecv", 2}, {"nonblocking", 1}};

    for (size_t i = 0; i < 2; i++) {
        struct pattern_plan *plan = plan_of(&(struct pattern_request){.name = "ring",
                                                                      .n = 6,
                                                                      .natural = &no,
                                                                      .count = 2,
                                                                      .method = some[i].method,
                                                                      .bytes = 8});
        struct schedule schedule;

        assert_int_equal(pattern_phases(plan), 2);
        assert_int_equal(pattern_schedule(plan, 1, 4, &schedule), 0);
        assert_int_equal(schedule.steps, some[i].steps);
        assert_int_equal(schedule.count, 4);
        assert_int_equal(schedule.memory, 24);
        schedule_free(&schedule);
        pattern_plan_free(plan);
    }
}

/* --- flows ---------------------------------------------------------------------------------- */

static size_t times(const struct pattern_flow *flows, size_t count, uint32_t peer,
                    enum pattern_side side)
{
    size_t found = 0;

    for (size_t i = 0; i < count; i++)
        found += (side == PATTERN_SENDS ? flows[i].dst : flows[i].src) == peer;
    return found;
}

static void flows_are_messages_and_barrier(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "pairs", .n = 9, .local = true, .bytes = 1});
    struct pattern_flow flows[9];
    size_t count = pattern_flows(plan, 0, 2, PATTERN_SENDS, flows, 9);

    /* Partner 3 is the barrier's first, too; then 4, 6 and 10 modulo 9. */
    assert_int_equal(count, 4);
    assert_int_equal(flows[0].dst, 3);
    assert_int_equal(flows[1].dst, 4);
    assert_int_equal(flows[2].dst, 6);
    assert_int_equal(flows[3].dst, 1);
    count = pattern_flows(plan, 0, 2, PATTERN_RECEIVES, flows, 9);
    assert_int_equal(count, 4); /* partner 3 is 8 behind, too */
    assert_int_equal(times(flows, count, 3, PATTERN_RECEIVES), 1);
    assert_int_equal(times(flows, count, 1, PATTERN_RECEIVES), 1);
    assert_int_equal(times(flows, count, 0, PATTERN_RECEIVES), 1);
    assert_int_equal(times(flows, count, 7, PATTERN_RECEIVES), 1);
    pattern_plan_free(plan);
}

/* After all rounds each rank has heard of each other one. */
static void the_barrier_tells_everybody(void **state)
{
    for (uint32_t n = 2; n <= 64; n++) {
        uint64_t heard[64], before[64];

        for (uint32_t rank = 0; rank < n; rank++)
            heard[rank] = UINT64_C(1) << rank;
        for (unsigned round = 0; round < schedule_barrier_rounds(n); round++) {
            memcpy(before, heard, sizeof(heard));
            for (uint32_t rank = 0; rank < n; rank++) {
                uint32_t from = schedule_barrier_from(rank, round, n);

                assert_int_equal(schedule_barrier_to(from, round, n), rank);
                heard[rank] |= before[from];
            }
        }
        for (uint32_t rank = 0; rank < n; rank++)
            assert_true(heard[rank] == UINT64_MAX >> (64 - n));
    }
    assert_int_equal(schedule_barrier_rounds(PATTERN_RANKS_MAX), 16);
}

/* --- wrong data and wrong requests ---------------------------------------------------------- */

static void a_wrong_byte_is_found(void **state)
{
    struct pattern_plan *plan = plan_of(
        &(struct pattern_request){.name = "ring", .n = 4, .method = "sendrecv", .bytes = 30});
    struct schedule_sim *sim = schedule_sim_make(plan, 0, 4, 1);
    unsigned char *memory = schedule_sim_memory(sim, 2);
    const struct schedule *schedule = schedule_sim_schedule(sim, 2);
    struct schedule_wrong wrong;

    assert_false(schedule_verify(plan, 0, 2, schedule, memory, &wrong)); /* nothing received */
    assert_true(schedule_sim_run(sim, 1));
    schedule_sim_verify(sim);
    memory[30 + 17] ^= 1;
    assert_false(schedule_verify(plan, 0, 2, schedule, memory, &wrong));
    assert_int_equal(wrong.at, 47);
    assert_int_equal(wrong.element, 17);
    assert_int_equal(wrong.source, 1);
    assert_int_equal((int)wrong.got, (int)wrong.expected ^ 1);
    schedule_sim_free(sim);
    pattern_plan_free(plan);
}

static void wrong_requests_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {{.name = "chain", .n = 4, .bytes = 5}, "chain takes no bytes"},
        {{.name = "chain", .n = 4, .method = "sendrecv"}, "chain takes no method"},
        {{.name = "aapc", .n = 4, .algorithm = "ring"}, "aapc takes no algorithm"},
        {{.name = "ring", .n = 4, .count = 1, .method = "x"},
         "method \"x\" is not known: it is one of sendrecv, nonblocking"},
        {{.name = "ring", .n = 4, .count = 1, .method = "sendrecv", .directions = "forward"},
         "ring: method sendrecv sends both ways: it takes no directions forward"},
        {{.name = "ring", .n = 4, .count = 1, .method = "sendrecv", .local = true},
         "ring: method sendrecv runs each ring alone: it takes no local"},
        {{.name = "aapc", .n = 4, .local = true, .bytes = PATTERN_BYTES_MAX + 1},
         "aapc: bytes 1073741825 is more than 1073741824"},
        {{.name = "aapc", .n = 4, .local = true, .round_trip = true},
         "aapc: round_trip is for messages that come back by themselves, not for the steps of "
         "a schedule"},
    };

    assert_refused(refusals, sizeof(refusals) / sizeof(refusals[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_patterns_are_steps),
        cmocka_unit_test(an_all_to_all_has_a_step_a_distance),
        cmocka_unit_test(a_chain_forwards_in_a_step_of_its_own),
        cmocka_unit_test(rings_exchange_by_both_methods),
        cmocka_unit_test(a_method_decides_the_steps),
        cmocka_unit_test(flows_are_messages_and_barrier),
        cmocka_unit_test(the_barrier_tells_everybody),
        cmocka_unit_test(a_wrong_byte_is_found),
        cmocka_unit_test(wrong_requests_are_refused),
    };

    return cmocka_run_group_tests_name("schedules", tests, NULL, NULL);
}
