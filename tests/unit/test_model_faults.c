/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Planted faults: what the switch says it did against what came out of it, frame by frame.
 */
#include "model_bed.h"

#include "signature.h"

#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define M 1000000ULL
#define G 1000000000ULL
#define PORTS 6
#define FRAMES 40000
#define ALL (PORTS * FRAMES)

static struct model_bed bed;

/* What the stations themselves see. */
static struct sight {
    uint8_t *seen; /* how often each sequence came to its destination */
    uint32_t highest[PORTS];
    uint64_t duplicates, reordered, corrupted, elsewhere, arrived;
    uint32_t most_extent; /* how far behind the highest one came */
} sight;

static void look(struct model_bed *from, const struct model_frame *frame)
{
    unsigned source = frame->data[11];
    struct signature signature;
    uint32_t sequence;

    (void)from;
    if (sight.seen == NULL || source >= PORTS)
        return;
    if (frame->out != frame->data[5]) {
        sight.elsewhere++;
        return;
    }
    memcpy(&signature, frame->data + 14, sizeof signature);
    sequence = be32toh(signature.sequence);
    if (frame->data[12] != 0x88 || frame->data[13] != 0xb5 || !signature_sound(&signature)) {
        sight.corrupted++;
        return;
    }
    sight.arrived++;
    if (sight.seen[source * FRAMES + sequence]++ > 0)
        sight.duplicates++;
    else if (sequence < sight.highest[source]) {
        sight.reordered++;
        if (sight.highest[source] - sequence > sight.most_extent)
            sight.most_extent = sight.highest[source] - sequence;
    }
    if (sequence > sight.highest[source])
        sight.highest[source] = sequence;
}

static void plant(enum model_fault_kind kind, uint32_t one_in)
{
    bed_plain(&bed, PORTS, G);
    bed.conf.fault_count = 1;
    bed.conf.buffer_bytes = 64 << 20;
    bed.load = TO_NEXT;
    bed.size = 64;
    bed.tagged = true;
    bed.limit = FRAMES;
    bed.note = look;
    bed.faults[0] = (struct model_fault_conf){
        .kind = kind,
        .one_in = one_in,
        .in = MODEL_NO_PORT,
        .out = MODEL_NO_PORT,
        .to = MODEL_NO_PORT,
        .displacement = 5,
        .hold_ns = 10000000,
    };
}

struct outcome {
    struct model_counts counts;
    struct model_fault_truth fault;
    uint64_t wrong[PORTS]; /* frames that left by a port nobody asked for, by port */
};

/* Each station sends its frames to the next port. */
static struct outcome run(void)
{
    struct outcome outcome = {0};

    sight = (struct sight){0};
    bed_open(&bed);
    sight.seen = calloc(PORTS, FRAMES);
    assert_non_null(sight.seen);
    bed_run(&bed, (int64_t)FRAMES * 700);
    bed_drain(&bed);
    outcome.counts = bed_totals(&bed);
    outcome.fault = model_fault_truth(bed.model, 0);
    for (unsigned i = 0; i < model_wrong_count(bed.model); i++) {
        const struct model_flow *flow = model_wrong(bed.model, i);
        unsigned out = model_flow_name(flow).out;

        assert_in_range(out, 0, PORTS - 1);
        outcome.wrong[out] += flow->counts.misdelivered;
    }
    assert_int_equal(outcome.counts.received, ALL);
    bed_close(&bed);
    free(sight.seen);
    sight.seen = NULL;
    return outcome;
}

/* What one strike adds to each count; all frames fit. Reorder: all are reordered but those for
 * whom no later frame came. */
static const struct {
    enum model_fault_kind kind;
    uint32_t least_one_in;
    int arrived, duplicates, corrupted, elsewhere; /* seen */
    int delivered, dropped, copies, flooded, astray, misdelivered;
} kinds[] = {
    /* clang-format off */
    {MODEL_FAULT_DROP,       1,  -1, 0, 0, 0,          -1, 1, 0, 0, 0, 0},
    {MODEL_FAULT_DUPLICATE,  1,   1, 1, 0, 0,           1, 0, 1, 0, 0, 0},
    {MODEL_FAULT_REORDER,    10,  0, 0, 0, 0,           0, 0, 0, 0, 0, 0},
    {MODEL_FAULT_CORRUPT,    1,  -1, 0, 1, 0,           0, 0, 0, 0, 0, 0},
    {MODEL_FAULT_WRONG_PORT, 10, -1, 0, 0, 1,          -1, 0, 0, 0, 1, 1},
    {MODEL_FAULT_FLOOD,      10,  0, 0, 0, PORTS - 2,   0, 0, PORTS - 2, 1, PORTS - 2, 0},
    /* clang-format on */
};

static void check_kind(size_t i, uint32_t one_in)
{
    struct outcome outcome;
    const struct model_counts *counts = &outcome.counts;
    uint64_t struck, by_port = 0;
    double mean, off;

    plant(kinds[i].kind, one_in);
    bed.faults[0].last_byte = 31; /* EtherType and signature: a flipped bit always shows */
    outcome = run();
    struck = outcome.fault.struck;
    /* As chance allows: within five deviations of the mean. */
    mean = (double)outcome.fault.fitting / one_in;
    off = (double)struck - mean;
    assert_true(struck > 0 && off * off <= 25 * mean + 25);
    if (kinds[i].kind != MODEL_FAULT_REORDER)
        assert_int_equal(outcome.fault.fitting, ALL);
    assert_int_equal(sight.arrived, ALL + struck * (uint64_t)kinds[i].arrived);
    assert_int_equal(sight.duplicates, struck * (unsigned)kinds[i].duplicates);
    assert_int_equal(sight.corrupted, struck * (unsigned)kinds[i].corrupted);
    assert_int_equal(sight.elsewhere, struck * (unsigned)kinds[i].elsewhere);
    assert_int_equal(counts->duplicated, sight.duplicates);
    assert_int_equal(counts->corrupted, sight.corrupted);
    assert_int_equal(counts->delivered, ALL + struck * (uint64_t)kinds[i].delivered);
    assert_int_equal(counts->dropped[MODEL_DROP_FAULT], struck * (unsigned)kinds[i].dropped);
    assert_int_equal(bed_dropped(counts), struck * (unsigned)kinds[i].dropped);
    assert_int_equal(counts->copies, struck * (unsigned)kinds[i].copies);
    assert_int_equal(counts->flooded, struck * (unsigned)kinds[i].flooded);
    assert_int_equal(counts->astray, struck * (unsigned)kinds[i].astray);
    assert_int_equal(counts->misdelivered, struck * (unsigned)kinds[i].misdelivered);
    for (unsigned port = 0; port < PORTS; port++)
        by_port += outcome.wrong[port];
    assert_int_equal(by_port, counts->misdelivered);
    assert_int_equal(counts->reordered, sight.reordered);
    if (kinds[i].kind != MODEL_FAULT_REORDER) {
        assert_int_equal(sight.reordered, 0);
        return;
    }
    assert_in_range(sight.reordered, struck - PORTS * (one_in == 10 ? 3 : 1), struck);
    /* Of 1,000 none was held back at the same time as another. */
    assert_in_range(sight.most_extent, 5, one_in >= 1000 ? 6 : FRAMES);
}

static void test_each_fault_does_what_it_says(void **state)
{
    static const uint32_t rates[] = {1, 10, 1000, 50000};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t k = 0; k < 4; k++)
            if (rates[k] >= kinds[i].least_one_in)
                check_kind(i, rates[k]);
}

/* 20 of 48 bytes are EtherType and signature. */
static void test_corrupt_reaches_every_byte_behind_the_addresses(void **state)
{
    struct outcome outcome;

    plant(MODEL_FAULT_CORRUPT, 1);
    outcome = run();
    assert_in_range(sight.corrupted, ALL * 39 / 100, ALL * 44 / 100);
    assert_int_equal(outcome.counts.corrupted, ALL);
}

static void test_a_dead_and_a_named_port(void **state)
{
    struct outcome outcome;

    plant(MODEL_FAULT_WRONG_PORT, 100);
    bed.faults[0].to = 3;
    bed.faults[0].in = 0;
    outcome = run();
    assert_int_equal(outcome.fault.fitting, FRAMES);
    assert_int_equal(bed.port[3].received, FRAMES + outcome.fault.struck);
    assert_int_equal(outcome.wrong[3], outcome.fault.struck);

    plant(MODEL_FAULT_DEAD, 1);
    bed.faults[0].in = 2;
    outcome = run();
    assert_int_equal(bed.port[2].received, 0);
    assert_int_equal(outcome.counts.dropped[MODEL_DROP_DEAD], FRAMES); /* all that it sent */
    /* The switch never heard of the station behind it, and floods what is for it. */
    assert_int_equal(outcome.counts.flooded, FRAMES);
}

/* 20 ms: 2,976 frames of 64 bytes at 100M, and ten times as many at 1G. */
static void test_a_slow_port(void **state)
{
    plant(MODEL_FAULT_SLOW, 1);
    bed.faults[0].in = 2;
    bed.faults[0].rate_bps = 100 * M;
    bed.conf.buffer_bytes = 64 << 10;
    bed_open(&bed);
    bed_run(&bed, 20000000);
    assert_in_range(bed.port[2].received, 2970, 2980);
    assert_in_range(bed.port[2].sent, 2970, 2980);
    assert_in_range(bed.port[5].received, 29700, 29800);
    assert_true(bed_flow(&bed, 1, 2)->dropped[MODEL_DROP_QUEUE] > 20000);
    bed_close(&bed);
}

static void test_limits_of_a_fault(void **state)
{
    static const struct {
        struct model_fault_conf conf;
        uint64_t fitting;
    } cases[] = {
        /* clang-format off */
        {{.of_source = true, .source = BED_STATION(1), .in = -1, .out = -1}, FRAMES},
        {{.of_destination = true, .destination = BED_STATION(1), .in = -1, .out = -1}, FRAMES},
        {{.of_source = true, .source = BED_STATION(1), .of_destination = true,
          .destination = BED_STATION(1), .in = -1, .out = -1}, 0},
        {{.in = 4, .out = -1}, FRAMES},
        {{.in = -1, .out = 4}, FRAMES},
        {{.in = PORTS - 1, .out = PORTS - 1}, 0},
        {{.in = -1, .out = -1, .ethertype = 0x88b5}, ALL},
        {{.in = -1, .out = -1, .ethertype = 0x0800}, 0},
        {{.in = -1, .out = -1, .measured = true}, ALL},
        /* clang-format on */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct outcome outcome;

        plant(MODEL_FAULT_DROP, 1);
        bed.faults[0] = cases[i].conf;
        bed.faults[0].kind = MODEL_FAULT_DROP;
        bed.faults[0].one_in = 1;
        bed.faults[0].at_most = 7;
        outcome = run();
        if (outcome.fault.fitting != cases[i].fitting)
            fail_msg("row %zu: %lu frames fit", i, (unsigned long)outcome.fault.fitting);
        assert_int_equal(outcome.fault.struck, cases[i].fitting > 0 ? 7 : 0);
        assert_int_equal(sight.arrived, ALL - outcome.fault.struck);
        assert_int_equal(sight.duplicates + sight.reordered + sight.corrupted + sight.elsewhere, 0);
        assert_int_equal(bed_dropped(&outcome.counts), outcome.fault.struck);
    }
}

/* Flows beyond the most are counted together, and their frames are not held back (reorder). */
static void test_flows_beyond_the_most(void **state)
{
    const unsigned more = 100;

    for (unsigned k = 0; k < 2; k++) {
        const struct model_counts *rest;

        plant(k == 0 ? MODEL_FAULT_REORDER : MODEL_FAULT_WRONG_PORT, 2);
        bed.note = NULL;
        bed.faults[0].hold_ns = 1000;
        bed_open(&bed);
        for (unsigned i = model_flow_count(bed.model); i < MODEL_FLOWS_MAX + more; i++) {
            bed_send(&bed, 0, BED_STATION(100 + i), BED_STATION(1), 64);
            if (i < MODEL_FLOWS_MAX)
                bed_drain(&bed);
        }
        bed_drain(&bed);
        rest = &model_rest(bed.model)->counts;
        assert_int_equal(model_flow_count(bed.model), MODEL_FLOWS_MAX);
        assert_int_equal(rest->received, more);
        assert_int_equal(rest->reordered, 0);
        assert_int_equal(rest->misdelivered, rest->astray);
        assert_int_equal(rest->astray > 0, k == 1);
        assert_int_equal(rest->delivered + rest->astray, more);
        bed_close(&bed);
    }
}

/* What the benchmark does not measure is not struck: frames without a signature. */
static void test_measured_frames_alone(void **state)
{
    unsigned tagged = 0;

    plant(MODEL_FAULT_DROP, 1);
    bed.faults[0].measured = true;
    bed.conf.by_tag = true;
    bed.limit = 3;
    bed.talking = 1;
    bed_open(&bed);
    bed_send_type(&bed, 0, BED_STATION(0), BED_STATION(1), 64, 0x0806);
    bed_send(&bed, 0, BED_STATION(0), BED_STATION(1), 64);
    bed_run(&bed, 10000);
    bed_drain(&bed);
    assert_int_equal(bed.port[0].sent, 3);
    assert_int_equal(bed.port[1].received, 2);
    assert_int_equal(model_fault_truth(bed.model, 0).fitting, 1);
    for (unsigned i = 0; i < model_flow_count(bed.model); i++) {
        struct model_flow_name name = model_flow_name(model_flow(bed.model, i));

        if (!name.tagged)
            continue;
        assert_int_equal(name.tag, BED_TAG);
        assert_int_equal(model_flow(bed.model, i)->counts.received, 1);
        assert_int_equal(++tagged, 1);
    }
    bed_close(&bed);
}

static void test_the_first_fault_that_strikes_takes_the_frame(void **state)
{
    struct outcome outcome;

    plant(MODEL_FAULT_DROP, 10);
    bed.faults[1] = bed.faults[0];
    bed.faults[1].kind = MODEL_FAULT_CORRUPT;
    bed.faults[1].one_in = 1;
    bed.faults[1].last_byte = 31;
    bed.conf.fault_count = 2;
    outcome = run();
    assert_int_equal(sight.corrupted, ALL - outcome.fault.struck);
    assert_int_equal(sight.arrived, 0);
}

static void test_the_seed_decides(void **state)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        uint64_t hashes[3];

        for (unsigned i = 0; i < 3; i++) {
            plant(kinds[k].kind, 100);
            bed.conf.seed = i < 2 ? 42 : 43;
            run();
            hashes[i] = bed.hash;
        }
        assert_true(hashes[0] == hashes[1] && hashes[0] != hashes[2]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault_does_what_it_says),
        cmocka_unit_test(test_corrupt_reaches_every_byte_behind_the_addresses),
        cmocka_unit_test(test_a_dead_and_a_named_port),
        cmocka_unit_test(test_a_slow_port),
        cmocka_unit_test(test_limits_of_a_fault),
        cmocka_unit_test(test_flows_beyond_the_most),
        cmocka_unit_test(test_measured_frames_alone),
        cmocka_unit_test(test_the_first_fault_that_strikes_takes_the_frame),
        cmocka_unit_test(test_the_seed_decides),
    };

    return cmocka_run_group_tests_name("model_faults", tests, NULL, NULL);
}
