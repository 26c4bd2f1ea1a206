/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The executor in a network without I/O: all ranks in this thread, in random order, and a message
 * passes only where its send and its receive are open at the same time, both the first of their
 * flow that are left.
 */
#include "clock.h"
#include "schedule_executor.h"
#include "unit.h"

#define RANKS_MOST 16u
#define OPS_MOST 256u
#define ROUNDS_MOST 20000000u

struct rank {
    struct phase phase; /* its own: ranks may see other times */
    struct schedule_executor *executor;
    bool done[OPS_MOST]; /* by operation */
    bool over;           /* ended or wrong */
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

static struct sim sim;

static uint32_t draw(uint32_t below)
{
    sim.random = sim.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((sim.random >> 33) % below);
}

static void sim_make(const struct pattern_request *request, const struct phase *phase)
{
    char why[256] = "";
    struct err err = {0};

    sim = (struct sim){.n = request->n, .random = 7};
    if (pattern_plan_make(&sim.plan, request, why, sizeof why) != 0)
        fail_msg("%s", why);
    for (uint32_t r = 0; r < sim.n; r++) {
        struct rank *rank = &sim.ranks[r];

        rank->phase = *phase;
        assert_int_equal(executor_make(&rank->executor, &rank->phase, sim.plan, r, sim.n, &err), 0);
        assert_true(rank->executor->op_count <= OPS_MOST);
    }
}

static void sim_free(void)
{
    for (uint32_t r = 0; r < sim.n; r++)
        executor_free(sim.ranks[r].executor);
    pattern_plan_free(sim.plan);
}

/* The first message of a flow that is left in the open step; SIZE_MAX: there is none. */
static size_t first_left(const struct rank *rank, enum schedule_action action, uint32_t peer)
{
    const struct schedule_executor *executor = rank->executor;

    for (size_t i = executor->first; i < executor->messages; i++)
        if (!rank->done[i] && executor->ops[i].action == action && executor->ops[i].peer == peer)
            return i;
    return SIZE_MAX;
}

static bool is_spoiled(const struct schedule_executor *to)
{
    if (to->in_barrier || ++sim.messages < sim.spoil || sim.spoil == 0)
        return false;
    return to->end == to->schedule.count && (!sim.spoil_early || to->repetition == 0);
}

static void pass(struct rank *from, size_t send, struct rank *to, size_t receive)
{
    const struct schedule_op *out = &from->executor->ops[send], *in = &to->executor->ops[receive];
    uint8_t *place = to->executor->place + in->at;
    bool spoiled = is_spoiled(to->executor);

    assert_int_equal(out->bytes, in->bytes);
    assert_int_equal(from->executor->in_barrier, to->executor->in_barrier);
    if (out->bytes > 0 && !(spoiled && sim.lose))
        memcpy(place, from->executor->place + out->at, out->bytes);
    if (from->executor->in_barrier)
        to->executor->bits |= from->executor->bits;
    if (spoiled) {
        place[out->bytes - 1] ^= sim.lose ? 0 : 0x40;
        sim.spoiled = (uint32_t)(to - sim.ranks);
        sim.spoil = 0;
    }
    from->done[send] = to->done[receive] = true;
    from->executor->sends_left--;
    to->executor->receives_left--;
}

/* Passes what one rank can send now, but for some that wait. */
static void send_some(uint32_t r)
{
    struct rank *from = &sim.ranks[r];
    const struct schedule_executor *executor = from->executor;

    for (size_t i = executor->first; i < executor->messages; i++) {
        uint32_t peer = executor->ops[i].peer;
        struct rank *to = &sim.ranks[peer];
        size_t receive;

        if (executor->ops[i].action != SCHEDULE_SEND || to->over || draw(4) == 0 ||
            first_left(from, SCHEDULE_SEND, peer) != i)
            continue;
        receive = first_left(to, SCHEDULE_RECEIVE, r);
        if (receive != SIZE_MAX)
            pass(from, i, to, receive);
    }
}

static void advance(struct rank *rank)
{
    executor_next(rank->executor);
    rank->over = rank->executor->ended || rank->executor->error.text[0] != '\0';
    memset(rank->done, 0, sizeof rank->done);
}

/* Until all ranks are through, or one has a wrong result. */
static void sim_run(void)
{
    uint32_t over = 0;

    for (uint32_t round = 0; over < sim.n; round++) {
        uint32_t r = draw(sim.n);
        struct rank *rank = &sim.ranks[r];

        if (round == ROUNDS_MOST)
            fail_msg("stuck: rank %u at operation %zu", r, rank->executor->first);
        if (rank->over)
            continue;
        if (rank->executor->busy || executor_step_done(rank->executor))
            advance(rank);
        else
            send_some(r);
        if (rank->over && rank->executor->error.text[0] != '\0')
            return;
        over += rank->over;
    }
    for (uint32_t r = 0; r < sim.n; r++) {
        assert_true(sim.ranks[r].executor->ended);
        assert_int_equal(sim.ranks[r].executor->execution.batches,
                         sim.ranks[0].executor->execution.batches);
        assert_int_equal(sim.ranks[r].executor->batch, sim.ranks[0].executor->batch);
    }
}

static struct phase counted(uint64_t count, uint32_t batch, uint32_t warmup, bool compute)
{
    return (struct phase){
        .traffic = TRAFFIC_SCHEDULE,
        .stop_ns = CLOCK_NEVER,
        .schedule = {.count = count, .batch = batch, .warmup = warmup, .compute = compute},
    };
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

    sim_make(request, phase);
    sim_run();
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
    sim_free();
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
        {"aapc", 7, 1000, 12, 4, 1, true, 12},  /* each repetition of a batch is verified */
        {"aapc", 7, 100000, 12, 4, 1, true, 3}, /* the caches hold one: the last of a batch */
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
    for (uint32_t n = 2; n <= RANKS_MOST; n++) { /* a barrier has every shape */
        struct pattern_request request = all_to_all(n, 1000);
        struct phase phase = counted(3, 1, 0, false);

        check_counts(&request, &phase, 0);
    }
}

/* Milliseconds from now on. */
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

    sim_make(&request, &phase);
    sim_run();
    first = sim.ranks[0].executor;
    assert_true(clock_now() >= phase.stop_ns);
    assert_true(first->execution.batches > 1);
    assert_true(first->batch > first->execution.batches + 2); /* before and behind it */
    assert_int_equal(first->execution.repetitions, 2 * first->execution.batches);
    sim_free();
    phase = windowed(-2, -1, 0); /* a batch that is longer than the window counts once */
    sim_make(&request, &phase);
    sim_run();
    assert_int_equal(sim.ranks[0].executor->execution.batches, 1);
    sim_free();
}

/* One rank alone says that it is over, another that it is not yet the window: all heed them. */
TEST(one_rank_stops_all)
{
    struct pattern_request request = all_to_all(7, 1000);
    struct phase phase = windowed(0, 60000, 60000);

    sim_make(&request, &phase);
    sim.ranks[5].phase.stop_ns = phase.start_ns + 200 * NS_PER_MS;
    sim.ranks[2].phase.open_ns = phase.start_ns + 100 * NS_PER_MS;
    sim_run();
    assert_true(clock_now() < phase.stop_ns);
    assert_true(sim.ranks[0].executor->batch > sim.ranks[0].executor->execution.batches + 1);
    sim_free();
}

/* --- what --- */

/* A wrong byte, or bytes that never came, in the last or the first repetition of a batch: the rank
 * names itself, and what was verified before stays; where nothing is computed nothing is found. */
TEST(a_wrong_result_is_found)
{
    for (unsigned i = 0; i < 4; i++) {
        struct pattern_request request = all_to_all(7, 1000);
        struct phase phase = counted(12, i == 0 ? 1 : 4, 1, i < 3);
        const struct schedule_executor *executor;
        char who[40];

        sim_make(&request, &phase);
        sim.spoil = 200; /* in a batch that is measured: there was a right result before */
        sim.spoil_early = i > 0;
        sim.lose = i == 2;
        sim_run();
        assert_int_equal(sim.spoil, 0);
        executor = sim.ranks[sim.spoiled].executor;
        snprintf(who, sizeof who, "rank %u has a wrong result", sim.spoiled);
        assert_int_equal(strstr(executor->error.text, who) != NULL, i < 3);
        assert_int_equal(executor->ended, i == 3);
        if (i == 1 || i == 2) {
            assert_int_equal(executor->repetition, 0);
            assert_int_equal(executor->execution.verified, 4 * executor->execution.batches);
        }
        sim_free();
    }
}
