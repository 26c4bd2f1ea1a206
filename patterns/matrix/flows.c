/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flows of a list, all at once: any traffic matrix. Each flow may have a share of its source's
 * load; flows without a share divide the rest of the source's load evenly.
 */
#include "kind.h"

#include <errno.h>
#include <stdlib.h>

#define NONE UINT32_MAX

/* Flow of a list, linked by enum pattern_side with the next flow of its source and of its
 * destination. */
struct listed {
    uint32_t ends[2]; /* source and destination */
    uint32_t share;
    uint32_t next[2];
};

struct flow_list {
    struct {
        uint32_t first[2];
        uint32_t seen; /* while the list is made: the last source that sends to this rank, + 1 */
    } * ranks;
    struct listed flows[];
};

static struct flow_list *make_list(const struct pattern_request *request)
{
    size_t count = request->list.count / 2;
    struct flow_list *list = calloc(1, sizeof(*list) + count * sizeof(list->flows[0]) +
                                           request->n * sizeof(*list->ranks));

    if (list == NULL)
        return NULL;
    list->ranks = (void *)&list->flows[count];
    for (uint32_t rank = 0; rank < request->n; rank++)
        list->ranks[rank].first[0] = list->ranks[rank].first[1] = NONE;
    for (uint32_t i = (uint32_t)count; i-- > 0;) {
        struct listed *flow = &list->flows[i];

        flow->share = request->share_count > 0 ? request->shares[i] : 0;
        for (unsigned side = 0; side < 2; side++) {
            flow->ends[side] = request->list.rank[2 * i + side];
            flow->next[side] = list->ranks[flow->ends[side]].first[side];
            list->ranks[flow->ends[side]].first[side] = i;
        }
    }
    return list;
}

/* Divide the part of a rank's load that no share takes evenly among the rank's flows without a
 * share. */
static int share_out(struct flow_list *list, uint32_t rank, struct pattern_why *why)
{
    uint32_t first = list->ranks[rank].first[PATTERN_SENDS], without = 0;
    uint64_t sum = 0;

    for (uint32_t i = first; i != NONE; i = list->flows[i].next[PATTERN_SENDS]) {
        uint32_t dst = list->flows[i].ends[1];

        if (list->ranks[dst].seen == rank + 1)
            return pattern_refuse(why, "list: duplicate flow from rank %u to rank %u", rank, dst);
        list->ranks[dst].seen = rank + 1;
        sum += list->flows[i].share;
        without += list->flows[i].share == 0;
    }
    if (sum > PATTERN_WHOLE || (sum > 0 && without > 0 && PATTERN_WHOLE - sum < without))
        return pattern_refuse(why,
                              "shares: the flows of rank %u have %.7g %% of its load in total%s",
                              rank, (double)sum * 100 / PATTERN_WHOLE,
                              sum > PATTERN_WHOLE ? ": at most 100 % is valid"
                                                  : ", which leaves nothing for its other flows");
    for (uint32_t i = first; i != NONE && sum > 0 && without > 0;
         i = list->flows[i].next[PATTERN_SENDS])
        if (list->flows[i].share == 0)
            list->flows[i].share = (uint32_t)((PATTERN_WHOLE - sum) / without);
    return 0;
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    size_t ranks = request->list.count, count = ranks / 2;
    int result = 0;

    if (ranks == 0)
        return pattern_refuse(why, "flows needs a list of at least one flow");
    if (ranks % 2 != 0)
        return pattern_refuse(why,
                              "list: %zu ranks: it must have an even number, a source and a "
                              "destination for each flow",
                              ranks);
    if (request->share_count > 0 && request->share_count != count)
        return pattern_refuse(why, "shares: there are %zu shares for %zu flows: give one per flow",
                              request->share_count, count);
    for (size_t i = 0; i < ranks; i++)
        if (request->list.rank[i] >= plan->n)
            return pattern_refuse(why,
                                  "list: there is no rank %u: the network has %u ranks, from 0",
                                  request->list.rank[i], plan->n);
    for (size_t i = 0; i < ranks; i += 2)
        if (request->list.rank[i] == request->list.rank[i + 1])
            return pattern_refuse(why, "list: a flow from rank %u to itself",
                                  request->list.rank[i]);
    plan->state = make_list(request);
    if (plan->state == NULL)
        return -ENOMEM;
    for (uint32_t rank = 0; rank < plan->n && result == 0; rank++)
        result = share_out(plan->state, rank, why);
    return result;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *found)
{
    const struct flow_list *list = plan->state;
    uint32_t i = list->ranks[found->rank].first[found->side];

    for (; i != NONE; i = list->flows[i].next[found->side])
        pattern_add_flow(found, list->flows[i].ends[found->side == PATTERN_SENDS], PATTERN_GENERATE,
                         list->flows[i].share);
}

const struct pattern_kind kind_flows = {
    .knows = PATTERN_PARAM_LIST | PATTERN_PARAM_SHARES,
    .in_turn = true,
    .make = make,
    .flows = flows,
};
