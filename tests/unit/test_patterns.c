/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The algebra of the patterns: what a plan must be for every number of ranks, whatever the code
 * that makes it.
 */
#include "test_patterns_util.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

static const bool no = false;

#define EVERY_N_TO 65u
#define EVERY_N_TO_LONG 300u

static const uint32_t large_n[] = {100, 255, 256, 1000, 4096, 65535, 65536};
#define LARGE_N (sizeof(large_n) / sizeof(large_n[0]))

static const char *const phased_orders[] = {"shift", "pairwise", "xor"};
#define PHASED_ORDERS (sizeof(phased_orders) / sizeof(phased_orders[0]))

static const char *const computed_partners[] = {"neighbours", "halves", "random"};
#define COMPUTED_PARTNERS (sizeof(computed_partners) / sizeof(computed_partners[0]))

static uint32_t every_n_to(void)
{
    return long_run() ? EVERY_N_TO_LONG : EVERY_N_TO;
}

static bool is_power_of_two(uint32_t n)
{
    return (n & (n - 1)) == 0;
}

static bool order_exists(const char *order, uint32_t n)
{
    return strcmp(order, "xor") != 0 || is_power_of_two(n);
}

/* --- what holds for any phase of any pattern ------------------------------------------------ */

static bool same_flow(const struct pattern_flow *a, const struct pattern_flow *b)
{
    return a->src == b->src && a->dst == b->dst && a->role == b->role && a->share == b->share;
}

static size_t times_listed(const struct pattern_flow *flow, const struct pattern_flow *flows,
                           size_t count)
{
    size_t times = 0;

    for (size_t i = 0; i < count; i++)
        times += same_flow(flow, &flows[i]);
    return times;
}

/* Every flow that a rank lists on one side is listed once, by itself and by the other rank on the
 * other side, with the same role. */
static void check_views_of_rank(const struct pattern_plan *plan, uint32_t n, uint32_t phase,
                                uint32_t rank, enum pattern_side side)
{
    enum pattern_side other = side == PATTERN_SENDS ? PATTERN_RECEIVES : PATTERN_SENDS;
    struct pattern_flow *mine = calloc(n, sizeof(*mine));
    struct pattern_flow *theirs = calloc(n, sizeof(*theirs));
    size_t count = pattern_flows(plan, phase, rank, side, mine, n);

    assert_in_range(count, 0, n - 1);
    for (size_t i = 0; i < count; i++) {
        uint32_t peer = side == PATTERN_SENDS ? mine[i].dst : mine[i].src;

        assert_int_equal(side == PATTERN_SENDS ? mine[i].src : mine[i].dst, rank);
        assert_in_range(peer, 0, n - 1);
        assert_int_not_equal(peer, rank);
        assert_int_equal(times_listed(&mine[i], mine, count), 1);
        assert_int_equal(
            times_listed(&mine[i], theirs, pattern_flows(plan, phase, peer, other, theirs, n)), 1);
    }
    free(theirs);
    free(mine);
}

static void check_views(const struct pattern_request *request)
{
    struct pattern_plan *plan = plan_of(request);
    uint32_t phases = pattern_phases(plan);

    assert_true(phases > 0);
    for (uint32_t phase = 0; phase < phases; phase++)
        for (uint32_t rank = 0; rank < request->n; rank++) {
            check_views_of_rank(plan, request->n, phase, rank, PATTERN_SENDS);
            check_views_of_rank(plan, request->n, phase, rank, PATTERN_RECEIVES);
        }
    pattern_plan_free(plan);
}

static void senders_and_receivers_agree(void **state)
{
    for (uint32_t n = 2; n <= EVERY_N_TO; n++) {
        check_views(&(struct pattern_request){.name = "chain", .n = n});
        check_views(&(struct pattern_request){.name = "chain", .n = n, .forward = true});
        for (size_t i = 0; i < PHASED_ORDERS; i++)
            if (order_exists(phased_orders[i], n))
                check_views(
                    &(struct pattern_request){.name = "aapc", .n = n, .order = phased_orders[i]});
        if (n <= 33)
            check_views(&(struct pattern_request){.name = "aapc", .n = n, .order = "naive"});
        for (size_t i = 0; i < COMPUTED_PARTNERS; i++)
            check_views(&(struct pattern_request){
                .name = "pairs", .n = n, .partners = computed_partners[i], .seed = n});
        check_views(&(struct pattern_request){.name = "ring", .n = n, .count = 2, .seed = n});
        check_views(&(struct pattern_request){.name = "ring",
                                              .n = n,
                                              .natural = &no,
                                              .count = 2,
                                              .directions = "forward",
                                              .seed = n});
        check_views(&(struct pattern_request){
            .name = "random", .n = n, .count = 2, .degree = 1 + n % 16, .seed = n});
    }
}

/* --- chain ---------------------------------------------------------------------------------- */

static void check_chain(uint32_t n, bool forward)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "chain", .n = n, .forward = forward});
    struct pattern_flow flow;

    assert_int_equal(pattern_phases(plan), 1);
    assert_phase_name(plan, 0, "chain");
    for (uint32_t rank = 0; rank + 1 < n; rank++) {
        assert_int_equal(pattern_flows(plan, 0, rank, PATTERN_SENDS, &flow, 1), 1);
        assert_int_equal(flow.dst, rank + 1);
        assert_int_equal(flow.role, forward && rank > 0 ? PATTERN_FORWARD : PATTERN_GENERATE);
    }
    assert_int_equal(pattern_flows(plan, 0, n - 1, PATTERN_SENDS, &flow, 1), 0);
    assert_int_equal(pattern_flows(plan, 0, 0, PATTERN_RECEIVES, &flow, 1), 0);
    pattern_plan_free(plan);
}

static void chain_goes_from_each_to_the_next(void **state)
{
    for (uint32_t n = 2; n <= EVERY_N_TO; n++) {
        check_chain(n, false);
        check_chain(n, true);
    }
    check_chain(PATTERN_RANKS_MAX, true);
}

/* --- aapc ----------------------------------------------------------------------------------- */

static uint32_t expected_phases(const char *order, uint32_t n)
{
    if (strcmp(order, "naive") == 0)
        return 1;
    return strcmp(order, "pairwise") == 0 && n % 2 != 0 ? n : n - 1;
}

static struct pattern_plan *aapc_of(const char *order, uint32_t n)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "aapc", .n = n, .order = order});

    assert_int_equal(pattern_phases(plan), expected_phases(order, n));
    return plan;
}

/* No rank has two partners on a side (partner_of), receivers are the inverse of senders, and just
 * as many ranks idle as must. */
static void check_phase(const struct pattern_plan *plan, const char *order, uint32_t n,
                        uint32_t phase)
{
    bool pairwise = strcmp(order, "pairwise") == 0;
    uint32_t idlers = 0;

    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t to = partner_of(plan, phase, rank, PATTERN_SENDS);
        uint32_t from = partner_of(plan, phase, rank, PATTERN_RECEIVES);

        if (to == NOBODY) {
            assert_int_equal(from, NOBODY);
            idlers++;
            continue;
        }
        assert_in_range(to, 0, n - 1);
        assert_int_equal(partner_of(plan, phase, to, PATTERN_RECEIVES), rank);
        if (pairwise)
            assert_int_equal(from, to);
    }
    assert_int_equal(idlers, pairwise && n % 2 != 0 ? 1 : 0);
}

/* Over all phases the rank meets everybody else once on this side, never itself. */
static void check_rank(const struct pattern_plan *plan, uint32_t n, uint32_t rank,
                       enum pattern_side side)
{
    bool *met = calloc(n, sizeof(*met));
    uint32_t idle = 0;

    for (uint32_t phase = 0; phase < pattern_phases(plan); phase++) {
        uint32_t partner = partner_of(plan, phase, rank, side);

        if (partner == NOBODY) {
            idle++;
            continue;
        }
        assert_in_range(partner, 0, n - 1);
        assert_int_not_equal(partner, rank);
        assert_false(met[partner]);
        met[partner] = true;
    }
    assert_int_equal(pattern_phases(plan) - idle, n - 1);
    free(met);
}

static void check_whole_aapc(const char *order, uint32_t n)
{
    struct pattern_plan *plan = aapc_of(order, n);

    for (uint32_t phase = 0; phase < pattern_phases(plan); phase++)
        check_phase(plan, order, n, phase);
    for (uint32_t rank = 0; rank < n; rank++) {
        check_rank(plan, n, rank, PATTERN_SENDS);
        check_rank(plan, n, rank, PATTERN_RECEIVES);
    }
    pattern_plan_free(plan);
}

static void aapc_sends_every_pair_once(void **state)
{
    for (size_t i = 0; i < PHASED_ORDERS; i++)
        for (uint32_t n = 2; n <= every_n_to(); n++)
            if (order_exists(phased_orders[i], n))
                check_whole_aapc(phased_orders[i], n);
}

/* The first, middle and last phases or ranks stand for all where n x phases is too much. */
static void check_sampled_aapc(const char *order, uint32_t n)
{
    struct pattern_plan *plan = aapc_of(order, n);
    uint32_t last_phase = pattern_phases(plan) - 1;
    const uint32_t phases[] = {0, 1, last_phase / 2, last_phase / 3, last_phase};
    const uint32_t ranks[] = {0, 1, n / 2, n / 3, n - 2, n - 1};

    for (size_t i = 0; i < sizeof(phases) / sizeof(phases[0]); i++)
        check_phase(plan, order, n, phases[i]);
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        check_rank(plan, n, ranks[i], PATTERN_SENDS);
        check_rank(plan, n, ranks[i], PATTERN_RECEIVES);
    }
    pattern_plan_free(plan);
}

static void aapc_sends_every_pair_once_among_many_ranks(void **state)
{
    uint32_t whole_to = long_run() ? 4096 : 100;

    for (size_t i = 0; i < PHASED_ORDERS; i++)
        for (size_t j = 0; j < LARGE_N; j++) {
            if (!order_exists(phased_orders[i], large_n[j]))
                continue;
            if (large_n[j] <= whole_to)
                check_whole_aapc(phased_orders[i], large_n[j]);
            else
                check_sampled_aapc(phased_orders[i], large_n[j]);
        }
}

static void aapc_orders_are_the_ones_named(void **state)
{
    struct pattern_plan *shift = aapc_of("shift", 10), *xor = aapc_of("xor", 16);
    struct pattern_plan *pairwise = aapc_of("pairwise", 5), *by_default;

    assert_int_equal(partner_of(shift, 2, 8, PATTERN_SENDS), 1);
    assert_int_equal(partner_of(shift, 2, 1, PATTERN_RECEIVES), 8);
    assert_phase_name(shift, 2, "distance 3");
    assert_int_equal(partner_of(xor, 4, 9, PATTERN_SENDS), 12);
    assert_phase_name(xor, 4, "mask 5");
    assert_phase_name(pairwise, 1, "round 2");
    by_default = plan_of(&(struct pattern_request){.name = "aapc", .n = 10});
    assert_phase_name(by_default, 8, "distance 9");
    pattern_plan_free(by_default);
    pattern_plan_free(pairwise);
    pattern_plan_free(xor);
    pattern_plan_free(shift);
}

static void check_naive_rank(const struct pattern_plan *plan, uint32_t n, uint32_t rank)
{
    struct pattern_flow *flows = calloc(n, sizeof(*flows));

    assert_int_equal(pattern_flows(plan, 0, rank, PATTERN_SENDS, flows, n), n - 1);
    for (uint32_t i = 0; i + 1 < n; i++)
        assert_int_equal(flows[i].dst, (rank + 1 + i) % n);
    assert_int_equal(pattern_flows(plan, 0, rank, PATTERN_RECEIVES, flows, n), n - 1);
    for (uint32_t i = 0; i + 1 < n; i++)
        assert_int_equal(flows[i].src, (rank + n - 1 - i) % n);
    free(flows);
}

static void naive_aapc_sends_all_at_once_from_the_next_on(void **state)
{
    struct pattern_plan *plan;

    for (uint32_t n = 2; n <= EVERY_N_TO; n++) {
        plan = aapc_of("naive", n);
        assert_phase_name(plan, 0, "all at once");
        for (uint32_t rank = 0; rank < n; rank++)
            check_naive_rank(plan, n, rank);
        pattern_plan_free(plan);
    }
    plan = aapc_of("naive", PATTERN_RANKS_MAX);
    check_naive_rank(plan, PATTERN_RANKS_MAX, 40000);
    pattern_plan_free(plan);
}

/* --- ring ----------------------------------------------------------------------------------- */

static uint32_t successor_of(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    struct pattern_flow flows[2];

    assert_in_range(pattern_flows(plan, phase, rank, PATTERN_SENDS, flows, 2), 1, 2);
    return flows[0].dst;
}

/* Following the successors from rank 0 meets every rank once before it comes back. */
static void check_one_cycle(const struct pattern_plan *plan, uint32_t phase, uint32_t n)
{
    bool *met = calloc(n, sizeof(*met));
    uint32_t rank = 0;

    for (uint32_t step = 0; step < n; step++) {
        assert_false(met[rank]);
        met[rank] = true;
        rank = successor_of(plan, phase, rank);
        assert_in_range(rank, 0, n - 1);
    }
    assert_int_equal(rank, 0);
    free(met);
}

/* A rank receives from its predecessor first; with both directions each neighbour gets and sends
 * one flow, and two ranks are not counted twice. */
static void check_directions(const struct pattern_plan *plan, uint32_t phase, uint32_t n,
                             uint32_t rank, bool both)
{
    struct pattern_flow out[3], in[3];
    size_t expected = both && n > 2 ? 2 : 1;

    assert_int_equal(pattern_flows(plan, phase, rank, PATTERN_SENDS, out, 3), expected);
    assert_int_equal(pattern_flows(plan, phase, rank, PATTERN_RECEIVES, in, 3), expected);
    assert_int_equal(successor_of(plan, phase, in[0].src), rank);
    if (expected == 2) {
        assert_int_equal(out[1].dst, in[0].src);
        assert_int_equal(in[1].src, out[0].dst);
    }
}

static void check_rings(uint32_t n, uint32_t count, bool both)
{
    struct pattern_plan *plan = plan_of(&(struct pattern_request){
        .name = "ring",
        .n = n,
        .seed = UINT64_C(7) * n,
        .count = count,
        .directions = both ? NULL : "forward",
    });

    assert_int_equal(pattern_phases(plan), count + 1);
    assert_phase_name(plan, 0, "natural");
    for (uint32_t rank = 0; rank < n; rank++)
        assert_int_equal(successor_of(plan, 0, rank), (rank + 1) % n);
    for (uint32_t phase = 0; phase <= count; phase++) {
        check_one_cycle(plan, phase, n);
        for (uint32_t rank = 0; rank<n; rank += n> 1000 ? 101 : 1)
            check_directions(plan, phase, n, rank, both);
    }
    pattern_plan_free(plan);
}

/* Natural successors of random rings, in the mean over many. Of a uniform draw there is one, plus
 * one in n - 1. HPCC's linear probing puts a rank behind the one before it wherever it meets that:
 * 4.97 of 64 ranks, reckoned by a program of some lines. */
static double natural_successors(uint32_t n, const char *draw)
{
    struct pattern_plan *plan = plan_of(&(struct pattern_request){
        .name = "ring", .n = n, .seed = 5, .natural = &no, .count = 4000, .draw = draw});
    uint64_t natural = 0;

    for (uint32_t phase = 0; phase < 4000; phase++)
        for (uint32_t rank = 0; rank < n; rank++)
            natural += successor_of(plan, phase, rank) == (rank + 1) % n;
    pattern_plan_free(plan);
    return (double)natural / 4000;
}

static void hpcc_draws_favour_the_natural_order(void **state)
{
    double drawn = natural_successors(64, "hpcc"), uniform = natural_successors(64, "uniform");

    assert_true(drawn > 4.85 && drawn < 5.1);
    assert_true(uniform > 0.95 && uniform < 1.08);
    assert_true(natural_successors(64, NULL) == uniform);
    drawn = natural_successors(8, "hpcc");
    assert_true(drawn > 2.3 && drawn < 2.5);
}

static void rings_of_hpcc_are_one_cycle(void **state)
{
    for (uint32_t n = 2; n <= 40; n++) {
        struct pattern_plan *plan = plan_of(&(struct pattern_request){
            .name = "ring", .n = n, .seed = n, .count = 3, .draw = "hpcc"});

        for (uint32_t phase = 0; phase <= 3; phase++) {
            check_one_cycle(plan, phase, n);
            for (uint32_t rank = 0; rank < n; rank++)
                check_directions(plan, phase, n, rank, true);
        }
        pattern_plan_free(plan);
    }
}

static void rings_are_one_cycle(void **state)
{
    for (uint32_t n = 2; n <= every_n_to(); n++) {
        check_rings(n, 4, true);
        check_rings(n, 4, false);
    }
    for (size_t i = 0; i < LARGE_N; i++)
        check_rings(large_n[i], long_run() ? 10 : 1, true);
}

static struct pattern_plan *random_rings(uint32_t n, uint64_t seed)
{
    return plan_of(&(struct pattern_request){
        .name = "ring", .n = n, .seed = seed, .natural = &no, .count = 10});
}

/* Two random rings share a link from a given rank with probability 1 / (n - 1): one link in all. */
static uint32_t shared_links(const struct pattern_plan *a, uint32_t a_phase,
                             const struct pattern_plan *b, uint32_t b_phase, uint32_t n)
{
    uint32_t shared = 0;

    for (uint32_t rank = 0; rank < n; rank++)
        shared += successor_of(a, a_phase, rank) == successor_of(b, b_phase, rank);
    return shared;
}

static void rings_differ_by_number_and_seed(void **state)
{
    const uint32_t n = 1000, chance = 8; /* Poisson of mean 1: beyond 8 once in 900,000 */
    struct pattern_plan *plan = random_rings(n, 1), *again = random_rings(n, 1);
    struct pattern_plan *other = random_rings(n, 2);

    assert_int_equal(pattern_phases(plan), 10);
    assert_phase_name(plan, 0, "random 1");
    assert_phase_name(plan, 9, "random 10");
    for (uint32_t phase = 0; phase < 10; phase++) {
        assert_int_equal(shared_links(plan, phase, again, phase, n), n);
        assert_in_range(shared_links(plan, phase, other, phase, n), 0, chance);
        for (uint32_t earlier = 0; earlier < phase; earlier++)
            assert_in_range(shared_links(plan, earlier, plan, phase, n), 0, chance);
    }
    pattern_plan_free(other);
    pattern_plan_free(again);
    pattern_plan_free(plan);
}

static void natural_ring_does_not_change_the_random_ones(void **state)
{
    struct pattern_request request = {
        .name = "ring", .n = 50, .seed = 3, .natural = &no, .count = 2};
    struct pattern_plan *without = plan_of(&request), *with;

    request.natural = NULL;
    with = plan_of(&request);
    assert_phase_name(with, 1, "random 1");
    assert_int_equal(shared_links(without, 0, with, 1, 50), 50);
    assert_int_equal(shared_links(without, 1, with, 2, 50), 50);
    pattern_plan_free(with);
    pattern_plan_free(without);
}

/* --- pairs ---------------------------------------------------------------------------------- */

/* Partners are partners both ways; returns how many ranks have one. */
static uint32_t count_paired(const struct pattern_plan *plan, uint32_t n)
{
    uint32_t paired = 0;

    assert_int_equal(pattern_phases(plan), 1);
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t partner = partner_of(plan, 0, rank, PATTERN_SENDS);

        assert_int_equal(partner_of(plan, 0, rank, PATTERN_RECEIVES), partner);
        if (partner == NOBODY)
            continue;
        assert_in_range(partner, 0, n - 1);
        assert_int_not_equal(partner, rank);
        assert_int_equal(partner_of(plan, 0, partner, PATTERN_SENDS), rank);
        paired++;
    }
    return paired;
}

static void check_pairs(const struct pattern_request *request, uint32_t pairs)
{
    struct pattern_plan *plan = plan_of(request);

    assert_int_equal(count_paired(plan, request->n), 2 * pairs);
    pattern_plan_free(plan);
}

static void pairs_are_maximum_matchings(void **state)
{
    for (size_t i = 0; i < COMPUTED_PARTNERS; i++) {
        struct pattern_request request = {.name = "pairs", .partners = computed_partners[i]};

        for (request.n = 2; request.n <= every_n_to(); request.n++)
            for (request.count = 0; request.count <= request.n / 2; request.count++)
                check_pairs(&request, request.count > 0 ? request.count : request.n / 2);
        request.count = 0;
        for (size_t j = 0; j < LARGE_N; j++) {
            request.n = large_n[j];
            check_pairs(&request, request.n / 2);
        }
    }
}

static void pairs_at_a_shift(void **state)
{
    char name[32];

    for (uint32_t n = 2; n <= every_n_to(); n += 2)
        for (uint32_t shift = 1; shift <= n / 2; shift++) {
            struct pattern_plan *plan;

            if (n % (2 * shift) != 0)
                continue;
            plan = plan_of(&(struct pattern_request){
                .name = "pairs", .n = n, .partners = "shift", .shift = shift});
            assert_int_equal(count_paired(plan, n), n);
            for (uint32_t rank = 0; rank < n; rank++)
                assert_int_equal(partner_of(plan, 0, rank, PATTERN_SENDS),
                                 rank / shift % 2 == 0 ? rank + shift : rank - shift);
            snprintf(name, sizeof(name), "shift %" PRIu32, shift);
            assert_phase_name(plan, 0, name);
            pattern_plan_free(plan);
        }
}

struct partners_case {
    struct pattern_request request;
    const char *phase_name;
    uint32_t partners[9]; /* by rank */
};

static const uint32_t even_ranks[] = {0, 2, 4, 6}, odd_ranks[] = {7, 5, 1}, rank_3[] = {3};
static const struct pattern_ranks parity[] = {{even_ranks, 4}, {odd_ranks, 3}, {rank_3, 1}};
static const uint32_t listed[] = {6, 1, 0, 5, 2, 3};

#define PAIRS(...)                                                                                 \
    {                                                                                              \
        .name = "pairs", .n = 8, __VA_ARGS__                                                       \
    }
#define NA NOBODY /* the rank idles */

static const struct partners_case partners_cases[] = {
    {{.name = "pairs", .n = 7}, "neighbours", {1, 0, 3, 2, 5, 4, NA}},
    {PAIRS(.partners = "neighbours", .count = 3), "neighbours", {1, 0, 3, 2, 5, 4, NA, NA}},
    {{.name = "pairs", .n = 7, .partners = "halves"}, "halves", {3, 4, 5, 0, 1, 2, NA}},
    {PAIRS(.partners = "halves", .count = 1), "halves", {4, NA, NA, NA, 0, NA, NA, NA}},
    {PAIRS(.partners = "shift", .shift = 2, .count = 3), "shift 2", {2, 3, 0, 1, 6, NA, 4, NA}},
    {PAIRS(.partners = "inside", .groups = parity, .group_count = 3),
     "inside groups",
     {2, NA, 0, NA, 6, 7, 4, 5}},
    {PAIRS(.partners = "inside", .groups = parity, .group_count = 2, .count = 2),
     "inside groups",
     {2, NA, 0, NA, 6, NA, 4, NA}},
    {PAIRS(.partners = "across", .groups = parity, .group_count = 3),
     "across groups",
     {7, 4, 5, NA, 1, 2, NA, 0}},
    {PAIRS(.partners = "across", .groups = parity, .group_count = 2, .count = 1),
     "across groups",
     {7, NA, NA, NA, NA, NA, NA, 0}},
    {PAIRS(.partners = "list", .list = {listed, 6}), "list", {5, 6, 3, 2, NA, 0, 1, NA}},
    {PAIRS(.partners = "list", .list = {listed, 6}, .count = 2),
     "list",
     {5, 6, NA, NA, NA, 0, 1, NA}},
    /* Pinned, so that a seed means the same pairs everywhere (as golden_rings). */
    {PAIRS(.partners = "random", .seed = 1), "random", {7, 2, 1, 5, 6, 3, 4, 0}},
    {{.name = "pairs", .n = 9, .partners = "random", .seed = 2005},
     "random",
     {7, 4, NA, 5, 1, 3, 8, 0, 6}},
};

static void pairs_are_the_ones_asked_for(void **state)
{
    for (size_t i = 0; i < sizeof(partners_cases) / sizeof(partners_cases[0]); i++) {
        const struct partners_case *expected = &partners_cases[i];
        struct pattern_plan *plan = plan_of(&expected->request);

        assert_phase_name(plan, 0, expected->phase_name);
        for (uint32_t rank = 0; rank < expected->request.n; rank++)
            assert_int_equal(partner_of(plan, 0, rank, PATTERN_SENDS), expected->partners[rank]);
        count_paired(plan, expected->request.n);
        pattern_plan_free(plan);
    }
}

/* Consecutive pairs of groups, g0-g1 and g2-g3; the fifth is left out. */
static void pairs_across_many_groups(void **state)
{
    static const uint32_t rank[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const struct pattern_ranks groups[] = {
        {rank, 1}, {rank + 1, 2}, {rank + 3, 3}, {rank + 6, 2}, {rank + 8, 2}};
    struct pattern_plan *plan = plan_of(&(struct pattern_request){
        .name = "pairs", .n = 10, .partners = "across", .groups = groups, .group_count = 5});
    static const uint32_t expected[] = {1, 0, NA, 6, 7, NA, 3, 4, NA, NA};

    for (uint32_t i = 0; i < 10; i++)
        assert_int_equal(partner_of(plan, 0, i, PATTERN_SENDS), expected[i]);
    pattern_plan_free(plan);
}

/* The paper's Table 1: 7, 8, 9 and 12 pairs across two modules of 12 nodes. */
static void pairs_across_two_modules(void **state)
{
    static const uint32_t counts[] = {7, 8, 9, 12};
    uint32_t rank[24];
    const struct pattern_ranks modules[] = {{rank, 12}, {rank + 12, 12}};

    for (uint32_t i = 0; i < 24; i++)
        rank[i] = i;
    for (size_t i = 0; i < 4; i++) {
        struct pattern_plan *plan = plan_of(&(struct pattern_request){.name = "pairs",
                                                                      .n = 24,
                                                                      .partners = "across",
                                                                      .groups = modules,
                                                                      .group_count = 2,
                                                                      .count = counts[i]});

        assert_int_equal(count_paired(plan, 24), 2 * counts[i]);
        for (uint32_t j = 0; j < counts[i]; j++)
            assert_int_equal(partner_of(plan, 0, j, PATTERN_SENDS), 12 + j);
        pattern_plan_free(plan);
    }
}

static void plan_copies_what_it_was_given(void **state)
{
    uint32_t pairs[] = {0, 3, 1, 2};
    struct pattern_plan *plan = plan_of(
        &(struct pattern_request){.name = "pairs", .n = 4, .partners = "list", .list = {pairs, 4}});

    memset(pairs, 0xff, sizeof(pairs));
    assert_int_equal(partner_of(plan, 0, 0, PATTERN_SENDS), 3);
    assert_int_equal(partner_of(plan, 0, 2, PATTERN_SENDS), 1);
    pattern_plan_free(plan);
}

static void random_pairs_follow_the_seed(void **state)
{
    const uint32_t n = 1000;
    uint32_t same = 0;
    struct pattern_request request = {.name = "pairs", .n = n, .partners = "random", .seed = 1};
    struct pattern_plan *plan = plan_of(&request), *again = plan_of(&request), *other;

    request.seed = 2;
    other = plan_of(&request);
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t partner = partner_of(plan, 0, rank, PATTERN_SENDS);

        assert_int_equal(partner_of(again, 0, rank, PATTERN_SENDS), partner);
        same += partner_of(other, 0, rank, PATTERN_SENDS) == partner;
    }
    assert_in_range(same, 0, 16); /* one rank in 999 by chance, and its partner with it */
    pattern_plan_free(other);
    pattern_plan_free(again);
    pattern_plan_free(plan);
}

/* --- the same on every machine -------------------------------------------------------------- */

struct golden_ring {
    uint32_t n;
    uint64_t seed;
    uint32_t phase;
    uint32_t cycle[16]; /* the successors from rank 0 on */
};

/* Computed by an independent program from the algorithm's description (permutation.c). */
static const struct golden_ring golden_rings[] = {
    {.n = 5, .seed = UINT64_C(0), .phase = 0, .cycle = {3, 4, 2, 1, 0}},
    {.n = 8, .seed = UINT64_C(1), .phase = 0, .cycle = {2, 6, 7, 1, 5, 4, 3, 0}},
    {.n = 8, .seed = UINT64_C(1), .phase = 1, .cycle = {6, 2, 3, 5, 1, 7, 4, 0}},
    {.n = 24,
     .seed = UINT64_C(2005),
     .phase = 4,
     .cycle = {2, 23, 17, 6, 10, 18, 1, 22, 15, 9, 5, 3, 19, 11, 20, 7}},
    {.n = 1000,
     .seed = UINT64_C(1),
     .phase = 0,
     .cycle = {869, 226, 304, 893, 326, 427, 494, 38, 985, 22, 502, 380, 183, 960, 40, 663}},
    {.n = 65536,
     .seed = UINT64_C(0xfedcba9876543210),
     .phase = 9,
     .cycle = {10630, 63979, 37931, 59339, 20237, 34162, 34276, 52621, 3575, 5077, 29861, 38612,
               58412, 29515, 60479, 45308}},
};

static void random_rings_are_pinned(void **state)
{
    for (size_t i = 0; i < sizeof(golden_rings) / sizeof(golden_rings[0]); i++) {
        const struct golden_ring *golden = &golden_rings[i];
        struct pattern_plan *plan = random_rings(golden->n, golden->seed);
        uint32_t rank = 0;

        for (uint32_t step = 0; step < golden->n && step < 16; step++) {
            rank = successor_of(plan, golden->phase, rank);
            assert_int_equal(rank, golden->cycle[step]);
        }
        pattern_plan_free(plan);
    }
}

/* --- room and memory ------------------------------------------------------------------------ */

static void room_limits_what_is_written(void **state)
{
    struct pattern_plan *plan = aapc_of("naive", 10);
    struct pattern_flow flows[4] = {[3] = {.src = 77, .dst = 77}};

    assert_int_equal(pattern_flows(plan, 0, 4, PATTERN_SENDS, flows, 3), 9);
    assert_int_equal(flows[2].dst, 7);
    assert_int_equal(flows[3].src, 77);
    assert_int_equal(pattern_flows(plan, 0, 4, PATTERN_RECEIVES, NULL, 0), 9);
    pattern_plan_free(plan);
}

static void long_names_are_cut(void **state)
{
    struct pattern_plan *plan = aapc_of("shift", 200);
    char name[5] = "";

    assert_int_equal(pattern_phase_name(plan, 99, name, sizeof(name)), strlen("distance 100"));
    assert_string_equal(name, "dist");
    pattern_plan_free(plan);
}

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* mallinfo2 sees nothing under a sanitizer's allocator. */
static void skip_without_mallinfo(void)
{
    size_t before = bytes_in_use();
    void *volatile block = malloc(1 << 18);
    bool counted = bytes_in_use() >= before + (1 << 18);

    free(block);
    if (!counted)
        skip();
}

static const struct pattern_request small_requests[] = {
    {.name = "chain"},
    {.name = "aapc", .order = "shift"},
    {.name = "aapc", .order = "pairwise"},
    {.name = "aapc", .order = "xor"},
    {.name = "aapc", .order = "naive"},
    {.name = "ring", .count = 1000},
    {.name = "pairs", .partners = "random"},
    {.name = "pairs", .partners = "halves"},
};

static void plans_of_many_ranks_are_small(void **state)
{
    skip_without_mallinfo();
    for (size_t i = 0; i < sizeof(small_requests) / sizeof(small_requests[0]); i++) {
        struct pattern_request request = small_requests[i];
        size_t before = bytes_in_use();
        struct pattern_plan *plan;
        struct pattern_flow flows[2];

        request.n = PATTERN_RANKS_MAX;
        plan = plan_of(&request);
        pattern_flows(plan, pattern_phases(plan) - 1, 12345, PATTERN_SENDS, flows, 2);
        assert_in_range(bytes_in_use() - before, 1, 1024);
        pattern_plan_free(plan);
        assert_int_equal(bytes_in_use(), before);
    }
}

/* --- random --------------------------------------------------------------------------------- */

/* Flows of all phases by destination; how many in all. */
static size_t count_drawn(uint32_t n, uint32_t degree, uint32_t phases, size_t by_destination[])
{
    struct pattern_plan *plan = plan_of(&(struct pattern_request){
        .name = "random", .n = n, .count = phases, .degree = degree, .seed = 17});
    struct pattern_flow flows[16];
    size_t all = 0;

    assert_int_equal(pattern_phases(plan), phases);
    for (uint32_t phase = 0; phase < phases; phase++) {
        size_t before = all;

        for (uint32_t rank = 0; rank < n; rank++) {
            size_t count = pattern_flows(plan, phase, rank, PATTERN_SENDS, flows, 16);

            assert_in_range(count, 0, degree);
            for (size_t i = 0; i < count; i++)
                by_destination[flows[i].dst]++;
            all += count;
        }
        assert_true(all > before);
    }
    pattern_plan_free(plan);
    return all;
}

/* Half of the draws count, each other rank being as likely: over 30,000 draws the sum has a
 * standard deviation of 87, and a rank's share of 500 one of 22. */
static void random_patterns_draw_half_of_the_ranks_evenly(void **state)
{
    size_t by_destination[30] = {0};
    size_t all = count_drawn(30, 1, 1000, by_destination);

    assert_in_range(all, 15000 + 500 - 400, 15000 + 500 + 400); /* one a phase always sends */
    for (uint32_t rank = 0; rank < 30; rank++)
        assert_in_range(by_destination[rank], all / 30 - 110, all / 30 + 110);
}

/* Of three draws some are of one partner, which counts once. */
static void random_patterns_of_a_higher_degree_have_more_flows(void **state)
{
    size_t by_destination[30] = {0};
    size_t all = count_drawn(30, 3, 1000, by_destination);

    assert_in_range(all, 3 * 15000 - 1500, 3 * 15000 + 500);
}

/* --- the matrices of RFC 2889 and RFC 8239 -------------------------------------------------- */

/* The destinations of a rank in the order in which it sends to them, as a text: "2 3 1". */
static const char *sends_to(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    static char text[128];
    struct pattern_flow flows[16];
    size_t count = pattern_flows(plan, phase, rank, PATTERN_SENDS, flows, 16), used = 0;

    assert_in_range(count, 0, 16);
    text[0] = '\0';
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu32, i > 0 ? " " : "",
                                 flows[i].dst);
    return text;
}

struct matrix_case {
    struct pattern_request request;
    uint32_t phases;
    uint32_t phase;
    const char *name;
    const char *to[9]; /* by rank */
};

static const uint32_t first_device[] = {4, 0, 2}, second_device[] = {1, 3};
static const struct pattern_ranks devices[] = {{first_device, 3}, {second_device, 2}};

static const struct matrix_case matrix_cases[] = {
    /* RFC 2889, the tables of 5.1.3 and 5.4.3, whose ports are numbered from 1. */
    {{.name = "full_mesh", .n = 6},
     1,
     0,
     "all at once",
     {"1 2 3 4 5", "2 3 4 5 0", "3 4 5 0 1", "4 5 0 1 2", "5 0 1 2 3", "0 1 2 3 4"}},
    {{.name = "partial_mesh", .n = 8},
     1,
     0,
     "4 to 4",
     {"4 5 6 7", "5 6 7 4", "6 7 4 5", "7 4 5 6", "", "", "", ""}},
    {{.name = "partial_mesh", .n = 5}, 1, 0, "2 to 2", {"2 3", "3 2", "", "", ""}},
    /* 5.3: two devices, and all traffic between them. */
    {{.name = "partial_mesh", .n = 6, .groups = devices, .group_count = 2, .directions = "both"},
     1,
     0,
     "3 to 2",
     {"3 1", "4 0 2", "1 3", "0 2 4", "1 3", ""}},
    /* 5.2, and RFC 8239, 3.2: many to one, and the next port in the next iteration. */
    {{.name = "incast", .n = 4}, 1, 0, "3 to 1", {"3", "3", "3", ""}},
    {{.name = "incast", .n = 4, .directions = "both"}, 1, 0, "3 to 1", {"3", "3", "3", "0 1 2"}},
    {{.name = "incast", .n = 4, .rotate = true}, 4, 0, "3 to 1, moved by 0", {"3", "3", "3", ""}},
    {{.name = "incast", .n = 4, .rotate = true}, 4, 1, "3 to 1, moved by 1", {"", "0", "0", "0"}},
    {{.name = "incast", .n = 4, .rotate = true}, 4, 3, "3 to 1, moved by 3", {"2", "2", "", "2"}},
    {{.name = "incast", .n = 5, .receivers = 2}, 1, 0, "3 to 2", {"3 4", "4 3", "3 4", "", ""}},
    {{.name = "fanout", .n = 4}, 1, 0, "1 to 3", {"1 2 3", "", "", ""}},
    {{.name = "fanout", .n = 4, .senders = 3}, 1, 0, "3 to 1", {"3", "3", "3", ""}},
    /* RFC 8239, 5.2: two groups of nine ports; the last iteration begins with the last port. */
    {{.name = "head_of_line", .n = 9}, 1, 0, "2 x 4", {"2 3", "3", "", "", "6 7", "7", "", "", ""}},
    {{.name = "head_of_line", .n = 9, .rotate = true},
     9,
     1,
     "2 x 4, moved by 1",
     {"", "3 4", "4", "", "", "7 8", "8", "", ""}},
    {{.name = "head_of_line", .n = 9, .rotate = true},
     9,
     8,
     "2 x 4, moved by 8",
     {"2", "", "", "5 6", "6", "", "", "", "1 2"}},
    {{.name = "head_of_line", .n = 9, .count = 1},
     1,
     0,
     "1 x 4",
     {"2 3", "3", "", "", "", "", "", "", ""}},
    {{.name = "head_of_line", .n = 8, .receivers = 4},
     1,
     0,
     "1 x 6",
     {"2 3 4 5", "5", "", "", "", "", "", ""}},
};

static void matrices_are_the_documents(void **state)
{
    for (size_t i = 0; i < sizeof(matrix_cases) / sizeof(matrix_cases[0]); i++) {
        const struct matrix_case *expected = &matrix_cases[i];
        struct pattern_plan *plan = plan_of(&expected->request);

        assert_int_equal(pattern_phases(plan), expected->phases);
        assert_phase_name(plan, expected->phase, expected->name);
        assert_true(pattern_in_turn(plan));
        for (uint32_t rank = 0; rank < expected->request.n; rank++)
            assert_string_equal(sends_to(plan, expected->phase, rank), expected->to[rank]);
        pattern_plan_free(plan);
    }
}

static void both_sides_of_matrices_agree(void **state)
{
    for (uint32_t n = 4; n <= 33; n++) {
        for (uint32_t k = 1; k < n; k += 1 + n / 5) {
            check_views(&(struct pattern_request){
                .name = "incast", .n = n, .receivers = k, .rotate = n < 12, .directions = "both"});
            check_views(&(struct pattern_request){
                .name = "fanout", .n = n, .senders = k, .load_of = "receivers"});
        }
        check_views(&(struct pattern_request){.name = "full_mesh", .n = n});
        check_views(&(struct pattern_request){.name = "partial_mesh", .n = n, .rotate = n < 12});
        check_views(&(struct pattern_request){.name = "head_of_line", .n = n, .rotate = true});
        check_views(&(struct pattern_request){.name = "pairs", .n = n, .directions = "forward"});
    }
}

/* Each rank has each role once. */
static void rotated_roles_are_fair(void **state)
{
    const struct pattern_request requests[] = {
        {.name = "incast", .n = 9, .receivers = 2, .rotate = true},
        {.name = "fanout", .n = 9, .senders = 3, .rotate = true},
        {.name = "partial_mesh", .n = 9, .rotate = true},
        {.name = "head_of_line", .n = 9, .rotate = true},
    };

    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        struct pattern_plan *plan = plan_of(&requests[i]);
        size_t sent[9] = {0}, received[9] = {0};

        for (uint32_t phase = 0; phase < 9; phase++)
            for (uint32_t rank = 0; rank < 9; rank++) {
                sent[rank] += pattern_flows(plan, phase, rank, PATTERN_SENDS, NULL, 0);
                received[rank] += pattern_flows(plan, phase, rank, PATTERN_RECEIVES, NULL, 0);
            }
        for (uint32_t rank = 0; rank < 9; rank++) {
            assert_true(sent[rank] > 0);
            assert_int_equal(sent[rank], sent[0]);
            assert_int_equal(received[rank], received[0]);
        }
        pattern_plan_free(plan);
    }
}

/* Seven senders divide the line of one receiver: RFC 8239, 3.2, asks so for (99.98 + 1) / 7 %. */
static void a_receivers_load_is_divided(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "incast", .n = 8, .load_of = "receivers"});
    struct pattern_flow flow;

    for (uint32_t rank = 0; rank < 7; rank++) {
        assert_int_equal(pattern_flows(plan, 0, rank, PATTERN_SENDS, &flow, 1), 1);
        assert_int_equal(flow.share, PATTERN_WHOLE / 7);
    }
    pattern_plan_free(plan);
}

static void pairs_go_one_way(void **state)
{
    static const char *const neighbours[] = {"1", "", "3", "", ""};
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "pairs", .n = 5, .directions = "forward"});
    struct pattern_plan *list = plan_of(&(struct pattern_request){
        .name = "pairs", .n = 8, .partners = "list", .list = {listed, 6}, .directions = "forward"});

    for (uint32_t rank = 0; rank < 5; rank++)
        assert_string_equal(sends_to(plan, 0, rank), neighbours[rank]);
    for (uint32_t rank = 0; rank < 8; rank++) {
        uint32_t partner = rank == 6 ? 1 : rank == 0 ? 5 : rank == 2 ? 3 : NOBODY;

        assert_int_equal(partner_of(list, 0, rank, PATTERN_SENDS), partner);
    }
    pattern_plan_free(list);
    pattern_plan_free(plan);
}

static void flows_are_those_of_their_list(void **state)
{
    static const uint32_t list[] = {1, 0, 2, 0, 0, 3, 0, 1};
    struct pattern_request request = {.name = "flows", .n = 5, .list = {list, 8}};
    struct pattern_plan *plan = plan_of(&request);
    struct pattern_flow flows[4];

    check_views(&request);
    assert_int_equal(pattern_phases(plan), 1);
    assert_phase_name(plan, 0, "flows");
    assert_int_equal(pattern_flows(plan, 0, 0, PATTERN_SENDS, flows, 4), 2);
    assert_int_equal(flows[0].dst, 3);
    assert_int_equal(flows[1].dst, 1);
    assert_int_equal(flows[0].share, 0);
    assert_int_equal(pattern_flows(plan, 0, 0, PATTERN_RECEIVES, flows, 4), 2);
    assert_int_equal(flows[0].src, 1);
    assert_int_equal(flows[1].src, 2);
    assert_int_equal(pattern_flows(plan, 0, 4, PATTERN_SENDS, flows, 4), 0);
    pattern_plan_free(plan);
}

/* Ranks with shares, with some, and with none. */
static void shares_are_kept_and_the_rest_is_divided(void **state)
{
    static const uint32_t list[] = {0, 1, 2, 0, 0, 2, 0, 3, 1, 0, 2, 1};
    static const uint32_t shares[] = {600000000, 0, 0, 0, 10000000, 0};
    struct pattern_request request = {
        .name = "flows", .n = 4, .list = {list, 12}, .shares = shares, .share_count = 6};
    struct pattern_plan *plan = plan_of(&request);
    struct pattern_flow flows[4];

    check_views(&request);
    assert_int_equal(pattern_flows(plan, 0, 0, PATTERN_SENDS, flows, 4), 3);
    assert_int_equal(flows[0].share, 600000000);
    assert_int_equal(flows[1].share, 200000000);
    assert_int_equal(flows[2].share, 200000000);
    assert_int_equal(pattern_flows(plan, 0, 1, PATTERN_SENDS, flows, 4), 1);
    assert_int_equal(flows[0].share, 10000000);
    assert_int_equal(pattern_flows(plan, 0, 2, PATTERN_SENDS, flows, 4), 2);
    assert_int_equal(flows[0].share, 0);
    pattern_plan_free(plan);
}

/* A list at random: exactly its flows, in its order, on both sides. */
static void any_list_is_kept(void **state)
{
    enum { RANKS = 23, TRIES = 200 };
    uint32_t random = 1;

    for (unsigned try = 0; try < TRIES; try++) {
        uint32_t list[2 * RANKS * RANKS];
        uint32_t count = 0;
        struct pattern_flow flows[RANKS];
        struct pattern_plan *plan;

        for (uint32_t pair = 0; pair < RANKS * RANKS; pair++) {
            uint32_t at = (pair * 7 + try) % (RANKS * RANKS);

            random = random * 1664525 + 1013904223;
            if (at / RANKS == at % RANKS || random >> 16 > (try + 1) * (65536 / TRIES))
                continue;
            list[count++] = at / RANKS;
            list[count++] = at % RANKS;
        }
        if (count == 0)
            continue;
        plan =
            plan_of(&(struct pattern_request){.name = "flows", .n = RANKS, .list = {list, count}});
        for (uint32_t rank = 0; rank < RANKS; rank++)
            for (int side = 0; side < 2; side++) {
                size_t found = pattern_flows(
                    plan, 0, rank, side == 0 ? PATTERN_SENDS : PATTERN_RECEIVES, flows, RANKS);
                size_t next = 0;

                for (uint32_t i = 0; i < count; i += 2) {
                    if (list[i + (uint32_t)side] != rank)
                        continue;
                    assert_true(next < found);
                    assert_int_equal(flows[next].src, list[i]);
                    assert_int_equal(flows[next].dst, list[i + 1]);
                    next++;
                }
                assert_int_equal(next, found);
            }
        pattern_plan_free(plan);
    }
}

static void random_patterns_are_named_and_differ(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "random", .n = 64, .count = 2, .seed = 1});
    struct pattern_flow first[1] = {0}, second[1] = {0};
    unsigned alike = 0;

    assert_phase_name(plan, 1, "random 2");
    for (uint32_t rank = 0; rank < 64; rank++) {
        size_t counts[] = {pattern_flows(plan, 0, rank, PATTERN_SENDS, first, 1),
                           pattern_flows(plan, 1, rank, PATTERN_SENDS, second, 1)};

        alike += counts[0] == counts[1] && first->dst == second->dst;
    }
    assert_in_range(alike, 0, 40);
    pattern_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(senders_and_receivers_agree),
        cmocka_unit_test(chain_goes_from_each_to_the_next),
        cmocka_unit_test(aapc_sends_every_pair_once),
        cmocka_unit_test(aapc_sends_every_pair_once_among_many_ranks),
        cmocka_unit_test(aapc_orders_are_the_ones_named),
        cmocka_unit_test(naive_aapc_sends_all_at_once_from_the_next_on),
        cmocka_unit_test(rings_are_one_cycle),
        cmocka_unit_test(rings_of_hpcc_are_one_cycle),
        cmocka_unit_test(hpcc_draws_favour_the_natural_order),
        cmocka_unit_test(rings_differ_by_number_and_seed),
        cmocka_unit_test(natural_ring_does_not_change_the_random_ones),
        cmocka_unit_test(pairs_are_maximum_matchings),
        cmocka_unit_test(pairs_at_a_shift),
        cmocka_unit_test(pairs_are_the_ones_asked_for),
        cmocka_unit_test(pairs_across_many_groups),
        cmocka_unit_test(pairs_across_two_modules),
        cmocka_unit_test(plan_copies_what_it_was_given),
        cmocka_unit_test(random_pairs_follow_the_seed),
        cmocka_unit_test(random_rings_are_pinned),
        cmocka_unit_test(random_patterns_draw_half_of_the_ranks_evenly),
        cmocka_unit_test(random_patterns_of_a_higher_degree_have_more_flows),
        cmocka_unit_test(random_patterns_are_named_and_differ),
        cmocka_unit_test(matrices_are_the_documents),
        cmocka_unit_test(both_sides_of_matrices_agree),
        cmocka_unit_test(rotated_roles_are_fair),
        cmocka_unit_test(a_receivers_load_is_divided),
        cmocka_unit_test(pairs_go_one_way),
        cmocka_unit_test(flows_are_those_of_their_list),
        cmocka_unit_test(shares_are_kept_and_the_rest_is_divided),
        cmocka_unit_test(any_list_is_kept),
        cmocka_unit_test(room_limits_what_is_written),
        cmocka_unit_test(long_names_are_cut),
        cmocka_unit_test(plans_of_many_ranks_are_small),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
