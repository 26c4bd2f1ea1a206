/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pairs: partners send to each other, full duplex, all pairs at once (Rauch 2005, 4.2); or one way,
 * from the first of a pair to the second. The ways to find partners differ only in which pair a
 * rank belongs to: some compute it, those that read a list or groups look it up in an index made
 * once.
 */
#include "kind.h"
#include "permutation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOBODY UINT32_MAX

/* Apart from the rings' streams of the same seed. */
#define RANDOM_PAIRS_STREAM (UINT64_C(1) << 32)

/* Where a rank sits: the number of its pair, its partner (NOBODY: it idles), and whether it is the
 * first of the two. */
struct seat {
    uint32_t pair;
    uint32_t partner;
    bool first;
};

static const struct seat idle = {.partner = NOBODY};

struct pairs {
    const struct way *way;
    uint32_t n;
    uint32_t count; /* pairs in use; those numbered higher idle */
    uint32_t shift;
    bool both;                /* each sends to the other; false: the first to the second */
    struct permutation order; /* random */
    struct seat seats[];      /* list, inside, across: by rank; else none */
};

struct way {
    unsigned knows;
    int (*check)(const struct pattern_request *request, struct pattern_why *why);
    struct seat (*seat)(const struct pairs *pairs, uint32_t rank); /* NULL: it is looked up */
    /* Seats everybody in an index, which may be NULL. Returns the pairs. NULL: half of the ranks.
     */
    uint32_t (*fill)(struct pairs *pairs, const struct pattern_request *request);
};

/* --- computed ------------------------------------------------------------------------------- */

static struct seat neighbours_seat(const struct pairs *pairs, uint32_t rank)
{
    if ((rank ^ 1) >= pairs->n)
        return idle;
    return (struct seat){.pair = rank / 2, .partner = rank ^ 1, .first = rank % 2 == 0};
}

static struct seat halves_seat(const struct pairs *pairs, uint32_t rank)
{
    uint32_t half = pairs->n / 2;

    if (rank >= 2 * half)
        return idle;
    if (rank < half)
        return (struct seat){.pair = rank, .partner = rank + half, .first = true};
    return (struct seat){.pair = rank - half, .partner = rank - half};
}

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
                              "shift %u can't be made of %u ranks: twice the shift must divide "
                              "their number, which is odd",
                              request->shift, n);
    if (divides(n, request->shift))
        return 0;
    nearest = request->shift < n / 2 ? request->shift : n / 2;
    while (!divides(n, nearest))
        nearest--;
    return pattern_refuse(why,
                          "shift %u can't be made of %u ranks: twice the shift must divide their "
                          "number (the next lower that does is %u)",
                          request->shift, n, nearest);
}

static struct seat shift_seat(const struct pairs *pairs, uint32_t rank)
{
    uint32_t shift = pairs->shift;
    uint32_t block = rank / (2 * shift);
    bool low = rank % (2 * shift) < shift;

    return (struct seat){
        .pair = block * shift + rank % shift,
        .partner = low ? rank + shift : rank - shift,
        .first = low,
    };
}

static struct seat random_seat(const struct pairs *pairs, uint32_t rank)
{
    uint32_t position = permutation_position(&pairs->order, rank);

    if ((position ^ 1) >= pairs->n)
        return idle;
    return (struct seat){
        .pair = position / 2,
        .partner = permutation_at(&pairs->order, position ^ 1),
        .first = position % 2 == 0,
    };
}

/* --- looked up ------------------------------------------------------------------------------ */

static void sit(struct pairs *pairs, uint32_t pair, uint32_t a, uint32_t b)
{
    if (pairs == NULL)
        return;
    pairs->seats[a] = (struct seat){.pair = pair, .partner = b, .first = true};
    pairs->seats[b] = (struct seat){.pair = pair, .partner = a};
}

static int check_list(const struct pattern_request *request, struct pattern_why *why)
{
    const struct pattern_ranks *list = &request->list;

    if (list->count == 0)
        return pattern_refuse(why, "partners list needs a list of at least one pair");
    if (list->count % 2 != 0)
        return pattern_refuse(why, "list: %zu ranks do not make pairs", list->count);
    for (size_t i = 0; i < list->count; i += 2)
        if (list->rank[i] == list->rank[i + 1])
            return pattern_refuse(why, "list: rank %u is paired with itself", list->rank[i]);
    return pattern_check_ranks("list", list, 1, request->n, why);
}

static uint32_t list_fill(struct pairs *pairs, const struct pattern_request *request)
{
    const uint32_t *rank = request->list.rank;
    uint32_t count = (uint32_t)(request->list.count / 2);

    for (uint32_t pair = 0; pair < count; pair++, rank += 2)
        sit(pairs, pair, rank[0], rank[1]);
    return count;
}

static uint32_t inside_fill(struct pairs *pairs, const struct pattern_request *request)
{
    uint32_t pair = 0;

    for (size_t i = 0; i < request->group_count; i++)
        for (size_t j = 1; j < request->groups[i].count; j += 2)
            sit(pairs, pair++, request->groups[i].rank[j - 1], request->groups[i].rank[j]);
    return pair;
}

static int check_inside(const struct pattern_request *request, struct pattern_why *why)
{
    int result;

    if (request->group_count == 0)
        return pattern_refuse(why, "partners inside needs groups");
    result = pattern_check_groups(request, why);
    if (result == 0 && inside_fill(NULL, request) == 0)
        return pattern_refuse(why, "partners inside needs a group of at least 2 ranks");
    return result;
}

static uint32_t across_fill(struct pairs *pairs, const struct pattern_request *request)
{
    uint32_t pair = 0;

    for (size_t i = 1; i < request->group_count; i += 2) {
        const struct pattern_ranks *a = &request->groups[i - 1], *b = &request->groups[i];

        for (size_t j = 0; j < a->count && j < b->count; j++)
            sit(pairs, pair++, a->rank[j], b->rank[j]);
    }
    return pair;
}

static int check_across(const struct pattern_request *request, struct pattern_why *why)
{
    if (request->group_count < 2)
        return pattern_refuse(why, "partners across needs at least 2 groups, not %zu",
                              request->group_count);
    return pattern_check_groups(request, why);
}

/* --- the table ------------------------------------------------------------------------------ */

#define KNOWS                                                                                      \
    (PATTERN_PARAM_PARTNERS | PATTERN_PARAM_COUNT | PATTERN_PARAM_DIRECTIONS |                     \
     PATTERN_PARAM_LOCAL | PATTERN_PARAM_BYTES)

enum { NEIGHBOURS, HALVES, SHIFT, INSIDE, ACROSS, RANDOM, LIST };

static const char *const way_words[] = {
    [NEIGHBOURS] = "neighbours", [HALVES] = "halves", [SHIFT] = "shift", [INSIDE] = "inside",
    [ACROSS] = "across",         [RANDOM] = "random", [LIST] = "list",   NULL,
};

static const struct way ways[] = {
    [NEIGHBOURS] = {.seat = neighbours_seat},
    [HALVES] = {.seat = halves_seat},
    [SHIFT] = {.knows = PATTERN_PARAM_SHIFT, .check = check_shift, .seat = shift_seat},
    [INSIDE] = {.knows = PATTERN_PARAM_GROUPS, .check = check_inside, .fill = inside_fill},
    [ACROSS] = {.knows = PATTERN_PARAM_GROUPS, .check = check_across, .fill = across_fill},
    [RANDOM] = {.seat = random_seat},
    [LIST] = {.knows = PATTERN_PARAM_LIST, .check = check_list, .fill = list_fill},
};

static int make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int index = pattern_choose("partners", way_words, request->partners, why);
    int forward = pattern_either("directions", "both", "forward", request->directions, why);
    const struct way *way = NULL;
    struct pairs *pairs = NULL;
    uint32_t possible;
    char who[32];
    int result;

    if (index < 0 || forward < 0)
        return -EINVAL;
    way = &ways[index];
    snprintf(who, sizeof(who), "partners %s", way_words[index]);
    result = pattern_check_params(who, request, KNOWS | way->knows, why);
    if (result == 0 && way->check != NULL)
        result = way->check(request, why);
    if (result < 0)
        return result;
    possible = way->fill != NULL ? way->fill(NULL, request) : plan->n / 2;
    if (request->count > possible)
        return pattern_refuse(why, "count %u is more than the %u pairs that %s makes here",
                              request->count, possible, who);
    pairs = calloc(1, sizeof(*pairs) + (way->fill != NULL ? plan->n * sizeof(struct seat) : 0));
    if (pairs == NULL)
        return -ENOMEM;
    pairs->way = way;
    pairs->n = plan->n;
    pairs->count = request->count > 0 ? request->count : possible;
    pairs->shift = request->shift;
    pairs->both = !forward;
    pairs->order = permutation_draw(plan->n, plan->asked.seed, RANDOM_PAIRS_STREAM);
    if (way->fill != NULL) {
        for (uint32_t rank = 0; rank < plan->n; rank++)
            pairs->seats[rank] = idle;
        way->fill(pairs, request);
    }
    plan->state = pairs;
    if (index == SHIFT)
        snprintf(plan->label, sizeof(plan->label), "shift %u", request->shift);
    else
        snprintf(plan->label, sizeof(plan->label), "%s%s", way_words[index],
                 way->knows == PATTERN_PARAM_GROUPS ? " groups" : "");
    return 0;
}

static void flows(const struct pattern_plan *plan, struct pattern_flow_list *list)
{
    const struct pairs *pairs = plan->state;
    struct seat seat =
        pairs->way->seat != NULL ? pairs->way->seat(pairs, list->rank) : pairs->seats[list->rank];

    if (!pairs->both && seat.first != (list->side == PATTERN_SENDS))
        return;
    if (seat.partner != NOBODY && seat.pair < pairs->count)
        pattern_add(list, seat.partner, PATTERN_GENERATE);
}

const struct pattern_kind kind_pairs = {
    .knows = PATTERN_PARAM_PARTNERS | PATTERN_PARAM_SHIFT | PATTERN_PARAM_COUNT |
             PATTERN_PARAM_DIRECTIONS | PATTERN_PARAM_LIST | PATTERN_PARAM_GROUPS,
    .make = make,
    .flows = flows,
};
