/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The executor in a network without I/O: all ranks in this thread, in random order, and a message
 * passes only where its send and its receive are open at the same time.
 */
#include "clock.h"
#include "executor_setup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RANKS_MOST 16u
#define FLOWS_MOST 64u
#define ROUNDS_MOST 20000000u

struct rank {
    struct phase phase; /* its own: ranks may see other times */
    struct lane_flow sends[FLOWS_MOST], receives[FLOWS_MOST];
    uint32_t send_count, receive_count;
    struct schedule_executor *executor;
    bool sent[FLOWS_MOST], received[FLOWS_MOST]; /* of the present step */
    uint32_t left;
    bool busy; /* it computes */
    bool over; /* ended or wrong */
    unsigned busy_turns;
};

struct sim {
    struct pattern_plan *plan;
    uint32_t n;
    struct rank ranks[RANKS_MOST];
    uint64_t random;
    uint64_t messages; /* that are no barrier's */
    uint64_t spoil;    /* behind so many, one of a last step arrives damaged; 0: none */
    bool spoil_early;  /* ... of a batch's first repetition */
    bool lose;         /* ... or none of its bytes arrive: what was there before stays */
    uint32_t spoiled;  /* at this rank */
};

static uint32_t draw(struct sim *sim, uint32_t below)
{
    sim->random = sim->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((sim->random >> 33) % below);
}

static uint32_t list_flows(struct sim *sim, uint32_t rank, enum pattern_side side,
                           struct lane_flow *flows)
{
    struct pattern_flow found[FLOWS_MOST];
    size_t count = pattern_flows(sim->plan, 0, rank, side, found, FLOWS_MOST);

    assert_true(count <= FLOWS_MOST);
    for (size_t i = 0; i < count; i++)
        flows[i] = (struct lane_flow){.src = found[i].src, .dst = found[i].dst};
    return (uint32_t)count;
}

static void make_rank(struct sim *sim, uint32_t r, const struct phase *phase)
{
    struct rank *rank = &sim->ranks[r];
    struct err err = {0};
    struct executor_conf conf = {.phase = &rank->phase,
                                 .plan = sim->plan,
                                 .rank = r,
                                 .ranks = sim->n,
                                 .sends = rank->sends,
                                 .receives = rank->receives};

    rank->phase = *phase;
    rank->send_count = conf.send_count = list_flows(sim, r, PATTERN_SENDS, rank->sends);
    rank->receive_count = conf.receive_count = list_flows(sim, r, PATTERN_RECEIVES, rank->receives);
    assert_int_equal(executor_make(&rank->executor, &conf, &err), 0);
}

static void sim_make(struct sim *sim, const struct pattern_request *request,
                     const struct phase *phase)
{
    char why[256] = "";

    memset(sim, 0, sizeof *sim);
    sim->n = request->n;
    sim->random = 7;
    if (pattern_plan_make(&sim->plan, request, why, sizeof why) != 0)
        fail_msg("%s", why);
    for (uint32_t r = 0; r < sim->n; r++)
        make_rank(sim, r, phase);
}

static void sim_free(struct sim *sim)
{
    for (uint32_t r = 0; r < sim->n; r++)
        executor_free(sim->ranks[r].executor);
    pattern_plan_free(sim->plan);
}

static void open_rank(struct rank *rank)
{
    const struct schedule_executor *executor = rank->executor;

    assert_true(executor->send_count <= executor->most_sends);
    assert_true(executor->receive_count <= executor->most_receives);
    rank->left = executor->send_count + executor->receive_count;
    memset(rank->sent, 0, sizeof rank->sent);
    memset(rank->received, 0, sizeof rank->received);
}

/* The open receive of a flow's next message; EXECUTOR_NONE: there is none. */
static uint32_t find_receive(const struct rank *rank, uint32_t src)
{
    const struct schedule_executor *executor = rank->executor;

    for (uint32_t i = 0; i < executor->receive_count; i++) {
        const struct step_message *message = &executor->receives[i];

        if (rank->receives[message->flow].src != src || rank->received[i])
            continue;
        assert_true(message->after == EXECUTOR_NONE || rank->received[message->after]);
        return i;
    }
    return EXECUTOR_NONE;
}

/* Whether this message is the one that is to be damaged. */
static bool is_spoiled(struct sim *sim, const struct rank *to)
{
    const struct schedule_executor *executor = to->executor;

    if (executor->in_barrier || ++sim->messages < sim->spoil || sim->spoil == 0)
        return false;
    return executor->position + 1 == executor->step_count &&
           (!sim->spoil_early || executor->repetition == 0);
}

static void pass(struct sim *sim, struct rank *from, uint32_t send, struct rank *to,
                 uint32_t receive)
{
    const struct step_message *out = &from->executor->sends[send];
    const struct step_message *in = &to->executor->receives[receive];
    bool spoiled = is_spoiled(sim, to);

    assert_int_equal(out->bytes, in->bytes);
    assert_int_equal(from->executor->in_barrier, to->executor->in_barrier);
    if (out->bytes > 0 && !(spoiled && sim->lose))
        memcpy(executor_address(to->executor, in), executor_address(from->executor, out),
               out->bytes);
    if (from->executor->in_barrier)
        executor_merge_bits(to->executor, from->executor->bits);
    if (spoiled) {
        if (!sim->lose)
            executor_address(to->executor, in)[out->bytes - 1] ^= 0x40;
        sim->spoiled = (uint32_t)(to - sim->ranks);
        sim->spoil = 0;
    }
    from->sent[send] = true;
    to->received[receive] = true;
    from->left--;
    to->left--;
}

/* Passes what one rank can send now. */
static void send_some(struct sim *sim, uint32_t r)
{
    struct rank *from = &sim->ranks[r];
    const struct schedule_executor *executor = from->executor;

    for (uint32_t i = 0; i < executor->send_count; i++) {
        const struct step_message *message = &executor->sends[i];
        struct rank *to = &sim->ranks[from->sends[message->flow].dst];
        uint32_t receive;

        if (from->sent[i] || to->busy || to->over || draw(sim, 4) == 0 ||
            (message->after != EXECUTOR_NONE && !from->sent[message->after]))
            continue;
        receive = find_receive(to, r);
        if (receive != EXECUTOR_NONE)
            pass(sim, from, i, to, receive);
    }
}

static void advance_step(struct rank *rank)
{
    enum executor_state state;

    state = executor_next(rank->executor);

    rank->busy = state == EXECUTOR_BUSY;
    rank->busy_turns += rank->busy;
    rank->over = state == EXECUTOR_ENDED || state == EXECUTOR_WRONG;
    if (state == EXECUTOR_OPEN)
        open_rank(rank);
}

/* Until all ranks are through, or one has a wrong result. */
static void sim_run(struct sim *sim)
{
    uint32_t over = 0;

    for (uint32_t r = 0; r < sim->n; r++) {
        executor_begin(sim->ranks[r].executor);
        open_rank(&sim->ranks[r]);
    }
    for (uint32_t round = 0; over < sim->n; round++) {
        uint32_t r = draw(sim, sim->n);
        struct rank *rank = &sim->ranks[r];

        if (round == ROUNDS_MOST)
            fail_msg("stuck: rank %u at step %u", r, rank->executor->position);
        if (rank->over)
            continue;
        if (rank->busy || rank->left == 0)
            advance_step(rank);
        else
            send_some(sim, r);
        if (rank->over && rank->executor->error.text[0] != '\0')
            return;
        over += rank->over;
    }
}

static struct phase counted(uint64_t count, uint32_t batch, uint32_t warmup)
{
    return (struct phase){
        .traffic = TRAFFIC_SCHEDULE,
        .stop_ns = CLOCK_NEVER,
        .schedule = {.count = count, .batch = batch, .warmup = warmup},
    };
}

static const struct pattern_request all_to_all = {
    .name = "aapc", .n = 7, .local = true, .bytes = 1000};

/* --- how many --- */

static void test_a_count_ends_after_whole_batches(void **state)
{
    struct phase phase = counted(10, 4, 2);
    struct sim sim;

    sim_make(&sim, &all_to_all, &phase);
    sim_run(&sim);
    for (uint32_t r = 0; r < sim.n; r++) {
        const struct execution *execution = &sim.ranks[r].executor->execution;

        assert_int_equal(execution->batches, 3);
        assert_int_equal(execution->repetitions, 12);
        assert_int_equal(execution->times.count, 3);
        assert_true(execution->sum_ns >= execution->times.sum_ns * 4);
        assert_int_equal(execution->verified, 0);
    }
    assert_int_equal(sim.messages, (3 + 2) * 4 * 7 * 6); /* the warm-up's, too */
    sim_free(&sim);
}

/* Every number of ranks, so that a barrier has every shape. */
static void test_all_numbers_of_ranks_end_together(void **state)
{
    for (uint32_t n = 2; n <= RANKS_MOST; n++) {
        struct pattern_request request = all_to_all;
        struct phase phase = counted(3, 1, 0);
        struct sim sim;

        request.n = n;
        sim_make(&sim, &request, &phase);
        sim_run(&sim);
        assert_int_equal(sim.messages, 3 * n * (n - 1));
        for (uint32_t r = 0; r < n; r++)
            assert_true(sim.ranks[r].executor->ended);
        sim_free(&sim);
    }
}

static struct phase windowed(int64_t open_ns, int64_t close_ns, int64_t stop_ns)
{
    struct phase phase = counted(0, 2, 1);
    int64_t now_ns = clock_now();

    phase.start_ns = now_ns;
    phase.open_ns = now_ns + open_ns;
    phase.close_ns = now_ns + close_ns;
    phase.stop_ns = now_ns + stop_ns;
    return phase;
}

static void check_equal(const struct sim *sim)
{
    for (uint32_t r = 1; r < sim->n; r++) {
        assert_int_equal(sim->ranks[r].executor->execution.batches,
                         sim->ranks[0].executor->execution.batches);
        assert_int_equal(sim->ranks[r].executor->batch, sim->ranks[0].executor->batch);
    }
}

static void test_a_window_measures_what_begins_in_it(void **state)
{
    struct phase phase = windowed(100 * NS_PER_MS, 200 * NS_PER_MS, 300 * NS_PER_MS);
    struct sim sim;
    const struct schedule_executor *first;

    sim_make(&sim, &all_to_all, &phase);
    sim_run(&sim);
    assert_true(clock_now() >= phase.stop_ns);
    check_equal(&sim);
    first = sim.ranks[0].executor;
    assert_true(first->execution.batches > 1);
    assert_true(first->batch > first->execution.batches + 2); /* before and behind it */
    assert_int_equal(first->execution.repetitions, 2 * first->execution.batches);
    sim_free(&sim);
}

/* One rank alone says that it is over, another that it is not yet the window: all heed them. */
static void test_one_rank_stops_all(void **state)
{
    struct phase phase = windowed(0, 60 * NS_PER_S, 60 * NS_PER_S);
    struct sim sim;

    sim_make(&sim, &all_to_all, &phase);
    sim.ranks[5].phase.stop_ns = phase.start_ns + 200 * NS_PER_MS;
    sim.ranks[2].phase.open_ns = phase.start_ns + 100 * NS_PER_MS;
    sim_run(&sim);
    assert_true(clock_now() < phase.stop_ns);
    check_equal(&sim);
    assert_true(sim.ranks[0].executor->batch > sim.ranks[0].executor->execution.batches + 1);
    sim_free(&sim);
}

static void test_a_batch_longer_than_the_window_counts_once(void **state)
{
    struct phase phase = windowed(-2, -1, 0);
    struct sim sim;

    sim_make(&sim, &all_to_all, &phase);
    sim_run(&sim);
    for (uint32_t r = 0; r < sim.n; r++)
        assert_int_equal(sim.ranks[r].executor->execution.batches, 1);
    sim_free(&sim);
}

/* --- what --- */

/* An all-to-all of so many bytes: how many results each rank has verified in the end. */
static void check_verified(uint64_t bytes, uint64_t count, uint32_t batch, uint64_t verified)
{
    struct pattern_request request = all_to_all;
    struct phase phase = counted(count, batch, 1);
    struct sim sim;

    phase.schedule.compute = true;
    request.bytes = bytes;
    sim_make(&sim, &request, &phase);
    sim_run(&sim);
    for (uint32_t r = 0; r < sim.n; r++)
        assert_int_equal(sim.ranks[r].executor->execution.verified, verified);
    sim_free(&sim);
}

static void test_results_are_verified(void **state)
{
    check_verified(all_to_all.bytes, 5, 1, 5);
}

static void test_a_wrong_byte_is_found(void **state)
{
    struct phase phase = counted(5, 1, 1);
    const struct schedule_executor *executor;
    char who[32];
    struct sim sim;

    phase.schedule.compute = true;
    sim_make(&sim, &all_to_all, &phase);
    sim.spoil = 100;
    sim_run(&sim);
    executor = sim.ranks[sim.spoiled].executor;
    snprintf(who, sizeof who, "rank %u has a wrong result", sim.spoiled);
    assert_non_null(strstr(executor->error.text, who));
    assert_false(executor->ended);
    sim_free(&sim);
}

/* A repetition that leaves nothing behind, or something wrong, at the beginning of a batch. */
static void find_in_first(bool lose)
{
    struct phase phase = counted(12, 4, 1);
    const struct schedule_executor *executor;
    char who[32];
    struct sim sim;

    phase.schedule.compute = true;
    sim_make(&sim, &all_to_all, &phase);
    sim.spoil = 200; /* in a batch that is measured: there was a right result before */
    sim.spoil_early = true;
    sim.lose = lose;
    sim_run(&sim);
    executor = sim.ranks[sim.spoiled].executor;
    assert_int_equal(sim.spoil, 0);
    snprintf(who, sizeof who, "rank %u has a wrong result", sim.spoiled);
    assert_non_null(strstr(executor->error.text, who));
    assert_int_equal(executor->repetition, 0);
    assert_int_equal(executor->execution.verified, 4 * executor->execution.batches);
    sim_free(&sim);
}

static void test_each_repetition_of_a_batch_is_verified(void **state)
{
    check_verified(all_to_all.bytes, 12, 4, 12);
    find_in_first(false);
}

/* Of memories that the caches would not hold together there is one: its last result is verified. */
static void test_the_last_of_large_repetitions_is_verified(void **state)
{
    check_verified(100000, 12, 4, 3);
}

static void test_a_stale_result_is_found(void **state)
{
    find_in_first(true);
}

static void test_wrong_bytes_do_not_matter_where_nothing_is_computed(void **state)
{
    struct phase phase = counted(5, 1, 1);
    struct sim sim;

    sim_make(&sim, &all_to_all, &phase);
    sim.spoil = 100;
    sim_run(&sim);
    for (uint32_t r = 0; r < sim.n; r++)
        assert_true(sim.ranks[r].executor->ended);
    sim_free(&sim);
}

/* Both neighbours of a ring of two are the same rank: two messages of one flow in one step. */
static void test_messages_of_one_flow_keep_their_order(void **state)
{
    const struct pattern_request ring = {.name = "exchange", .n = 2, .bytes = 300};
    struct phase phase = counted(4, 1, 0);
    const struct executor_step *step;
    struct sim sim;

    phase.schedule.compute = true;
    sim_make(&sim, &ring, &phase);
    step = &sim.ranks[0].executor->steps[0];
    assert_int_equal(step->send_count, 2);
    assert_int_equal(sim.ranks[0].executor->messages[step->first_send].after, EXECUTOR_NONE);
    assert_int_equal(sim.ranks[0].executor->messages[step->first_send + 1].after, 0);
    sim_run(&sim);
    assert_int_equal(sim.ranks[1].executor->execution.verified, 4);
    sim_free(&sim);
}

/* The rank that stays over has no steps; it meets the others all the same. */
static void test_an_idle_rank_takes_part_in_the_barriers(void **state)
{
    const struct pattern_request pairs = {.name = "pairs", .n = 5, .local = true, .bytes = 8};
    struct phase phase = counted(6, 3, 1);
    struct sim sim;

    sim_make(&sim, &pairs, &phase);
    assert_int_equal(sim.ranks[4].executor->schedule.count, 0);
    sim_run(&sim);
    assert_int_equal(sim.ranks[4].executor->execution.repetitions, 6);
    check_equal(&sim);
    sim_free(&sim);
}

static void test_messages_without_bytes(void **state)
{
    struct pattern_request request = all_to_all;
    struct phase phase = counted(2, 1, 0);
    struct sim sim;

    request.bytes = 0;
    sim_make(&sim, &request, &phase);
    sim_run(&sim);
    assert_int_equal(sim.messages, 2 * 7 * 6);
    sim_free(&sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_count_ends_after_whole_batches),
        cmocka_unit_test(test_all_numbers_of_ranks_end_together),
        cmocka_unit_test(test_a_window_measures_what_begins_in_it),
        cmocka_unit_test(test_one_rank_stops_all),
        cmocka_unit_test(test_a_batch_longer_than_the_window_counts_once),
        cmocka_unit_test(test_results_are_verified),
        cmocka_unit_test(test_a_wrong_byte_is_found),
        cmocka_unit_test(test_each_repetition_of_a_batch_is_verified),
        cmocka_unit_test(test_the_last_of_large_repetitions_is_verified),
        cmocka_unit_test(test_a_stale_result_is_found),
        cmocka_unit_test(test_wrong_bytes_do_not_matter_where_nothing_is_computed),
        cmocka_unit_test(test_messages_of_one_flow_keep_their_order),
        cmocka_unit_test(test_an_idle_rank_takes_part_in_the_barriers),
        cmocka_unit_test(test_messages_without_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
