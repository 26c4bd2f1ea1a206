/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp.h"

#include "clock.h"
#include "qp_destroyer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define RNR_TIMER 14 /* 1.28 ms; credits see to it that it is hardly ever used */
#define PORT_HOPS 64
#define PACKET_MASK 0xffffffu
#define QUEUE_KEY_MASK 0x7fffffffu /* the highest bit is for privileged users */

/* --- the key --- */

struct key_fields {
    uint8_t partner[VERBS_GID_BYTES];
    uint16_t lid;
    uint16_t stream;
    uint16_t depth;
    uint16_t mtu;
    uint16_t pkey_index;
    int16_t gid_index;
    int32_t inline_bytes;
    uint32_t slots;
    uint32_t stride;
    uint8_t role;
    uint8_t service;
    uint8_t operation;
    uint8_t immediate;
    uint8_t connect;
    uint8_t service_level;
    uint8_t traffic_class;
    uint8_t retry;
    uint8_t rnr_retry;
    uint8_t timeout;
    uint8_t relays;
    uint8_t zero;
};
static_assert(sizeof(struct key_fields) <= VERBS_KEY_BYTES, "fits into a key");

static struct verbs_key key_of(const struct verbs_need *need)
{
    const struct verbs_options *options = need->options;
    struct verbs_key key = {{0}};
    struct key_fields fields = {
        .lid = need->partner.lid,
        .stream = need->stream,
        .depth = options->depth,
        .mtu = need->mtu,
        .pkey_index = options->pkey_index,
        .gid_index = need->gid != NULL ? (int16_t)need->gid->index : -1,
        .inline_bytes = options->inline_bytes,
        .slots = need->slots,
        .stride = need->stride,
        .role = need->role,
        .service = (uint8_t)options->service,
        .operation = (uint8_t)options->operation,
        .immediate = options->immediate,
        .connect = (uint8_t)options->connect,
        .service_level = options->service_level,
        .traffic_class = options->traffic_class,
        .retry = options->retry,
        .rnr_retry = options->rnr_retry,
        .timeout = options->timeout,
        .relays = need->relays,
    };

    memcpy(fields.partner, need->partner.gid, sizeof fields.partner);
    memcpy(key.bytes, &fields, sizeof fields);
    return key;
}

/* --- memory --- */

static uint32_t header_count(const struct verbs_need *need)
{
    bool gathers =
        need->role == VERBS_SOURCE && !need->relays && need->options->operation != VERBS_READ;

    return gathers ? need->options->depth : 0;
}

static int make_memory(struct verbs_pair *pair, struct err *err)
{
    const struct verbs_need *need = &pair->need;
    size_t headers = (size_t)header_count(need) * VERBS_HEADER_STRIDE;
    size_t bytes = VERBS_CONTROL_BYTES + headers + (size_t)need->slots * need->stride;
    int rc = verbs_memory_take(&pair->port->memory, bytes, &pair->range, err);

    /* What nobody uses makes room for what is needed now. */
    while (rc == -ENOMEM && pair->port->cache.count > 0) {
        err->text[0] = '\0';
        verbs_pairs_forget(pair->port, pair->port->cache.count / 2);
        rc = verbs_memory_take(&pair->port->memory, bytes, &pair->range, err);
    }
    if (rc < 0)
        return rc;
    memset(pair->range.at, 0, VERBS_CONTROL_BYTES + headers);
    pair->control = (struct verbs_control *)(void *)pair->range.at;
    pair->headers = headers > 0 ? pair->range.at + VERBS_CONTROL_BYTES : NULL;
    pair->ring = pair->range.at + VERBS_CONTROL_BYTES + headers;
    return 0;
}

/* What is read from a source lies in its ring for good; only headers change. */
static void fill_ring(struct verbs_pair *pair)
{
    const struct verbs_need *need = &pair->need;

    if (need->role != VERBS_SOURCE || need->options->operation != VERBS_READ)
        return;
    for (uint32_t i = 0; i < need->slots; i++)
        verbs_payload_fill(pair->ring + (size_t)i * need->stride + VERBS_HEADER_BYTES,
                           need->stride - VERBS_HEADER_BYTES, VERBS_SLOT_PLACE(i));
}

size_t verbs_pair_bytes(const struct verbs_pair *pair)
{
    return sizeof *pair + pair->range.bytes;
}

/* --- queues --- */

uint32_t verbs_pair_receives(const struct verbs_pair *pair)
{
    const struct verbs_need *need = &pair->need;
    const struct verbs_options *options = need->options;

    if (options->service == VERBS_UD)
        return need->slots;
    if (need->role == VERBS_SOURCE || options->operation == VERBS_READ)
        return 0;
    return options->operation == VERBS_SEND || options->immediate ? need->slots : 0;
}

static struct ibv_qp_init_attr queues_of(const struct verbs_pair *pair, uint32_t inline_bytes)
{
    static const enum ibv_qp_type types[] = {
        [VERBS_RC] = IBV_QPT_RC, [VERBS_UC] = IBV_QPT_UC, [VERBS_UD] = IBV_QPT_UD};
    const struct verbs_need *need = &pair->need;
    const struct verbs_options *options = need->options;
    bool posts = need->role == VERBS_SOURCE ? options->operation != VERBS_READ
                                            : options->operation == VERBS_READ;
    uint32_t receives = verbs_pair_receives(pair);

    return (struct ibv_qp_init_attr){
        .send_cq = pair->cq,
        .recv_cq = pair->cq,
        .qp_type = types[options->service],
        .cap = {.max_send_wr = VERBS_CONTROL_WRS + (posts ? options->depth : 0u),
                .max_recv_wr = receives > 0 ? receives : 1,
                .max_send_sge = header_count(need) > 0 ? 2 : 1,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes},
    };
}

static int make_completions(struct verbs_pair *pair, struct err *err)
{
    struct ibv_qp_init_attr queues = queues_of(pair, 0);
    int entries = (int)(queues.cap.max_send_wr + queues.cap.max_recv_wr);

    pair->cq = ibv_create_cq(pair->port->context, entries, pair, pair->port->channel, 0);
    if (pair->cq != NULL)
        return 0;
    return err_set(err, -errno,
                   "%s: can't make a completion queue of %d entries (the device allows %d of %d): "
                   "%s; use less depth, or fewer queue_pairs",
                   pair->port->label, entries, pair->port->limits.max_cq,
                   pair->port->limits.max_cqe, strerror(errno));
}

/* Devices say what they take inline only by refusing more. */
static int create_queue(struct verbs_pair *pair, const struct verbs_options *options)
{
    uint32_t asked = options->inline_bytes == VERBS_AUTOMATIC ? VERBS_INLINE_MOST
                                                              : (uint32_t)options->inline_bytes;

    for (;;) {
        struct ibv_qp_init_attr queues = queues_of(pair, asked);

        pair->qp = ibv_create_qp(pair->port->pd, &queues);
        if (pair->qp != NULL) {
            pair->inline_bytes =
                options->inline_bytes == VERBS_AUTOMATIC
                    ? (queues.cap.max_inline_data < asked ? queues.cap.max_inline_data : asked)
                    : asked;
            return 0;
        }
        if (options->inline_bytes != VERBS_AUTOMATIC || asked == 0)
            return -errno;
        asked /= 2;
    }
}

static int refuse_queue(const struct verbs_pair *pair, const struct verbs_options *options,
                        int code, struct err *err)
{
    static const char *const services[] = {"RC", "UC", "UD"};

    if (code == -EOPNOTSUPP || code == -ENOSYS)
        return err_set(err, code, "%s: the device has no %s queue pairs; use another service",
                       pair->port->label, services[options->service]);
    return err_set(err, code,
                   "%s: can't make a %s queue pair of depth %u, inline %d: %s (the device allows "
                   "%d queue pairs of depth %d); use less depth or inline, or fewer queue_pairs",
                   pair->port->label, services[options->service], options->depth,
                   (int)options->inline_bytes, strerror(-code), pair->port->limits.max_qp,
                   pair->port->limits.max_qp_wr);
}

int verbs_pair_move(struct verbs_pair *pair, enum ibv_qp_state state)
{
    struct ibv_qp_attr attributes = {.qp_state = state};
    int mask;

    if (rdma_init_qp_attr(pair->id, &attributes, &mask) != 0)
        return -errno;
    return -ibv_modify_qp(pair->qp, &attributes, mask);
}

static int initialise(struct verbs_pair *pair, const struct verbs_options *options)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = options->pkey_index,
        .port_num = pair->port->number,
        .qkey = pair->queue_key,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    if (options->service == VERBS_RC)
        attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
    mask |= options->service == VERBS_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return -ibv_modify_qp(pair->qp, &attributes, mask);
}

int verbs_pair_receive(struct verbs_pair *pair, uint32_t slot)
{
    struct ibv_sge place = {
        .addr = (uintptr_t)pair->ring + (size_t)slot * pair->need.stride,
        .length = pair->need.stride,
        .lkey = pair->range.lkey,
    };
    bool holds = pair->need.options->operation == VERBS_SEND;
    struct ibv_recv_wr work = {
        .wr_id = slot, .sg_list = holds ? &place : NULL, .num_sge = holds ? 1 : 0};
    struct ibv_recv_wr *bad;

    return -ibv_post_recv(pair->qp, &work, &bad);
}

int verbs_pair_make_queue(struct verbs_pair *pair, const struct verbs_options *options,
                          struct err *err)
{
    int rc = create_queue(pair, options);

    if (rc < 0)
        return refuse_queue(pair, options, rc, err);
    rc = pair->id != NULL ? verbs_pair_move(pair, IBV_QPS_INIT) : initialise(pair, options);
    for (uint32_t i = 0; i < verbs_pair_receives(pair) && rc == 0; i++)
        rc = verbs_pair_receive(pair, i);
    if (rc < 0)
        return err_set(err, rc, "%s: a new queue pair can't be initialised: %s (pkey_index %u)",
                       pair->port->label, strerror(-rc), options->pkey_index);
    return 0;
}

/* --- the whole --- */

static void draw_numbers(struct verbs_pair *pair)
{
    uint32_t random[2];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = random[1] = (uint32_t)clock_now();
    pair->packet = random[0] & PACKET_MASK;
    pair->queue_key = random[1] & QUEUE_KEY_MASK;
}

static int make_new(struct verbs_pair *pair, struct err *err)
{
    const struct verbs_options *options = pair->need.options;
    int rc = make_memory(pair, err);

    draw_numbers(pair);
    if (rc < 0)
        return rc;
    fill_ring(pair);
    rc = make_completions(pair, err);
    if (rc == 0 && options->connect == VERBS_CONNECT_EXCHANGE)
        rc = verbs_pair_make_queue(pair, options, err);
    return rc;
}

int verbs_pair_make(struct verbs_pair **pair, struct transport_port *port,
                    const struct verbs_need *need, bool fresh, struct err *err)
{
    struct verbs_key key = key_of(need);
    struct verbs_kept *kept = fresh ? NULL : verbs_cache_take(&port->cache, &key);
    int64_t begun_ns = clock_now();
    struct verbs_pair *made;
    int rc;

    if (kept != NULL) {
        *pair = (struct verbs_pair *)(void *)kept;
        (*pair)->need = *need;
        (*pair)->reused = true;
        memset((*pair)->control, 0, sizeof *(*pair)->control);
        return 0;
    }
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", port->label);
    made->kept.key = key;
    made->port = port;
    made->need = *need;
    rc = make_new(made, err);
    made->setup_ns = clock_now() - begun_ns;
    if (rc < 0)
        verbs_pair_free(made);
    else
        *pair = made;
    return rc;
}

/* The device forgets its work requests, and lets go of their memory (InfiniBand Architecture
 * 10.3.1, state Reset). A device that can't is asked to destroy the queue pair at once. */
static void stop(struct verbs_pair *pair)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RESET};

    if (pair->qp == NULL || ibv_modify_qp(pair->qp, &attributes, IBV_QP_STATE) == 0)
        return;
    ibv_destroy_qp(pair->qp);
    pair->qp = NULL;
}

void verbs_pair_free(struct verbs_pair *pair)
{
    if (pair == NULL)
        return;
    stop(pair);
    verbs_memory_give(&pair->range);
    verbs_reaper_take(pair->port->reaper, pair);
}

void verbs_pairs_forget(struct transport_port *port, size_t most)
{
    struct verbs_kept *kept;

    while ((kept = verbs_cache_shed(&port->cache, most)) != NULL)
        verbs_pair_free((struct verbs_pair *)(void *)kept);
}

void verbs_pair_keep(struct verbs_pair *pair, size_t most)
{
    struct transport_port *port = pair->port;

    verbs_cache_put(&port->cache, &pair->kept);
    verbs_pairs_forget(port, most);
}

/* --- connecting --- */

void verbs_pair_offer(const struct verbs_pair *pair, struct verbs_offer *offer)
{
    const struct verbs_need *need = &pair->need;
    int reads = pair->port->limits.max_qp_rd_atom;

    *offer = (struct verbs_offer){
        .number = pair->qp != NULL ? pair->qp->qp_num : 0,
        .kept_with = pair->reused ? pair->partner : 0,
        .turn = pair->reused ? pair->turn : 0,
        .packet = pair->packet,
        .queue_key = pair->queue_key,
        .lid = pair->port->attributes.lid,
        .mtu = need->mtu,
        .reads = (uint8_t)(reads < UINT8_MAX ? reads : UINT8_MAX),
        .ring = {(uintptr_t)pair->ring, pair->range.rkey},
        .slots = need->slots,
        .stride = need->stride,
        .first = pair->place,
        .control = {(uintptr_t)pair->control, pair->range.rkey},
    };
    if (need->gid != NULL)
        memcpy(offer->gid, need->gid->bytes, sizeof offer->gid);
}

static struct ibv_ah_attr path_to(const struct verbs_pair *pair, const struct verbs_offer *theirs,
                                  const struct verbs_options *options)
{
    static const uint8_t none[VERBS_GID_BYTES];
    const struct verbs_gid *gid = pair->need.gid;
    struct ibv_ah_attr path = {
        .dlid = theirs->lid, .sl = options->service_level, .port_num = pair->port->number};

    /* In one InfiniBand subnet the LID is enough; a GID was asked for, or it is RoCE. */
    path.is_global = gid != NULL && memcmp(theirs->gid, none, sizeof none) != 0 &&
                     (pair->port->ethernet || options->gid_index >= 0);
    if (path.is_global) {
        memcpy(path.grh.dgid.raw, theirs->gid, sizeof theirs->gid);
        path.grh.sgid_index = (uint8_t)gid->index;
        path.grh.hop_limit = PORT_HOPS;
        path.grh.traffic_class = options->traffic_class;
    }
    return path;
}

static int make_ready_to_receive(struct verbs_pair *pair, const struct verbs_offer *theirs,
                                 const struct verbs_options *options)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = path_to(pair, theirs, options),
        .dest_qp_num = theirs->number,
        .rq_psn = theirs->packet,
        .max_dest_rd_atomic = (uint8_t)(pair->port->limits.max_qp_rd_atom < UINT8_MAX
                                            ? pair->port->limits.max_qp_rd_atom
                                            : UINT8_MAX),
        .min_rnr_timer = RNR_TIMER,
    };
    int mask = IBV_QP_STATE;

    verbs_mtu_code(pair->mtu, &attributes.path_mtu);
    if (options->service != VERBS_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (options->service == VERBS_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return -ibv_modify_qp(pair->qp, &attributes, mask);
}

static int make_ready_to_send(struct verbs_pair *pair, const struct verbs_offer *theirs,
                              const struct verbs_options *options)
{
    int reads = pair->port->limits.max_qp_init_rd_atom;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = pair->packet,
        .timeout = options->timeout,
        .retry_cnt = options->retry,
        .rnr_retry = options->rnr_retry,
        .max_rd_atomic = (uint8_t)(reads < theirs->reads ? reads : theirs->reads),
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (options->service == VERBS_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return -ibv_modify_qp(pair->qp, &attributes, mask);
}

int verbs_pair_connect(struct verbs_pair *pair, const struct verbs_offer *theirs,
                       const struct verbs_options *options, struct err *err)
{
    int64_t begun_ns = clock_now();
    char gid[VERBS_GID_TEXT];
    int rc;

    pair->mtu = pair->need.mtu < theirs->mtu ? pair->need.mtu : theirs->mtu;
    rc = make_ready_to_receive(pair, theirs, options);
    if (rc == 0)
        rc = make_ready_to_send(pair, theirs, options);
    if (rc == 0 && options->service == VERBS_UD) {
        struct ibv_ah_attr path = path_to(pair, theirs, options);

        pair->ah = ibv_create_ah(pair->port->pd, &path);
        rc = pair->ah != NULL ? 0 : -errno;
    }
    pair->setup_ns += clock_now() - begun_ns;
    if (rc == 0) {
        pair->partner = theirs->number;
        return 0;
    }
    return err_set(err, rc,
                   "%s: can't connect a queue pair to %s (LID %u): %s; check that gid_index %d "
                   "names an address in the partner's network",
                   pair->port->label, verbs_gid_text(theirs->gid, gid), theirs->lid, strerror(-rc),
                   pair->need.gid != NULL ? (int)pair->need.gid->index : -1);
}
