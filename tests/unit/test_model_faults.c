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
#define TAG 0x1234

/* What the stations themselves see. */
struct sight {
    uint8_t *seen; /* how often each sequence came to its destination */
    uint32_t highest[PORTS];
    uint64_t duplicates, reordered, corrupted, elsewhere, arrived;
    uint32_t most_extent; /* how far behind the highest one came */
};

static void look(struct model_bed *bed, const struct model_frame *frame, int64_t at_ns)
{
    struct sight *sight = bed->own;
    unsigned source = frame->data[11], destination = frame->data[5];
    struct signature signature;
    uint32_t sequence;

    if (sight == NULL || source >= PORTS)
        return;
    if (frame->out != destination) {
        sight->elsewhere++;
        return;
    }
    memcpy(&signature, frame->data + 14, sizeof signature);
    sequence = be32toh(signature.sequence);
    if (frame->data[12] != 0x88 || frame->data[13] != 0xb5 || !signature_sound(&signature)) {
        sight->corrupted++;
        return;
    }
    sight->arrived++;
    if (sight->seen[source * FRAMES + sequence]++ > 0)
        sight->duplicates++;
    else if (sequence < sight->highest[source]) {
        sight->reordered++;
        if (sight->highest[source] - sequence > sight->most_extent)
            sight->most_extent = sight->highest[source] - sequence;
    }
    if (sequence > sight->highest[source])
        sight->highest[source] = sequence;
}

/* To the next port, numbered, with a signature; a short frame now and then without. */
static bool numbered(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    struct bed_port *own = &bed->port[port];

    if (own->sent >= FRAMES)
        return false;
    *frame = (struct bed_frame){BED_STATION(port), BED_STATION((port + 1) % PORTS), 64, 0, TAG,
                                own->next++};
    return true;
}

struct outcome {
    struct sight sight;
    struct model_counts counts;
    struct model_fault_truth fault;
    uint64_t wrong[PORTS]; /* frames that left by a port nobody asked for, by port */
    uint64_t hash;
};

static void add_up_wrong(struct outcome *outcome, const struct model_bed *bed)
{
    for (unsigned i = 0; i < model_wrong_count(bed->model); i++) {
        const struct model_flow *flow = model_wrong(bed->model, i);
        unsigned out = model_flow_name(flow).out;

        assert_in_range(out, 0, PORTS - 1);
        outcome->wrong[out] += flow->counts.misdelivered;
    }
}

static void run(struct outcome *outcome, struct model_bed *bed)
{
    *outcome = (struct outcome){.sight = {.seen = calloc(PORTS, FRAMES)}};
    assert_non_null(outcome->sight.seen);
    bed->conf.fault_count = bed->conf.fault_count > 0 ? bed->conf.fault_count : 1;
    bed->conf.input_bytes = 1 << 20;
    bed->source = numbered;
    bed->note = look;
    bed_open(bed);
    bed_learn(bed);
    bed->own = &outcome->sight;
    bed_run(bed, bed->now_ns + (int64_t)FRAMES * 700);
    bed_drain(bed);
    outcome->counts = bed_totals(bed);
    outcome->fault = model_fault_truth(bed->model, 0);
    outcome->hash = bed->hash;
    add_up_wrong(outcome, bed);
    assert_int_equal(outcome->counts.received, PORTS * FRAMES);
    bed_close(bed);
    free(outcome->sight.seen);
}

static struct model_bed *plain(enum model_fault_kind kind, uint32_t one_in)
{
    static struct model_bed bed;

    bed_plain(&bed, PORTS, G);
    bed.faults[0] = (struct model_fault_conf){
        .kind = kind,
        .one_in = one_in,
        .in = MODEL_NO_PORT,
        .out = MODEL_NO_PORT,
        .to = MODEL_NO_PORT,
        .displacement = 5,
        .hold_ns = 10000000,
    };
    return &bed;
}

/* A number of strikes that chance allows: within five deviations of the mean. */
static void assert_by_chance(const struct model_fault_truth *fault, uint32_t one_in)
{
    double mean = (double)fault->fitting / one_in, off = (double)fault->struck - mean;

    assert_true(off * off <= 25 * mean + 25);
    assert_true(fault->struck > 0);
}

static const uint32_t rates[] = {1, 10, 1000, 50000};

static void test_drop(void **state)
{
    struct outcome outcome;

    for (size_t i = 0; i < 4; i++) {
        run(&outcome, plain(MODEL_FAULT_DROP, rates[i]));
        assert_by_chance(&outcome.fault, rates[i]);
        assert_int_equal(outcome.fault.fitting, PORTS * FRAMES);
        assert_int_equal(outcome.counts.dropped[MODEL_DROP_FAULT], outcome.fault.struck);
        assert_int_equal(outcome.sight.arrived, PORTS * FRAMES - outcome.fault.struck);
        assert_int_equal(outcome.counts.delivered, outcome.sight.arrived);
    }
}

static void test_duplicate(void **state)
{
    struct outcome outcome;

    for (size_t i = 0; i < 4; i++) {
        struct model_bed *bed = plain(MODEL_FAULT_DUPLICATE, rates[i]);

        bed->conf.buffer_bytes = 64 << 20;
        run(&outcome, bed);
        assert_by_chance(&outcome.fault, rates[i]);
        assert_int_equal(outcome.sight.duplicates, outcome.fault.struck);
        assert_int_equal(outcome.counts.duplicated, outcome.fault.struck);
        assert_int_equal(outcome.counts.copies, outcome.fault.struck);
        assert_int_equal(outcome.sight.reordered, 0);
    }
}

static void test_reorder(void **state)
{
    struct outcome outcome;

    for (size_t i = 1; i < 4; i++) {
        run(&outcome, plain(MODEL_FAULT_REORDER, rates[i]));
        assert_by_chance(&outcome.fault, rates[i]);
        assert_int_equal(outcome.counts.reordered, outcome.sight.reordered);
        /* All but those for whom no later frame came. */
        assert_in_range(outcome.sight.reordered, outcome.fault.struck - PORTS * (i == 1 ? 3 : 1),
                        outcome.fault.struck);
        assert_int_equal(outcome.sight.arrived, PORTS * FRAMES);
        if (rates[i] >= 1000) /* none was held back at the same time as another */
            assert_in_range(outcome.sight.most_extent, 5, 6);
        else
            assert_true(outcome.sight.most_extent >= 5);
    }
}

static void test_corrupt(void **state)
{
    struct outcome outcome;

    for (size_t i = 0; i < 4; i++) {
        struct model_bed *bed = plain(MODEL_FAULT_CORRUPT, rates[i]);

        bed->faults[0].last_byte = 31; /* EtherType and signature: a flipped bit always shows */
        run(&outcome, bed);
        assert_by_chance(&outcome.fault, rates[i]);
        assert_int_equal(outcome.sight.corrupted, outcome.fault.struck);
        assert_int_equal(outcome.counts.corrupted, outcome.fault.struck);
        assert_int_equal(outcome.counts.delivered, PORTS * FRAMES);
    }
}

static void test_corrupt_reaches_every_byte_behind_the_addresses(void **state)
{
    struct model_bed *bed = plain(MODEL_FAULT_CORRUPT, 1);
    struct outcome outcome;

    run(&outcome, bed);
    /* 20 of 48 bytes are EtherType and signature. */
    assert_in_range(outcome.sight.corrupted, PORTS * FRAMES * 39 / 100, PORTS * FRAMES * 44 / 100);
    assert_int_equal(outcome.counts.corrupted, PORTS * FRAMES);
}

static void test_wrong_port(void **state)
{
    struct outcome outcome;

    for (size_t i = 1; i < 4; i++) {
        uint64_t by_port = 0;

        run(&outcome, plain(MODEL_FAULT_WRONG_PORT, rates[i]));
        for (unsigned port = 0; port < PORTS; port++)
            by_port += outcome.wrong[port];
        assert_by_chance(&outcome.fault, rates[i]);
        assert_int_equal(outcome.sight.elsewhere, outcome.fault.struck);
        assert_int_equal(outcome.counts.misdelivered, outcome.fault.struck);
        assert_int_equal(outcome.counts.astray, outcome.fault.struck);
        assert_int_equal(by_port, outcome.fault.struck);
        assert_int_equal(outcome.sight.arrived, PORTS * FRAMES - outcome.fault.struck);
    }
}

static void test_wrong_port_as_named(void **state)
{
    struct model_bed *bed = plain(MODEL_FAULT_WRONG_PORT, 100);
    struct outcome outcome;

    bed->faults[0].to = 3;
    bed->faults[0].in = 0;
    run(&outcome, bed);
    assert_int_equal(outcome.fault.fitting, FRAMES);
    assert_int_equal(bed->port[3].received, FRAMES + outcome.fault.struck);
    assert_int_equal(outcome.wrong[3], outcome.fault.struck);
}

static void test_flood(void **state)
{
    struct outcome outcome;

    for (size_t i = 1; i < 4; i++) {
        struct model_bed *bed = plain(MODEL_FAULT_FLOOD, rates[i]);

        bed->conf.buffer_bytes = 64 << 20;
        run(&outcome, bed);
        assert_by_chance(&outcome.fault, rates[i]);
        assert_int_equal(outcome.counts.flooded, outcome.fault.struck);
        assert_int_equal(outcome.sight.elsewhere, outcome.fault.struck * (PORTS - 2));
        assert_int_equal(outcome.counts.astray, outcome.sight.elsewhere);
        assert_int_equal(outcome.sight.arrived, PORTS * FRAMES);
    }
}

static void test_a_dead_port(void **state)
{
    struct model_bed *bed = plain(MODEL_FAULT_DEAD, 1);
    struct outcome outcome;

    bed->faults[0].in = 2;
    run(&outcome, bed);
    assert_int_equal(bed->port[2].received, 0);
    assert_int_equal(outcome.counts.dropped[MODEL_DROP_DEAD], FRAMES); /* all that it sent */
    /* The switch never heard of the station behind it, and floods what is for it. */
    assert_int_equal(outcome.counts.flooded, FRAMES);
}

static void test_a_slow_port(void **state)
{
    struct model_bed *bed = plain(MODEL_FAULT_SLOW, 1);

    bed->faults[0].in = 2;
    bed->faults[0].rate_bps = 100 * M;
    bed->conf.buffer_bytes = 64 << 10;
    bed->source = numbered;
    bed->conf.fault_count = 1;
    bed_open(bed);
    bed_learn(bed);
    bed_run(bed, bed->now_ns + 20000000);
    /* 20 ms: 2,976 frames of 64 bytes at 100M, and ten times as many at 1G. */
    assert_in_range(bed->port[2].received, 2970, 2980);
    assert_in_range(bed->port[2].sent, 2970, 2980);
    assert_in_range(bed->port[5].received, 29700, 29800);
    assert_true(bed_flow(bed, 1, 2)->counts.dropped[MODEL_DROP_QUEUE] > 20000);
    bed_drain(bed);
    bed_close(bed);
}

static void test_limits_of_a_fault(void **state)
{
    static const struct {
        const char *what;
        struct model_fault_conf conf;
        uint64_t fitting;
    } cases[] = {
        {"source", {.of_source = true, .source = BED_STATION(1), .in = -1, .out = -1}, FRAMES},
        {"destination",
         {.of_destination = true, .destination = BED_STATION(1), .in = -1, .out = -1},
         FRAMES},
        {"flow",
         {.of_source = true,
          .source = BED_STATION(1),
          .of_destination = true,
          .destination = BED_STATION(1),
          .in = -1,
          .out = -1},
         0},
        {"in", {.in = 4, .out = -1}, FRAMES},
        {"out", {.in = -1, .out = 4}, FRAMES},
        {"type", {.in = -1, .out = -1, .ethertype = 0x88b5}, PORTS * FRAMES},
        {"other type", {.in = -1, .out = -1, .ethertype = 0x0800}, 0},
        {"measured", {.in = -1, .out = -1, .measured = true}, PORTS * FRAMES},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_bed *bed = plain(MODEL_FAULT_DROP, 1);
        struct outcome outcome;

        bed->faults[0] = cases[i].conf;
        bed->faults[0].kind = MODEL_FAULT_DROP;
        bed->faults[0].one_in = 1;
        bed->faults[0].at_most = 7;
        run(&outcome, bed);
        if (outcome.fault.fitting != cases[i].fitting)
            fail_msg("%s: %lu frames fit", cases[i].what, (unsigned long)outcome.fault.fitting);
        assert_int_equal(outcome.fault.struck, cases[i].fitting > 0 ? 7 : 0);
        assert_int_equal(outcome.sight.arrived, PORTS * FRAMES - outcome.fault.struck);
    }
}

/* Flows beyond the most are counted together, and their frames are not held back (reorder). */
static void test_flows_beyond_the_most(void **state)
{
    static const enum model_fault_kind kinds[] = {MODEL_FAULT_REORDER, MODEL_FAULT_WRONG_PORT};
    const unsigned more = 100;

    for (size_t k = 0; k < 2; k++) {
        struct model_bed *bed = plain(kinds[k], 2);
        const struct model_counts *rest;

        bed->conf.fault_count = 1;
        bed->faults[0].hold_ns = 1000;
        bed_open(bed);
        bed_learn(bed);
        for (unsigned i = model_flow_count(bed->model); i < MODEL_FLOWS_MAX + more; i++) {
            struct bed_frame frame = {BED_STATION(100 + i), BED_STATION(1), 64, 0x88b5, 0, 0};

            bed_send(bed, 0, &frame);
            if (i < MODEL_FLOWS_MAX)
                bed_drain(bed);
        }
        bed_drain(bed);
        rest = &model_rest(bed->model)->counts;
        assert_int_equal(model_flow_count(bed->model), MODEL_FLOWS_MAX);
        assert_int_equal(rest->received, more);
        assert_int_equal(rest->reordered, 0);
        assert_int_equal(rest->misdelivered, rest->astray);
        assert_int_equal(rest->astray > 0, k == 1);
        assert_int_equal(rest->delivered + rest->astray, more);
        bed_close(bed);
    }
}

/* What the benchmark does not measure is not struck: words without a signature, or a broken one. */
static void test_measured_frames_alone(void **state)
{
    struct bed_frame frames[] = {{BED_STATION(0), BED_STATION(1), 64, 0x0806, 0, 0},
                                 {BED_STATION(0), BED_STATION(1), 64, 0x88b5, 0, 7},
                                 {BED_STATION(0), BED_STATION(1), 64, 0, TAG, 7}};
    struct model_bed *bed = plain(MODEL_FAULT_DROP, 1);

    bed->faults[0].measured = true;
    bed->conf.fault_count = 1;
    bed->conf.by_tag = true;
    bed_open(bed);
    bed_learn(bed);
    for (unsigned i = 0; i < 3; i++)
        bed_send(bed, 0, &frames[i]);
    bed_drain(bed);
    assert_int_equal(bed->port[1].received, 2);
    assert_int_equal(model_fault_truth(bed->model, 0).fitting, 1);
    for (unsigned i = 0, tagged = 0; i < model_flow_count(bed->model); i++) {
        struct model_flow_name name = model_flow_name(model_flow(bed->model, i));

        if (name.tagged) {
            assert_int_equal(name.tag, TAG);
            assert_int_equal(model_flow(bed->model, i)->counts.received, 1);
            assert_int_equal(++tagged, 1);
        }
    }
    bed_close(bed);
}

static void test_the_first_fault_that_strikes_takes_the_frame(void **state)
{
    struct model_bed *bed = plain(MODEL_FAULT_DROP, 10);
    struct outcome outcome;

    bed->faults[1] = bed->faults[0];
    bed->faults[1].kind = MODEL_FAULT_CORRUPT;
    bed->faults[1].one_in = 1;
    bed->faults[1].last_byte = 31;
    bed->conf.fault_count = 2;
    run(&outcome, bed);
    assert_int_equal(outcome.sight.corrupted, PORTS * FRAMES - outcome.fault.struck);
    assert_int_equal(outcome.sight.arrived, 0);
}

static void test_the_seed_decides(void **state)
{
    static const enum model_fault_kind kinds[] = {MODEL_FAULT_DROP, MODEL_FAULT_REORDER,
                                                  MODEL_FAULT_CORRUPT, MODEL_FAULT_WRONG_PORT};
    struct outcome outcomes[3];

    for (unsigned k = 0; k < 4; k++) {
        for (unsigned i = 0; i < 3; i++) {
            struct model_bed *bed = plain(kinds[k], 100);

            bed->conf.seed = i < 2 ? 42 : 43;
            run(&outcomes[i], bed);
        }
        assert_int_equal(outcomes[0].hash, outcomes[1].hash);
        assert_int_equal(outcomes[0].fault.struck, outcomes[1].fault.struck);
        assert_true(outcomes[0].hash != outcomes[2].hash);
    }
}

static void test_without_faults_nothing_happens(void **state)
{
    struct model_bed *bed = plain(MODEL_FAULT_DROP, 1);
    struct outcome outcome;

    bed->faults[0].in = PORTS - 1;
    bed->faults[0].out = PORTS - 1; /* fits no frame */
    run(&outcome, bed);
    assert_int_equal(outcome.sight.arrived, PORTS * FRAMES);
    assert_int_equal(outcome.sight.duplicates + outcome.sight.reordered + outcome.sight.corrupted +
                         outcome.sight.elsewhere,
                     0);
    assert_int_equal(bed_dropped(&outcome.counts), 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drop),
        cmocka_unit_test(test_duplicate),
        cmocka_unit_test(test_reorder),
        cmocka_unit_test(test_corrupt),
        cmocka_unit_test(test_corrupt_reaches_every_byte_behind_the_addresses),
        cmocka_unit_test(test_wrong_port),
        cmocka_unit_test(test_wrong_port_as_named),
        cmocka_unit_test(test_flood),
        cmocka_unit_test(test_a_dead_port),
        cmocka_unit_test(test_a_slow_port),
        cmocka_unit_test(test_limits_of_a_fault),
        cmocka_unit_test(test_flows_beyond_the_most),
        cmocka_unit_test(test_measured_frames_alone),
        cmocka_unit_test(test_the_first_fault_that_strikes_takes_the_frame),
        cmocka_unit_test(test_the_seed_decides),
        cmocka_unit_test(test_without_faults_nothing_happens),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
