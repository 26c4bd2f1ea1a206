/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lanes of dpdk in simulated time (ld --wrap): two ports of net_ring whose frames this test
 * carries, delays, inspects, loses and forges. Rank 0 sends flows to the ranks from 1 on; rank 1
 * receives, or forwards.
 */
#include "battery.h"
#include "dpdk_lane.h"
#include "ring_ports.h"
#include "unit.h"

#include <rte_ring.h>

extern const struct transport transport_dpdk;

#define START_NS NS_PER_S
#define LINE_BPS UINT64_C(100000000)
#define US NS_PER_US
#define MS NS_PER_MS
#define FLOWS_MAX 200

static struct bed {
    struct ring_ports rings;
    struct port_conf confs[2];
    struct transport_port *ports[2];
    struct dpdk_options options;
    struct phase phases[2]; /* by rank, as are the next ones */
    struct lane *lanes[2];
    /* Rank 0's sent flows; of rank 1 the forwarded flow, and then those that it receives. */
    struct lane_flow flows[2][FLOWS_MAX + 1];
    struct port_count counts[2];
    int64_t now_ns;
    bool (*arrives)(struct rte_mbuf *frame);             /* NULL: each frame of rank 0's does */
    void (*wire)(unsigned from, struct rte_mbuf *frame); /* takes both ranks' frames instead */
    bool away;                                           /* rank 1's worker is */
    uint64_t carried;                                    /* frames of rank 0's, by the wire */
} bed;

static const struct flow_side *const went = &bed.flows[0][0].side, *const came =
                                                                       &bed.flows[1][1].side;
static const struct flow_side *const passed = &bed.flows[1][0].side;

/* The linker's names (ld --wrap) have no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    *now = (struct timespec){bed.now_ns / NS_PER_S, bed.now_ns % NS_PER_S};
    return 0;
}

/* --- the bed -----------------------------------------------------------------------------------*/

static struct rte_mbuf *take(unsigned port)
{
    void *frame = NULL;

    return rte_ring_dequeue(bed.rings.sent[port], &frame) == 0 ? frame : NULL;
}

static uint32_t lose_sent(unsigned port)
{
    struct rte_mbuf *frame;
    uint32_t lost = 0;

    for (; (frame = take(port)) != NULL; lost++)
        rte_pktmbuf_free(frame);
    return lost;
}

static void deliver(unsigned to, struct rte_mbuf *frame)
{
    assert_int_equal(rte_ring_enqueue(bed.rings.received[to], frame), 0);
}

#define HELD 1024u

/* One direction of the wire: the frames that it holds, all for the same time, and counts of the
 * impaired ones. */
static struct wire {
    struct rte_mbuf *held[HELD];
    int64_t until_ns[HELD];
    unsigned head, tail;        /* free-running */
    struct rte_mbuf *displaced; /* goes after the next one */
    uint64_t frames, dropped, damaged, doubled;
} wires[2];

static void hold(unsigned from, struct rte_mbuf *frame, int64_t for_ns)
{
    struct wire *wire = &wires[from];

    wire->held[wire->tail % HELD] = frame;
    wire->until_ns[wire->tail++ % HELD] = bed.now_ns + for_ns;
}

/* Two ports, which all tests use. */
static void open_rings(void)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    const char *why = ring_ports_make(&bed.rings, 2, false, bed.confs);
    struct err err = {""};

    if (why != NULL)
        fail_msg("%s", why);
    for (unsigned i = 0; i < 2; i++) {
        bed.confs[i].line_rate_bps = LINE_BPS;
        if (transport_open(&transport_dpdk, &bed.ports[i], &bed.confs[i], &run, &err) != 0)
            fail_msg("%s", err.text);
    }
}

static int fresh(void **state)
{
    if (bed.ports[0] == NULL)
        open_rings();
    bed.options = (struct dpdk_options){.header = HEADER_L2,
                                        .ttl = 64,
                                        .frame = {.burst = 32, .catch_up = 8, .udp_sources = 1},
                                        .addresses = 1,
                                        .learning_rate = 10000};
    memset(bed.counts, 0, sizeof bed.counts);
    bed.arrives = NULL;
    bed.wire = NULL;
    memset(wires, 0, sizeof wires);
    bed.away = false;
    bed.carried = 0;
    bed.now_ns = START_NS;
    return 0;
}

static void set_phase(enum traffic traffic, uint32_t size, double fps, int64_t stop_ns)
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
                                                   .close_ns = stop_ns,
                                                   .stop_ns = stop_ns};
}

static void set_bursts(uint64_t frames, uint64_t count, int64_t gap_ns)
{
    bed.phases[0].burst = bed.phases[1].burst = (struct burst_options){
        .frames = frames, .own_frames = frames, .count = count, .gap_ns = gap_ns};
}

/* Prepare a rank's lane for some flows; `passes`: rank 1 forwards to rank 2. */
static int prepare(unsigned rank, uint32_t flows, bool passes, uint32_t ranks, struct err *err)
{
    struct lane_request request = {.port = bed.ports[rank],
                                   .phase = &bed.phases[rank],
                                   .rank = rank,
                                   .ranks = ranks,
                                   .flows = &bed.flows[rank][rank == 1 && !passes],
                                   .send_count = rank == 0 ? flows : passes,
                                   .receive_count = rank == 0 ? 0 : flows,
                                   .count = &bed.counts[rank],
                                   .line_rate_bps = bed.confs[rank].line_rate_bps};
    struct blob partner = transport_address(&transport_dpdk, bed.ports[1 - rank]);

    if (rank == 1)
        bed.flows[1][0] =
            (struct lane_flow){.src = 1, .dst = 2, .role = PATTERN_FORWARD, .partner = partner};
    for (uint32_t i = 0; i < flows; i++)
        bed.flows[rank][i + rank] = (struct lane_flow){
            .src = rank == 0 ? 0 : i + (i > 0), .dst = rank == 0 ? i + 1 : 1, .partner = partner};
    return transport_prepare(&transport_dpdk, &bed.lanes[rank], &request, err);
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

/* Both lanes are connected, as before a barrier; announcements of the ports are discarded. */
static void connect_both(uint32_t flows, bool passes)
{
    connect_rank(1, flows, passes);
    connect_rank(0, flows, false);
    lose_sent(0);
    lose_sent(1);
}

/* Both workers have their lanes, right before the start. */
static void begin(uint32_t flows, bool passes)
{
    connect_both(flows, passes);
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.poll(bed.lanes[i], bed.phases[i].start_ns - 1);
}

static void carry_both(void)
{
    for (unsigned from = 0; from < 2; from++) {
        struct wire *wire = &wires[from];
        struct rte_mbuf *frame;

        while ((frame = take(from)) != NULL)
            bed.wire(from, frame);
        for (; wire->head != wire->tail && wire->until_ns[wire->head % HELD] <= bed.now_ns;
             wire->head++)
            deliver(1 - from, wire->held[wire->head % HELD]);
    }
}

static void carry(void)
{
    struct rte_mbuf *frame;

    while ((frame = take(0)) != NULL) {
        bed.carried++;
        if (bed.arrives == NULL || bed.arrives(frame))
            deliver(1, frame);
        else
            rte_pktmbuf_free(frame);
    }
}

/* Poll both lanes, with the wire between them, every `step_ns` until a time. */
static void play(int64_t until_ns, int64_t step_ns)
{
    for (; bed.now_ns < until_ns; bed.now_ns += step_ns) {
        transport_dpdk.poll(bed.lanes[0], bed.now_ns);
        (bed.wire != NULL ? carry_both : carry)();
        if (!bed.away)
            transport_dpdk.poll(bed.lanes[1], bed.now_ns);
    }
}

static uint64_t count(unsigned rank)
{
    transport_dpdk.account(bed.lanes[rank], ACCOUNT_ALL);
    return rank == 0 ? went->live.frames : came->live.frames;
}

/* Play until a time. Return the frames that rank 1 has received. */
static uint64_t received_by(int64_t until_ns, int64_t step_ns)
{
    play(until_ns, step_ns);
    return count(1);
}

/* Return a rank's results of its first flow, valid until the next call. */
static const struct flow_reading *read_flow(unsigned rank)
{
    return battery_reading(&transport_dpdk, bed.lanes[rank], &bed.flows[rank][rank]);
}

static double metric(unsigned rank, const char *name)
{
    return battery_metric(read_flow(rank), name);
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

static void again(void **state)
{
    end(state);
    fresh(state);
}

/* --- bursts of a counted length ----------------------------------------------------------------*/

#define BURST 500
#define GAP_NS (3 * MS)
#define BURST_NS (BURST * US) /* at a frame a microsecond */
#define BURST_STEP_NS 250

static void begin_bursts(uint64_t count, int64_t stop_ns)
{
    bed.options.frame.dither = 1;
    set_phase(TRAFFIC_BURST, 128, 1e6, stop_ns);
    set_bursts(BURST, count, GAP_NS);
    begin(1, false);
}

/* Play to the end: exactly `frames` frames were intended, sent and delivered. */
static void expect_bursts(uint64_t frames)
{
    play(bed.now_ns + 2 * GAP_NS, BURST_STEP_NS);
    assert_int_equal(count(0), frames);
    assert_int_equal(went->intended, frames);
    assert_int_equal(count(1), frames);
    assert_true(bed.lanes[0]->tx_done);
}

/* The gap begins when the last frame has left the wire, and ends with the first frame of the next
 * burst. */
TEST_BETWEEN(bursts_have_their_frames_and_gaps, fresh, end)
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

/* The core is away for most of a burst, and then between two bursts. */
TEST_BETWEEN(a_late_sender_of_bursts_gives_nothing_up, fresh, end)
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

/* A run that is stopped early does not finish its burst, and intended only what it sent. */
TEST_BETWEEN(a_stop_that_is_known_ends_behind_a_burst_and_one_that_is_moved_within, fresh, end)
{
    int64_t stop_ns = START_NS + BURST_NS + GAP_NS + 100 * US;

    begin_bursts(0, stop_ns);
    assert_int_equal(received_by(stop_ns, BURST_STEP_NS), BURST + 100);
    expect_bursts(2 * BURST);
    again(state);
    begin_bursts(2, CLOCK_NEVER);
    play(START_NS + 100 * US, BURST_STEP_NS);
    bed.lanes[0]->stop_ns = bed.now_ns;
    play(bed.now_ns + GAP_NS, BURST_STEP_NS);
    assert_int_equal(count(0), 100);
    assert_int_equal(went->intended, 2 * BURST);
    assert_int_equal(count(1), 100);
}

/* --- streams -----------------------------------------------------------------------------------*/

/* The receiver's worker starts 40 ms late and finds the frames in the ring; it may have polled its
 * port meanwhile, as it does between phases. */
TEST_BETWEEN(a_late_worker_counts_what_came, fresh, end)
{
    for (unsigned visits = 0; visits < 2; visits++) {
        again(state);
        set_phase(TRAFFIC_STREAM, 128, 1000, CLOCK_NEVER);
        connect_both(1, false);
        bed.away = true;
        play(START_NS + 20 * MS, MS / 4);
        if (visits)
            transport_dpdk.idle(bed.ports[1], bed.now_ns);
        play(START_NS + 40 * MS, MS / 4);
        for (unsigned i = 0; i < 4; i++)
            transport_dpdk.poll(bed.lanes[1], bed.now_ns);
        assert_true(count(0) >= 30);
        assert_int_equal(count(1), count(0));
        assert_int_equal(bed.counts[1].foreign, 0);
    }
}

/* --- wires that hold frames, or do worse -------------------------------------------------------*/

#define WIRE_NS (20 * MS)
#define WIRE_STEP_NS (50 * US)

static void hold_each(unsigned from, struct rte_mbuf *frame)
{
    hold(from, frame, WIRE_NS);
}

static void expect_times(unsigned rank, enum latency_kind kind, int64_t least_ns, int64_t most_ns)
{
    const struct latency *latency = &read_flow(rank)->latency[kind];

    assert_in_range(latency->histogram.count, 70, 600);
    assert_in_range(latency->histogram.min_ns, least_ns, most_ns);
    assert_in_range(latency->histogram.max_ns, least_ns, most_ns);
    assert_true(kind != LATENCY_ROUND_TRIP || latency->sent == latency->histogram.count);
}

/* The wire delays each frame by a known time, which the lanes measure. */
TEST_BETWEEN(a_wire_s_delay_is_measured, fresh, end)
{
    for (enum header_kind header = HEADER_L2; header <= HEADER_IPV6_UDP; header++) {
        again(state);
        bed.options.header = header;
        bed.wire = hold_each;
        set_phase(TRAFFIC_STREAM, 256, 2000, START_NS + 300 * MS);
        bed.phases[0].latency = bed.phases[1].latency =
            (struct latency_options){.probe_fps = 500, .stamps = true};
        begin(1, false);
        play(START_NS + 400 * MS, WIRE_STEP_NS);
        assert_true(count(0) > 500);
        assert_int_equal(count(1), count(0));
        expect_times(1, LATENCY_ONE_WAY, WIRE_NS, WIRE_NS + 2 * WIRE_STEP_NS);
        expect_times(0, LATENCY_ROUND_TRIP, 2 * WIRE_NS, 2 * WIRE_NS + 2 * WIRE_STEP_NS);
    }
}

/* One in so many frames of a direction is impaired; a delayed one is held for longer than the limit
 * for an answer. */
enum { DROP = 41, DAMAGE = 53, DOUBLE = 37, DISPLACE = 7, DELAY = 101 };

/* A frame is the sender's buffer: kept or damaged frames are copies of it. */
static void do_mischief(unsigned from, struct rte_mbuf *sent)
{
    struct wire *wire = &wires[from];
    struct rte_mbuf *frame = ring_ports_copy(sent), *before = wire->displaced;
    uint64_t n = ++wire->frames;

    rte_pktmbuf_free(sent);
    wire->displaced = NULL;
    if (n % DROP == 0) {
        rte_pktmbuf_free(frame);
        wire->dropped++;
    } else if (n % DELAY == 0) {
        hold(from, frame, 120 * MS);
    } else if (n % DISPLACE == 0) {
        wire->displaced = frame;
    } else {
        if (n % DAMAGE == 0) {
            rte_pktmbuf_mtod(frame, uint8_t *)[rte_pktmbuf_data_len(frame) / 2] ^= 4;
            wire->damaged++;
        } else if (n % DOUBLE == 0) {
            deliver(1 - from, ring_ports_copy(frame));
            wire->doubled++;
        }
        deliver(1 - from, frame);
    }
    if (before != NULL)
        deliver(1 - from, before);
}

/* Every frame of a ping-pong is counted by its fate; lost messages are given up, and the next ones
 * begin. */
TEST_BETWEEN(mischief_is_accounted_for, fresh, end)
{
    const struct wire *wire = &wires[0];

    for (enum header_kind header = HEADER_L2; header <= HEADER_IPV6_UDP; header++) {
        const struct latency *times;

        again(state);
        bed.options.header = header;
        bed.wire = do_mischief;
        set_phase(TRAFFIC_PINGPONG, 1000, 1, START_NS + 2 * NS_PER_S);
        for (unsigned i = 0; i < 2; i++) {
            bed.phases[i].messages = true;
            bed.phases[i].answer_timeout_ns = 20 * MS;
        }
        begin(1, false);
        play(START_NS + 3 * NS_PER_S, WIRE_STEP_NS);
        times = &read_flow(0)->latency[LATENCY_PINGPONG];
        assert_true(wire->dropped > 0 && wire->damaged > 0 && wire->doubled > 0);
        assert_int_equal(wire->frames, count(0));
        (void)count(1);
        assert_int_equal(came->corrupted, wire->damaged);
        assert_int_equal(came->live.frames + came->late + came->duplicated + came->corrupted,
                         wire->frames - wire->dropped + wire->doubled - (wire->displaced != NULL));
        assert_true(came->duplicated > 0 && came->reordered > 0);
        assert_in_range(times->histogram.count, 100, times->sent - 1);
        assert_true(came->live.messages >= times->histogram.count);
        assert_int_equal(bed.counts[0].misdelivered + bed.counts[1].misdelivered, 0);
    }
}

#define LONGER 10 /* one of so many frames of a direction */

static unsigned lengthened_from;

/* The rank's frames get one more byte of fill now and then, and stay valid. */
static void lengthen_some(unsigned from, struct rte_mbuf *sent)
{
    struct rte_mbuf *frame = ring_ports_copy(sent);
    uint32_t place = rte_pktmbuf_data_len(frame) - FRAME_ETHERNET - SIGNATURE_BYTES;

    rte_pktmbuf_free(sent);
    if (from == lengthened_from && ++wires[from].frames % LONGER == 0) {
        *(uint8_t *)rte_pktmbuf_append(frame, 1) = fill_table()->bytes[place];
        wires[from].damaged++;
    }
    deliver(1 - from, frame);
}

/* A message with another size than its number's is damaged, and an answer with another size does
 * not count: the message is lost. */
TEST_BETWEEN(a_message_has_its_size_there_and_back, fresh, end)
{
    for (lengthened_from = 0; lengthened_from < 2; lengthened_from++) {
        const struct latency *times;
        uint64_t longer;

        again(state);
        bed.wire = lengthen_some;
        set_phase(TRAFFIC_PINGPONG, 1000, 1, START_NS + NS_PER_S);
        bed.phases[0].messages = bed.phases[1].messages = true;
        bed.phases[0].answer_timeout_ns = bed.phases[1].answer_timeout_ns = 20 * MS;
        begin(1, false);
        play(START_NS + 2 * NS_PER_S, WIRE_STEP_NS);
        times = &read_flow(0)->latency[LATENCY_PINGPONG];
        longer = wires[lengthened_from].damaged;
        (void)count(1);
        assert_true(longer > 10);
        assert_int_equal(times->histogram.count, times->sent - longer);
        assert_int_equal(came->corrupted, lengthened_from == 0 ? longer : 0);
        assert_int_equal(bed.counts[0].foreign, lengthened_from == 0 ? 0 : longer);
        assert_int_equal(bed.counts[1].foreign, 0);
    }
}

/* --- a load that falls (RFC 2544, 26.5) --------------------------------------------------------*/

#define FALL_NS (10 * MS) /* a quarter of 100,000 frames/s from then on */
#define FALL_STOP_NS (30 * MS)

static int64_t lost_from_ns, lost_until_ns;

static bool is_not_lost(struct rte_mbuf *frame)
{
    return bed.now_ns < START_NS + lost_from_ns || bed.now_ns >= START_NS + lost_until_ns;
}

/* The last loss is noticed by the frame after it; at the end, lost frames are missing numbers. */
TEST_BETWEEN(a_load_falls_and_its_last_loss_is_told, fresh, end)
{
    static const struct {
        int64_t from_ns, until_ns, gap_ns; /* of what is lost; the metric */
    } cases[] = {{2 * MS, FALL_NS + 5 * MS, FALL_NS + 5 * MS}, {FALL_NS + 5 * MS, FALL_STOP_NS, 0}};
    uint64_t before = FALL_NS / (10 * US), all = before + (FALL_STOP_NS - FALL_NS) / (40 * US);

    for (size_t i = 0; i < 2; i++) {
        again(state);
        bed.options.frame.falls_to = 25;
        bed.options.frame.falls_after_ns = FALL_NS;
        bed.arrives = is_not_lost;
        lost_from_ns = cases[i].from_ns;
        lost_until_ns = cases[i].until_ns;
        set_phase(TRAFFIC_STREAM, 128, 1e5, START_NS + FALL_STOP_NS);
        begin(1, false);
        play(START_NS + FALL_NS + US, US);
        assert_in_range(count(0), before - 1, before + 1);
        play(START_NS + FALL_STOP_NS + MS, US);
        assert_in_range(count(0), all - 2, all + 2);
        assert_in_range(went->intended, count(0), count(0) + 1);
        assert_true(count(1) < count(0));
        assert_in_range((int64_t)metric(1, "gap_ns"), cases[i].gap_ns,
                        cases[i].gap_ns + (i == 0 ? 40 * US : 0));
        assert_int_equal(metric(1, "numbers"), i == 0 ? count(0) : count(1));
    }
}

/* --- what a frame bears ------------------------------------------------------------------------*/

static uint8_t *bytes_of(struct rte_mbuf *frame)
{
    return rte_pktmbuf_mtod(frame, uint8_t *);
}

static struct signature *signature_of(struct rte_mbuf *frame)
{
    struct frame_shape shape;

    frame_shape(&shape, &bed.options, 7);
    return (struct signature *)(bytes_of(frame) + shape.payload);
}

/* Its signature stays valid after the change, with another number and a later stamp. */
static void stamp_again(struct rte_mbuf *frame, uint32_t ahead, int64_t later_ns)
{
    struct signature *signature = signature_of(frame);
    struct signature_time time = signature_time((int64_t)signature_ns(signature) + later_ns);

    signature_stamp(signature, be32toh(signature->sequence) + ahead, &time,
                    signature_base(signature) + time.sum);
}

/* --- the ends of the window --------------------------------------------------------------------*/

/* Change the frame of rank 0's i-th flow into one of rank 1's i-th flow. */
static bool comes_from_its_own_rank(struct rte_mbuf *frame)
{
    struct signature *signature = signature_of(frame);

    if (signature->dst == htobe16(1))
        return true;
    signature->src = signature->dst;
    signature->dst = htobe16(1);
    stamp_again(frame, 0, 0);
    return true;
}

static uint64_t sum(unsigned rank, size_t member)
{
    uint64_t all = 0;

    for (unsigned i = 0; i < FLOWS_MAX; i++)
        all += *(const uint64_t *)((const char *)&bed.flows[rank][i + rank].side + member);
    return all;
}

#define SUM(rank, member) sum(rank, offsetof(struct flow_side, member))

static void play_frames(uint64_t frames)
{
    play(bed.now_ns + (int64_t)frames * US, US);
}

/* Mark an end of the window now. Return the frames carried so far. */
static uint64_t mark_windows(void)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.account(bed.lanes[i], ACCOUNT_MARK);
    return bed.carried;
}

/* Frames of many flows are accounted some at a time: those that passed before an end of the window
 * count before it, and no later one does. */
TEST_BETWEEN(an_end_of_the_window_divides_what_passed, fresh, end)
{
    uint64_t opened, closed;

    bed.arrives = comes_from_its_own_rank;
    set_phase(TRAFFIC_STREAM, 64, 1e6, CLOCK_NEVER);
    begin(FLOWS_MAX, false);
    play_frames(1000);
    assert_true(count(0) > 0 && count(1) > 0);
    play_frames(450); /* not accounted yet when the window opens */
    opened = mark_windows();
    for (unsigned i = 0; i < 2; i++) {
        unsigned calls = 1;

        for (; !transport_dpdk.account(bed.lanes[i], ACCOUNT_SOME); calls++)
            play_frames(7);
        assert_true(calls > 2);
    }
    play_frames(700);
    closed = mark_windows();
    play_frames(700); /* none is accounted until the end */
    for (unsigned i = 0; i < 2; i++) {
        (void)count(i);
        assert_int_equal(SUM(i, window.open.frames), opened);
        assert_int_equal(SUM(i, window.close.frames), closed);
        assert_int_equal(SUM(i, window.close.frame_bytes), closed * 64);
        assert_int_equal(SUM(i, window.close.payload_bytes), closed * (64 - 4 - FRAME_ETHERNET));
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

#define ADDRESSES 100u
#define FIRST 40u

static void expect_address(const uint8_t *at, unsigned port, uint32_t number)
{
    uint8_t own[FRAME_MAC];

    memcpy(own, bed.ports[port]->responder.mac, sizeof own);
    address_write(own, (uint16_t)port, number);
    assert_memory_equal(at, own, sizeof own);
}

static void set_addresses(enum traffic traffic, uint32_t addresses)
{
    bed.options.addresses = addresses;
    bed.options.address_first = FIRST;
    set_phase(traffic, 64, 1e5, CLOCK_NEVER);
    set_bursts(250, 1, 0);
}

/* Check the frames that make rank 1's addresses known to the port that sends to it, in turn from
 * `number` on. Return the next number. */
static uint32_t take_learning(uint32_t number)
{
    struct rte_mbuf *frame;

    for (; (frame = take(1)) != NULL; number++) {
        expect_address(bytes_of(frame), 0, 0);
        expect_address(bytes_of(frame) + FRAME_MAC, 1, FIRST + number);
        rte_pktmbuf_free(frame);
    }
    return number;
}

/* A receiving port sends its announcement, and one frame from each address at their rate, 10,000/s;
 * then the switch has some time. Frames beyond the ring's size are sent when the ring has room. */
TEST_BETWEEN(a_port_that_receives_makes_its_addresses_known, fresh, end)
{
    static const uint32_t counts[] = {ADDRESSES, 2000};

    for (size_t i = 0; i < 2; i++) {
        struct err err = {""};
        uint32_t number;

        again(state);
        set_addresses(TRAFFIC_BURST, counts[i]);
        assert_int_equal(prepare(1, 1, false, 2, &err), 0);
        for (int64_t ms = 0; ms < 150; ms++) {
            int rc = transport_dpdk.connect(bed.lanes[1], ms * MS, &err);

            if (ms <= 10) {
                assert_int_equal(rc, -EINPROGRESS);
                assert_int_equal(rte_ring_count(bed.rings.sent[1]),
                                 1 + RTE_MIN(10 * ms + 1, counts[i]));
            }
        }
        assert_int_equal(transport_dpdk.connect(bed.lanes[1], NS_PER_S, &err),
                         i == 0 ? 0 : -EAGAIN);
        rte_pktmbuf_free(take(1));
        number = take_learning(0);
        for (int64_t ms = 1000; ms < 1300; ms++) {
            (void)transport_dpdk.connect(bed.lanes[1], ms * MS, &err);
            number = take_learning(number);
        }
        assert_int_equal(number, counts[i]);
        assert_int_equal(metric(1, "learning_late") > 0, i);
        connect_rank(0, 1, false);
        assert_int_equal(lose_sent(0), 1); /* a port that only sends announces nothing else */
    }
    again(state);
    set_addresses(TRAFFIC_PROBE, ADDRESSES);
    connect_rank(1, 1, false);
    assert_int_equal(lose_sent(1), 1); /* nothing is learned for a probe */
}

static bool has_its_addresses(struct rte_mbuf *frame)
{
    static const uint8_t group[FRAME_MAC] = FRAME_MULTICAST;

    if (bed.options.destination == DESTINATION_MULTICAST)
        assert_memory_equal(bytes_of(frame), group, sizeof group);
    else
        expect_address(bytes_of(frame), 1, FIRST + (uint32_t)(bed.carried - 1) % ADDRESSES);
    expect_address(bytes_of(frame) + FRAME_MAC, 0, 0);
    return true;
}

/* Frames go to the addresses in turn; a multicast frame counts for both flows of its sender. */
TEST_BETWEEN(frames_go_to_their_addresses, fresh, end)
{
    const struct flow_side *further = &bed.flows[0][1].side;

    for (unsigned all = 0; all < 2; all++) {
        again(state);
        set_addresses(TRAFFIC_BURST, all ? 1 : ADDRESSES);
        bed.options.destination = all ? DESTINATION_MULTICAST : DESTINATION_PORT;
        bed.arrives = has_its_addresses;
        connect_rank(1, 1, false);
        connect_rank(0, 1 + all, false);
        lose_sent(0);
        lose_sent(1);
        assert_int_equal(received_by(START_NS + 5 * MS, 10 * US), 250);
        assert_int_equal(count(0), 250);
        assert_int_equal(bed.carried, 250);
        assert_int_equal(bed.counts[1].misdelivered + bed.counts[1].foreign, 0);
        assert_false(went->is_copy);
    }
    assert_true(further->is_copy);
    assert_int_equal(further->live.frames, 250);
    assert_int_equal(further->intended, 250);
    assert_int_equal(further->first_ns, START_NS);
}

/* Short frames (RFC 2889, 5.9) are sent without padding, where the size is requested and holds a
 * signature. */
TEST_BETWEEN(what_can_not_be_is_refused, fresh, end)
{
    static const struct {
        uint32_t size, addresses;
        bool undersize;
        enum frame_destination destination;
        enum header_kind header;
        uint32_t ranks;
        const char *says; /* NULL: it is possible */
    } cases[] = {
        {36, 1, true, DESTINATION_PORT, HEADER_L2, 2, NULL},
        {63, 1, true, DESTINATION_PORT, HEADER_L2, 2, NULL},
        {35, 1, true, DESTINATION_PORT, HEADER_L2, 2,
         "must have 36 to 9216 bytes on this port, not 35"},
        {63, 1, false, DESTINATION_PORT, HEADER_L2, 2,
         "must have 64 to 9216 bytes on this port, not 63"},
        {64, 2, false, DESTINATION_PORT, HEADER_L2, ADDRESSES_RANKS_MAX + 1,
         "limited to 4096 ranks"},
        {64, 2, false, DESTINATION_BROADCAST, HEADER_L2, 2, "need header: l2 and addresses: 1"},
        {64, 1, false, DESTINATION_BROADCAST, HEADER_IPV4_UDP, 2, "need header: l2"},
        {64, 1, false, DESTINATION_BROADCAST, HEADER_L2, 65535, "at most 65535 ranks"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        again(state);
        set_addresses(TRAFFIC_BURST, cases[i].addresses);
        bed.options.undersize = cases[i].undersize;
        bed.options.destination = cases[i].destination;
        bed.options.header = cases[i].header;
        bed.phases[0].sizes[0] = bed.phases[1].sizes[0] = cases[i].size;
        bed.arrives = has_its_size;
        if (cases[i].says != NULL) {
            struct err err = {""};

            assert_int_equal(prepare(0, 1, false, cases[i].ranks, &err), -EINVAL);
            bed.lanes[0] = NULL;
            assert_says(err.text, cases[i].says);
            continue;
        }
        begin(1, false);
        assert_int_equal(received_by(START_NS + 5 * MS, 10 * US), 250);
        assert_int_equal(came->live.frame_bytes, 250 * cases[i].size);
    }
}

/* --- judging -----------------------------------------------------------------------------------*/

/* Changes of copies of rank 0's first frame, which arrive before it. */
static const struct harm {
    int at; /* byte to change, from the signature on; 0: none before the new stamp */
    uint16_t tag, src, dst; /* added before the new stamp */
    bool flips, cuts;       /* cuts: it ends before its signature does */
    enum {
        OURS,
        TYPE,
        PROTOCOL
    } other; /* another EtherType or IP protocol, and a damaged signature */
    enum { DUPLICATE, CORRUPT, STRAY, FOREIGN, QUESTION, PAUSE, HARMS } counts_as;
} harms[] = {
    {.counts_as = DUPLICATE},
    {.counts_as = DUPLICATE},
    {.at = 100, .flips = true, .counts_as = CORRUPT}, /* fill */
    {.at = 0, .flips = true, .counts_as = CORRUPT},   /* tag */
    {.at = 2, .flips = true, .counts_as = CORRUPT},   /* source's rank */
    {.at = 8, .flips = true, .counts_as = CORRUPT},   /* number */
    {.at = -1,
     .flips = true,
     .counts_as = CORRUPT},         /* byte before the signature: EtherType or UDP */
    {.dst = 6, .counts_as = STRAY}, /* addressed to rank 7 */
    {.dst = 6, .counts_as = STRAY},
    {.tag = 1, .counts_as = FOREIGN}, /* another phase's */
    {.other = TYPE, .counts_as = FOREIGN},
    {.other = PROTOCOL, .counts_as = FOREIGN},
    {.src = 9, .counts_as = FOREIGN}, /* from a rank without a flow to this one */
    {.cuts = true, .counts_as = FOREIGN},
    {.counts_as = QUESTION}, /* ARP */
    {.counts_as = PAUSE},    /* PAUSE and PFC, which no MAC took; ... */
    {.counts_as = PAUSE},
    {.counts_as = FOREIGN}, /* ... another MAC control frame */
};
#define HARM_COUNT (sizeof harms / sizeof *harms)

static void write_control(struct rte_mbuf *frame, size_t which)
{
    static const uint16_t opcodes[] = {0x0001, 0x0101, 0x0002};
    static const uint8_t head[] = {0x01, 0x80, 0xc2, 0, 0, 0x01, 2, 0, 0, 0, 0, 9, 0x88, 0x08};
    const struct arp_nd_responder asker = {.mac = {2, 0, 0, 0, 0, 9},
                                           .kind = HEADER_IPV4_UDP,
                                           .has_ipv4 = true,
                                           .ipv4 = {198, 18, 0, 9},
                                           .gateway4 = {198, 18, 0, 2}};
    uint16_t opcode = htobe16(opcodes[(which + 3) % 3]);

    if (harms[which].counts_as == QUESTION) {
        (void)responder_request(&asker, bytes_of(frame));
        return;
    }
    memcpy(bytes_of(frame), head, sizeof head);
    memcpy(bytes_of(frame) + sizeof head, &opcode, sizeof opcode);
}

static void do_harm(struct rte_mbuf *frame, size_t which)
{
    static const unsigned protocols[] = {[HEADER_L2] = FRAME_ETHERNET - 1,
                                         [HEADER_IPV4_UDP] = FRAME_ETHERNET + 9,
                                         [HEADER_IPV6_UDP] = FRAME_ETHERNET + 6};
    const struct harm *harm = &harms[which];
    struct signature *signature = signature_of(frame);

    if (which + 4 >= HARM_COUNT) {
        write_control(frame, which);
        return;
    }
    signature->tag = htobe16((uint16_t)(be16toh(signature->tag) + harm->tag));
    signature->src = htobe16((uint16_t)(be16toh(signature->src) + harm->src));
    signature->dst = htobe16((uint16_t)(be16toh(signature->dst) + harm->dst));
    stamp_again(frame, 0, 0);
    if (harm->flips)
        ((uint8_t *)signature)[harm->at] ^= 4;
    if (harm->other != OURS) {
        bytes_of(frame)[harm->other == TYPE ? FRAME_ETHERNET - 1 : protocols[bed.options.header]] ^=
            1;
        signature->tag ^= 0x0404;
    }
    if (harm->cuts)
        assert_int_equal(rte_pktmbuf_trim(frame, rte_pktmbuf_data_len(frame) - 30), 0);
}

static bool arrives_with_harmed(struct rte_mbuf *frame)
{
    for (size_t i = 0; bed.carried == 1 && i < HARM_COUNT; i++) {
        struct rte_mbuf *copy = ring_ports_copy(frame);

        do_harm(copy, i);
        deliver(1, copy);
    }
    return true;
}

/* Every arriving frame is counted once, by its kind; with every kind of header, and with several
 * streams per flow, one of which has a path of its own. */
TEST_BETWEEN(each_frame_is_counted_as_what_it_is, fresh, end)
{
    for (unsigned i = 0; i < 5; i++) { /* the last two: of two streams */
        uint64_t expected[HARMS] = {0}, strays = 0;
        const struct port_count *count_1 = &bed.counts[1];
        struct port_facts before, after;

        again(state);
        for (size_t k = 0; k < HARM_COUNT; k++)
            expected[harms[k].counts_as]++;
        bed.options.header = (enum header_kind)(i < 3 ? i : i - 2);
        bed.options.frame.udp_sources = i < 3 ? 1 : 2;
        bed.arrives = arrives_with_harmed;
        set_phase(TRAFFIC_STREAM, 256, 1000, START_NS + 10 * MS);
        begin(1, false);
        transport_dpdk.facts(bed.ports[1], &before, true);
        play(START_NS + 20 * MS, MS / 4);
        transport_dpdk.facts(bed.ports[1], &after, true);
        assert_true(count(0) >= 9);
        assert_int_equal(count(1), count(0));
        assert_int_equal(came->duplicated, expected[DUPLICATE]);
        assert_int_equal(came->corrupted, expected[CORRUPT]);
        assert_int_equal(came->reordered + came->late + came->forged, 0);
        for (uint32_t k = 0; k < MISDELIVERED_SLOTS; k++)
            if (count_1->misdelivered_flows.flows[k].dst == 7)
                strays += count_1->misdelivered_flows.flows[k].frames;
        assert_int_equal(strays, expected[STRAY]);
        assert_int_equal(count_1->misdelivered, expected[STRAY]);
        assert_int_equal(count_1->foreign, expected[FOREIGN]);
        assert_int_equal(count_1->arp_nd_received, expected[QUESTION] + expected[PAUSE]);
        assert_int_equal(count_1->arp_nd_sent, 2); /* its announcement and the answer */
        assert_int_equal(after.hardware.pause_received - before.hardware.pause_received,
                         expected[PAUSE]);
    }
}

/* A flow's five frames are no multiple of its four UDP source ports: in any random order of the
 * streams each flow sends its whole transfer, and no frame more. */
TEST_BETWEEN(each_flow_sends_its_whole_transfer, fresh, end)
{
    const uint32_t flows = 3, frames = 5;

    for (uint64_t seed = 0; seed < 10; seed++) {
        again(state);
        bed.options.header = HEADER_IPV4_UDP;
        bed.options.frame.udp_sources = 4;
        set_phase(TRAFFIC_TRANSFER, 128, 1e5, START_NS + NS_PER_S);
        bed.phases[0].seed = bed.phases[1].seed = seed;
        bed.phases[0].transfer_bytes = bed.phases[1].transfer_bytes =
            frames * (128 - FRAME_ETHERNET - FRAME_IPV4 - FRAME_UDP - FRAME_FCS);
        begin(flows, false);
        play(START_NS + 2 * MS, 10 * US);
        assert_true(bed.lanes[0]->tx_done);
        (void)count(0);
        for (uint32_t i = 0; i < flows; i++) {
            assert_int_equal(bed.flows[0][i].side.live.frames, frames);
            assert_int_equal(bed.flows[0][i].side.live.payload_bytes, bed.phases[0].transfer_bytes);
        }
    }
}

/* --- sending on --------------------------------------------------------------------------------*/

#define OUT 1023u  /* frames that a send ring holds */
#define QUEUE 512u /* and the forwarder beside it */

static uint32_t left; /* rank 1, in order */
static int64_t dropped_before;

/* The sender gets its buffers back: it has fewer than all these queues hold. */
static bool arrives_as_copy(struct rte_mbuf *frame)
{
    deliver(1, ring_ports_copy(frame));
    return false;
}

static void begin_passing(uint16_t burst, int64_t start_ns)
{
    bed.arrives = arrives_as_copy;
    bed.options.frame.burst = burst;
    left = 0;
    set_phase(TRAFFIC_STREAM, 128, 1e6, CLOCK_NEVER);
    bed.phases[1].start_ns = start_ns;
    begin(1, true);
}

/* Check the frames that rank 1 has sent: valid, from rank 1 to rank 2, without a missing number.
 * Return their number. */
static uint32_t drain(void)
{
    struct rte_mbuf *frame;
    uint32_t frames = 0;

    for (; (frame = take(1)) != NULL; frames++) {
        const struct signature *signature = signature_of(frame);

        assert_true(signature_sound(signature));
        assert_int_equal(be16toh(signature->src), 1);
        assert_int_equal(be16toh(signature->dst), 2);
        assert_int_equal(be32toh(signature->sequence), left++);
        rte_pktmbuf_free(frame);
    }
    return frames;
}

/* Every frame that rank 1 received is intended; all but `lost` frames have left, and no more leave.
 */
static void expect_passed(uint64_t lost)
{
    struct port_facts facts;

    for (uint32_t frames = 1; frames > 0; frames = drain())
        for (unsigned i = 0; i < 64; i++)
            transport_dpdk.poll(bed.lanes[1], bed.now_ns++);
    assert_int_equal(count(1), bed.carried);
    assert_int_equal(passed->intended, bed.carried);
    assert_int_equal(passed->live.frames, bed.carried - lost);
    assert_int_equal(passed->live.frame_bytes, (bed.carried - lost) * 128);
    assert_int_equal(left, bed.carried - lost);
    dropped_before += (int64_t)lost;
    transport_dpdk.facts(bed.ports[1], &facts, true);
    assert_int_equal(facts.hardware.dropped_send, dropped_before);
}

/* Early frames wait, since the next hop may not be there yet. Frames without room are this host's
 * drops: they are not sent, and use no number. */
TEST_BETWEEN(a_forwarder_waits_for_the_start_and_drops_what_finds_no_room, fresh, end)
{
    begin_passing(32, START_NS + 50 * US);
    play(START_NS + 40 * US, US);
    assert_true(bed.carried >= 39 && drain() == 0);
    play(START_NS + 60 * US, US);
    expect_passed(0);
    again(state);
    begin_passing(32, START_NS);
    play_frames(OUT + QUEUE + 500);
    expect_passed(bed.carried - OUT - QUEUE);
}

/* The driver takes a part of a burst, then nothing: the rest waits, and later frames stay behind
 * it. A burst may be larger than one send. */
TEST_BETWEEN(a_forwarder_keeps_the_order, fresh, end)
{
    for (uint16_t burst = 4; burst <= 32; burst *= 8) {
        again(state);
        begin_passing(burst, START_NS);
        while (rte_ring_count(bed.rings.sent[1]) < OUT)
            play_frames(10);
        play_frames(200);
        assert_true(bed.counts[1].send_refused > 0);
        for (unsigned i = 0; i < 20; i++) {
            (void)drain();
            play_frames(50);
        }
        expect_passed(0);
    }
}

/* --- forged numbers ----------------------------------------------------------------------------*/

/* A jump that no sender can make is refused; jumps that honest senders, networks and receivers
 * cause are not. */
#define STEP_NS (100 * US) /* from one frame to the next, at the load */
#define AHEAD 100000u

/* Differences of a frame from the honest one. */
struct forgery {
    uint32_t ahead;   /* of its sequence number */
    int64_t later_ns; /* of its stamp */
};

static const struct forgery
    *forgery; /* of all frames; with `behind` of those after each tenth frame */
static bool behind;
static uint64_t honest, forged;

static bool arrives_forged(struct rte_mbuf *frame)
{
    uint64_t number = honest;

    if (forgery == NULL || behind) {
        deliver(1, ring_ports_copy(frame)); /* it is the sender's buffer */
        honest++;
    }
    if (forgery != NULL && (!behind || number % 10 == 0)) {
        stamp_again(frame, forgery->ahead, forgery->later_ns);
        deliver(1, ring_ports_copy(frame));
        forged++;
    }
    return false;
}

static bool is_lost(struct rte_mbuf *frame)
{
    return false;
}

static void begin_forged(void **state, bool connected_only)
{
    again(state);
    honest = forged = 0;
    bed.away = true;
    set_phase(TRAFFIC_STREAM, 512, (double)NS_PER_S / STEP_NS, 100 * NS_PER_S);
    if (connected_only)
        connect_both(1, false);
    else
        begin(1, false);
}

/* Send frames for `for_ns`, which wait for the receiver. */
static void send_frames(int64_t for_ns, bool (*arrives)(struct rte_mbuf *frame))
{
    bed.arrives = arrives;
    play(bed.now_ns + for_ns, STEP_NS);
}

/* Send one frame, which is forged on its way. */
static void send_forged(const struct forgery *how)
{
    uint64_t before = forged;

    forgery = how;
    behind = false;
    while (forged == before)
        send_frames(STEP_NS, arrives_forged);
}

static void expect_judged(void)
{
    while (rte_ring_count(bed.rings.received[1]) > 0)
        transport_dpdk.poll(bed.lanes[1], bed.now_ns);
    assert_int_equal(count(1), honest);
    assert_int_equal(came->forged, forged);
    assert_int_equal(came->late + came->duplicated + came->reordered, 0);
}

/* A stamp of the future does not extend the number of frames that a sender may have sent. The very
 * first frame can be forged, too; and before the phase's start is known no sender has had time.
 * Where the line's rate is unknown, a paced sender keeps to its load. */
TEST_BETWEEN(jumps_ahead_are_refused, fresh, end)
{
    /* The last number is just beyond the limit of the line and a burst for a first frame. */
    static const struct forgery jumps[] = {
        {AHEAD, 0}, {AHEAD, 20 * NS_PER_S}, {SEQUENCE_WINDOW + 75, 0}};
    static const struct forgery early[] = {{INT32_MAX, 0}, {SEQUENCE_WINDOW + 65, NS_PER_S}};

    for (unsigned i = 0; i < 6; i++) {
        bed.confs[0].line_rate_bps = bed.confs[1].line_rate_bps = i < 3 ? LINE_BPS : 0;
        begin_forged(state, false);
        send_forged(&jumps[i % 3]);
        expect_judged();
        behind = true;
        for (unsigned k = 0; k < 10000 && i % 3 < 2; k += 100) {
            send_frames(100 * STEP_NS, arrives_forged);
            expect_judged();
        }
        assert_in_range(forged, i % 3 < 2 ? 900 : 1, 1100);
    }
    begin_forged(state, true);
    while (forged < 2) {
        send_forged(&early[forged]);
        transport_dpdk.idle(bed.ports[1], START_NS);
    }
    expect_judged();
}

/* A long loss leaves a gap that the time since then explains; a receiver that was away finds old
 * frames and, after those without room in its queue, new ones, all at one time. */
TEST_BETWEEN(a_long_loss_is_a_loss, fresh, end)
{
    for (unsigned i = 0; i < 4; i++) {
        bed.confs[0].line_rate_bps = bed.confs[1].line_rate_bps = i < 2 ? LINE_BPS : 0;
        begin_forged(state, false);
        forgery = NULL;
        send_frames(200 * STEP_NS, arrives_forged);
        if (i % 2 == 0)
            expect_judged();
        send_frames(5 * NS_PER_S, is_lost);
        send_frames(200 * STEP_NS, arrives_forged);
        assert_in_range(honest, 390, 410);
        expect_judged();
    }
}

/* One frame of each second arrives, with a wrong stamp: then the time between arrivals limits the
 * jump of numbers. */
TEST_BETWEEN(clocks_that_differ_do_no_harm, fresh, end)
{
    bed.confs[0].line_rate_bps = bed.confs[1].line_rate_bps = LINE_BPS;
    for (int sign = -1; sign <= 1; sign += 2) {
        const struct forgery off = {0, sign * 20 * NS_PER_S};

        begin_forged(state, false);
        for (honest = 1; honest <= 5; honest++) { /* no frame is refused */
            send_frames(NS_PER_S, is_lost);
            send_forged(&off);
            forged = 0;
            expect_judged();
        }
    }
}
