/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The modelled switch as acceptance tests need it: how many frames of a burst fit, what overload
 * and reset cost, and how fast addresses are learned. Each count is computed by hand.
 */
#include "model_bed.h"

#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#define M 1000000ULL
#define SIZE 1518u
#define FRAME_NS 123040 /* (1518 + 20) * 8 / 100e6 s */

/* Ports below the last send `limit` frames each to the last one, as fast as their wires allow. */
static uint32_t limit;

static bool burst(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    unsigned last = bed->conf.port_count - 1;

    if (port == last || bed->port[port].sent >= limit)
        return false;
    *frame = (struct bed_frame){BED_STATION(port), BED_STATION(last), SIZE, 0x88b5, 0, 0};
    return true;
}

/* Frames lost of a burst from so many senders, each of so many frames, into one buffer. */
static uint64_t lost_of(unsigned senders, uint32_t frames, uint64_t buffer)
{
    struct model_bed bed;
    uint64_t lost;

    bed_plain(&bed, senders + 1, 100 * M);
    bed.conf.buffer_bytes = buffer;
    bed.source = burst;
    limit = 0;
    bed_open(&bed);
    bed_learn(&bed);
    limit = frames + bed.port[0].sent;
    bed_run(&bed, bed.now_ns + (int64_t)(frames + 10) * FRAME_NS);
    bed_drain(&bed);
    lost = bed_totals(&bed).dropped[MODEL_DROP_QUEUE];
    bed_close(&bed);
    return lost;
}

/* In each frame's time N come and one leaves, which counts until its last bit has left: after the
 * k-th frames of all, N k - (k - 1) are there. So bursts of b frames fit into a buffer of
 * (N - 1) b + 1, exactly to the frame and to the byte. */
static void test_the_longest_burst_without_loss_is_exact(void **state)
{
    static const struct {
        unsigned senders;
        uint32_t frames;
    } cases[] = {{2, 100}, {3, 50}, {7, 16}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        unsigned senders = cases[i].senders;
        uint32_t frames = cases[i].frames;
        uint64_t buffer = ((uint64_t)(senders - 1) * frames + 1) * SIZE;

        assert_int_equal(lost_of(senders, frames, buffer), 0);
        assert_int_equal(lost_of(senders, frames, buffer - 1), 1);
        assert_int_equal(lost_of(senders, frames + 1, buffer), senders - 1);
    }
}

/* --- overload and reset --- */

static int64_t last_drop_ns, first_after_ns;

/* One frame from port 0 to port 2 each `gap_ns`, until then. */
static void send_paced(struct model_bed *bed, int64_t gap_ns, int64_t until_ns, enum model_drop why)
{
    static const struct bed_frame frame = {BED_STATION(0), BED_STATION(2), SIZE, 0x88b5, 0, 0};

    while (bed->now_ns < until_ns) {
        uint64_t before = bed_totals(bed).dropped[why];

        bed_send(bed, 0, &frame);
        bed_run(bed, bed->now_ns + gap_ns);
        if (bed_totals(bed).dropped[why] > before)
            last_drop_ns = bed->now_ns;
        else if (first_after_ns == 0 && last_drop_ns > 0)
            first_after_ns = bed->now_ns;
    }
}

static void open_fast_input(struct model_bed *bed)
{
    bed_plain(bed, 3, 0);
    bed->ports[2].rate = (struct model_rates){.step = {{0, 100 * M}}, .step_count = 1};
    bed->conf.buffer_bytes = 10 * SIZE;
}

/* 110 % of the output's rate, then half: the last loss comes as long behind the change as it was
 * planted, within two frame times, wherever among the ten that fit and the one that does not the
 * load changes. */
static void recover_after(int64_t overload_ns)
{
    static const int64_t recovery_ns = 50 * 1000000;
    struct model_bed bed;
    int64_t changed_ns;

    open_fast_input(&bed);
    bed.conf.recovery_ns = recovery_ns;
    bed_open(&bed);
    bed_learn(&bed);
    send_paced(&bed, FRAME_NS * 10 / 11, bed.now_ns + overload_ns, MODEL_DROP_RECOVERY);
    changed_ns = bed.now_ns;
    last_drop_ns = 0;
    send_paced(&bed, 2 * FRAME_NS, changed_ns + 4 * recovery_ns, MODEL_DROP_RECOVERY);
    assert_in_range(last_drop_ns - changed_ns, recovery_ns - 2 * FRAME_NS,
                    recovery_ns + 2 * FRAME_NS);
    assert_int_equal(bed_totals(&bed).dropped[MODEL_DROP_QUEUE], 0);
    bed_drain(&bed);
    bed_close(&bed);
}

static void test_an_overloaded_output_recovers_after_its_time(void **state)
{
    for (int64_t frame = 2000; frame < 2012; frame++)
        recover_after(frame * FRAME_NS * 10 / 11);
}

static void test_without_overload_there_is_nothing_to_recover_from(void **state)
{
    struct model_bed bed;

    open_fast_input(&bed);
    bed.conf.recovery_ns = 50 * 1000000;
    bed_open(&bed);
    bed_learn(&bed);
    send_paced(&bed, FRAME_NS, bed.now_ns + 2000LL * FRAME_NS, MODEL_DROP_RECOVERY);
    bed_drain(&bed);
    assert_int_equal(bed_totals(&bed).dropped[MODEL_DROP_RECOVERY], 0);
    bed_close(&bed);
}

/* It takes nothing for its downtime, loses what waits, and has to learn again. */
static void test_a_reset_costs_its_time_and_what_waits(void **state)
{
    static const int64_t down_ns = 30 * 1000000;
    static const struct bed_frame back = {BED_STATION(2), BED_STATION(0), SIZE, 0x88b5, 0, 0};
    static const struct bed_frame there = {BED_STATION(0), BED_STATION(2), SIZE, 0x88b5, 0, 0};
    struct model_bed bed;
    int64_t reset_ns;

    open_fast_input(&bed);
    bed_open(&bed);
    bed_learn(&bed);
    for (unsigned i = 0; i < 5; i++)
        bed_send(&bed, 0, &there);
    bed_run(&bed, bed.now_ns + 10);
    reset_ns = bed.now_ns;
    last_drop_ns = first_after_ns = 0;
    model_reset(bed.model, down_ns);
    assert_int_equal(bed_totals(&bed).dropped[MODEL_DROP_RESET], 4); /* one was on the wire */
    assert_int_equal(model_table_truth(bed.model).entries, 0);
    send_paced(&bed, FRAME_NS, reset_ns + 2 * down_ns, MODEL_DROP_RESET);
    assert_in_range(first_after_ns - reset_ns, down_ns, down_ns + 2 * FRAME_NS);
    assert_true(bed_totals(&bed).flooded > 0);
    bed_send(&bed, 2, &back);
    bed_drain(&bed);
    assert_int_equal(model_table_truth(bed.model).entries, 2);
    bed_close(&bed);
}

/* --- addresses and sizes --- */

/* 1,000 addresses a second are learned; 1,050 come in bursts of ten. What is too fast waits until
 * the queue is full: 5 % of 1,000 addresses less those that wait are refused. */
static void test_addresses_wait_to_be_learned(void **state)
{
    static const uint32_t rates[] = {990, 1050};
    const uint32_t queue = 16, count = 1000;

    for (unsigned i = 0; i < 2; i++) {
        struct model_table_truth truth;
        struct model_bed bed;

        bed_plain(&bed, 2, 0);
        bed.conf.table.learn_per_s = 1000;
        bed_open(&bed);
        for (uint32_t k = 0; k < count; k++) {
            struct bed_frame word = {BED_STATION(100 + k), BED_STATION(1), 64, 0x88b5, 0, 0};

            bed_run(&bed, (int64_t)(k / 10 * 10) * BED_NS_PER_S / rates[i]);
            bed_send(&bed, 0, &word);
            bed_drain(&bed);
        }
        truth = model_table_truth(bed.model);
        assert_int_equal(truth.learned + truth.refused_rate, count);
        if (i == 0)
            assert_int_equal(truth.refused_rate, 0);
        else
            assert_in_range(truth.refused_rate, 48 - queue - 1, 48);
        bed_close(&bed);
    }
}

static void test_short_frames_are_dropped_where_that_is_asked(void **state)
{
    for (unsigned drops = 0; drops < 2; drops++) {
        struct bed_frame frame = {BED_STATION(0), BED_STATION(1), 63, 0x88b5, 0, 0};
        struct model_bed bed;

        bed_plain(&bed, 2, 100 * M);
        bed.conf.drop_undersize = drops;
        bed_open(&bed);
        bed_learn(&bed);
        bed_drain(&bed);
        bed_send(&bed, 0, &frame);
        frame.size = 64;
        bed_send(&bed, 0, &frame);
        bed_drain(&bed);
        assert_int_equal(bed_totals(&bed).dropped[MODEL_DROP_SIZE], drops);
        bed_close(&bed);
    }
}

static void test_a_recovery_needs_queueing_output(void **state)
{
    struct err err = {""};
    struct model_bed bed;

    bed_plain(&bed, 2, 100 * M);
    bed.conf.queueing = MODEL_VOQ;
    bed.conf.recovery_ns = 1;
    assert_int_equal(model_open(&bed.model, &bed.conf, &bed.host, 0, &err), -22);
    assert_non_null(strstr(err.text, "queueing has to be output"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_longest_burst_without_loss_is_exact),
        cmocka_unit_test(test_an_overloaded_output_recovers_after_its_time),
        cmocka_unit_test(test_without_overload_there_is_nothing_to_recover_from),
        cmocka_unit_test(test_a_reset_costs_its_time_and_what_waits),
        cmocka_unit_test(test_addresses_wait_to_be_learned),
        cmocka_unit_test(test_short_frames_are_dropped_where_that_is_asked),
        cmocka_unit_test(test_a_recovery_needs_queueing_output),
    };

    return cmocka_run_group_tests_name("model_overload", tests, NULL, NULL);
}
