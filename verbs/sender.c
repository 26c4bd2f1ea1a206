/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sending end of a stream: messages gathered from a header and the port's payload, or from the
 * ring of a stream that is forwarded; or written into the end's own ring, to be read from there.
 */
#include "clock.h"
#include "lane.h"

#include <arpa/inet.h>
#include <string.h>

#define LOST_NS (200 * NS_PER_MS) /* unreliable: so long without credit: what is out is lost */
#define EOF_NS (5 * NS_PER_MS)    /* unreliable: the end mark is repeated so often ... */
#define EOFS_MAX 40               /* ... so many times */

/* --- a run of messages of one length --- */

static void gather(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_qp *qp = sender->endpoint.qp;
    const struct verbs_cursor *at = &sender->at;
    const uint32_t head = at->length < VERBS_HEADER_BYTES ? at->length : VERBS_HEADER_BYTES;
    const uint32_t rest = at->length - head;
    const unsigned flags = at->length <= qp->inline_bytes ? IBV_SEND_INLINE : 0;
    const int parts = rest > 0 ? 2 : 1;
    uint32_t sequence = (uint32_t)at->sequence;
    uint32_t place = at->place;
    uint32_t next = sender->next;

    sender->header = verbs_header_of(at, &sender->endpoint.script, place);
    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        struct verbs_header *slot =
            (struct verbs_header *)(void *)(qp->headers + (size_t)next * VERBS_HEADER_STRIDE);
        struct ibv_sge *part = work->sg_list;

        *slot = sender->header;
        slot->sequence = htonl(sequence++);
        slot->place = htons((uint16_t)place);
        part[0].addr = (uintptr_t)slot;
        part[0].length = head;
        part[1].addr = sender->payload + place;
        part[1].length = rest;
        work->num_sge = parts;
        work->send_flags = flags;
        place = verbs_place_after(place);
        next = next + 1 == sender->span ? 0 : next + 1;
    }
}

/* From the ring of the stream that is forwarded, without a copy. */
static void pass_on(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_qp *from = sender->from->endpoint.qp;
    uint32_t slots = from->config.slots;
    uint32_t place = (sender->from->place + slots - sender->from->held +
                      (uint32_t)(sender->at.sequence - sender->done)) %
                     slots;

    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        uint8_t *message = from->ring + (size_t)place * from->config.stride;

        verbs_redirect(message, sender->at.length, &sender->endpoint.script);
        work->sg_list[0].addr = (uintptr_t)message;
        work->sg_list[0].length = sender->at.length;
        work->sg_list[0].lkey = from->range.lkey;
        work->num_sge = 1;
        work->send_flags =
            sender->at.length <= sender->endpoint.qp->inline_bytes ? IBV_SEND_INLINE : 0;
        place = place + 1 == slots ? 0 : place + 1;
    }
}

/* The immediate data: which message it is. */
static void number(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    uint32_t sequence = (uint32_t)sender->at.sequence;

    for (const struct ibv_send_wr *end = work + count; work != end; work++)
        work->imm_data = htonl(sequence++ & VERBS_IMMEDIATE_MASK);
}

static void aim(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    const struct qp_info *theirs = &sender->endpoint.theirs;

    number(sender, work, count);
    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        work->wr.rdma.remote_addr =
            theirs->ring.address + (uint64_t)sender->remote * theirs->stride;
        sender->remote = sender->remote + 1 == theirs->slots ? 0 : sender->remote + 1;
    }
}

static void fill_send(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    gather(sender, work, count);
}

static void fill_send_numbered(struct verbs_sender *sender, struct ibv_send_wr *work,
                               uint32_t count)
{
    gather(sender, work, count);
    number(sender, work, count);
}

static void fill_write(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    gather(sender, work, count);
    aim(sender, work, count);
}

static void fill_send_on(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    pass_on(sender, work, count);
}

static void fill_write_on(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count)
{
    pass_on(sender, work, count);
    aim(sender, work, count);
}

/* Datagrams there and back may be shorter than a header, and are known by their number only. */
static bool is_numbered(const struct verbs_sender *sender)
{
    const struct verbs_lane *lane = sender->endpoint.lane;

    return lane->options.service == VERBS_UD && lane->replies != NULL;
}

void verbs_sender_variant(struct verbs_sender *sender)
{
    bool write = sender->endpoint.lane->options.operation == VERBS_WRITE;

    if (sender->from != NULL)
        sender->fill = write ? fill_write_on : fill_send_on;
    else
        sender->fill = write ? fill_write : is_numbered(sender) ? fill_send_numbered : fill_send;
}

void verbs_sender_connected(struct verbs_sender *sender)
{
    const struct verbs_options *options = &sender->endpoint.lane->options;
    const struct qp_info *theirs = &sender->endpoint.theirs;
    const struct verbs_qp *qp = sender->endpoint.qp;
    bool write = options->operation == VERBS_WRITE;
    bool end_takes_one = options->operation == VERBS_SEND || (write && options->immediate);

    sender->payload = (uintptr_t)qp->port->pattern.at;
    sender->remote = theirs->first;
    sender->allowed = theirs->slots - end_takes_one;
    if (options->operation == VERBS_READ)
        sender->allowed = sender->span;
    if (sender->endpoint.lane->replies != NULL)
        sender->allowed = UINT64_MAX;
    for (uint32_t i = 0; i < VERBS_BATCH; i++) {
        struct ibv_send_wr *work = &sender->works[i];

        *work = (struct ibv_send_wr){.next = work + 1,
                                     .sg_list = &sender->gathers[2 * (size_t)i],
                                     .opcode =
                                         is_numbered(sender) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND};
        work->sg_list[0].lkey = qp->range.lkey;
        work->sg_list[1].lkey = qp->port->pattern.lkey;
        if (write) {
            work->opcode = options->immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
            work->wr.rdma.rkey = theirs->ring.key;
        }
        if (options->service == VERBS_UD) {
            work->wr.ud.ah = qp->ah;
            work->wr.ud.remote_qpn = theirs->number;
            work->wr.ud.remote_qkey = theirs->queue_key;
        }
    }
}

/* --- posting --- */

/* Accounts a run as posted and goes on behind it. What a completion asks for is known only of
 * messages that are signalled, and of the last of each run. */
static void step(struct verbs_sender *sender, uint32_t count)
{
    uint32_t last = sender->next + count - 1;

    sender->next = last + 1 < sender->span ? last + 1 : last + 1 - sender->span;
    last = last < sender->span ? last : last - sender->span;
    sender->bytes_after[last] = sender->at.before + (uint64_t)count * sender->at.length;
    verbs_cursor_skip(&sender->at, &sender->endpoint.script, count);
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

static void post(struct verbs_sender *sender, uint32_t count)
{
    struct ibv_send_wr *last = &sender->works[count - 1];
    struct ibv_send_wr *bad;
    int code;

    last->next = NULL;
    code = ibv_post_send(sender->endpoint.qp->ibv, sender->works, &bad);
    last->next = last + 1;
    if (code != 0)
        verbs_fault_post(&sender->endpoint, code);
}

/* Messages of the present length, up to the next one that is signalled. */
static uint32_t run_of(const struct verbs_sender *sender, uint64_t budget, uint32_t most)
{
    const struct verbs_script *script = &sender->endpoint.script;
    uint32_t length = sender->at.length;
    uint32_t run = sender->endpoint.lane->options.signal_every - sender->unsignalled;
    uint64_t due = (budget - 1) / length + 1;
    uint64_t left = (script->total - sender->at.before) / length;

    if (script->size_count > 1 || script->drawn.most > 0)
        return 1;
    run = run < most ? run : most;
    run = run < due ? run : (uint32_t)due;
    return run < left ? run : (uint32_t)left;
}

/* A batch of messages within `budget` bytes; returns the bytes. Each run's last is signalled when
 * its turn has come, the batch's last always. */
static uint64_t post_batch(struct verbs_sender *sender, uint64_t budget, uint64_t most)
{
    uint32_t room = most < VERBS_BATCH ? (uint32_t)most : VERBS_BATCH;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (count < room && bytes < budget && sender->at.length > 0) {
        uint32_t run = run_of(sender, budget - bytes, room - count);
        struct ibv_send_wr *last = &sender->works[count + run - 1];

        sender->fill(sender, &sender->works[count], run);
        count += run;
        bytes += (uint64_t)run * sender->at.length;
        sender->unsignalled += run;
        step(sender, run);
        if (sender->unsignalled < sender->endpoint.lane->options.signal_every && count < room &&
            bytes < budget && sender->at.length > 0)
            continue;
        last->wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, sender->at.sequence);
        last->send_flags |= IBV_SEND_SIGNALED;
        sender->unsignalled = 0;
    }
    if (count > 0)
        post(sender, count);
    return bytes;
}

/* Makes messages ready to be read, and says so. */
static uint64_t offer_batch(struct verbs_sender *sender, uint64_t budget, uint64_t most)
{
    struct verbs_qp *qp = sender->endpoint.qp;
    uint64_t bytes = 0;

    for (uint64_t count = 0; count < most && bytes < budget && sender->at.length > 0; count++) {
        uint32_t length = sender->at.length;
        uint8_t *message = qp->ring + (size_t)qp->place * qp->config.stride;

        if (sender->from == NULL) {
            struct verbs_header header =
                verbs_header_of(&sender->at, &sender->endpoint.script, VERBS_SLOT_PLACE(qp->place));

            memcpy(message, &header, length < sizeof header ? length : sizeof header);
            qp->place = qp->place + 1 == qp->config.slots ? 0 : qp->place + 1;
        } else {
            struct ibv_send_wr unused = {.sg_list = sender->gathers};

            pass_on(sender, &unused, 1);
        }
        bytes += length;
        step(sender, 1);
    }
    return bytes;
}

static void tell_ready(struct verbs_sender *sender)
{
    struct verbs_control *control = sender->endpoint.qp->control;

    if (sender->endpoint.control_busy || sender->told == sender->at.sequence)
        return;
    sender->told = sender->at.sequence;
    control->credit_out = verbs_credit(sender->endpoint.script.tag, false, sender->told);
    verbs_endpoint_write(&sender->endpoint,
                         &(struct verbs_post){.work = VERBS_WORK_CONTROL,
                                              .from = &control->credit_out,
                                              .bytes = sizeof control->credit_out,
                                              .offset = offsetof(struct verbs_control, credit)});
}

/* Nothing has been acknowledged for long: an unreliable service has lost it, or the credit. */
static void give_up_waiting(struct verbs_sender *sender, int64_t now_ns)
{
    if (now_ns - sender->moved_ns < LOST_NS || sender->at.sequence < sender->allowed)
        return;
    sender->moved_ns = now_ns;
    sender->allowed = sender->at.sequence + sender->endpoint.theirs.slots - 1;
}

uint64_t verbs_sender_post(struct verbs_sender *sender, uint64_t budget, int64_t now_ns)
{
    bool read = sender->endpoint.lane->options.operation == VERBS_READ;
    uint64_t bytes = 0;

    if (!sender->endpoint.lane->reliable)
        give_up_waiting(sender, now_ns);
    while (bytes < budget && !verbs_sender_at_end(sender) && !sender->endpoint.failed) {
        uint64_t most = room(sender);
        uint64_t batch = 0;

        if (most > 0)
            batch = read ? offer_batch(sender, budget - bytes, most)
                         : post_batch(sender, budget - bytes, most);
        if (batch == 0)
            break;
        bytes += batch;
    }
    if (read)
        tell_ready(sender);
    return bytes;
}

void verbs_sender_skip(struct verbs_sender *sender, uint64_t count)
{
    bool idle = sender->done == sender->at.sequence;
    uint32_t slots = sender->endpoint.theirs.slots;

    sender->next = (uint32_t)((sender->next + count) % sender->span);
    sender->remote = slots > 0 ? (uint32_t)((sender->remote + count) % slots) : 0;
    for (uint64_t i = 0; i < count; i++)
        verbs_cursor_next(&sender->at, &sender->endpoint.script);
    if (idle) {
        sender->done = sender->at.sequence;
        sender->done_bytes = sender->at.before;
    }
}

/* --- completions and credits --- */

static void complete(struct verbs_sender *sender, uint64_t done, int64_t now_ns)
{
    struct flow_side *side = sender->endpoint.flow->side;
    uint64_t messages = done - sender->done;
    uint64_t bytes;

    if (sender->endpoint.lane->schedule != NULL) /* they count what they send themselves */
        sender->done = done;
    if (messages == 0 || sender->endpoint.lane->schedule != NULL)
        return;
    bytes = sender->bytes_after[(done - 1) % sender->span];
    side->live.payload_bytes += bytes - sender->done_bytes;
    side->live.messages += messages;
    sender->done_bytes = bytes;
    side->last_ns = now_ns;
    sender->done = done;
    if (sender->from != NULL)
        verbs_receiver_give_back(sender->from, (uint32_t)messages);
}

/* The sink's word: as a remote write, or on UD as a datagram. */
static bool hear_credit(struct verbs_sender *sender, uint64_t word, int64_t now_ns)
{
    const struct verbs_options *options = &sender->endpoint.lane->options;
    uint64_t count = verbs_credit_messages(word);
    bool end_takes_one = options->operation == VERBS_SEND || options->immediate;
    uint64_t allowed = count + sender->endpoint.theirs.slots - end_takes_one;

    if (!verbs_credit_is_of(word, sender->endpoint.script.tag))
        return false;
    if (verbs_credit_finished(word) && sender->eofs > 0)
        sender->endpoint.finished = true;
    if (options->operation == VERBS_READ) {
        bool moved = count > sender->done;

        if (moved)
            complete(sender, count, now_ns);
        sender->allowed = sender->done + sender->span;
        return moved;
    }
    if (allowed <= sender->allowed)
        return false;
    sender->allowed = allowed;
    sender->moved_ns = now_ns;
    return true;
}

static void hear_datagram(struct verbs_sender *sender, const struct ibv_wc *completion,
                          int64_t now_ns)
{
    struct verbs_qp *qp = sender->endpoint.qp;
    uint32_t slot = (uint32_t)completion->wr_id;
    const uint8_t *data = qp->ring + (size_t)slot * qp->config.stride + VERBS_GRH_BYTES;
    uint64_t word;
    int rc;

    if (completion->byte_len == VERBS_GRH_BYTES + sizeof(struct verbs_credit_datagram) &&
        verbs_credit_datagram_read((const struct verbs_credit_datagram *)(const void *)data,
                                   &sender->endpoint.script, &word))
        hear_credit(sender, word, now_ns);
    rc = verbs_qp_post_receive(qp, slot);
    if (rc < 0)
        verbs_fault_post(&sender->endpoint, -rc);
}

bool verbs_sender_reap(struct verbs_sender *sender, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(sender->endpoint.qp->cq, VERBS_BATCH, completions);
    uint64_t word =
        atomic_load_explicit(&sender->endpoint.qp->control->credit, memory_order_acquire);
    bool moved = count > 0;

    for (int i = 0; i < count; i++) {
        const struct ibv_wc *completion = &completions[i];
        enum verbs_work work = (enum verbs_work)(completion->wr_id >> VERBS_WORK_SHIFT);

        if (completion->status != IBV_WC_SUCCESS)
            verbs_fault(&sender->endpoint, completion);
        else if (work == VERBS_WORK_MESSAGE)
            complete(sender, completion->wr_id & ~VERBS_WORK_ID(UINT8_MAX, 0), now_ns);
        else if (work == VERBS_WORK_RECEIVE)
            hear_datagram(sender, completion, now_ns);
        else
            sender->endpoint.control_busy = false;
        if (work == VERBS_WORK_EOF && completion->status == IBV_WC_SUCCESS)
            sender->endpoint.finished |= sender->endpoint.lane->reliable;
    }
    if (word != 0)
        moved |= hear_credit(sender, word, now_ns);
    return moved;
}

/* --- the end --- */

static void post_eof(struct verbs_sender *sender)
{
    const struct verbs_options *options = &sender->endpoint.lane->options;
    struct verbs_control *control = sender->endpoint.qp->control;
    struct verbs_post eof = {
        .work = VERBS_WORK_EOF,
        .from = &control->eof_out,
        .bytes = sizeof control->eof_out,
        .offset = offsetof(struct verbs_control, eof),
        .immediate = options->operation == VERBS_WRITE && options->immediate,
    };

    control->eof_out =
        verbs_eof_make(&sender->endpoint.script, sender->at.sequence, sender->at.before);
    if (options->operation == VERBS_SEND)
        verbs_endpoint_send(&sender->endpoint, &eof);
    else
        verbs_endpoint_write(&sender->endpoint, &eof);
}

void verbs_sender_finish(struct verbs_sender *sender, int64_t now_ns)
{
    bool read = sender->endpoint.lane->options.operation == VERBS_READ;

    if (sender->endpoint.failed || sender->endpoint.control_busy ||
        (!read && sender->done < sender->at.sequence))
        return;
    if (read && sender->told < sender->at.sequence) {
        tell_ready(sender);
        return;
    }
    if (sender->endpoint.lane->reliable) {
        if (sender->eofs == 0 && (!read || sender->done == sender->at.sequence)) {
            sender->eofs++;
            post_eof(sender);
        }
        return;
    }
    if (sender->eofs > 0 && now_ns - sender->eof_ns < EOF_NS)
        return;
    if (sender->eofs == EOFS_MAX) {
        sender->endpoint.finished = true; /* the partner will do without */
        return;
    }
    sender->eofs++;
    sender->eof_ns = now_ns;
    post_eof(sender);
}
