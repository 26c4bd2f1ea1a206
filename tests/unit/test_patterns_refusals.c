/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a pattern can't do is refused in one sentence that names it.
 */
#include "test_patterns_util.h"

#include <errno.h>
#include <string.h>

static const bool yes = true, no = false;

static const uint32_t self[] = {0, 1, 5, 5}, twice[] = {0, 1, 2, 0}, beyond[] = {0, 8};
static const uint32_t ranks[] = {0, 1, 2, 3, 4, 5, 6, 7};
static const uint32_t fan[] = {0, 1, 0, 2};
static const uint32_t shares[] = {700000000, 600000000, 1000000000, 0};
static const uint32_t twins[] = {3, 3, 1, 2, 2, 1, 1, 2};

static const struct pattern_ranks overlapping[] = {{ranks, 4}, {ranks + 3, 4}};
static const struct pattern_ranks empty_second[] = {{ranks, 4}, {ranks + 4, 0}};
static const struct pattern_ranks singles[] = {{ranks, 1}, {ranks + 1, 1}};
static const struct pattern_ranks out_of_range[] = {{ranks, 4}, {beyond + 1, 1}};
static const struct pattern_ranks three_and_five[] = {{ranks, 3}, {ranks + 3, 5}};

#define PAIRS(...)                                                                                 \
    {                                                                                              \
        .name = "pairs", .n = 8, __VA_ARGS__                                                       \
    }

static const struct refusal refusals[] = {
    {{.n = 8}, "the pattern has no name"},
    {{.name = "star", .n = 8},
     "pattern \"star\" is not known: it is one of chain, pairs, aapc, ring, random, full_mesh, "
     "incast, fanout, partial_mesh, head_of_line, flows, pingpong, pingping, sendrecv, exchange, "
     "bcast, reduce, allreduce, reduce_scatter, allgather, "
     "allgatherv, alltoall, alltoallv, barrier, nas_ep, nas_is, nas_cg, nas_mg, nas_ft, nas_lu, "
     "nas_sp, nas_bt, hpl, halo"},
    {{.name = "chain", .n = 0}, "chain: 0 ranks: a pattern needs 2 to 65536"},
    {{.name = "chain", .n = 1}, "chain: 1 rank: a pattern needs 2 to 65536"},
    {{.name = "aapc", .n = 65537}, "aapc: 65537 ranks: a pattern needs 2 to 65536"},

    {{.name = "chain", .n = 8, .order = "shift"}, "chain takes no order"},
    {{.name = "chain", .n = 8, .partners = "halves"}, "chain takes no partners"},
    {{.name = "aapc", .n = 8, .directions = "both"}, "aapc takes no directions"},
    {{.name = "aapc", .n = 8, .forward = true}, "aapc takes no forward"},
    {{.name = "ring", .n = 8, .count = 1, .shift = 1}, "ring takes no shift"},
    {{.name = "aapc", .n = 8, .count = 1}, "aapc takes no count"},
    {{.name = "pairs", .n = 8, .natural = &yes}, "pairs takes no natural"},
    {{.name = "ring", .n = 8, .list = {ranks, 8}}, "ring takes no list"},
    {{.name = "chain", .n = 8, .groups = singles, .group_count = 2}, "chain takes no groups"},

    {{.name = "aapc", .n = 8, .order = "zigzag"},
     "order \"zigzag\" is not known: it is one of shift, pairwise, xor, naive"},
    {{.name = "aapc", .n = 12, .order = "xor"}, "order xor needs a power of two of ranks, not 12"},

    {{.name = "ring", .n = 8, .natural = &no},
     "ring has no phase: it needs natural, or a count of at least 1"},
    {{.name = "ring", .n = 8, .count = 65537}, "ring: count 65537 is more than 65536"},
    {{.name = "aapc", .n = 8, .draw = "hpcc"}, "aapc takes no random_generator"},
    {{.name = "ring", .n = 8, .count = 1, .draw = "fair"},
     "random_generator \"fair\" is not known: it is one of uniform, hpcc"},
    {{.name = "ring", .n = 65536, .count = 300, .draw = "hpcc"},
     "ring: draw hpcc keeps its rings, of 16777216 ranks in total at most: 300 rings of 65536"},
    {{.name = "ring", .n = 8, .directions = "backward"},
     "directions \"backward\" is not known: it is one of both, forward"},

    {{.name = "random", .n = 8}, "random: count 0: it is how many patterns are drawn, 1 to 65536"},
    {{.name = "random", .n = 8, .count = 65537},
     "random: count 65537: it is how many patterns are drawn, 1 to 65536"},
    {{.name = "random", .n = 8, .count = 1, .degree = 17}, "random: degree 17 is more than 16"},
    {{.name = "ring", .n = 8, .count = 1, .degree = 1}, "ring takes no degree"},

    {{.name = "flows", .n = 8}, "flows needs a list of at least one flow"},
    {{.name = "flows", .n = 8, .list = {ranks, 3}}, "list: 3 ranks do not make flows"},
    {{.name = "flows", .n = 3, .list = {ranks, 4}}, "list: there is no rank 3 among 3"},
    {{.name = "flows", .n = 8, .list = {twins, 2}}, "list: a flow from rank 3 to itself"},
    {{.name = "flows", .n = 8, .list = {twins + 2, 6}},
     "list: duplicate flow from rank 1 to rank 2"},
    {{.name = "flows", .n = 8, .list = {ranks, 4}, .shares = shares, .share_count = 1},
     "shares: 1 of them for 2 flows"},
    {{.name = "flows", .n = 8, .list = {fan, 4}, .shares = shares, .share_count = 2},
     "shares: those of rank 0 come to 130 %: 100 % at most"},
    {{.name = "flows", .n = 8, .list = {fan, 4}, .shares = shares + 2, .share_count = 2},
     "shares: those of rank 0 come to 100 %, which leaves nothing for its other flows"},
    {{.name = "incast", .n = 8, .receivers = 8},
     "receivers 8 of 8 ranks: 1 to 7, so that one is left"},
    {{.name = "fanout", .n = 8, .senders = 9}, "senders 9 of 8 ranks: 1 to 7, so that one is left"},
    {{.name = "incast", .n = 8, .senders = 1}, "incast takes no senders"},
    {{.name = "incast", .n = 8, .load_of = "switch"},
     "load_of \"switch\" is not known: it is one of senders, receivers"},
    {{.name = "partial_mesh", .n = 8, .directions = "backward"},
     "directions \"backward\" is not known: it is one of forward, both"},
    {{.name = "partial_mesh", .n = 8, .groups = singles, .group_count = 1},
     "partial_mesh goes from one group to another: 2 groups, not 1"},
    {{.name = "partial_mesh", .n = 8, .groups = overlapping, .group_count = 2},
     "groups: duplicate rank 3"},
    {{.name = "partial_mesh", .n = 8, .groups = empty_second, .group_count = 2},
     "groups: group 1 (from 0) is empty"},
    {{.name = "partial_mesh", .n = 8, .groups = out_of_range, .group_count = 2},
     "groups: there is no rank 8 among 8"},
    {{.name = "partial_mesh", .n = 8, .groups = singles, .group_count = 2, .rotate = true},
     "partial_mesh with groups takes no rotate"},
    {{.name = "full_mesh", .n = 8, .rotate = true}, "full_mesh takes no rotate"},
    {{.name = "head_of_line", .n = 3},
     "head_of_line: a group of 2 senders and 2 receivers needs more than 3 ranks"},
    {{.name = "head_of_line", .n = 8, .receivers = 1},
     "head_of_line: receivers 1: one is congested and one is not, so that a group has at least 2"},
    {{.name = "head_of_line", .n = 8, .receivers = UINT32_MAX},
     "head_of_line: a group of 2 senders and 4294967295 receivers needs more than 8 ranks"},
    {{.name = "head_of_line", .n = 9, .count = 3},
     "head_of_line: count 3 is more than the 2 groups of 4 that 9 ranks make"},

    {PAIRS(.partners = "friends"),
     "partners \"friends\" is not known: it is one of neighbours, halves, shift, inside, across, "
     "random, list"},
    {PAIRS(.partners = ""),
     "partners \"\" is not known: it is one of neighbours, halves, shift, inside, across, "
     "random, list"},
    {PAIRS(.count = 5), "count 5 is more than the 4 pairs that partners neighbours makes here"},
    {PAIRS(.shift = 2), "partners neighbours takes no shift"},
    {PAIRS(.partners = "halves", .list = {ranks, 8}), "partners halves takes no list"},
    {PAIRS(.partners = "list", .list = {ranks, 8}, .groups = singles, .group_count = 2),
     "partners list takes no groups"},

    {PAIRS(.partners = "shift"), "partners shift needs a shift of at least 1"},
    {PAIRS(.partners = "shift", .shift = 3),
     "shift 3 can't be made of 8 ranks: twice the shift must divide their number (the next lower "
     "that does is 2)"},
    {PAIRS(.partners = "shift", .shift = UINT32_MAX),
     "shift 4294967295 can't be made of 8 ranks: twice the shift must divide their number (the "
     "next lower that does is 4)"},
    {{.name = "pairs", .n = 9, .partners = "shift", .shift = 1},
     "shift 1 can't be made of 9 ranks: twice the shift must divide their number, which is odd"},

    {PAIRS(.partners = "list"), "partners list needs a list of at least one pair"},
    {PAIRS(.partners = "list", .list = {ranks, 3}), "list: 3 ranks do not make pairs"},
    {PAIRS(.partners = "list", .list = {self, 4}), "list: rank 5 is paired with itself"},
    {PAIRS(.partners = "list", .list = {twice, 4}), "list: duplicate rank 0"},
    {PAIRS(.partners = "list", .list = {beyond, 2}), "list: there is no rank 8 among 8"},
    {PAIRS(.partners = "list", .list = {ranks, 4}, .count = 3),
     "count 3 is more than the 2 pairs that partners list makes here"},

    {PAIRS(.partners = "inside"), "partners inside needs groups"},
    {PAIRS(.partners = "inside", .groups = singles, .group_count = 2),
     "partners inside needs a group of at least 2 ranks"},
    {PAIRS(.partners = "inside", .groups = three_and_five, .group_count = 2, .count = 4),
     "count 4 is more than the 3 pairs that partners inside makes here"},
    {PAIRS(.partners = "inside", .groups = overlapping, .group_count = 2),
     "groups: duplicate rank 3"},
    {PAIRS(.partners = "across", .groups = singles, .group_count = 1),
     "partners across needs at least 2 groups, not 1"},
    {PAIRS(.partners = "across", .groups = empty_second, .group_count = 2),
     "groups: group 1 (from 0) is empty"},
    {PAIRS(.partners = "across", .groups = out_of_range, .group_count = 2),
     "groups: there is no rank 8 among 8"},
    {PAIRS(.partners = "across", .groups = three_and_five, .group_count = 2, .count = 4),
     "count 4 is more than the 3 pairs that partners across makes here"},

    {{.name = "allreduce", .n = 4, .bytes = 6},
     "allreduce: bytes 6 is no whole number of floats of 4 bytes"},
    {{.name = "bcast", .n = 4, .algorithm = "ring"},
     "algorithm \"ring\" is not known: it is one of binomial, scatter-allgather, "
     "pipeline"},
    {{.name = "barrier", .n = 4, .bytes = 6}, "barrier takes no bytes"},
    {{.name = "sendrecv", .n = 4, .algorithm = "ring"}, "sendrecv takes no algorithm"},
    {{.name = "alltoall", .n = 4, .skew = 6}, "alltoall takes no skew"},
    {{.name = "alltoallv", .n = 4, .skew = 101}, "alltoallv: skew 101 is more than 100 percent"},
    {{.name = "pingpong", .n = 3, .count = 7},
     "pingpong: count 7 is more than 6: the ordered pairs of 3 ranks, at most 65536"},
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
    {{.name = "hpl", .n = 2, .matrix = 100000001}, "hpl: matrix 100000001 is more than 100000000"},
    {{.name = "hpl", .n = 2, .matrix = 100000000, .block = 100000000},
     "hpl: with matrix 100000000 and block 100000000 each of 2 ranks would compute more than "
     "2^63 operations in an iteration: take a smaller block"},
    {{.name = "halo", .n = 2, .dimensions = 4}, "halo: dimensions 4: it is 2 or 3"},
    {{.name = "chain", .n = 4, .bytes = 5}, "chain takes no bytes"},
    {{.name = "aapc", .n = 4, .algorithm = "ring"}, "aapc takes no algorithm"},
    {{.name = "aapc", .n = 4, .local = true, .bytes = PATTERN_BYTES_MAX + 1},
     "aapc: bytes 1073741825 is more than 1073741824"},
    {{.name = "aapc", .n = 4, .local = true, .round_trip = true},
     "aapc: round_trip is for messages that come back by themselves, not for the steps of "
     "a schedule"},
};

static void refusals_say_what_is_wrong(void **state)
{
    assert_refused(refusals, sizeof(refusals) / sizeof(refusals[0]));
}

static void a_short_room_cuts_the_sentence(void **state)
{
    const struct pattern_request request = {.name = "aapc", .n = 12, .order = "xor"};
    struct pattern_plan *plan = NULL;
    char why[10];

    assert_int_equal(pattern_plan_make(&plan, &request, why, sizeof(why)), -EINVAL);
    assert_string_equal(why, "order xor");
    assert_int_equal(pattern_plan_make(&plan, &request, NULL, 0), -EINVAL);
    assert_null(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_say_what_is_wrong),
        cmocka_unit_test(a_short_room_cuts_the_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
