/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What decides on queue pairs, without a device: infos and what both ends make of them, GIDs, which
 * one serves for another, which a port keeps; and what a worker does with one.
 */
#include "verbs.h"

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void an_info_survives_its_blob(void **state)
{
    struct qp_info info = {
        .number = 0x123456,
        .connected_to = 77,
        .turn = 0xfffffff0,
        .packet = 0xabcdef,
        .queue_key = 0x7fffffff,
        .lid = 0xc001,
        .mtu = 4096,
        .gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 9},
        .ring = {.address = 0x7f0000001000, .key = 0x1234},
        .slots = 256,
        .stride = 65536,
        .first = 255,
        .control = {.address = 0x7f0000000000, .key = 0x5678},
    };
    struct qp_info back;
    struct blob blob;

    qp_info_write(&info, &blob);
    assert_true(blob.size <= BLOB_BYTES_MAX);
    assert_true(qp_info_read(&back, &blob));
    info.version = back.version;
    assert_memory_equal(&back, &info, sizeof info);
    blob.bytes[3]++; /* another version */
    assert_false(qp_info_read(&back, &blob));
    blob.size--;
    assert_false(qp_info_read(&back, &blob));
}

/* Only the two ends of one connected queue pair, which are at the same message, are reused. */
static void both_ends_come_to_the_same(void **state)
{
    const struct qp_info ends[] = {
        {.number = 1},
        {.number = 1, .connected_to = 2, .turn = 5},
        {.number = 1, .connected_to = 2, .turn = 6},
        {.number = 1, .connected_to = 3, .turn = 5},
    };
    const struct qp_info others[] = {
        {.number = 2},
        {.number = 2, .connected_to = 1, .turn = 5},
        {.number = 4, .connected_to = 1, .turn = 5},
    };

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (size_t j = 0; j < sizeof others / sizeof others[0]; j++) {
            bool connected = qp_info_connected(&ends[i], &others[j]);

            assert_int_equal(connected, i == 1 && j == 1);
            assert_int_equal(connected, qp_info_connected(&others[j], &ends[i]));
        }
    }
}

static struct verbs_gid gid(uint32_t index, enum verbs_gid_type type, uint8_t first, bool ipv4)
{
    struct verbs_gid made = {.index = index, .type = type};

    made.bytes[0] = first;
    made.bytes[1] = first == 0xfe ? 0x80 : 0;
    if (ipv4)
        made.bytes[10] = made.bytes[11] = 0xff;
    made.bytes[15] = (uint8_t)(index + 1);
    return made;
}

static void the_best_gid_is_chosen(void **state)
{
    const struct verbs_gid table[] = {
        gid(0, VERBS_GID_ROCE_V1, 0xfe, false), gid(1, VERBS_GID_ROCE_V2, 0xfe, false),
        gid(2, VERBS_GID_ROCE_V1, 0, true),     gid(3, VERBS_GID_ROCE_V2, 0, true),
        gid(4, VERBS_GID_ROCE_V1, 0x20, false), gid(5, VERBS_GID_ROCE_V2, 0x20, false),
        gid(6, VERBS_GID_ROCE_V2, 0, true),
    };

    assert_int_equal(verbs_gid_choose(table, 7, 0)->index, 3);
    assert_int_equal(verbs_gid_choose(table, 7, 4)->index, 3);
    assert_int_equal(verbs_gid_choose(table, 7, 6)->index, 5);
    assert_int_equal(verbs_gid_choose(table, 3, 4)->index, 1); /* v2 before an address in v1 */
    assert_int_equal(verbs_gid_choose(table, 2, 0)->index, 1);
    assert_int_equal(verbs_gid_choose(table, 1, 0)->index, 0);
    assert_null(verbs_gid_choose(table, 0, 0));
}

static void gids_are_written_as_addresses(void **state)
{
    const uint8_t mapped[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 9, [14] = 0, [15] = 1};
    char text[VERBS_GID_TEXT];

    assert_true(verbs_gid_is_ipv4(mapped));
    assert_string_equal(verbs_gid_text(mapped, text), "::ffff:10.9.0.1");
}

static struct qp_config config(uint16_t stream)
{
    return (struct qp_config){.options = {.depth = 64, .queue_pairs = 1, .timeout = 14},
                              .partner = {.lid = 7, .gid = {[15] = 3}},
                              .role = QP_SENDER,
                              .stream = stream,
                              .mtu = 1024,
                              .slots = 128,
                              .stride = 4096};
}

/* What decides on the queue pair must be equal; what only a phase does with it need not. */
static void a_queue_pair_serves_only_what_it_was_made_for(void **state)
{
    const struct verbs_gid table[2] = {{.index = 0}, {.index = 1}};
    const struct qp_config one = config(1);
    struct qp_config other;

#define DIFFERS(assignment)                                                                        \
    do {                                                                                           \
        other = one;                                                                               \
        other.assignment;                                                                          \
        assert_false(qp_config_equal(&one, &other));                                               \
    } while (0)
    DIFFERS(options.service = VERBS_UC);
    DIFFERS(options.operation = VERBS_WRITE);
    DIFFERS(options.depth++);
    DIFFERS(options.inline_bytes = VERBS_AUTOMATIC);
    DIFFERS(options.service_level++);
    DIFFERS(options.traffic_class++);
    DIFFERS(options.pkey_index++);
    DIFFERS(options.retry++);
    DIFFERS(options.rnr_retry++);
    DIFFERS(options.timeout++);
    DIFFERS(partner.lid++);
    DIFFERS(partner.gid[0]++);
    DIFFERS(gid = &table[1]);
    DIFFERS(role = QP_RECEIVER);
    DIFFERS(stream++);
    DIFFERS(mtu++);
    DIFFERS(slots++);
    DIFFERS(stride++);
    DIFFERS(forwards = true);
#undef DIFFERS
    other = one;
    other.options.queue_pairs = 3;
    other.options.signal_every = 5;
    other.options.reuse = 64;
    other.options.completion = VERBS_COMPLETION_EVENT;
    assert_true(qp_config_equal(&one, &other));
}

static struct verbs_control control;

static struct verbs_qp *keep(struct transport_port *port, uint16_t stream, size_t max)
{
    struct verbs_qp *qp = calloc(1, sizeof *qp);

    assert_non_null(qp);
    qp->port = port;
    qp->control = &control;
    qp->config = (struct qp_config){.stream = stream, .partner = {.lid = 7}};
    connection_pool_keep(qp, max);
    return qp;
}

static struct verbs_qp *acquire(struct transport_port *port, uint16_t stream)
{
    struct qp_config config = {.stream = stream, .partner = {.lid = 7}};
    struct verbs_qp *qp;
    struct err err = {""};

    assert_int_equal(connection_pool_acquire(port, &config, &qp, &err), 0);
    assert_true(qp->reused);
    return qp;
}

static void the_one_that_was_kept_last_serves_first(void **state)
{
    struct transport_port port = {0};
    struct verbs_qp *first, *last;

    assert_int_equal(connection_pool_open(&port), 0);
    first = keep(&port, 1, 8);
    keep(&port, 2, 8);
    last = keep(&port, 1, 8);
    atomic_store(&control.credit, 5); /* an earlier phase's */
    assert_ptr_equal(acquire(&port, 1), last);
    assert_int_equal(atomic_load(&control.credit), 0);
    assert_ptr_equal(acquire(&port, 1), first);
    connection_pool_free(first);
    connection_pool_free(last);
    assert_true(connection_pool_close(&port)); /* the sanitizer sees that none is left */
}

static void the_least_recently_used_is_evicted(void **state)
{
    struct transport_port port = {0};
    struct verbs_qp *kept[5];

    assert_int_equal(connection_pool_open(&port), 0);
    for (uint16_t i = 0; i < 5; i++)
        kept[i] = keep(&port, i, 5);
    connection_pool_keep(acquire(&port, 0), 5); /* used again: now 1 is the oldest */
    kept[1] = keep(&port, 5, 4);                /* 1 and 2 go */
    assert_ptr_equal(acquire(&port, 0), kept[0]);
    assert_ptr_equal(acquire(&port, 3), kept[3]);
    assert_ptr_equal(acquire(&port, 4), kept[4]);
    assert_ptr_equal(acquire(&port, 5), kept[1]);
    for (size_t i = 0; i < 5; i++)
        if (i != 2)
            connection_pool_free(kept[i]);
    assert_true(connection_pool_close(&port));
}

/* --- a worker's calls, on ends whose device is these functions --- */

#define SLOTS 4u
#define STRIDE 64u

static struct ibv_wc come[SLOTS];
static int come_count;
static struct ibv_send_wr posted;
static struct ibv_sge posted_parts[2];

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *completions)
{
    int count = come_count;

    memcpy(completions, come, (size_t)count * sizeof *come);
    come_count = 0;
    return count;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad)
{
    posted = *work;
    memcpy(posted_parts, work->sg_list, (size_t)work->num_sge * sizeof *posted_parts);
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *work, struct ibv_recv_wr **bad)
{
    return 0;
}

/* A lane with one end of each kind, of one queue pair. */
struct bed {
    struct ibv_context context;
    struct ibv_cq cq;
    struct ibv_qp ibv;
    struct transport_port port;
    struct verbs_qp qp;
    struct verbs_receive receives[SLOTS];
    struct verbs_control control;
    uint8_t ring[SLOTS * STRIDE], headers[2 * VERBS_HEADER_STRIDE];
    uint32_t lengths[SLOTS], sizes[1];
    uint64_t bytes_after[3];
    struct flow_side side;
    struct lane_flow flow;
    struct verbs_out out;
    struct verbs_in in;
    struct verbs_lane lane;
};

static struct bed bed;

static void make_bed(void)
{
    const struct message_script script = {
        .sizes = bed.sizes, .size_count = 1, .total = FLOW_ENDLESS, .tag = 5};

    memset(&bed, 0, sizeof bed);
    come_count = 0;
    bed.sizes[0] = 48;
    bed.context.ops.poll_cq = poll_cq;
    bed.context.ops.post_send = post_send;
    bed.context.ops.post_recv = post_recv;
    bed.cq.context = bed.ibv.context = &bed.context;
    bed.qp = (struct verbs_qp){.port = &bed.port,
                               .cq = &bed.cq,
                               .ibv = &bed.ibv,
                               .receives = bed.receives,
                               .control = &bed.control,
                               .ring = bed.ring,
                               .headers = bed.headers,
                               .config = {.slots = SLOTS, .stride = STRIDE}};
    bed.out = (struct verbs_out){
        .base = {.lane = &bed.lane.base, .flow = &bed.flow, .side = &bed.side, .script = script},
        .end = {.lane = &bed.lane,
                .qp = &bed.qp,
                .script = &bed.out.base.script,
                .flow = &bed.flow,
                .config = {.options = {.depth = 2, .signal_every = 1}},
                .theirs = {.slots = 8}},
        .span = 2,
        .bytes_after = bed.bytes_after,
    };
    bed.in = (struct verbs_in){
        .base = {.lane = &bed.lane.base,
                 .flow = &bed.flow,
                 .sink = {.script = script, .side = &bed.side}},
        .end = {.lane = &bed.lane,
                .qp = &bed.qp,
                .script = &bed.in.base.sink.script,
                .flow = &bed.flow,
                .config = {.role = QP_RECEIVER}},
        .lengths = bed.lengths,
        .place = 3,
    };
    bed.lane.base = (struct message_lane){
        .hooks = &verbs_hooks, .ins = &bed.in, .in_count = 1, .stepping = true};
    bed.lane.ins = &bed.in;
    bed.lane.port = &bed.port;
    message_cursor_start(&bed.out.base.at, &script);
}

/* A completion of so many bytes in the next place but `place`, which hold these. */
static void arrive(uint32_t place, const void *bytes, uint32_t count)
{
    uint8_t *slot = bed.ring + (3 + place) % SLOTS * (size_t)STRIDE;

    if (count > 0)
        memcpy(slot, bytes, count);
    come[come_count++] = (struct ibv_wc){
        .status = IBV_WC_SUCCESS, .wr_id = VERBS_WORK_ID(VERBS_WORK_RECEIVE, 0), .byte_len = count};
}

/* A piece that is shorter than the place for it leaves there what came before; across the ring's
 * end. Behind the last barrier the end mark is taken, whenever it has come. */
static void a_schedule_takes_pieces_and_the_end_mark(void **state)
{
    uint8_t piece[48] = {1, 2, 3}, payload[48];
    struct message_header end;
    uint32_t moved;

    make_bed();
    assert_int_equal(verbs_hooks.receive_piece(&bed.in.base, payload, 32, &moved), PIECE_NONE);
    arrive(0, piece, 48);
    arrive(1, piece, 20);
    assert_true(verbs_hooks.reap(&bed.lane.base, 1));
    assert_int_equal(verbs_hooks.receive_piece(&bed.in.base, payload, 32, &moved), PIECE_MOVED);
    assert_int_equal(moved, 32);
    assert_memory_equal(payload, piece + MESSAGE_HEADER_BYTES, 32);
    assert_int_equal(bed.in.base.sink.at.position, MESSAGE_HEADER_BYTES);
    assert_int_equal(verbs_hooks.receive_piece(&bed.in.base, payload, 4, &moved), PIECE_MOVED);
    assert_int_equal(moved, 4);
    end = message_header_make(MESSAGE_END, &bed.in.base.sink.script, 0, 0);
    arrive(2, &end, sizeof end);
    (void)verbs_hooks.reap(&bed.lane.base, 2);
    assert_false(bed.in.base.ended);
    bed.lane.base.stepping = false;
    (void)verbs_hooks.reap(&bed.lane.base, 3);
    assert_true(bed.in.base.ended && bed.lane.base.lane.rx_done);
    assert_string_equal(bed.lane.base.lane.error.text, "");
}

static void a_piece_of_another_length_fails(void **state)
{
    uint8_t payload[48];
    uint32_t moved;

    make_bed();
    arrive(0, payload, 40);
    (void)verbs_hooks.reap(&bed.lane.base, 1);
    assert_int_equal(verbs_hooks.receive_piece(&bed.in.base, payload, 32, &moved), PIECE_NONE);
    assert_non_null(strstr(bed.lane.base.lane.error.text, "a piece of 40 bytes where one of 48"));
}

/* The next lane of the port needs more payload, while this one sends. */
static void a_lane_keeps_its_payload(void **state)
{
    static uint8_t before[64], later[128];

    make_bed();
    bed.port.payload = (struct memory_range){.at = before, .bytes = sizeof before, .lkey = 1};
    verbs_out_connected(&bed.out);
    bed.port.payload = (struct memory_range){.at = later, .bytes = sizeof later, .lkey = 2};
    assert_int_equal(verbs_hooks.post(&bed.out.base, 1, 1), 48);
    assert_int_equal(posted.num_sge, 2);
    assert_int_equal(posted_parts[1].lkey, 1);
    assert_int_equal(posted_parts[1].addr, (uintptr_t)before + MESSAGE_HEADER_BYTES);
    assert_int_equal(posted_parts[0].length + posted_parts[1].length, 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_info_survives_its_blob),
        cmocka_unit_test(both_ends_come_to_the_same),
        cmocka_unit_test(the_best_gid_is_chosen),
        cmocka_unit_test(gids_are_written_as_addresses),
        cmocka_unit_test(a_queue_pair_serves_only_what_it_was_made_for),
        cmocka_unit_test(the_one_that_was_kept_last_serves_first),
        cmocka_unit_test(the_least_recently_used_is_evicted),
        cmocka_unit_test(a_schedule_takes_pieces_and_the_end_mark),
        cmocka_unit_test(a_piece_of_another_length_fails),
        cmocka_unit_test(a_lane_keeps_its_payload),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
