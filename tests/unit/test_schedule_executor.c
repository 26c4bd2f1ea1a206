/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The executor in a network without I/O (ranks.h): its end, its measurements and its verification.
 * test_patterns.c covers the results of each pattern.
 */
#include "clock.h"
#include "ranks.h"
#include "unit.h"

static struct pattern_plan *plan;

static void make(const struct pattern_request *request, const struct phase *phase)
{
    plan = plan_of(request);
    sim_make(plan, request->n, phase);
}

static void end(void)
{
    sim_free();
    pattern_plan_free(plan);
}

static struct pattern_request all_to_all(uint32_t n, uint64_t bytes)
{
    return (struct pattern_request){.name = "aapc", .n = n, .local = true, .bytes = bytes};
}

/* --- how many --- */

static void check_counts(const struct pattern_request *request, const struct phase *phase,
                         uint64_t verified)
{
    const struct schedule_options *options = &phase->schedule;
    uint64_t batches = (options->count + options->batch - 1) / options->batch;

    make(request, phase);
    assert_string_equal(sim_run(), "");
    for (uint32_t r = 0; r < sim.n; r++) {
        const struct execution *execution = &sim.ranks[r].executor->execution;

        assert_int_equal(execution->batches, batches);
        assert_int_equal(execution->repetitions, batches * options->batch);
        assert_int_equal(execution->times.count, batches);
        assert_true(execution->sum_ns >= execution->times.sum_ns * options->batch);
        assert_int_equal(execution->verified, verified);
    }
    if (strcmp(request->name, "aapc") == 0) /* the warm-up's, too */
        assert_int_equal(sim.messages,
                         (batches + options->warmup) * options->batch * sim.n * (sim.n - 1));
    end();
}

TEST(a_count_ends_after_whole_batches)
{
    static const struct {
        const char *name;
        uint32_t n;
        uint64_t bytes, count;
        uint32_t batch, warmup;
        bool compute;
        uint64_t verified;
    } cases[] = {
        {"aapc", 7, 1000, 10, 4, 2, false, 0},
        {"aapc", 7, 0, 2, 1, 0, false, 0}, /* messages without bytes */
        {"aapc", 7, 1000, 5, 1, 1, true, 5},
        {"aapc", 7, 1000, 12, 4, 1, true, 12}, /* each repetition of a batch is verified */
        {"aapc", 7, 100000, 12, 4, 1, true,
         3}, /* the caches hold one result: the last of a batch */
        {"exchange", 2, 300, 4, 1, 0, true, 4}, /* two messages of one flow in a step */
        {"pairs", 5, 8, 6, 3, 1, false, 0},     /* the last rank has no steps */
    };

    for (EACH(c, cases)) {
        struct pattern_request request = all_to_all(c->n, c->bytes);
        struct phase phase = counted(c->count, c->batch, c->warmup, c->compute);

        request.name = c->name;
        request.local = strcmp(request.name, "exchange") != 0;
        check_counts(&request, &phase, c->verified);
    }
}

/* A barrier of any number of ranks passes each rank's bits to all ranks. */
TEST(each_rank_ends_all)
{
    assert_int_equal(schedule_barrier_rounds(PATTERN_RANKS_MAX), 16);
    for (uint32_t n = 2; n <= 33; n++) {
        const uint32_t step = n > 16 ? 7 : 1;

        for (uint32_t rank = 0; rank < n; rank += step) {
            struct pattern_request request = all_to_all(n, 8);
            struct phase phase = counted(1000000, 1, 0, false);

            make(&request, &phase);
            sim.ranks[rank].phase.schedule.count = 2;
            assert_string_equal(sim_run(), "");
            assert_int_equal(sim.ranks[0].executor->batch, 2);
            end();
        }
    }
}

/* Return a phase whose window opens, closes and stops so many ms from now. */
static struct phase windowed(int64_t open, int64_t close, int64_t stop)
{
    struct phase phase = counted(0, 2, 1, false);
    int64_t now_ns = clock_now();

    phase.start_ns = now_ns;
    phase.open_ns = now_ns + open * NS_PER_MS;
    phase.close_ns = now_ns + close * NS_PER_MS;
    phase.stop_ns = now_ns + stop * NS_PER_MS;
    return phase;
}

TEST(a_window_measures_what_begins_in_it)
{
    struct pattern_request request = all_to_all(7, 1000);
    struct phase phase = windowed(100, 200, 300);
    const struct schedule_executor *first;

    make(&request, &phase);
    assert_string_equal(sim_run(), "");
    first = sim.ranks[0].executor;
    assert_true(clock_now() >= phase.stop_ns);
    assert_true(first->execution.batches > 1);
    assert_true(first->batch > first->execution.batches + 2); /* before and after it */
    assert_int_equal(first->execution.repetitions, 2 * first->execution.batches);
    end();
    phase = windowed(-2, -1, 0); /* a batch that is longer than the window counts once */
    make(&request, &phase);
    assert_string_equal(sim_run(), "");
    assert_int_equal(sim.ranks[0].executor->execution.batches, 1);
    end();
}

/* One rank ends early, and another opens its window late: all ranks do the same. */
TEST(one_rank_stops_all)
{
    struct pattern_request request = all_to_all(7, 1000);
    struct phase phase = windowed(0, 60000, 60000);

    make(&request, &phase);
    sim.ranks[5].phase.stop_ns = phase.start_ns + 200 * NS_PER_MS;
    sim.ranks[2].phase.open_ns = phase.start_ns + 100 * NS_PER_MS;
    assert_string_equal(sim_run(), "");
    assert_true(clock_now() < phase.stop_ns);
    assert_true(sim.ranks[0].executor->batch > sim.ranks[0].executor->execution.batches + 1);
    end();
}

/* --- what --- */

/* A wrong byte, or bytes that never came, in the last or the first repetition of a batch: the rank
 * names itself, and earlier verified results stay; where nothing is computed no error is found. */
TEST(a_wrong_result_is_found)
{
    for (unsigned i = 0; i < 4; i++) {
        struct pattern_request request = all_to_all(7, 1000);
        struct phase phase = counted(12, i == 0 ? 1 : 4, 1, i < 3);
        const struct schedule_executor *executor;
        const char *wrong;
        char who[40];

        make(&request, &phase);
        sim.spoil = 200; /* in a measured batch, after a right result */
        sim.spoil_result = true;
        sim.spoil_early = i > 0;
        sim.lose = i == 2;
        wrong = sim_run();
        assert_int_equal(sim.spoil, 0);
        executor = sim.ranks[sim.spoiled].executor;
        snprintf(who, sizeof who, "rank %u has a wrong result", sim.spoiled);
        assert_int_equal(strstr(wrong, who) != NULL, i < 3);
        assert_int_equal(executor->ended, i == 3);
        if (i == 1 || i == 2) {
            assert_int_equal(executor->repetition, 0);
            assert_int_equal(executor->execution.verified, 4 * executor->execution.batches);
        }
        end();
    }
}
