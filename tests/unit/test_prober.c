/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Round trips at a port of two queues: honest and forged answers to probes (never more answers than
 * probes, and no round trip longer than it was), the times at which probes leave, and the start of
 * a ping-pong's next message.
 */
#include "clock.h"
#include "frame_lane.h"
#include "prober.h"
#include "signature.h"
#include "unit.h"

#define PARTNER 3u
#define PARTNERS 3u
#define PROBES 10u
#define GAP_NS 1000000
#define RTT_NS 5000

/* A lane of rank 0 that sends to ranks PARTNER to PARTNER + 2, by two queues. */
static struct bed {
    struct phase phase;
    struct lane_flow flows[PARTNERS];
    struct lane lanes[2];
    struct prober probers[2];
    unsigned sent;
} bed;

static void make(const struct phase *phase, uint32_t flows, unsigned queues)
{
    bed = (struct bed){.phase = *phase};
    bed.phase.close_ns = CLOCK_NEVER;
    for (uint32_t i = 0; i < flows; i++)
        bed.flows[i] = (struct lane_flow){.dst = PARTNER + i};
    for (unsigned i = 0; i < queues; i++) {
        bed.lanes[i].request = (struct lane_request){.phase = &bed.phase,
                                                     .flows = bed.flows,
                                                     .send_count = i == 0 ? flows : 0,
                                                     .port_sends = bed.flows,
                                                     .port_send_count = flows};
        bed.lanes[i].stop_ns = CLOCK_NEVER;
        assert_int_equal(prober_make(&bed.probers[i], &bed.lanes[i], phase->latency.probe_fps,
                                     i > 0 ? &bed.probers[0] : NULL),
                         0);
        prober_begin(&bed.probers[i], 42);
    }
}

static int begin(void **state)
{
    const struct phase phase = {.sizes = {64}, .size_count = 1, .latency.probe_fps = 1000};

    make(&phase, 1, 2);
    for (unsigned i = 0; i < PROBES; i++)
        prober_leaves(&bed.probers[0], 0, (i + 1) * GAP_NS);
    assert_int_equal(prober_left(&bed.probers[0], 0), PROBES);
    return 0;
}

static int end(void **state)
{
    prober_free(&bed.probers[1]);
    prober_free(&bed.probers[0]);
    return 0;
}

static struct latency times(void)
{
    static struct flow_reading reading;

    memset(&reading, 0, sizeof reading);
    for (unsigned i = 0; i < 2; i++)
        prober_read(&bed.probers[i], &bed.flows[0], &reading);
    assert_true(reading.measured[bed.probers[0].pingpong ? LATENCY_PINGPONG : LATENCY_ROUND_TRIP]);
    return reading.latency[bed.probers[0].pingpong ? LATENCY_PINGPONG : LATENCY_ROUND_TRIP];
}

/* --- answers --- */

static bool honest(unsigned queue, uint32_t number)
{
    return prober_back(&bed.probers[queue], 0, number, (number + 1) * GAP_NS,
                       (number + 1) * GAP_NS + RTT_NS);
}

/* Expect this many answers in both queues together. */
static void expect(uint64_t answers)
{
    struct latency sum = times();

    assert_int_equal(sum.sent, PROBES);
    assert_int_equal(sum.histogram.count, answers);
    if (answers > 0)
        assert_int_equal(sum.histogram.max_ns, RTT_NS);
}

TEST_BETWEEN(an_answer_counts_once_by_any_queue, begin, end)
{
    for (uint32_t i = 0; i < PROBES; i++)
        for (unsigned times = 0; times < 4; times++)
            assert_true(honest((i + times) % 2, i));
    expect(PROBES);
}

/* Answers to probes that were not sent, or with a changed stamp, which would claim a round trip of
 * any length. */
TEST_BETWEEN(what_never_left_is_forged, begin, end)
{
    static const struct {
        uint32_t number;
        uint64_t stamp_ns;
    } forged[] = {{PROBES, GAP_NS},    {PROBES + 1, GAP_NS},         {100000, GAP_NS},
                  {INT32_MAX, GAP_NS}, {UINT32_MAX, GAP_NS},         {4, 0},
                  {4, 5 * GAP_NS + 1}, {4, (UINT64_C(1) << 48) - 1}, {UINT32_MAX, 0}};

    for (unsigned i = 0; i < COUNT(forged); i++)
        for (unsigned queue = 0; queue < 2; queue++)
            assert_false(prober_back(&bed.probers[queue], 0, forged[i].number, forged[i].stamp_ns,
                                     1000 * (int64_t)GAP_NS));
    expect(0);
    assert_int_equal(bed.probers[0].flow_of[PARTNER], 1);
    assert_int_equal(bed.probers[0].flow_of[PARTNER + 1], 0); /* a rank that was not probed */
    assert_true(honest(1, 4));
    expect(1);
}

TEST_BETWEEN(one_that_was_not_taken_was_not_sent, begin, end)
{
    prober_leaves(&bed.probers[0], 0, (PROBES + 1) * GAP_NS);
    prober_stays(&bed.probers[0], 0);
    assert_false(honest(0, PROBES));
    assert_int_equal(bed.probers[0].in_flight, PROBES);
    expect(0);
}

/* A probe that is given up counts as sent and lost, also when its answer comes later; probes that
 * left after it are kept. */
TEST_BETWEEN(what_is_given_up_is_lost, begin, end)
{
    prober_forget(&bed.probers[0], 0, 3 * GAP_NS);
    assert_int_equal(bed.probers[0].flows[0].oldest, 2);
    assert_int_equal(bed.probers[0].in_flight, PROBES - 2);
    for (uint32_t i = 0; i < PROBES; i++)
        assert_true(honest(0, i));
    expect(PROBES - 2);
    prober_forget(&bed.probers[0], 0, -1);
    assert_int_equal(bed.probers[0].flows[0].oldest, PROBES);
    assert_int_equal(bed.probers[0].in_flight, 0);
}

/* More probes than there is room for: the oldest are lost, not forged, and their places are used
 * again. */
TEST_BETWEEN(the_oldest_are_forgotten, begin, end)
{
    uint32_t room = bed.probers[0].room;

    for (uint32_t i = PROBES; i < PROBES + room; i++)
        prober_leaves(&bed.probers[0], 0, (i + 1) * GAP_NS);
    assert_true(honest(0, PROBES - 1));
    assert_true(honest(1, PROBES));
    assert_true(honest(0, PROBES + room - 1));
    assert_int_equal(times().histogram.count, 2);
}

/* --- when probes leave --- */

/* 0.1 % of the line over two flows; where the line has no room for both, the load yields. */
TEST(probes_disturb_nobody)
{
    static const struct {
        double asked_fps;
        uint64_t line_bps;
        struct load load;
        double line_bytes, rate_fps;
        bool displaces; /* at 500 probes/s of a flow */
    } cases[] = {
        {-1, 100000000, {.unlimited = true}, 1538, 1e5 / (8 * 1538) / 2, 1},
        {-1, UINT64_C(100000000000), {.rate_fps = 1}, 84, PROBER_FPS, 0},
        {-1, 0, {.rate_fps = 50000}, 84, 25, 0},
        {-1, 0, {.unlimited = true}, 84, PROBER_FPS, 0},
        /* Two flows at 500 probes/s of 276 bytes: 2.208 Mbit/s. */
        {-1, 100000000, {.rate_bps = 2e6}, 276, 1e5 / 2208 / 2, 0},
        {-1, 100000000, {.rate_bps = 97.7e6}, 276, 1e5 / 2208 / 2, false},
        {-1, 100000000, {.rate_bps = 100e6}, 276, 1e5 / 2208 / 2, 1},
        {-1, 100000000, {.rate_fps = 98e6 / 2208}, 276, 1e5 / 2208 / 2, true},
        {250, 100000000, {.unlimited = true}, 276, 250, 1},
        {0, 100000000, {.unlimited = true}, 276, 0, 1},
    };

    for (EACH(c, cases)) {
        const struct phase phase = {.load = c->load, .latency.probe_fps = c->asked_fps};
        const struct lane_request request = {.phase = &phase,
                                             .line_rate_bps = c->line_bps,
                                             .port_sends = bed.flows,
                                             .port_send_count = 1,
                                             .receive_count = 1};

        assert_float_equal(prober_rate(&request, c->line_bytes), c->rate_fps, 1e-9);
        assert_int_equal(prober_displaces(&request, c->line_bytes, 500), c->displaces);
    }
}

/* A second has as many probes as the rate, no two closer than half of their distance, and distances
 * over the whole range. A sender that slept does not send the probes that it missed. */
TEST_BETWEEN(probes_are_even_but_not_regular, begin, end)
{
    struct prober *prober = &bed.probers[0];
    unsigned tenths[10] = {0}, count = 0;
    int64_t last_ns = 0;

    assert_in_range(prober->next_ns, 0, GAP_NS);
    assert_false(prober_due(prober, true, prober->next_ns - 1));
    for (; prober->next_ns < 1000 * (int64_t)GAP_NS; count++) {
        int64_t gap_ns = prober->next_ns - last_ns;

        assert_true(prober_due(prober, true, prober->next_ns));
        assert_in_range(gap_ns, last_ns > 0 ? GAP_NS / 2 : 0, 3 * GAP_NS / 2);
        tenths[last_ns > 0 ? (gap_ns - GAP_NS / 2) * 10 / (GAP_NS + 1) : 0]++;
        last_ns = prober->next_ns;
        prober_step(prober, last_ns);
    }
    assert_in_range(count, 970, 1030);
    for (unsigned i = 0; i < 10; i++)
        assert_in_range(tenths[i], 60, 140);
    prober_step(prober, 5000 * (int64_t)GAP_NS);
    assert_in_range(prober->next_ns - 5000 * (int64_t)GAP_NS, GAP_NS / 2, 3 * GAP_NS / 2);
    bed.lanes[0].stop_ns = prober->next_ns;
    assert_false(prober_due(prober, true, prober->next_ns)); /* none after the stop */
}

/* A lane that is very late sends one probe of each flow. */
TEST(late_probes_are_of_all_flows)
{
    const struct phase phase = {.sizes = {64}, .size_count = 1, .latency.probe_fps = 1000};
    unsigned left[PARTNERS] = {0};

    make(&phase, PARTNERS, 1);
    for (int64_t now_ns = 0; now_ns < 1000 * (int64_t)GAP_NS; now_ns += 2 * GAP_NS)
        for (; prober_due(&bed.probers[0], true, now_ns); prober_step(&bed.probers[0], now_ns))
            left[bed.probers[0].at]++;
    for (unsigned i = 0; i < PARTNERS; i++)
        assert_in_range(left[i], 400, 600);
    end(NULL);
}

/* --- when the next message begins --- */

static void sit_down(void)
{
    const struct phase phase = {
        .traffic = TRAFFIC_PINGPONG, .sizes = {10, 20}, .size_count = 2, .start_ns = clock_now()};

    make(&phase, 1, 1);
}

static void send_one(struct lane *lane, uint32_t flow)
{
    bed.sent++;
}

/* The round trip of the message in flight: its time, or given up (-1), or waited for (0); and
 * whether the next one begins. */
static bool play(int64_t took_ns)
{
    uint64_t left = prober_left(&bed.probers[0], 0);
    uint64_t stamp_ns = left > 0 ? prober_stamp(&bed.probers[0], 0, left - 1) : PROBER_ENDED;
    unsigned before = bed.sent;

    if (stamp_ns != PROBER_ENDED && took_ns != 0)
        assert_true(
            prober_back(&bed.probers[0], 0, (uint32_t)left - 1, stamp_ns,
                        took_ns > 0 ? bed.phase.start_ns + (int64_t)stamp_ns + took_ns : 0));
    (void)prober_pingpong(&bed.probers[0], false, send_one);
    return bed.sent > before;
}

static void check_times(uint64_t sent, uint64_t back, uint64_t min_ns, uint64_t max_ns)
{
    struct latency sum = times();

    assert_int_equal(sum.sent, sent);
    assert_int_equal(sum.histogram.count, back);
    assert_int_equal(sum.histogram.min_ns, min_ns);
    assert_int_equal(sum.histogram.max_ns, max_ns);
}

/* Sizes in turn, one message in flight, until the stop; a message that is given up counts as sent
 * and lost, and messages that began outside the window are not measured. */
TEST(a_flow_has_a_message_in_flight)
{
    sit_down();
    for (int n = 0; n < 4; n++) {
        assert_true(play(n == 3 ? -1 : 999 + n)); /* ends the one before, and begins the next */
        assert_false(play(0));
        assert_int_equal(prober_bytes(&bed.phase, n), n % 2 == 0 ? 10 : 20);
        assert_false(bed.probers[0].ended);
    }
    bed.lanes[0].stop_ns = 0;
    assert_false(play(1003));
    assert_true(bed.probers[0].ended);
    assert_int_equal(bed.sent, 4);
    check_times(4, 3, 1000, 1003);
    end(NULL);

    sit_down();
    bed.phase.open_ns = CLOCK_NEVER - 1;
    assert_true(play(0));
    assert_true(play(5));
    check_times(0, 0, 0, 0);
    end(NULL);
}

static bool sound(const struct frame_lane *lane, const struct frame_seen *seen)
{
    return true;
}

/* An answer has the size of its own message, also while another message is in flight. */
TEST(an_answer_too_late_is_no_stranger)
{
    static struct frame_lane lane;
    static uint16_t flow_of[PATTERN_RANKS_MAX];
    const struct frame_ops ops = {.is_sound = sound};
    struct signature signature = {.tag = 7, .src = htobe16(PARTNER)};
    struct frame_seen seen = {.signature = &signature, .ours = true};
    struct port_count count = {0};

    sit_down();
    assert_true(play(0) && play(-1)); /* 0, of 10 bytes, is given up; 1, of 20, is in flight */
    lane = (struct frame_lane){.lane = bed.lanes[0], .prober = bed.probers[0], .tags = {0, 7}};
    lane.lane.request.count = &count;
    lane.conf.ops = &ops;
    lane.receiver.flow_of = flow_of;
    for (uint32_t bytes = 10; bytes <= 20; bytes += 10) {
        seen.length = frame_message_size(&lane, bytes);
        assert_true(frame_single_take(&lane, &seen, 0));
        assert_int_equal(count.probes_received, 1);
        assert_int_equal(count.foreign, bytes == 20);
    }
    end(NULL);
}
