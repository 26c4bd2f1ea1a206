/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp.h"

#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define INLINE_MAX 220u
#define RNR_TIMER 14 /* 1.28 ms; credits see to it that it is hardly ever used */
#define PORT_HOPS 64
#define PACKET_MASK 0xffffffu
#define QUEUE_KEY_MASK 0x7fffffffu /* the highest bit is for privileged users */

static const char *const service_names[] = {
    [VERBS_RC] = "RC", [VERBS_UC] = "UC", [VERBS_UD] = "UD"};

/* --- memory --- */

static int make_memory(struct verbs_qp *qp, struct err *err)
{
    const struct qp_config *config = &qp->config;
    size_t headers = (size_t)qp_config_headers(config) * VERBS_HEADER_STRIDE;
    size_t bytes = VERBS_CONTROL_BYTES + headers + (size_t)config->slots * config->stride;
    int rc = registered_memory_take(&qp->port->memory, bytes, &qp->range, err);

    if (rc < 0)
        return rc;
    memset(qp->range.at, 0, VERBS_CONTROL_BYTES + headers);
    qp->control = (struct verbs_control *)(void *)qp->range.at;
    qp->headers = headers > 0 ? qp->range.at + VERBS_CONTROL_BYTES : NULL;
    qp->ring = qp->range.at + VERBS_CONTROL_BYTES + headers;
    return 0;
}

/* What is written into a place with immediate data is not in the receive. */
static int make_receives(struct verbs_qp *qp, struct err *err)
{
    bool holds = qp->config.options.operation == VERBS_SEND;
    uint32_t count = qp_config_receives(&qp->config);

    if (count == 0)
        return 0;
    qp->receives = calloc(count, sizeof *qp->receives);
    if (qp->receives == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", qp->port->label);
    for (uint32_t i = 0; i < count; i++) {
        struct verbs_receive *receive = &qp->receives[i];

        receive->place =
            (struct ibv_sge){.addr = (uintptr_t)qp->ring + (size_t)i * qp->config.stride,
                             .length = qp->config.stride,
                             .lkey = qp->range.lkey};
        receive->work = (struct ibv_recv_wr){.wr_id = i,
                                             .next = &qp->receives[(i + 1) % count].work,
                                             .sg_list = holds ? &receive->place : NULL,
                                             .num_sge = holds};
    }
    return 0;
}

/* --- queues --- */

static struct ibv_qp_init_attr queues_of(const struct verbs_qp *qp, uint32_t inline_bytes)
{
    static const enum ibv_qp_type types[] = {
        [VERBS_RC] = IBV_QPT_RC, [VERBS_UC] = IBV_QPT_UC, [VERBS_UD] = IBV_QPT_UD};
    uint32_t receives = qp_config_receives(&qp->config);

    return (struct ibv_qp_init_attr){
        .send_cq = qp->cq,
        .recv_cq = qp->cq,
        .qp_type = types[qp->config.options.service],
        .cap = {.max_send_wr = VERBS_CONTROL_WRS + qp_config_sends(&qp->config),
                .max_recv_wr = receives > 0 ? receives : 1,
                .max_send_sge = qp_config_headers(&qp->config) > 0 ? 2 : 1,
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
static int create_queue(struct verbs_qp *qp)
{
    bool automatic = qp->config.options.inline_bytes == VERBS_AUTOMATIC;
    uint32_t asked = automatic ? INLINE_MAX : (uint32_t)qp->config.options.inline_bytes;

    for (;; asked /= 2) {
        struct ibv_qp_init_attr queues = queues_of(qp, asked);

        qp->ibv = ibv_create_qp(qp->port->pd, &queues);
        if (qp->ibv == NULL && (!automatic || asked == 0))
            return -errno;
        if (qp->ibv == NULL)
            continue;
        qp->inline_bytes = asked;
        if (automatic && queues.cap.max_inline_data < asked)
            qp->inline_bytes = queues.cap.max_inline_data;
        return 0;
    }
}

static int refuse_queue(const struct verbs_qp *qp, int code, struct err *err)
{
    const struct verbs_options *options = &qp->config.options;
    const char *service = service_names[options->service];

    if (code == -EOPNOTSUPP || code == -ENOSYS)
        return err_set(err, code, "%s: the device has no %s queue pairs; use another service",
                       qp->port->label, service);
    return err_set(err, code,
                   "%s: can't make a %s queue pair of depth %u, inline %d: %s (the device allows "
                   "%d queue pairs of depth %d); use less depth or inline, or fewer queue_pairs",
                   qp->port->label, service, options->depth, (int)options->inline_bytes,
                   strerror(-code), qp->port->limits.max_qp, qp->port->limits.max_qp_wr);
}

static int initialise(struct verbs_qp *qp)
{
    enum verbs_service service = qp->config.options.service;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = qp->config.options.pkey_index,
        .port_num = qp->port->number,
        .qkey = qp->queue_key,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

    mask |= service == VERBS_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
    return -ibv_modify_qp(qp->ibv, &attributes, mask);
}

int verbs_qp_post_receives(struct verbs_qp *qp, uint32_t first, uint32_t count)
{
    struct ibv_recv_wr *last = &qp->receives[(first + count - 1) % qp->config.slots].work;
    struct ibv_recv_wr *next = last->next;
    struct ibv_recv_wr *bad;
    int code;

    last->next = NULL;
    code = ibv_post_recv(qp->ibv, &qp->receives[first].work, &bad);
    last->next = next;
    return code;
}

static int create(struct verbs_qp *qp, struct err *err)
{
    int rc = qp->ibv == NULL ? create_queue(qp) : 0;

    if (rc < 0)
        return refuse_queue(qp, rc, err);
    rc = initialise(qp);
    if (rc == 0 && qp->receives != NULL)
        rc = -verbs_qp_post_receives(qp, qp->place, qp->config.slots);
    if (rc < 0)
        return err_set(err, rc, "%s: a new queue pair can't be initialised: %s (pkey_index %u)",
                       qp->port->label, strerror(-rc), qp->config.options.pkey_index);
    return 0;
}

/* --- the whole --- */

static void choose_numbers(struct verbs_qp *qp)
{
    uint32_t random[2];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = random[1] = (uint32_t)clock_now();
    qp->packet = random[0] & PACKET_MASK;
    qp->queue_key = random[1] & QUEUE_KEY_MASK;
}

/* The device forgets its work requests, and lets go of their memory (InfiniBand Architecture
 * 10.3.1, state Reset). A device that can't is asked to destroy the queue pair at once. */
static void reset_queue(struct verbs_qp *qp)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RESET};

    if (qp->ibv == NULL || ibv_modify_qp(qp->ibv, &attributes, IBV_QP_STATE) == 0)
        return;
    ibv_destroy_qp(qp->ibv);
    qp->ibv = NULL;
}

void verbs_qp_stop(struct verbs_qp *qp)
{
    reset_queue(qp);
    registered_memory_give(&qp->range);
}

void verbs_qp_reuse(struct verbs_qp *qp, const struct qp_config *config)
{
    qp->config = *config;
    qp->reused = true;
    qp->setup_ns = 0;
    choose_numbers(qp);
    memset(qp->control, 0, sizeof *qp->control);
}

int verbs_qp_reset(struct verbs_qp *qp, struct err *err)
{
    int64_t begun_ns = clock_now();
    int rc;

    reset_queue(qp);
    qp->partner = 0;
    qp->turn = 0;
    qp->reused = false;
    rc = qp->ibv != NULL
             ? create(qp, err)
             : err_set(err, -EOPNOTSUPP, "%s: the device can't reset a queue pair; use reuse: 0",
                       qp->port->label);
    qp->setup_ns += clock_now() - begun_ns;
    return rc;
}

void verbs_qp_destroy(struct verbs_qp *qp)
{
    if (qp->ah != NULL)
        ibv_destroy_ah(qp->ah);
    if (qp->ibv != NULL)
        ibv_destroy_qp(qp->ibv);
    if (qp->cq != NULL)
        ibv_destroy_cq(qp->cq);
    free(qp->receives);
    free(qp);
}

int verbs_qp_make(struct verbs_qp **qp, struct transport_port *port, const struct qp_config *config,
                  struct err *err)
{
    struct verbs_qp *made = calloc(1, sizeof *made);
    int64_t begun_ns = clock_now();
    int rc;

    if (made == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", port->label);
    made->port = port;
    made->config = *config;
    choose_numbers(made);
    rc = make_memory(made, err);
    if (rc == 0)
        rc = make_receives(made, err);
    if (rc == 0)
        rc = make_completions(made, err);
    if (rc == 0)
        rc = create(made, err);
    made->setup_ns = clock_now() - begun_ns;
    if (rc == 0) {
        *qp = made;
        return 0;
    }
    verbs_qp_stop(made);
    verbs_qp_destroy(made);
    return rc;
}

/* --- connecting --- */

void verbs_qp_describe(const struct verbs_qp *qp, struct qp_info *info)
{
    *info = (struct qp_info){
        .number = qp->ibv != NULL ? qp->ibv->qp_num : 0,
        .connected_to = qp->reused ? qp->partner : 0,
        .turn = qp->reused ? qp->turn : 0,
        .packet = qp->packet,
        .queue_key = qp->queue_key,
        .lid = qp->port->attributes.lid,
        .mtu = qp->config.mtu,
        .ring = {.address = (uintptr_t)qp->ring, .key = qp->range.rkey},
        .slots = qp->config.slots,
        .stride = qp->config.stride,
        .first = qp->place,
        .control = {.address = (uintptr_t)qp->control, .key = qp->range.rkey},
    };
    if (qp->config.gid != NULL)
        memcpy(info->gid, qp->config.gid->bytes, sizeof info->gid);
}

static struct ibv_ah_attr path_to(const struct verbs_qp *qp, const struct qp_info *theirs)
{
    static const uint8_t none[VERBS_GID_BYTES];
    const struct verbs_options *options = &qp->config.options;
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

static int make_ready_to_receive(struct verbs_qp *qp, const struct qp_info *theirs)
{
    enum verbs_service service = qp->config.options.service;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = path_to(qp, theirs),
        .dest_qp_num = theirs->number,
        .rq_psn = theirs->packet,
        .max_dest_rd_atomic = qp->port->limits.max_qp_rd_atom > 0, /* 0: the device has no read */
        .min_rnr_timer = RNR_TIMER,
    };
    int mask = IBV_QP_STATE;

    verbs_mtu_code(qp->mtu, &attributes.path_mtu);
    if (service != VERBS_UD)
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (service == VERBS_RC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return -ibv_modify_qp(qp->ibv, &attributes, mask);
}

static int make_ready_to_send(struct verbs_qp *qp)
{
    const struct verbs_options *options = &qp->config.options;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = qp->packet,
        .timeout = options->timeout,
        .retry_cnt = options->retry,
        .rnr_retry = options->rnr_retry,
        .max_rd_atomic = qp->port->limits.max_qp_init_rd_atom > 0,
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (options->service == VERBS_RC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    return -ibv_modify_qp(qp->ibv, &attributes, mask);
}

int verbs_qp_connect(struct verbs_qp *qp, const struct qp_info *theirs, struct err *err)
{
    int64_t begun_ns = clock_now();
    char gid[VERBS_GID_TEXT];
    int rc;

    qp->mtu = qp->config.mtu < theirs->mtu ? qp->config.mtu : theirs->mtu;
    rc = make_ready_to_receive(qp, theirs);
    if (rc == 0)
        rc = make_ready_to_send(qp);
    if (rc == 0 && qp->config.options.service == VERBS_UD) {
        struct ibv_ah_attr path = path_to(qp, theirs);

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
