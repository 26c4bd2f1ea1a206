/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma_cm.h"

#include "log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BACKLOG 1024
#define RESOLVE_MS 2000

/* Private data of a call and of its answer. */
struct greeting {
    uint64_t token;
    uint32_t number; /* the queue pair's */
    uint32_t zero;
};

/* --- the port --- */

/* librdmacm wants IPv4 addresses as such. */
static struct sockaddr_storage address_of(const uint8_t ip[16], uint16_t port)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;

    if (verbs_gid_is_ipv4(ip)) {
        v4->sin_family = AF_INET;
        v4->sin_port = port;
        memcpy(&v4->sin_addr, ip + 12, 4);
    } else {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = port;
        memcpy(&v6->sin6_addr, ip, 16);
    }
    return address;
}

static struct sockaddr_storage own_address(const struct transport_port *port)
{
    struct sockaddr_storage address = address_of(port->ip.sin6_addr.s6_addr, 0);

    if (address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&address)->sin6_scope_id = port->ip.sin6_scope_id;
    return address;
}

void verbs_cm_listen(struct transport_port *port)
{
    struct sockaddr_storage address = own_address(port);
    struct verbs_cm *cm;

    if (port->ip.sin6_family == 0)
        return;
    cm = port->cm = calloc(1, sizeof *cm);
    if (cm == NULL)
        return;
    cm->channel = rdma_create_event_channel();
    if (cm->channel != NULL &&
        fcntl(cm->channel->fd, F_SETFL, fcntl(cm->channel->fd, F_GETFL) | O_NONBLOCK) == 0 &&
        rdma_create_id(cm->channel, &cm->listener, NULL, RDMA_PS_TCP) == 0 &&
        rdma_bind_addr(cm->listener, (struct sockaddr *)&address) == 0 &&
        rdma_listen(cm->listener, BACKLOG) == 0) {
        cm->port = rdma_get_src_port(cm->listener);
        return;
    }
    log_debug("%s: rdma_cm can't be used: %s", port->label, strerror(errno));
    verbs_cm_close(port);
}

void verbs_cm_close(struct transport_port *port)
{
    struct verbs_cm *cm = port->cm;

    if (cm == NULL)
        return;
    if (cm->listener != NULL)
        rdma_destroy_id(cm->listener);
    if (cm->channel != NULL)
        rdma_destroy_event_channel(cm->channel);
    free(cm);
    port->cm = NULL;
}

int verbs_cm_fd(struct transport_port *port)
{
    return port->cm != NULL ? port->cm->channel->fd : -1;
}

/* --- events --- */

/* Only a partner of this run knows a token. */
static bool keep_caller(struct verbs_cm *cm, const struct rdma_cm_event *request)
{
    struct greeting greeting;

    request->id->context = NULL;
    if (request->param.conn.private_data_len < sizeof greeting)
        return false;
    memcpy(&greeting, request->param.conn.private_data, sizeof greeting);
    return verbs_cm_came(cm, greeting.token, greeting.number, request->id);
}

/* From INIT, whose access rights rdma_cm knows only now, to sending. */
static int make_ready(struct verbs_qp *qp)
{
    int rc = verbs_qp_set_state(qp, IBV_QPS_INIT);

    if (rc == 0)
        rc = verbs_qp_set_state(qp, IBV_QPS_RTR);
    return rc == 0 ? verbs_qp_set_state(qp, IBV_QPS_RTS) : rc;
}

static struct rdma_conn_param parameters(const struct cm_call *call,
                                         const struct greeting *greeting)
{
    const struct verbs_options *options = &call->qp->config.options;

    return (struct rdma_conn_param){
        .private_data = greeting,
        .private_data_len = sizeof *greeting,
        .responder_resources = verbs_reads_answered(call->qp->port),
        .initiator_depth = verbs_reads_asked(call->qp->port, call->reads),
        .retry_count = options->retry,
        .rnr_retry_count = options->rnr_retry,
        .qp_num = greeting->number,
    };
}

static int start_call(struct cm_call *call)
{
    struct err err = {""};
    struct greeting greeting = {.token = call->token};
    struct rdma_conn_param param;
    int rc = verbs_qp_create(call->qp, &err);

    if (rc < 0)
        return rc;
    greeting.number = call->qp->ibv->qp_num;
    param = parameters(call, &greeting);
    return rdma_connect(call->qp->id, &param) == 0 ? 0 : -errno;
}

/* The receiver has answered. */
static int establish(struct cm_call *call, const struct rdma_cm_event *event)
{
    struct greeting greeting;
    int rc;

    if (event->param.conn.private_data_len < sizeof greeting)
        return -EPROTO;
    memcpy(&greeting, event->param.conn.private_data, sizeof greeting);
    call->qp->partner = greeting.number;
    rc = make_ready(call->qp);
    if (rc == 0 && rdma_establish(call->qp->id) != 0)
        rc = -errno;
    return rc;
}

/* What an event means for the end that called, or has answered. Returns what became of it. */
static int handle_event(struct cm_call *call, const struct rdma_cm_event *event)
{
    struct rdma_cm_id *id = event->id;

    switch (event->event) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
        return rdma_resolve_route(id, RESOLVE_MS) == 0 ? -EAGAIN : -errno;
    case RDMA_CM_EVENT_ROUTE_RESOLVED: {
        int rc = start_call(call);

        return rc < 0 ? rc : -EAGAIN;
    }
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        return establish(call, event);
    case RDMA_CM_EVENT_ESTABLISHED:
        return 0;
    case RDMA_CM_EVENT_REJECTED:
        return -ECONNREFUSED;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
        return event->status < 0 ? event->status : -EHOSTUNREACH;
    default:
        return call->state;
    }
}

void verbs_cm_work(struct transport_port *port)
{
    struct rdma_cm_event *event;

    while (port->cm != NULL && rdma_get_cm_event(port->cm->channel, &event) == 0) {
        struct rdma_cm_id *id = event->id;
        struct cm_call *call = id->context;
        bool is_stranger = false;

        if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST)
            is_stranger = !keep_caller(port->cm, event);
        else if (call != NULL)
            call->state = handle_event(call, event);
        rdma_ack_cm_event(event); /* before it an id can't be destroyed */
        if (is_stranger) {
            rdma_reject(id, NULL, 0);
            rdma_destroy_id(id);
        }
    }
}

/* --- calls --- */

bool verbs_cm_came(struct verbs_cm *cm, uint64_t token, uint32_t number, struct rdma_cm_id *id)
{
    struct cm_call *call = LIST_FIRST(&cm->expected);

    while (call != NULL && (call->token != token || call->caller != NULL))
        call = LIST_NEXT(call, link);
    if (call == NULL)
        return false;
    call->caller = id;
    call->caller_number = number;
    return true;
}

static void expect_no_more(struct cm_call *call)
{
    if (call->expected)
        LIST_REMOVE(call, link);
    call->expected = false;
}

/* Its end will not answer a call. */
static void drop(struct cm_call *call)
{
    expect_no_more(call);
    if (call->caller != NULL)
        rdma_destroy_id(call->caller);
    call->caller = NULL;
}

void verbs_cm_expect(struct transport_port *port, struct cm_call *call)
{
    drop(call);
    call->token = 0;
    if (port->cm == NULL ||
        getrandom(&call->token, sizeof call->token, 0) != (ssize_t)sizeof call->token ||
        call->token == 0)
        return; /* the call is refused, which the sender tells */
    LIST_INSERT_HEAD(&port->cm->expected, call, link);
    call->expected = true;
}

void verbs_cm_forget(struct cm_call *call, struct verbs_qp *qp)
{
    drop(call);
    if (qp->id != NULL)
        qp->id->context = NULL;
}

static void set_options(const struct cm_call *call, struct rdma_cm_id *id)
{
    uint8_t tos = call->qp->config.options.traffic_class;
    uint8_t timeout = call->qp->config.options.timeout;

    /* Refinements, which old kernels do not have. */
    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos);
    rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &timeout, sizeof timeout);
}

int verbs_cm_begin(struct cm_call *call, struct err *err)
{
    struct transport_port *port = call->qp->port;
    const struct verbs_address *partner = &call->qp->config.partner;
    struct sockaddr_storage from;
    struct sockaddr_storage to = address_of(partner->ip, partner->cm_port);

    call->state = -EAGAIN;
    if (port->cm == NULL)
        return err_set(err, -ENOTSUP,
                       "%s: connect: cm does not work: the port has no IP address, or this host "
                       "no rdma_cm (`modprobe rdma_ucm`); use connect: exchange",
                       port->label);
    if (partner->cm_port == 0)
        return err_set(err, -ENOTSUP,
                       "%s: connect: cm does not work: rank %u's port has no IP address, or its "
                       "host no rdma_cm (`modprobe rdma_ucm`); use connect: exchange",
                       port->label, call->rank);
    if (!call->calls)
        return 0;
    from = own_address(port);
    if (rdma_create_id(port->cm->channel, &call->qp->id, call, RDMA_PS_TCP) == 0) {
        set_options(call, call->qp->id);
        if (rdma_resolve_addr(call->qp->id, (struct sockaddr *)&from, (struct sockaddr *)&to,
                              RESOLVE_MS) == 0)
            return 0;
    }
    return err_set(err, -errno, "%s: rdma_cm can't find a way to rank %u: %s", port->label,
                   call->rank, strerror(errno));
}

/* Accepts the call, if it has come. */
static int accept_call(struct cm_call *call)
{
    struct verbs_qp *qp = call->qp;
    struct greeting greeting = {0};
    struct rdma_conn_param param;
    struct err err = {""};
    int rc;

    if (call->caller == NULL)
        return -EAGAIN;
    expect_no_more(call);
    qp->id = call->caller;
    qp->partner = call->caller_number;
    qp->id->context = call;
    call->caller = NULL;
    set_options(call, qp->id);
    rc = verbs_qp_create(qp, &err);
    if (rc == 0)
        rc = make_ready(qp);
    if (rc < 0)
        return rc;
    greeting.number = qp->ibv->qp_num;
    param = parameters(call, &greeting);
    return rdma_accept(qp->id, &param) == 0 ? -EAGAIN : -errno;
}

static void read_mtu(struct verbs_qp *qp)
{
    struct ibv_qp_init_attr queues;
    struct ibv_qp_attr attributes;

    if (ibv_query_qp(qp->ibv, &attributes, IBV_QP_PATH_MTU, &queues) == 0)
        qp->mtu = (uint16_t)verbs_mtu_bytes(attributes.path_mtu);
}

int verbs_cm_advance(struct cm_call *call, struct err *err)
{
    if (!call->calls && call->state == -EAGAIN && call->qp->id == NULL) {
        int rc = accept_call(call);

        if (rc != -EAGAIN)
            call->state = rc;
    }
    if (call->state == -EAGAIN)
        return -EAGAIN;
    if (call->state < 0)
        return err_set(err, call->state, "%s: rdma_cm did not connect to rank %u: %s",
                       call->qp->port->label, call->rank, strerror(-call->state));
    read_mtu(call->qp);
    return 0;
}
