/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Probes beside a load at their source, without a device: when they leave, which are in flight, and
 * what becomes of those that are late, lost, or come twice.
 */
#include "clock.h"
#include "prober.h"

#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define GAP_NS 1000000

static struct verbs_prober prober;

static void begin(uint32_t max, int64_t timeout_ns)
{
    memset(&prober, 0, sizeof prober);
    prober.schedule.gap_ns = GAP_NS;
    prober.schedule.seed = 7;
    prober.max = max;
    prober.timeout_ns = timeout_ns;
    verbs_prober_begin(&prober, 0);
}

/* Sends one as soon as it is due; returns when. */
static int64_t send_next(bool counts)
{
    int64_t now_ns = prober.schedule.next_ns;

    assert_false(verbs_prober_due(&prober, now_ns - 1));
    assert_true(verbs_prober_due(&prober, now_ns));
    verbs_prober_sent(&prober, now_ns, counts);
    return now_ns;
}

static void their_distance_is_the_gap_in_the_mean(void **state)
{
    const unsigned count = 100000;
    int64_t last_ns = 0;
    int64_t first_ns = 0;

    begin(VERBS_PROBES_OUT, CLOCK_NEVER);
    for (unsigned i = 0; i < count; i++) {
        int64_t now_ns = send_next(true);

        if (i == 0)
            first_ns = now_ns;
        else
            assert_in_range(now_ns - last_ns, GAP_NS / 2, GAP_NS * 3 / 2);
        last_ns = now_ns;
        verbs_prober_replies(&prober, prober.sent, 1, now_ns + 1000);
    }
    assert_in_range(first_ns, 0, GAP_NS);
    assert_in_range((last_ns - first_ns) / (count - 1), GAP_NS * 995 / 1000, GAP_NS * 1005 / 1000);
    assert_int_equal(prober.measured, count);
    assert_int_equal(prober.times.count, count);
    assert_int_equal(prober.times.sum_ns, UINT64_C(1000) * count);
}

/* A sender that comes late does not send what it missed: it would all leave at once. */
static void what_its_sender_was_too_late_for_is_left_out(void **state)
{
    int64_t late_ns = 50 * GAP_NS;

    begin(VERBS_PROBES_OUT, CLOCK_NEVER);
    assert_true(verbs_prober_due(&prober, late_ns));
    verbs_prober_sent(&prober, late_ns, true);
    assert_in_range(prober.schedule.next_ns, late_ns + GAP_NS / 2, late_ns + GAP_NS * 3 / 2);
    assert_false(verbs_prober_due(&prober, late_ns + 1));
}

/* One is as late as four others take: each is sent all the same, and timed from its own beginning.
 */
static void a_late_one_holds_up_no_other(void **state)
{
    int64_t begun_ns[4];

    begin(4, CLOCK_NEVER);
    for (unsigned i = 0; i < 4; i++)
        begun_ns[i] = send_next(true);
    assert_false(
        verbs_prober_due(&prober, prober.schedule.next_ns)); /* there is no place for a fifth */
    assert_true(verbs_prober_waits(&prober, prober.schedule.next_ns));
    verbs_prober_replies(&prober, 4, 0xf, begun_ns[3] + 500);
    assert_false(verbs_prober_waits(&prober, prober.schedule.next_ns));
    assert_int_equal(prober.times.count, 4);
    assert_int_equal(prober.times.min_ns, 500);
    assert_int_equal(prober.times.max_ns, begun_ns[3] + 500 - begun_ns[0]);
    send_next(true);
    assert_int_equal(prober.sent, 5);
}

static void only_those_in_the_window_count(void **state)
{
    int64_t last_ns = 0;

    begin(VERBS_PROBES_OUT, CLOCK_NEVER);
    for (unsigned i = 0; i < 10; i++)
        last_ns = send_next(i >= 3 && i < 7);
    verbs_prober_replies(&prober, 10, 0x3ff, last_ns);
    assert_int_equal(prober.measured, 4);
    assert_int_equal(prober.times.count, 4);
}

/* The second of three is lost, the third's answer comes first, the first's comes twice. */
static void each_answer_counts_once(void **state)
{
    int64_t last_ns = 0;

    begin(VERBS_PROBES_OUT, 20 * GAP_NS);
    for (unsigned i = 0; i < 3; i++)
        last_ns = send_next(true);
    verbs_prober_replies(&prober, 3, 0x1, last_ns + 100);
    verbs_prober_replies(&prober, 3, 0x5, last_ns + 200);
    verbs_prober_replies(&prober, 3, 0x5, last_ns + 300);
    assert_int_equal(prober.times.count, 2);
    assert_int_equal(prober.times.min_ns, 100);
    assert_true(verbs_prober_waits(&prober, last_ns));
    assert_false(verbs_prober_waits(&prober, last_ns + 20 * GAP_NS));
    assert_int_equal(prober.measured - prober.times.count, 1); /* lost */
}

/* All that are in flight are lost: they give their places to others after the timeout. What
 * then still comes of them must not be taken for an answer to those. */
static void what_was_given_up_is_nobodys_answer(void **state)
{
    const int64_t timeout_ns = 100 * GAP_NS;
    int64_t begun_ns = 0;

    begin(VERBS_PROBES_OUT, timeout_ns);
    for (unsigned i = 0; i < VERBS_PROBES_OUT; i++)
        begun_ns = send_next(true);
    while (prober.sent < 2 * VERBS_PROBES_OUT)
        if (verbs_prober_due(&prober, prober.schedule.next_ns)) {
            assert_true(prober.schedule.next_ns > begun_ns);
            verbs_prober_sent(&prober, begun_ns + timeout_ns, true);
        }
    assert_int_equal(prober.out, VERBS_PROBES_OUT);
    verbs_prober_replies(&prober, VERBS_PROBES_OUT, UINT64_MAX, begun_ns + timeout_ns + 5);
    assert_int_equal(prober.times.count, 0);
    verbs_prober_replies(&prober, 2 * VERBS_PROBES_OUT, UINT64_MAX, begun_ns + timeout_ns + 9);
    assert_int_equal(prober.times.count, VERBS_PROBES_OUT);
    assert_int_equal(prober.times.max_ns, 9);
    assert_int_equal(prober.measured - prober.times.count, VERBS_PROBES_OUT);
}

static void a_spoilt_answer_is_a_lost_probe(void **state)
{
    int64_t last_ns;

    begin(VERBS_PROBES_OUT, CLOCK_NEVER);
    send_next(true);
    last_ns = send_next(true);
    verbs_prober_replies(&prober, 1, 1, 0);
    verbs_prober_replies(&prober, 2, 3, last_ns + 10);
    assert_int_equal(prober.measured, 2);
    assert_int_equal(prober.times.count, 1);
    assert_int_equal(prober.times.max_ns, 10);
    assert_false(verbs_prober_waits(&prober, last_ns));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(their_distance_is_the_gap_in_the_mean),
        cmocka_unit_test(what_its_sender_was_too_late_for_is_left_out),
        cmocka_unit_test(a_late_one_holds_up_no_other),
        cmocka_unit_test(only_those_in_the_window_count),
        cmocka_unit_test(each_answer_counts_once),
        cmocka_unit_test(what_was_given_up_is_nobodys_answer),
        cmocka_unit_test(a_spoilt_answer_is_a_lost_probe),
    };

    return cmocka_run_group_tests_name("verbs probes", tests, NULL, NULL);
}
