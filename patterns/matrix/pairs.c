/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pairs: partners send to each other, full duplex, all pairs at once (Rauch 2005, 4.2); or one way,
 * from the first of a pair to the second. The kinds of partners differ only in the pair to which a
 * rank belongs, which is computed once per plan. Neighbours are pairs at a shift of 1, halves at
 * half of the ranks.
 */
#include "kind.h"
#include "permutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* Stream of random numbers for random pairs, which differs from the rings' streams of the same
 * seed. */
#define RANDOM_PAIRS_STREAM (UINT64_C(1) << 32)

/* Place of a rank in the pairs: the number of its pair, its partner (NOBODY: the rank idles), and
 * whether it is the first of the pair. */
struct seat {
    uint32_t pair;
    uint32_t partner;
    bool first;
};

enum { NEIGHBOURS, HALVES, SHIFT, INSIDE, ACROSS, RANDOM, LIST };

/* Parameter that each kind of partners requires. */
static const unsigned needs[LIST + 1] = {
    [SHIFT] = PATTERN_PARAM_SHIFT,
    [INSIDE] = PATTERN_PARAM_GROUPS,
    [ACROSS] = PATTERN_PARAM_GROUPS,
    [LIST] = PATTERN_PARAM_LIST,
};

static const char *const words[] = {
    [NEIGHBOURS] = "neighbours", [HALVES] = "halves", [SHIFT] = "shift", [INSIDE] = "inside",
    [ACROSS] = "across",         [RANDOM] = "random", [LIST] = "list",   NULL,
};

/* --- invalid requests ----------------------------------------------------------------------- */

static bool divides(uint32_t n, uint32_t shift)
{
    return n % 2 == 0 && n / 2 % shift == 0;
}

static int check_shift(const struct pattern_request *request, struct pattern_why *why)
{
    uint32_t n = request->n, nearest;

    if (request->shift == 0)
        return pattern_refuse(why, "partners shift needs a shift of at least 1");
    if (n % 2 != 0)
        return pattern_refuse(why,
                              "shift %u is invalid for %u ranks: twice the shift must divide the "
                              "number of ranks, which is odd",
                              request->shift, n);
    if (divides(n, request->shift))
        return 0;
    nearest = request->shift < n / 2 ? request->shift : n / 2;
    while (!divides(n, nearest))
        nearest--;
    return pattern_refuse(why,
                          "shift %u is invalid for %u ranks: twice the shift must divide the "
                          "number of ranks (the next lower valid shift is %u)",
                          request->shift, n, nearest);
}

static int check_list(const struct pattern_request *request, struct pattern_why *why)
{
    const struct pattern_ranks *list = &request->list;

    if (list->count == 0)
        return pattern_refuse(why, "partners list needs a list of at least one pair");
    if (list->count % 2 != 0)
        return pattern_refuse(
            why, "list: %zu ranks: it must have an even number, two ranks for each pair",
            list->count);
    for (size_t i = 0; i < list->count; i += 2)
        if (list->rank[i] == list->rank[i + 1])
            return pattern_refuse(why, "list: rank %u is paired with itself", list->rank[i]);
    return pattern_check_ranks("list", list, 1, request->n, why);
}

static int check_way(unsigned way, const struct pattern_request *request, struct pattern_why *why)
{
    size_t groups = request->group_count;

    if (way == SHIFT)
        return check_shift(request, why);
    if (way == LIST)
        return check_list(request, why);
    if (way == INSIDE && groups == 0)
        return pattern_refuse(why, "partners inside needs groups");
    if (way == ACROSS && groups < 2)
        return pattern_refuse(why, "partners across needs at least 2 groups, not %zu", groups);
    return pattern_check_ranks("groups", request->groups, request->group_count, request->n, why);
}

/* --- seats ---------------------------------------------------------------------------------- */

static void sit(struct seat *seats, uint32_t *pair, uint32_t a, uint32_t b)
{
    seats[a] = (struct seat){.pair = *pair, .partner = b, .first = true};
    seats[b] = (struct seat){.pair = (*pair)++, .partner = a};
}

/* Make the pairs of all ranks: of ranks at a shift, of adjacent ranks in a random order, of
 * successive ranks in a list or group, or of ranks with equal places in two successive groups.
 * Return the number of pairs. */
static uint32_t fill(unsigned way, const struct pattern_request *request, struct seat *seats)
{
    const struct pattern_ranks *lists = way == LIST ? &request->list : request->groups;
    uint32_t n = request->n, pair = 0;
    size_t count = way == LIST ? 1 : way == INSIDE || way == ACROSS ? request->group_count : 0;
    uint32_t shift = way == SHIFT ? request->shift : way == HALVES ? n / 2 : way == NEIGHBOURS;
    struct permutation order = permutation_draw(n, request->seed, RANDOM_PAIRS_STREAM);

    for (uint32_t rank = 0; rank < n; rank++)
        seats[rank].partner = NOBODY;
    for (uint32_t rank = 0; shift > 0 && rank + shift < n; rank++)
        if (rank % (2 * shift) < shift)
            sit(seats, &pair, rank, rank + shift);
    for (uint32_t place = 1; way == RANDOM && place < n; place += 2)
        sit(seats, &pair, permutation_at(&order, place - 1), permutation_at(&order, place));
    for (size_t i = 0; i < count && way != ACROSS; i++)
        for (size_t j = 1; j < lists[i].count; j += 2)
            sit(seats, &pair, lists[i].rank[j - 1], lists[i].rank[j]);
    for (size_t i = 1; i < count && way == ACROSS; i += 2)
        for (size_t j = 0; j < lists[i - 1].count && j < lists[i].count; j++)
            sit(seats, &pair, lists[i - 1].rank[j], lists[i].rank[j]);
    return pair;
}

/* --- the pattern ---------------------------------------------------------------------------- */

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int way = pattern_choose("partners", words, request->partners, why);
    int forward = pattern_choose("directions", (const char *const[]){"both", "forward", NULL},
                                 request->directions, why);
    uint32_t possible;
    char who[32];
    int result;

    if (way < 0 || forward < 0)
        return -EINVAL;
    snprintf(who, sizeof(who), "partners %s", words[way]);
    result = pattern_check_params(
        who, request,
        (plan->kind->knows &
         ~(unsigned)(PATTERN_PARAM_SHIFT | PATTERN_PARAM_GROUPS | PATTERN_PARAM_LIST)) |
            PATTERN_PARAM_LOCAL | PATTERN_PARAM_BYTES | needs[way],
        why);
    if (result == 0 && needs[way] != 0)
        result = check_way((unsigned)way, request, why);
    if (result < 0)
        return result;
    plan->state = calloc(plan->n, sizeof(struct seat));
    if (plan->state == NULL)
        return -ENOMEM;
    possible = fill((unsigned)way, request, plan->state);
    if (possible == 0)
        return pattern_refuse(why, "%s needs a group of at least 2 ranks", who);
    if (request->count > possible)
        return pattern_refuse(why, "count %u is more than the %u pairs that %s makes here",
                              request->count, possible, who);
    plan->asked.count = request->count > 0 ? request->count : possible;
    plan->asked.forward = forward;
    if (way == SHIFT)
        snprintf(plan->label, sizeof(plan->label), "shift %u", request->shift);
    else
        snprintf(plan->label, sizeof(plan->label), "%s%s", words[way],
                 needs[way] == PATTERN_PARAM_GROUPS ? " groups" : "");
    return 0;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    struct seat seat = ((const struct seat *)plan->state)[list->rank];

    if (plan->asked.forward && seat.first != (list->side == PATTERN_SENDS))
        return;
    if (seat.partner != NOBODY && seat.pair < plan->asked.count)
        pattern_add(list, seat.partner);
}

const struct pattern_kind kind_pairs = {
    .knows = PATTERN_PARAM_PARTNERS | PATTERN_PARAM_SHIFT | PATTERN_PARAM_COUNT |
             PATTERN_PARAM_DIRECTIONS | PATTERN_PARAM_LIST | PATTERN_PARAM_GROUPS,
    .make = make,
    .flows = flows,
};
