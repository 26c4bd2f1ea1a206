/* SPDX-License-Identifier: BSD-3-Clause */
#include "ranks.h"

#include "clock.h"
#include "unit.h"

#define ROUNDS_MOST 20000000u

struct ranks sim;

struct pattern_plan *plan_of(const struct pattern_request *request)
{
    struct pattern_plan *plan = NULL;
    char why[256] = "no memory";

    if (pattern_plan_make(&plan, request, why, sizeof why) != 0)
        fail_msg("%s of %u ranks: %s", request->name, request->n, why);
    return plan;
}

struct phase counted(uint64_t count, uint32_t batch, uint32_t warmup, bool compute)
{
    return (struct phase){
        .traffic = TRAFFIC_SCHEDULE,
        .stop_ns = CLOCK_NEVER,
        .schedule = {.count = count, .batch = batch, .warmup = warmup, .compute = compute},
    };
}

static uint32_t draw(uint32_t below)
{
    sim.random = sim.random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((sim.random >> 33) % below);
}

void sim_make(const struct pattern_plan *plan, uint32_t n, const struct phase *phase)
{
    struct err err = {0};

    assert_in_range(n, 1, RANKS_MOST);
    sim = (struct ranks){.n = n, .random = 7};
    for (uint32_t r = 0; r < n; r++) {
        struct rank *rank = &sim.ranks[r];

        rank->phase = *phase;
        assert_int_equal(executor_make(&rank->executor, &rank->phase, plan, r, n, &err), 0);
        rank->done = calloc(rank->executor->op_count + 1, sizeof *rank->done);
        assert_non_null(rank->done);
    }
}

void sim_free(void)
{
    for (uint32_t r = 0; r < sim.n; r++) {
        executor_free(sim.ranks[r].executor);
        free(sim.ranks[r].done);
    }
}

/* Return the first message of a flow that is left in the open step; SIZE_MAX: there is none. */
static size_t first_left(const struct rank *rank, enum schedule_action action, uint32_t peer)
{
    const struct schedule_executor *executor = rank->executor;

    for (size_t i = executor->first; i < executor->messages; i++)
        if (!rank->done[i] && executor->ops[i].action == action && executor->ops[i].peer == peer)
            return i;
    return SIZE_MAX;
}

static bool is_spoiled(const struct schedule_executor *to, uint64_t bytes)
{
    bool last = to->end == to->schedule.count;

    if (to->in_barrier || ++sim.messages < sim.spoil || sim.spoil == 0 || bytes == 0)
        return false;
    return (last || !sim.spoil_result) && (to->repetition == 0 || !sim.spoil_early);
}

static void pass(struct rank *from, size_t send, struct rank *to, size_t receive)
{
    const struct schedule_op *out = &from->executor->ops[send], *in = &to->executor->ops[receive];
    uint8_t *place = to->executor->place + in->at;
    bool spoiled = is_spoiled(to->executor, out->bytes);

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

/* Pass the messages that one rank can send now, except those that wait. */
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
    struct schedule_executor *executor = rank->executor;

    if (executor->refilling && executor->ran && sim.look != NULL)
        sim.look(rank);
    if (sim.rests)
        executor->local = executor->end;
    memset(rank->done + executor->first, 0, executor->messages - executor->first);
    executor_next(executor);
    rank->over = executor->ended || executor->error.text[0] != '\0';
}

const char *sim_run(void)
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
            return rank->executor->error.text;
        over += rank->over;
    }
    for (uint32_t r = 0; r < sim.n; r++) {
        assert_true(sim.ranks[r].executor->ended);
        assert_int_equal(sim.ranks[r].executor->execution.batches,
                         sim.ranks[0].executor->execution.batches);
        assert_int_equal(sim.ranks[r].executor->batch, sim.ranks[0].executor->batch);
    }
    return "";
}
