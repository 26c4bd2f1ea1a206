/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Application kernels: none is stuck, and messages have the sizes that the benchmarks' sources
 * give, worked out here by hand (doc/reference/patterns.md).
 */
#include "schedule_sim.h"
#include "test_patterns_util.h"

#include <inttypes.h>
#include <string.h>

static struct pattern_plan *kernel_of(const char *name, uint32_t n, const char *class)
{
    return plan_of(&(struct pattern_request){.name = name, .n = n, .class = class});
}

/* What a rank sends in one iteration. */
struct traffic {
    uint64_t messages;
    uint64_t bytes;
    uint64_t most; /* bytes of a message */
    double operations;
};

static struct traffic traffic_of(const struct pattern_plan *plan, uint32_t rank)
{
    struct traffic traffic = {0};
    struct schedule schedule;

    assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
    for (size_t i = 0; i < schedule.count; i++) {
        const struct schedule_op *op = &schedule.ops[i];

        if (op->action == SCHEDULE_WORK)
            traffic.operations += (double)op->from;
        if (op->action != SCHEDULE_SEND)
            continue;
        traffic.messages++;
        traffic.bytes += op->bytes;
        traffic.most = op->bytes > traffic.most ? op->bytes : traffic.most;
    }
    schedule_free(&schedule);
    return traffic;
}

static struct traffic traffic_in(const char *name, uint32_t n, const char *class, uint32_t rank)
{
    struct pattern_plan *plan = kernel_of(name, n, class);
    struct traffic traffic = traffic_of(plan, rank);

    pattern_plan_free(plan);
    return traffic;
}

/* How many messages of this size a rank sends to another. */
static uint64_t sent_to(const struct pattern_plan *plan, uint32_t rank, uint32_t peer,
                        uint64_t bytes)
{
    struct schedule schedule;
    uint64_t count = 0;

    assert_int_equal(pattern_schedule(plan, 0, rank, &schedule), 0);
    for (size_t i = 0; i < schedule.count; i++)
        count += schedule.ops[i].action == SCHEDULE_SEND && schedule.ops[i].peer == peer &&
                 schedule.ops[i].bytes == bytes;
    schedule_free(&schedule);
    return count;
}

/* --- none is stuck -------------------------------------------------------------------------- */

static void run(const struct pattern_request *request)
{
    struct pattern_plan *plan = plan_of(request);
    struct schedule_sim *sim = schedule_sim_make(plan, 0, request->n, 5);

    if (!schedule_sim_run(sim, 2))
        fail_msg("%s of %u ranks is stuck", request->name, request->n);
    if (pattern_verifies(plan))
        schedule_sim_verify(sim);
    schedule_sim_free(sim);
    pattern_plan_free(plan);
}

static void none_is_stuck(void **state)
{
    static const char *const powers[] = {"nas_ep", "nas_is", "nas_cg", "nas_mg", "nas_ft"};
    static const char *const squares[] = {"nas_bt", "nas_sp"};

    for (size_t i = 0; i < 5; i++)
        for (uint32_t n = 2; n <= 128; n *= 2)
            run(&(struct pattern_request){.name = powers[i], .n = n, .class = "S"});
    run(&(struct pattern_request){.name = "nas_mg", .n = 1024, .class = "S"});
    run(&(struct pattern_request){.name = "nas_ft", .n = 1024, .class = "W"});
    for (uint32_t n = 2; n <= 16; n *= 2)
        run(&(struct pattern_request){.name = "nas_lu", .n = n, .class = "S"});
    for (uint32_t n = 8; n <= 64; n *= 2)
        run(&(struct pattern_request){.name = "nas_lu", .n = n, .class = "W"});
    for (size_t i = 0; i < 2; i++)
        for (uint32_t p = 2; p <= 8; p++)
            run(&(struct pattern_request){
                .name = squares[i], .n = p * p, .class = p <= 4 ? "S" : "W"});
    run(&(struct pattern_request){.name = "nas_ep", .n = 7, .class = "S"});
    run(&(struct pattern_request){.name = "hpl", .n = 81, .matrix = 1000, .block = 7});
    for (uint32_t n = 2; n <= 33; n++) {
        run(&(struct pattern_request){.name = "hpl", .n = n, .matrix = 1000, .block = 7});
        for (uint32_t dimensions = 2; dimensions <= 3; dimensions++)
            run(&(struct pattern_request){
                .name = "halo", .n = n, .dimensions = dimensions, .bytes = 123});
    }
}

static void kernels_verify_nothing_and_count_iterations(void **state)
{
    static const struct {
        const char *name, *class;
        uint32_t n, iterations;
    } some[] = {
        {"nas_ep", "D", 4, 1},   {"nas_is", "A", 4, 10},  {"nas_cg", "A", 4, 15},
        {"nas_cg", "B", 4, 75},  {"nas_mg", "A", 4, 4},   {"nas_mg", "B", 4, 20},
        {"nas_ft", "A", 4, 6},   {"nas_ft", "B", 4, 20},  {"nas_lu", "A", 4, 250},
        {"nas_sp", "A", 4, 400}, {"nas_bt", "A", 4, 200}, {"nas_bt", "D", 4, 250},
    };
    struct pattern_plan *plan;

    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
        plan = kernel_of(some[i].name, some[i].n, some[i].class);
        assert_true(pattern_is_scheduled(plan));
        assert_false(pattern_verifies(plan));
        assert_int_equal(pattern_iterations(plan), some[i].iterations);
        pattern_plan_free(plan);
    }
    plan = kernel_of("nas_cg", 4, "C");
    assert_phase_name(plan, 0, "nas_cg class C");
    pattern_plan_free(plan);
    plan = plan_of(&(struct pattern_request){.name = "hpl", .n = 12, .matrix = 1000, .block = 128});
    assert_int_equal(pattern_iterations(plan), 8);
    assert_phase_name(plan, 0, "hpl 3 x 4");
    pattern_plan_free(plan);
}

/* --- sizes ---------------------------------------------------------------------------------- */

/* na = 14000 over 2 x 2 ranks: 7000 doubles, 26 times to the other of the row and, off the
 * diagonal, 26 times to the transposed one; 52 inner products of 8 bytes and one of 16. */
static void cg_class_a(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_cg", 4, "A");
    struct traffic first = traffic_of(plan, 0), second = traffic_of(plan, 1);

    assert_int_equal(first.most, 56000);
    assert_int_equal(first.messages, 26 + 52 + 1);
    assert_int_equal(first.bytes, 26 * 56000 + 52 * 8 + 16);
    assert_int_equal(sent_to(plan, 0, 1, 56000), 26);
    assert_int_equal(second.messages, 26 + 26 + 52 + 1);
    assert_int_equal(sent_to(plan, 1, 2, 56000), 26);
    /* 2 x 14000 x (3 + 132 + 25 x 137 + 3) / 4, each product rounded down. */
    assert_true(first.operations <= 7000.0 * 3563 && first.operations > 7000.0 * 3563 - 26);
    pattern_plan_free(plan);
}

/* 8 ranks are 2 x 4: rows of 7000 doubles, of which each rank of two keeps 3500; the first of two
 * exchanges gives the other half away, and 3500 go to the transposed rank. */
static void cg_of_eight(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_cg", 8, "A");

    assert_int_equal(traffic_of(plan, 1).most, 28000);
    assert_int_equal(sent_to(plan, 1, 0, 28000), 26);
    assert_int_equal(sent_to(plan, 1, 3, 28000), 26);
    /* Rank 3 is pair 1 of row 0: its opposite is pair 0 of row 1, on the same side: 2 x 2 + 1. */
    assert_int_equal(sent_to(plan, 3, 5, 28000), 26);
    assert_int_equal(sent_to(plan, 5, 3, 28000), 26);
    pattern_plan_free(plan);
}

/* 256 x 256 x 128 points of 16 bytes: of 4 ranks each has 33,554,432 bytes and sends a quarter of
 * them to each other one; the checksum of 16 bytes goes up a tree. */
static void ft_class_a(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_ft", 4, "A");

    assert_int_equal(traffic_of(plan, 0).messages, 3);
    assert_int_equal(traffic_of(plan, 0).bytes, 3 * 8388608);
    assert_int_equal(traffic_of(plan, 1).messages, 4);
    assert_int_equal(sent_to(plan, 1, 0, 16), 1);
    assert_int_equal(sent_to(plan, 3, 1, 8388608), 1);
    pattern_plan_free(plan);
    /* 256 ranks on 128 planes are 128 x 2: the two of a row swap halves of 512 KiB, then the 128 of
     * a column their 128th parts. */
    plan = kernel_of("nas_ft", 256, "A");
    assert_int_equal(sent_to(plan, 0, 1, 262144), 1);
    assert_int_equal(sent_to(plan, 0, 2, 4096), 1);
    assert_int_equal(sent_to(plan, 0, 128, 4096), 1);
    assert_int_equal(traffic_of(plan, 0).messages, 1 + 127);
    pattern_plan_free(plan);
}

/* 1024 buckets and 5 test keys of 4 bytes; 2^23 keys: of 4 ranks each has 2^21 and sends a quarter
 * to each other one. Class S has 512 buckets. */
static void is_class_a(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_is", 4, "A");

    assert_int_equal(traffic_of(plan, 0).messages, 2 + 3 + 3);
    assert_int_equal(sent_to(plan, 0, 1, 4116), 1);
    assert_int_equal(sent_to(plan, 0, 2, 4116), 1);
    assert_int_equal(sent_to(plan, 0, 3, 4), 1);
    assert_int_equal(sent_to(plan, 0, 3, 2097152), 1);
    pattern_plan_free(plan);
    plan = kernel_of("nas_is", 2, "S");
    assert_int_equal(sent_to(plan, 0, 1, 2068), 1);
    pattern_plan_free(plan);
}

static void ep_class_a(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_ep", 2, "A");
    struct traffic traffic = traffic_of(plan, 0);

    assert_int_equal(traffic.messages, 3);
    assert_int_equal(traffic.bytes, 8 + 8 + 80);
    assert_true(traffic.operations == 13.34e9);
    pattern_plan_free(plan);
}

/* 8 ranks are 2 x 2 x 2: of 256^3 points a rank has 128^3; the faces are 128 x 128, 130 x 128 and
 * 130 x 130 doubles, three times for each of two neighbours, which are one rank here. The last
 * level with a side of two points has faces of 1, 3 and 9 doubles, twice. */
static void mg_class_a(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_mg", 8, "A");
    struct traffic traffic = traffic_of(plan, 0);

    assert_int_equal(sent_to(plan, 0, 1, 131072), 6);
    assert_int_equal(sent_to(plan, 0, 2, 133120), 6);
    assert_int_equal(sent_to(plan, 0, 4, 135200), 6);
    assert_int_equal(sent_to(plan, 0, 1, 8), 4);
    assert_int_equal(sent_to(plan, 0, 4, 72), 4);
    assert_int_equal(traffic.messages, 6 * (2 + 7 * 3));
    assert_true(traffic.operations == 58.0 * 16777216 / 8);
    pattern_plan_free(plan);
}

/* 64 ranks are 4 x 4 x 4: of two points a side ranks 1 and 3 along each dimension have one. Rank 21
 * is 1, 1, 1: on the way to four points it hands two planes of 3 x 3 to the next rank and one to
 * the one before, along x, y and z; these planes are as large as a face along z. */
static void mg_hands_on(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_mg", 64, "S");

    assert_int_equal(sent_to(plan, 21, 22, 144), 1);
    assert_int_equal(sent_to(plan, 21, 20, 72), 1);
    assert_int_equal(sent_to(plan, 21, 25, 144), 1);
    assert_int_equal(sent_to(plan, 21, 17, 72), 1);
    assert_int_equal(sent_to(plan, 21, 37, 144), 1);
    assert_int_equal(sent_to(plan, 21, 5, 72), 1 + 3);
    /* Of two points its neighbours both ways are rank 3 along a dimension: faces of 1, 3, 9. */
    assert_int_equal(sent_to(plan, 21, 23, 8), 2 * 2);
    assert_int_equal(sent_to(plan, 21, 53, 72), 2 * 2);
    /* Rank 20 is 0, 1, 1: it has nothing of two points, but hands on along y and z. */
    assert_int_equal(sent_to(plan, 20, 21, 144), 0);
    assert_int_equal(sent_to(plan, 20, 22, 8), 0);
    assert_int_equal(sent_to(plan, 20, 24, 144), 1);
    pattern_plan_free(plan);
}

/* 4 ranks are 2 x 2: edges of 31 inner points of 5 doubles for each of 62 inner planes, there and
 * back; then faces of 32 x 64 points with two layers. */
static void lu_class_a(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_lu", 4, "A");

    assert_int_equal(sent_to(plan, 0, 1, 1240), 62);
    assert_int_equal(sent_to(plan, 0, 2, 1240), 62);
    assert_int_equal(sent_to(plan, 3, 1, 1240), 62);
    assert_int_equal(sent_to(plan, 0, 1, 163840), 1);
    assert_int_equal(traffic_of(plan, 0).messages, 2 * 62 + 2);
    /* Rank 1 is at an end of x and at the begin of y: it sends ahead along y, back along x. */
    assert_int_equal(traffic_of(plan, 1).messages, 2 * 62 + 2);
    pattern_plan_free(plan);
}

/* 8 ranks are 4 x 2: 33 points along x are 9, 8, 8, 8, along y 17, 16. */
static void lu_leaves_the_border_alone(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_lu", 8, "W");

    assert_int_equal(sent_to(plan, 0, 1, 16 * 40), 31);
    assert_int_equal(sent_to(plan, 5, 6, 15 * 40), 31);
    assert_int_equal(sent_to(plan, 0, 4, 8 * 40), 31);
    assert_int_equal(sent_to(plan, 1, 5, 8 * 40), 31);
    assert_int_equal(sent_to(plan, 3, 7, 7 * 40), 31);
    assert_int_equal(sent_to(plan, 0, 1, 17 * 33 * 80), 1);
    assert_int_equal(sent_to(plan, 3, 7, 8 * 33 * 80), 1);
    pattern_plan_free(plan);
}

/* 4 ranks have 2 cells of 32^3 each: a face of 32 x 32 points of ten doubles six times; then in
 * each of three directions one stage's message forward and back: BT 33 x 33 points of 30 and 5
 * doubles, SP the 31 x 31 inner points of a cell of 22 and 10. */
static void bt_and_sp_class_a(void **state)
{
    struct traffic bt = traffic_in("nas_bt", 4, "A", 0), sp = traffic_in("nas_sp", 4, "A", 3);

    assert_int_equal(bt.messages, 6 + 3 * 2);
    assert_int_equal(bt.most, 261360);
    assert_int_equal(bt.bytes, 6 * 81920 + 3 * (261360 + 43560));
    assert_int_equal(sp.messages, 6 + 3 * 2);
    assert_int_equal(sp.most, 169136);
    assert_int_equal(sp.bytes, 6 * 81920 + 3 * (169136 + 76880));
    /* Nine ranks: two messages a sweep. */
    assert_int_equal(traffic_in("nas_sp", 9, "A", 4).messages, 6 + 3 * 2 * 2);
}

/* 64 points over 3 are 22, 21, 21. Rank 4 of 3 x 3 has the cells (1, 1, 0), (2, 0, 1), (0, 2, 2):
 * it solves along x in the third, the first, the second. Inner faces: 20 x 20, 21 x 21, 21 x 21. */
static void sp_of_nine(void **state)
{
    struct pattern_plan *plan = kernel_of("nas_sp", 9, "A");

    assert_int_equal(sent_to(plan, 4, 5, 400 * 176), 1);
    assert_int_equal(sent_to(plan, 4, 5, 441 * 176), 1);
    assert_int_equal(sent_to(plan, 4, 3, 441 * 80), 2);
    /* Faces ahead of the third and the first cell, back of the first and the second. */
    assert_int_equal(sent_to(plan, 4, 5, (21 * 21 + 21 * 22) * 80), 1);
    assert_int_equal(sent_to(plan, 4, 3, (21 * 22 + 22 * 21) * 80), 1);
    pattern_plan_free(plan);
}

/* In the third direction neighbours are on the diagonal: rank 4 of 3 x 3 has 0 to 8 but itself. */
static void bt_meets_the_diagonal(void **state)
{
    static const uint32_t beside[] = {3, 5, 1, 7, 6, 2};
    struct pattern_plan *plan = kernel_of("nas_bt", 9, "W");

    for (size_t i = 0; i < 6; i++)
        assert_int_equal(sent_to(plan, 4, beside[i], 2 * 8 * 8 * 80), 1);
    assert_int_equal(sent_to(plan, 4, 0, 2 * 8 * 8 * 80), 0);
    assert_int_equal(sent_to(plan, 4, 8, 2 * 8 * 8 * 80), 0);
    pattern_plan_free(plan);
}

/* 2 x 3 ranks; half of 1200 is 600: panels of (300 + 100 + 1) x 100 + 1 doubles go along rows; 100
 * rows of 200 doubles are halved over a column of two. */
static void hpl_of_six(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "hpl", .n = 6, .matrix = 1200, .block = 100});

    assert_int_equal(sent_to(plan, 0, 1, 320808), 1);
    assert_int_equal(sent_to(plan, 1, 2, 320808), 1);
    assert_int_equal(sent_to(plan, 2, 0, 320808), 0);
    assert_int_equal(sent_to(plan, 0, 3, 80000), 2); /* spread, rolled */
    assert_int_equal(sent_to(plan, 3, 0, 80000), 1);
    assert_true(traffic_of(plan, 5).operations == (2.0 / 3 * 1200 + 1.5) * 1200 * 100 / 6);
    pattern_plan_free(plan);
}

/* Three rows of ranks roll with the neighbours in turns: rank 0 of a column gets from 1 and then
 * from 2, rank 2 from 0 and then from 1; each has 100 of 3 x 100 doubles. */
static void hpl_rolls(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "hpl", .n = 9, .matrix = 180, .block = 10});

    assert_int_equal(sent_to(plan, 0, 3, 800), 1 + 1); /* spread and rolled */
    assert_int_equal(sent_to(plan, 0, 6, 800), 1 + 1);
    assert_int_equal(sent_to(plan, 3, 0, 800), 1);
    assert_int_equal(sent_to(plan, 3, 6, 800), 1);
    assert_int_equal(sent_to(plan, 6, 0, 800), 1);
    assert_int_equal(sent_to(plan, 6, 3, 800), 1);
    pattern_plan_free(plan);
}

static void halo_has_edges(void **state)
{
    struct pattern_plan *plan =
        plan_of(&(struct pattern_request){.name = "halo", .n = 27, .dimensions = 3, .bytes = 10});

    assert_phase_name(plan, 0, "halo 3 x 3 x 3");
    assert_int_equal(traffic_of(plan, 13).messages, 6);
    assert_int_equal(traffic_of(plan, 0).messages, 3);
    assert_int_equal(sent_to(plan, 13, 4, 10), 1);
    pattern_plan_free(plan);
    plan = plan_of(&(struct pattern_request){.name = "halo", .n = 12, .bytes = 10});
    assert_phase_name(plan, 0, "halo 4 x 3 x 1");
    pattern_plan_free(plan);
}

static void sums_are_those_of_the_ops(void **state)
{
    static const char *const names[] = {"nas_ep", "nas_is", "nas_cg", "nas_mg",
                                        "nas_ft", "nas_bt", "hpl",    "halo"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        for (uint32_t n = 4; n <= 1024; n *= 16) {
            bool nas = strncmp(names[i], "nas", 3) == 0;
            struct pattern_plan *plan = kernel_of(names[i], n, nas ? "C" : NULL);

            for (uint32_t rank = 0; rank < n; rank += 1 + n / 8)
                assert_sums(plan, 0, rank);
            pattern_plan_free(plan);
        }
}

/* --- refusals and many ranks ---------------------------------------------------------------- */

static void wrong_requests_are_refused(void **state)
{
    static const struct refusal refusals[] = {
        {{.name = "nas_cg", .n = 6},
         "nas_cg needs a power of two of ranks, not 6 (the next lower is 4)"},
        {{.name = "nas_bt", .n = 8},
         "nas_bt needs a square number of ranks, not 8 (the next lower is 4)"},
        {{.name = "nas_bt", .n = 36},
         "nas_bt: 12 points over 6 ranks are fewer than the 3 a rank that it needs: take fewer "
         "ranks or a larger class"},
        {{.name = "nas_lu", .n = 32},
         "nas_lu: 12 points over 8 ranks are fewer than the 3 a rank that it needs: take fewer "
         "ranks or a larger class"},
        {{.name = "nas_ft", .n = 8192},
         "nas_ft: this class has work for at most 4096 ranks, not for 8192: take fewer ranks or a "
         "larger class"},
        {{.name = "nas_ft", .n = 2048, .class = "W"},
         "nas_ft: this class has work for at most 1024 ranks, not for 2048: take fewer ranks or a "
         "larger class"},
        {{.name = "nas_is", .n = 256},
         "nas_is: this class has work for at most 128 ranks, not for 256: take fewer ranks or a "
         "larger class"},
        {{.name = "nas_ep", .n = 257},
         "nas_ep: this class has work for at most 256 ranks, not for 257: take fewer ranks or a "
         "larger class"},
        {{.name = "nas_mg", .n = 65536},
         "nas_mg: this class has work for at most 32768 ranks, not for 65536: take fewer ranks or "
         "a larger class"},
        {{.name = "nas_is", .n = 2, .class = "E"},
         "class \"E\" is not known: it is one of S, W, A, B, C, D"},
        {{.name = "nas_is", .n = 2, .bytes = 8}, "nas_is takes no bytes"},
        {{.name = "allreduce", .n = 2, .class = "A"}, "allreduce takes no class"},
        {{.name = "hpl", .n = 2, .matrix = 100},
         "hpl: block 128 is more than the matrix has columns, 100"},
        {{.name = "hpl", .n = 2, .matrix = 100000001},
         "hpl: matrix 100000001 is more than 100000000"},
        {{.name = "hpl", .n = 2, .matrix = 100000000, .block = 100000000},
         "hpl: with matrix 100000000 and block 100000000 each of 2 ranks would compute more than "
         "2^63 operations in an iteration: take a smaller block"},
        {{.name = "halo", .n = 2, .dimensions = 4}, "halo: dimensions 4: it is 2 or 3"},
    };

    assert_refused(refusals, sizeof(refusals) / sizeof(refusals[0]));
}

/* The largest matrix with a block whose operations are just below 2^63 a rank. */
static void largest_hpl_is_counted(void **state)
{
    struct pattern_plan *plan = plan_of(
        &(struct pattern_request){.name = "hpl", .n = 2, .matrix = 100000000, .block = 2767});

    assert_true(traffic_of(plan, 1).operations > 0x1p62);
    assert_true(traffic_of(plan, 1).operations < 0x1p63);
    pattern_plan_free(plan);
}

static void many_ranks_have_small_plans(void **state)
{
    static const char *const names[] = {"nas_ep", "nas_cg", "nas_mg", "nas_ft",
                                        "nas_bt", "nas_sp", "hpl",    "halo"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        bool nas = strncmp(names[i], "nas", 3) == 0;
        bool square = strcmp(names[i], "nas_bt") == 0 || strcmp(names[i], "nas_sp") == 0;
        struct pattern_plan *plan = kernel_of(names[i], square ? 16384 : 65536, nas ? "D" : NULL);

        assert_true(traffic_of(plan, 12345).messages > 0);
        pattern_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(none_is_stuck),
        cmocka_unit_test(kernels_verify_nothing_and_count_iterations),
        cmocka_unit_test(cg_class_a),
        cmocka_unit_test(cg_of_eight),
        cmocka_unit_test(ft_class_a),
        cmocka_unit_test(is_class_a),
        cmocka_unit_test(ep_class_a),
        cmocka_unit_test(mg_class_a),
        cmocka_unit_test(mg_hands_on),
        cmocka_unit_test(lu_class_a),
        cmocka_unit_test(lu_leaves_the_border_alone),
        cmocka_unit_test(bt_and_sp_class_a),
        cmocka_unit_test(sp_of_nine),
        cmocka_unit_test(bt_meets_the_diagonal),
        cmocka_unit_test(hpl_of_six),
        cmocka_unit_test(hpl_rolls),
        cmocka_unit_test(largest_hpl_is_counted),
        cmocka_unit_test(halo_has_edges),
        cmocka_unit_test(sums_are_those_of_the_ops),
        cmocka_unit_test(wrong_requests_are_refused),
        cmocka_unit_test(many_ranks_have_small_plans),
    };

    return cmocka_run_group_tests_name("kernels", tests, NULL, NULL);
}
