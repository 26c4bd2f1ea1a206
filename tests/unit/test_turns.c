/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shares: in turns each flow has its share of a round, spread over it; of a burst a port's lanes
 * send exactly its frames.
 */
#include "frame_lane.h"
#include "unit.h"

#include <math.h>

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
