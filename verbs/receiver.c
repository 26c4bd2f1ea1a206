/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The receiving end of a stream: finds what has come by completions, by the last byte of a place,
 * or by reading it from the source; verifies it; gives the place back, and credit with it.
 */
#include "clock.h"
#include "lane.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define RETELL_NS (5 * NS_PER_MS) /* unreliable: a credit may have been lost */
#define SILENT_NS (2 * NS_PER_S)  /* unreliable: then no end mark will come any more */

static uint8_t *message_at(const struct verbs_receiver *receiver, uint32_t place)
{
    return receiver->endpoint.qp->ring + (size_t)place * receiver->endpoint.qp->config.stride;
}

static uint32_t after(const struct verbs_receiver *receiver, uint32_t place)
{
    return place + 1 == receiver->endpoint.qp->config.slots ? 0 : place + 1;
}

/* --- giving back --- */

static bool holds_receives(const struct verbs_receiver *receiver)
{
    return verbs_qp_receives(receiver->endpoint.qp) > 0;
}

/* The last byte that a place must not hold before the message for it has come. */
static void make_place_ready(struct verbs_receiver *receiver)
{
    struct verbs_header header =
        verbs_header_of(&receiver->next, &receiver->endpoint.script, receiver->next.place);
    uint32_t length = receiver->next.length;

    if (length == 0)
        return;
    message_at(receiver, receiver->next_place)[length - 1] =
        (uint8_t)~verbs_last_byte(&header, length);
    receiver->next_place = after(receiver, receiver->next_place);
    verbs_cursor_next(&receiver->next, &receiver->endpoint.script);
}

static bool looks_at_memory(const struct verbs_receiver *receiver)
{
    const struct verbs_options *options = &receiver->endpoint.lane->options;

    return options->operation == VERBS_WRITE && !options->immediate;
}

void verbs_receiver_give_back(struct verbs_receiver *receiver, uint32_t count)
{
    receiver->held -= count;
    if (looks_at_memory(receiver))
        for (uint32_t i = 0; i < count; i++)
            make_place_ready(receiver);
    if (holds_receives(receiver))
        receiver->to_post += count;
}

static void post_receives(struct verbs_receiver *receiver)
{
    uint32_t slots = receiver->endpoint.qp->config.slots;
    struct ibv_recv_wr *last =
        &receiver->receives[(receiver->to_post_place + receiver->to_post - 1) % slots];
    struct ibv_recv_wr *next = last->next;
    struct ibv_recv_wr *bad;
    int code;

    last->next = NULL;
    code = ibv_post_recv(receiver->endpoint.qp->ibv, &receiver->receives[receiver->to_post_place],
                         &bad);
    last->next = next;
    receiver->to_post_place = (receiver->to_post_place + receiver->to_post) % slots;
    receiver->to_post = 0;
    if (code != 0)
        verbs_fault_post(&receiver->endpoint, code);
}

/* So many messages of the phase are dealt with: taken and given back, or lost. */
static uint64_t credit_of(const struct verbs_receiver *receiver)
{
    return receiver->verifier.at.sequence - receiver->held;
}

static void write_credit(struct verbs_receiver *receiver)
{
    struct verbs_control *control = receiver->endpoint.qp->control;

    control->credit_out =
        verbs_credit(receiver->endpoint.script.tag, receiver->endpoint.finished, receiver->told);
    verbs_endpoint_write(&receiver->endpoint,
                         &(struct verbs_post){.work = VERBS_WORK_CONTROL,
                                              .from = &control->credit_out,
                                              .bytes = sizeof control->credit_out,
                                              .offset = offsetof(struct verbs_control, credit)});
}

static void send_credit(struct verbs_receiver *receiver)
{
    struct verbs_control *control = receiver->endpoint.qp->control;

    control->datagram_out = verbs_credit_datagram_make(
        &receiver->endpoint.script,
        verbs_credit(receiver->endpoint.script.tag, receiver->endpoint.finished, receiver->told));
    verbs_endpoint_send(&receiver->endpoint,
                        &(struct verbs_post){.work = VERBS_WORK_CONTROL,
                                             .from = &control->datagram_out,
                                             .bytes = sizeof control->datagram_out});
}

static bool credit_is_due(const struct verbs_receiver *receiver, uint64_t credit, int64_t now_ns)
{
    const struct verbs_lane *lane = receiver->endpoint.lane;
    bool again = !lane->reliable && now_ns - receiver->told_ns >= RETELL_NS;

    /* What is answered needs none; that the end has come must be told. */
    if (lane->replies != NULL)
        return again && receiver->endpoint.finished;
    if (credit - receiver->told > receiver->endpoint.qp->config.slots / 4)
        return true;
    /* A reader's credit is also what the source counts as offered: it must be exact at the end. */
    if (lane->options.operation == VERBS_READ && credit > receiver->told &&
        (credit == receiver->known || receiver->eof_seen))
        return true;
    return again && (credit > receiver->told || receiver->endpoint.finished);
}

void verbs_receiver_tell(struct verbs_receiver *receiver, int64_t now_ns)
{
    uint64_t credit = credit_of(receiver);

    if (receiver->to_post > 0)
        post_receives(receiver);
    if (!credit_is_due(receiver, credit, now_ns) || receiver->endpoint.control_busy ||
        receiver->endpoint.failed)
        return;
    receiver->told = credit;
    receiver->told_ns = now_ns;
    if (receiver->endpoint.lane->options.service == VERBS_UD)
        send_credit(receiver);
    else
        write_credit(receiver);
}

/* --- taking --- */

/* Verifies the message in the next place and takes it. */
static void take_message(struct verbs_receiver *receiver, uint8_t *data, uint32_t bytes,
                         int64_t now_ns)
{
    struct flow_side *side = receiver->endpoint.flow->side;

    receiver->place = after(receiver, receiver->place);
    receiver->held++;
    if (verbs_verify_message(&receiver->verifier, data, bytes)) {
        side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
        side->last_ns = now_ns;
        receiver->came_ns = now_ns;
        receiver->endpoint.lane->lane.arrived_ns = now_ns;
    }
    if (receiver->onward == NULL)
        verbs_receiver_give_back(receiver, 1);
}

/* All that the end mark tells of has come; of an unreliable service what will come. */
static void end(struct verbs_receiver *receiver)
{
    if (receiver->endpoint.finished)
        return;
    receiver->endpoint.finished = true;
    receiver->whole = receiver->verifier.at.sequence == receiver->total &&
                      receiver->verifier.at.before == receiver->total_bytes;
    if (receiver->endpoint.lane->reliable && !receiver->whole)
        receiver->endpoint.flow->side->corrupted += sizeof(struct verbs_eof);
    receiver->told_ns = 0;
    receiver->endpoint.lane->receivers_finished++;
}

static bool read_eof(struct verbs_receiver *receiver, const struct verbs_eof *eof)
{
    if (!verbs_eof_read(eof, &receiver->endpoint.script, &receiver->total, &receiver->total_bytes))
        return false;
    receiver->eof_seen = true;
    return true;
}

/* A receive that held no message of the stream is given back at once. */
static void return_receive(struct verbs_receiver *receiver)
{
    receiver->to_post++;
}

/* The message's sequence, of which the immediate has the low bits. */
static uint32_t sequence_of(const struct verbs_receiver *receiver, uint32_t immediate)
{
    uint32_t due = (uint32_t)receiver->verifier.at.sequence;
    uint32_t ahead = (immediate - due) & VERBS_IMMEDIATE_MASK;

    return ahead <= VERBS_IMMEDIATE_MASK / 2 ? due + ahead
                                             : due + ahead - (VERBS_IMMEDIATE_MASK + 1);
}

static unsigned took_send(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                          int64_t now_ns)
{
    uint32_t head = receiver->endpoint.lane->options.service == VERBS_UD ? VERBS_GRH_BYTES : 0;
    uint8_t *data = message_at(receiver, (uint32_t)completion->wr_id) + head;
    uint32_t bytes = completion->byte_len - head;

    if (bytes == sizeof(struct verbs_eof) && data[0] == VERBS_KIND_EOF &&
        read_eof(receiver, (const struct verbs_eof *)(const void *)data)) {
        receiver->place = after(receiver, receiver->place);
        return_receive(receiver);
        return 1;
    }
    if ((completion->wc_flags & IBV_WC_WITH_IMM) != 0 &&
        verbs_verify_gap(&receiver->verifier, sequence_of(receiver, ntohl(completion->imm_data)),
                         bytes)) {
        receiver->place = after(receiver, receiver->place);
        return_receive(receiver);
        return 1;
    }
    take_message(receiver, data, bytes, now_ns);
    return 1;
}

/* The immediate tells which message it was: of an unreliable service some may be missing. */
static unsigned took_write(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                           int64_t now_ns)
{
    uint32_t immediate = ntohl(completion->imm_data);
    uint32_t gap = (immediate - (uint32_t)receiver->verifier.at.sequence) & VERBS_IMMEDIATE_MASK;

    if (immediate & VERBS_IMMEDIATE_EOF) {
        read_eof(receiver, &receiver->endpoint.qp->control->eof);
        return_receive(receiver);
        return 1;
    }
    if (!receiver->endpoint.lane->reliable && gap < VERBS_IMMEDIATE_MASK / 2) {
        receiver->place = (receiver->place + gap) % receiver->endpoint.qp->config.slots;
        verbs_verify_skip(&receiver->verifier, gap);
    }
    take_message(receiver, message_at(receiver, receiver->place), completion->byte_len, now_ns);
    return 1;
}

static unsigned take_completion(struct verbs_receiver *receiver, const struct ibv_wc *completion,
                                int64_t now_ns)
{
    enum verbs_work work = (enum verbs_work)(completion->wr_id >> VERBS_WORK_SHIFT);

    if (completion->status != IBV_WC_SUCCESS) {
        verbs_fault(&receiver->endpoint, completion);
        return 0;
    }
    if (work == VERBS_WORK_RECEIVE)
        return completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM
                   ? took_write(receiver, completion, now_ns)
                   : took_send(receiver, completion, now_ns);
    if (work == VERBS_WORK_CONTROL)
        receiver->endpoint.control_busy = false;
    return 0;
}

static unsigned take_completions(struct verbs_receiver *receiver, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(receiver->endpoint.qp->cq, VERBS_BATCH, completions);
    unsigned taken = 0;

    for (int i = 0; i < count; i++)
        taken += take_completion(receiver, &completions[i], now_ns);
    return taken;
}

/* --- schedules --- */

static unsigned note_arrival(struct verbs_receiver *receiver, const struct ibv_wc *completion)
{
    if (completion->status != IBV_WC_SUCCESS) {
        verbs_fault(&receiver->endpoint, completion);
        return 0;
    }
    if (completion->wr_id >> VERBS_WORK_SHIFT == VERBS_WORK_RECEIVE) {
        receiver
            ->lengths[(receiver->place + receiver->arrived) % receiver->endpoint.qp->config.slots] =
            completion->byte_len;
        receiver->arrived++;
        return 1;
    }
    receiver->endpoint.control_busy = false;
    return 0;
}

static unsigned note_arrivals(struct verbs_receiver *receiver, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(receiver->endpoint.qp->cq, VERBS_BATCH, completions);
    unsigned arrived = 0;

    (void)now_ns;
    for (int i = 0; i < count; i++)
        arrived += note_arrival(receiver, &completions[i]);
    return arrived;
}

const uint8_t *verbs_receiver_arrived(const struct verbs_receiver *receiver, uint32_t *bytes)
{
    *bytes = receiver->arrived > 0 ? receiver->lengths[receiver->place] : 0;
    return receiver->arrived > 0 ? message_at(receiver, receiver->place) : NULL;
}

/* Its place is free again. */
static void leave_place(struct verbs_receiver *receiver)
{
    receiver->arrived--;
    receiver->place = after(receiver, receiver->place);
    return_receive(receiver);
}

void verbs_receiver_took(struct verbs_receiver *receiver, uint32_t bytes)
{
    leave_place(receiver);
    receiver->verifier.at.sequence++;
    receiver->verifier.at.before += bytes;
}

void verbs_receiver_take_eof(struct verbs_receiver *receiver)
{
    uint32_t bytes;
    const uint8_t *data = verbs_receiver_arrived(receiver, &bytes);

    if (bytes != sizeof(struct verbs_eof) || data[0] != VERBS_KIND_EOF ||
        !read_eof(receiver, (const struct verbs_eof *)(const void *)data))
        err_set(&receiver->endpoint.lane->lane.error, -EPROTO,
                "rank %u sent a message behind the last barrier", receiver->endpoint.flow->src);
    leave_place(receiver);
}

/* --- writes without immediate --- */

static bool has_come(const struct verbs_receiver *receiver, const struct verbs_cursor *at,
                     uint32_t place)
{
    struct verbs_header header = verbs_header_of(at, &receiver->endpoint.script, at->place);
    const volatile uint8_t *message = message_at(receiver, place);

    return at->length > 0 && message[at->length - 1] == verbs_last_byte(&header, at->length);
}

static unsigned take_places(struct verbs_receiver *receiver, uint32_t places, int64_t now_ns)
{
    unsigned taken = 0;

    while (taken < VERBS_BATCH && receiver->held < places &&
           has_come(receiver, &receiver->verifier.at, receiver->place)) {
        atomic_thread_fence(memory_order_acquire);
        take_message(receiver, message_at(receiver, receiver->place), receiver->verifier.at.length,
                     now_ns);
        taken++;
    }
    return taken;
}

/* How many of the next `most` messages come before the first that is there; `most`: none is. */
static uint32_t missing_before(const struct verbs_receiver *receiver, uint32_t most)
{
    struct verbs_cursor at = receiver->verifier.at;
    uint32_t place = receiver->place;

    for (uint32_t i = 0; i < most; i++) {
        if (has_come(receiver, &at, place))
            return i;
        verbs_cursor_next(&at, &receiver->endpoint.script);
        place = after(receiver, place);
    }
    return most;
}

/* One is missing: if a later one is there, an unreliable service (which keeps the order) has lost
 * those before it, unless they have come since they were looked at: hence the second look. */
static unsigned look_further(struct verbs_receiver *receiver, int64_t now_ns)
{
    uint32_t slots = receiver->endpoint.qp->config.slots;
    uint32_t missing = missing_before(receiver, slots);

    if (missing == slots)
        return 0;
    atomic_thread_fence(memory_order_acquire);
    missing = missing_before(receiver, missing);
    verbs_verify_skip(&receiver->verifier, missing);
    for (; missing > 0; missing--) { /* their places are ready for their next messages */
        receiver->place = after(receiver, receiver->place);
        make_place_ready(receiver);
    }
    take_message(receiver, message_at(receiver, receiver->place), receiver->verifier.at.length,
                 now_ns);
    return 1;
}

static unsigned take_written(struct verbs_receiver *receiver, int64_t now_ns)
{
    uint32_t slots = receiver->endpoint.qp->config.slots;
    unsigned taken;

    take_completions(receiver, now_ns);
    taken = take_places(receiver, slots, now_ns);
    /* Messages come before the mark: those that came since the look above are there now. */
    if (taken == 0 && !receiver->eof_seen &&
        receiver->endpoint.qp->control->eof.kind == VERBS_KIND_EOF &&
        read_eof(receiver, &receiver->endpoint.qp->control->eof))
        taken = take_places(receiver, slots, now_ns);
    if (taken == 0 && !receiver->endpoint.lane->reliable && !receiver->endpoint.finished)
        taken = look_further(receiver, now_ns);
    return taken;
}

/* --- reads --- */

static void learn_ready(struct verbs_receiver *receiver)
{
    struct verbs_control *control = receiver->endpoint.qp->control;
    uint64_t word = atomic_load_explicit(&control->credit, memory_order_acquire);

    if (verbs_credit_is_of(word, receiver->endpoint.script.tag))
        receiver->known = verbs_credit_messages(word);
    if (!receiver->eof_seen && control->eof.kind == VERBS_KIND_EOF)
        read_eof(receiver, &control->eof);
}

static void fill_read(struct verbs_receiver *receiver, struct ibv_send_wr *work, bool last)
{
    const struct qp_info *theirs = &receiver->endpoint.theirs;

    work->sg_list[0].addr = (uintptr_t)message_at(receiver, receiver->next_place);
    work->sg_list[0].length = receiver->next.length;
    work->wr.rdma.remote_addr = theirs->ring.address + (uint64_t)receiver->remote * theirs->stride;
    work->wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, receiver->next.sequence + 1);
    work->send_flags = 0;
    if (++receiver->unsignalled >= receiver->endpoint.lane->options.signal_every || last) {
        work->send_flags = IBV_SEND_SIGNALED;
        receiver->unsignalled = 0;
    }
    receiver->remote = receiver->remote + 1 == theirs->slots ? 0 : receiver->remote + 1;
    receiver->next_place = after(receiver, receiver->next_place);
    verbs_cursor_next(&receiver->next, &receiver->endpoint.script);
}

/* Asks for messages that are ready, as far as there are places. */
static void ask(struct verbs_receiver *receiver)
{
    uint64_t asked = receiver->next.sequence;
    uint64_t out = asked - receiver->verifier.at.sequence;
    uint64_t slots = receiver->endpoint.qp->config.slots - receiver->held - out;
    uint64_t most = receiver->known > asked ? receiver->known - asked : 0;
    uint64_t works = receiver->endpoint.lane->options.depth - out;
    struct ibv_send_wr *bad;
    struct ibv_send_wr *last;
    int code;

    most = most < slots ? most : slots;
    most = most < works ? most : works;
    most = most < VERBS_BATCH ? most : VERBS_BATCH;
    if (most == 0 || receiver->endpoint.failed)
        return;
    for (uint64_t i = 0; i < most; i++)
        fill_read(receiver, &receiver->works[i], i + 1 == most);
    last = &receiver->works[most - 1];
    last->next = NULL;
    code = ibv_post_send(receiver->endpoint.qp->ibv, receiver->works, &bad);
    last->next = last + 1;
    if (code != 0)
        verbs_fault_post(&receiver->endpoint, code);
}

static unsigned take_read(struct verbs_receiver *receiver, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(receiver->endpoint.qp->cq, VERBS_BATCH, completions);
    unsigned taken = 0;

    for (int i = 0; i < count; i++) {
        const struct ibv_wc *completion = &completions[i];
        uint64_t done = completion->wr_id & ~VERBS_WORK_ID(UINT8_MAX, 0);

        if (completion->status != IBV_WC_SUCCESS ||
            completion->wr_id >> VERBS_WORK_SHIFT != VERBS_WORK_MESSAGE) {
            take_completion(receiver, completion, now_ns);
            continue;
        }
        for (; receiver->verifier.at.sequence < done; taken++)
            take_message(receiver, message_at(receiver, receiver->place),
                         receiver->verifier.at.length, now_ns);
    }
    learn_ready(receiver);
    ask(receiver);
    return taken;
}

/* --- the stream --- */

void verbs_receiver_variant(struct verbs_receiver *receiver)
{
    if (receiver->endpoint.lane->schedule != NULL)
        receiver->take = note_arrivals;
    else if (receiver->endpoint.lane->options.operation == VERBS_READ)
        receiver->take = take_read;
    else
        receiver->take = looks_at_memory(receiver) ? take_written : take_completions;
}

void verbs_receiver_connected(struct verbs_receiver *receiver)
{
    const struct verbs_qp *qp = receiver->endpoint.qp;
    uint32_t slots = qp->config.slots;
    bool holds = receiver->endpoint.lane->options.operation == VERBS_SEND;

    receiver->place = receiver->to_post_place = receiver->next_place = qp->place;
    receiver->remote = receiver->endpoint.theirs.first;
    verbs_cursor_start(&receiver->next, &receiver->endpoint.script);
    for (uint32_t i = 0; i < slots; i++) {
        receiver->scatters[i] = (struct ibv_sge){.addr = (uintptr_t)message_at(receiver, i),
                                                 .length = qp->config.stride,
                                                 .lkey = qp->range.lkey};
        receiver->receives[i] =
            (struct ibv_recv_wr){.wr_id = i,
                                 .next = &receiver->receives[i + 1 == slots ? 0 : i + 1],
                                 .sg_list = holds ? &receiver->scatters[i] : NULL,
                                 .num_sge = holds};
        if (looks_at_memory(receiver))
            make_place_ready(receiver);
    }
    for (uint32_t i = 0; receiver->works != NULL && i < VERBS_BATCH; i++) {
        struct ibv_send_wr *work = &receiver->works[i];

        *work = (struct ibv_send_wr){.next = work + 1,
                                     .sg_list = &receiver->scatters[slots + i],
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_READ};
        work->sg_list->lkey = qp->range.lkey;
        work->wr.rdma.rkey = receiver->endpoint.theirs.ring.key;
    }
}

/* An unreliable service may have lost the last messages, and the end eof. */
static bool will_not_come(const struct verbs_receiver *receiver, int64_t now_ns)
{
    const struct lane *lane = &receiver->endpoint.lane->lane;
    int64_t since_ns = receiver->came_ns;

    if (receiver->endpoint.lane->reliable)
        return false;
    if (receiver->eof_seen)
        return true;
    if (receiver->endpoint.lane->pingpong != NULL) /* a flow may rest; the drain has its limit */
        return false;
    if (since_ns == 0 || (lane->stop_ns != CLOCK_NEVER && since_ns < lane->stop_ns))
        since_ns = lane->stop_ns;
    return since_ns != CLOCK_NEVER && now_ns - since_ns > SILENT_NS;
}

unsigned verbs_receiver_poll(struct verbs_receiver *receiver, int64_t now_ns)
{
    unsigned taken = receiver->take(receiver, now_ns);

    if (!receiver->endpoint.finished && taken == 0 &&
        ((receiver->eof_seen && receiver->verifier.at.sequence >= receiver->total) ||
         will_not_come(receiver, now_ns)))
        end(receiver);
    verbs_receiver_tell(receiver, now_ns);
    return taken;
}
