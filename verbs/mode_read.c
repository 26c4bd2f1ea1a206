/* SPDX-License-Identifier: BSD-3-Clause
 *
 * RDMA reads: the sender makes messages ready in its own ring and tells how many there are; the
 * receiver reads them into its own, and tells how many it has.
 */
#include "mode.h"

#include "receiver.h"
#include "sender.h"

#include <string.h>

/* --- sender --- */

/* The payload lies in the ring for good; only the header is new. */
static void write_header(struct verbs_sender *sender)
{
    struct verbs_qp *qp = sender->base.qp;
    struct verbs_header header =
        verbs_header_of(&sender->at, &sender->base.script, VERBS_SLOT_PLACE(qp->place));
    uint32_t length = sender->at.length;

    memcpy(qp->ring + (size_t)qp->place * qp->config.stride, &header,
           length < sizeof header ? length : sizeof header);
    qp->place = qp->place + 1 == qp->config.slots ? 0 : qp->place + 1;
}

static uint64_t make_messages(struct verbs_sender *sender, uint64_t budget, uint64_t max)
{
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < max && bytes < budget && sender->at.length > 0; i++) {
        if (sender->from == NULL)
            write_header(sender);
        else
            verbs_sender_redirect(sender);
        bytes += sender->at.length;
        verbs_sender_advance(sender, 1);
    }
    return bytes;
}

static void announce(struct verbs_sender *sender)
{
    if (sender->base.control_busy || sender->announced == sender->at.sequence)
        return;
    sender->announced = sender->at.sequence;
    verbs_endpoint_credit(&sender->base, false, sender->announced);
}

static bool credited(struct verbs_sender *sender, uint64_t messages, int64_t now_ns)
{
    bool moved = messages > sender->done;

    if (moved)
        verbs_sender_complete(sender, messages, now_ns);
    sender->allowed = sender->done + sender->span;
    return moved;
}

/* --- receiver --- */

static void read_announcement(struct verbs_receiver *receiver)
{
    struct verbs_control *control = receiver->base.qp->control;
    uint64_t credit = atomic_load_explicit(&control->credit, memory_order_acquire);

    if (verbs_credit_is_of(credit, receiver->base.script.tag))
        receiver->announced = verbs_credit_messages(credit);
    if (!receiver->eof_seen && control->eof.kind == VERBS_KIND_EOF)
        verbs_receiver_read_eof(receiver, &control->eof);
}

static void fill_read(struct verbs_receiver *receiver, struct ibv_send_wr *work, bool last)
{
    const struct qp_info *theirs = &receiver->base.theirs;
    uint32_t signal_every = receiver->base.context->options.signal_every;

    work->sg_list[0].addr = (uintptr_t)verbs_receiver_slot(receiver, receiver->next_place);
    work->sg_list[0].length = receiver->next.length;
    work->wr.rdma.remote_addr = theirs->ring.address + (uint64_t)receiver->remote * theirs->stride;
    work->wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, receiver->next.sequence + 1);
    work->send_flags = 0;
    if (++receiver->unsignalled >= signal_every || last) {
        work->send_flags = IBV_SEND_SIGNALED;
        receiver->unsignalled = 0;
    }
    receiver->remote = receiver->remote + 1 == theirs->slots ? 0 : receiver->remote + 1;
    receiver->next_place = verbs_receiver_after(receiver, receiver->next_place);
    verbs_cursor_next(&receiver->next, &receiver->base.script);
}

/* How many messages that are ready have places here. */
static uint64_t room(const struct verbs_receiver *receiver)
{
    uint64_t posted = receiver->next.sequence;
    uint64_t out = posted - receiver->verifier.at.sequence;
    uint64_t slots = receiver->base.qp->config.slots - receiver->held - out;
    uint64_t works = receiver->base.context->options.depth - out;
    uint64_t most = receiver->announced > posted ? receiver->announced - posted : 0;

    most = most < slots ? most : slots;
    most = most < works ? most : works;
    return most < VERBS_BATCH ? most : VERBS_BATCH;
}

static void post_reads(struct verbs_receiver *receiver)
{
    uint64_t count = room(receiver);

    if (count == 0 || receiver->base.failed)
        return;
    for (uint64_t i = 0; i < count; i++)
        fill_read(receiver, &receiver->works[i], i + 1 == count);
    verbs_endpoint_post(&receiver->base, receiver->works, (uint32_t)count);
}

/* One completion is of all messages up to its count. */
static unsigned consume(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                        int64_t now_ns)
{
    uint64_t done = verbs_work_count(completion);
    unsigned taken = 0;

    for (; receiver->verifier.at.sequence < done; taken++)
        verbs_receiver_take(receiver, verbs_receiver_slot(receiver, receiver->place),
                            receiver->verifier.at.length, now_ns);
    return taken;
}

static unsigned find(struct verbs_receiver *receiver, int64_t now_ns)
{
    (void)now_ns;
    read_announcement(receiver);
    post_reads(receiver);
    return 0;
}

const struct verbs_mode verbs_mode_read = {
    .opcode = IBV_WR_RDMA_READ,
    .post = make_messages,
    .announce = announce,
    .credited = credited,
    .consume = consume,
    .find = find,
};
