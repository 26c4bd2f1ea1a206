/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs: memory, creation, connection and destruction.
 */
#include "verbs.h"

#include "clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096u
#define HUGE_BYTES (2u << 20)
#define HUGE_LEAST (256u << 10) /* smaller memory does not fill a hugepage */
#define INLINE_MAX 220u
#define RNR_TIMER 14 /* 1.28 ms; credits make it a rare case ... */
#define RNR_RETRY 6  /* ... and 7 would be without end */
#define PORT_HOPS 64
#define PACKET_MASK 0xffffffu
#define QUEUE_KEY_MASK 0x7fffffffu /* the highest bit is for privileged users */
#define INFO_VERSION 7u
#define SLOTS_MAX (1u << 24) /* limit of a ring, far below the wrap of message numbers */
#define STOP_TIMEOUT_S 2

static_assert(sizeof(struct qp_info) == 56, "layout without holes");
static_assert(sizeof(struct qp_info) <= BLOB_BYTES_MAX, "fits into a blob");

/* --- registered memory --- */

int registered_memory_error(const char *label, size_t bytes, int code, struct err *err)
{
    struct rlimit limit = {0};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if ((code == ENOMEM || code == EPERM) && limit.rlim_cur != RLIM_INFINITY)
        return err_set(err, -EPERM,
                       "%s: can't register %zu KiB of memory: this user may lock %llu KiB; raise "
                       "the limit (`ulimit -l unlimited`, memlock in limits.conf, or LimitMEMLOCK "
                       "of the service)",
                       label, bytes >> 10, (unsigned long long)limit.rlim_cur >> 10);
    return err_set(err, -code, "%s: can't register %zu KiB of memory: %s", label, bytes >> 10,
                   strerror(code));
}

int registered_memory_make(struct transport_port *port, size_t bytes,
                           struct registered_memory *memory, struct err *err)
{
    const size_t huge_bytes = (bytes + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    const int protection = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;
    void *at = MAP_FAILED;
    bool huge;
    int rc;

    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    if (port->memory_bytes + bytes > port->memory_max)
        return err_set(
            err, -ENOMEM,
            "%s: %zu MiB of buffers are needed besides the %zu MiB in use, but at most %zu MiB, a "
            "quarter of this machine's memory, are allowed: use smaller messages, "
            "less depth or fewer queue_pairs",
            port->label, bytes >> 20, port->memory_bytes >> 20, port->memory_max >> 20);
    if (bytes > HUGE_LEAST)
        at = mmap(NULL, huge_bytes, protection, flags | MAP_HUGETLB | MAP_POPULATE, -1, 0);
    huge = at != MAP_FAILED;
    if (huge)
        bytes = huge_bytes;
    else
        at = mmap(NULL, bytes, protection, flags, -1, 0);
    if (at == MAP_FAILED)
        return err_set(err, -ENOMEM, "%s: out of memory", port->label);
    if (!huge)
        madvise(at, bytes, MADV_HUGEPAGE);
    *memory = (struct registered_memory){.at = at, .bytes = bytes, .huge = huge};
    memory->region =
        ibv_reg_mr(port->pd, at, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    port->memory_bytes += bytes;
    if (memory->region != NULL)
        return 0;
    rc = registered_memory_error(port->label, bytes, errno, err);
    registered_memory_free(port, memory);
    return rc;
}

void registered_memory_free(struct transport_port *port, struct registered_memory *memory)
{
    if (memory->at == NULL)
        return;
    if (memory->region != NULL)
        ibv_dereg_mr(memory->region);
    munmap(memory->at, memory->bytes);
    port->memory_bytes -= memory->bytes;
    *memory = (struct registered_memory){0};
}

int verbs_port_payload(struct transport_port *port, size_t bytes, struct err *err)
{
    int rc;

    bytes += MESSAGE_PERIOD;
    if (port->payload.bytes >= bytes)
        return 0;
    registered_memory_free(port, &port->payload);
    rc = registered_memory_make(port, bytes, &port->payload, err);
    for (size_t i = 0; rc == 0 && i < port->payload.bytes; i += MESSAGE_PERIOD) {
        size_t left = port->payload.bytes - i;

        memcpy(port->payload.at + i, message_payload,
               left < MESSAGE_PERIOD ? left : MESSAGE_PERIOD);
    }
    return rc;
}

/* --- configurations and infos --- */

/* Attributes that each service sets for the states INIT, RTR and RTS (ibv_modify_qp(3)). */
static const struct {
    const char *name;
    enum ibv_qp_type type;
    int init, ready_to_receive, ready_to_send;
} services[] = {
    [VERBS_RC] = {"RC", IBV_QPT_RC, IBV_QP_ACCESS_FLAGS,
                  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC},
    [VERBS_UC] = {"UC", IBV_QPT_UC, IBV_QP_ACCESS_FLAGS,
                  IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN, 0},
    [VERBS_UD] = {"UD", IBV_QPT_UD, IBV_QP_QKEY, 0, 0},
};

static uint32_t headers_of(const struct qp_config *config)
{
    return config->role == QP_SENDER ? config->options.depth : 0;
}

bool qp_info_read(struct qp_info *info, const struct blob *blob)
{
    if (blob->size != sizeof *info)
        return false;
    memcpy(info, blob->bytes, sizeof *info);
    return info->version == INFO_VERSION;
}

bool qp_info_fits(const struct qp_info *info, uint32_t stride)
{
    enum ibv_mtu mtu;

    return info->slots >= VERBS_RING_MIN && info->slots <= SLOTS_MAX && info->stride >= stride &&
           verbs_mtu_code(info->mtu, &mtu);
}

/* --- making one --- */

/* Allocate a queue pair's memory, and set up its receives. A write with immediate data puts its
 * payload into a place of the ring, not into the receive's own buffer, which only takes end
 * marks. */
static int lay_out(struct verbs_qp *qp, struct err *err)
{
    const struct qp_config *config = &qp->config;
    const bool written = config->role == QP_RECEIVER && config->options.operation == VERBS_WRITE;
    const size_t front = sizeof *qp->control + (size_t)headers_of(config) * VERBS_HEADER_STRIDE;
    int rc = registered_memory_make(qp->port, front + (size_t)config->slots * config->stride,
                                    &qp->memory, err);

    if (rc < 0)
        return rc;
    assert(qp->memory.at != NULL);
    memset(qp->memory.at, 0, front);
    qp->control = (struct verbs_control *)(void *)qp->memory.at;
    qp->headers = qp->memory.at + sizeof *qp->control;
    qp->ring = qp->memory.at + front;
    qp->receives = calloc(config->slots, sizeof *qp->receives);
    if (qp->receives == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", qp->port->label);
    for (uint32_t i = 0; i < config->slots; i++) {
        struct verbs_receive *receive = &qp->receives[i];
        uint8_t *place = qp->ring + (size_t)i * config->stride;

        receive->place =
            (struct ibv_sge){.addr = (uintptr_t)(written ? (uint8_t *)&qp->control->in : place),
                             .length = written ? (uint32_t)sizeof qp->control->in : config->stride,
                             .lkey = qp->memory.region->lkey};
        receive->work = (struct ibv_recv_wr){.wr_id = i,
                                             .next = &qp->receives[(i + 1) % config->slots].work,
                                             .sg_list = &receive->place,
                                             .num_sge = 1};
    }
    return 0;
}

static struct ibv_qp_init_attr queues_of(const struct verbs_qp *qp, uint32_t inline_bytes)
{
    return (struct ibv_qp_init_attr){
        .send_cq = qp->cq,
        .recv_cq = qp->cq,
        .qp_type = services[qp->config.options.service].type,
        .cap = {.max_send_wr = VERBS_CONTROL_WRS + headers_of(&qp->config),
                .max_recv_wr = qp->config.slots,
                .max_send_sge = headers_of(&qp->config) > 0 ? 2 : 1,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes},
    };
}

/* Create the queue pair and its completion queue. A device shows its limit of inline data only by
 * rejecting more. */
static int create_queues(struct verbs_qp *qp, struct err *err)
{
    const struct verbs_qp_options *options = &qp->config.options;
    const struct ibv_device_attr *limits = &qp->port->limits;
    const char *label = qp->port->label, *service = services[options->service].name;
    uint32_t asked = INLINE_MAX;
    struct ibv_qp_init_attr queues = queues_of(qp, asked);
    int entries = (int)(queues.cap.max_send_wr + queues.cap.max_recv_wr);

    qp->cq = ibv_create_cq(qp->port->context, entries, qp, qp->port->channel, 0);
    if (qp->cq == NULL)
        return err_set(err, -errno,
                       "%s: can't make a completion queue of %d entries (the device allows %d "
                       "queues of %d entries): %s; use less depth, or fewer queue_pairs",
                       label, entries, limits->max_cq, limits->max_cqe, strerror(errno));
    for (;; asked /= 2) {
        queues = queues_of(qp, asked);
        qp->ibv = ibv_create_qp(qp->port->pd, &queues);
        if (qp->ibv != NULL || asked == 0)
            break;
    }
    if (qp->ibv == NULL && (errno == EOPNOTSUPP || errno == ENOSYS))
        return err_set(err, -errno, "%s: the device has no %s queue pairs; use another service",
                       label, service);
    if (qp->ibv == NULL)
        return err_set(err, -errno,
                       "%s: can't make a %s queue pair of depth %u: %s (the device allows %d queue "
                       "pairs of depth %d); use less depth, or fewer queue_pairs",
                       label, service, options->depth, strerror(errno), limits->max_qp,
                       limits->max_qp_wr);
    qp->inline_bytes = queues.cap.max_inline_data < asked ? queues.cap.max_inline_data : asked;
    return 0;
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

/* Bring a queue pair to the state INIT, with its receives posted. */
static int initialise(struct verbs_qp *qp, struct err *err)
{
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t)qp->config.options.pkey_index,
        .port_num = qp->port->number,
        .qkey = qp->queue_key,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
    };
    int code = ibv_modify_qp(qp->ibv, &attributes,
                             IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                 services[qp->config.options.service].init);

    if (code == 0)
        code = verbs_qp_post_receives(qp, 0, qp->config.slots);
    if (code == 0)
        return 0;
    return err_set(err, -code, "%s: a new queue pair can't be initialised: %s (pkey_index %u)",
                   qp->port->label, strerror(code), qp->config.options.pkey_index);
}

/* --- life of a queue pair --- */

static void choose_numbers(struct verbs_qp *qp)
{
    uint32_t random[2];

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        random[0] = random[1] = (uint32_t)clock_now();
    qp->packet = random[0] & PACKET_MASK;
    qp->queue_key = random[1] & QUEUE_KEY_MASK;
}

/* Stop a queue pair and free its memory. In the state Reset the device drops the work requests and
 * no longer uses their memory (InfiniBand Architecture 10.3.1). A queue pair that cannot be reset
 * must be destroyed at once. */
static void stop(struct verbs_qp *qp)
{
    struct ibv_qp_attr attributes = {.qp_state = IBV_QPS_RESET};

    if (qp->ibv != NULL && ibv_modify_qp(qp->ibv, &attributes, IBV_QP_STATE) != 0) {
        ibv_destroy_qp(qp->ibv);
        qp->ibv = NULL;
    }
    registered_memory_free(qp->port, &qp->memory);
}

/* Destroy a stopped queue pair; may be called by any thread, and may take long. */
static void destroy(struct verbs_qp *qp)
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
    int rc;

    if (made == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", port->label);
    made->port = port;
    made->config = *config;
    choose_numbers(made);
    rc = lay_out(made, err);
    if (rc == 0)
        rc = create_queues(made, err);
    if (rc == 0)
        rc = initialise(made, err);
    if (rc == 0) {
        *qp = made;
        return 0;
    }
    stop(made);
    destroy(made);
    return rc;
}

/* --- connecting --- */

void verbs_qp_describe(const struct verbs_qp *qp, struct qp_info *info)
{
    *info = (struct qp_info){
        .version = INFO_VERSION,
        .number = qp->ibv != NULL ? qp->ibv->qp_num : 0,
        .packet = qp->packet,
        .queue_key = qp->queue_key,
        .lid = qp->port->attributes.lid,
        .mtu = (uint16_t)qp->config.mtu,
        .ring = (uintptr_t)qp->ring,
        .ring_key = qp->memory.region->rkey,
        .slots = qp->config.slots,
        .stride = qp->config.stride,
    };
    if (qp->config.gid != NULL)
        memcpy(info->gid, qp->config.gid->gid.raw, sizeof info->gid);
}

/* Bring a queue pair to ready-to-receive, then to ready-to-send. */
static int make_ready(struct verbs_qp *qp, const struct qp_info *theirs)
{
    static const uint8_t none[VERBS_GID_BYTES];
    const struct verbs_qp_options *options = &qp->config.options;
    const struct ibv_gid_entry *gid = qp->config.gid;
    struct ibv_qp_attr attributes = {
        .qp_state = IBV_QPS_RTR,
        .ah_attr = {.dlid = theirs->lid,
                    .sl = (uint8_t)options->service_level,
                    .port_num = qp->port->number},
        .dest_qp_num = theirs->number,
        .rq_psn = theirs->packet,
        .max_dest_rd_atomic = qp->port->limits.max_qp_rd_atom > 0, /* 0: the device has no read */
        .min_rnr_timer = RNR_TIMER,
        .sq_psn = qp->packet,
        .timeout = (uint8_t)options->timeout,
        .retry_cnt = (uint8_t)options->retry,
        .rnr_retry = RNR_RETRY,
        .max_rd_atomic = qp->port->limits.max_qp_init_rd_atom > 0,
    };
    struct ibv_ah_attr *path = &attributes.ah_attr;
    int code;

    /* In one InfiniBand subnet the LID suffices; a GID is used for RoCE, or where the options
     * set one. */
    path->is_global = gid != NULL && memcmp(theirs->gid, none, sizeof none) != 0 &&
                      (qp->port->ethernet || options->gid_index >= 0);
    if (path->is_global) {
        memcpy(path->grh.dgid.raw, theirs->gid, sizeof theirs->gid);
        path->grh.sgid_index = (uint8_t)gid->gid_index;
        path->grh.hop_limit = PORT_HOPS;
        path->grh.traffic_class = (uint8_t)options->traffic_class;
    }
    verbs_mtu_code(qp->mtu, &attributes.path_mtu);
    code = ibv_modify_qp(qp->ibv, &attributes,
                         IBV_QP_STATE | services[options->service].ready_to_receive);
    if (code != 0)
        return -code;
    attributes.qp_state = IBV_QPS_RTS;
    code = ibv_modify_qp(qp->ibv, &attributes,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | services[options->service].ready_to_send);
    if (code != 0 || options->service != VERBS_UD)
        return -code;
    qp->ah = ibv_create_ah(qp->port->pd, &attributes.ah_attr);
    return qp->ah != NULL ? 0 : -errno;
}

int verbs_qp_connect(struct verbs_qp *qp, const struct qp_info *theirs, struct err *err)
{
    char gid[VERBS_GID_TEXT];
    int rc;

    qp->mtu = qp->config.mtu < theirs->mtu ? (uint16_t)qp->config.mtu : theirs->mtu;
    rc = make_ready(qp, theirs);
    if (rc == 0)
        return 0;
    return err_set(err, rc,
                   "%s: can't connect a queue pair to %s (LID %u): %s; check that gid_index %d "
                   "names an address in the partner's network",
                   qp->port->label, verbs_gid_text(theirs->gid, gid), theirs->lid, strerror(-rc),
                   qp->config.gid != NULL ? (int)qp->config.gid->gid_index : -1);
}

/* --- the thread that destroys --- */

/* Destroy the queue pairs that arrive by the pipe, in a thread of their own. The kernel's call
 * returns only when nothing refers to the queue pair any more. On Soft-RoCE this includes packets
 * that a NIC's driver has sent but not yet freed, and some drivers (virtio_net) free them only with
 * the next transmission: on a quiet link the call takes up to 50 s (rxe's __rxe_cleanup). */
static void *destroy_all(void *context)
{
    int doomed = (int)(intptr_t)context;
    struct verbs_qp *qp;

    while (read(doomed, &qp, sizeof qp) == (ssize_t)sizeof qp)
        destroy(qp);
    close(doomed);
    return NULL;
}

int verbs_destroyer_start(struct transport_port *port)
{
    sigset_t all, before;
    int ends[2], code;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    sigfillset(&all); /* the main thread handles all signals */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&port->destroyer, NULL, destroy_all, (void *)(intptr_t)ends[0]);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        close(ends[0]);
        close(ends[1]);
        return -code;
    }
    pthread_setname_np(port->destroyer, "sb-qp-destroyer");
    port->doomed = ends[1];
    port->destroys = true;
    return 0;
}

void verbs_qp_free(struct verbs_qp *qp)
{
    stop(qp);
    if (write(qp->port->doomed, &qp, sizeof qp) != (ssize_t)sizeof qp)
        destroy(qp); /* the pipe is full, with thousands of queue pairs */
}

bool verbs_destroyer_stop(struct transport_port *port)
{
    struct timespec until;

    if (!port->destroys)
        return true;
    close(port->doomed);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_TIMEOUT_S;
    if (pthread_clockjoin_np(port->destroyer, NULL, CLOCK_MONOTONIC, &until) == 0)
        return true;
    pthread_detach(port->destroyer);
    return false;
}
