/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pacing in simulated time: no long-run error, bounded catching up, true intended load. And shares:
 * in turns each flow has its share of a round, spread over it; a port's lanes together send exactly
 * the frames of a burst.
 */
#include "clock.h"
#include "frame_lane.h"
#include "unit.h"

#include <math.h>

#define BURST 64

/* Send the frames that are allowed at `now_ns`. Return their number. */
static uint32_t send_due(struct pace *pace, int64_t now_ns, uint32_t cost)
{
    uint32_t count = pace_allow(pace, now_ns, cost, BURST);

    pace_spend(pace, (uint64_t)count * cost);
    return count;
}

/* Return the frames of a sender that polls every `step_ns` for `seconds`. */
static uint64_t simulate(struct pace *pace, uint32_t cost, int64_t step_ns, double seconds)
{
    int64_t end_ns = pace->origin_ns + (int64_t)(seconds * 1e9);
    uint64_t frames = 0;

    for (int64_t now_ns = pace->origin_ns; now_ns < end_ns; now_ns += step_ns)
        frames += send_due(pace, now_ns, cost);
    return frames;
}

/* Rates whose interval is no whole number of nanoseconds, in frames and in bits (1,518-byte frames
 * at 95 % of 100 Gbit/s), are exact to one frame after a minute. After a month the next frame is
 * still due at the right time, within 1 us. */
TEST(no_error_in_the_long_run)
{
    static const struct {
        double rate;
        uint32_t cost;
        int64_t step_ns;
        double seconds;
    } cases[] = {{3, 1, 10007, 60},          {81274.4, 1, 10007, 60},    {81274.3823, 1, 10007, 60},
                 {1488095.24, 1, 10007, 60}, {333333.333, 1, 10007, 60}, {95e9, 1538 * 8, 1000, 2}};
    const double month_s = 86400 * 30, rate = 148809523.8;
    struct pace pace;

    for (EACH(c, cases)) {
        double want = c->rate / c->cost * c->seconds;
        uint64_t frames;

        pace_init(&pace, c->rate, BURST, 123456789);
        frames = simulate(&pace, c->cost, c->step_ns, c->seconds);
        assert_true(fabs((double)frames - want) <= 2 + want / 60 * 20e-6 + 5);
        assert_int_equal(pace.given_up, 0);
    }
    pace_init(&pace, rate, BURST, 0);
    pace_spend(&pace, (uint64_t)(rate * month_s));
    assert_true(llabs(pace.next_ns - (int64_t)(month_s * 1e9)) < 1000);
    assert_true(pace_allow(&pace, pace.next_ns + 1000, 1, BURST) >= 1);
}

/* A sender of 1,000 frames/s that may catch up with 8 polls at these times, the first of which is
 * the schedule's origin; after each: frames sent, frames given up, and frames sent as a clump. It
 * never sends early, and never more at once than the limit. */
TEST(a_late_sender_catches_up_within_bounds)
{
    static const struct {
        struct {
            int64_t at_us;
            uint32_t sends;
            uint64_t given_up, clumped;
        } comes[6];
    } cases[] = {
        {{{0, 1, 0, 0}, {999, 0, 0, 0}, {1000, 1, 0, 0}, {1999, 0, 0, 0}, {2000, 1, 0, 0}}},
        /* 20 ms late: 20 more are due, of which 8 are sent and the rest is given up. */
        {{{0, 1, 0, 0}, {20000, 8, 12, 8}, {20001, 0, 12, 8}, {21000, 1, 12, 8}}},
        /* A sender that is late by less than the limit gives nothing up, and sends a clump. */
        {{{0, 1, 0, 0}, {1000, 1, 0, 0}, {3000, 2, 0, 0}, {9000, 6, 0, 6}, {9001, 0, 0, 6}}},
    };

    for (EACH(c, cases)) {
        struct pace pace;

        pace_init(&pace, 1000, 8, NS_PER_S);
        assert_int_equal(pace_allow(&pace, NS_PER_S - 1, 1, BURST), 0);
        for (size_t k = 0; k < 6 && (k == 0 || c->comes[k].at_us > 0); k++) {
            assert_int_equal(send_due(&pace, NS_PER_S + c->comes[k].at_us * NS_PER_US, 1),
                             c->comes[k].sends);
            assert_int_equal(pace.given_up, c->comes[k].given_up);
            assert_int_equal(pace.clumped, c->comes[k].clumped);
        }
    }
}

/* A sender whose device takes no more frames is still in time: that is no clump. */
TEST(a_full_device_makes_no_clump)
{
    struct pace pace;

    pace_init(&pace, 1000, 8, 0);
    for (int64_t now_ns = 0; now_ns < 30 * NS_PER_MS; now_ns += NS_PER_MS / 10)
        (void)pace_allow(&pace, now_ns, 1, BURST);
    assert_int_equal(pace.clumped, 0);
    assert_true(pace.given_up > 10);
}

/* Sent + given up + still due equals the load, to the frame, however the sender slept. */
TEST(test_intended_adds_up)
{
    struct pace pace;
    int64_t now_ns = 0;
    uint64_t sent = 0, intended;

    srandom(3);
    pace_init(&pace, 12345.6, 8, 0);
    for (unsigned i = 0; i < 20000; i++) {
        sent += send_due(&pace, now_ns, 1);
        now_ns += random() % (random() % 50 == 0 ? 30 * NS_PER_MS : 200000);
    }
    intended = sent + pace.given_up + pace_due(&pace, now_ns, 1);
    assert_true(pace.given_up > 1000);
    assert_true(fabs((double)intended - pace_intended(&pace, now_ns)) <= 1);
}

/* A sleeping sender gathers three quarters of the limit, but not for longer than PACE_GATHER_NS;
 * without a limit frames are due at once, and none is late. */
TEST(a_sleeper_wakes_in_time)
{
    static const struct {
        double rate;
        uint32_t catch_up;
        int64_t wake_ns;
    } cases[] = {{1000, 8, PACE_GATHER_NS}, {100000, 8, 50000}, {100000, 1, 0}, {0, 8, 0}};
    struct pace pace;

    for (EACH(c, cases)) {
        pace_init(&pace, c->rate, c->catch_up, 0);
        assert_int_equal(pace_wake(&pace, 1), c->wake_ns);
    }
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(send_due(&pace, 1000, 1), BURST);
    assert_int_equal(pace_due(&pace, 10000, 1), 0);
}

/* A dither spreads departures over its whole range, and does not accumulate. */
TEST(test_dither)
{
    const int64_t interval_ns = 1230000; /* of 813 frames/s */
    const int frames = 20000;
    struct pace pace;
    int quarters[4] = {0};

    pace_init(&pace, 1e9 / (double)interval_ns, 8, 0);
    pace_dither(&pace, 1, 1, 42);
    for (int i = 1; i <= frames; i++) {
        int64_t late_ns;

        pace_spend(&pace, 1);
        late_ns = pace.next_ns - (int64_t)i * interval_ns;
        assert_in_range(late_ns + 1, 0, interval_ns + 1);
        assert_int_equal(pace_wake(&pace, 1), pace.next_ns);
        quarters[late_ns < 0 ? 0 : late_ns * 4 / interval_ns]++;
    }
    for (int i = 0; i < 4; i++)
        assert_in_range(quarters[i], frames / 4 * 9 / 10, frames / 4 * 11 / 10);
    assert_int_equal(pace.given_up, 0);
}

/* --- shares --- */

static struct turns turns_of(const double *shares, uint32_t count)
{
    struct lane_flow flows[256] = {0};
    struct turns turns;

    assert_in_range(count, 1, 256);
    for (uint32_t i = 0; i < count; i++)
        flows[i].share = shares[i];
    assert_int_equal(turns_make(&turns, flows, count), 0);
    return turns;
}

TEST(shares_make_a_table)
{
    static const uint32_t expected[] = {0, 1, 2, 0};
    struct turns turns = turns_of((const double[]){0, 0, 0}, 3);
    uint32_t few = 0;

    assert_null(turns.flow); /* flows without shares have none */
    turns = turns_of((const double[]){0.5, 0.25, 0.25}, 3);
    assert_int_equal(turns.count, 4);
    assert_memory_equal(turns.flow, expected, sizeof expected);
    free(turns.flow);
    turns = turns_of((const double[]){0.99, 0.01}, 2); /* decimal percents are exact */
    assert_int_equal(turns.count, 100);
    assert_int_equal(turns.flow[49] + turns.flow[50], 1);
    free(turns.flow);
    turns = turns_of((const double[]){0.9998 / 1.0098, 0.01 / 1.0098}, 2);
    for (uint32_t i = 0; i < turns.count; i++)
        few += turns.flow[i] == 1;
    assert_float_equal((double)few / turns.count, 0.01 / 1.0098, 0.5 / TURNS_MAX);
    free(turns.flow);
    turns =
        turns_of((const double[]){1 - 1e-9, 1e-9}, 2); /* a share of less than a turn gets one */
    assert_int_equal(turns.count, TURNS_MAX + 1);
    assert_int_equal(turns.flow[TURNS_MAX / 2 - 1] + turns.flow[TURNS_MAX / 2] +
                         turns.flow[TURNS_MAX / 2 + 1],
                     1);
    free(turns.flow);
}

/* At any time no flow is a frame ahead of its share, or behind it, by more than the others' ties.
 */
TEST(any_shares_are_met_all_along)
{
    srand(1);
    for (unsigned try = 0; try < 100; try++) {
        uint32_t count = 2 + (uint32_t)rand() % 20, sent[256] = {0};
        double shares[256], sum = 0;
        struct turns turns;

        for (uint32_t i = 0; i < count; i++)
            sum += shares[i] = 1 + rand() % 1000;
        for (uint32_t i = 0; i < count; i++)
            shares[i] /= sum;
        turns = turns_of(shares, count);
        assert_in_range(turns.count, count, TURNS_MAX + count);
        for (uint32_t turn = 0; turn < turns.count; turn++) {
            uint32_t flow = turns.flow[turn];

            assert_in_range(flow, 0, count - 1);
            sent[flow]++;
            if (fabs(sent[flow] - shares[flow] * (turn + 1)) > 1 + count / 2.0)
                fail_msg("flow %u of %u: %u of %u", flow, count, sent[flow], turn + 1);
        }
        for (uint32_t i = 0; i < count; i++)
            assert_float_equal((double)sent[i] / turns.count, shares[i], 1.0 / TURNS_MAX);
        free(turns.flow);
    }
}

TEST(lanes_send_exactly_the_ports_frames)
{
    static const double shares[] = {0.5, 0.01, 0.03, 0.06, 0.1, 0.1, 0.2};

    for (uint64_t frames = 1; frames < 2000; frames += 37) {
        const struct phase phase = {.burst = {.frames = 5000, .own_frames = frames}};
        struct lane_request request = {.phase = &phase};
        uint64_t sum = 0;

        assert_int_equal(turns_burst(&request), frames); /* one lane */
        for (EACH(share, shares)) {
            request.share_from = request.share_to;
            request.share_to += *share;
            assert_float_equal((double)turns_burst(&request), (double)frames * *share, 1);
            sum += turns_burst(&request);
        }
        assert_int_equal(sum, frames);
    }
}
