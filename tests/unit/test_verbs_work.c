/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a lane's turn calls, on a lane whose stream ends are made for the test: no device is asked.
 */
#include "clock.h"
#include "lane.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SLOTS 17u

static unsigned takes_nothing(struct verbs_in *in, int64_t now_ns)
{
    (void)in;
    (void)now_ns;
    return 0;
}

/* The partner's end mark has come by now, and steps look for it here. */
static int64_t takes_mark(struct verbs_lane *lane, int64_t now_ns)
{
    (void)now_ns;
    lane->ins[0].marked = true;
    return CLOCK_NEVER;
}

/* A partner that is slower ends its schedule when our end mark has long been acknowledged. */
static void a_mark_that_comes_behind_our_own_end_is_taken(void **state)
{
    struct phase phase = {.stop_ns = CLOCK_NEVER};
    struct verbs_pair pair = {.need = {.slots = SLOTS}};
    struct verbs_out out = {.end = {.pair = &pair, .ended = true}, .closed = true};
    struct verbs_in in = {.end = {.pair = &pair}, .take = takes_nothing};
    char steps;
    struct verbs_lane lane = {
        .lane = {.request = {.phase = &phase}, .started_ns = 1, .sent_all = true},
        .reliable = true,
        .outs = &out,
        .ins = &in,
        .out_count = 1,
        .outs_ended = 1,
        .in_count = 1,
        .steps = (struct verbs_steps *)(void *)&steps,
        .send = takes_mark,
    };

    (void)state;
    in.end.lane = out.end.lane = &lane;
    (void)verbs_lane_work(&lane, 2);
    (void)verbs_lane_work(&lane, 3);
    assert_true(in.end.ended);
    assert_true(lane.lane.sent_all && lane.lane.received_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_that_comes_behind_our_own_end_is_taken),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
