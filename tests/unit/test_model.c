/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The modelled switch in simulated time, each part of its behaviour against its formula; and the
 * switches of Rauch 2005: the three behaviours of Figure 1, and Table 1.
 */
#include "model_bed.h"

#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#define M 1000000ULL
#define G 1000000000ULL
#define MS 1000000LL
#define SIZE 1518u
#define FRAME_NS 123040 /* (1518 + 20) * 8 / 100e6 s */
#define SHORT_NS 6720   /* 64 bytes */
#define RATE(bps) ((struct model_rates){.step = {{0, bps}}, .step_count = 1})

static struct model_bed bed;

static uint64_t dropped(enum model_drop why)
{
    return bed_totals(&bed).dropped[why];
}

static void send_and_drain(unsigned port, uint64_t from, uint64_t to)
{
    bed_send(&bed, port, from, to, 64);
    bed_drain(&bed);
}

static void assert_near(double got, double expected, double share)
{
    if (!(fabs(got / expected - 1) < share))
        fail_msg("%g is not within %g of %g", got, share, expected);
}

/* --- frames --- */

static void test_line_rate_is_exact(void **state)
{
    static const struct {
        uint64_t bps;
        uint32_t size;
        double per_s;
    } cases[] = {{100 * M, 64, 148809.5},
                 {100 * M, 1518, 8127.4},
                 {10 * G, 64, 14880952.4},
                 {1 * M, 1518, 81.274}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bed_plain(&bed, 2, cases[i].bps);
        bed_open(&bed);
        for (unsigned k = 0; k < 2000; k++)
            bed_send(&bed, 0, BED_STATION(0), BED_STATION(1), cases[i].size);
        bed_drain(&bed);
        assert_int_equal(bed.port[1].received, 2000);
        assert_near(1999e9 / (double)(bed.port[1].last_ns - bed.port[1].first_ns), cases[i].per_s,
                    1e-5);
        bed_close(&bed);
    }
}

/* From the first bit in to the last bit out. */
static void test_latency_is_added(void **state)
{
    for (int64_t latency_ns = 0; latency_ns <= 5000; latency_ns += 5000) {
        int64_t start;

        bed_plain(&bed, 2, 100 * M);
        bed.conf.latency_ns = latency_ns;
        bed_open(&bed);
        start = bed.now_ns += 1000000;
        bed_send(&bed, 0, BED_STATION(0), BED_STATION(1), SIZE);
        bed_drain(&bed);
        assert_int_equal(bed.port[1].last_ns - start, 2 * FRAME_NS + latency_ns);
        bed_close(&bed);
    }
}

/* What becomes of one frame from port 0, of five ports. */
static void test_each_frame_goes_where_it_should(void **state)
{
    static const struct {
        uint64_t from, to;
        uint32_t size;
        uint16_t type;
        bool drop_undersize;
        unsigned received[5];
        int why; /* it is dropped; -1: it is not */
    } cases[] = {
        {BED_STATION(0), BED_STATION(1), 1518, 0x88b5, false, {0, 1}, -1},
        {BED_STATION(0), BED_STATION(1), 1519, 0x88b5, false, {0}, MODEL_DROP_SIZE},
        {BED_STATION(0), BED_STATION(1), 1522, 0x8100, false, {0, 1}, -1}, /* a tag */
        {BED_STATION(0), BED_STATION(1), 1523, 0x8100, false, {0}, MODEL_DROP_SIZE},
        {BED_STATION(0), BED_STATION(1), 63, 0x88b5, false, {0, 1}, -1},
        {BED_STATION(0), BED_STATION(1), 63, 0x88b5, true, {0}, MODEL_DROP_SIZE},
        {BED_STATION(0), BED_STATION(1), 64, 0x88b5, true, {0, 1}, -1},
        {BED_STATION(0), 0xffffffffffff, 64, 0x88b5, false, {0, 1, 1, 1, 1}, -1},
        {BED_STATION(0), 0x01005e000001, 64, 0x88b5, false, {0, 1, 1, 1, 1}, -1},
        {BED_STATION(0), BED_STATION(77), 64, 0x88b5, false, {0, 1, 1, 1, 1}, -1},
        /* Its destination is behind the same port. */
        {BED_STATION(5), BED_STATION(0), 64, 0x88b5, false, {0}, MODEL_DROP_FILTERED},
        {BED_STATION(0), 0x0180c2000000, 64, 0x0026, false, {0}, -1}, /* for a bridge */
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        unsigned left = 0;

        bed_plain(&bed, 5, 0);
        bed.conf.drop_undersize = cases[i].drop_undersize;
        bed_open(&bed);
        bed_send_type(&bed, 0, cases[i].from, cases[i].to, cases[i].size, cases[i].type);
        bed_drain(&bed);
        for (unsigned port = 0; port < 5; port++) {
            assert_int_equal(bed.port[port].received, cases[i].received[port]);
            left += cases[i].received[port];
        }
        assert_int_equal(bed_totals(&bed).flooded, left > 1);
        assert_int_equal(bed_totals(&bed).copies, left > 1 ? 3 : 0);
        for (int why = 0; why < MODEL_DROPS; why++)
            assert_int_equal(dropped((enum model_drop)why), why == cases[i].why);
        assert_int_equal(model_port_truth(bed.model, 0).control_received, i == 11);
        bed_close(&bed);
    }
}

/* --- queues --- */

/* Ports below the last send so many frames each to it. */
static void burst(unsigned ports, uint64_t frames, enum model_queueing queueing, uint64_t buffer,
                  bool pause)
{
    bed_plain(&bed, ports, 100 * M);
    bed.conf.queueing = queueing;
    bed.conf.buffer_bytes = buffer;
    bed.conf.pause.send = pause;
    bed.load = TO_LAST;
    bed.limit = frames;
    bed_open(&bed);
    bed_run(&bed, (int64_t)((ports - 1) * frames + 100) * FRAME_NS);
    bed_drain(&bed);
}

/* After the k-th pair k + 1 frames are there, so the 10th is the first that loses one. */
static void test_two_into_one_lose_exactly_half_once_the_buffer_is_full(void **state)
{
    uint64_t lost = 0;

    burst(3, 1000, MODEL_OUTPUT, 10 * SIZE, false);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(bed_flow(&bed, i, 2)->received, 1000);
        lost += bed_flow(&bed, i, 2)->dropped[MODEL_DROP_QUEUE];
    }
    assert_int_equal(lost, 1000 - 9);
    assert_int_equal(bed.port[2].received, 1000 + 9);
    assert_int_equal(model_port_truth(bed.model, 2).queue_high_bytes, 10 * SIZE);
    assert_int_equal(model_port_truth(bed.model, 2).dropped[MODEL_DROP_QUEUE], lost);
    bed_close(&bed);
}

/* In each frame's time N come and one leaves, which counts until its last bit has left: after the
 * k-th frames of all, N k - (k - 1) are there. So bursts of b frames fit into a buffer of
 * (N - 1) b + 1, exactly to the frame and to the byte. */
static void test_the_longest_burst_without_loss_is_exact(void **state)
{
    static const unsigned senders[] = {2, 3, 7}, frames[] = {100, 50, 16};

    for (size_t i = 0; i < 3; i++) {
        unsigned n = senders[i], b = frames[i];
        uint64_t buffer = ((uint64_t)(n - 1) * b + 1) * SIZE;
        const struct {
            unsigned frames;
            uint64_t buffer, lost;
        } cases[] = {{b, buffer, 0}, {b, buffer - 1, 1}, {b + 1, buffer, n - 1}};

        for (size_t k = 0; k < 3; k++) {
            burst(n + 1, cases[k].frames, MODEL_OUTPUT, cases[k].buffer, false);
            assert_int_equal(dropped(MODEL_DROP_QUEUE), cases[k].lost);
            bed_close(&bed);
        }
    }
}

static void test_shared_memory_is_the_queues_together(void **state)
{
    bed_plain(&bed, 4, 100 * M);
    bed.conf.shared = true;
    bed.conf.buffer_bytes = 30 * SIZE;
    bed.load = TO_LAST;
    bed_open(&bed);
    bed_run(&bed, 300 * FRAME_NS);
    assert_int_equal(model_port_truth(bed.model, 3).queue_high_bytes, 30 * SIZE);
    bed_close(&bed);
}

/* Karol, Hluchyj and Morgan 1987: head-of-line blocking leaves 0.5858 of line for many ports, 0.60
 * or so for some dozens; a queue for each output does not block. */
static void test_blocking_takes_what_theory_says(void **state)
{
    static const struct {
        enum model_queueing queueing;
        unsigned ports;
        double least, most;
    } cases[] = {{MODEL_INPUT, 48, 0.575, 0.605}, {MODEL_VOQ, 32, 0.97, 1.001}};

    for (size_t i = 0; i < 2; i++) {
        double share;

        bed_plain(&bed, cases[i].ports, 100 * M);
        bed.conf.queueing = cases[i].queueing;
        bed.conf.buffer_bytes = 64 * 64;
        bed.load = TO_ANY;
        bed.size = 64;
        bed_open(&bed);
        share = bed_rate(&bed, 0, cases[i].ports, 500 * SHORT_NS, 4000 * SHORT_NS) /
                (100e6 * cases[i].ports);
        if (share < cases[i].least || share > cases[i].most)
            fail_msg("%.4f of line", share);
        bed_close(&bed);
    }
}

static void test_queueing_at_the_inputs_is_fair(void **state)
{
    for (enum model_queueing queueing = MODEL_INPUT; queueing <= MODEL_VOQ; queueing++) {
        uint64_t least = UINT64_MAX, most = 0;

        bed_plain(&bed, 5, 100 * M);
        bed.conf.queueing = queueing;
        bed.conf.buffer_bytes = 8 * SIZE;
        bed.load = TO_LAST;
        bed_open(&bed);
        bed_run(&bed, 1000 * FRAME_NS);
        for (unsigned i = 0; i < 4; i++) {
            uint64_t got = bed_flow(&bed, i, 4)->delivered;

            least = got < least ? got : least;
            most = got > most ? got : most;
        }
        assert_true(most - least <= 1);
        assert_true(most * 4 >= 990);
        bed_close(&bed);
    }
}

/* --- PAUSE --- */

/* The output never waits: its 1,500 frames are back to back. Without PAUSE the same load loses. */
static void test_pause_loses_nothing_and_wastes_nothing(void **state)
{
    for (enum model_queueing queueing = MODEL_OUTPUT; queueing <= MODEL_VOQ; queueing++) {
        uint64_t pauses = 0;

        burst(4, 500, queueing, 100000, true);
        assert_int_equal(bed.port[3].received, 1500);
        for (unsigned i = 0; i < 3; i++) {
            pauses += model_port_truth(bed.model, i).pause_sent;
            /* The mark, and what comes before the station has heard: two frames on the way. */
            assert_in_range(model_port_truth(bed.model, i).input_high_bytes, 20000,
                            20000 + 3 * SIZE);
        }
        assert_true(pauses > 10);
        assert_in_range(bed.port[3].last_ns - bed.port[3].first_ns, 1499 * FRAME_NS,
                        1499 * FRAME_NS + 100);
        bed_close(&bed);
    }
    burst(4, 500, MODEL_OUTPUT, 100000, false);
    assert_true(dropped(MODEL_DROP_QUEUE) > 800);
    bed_close(&bed);
}

static void send_pause(unsigned port, uint16_t quanta)
{
    static const uint8_t head[] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 0, 1};
    struct model_frame *frame = bed.host.make(&bed, 60);

    memcpy(frame->data, head, sizeof head);
    frame->data[16] = (uint8_t)(quanta >> 8);
    frame->data[17] = (uint8_t)quanta;
    model_receive(bed.model, port, frame, bed.now_ns);
}

/* 1,000 quanta of 512 bit times, then the frame; at once when the pause is taken back. */
static void test_a_pause_frame_is_honoured_for_its_time(void **state)
{
    static const enum model_queueing kinds[] = {MODEL_OUTPUT, MODEL_VOQ};

    for (unsigned k = 0; k < 4; k++) {
        int64_t heard;

        bed_plain(&bed, 2, 100 * M);
        bed.conf.queueing = kinds[k / 2];
        bed_open(&bed);
        send_pause(1, 1000);
        if (k % 2 == 1)
            send_pause(1, 0);
        bed_drain(&bed);
        heard = bed.now_ns;
        send_and_drain(0, BED_STATION(0), BED_STATION(1));
        assert_int_equal(bed.port[1].last_ns,
                         heard + (k % 2 == 0 ? 5120000 + SHORT_NS : 2 * SHORT_NS));
        assert_int_equal(model_port_truth(bed.model, 1).pause_received, 1 + k % 2);
        bed_close(&bed);
    }
}

/* At least one to stop and one to go on. */
static void test_a_trunk_is_sent_pause_frames(void **state)
{
    bed_plain(&bed, 3, 100 * M);
    bed.conf.pause.send = true;
    bed.ports[0].trunk = true;
    bed.load = TO_LAST;
    bed.limit = 100;
    bed_open(&bed);
    bed_run(&bed, 250 * FRAME_NS);
    bed_drain(&bed);
    assert_true(bed.port[0].pauses >= 2);
    assert_int_equal(bed.port[0].pauses, model_port_truth(bed.model, 0).pause_sent);
    assert_int_equal(bed.port[0].received, bed.port[0].pauses);
    bed_close(&bed);
}

/* --- the address table --- */

/* Addresses that come one after the other, so many per second. In the last rows 1,000 a second are
 * learned, and come in bursts of ten: what is too fast waits until 16 wait, and 5 % of 1,000 less
 * those are refused. */
static void test_addresses_are_learned(void **state)
{
    static const struct {
        uint32_t size;
        int64_t ageing_ns;
        uint32_t learn_per_s;
        unsigned count, per_s, at_once;
        uint64_t learned, full, slow_least, slow_most, aged_least;
    } cases[] = {
        {100, 300 * BED_NS_PER_S, 0, 150, 1000, 1, 100, 50, 0, 0, 0},
        /* Five a second and a second of memory: the ten places always suffice. */
        {10, BED_NS_PER_S, 0, 30, 5, 1, 30, 0, 0, 0, 20},
        {1024, 300 * BED_NS_PER_S, 1000, 1000, 990, 10, 1000, 0, 0, 0, 0},
        {1024, 300 * BED_NS_PER_S, 1000, 1000, 1050, 10, 0, 0, 48 - 16 - 1, 48, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_table_truth truth;
        int64_t start;

        bed_plain(&bed, 3, 0);
        bed.conf.table.size = cases[i].size;
        bed.conf.table.ageing_ns = cases[i].ageing_ns;
        bed.conf.table.learn_per_s = cases[i].learn_per_s;
        bed_open(&bed);
        model_reset(bed.model, 0); /* it forgets the stations */
        bed_run(&bed, BED_NS_PER_S);
        start = bed.now_ns;
        for (unsigned k = 0; k < cases[i].count; k++) {
            int64_t due = start + (int64_t)(k / cases[i].at_once * cases[i].at_once) *
                                      BED_NS_PER_S / cases[i].per_s;

            bed_run(&bed, due > bed.now_ns ? due - bed.now_ns : 0);
            send_and_drain(0, BED_STATION(1000 + k), BED_STATION(9));
        }
        truth = model_table_truth(bed.model);
        assert_int_equal(truth.learned - 3 + truth.refused_full + truth.refused_rate,
                         cases[i].count);
        if (cases[i].learned > 0)
            assert_int_equal(truth.learned - 3, cases[i].learned);
        assert_int_equal(truth.refused_full, cases[i].full);
        assert_in_range(truth.refused_rate, cases[i].slow_least, cases[i].slow_most);
        assert_true(truth.aged >= cases[i].aged_least);
        memset(bed.port, 0, sizeof bed.port);
        for (unsigned k = 0; k < cases[i].count && i == 0; k++)
            bed_send(&bed, 1, BED_STATION(1), BED_STATION(1000 + k), 64);
        bed_drain(&bed);
        assert_int_equal(bed.port[0].received, i == 0 ? 150 : 0);
        assert_int_equal(bed.port[2].received, cases[i].full); /* flooded */
        bed_close(&bed);
    }
}

static void test_addresses_age_and_move(void **state)
{
    int64_t start;

    bed_plain(&bed, 3, 0);
    bed.conf.table.ageing_ns = 10 * BED_NS_PER_S;
    bed_open(&bed);
    start = bed.now_ns;
    send_and_drain(0, BED_STATION(0), BED_STATION(2));
    bed_run(&bed, start + 10 * BED_NS_PER_S - bed.now_ns);
    send_and_drain(1, BED_STATION(1), BED_STATION(0));
    assert_int_equal(bed.port[2].received, 1);
    bed_run(&bed, 2);
    send_and_drain(1, BED_STATION(1), BED_STATION(0));
    assert_int_equal(bed.port[2].received, 2);         /* flooded */
    send_and_drain(2, BED_STATION(0), BED_STATION(1)); /* the same station, at another port */
    send_and_drain(1, BED_STATION(1), BED_STATION(0));
    assert_int_equal(bed.port[2].received, 3);
    assert_int_equal(bed.port[0].received, 2);
    bed_close(&bed);
}

/* --- a module's capacity, modules joined by a trunk --- */

static void test_a_capacity_is_kept_and_shared(void **state)
{
    bed_plain(&bed, 8, 100 * M);
    bed.conf.capacity = RATE(500 * M);
    bed.conf.input_bytes = 20 * SIZE;
    bed.load = TO_PAIR;
    bed_open(&bed);
    assert_near(bed_rate(&bed, 0, 8, 50 * MS, 500 * MS), 500e6, 0.002);
    for (unsigned i = 1; i < 8; i++)
        assert_near((double)bed.port[i].received, (double)bed.port[0].received, 0.01);
    assert_true(dropped(MODEL_DROP_INPUT) > 0);
    bed_close(&bed);
}

static void test_rates_are_linear_between_their_steps(void **state)
{
    for (unsigned active = 2; active <= 16; active += 2) {
        double expected = active <= 4 ? 200e6 : 200e6 + (fmin(active, 12) - 4) * 100e6;

        bed_plain(&bed, 16, 1 * G);
        bed.conf.capacity =
            (struct model_rates){.step = {{4, 200 * M}, {12, 1000 * M}}, .step_count = 2};
        bed.load = TO_PAIR;
        bed_open(&bed);
        bed_run(&bed, 20 * MS);
        bed.talking = active;
        assert_near(bed_rate(&bed, 0, 16, 150 * MS, 100 * MS), expected, 0.01);
        bed_close(&bed);
    }
}

static void test_it_collapses_above_its_load_and_recovers(void **state)
{
    static const struct {
        unsigned talking;
        int64_t settle_ns;
        double share;
    } loads[] = {{8, 50 * MS, 0.5}, {10, 100 * MS, 0.1}, {4, 500 * MS, 0.25}};

    bed_plain(&bed, 16, 100 * M);
    bed.conf.collapse = (struct model_collapse_conf){
        .above = 0.55, .to = 0.1, .recover = 0.3, .window_ns = 10 * MS};
    bed.conf.input_bytes = 20 * SIZE;
    bed.load = TO_PAIR;
    bed_open(&bed);
    for (size_t i = 0; i < 3; i++) {
        bed.talking = loads[i].talking;
        assert_near(bed_rate(&bed, 0, 16, loads[i].settle_ns, 200 * MS), 1600e6 * loads[i].share,
                    0.02);
    }
    bed_close(&bed);
}

/* What comes out of so many pairs at both sides of a trunk, bit/s. */
static double over_trunk(unsigned ports, uint64_t rate_bps, const struct model_rates *trunk,
                         unsigned pairs)
{
    static struct model_bed beds[2];
    double bps;

    for (unsigned k = 0; k < 2; k++) {
        bed_plain(&beds[k], ports, rate_bps);
        beds[k].conf.buffer_bytes = 256 << 10;
        beds[k].talking = pairs;
    }
    bed_join(beds, trunk);
    bps = bed_rate(&beds[0], 0, pairs, 100 * MS, 100 * MS);
    beds[0].load = beds[1].load = SILENT;
    for (unsigned k = 0; k < 4; k++)
        bed_drain(&beds[k % 2]);
    bed_close(&beds[0]);
    bed_close(&beds[1]);
    return bps;
}

static void test_a_trunk_of_eight_links_gives_twelve_pairs_two_thirds(void **state)
{
    assert_near(over_trunk(13, 10 * M, &RATE(80 * M), 12), 80e6, 0.01);
}

/* --- overload and reset --- */

static int64_t last_drop_ns, first_after_ns;

/* One frame from port 0 to port 2 each `gap_ns`, until then. */
static void send_paced(int64_t gap_ns, int64_t until_ns, enum model_drop why)
{
    last_drop_ns = first_after_ns = 0;
    while (bed.now_ns < until_ns) {
        uint64_t before = dropped(why);

        bed_send(&bed, 0, BED_STATION(0), BED_STATION(2), SIZE);
        bed_run(&bed, gap_ns);
        if (dropped(why) > before)
            last_drop_ns = bed.now_ns;
        else if (first_after_ns == 0 && last_drop_ns > 0)
            first_after_ns = bed.now_ns;
    }
}

static void open_fast_input(int64_t recovery_ns)
{
    bed_plain(&bed, 3, 0);
    bed.ports[2].rate = RATE(100 * M);
    bed.conf.buffer_bytes = 10 * SIZE;
    bed.conf.recovery_ns = recovery_ns;
    bed_open(&bed);
}

/* 110 % of the output's rate, then half: the last loss comes as long behind the change as it was
 * planted, within two frame times, wherever among the ten that fit and the one that does not the
 * load changes. Without overload there is nothing to recover from. */
static void test_an_overloaded_output_recovers_after_its_time(void **state)
{
    static const int64_t recovery_ns = 50 * MS;

    for (int64_t frame = 2000; frame < 2012; frame++) {
        int64_t changed_ns;

        open_fast_input(recovery_ns);
        send_paced(FRAME_NS * 10 / 11, bed.now_ns + frame * FRAME_NS * 10 / 11,
                   MODEL_DROP_RECOVERY);
        changed_ns = bed.now_ns;
        send_paced(2 * FRAME_NS, changed_ns + 4 * recovery_ns, MODEL_DROP_RECOVERY);
        assert_in_range(last_drop_ns - changed_ns, recovery_ns - 2 * FRAME_NS,
                        recovery_ns + 2 * FRAME_NS);
        assert_int_equal(dropped(MODEL_DROP_QUEUE), 0);
        bed_close(&bed);
    }
    open_fast_input(recovery_ns);
    send_paced(FRAME_NS, bed.now_ns + 2000LL * FRAME_NS, MODEL_DROP_RECOVERY);
    assert_int_equal(dropped(MODEL_DROP_RECOVERY), 0);
    bed_close(&bed);
}

/* It takes nothing for its downtime, loses what waits, and has to learn again. */
static void test_a_reset_costs_its_time_and_what_waits(void **state)
{
    static const int64_t down_ns = 30 * MS;
    int64_t reset_ns;

    open_fast_input(0);
    for (unsigned i = 0; i < 5; i++)
        bed_send(&bed, 0, BED_STATION(0), BED_STATION(2), SIZE);
    bed_run(&bed, 10);
    reset_ns = bed.now_ns;
    model_reset(bed.model, down_ns);
    assert_int_equal(dropped(MODEL_DROP_RESET), 4); /* one was on the wire */
    assert_int_equal(model_table_truth(bed.model).entries, 0);
    send_paced(FRAME_NS, reset_ns + 2 * down_ns, MODEL_DROP_RESET);
    assert_in_range(first_after_ns - reset_ns, down_ns, down_ns + 2 * FRAME_NS);
    assert_true(bed_totals(&bed).flooded > 0);
    send_and_drain(2, BED_STATION(2), BED_STATION(0));
    assert_int_equal(model_table_truth(bed.model).entries, 2);
    bed_close(&bed);
}

/* --- Rauch 2005 --- */

#define PAYLOAD (1448.0 / 1538) /* of TCP in a full frame at layer 1 */
#define MB 8e6                  /* MB/s in bit/s */
#define FITTED(rate, streams) ((uint64_t)((rate)*MB / PAYLOAD * (streams)))

/* Figure 1: a chain of nodes through a switch that is good, collapses, is saturated. */
static void test_figure_1(void **state)
{
    for (unsigned nodes = 2; nodes <= 24; nodes += 2)
        for (unsigned behaviour = 0; behaviour < 3; behaviour++) {
            double flows = nodes - 1, share;

            bed_plain(&bed, 24, 100 * M);
            bed.conf.input_bytes = 64 * SIZE;
            if (behaviour == 1)
                bed.conf.collapse = (struct model_collapse_conf){
                    .above = 0.5, .to = 0.1, .recover = 0.4, .window_ns = 20 * MS};
            if (behaviour == 2)
                bed.conf.capacity = RATE(12 * 100 * M);
            bed.load = TO_NEXT;
            bed.talking = nodes - 1;
            bed_open(&bed);
            share = bed_rate(&bed, 1, nodes - 1, 100 * MS, 100 * MS) / (100e6 * flows);
            bed_close(&bed);
            if (behaviour == 1 && flows > 12)
                assert_true(share < 0.25);
            else
                assert_near(share, behaviour == 2 ? fmin(1, 12 / flows) : 1, 0.011);
        }
}

/* Table 1 in MB/s, pairs within a module and between two. */
static const struct table_row {
    unsigned pairs;
    double rate;
} within[] = {{7, 11.2}, {8, 10.5}, {9, 9.7}, {12, 7.8}},
  between[] = {{7, 11.3}, {8, 10.2}, {12, 6.9}, {48, 2.2}};

static double within_rate(const struct model_rates *capacity, unsigned pairs)
{
    double bps;

    bed_plain(&bed, 48, 100 * M);
    bed.conf.capacity = *capacity;
    bed.conf.input_bytes = 64 * SIZE;
    bed.talking = 2 * pairs;
    bed_open(&bed);
    bed_run(&bed, 100 * MS); /* the learning's activity is over */
    bed.load = TO_PAIR;
    bps = bed_rate(&bed, 0, 2 * pairs, 100 * MS, 100 * MS);
    bed_close(&bed);
    return bps * PAYLOAD / MB / (2 * pairs);
}

static double between_rate(const struct model_rates *trunk, unsigned pairs)
{
    return over_trunk(49, 100 * M, trunk, pairs) * PAYLOAD / MB / pairs;
}

/* A capacity that grows with the active ports fits all rows. No constant matches them: they imply
 * 157 (not full) to 187 MB/s within a module. */
static void test_table_1_by_a_fit_and_by_a_constant(void **state)
{
    struct model_rates capacity = {.step_count = 4}, trunk = {.step_count = 4};
    double worst_within = 0, worst_between = 0;

    for (unsigned i = 0; i < 4; i++) {
        capacity.step[i] =
            (struct model_step){2 * within[i].pairs, FITTED(within[i].rate, 2 * within[i].pairs)};
        trunk.step[i] =
            (struct model_step){between[i].pairs, FITTED(between[i].rate, between[i].pairs)};
    }
    for (unsigned i = 0; i < 4; i++) {
        double fits[] = {within_rate(&capacity, within[i].pairs),
                         between_rate(&trunk, between[i].pairs)};
        double constants[] = {within_rate(&RATE(FITTED(175, 1)), within[i].pairs),
                              between_rate(&RATE(FITTED(85, 1)), between[i].pairs)};

        print_message(
            "%2u pairs within: fit %5.2f, constant %5.2f MB/s; %2u between: %5.2f, %5.2f\n",
            within[i].pairs, fits[0], constants[0], between[i].pairs, fits[1], constants[1]);
        assert_near(fits[0], within[i].rate, 0.03);
        assert_near(fits[1], between[i].rate, 0.03);
        worst_within = fmax(worst_within, fabs(constants[0] / within[i].rate - 1));
        worst_between = fmax(worst_between, fabs(constants[1] / between[i].rate - 1));
    }
    assert_true(worst_within > 0.03 && worst_within < 0.08);
    assert_true(worst_between > 0.10 && worst_between < 0.25);
}

/* --- the description --- */

static void test_contradictions_are_refused(void **state)
{
    static const struct {
        struct model_conf conf;
        const char *says;
    } cases[] = {
        {{.port_count = 1}, "2 to 64"},
        {{.port_count = 4, .queueing = MODEL_VOQ, .shared = true}, "shared memory"},
        {{.port_count = 4, .queueing = MODEL_VOQ, .capacity = {.step_count = 1}}, "capacity"},
        {{.port_count = 4, .queueing = MODEL_VOQ, .recovery_ns = 1}, "has to be output"},
        {{.port_count = 4,
          .table.size = 1,
          .capacity = {.step = {{8, 1}, {4, 2}}, .step_count = 2}},
         "ascend"},
        {{.port_count = 4, .pause = {.send = true, .low_bytes = 2, .high_bytes = 2}}, "below high"},
    };

    bed_plain(&bed, 4, 100 * M);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model_conf conf = cases[i].conf;
        struct model *model;
        struct err err = {""};

        conf.ports = bed.ports;
        assert_int_equal(model_open(&model, &conf, &bed.host, 0, &err), -22);
        assert_non_null(strstr(err.text, cases[i].says));
        assert_null(model);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_rate_is_exact),
        cmocka_unit_test(test_latency_is_added),
        cmocka_unit_test(test_each_frame_goes_where_it_should),
        cmocka_unit_test(test_two_into_one_lose_exactly_half_once_the_buffer_is_full),
        cmocka_unit_test(test_the_longest_burst_without_loss_is_exact),
        cmocka_unit_test(test_shared_memory_is_the_queues_together),
        cmocka_unit_test(test_blocking_takes_what_theory_says),
        cmocka_unit_test(test_queueing_at_the_inputs_is_fair),
        cmocka_unit_test(test_pause_loses_nothing_and_wastes_nothing),
        cmocka_unit_test(test_a_pause_frame_is_honoured_for_its_time),
        cmocka_unit_test(test_a_trunk_is_sent_pause_frames),
        cmocka_unit_test(test_addresses_are_learned),
        cmocka_unit_test(test_addresses_age_and_move),
        cmocka_unit_test(test_a_capacity_is_kept_and_shared),
        cmocka_unit_test(test_rates_are_linear_between_their_steps),
        cmocka_unit_test(test_it_collapses_above_its_load_and_recovers),
        cmocka_unit_test(test_a_trunk_of_eight_links_gives_twelve_pairs_two_thirds),
        cmocka_unit_test(test_an_overloaded_output_recovers_after_its_time),
        cmocka_unit_test(test_a_reset_costs_its_time_and_what_waits),
        cmocka_unit_test(test_figure_1),
        cmocka_unit_test(test_table_1_by_a_fit_and_by_a_constant),
        cmocka_unit_test(test_contradictions_are_refused),
    };

    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
