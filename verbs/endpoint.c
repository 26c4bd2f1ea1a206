/* SPDX-License-Identifier: BSD-3-Clause */
#include "endpoint.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

/* --- credits and eofs, from the queue pair's control words --- */

static void post(struct verbs_endpoint *endpoint, enum verbs_work kind, struct ibv_send_wr *work,
                 struct ibv_sge from)
{
    from.lkey = endpoint->qp->range.lkey;
    work->wr_id = VERBS_WORK_ID(kind, 0);
    work->sg_list = &from;
    work->num_sge = 1;
    work->send_flags = IBV_SEND_SIGNALED;
    if (from.length <= endpoint->qp->inline_bytes)
        work->send_flags |= IBV_SEND_INLINE;
    endpoint->control_busy = true;
    verbs_endpoint_post(endpoint, work, 1);
}

/* Into the partner's control words. */
static struct ibv_send_wr write_to(const struct verbs_endpoint *endpoint, size_t offset)
{
    return (struct ibv_send_wr){
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = {.remote_addr = endpoint->theirs.control.address + offset,
                    .rkey = endpoint->theirs.control.key},
    };
}

/* As a message. */
static void send_notice(struct verbs_endpoint *endpoint, enum verbs_work kind)
{
    struct verbs_notice *notice = &endpoint->qp->control->notice_out;
    struct ibv_send_wr work = {.opcode = IBV_WR_SEND};

    if (endpoint->context->options.service == VERBS_UD)
        verbs_endpoint_address(endpoint, &work);
    post(endpoint, kind, &work,
         (struct ibv_sge){.addr = (uintptr_t)notice, .length = sizeof *notice});
}

void verbs_endpoint_credit(struct verbs_endpoint *endpoint, bool finished, uint64_t messages)
{
    struct verbs_control *control = endpoint->qp->control;
    uint64_t credit = verbs_credit(endpoint->script.tag, finished, messages);
    struct ibv_send_wr work = write_to(endpoint, offsetof(struct verbs_control, credit));

    if (endpoint->context->options.service == VERBS_UD) {
        control->notice_out = verbs_notice_make(VERBS_KIND_CREDIT, &endpoint->script, credit, 0);
        send_notice(endpoint, VERBS_WORK_CONTROL);
        return;
    }
    control->credit_out = credit;
    post(endpoint, VERBS_WORK_CONTROL, &work,
         (struct ibv_sge){.addr = (uintptr_t)&control->credit_out, .length = sizeof credit});
}

void verbs_endpoint_eof(struct verbs_endpoint *endpoint, uint64_t messages, uint64_t bytes)
{
    struct verbs_notice *notice = &endpoint->qp->control->notice_out;
    struct ibv_send_wr work = write_to(endpoint, offsetof(struct verbs_control, eof));

    *notice = verbs_notice_make(VERBS_KIND_EOF, &endpoint->script, messages, bytes);
    if (endpoint->context->options.operation == VERBS_SEND) {
        send_notice(endpoint, VERBS_WORK_EOF);
        return;
    }
    work.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    work.imm_data = htonl(VERBS_IMMEDIATE_EOF);
    post(endpoint, VERBS_WORK_EOF, &work,
         (struct ibv_sge){.addr = (uintptr_t)notice, .length = sizeof *notice});
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

/* doc/how-to/verbs.md, "Soft-RoCE" */
static const char miscounted[] =
    "the receiving device finds a request invalid: Soft-RoCE, when it repeats packets twice before "
    "their acknowledgements come, counts them wrong; give verbs a longer timeout (18 is 1 s), or "
    "less depth";

static const char *why_failed(enum ibv_wc_status status, const struct transport_port *port)
{
    if (port->fatal)
        return "the device has failed";
    if (status == IBV_WC_REM_INV_REQ_ERR && port->software)
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
