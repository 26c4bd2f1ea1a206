/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDMA writes with immediate data: each takes a receive, which holds nothing but tells the receiver
 * that the next place of its ring is filled.
 */
#include "mode.h"

#include "sender.h"

#include <arpa/inet.h>

/* Into the next places of the receiver's ring, each with its number as immediate data. */
static void address(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    const struct qp_info *theirs = &sender->base.theirs;
    uint32_t sequence = (uint32_t)sender->at.sequence;

    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        work->imm_data = htonl(sequence++ & VERBS_IMMEDIATE_MASK);
        work->wr.rdma.remote_addr =
            theirs->ring.address + (uint64_t)sender->remote * theirs->stride;
        sender->remote = sender->remote + 1 == theirs->slots ? 0 : sender->remote + 1;
    }
}

/* The immediate tells which message it was: of an unreliable service some may be missing. */
static unsigned consume(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                        int64_t now_ns)
{
    const struct verbs_qp *qp = receiver->base.qp;
    uint32_t immediate = ntohl(completion->imm_data);
    uint32_t gap = (immediate - (uint32_t)receiver->verifier.at.sequence) & VERBS_IMMEDIATE_MASK;

    if (immediate & VERBS_IMMEDIATE_EOF) {
        verbs_receiver_read_eof(receiver, &qp->control->eof);
        receiver->to_post++;
        return 1;
    }
    if (!receiver->base.context->reliable && gap < VERBS_IMMEDIATE_MASK / 2) {
        receiver->place = (receiver->place + gap) % qp->config.slots;
        verbs_verify_skip(&receiver->verifier, gap);
    }
    verbs_receiver_take(receiver, verbs_receiver_slot(receiver, receiver->place),
                        completion->byte_len, now_ns);
    return 1;
}

const struct verbs_mode verbs_mode_write = {
    .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
    .address = address,
    .consume = consume,
};
