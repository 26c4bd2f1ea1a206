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

struct listed {
    uint32_t end[2]; /* by enum pattern_side: source, destination */
    uint32_t share;
};

/* Sorted numbers: a rank above a flow's place in the list. */
struct flow_list {
    uint64_t count;
    struct listed *flows; /* in the list's order, behind by_end */
    uint64_t *by_end[2];  /* by enum pattern_side */
    uint64_t room[];
};

static int compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

    return first < second ? -1 : first > second;
}

/* The first place in by_end whose rank is at least this one. */
static uint64_t place_of(const struct flow_list *list, enum pattern_side side, uint64_t rank)
{
    uint64_t low = 0, high = list->count;

    while (low < high) {
        uint64_t middle = (low + high) / 2;

        if (list->by_end[side][middle] >> 32 < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Flows of a rank are by_end[*place] and on, while this returns true. */
static bool is_of(const struct flow_list *list, enum pattern_side side, uint64_t place,
                  uint32_t rank)
{
    return place < list->count && list->by_end[side][place] >> 32 == rank;
}

static int refuse_ranks(const struct flow_list *list, uint32_t n, struct pattern_why *why)
{
    for (uint64_t i = 0; i < list->count; i++) {
        uint32_t src = list->flows[i].end[0], dst = list->flows[i].end[1];

        if (src >= n || dst >= n)
            return pattern_refuse(why, "list: there is no rank %u among %u", src > dst ? src : dst,
                                  n);
        if (src == dst)
            return pattern_refuse(why, "list: a flow from rank %u to itself", src);
    }
    return 0;
}

/* Sorts; a flow that is listed twice is refused: `keys` are source and destination for a moment. */
static int sort(struct flow_list *list, struct pattern_why *why)
{
    uint64_t *keys = list->by_end[PATTERN_SENDS];

    for (uint64_t i = 0; i < list->count; i++)
        keys[i] = (uint64_t)list->flows[i].end[0] << 32 | list->flows[i].end[1];
    qsort(keys, list->count, sizeof(*keys), compare);
    for (uint64_t i = 1; i < list->count; i++)
        if (keys[i] == keys[i - 1])
            return pattern_refuse(why, "list: duplicate flow from rank %u to rank %u",
                                  (uint32_t)(keys[i] >> 32), (uint32_t)keys[i]);
    for (int side = 0; side < 2; side++) {
        keys = list->by_end[side];
        for (uint64_t i = 0; i < list->count; i++)
            keys[i] = (uint64_t)list->flows[i].end[side] << 32 | i;
        qsort(keys, list->count, sizeof(*keys), compare);
    }
    return 0;
}

/* Gives a rank's flows without a share what the others leave, evenly. */
static int share_out(struct flow_list *list, uint64_t first, uint32_t rank, struct pattern_why *why)
{
    const uint64_t *keys = list->by_end[PATTERN_SENDS];
    uint64_t sum = 0;
    uint32_t without = 0;

    for (uint64_t i = first; is_of(list, PATTERN_SENDS, i, rank); i++) {
        sum += list->flows[(uint32_t)keys[i]].share;
        without += list->flows[(uint32_t)keys[i]].share == 0;
    }
    if (sum == 0)
        return 0;
    if (sum > PATTERN_WHOLE || (without > 0 && PATTERN_WHOLE - sum < without))
        return pattern_refuse(why, "shares: those of rank %u come to %.7g %%%s", rank,
                              (double)sum * 100 / PATTERN_WHOLE,
                              sum > PATTERN_WHOLE ? ": 100 % at most"
                                                  : ", which leaves nothing for its other flows");
    for (uint64_t i = first; is_of(list, PATTERN_SENDS, i, rank); i++)
        if (list->flows[(uint32_t)keys[i]].share == 0)
            list->flows[(uint32_t)keys[i]].share = (uint32_t)((PATTERN_WHOLE - sum) / without);
    return 0;
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    size_t ranks = request->list.count, count = ranks / 2;
    struct flow_list *list = NULL;
    int result;

    if (ranks == 0)
        return pattern_refuse(why, "flows needs a list of at least one flow");
    if (ranks % 2 != 0)
        return pattern_refuse(why, "list: %zu ranks do not make flows", ranks);
    if (count > UINT32_MAX)
        return pattern_refuse(why, "list: %zu flows are more than %u", count, UINT32_MAX);
    if (request->share_count > 0 && request->share_count != count)
        return pattern_refuse(why, "shares: %zu of them for %zu flows", request->share_count,
                              count);
    list = malloc(sizeof(*list) + count * (sizeof(struct listed) + 2 * sizeof(uint64_t)));
    if (list == NULL)
        return -ENOMEM;
    plan->state = list;
    list->count = count;
    list->by_end[0] = list->room;
    list->by_end[1] = list->room + count;
    list->flows = (struct listed *)(list->room + 2 * count);
    for (size_t i = 0; i < count; i++)
        list->flows[i] = (struct listed){
            .end = {request->list.rank[2 * i], request->list.rank[2 * i + 1]},
            .share = request->share_count > 0 ? request->shares[i] : 0,
        };
    result = refuse_ranks(list, plan->n, why);
    if (result == 0)
        result = sort(list, why);
    for (uint64_t i = 0; i < count && result == 0; i++) {
        uint32_t rank = (uint32_t)(list->by_end[PATTERN_SENDS][i] >> 32);

        if (i == 0 || list->by_end[PATTERN_SENDS][i - 1] >> 32 != rank)
            result = share_out(list, i, rank, why);
    }
    return result;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *found)
{
    const struct flow_list *list = plan->state;
    enum pattern_side side = found->side;

    for (uint64_t i = place_of(list, side, found->rank); is_of(list, side, i, found->rank); i++) {
        const struct listed *flow = &list->flows[(uint32_t)list->by_end[side][i]];

        pattern_add_flow(found, flow->end[side == PATTERN_SENDS], PATTERN_GENERATE, flow->share);
    }
}

const struct pattern_kind kind_flows = {
    .knows = PATTERN_PARAM_LIST | PATTERN_PARAM_SHARES,
    .in_turn = true,
    .make = make,
    .flows = flows,
};
