/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The switches of Rauch 2005 in simulated time: the three behaviours of Figure 1, and Table 1, by a
 * capacity that was fitted to it and by constant ones. Transfer rates are of TCP payload: 1,448 of
 * the 1,538 bytes that a full frame takes at layer 1.
 */
#include "model_bed.h"

#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>

#define M 1000000ULL
#define LAYER1_PER_PAYLOAD (1538.0 / 1448)
#define MB 8e6 /* MB/s in bit/s */

/* The lowest rate here, 2.2 MB/s, is then 150 frames of each of 96 ports. */
#define SETTLE_NS 100000000
#define WINDOW_NS 100000000

static unsigned talking; /* ports that send */

static bool neighbours(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    if (port >= talking)
        return false;
    *frame = (struct bed_frame){BED_STATION(port), BED_STATION(port ^ 1), 1518, 0x88b5, 0, 0};
    return true;
}

/* Figure 1: a chain, in which each node but the last sends to the next. */
static bool chain(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    if (port + 1 >= talking)
        return false;
    *frame = (struct bed_frame){BED_STATION(port), BED_STATION(port + 1), 1518, 0x88b5, 0, 0};
    return true;
}

/* Mean rate of those that receive, in MB/s of payload. */
static double measure(struct model_bed *bed, unsigned first, unsigned count)
{
    uint64_t frames = 0;

    bed_run(bed, bed->now_ns + SETTLE_NS);
    for (unsigned i = 0; i < bed->conf.port_count; i++)
        bed->port[i].received = 0;
    bed_run(bed, bed->now_ns + WINDOW_NS);
    for (unsigned i = first; i < first + count; i++)
        frames += bed->port[i].received;
    return (double)frames * 1448 * 1e3 / WINDOW_NS / count;
}

static void finish(struct model_bed *bed)
{
    bed->source = NULL;
    bed_drain(bed);
    bed_close(bed);
}

/* --- Figure 1 --- */

enum behaviour { GOOD, COLLAPSES, SATURATES };

static double chain_rate(enum behaviour behaviour, unsigned nodes)
{
    struct model_bed bed;
    double rate;

    bed_plain(&bed, 24, 100 * M);
    bed.conf.input_bytes = 64 * 1518;
    if (behaviour == SATURATES)
        bed.conf.capacity = (struct model_rates){.step = {{0, 12 * 100 * M}}, .step_count = 1};
    if (behaviour == COLLAPSES) {
        bed.conf.collapse.above = 0.5;
        bed.conf.collapse.to = 0.1;
        bed.conf.collapse.recover = 0.4;
        bed.conf.collapse.window_ns = 20000000;
    }
    talking = nodes;
    bed_open(&bed);
    bed_learn(&bed);
    bed.source = chain;
    rate = measure(&bed, 1, nodes - 1);
    finish(&bed);
    return rate;
}

static void test_figure_1(void **state)
{
    double line = 100e6 / LAYER1_PER_PAYLOAD / MB;

    for (unsigned nodes = 2; nodes <= 24; nodes += 2) {
        double good = chain_rate(GOOD, nodes) / line;
        double collapses = chain_rate(COLLAPSES, nodes) / line;
        double saturates = chain_rate(SATURATES, nodes) / line;
        double flows = nodes - 1;

        printf("%2u nodes: %.3f %.3f %.3f of line\n", nodes, good, collapses, saturates);
        assert_true(fabs(good - 1) < 0.01);
        assert_true(fabs(saturates - fmin(1, 12 / flows)) < 0.01);
        if (flows <= 12)
            assert_true(fabs(collapses - 1) < 0.01);
        else
            assert_true(collapses < 0.25);
    }
}

/* --- Table 1 --- */

struct row {
    unsigned pairs;
    double paper; /* MB/s */
};
static const struct row intra[] = {{7, 11.2}, {8, 10.5}, {9, 9.7}, {12, 7.8}};
static const struct row inter[] = {{7, 11.3}, {8, 10.2}, {12, 6.9}, {48, 2.2}};

static uint64_t fitted(double rate, unsigned streams)
{
    return (uint64_t)(rate * MB * LAYER1_PER_PAYLOAD * streams);
}

static double intra_rate(const struct model_rates *capacity, unsigned pairs)
{
    struct model_bed bed;
    double rate;

    bed_plain(&bed, 48, 100 * M);
    bed.conf.capacity = *capacity;
    bed.conf.input_bytes = 64 * 1518;
    talking = 2 * pairs;
    bed_open(&bed);
    bed_learn(&bed);
    bed_run(&bed, bed.now_ns + SETTLE_NS); /* the learning's activity is over */
    bed.source = neighbours;
    rate = measure(&bed, 0, 2 * pairs);
    finish(&bed);
    return rate;
}

static bool across(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    unsigned here = (unsigned)(uintptr_t)bed->own, there = 100 - here;

    if (port >= talking)
        return false;
    *frame =
        (struct bed_frame){BED_STATION(here + port), BED_STATION(there + port), 1518, 0x88b5, 0, 0};
    return true;
}

/* Over a trunk; what comes out at both sides. */
static double inter_rate(const struct model_rates *trunk, unsigned pairs)
{
    static struct model_bed beds[2];
    uint64_t frames = 0;

    talking = pairs;
    for (unsigned k = 0; k < 2; k++) {
        bed_plain(&beds[k], 49, 100 * M);
        beds[k].ports[48] =
            (struct model_port_conf){.name = "trunk", .trunk = true, .rate = *trunk};
        beds[k].conf.buffer_bytes = 256 * 1024;
        beds[k].trunk = 48;
        beds[k].peer = &beds[1 - k];
        beds[k].own = (void *)(uintptr_t)(100 * k);
        beds[k].source = across;
        bed_open(&beds[k]);
    }
    bed_run_pair(&beds[0], &beds[1], SETTLE_NS);
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < pairs; i++)
            beds[k].port[i].received = 0;
    bed_run_pair(&beds[0], &beds[1], beds[0].now_ns + WINDOW_NS);
    for (unsigned k = 0; k < 2; k++)
        for (unsigned i = 0; i < pairs; i++)
            frames += beds[k].port[i].received;
    for (unsigned k = 0; k < 2; k++)
        beds[k].source = NULL;
    for (unsigned k = 0; k < 4; k++)
        bed_drain(&beds[k % 2]);
    bed_close(&beds[0]);
    bed_close(&beds[1]);
    return (double)frames * 1448 * 1e3 / WINDOW_NS / (2 * pairs);
}

static void test_table_1_by_a_fit(void **state)
{
    struct model_rates capacity = {.step_count = 4}, trunk = {.step_count = 4};

    for (unsigned i = 0; i < 4; i++) {
        capacity.step[i] =
            (struct model_step){2 * intra[i].pairs, fitted(intra[i].paper, 2 * intra[i].pairs)};
        trunk.step[i] = (struct model_step){inter[i].pairs, fitted(inter[i].paper, inter[i].pairs)};
    }
    for (unsigned i = 0; i < 4; i++) {
        double within = intra_rate(&capacity, intra[i].pairs);
        double between = inter_rate(&trunk, inter[i].pairs);

        printf(
            "%2u pairs within: paper %4.1f, fit %5.2f MB/s; %2u between: paper %4.1f, fit %5.2f\n",
            intra[i].pairs, intra[i].paper, within, inter[i].pairs, inter[i].paper, between);
        assert_true(fabs(within / intra[i].paper - 1) < 0.03);
        assert_true(fabs(between / inter[i].paper - 1) < 0.03);
    }
}

/* No constant matches all rows: they imply 157 (not full) to 187 MB/s within a module. */
static void test_table_1_by_a_constant_deviates(void **state)
{
    struct model_rates capacity = {.step = {{0, fitted(175, 1)}}, .step_count = 1};
    struct model_rates trunk = {.step = {{0, fitted(85, 1)}}, .step_count = 1};
    double worst_within = 0, worst_between = 0;

    for (unsigned i = 0; i < 4; i++) {
        double within = intra_rate(&capacity, intra[i].pairs) / intra[i].paper - 1;
        double between = inter_rate(&trunk, inter[i].pairs) / inter[i].paper - 1;

        printf("%2u pairs within: %+5.1f %%; %2u between: %+5.1f %%\n", intra[i].pairs,
               within * 100, inter[i].pairs, between * 100);
        worst_within = fmax(worst_within, fabs(within));
        worst_between = fmax(worst_between, fabs(between));
    }
    assert_true(worst_within > 0.03 && worst_within < 0.08);
    assert_true(worst_between > 0.10 && worst_between < 0.25);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figure_1),
        cmocka_unit_test(test_table_1_by_a_fit),
        cmocka_unit_test(test_table_1_by_a_constant_deviates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
