/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lane of messages over a transport that is these functions: a lane that sends to itself, over
 * a service that may lose whole messages. What is lost is given up, counted nowhere as damage, and
 * holds up nothing.
 */
#include "clock.h"
#include "message_lane.h"
#include "unit.h"

#include <arpa/inet.h>

#define BYTES_MOST 4096u
#define BUDGET_MOST 8192u
#define LIMIT_NS (60 * NS_PER_S)
#define MESSAGES 40u /* are posted, answers among them; then the lane is stopped */

static struct {
    uint64_t posted, lose_every; /* every so many-th message is lost; 0: none is */
    unsigned finished;
} wire;

/* The end that a stream of this lane leads to: the flow's own, or its reply's. */
static struct message_end *other_end(const struct message_end *out)
{
    for (unsigned i = 0; i < out->lane->in_count; i++) {
        struct message_end *in = message_lane_end(out->lane, out->lane->out_count + i);

        if (in->stream.script.stream == out->stream.script.stream && in->use == out->use)
            return in;
    }
    return NULL;
}

/* The answers come in two parts, and the first has a wrong byte. */
static struct {
    bool splits;
    struct message_end *in;
    uint8_t rest[4096];
    size_t bytes;
    int polls;
} torn;

static void tear(struct message_end *in, uint8_t *message, size_t length)
{
    const size_t first = length / 2;

    message[first - 1] ^= 1;
    message_stream_feed(&in->stream, message, first);
    torn.in = in;
    torn.bytes = length - first;
    memcpy(torn.rest, message + first, torn.bytes);
}

static uint64_t post(struct message_end *out, uint64_t budget, int64_t now_ns)
{
    uint64_t bytes = 0;

    budget = budget < BUDGET_MOST ? budget : BUDGET_MOST;
    while (bytes < budget && out->stream.at.length > 0 && !out->stopping) {
        struct message_header header = message_cursor_header(&out->stream.at, &out->stream.script);
        struct message_end *in = other_end(out);
        uint32_t length = out->stream.at.length;
        uint8_t message[BYTES_MOST];

        memcpy(message, message_payload_at(&out->stream.at, 0), length);
        memcpy(message, &header, length < sizeof header ? length : sizeof header);
        message_cursor_next(&out->stream.at, &out->stream.script);
        out->stream.side->live.payload_bytes += length;
        out->stream.side->live.messages++;
        bytes += length;
        if (++wire.posted % (wire.lose_every > 0 ? wire.lose_every : UINT64_MAX) == 0)
            continue;
        if (torn.splits && in->use == MESSAGE_ANSWER) {
            tear(in, message, length);
            continue;
        }
        if (!in->stream.unreliable ||
            !message_stream_gap(&in->stream, ntohl(header.sequence), length))
            message_stream_take(&in->stream, message, length);
        in->came_ns = clock_now();
    }
    return bytes;
}

static void leave_out(struct message_end *out)
{
    message_cursor_next(&out->stream.at, &out->stream.script);
}

static void finish(struct message_end *out, int64_t now_ns)
{
    struct message_end *in = other_end(out);

    wire.finished++;
    message_stream_skip(&in->stream, (uint32_t)(out->stream.at.sequence - in->stream.at.sequence));
    message_end_over(out);
    message_end_over(in);
}

static bool reap(struct message_lane *lane, int64_t now_ns)
{
    if (torn.bytes > 0 && ++torn.polls % 3 == 0) {
        message_stream_feed(&torn.in->stream, torn.rest, torn.bytes);
        torn.in->came_ns = clock_now();
        torn.bytes = 0;
        return true;
    }
    return false;
}

static int64_t next(struct message_lane *lane, bool moved, int64_t due_ns, int64_t now_ns)
{
    return due_ns;
}

static void start(struct message_lane *lane)
{
    lane->flows[0].payload_share = 0.5;
}

static const struct message_hooks hooks = {
    .out_bytes = sizeof(struct message_end),
    .in_bytes = sizeof(struct message_end),
    .begin = start,
    .post = post,
    .skip = leave_out,
    .finish = finish,
    .reap = reap,
    .next = next,
};

struct bed {
    struct phase phase;
    struct lane_flow flows[2];
    struct port_count count;
    double share;
    struct message_lane lane;
};

static struct bed bed;

static void make(const struct message_plan *plan)
{
    struct lane_request request = {.phase = &bed.phase,
                                   .rank = 0,
                                   .ranks = 2,
                                   .flows = bed.flows,
                                   .send_count = 1,
                                   .receive_count = 1,
                                   .count = &bed.count};
    struct err err = {""};

    memset(&bed.lane, 0, sizeof bed.lane);
    wire.posted = wire.finished = 0;
    for (unsigned i = 0; i < 2; i++)
        bed.flows[i] = (struct lane_flow){.src = 0, .dst = 1, .share = bed.share};
    message_payload_init();
    assert_int_equal(message_lane_make(&bed.lane, &request, &hooks, plan, &err), 0);
}

static void run(const struct message_plan *plan)
{
    make(plan);
    bed.phase.start_ns = bed.phase.open_ns = clock_now();
    bed.phase.stop_ns = bed.phase.close_ns = bed.phase.start_ns + LIMIT_NS;
    while (!(bed.lane.lane.tx_done && bed.lane.lane.rx_done)) {
        (void)message_lane_poll(&bed.lane.lane, clock_now());
        assert_true(clock_now() < bed.phase.stop_ns);
        if (wire.posted >= MESSAGES && bed.lane.lane.stop_ns == bed.phase.stop_ns)
            bed.lane.lane.stop_ns = clock_now();
    }
    assert_string_equal(bed.lane.lane.error.text, "");
    assert_int_equal(bed.flows[1].side.corrupted, 0);
}

static void begin(enum traffic traffic, uint32_t size)
{
    memset(&bed.phase, 0, sizeof bed.phase);
    wire.lose_every = 0;
    bed.phase.traffic = traffic;
    bed.phase.sizes[0] = size;
    bed.phase.size_count = 1;
    bed.phase.load = (struct load){.rate_fps = 2000};
}

/* A stream's counts at both ends; probes beside a stream, and a ping-pong, each of which loses as
 * many times as messages are lost, and no byte of its flow. */
TEST(what_is_lost_holds_up_nothing)
{
    static const struct {
        enum traffic traffic;
        unsigned streams, finished;
        double probe_fps;
        uint64_t lose_every;
    } cases[] = {
        {TRAFFIC_STREAM, 3, 3, 0, 0},
        {TRAFFIC_STREAM, 1, 3, 2000, 0}, /* the load's, the probes' and the answers' end */
        {TRAFFIC_STREAM, 1, 3, 2000, 3},
        {TRAFFIC_STREAM, 1, 3, 2000, 6},
        {TRAFFIC_PINGPONG, 1, 2, 0, 0},
        {TRAFFIC_PINGPONG, 1, 2, 0, 11},
    };

    for (EACH(c, cases)) {
        bool stream = c->traffic == TRAFFIC_STREAM && c->probe_fps == 0;
        const struct message_plan plan = {.transport = "test",
                                          .label = "p",
                                          .streams = c->streams,
                                          .probe_fps = c->probe_fps,
                                          .unreliable = !stream};
        struct flow_reading reading = {0};
        const struct latency *latency =
            &reading.latency[c->probe_fps > 0 ? LATENCY_ROUND_TRIP : LATENCY_PINGPONG];

        begin(c->traffic, 1000);
        bed.phase.pingpong = (struct pingpong_options){.count = 15, .timeout_ns = NS_PER_MS};
        if (!stream)
            bed.phase.load.rate_fps = 0.001; /* nothing but probes */
        wire.lose_every = c->lose_every;
        run(&plan);
        message_lane_read_flow(&bed.lane.lane, &bed.flows[0], &reading);
        assert_int_equal(wire.finished, c->finished);
        if (stream) {
            assert_true(bed.flows[0].side.live.messages >= MESSAGES);
            assert_int_equal(bed.flows[1].side.live.messages, bed.flows[0].side.live.messages);
            assert_int_equal(bed.flows[1].side.live.payload_bytes,
                             bed.flows[0].side.live.payload_bytes);
        } else {
            assert_true(latency->sent > 10);
            assert_in_range(latency->histogram.count, c->lose_every > 0 ? 1 : latency->sent,
                            latency->sent - (c->lose_every > 0));
            assert_true(c->probe_fps == 0 || bed.flows[0].side.live.messages <= 1);
            assert_true(c->probe_fps > 0 || latency->sent == 15);
        }
        message_lane_free(&bed.lane);
    }
}

TEST(an_answer_with_a_wrong_byte_is_none)
{
    const struct message_plan plan = {.transport = "test", .label = "p", .streams = 1};
    struct flow_reading reading = {0};

    begin(TRAFFIC_PINGPONG, 1000);
    bed.phase.pingpong = (struct pingpong_options){.count = 15, .timeout_ns = NS_PER_MS};
    torn.splits = true;
    run(&plan);
    torn.splits = false;
    message_lane_read_flow(&bed.lane.lane, &bed.flows[0], &reading);
    assert_int_equal(reading.latency[LATENCY_PINGPONG].sent, 15);
    assert_int_equal(reading.latency[LATENCY_PINGPONG].histogram.count, 0);
    message_lane_free(&bed.lane);
}

/* What a flow sends in a second, to a message or so, and what its load asked for: of a rate its
 * share, of a transfer every byte, of a check the sizes in turn whatever the load is, and as fast
 * as it goes what was sent. */
TEST(loads_are_met)
{
    static const struct {
        enum traffic traffic;
        struct load load;
        double share;
        unsigned streams;
        uint64_t sends, intended; /* 0: as much as it sends */
    } cases[] = {
        {TRAFFIC_STREAM, {.rate_bps = 8e6}, 0, 1, 500000, 500000}, /* half of it is payload */
        {TRAFFIC_STREAM, {.rate_bps = 8e6}, 0.75, 3, 375000, 375000},
        {TRAFFIC_STREAM, {.rate_fps = 100}, 0.5, 1, 100000, 100000},
        {TRAFFIC_STREAM, {.unlimited = true}, 0, 2, 0, 0},
        {TRAFFIC_TRANSFER, {.rate_bps = 8e6}, 0, 7, 10001, 10001},
        {TRAFFIC_PROBE, {.rate_fps = 1e6}, 0, 1, 1000 + 3000 + 1000, 0},
    };

    for (EACH(c, cases)) {
        const struct message_plan plan = {
            .transport = "test", .label = "p", .streams = c->streams, .check_bytes = 3000};
        const struct flow_side *side = &bed.flows[0].side;

        begin(c->traffic, 1000);
        bed.phase.sizes[bed.phase.size_count++] = 3000;
        bed.phase.load = c->load;
        bed.phase.transfer_bytes = 10001;
        bed.phase.probes = 3;
        bed.share = c->share;
        make(&plan);
        bed.phase.start_ns = NS_PER_S;
        bed.phase.stop_ns = 2 * NS_PER_S;
        for (int64_t now_ns = NS_PER_S; now_ns < 2 * NS_PER_S + NS_PER_MS; now_ns += 100000)
            (void)message_lane_poll(&bed.lane.lane, now_ns);
        assert_true(bed.lane.lane.tx_done && bed.lane.lane.rx_done);
        if (c->sends > 0)
            assert_in_range(side->live.payload_bytes, c->sends, c->sends + 9000);
        if (c->traffic != TRAFFIC_STREAM)
            assert_int_equal(side->live.payload_bytes, c->sends);
        assert_in_range(side->intended, c->intended, side->live.payload_bytes);
        assert_int_equal(bed.flows[1].side.live.payload_bytes, side->live.payload_bytes);
        message_lane_free(&bed.lane);
        bed.share = 0;
    }
}

TEST(what_no_transport_can_do_is_refused)
{
    static const struct {
        enum traffic traffic;
        unsigned streams;
        enum pattern_role role;
        const char *says;
    } cases[] = {
        {TRAFFIC_PINGPONG, 2, PATTERN_GENERATE, "leave many out"},
        {TRAFFIC_PINGPONG, 1, PATTERN_FORWARD, "not forwarded"},
        {TRAFFIC_STREAM, 1, PATTERN_FORWARD, "forwards one flow into one other"},
        {TRAFFIC_SCHEDULE, 2, PATTERN_GENERATE, "a step's message goes by one stream"},
    };

    for (EACH(c, cases)) {
        const struct message_plan plan = {
            .transport = "test", .label = "p", .streams_key = "many", .streams = c->streams};
        struct lane_request request = {
            .phase = &bed.phase, .ranks = 2, .flows = bed.flows, .send_count = 1};
        struct err err = {""};

        begin(c->traffic, 10);
        bed.flows[0].role = c->role;
        memset(&bed.lane, 0, sizeof bed.lane);
        assert_int_equal(message_lane_make(&bed.lane, &request, &hooks, &plan, &err), -EINVAL);
        assert_non_null(strstr(err.text, c->says));
        message_lane_free(&bed.lane);
    }
}
