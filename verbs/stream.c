/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Hot path: messages into queue pairs and out of them. Each message, and the end mark, uses a
 * receive and its place in the ring, and causes a completion at the receiver, which may wake a
 * worker. A send's data are in its receive; a write with immediate data goes to the next place of
 * the ring, and its receive stays empty.
 *
 * A schedule's message is sent in pieces of the length of a place in the receiver's ring: a header,
 * and payload directly from the rank's memory, which is registered for the phase. The receiver
 * copies the payload to its place when the receiving step has begun; data sent ahead wait in the
 * ring, and credits limit them.
 */
#include "clock.h"
#include "verbs.h"

#include <errno.h>
#include <string.h>

#define EVENTS_MAX 64
/* Unreliable services: time without credit after which messages in flight count as lost */
#define LOST_NS (200 * NS_PER_MS)
#define EOF_NS (5 * NS_PER_MS)     /* unreliable: interval of repeated end marks */
#define EOFS_MAX 40                /* unreliable: maximum number of repeated end marks */
#define AGAIN_NS (5 * NS_PER_MS)   /* unreliable: interval of repeated credits, which may be lost */
#define SILENT_NS (2 * NS_PER_S)   /* unreliable: silence after which no end mark is expected */
#define IMMEDIATE_MASK 0x7fffffffu /* immediate data: the low bits of the message's sequence */
/* A credit reports an end's progress: a count of messages, and whether the end mark has arrived,
 * in the two numbers of a header. */
#define CREDIT_HALF 32 /* its bits in the header's sequence; the others are in the length */
#define CREDIT_ENDED (UINT64_C(1) << 47)

/* --- faults --- */

/* Reasons for failed completions, and remedies (InfiniBand Architecture 11.6.2). */
static const struct {
    enum ibv_wc_status status;
    const char *why;
} reasons[] = {
    {IBV_WC_RETRY_EXC_ERR,
     "the partner does not answer, and all retries are used up: its node was killed, its port is "
     "down, a cable is cut, or gid_index or mtu do not fit the network"},
    {IBV_WC_RNR_RETRY_EXC_ERR, "the partner has no receives posted, and all retries are used up"},
    {IBV_WC_REM_ACCESS_ERR, "the partner does not permit this access to its memory"},
    {IBV_WC_REM_INV_REQ_ERR,
     "the receiving device rejects a request as invalid; check that it supports the operation"},
    {IBV_WC_REM_OP_ERR, "the partner's device could not execute the request"},
    {IBV_WC_LOC_QP_OP_ERR,
     "this device can't execute the request; check that it supports the operation"},
    {IBV_WC_LOC_LEN_ERR, "a message is longer than its receive buffer or the path MTU"},
    {IBV_WC_LOC_PROT_ERR, "this device has no access to the memory of a message"},
};

/* doc/how-to/verbs.md, "Soft-RoCE" */
static const char miscounted[] =
    "the receiving device rejects a request as invalid: Soft-RoCE miscounts packets that it "
    "retransmits twice before their acknowledgements arrive; set a longer timeout for verbs (18 is "
    "1 s), or less depth";

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

static const struct transport_port *port_of(const struct verbs_end *end)
{
    return end->base.lane->lane.request.port;
}

/* Set the lane's error for a failed stream end; the caller adds the port's name when it prints the
 * error. */
static void fail(struct verbs_end *end, int code, const char *what, const char *why)
{
    const struct transport_port *port = port_of(end);
    char gid[VERBS_GID_TEXT];

    end->failed = true;
    err_set(&end->base.lane->lane.error, code, "%s/%u: %s rank %u (%s, queue pair %u) failed: %s",
            port->device, port->number, what, verbs_partner(end),
            verbs_gid_text(end->theirs.gid, gid), end->theirs.number, why);
}

/* Set the lane's error for a failed completion, unless the failure follows from an earlier one. */
static void fault(struct verbs_end *end, const struct ibv_wc *completion)
{
    if (completion->status != IBV_WC_WR_FLUSH_ERR || !end->failed)
        fail(end, -EIO, end->config.role == QP_SENDER ? "sending to" : "receiving from",
             why_failed(completion->status, port_of(end)));
}

static void fault_post(struct verbs_end *end, int code)
{
    if (code != 0 && !end->failed)
        fail(end, -code, "posting work for", strerror(code));
}

/* --- both ends --- */

static struct verbs_lane *lane_of(struct message_lane *lane)
{
    return (struct verbs_lane *)(void *)lane;
}

static enum verbs_work work_of(const struct ibv_wc *completion)
{
    return (enum verbs_work)(completion->wr_id >> VERBS_WORK_SHIFT);
}

/* Address a datagram's work request to the partner. */
static void address_datagram(const struct verbs_end *end, struct ibv_send_wr *work)
{
    work->wr.ud.ah = end->qp->ah;
    work->wr.ud.remote_qpn = end->theirs.number;
    work->wr.ud.remote_qkey = end->theirs.queue_key;
}

/* Post the first `count` work requests of a linked list. */
static void post_works(struct verbs_end *end, struct ibv_send_wr *works, uint32_t count)
{
    struct ibv_send_wr *last = &works[count - 1], *next = last->next, *bad;
    int code;

    last->next = NULL;
    code = ibv_post_send(end->qp->ibv, works, &bad);
    last->next = next;
    fault_post(end, code);
}

/* Send a message that is a header alone: a credit or an end mark. */
static void send_header(struct verbs_end *end, enum verbs_work kind, struct message_header header)
{
    struct message_header *out = &end->qp->control->out;
    struct ibv_sge part = {
        .addr = (uintptr_t)out, .length = sizeof *out, .lkey = end->qp->memory.region->lkey};
    struct ibv_send_wr work = {
        .wr_id = VERBS_WORK_ID(kind, 0),
        .sg_list = &part,
        .num_sge = 1,
        .opcode = IBV_WR_SEND,
        .send_flags =
            IBV_SEND_SIGNALED | (sizeof *out <= end->qp->inline_bytes ? IBV_SEND_INLINE : 0),
    };

    *out = header;
    if (end->config.options.service == VERBS_UD)
        address_datagram(end, &work);
    end->control_busy = true;
    post_works(end, &work, 1);
}

/* Return the number of bytes before the data in a place of the ring: the GRH of UD, else 0. */
static uint32_t head_of(const struct verbs_end *end)
{
    return end->config.options.service == VERBS_UD ? VERBS_GRH_BYTES : 0;
}

static uint8_t *slot_of(const struct verbs_in *in, uint32_t place)
{
    return in->end.qp->ring + (size_t)place * in->end.qp->config.stride;
}

static uint32_t place_after(const struct verbs_in *in, uint32_t place)
{
    return place + 1 == in->end.qp->config.slots ? 0 : place + 1;
}

/* --- sending --- */

void verbs_out_connected(struct verbs_out *out)
{
    const struct verbs_end *end = &out->end;
    const struct ibv_mr *memory = lane_of(end->base.lane)->memory;
    bool writes = end->config.options.operation == VERBS_WRITE;
    bool datagrams = end->config.options.service == VERBS_UD;
    /* Unreliable messages carry their number. */
    enum ibv_wr_opcode opcode = writes      ? IBV_WR_RDMA_WRITE_WITH_IMM
                                : datagrams ? IBV_WR_SEND_WITH_IMM
                                            : IBV_WR_SEND;

    /* The end mark needs a place too. */
    out->allowed = end->base.use != MESSAGE_LOAD ? UINT64_MAX : end->theirs.slots - 1;
    for (uint32_t i = 0; i < VERBS_BATCH; i++) {
        struct ibv_send_wr *work = &out->works[i];

        *work = (struct ibv_send_wr){
            .next = work + 1, .sg_list = &out->gathers[2 * i], .opcode = opcode};
        work->sg_list[0].lkey = end->qp->memory.region->lkey;
        work->sg_list[1].lkey = memory != NULL ? memory->lkey : end->qp->port->payload.region->lkey;
        if (writes)
            work->wr.rdma.rkey = end->theirs.ring_key;
        if (datagrams)
            address_datagram(end, work);
    }
}

/* Fill work requests with messages of the present length; each has a header and payload. For a
 * schedule these are pieces of one message, with the payload in the rank's memory. */
static void gather(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_qp *qp = out->end.qp;
    const struct message_cursor *at = &out->end.base.stream.at;
    const uint32_t head = message_cursor_head(at);
    const uint32_t rest = at->length - head;
    const uint8_t *memory = out->end.base.memory;
    const uintptr_t payload = (uintptr_t)(memory != NULL ? memory : qp->port->payload.at + head);
    const unsigned flags = at->length <= qp->inline_bytes ? IBV_SEND_INLINE : 0;
    const int parts = rest > 0 ? 2 : 1;
    uint32_t sequence = (uint32_t)at->sequence, next = out->next;
    uint32_t place = memory != NULL ? 0 : at->place; /* payload of all streams has places */

    out->header = message_cursor_header(at, &out->end.base.stream.script);
    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        struct message_header *slot =
            (struct message_header *)(void *)(qp->headers + (size_t)next * VERBS_HEADER_STRIDE);
        struct ibv_sge *part = work->sg_list;

        *slot = out->header;
        slot->sequence = htonl(sequence++);
        part[0].addr = (uintptr_t)slot;
        part[0].length = head;
        part[1].addr = payload + place;
        part[1].length = rest;
        work->num_sge = parts;
        work->send_flags = flags;
        place = message_place_after(place);
        next = next + 1 == out->span ? 0 : next + 1;
    }
}

/* Set the message numbers in work requests, and the target addresses of writes: the next places of
 * the receiver's ring. */
static void address(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    const struct qp_info *theirs = &out->end.theirs;
    bool writes = work->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    uint32_t sequence = (uint32_t)out->end.base.stream.at.sequence;

    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        work->imm_data = htonl(sequence++ & IMMEDIATE_MASK);
        if (!writes)
            continue;
        work->wr.rdma.remote_addr = theirs->ring + (uint64_t)out->remote * theirs->stride;
        out->remote = out->remote + 1 == theirs->slots ? 0 : out->remote + 1;
    }
}

/* Return how many messages of the present length can be posted together: up to the next signalled
 * message, within the budget and `max`. */
static uint32_t run_of(const struct verbs_out *out, uint64_t budget, uint32_t max)
{
    const struct message_script *script = &out->end.base.stream.script;
    uint32_t length = out->end.base.stream.at.length;
    uint32_t run = out->signal_every - out->unsignalled;
    uint64_t due = (budget - 1) / length + 1;
    uint64_t left = (script->total - out->end.base.stream.at.before) / length;

    if (script->size_count > 1)
        return 1;
    run = run < max ? run : max;
    run = run < due ? run : (uint32_t)due;
    return run < left ? run : (uint32_t)left;
}

/* Update the state for `count` posted messages. A completion covers all messages up to a
 * signalled one, and the last of each run. A piece is released when it is acknowledged, or at
 * once where the device has copied it (inline). */
static void advance(struct verbs_out *out, uint32_t count)
{
    struct message_end *base = &out->end.base;
    struct message_cursor *at = &base->stream.at;
    uint32_t last = out->next + count - 1;

    out->next = last + 1 < out->span ? last + 1 : last + 1 - out->span;
    if (base->memory != NULL) {
        at->position = at->length;
        if (at->length > out->end.qp->inline_bytes)
            base->awaited = at->sequence + 1;
        return;
    }
    last = last < out->span ? last : last - out->span;
    out->bytes_after[last] = at->before + (uint64_t)count * at->length;
    message_cursor_skip(at, &base->stream.script, count);
}

/* Post messages of up to `budget` bytes in total, or one larger message, at most `max` messages;
 * return the number of posted bytes. A run's last message is signalled at each interval, a batch's
 * last message always. */
static uint64_t post_batch(struct verbs_out *out, uint64_t budget, uint64_t max)
{
    const struct message_cursor *at = &out->end.base.stream.at;
    uint32_t most = max < VERBS_BATCH ? (uint32_t)max : VERBS_BATCH;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (count < most && bytes < budget && at->length > 0) {
        uint32_t run = run_of(out, budget - bytes, most - count);
        struct ibv_send_wr *works = &out->works[count];

        gather(out, works, run);
        if (works->opcode != IBV_WR_SEND)
            address(out, works, run);
        count += run;
        bytes += (uint64_t)run * at->length;
        out->unsignalled += run;
        advance(out, run);
        if (out->unsignalled < out->signal_every && count < most && bytes < budget &&
            at->length > 0)
            continue;
        works[run - 1].wr_id =
            VERBS_WORK_ID(VERBS_WORK_MESSAGE, at->sequence + (out->end.base.memory != NULL));
        works[run - 1].send_flags |= IBV_SEND_SIGNALED;
        out->unsignalled = 0;
    }
    if (count > 0)
        post_works(&out->end, out->works, count);
    return bytes;
}

static uint64_t post(struct message_end *base, uint64_t budget, int64_t now_ns)
{
    struct verbs_out *out = (struct verbs_out *)(void *)base;
    uint64_t bytes = 0;

    /* Nothing was acknowledged for long: an unreliable service has lost the messages or the
     * credit. */
    if (base->lane->unreliable && now_ns - out->moved_ns >= LOST_NS &&
        base->stream.at.sequence >= out->allowed) {
        out->moved_ns = now_ns;
        out->allowed = base->stream.at.sequence + out->end.theirs.slots - 1;
    }
    while (bytes < budget && !base->stopping && base->stream.at.length > 0 && !out->end.failed) {
        uint64_t posted = base->stream.at.sequence;
        uint64_t places = out->allowed > posted ? out->allowed - posted : 0;
        uint64_t works = out->span - (posted - base->done);

        if (places == 0 || works == 0) {
            out->waits++;
            break;
        }
        bytes += post_batch(out, budget - bytes, places < works ? places : works);
    }
    return bytes;
}

static void skip(struct message_end *base)
{
    struct verbs_out *out = (struct verbs_out *)(void *)base;
    bool idle = base->done == base->stream.at.sequence;
    uint32_t slots = out->end.theirs.slots;

    out->next = out->next + 1 == out->span ? 0 : out->next + 1;
    out->remote = slots > 0 ? (out->remote + 1) % slots : 0;
    message_cursor_next(&base->stream.at, &base->stream.script);
    if (idle) {
        base->done = base->stream.at.sequence;
        out->done_bytes = base->stream.at.before;
    }
}

static void finish(struct message_end *base, int64_t now_ns)
{
    struct verbs_out *out = (struct verbs_out *)(void *)base;

    if (out->end.failed || out->end.control_busy || base->done < base->stream.at.sequence)
        return;
    if (out->eofs > 0 && (!base->lane->unreliable || now_ns - out->eof_ns < EOF_NS))
        return;
    if (out->eofs < EOFS_MAX) {
        out->eofs++;
        out->eof_ns = now_ns;
        send_header(&out->end, VERBS_WORK_EOF,
                    message_header_make(MESSAGE_END, &base->stream.script, base->stream.at.sequence,
                                        base->stream.at.before));
    } else {
        message_end_over(base); /* the partner continues without it */
    }
}

/* --- completions and credits --- */

/* Count the messages up to the number `done` as completed. */
static void complete(struct verbs_out *out, uint64_t done, int64_t now_ns)
{
    struct flow_side *side = out->end.base.stream.side;
    uint64_t messages = done - out->end.base.done, bytes;

    out->end.base.done = done;
    if (messages == 0 || out->end.base.lane->schedules)
        return;
    bytes = out->bytes_after[(done - 1) % out->span];
    side->live.payload_bytes += bytes - out->done_bytes;
    side->live.messages += messages;
    side->last_ns = now_ns;
    out->done_bytes = bytes;
}

static void take_credit(struct verbs_out *out, const struct ibv_wc *completion, int64_t now_ns)
{
    struct verbs_qp *qp = out->end.qp;
    uint32_t head = head_of(&out->end), slot = (uint32_t)completion->wr_id, low, high;
    uint64_t credit = 0, allowed;

    if (completion->byte_len == head + MESSAGE_HEADER_BYTES &&
        message_header_read(qp->ring + (size_t)slot * qp->config.stride + head, MESSAGE_CREDIT,
                            &out->end.base.stream.script, &low, &high))
        credit = (uint64_t)high << CREDIT_HALF | low;
    fault_post(&out->end, verbs_qp_post_receives(qp, slot, 1));
    if ((credit & CREDIT_ENDED) != 0 && out->eofs > 0)
        message_end_over(&out->end.base);
    allowed = (credit & (CREDIT_ENDED - 1)) + out->end.theirs.slots - 1;
    if (allowed <= out->allowed)
        return;
    out->allowed = allowed;
    out->moved_ns = now_ns;
}

static bool reap_out(struct verbs_out *out, int64_t now_ns)
{
    struct verbs_end *end = &out->end;
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(end->qp->cq, VERBS_BATCH, completions);

    for (int i = 0; i < count; i++) {
        const struct ibv_wc *completion = &completions[i];
        enum verbs_work work = work_of(completion);

        if (completion->status != IBV_WC_SUCCESS)
            fault(end, completion);
        else if (work == VERBS_WORK_MESSAGE)
            complete(out, completion->wr_id & ~VERBS_WORK_ID(UINT8_MAX, 0), now_ns);
        else if (work == VERBS_WORK_RECEIVE)
            take_credit(out, completion, now_ns);
        else
            end->control_busy = false;
        if (work == VERBS_WORK_EOF && completion->status == IBV_WC_SUCCESS &&
            !out->end.base.lane->unreliable)
            message_end_over(&out->end.base);
    }
    return count > 0;
}

/* --- receiving --- */

/* Release the place of a message that was read, so that its receive is posted again. */
static void leave(struct verbs_in *in)
{
    in->place = place_after(in, in->place);
    in->to_post++;
}

/* Return whether a header is this stream's end mark; if it is, store the totals of messages and
 * bytes in it. */
static bool read_end_mark(struct verbs_in *in, const void *mark)
{
    uint64_t come = in->end.base.stream.at.sequence;
    uint32_t messages, bytes;

    if (!message_header_read(mark, MESSAGE_END, &in->end.base.stream.script, &messages, &bytes))
        return false;
    in->total = come + (uint64_t)(int32_t)(messages - (uint32_t)come);
    in->total_bytes = bytes;
    in->eof_seen = true;
    return true;
}

/* Handle a completion: a message or the end mark. A send's data are in its receive, a write's in
 * the next place of the ring. The number identifies the message, because messages of an
 * unreliable service may be missing. A schedule takes the message when its step has begun. */
static void consume(struct verbs_in *in, const struct ibv_wc *completion, int64_t now_ns)
{
    struct message_end *base = &in->end.base;
    struct message_stream *stream = &base->stream;
    const struct verbs_qp *qp = in->end.qp;
    const bool writes = in->end.config.options.operation == VERBS_WRITE;
    const bool numbered = (completion->wc_flags & IBV_WC_WITH_IMM) != 0;
    const uint32_t head = head_of(&in->end), bytes = completion->byte_len - head;
    const uint64_t due = stream->at.sequence;
    const uint8_t *data = writes ? (const uint8_t *)&qp->control->in
                                 : slot_of(in, (uint32_t)completion->wr_id) + head;

    if (in->lengths != NULL) {
        in->lengths[(in->place + in->arrived++) % qp->config.slots] = bytes;
        return;
    }
    in->to_post++;
    if (!writes)
        in->place = place_after(in, in->place);
    if (!(writes && numbered) && bytes == MESSAGE_HEADER_BYTES && read_end_mark(in, data))
        return;
    if (writes && (!numbered || bytes > qp->config.stride)) { /* more than its place holds */
        stream->side->corrupted += bytes;
        return;
    }
    if (in->end.config.options.service == VERBS_UD && !message_stream_owns(stream, data, bytes)) {
        stream->count->foreign++;
        return;
    }
    if (stream->unreliable) { /* the immediate data have the low bits of the message's number */
        uint32_t ahead = (ntohl(completion->imm_data) - (uint32_t)due) & IMMEDIATE_MASK;

        ahead -= ahead > IMMEDIATE_MASK / 2 ? IMMEDIATE_MASK + 1 : 0;
        if (message_stream_gap(stream, (uint32_t)due + ahead, bytes))
            return; /* late, duplicate or forged: a written place belongs to the next message */
    }
    if (writes) {
        in->place = (uint32_t)((in->place + stream->at.sequence - due) % qp->config.slots);
        data = slot_of(in, in->place);
        in->place = place_after(in, in->place);
    }
    message_stream_take(stream, data, bytes);
    flow_side_time(stream->side, now_ns);
    in->moved_ns = now_ns;
    if (base->use != MESSAGE_LOAD)
        base->came_ns = clock_now();
    if (base->use != MESSAGE_ANSWER)
        base->lane->lane.arrived_ns = now_ns;
}

/* Return whether the rest of an unreliable stream, with its end mark, is lost or complete, so that
 * nothing more will arrive. */
static bool will_not_come(const struct verbs_in *in, int64_t now_ns)
{
    const struct message_lane *lane = in->end.base.lane;
    int64_t stop_ns = lane->lane.stop_ns, since_ns = in->moved_ns;

    if (!lane->unreliable)
        return false;
    if (in->eof_seen)
        return true;
    if (lane->prober.pingpong) /* ping-pong may be idle; the drain has its limit */
        return false;
    if (since_ns == 0 || (stop_ns != CLOCK_NEVER && since_ns < stop_ns))
        since_ns = stop_ns;
    return since_ns != CLOCK_NEVER && now_ns - since_ns > SILENT_NS;
}

/* Post the receives of freed places again, and send the sender credit for messages that are
 * consumed, forwarded or lost. Answered messages need no credit, but the sender must learn that the
 * end mark has arrived. */
static void give_credit(struct verbs_in *in, int64_t now_ns)
{
    struct verbs_end *end = &in->end;
    const struct message_end *base = &end->base;
    const uint32_t slots = end->qp->config.slots;
    uint64_t credit = base->lane->forwards ? base->pair->done : base->stream.at.sequence;
    uint64_t news = base->use == MESSAGE_LOAD ? credit - in->credited : 0;
    bool again = base->lane->unreliable && now_ns - in->credited_ns >= AGAIN_NS;

    if (in->to_post > 0) {
        int code = verbs_qp_post_receives(end->qp, in->to_post_place, in->to_post);

        in->to_post_place = (in->to_post_place + in->to_post) % slots;
        in->to_post = 0;
        fault_post(end, code);
    }
    if ((news <= slots / 4 && !(again && (news > 0 || base->ended))) || end->control_busy ||
        end->failed)
        return;
    in->credited = credit;
    in->credited_ns = now_ns;
    credit = (base->ended ? CREDIT_ENDED : 0) | (credit & (CREDIT_ENDED - 1));
    send_header(
        end, VERBS_WORK_CONTROL,
        message_header_make(MESSAGE_CREDIT, &base->stream.script, credit, credit >> CREDIT_HALF));
}

static bool reap_in(struct verbs_in *in, int64_t now_ns)
{
    struct message_stream *stream = &in->end.base.stream;
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(in->end.qp->cq, VERBS_BATCH, completions);
    bool taken = false;

    for (int i = 0; i < count; i++) {
        if (completions[i].status != IBV_WC_SUCCESS) {
            fault(&in->end, &completions[i]);
        } else if (work_of(&completions[i]) == VERBS_WORK_CONTROL) {
            in->end.control_busy = false;
        } else {
            consume(in, &completions[i], now_ns);
            taken = true;
        }
    }
    /* After a schedule's last barrier only the end mark arrives. */
    if (in->arrived > 0 && !in->end.base.lane->stepping && !in->eof_seen) {
        if (in->lengths[in->place] != MESSAGE_HEADER_BYTES ||
            !read_end_mark(in, slot_of(in, in->place)))
            err_set(&in->end.base.lane->lane.error, -EPROTO,
                    "rank %u sent a message after the schedule's last barrier",
                    in->end.base.flow->src);
        in->arrived--;
        leave(in);
    }
    if (!in->end.base.ended && !taken &&
        ((in->eof_seen && stream->at.sequence >= in->total) || will_not_come(in, now_ns))) {
        stream->whole =
            stream->at.sequence == in->total && (uint32_t)stream->at.before == in->total_bytes;
        if (!stream->unreliable && !stream->whole)
            stream->side->corrupted += MESSAGE_HEADER_BYTES;
        in->credited_ns = 0;
        message_end_over(&in->end.base);
    }
    give_credit(in, now_ns);
    return taken;
}

/* Copy the next received piece of a schedule's message to the rank's memory. A piece with another
 * length than the expected one is an error. */
static void take_piece(struct message_end *base)
{
    struct verbs_in *in = (struct verbs_in *)(void *)base;
    const uint8_t *data = slot_of(in, in->place);
    uint32_t length = base->stream.at.length;

    if (in->arrived == 0)
        return;
    if (in->lengths[in->place] != length) {
        base->stream.side->corrupted++;
        err_set(&base->lane->lane.error, -EBADMSG,
                "rank %u sent a piece of a message with %u bytes instead of %u bytes",
                base->flow->src, in->lengths[in->place], length);
        return;
    }
    memcpy(&base->stream.header, data, MESSAGE_HEADER_BYTES);
    memcpy(base->memory, data + MESSAGE_HEADER_BYTES, length - MESSAGE_HEADER_BYTES);
    base->stream.at.position = length;
    in->arrived--;
    leave(in);
}

/* --- the lane --- */

static bool reap_all(struct verbs_lane *lane, int64_t now_ns)
{
    bool moved = false;

    for (unsigned i = message_lane_ends(&lane->base); i-- > 0;) {
        struct verbs_end *end = verbs_lane_end(lane, i);

        if (!end->base.sends)
            moved |= reap_in((struct verbs_in *)(void *)end, now_ns);
        else if (!end->base.ended)
            moved |= reap_out((struct verbs_out *)(void *)end, now_ns);
    }
    return moved;
}

/* Handle the completions of all queue pairs of a lane. A wake-up must be acknowledged, else it
 * would repeat for ever; a busy stream arms no wake-ups, and so needs no system call in each round.
 * A lane at its end is not armed again, but completions from before may still arrive. */
static bool reap(struct message_lane *base, int64_t now_ns)
{
    struct verbs_lane *lane = lane_of(base);
    bool quiet = message_lane_failed(base) || (base->lane.tx_done && base->lane.rx_done) ||
                 base->lane.started_ns == 0;
    struct ibv_cq *queue;
    void *context;

    for (int i = 0; lane->events && (lane->armed || quiet) && i < EVENTS_MAX &&
                    ibv_get_cq_event(lane->port->channel, &queue, &context) == 0;
         i++)
        ibv_ack_cq_events(queue, 1);
    lane->armed = false;
    return !message_lane_failed(base) && reap_all(lane, now_ns);
}

static int64_t next(struct message_lane *base, bool moved, int64_t due_ns, int64_t now_ns)
{
    struct verbs_lane *lane = lane_of(base);
    int64_t poll_ns;

    if (base->lane.tx_done && base->lane.rx_done)
        return CLOCK_NEVER;
    if (base->stepping && (due_ns <= now_ns || base->step_moved))
        return now_ns;
    if (!moved && lane->events) { /* completions wake the worker; some may have come meanwhile */
        lane->armed = true;
        for (unsigned i = 0; i < message_lane_ends(base); i++)
            ibv_req_notify_cq(verbs_lane_end(lane, i)->qp->cq, 0);
        if (reap_all(lane, now_ns))
            return now_ns;
    }
    poll_ns = adaptive_poll(&lane->poll_gap_ns, moved, now_ns);
    return due_ns > now_ns && due_ns < poll_ns ? due_ns : poll_ns;
}

static void begin(struct message_lane *base)
{
    const struct verbs_lane *lane = lane_of(base);

    for (uint32_t i = 0; i < base->lane.request.send_count; i++)
        base->flows[i].payload_share = lane->payload_share;
    for (unsigned i = 0; i < message_lane_ends(base); i++) {
        struct verbs_end *end = verbs_lane_end(lane, i);
        const struct verbs_end *back = (const struct verbs_end *)(void *)end->base.pair;
        uint32_t stride = end->base.sends ? end->theirs.stride : end->qp->config.stride;
        uint32_t slots;

        if (base->schedules)
            end->base.piece_bytes = stride - MESSAGE_HEADER_BYTES < VERBS_PIECE_BYTES
                                        ? stride - MESSAGE_HEADER_BYTES
                                        : VERBS_PIECE_BYTES;
        if (end->base.sends)
            ((struct verbs_out *)(void *)end)->moved_ns = base->lane.request.phase->start_ns;
        if (!end->base.sends || end->base.use != MESSAGE_ASK)
            continue;
        /* At most as many probes as either end has places, less one for the end mark. */
        slots = end->theirs.slots < back->config.slots ? end->theirs.slots : back->config.slots;
        end->base.window = slots - 1 < VERBS_PROBES_OUT ? slots - 1 : VERBS_PROBES_OUT;
    }
}

const struct message_hooks verbs_hooks = {
    .out_bytes = sizeof(struct verbs_out),
    .in_bytes = sizeof(struct verbs_in),
    .begin = begin,
    .post = post,
    .skip = skip,
    .finish = finish,
    .reap = reap,
    .next = next,
    .take = take_piece,
};
