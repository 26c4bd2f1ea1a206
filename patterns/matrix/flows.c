/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows: those of a list, all at once: any traffic matrix. Each may have a share of what its source
 * sends; those without divide evenly what the others of that source leave.
 *
 * The list is sorted once by source and once by destination, so that a rank finds its flows without
 * looking through it.
 */
#include "kind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct listed {
    uint32_t src;
    uint32_t dst;
    uint32_t share;
};

/* Flows by the rank that they have on one side, in the list's order: those of rank r are
 * order[starts[r]] to order[starts[r + 1] - 1]. */
struct index {
    uint32_t *starts;
    uint32_t *order;
};

struct flow_list {
    uint32_t count;
    struct listed *flows;
    struct index by_source;
    struct index by_destination;
    max_align_t room[]; /* for all of these */
};

static uint32_t end_of(const struct listed *flow, enum pattern_side side)
{
    return side == PATTERN_SENDS ? flow->src : flow->dst;
}

static void fill_index(const struct flow_list *list, uint32_t n, struct index *index,
                       enum pattern_side side)
{
    for (uint32_t i = 0; i < list->count; i++)
        index->starts[end_of(&list->flows[i], side) + 1]++;
    for (uint32_t rank = 0; rank < n; rank++)
        index->starts[rank + 1] += index->starts[rank];
    for (uint32_t i = list->count; i-- > 0;) { /* from the back: starts end as starts */
        uint32_t rank = end_of(&list->flows[i], side);

        index->order[--index->starts[rank + 1]] = i;
    }
    memmove(index->starts, index->starts + 1, n * sizeof(*index->starts));
    index->starts[n] = list->count;
}

static struct flow_list *make_list(uint32_t count, uint32_t n)
{
    size_t starts = (size_t)n + 1, words = 2 * (starts + count);
    struct flow_list *list =
        calloc(1, sizeof(*list) + count * sizeof(struct listed) + words * sizeof(uint32_t));
    uint32_t *word;

    if (list == NULL)
        return NULL;
    list->count = count;
    list->flows = (struct listed *)list->room;
    word = (uint32_t *)(list->flows + count);
    list->by_source = (struct index){word, word + starts};
    word += starts + count;
    list->by_destination = (struct index){word, word + starts};
    return list;
}

static int refuse_ranks(const struct flow_list *list, uint32_t n, struct pattern_why *why)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct listed *flow = &list->flows[i];
        uint32_t greatest = flow->src > flow->dst ? flow->src : flow->dst;

        if (greatest >= n)
            return pattern_refuse(why, "list: there is no rank %u among %u", greatest, n);
        if (flow->src == flow->dst)
            return pattern_refuse(why, "list: a flow from rank %u to itself", flow->src);
    }
    return 0;
}

/* `seen`: by destination the last source that has a flow there, and one more. */
static int refuse_twins(const struct flow_list *list, uint32_t n, struct pattern_why *why)
{
    uint32_t *seen = calloc(n, sizeof(*seen));
    int result = 0;

    if (seen == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < list->count && result == 0; i++) {
        const struct listed *flow = &list->flows[list->by_source.order[i]];

        if (seen[flow->dst] == flow->src + 1)
            result = pattern_refuse(why, "list: duplicate flow from rank %u to rank %u", flow->src,
                                    flow->dst);
        seen[flow->dst] = flow->src + 1;
    }
    free(seen);
    return result;
}

/* Gives a rank's flows without a share what the others leave, evenly. */
static int share_out(struct flow_list *list, uint32_t rank, struct pattern_why *why)
{
    const uint32_t *order = list->by_source.order, *starts = list->by_source.starts;
    uint64_t sum = 0;
    uint32_t without = 0;
    uint32_t each;

    for (uint32_t i = starts[rank]; i < starts[rank + 1]; i++) {
        sum += list->flows[order[i]].share;
        without += list->flows[order[i]].share == 0;
    }
    if (sum == 0)
        return 0;
    if (sum > PATTERN_WHOLE || (without > 0 && PATTERN_WHOLE - sum < without))
        return pattern_refuse(why, "shares: those of rank %u come to %.7g %%%s", rank,
                              (double)sum * 100 / PATTERN_WHOLE,
                              sum > PATTERN_WHOLE ? ": 100 % at most"
                                                  : ", which leaves nothing for its other flows");
    each = without > 0 ? (uint32_t)((PATTERN_WHOLE - sum) / without) : 0;
    for (uint32_t i = starts[rank]; i < starts[rank + 1]; i++)
        if (list->flows[order[i]].share == 0)
            list->flows[order[i]].share = each;
    return 0;
}

static int fill(struct flow_list *list, uint32_t n, const struct pattern_request *request,
                struct pattern_why *why)
{
    int result;

    for (uint32_t i = 0; i < list->count; i++)
        list->flows[i] = (struct listed){
            .src = request->list.rank[2 * (size_t)i],
            .dst = request->list.rank[2 * (size_t)i + 1],
            .share = request->share_count > 0 ? request->shares[i] : 0,
        };
    result = refuse_ranks(list, n, why);
    if (result < 0)
        return result;
    fill_index(list, n, &list->by_source, PATTERN_SENDS);
    fill_index(list, n, &list->by_destination, PATTERN_RECEIVES);
    result = refuse_twins(list, n, why);
    for (uint32_t rank = 0; rank < n && result == 0; rank++)
        result = share_out(list, rank, why);
    return result;
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    const struct pattern_ranks *ranks = &request->list;
    struct flow_list *list = NULL;
    int result;

    if (ranks->count == 0)
        return pattern_refuse(why, "flows needs a list of at least one flow");
    if (ranks->count % 2 != 0)
        return pattern_refuse(why, "list: %zu ranks do not make flows", ranks->count);
    if (ranks->count / 2 > UINT32_MAX)
        return pattern_refuse(why, "list: %zu flows are more than %u", ranks->count / 2,
                              UINT32_MAX);
    if (request->share_count > 0 && request->share_count != ranks->count / 2)
        return pattern_refuse(why, "shares: %zu of them for %zu flows", request->share_count,
                              ranks->count / 2);
    list = make_list((uint32_t)(ranks->count / 2), plan->n);
    if (list == NULL)
        return -ENOMEM;
    result = fill(list, plan->n, request, why);
    if (result < 0) {
        free(list);
        return result;
    }
    plan->state = list;
    return 0;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *found)
{
    const struct flow_list *list = plan->state;
    bool sends = found->side == PATTERN_SENDS;
    const struct index *index = sends ? &list->by_source : &list->by_destination;

    for (uint32_t i = index->starts[found->rank]; i < index->starts[found->rank + 1]; i++) {
        const struct listed *flow = &list->flows[index->order[i]];

        pattern_add_share(found, sends ? flow->dst : flow->src, flow->share);
    }
}

const struct pattern_kind kind_flows = {
    .knows = PATTERN_PARAM_LIST | PATTERN_PARAM_SHARES,
    .in_turn = true,
    .make = make,
    .flows = flows,
};
