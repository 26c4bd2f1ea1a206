/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Table of patterns, and functions common to all: lookup by name, checks of parameters, error
 * sentences.
 */
#include "kind.h"
#include "steps.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME(word) #word,
#define KIND(word) &kind_##word,
static const char *const names[] = {PATTERNS(NAME) NULL};
static const struct pattern_kind *const kinds[] = {PATTERNS(KIND)};

/* Return the index of the request's pattern, after the checks common to all patterns. */
static int check_request(const struct pattern_request *request, struct pattern_why *why)
{
    int index, result;

    if (request->name == NULL)
        return pattern_refuse(why, "the pattern has no name");
    index = pattern_choose("pattern", names, request->name, why);
    if (index < 0)
        return index;
    if (request->n < 2 || request->n > PATTERN_RANKS_MAX)
        return pattern_refuse(why, "%s: the network has %u rank%s: a pattern needs 2 to %u",
                              request->name, request->n, request->n == 1 ? "" : "s",
                              PATTERN_RANKS_MAX);
    if (request->bytes > PATTERN_BYTES_MAX)
        return pattern_refuse(why, "%s: bytes %" PRIu64 " is more than the maximum, %" PRIu64,
                              request->name, request->bytes, PATTERN_BYTES_MAX);
    result = pattern_check_params(request->name, request,
                                  kinds[index]->knows | PATTERN_PARAM_LOCAL |
                                      (request->local ? PATTERN_PARAM_BYTES : 0u),
                                  why);
    return result < 0 ? result : index;
}

/* Choose the emitter (algorithm) of a pattern that is always a schedule, and check the parameters
 * that MPI's functions have in common. */
static int choose_emitter(struct pattern_plan *plan, const struct pattern_request *request,
                          struct pattern_why *why)
{
    const char *const *algorithms = plan->kind->algorithms;
    int index = algorithms[0] != NULL
                    ? pattern_choose("algorithm", algorithms, request->algorithm, why)
                    : 0;

    if (index < 0)
        return index;
    if (plan->kind->floats && request->bytes % sizeof(float) != 0)
        return pattern_refuse(why,
                              "%s: bytes %" PRIu64 " is not a multiple of 4, the size of a float",
                              plan->name, request->bytes);
    plan->emit = plan->kind->emit[index];
    if (algorithms[0] != NULL)
        snprintf(plan->label, sizeof(plan->label), "%s %s", plan->name, algorithms[index]);
    return 0;
}

int pattern_plan_make(struct pattern_plan **plan, const struct pattern_request *request, char *why,
                      size_t why_size)
{
    struct pattern_why reason = {why, why_size};
    struct pattern_plan *made = NULL;
    int index = check_request(request, &reason), result;

    if (index < 0)
        return index;
    made = calloc(1, sizeof(*made));
    if (made == NULL)
        return -ENOMEM;
    made->kind = kinds[index];
    made->name = names[index];
    snprintf(made->label, sizeof(made->label), "%s", names[index]);
    made->n = request->n;
    made->phases = 1;
    made->asked = *request;
    made->bytes = request->bytes;
    result = choose_emitter(made, request, &reason);
    if (result == 0 && made->kind->make != NULL)
        result = made->kind->make(made, request, &reason);
    if (result < 0)
        goto cleanup;
    if (request->local && made->emit == NULL) {
        made->emit = pattern_emit_local;
        made->local_phases = made->phases;
        made->phases = 1;
    }
    if (made->emit != NULL && request->round_trip) {
        result = pattern_refuse(
            &reason, "%s: remove round_trip: a schedule has no messages that are returned",
            made->name);
        goto cleanup;
    }
    *plan = made;
    made = NULL;
cleanup:
    pattern_plan_free(made);
    return result;
}

void pattern_plan_free(struct pattern_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->state);
    free(plan);
}

uint32_t pattern_phases(const struct pattern_plan *plan)
{
    return plan->phases;
}

bool pattern_is_scheduled(const struct pattern_plan *plan)
{
    return plan->emit != NULL;
}

uint32_t pattern_iterations(const struct pattern_plan *plan)
{
    return plan->iterations;
}

bool pattern_in_turn(const struct pattern_plan *plan)
{
    return plan->kind->in_turn;
}

int pattern_phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    assert(phase < plan->phases);
    if (plan->local_phases > 1)
        return snprintf(name, size, "%u phases", plan->local_phases);
    if (plan->kind->phase_name != NULL)
        return plan->kind->phase_name(plan, phase, name, size);
    return snprintf(name, size, plan->phases > 1 ? "%s, moved by %u" : "%s", plan->label, phase);
}

size_t pattern_flows(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     enum pattern_side side, struct pattern_flow *flows, size_t room)
{
    uint64_t seen[PATTERN_RANKS_MAX / 64];
    struct pattern_flow_list list = {
        .rank = rank,
        .phase = phase,
        .side = side,
        .flows = flows,
        .room = room,
        .one_way = plan->asked.round_trip ? plan : NULL,
    };
    struct steps steps = {
        .n = plan->n, .rank = rank, .phase = phase, .group = {0, 1}, .list = &list};

    assert(phase < plan->phases && rank < plan->n);
    if (plan->emit == NULL) {
        plan->kind->flows(plan, &list);
        return list.count;
    }
    list.seen = memset(seen, 0, sizeof(seen));
    if (plan->local_phases == 0)
        plan->emit(plan, &steps);
    for (; list.phase < plan->local_phases; list.phase++)
        plan->kind->flows(plan, &list);
    for (unsigned round = 0; round < schedule_barrier_rounds(plan->n); round++)
        pattern_add(&list, side == PATTERN_SENDS ? schedule_barrier_to(rank, round, plan->n)
                                                 : schedule_barrier_from(rank, round, plan->n));
    return list.count;
}
