/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The modelled switch without faults: each part of its behaviour against its formula.
 */
#include "model_bed.h"

#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#define M 1000000ULL
#define G 1000000000ULL
#define FRAME_1518_AT_100M 123040 /* (1518 + 20) * 8 / 100e6 s */
#define FRAME_64_AT_100M 6720

static uint64_t bed_random;

static uint32_t draw(uint32_t below)
{
    bed_random = bed_random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)((bed_random >> 33) * below >> 31);
}

/* Ports below the last send `limit` frames each to the last one. */
static uint32_t limit;

static bool all_to_last(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    unsigned last = bed->conf.port_count - 1;

    if (port == last || bed->port[port].sent >= limit)
        return false;
    *frame = (struct bed_frame){BED_STATION(port), BED_STATION(last), 1518, 0x88b5, 0, 0};
    return true;
}

/* Always something to send, each frame to any other port. */
static bool uniform(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    unsigned to = draw(bed->conf.port_count - 1);

    to += to >= port;
    *frame = (struct bed_frame){BED_STATION(port), BED_STATION(to), 64, 0x88b5, 0, 0};
    return true;
}

static bool next_neighbour(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    if (limit > 0 && bed->port[port].sent >= limit)
        return false;
    *frame = (struct bed_frame){BED_STATION(port), BED_STATION(port ^ 1), 1518, 0x88b5, 0, 0};
    return true;
}

/* --- rates and queues --- */

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
        struct model_bed bed;
        uint64_t frames = 2000;
        double rate;

        bed_plain(&bed, 2, cases[i].bps);
        bed_open(&bed);
        bed_learn(&bed);
        for (uint64_t k = 0; k < frames; k++) {
            struct bed_frame frame = {BED_STATION(0), BED_STATION(1), cases[i].size, 0x88b5, 0, 0};

            bed_send(&bed, 0, &frame);
        }
        bed_drain(&bed);
        assert_int_equal(bed.port[1].received, frames > bed.conf.buffer_bytes ? 0 : frames);
        rate = (double)(frames - 1) * 1e9 / (double)(bed.port[1].last_ns - bed.port[1].first_ns);
        assert_true(fabs(rate / cases[i].per_s - 1) < 1e-5);
        bed_close(&bed);
    }
}

static void test_two_into_one_lose_exactly_half_once_the_buffer_is_full(void **state)
{
    struct model_bed bed;
    const struct model_counts *counts;
    uint64_t lost = 0;

    bed_plain(&bed, 3, 100 * M);
    bed.conf.buffer_bytes = 10 * 1518;
    bed.source = all_to_last;
    limit = 1000;
    bed_open(&bed);
    bed_learn(&bed);
    bed_run(&bed, bed.now_ns + 1100 * FRAME_1518_AT_100M);
    bed_drain(&bed);
    for (unsigned i = 0; i < 2; i++) {
        counts = &bed_flow(&bed, i, 2)->counts;
        assert_int_equal(counts->received, 1000);
        assert_int_equal(bed_dropped(counts), counts->dropped[MODEL_DROP_QUEUE]);
        lost += counts->dropped[MODEL_DROP_QUEUE];
    }
    /* After the k-th pair k + 1 frames are there, so the 10th is the first that loses one. */
    assert_int_equal(lost, 1000 - 9);
    assert_int_equal(bed.port[2].received, 1000 + 9);
    assert_int_equal(model_port_truth(bed.model, 2).queue_high_bytes, 10 * 1518);
    assert_int_equal(model_port_truth(bed.model, 2).dropped[MODEL_DROP_QUEUE], lost);
    bed_close(&bed);
}

static void test_shared_memory_is_the_queues_together(void **state)
{
    struct model_bed bed;

    bed_plain(&bed, 4, 100 * M);
    bed.conf.shared = true;
    bed.conf.buffer_bytes = 30 * 1518;
    bed.source = all_to_last;
    limit = 200;
    bed_open(&bed);
    bed_learn(&bed);
    bed_run(&bed, bed.now_ns + 300 * FRAME_1518_AT_100M);
    bed_drain(&bed);
    assert_int_equal(model_port_truth(bed.model, 3).queue_high_bytes, 30 * 1518);
    bed_close(&bed);
}

static void test_latency_is_added(void **state)
{
    static const int64_t latencies_ns[] = {0, 5000};

    for (size_t i = 0; i < 2; i++) {
        struct bed_frame frame = {BED_STATION(0), BED_STATION(1), 1518, 0x88b5, 0, 0};
        struct model_bed bed;
        int64_t start;

        bed_plain(&bed, 2, 100 * M);
        bed.conf.latency_ns = latencies_ns[i];
        bed_open(&bed);
        bed_learn(&bed);
        start = bed.now_ns += 1000000;
        bed_send(&bed, 0, &frame);
        bed_drain(&bed);
        /* From the first bit in to the last bit out. */
        assert_int_equal(bed.port[1].last_ns - start, 2 * FRAME_1518_AT_100M + latencies_ns[i]);
        bed_close(&bed);
    }
}

static void test_a_frame_above_the_mtu_is_dropped_and_a_tag_is_no_part_of_it(void **state)
{
    struct bed_frame frames[] = {{BED_STATION(0), BED_STATION(1), 1518, 0x88b5, 0, 0},
                                 {BED_STATION(0), BED_STATION(1), 1519, 0x88b5, 0, 0},
                                 {BED_STATION(0), BED_STATION(1), 1522, 0x8100, 0, 0},
                                 {BED_STATION(0), BED_STATION(1), 1523, 0x8100, 0, 0}};
    struct model_bed bed;

    bed_plain(&bed, 2, 0);
    bed_open(&bed);
    bed_learn(&bed);
    for (unsigned i = 0; i < 4; i++)
        bed_send(&bed, 0, &frames[i]);
    bed_drain(&bed);
    assert_int_equal(bed.port[1].received, 2);
    assert_int_equal(bed_totals(&bed).dropped[MODEL_DROP_SIZE], 2);
    bed_close(&bed);
}

/* --- queueing at the inputs --- */

static double saturation(enum model_queueing queueing, unsigned ports)
{
    struct model_bed bed;
    int64_t start, slots = 4000;
    uint64_t received = 0;

    bed_random = 7;
    bed_plain(&bed, ports, 100 * M);
    bed.conf.queueing = queueing;
    bed.conf.buffer_bytes = 64 * 64;
    bed_open(&bed);
    bed_learn(&bed);
    bed.source = uniform;
    bed_run(&bed, bed.now_ns + 500 * FRAME_64_AT_100M);
    for (unsigned i = 0; i < ports; i++)
        bed.port[i].received = 0;
    start = bed.now_ns;
    bed_run(&bed, start + slots * FRAME_64_AT_100M);
    for (unsigned i = 0; i < ports; i++)
        received += bed.port[i].received;
    bed.source = NULL;
    bed_drain(&bed);
    bed_close(&bed);
    return (double)received / (double)slots / ports;
}

static void test_head_of_line_blocking_takes_what_theory_says(void **state)
{
    double share = saturation(MODEL_INPUT, 48);

    /* Karol, Hluchyj and Morgan 1987: 0.5858 for many ports, 0.60 or so for some dozens. */
    if (share < 0.575 || share > 0.605)
        fail_msg("%.4f of line", share);
}

static void test_a_queue_for_each_output_does_not_block(void **state)
{
    double share = saturation(MODEL_VOQ, 32);

    if (share < 0.97)
        fail_msg("%.4f of line", share);
}

static void test_queueing_at_the_inputs_is_fair(void **state)
{
    static const enum model_queueing kinds[] = {MODEL_INPUT, MODEL_VOQ};

    for (unsigned k = 0; k < 2; k++) {
        struct model_bed bed;
        uint64_t least = UINT64_MAX, most = 0;

        bed_plain(&bed, 5, 100 * M);
        bed.conf.queueing = kinds[k];
        bed.conf.buffer_bytes = 8 * 1518;
        bed.source = all_to_last;
        limit = 1000000;
        bed_open(&bed);
        bed_learn(&bed);
        bed_run(&bed, bed.now_ns + 1000 * FRAME_1518_AT_100M);
        for (unsigned i = 0; i < 4; i++) {
            uint64_t got = bed_flow(&bed, i, 4)->counts.delivered;

            least = got < least ? got : least;
            most = got > most ? got : most;
        }
        assert_true(most - least <= 1);
        assert_true(most * 4 >= 990);
        bed.source = NULL;
        bed_drain(&bed);
        bed_close(&bed);
    }
}

/* --- PAUSE --- */

static void test_pause_loses_nothing_and_wastes_nothing(void **state)
{
    static const enum model_queueing kinds[] = {MODEL_OUTPUT, MODEL_INPUT, MODEL_VOQ};

    for (unsigned k = 0; k < 3; k++) {
        struct model_bed bed;
        struct model_counts all;
        uint64_t pauses = 0;

        bed_plain(&bed, 4, 100 * M);
        bed.conf.queueing = kinds[k];
        bed.conf.buffer_bytes = 100000;
        bed.conf.pause.send = true;
        bed.source = all_to_last;
        limit = 500;
        bed_open(&bed);
        bed_learn(&bed);
        bed_run(&bed, bed.now_ns + 1600 * FRAME_1518_AT_100M);
        bed_drain(&bed);
        all = bed_totals(&bed);
        assert_int_equal(bed_dropped(&all), 0);
        assert_int_equal(bed.port[3].received, 1500);
        for (unsigned i = 0; i < 3; i++) {
            pauses += model_port_truth(bed.model, i).pause_sent;
            /* The mark, and what comes before the station has heard: two frames on the way. */
            assert_in_range(model_port_truth(bed.model, i).input_high_bytes, 20000,
                            20000 + 3 * 1518);
        }
        assert_true(pauses > 10);
        /* The output never waited: its 1,500 frames are back to back. */
        assert_in_range(bed.port[3].last_ns - bed.port[3].first_ns, 1499 * FRAME_1518_AT_100M,
                        1499 * FRAME_1518_AT_100M + 100);
        bed_close(&bed);
    }
}

static void test_without_pause_the_same_load_loses(void **state)
{
    struct model_bed bed;

    bed_plain(&bed, 4, 100 * M);
    bed.conf.buffer_bytes = 100000;
    bed.source = all_to_last;
    limit = 500;
    bed_open(&bed);
    bed_learn(&bed);
    bed_run(&bed, bed.now_ns + 600 * FRAME_1518_AT_100M);
    bed_drain(&bed);
    assert_true(bed_totals(&bed).dropped[MODEL_DROP_QUEUE] > 800);
    bed_close(&bed);
}

static void send_pause(struct model_bed *bed, unsigned port, uint16_t quanta)
{
    struct model_frame *frame = bed->host.make(bed, 60);
    static const uint8_t head[] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 0, 1};

    memcpy(frame->data, head, sizeof head);
    frame->data[16] = (uint8_t)(quanta >> 8);
    frame->data[17] = (uint8_t)quanta;
    model_receive(bed->model, port, frame, bed->now_ns);
}

static void test_a_pause_frame_is_honoured_for_its_time(void **state)
{
    static const enum model_queueing kinds[] = {MODEL_OUTPUT, MODEL_VOQ};

    for (unsigned k = 0; k < 2; k++) {
        struct bed_frame frame = {BED_STATION(0), BED_STATION(1), 64, 0x88b5, 0, 0};
        struct model_bed bed;
        int64_t heard;

        bed_plain(&bed, 2, 100 * M);
        bed.conf.queueing = kinds[k];
        bed_open(&bed);
        bed_learn(&bed);
        send_pause(&bed, 1, 1000);
        bed_drain(&bed);
        heard = bed.now_ns;
        bed_send(&bed, 0, &frame);
        bed_drain(&bed);
        /* 1,000 quanta of 512 bit times, then the frame. */
        assert_int_equal(bed.port[1].last_ns, heard + 5120000 + FRAME_64_AT_100M);
        assert_int_equal(model_port_truth(bed.model, 1).pause_received, 1);
        send_pause(&bed, 1, 1000);
        send_pause(&bed, 1, 0);
        bed_drain(&bed);
        heard = bed.now_ns;
        bed_send(&bed, 0, &frame);
        bed_drain(&bed);
        assert_int_equal(bed.port[1].last_ns, heard + 2 * FRAME_64_AT_100M);
        bed_close(&bed);
    }
}

static void test_a_trunk_is_sent_pause_frames(void **state)
{
    struct model_bed bed;

    bed_plain(&bed, 3, 100 * M);
    bed.conf.pause.send = true;
    bed.ports[0].trunk = true;
    bed.source = all_to_last;
    limit = 100;
    bed_open(&bed);
    bed_learn(&bed);
    bed_run(&bed, bed.now_ns + 250 * FRAME_1518_AT_100M);
    bed_drain(&bed);
    assert_true(bed.port[0].pauses >= 2); /* at least one to stop and one to go on */
    assert_int_equal(bed.port[0].pauses, model_port_truth(bed.model, 0).pause_sent);
    assert_int_equal(bed.port[0].received, bed.port[0].pauses);
    bed_close(&bed);
}

/* --- the address table --- */

static void test_a_full_table_floods_the_rest(void **state)
{
    struct model_bed bed;
    struct model_table_truth table;

    bed_plain(&bed, 3, 0);
    bed.conf.table.size = 100;
    bed_open(&bed);
    for (unsigned i = 0; i < 150; i++) {
        struct bed_frame word = {BED_STATION(1000 + i), BED_STATION(9), 64, 0x88b5, 0, 0};

        bed_send(&bed, 0, &word);
        bed_drain(&bed);
    }
    table = model_table_truth(bed.model);
    assert_int_equal(table.learned, 100);
    assert_int_equal(table.entries, 100);
    assert_int_equal(table.refused_full, 50);
    memset(bed.port, 0, sizeof bed.port);
    for (unsigned i = 0; i < 150; i++) {
        struct bed_frame answer = {BED_STATION(9), BED_STATION(1000 + i), 64, 0x88b5, 0, 0};

        bed_send(&bed, 1, &answer);
        bed_drain(&bed);
    }
    assert_int_equal(bed.port[0].received, 150);
    assert_int_equal(bed.port[2].received, 50); /* flooded */
    bed_close(&bed);
}

static void test_addresses_age_and_move(void **state)
{
    struct bed_frame word = {BED_STATION(0), BED_STATION(1), 64, 0x88b5, 0, 0};
    struct bed_frame back = {BED_STATION(1), BED_STATION(0), 64, 0x88b5, 0, 0};
    struct model_bed bed;

    bed_plain(&bed, 3, 0);
    bed.conf.table.ageing_ns = 10 * BED_NS_PER_S;
    bed_open(&bed);
    bed_send(&bed, 0, &word);
    bed_run(&bed, 10 * BED_NS_PER_S);
    bed_send(&bed, 1, &back);
    bed_drain(&bed);
    assert_int_equal(bed.port[2].received, 1); /* the first word's flood alone */
    bed_run(&bed, 10 * BED_NS_PER_S + 1);
    bed_send(&bed, 1, &back);
    bed_drain(&bed);
    assert_int_equal(bed.port[2].received, 2);
    bed_send(&bed, 2, &word); /* the same station, at another port */
    bed_drain(&bed);
    bed_send(&bed, 1, &back);
    bed_drain(&bed);
    assert_int_equal(bed.port[2].received, 3);
    bed_close(&bed);
}

static void test_silent_addresses_make_room(void **state)
{
    struct model_bed bed;

    bed_plain(&bed, 2, 0);
    bed.conf.table.size = 10;
    bed.conf.table.ageing_ns = BED_NS_PER_S;
    bed_open(&bed);
    for (unsigned i = 0; i < 30; i++) {
        struct bed_frame word = {BED_STATION(100 + i), BED_STATION(1), 64, 0x88b5, 0, 0};

        bed_run(&bed, (int64_t)i * 200000000);
        bed_send(&bed, 0, &word);
        bed_drain(&bed);
    }
    /* Five a second and a second of memory: the ten places always suffice. */
    assert_int_equal(model_table_truth(bed.model).learned, 30);
    assert_int_equal(model_table_truth(bed.model).refused_full, 0);
    assert_true(model_table_truth(bed.model).aged >= 20);
    bed_close(&bed);
}

static void test_groups_and_unknown_addresses_go_everywhere_but_back(void **state)
{
    static const uint64_t targets[] = {0xffffffffffff, 0x01005e000001, BED_STATION(77)};
    struct model_bed bed;

    bed_plain(&bed, 5, 100 * M);
    bed_open(&bed);
    bed_learn(&bed);
    for (unsigned i = 0; i < 3; i++) {
        struct bed_frame frame = {BED_STATION(0), targets[i], 64, 0x88b5, 0, 0};

        bed_send(&bed, 0, &frame);
    }
    bed_drain(&bed);
    assert_int_equal(bed.port[0].received, 0);
    for (unsigned i = 1; i < 5; i++)
        assert_int_equal(bed.port[i].received, 3);
    assert_int_equal(bed_totals(&bed).flooded, 3);
    assert_int_equal(bed_totals(&bed).copies, 9);
    bed_close(&bed);
}

static void test_what_is_for_a_bridge_goes_no_further(void **state)
{
    struct bed_frame hello = {BED_STATION(0), 0x0180c2000000, 64, 0x0026, 0, 0};
    struct bed_frame home = {BED_STATION(5), BED_STATION(0), 64, 0x88b5, 0, 0};
    struct model_bed bed;

    bed_plain(&bed, 3, 0);
    bed_open(&bed);
    bed_learn(&bed);
    bed_send(&bed, 0, &hello);
    bed_send(&bed, 0, &home); /* its destination is behind the same port */
    bed_drain(&bed);
    assert_int_equal(bed.port[1].received + bed.port[2].received, 0);
    assert_int_equal(model_port_truth(bed.model, 0).control_received, 1);
    assert_int_equal(bed_totals(&bed).dropped[MODEL_DROP_FILTERED], 1);
    bed_close(&bed);
}

/* --- a module's capacity --- */

static double delivered_share(struct model_bed *bed, int64_t warm_up_ns, int64_t window_ns)
{
    uint64_t bytes = 0;

    bed_run(bed, bed->now_ns + warm_up_ns);
    for (unsigned i = 0; i < bed->conf.port_count; i++)
        bed->port[i].received = 0;
    bed_run(bed, bed->now_ns + window_ns);
    for (unsigned i = 0; i < bed->conf.port_count; i++)
        bytes += bed->port[i].received * 1538;
    return (double)bytes * 8e9 / (double)window_ns;
}

static void test_a_capacity_is_kept_and_shared(void **state)
{
    struct model_bed bed;
    double bps;

    bed_plain(&bed, 8, 100 * M);
    bed.conf.capacity = (struct model_rates){.step = {{0, 500 * M}}, .step_count = 1};
    bed.conf.input_bytes = 20 * 1518;
    bed.source = next_neighbour;
    limit = 0;
    bed_open(&bed);
    bed_learn(&bed);
    bps = delivered_share(&bed, 50000000, 500000000);
    assert_true(fabs(bps / 500e6 - 1) < 0.002);
    for (unsigned i = 0; i < 8; i++)
        assert_true(fabs((double)bed.port[i].received * 1538 * 8 * 2 / 62.5e6 - 1) < 0.01);
    assert_true(bed_totals(&bed).dropped[MODEL_DROP_INPUT] > 0);
    bed.source = NULL;
    bed_drain(&bed);
    bed_close(&bed);
}

static void test_rates_are_linear_between_their_steps(void **state)
{
    struct model_bed bed;

    for (unsigned active = 2; active <= 16; active += 2) {
        double expected = active <= 4    ? 200e6
                          : active >= 12 ? 1000e6
                                         : 200e6 + (active - 4) * 100e6;

        bed_plain(&bed, 16, 1 * G);
        bed.conf.capacity =
            (struct model_rates){.step = {{4, 200 * M}, {12, 1000 * M}}, .step_count = 2};
        bed.source = next_neighbour;
        limit = 0;
        bed_open(&bed);
        bed_learn(&bed);
        bed_run(&bed, 20000000);
        for (unsigned i = active; i < 16; i++)
            bed.port[i].silent = true;
        assert_true(fabs(delivered_share(&bed, 150000000, 100000000) / expected - 1) < 0.01);
        bed.source = NULL;
        bed_drain(&bed);
        bed_close(&bed);
    }
}

static void test_it_collapses_above_its_load_and_recovers(void **state)
{
    struct model_bed bed;
    double line = 16 * 100e6;

    bed_plain(&bed, 16, 100 * M);
    bed.conf.collapse.above = 0.55;
    bed.conf.collapse.to = 0.1;
    bed.conf.collapse.recover = 0.3;
    bed.conf.collapse.window_ns = 10000000;
    bed.conf.input_bytes = 20 * 1518;
    bed.source = next_neighbour;
    limit = 0;
    bed_open(&bed);
    bed_learn(&bed);
    for (unsigned i = 8; i < 16; i++)
        bed.port[i].silent = true;
    assert_true(fabs(delivered_share(&bed, 50000000, 200000000) / (0.5 * line) - 1) < 0.01);
    bed.port[8].silent = bed.port[9].silent = false;
    assert_true(fabs(delivered_share(&bed, 100000000, 200000000) / (0.1 * line) - 1) < 0.02);
    for (unsigned i = 4; i < 16; i++)
        bed.port[i].silent = true;
    assert_true(fabs(delivered_share(&bed, 500000000, 200000000) / (0.25 * line) - 1) < 0.01);
    bed.source = NULL;
    bed_drain(&bed);
    bed_close(&bed);
}

/* --- modules joined by a trunk --- */

static bool across(struct model_bed *bed, unsigned port, struct bed_frame *frame)
{
    unsigned other = (unsigned)(uintptr_t)bed->peer->own;

    if (port == bed->trunk)
        return false;
    *frame = (struct bed_frame){
        BED_STATION((uintptr_t)bed->own + port), BED_STATION(other + port), 1518, 0x88b5, 0, 0};
    return true;
}

static void test_a_trunk_of_eight_links_gives_twelve_pairs_two_thirds(void **state)
{
    static struct model_bed beds[2];
    int64_t window = 400000000;
    uint64_t frames = 0;

    for (unsigned k = 0; k < 2; k++) {
        bed_plain(&beds[k], 13, 10 * M);
        beds[k].ports[12] = (struct model_port_conf){
            .name = "trunk", .trunk = true, .rate = {.step = {{0, 80 * M}}, .step_count = 1}};
        beds[k].conf.buffer_bytes = 128 * 1024;
        beds[k].trunk = 12;
        beds[k].peer = &beds[1 - k];
        beds[k].own = (void *)(uintptr_t)(100 * k);
        beds[k].source = across;
        bed_open(&beds[k]);
    }
    bed_run_pair(&beds[0], &beds[1], 200000000);
    for (unsigned i = 0; i < 12; i++)
        beds[1].port[i].received = 0;
    bed_run_pair(&beds[0], &beds[1], beds[0].now_ns + window);
    for (unsigned i = 0; i < 12; i++)
        frames += beds[1].port[i].received;
    assert_true(fabs((double)frames * 1538 * 8e9 / (double)window / 80e6 - 1) < 0.01);
    for (unsigned k = 0; k < 2; k++) {
        for (unsigned i = 0; i < 12; i++)
            beds[k].port[i].silent = true;
        beds[k].source = NULL;
    }
    bed_drain(&beds[0]);
    bed_drain(&beds[1]);
    bed_drain(&beds[0]);
    bed_drain(&beds[1]);
    for (unsigned k = 0; k < 2; k++)
        bed_close(&beds[k]);
}

/* --- the description --- */

static void test_contradictions_are_refused(void **state)
{
    struct model_bed bed;
    struct model *model;
    struct err err = {""};

    bed_plain(&bed, 4, 100 * M);
    bed.conf.ports = bed.ports;
    bed.conf.queueing = MODEL_VOQ;
    bed.conf.shared = true;
    assert_true(model_open(&model, &bed.conf, &bed.host, 0, &err) < 0);
    assert_non_null(strstr(err.text, "shared memory"));
    bed.conf.shared = false;
    bed.conf.capacity.step_count = 1;
    err.text[0] = '\0';
    assert_true(model_open(&model, &bed.conf, &bed.host, 0, &err) < 0);
    assert_non_null(strstr(err.text, "capacity"));
    bed.conf.queueing = MODEL_OUTPUT;
    bed.conf.capacity = (struct model_rates){.step = {{8, 1}, {4, 2}}, .step_count = 2};
    err.text[0] = '\0';
    assert_true(model_open(&model, &bed.conf, &bed.host, 0, &err) < 0);
    assert_non_null(strstr(err.text, "ascend"));
    bed.conf.capacity.step_count = 0;
    bed.conf.port_count = 1;
    err.text[0] = '\0';
    assert_true(model_open(&model, &bed.conf, &bed.host, 0, &err) < 0);
    assert_non_null(strstr(err.text, "2 to 64"));
    assert_null(model);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_rate_is_exact),
        cmocka_unit_test(test_two_into_one_lose_exactly_half_once_the_buffer_is_full),
        cmocka_unit_test(test_shared_memory_is_the_queues_together),
        cmocka_unit_test(test_latency_is_added),
        cmocka_unit_test(test_a_frame_above_the_mtu_is_dropped_and_a_tag_is_no_part_of_it),
        cmocka_unit_test(test_head_of_line_blocking_takes_what_theory_says),
        cmocka_unit_test(test_a_queue_for_each_output_does_not_block),
        cmocka_unit_test(test_queueing_at_the_inputs_is_fair),
        cmocka_unit_test(test_pause_loses_nothing_and_wastes_nothing),
        cmocka_unit_test(test_without_pause_the_same_load_loses),
        cmocka_unit_test(test_a_pause_frame_is_honoured_for_its_time),
        cmocka_unit_test(test_a_trunk_is_sent_pause_frames),
        cmocka_unit_test(test_a_full_table_floods_the_rest),
        cmocka_unit_test(test_addresses_age_and_move),
        cmocka_unit_test(test_silent_addresses_make_room),
        cmocka_unit_test(test_groups_and_unknown_addresses_go_everywhere_but_back),
        cmocka_unit_test(test_what_is_for_a_bridge_goes_no_further),
        cmocka_unit_test(test_a_capacity_is_kept_and_shared),
        cmocka_unit_test(test_rates_are_linear_between_their_steps),
        cmocka_unit_test(test_it_collapses_above_its_load_and_recovers),
        cmocka_unit_test(test_a_trunk_of_eight_links_gives_twelve_pairs_two_thirds),
        cmocka_unit_test(test_contradictions_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
