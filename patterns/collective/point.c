/* SPDX-License-Identifier: BSD-3-Clause
 *
 * IMB's functions between two ranks, and between neighbours in the natural ring (IMB User Guide,
 * "Single Transfer" and "Parallel Transfer Benchmarks").
 */
#include "collective.h"
#include "permutation.h"

#include <stdio.h>

/* Number of the stream of random numbers for random pairs, which differs from other patterns'
 * streams of the same seed. */
#define TWO_STREAM (UINT64_C(2) << 32)
#define PHASES_MAX 65536u

/* The two ranks of a phase: 0 and 1, or a random pair. No ordered pair of the n (n - 1) repeats. */
struct two {
    uint32_t first;
    uint32_t second;
};

static struct two two_of(const struct pattern_plan *plan, uint32_t phase)
{
    struct permutation order;
    uint32_t pair, first, second;

    if (plan->asked.count == 0)
        return (struct two){0, 1};
    order = permutation_draw(plan->n * (plan->n - 1), plan->asked.seed, TWO_STREAM);
    pair = permutation_at(&order, phase);
    first = pair / (plan->n - 1);
    second = pair % (plan->n - 1);
    return (struct two){first, second < first ? second : second + 1};
}

static int make_two(struct pattern_plan *plan, const struct pattern_request *request,
                    struct pattern_why *why)
{
    uint64_t pairs = (uint64_t)plan->n * (plan->n - 1);
    uint64_t most = pairs < PHASES_MAX ? pairs : PHASES_MAX;

    if (request->count > most)
        return pattern_refuse(why,
                              "%s: count %u is more than %llu: the ordered pairs of %u ranks, "
                              "at most %u",
                              plan->name, request->count, (unsigned long long)most, plan->n,
                              PHASES_MAX);
    plan->phases = request->count > 0 ? request->count : 1;
    return 0;
}

static int name_two(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    struct two two = two_of(plan, phase);

    return snprintf(name, size, "%s %u %u", plan->name, two.first, two.second);
}

static void emit_pingpong(const struct pattern_plan *plan, struct steps *steps)
{
    struct two two = two_of(plan, steps->phase);
    bool first = steps->rank == two.first;
    struct piece ping = {0, plan->bytes}, pong = {first ? plan->bytes : 0, plan->bytes};

    if (!first && steps->rank != two.second)
        return;
    if (first) {
        steps_hold_of(steps, STEPS_INPUT, two.first, ping);
        steps_send(steps, two.second, ping);
        steps_next(steps);
        steps_receive(steps, two.second, pong);
    } else {
        steps_receive(steps, two.first, ping);
        steps_next(steps);
        steps_send(steps, two.first, pong);
    }
    steps_hold_of(steps, STEPS_RESULT, two.first, pong);
}

static void emit_pingping(const struct pattern_plan *plan, struct steps *steps)
{
    struct two two = two_of(plan, steps->phase);
    uint32_t other = steps->rank == two.first ? two.second : two.first;

    if (steps->rank != two.first && steps->rank != two.second)
        return;
    steps_trade(steps, plan->bytes, 1, other, other);
}

/* Emit a step of the periodic chain of ranks: send to the right and receive from the left
 * neighbour; in an exchange also in the opposite direction. */
static void emit_sendrecv(const struct pattern_plan *plan, struct steps *steps)
{
    uint32_t right = (steps->rank + 1) % plan->n;
    uint32_t left = (steps->rank + plan->n - 1) % plan->n;

    steps_trade(steps, plan->bytes, 1, right, left);
    if (plan->kind == &kind_exchange)
        steps_trade(steps, plan->bytes, 2, left, right);
}

const struct pattern_kind kind_pingpong = {.knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_COUNT,
                                           .emit = {emit_pingpong},
                                           .make = make_two,
                                           .phase_name = name_two};

const struct pattern_kind kind_pingping = {.knows = PATTERN_PARAM_BYTES | PATTERN_PARAM_COUNT,
                                           .emit = {emit_pingping},
                                           .make = make_two,
                                           .phase_name = name_two};

const struct pattern_kind kind_sendrecv = {.knows = PATTERN_PARAM_BYTES, .emit = {emit_sendrecv}};

const struct pattern_kind kind_exchange = {.knows = PATTERN_PARAM_BYTES, .emit = {emit_sendrecv}};
