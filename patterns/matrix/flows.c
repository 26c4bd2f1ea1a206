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

struct flow_list {
    /* By enum pattern_side: the flows of a rank are order[start[rank]] to order[start[rank + 1] -
     * 1], in the list's order. */
    uint32_t *start[2], *order[2];
    uint32_t *ends; /* source and destination of each */
    uint32_t *share;
    uint32_t *seen; /* while it is made, by destination: the last source that sends to it, + 1 */
    uint32_t room[];
};

static struct flow_list *allocate(uint32_t n, size_t count)
{
    struct flow_list *list =
        calloc(1, sizeof(*list) + (3 * ((size_t)n + 1) + 5 * count) * sizeof(*list->room));

    if (list == NULL)
        return NULL;
    list->ends = list->room;
    list->share = list->ends + 2 * count;
    list->order[0] = list->share + count;
    list->order[1] = list->order[0] + count;
    list->start[0] = list->order[1] + count;
    list->start[1] = list->start[0] + n + 1;
    list->seen = list->start[1] + n + 1;
    return list;
}

/* By the rank at one end: counted, summed up, and filled from the back. */
static void sort(struct flow_list *list, enum pattern_side side, uint32_t n, size_t count)
{
    uint32_t *start = list->start[side];

    for (size_t i = 0; i < count; i++)
        start[list->ends[2 * i + side]]++;
    for (uint32_t rank = 1; rank <= n; rank++)
        start[rank] += start[rank - 1];
    for (size_t i = count; i-- > 0;)
        list->order[side][--start[list->ends[2 * i + side]]] = (uint32_t)i;
}

/* Gives a rank's flows without a share what the others leave, evenly. */
static int share_out(struct flow_list *list, uint32_t rank, struct pattern_why *why)
{
    uint32_t *shares = list->share, without = 0;
    uint64_t sum = 0;

    for (uint32_t i = list->start[0][rank]; i < list->start[0][rank + 1]; i++) {
        uint32_t flow = list->order[0][i], dst = list->ends[2 * flow + 1];

        if (list->seen[dst] == rank + 1)
            return pattern_refuse(why, "list: duplicate flow from rank %u to rank %u", rank, dst);
        list->seen[dst] = rank + 1;
        sum += shares[flow];
        without += shares[flow] == 0;
    }
    if (sum > PATTERN_WHOLE || (sum > 0 && without > 0 && PATTERN_WHOLE - sum < without))
        return pattern_refuse(why, "shares: those of rank %u come to %.7g %%%s", rank,
                              (double)sum * 100 / PATTERN_WHOLE,
                              sum > PATTERN_WHOLE ? ": 100 % at most"
                                                  : ", which leaves nothing for its other flows");
    for (uint32_t i = list->start[0][rank]; i < list->start[0][rank + 1] && sum > 0; i++)
        if (shares[list->order[0][i]] == 0)
            shares[list->order[0][i]] = (uint32_t)((PATTERN_WHOLE - sum) / without);
    return 0;
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    size_t ranks = request->list.count, count = ranks / 2;
    struct flow_list *list = NULL;
    int result = 0;

    if (ranks == 0)
        return pattern_refuse(why, "flows needs a list of at least one flow");
    if (ranks % 2 != 0)
        return pattern_refuse(why, "list: %zu ranks do not make flows", ranks);
    if (count > UINT32_MAX)
        return pattern_refuse(why, "list: %zu flows are more than %u", count, UINT32_MAX);
    if (request->share_count > 0 && request->share_count != count)
        return pattern_refuse(why, "shares: %zu of them for %zu flows", request->share_count,
                              count);
    for (size_t i = 0; i < ranks; i++)
        if (request->list.rank[i] >= plan->n)
            return pattern_refuse(why, "list: there is no rank %u among %u", request->list.rank[i],
                                  plan->n);
    for (size_t i = 0; i < ranks; i += 2)
        if (request->list.rank[i] == request->list.rank[i + 1])
            return pattern_refuse(why, "list: a flow from rank %u to itself",
                                  request->list.rank[i]);
    list = plan->state = allocate(plan->n, count);
    if (list == NULL)
        return -ENOMEM;
    memcpy(list->ends, request->list.rank, ranks * sizeof(*list->ends));
    if (request->share_count > 0)
        memcpy(list->share, request->shares, count * sizeof(*list->share));
    sort(list, PATTERN_SENDS, plan->n, count);
    sort(list, PATTERN_RECEIVES, plan->n, count);
    for (uint32_t rank = 0; rank < plan->n && result == 0; rank++)
        result = share_out(list, rank, why);
    return result;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *found)
{
    const struct flow_list *list = plan->state;
    const uint32_t *start = list->start[found->side];

    for (uint32_t i = start[found->rank]; i < start[found->rank + 1]; i++) {
        uint32_t flow = list->order[found->side][i];

        pattern_add_flow(found, list->ends[2 * flow + (found->side == PATTERN_SENDS)],
                         PATTERN_GENERATE, list->share[flow]);
    }
}

const struct pattern_kind kind_flows = {
    .knows = PATTERN_PARAM_LIST | PATTERN_PARAM_SHARES,
    .in_turn = true,
    .make = make,
    .flows = flows,
};
