/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDMA writes. With immediate data each takes a receive, which holds nothing but tells the receiver
 * that the next place of its ring is filled. Without, the receiver looks at the last byte of the
 * place where the next message will be, which it has made differ from what the message has there.
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

/* --- with immediate data --- */

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
    .takes_receives = true,
    .post = verbs_sender_post_batch,
    .address = address,
    .credited = verbs_sender_allow,
    .consume = consume,
};

/* --- without --- */

/* The next places hold another last byte than the messages for them. */
static void make_ready(struct verbs_receiver *receiver, uint32_t count)
{
    const struct verbs_script *script = &receiver->base.script;
    struct verbs_cursor *next = &receiver->next;

    for (uint32_t i = 0; i < count && next->length > 0; i++) {
        struct verbs_header header = verbs_header_of(next, script, next->place);
        uint8_t *slot = verbs_receiver_slot(receiver, receiver->next_place);

        slot[next->length - 1] = (uint8_t)~verbs_last_byte(&header, next->length);
        receiver->next_place = verbs_receiver_after(receiver, receiver->next_place);
        verbs_cursor_next(next, script);
    }
}

static bool has_come(const struct verbs_receiver *receiver, const struct verbs_cursor *at,
                     uint32_t place)
{
    struct verbs_header header = verbs_header_of(at, &receiver->base.script, at->place);
    const volatile uint8_t *slot = verbs_receiver_slot(receiver, place);

    return at->length > 0 && slot[at->length - 1] == verbs_last_byte(&header, at->length);
}

static void take_next(struct verbs_receiver *receiver, int64_t now_ns)
{
    verbs_receiver_take(receiver, verbs_receiver_slot(receiver, receiver->place),
                        receiver->verifier.at.length, now_ns);
}

static unsigned take_places(struct verbs_receiver *receiver, uint32_t slots, int64_t now_ns)
{
    unsigned taken = 0;

    for (; taken < VERBS_BATCH && receiver->held < slots &&
           has_come(receiver, &receiver->verifier.at, receiver->place);
         taken++) {
        atomic_thread_fence(memory_order_acquire);
        take_next(receiver, now_ns);
    }
    return taken;
}

/* How many of the next `max` messages come before the first that is there; `max`: none is. */
static uint32_t missing_before(const struct verbs_receiver *receiver, uint32_t max)
{
    struct verbs_cursor at = receiver->verifier.at;
    uint32_t place = receiver->place;

    for (uint32_t i = 0; i < max; i++) {
        if (has_come(receiver, &at, place))
            return i;
        verbs_cursor_next(&at, &receiver->base.script);
        place = verbs_receiver_after(receiver, place);
    }
    return max;
}

/* One is missing: if a later one is there, an unreliable service (which keeps the order) has lost
 * those before it, unless they have come since they were looked at: hence the second look. */
static unsigned look_further(struct verbs_receiver *receiver, uint32_t slots, int64_t now_ns)
{
    uint32_t missing = missing_before(receiver, slots);

    if (missing == slots)
        return 0;
    atomic_thread_fence(memory_order_acquire);
    missing = missing_before(receiver, missing);
    verbs_verify_skip(&receiver->verifier, missing);
    receiver->place = (receiver->place + missing) % slots;
    make_ready(receiver, missing);
    take_next(receiver, now_ns);
    return 1;
}

static unsigned find(struct verbs_receiver *receiver, int64_t now_ns)
{
    const struct verbs_endpoint *endpoint = &receiver->base;
    uint32_t slots = endpoint->qp->config.slots;
    unsigned taken = take_places(receiver, slots, now_ns);
    /* Messages come before the eof: those that came since the look above are there now. */
    if (taken == 0 && !receiver->eof_seen && endpoint->qp->control->eof.kind == VERBS_KIND_EOF &&
        verbs_receiver_read_eof(receiver, &endpoint->qp->control->eof))
        taken = take_places(receiver, slots, now_ns);
    if (taken == 0 && !endpoint->context->reliable && !endpoint->finished)
        taken = look_further(receiver, slots, now_ns);
    return taken;
}

const struct verbs_mode verbs_mode_write_polled = {
    .opcode = IBV_WR_RDMA_WRITE,
    .post = verbs_sender_post_batch,
    .address = address,
    .credited = verbs_sender_allow,
    .find = find,
    .make_ready = make_ready,
};
