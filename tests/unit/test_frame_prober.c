/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Answers to latency probes, honest and forged, at a port of two queues: whatever comes, no more
 * answers are counted than probes were sent, and no round trip is longer than it was.
 */
#include "frame_prober.h"

#include <stddef.h>

#include <cmocka.h>

#define TAG 7u
#define PARTNER 3u
#define PROBES 10u
#define GAP_NS 1000000
#define RTT_NS 5000

static const struct phase phase = {
    .tag = TAG, .sizes = {64}, .size_count = 1, .latency = {.probe_fps = 1000}};
static struct flow_side side;
static struct lane_flow flow = {.src = 0, .dst = PARTNER, .side = &side};
static struct lane_request requests[2];
static struct frame_prober probers[2];

static int begin(void **state)
{
    for (unsigned i = 0; i < 2; i++) {
        requests[i] = (struct lane_request){.phase = &phase,
                                            .sends = &flow,
                                            .send_count = i == 0,
                                            .port_sends = &flow,
                                            .port_send_count = 1};
        probers[i] = (struct frame_prober){0};
        assert_int_equal(frame_prober_make(&probers[i], &requests[i], i > 0 ? &probers[0] : NULL),
                         0);
    }
    for (unsigned i = 0; i < PROBES; i++)
        frame_prober_leaves(&probers[0], &flow, (i + 1) * GAP_NS);
    assert_int_equal(frame_prober_number(&probers[0], &flow), PROBES);
    return 0;
}

static int end(void **state)
{
    frame_prober_free(&probers[1]);
    frame_prober_free(&probers[0]);
    return 0;
}

static struct signature answer_of(uint32_t number, int64_t stamp_ns)
{
    struct signature signature = {.src = htobe16(PARTNER), .dst = htobe16(0)};
    struct signature_time time = signature_time(stamp_ns);

    signature.tag = htobe16(probe_answer_tag(TAG));
    signature_stamp(&signature, number, &time, signature_base(&signature) + time.sum);
    return signature;
}

static bool measure(unsigned queue, uint32_t number, int64_t stamp_ns, int64_t came_ns)
{
    struct signature answer = answer_of(number, stamp_ns);

    return frame_prober_measure(&probers[queue], &answer, came_ns);
}

static bool honest(unsigned queue, uint32_t number)
{
    return measure(queue, number, (number + 1) * GAP_NS, (number + 1) * GAP_NS + RTT_NS);
}

/* What both queues brought. */
static void expect(uint64_t answers)
{
    struct latency sum = {0};

    for (unsigned i = 0; i < 2; i++)
        assert_true(frame_prober_sum(&probers[i], &flow, &sum));
    assert_int_equal(sum.sent, PROBES);
    assert_int_equal(sum.histogram.count, answers);
    if (answers > 0)
        assert_int_equal(sum.histogram.max_ns, RTT_NS);
}

static void answers_come_by_any_queue(void **state)
{
    for (uint32_t i = 0; i < PROBES; i++)
        assert_true(honest(i % 2, i));
    expect(PROBES);
}

static void one_that_comes_twice_counts_once(void **state)
{
    for (unsigned times = 0; times < 2; times++)
        for (unsigned queue = 0; queue < 2; queue++)
            assert_true(honest(queue, 4));
    expect(1);
}

static void one_to_no_probe_is_forged(void **state)
{
    static const uint32_t numbers[] = {PROBES, PROBES + 1, 100000, INT32_MAX, UINT32_MAX};

    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        for (unsigned queue = 0; queue < 2; queue++)
            assert_false(measure(queue, numbers[i], GAP_NS, 2 * GAP_NS));
    expect(0);
    for (uint32_t i = 0; i < PROBES; i++)
        assert_true(honest(1, i));
    expect(PROBES);
}

/* It would make any round trip of it. */
static void one_with_another_stamp_is_forged(void **state)
{
    assert_false(measure(0, 4, 0, 1000 * GAP_NS));
    assert_false(measure(0, 4, 5 * GAP_NS + 1, 1000 * GAP_NS));
    assert_false(measure(0, 4, -1, 1000 * GAP_NS));
    assert_true(honest(0, 4));
    expect(1);
}

static void one_from_a_rank_that_was_not_probed_is_forged(void **state)
{
    struct signature answer = answer_of(0, GAP_NS);

    answer.src = htobe16(PARTNER + 1);
    assert_false(frame_prober_measure(&probers[0], &answer, 2 * GAP_NS));
    expect(0);
}

static void one_that_was_not_taken_was_not_sent(void **state)
{
    frame_prober_leaves(&probers[0], &flow, (PROBES + 1) * GAP_NS);
    frame_prober_stays(&probers[0], &flow);
    assert_false(honest(0, PROBES));
    expect(0);
}

/* More probes than there is room for: old ones are lost, not forged, and numbers begin anew. */
static void the_oldest_are_forgotten(void **state)
{
    uint32_t room = probers[0].room;

    for (uint32_t i = PROBES; i < PROBES + room; i++)
        frame_prober_leaves(&probers[0], &flow, (i + 1) * GAP_NS);
    assert_true(honest(0, PROBES - 1));
    assert_true(honest(1, PROBES));
    assert_true(honest(0, PROBES + room - 1));
    assert_int_equal(probers[0].round_trips[0].count + probers[1].round_trips[0].count, 2);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(answers_come_by_any_queue),
        CASE(one_that_comes_twice_counts_once),
        CASE(one_to_no_probe_is_forged),
        CASE(one_with_another_stamp_is_forged),
        CASE(one_from_a_rank_that_was_not_probed_is_forged),
        CASE(one_that_was_not_taken_was_not_sent),
        CASE(the_oldest_are_forgotten),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
