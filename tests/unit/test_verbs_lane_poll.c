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

/* A device's side of the queue: one receive is completed. */
static struct ibv_wc completed;

static int poll_one(struct ibv_cq *cq, int room, struct ibv_wc *completions)
{
    (void)cq;
    (void)room;
    completions[0] = completed;
    return 1;
}

/* A piece that is shorter than the place for it leaves there what came before. */
static void the_length_of_what_came_is_kept(void **state)
{
    struct ibv_context context = {.ops.poll_cq = poll_one};
    struct ibv_cq cq = {.context = &context};
    uint8_t ring[4 * 64] = {0};
    struct verbs_pair pair = {.cq = &cq, .ring = ring, .need = {.slots = 4, .stride = 64}};
    uint32_t lengths[4] = {0}, bytes;
    char steps;
    struct verbs_lane lane = {.steps = (struct verbs_steps *)(void *)&steps};
    struct verbs_in in = {.end = {.pair = &pair, .lane = &lane}, .lengths = lengths, .place = 3};

    (void)state;
    verbs_in_variant(&in);
    assert_null(verbs_in_arrived(&in, &bytes));
    for (uint32_t i = 0; i < 2; i++) { /* across the ring's end */
        completed = (struct ibv_wc){.status = IBV_WC_SUCCESS,
                                    .wr_id = VERBS_WORK_ID(VERBS_WORK_RECEIVE, (3 + i) % 4),
                                    .byte_len = 50 - 20 * i};
        assert_int_equal(in.take(&in, 0), 1);
    }
    assert_ptr_equal(verbs_in_arrived(&in, &bytes), ring + 3 * 64);
    assert_int_equal(bytes, 50);
    verbs_in_took(&in, bytes);
    assert_ptr_equal(verbs_in_arrived(&in, &bytes), ring);
    assert_int_equal(bytes, 30);
}

/* The next lane of the port needs more payload, while this one sends. */
static void a_lane_keeps_its_payload(void **state)
{
    static uint8_t headers[2 * VERBS_HEADER_STRIDE], before[64], later[128];
    struct transport_port port = {.pattern = {.at = before, .bytes = sizeof before, .lkey = 1}};
    struct verbs_pair pair = {.port = &port, .headers = headers};
    struct ibv_send_wr works[VERBS_BATCH];
    struct ibv_sge gathers[2 * VERBS_BATCH];
    struct verbs_lane lane = {.options = {.service = VERBS_RC, .operation = VERBS_SEND}};
    struct verbs_out out = {.end = {.pair = &pair, .lane = &lane},
                            .works = works,
                            .gathers = gathers,
                            .span = 2,
                            .at = {.length = 48}};

    (void)state;
    verbs_out_variant(&out);
    verbs_out_connected(&out);
    port.pattern = (struct verbs_range){.at = later, .bytes = sizeof later, .lkey = 2};
    out.fill(&out, works, 1);
    assert_int_equal(works[0].num_sge, 2);
    assert_int_equal(works[0].sg_list[1].lkey, 1);
    assert_int_equal(works[0].sg_list[1].addr, (uintptr_t)before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_mark_that_comes_behind_our_own_end_is_taken),
        cmocka_unit_test(the_length_of_what_came_is_kept),
        cmocka_unit_test(a_lane_keeps_its_payload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
