/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One battery over all patterns: laws that any plan keeps whatever its number of ranks, laws of
 * single patterns, and a digest of all that a plan says (phases, flows, steps, memory), so that a
 * request means the same traffic everywhere. Schedules run with real data.
 */
#include "pattern_cases.h"
#include "schedule_sim.h"
#include "test_patterns_util.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

enum law {
    MATCHING = 1 << 0,  /* a rank has at most one partner each way in a phase */
    MUTUAL = 1 << 1,    /* who sends to a rank gets from it */
    ALL_PAIRS = 1 << 2, /* the phases together have each ordered pair once */
    CYCLE = 1 << 3,     /* in a phase, first flows lead through all ranks and back */
    FAIR = 1 << 4,      /* over all phases all ranks send as much, and receive as much */
    IN_TURN = 1 << 5,
    KERNEL = 1 << 6, /* its results can't be verified; it counts iterations */
    FLOATS = 1 << 7, /* sizes are multiples of 4 */
    SIZES = 1 << 8,  /* it takes sizes */
    SHARES = 1 << 9, /* senders to one divide its line */
};
static const bool no = false;

/* The laws' words in patterns.txt; KERNEL: its results can't be verified, and it counts
 * iterations; FLOATS: sizes are multiples of 4; SHARES: senders to one divide its line. */
#define UP_TO_SHIFT 16 /* above: the ranks up to which they are checked */

static unsigned laws_of(const char *words)
{
    static const char *const names[] = {"MATCHING", "MUTUAL", "ALL_PAIRS", "CYCLE", "FAIR",
                                        "IN_TURN",  "KERNEL", "FLOATS",    "SIZES", "SHARES"};
    const char *up_to = strstr(words, "UP_TO ");
    unsigned laws = up_to != NULL ? (unsigned)atoi(up_to + 6) << UP_TO_SHIFT : 0;

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        laws |= strstr(words, names[i]) != NULL ? 1u << i : 0;
    return laws;
}

/* --- digests -------------------------------------------------------------------------------- */

struct totals {
    uint32_t flows;
    uint64_t bytes, digest;
};

static void mix(struct totals *totals, uint64_t word)
{
    for (unsigned i = 0; i < 8; i++)
        totals->digest = (totals->digest ^ (word >> 8 * i & 0xff)) * UINT64_C(0x100000001b3);
}

static void mix_text(struct totals *totals, const char *text)
{
    for (; *text != '\0'; text++)
        mix(totals, (unsigned char)*text);
}

static void mix_schedule(struct totals *totals, const struct pattern_plan *plan, uint32_t phase,
                         uint32_t rank, const struct schedule *schedule)
{
    unsigned char *memory = malloc(schedule->memory + 1);

    assert_non_null(memory);
    for (size_t i = 0; i < schedule->count; i++) {
        const struct schedule_op *op = &schedule->ops[i];
        /* Operations are reckoned in floating point: their last digits are the machine's. */
        uint64_t from = op->action == SCHEDULE_WORK ? op->from / 1000 : op->from;
        const uint64_t words[] = {op->step, op->action, op->peer, op->at, from, op->bytes};

        for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++)
            mix(totals, words[j]);
        totals->bytes += op->action == SCHEDULE_SEND ? op->bytes : 0;
    }
    mix(totals, schedule->memory);
    if (schedule->memory <= 4096) {
        schedule_fill(plan, phase, rank, schedule, memory);
        for (uint64_t i = 0; i < schedule->memory; i++)
            mix(totals, memory[i]);
    }
    free(memory);
}

/* --- laws of one phase ---------------------------------------------------------------------- */

/* Flows by source and destination: 0, or how the flow is. */
struct matrix {
    uint32_t n;
    uint64_t *cell;
};

static uint64_t *cell_of(const struct matrix *matrix, uint32_t src, uint32_t dst)
{
    return &matrix->cell[(size_t)src * matrix->n + dst];
}

static struct matrix matrix_of(uint32_t n)
{
    struct matrix matrix = {n, calloc((size_t)n * n, sizeof(uint64_t))};

    assert_non_null(matrix.cell);
    return matrix;
}

/* All ranks' flows on one side: each in range, of this rank, to another, and listed once. */
static struct matrix side_of(const struct pattern_plan *plan, uint32_t n, uint32_t phase,
                             enum pattern_side side, struct totals *totals)
{
    struct matrix matrix = matrix_of(n);
    struct pattern_flow *flows = calloc(n, sizeof(*flows));

    assert_non_null(flows);
    for (uint32_t rank = 0; rank < n; rank++) {
        size_t count = pattern_flows(plan, phase, rank, side, flows, n);

        assert_in_range(count, 0, n - 1);
        for (size_t i = 0; i < count; i++) {
            uint64_t *cell = NULL;

            assert_true(flows[i].src < n && flows[i].dst < n && flows[i].src != flows[i].dst);
            assert_int_equal(side == PATTERN_SENDS ? flows[i].src : flows[i].dst, rank);
            cell = cell_of(&matrix, flows[i].src, flows[i].dst);
            assert_true(*cell == 0);
            *cell = 1 + flows[i].role + ((uint64_t)flows[i].share << 8);
            mix(totals, (uint64_t)flows[i].src << 32 | flows[i].dst);
            mix(totals, *cell);
        }
        totals->flows += side == PATTERN_SENDS ? (uint32_t)count : 0;
    }
    free(flows);
    return matrix;
}

static void check_cells(const struct pattern_request *asked, unsigned laws,
                        const struct matrix *sent)
{
    for (uint32_t a = 0; a < sent->n; a++) {
        uint32_t out = 0, in = 0;

        for (uint32_t b = 0; b < sent->n; b++) {
            out += *cell_of(sent, a, b) != 0;
            in += *cell_of(sent, b, a) != 0;
            if (laws & MUTUAL)
                assert_int_equal(*cell_of(sent, a, b) != 0, *cell_of(sent, b, a) != 0);
        }
        if (laws & MATCHING)
            assert_true(out <= 1 && in <= 1);
        for (uint32_t b = 0; b < sent->n && laws & SHARES; b++)
            assert_true(*cell_of(sent, b, a) == 0 ||
                        *cell_of(sent, b, a) >> 8 == PATTERN_WHOLE / in);
    }
}

static void check_cycle(const struct pattern_plan *plan, uint32_t n, uint32_t phase)
{
    bool *met = calloc(n, sizeof(*met));
    struct pattern_flow flow;
    uint32_t rank = 0;

    for (uint32_t step = 0; step < n; step++) {
        assert_true(rank < n && !met[rank]);
        met[rank] = true;
        assert_true(pattern_flows(plan, phase, rank, PATTERN_SENDS, &flow, 1) >= 1);
        rank = flow.dst;
        assert_true(pattern_flows(plan, phase, rank, PATTERN_RECEIVES, &flow, 1) >= 1);
        assert_int_equal(flow.dst, rank);
    }
    assert_int_equal(rank, 0);
    free(met);
}

static void run_schedule(const struct pattern_request *asked, unsigned laws,
                         const struct pattern_plan *plan, uint32_t n, uint32_t phase,
                         struct totals *totals)
{
    struct schedule_sim *sim = schedule_sim_make(plan, phase, n, n + phase);

    assert_int_equal(pattern_verifies(plan), !(laws & KERNEL));
    assert_int_equal(pattern_iterations(plan) > 0, (laws & KERNEL) != 0);
    mix(totals, pattern_iterations(plan));
    for (uint32_t rank = 0; rank < n; rank++) {
        assert_sums(plan, phase, rank);
        mix_schedule(totals, plan, phase, rank, schedule_sim_schedule(sim, rank));
    }
    if (!schedule_sim_run(sim, 2))
        fail_msg("%s of %u ranks is stuck", asked->name, n);
    if (!(laws & KERNEL))
        schedule_sim_verify(sim);
    schedule_sim_free(sim);
}

/* --- laws of a plan ------------------------------------------------------------------------- */

static void check_sums(const struct pattern_request *asked, unsigned laws, const struct matrix *all)
{
    for (uint32_t a = 0; a < all->n; a++) {
        uint64_t sent[2] = {0}, received[2] = {0};

        for (uint32_t b = 0; b < all->n; b++) {
            if (laws & ALL_PAIRS)
                assert_true(*cell_of(all, a, b) == (a != b));
            sent[0] += *cell_of(all, 0, b);
            sent[1] += *cell_of(all, a, b);
            received[0] += *cell_of(all, b, 0);
            received[1] += *cell_of(all, b, a);
        }
        assert_true(!(laws & FAIR) || (sent[1] == sent[0] && received[1] == received[0]));
    }
}

/* Returns the phases; 0: no plan, as some patterns want a power of two or a square of ranks. */
static uint32_t check_plan(const struct pattern_request *asked, unsigned laws, uint32_t n,
                           uint64_t bytes, struct totals *totals)
{
    struct pattern_request request = *asked;
    struct pattern_plan *plan = NULL;
    struct matrix all;
    uint32_t phases;
    char text[512];

    request.n = n;
    request.bytes = bytes;
    if (pattern_plan_make(&plan, &request, text, sizeof(text)) < 0)
        return 0;
    all = matrix_of(n);
    phases = pattern_phases(plan);
    mix(totals, n);
    assert_int_equal(pattern_in_turn(plan), (laws & IN_TURN) != 0);
    for (uint32_t phase = 0; phase < phases; phase++) {
        struct matrix sent = side_of(plan, n, phase, PATTERN_SENDS, totals);
        struct matrix received = side_of(plan, n, phase, PATTERN_RECEIVES, totals);

        assert_memory_equal(sent.cell, received.cell, sizeof(uint64_t) * n * n);
        check_cells(asked, laws, &sent);
        if (laws & CYCLE)
            check_cycle(plan, n, phase);
        for (size_t i = 0; i < (size_t)n * n; i++)
            all.cell[i] += sent.cell[i] != 0;
        pattern_phase_name(plan, phase, text, sizeof(text));
        mix_text(totals, text);
        if (pattern_is_scheduled(plan))
            run_schedule(asked, laws, plan, n, phase, totals);
        free(received.cell);
        free(sent.cell);
    }
    check_sums(asked, laws, &all);
    free(all.cell);
    pattern_plan_free(plan);
    return phases;
}

/* Sizes: none, one byte, fewer than ranks, odd, and many of no common divisor; of few ranks also
 * one that is cut into pieces. */
static unsigned wrong_rows;

static void check_row(const struct pattern_case *row)
{
    static const uint64_t sizes[] = {0, 1, 13, 250, 4099, 1000004};
    static const uint64_t floats[] = {0, 4, 12, 148, 4012, 1000004};
    unsigned laws = laws_of(row->fields[0]);
    const uint64_t *bytes = laws & FLOATS ? floats : sizes;
    struct totals all = {.digest = UINT64_C(0xcbf29ce484222325)}, of_16 = {0};
    uint32_t up_to = laws >> UP_TO_SHIFT > 0 ? laws >> UP_TO_SHIFT : long_run() ? 65 : 33, phases;
    char got[128];

    for (uint32_t n = 2; n <= up_to; n++) {
        struct totals ignored = {0};

        for (size_t i = 0; i < (laws & SIZES ? n == 3 || n == 4 ? 6 : 5 : 1); i++)
            check_plan(&row->request, laws, n, bytes[i], n <= 33 ? &all : &ignored);
    }
    phases = check_plan(&row->request, laws, 16, laws & SIZES ? 64 : 0, &of_16);
    snprintf(got, sizeof(got), "%u %u %" PRIu64 " 0x%" PRIx64, phases, of_16.flows, of_16.bytes,
             all.digest);
    if (strcmp(got, row->fields[1]) != 0) {
        print_error("%s:%d: %s\n", pattern_cases_path, row->line, got);
        wrong_rows++;
    }
}

static void all_patterns_keep_their_laws(void **state)
{
    pattern_cases("law", check_row);
    assert_int_equal(wrong_rows, 0);
}

/* --- many ranks ----------------------------------------------------------------------------- */

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* A sanitizer's allocator counts nothing. */
static bool memory_is_counted(void)
{
    size_t before = bytes_in_use();
    void *volatile block = malloc(1 << 18);
    bool counted = bytes_in_use() >= before + (1 << 18);

    free(block);
    return counted;
}

static bool memory_counted;

static void check_partners(const struct pattern_plan *plan, uint32_t n, uint32_t phase)
{
    for (uint32_t rank = 0; rank < n; rank++) {
        uint32_t to = partner_of(plan, phase, rank, PATTERN_SENDS);

        assert_true(to == NOBODY || (to < n && to != rank));
        if (to != NOBODY)
            assert_int_equal(partner_of(plan, phase, to, PATTERN_RECEIVES), rank);
    }
}

/* Over all phases the rank meets each other one once on a side. */
static void check_all_met(const struct pattern_plan *plan, uint32_t n, uint32_t rank,
                          enum pattern_side side)
{
    bool *met = calloc(n, sizeof(*met));
    uint32_t count = 0;

    for (uint32_t phase = 0; phase < pattern_phases(plan); phase++) {
        uint32_t partner = partner_of(plan, phase, rank, side);

        if (partner == NOBODY)
            continue;
        assert_true(partner < n && partner != rank && !met[partner]);
        met[partner] = true;
        count++;
    }
    assert_int_equal(count, n - 1);
    free(met);
}

static void check_large(const struct pattern_request *asked, unsigned laws, uint32_t n)
{
    struct pattern_request request = *asked;
    struct pattern_plan *plan = NULL;
    size_t before = bytes_in_use();
    struct schedule schedule;
    struct pattern_flow flow;
    uint32_t last;
    char why[256];

    request.n = n;
    request.bytes = laws & SIZES ? 1 << 20 : 0;
    request.class = request.class != NULL ? "D" : NULL;
    if (pattern_plan_make(&plan, &request, why, sizeof(why)) < 0)
        return;
    last = pattern_phases(plan) - 1;
    if (memory_counted && request.draw == NULL)
        assert_in_range(bytes_in_use() - before, 1, 1024);
    for (uint32_t phase = 0; phase <= last; phase += last > 0 ? last : 1) {
        if (laws & MATCHING)
            check_partners(plan, n, phase);
        if (laws & CYCLE)
            check_cycle(plan, n, phase);
    }
    if ((laws & ALL_PAIRS) && (laws & MATCHING)) {
        check_all_met(plan, n, n / 3, PATTERN_SENDS);
        check_all_met(plan, n, n - 1, PATTERN_RECEIVES);
    }
    if (pattern_is_scheduled(plan)) {
        assert_int_equal(pattern_schedule(plan, 0, n - 2, &schedule), 0);
        for (size_t i = 0; i < schedule.count; i++)
            assert_true(schedule.ops[i].at + schedule.ops[i].bytes <= schedule.memory);
        assert_true(schedule.memory <= UINT64_C(3) * n << 20);
        assert_true(pattern_flows(plan, 0, n - 2, PATTERN_SENDS, &flow, 1) >= 9);
        schedule_free(&schedule);
    }
    pattern_plan_free(plan);
}

static void check_all_large(const struct pattern_case *row)
{
    static const uint32_t ranks[] = {1000, 16384, 65535, 65536};

    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++)
        check_large(&row->request, laws_of(row->fields[0]), ranks[i]);
}

static void many_ranks_have_small_plans(void **state)
{
    memory_counted = memory_is_counted();
    pattern_cases("law", check_all_large);
}

/* --- plans by hand -------------------------------------------------------------------------- */

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

/* The sources of a rank's flows. */
static const char *gets_from(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    static char text[128];
    struct pattern_flow flows[16];
    size_t count = pattern_flows(plan, phase, rank, PATTERN_RECEIVES, flows, 16), used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < count && i < 16; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIu32, i > 0 ? " " : "",
                                 flows[i].src);
    return text;
}

/* Fields: a phase, its name, and to whom each rank sends in it. */
static void check_by_hand(const struct pattern_case *row)
{
    struct pattern_plan *plan = plan_of(&row->request);
    uint32_t phase = (uint32_t)atoi(row->fields[0]), rank = 0;
    char name[64];

    pattern_phase_name(plan, phase, name, sizeof(name));
    assert_string_equal(name, row->fields[1]);
    for (char *to = strtok(row->fields[2], ","); to != NULL; to = strtok(NULL, ","), rank++) {
        to += strspn(to, " ");
        if (strcmp(sends_to(plan, phase, rank), strcmp(to, "-") == 0 ? "" : to) != 0)
            fail_msg("%s:%d: rank %u sends to %s", pattern_cases_path, row->line, rank,
                     sends_to(plan, phase, rank));
    }
    pattern_plan_free(plan);
}

static void plans_are_those_worked_out_by_hand(void **state)
{
    pattern_cases("hand", check_by_hand);
}

/* The paper's Table 1: 7, 8, 9 and 12 pairs across two modules of 12 nodes. */
static void pairs_across_two_modules(void **state)
{
    static const uint32_t counts[] = {7, 8, 9, 12};
    uint32_t rank[24];
    const struct pattern_ranks modules[] = {{rank, 12}, {rank + 12, 12}};

    for (size_t i = 0; i < 4; i++) {
        struct pattern_plan *plan;

        for (uint32_t j = 0; j < 24; j++)
            rank[j] = j;
        plan = plan_of(&(struct pattern_request){.name = "pairs",
                                                 .n = 24,
                                                 .partners = "across",
                                                 .groups = modules,
                                                 .group_count = 2,
                                                 .count = counts[i]});
        memset(rank, 0xff, sizeof(rank)); /* the plan has copied the groups */
        for (uint32_t j = 0; j < 24; j++)
            assert_int_equal(partner_of(plan, 0, j, PATTERN_SENDS),
                             j % 12 >= counts[i] ? NOBODY : (j + 12) % 24);
        pattern_plan_free(plan);
    }
}

/* Ranks with shares, with some, and with none; sources in the list's order. */
static void shares_are_kept_and_the_rest_is_divided(void **state)
{
    static const uint32_t list[] = {0, 1, 2, 0, 0, 2, 0, 3, 1, 0, 2, 1};
    static const uint32_t shares[] = {600000000, 0, 0, 0, 10000000, 0};
    static const size_t counts[] = {3, 1, 2};
    static const uint32_t expected[3][3] = {{600000000, 200000000, 200000000}, {10000000}, {0, 0}};
    struct pattern_plan *plan = plan_of(&(struct pattern_request){
        .name = "flows", .n = 4, .list = {list, 12}, .shares = shares, .share_count = 6});
    struct pattern_flow flows[4];

    for (uint32_t rank = 0; rank < 3; rank++) {
        size_t count = pattern_flows(plan, 0, rank, PATTERN_SENDS, flows, 4);

        assert_int_equal(count, counts[rank]);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(flows[i].share, expected[rank][i]);
    }
    assert_string_equal(gets_from(plan, 0, 0), "2 1");
    assert_string_equal(gets_from(plan, 0, 1), "0 2");
    pattern_plan_free(plan);
}

/* Lists at random: exactly their flows, in their order, on both sides. */
static void any_list_is_kept(void **state)
{
    enum { RANKS = 23, TRIES = 50 };
    uint32_t random = 1;

    for (uint32_t try = 1; try <= TRIES; try++) {
        uint32_t list[2 * RANKS * RANKS], count = 0, next[2][RANKS] = {{0}};
        struct pattern_flow flows[RANKS];
        struct pattern_plan *plan;

        for (uint32_t pair = 0; pair < RANKS * RANKS; pair++) {
            uint32_t at = (pair * 7 + try) % (RANKS * RANKS);

            random = random * 1664525 + 1013904223;
            if (at / RANKS == at % RANKS || random >> 16 > try * (65536 / TRIES))
                continue;
            list[count++] = at / RANKS;
            list[count++] = at % RANKS;
        }
        assert_true(count > 0);
        plan =
            plan_of(&(struct pattern_request){.name = "flows", .n = RANKS, .list = {list, count}});
        for (uint32_t i = 0; i < count; i++) {
            enum pattern_side side = i % 2 == 0 ? PATTERN_SENDS : PATTERN_RECEIVES;
            size_t found = pattern_flows(plan, 0, list[i], side, flows, RANKS);
            const struct pattern_flow *flow = &flows[next[i % 2][list[i]]++];

            assert_in_range(found, next[i % 2][list[i]], RANKS - 1);
            assert_true(flow->src == list[i & ~1u] && flow->dst == list[i | 1]);
        }
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            assert_int_equal(pattern_flows(plan, 0, rank, PATTERN_SENDS, NULL, 0), next[0][rank]);
            assert_int_equal(pattern_flows(plan, 0, rank, PATTERN_RECEIVES, NULL, 0),
                             next[1][rank]);
        }
        pattern_plan_free(plan);
    }
}

/* --- random numbers ------------------------------------------------------------------------- */

static struct pattern_plan *random_rings(uint32_t n, uint64_t seed, uint32_t count,
                                         const char *draw)
{
    return plan_of(&(struct pattern_request){
        .name = "ring", .n = n, .seed = seed, .natural = &no, .count = count, .draw = draw});
}

static uint32_t successor_of(const struct pattern_plan *plan, uint32_t phase, uint32_t rank)
{
    struct pattern_flow flow;

    assert_in_range(pattern_flows(plan, phase, rank, PATTERN_SENDS, &flow, 1), 1, 2);
    return flow.dst;
}

/* Successors from rank 0 on, computed by an independent program from the algorithm's description
 * (permutation.c). */
static const struct {
    uint32_t n;
    uint64_t seed;
    uint32_t phase;
    uint32_t cycle[8];
} golden_rings[] = {
    {5, 0, 0, {3, 4, 2, 1, 0, 3, 4, 2}},
    {8, 1, 0, {2, 6, 7, 1, 5, 4, 3, 0}},
    {8, 1, 1, {6, 2, 3, 5, 1, 7, 4, 0}},
    {24, 2005, 4, {2, 23, 17, 6, 10, 18, 1, 22}},
    {1000, 1, 0, {869, 226, 304, 893, 326, 427, 494, 38}},
    {65536, 0xfedcba9876543210, 9, {10630, 63979, 37931, 59339, 20237, 34162, 34276, 52621}},
};

static void random_rings_are_pinned(void **state)
{
    for (size_t i = 0; i < sizeof(golden_rings) / sizeof(golden_rings[0]); i++) {
        struct pattern_plan *plan = random_rings(golden_rings[i].n, golden_rings[i].seed, 10, NULL);
        uint32_t rank = 0;

        for (uint32_t step = 0; step < 8; step++) {
            rank = successor_of(plan, golden_rings[i].phase, rank);
            assert_int_equal(rank, golden_rings[i].cycle[step]);
        }
        pattern_plan_free(plan);
    }
}

/* Natural successors of random rings, on average over many. Of a uniform draw there is one, plus
 * one in n - 1. HPCC's linear probing puts a rank behind the one before it wherever it meets that:
 * 4.97 of 64 ranks, computed by a program of some lines. */
static double natural_successors(uint32_t n, const char *draw)
{
    struct pattern_plan *plan = random_rings(n, 5, 4000, draw);
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

/* Ranks that send to the same one in two phases. */
static uint32_t shared_links(const struct pattern_plan *a, uint32_t a_phase,
                             const struct pattern_plan *b, uint32_t b_phase, uint32_t n)
{
    uint32_t shared = 0;

    for (uint32_t rank = 0; rank < n; rank++)
        shared += successor_of(a, a_phase, rank) == successor_of(b, b_phase, rank);
    return shared;
}

/* Two random rings share one link of 1,000 by chance: beyond 8 once in 900,000. The natural ring
 * before them does not change them. */
static void random_plans_differ_by_number_and_seed(void **state)
{
    struct pattern_plan *plan = random_rings(1000, 1, 4, NULL);
    struct pattern_plan *other = random_rings(1000, 2, 4, NULL);
    struct pattern_plan *with =
        plan_of(&(struct pattern_request){.name = "ring", .n = 1000, .seed = 1, .count = 4});
    struct pattern_plan *pairs[2];
    uint32_t same = 0;

    for (uint32_t phase = 0; phase < 4; phase++) {
        assert_int_equal(shared_links(plan, phase, with, phase + 1, 1000), 1000);
        assert_in_range(shared_links(plan, phase, other, phase, 1000), 0, 8);
        for (uint32_t earlier = 0; earlier < phase; earlier++)
            assert_in_range(shared_links(plan, earlier, plan, phase, 1000), 0, 8);
    }
    for (uint64_t i = 0; i < 2; i++)
        pairs[i] = plan_of(
            &(struct pattern_request){.name = "pairs", .n = 1000, .partners = "random", .seed = i});
    for (uint32_t rank = 0; rank < 1000; rank++)
        same += partner_of(pairs[0], 0, rank, PATTERN_SENDS) ==
                partner_of(pairs[1], 0, rank, PATTERN_SENDS);
    assert_in_range(same, 0, 16);
    pattern_plan_free(pairs[1]);
    pattern_plan_free(pairs[0]);
    pattern_plan_free(with);
    pattern_plan_free(other);
    pattern_plan_free(plan);
}

/* Half of the draws count, each other rank being as likely: over 30,000 draws the sum has a
 * standard deviation of 87, and a rank's share of 500 one of 22. One a phase always sends; of
 * three draws some are of one partner, which counts once. */
static void random_patterns_draw_half_of_the_ranks_evenly(void **state)
{
    for (uint32_t degree = 1; degree <= 3; degree += 2) {
        struct pattern_plan *plan = plan_of(&(struct pattern_request){
            .name = "random", .n = 30, .count = 1000, .degree = degree, .seed = 17});
        size_t by_destination[30] = {0}, all = 0;
        struct pattern_flow flows[3];

        for (uint32_t phase = 0; phase < 1000; phase++) {
            size_t before = all;

            for (uint32_t rank = 0; rank < 30; rank++) {
                size_t count = pattern_flows(plan, phase, rank, PATTERN_SENDS, flows, 3);

                assert_in_range(count, 0, degree);
                for (size_t i = 0; i < count; i++)
                    by_destination[flows[i].dst]++;
                all += count;
            }
            assert_true(all > before);
        }
        if (degree == 3)
            assert_in_range(all, 45000 - 1500, 45000 + 500);
        else
            assert_in_range(all, 15500 - 400, 15500 + 400);
        for (uint32_t rank = 0; rank < 30; rank++)
            assert_in_range(by_destination[rank], all / 30 - 110 * degree, all / 30 + 110 * degree);
        pattern_plan_free(plan);
    }
}

/* --- refusals ------------------------------------------------------------------------------- */

static void check_refused(const struct pattern_case *row)
{
    struct pattern_plan *plan = NULL;
    char why[512] = "";

    assert_int_equal(pattern_plan_make(&plan, &row->request, why, sizeof(why)), -EINVAL);
    assert_string_equal(why, row->fields[0]);
    assert_null(plan);
}

static void refusals_say_what_is_wrong(void **state)
{
    const struct pattern_request nameless = {.n = 8},
                                 odd = {.name = "aapc", .n = 12, .order = "xor"};
    struct pattern_plan *plan = NULL;
    char why[10];

    pattern_cases("refused", check_refused);
    assert_int_equal(pattern_plan_make(&plan, &nameless, why, sizeof(why)), -EINVAL);
    assert_int_equal(pattern_plan_make(&plan, &odd, why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "order xor");
    assert_int_equal(pattern_plan_make(&plan, &odd, NULL, 0), -EINVAL);
    assert_null(plan);
}

/* --- room ----------------------------------------------------------------------------------- */

static void room_limits_what_is_written(void **state)
{
    struct pattern_plan *plan = plan_of(&(struct pattern_request){.name = "full_mesh", .n = 10});
    struct pattern_plan *shift = plan_of(&(struct pattern_request){.name = "aapc", .n = 200});
    struct pattern_flow flows[4] = {[3] = {.src = 77, .dst = 77}};
    char name[5] = "";

    assert_int_equal(pattern_flows(plan, 0, 4, PATTERN_SENDS, flows, 3), 9);
    assert_int_equal(flows[2].dst, 7);
    assert_int_equal(flows[3].src, 77);
    assert_int_equal(pattern_flows(plan, 0, 4, PATTERN_RECEIVES, NULL, 0), 9);
    assert_int_equal(pattern_phase_name(shift, 99, name, sizeof(name)), strlen("distance 100"));
    assert_string_equal(name, "dist");
    pattern_plan_free(shift);
    pattern_plan_free(plan);
    pattern_plan_free(NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_patterns_keep_their_laws),
        cmocka_unit_test(many_ranks_have_small_plans),
        cmocka_unit_test(plans_are_those_worked_out_by_hand),
        cmocka_unit_test(pairs_across_two_modules),
        cmocka_unit_test(shares_are_kept_and_the_rest_is_divided),
        cmocka_unit_test(any_list_is_kept),
        cmocka_unit_test(random_rings_are_pinned),
        cmocka_unit_test(hpcc_draws_favour_the_natural_order),
        cmocka_unit_test(random_plans_differ_by_number_and_seed),
        cmocka_unit_test(random_patterns_draw_half_of_the_ranks_evenly),
        cmocka_unit_test(refusals_say_what_is_wrong),
        cmocka_unit_test(room_limits_what_is_written),
    };

    pattern_cases_path = argc > 1 ? argv[1] : "patterns.txt";
    return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
