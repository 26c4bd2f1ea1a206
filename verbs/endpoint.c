/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static void post_one(struct verbs_endpoint *endpoint, struct ibv_send_wr *work,
                     const struct verbs_post *post)
{
    struct ibv_sge from = {
        .addr = (uintptr_t)post->from, .length = post->bytes, .lkey = endpoint->qp->range.lkey};
    struct ibv_send_wr *bad;
    int code;

    work->wr_id = VERBS_WORK_ID(post->work, 0);
    work->sg_list = &from;
    work->num_sge = 1;
    work->send_flags |= IBV_SEND_SIGNALED;
    if (post->bytes <= endpoint->qp->inline_bytes)
        work->send_flags |= IBV_SEND_INLINE;
    endpoint->control_busy = true;
    code = ibv_post_send(endpoint->qp->ibv, work, &bad);
    if (code != 0)
        verbs_fault_post(endpoint, code);
}

void verbs_endpoint_write(struct verbs_endpoint *endpoint, const struct verbs_post *post)
{
    struct ibv_send_wr work = {
        .opcode = post->immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE,
        .imm_data = htonl(VERBS_IMMEDIATE_EOF),
        .wr.rdma = {.remote_addr = endpoint->theirs.control.address + post->offset,
                    .rkey = endpoint->theirs.control.key},
    };

    post_one(endpoint, &work, post);
}

void verbs_endpoint_send(struct verbs_endpoint *endpoint, const struct verbs_post *post)
{
    struct ibv_send_wr work = {.opcode = IBV_WR_SEND};

    if (endpoint->context->options.service == VERBS_UD) {
        work.wr.ud.ah = endpoint->qp->ah;
        work.wr.ud.remote_qpn = endpoint->theirs.number;
        work.wr.ud.remote_qkey = endpoint->theirs.queue_key;
    }
    post_one(endpoint, &work, post);
}

void verbs_endpoint_write_credit(struct verbs_endpoint *endpoint, bool finished, uint64_t messages)
{
    struct verbs_control *control = endpoint->qp->control;

    control->credit_out = verbs_credit(endpoint->script.tag, finished, messages);
    verbs_endpoint_write(endpoint,
                         &(struct verbs_post){.work = VERBS_WORK_CONTROL,
                                              .from = &control->credit_out,
                                              .bytes = sizeof control->credit_out,
                                              .offset = offsetof(struct verbs_control, credit)});
}

/* --- faults --- */

/* Why a completion failed, and what to do about it (InfiniBand Architecture 11.6.2). */
static const struct {
    enum ibv_wc_status status;
    const char *why;
} reasons[] = {
    {IBV_WC_RETRY_EXC_ERR,
     "it does not answer, and all retries are used up: its node was killed, its port is down, a "
     "cable is cut, or gid_index or mtu do not fit the network"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "it has no receives posted, and all retries are used up"},
    {IBV_WC_REM_ACCESS_ERR, "it does not permit this access to its memory"},
    {IBV_WC_REM_INV_REQ_ERR,
     "the receiving device finds a request invalid; does it have this operation?"},
    {IBV_WC_REM_OP_ERR, "it could not carry out the request"},
    {IBV_WC_LOC_QP_OP_ERR, "this device does not carry out the request; does it have it?"},
    {IBV_WC_LOC_LEN_ERR, "a message is longer than the place for it, or than the path MTU"},
    {IBV_WC_LOC_PROT_ERR, "this device may not use the memory it was given"},
};

/* doc/verbs.md, "Soft-RoCE" */
static const char miscounted[] =
    "the receiving device finds a request invalid: Soft-RoCE, when it repeats packets twice before "
    "their acknowledgements come, counts them wrong; give verbs a longer timeout (18 is 1 s), or "
    "less depth";

static const char *why_failed(enum ibv_wc_status status, const struct transport_port *port)
{
    if (port->fatal)
        return "the device has failed";
    if (status == IBV_WC_REM_INV_REQ_ERR && port->software && !port->iwarp)
        return miscounted;
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].why;
    return ibv_wc_status_str(status);
}

/* The caller that prints it names the port. */
static void fail(struct verbs_endpoint *endpoint, int code, const char *what, const char *why)
{
    const struct transport_port *port = endpoint->context->port;
    char gid[VERBS_GID_TEXT];

    endpoint->failed = true;
    err_set(&endpoint->context->lane->error, code,
            "%s/%u: %s rank %u (%s, queue pair %u) failed: %s", port->device, port->number, what,
            verbs_endpoint_partner(endpoint), verbs_gid_text(endpoint->theirs.gid, gid),
            endpoint->theirs.number, why);
}

void verbs_fault(struct verbs_endpoint *endpoint, const struct ibv_wc *completion)
{
    if (completion->status == IBV_WC_WR_FLUSH_ERR && endpoint->failed)
        return;
    fail(endpoint, -EIO, verbs_endpoint_sends(endpoint) ? "sending to" : "receiving from",
         why_failed(completion->status, endpoint->context->port));
}

void verbs_fault_post(struct verbs_endpoint *endpoint, int code)
{
    if (!endpoint->failed)
        fail(endpoint, -code, "posting work for", strerror(code));
}
