/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lane of messages over a simulated transport: a lane that sends to itself, over a service that
 * may lose whole messages. Lost messages are given up, counted nowhere as damage, and delay
 * nothing. The battery covers a lane over real sockets, and its refusals.
 */
#include "clock.h"
#include "message_lane.h"
#include "unit.h"

#include <arpa/inet.h>

#define BYTES_MOST 4096u
#define BUDGET_MOST 8192u
#define LIMIT_NS (60 * NS_PER_S)
#define MESSAGES 40u /* messages to post, answers included; then the lane is stopped */

static struct wire {
    uint64_t lose_every; /* one in this many messages is lost; 0: none is */
    bool tears;          /* answers come in two parts, and the first has a wrong byte */
    uint64_t posted;
    unsigned finished, polls;
    struct message_end *torn; /* the second part is on its way to it */
    uint8_t rest[BYTES_MOST];
    size_t rest_bytes;
} wire;

static struct bed {
    struct phase phase;
    struct lane_flow flows[2]; /* sent, received */
    struct port_count count;
    struct message_lane lane;
    struct err err;
} bed;

/* Return the receiving end of a stream of this lane: the flow's own, or its reply's. */
static struct message_end *other_end(const struct message_end *out)
{
    for (unsigned i = out->lane->out_count; i < message_lane_ends(out->lane); i++) {
        struct message_end *in = message_lane_end(out->lane, i);

        if (in->stream.script.stream == out->stream.script.stream && in->use == out->use)
            return in;
    }
    return NULL;
}

static void receive(struct message_end *in, uint8_t *message, uint32_t sequence, uint32_t length)
{
    const size_t first = wire.tears && in->use == MESSAGE_ANSWER ? length / 2 : 0;

    if (wire.lose_every > 0 && wire.posted % wire.lose_every == 0)
        return;
    if (first > 0) {
        message[first - 1] ^= 1;
        message_stream_feed(&in->stream, message, first);
        wire.torn = in;
        wire.rest_bytes = length - first;
        memcpy(wire.rest, message + first, wire.rest_bytes);
        return;
    }
    if (!in->stream.unreliable || !message_stream_gap(&in->stream, sequence, length))
        message_stream_take(&in->stream, message, length);
    in->came_ns = clock_now();
}

static uint64_t post(struct message_end *out, uint64_t budget, int64_t now_ns)
{
    struct message_cursor *at = &out->stream.at;
    uint64_t bytes = 0;

    budget = budget < BUDGET_MOST ? budget : BUDGET_MOST;
    while (bytes < budget && at->length > 0 && !out->stopping) {
        struct message_header header = message_cursor_header(at, &out->stream.script);
        uint32_t length = at->length;
        uint8_t message[BYTES_MOST];

        memcpy(message, message_payload_at(at, 0), length);
        memcpy(message, &header, length < sizeof header ? length : sizeof header);
        message_cursor_next(at, &out->stream.script);
        out->stream.side->live.payload_bytes += length;
        out->stream.side->live.messages++;
        bytes += length;
        wire.posted++;
        receive(other_end(out), message, ntohl(header.sequence), length);
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
    if (wire.rest_bytes == 0 || ++wire.polls % 3 != 0)
        return false;
    message_stream_feed(&wire.torn->stream, wire.rest, wire.rest_bytes);
    wire.torn->came_ns = clock_now();
    wire.rest_bytes = 0;
    return true;
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

/* Prepare a phase of messages of 1,000 bytes, without its lane. */
static void begin(enum traffic traffic)
{
    memset(&bed, 0, sizeof bed);
    memset(&wire, 0, sizeof wire);
    for (unsigned i = 0; i < 2; i++)
        bed.flows[i] = (struct lane_flow){.src = 0, .dst = 1};
    bed.phase = (struct phase){.traffic = traffic, .sizes = {1000}, .size_count = 1};
    message_payload_init();
}

static void make(const struct message_plan *plan)
{
    const struct lane_request request = {.phase = &bed.phase,
                                         .ranks = 2,
                                         .flows = bed.flows,
                                         .send_count = 1,
                                         .receive_count = 1,
                                         .count = &bed.count};

    bed.lane.lane.request = request;
    assert_int_equal(message_lane_make(&bed.lane, &hooks, plan, &bed.err), 0);
}

/* The counts of a stream are right at both ends; probes beside a stream and a ping-pong lose as
 * many round trips as messages are lost, and no byte of their flow. An answer with a wrong byte
 * does not count. */
TEST(what_is_lost_holds_up_nothing)
{
    static const struct {
        enum traffic traffic;
        unsigned streams, finished;
        double probe_fps;
        uint64_t lose_every;
        bool tears;
    } cases[] = {
        {TRAFFIC_STREAM, 3, 3, 0, 0, false},
        {TRAFFIC_STREAM, 1, 3, 2000, 0, false}, /* the load's, the probes' and the answers' end */
        {TRAFFIC_STREAM, 1, 3, 2000, 3, false},
        {TRAFFIC_STREAM, 1, 3, 2000, 6, false},
        {TRAFFIC_PINGPONG, 1, 2, 0, 0, false},
        {TRAFFIC_PINGPONG, 1, 2, 0, 11, false},
        {TRAFFIC_PINGPONG, 1, 2, 0, 0, true},
    };
    const struct flow_side *from = &bed.flows[0].side, *to = &bed.flows[1].side;

    for (EACH(c, cases)) {
        bool stream = c->traffic == TRAFFIC_STREAM && c->probe_fps == 0;
        const struct message_plan plan = {
            .streams = c->streams, .probe_fps = c->probe_fps, .unreliable = !stream && !c->tears};
        struct flow_reading reading = {0};
        const struct latency *latency =
            &reading.latency[c->probe_fps > 0 ? LATENCY_ROUND_TRIP : LATENCY_PINGPONG];
        struct lane *lane = &bed.lane.lane;

        begin(c->traffic);
        bed.phase.load.rate_fps = stream ? 2000 : 0.001; /* nothing but probes */
        bed.phase.answer_timeout_ns = NS_PER_MS;
        wire.lose_every = c->lose_every;
        wire.tears = c->tears;
        make(&plan);
        bed.phase.start_ns = bed.phase.open_ns = clock_now();
        bed.phase.stop_ns = bed.phase.close_ns = bed.phase.start_ns + LIMIT_NS;
        while (!lane->tx_done || !lane->rx_done) {
            (void)message_lane_poll(lane, clock_now());
            assert_true(clock_now() < bed.phase.stop_ns);
            if (wire.posted >= MESSAGES && lane->stop_ns == bed.phase.stop_ns)
                lane->stop_ns = clock_now();
        }
        message_lane_read_flow(lane, &bed.flows[0], &reading);
        assert_string_equal(lane->error.text, "");
        assert_int_equal(to->corrupted, 0);
        assert_int_equal(wire.finished, c->finished);
        if (stream) {
            assert_true(from->live.messages >= MESSAGES);
            assert_true(from->intended >= from->live.payload_bytes); /* messages are begun whole */
            assert_int_equal(to->live.messages, from->live.messages);
            assert_int_equal(to->live.payload_bytes, from->live.payload_bytes);
        } else {
            uint64_t lost = c->lose_every > 0, torn = c->tears ? latency->sent : 0;

            assert_true(latency->sent > 10);
            assert_in_range(latency->histogram.count, lost ? 1 : latency->sent - torn,
                            latency->sent - lost - torn);
            assert_true(c->probe_fps == 0 || from->live.messages <= 1);
        }
        message_lane_free(&bed.lane);
    }
}
