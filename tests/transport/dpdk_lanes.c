/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lanes of dpdk in a time of our own: two ports of net_ring whose frames this test carries, looks
 * at, loses and forges. Rank 0 sends flows to the ranks from 1 on; rank 1 receives, or sends on.
 */
#include "dpdk_lane.h"
#include "ring_ports.h"

#include <errno.h>
#include <rte_ring.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

#define START_NS NS_PER_S
#define LINE_BPS UINT64_C(100000000)
#define US NS_PER_US
#define MS NS_PER_MS
#define FLOWS_MAX 200
#define PAYLOAD 14u /* of l2 */

static struct bed {
    struct ring_ports rings;
    struct port_conf confs[2];
    struct transport_port *ports[2];
    struct dpdk_options options;
    struct phase phases[2]; /* by rank, and so are the others */
    struct lane *lanes[2];
    struct lane_flow sends[2][FLOWS_MAX];
    struct lane_flow receives[2][FLOWS_MAX];
    struct flow_side sides[2][FLOWS_MAX]; /* of rank 0's sends and of rank 1's receives */
    struct flow_side passed;              /* of rank 1's send */
    struct port_count counts[2];
    int64_t now_ns;
    bool (*arrives)(struct rte_mbuf *frame); /* NULL: each frame of rank 0's does */
    uint64_t carried;                        /* frames of rank 0's, by the wire */
} bed;

/* --- the bed -----------------------------------------------------------------------------------*/

static struct rte_mbuf *take(unsigned port)
{
    void *frame = NULL;

    return rte_ring_dequeue(bed.rings.sent[port], &frame) == 0 ? frame : NULL;
}

static void lose_sent(unsigned port)
{
    struct rte_mbuf *frame;

    while ((frame = take(port)) != NULL)
        rte_pktmbuf_free(frame);
}

static void deliver(struct rte_mbuf *frame)
{
    assert_int_equal(rte_ring_enqueue(bed.rings.received[1], frame), 0);
}

static int fresh(void **state)
{
    bed.options = (struct dpdk_options){.header = HEADER_L2,
                                        .ttl = 64,
                                        .udp_sources = 1,
                                        .burst = 32,
                                        .catch_up = 8,
                                        .addresses = 1,
                                        .learning_rate = 10000};
    memset(bed.sides, 0, sizeof bed.sides);
    memset(&bed.passed, 0, sizeof bed.passed);
    memset(bed.counts, 0, sizeof bed.counts);
    bed.arrives = NULL;
    bed.carried = 0;
    return 0;
}

static void set_phase(enum traffic traffic, uint32_t size, double fps)
{
    bed.phases[0] = bed.phases[1] = (struct phase){.tag = 7,
                                                   .traffic = traffic,
                                                   .sizes = {size},
                                                   .size_count = 1,
                                                   .load = {.rate_fps = fps},
                                                   .probes = 3,
                                                   .options = &bed.options,
                                                   .start_ns = START_NS,
                                                   .open_ns = START_NS,
                                                   .close_ns = CLOCK_NEVER,
                                                   .stop_ns = CLOCK_NEVER};
}

static void set_bursts(uint64_t frames, uint64_t count, int64_t gap_ns)
{
    for (unsigned i = 0; i < 2; i++)
        bed.phases[i].burst = (struct burst_options){
            .frames = frames, .own_frames = frames, .count = count, .gap_ns = gap_ns};
}

static void set_stop(int64_t stop_ns)
{
    for (unsigned i = 0; i < 2; i++)
        bed.phases[i].close_ns = bed.phases[i].stop_ns = stop_ns;
}

/* Prepares a rank's lane for so many flows; `passes`: what rank 1 receives goes on to rank 2. */
static int prepare(unsigned rank, uint32_t flows, bool passes, uint32_t ranks, struct err *err)
{
    struct lane_request request = {.port = bed.ports[rank],
                                   .phase = &bed.phases[rank],
                                   .rank = rank,
                                   .ranks = ranks,
                                   .sends = bed.sends[rank],
                                   .send_count = rank == 0 ? flows : passes,
                                   .receives = bed.receives[rank],
                                   .receive_count = rank == 0 ? 0 : flows,
                                   .count = &bed.counts[rank],
                                   .line_rate_bps = bed.confs[rank].line_rate_bps};
    struct blob partner = transport_address(&transport_dpdk, bed.ports[1 - rank]);

    for (uint32_t i = 0; i < flows; i++) {
        bed.sends[rank][i] =
            (struct lane_flow){.dst = i + 1, .partner = partner, .side = &bed.sides[0][i]};
        bed.receives[rank][i] = (struct lane_flow){
            .src = i + (i > 0), .dst = 1, .partner = partner, .side = &bed.sides[1][i]};
    }
    if (rank == 1)
        bed.sends[1][0] = (struct lane_flow){
            .src = 1, .dst = 2, .role = PATTERN_FORWARD, .partner = partner, .side = &bed.passed};
    return transport_dpdk.prepare(&bed.lanes[rank], &request, err);
}

static void connect_rank(unsigned rank, uint32_t flows, bool passes)
{
    int64_t now_ns = START_NS / 2;
    struct err err = {""};
    int rc;

    if (prepare(rank, flows, passes, flows + 2, &err) != 0)
        fail_msg("%s", err.text);
    while ((rc = transport_dpdk.connect(bed.lanes[rank], now_ns, &err)) == -EINPROGRESS)
        now_ns += MS;
    assert_int_equal(rc, 0);
}

/* Both are connected, as before a barrier; what introduces the ports is lost. */
static void connect_both(uint32_t flows, bool passes)
{
    connect_rank(1, flows, passes);
    connect_rank(0, flows, false);
    lose_sent(0);
    lose_sent(1);
}

/* Both workers are at their lanes, right before the start. */
static void begin(uint32_t flows, bool passes)
{
    connect_both(flows, passes);
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.poll(bed.lanes[i], bed.phases[i].start_ns - 1);
    bed.now_ns = START_NS;
}

static void carry(void)
{
    struct rte_mbuf *frame;

    while ((frame = take(0)) != NULL) {
        bed.carried++;
        if (bed.arrives == NULL || bed.arrives(frame))
            deliver(frame);
        else
            rte_pktmbuf_free(frame);
    }
}

/* Polls both, with the wire between them, every `step_ns` until a time. */
static void play(int64_t until_ns, int64_t step_ns)
{
    for (; bed.now_ns < until_ns; bed.now_ns += step_ns) {
        transport_dpdk.poll(bed.lanes[0], bed.now_ns);
        carry();
        transport_dpdk.poll(bed.lanes[1], bed.now_ns);
    }
}

static uint64_t count(unsigned rank)
{
    transport_dpdk.account(bed.lanes[rank], ACCOUNT_ALL);
    return bed.sides[rank][0].live.frames;
}

/* Frames that rank 1 has when time has come to this. */
static uint64_t received_by(int64_t until_ns, int64_t step_ns)
{
    play(until_ns, step_ns);
    return count(1);
}

static double metric(unsigned rank, const char *name)
{
    static struct flow_reading reading;
    const struct lane_flow *flow = rank == 0 ? bed.sends[0] : bed.receives[1];

    reading = (struct flow_reading){.metric_count = 0};
    transport_dpdk.read_flow(bed.lanes[rank], flow, &reading);
    for (unsigned i = 0; i < reading.metric_count; i++)
        if (strcmp(reading.metrics[i].name, name) == 0)
            return reading.metrics[i].value;
    fail_msg("no metric %s", name);
    return 0;
}

static int end(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        void *frame;

        if (bed.lanes[i] != NULL)
            transport_dpdk.destroy(bed.lanes[i]);
        bed.lanes[i] = NULL;
        lose_sent(i);
        while (rte_ring_dequeue(bed.rings.received[i], &frame) == 0)
            rte_pktmbuf_free(frame);
    }
    return 0;
}

static void expect_refusal(unsigned rank, uint32_t ranks, const char *says)
{
    struct err err = {""};

    assert_int_equal(prepare(rank, 1, false, ranks, &err), -EINVAL);
    bed.lanes[rank] = NULL;
    if (strstr(err.text, says) == NULL)
        fail_msg("'%s' says nothing of '%s'", err.text, says);
}

/* --- bursts of a counted length ----------------------------------------------------------------*/

#define BURST 500
#define GAP_NS (3 * MS)
#define BURST_NS (BURST * US) /* at a frame a microsecond */
#define BURST_STEP_NS 250

static void begin_bursts(uint64_t count, int64_t stop_ns)
{
    bed.options.dither = 1;
    set_phase(TRAFFIC_BURST, 128, 1e6);
    set_bursts(BURST, count, GAP_NS);
    set_stop(stop_ns);
    begin(1, false);
}

/* Exactly so many were asked for, sent and delivered. */
static void expect_bursts(uint64_t frames)
{
    play(bed.now_ns + 2 * GAP_NS, BURST_STEP_NS);
    assert_int_equal(count(0), frames);
    assert_int_equal(bed.sides[0][0].intended, frames);
    assert_int_equal(count(1), frames);
    assert_true(bed.lanes[0]->tx_done);
}

/* The gap begins when the last frame has left the wire, and ends with the next burst's first. */
static void bursts_have_their_frames_and_gaps(void **state)
{
    begin_bursts(3, CLOCK_NEVER);
    assert_int_equal(received_by(START_NS + 10 * US, BURST_STEP_NS), 10);
    for (uint64_t burst = 1; burst <= 3; burst++) {
        int64_t last_ns = START_NS + (int64_t)burst * (BURST_NS + GAP_NS) - GAP_NS - US;

        assert_int_equal(received_by(last_ns, BURST_STEP_NS), burst * BURST - 1);
        assert_int_equal(received_by(last_ns + BURST_STEP_NS, BURST_STEP_NS), burst * BURST);
        assert_int_equal(received_by(last_ns + US + GAP_NS, BURST_STEP_NS), burst * BURST);
    }
    expect_bursts(3 * BURST);
}

/* The core is taken away for most of a burst, and then between two. */
static void a_late_sender_of_bursts_gives_nothing_up(void **state)
{
    begin_bursts(2, CLOCK_NEVER);
    play(START_NS + 20 * US, BURST_STEP_NS);
    assert_true(metric(0, "late_frames") == 0);
    bed.now_ns = START_NS + BURST_NS - 50 * US;
    assert_int_equal(received_by(bed.now_ns + BURST_NS, BURST_STEP_NS), BURST);
    assert_true(metric(0, "late_frames") == BURST - 50 - 20);
    bed.now_ns = START_NS + 4 * GAP_NS;
    expect_bursts(2 * BURST);
}

static void the_last_burst_before_the_stop_is_whole(void **state)
{
    int64_t stop_ns = START_NS + BURST_NS + GAP_NS + 100 * US;

    begin_bursts(0, stop_ns);
    assert_int_equal(received_by(stop_ns, BURST_STEP_NS), BURST + 100);
    expect_bursts(2 * BURST);
}

/* A run that ends early waits for no burst, and says what it did not send. */
static void a_stop_that_is_moved_cuts_a_burst(void **state)
{
    begin_bursts(2, CLOCK_NEVER);
    play(START_NS + 100 * US, BURST_STEP_NS);
    bed.lanes[0]->stop_ns = bed.now_ns;
    play(bed.now_ns + GAP_NS, BURST_STEP_NS);
    assert_int_equal(count(0), 100);
    assert_int_equal(bed.sides[0][0].intended, 2 * BURST);
    assert_int_equal(count(1), 100);
}

/* --- streams -----------------------------------------------------------------------------------*/

/* A stream's sender that was away for 2 ms catches up with 8 frames, and gives up the others. */
static void a_late_stream_tells_what_came_in_a_clump(void **state)
{
    set_phase(TRAFFIC_STREAM, 128, 1e5);
    set_stop(START_NS + 10 * MS);
    begin(1, false);
    play(START_NS + MS, US);
    assert_true(metric(0, "late_frames") == 0);
    bed.now_ns = START_NS + 3 * MS;
    play(START_NS + 10 * MS, US);
    assert_true(metric(0, "late_frames") == 8);
}

/* Its worker comes 40 ms after the start, and finds in the ring what came; it may have visited its
 * port meanwhile as it does between phases. */
static void a_late_worker_counts_what_came(void **state)
{
    for (unsigned visits = 0; visits < 2; visits++) {
        fresh(state);
        set_phase(TRAFFIC_STREAM, 128, 1000);
        connect_both(1, false);
        for (bed.now_ns = START_NS; bed.now_ns < START_NS + 40 * MS; bed.now_ns += MS / 4) {
            transport_dpdk.poll(bed.lanes[0], bed.now_ns);
            carry();
            if (visits && bed.now_ns == START_NS + 20 * MS)
                transport_dpdk.idle(bed.ports[1], bed.now_ns);
        }
        for (unsigned i = 0; i < 4; i++)
            transport_dpdk.poll(bed.lanes[1], bed.now_ns);
        assert_true(count(0) >= 30);
        assert_int_equal(count(1), count(0));
        assert_int_equal(bed.counts[1].foreign, 0);
        end(state);
    }
}

/* Probes leave at the rate that the phase asks for, so that they outlast a partner's late start. */
static void probes_are_spread(void **state)
{
    set_phase(TRAFFIC_PROBE, 128, 20);
    begin(1, false);
    for (uint64_t probes = 1; probes <= 3; probes++)
        assert_int_equal(received_by(START_NS + (int64_t)probes * 50 * MS, MS / 4), probes);
    assert_int_equal(received_by(START_NS + 300 * MS, MS / 4), 3);
}

/* --- a load that falls (RFC 2544, 26.5) --------------------------------------------------------*/

#define FALL_NS (10 * MS) /* from then on a quarter of 100,000 frames/s */
#define FALL_STOP_NS (30 * MS)

static int64_t lost_from_ns, lost_until_ns;

static bool is_not_lost(struct rte_mbuf *frame)
{
    return bed.now_ns < lost_from_ns || bed.now_ns >= lost_until_ns;
}

static void play_fall(int64_t lose_ns, int64_t keep_ns)
{
    uint64_t before = FALL_NS / (10 * US), all = before + (FALL_STOP_NS - FALL_NS) / (40 * US);

    bed.options.falls_to = 25;
    bed.options.falls_after_ns = FALL_NS;
    bed.arrives = is_not_lost;
    lost_from_ns = START_NS + lose_ns;
    lost_until_ns = START_NS + keep_ns;
    set_phase(TRAFFIC_STREAM, 128, 1e5);
    set_stop(START_NS + FALL_STOP_NS);
    begin(1, false);
    play(START_NS + FALL_NS + US, US);
    assert_in_range(count(0), before - 1, before + 1);
    play(START_NS + FALL_STOP_NS + MS, US);
    assert_in_range(count(0), all - 2, all + 2);
    assert_in_range(bed.sides[0][0].intended, count(0), count(0) + 1);
    assert_true(count(1) < count(0));
}

static void the_last_loss_is_told_by_the_frame_behind_it(void **state)
{
    int64_t keep_ns = FALL_NS + 5 * MS;

    play_fall(2 * MS, keep_ns);
    assert_in_range((int64_t)metric(1, "gap_ns"), keep_ns, keep_ns + 40 * US);
    assert_int_equal(metric(1, "numbers"), count(0));
}

static void frames_lost_at_the_end_are_numbers_that_are_missing(void **state)
{
    play_fall(FALL_NS + 5 * MS, FALL_STOP_NS);
    assert_int_equal(metric(1, "gap_ns"), 0);
    assert_int_equal(metric(1, "numbers"), count(1));
}

/* --- the ends of the window --------------------------------------------------------------------*/

static struct signature *signature_of(struct rte_mbuf *frame)
{
    return rte_pktmbuf_mtod_offset(frame, struct signature *, PAYLOAD);
}

/* The frame of rank 0's i-th flow becomes one of rank 1's i-th flow. */
static bool comes_from_its_own_rank(struct rte_mbuf *frame)
{
    struct signature *signature = signature_of(frame);
    struct signature_time time = signature_time((int64_t)signature_ns(signature));

    if (signature->dst == htobe16(1))
        return true;
    signature->src = signature->dst;
    signature->dst = htobe16(1);
    signature_stamp(signature, be32toh(signature->sequence), &time,
                    signature_base(signature) + time.sum);
    return true;
}

static uint64_t sum(unsigned rank, size_t member)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < FLOWS_MAX; i++)
        all += *(const uint64_t *)((const char *)&bed.sides[rank][i] + member);
    return all;
}

#define SUM(rank, member) sum(rank, offsetof(struct flow_side, member))

static void play_frames(uint64_t frames)
{
    play(bed.now_ns + (int64_t)frames * US, US);
}

static void mark_windows(void)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.account(bed.lanes[i], ACCOUNT_MARK);
}

/* Of more flows than are accounted at once: what passed before an end is before it, whenever it is
 * accounted, and nothing that came behind it. */
static void an_end_of_the_window_divides_what_passed(void **state)
{
    uint64_t opened, closed;

    bed.arrives = comes_from_its_own_rank;
    set_phase(TRAFFIC_STREAM, 64, 1e6);
    begin(FLOWS_MAX, false);
    play_frames(1000);
    assert_true(count(0) > 0 && count(1) > 0);
    play_frames(450); /* not accounted yet when the window opens */
    opened = bed.carried;
    mark_windows();
    for (unsigned i = 0; i < 2; i++) {
        unsigned calls = 1;

        for (; !transport_dpdk.account(bed.lanes[i], ACCOUNT_SOME); calls++)
            play_frames(7);
        assert_true(calls > 2);
    }
    play_frames(700);
    closed = bed.carried;
    mark_windows();
    play_frames(700); /* none is accounted until the end */
    for (unsigned i = 0; i < 2; i++) {
        (void)count(i);
        assert_int_equal(SUM(i, window.open.frames), opened);
        assert_int_equal(SUM(i, window.close.frames), closed);
        assert_int_equal(SUM(i, window.close.frame_bytes), closed * 64);
        assert_int_equal(SUM(i, window.close.payload_bytes), closed * (64 - 4 - PAYLOAD));
        assert_int_equal(SUM(i, live.frames), bed.carried);
        assert_int_equal(SUM(i, duplicated) + SUM(i, late) + SUM(i, forged), 0);
    }
}

/* --- sizes and addresses -----------------------------------------------------------------------*/

static bool has_its_size(struct rte_mbuf *frame)
{
    assert_int_equal(rte_pktmbuf_pkt_len(frame), bed.phases[0].sizes[0] - FRAME_FCS);
    return true;
}

/* RFC 2889, 5.9. What is too short for a signature, or not asked for by name, is refused. */
static void short_frames_are_sent_as_they_are(void **state)
{
    static const struct {
        bool undersize;
        uint32_t size;
        const char *refusal;
    } cases[] = {{true, 36, NULL},
                 {true, 63, NULL},
                 {true, 35, "have 36 bytes at least, not 35"},
                 {false, 63, "have 64 bytes at least, not 63"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fresh(state);
        bed.options.undersize = cases[i].undersize;
        bed.arrives = has_its_size;
        set_phase(TRAFFIC_BURST, cases[i].size, 1e5);
        set_bursts(50, 1, 0);
        if (cases[i].refusal != NULL) {
            expect_refusal(0, 2, cases[i].refusal);
            continue;
        }
        begin(1, false);
        assert_int_equal(received_by(START_NS + MS, US), 50);
        assert_int_equal(bed.sides[1][0].live.frame_bytes, 50 * cases[i].size);
        end(state);
    }
}

#define ADDRESSES 100u
#define MANY 2000u /* more than a ring holds */
#define FIRST 40u
#define BLOCK 3

static void expect_address(const uint8_t *at, unsigned port, uint32_t number)
{
    uint8_t own[FRAME_MAC];

    memcpy(own, bed.ports[port]->responder.mac, sizeof own);
    address_write(own, BLOCK, (uint16_t)port, number);
    assert_memory_equal(at, own, sizeof own);
}

static void set_addresses(enum traffic traffic, uint32_t addresses)
{
    bed.options.addresses = addresses;
    bed.options.address_block = BLOCK;
    bed.options.address_first = FIRST;
    set_phase(traffic, 64, 1e5);
    set_bursts(250, 1, 0);
}

/* Its announcement, and one frame from each address to the port that will send to it, at its rate:
 * 10,000/s; then a switch has some time. */
static void a_port_that_receives_makes_its_addresses_known(void **state)
{
    struct err err = {""};

    set_addresses(TRAFFIC_BURST, ADDRESSES);
    assert_int_equal(prepare(1, 1, false, 2, &err), 0);
    for (int64_t ms = 0; ms <= 10; ms++) {
        assert_int_equal(transport_dpdk.connect(bed.lanes[1], ms * MS, &err), -EINPROGRESS);
        assert_int_equal(rte_ring_count(bed.rings.sent[1]), 1 + RTE_MIN(10 * ms + 1, ADDRESSES));
    }
    assert_int_equal(transport_dpdk.connect(bed.lanes[1], NS_PER_S, &err), 0);
    assert_true(metric(1, "learning_late") == 0);
    rte_pktmbuf_free(take(1));
    for (uint32_t number = 0; number < ADDRESSES; number++) {
        struct rte_mbuf *frame = take(1);

        assert_non_null(frame);
        expect_address(rte_pktmbuf_mtod(frame, const uint8_t *), 0, 0);
        expect_address(rte_pktmbuf_mtod(frame, const uint8_t *) + FRAME_MAC, 1, FIRST + number);
        rte_pktmbuf_free(frame);
    }
    assert_null(take(1));
    connect_rank(0, 1, false);
    assert_int_equal(rte_ring_count(bed.rings.sent[0]), 1); /* whoever only sends: no more */
}

/* A switch whose core was taken away: what its ring does not take is sent when it does. */
static void a_full_device_loses_no_learning_frame(void **state)
{
    struct rte_mbuf *frame;
    struct err err = {""};
    uint32_t number = 0;

    set_addresses(TRAFFIC_BURST, MANY);
    assert_int_equal(prepare(1, 1, false, 2, &err), 0);
    for (int64_t ms = 0; ms < 150; ms++)
        (void)transport_dpdk.connect(bed.lanes[1], ms * MS, &err);
    assert_int_equal(transport_dpdk.connect(bed.lanes[1], NS_PER_S, &err), -EAGAIN);
    rte_pktmbuf_free(take(1)); /* its announcement */
    for (int64_t ms = 1000; ms < 1300; ms++) {
        for (; (frame = take(1)) != NULL; number++) {
            expect_address(rte_pktmbuf_mtod(frame, const uint8_t *) + FRAME_MAC, 1, FIRST + number);
            rte_pktmbuf_free(frame);
        }
        (void)transport_dpdk.connect(bed.lanes[1], ms * MS, &err);
    }
    assert_int_equal(number, MANY);
    assert_true(metric(1, "learning_late") > 0);
}

static void nothing_is_learned_for_a_probe(void **state)
{
    set_addresses(TRAFFIC_PROBE, ADDRESSES);
    connect_rank(1, 1, false);
    assert_int_equal(rte_ring_count(bed.rings.sent[1]), 1);
}

static bool has_its_addresses(struct rte_mbuf *frame)
{
    static const uint8_t group[FRAME_MAC] = FRAME_MULTICAST;
    const uint8_t *at = rte_pktmbuf_mtod(frame, const uint8_t *);

    if (bed.options.destination == DESTINATION_MULTICAST)
        assert_memory_equal(at, group, sizeof group);
    else
        expect_address(at, 1, FIRST + (uint32_t)(bed.carried - 1) % ADDRESSES);
    expect_address(at + FRAME_MAC, 0, 0);
    return true;
}

static void frames_go_to_the_addresses_in_turn(void **state)
{
    set_addresses(TRAFFIC_BURST, ADDRESSES);
    bed.arrives = has_its_addresses;
    begin(1, false);
    assert_int_equal(received_by(START_NS + 5 * MS, 10 * US), 250);
    assert_int_equal(bed.carried, 250);
    assert_int_equal(bed.counts[1].misdelivered + bed.counts[1].foreign, 0);
}

/* One frame goes to all, and is of both flows of its sender. */
static void frames_to_all_are_sent_once(void **state)
{
    const struct flow_side *further = &bed.sides[0][1];

    set_addresses(TRAFFIC_BURST, 1);
    bed.options.destination = DESTINATION_MULTICAST;
    bed.arrives = has_its_addresses;
    connect_rank(1, 1, false);
    connect_rank(0, 2, false);
    lose_sent(0);
    lose_sent(1);
    bed.now_ns = START_NS;
    assert_int_equal(received_by(START_NS + 5 * MS, 10 * US), 250);
    assert_int_equal(count(0), 250);
    assert_int_equal(bed.carried, 250);
    assert_false(bed.sides[0][0].is_copy);
    assert_true(further->is_copy);
    assert_int_equal(further->live.frames, 250);
    assert_int_equal(further->intended, 250);
    assert_int_equal(further->first_ns, START_NS);
}

static void what_can_not_be_is_refused(void **state)
{
    static const struct {
        uint32_t addresses;
        enum frame_destination destination;
        enum header_kind header;
        uint32_t ranks;
        const char *says;
    } cases[] = {
        {2, DESTINATION_PORT, HEADER_L2, ADDRESSES_RANKS_MAX + 1, "4096 ranks at most"},
        {2, DESTINATION_BROADCAST, HEADER_L2, 2, "ports one address"},
        {1, DESTINATION_BROADCAST, HEADER_IPV4_UDP, 2, "header l2"},
        {1, DESTINATION_BROADCAST, HEADER_L2, 65535, "65534 others"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        set_addresses(TRAFFIC_BURST, cases[i].addresses);
        bed.options.destination = cases[i].destination;
        bed.options.header = cases[i].header;
        expect_refusal(0, cases[i].ranks, cases[i].says);
    }
}

/* PAUSE and PFC, which no MAC took; another MAC control frame is foreign. */
static void pause_frames_are_counted(void **state)
{
    static const uint16_t opcodes[] = {0x0001, 0x0101, 0x0002};
    static const uint8_t head[] = {0x01, 0x80, 0xc2, 0, 0, 0x01, 2, 0, 0, 0, 0, 9, 0x88, 0x08};
    struct port_facts before, after;

    set_phase(TRAFFIC_STREAM, 64, 1000);
    begin(1, false);
    transport_dpdk.facts(bed.ports[1], &before, true);
    transport_dpdk.poll(bed.lanes[0], START_NS + NS_PER_S);
    for (unsigned i = 0; i < 3; i++) {
        struct rte_mbuf *frame = take(0);
        uint16_t opcode = htobe16(opcodes[i]);

        assert_non_null(frame);
        memcpy(rte_pktmbuf_mtod(frame, uint8_t *), head, sizeof head);
        memcpy(rte_pktmbuf_mtod(frame, uint8_t *) + sizeof head, &opcode, sizeof opcode);
        deliver(frame);
    }
    transport_dpdk.poll(bed.lanes[1], START_NS + NS_PER_S);
    transport_dpdk.facts(bed.ports[1], &after, true);
    assert_int_equal(after.hardware.pause_received - before.hardware.pause_received, 2);
    assert_int_equal(bed.counts[1].foreign, 1);
}

/* --- sending on --------------------------------------------------------------------------------*/

#define OUT 1023u  /* frames that a send ring holds */
#define QUEUE 512u /* and the forwarder beside it */

static uint32_t came; /* out of rank 1, in order */
static int64_t dropped_before;

/* The sender has its buffer again: it has fewer than all these queues hold. */
static bool arrives_as_copy(struct rte_mbuf *frame)
{
    deliver(ring_ports_copy(frame));
    return false;
}

static void begin_passing(uint16_t burst)
{
    bed.arrives = arrives_as_copy;
    bed.options.burst = burst;
    came = 0;
    set_phase(TRAFFIC_STREAM, 128, 1e6);
    begin(1, true);
}

/* Takes what rank 1 has sent: sound, from rank 1 to rank 2, no number left out; how many. */
static uint32_t drain(void)
{
    struct rte_mbuf *frame;
    uint32_t frames = 0;

    for (; (frame = take(1)) != NULL; frames++) {
        const struct signature *signature = signature_of(frame);

        assert_true(signature_sound(signature));
        assert_int_equal(be16toh(signature->src), 1);
        assert_int_equal(be16toh(signature->dst), 2);
        assert_int_equal(be32toh(signature->sequence), came++);
        rte_pktmbuf_free(frame);
    }
    return frames;
}

static int64_t dropped(void)
{
    struct port_facts facts;

    transport_dpdk.facts(bed.ports[1], &facts, true);
    return facts.hardware.dropped_send;
}

/* All that rank 1 got was asked of it; of that all but `lost` has left, and nothing more does. */
static void expect_passed(uint64_t lost)
{
    for (uint32_t left = 1; left > 0; left = drain())
        for (unsigned i = 0; i < 64; i++)
            transport_dpdk.poll(bed.lanes[1], bed.now_ns++);
    assert_int_equal(count(1), bed.carried);
    assert_int_equal(bed.passed.intended, bed.carried);
    assert_int_equal(bed.passed.live.frames, bed.carried - lost);
    assert_int_equal(bed.passed.live.frame_bytes, (bed.carried - lost) * 128);
    assert_int_equal(came, bed.carried - lost);
    dropped_before += (int64_t)lost;
    assert_int_equal(dropped(), dropped_before);
}

/* What comes early waits: the next hop may not be there yet. */
static void a_forwarder_waits_for_the_start(void **state)
{
    set_phase(TRAFFIC_STREAM, 128, 1e6);
    bed.phases[1].start_ns = START_NS + 50 * US;
    came = 0;
    begin(1, true);
    play(START_NS + 40 * US, US);
    assert_true(bed.carried >= 39 && drain() == 0);
    play(START_NS + 60 * US, US);
    expect_passed(0);
}

/* The driver takes a part of a burst, then nothing: the rest waits, and what comes meanwhile stays
 * behind it. A burst may be larger than what is sent at a time. */
static void a_forwarder_keeps_the_order(void **state)
{
    for (uint16_t burst = 4; burst <= 32; burst *= 8) {
        fresh(state);
        begin_passing(burst);
        while (rte_ring_count(bed.rings.sent[1]) < OUT)
            play_frames(10);
        play_frames(200);
        assert_true(bed.counts[1].send_refused > 0);
        for (unsigned i = 0; i < 20; i++) {
            (void)drain();
            play_frames(50);
        }
        expect_passed(0);
        end(state);
    }
}

/* Frames that find no room are this host's drops: not sent, and no number is used for them. */
static void a_forwarder_drops_what_finds_no_room(void **state)
{
    begin_passing(32);
    play_frames(OUT + QUEUE + 500);
    expect_passed(bed.carried - OUT - QUEUE);
}

/* --- forged numbers ----------------------------------------------------------------------------*/

/* A jump that no sender can make is refused; what honest senders, networks and receivers do is not.
 */
#define STEP_NS (100 * US) /* from one frame to the next, at the load */
#define AHEAD 100000u

/* How a frame differs from the honest one. */
struct forgery {
    uint32_t ahead;   /* of its sequence number */
    int64_t later_ns; /* of its stamp */
};

static uint64_t honest, forged;

static void begin_forged(bool connected_only)
{
    honest = forged = 0;
    set_phase(TRAFFIC_STREAM, 512, (double)NS_PER_S / STEP_NS);
    set_stop(100 * NS_PER_S);
    bed.now_ns = START_NS;
    if (connected_only)
        connect_both(1, false);
    else
        begin(1, false);
}

static void let_send(int64_t for_ns)
{
    for (int64_t until_ns = bed.now_ns + for_ns; bed.now_ns < until_ns; bed.now_ns += STEP_NS)
        transport_dpdk.poll(bed.lanes[0], bed.now_ns);
}

/* What is sent meanwhile is lost. */
static void lose(int64_t for_ns)
{
    for (int64_t until_ns = bed.now_ns + for_ns; bed.now_ns < until_ns;) {
        let_send(10 * MS); /* the ring has no room for all */
        lose_sent(0);
    }
}

static void forge(struct rte_mbuf *frame, const struct forgery *forgery)
{
    struct signature *signature = signature_of(frame);
    struct signature_time time =
        signature_time((int64_t)signature_ns(signature) + forgery->later_ns);

    signature_stamp(signature, be32toh(signature->sequence) + forgery->ahead, &time,
                    signature_base(signature) + time.sum);
}

/* One frame, which is forged on its way. */
static void send_forged(const struct forgery *forgery)
{
    struct rte_mbuf *frame;

    for (unsigned i = 0; i < 3 && rte_ring_count(bed.rings.sent[0]) == 0; i++)
        let_send(STEP_NS);
    frame = take(0);
    assert_non_null(frame);
    forge(frame, forgery);
    deliver(frame);
}

/* So many frames, which wait for the receiver; behind each tenth waits a forged one, too. */
static void send_frames(unsigned frames, const struct forgery *forgery)
{
    struct rte_mbuf *frame;

    let_send(frames * STEP_NS);
    while ((frame = take(0)) != NULL) {
        deliver(ring_ports_copy(frame)); /* it is the sender's buffer */
        if (forgery != NULL && honest % 10 == 0) {
            forge(frame, forgery);
            deliver(ring_ports_copy(frame));
            forged++;
        }
        rte_pktmbuf_free(frame);
        honest++;
    }
}

static void expect_judged(void)
{
    const struct flow_side *side = &bed.sides[1][0];

    while (rte_ring_count(bed.rings.received[1]) > 0)
        transport_dpdk.poll(bed.lanes[1], bed.now_ns);
    assert_int_equal(count(1), honest);
    assert_int_equal(side->forged, forged);
    assert_int_equal(side->late + side->duplicated + side->reordered, 0);
}

static void send_and_receive(unsigned frames, const struct forgery *forgery)
{
    for (unsigned i = 0; i < frames; i += 100) {
        send_frames(100, forgery);
        expect_judged();
    }
}

/* A stamp of the future says nothing of how much a sender may have sent. The first frame of all can
 * be forged, too. */
static void jumps_ahead_are_refused(void **state)
{
    const struct forgery jumps[] = {{AHEAD, 0}, {AHEAD, 20 * NS_PER_S}};

    for (unsigned i = 0; i < 2; i++) {
        fresh(state);
        begin_forged(false);
        send_forged(&jumps[i]);
        forged++;
        expect_judged();
        send_and_receive(10000, &jumps[i]);
        assert_in_range(forged, 900, 1100);
        end(state);
    }
}

/* What is lost for a while leaves a gap that the time since then explains; a receiver that was away
 * finds old frames and, behind what its queue had no room for, new ones, all at one time. */
static void a_long_loss_is_a_loss(void **state)
{
    for (unsigned away = 0; away < 2; away++) {
        fresh(state);
        begin_forged(false);
        send_frames(200, NULL);
        if (!away)
            expect_judged();
        lose(5 * NS_PER_S);
        send_frames(200, NULL);
        assert_in_range(honest, 390, 410);
        expect_judged();
        end(state);
    }
}

/* One frame of each second comes, with a stamp that is off; then the time between arrivals has to
 * do. */
static void clocks_that_differ_do_no_harm(void **state)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        const struct forgery off = {0, sign * 20 * NS_PER_S};

        fresh(state);
        begin_forged(false);
        for (honest = 1; honest <= 5; honest++) {
            lose(NS_PER_S);
            send_forged(&off);
            expect_judged();
        }
        end(state);
    }
}

/* Nothing is known of the line: a paced sender keeps to its load. */
static void without_a_line_the_load_is_the_limit(void **state)
{
    for (unsigned i = 0; i < 2; i++)
        bed.confs[i].line_rate_bps = 0;
    jumps_ahead_are_refused(state);
    a_long_loss_is_a_loss(state);
    for (unsigned i = 0; i < 2; i++)
        bed.confs[i].line_rate_bps = LINE_BPS;
}

/* Before the phase's start is known no sender has had time, whatever a stamp says. */
static void a_jump_before_the_start_is_refused(void **state)
{
    const struct forgery forgeries[] = {{INT32_MAX, 0}, {SEQUENCE_WINDOW + 50, NS_PER_S}};

    begin_forged(true);
    for (unsigned i = 0; i < 2; i++) {
        send_forged(&forgeries[i]);
        transport_dpdk.idle(bed.ports[1], START_NS);
    }
    assert_int_equal(count(1), 0);
    assert_int_equal(bed.sides[1][0].forged, 2);
}

/* --- all ---------------------------------------------------------------------------------------*/

static int open_rings(void **state)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    const char *why = ring_ports_make(&bed.rings, 2, false, bed.confs);
    struct err err = {""};

    if (why != NULL)
        fail_msg("%s", why);
    for (unsigned i = 0; i < 2; i++) {
        bed.confs[i].line_rate_bps = LINE_BPS;
        if (transport_dpdk.open(&bed.ports[i], &bed.confs[i], &run, &err) != 0)
            fail_msg("%s", err.text);
    }
    return 0;
}

static int close_ports(void **state)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.close(bed.ports[i]);
    return 0;
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, fresh, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(bursts_have_their_frames_and_gaps),
        CASE(a_late_sender_of_bursts_gives_nothing_up),
        CASE(the_last_burst_before_the_stop_is_whole),
        CASE(a_stop_that_is_moved_cuts_a_burst),
        CASE(a_late_stream_tells_what_came_in_a_clump),
        CASE(a_late_worker_counts_what_came),
        CASE(probes_are_spread),
        CASE(the_last_loss_is_told_by_the_frame_behind_it),
        CASE(frames_lost_at_the_end_are_numbers_that_are_missing),
        CASE(an_end_of_the_window_divides_what_passed),
        CASE(short_frames_are_sent_as_they_are),
        CASE(a_port_that_receives_makes_its_addresses_known),
        CASE(a_full_device_loses_no_learning_frame),
        CASE(nothing_is_learned_for_a_probe),
        CASE(frames_go_to_the_addresses_in_turn),
        CASE(frames_to_all_are_sent_once),
        CASE(what_can_not_be_is_refused),
        CASE(pause_frames_are_counted),
        CASE(jumps_ahead_are_refused),
        CASE(a_long_loss_is_a_loss),
        CASE(clocks_that_differ_do_no_harm),
        CASE(without_a_line_the_load_is_the_limit),
        CASE(a_jump_before_the_start_is_refused),
        CASE(a_forwarder_drops_what_finds_no_room),
        CASE(a_forwarder_waits_for_the_start),
        CASE(a_forwarder_keeps_the_order),
    };

    return cmocka_run_group_tests_name("dpdk_lanes", tests, open_rings, close_ports);
}
