/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One battery over all patterns: laws that any plan keeps whatever its number of ranks, laws of
 * single patterns, and a digest of all that a plan says (phases, flows, steps, memory), so that a
 * request means the same traffic everywhere. Schedules run with real data.
 */
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
#define PAIRED (MATCHING | MUTUAL)

struct row {
    struct pattern_request request; /* without ranks and bytes */
    unsigned laws;
    uint32_t phases, flows; /* of 16 ranks, in all phases */
    uint64_t bytes;         /* sent by all in a repetition of all phases, of sizes of 64 */
    uint64_t digest;
};

#define ROW(laws, phases, flows, bytes, digest, ...)                                               \
    {                                                                                              \
        {__VA_ARGS__}, laws, phases, flows, bytes, UINT64_C(digest)                                \
    }
#define UP_TO(ranks) ((unsigned)(ranks) << 16) /* among the laws */

static const bool no = false;

static const struct row rows[] = {
    /* clang-format off */
    ROW(MATCHING, 1, 15, 0, 0x215bcac28548ece5, .name = "chain"),
    ROW(MATCHING, 1, 15, 0, 0xff4df005e96a10e5, .name = "chain", .forward = true),
    ROW(MATCHING | ALL_PAIRS | FAIR, 15, 240, 0, 0x2e6511ec030bbcec, .name = "aapc", .order = "shift"),
    ROW(PAIRED | ALL_PAIRS | FAIR, 15, 240, 0, 0x14307d1b25925825, .name = "aapc", .order = "pairwise"),
    ROW(PAIRED | ALL_PAIRS | FAIR, 15, 240, 0, 0x9ecb0625849e0a1e, .name = "aapc", .order = "xor"),
    ROW(MUTUAL | ALL_PAIRS | FAIR, 1, 240, 0, 0x6617afe5a3824165, .name = "aapc", .order = "naive"),
    ROW(0, 1, 120, 0, 0x9a747b2c0cd54565, .name = "aapc", .order = "naive", .round_trip = true),
    ROW(MUTUAL | ALL_PAIRS | FAIR | IN_TURN, 1, 240, 0, 0x6617afe5a3824165, .name = "full_mesh"),
    ROW(CYCLE | MUTUAL | FAIR, 4, 128, 0, 0xe99b7db4c722d8a5, .name = "ring", .count = 3, .seed = 7),
    ROW(0, 4, 64, 0, 0x339a414dfcf03d65, .name = "ring", .count = 3, .seed = 7, .round_trip = true),
    ROW(CYCLE | MATCHING | FAIR, 3, 48, 0, 0xe8383a806afa0125, .name = "ring", .count = 3, .natural = &no, .directions = "forward"),
    ROW(CYCLE | MUTUAL | FAIR, 4, 128, 0, 0x7f9162cec43fc425, .name = "ring", .count = 3, .seed = 7, .draw = "hpcc"),
    ROW(PAIRED, 1, 16, 0, 0x996f4300cd132b25, .name = "pairs"),
    ROW(PAIRED, 1, 16, 0, 0x48d77a4e0fe98025, .name = "pairs", .partners = "halves"),
    ROW(PAIRED, 1, 16, 0, 0x2b0905ebd0f085e5, .name = "pairs", .partners = "random", .seed = 7),
    ROW(PAIRED | FAIR, 1, 16, 0, 0xf4adf1f10d95a245, .name = "pairs", .partners = "shift", .shift = 1),
    ROW(PAIRED | FAIR, 1, 16, 0, 0x680e20bdd55e7185, .name = "pairs", .partners = "shift", .shift = 4),
    ROW(MATCHING, 1, 8, 0, 0xb9a952d89fd99b25, .name = "pairs", .directions = "forward"),
    ROW(0, 3, 16, 0, 0x63e0f9d9cd505fa5, .name = "random", .count = 3, .seed = 7),
    ROW(0, 3, 276, 0, 0xfc2319c3d047c625, .name = "random", .count = 3, .degree = 16),
    ROW(IN_TURN, 1, 15, 0, 0x9c4542e5ab0c5d4, .name = "incast"),
    ROW(FAIR | IN_TURN, 16, 240, 0, 0xcd23afa6bb343f25, .name = "incast", .receivers = 1, .rotate = true),
    ROW(MUTUAL | IN_TURN, 1, 30, 0, 0xb7f91c9a95f24e94, .name = "incast", .directions = "both"),
    ROW(SHARES | IN_TURN, 1, 15, 0, 0x217ddf328dd3e8f8, .name = "incast", .load_of = "receivers"),
    ROW(FAIR | IN_TURN, 16, 240, 0, 0xac09bc6b40cd0845, .name = "fanout", .senders = 1, .rotate = true),
    ROW(IN_TURN, 1, 64, 0, 0xdc789168d1b28625, .name = "partial_mesh"),
    ROW(FAIR | IN_TURN, 16, 1024, 0, 0x11ff87df3bf6dbac, .name = "partial_mesh", .rotate = true),
    ROW(FAIR | IN_TURN, 16, 192, 0, 0x759bcf76a31d0629, .name = "head_of_line", .rotate = true),
    ROW(IN_TURN, 1, 10, 0, 0x587b48adb5a9d1e5, .name = "head_of_line", .receivers = 4),
    ROW(SIZES, 1, 64, 960, 0xb6b90be3ae05efc6, .name = "chain", .local = true),
    ROW(SIZES, 1, 64, 960, 0xaa71ec4a5e404ea6, .name = "chain", .forward = true, .local = true),
    ROW(SIZES, 1, 240, 15360, 0xbdaa8fba4569d948, .name = "aapc", .local = true),
    ROW(SIZES, 1, 240, 15360, 0x5574eec59ba2a7fc, .name = "aapc", .order = "pairwise", .local = true),
    ROW(SIZES, 1, 240, 15360, 0x641d9baab656e3c8, .name = "aapc", .order = "naive", .local = true),
    ROW(SIZES, 1, 72, 1024, 0x73292d28de5b5cc0, .name = "pairs", .local = true),
    ROW(SIZES, 1, 64, 1024, 0xecfffdbefa4a170c, .name = "pairs", .partners = "halves", .local = true),
    ROW(SIZES, 1, 76, 1024, 0xc66fd80f2273f4d8, .name = "pairs", .partners = "random", .local = true),
    ROW(SIZES, 1, 81, 1472, 0xdeddfd6727b10274, .name = "random", .count = 3, .local = true),
    ROW(SIZES, 1, 134, 8192, 0x158aff418e5983ce, .name = "ring", .count = 3, .local = true),
    ROW(SIZES, 1, 65, 128, 0x3a9d6c334f72e7ee, .name = "pingpong"),
    ROW(SIZES, 6, 394, 768, 0x8f915c92d0dabdc2, .name = "pingpong", .count = 6),
    ROW(SIZES, 1, 65, 128, 0x5dc2f12733464c42, .name = "pingping"),
    ROW(SIZES, 1, 64, 1024, 0x2eb156d976c7e36b, .name = "sendrecv"),
    ROW(SIZES, 1, 80, 2048, 0x32d0e09b7161e209, .name = "exchange"),
    ROW(SIZES, 1, 64, 960, 0x1cde048102f20472, .name = "bcast", .algorithm = "binomial"),
    ROW(SIZES, 1, 64, 1088, 0x3b6e69d0ec5f095a, .name = "bcast", .algorithm = "scatter-allgather"),
    ROW(SIZES, 1, 64, 960, 0xa3d28e6bbf8c35b1, .name = "bcast", .algorithm = "pipeline"),
    ROW(SIZES | FLOATS, 1, 78, 960, 0x86f55e606aab038b, .name = "reduce", .algorithm = "binomial"),
    ROW(SIZES | FLOATS, 1, 88, 4096, 0x5149c67c1540073a, .name = "allreduce", .algorithm = "recursive-doubling"),
    ROW(SIZES | FLOATS, 1, 64, 1920, 0x5f1834fdac4c2c6b, .name = "allreduce", .algorithm = "ring"),
    ROW(SIZES | FLOATS, 1, 88, 1920, 0x85f589a74d9c4aa9, .name = "allreduce", .algorithm = "rabenseifner"),
    ROW(SIZES | FLOATS, 1, 88, 960, 0x2c1f41885fc72caf, .name = "reduce_scatter", .algorithm = "recursive-halving"),
    ROW(SIZES | FLOATS, 1, 240, 960, 0x15aa461a25b66200, .name = "reduce_scatter", .algorithm = "pairwise"),
    ROW(SIZES, 1, 64, 15360, 0x7b3dff9e52180be2, .name = "allgather", .algorithm = "ring"),
    ROW(SIZES, 1, 88, 15360, 0xebda96c4c0f3ca0d, .name = "allgather", .algorithm = "recursive-doubling"),
    ROW(SIZES, 1, 112, 15360, 0x4e07dfa56b2909d7, .name = "allgather", .algorithm = "bruck"),
    ROW(SIZES, 1, 64, 15360, 0x43a1e41e679aa9e2, .name = "allgatherv", .algorithm = "ring"),
    ROW(SIZES, 1, 64, 15360, 0xc8471430fa12633c, .name = "allgatherv", .algorithm = "ring", .skew = 80),
    ROW(SIZES, 1, 240, 15360, 0x3e8fc919f1fbfc5, .name = "alltoall", .algorithm = "linear"),
    ROW(SIZES, 1, 240, 15360, 0x5308c5a771364505, .name = "alltoall", .algorithm = "pairwise"),
    ROW(SIZES, 1, 64, 32768, 0xe1412b87426d335d, .name = "alltoall", .algorithm = "bruck"),
    ROW(SIZES, 1, 240, 15360, 0xc63847633f6ee01, .name = "alltoallv", .algorithm = "linear"),
    ROW(SIZES, 1, 240, 15428, 0xf0dfbe014f9662e1, .name = "alltoallv", .algorithm = "linear", .skew = 100),
    ROW(SIZES, 1, 240, 15382, 0x80c0d440af89ceee, .name = "alltoallv", .algorithm = "pairwise", .skew = 33),
    ROW(0, 1, 64, 0, 0xb758eb35cd13c665, .name = "barrier"),
    ROW(KERNEL, 1, 88, 6144, 0xdf6a0d16ba85c89a, .name = "nas_ep", .class = "S"),
    ROW(KERNEL | UP_TO(128), 1, 240, 379072, 0x3304ce40e75f5a65, .name = "nas_is", .class = "S"),
    ROW(KERNEL | UP_TO(128), 1, 92, 3217024, 0x11c04e29f346482a, .name = "nas_cg", .class = "S"),
    ROW(KERNEL | UP_TO(1024), 1, 96, 656128, 0xc579654fe2be7a9f, .name = "nas_mg", .class = "S"),
    ROW(KERNEL | UP_TO(1024), 1, 240, 7864560, 0xb033bc74fad5ec5b, .name = "nas_ft", .class = "W"),
    ROW(KERNEL | UP_TO(64), 1, 88, 1506720, 0x97e25984e474d05a, .name = "nas_lu", .class = "W"),
    ROW(KERNEL | UP_TO(64), 1, 132, 4529664, 0x48b5f0115bffc59f, .name = "nas_sp", .class = "W"),
    ROW(KERNEL | UP_TO(64), 1, 132, 2805120, 0xbc317598f3bb8d9f, .name = "nas_bt", .class = "W"),
    ROW(KERNEL | UP_TO(81), 1, 80, 201440, 0xaaf35b3973525044, .name = "hpl", .matrix = 1000, .block = 7),
    ROW(SIZES, 1, 88, 3072, 0xa22f6772cf46820c, .name = "halo"),
    ROW(SIZES, 1, 84, 3584, 0x7271237dd83d32fc, .name = "halo", .dimensions = 3),
    /* clang-format on */
};
#define ROWS (sizeof(rows) / sizeof(rows[0]))

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

static void check_cells(const struct row *row, const struct matrix *sent)
{
    for (uint32_t a = 0; a < sent->n; a++) {
        uint32_t out = 0, in = 0;

        for (uint32_t b = 0; b < sent->n; b++) {
            out += *cell_of(sent, a, b) != 0;
            in += *cell_of(sent, b, a) != 0;
            if (row->laws & MUTUAL)
                assert_int_equal(*cell_of(sent, a, b) != 0, *cell_of(sent, b, a) != 0);
        }
        if (row->laws & MATCHING)
            assert_true(out <= 1 && in <= 1);
        for (uint32_t b = 0; b < sent->n && row->laws & SHARES; b++)
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

static void run_schedule(const struct row *row, const struct pattern_plan *plan, uint32_t n,
                         uint32_t phase, struct totals *totals)
{
    struct schedule_sim *sim = schedule_sim_make(plan, phase, n, n + phase);

    assert_int_equal(pattern_verifies(plan), !(row->laws & KERNEL));
    assert_int_equal(pattern_iterations(plan) > 0, (row->laws & KERNEL) != 0);
    mix(totals, pattern_iterations(plan));
    for (uint32_t rank = 0; rank < n; rank++) {
        assert_sums(plan, phase, rank);
        mix_schedule(totals, plan, phase, rank, schedule_sim_schedule(sim, rank));
    }
    if (!schedule_sim_run(sim, 2))
        fail_msg("%s of %u ranks is stuck", row->request.name, n);
    if (!(row->laws & KERNEL))
        schedule_sim_verify(sim);
    schedule_sim_free(sim);
}

/* --- laws of a plan ------------------------------------------------------------------------- */

static void check_sums(const struct row *row, const struct matrix *all)
{
    for (uint32_t a = 0; a < all->n; a++) {
        uint64_t sent[2] = {0}, received[2] = {0};

        for (uint32_t b = 0; b < all->n; b++) {
            if (row->laws & ALL_PAIRS)
                assert_true(*cell_of(all, a, b) == (a != b));
            sent[0] += *cell_of(all, 0, b);
            sent[1] += *cell_of(all, a, b);
            received[0] += *cell_of(all, b, 0);
            received[1] += *cell_of(all, b, a);
        }
        assert_true(!(row->laws & FAIR) || (sent[1] == sent[0] && received[1] == received[0]));
    }
}

/* Returns the phases; 0: no plan, as some patterns want a power of two or a square of ranks. */
static uint32_t check_plan(const struct row *row, uint32_t n, uint64_t bytes, struct totals *totals)
{
    struct pattern_request request = row->request;
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
    assert_int_equal(pattern_in_turn(plan), (row->laws & IN_TURN) != 0);
    for (uint32_t phase = 0; phase < phases; phase++) {
        struct matrix sent = side_of(plan, n, phase, PATTERN_SENDS, totals);
        struct matrix received = side_of(plan, n, phase, PATTERN_RECEIVES, totals);

        assert_memory_equal(sent.cell, received.cell, sizeof(uint64_t) * n * n);
        check_cells(row, &sent);
        if (row->laws & CYCLE)
            check_cycle(plan, n, phase);
        for (size_t i = 0; i < (size_t)n * n; i++)
            all.cell[i] += sent.cell[i] != 0;
        pattern_phase_name(plan, phase, text, sizeof(text));
        mix_text(totals, text);
        if (pattern_is_scheduled(plan))
            run_schedule(row, plan, n, phase, totals);
        free(received.cell);
        free(sent.cell);
    }
    check_sums(row, &all);
    free(all.cell);
    pattern_plan_free(plan);
    return phases;
}

/* Sizes: none, one byte, fewer than ranks, odd, and many of no common divisor; of few ranks also
 * one that is cut into pieces. Returns whether all is as the row says. */
static bool check_row(const struct row *row)
{
    static const uint64_t sizes[] = {0, 1, 13, 250, 4099, 1000004};
    static const uint64_t floats[] = {0, 4, 12, 148, 4012, 1000004};
    const uint64_t *bytes = row->laws & FLOATS ? floats : sizes;
    struct totals all = {.digest = UINT64_C(0xcbf29ce484222325)}, of_16 = {0};
    uint32_t up_to = row->laws >> 16 > 0 ? row->laws >> 16 : long_run() ? 65 : 33, phases = 0;
    bool right;

    for (uint32_t n = 2; n <= up_to; n++) {
        struct totals ignored = {0};

        for (size_t i = 0; i < (row->laws & SIZES ? n == 3 || n == 4 ? 6 : 5 : 1); i++)
            check_plan(row, n, bytes[i], n <= 33 ? &all : &ignored);
    }
    phases = check_plan(row, 16, row->laws & SIZES ? 64 : 0, &of_16);
    right = phases == row->phases && of_16.flows == row->flows && of_16.bytes == row->bytes &&
            all.digest == row->digest;
    if (!right)
        print_error("row %zu: %u, %u, %" PRIu64 ", 0x%" PRIx64 ", .name = \"%s\"\n",
                    (size_t)(row - rows), phases, of_16.flows, of_16.bytes, all.digest,
                    row->request.name);
    return right;
}

static void all_patterns_keep_their_laws(void **state)
{
    unsigned wrong = 0;

    for (size_t i = 0; i < ROWS; i++)
        wrong += !check_row(&rows[i]);
    assert_int_equal(wrong, 0);
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

static void check_large(const struct row *row, uint32_t n, bool counted)
{
    struct pattern_request request = row->request;
    struct pattern_plan *plan = NULL;
    size_t before = bytes_in_use();
    struct schedule schedule;
    struct pattern_flow flow;
    uint32_t last;
    char why[256];

    request.n = n;
    request.bytes = row->laws & SIZES ? 1 << 20 : 0;
    request.class = request.class != NULL ? "D" : NULL;
    if (pattern_plan_make(&plan, &request, why, sizeof(why)) < 0)
        return;
    last = pattern_phases(plan) - 1;
    if (counted && request.draw == NULL)
        assert_in_range(bytes_in_use() - before, 1, 1024);
    for (uint32_t phase = 0; phase <= last; phase += last > 0 ? last : 1) {
        if (row->laws & MATCHING)
            check_partners(plan, n, phase);
        if (row->laws & CYCLE)
            check_cycle(plan, n, phase);
    }
    if ((row->laws & ALL_PAIRS) && (row->laws & MATCHING)) {
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

static void many_ranks_have_small_plans(void **state)
{
    static const uint32_t ranks[] = {1000, 16384, 65535, 65536};
    bool counted = memory_is_counted();

    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < sizeof(ranks) / sizeof(ranks[0]); j++)
            check_large(&rows[i], ranks[j], counted);
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

struct by_hand {
    struct pattern_request request;
    uint32_t phase;
    const char *name;
    const char *to[10]; /* by rank; NULL: not looked at */
};

static const uint32_t first_device[] = {4, 0, 2}, second_device[] = {1, 3};
static const struct pattern_ranks devices[] = {{first_device, 3}, {second_device, 2}};
static const uint32_t even_ranks[] = {0, 2, 4, 6}, odd_ranks[] = {7, 5, 1}, rank_3[] = {3};
static const struct pattern_ranks parity[] = {{even_ranks, 4}, {odd_ranks, 3}, {rank_3, 1}};
static const uint32_t listed[] = {6, 1, 0, 5, 2, 3}, matrix[] = {1, 0, 2, 0, 0, 3, 0, 1};
static const uint32_t ten[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
static const struct pattern_ranks five_groups[] = {
    {ten, 1}, {ten + 1, 2}, {ten + 3, 3}, {ten + 6, 2}, {ten + 8, 2}};

#define WAY(way, ...) .name = "pairs", .n = 8, .partners = way, __VA_ARGS__
#define GROUPS(some, count) .groups = some, .group_count = count

static const struct by_hand by_hand[] = {
    /* clang-format off */
    {{.name = "aapc", .n = 10}, 2, "distance 3", {"3", "4", "5", "6", "7", "8", "9", "0", "1", "2"}},
    {{.name = "aapc", .n = 5, .order = "pairwise"}, 1, "round 2", {"1", "0", "4", "", "2"}},
    {{.name = "aapc", .n = 16, .order = "xor"}, 4, "mask 5", {"5", "4", "7", "6", "1", "0", "3", "2", "13", "12"}},
    {{.name = "aapc", .n = 4, .order = "naive"}, 0, "all at once", {"1 2 3", "2 3 0", "3 0 1", "0 1 2"}},
    {{.name = "chain", .n = 3}, 0, "chain", {"1", "2", ""}},
    {{.name = "ring", .n = 4}, 0, "natural", {"1 3", "2 0", "3 1", "0 2"}},
    {{.name = "pairs", .n = 7}, 0, "neighbours", {"1", "0", "3", "2", "5", "4", ""}},
    {{.name = "pairs", .n = 5, .directions = "forward"}, 0, "neighbours", {"1", "", "3", "", ""}},
    {{WAY("neighbours", .count = 3)}, 0, "neighbours", {"1", "0", "3", "2", "5", "4", "", ""}},
    {{WAY("halves", .count = 1)}, 0, "halves", {"4", "", "", "", "0", "", "", ""}},
    {{.name = "pairs", .n = 7, .partners = "halves"}, 0, "halves", {"3", "4", "5", "0", "1", "2", ""}},
    {{WAY("shift", .shift = 2, .count = 3)}, 0, "shift 2", {"2", "3", "0", "1", "6", "", "4", ""}},
    {{WAY("inside", GROUPS(parity, 3))}, 0, "inside groups", {"2", "", "0", "", "6", "7", "4", "5"}},
    {{WAY("inside", GROUPS(parity, 2), .count = 2)}, 0, "inside groups", {"2", "", "0", "", "6", "", "4", ""}},
    {{WAY("across", GROUPS(parity, 3))}, 0, "across groups", {"7", "4", "5", "", "1", "2", "", "0"}},
    {{WAY("across", GROUPS(parity, 2), .count = 1)}, 0, "across groups", {"7", "", "", "", "", "", "", "0"}},
    /* Consecutive pairs of groups; the fifth is left out. */
    {{.name = "pairs", .n = 10, .partners = "across", GROUPS(five_groups, 5)}, 0, "across groups",
     {"1", "0", "", "6", "7", "", "3", "4", "", ""}},
    {{WAY("list", .list = {listed, 6})}, 0, "list", {"5", "6", "3", "2", "", "0", "1", ""}},
    {{WAY("list", .list = {listed, 6}, .count = 2)}, 0, "list", {"5", "6", "", "", "", "0", "1", ""}},
    {{WAY("list", .list = {listed, 6}, .directions = "forward")}, 0, "list", {"5", "", "3", "", "", "", "1", ""}},
    {{WAY("random", .seed = 1)}, 0, "random", {"7", "2", "1", "5", "6", "3", "4", "0"}},
    {{.name = "flows", .n = 5, .list = {matrix, 8}}, 0, "flows", {"3 1", "0", "0", "", ""}},
    {{.name = "random", .n = 4, .count = 2}, 1, "random 2", {NULL}},
    /* RFC 2889, the tables of 5.1.3 and 5.4.3, whose ports are numbered from 1. */
    {{.name = "full_mesh", .n = 6}, 0, "all at once",
     {"1 2 3 4 5", "2 3 4 5 0", "3 4 5 0 1", "4 5 0 1 2", "5 0 1 2 3", "0 1 2 3 4"}},
    {{.name = "partial_mesh", .n = 8}, 0, "4 to 4", {"4 5 6 7", "5 6 7 4", "6 7 4 5", "7 4 5 6", "", "", "", ""}},
    {{.name = "partial_mesh", .n = 5}, 0, "2 to 2", {"2 3", "3 2", "", "", ""}},
    /* 5.3: two devices, and all traffic between them. */
    {{.name = "partial_mesh", .n = 6, GROUPS(devices, 2), .directions = "both"}, 0, "3 to 2",
     {"3 1", "4 0 2", "1 3", "0 2 4", "1 3", ""}},
    /* 5.2, and RFC 8239, 3.2: many to one, and the next port in the next iteration. */
    {{.name = "incast", .n = 4, .directions = "both"}, 0, "3 to 1", {"3", "3", "3", "0 1 2"}},
    {{.name = "incast", .n = 4, .rotate = true}, 0, "3 to 1, moved by 0", {"3", "3", "3", ""}},
    {{.name = "incast", .n = 4, .rotate = true}, 3, "3 to 1, moved by 3", {"2", "2", "", "2"}},
    {{.name = "incast", .n = 5, .receivers = 2}, 0, "3 to 2", {"3 4", "4 3", "3 4", "", ""}},
    {{.name = "fanout", .n = 4}, 0, "1 to 3", {"1 2 3", "", "", ""}},
    {{.name = "fanout", .n = 4, .senders = 3}, 0, "3 to 1", {"3", "3", "3", ""}},
    /* RFC 8239, 5.2: two groups of nine ports; the last iteration begins with the last port. */
    {{.name = "head_of_line", .n = 9}, 0, "2 x 4", {"2 3", "3", "", "", "6 7", "7", "", "", ""}},
    {{.name = "head_of_line", .n = 9, .rotate = true}, 8, "2 x 4, moved by 8",
     {"2", "", "", "5 6", "6", "", "", "", "1 2"}},
    {{.name = "head_of_line", .n = 9, .count = 1}, 0, "1 x 4", {"2 3", "3", "", "", "", "", "", "", ""}},
    {{.name = "head_of_line", .n = 8, .receivers = 4}, 0, "1 x 6", {"2 3 4 5", "5", "", "", "", "", "", ""}},
    /* Schedules: the barrier's flows are among them (1, 2, 4 and 8 ahead). */
    {{.name = "aapc", .n = 5, .local = true}, 0, "4 phases", {"1 2 3 4", "2 3 4 0"}},
    {{.name = "pairs", .n = 9, .local = true}, 0, "neighbours", {"1 2 4 8", "0 2 3 5", "3 4 6 1"}},
    {{.name = "reduce_scatter", .n = 3}, 0, "reduce_scatter recursive-halving", {NULL}},
    {{.name = "exchange", .n = 3}, 0, "exchange", {NULL}},
    {{.name = "pingping", .n = 3}, 0, "pingping 0 1", {NULL}},
    {{.name = "nas_cg", .n = 4, .class = "C"}, 0, "nas_cg class C", {NULL}},
    {{.name = "hpl", .n = 12, .matrix = 1000}, 0, "hpl 3 x 4", {NULL}},
    {{.name = "halo", .n = 27, .dimensions = 3}, 0, "halo 3 x 3 x 3", {NULL}},
    {{.name = "halo", .n = 12}, 0, "halo 4 x 3 x 1", {NULL}},
    /* clang-format on */
};

static void plans_are_those_worked_out_by_hand(void **state)
{
    for (size_t i = 0; i < sizeof(by_hand) / sizeof(by_hand[0]); i++) {
        const struct by_hand *expected = &by_hand[i];
        struct pattern_plan *plan = plan_of(&expected->request);
        char name[64];

        pattern_phase_name(plan, expected->phase, name, sizeof(name));
        assert_string_equal(name, expected->name);
        for (uint32_t rank = 0; rank < 10 && expected->to[rank] != NULL; rank++)
            assert_string_equal(sends_to(plan, expected->phase, rank), expected->to[rank]);
        pattern_plan_free(plan);
    }
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

int main(void)
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
        cmocka_unit_test(room_limits_what_is_written),
    };

    return cmocka_run_group_tests_name("patterns", tests, NULL, NULL);
}
