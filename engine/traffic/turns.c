/* SPDX-License-Identifier: BSD-3-Clause */
#include "turns.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* A flow's frame, due at a time between 0 and 1 of one round. */
struct turn {
    double due;
    uint32_t flow;
};

static int compare(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;

    if (x->due != y->due)
        return x->due < y->due ? -1 : 1;
    return (x->flow > y->flow) - (x->flow < y->flow);
}

/* How many turns each flow has in one round: its share exactly where the table has the room. */
static uint64_t count_turns(uint64_t *turns, const struct lane_flow *flows, uint32_t count)
{
    uint64_t divisor = 0, sum = 0, scaled = 0;

    for (uint32_t i = 0; i < count; i++) {
        turns[i] = (uint64_t)llround(flows[i].share * PATTERN_WHOLE);
        divisor = common_divisor(turns[i], divisor);
    }
    for (uint32_t i = 0; i < count; i++)
        sum += turns[i] /= divisor;
    if (sum <= TURNS_MAX)
        return sum;
    for (uint32_t i = 0; i < count; i++) {
        turns[i] = (uint64_t)llround((double)turns[i] * TURNS_MAX / (double)sum);
        turns[i] += turns[i] == 0;
        scaled += turns[i];
    }
    return scaled;
}

int turns_make(struct turns *turns, const struct lane_flow *flows, uint32_t count)
{
    uint64_t *each = NULL, sum;
    struct turn *due = NULL;
    int rc = -ENOMEM;

    *turns = (struct turns){0};
    if (count == 0 || flows[0].share <= 0)
        return 0;
    each = calloc(count, sizeof *each);
    if (each == NULL)
        return rc;
    sum = count_turns(each, flows, count);
    due = calloc(sum, sizeof *due);
    turns->flow = calloc(sum, sizeof *turns->flow);
    if (due == NULL || turns->flow == NULL)
        goto cleanup;
    for (uint32_t i = 0; i < count; i++)
        for (uint64_t k = 0; k < each[i]; k++)
            due[turns->count++] = (struct turn){((double)k + 0.5) / (double)each[i], i};
    qsort(due, turns->count, sizeof *due, compare);
    for (uint32_t i = 0; i < turns->count; i++)
        turns->flow[i] = due[i].flow;
    rc = 0;
cleanup:
    if (rc < 0)
        turns_free(turns);
    free(due);
    free(each);
    return rc;
}

uint64_t turns_burst(const struct lane_request *request)
{
    double frames = (double)request->phase->burst.own_frames;
    double to = request->share_to > 0 ? request->share_to : 1;

    return (uint64_t)(llround(frames * to) - llround(frames * request->share_from));
}

void turns_free(struct turns *turns)
{
    free(turns->flow);
    *turns = (struct turns){0};
}
