/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decisions about queue pairs, without a device: infos and their use at both ends, GIDs and their
 * replacements; a worker's use of a pair; and the device of an interface or a PCI address, on a
 * simulated sysfs.
 */
#include "clock.h"
#include "unit.h"
#include "verbs.h"

#include <arpa/inet.h>

/* An info has this version and this size only; a sender fills the places that its partner offers,
 * which must exist and be as large. */
TEST(an_info_is_checked)
{
    static const struct {
        uint32_t slots, stride;
        uint16_t mtu;
        bool fits;
    } cases[] = {
        {256, 4096, 1024, true}, {2, 8192, 4096, true},    {0, 4096, 1024, false},
        {1, 4096, 1024, false},  {256, 4095, 1024, false}, {256, 0, 1024, false},
        {256, 4096, 0, false},   {256, 4096, 1500, false}, {UINT32_MAX, 4096, 1024, false},
    };
    struct transport_port port = {0};
    struct ibv_mr region = {0};

    for (EACH(c, cases)) {
        const struct verbs_qp qp = {
            .port = &port,
            .memory = {.region = &region},
            .config = {.slots = c->slots, .stride = c->stride, .mtu = c->mtu}};
        struct qp_info info;
        struct blob blob = {.size = sizeof info};

        verbs_qp_describe(&qp, &info);
        memcpy(blob.bytes, &info, sizeof info);
        assert_true(qp_info_read(&info, &blob));
        assert_int_equal(qp_info_fits(&info, 4096), c->fits);
        blob.bytes[3]++; /* another version */
        assert_false(qp_info_read(&info, &blob));
        blob.bytes[3]--;
        blob.size--;
        assert_false(qp_info_read(&info, &blob));
    }
}

static struct ibv_gid_entry gid(uint32_t index, uint32_t type, uint8_t first, bool ipv4)
{
    struct ibv_gid_entry made = {.gid_index = index, .gid_type = type};

    made.gid.raw[0] = first;
    made.gid.raw[1] = first == 0xfe ? 0x80 : 0;
    if (ipv4)
        made.gid.raw[10] = made.gid.raw[11] = 0xff;
    made.gid.raw[15] = (uint8_t)(index + 1);
    return made;
}

TEST(the_best_gid_is_chosen)
{
    const struct ibv_gid_entry table[] = {
        gid(0, IBV_GID_TYPE_ROCE_V1, 0xfe, false), gid(1, IBV_GID_TYPE_ROCE_V2, 0xfe, false),
        gid(2, IBV_GID_TYPE_ROCE_V1, 0, true),     gid(3, IBV_GID_TYPE_ROCE_V2, 0, true),
        gid(4, IBV_GID_TYPE_ROCE_V1, 0x20, false), gid(5, IBV_GID_TYPE_ROCE_V2, 0x20, false),
        gid(6, IBV_GID_TYPE_ROCE_V2, 0, true),
    };
    struct ibv_gid_entry mapped = {0};
    char text[VERBS_GID_TEXT];

    assert_int_equal(verbs_gid_choose(table, 7, 0)->gid_index, 3);
    assert_int_equal(verbs_gid_choose(table, 7, 4)->gid_index, 3);
    assert_int_equal(verbs_gid_choose(table, 7, 6)->gid_index, 5);
    assert_int_equal(verbs_gid_choose(table, 3, 4)->gid_index, 1); /* v2 before an address in v1 */
    assert_int_equal(verbs_gid_choose(table, 2, 0)->gid_index, 1);
    assert_int_equal(verbs_gid_choose(table, 1, 0)->gid_index, 0);
    assert_null(verbs_gid_choose(table, 0, 0));
    memcpy(mapped.gid.raw + 10, (const uint8_t[]){0xff, 0xff, 10, 9, 0, 1}, 6);
    assert_true(verbs_gid_is_ipv4(mapped.gid.raw));
    assert_string_equal(verbs_gid_text(mapped.gid.raw, text), "::ffff:10.9.0.1");
}

/* --- a worker's call, on an end whose device is these functions --- */

#define SLOTS 4u
#define STRIDE 64u

static struct ibv_wc come; /* status 0: success */

static int poll_cq(struct ibv_cq *cq, int room, struct ibv_wc *completions)
{
    *completions = come;
    return 1;
}

static uintptr_t payload_sent; /* where the last message's was */

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *work, struct ibv_send_wr **bad)
{
    payload_sent = work->num_sge == 2 ? work->sg_list[1].addr : 0;
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *work, struct ibv_recv_wr **bad)
{
    return 0;
}

/* The partner's immediate may be anything: a gap is jumped over, however long; a length that no
 * place holds, and a number before the first, are refused. */
TEST(an_immediate_is_checked)
{
    static const struct {
        uint32_t immediate, bytes;
        uint64_t sequence, messages, missed, foreign, corrupted;
        uint32_t place;
    } cases[] = {
        {0, 48, 1, 1, 0, 0, 0, 0},
        {2, 48, 3, 1, 2, 0, 0, 2},
        {0x20000000, 48, 0x20000001, 1, 0x20000000, 0, 0, 0},
        {5, STRIDE + 1, 0, 0, 0, 0, STRIDE + 1, 3},
        {0x7fffffff, 48, 0, 0, 0, 1, 0, 3}, /* number before the first */
    };
    static const uint32_t size = 48;

    for (EACH(c, cases)) {
        struct ibv_context context = {
            .ops = {.poll_cq = poll_cq, .post_send = post_send, .post_recv = post_recv}};
        struct ibv_cq cq = {.context = &context};
        struct ibv_qp ibv = {.context = &context};
        struct transport_port port = {0};
        struct verbs_receive receives[SLOTS] = {0};
        struct verbs_control control = {0};
        struct ibv_mr region = {0};
        uint8_t ring[SLOTS * STRIDE];
        struct verbs_qp qp = {.port = &port,
                              .cq = &cq,
                              .ibv = &ibv,
                              .receives = receives,
                              .control = &control,
                              .ring = ring,
                              .memory = {.region = &region},
                              .config = {.slots = SLOTS, .stride = STRIDE}};
        struct flow_side side = {0};
        struct port_count count = {0};
        struct verbs_lane lane = {
            .base = {.hooks = &verbs_hooks,
                     .in_count = 1,
                     .unreliable = true,
                     .lane = {.stop_ns = CLOCK_NEVER, .request = {.port = &port}}}};
        struct verbs_in in = {
            .end = {.base = {.lane = &lane.base,
                             .stream = {.script = {.sizes = &size,
                                                   .size_count = 1,
                                                   .total = FLOW_ENDLESS},
                                        .side = &side,
                                        .count = &count,
                                        .unreliable = true}},
                    .qp = &qp,
                    .config = {.role = QP_RECEIVER,
                               .options = {.service = VERBS_UC, .operation = VERBS_WRITE}}},
            .place = 3};
        const struct message_stream *stream = &in.end.base.stream;
        struct message_cursor at;
        struct message_header header;
        uint8_t *place;

        lane.base.ins = &in;
        message_cursor_start(&in.end.base.stream.at, &stream->script);
        at = stream->at;
        message_cursor_skip(&at, &stream->script, c->immediate < INT32_MAX ? c->immediate : 0);
        header = message_cursor_header(&at, &stream->script);
        place = ring + (3 + at.sequence) % SLOTS * STRIDE;
        memcpy(place, message_payload_at(&at, 0), size);
        memcpy(place, &header, sizeof header);
        come = (struct ibv_wc){
            .byte_len = c->bytes, .wc_flags = IBV_WC_WITH_IMM, .imm_data = htonl(c->immediate)};
        (void)verbs_hooks.reap(&lane.base, 1);
        assert_int_equal(stream->at.sequence, c->sequence);
        assert_int_equal(side.live.messages, c->messages);
        assert_int_equal(stream->missed, c->missed);
        assert_int_equal(count.foreign, c->foreign);
        assert_int_equal(side.corrupted, c->corrupted);
        assert_int_equal(in.place, c->place);
    }
}

/* A schedule's pieces: each from where its step says, whichever number it has on its connection. */
TEST(a_piece_is_sent_from_the_rank_s_memory)
{
    struct ibv_context context = {.ops = {.post_send = post_send}};
    struct ibv_qp ibv = {.context = &context};
    struct transport_port port = {0};
    struct ibv_mr region = {0};
    uint8_t headers[SLOTS * VERBS_HEADER_STRIDE];
    struct verbs_qp qp = {
        .port = &port, .ibv = &ibv, .headers = headers, .memory = {.region = &region}};
    struct verbs_lane lane = {.base = {.schedules = true}, .memory = &region};
    static const uint32_t size = 48;
    static uint8_t memory[64];
    static struct verbs_out out = {.span = SLOTS, .signal_every = 1};

    out.end.qp = &qp;
    out.end.base.lane = &lane.base;
    out.end.base.stream.script =
        (struct message_script){.sizes = &size, .size_count = 1, .total = FLOW_ENDLESS};
    out.end.base.memory = memory;
    out.end.theirs.slots = SLOTS;
    message_cursor_start(&out.end.base.stream.at, &out.end.base.stream.script);
    verbs_out_connected(&out);
    for (uint32_t piece = 0; piece < 3; piece++) {
        assert_int_equal(verbs_hooks.post(&out.end.base, size, 0), size);
        assert_int_equal(payload_sent, (uintptr_t)memory);
        message_cursor_next(&out.end.base.stream.at, &out.end.base.stream.script);
        out.end.base.done++;
    }
}

/* --- which device: RoCE by GIDs, IPoIB by its port, a PCI address --- */

static const char layout[] =
    "mkdir -p class/infiniband && cd class/infiniband && "
    "mkdir -p mlx5_0/ports/1/gid_attrs/ndevs mlx5_0/ports/2/gid_attrs/ndevs "
    "  rxe0/ports/1/gid_attrs/ndevs mlx4_0/ports/1/gid_attrs/ndevs && "
    "echo eth1 >mlx5_0/ports/1/gid_attrs/ndevs/0 && echo eth0 >rxe0/ports/1/gid_attrs/ndevs/0 && "
    "echo eth10 | tee mlx5_0/ports/2/gid_attrs/ndevs/0 >mlx5_0/ports/2/gid_attrs/ndevs/1 && "
    "cd ../.. && pci=bus/pci/devices/0000:3b:00.0 net=class/net && "
    "mkdir -p $pci/infiniband/mlx4_0/ports/1 $pci/infiniband/mlx4_0/ports/2 $net/eth5 "
    "  $net/ib1/device/infiniband/mlx4_0/ports/1 $net/ib1/device/infiniband/mlx4_0/ports/2 && "
    "echo 1 >$net/ib1/dev_port";

TEST(a_device_is_found)
{
    static const char *const devices[][2] = {
        {"eth1", "mlx5_0/1"}, {"eth10", "mlx5_0/2"}, {"eth0", "rxe0/1"},
        {"ib1", "mlx4_0/2"},  {"eth5", NULL},        {"eth99", NULL},
    };
    const char *sys = unit_folder(layout);
    char name[72];

    for (EACH(device, devices)) {
        assert_int_equal(verbs_device_of_interface(sys, (*device)[0], name, sizeof name),
                         (*device)[1] != NULL);
        if ((*device)[1] != NULL)
            assert_string_equal(name, (*device)[1]);
    }
    assert_true(verbs_device_of_pci(sys, "0000:3b:00.0", name, sizeof name));
    assert_string_equal(name, "mlx4_0/1");
    assert_false(verbs_device_of_pci(sys, "0000:00:00.0", name, sizeof name));
    assert_false(verbs_device_of_interface("/nowhere", "eth1", name, sizeof name));
    assert_false(verbs_device_of_interface(sys, "eth1", name, 8));
    unit_folder_remove();
}
