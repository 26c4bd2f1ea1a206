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
static_assert(sizeof(struct key_fields) <= QP_KEY_BYTES, "fits into a key");

static struct qp_key key_of(const struct qp_config *config)
{
    const struct verbs_options *options = config->options;
    struct qp_key key = {{0}};
    struct key_fields fields = {
        .lid = config->partner.lid,
        .stream = config->stream,
        .depth = options->depth,
        .mtu = config->mtu,
        .pkey_index = options->pkey_index,
        .gid_index = config->gid != NULL ? (int16_t)config->gid->index : -1,
        .inline_bytes = options->inline_bytes,
        .slots = config->slots,
        .stride = config->stride,
        .role = config->role,
        .service = (uint8_t)options->service,
        .operation = (uint8_t)options->operation,
        .immediate = options->immediate,
        .connect = (uint8_t)options->connect,
        .service_level = options->service_level,
        .traffic_class = options->traffic_class,
        .retry = options->retry,
        .rnr_retry = options->rnr_retry,
        .timeout = options->timeout,
        .relays = config->relays,
    };

    memcpy(fields.partner, config->partner.gid, sizeof fields.partner);
    memcpy(key.bytes, &fields, sizeof fields);
    return key;
}

/* --- memory --- */

static uint32_t header_count(const struct qp_config *config)
{
    bool gathers =
        config->role == QP_SENDER && !config->relays && config->options->operation != VERBS_READ;

    return gathers ? config->options->depth : 0;
}

static int make_memory(struct verbs_qp *qp, struct err *err)
{
    const struct qp_config *config = &qp->config;
    size_t headers = (size_t)header_count(config) * VERBS_HEADER_STRIDE;
    size_t bytes = VERBS_CONTROL_BYTES + headers + (size_t)config->slots * config->stride;
    int rc = verbs_memory_take(&qp->port->memory, bytes, &qp->range, err);

    /* What nobody uses makes room for what is needed now. */
    while (rc == -ENOMEM && qp->port->cache.count > 0) {
        err->text[0] = '\0';
        verbs_qps_evict(qp->port, qp->port->cache.count / 2);
        rc = verbs_memory_take(&qp->port->memory, bytes, &qp->range, err);
    }
    if (rc < 0)
        return rc;
    memset(qp->range.at, 0, VERBS_CONTROL_BYTES + headers);
    qp->control = (struct verbs_control *)(void *)qp->range.at;
    qp->headers = headers > 0 ? qp->range.at + VERBS_CONTROL_BYTES : NULL;
    qp->ring = qp->range.at + VERBS_CONTROL_BYTES + headers;
    return 0;
}

/* What is read from a source lies in its ring for good; only headers change. */
static void fill_ring(struct verbs_qp *qp)
{
    const struct qp_config *config = &qp->config;

    if (config->role != QP_SENDER || config->options->operation != VERBS_READ)
        return;
    for (uint32_t i = 0; i < config->slots; i++)
        verbs_payload_fill(qp->ring + (size_t)i * config->stride + VERBS_HEADER_BYTES,
                           config->stride - VERBS_HEADER_BYTES, VERBS_SLOT_PLACE(i));
}

size_t verbs_qp_bytes(const struct verbs_qp *qp)
{
    return sizeof *qp + qp->range.bytes;
}

/* --- queues --- */

uint32_t verbs_qp_receives(const struct verbs_qp *qp)
{
    const struct qp_config *config = &qp->config;
    const struct verbs_options *options = config->options;

    if (options->service == VERBS_UD)
        return config->slots;
    if (config->role == QP_SENDER || options->operation == VERBS_READ)
        return 0;
    return options->operation == VERBS_SEND || options->immediate ? config->slots : 0;
}

static struct ibv_qp_init_attr queues_of(const struct verbs_qp *qp, uint32_t inline_bytes)
{
    static const enum ibv_qp_type types[] = {
        [VERBS_RC] = IBV_QPT_RC, [VERBS_UC] = IBV_QPT_UC, [VERBS_UD] = IBV_QPT_UD};
    const struct qp_config *config = &qp->config;
    const struct verbs_options *options = config->options;
    bool posts = config->role == QP_SENDER ? options->operation != VERBS_READ
                                           : options->operation == VERBS_READ;
    uint32_t receives = verbs_qp_receives(qp);

    return (struct ibv_qp_init_attr){
        .send_cq = qp->cq,
        .recv_cq = qp->cq,
        .qp_type = types[options->service],
        .cap = {.max_send_wr = VERBS_CONTROL_WRS + (posts ? options->depth : 0u),
                .max_recv_wr = receives > 0 ? receives : 1,
                .max_send_sge = header_count(config) > 0 ? 2 : 1,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes},
    };
}

static int make_completions(struct verbs_qp *qp, struct err *err)
{
    struct ibv_qp_init_attr queues = queues_of(qp, 0);
    int entries = (int)(queues.cap.max_send_wr + queues.cap.max_recv_wr);

    qp->cq = ibv_create_cq(qp->port->context, entries, qp, qp->port->channel, 0);
    if (qp->cq != NULL)
        return 0;
    return err_set(err, -errno,
                   "%s: can't make a completion queue of %d entries (the device allows %d of %d): "
                   "%s; use less depth, or fewer queue_pairs",
                   qp->port->label, entries, qp->port->limits.max_cq, qp->port->limits.max_cqe,
                   strerror(errno));
}

/* Devices say what they take inline only by refusing more. */
static int create_queue(struct verbs_qp *qp, const struct verbs_options *options)
{
    uint32_t asked = options->inline_bytes == VERBS_AUTOMATIC ? VERBS_INLINE_MOST
                                                              : (uint32_t)options->inline_bytes;

    for (;;) {
        struct ibv_qp_init_attr queues = queues_of(qp, asked);

        qp->ibv = ibv_create_qp(qp->port->pd, &queues);
        if (qp->ibv != NULL) {
            qp->inline_bytes =
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

static int refuse_queue(const struct verbs_qp *qp, const struct verbs_options *options, int code,
                        struct err *err)
{
    static const char *const services[] = {"RC", "UC", "UD"};

    if (code == -EOPNOTSUPP || code == -ENOSYS)
        return err_set(err, code, "%s: the device has no %s queue pairs; use another service",
                       qp->port->label, services[options->service]);
    return err_set(err, code,
                   "%s: can't make a %s queue pair of depth %u, inline %d: %s (the device allows "
                   "%d queue pairs of depth %d); use less depth or inline, or fewer queue_pairs",
                   qp->port->label, services[options->service], options->depth,
                   (int)options->inline_bytes, strerror(-code), qp->port->limits.max_qp,
                   qp->port->limits.max_qp_wr);
}

int verbs_qp_set_state(struct verbs_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attributes = {.qp_state = state};
    int mask;

    if (rdma_init_qp_attr(qp->id, &attributes, &mask) != 0)
        return -errno;
    return -ibv_modify_qp(qp->ibv, &attributes, mask);
}

static int initialise(struct verbs_qp *qp, const struct verbs_options *options)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = options->pkey_index,
        .port_num = qp->port->number,
        .qkey = qp->queue_key,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    if (options->service == VERBS_RC)
        attributes.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
    mask |= options->service == VERBS_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return -ibv_modify_qp(qp->ibv, &attributes, mask);
}

int verbs_qp_post_receive(struct verbs_qp *qp, uint32_t slot)
{
    struct ibv_sge place = {
        .addr = (uintptr_t)qp->ring + (size_t)slot * qp->config.stride,
        .length = qp->config.stride,
        .lkey = qp->range.lkey,
    };
    bool holds = qp->config.options->operation == VERBS_SEND;
    struct ibv_recv_wr work = {
        .wr_id = slot, .sg_list = holds ? &place : NULL, .num_sge = holds ? 1 : 0};
    struct ibv_recv_wr *bad;

    return -ibv_post_recv(qp->ibv, &work, &bad);
}

int verbs_qp_create(struct verbs_qp *qp, const struct verbs_options *options, struct err *err)
{
    int rc = create_queue(qp, options);

    if (rc < 0)
        return refuse_queue(qp, options, rc, err);
    rc = qp->id != NULL ? verbs_qp_set_state(qp, IBV_QPS_INIT) : initialise(qp, options);
    for (uint32_t i = 0; i < verbs_qp_receives(qp) && rc == 0; i++)
        rc = verbs_qp_post_receive(qp, i);
    if (rc < 0)
        return err_set(err, rc, "%s: a new queue pair can't be initialised: %s (pkey_index %u)",
                       qp->port->label, strerror(-rc), options->pkey_index);
    return 0;
}

/* --- the whole --- */

static void draw_numbers(struct verbs_qp *qp)
{
    uint32_t random[2];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = random[1] = (uint32_t)clock_now();
    qp->packet = random[0] & PACKET_MASK;
    qp->queue_key = random[1] & QUEUE_KEY_MASK;
}

static int make_new(struct verbs_qp *qp, struct err *err)
{
    const struct verbs_options *options = qp->config.options;
    int rc = make_memory(qp, err);

    draw_numbers(qp);
    if (rc < 0)
        return rc;
    fill_ring(qp);
    rc = make_completions(qp, err);
    if (rc == 0 && options->connect == VERBS_CONNECT_EXCHANGE)
        rc = verbs_qp_create(qp, options, err);
    return rc;
}

int verbs_qp_acquire(struct verbs_qp **qp, struct transport_port *port,
                     const struct qp_config *config, bool fresh, struct err *err)
{
    struct qp_key key = key_of(config);
    struct cached_qp *cached = fresh ? NULL : qp_cache_take(&port->cache, &key);
    int64_t begun_ns = clock_now();
    struct verbs_qp *made;
    int rc;

    if (cached != NULL) {
        *qp = (struct verbs_qp *)(void *)cached;
        (*qp)->config = *config;
        (*qp)->reused = true;
        memset((*qp)->control, 0, sizeof *(*qp)->control);
        return 0;
    }
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", port->label);
    made->cached.key = key;
    made->port = port;
    made->config = *config;
    rc = make_new(made, err);
    made->setup_ns = clock_now() - begun_ns;
    if (rc < 0)
        verbs_qp_free(made);
    else
        *qp = made;
    return rc;
}

/* The device forgets its work requests, and lets go of their memory (InfiniBand Architecture
 * 10.3.1, state Reset). A device that can't is asked to destroy the queue pair at once. */
static void stop(struct verbs_qp *qp)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RESET};

    if (qp->ibv == NULL || ibv_modify_qp(qp->ibv, &attributes, IBV_QP_STATE) == 0)
        return;
    ibv_destroy_qp(qp->ibv);
    qp->ibv = NULL;
}

void verbs_qp_free(struct verbs_qp *qp)
{
    if (qp == NULL)
        return;
    stop(qp);
    verbs_memory_give(&qp->range);
    qp_destroyer_add(qp->port->destroyer, qp);
}

void verbs_qps_evict(struct transport_port *port, size_t most)
{
    struct cached_qp *cached;

    while ((cached = qp_cache_evict(&port->cache, most)) != NULL)
        verbs_qp_free((struct verbs_qp *)(void *)cached);
}

void verbs_qp_keep(struct verbs_qp *qp, size_t most)
{
    struct transport_port *port = qp->port;

    qp_cache_put(&port->cache, &qp->cached);
    verbs_qps_evict(port, most);
}

/* --- connecting --- */

void verbs_qp_info(const struct verbs_qp *qp, struct qp_info *info)
{
    const struct qp_config *config = &qp->config;
    int reads = qp->port->limits.max_qp_rd_atom;

    *info = (struct qp_info){
        .number = qp->ibv != NULL ? qp->ibv->qp_num : 0,
        .connected_to = qp->reused ? qp->partner : 0,
        .turn = qp->reused ? qp->turn : 0,
        .packet = qp->packet,
        .queue_key = qp->queue_key,
        .lid = qp->port->attributes.lid,
        .mtu = config->mtu,
        .reads = (uint8_t)(reads < UINT8_MAX ? reads : UINT8_MAX),
        .ring = {(uintptr_t)qp->ring, qp->range.rkey},
        .slots = config->slots,
        .stride = config->stride,
        .first = qp->place,
        .control = {(uintptr_t)qp->control, qp->range.rkey},
    };
    if (config->gid != NULL)
        memcpy(info->gid, config->gid->bytes, sizeof info->gid);
}

static struct ibv_ah_attr path_to(const struct verbs_qp *qp, const struct qp_info *theirs,
                                  const struct verbs_options *options)
{
    static const uint8_t none[VERBS_GID_BYTES];
    const struct verbs_gid *gid = qp->config.gid;
    struct ibv_ah_attr path = {
        .dlid = theirs->lid, .sl = options->service_level, .port_num = qp->port->number};

    /* In one InfiniBand subnet the LID is enough; a GID was asked for, or it is RoCE. */
    path.is_global = gid != NULL && memcmp(theirs->gid, none, sizeof none) != 0 &&
                     (qp->port->ethernet || options->gid_index >= 0);
    if (path.is_global) {
        memcpy(path.grh.dgid.raw, theirs->gid, sizeof theirs->gid);
        path.grh.sgid_index = (uint8_t)gid->index;
        path.grh.hop_limit = PORT_HOPS;
        path.grh.traffic_class = options->traffic_class;
    }
    return path;
}

static int make_ready_to_receive(struct verbs_qp *qp, const struct qp_info *theirs,
                                 const struct verbs_options *options)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = path_to(qp, theirs, options),
        .dest_qp_num = theirs->number,
        .rq_psn = theirs->packet,
        .max_dest_rd_atomic =
            (uint8_t)(qp->port->limits.max_qp_rd_atom < UINT8_MAX ? qp->port->limits.max_qp_rd_atom
                                                                  : UINT8_MAX),
        .min_rnr_timer = RNR_TIMER,
    };
    int mask = IBV_QP_STATE;

    verbs_mtu_code(qp->mtu, &attributes.path_mtu);
    if (options->service != VERBS_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (options->service == VERBS_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return -ibv_modify_qp(qp->ibv, &attributes, mask);
}

static int make_ready_to_send(struct verbs_qp *qp, const struct qp_info *theirs,
                              const struct verbs_options *options)
{
    int reads = qp->port->limits.max_qp_init_rd_atom;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = qp->packet,
        .timeout = options->timeout,
        .retry_cnt = options->retry,
        .rnr_retry = options->rnr_retry,
        .max_rd_atomic = (uint8_t)(reads < theirs->reads ? reads : theirs->reads),
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (options->service == VERBS_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return -ibv_modify_qp(qp->ibv, &attributes, mask);
}

int verbs_qp_connect(struct verbs_qp *qp, const struct qp_info *theirs,
                     const struct verbs_options *options, struct err *err)
{
    int64_t begun_ns = clock_now();
    char gid[VERBS_GID_TEXT];
    int rc;

    qp->mtu = qp->config.mtu < theirs->mtu ? qp->config.mtu : theirs->mtu;
    rc = make_ready_to_receive(qp, theirs, options);
    if (rc == 0)
        rc = make_ready_to_send(qp, theirs, options);
    if (rc == 0 && options->service == VERBS_UD) {
        struct ibv_ah_attr path = path_to(qp, theirs, options);

        qp->ah = ibv_create_ah(qp->port->pd, &path);
        rc = qp->ah != NULL ? 0 : -errno;
    }
    qp->setup_ns += clock_now() - begun_ns;
    if (rc == 0) {
        qp->partner = theirs->number;
        return 0;
    }
    return err_set(err, rc,
                   "%s: can't connect a queue pair to %s (LID %u): %s; check that gid_index %d "
                   "names an address in the partner's network",
                   qp->port->label, verbs_gid_text(theirs->gid, gid), theirs->lid, strerror(-rc),
                   qp->config.gid != NULL ? (int)qp->config.gid->index : -1);
}
