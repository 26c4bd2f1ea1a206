/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sends, of a reliable connection or of datagrams: each message takes a receive, and lies where
 * that receive is.
 */
#include "mode.h"

#include "receiver.h"
#include "sender.h"

#include <arpa/inet.h>

/* Datagrams that are answered may be shorter than a header: only their number tells which they are.
 */
static void write_numbers(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    uint32_t sequence = (uint32_t)sender->at.sequence;

    for (const struct ibv_send_wr *end = work + count; work != end; work++)
        work->imm_data = htonl(sequence++ & VERBS_IMMEDIATE_MASK);
}

/* The message's sequence, of which the immediate has the low bits. */
static uint32_t sequence_of(const struct verbs_receiver *receiver, uint32_t immediate)
{
    uint32_t due = (uint32_t)receiver->verifier.at.sequence;
    uint32_t ahead = (immediate - due) & VERBS_IMMEDIATE_MASK;

    return ahead <= VERBS_IMMEDIATE_MASK / 2 ? due + ahead
                                             : due + ahead - (VERBS_IMMEDIATE_MASK + 1);
}

static unsigned consume(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                        int64_t now_ns)
{
    bool datagram = receiver->base.context->options.service == VERBS_UD;
    uint32_t head = datagram ? VERBS_GRH_BYTES : 0;
    const uint8_t *data = verbs_receiver_slot(receiver, (uint32_t)completion->wr_id) + head;
    uint32_t bytes = completion->byte_len - head;
    bool eof = bytes == sizeof(struct verbs_notice) && data[0] == VERBS_KIND_EOF &&
               verbs_receiver_read_eof(receiver, (const struct verbs_notice *)(const void *)data);

    if (eof || ((completion->wc_flags & IBV_WC_WITH_IMM) != 0 &&
                verbs_verify_gap(&receiver->verifier,
                                 sequence_of(receiver, ntohl(completion->imm_data)), bytes)))
        verbs_receiver_leave(receiver);
    else
        verbs_receiver_take(receiver, data, bytes, now_ns);
    return 1;
}

/* A schedule takes it when its step has come. */
static unsigned note_arrival(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                             int64_t now_ns)
{
    uint32_t slots = receiver->base.qp->config.slots;

    (void)now_ns;
    receiver->lengths[(receiver->place + receiver->arrived) % slots] = completion->byte_len;
    receiver->arrived++;
    return 1;
}

const struct verbs_mode verbs_mode_send = {
    .opcode = IBV_WR_SEND,
    .consume = consume,
};

const struct verbs_mode verbs_mode_send_numbered = {
    .opcode = IBV_WR_SEND_WITH_IMM,
    .address = write_numbers,
    .consume = consume,
};

const struct verbs_mode verbs_mode_send_scheduled = {
    .opcode = IBV_WR_SEND,
    .uncounted = true,
    .consume = note_arrival,
};
