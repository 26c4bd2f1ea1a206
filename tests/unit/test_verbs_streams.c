/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a lane's turn calls, on a lane whose stream ends are made for the test: no device is asked.
 */
#include "clock.h"
#include "lane_streams.h"

#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SLOTS 17u

static int poll_none(struct ibv_cq *cq, int room, struct ibv_wc *completions)
{
    return 0;
}

/* The partner's eof has come by now, and a schedule looks for it here. */
static int64_t takes_eof(struct verbs_lane *lane, int64_t now_ns)
{
    lane->receivers[0].eof_seen = true;
    return CLOCK_NEVER;
}

/* A partner that is slower ends its schedule when our eof has long been acknowledged. */
static void an_eof_that_comes_after_our_own_is_taken(void **state)
{
    static const struct verbs_mode mode = {0};
    static const struct verbs_traffic schedule = {.polls_to_the_end = true, .send = takes_eof};
    struct phase phase = {.stop_ns = CLOCK_NEVER};
    struct ibv_context context = {.ops.poll_cq = poll_none};
    struct ibv_cq cq = {.context = &context};
    struct verbs_qp qp = {.cq = &cq, .config = {.slots = SLOTS}};
    struct verbs_sender sender = {.base = {.qp = &qp, .finished = true}};
    struct verbs_receiver receiver = {.base = {.qp = &qp}};
    struct verbs_lane lane = {
        .lane = {.request = {.phase = &phase}, .started_ns = 1, .tx_done = true},
        .context = {.mode = &mode, .reliable = true},
        .traffic = &schedule,
        .senders = &sender,
        .receivers = &receiver,
        .sender_count = 1,
        .receiver_count = 1,
    };

    lane.context.lane = &lane.lane;
    receiver.base.context = sender.base.context = &lane.context;
    (void)verbs_lane_work(&lane, 2);
    (void)verbs_lane_work(&lane, 3);
    assert_true(receiver.base.finished);
    assert_true(lane.lane.tx_done && lane.lane.rx_done);
}

/* A piece that is shorter than the place for it leaves there what came before. */
static void the_length_of_what_came_is_kept(void **state)
{
    uint8_t ring[4 * 64] = {0};
    struct verbs_qp qp = {.ring = ring, .config = {.slots = 4, .stride = 64}};
    uint32_t lengths[4] = {0}, bytes;
    struct verbs_receiver receiver = {.base = {.qp = &qp}, .lengths = lengths, .place = 3};

    assert_null(verbs_receiver_arrived(&receiver, &bytes));
    for (uint32_t i = 0; i < 2; i++) { /* across the ring's end */
        struct ibv_wc completed = {.status = IBV_WC_SUCCESS,
                                   .wr_id = VERBS_WORK_ID(VERBS_WORK_RECEIVE, (3 + i) % 4),
                                   .byte_len = 50 - 20 * i};
        assert_int_equal(verbs_mode_send_scheduled.consume(&receiver, &completed, 0), 1);
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
    static const uint32_t sizes[] = {48};
    static uint8_t headers[2 * VERBS_HEADER_STRIDE], before[64], later[128];
    struct transport_port port = {.payload = {.at = before, .bytes = sizeof before, .lkey = 1}};
    struct verbs_qp qp = {.port = &port, .headers = headers};
    struct stream_context context = {
        .options = {.service = VERBS_RC, .operation = VERBS_SEND, .depth = 2},
        .mode = &verbs_mode_send,
    };
    struct verbs_sender sender = {
        .base = {.context = &context,
                 .qp = &qp,
                 .script = {.sizes = sizes, .size_count = 1, .total = FLOW_ENDLESS}}};

    assert_int_equal(verbs_sender_init(&sender), 0);
    verbs_sender_connected(&sender);
    port.payload = (struct memory_range){.at = later, .bytes = sizeof later, .lkey = 2};
    sender.fill(&sender, sender.works, 1);
    assert_int_equal(sender.works[0].num_sge, 2);
    assert_int_equal(sender.works[0].sg_list[1].lkey, 1);
    assert_int_equal(sender.works[0].sg_list[1].addr, (uintptr_t)before);
    verbs_sender_free(&sender);
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
