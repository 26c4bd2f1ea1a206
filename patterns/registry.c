/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of patterns, and what they share: finding one by its name, checking which parameters
 * it knows, refusing in one sentence.
 */
#include "kind.h"
#include "schedule_builder.h"

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

const char *const *pattern_names(void)
{
    return names;
}

/* The index of the request's pattern, when what all patterns share is right. */
static int check_request(const struct pattern_request *request, struct pattern_why *why)
{
    int index, result;

    if (request->name == NULL)
        return pattern_refuse(why, "the pattern has no name");
    index = pattern_choose("pattern", names, request->name, why);
    if (index < 0)
        return index;
    if (request->n < 2 || request->n > PATTERN_RANKS_MAX)
        return pattern_refuse(why, "%s: %u rank%s: a pattern needs 2 to %u", request->name,
                              request->n, request->n == 1 ? "" : "s", PATTERN_RANKS_MAX);
    if (request->bytes > PATTERN_BYTES_MAX)
        return pattern_refuse(why, "%s: bytes %" PRIu64 " is more than %" PRIu64, request->name,
                              request->bytes, PATTERN_BYTES_MAX);
    result = pattern_check_params(request->name, request,
                                  kinds[index]->knows | PATTERN_PARAM_LOCAL |
                                      (request->local ? PATTERN_PARAM_BYTES : 0u),
                                  why);
    return result < 0 ? result : index;
}

/* What a schedule by nature is emitted by, and what functions of MPI have in common. */
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
        return pattern_refuse(why, "%s: bytes %" PRIu64 " is no whole number of floats of 4 bytes",
                              plan->name, request->bytes);
    if (request->skew > 100)
        return pattern_refuse(why, "%s: skew %u is more than 100 percent", plan->name,
                              request->skew);
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
        result = pattern_refuse(&reason,
                                "%s: round_trip is for messages that come back by themselves, not "
                                "for the steps of a schedule",
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

struct writer {
    struct pattern_flow_list list;
    const struct pattern_plan *plan;
    struct pattern_flow *flows;
    size_t room, count;
};

static void write_flow(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct writer *writer = (struct writer *)list;

    if (writer->count < writer->room)
        writer->flows[writer->count] = *flow;
    writer->count++;
}

struct search {
    struct pattern_flow_list list;
    struct pattern_flow flow;
    bool found;
};

static void seek(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct search *search = (struct search *)list;

    search->found |= flow->src == search->flow.src && flow->dst == search->flow.dst;
}

/* Leaves out a flow from a higher rank to a lower one where the phase has the one there, too. */
static void write_one_way(struct pattern_flow_list *list, const struct pattern_flow *flow)
{
    struct search there = {
        .list = {.rank = list->rank, .phase = list->phase, .take = seek},
        .flow = {.src = flow->dst, .dst = flow->src},
    };

    if (flow->src > flow->dst) {
        there.list.side = list->side == PATTERN_SENDS ? PATTERN_RECEIVES : PATTERN_SENDS;
        ((struct writer *)list)->plan->kind->flows(((struct writer *)list)->plan, &there.list);
    }
    if (!there.found)
        write_flow(list, flow);
}

size_t pattern_flows(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                     enum pattern_side side, struct pattern_flow *flows, size_t room)
{
    struct writer writer = {
        .list = {.rank = rank,
                 .phase = phase,
                 .side = side,
                 .take = plan->asked.round_trip ? write_one_way : write_flow},
        .plan = plan,
        .flows = flows,
        .room = room,
    };

    assert(phase < plan->phases && rank < plan->n);
    if (plan->emit != NULL)
        steps_flows(plan, &writer.list);
    else
        plan->kind->flows(plan, &writer.list);
    return writer.count;
}
