/* SPDX-License-Identifier: BSD-3-Clause */
#include "sender.h"

#include "clock.h"
#include "mode.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOST_NS (200 * NS_PER_MS) /* unreliable: so long without credit: what is out is lost */
#define EOF_NS (5 * NS_PER_MS)    /* unreliable: the eof is repeated so often ... */
#define EOFS_MAX 40               /* ... so many times */

/* --- a run of messages of one length --- */

static void gather(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_qp *qp = sender->base.qp;
    const struct verbs_cursor *at = &sender->at;
    const uintptr_t payload = (uintptr_t)sender->payload.at;
    const uint32_t head = at->length < VERBS_HEADER_BYTES ? at->length : VERBS_HEADER_BYTES;
    const uint32_t rest = at->length - head;
    const unsigned flags = at->length <= qp->inline_bytes ? IBV_SEND_INLINE : 0;
    const int parts = rest > 0 ? 2 : 1;
    uint32_t sequence = (uint32_t)at->sequence;
    uint32_t place = at->place;
    uint32_t next = sender->next;

    sender->header = verbs_header_of(at, &sender->base.script, place);
    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        struct verbs_header *slot =
            (struct verbs_header *)(void *)(qp->headers + (size_t)next * VERBS_HEADER_STRIDE);
        struct ibv_sge *part = work->sg_list;

        *slot = sender->header;
        slot->sequence = htonl(sequence++);
        slot->place = htons((uint16_t)place);
        part[0].addr = (uintptr_t)slot;
        part[0].length = head;
        part[1].addr = payload + place;
        part[1].length = rest;
        work->num_sge = parts;
        work->send_flags = flags;
        place = verbs_place_after(place);
        next = next + 1 == sender->span ? 0 : next + 1;
    }
}

/* The place of the next message to be forwarded. */
static uint32_t forwarded_place(const struct verbs_sender *sender)
{
    const struct verbs_receiver *from = sender->from;
    uint32_t slots = from->base.qp->config.slots;
    uint32_t posted = (uint32_t)(sender->at.sequence - sender->done);

    return (from->place + slots - from->held + posted) % slots;
}

/* From the ring of the stream that is forwarded, without a copy. */
static void forward(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_receiver *from = sender->from;
    const uint32_t length = sender->at.length;
    uint32_t place = forwarded_place(sender);

    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        uint8_t *message = verbs_receiver_slot(from, place);

        verbs_redirect(message, length, &sender->base.script);
        work->sg_list[0].addr = (uintptr_t)message;
        work->sg_list[0].length = length;
        work->sg_list[0].lkey = from->base.qp->range.lkey;
        work->num_sge = 1;
        work->send_flags = length <= sender->base.qp->inline_bytes ? IBV_SEND_INLINE : 0;
        place = verbs_receiver_after(from, place);
    }
}

int verbs_sender_init(struct verbs_sender *sender)
{
    const struct verbs_options *options = &sender->base.context->options;

    verbs_cursor_start(&sender->at, &sender->base.script);
    sender->span = options->depth;
    sender->bytes_after = calloc((size_t)sender->span + 1, sizeof *sender->bytes_after);
    sender->fill = sender->from != NULL ? forward : gather;
    return sender->bytes_after != NULL ? 0 : -ENOMEM;
}

void verbs_sender_free(struct verbs_sender *sender)
{
    free(sender->bytes_after);
}

void verbs_sender_connected(struct verbs_sender *sender)
{
    const struct stream_context *context = sender->base.context;
    const struct qp_info *theirs = &sender->base.theirs;
    const struct verbs_qp *qp = sender->base.qp;

    sender->payload = qp->port->payload;
    sender->remote = theirs->first;
    sender->allowed = theirs->slots - 1; /* the eof takes a place, too */
    if (context->has_replies)
        sender->allowed = UINT64_MAX;
    for (uint32_t i = 0; i < VERBS_BATCH; i++) {
        struct ibv_send_wr *work = &sender->works[i];

        *work = (struct ibv_send_wr){
            .next = work + 1, .sg_list = &sender->gathers[2 * i], .opcode = context->mode->opcode};
        work->sg_list[0].lkey = qp->range.lkey;
        work->sg_list[1].lkey = sender->payload.lkey;
        if (context->options.operation == VERBS_WRITE)
            work->wr.rdma.rkey = theirs->ring.key;
        if (context->options.service == VERBS_UD)
            verbs_endpoint_address(&sender->base, work);
    }
}

/* --- posting --- */

/* What a completion asks for is known only of messages that are signalled, and of the last of each
 * run. */
static void advance(struct verbs_sender *sender, uint32_t count)
{
    uint32_t last = sender->next + count - 1;

    sender->next = last + 1 < sender->span ? last + 1 : last + 1 - sender->span;
    last = last < sender->span ? last : last - sender->span;
    sender->bytes_after[last] = sender->at.before + (uint64_t)count * sender->at.length;
    verbs_cursor_skip(&sender->at, &sender->base.script, count);
}

/* How many messages may be posted now but for their bytes. */
static uint64_t room(struct verbs_sender *sender)
{
    uint64_t posted = sender->at.sequence;
    uint64_t free_slots = sender->allowed > posted ? sender->allowed - posted : 0;
    uint64_t free_works = sender->span - (posted - sender->done);

    if (sender->from != NULL) {
        uint64_t there = sender->from->held - (posted - sender->done);

        free_slots = free_slots < there ? free_slots : there;
    } else if (free_slots == 0 || free_works == 0) {
        sender->waits++;
    }
    return free_slots < free_works ? free_slots : free_works;
}

/* Messages of the present length, up to the next one that is signalled. */
static uint32_t run_of(const struct verbs_sender *sender, uint64_t budget, uint32_t max)
{
    const struct verbs_script *script = &sender->base.script;
    uint32_t length = sender->at.length;
    uint32_t run = sender->base.context->options.signal_every - sender->unsignalled;
    uint64_t due = (budget - 1) / length + 1;
    uint64_t left = (script->total - sender->at.before) / length;

    if (script->size_count > 1 || script->drawn.most > 0)
        return 1;
    run = run < max ? run : max;
    run = run < due ? run : (uint32_t)due;
    return run < left ? run : (uint32_t)left;
}

/* Posts messages of up to `budget` bytes, or one that is larger, `max` of them; returns the bytes.
 * Each run's last message is signalled when its turn has come, the batch's last always. */
static uint64_t post_batch(struct verbs_sender *sender, uint64_t budget, uint64_t max)
{
    const struct stream_context *context = sender->base.context;
    uint32_t most = max < VERBS_BATCH ? (uint32_t)max : VERBS_BATCH;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (count < most && bytes < budget && sender->at.length > 0) {
        uint32_t run = run_of(sender, budget - bytes, most - count);
        struct ibv_send_wr *works = &sender->works[count];

        sender->fill(sender, works, run);
        if (context->mode->address != NULL)
            context->mode->address(sender, works, run);
        count += run;
        bytes += (uint64_t)run * sender->at.length;
        sender->unsignalled += run;
        advance(sender, run);
        if (sender->unsignalled < context->options.signal_every && count < most && bytes < budget &&
            sender->at.length > 0)
            continue;
        works[run - 1].wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, sender->at.sequence);
        works[run - 1].send_flags |= IBV_SEND_SIGNALED;
        sender->unsignalled = 0;
    }
    if (count > 0)
        verbs_endpoint_post(&sender->base, sender->works, count);
    return bytes;
}

/* Nothing has been acknowledged for long: an unreliable service has lost it, or the credit. */
static void give_up_waiting(struct verbs_sender *sender, int64_t now_ns)
{
    if (now_ns - sender->moved_ns < LOST_NS || sender->at.sequence < sender->allowed)
        return;
    sender->moved_ns = now_ns;
    sender->allowed = sender->at.sequence + sender->base.theirs.slots - 1;
}

uint64_t verbs_sender_post(struct verbs_sender *sender, uint64_t budget, int64_t now_ns)
{
    const struct stream_context *context = sender->base.context;
    uint64_t bytes = 0;

    if (!context->reliable)
        give_up_waiting(sender, now_ns);
    while (bytes < budget && !verbs_sender_at_end(sender) && !sender->base.failed) {
        uint64_t max = room(sender);
        uint64_t batch = max > 0 ? post_batch(sender, budget - bytes, max) : 0;

        if (batch == 0)
            break;
        bytes += batch;
    }
    return bytes;
}

void verbs_sender_skip(struct verbs_sender *sender, uint64_t count)
{
    bool idle = sender->done == sender->at.sequence;
    uint32_t slots = sender->base.theirs.slots;

    sender->next = (uint32_t)((sender->next + count) % sender->span);
    sender->remote = slots > 0 ? (uint32_t)((sender->remote + count) % slots) : 0;
    for (uint64_t i = 0; i < count; i++)
        verbs_cursor_next(&sender->at, &sender->base.script);
    if (idle) {
        sender->done = sender->at.sequence;
        sender->done_bytes = sender->at.before;
    }
}

/* --- completions and credits --- */

/* Messages up to `done` are completed. */
static void complete(struct verbs_sender *sender, uint64_t done, int64_t now_ns)
{
    struct flow_side *side = sender->base.flow->side;
    uint64_t messages = done - sender->done;
    uint64_t bytes;

    sender->done = done;
    if (messages == 0 || sender->base.context->mode->uncounted)
        return;
    bytes = sender->bytes_after[(done - 1) % sender->span];
    side->live.payload_bytes += bytes - sender->done_bytes;
    side->live.messages += messages;
    side->last_ns = now_ns;
    sender->done_bytes = bytes;
    if (sender->from != NULL)
        verbs_receiver_give_back(sender->from, (uint32_t)messages);
}

/* So many messages have been credited; true: that is news. */
static bool allow(struct verbs_sender *sender, uint64_t messages, int64_t now_ns)
{
    uint64_t allowed = messages + sender->base.theirs.slots - 1;

    if (allowed <= sender->allowed)
        return false;
    sender->allowed = allowed;
    sender->moved_ns = now_ns;
    return true;
}

/* As a remote write, or on UD as a datagram. */
static bool handle_credit(struct verbs_sender *sender, uint64_t credit, int64_t now_ns)
{
    if (!verbs_credit_is_of(credit, sender->base.script.tag))
        return false;
    if (verbs_credit_finished(credit) && sender->eofs > 0)
        sender->base.finished = true;
    return allow(sender, verbs_credit_messages(credit), now_ns);
}

static void handle_datagram(struct verbs_sender *sender, const struct ibv_wc *completion,
                            int64_t now_ns)
{
    struct verbs_qp *qp = sender->base.qp;
    uint32_t slot = (uint32_t)completion->wr_id;
    const uint8_t *data = qp->ring + (size_t)slot * qp->config.stride + VERBS_GRH_BYTES;
    uint64_t credit, unused;
    int code;

    if (completion->byte_len == VERBS_GRH_BYTES + sizeof(struct verbs_notice) &&
        verbs_notice_read((const struct verbs_notice *)(const void *)data, VERBS_KIND_CREDIT,
                          &sender->base.script, &credit, &unused))
        handle_credit(sender, credit, now_ns);
    code = verbs_qp_post_receives(qp, slot, 1);
    if (code != 0)
        verbs_fault_post(&sender->base, code);
}

bool verbs_sender_reap(struct verbs_sender *sender, int64_t now_ns)
{
    struct verbs_endpoint *endpoint = &sender->base;
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(endpoint->qp->cq, VERBS_BATCH, completions);
    uint64_t credit = atomic_load_explicit(&endpoint->qp->control->credit, memory_order_acquire);
    bool moved = count > 0;

    for (int i = 0; i < count; i++) {
        const struct ibv_wc *completion = &completions[i];
        enum verbs_work work = verbs_work_of(completion);

        if (completion->status != IBV_WC_SUCCESS)
            verbs_fault(endpoint, completion);
        else if (work == VERBS_WORK_MESSAGE)
            complete(sender, verbs_work_count(completion), now_ns);
        else if (work == VERBS_WORK_RECEIVE)
            handle_datagram(sender, completion, now_ns);
        else
            endpoint->control_busy = false;
        if (work == VERBS_WORK_EOF && completion->status == IBV_WC_SUCCESS)
            endpoint->finished |= endpoint->context->reliable;
    }
    if (credit != 0)
        moved |= handle_credit(sender, credit, now_ns);
    return moved;
}

/* --- the end --- */

void verbs_sender_finish(struct verbs_sender *sender, int64_t now_ns)
{
    const struct stream_context *context = sender->base.context;

    if (sender->base.failed || sender->base.control_busy)
        return;
    if (sender->done < sender->at.sequence)
        return;
    if (sender->eofs > 0 && (context->reliable || now_ns - sender->eof_ns < EOF_NS))
        return;
    if (sender->eofs < EOFS_MAX) {
        sender->eofs++;
        sender->eof_ns = now_ns;
        verbs_endpoint_eof(&sender->base, sender->at.sequence, sender->at.before);
    } else {
        sender->base.finished = true; /* the partner will do without */
    }
}
