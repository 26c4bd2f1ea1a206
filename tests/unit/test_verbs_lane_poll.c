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

static unsigned takes_nothing(struct verbs_receiver *receiver, int64_t now_ns)
{
    (void)receiver;
    (void)now_ns;
    return 0;
}

/* The partner's end mark has come by now, and steps look for it here. */
static int64_t takes_eof(struct verbs_lane *lane, int64_t now_ns)
{
    (void)now_ns;
    lane->receivers[0].eof_seen = true;
    return CLOCK_NEVER;
}

/* A partner that is slower ends its schedule when our end mark has long been acknowledged. */
static void an_eof_that_comes_after_our_own_is_taken(void **state)
{
    struct phase phase = {.stop_ns = CLOCK_NEVER};
    struct verbs_qp qp = {.config = {.slots = SLOTS}};
    struct verbs_sender sender = {.endpoint = {.qp = &qp, .finished = true}, .closed = true};
    struct verbs_receiver receiver = {.endpoint = {.qp = &qp}, .take = takes_nothing};
    char schedule;
    struct verbs_lane lane = {
        .lane = {.request = {.phase = &phase}, .started_ns = 1, .sent_all = true},
        .reliable = true,
        .senders = &sender,
        .receivers = &receiver,
        .sender_count = 1,
        .senders_finished = 1,
        .receiver_count = 1,
        .schedule = (struct verbs_schedule *)(void *)&schedule,
        .send = takes_eof,
    };

    (void)state;
    receiver.endpoint.lane = sender.endpoint.lane = &lane;
    (void)verbs_lane_work(&lane, 2);
    (void)verbs_lane_work(&lane, 3);
    assert_true(receiver.endpoint.finished);
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
    struct verbs_qp qp = {.cq = &cq, .ring = ring, .config = {.slots = 4, .stride = 64}};
    uint32_t lengths[4] = {0}, bytes;
    char schedule;
    struct verbs_lane lane = {.schedule = (struct verbs_schedule *)(void *)&schedule};
    struct verbs_receiver receiver = {
        .endpoint = {.qp = &qp, .lane = &lane}, .lengths = lengths, .place = 3};

    (void)state;
    verbs_receiver_variant(&receiver);
    assert_null(verbs_receiver_arrived(&receiver, &bytes));
    for (uint32_t i = 0; i < 2; i++) { /* across the ring's end */
        completed = (struct ibv_wc){.status = IBV_WC_SUCCESS,
                                    .wr_id = VERBS_WORK_ID(VERBS_WORK_RECEIVE, (3 + i) % 4),
                                    .byte_len = 50 - 20 * i};
        assert_int_equal(receiver.take(&receiver, 0), 1);
    }
    assert_ptr_equal(verbs_receiver_arrived(&receiver, &bytes), ring + 3 * 64);
    assert_int_equal(bytes, 50);
    verbs_receiver_took(&receiver, bytes);
    assert_ptr_equal(verbs_receiver_arrived(&receiver, &bytes), ring);
    assert_int_equal(bytes, 30);
}

/* The next lane of the port needs more payload, while this one sends. */
static void a_lane_keeps_its_payload(void **state)
{
    static uint8_t headers[2 * VERBS_HEADER_STRIDE], before[64], later[128];
    struct transport_port port = {.pattern = {.at = before, .bytes = sizeof before, .lkey = 1}};
    struct verbs_qp qp = {.port = &port, .headers = headers};
    struct ibv_send_wr works[VERBS_BATCH];
    struct ibv_sge gathers[2 * VERBS_BATCH];
    struct verbs_lane lane = {.options = {.service = VERBS_RC, .operation = VERBS_SEND}};
    struct verbs_sender sender = {.endpoint = {.qp = &qp, .lane = &lane},
                                  .works = works,
                                  .gathers = gathers,
                                  .span = 2,
                                  .at = {.length = 48}};

    (void)state;
    verbs_sender_variant(&sender);
    verbs_sender_connected(&sender);
    port.pattern = (struct verbs_range){.at = later, .bytes = sizeof later, .lkey = 2};
    sender.fill(&sender, works, 1);
    assert_int_equal(works[0].num_sge, 2);
    assert_int_equal(works[0].sg_list[1].lkey, 1);
    assert_int_equal(works[0].sg_list[1].addr, (uintptr_t)before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_eof_that_comes_after_our_own_is_taken),
        cmocka_unit_test(the_length_of_what_came_is_kept),
        cmocka_unit_test(a_lane_keeps_its_payload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
