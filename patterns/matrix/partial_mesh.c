/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Partial mesh: the flows of a list, all at once (RFC 2285, 3.3.2). A rank may be in several, on
 * both sides: many to one, one to many, any traffic matrix.
 *
 * A rank's flows are found by looking through the whole list.
 */
#include "kind.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct end_points {
    uint32_t src;
    uint32_t dst;
};

struct flow_list {
    size_t count;
    struct end_points flows[];
};

static int compare(const void *a, const void *b)
{
    const struct end_points *x = a, *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return (x->dst > y->dst) - (x->dst < y->dst);
}

static int refuse_ranks(const struct flow_list *list, uint32_t n, struct pattern_why *why)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct end_points *flow = &list->flows[i];
        uint32_t greatest = flow->src > flow->dst ? flow->src : flow->dst;

        if (greatest >= n)
            return pattern_refuse(why, "list: there is no rank %u among %u", greatest, n);
        if (flow->src == flow->dst)
            return pattern_refuse(why, "list: a flow from rank %u to itself", flow->src);
    }
    return 0;
}

static int refuse_twins(const struct flow_list *list, struct pattern_why *why)
{
    struct end_points *sorted;
    int result = 0;

    assert(list->count > 0); /* make refuses an empty list */
    sorted = calloc(list->count, sizeof(*sorted));

    if (sorted == NULL)
        return -ENOMEM;
    memcpy(sorted, list->flows, list->count * sizeof(*sorted));
    qsort(sorted, list->count, sizeof(*sorted), compare);
    for (size_t i = 1; i < list->count && result == 0; i++)
        if (compare(&sorted[i - 1], &sorted[i]) == 0)
            result = pattern_refuse(why, "list: the flow from rank %u to rank %u is named twice",
                                    sorted[i].src, sorted[i].dst);
    free(sorted);
    return result;
}

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    const struct pattern_ranks *ranks = &request->list;
    struct flow_list *list = NULL;
    int result;

    if (ranks->count == 0)
        return pattern_refuse(why, "partial_mesh needs a list of at least one flow");
    if (ranks->count % 2 != 0)
        return pattern_refuse(why, "list: %zu ranks do not make flows", ranks->count);
    list = malloc(sizeof(*list) + ranks->count / 2 * sizeof(*list->flows));
    if (list == NULL)
        return -ENOMEM;
    list->count = ranks->count / 2;
    for (size_t i = 0; i < list->count; i++)
        list->flows[i] = (struct end_points){ranks->rank[2 * i], ranks->rank[2 * i + 1]};
    result = refuse_ranks(list, plan->n, why);
    if (result == 0)
        result = refuse_twins(list, why);
    if (result < 0) {
        free(list);
        return result;
    }
    plan->phases = 1;
    plan->state = list;
    return 0;
}

static int phase_name(const struct pattern_plan *plan, uint32_t phase, char *name, size_t size)
{
    (void)plan;
    (void)phase;
    return snprintf(name, size, "partial mesh");
}

static void flows(const struct pattern_plan *plan, uint32_t phase, struct pattern_flow_list *found)
{
    const struct flow_list *list = plan->state;

    (void)phase;
    for (size_t i = 0; i < list->count; i++) {
        const struct end_points *flow = &list->flows[i];

        if (found->side == PATTERN_SENDS && flow->src == found->rank)
            pattern_add(found, flow->dst, PATTERN_GENERATE);
        if (found->side == PATTERN_RECEIVES && flow->dst == found->rank)
            pattern_add(found, flow->src, PATTERN_GENERATE);
    }
}

const struct pattern_kind pattern_partial_mesh = {
    .knows = PATTERN_PARAM_LIST,
    .make = make,
    .phase_name = phase_name,
    .flows = flows,
};
