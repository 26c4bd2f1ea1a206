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

static uint8_t *message_at(const struct verbs_in *in, uint32_t place)
{
    return in->end.pair->ring + (size_t)place * in->end.pair->need.stride;
}

static uint32_t after(const struct verbs_in *in, uint32_t place)
{
    return place + 1 == in->end.pair->need.slots ? 0 : place + 1;
}

/* --- giving back --- */

static bool holds_receives(const struct verbs_in *in)
{
    return verbs_pair_receives(in->end.pair) > 0;
}

/* The last byte that a place must not hold before the message for it has come. */
static void make_place_ready(struct verbs_in *in)
{
    struct verbs_header header = verbs_header_of(&in->next, &in->end.script, in->next.place);
    uint32_t length = in->next.length;

    if (length == 0)
        return;
    message_at(in, in->next_place)[length - 1] = (uint8_t)~verbs_last_byte(&header, length);
    in->next_place = after(in, in->next_place);
    verbs_cursor_next(&in->next, &in->end.script);
}

static bool looks_at_memory(const struct verbs_in *in)
{
    const struct verbs_options *options = &in->end.lane->options;

    return options->operation == VERBS_WRITE && !options->immediate;
}

void verbs_in_give_back(struct verbs_in *in, uint32_t count)
{
    in->held -= count;
    if (looks_at_memory(in))
        for (uint32_t i = 0; i < count; i++)
            make_place_ready(in);
    if (holds_receives(in))
        in->back += count;
}

static void post_receives(struct verbs_in *in)
{
    uint32_t slots = in->end.pair->need.slots;
    struct ibv_recv_wr *last = &in->receives[(in->back_place + in->back - 1) % slots];
    struct ibv_recv_wr *next = last->next;
    struct ibv_recv_wr *bad;
    int code;

    last->next = NULL;
    code = ibv_post_recv(in->end.pair->qp, &in->receives[in->back_place], &bad);
    last->next = next;
    in->back_place = (in->back_place + in->back) % slots;
    in->back = 0;
    if (code != 0)
        verbs_fault_post(&in->end, code);
}

/* So many messages of the phase are dealt with: taken and given back, or lost. */
static uint64_t credit_of(const struct verbs_in *in)
{
    return in->check.at.sequence - in->held;
}

static void write_credit(struct verbs_in *in)
{
    struct verbs_control *control = in->end.pair->control;

    control->word_out = verbs_word(in->end.script.tag, in->end.ended, in->told);
    verbs_end_write(&in->end, &(struct verbs_post){.work = VERBS_WORK_CONTROL,
                                                   .from = &control->word_out,
                                                   .bytes = sizeof control->word_out,
                                                   .offset = offsetof(struct verbs_control, word)});
}

static void send_credit(struct verbs_in *in)
{
    struct verbs_control *control = in->end.pair->control;

    control->credit_out =
        verbs_credit_make(&in->end.script, verbs_word(in->end.script.tag, in->end.ended, in->told));
    verbs_end_send(&in->end, &(struct verbs_post){.work = VERBS_WORK_CONTROL,
                                                  .from = &control->credit_out,
                                                  .bytes = sizeof control->credit_out});
}

static bool credit_is_due(const struct verbs_in *in, uint64_t credit, int64_t now_ns)
{
    const struct verbs_lane *lane = in->end.lane;
    bool again = !lane->reliable && now_ns - in->told_ns >= RETELL_NS;

    /* What is answered needs none; that the end has come must be told. */
    if (lane->backs != NULL)
        return again && in->end.ended;
    if (credit - in->told > in->end.pair->need.slots / 4)
        return true;
    /* A reader's credit is also what the source counts as offered: it must be exact at the end. */
    if (lane->options.operation == VERBS_READ && credit > in->told &&
        (credit == in->known || in->marked))
        return true;
    return again && (credit > in->told || in->end.ended);
}

void verbs_in_tell(struct verbs_in *in, int64_t now_ns)
{
    uint64_t credit = credit_of(in);

    if (in->back > 0)
        post_receives(in);
    if (!credit_is_due(in, credit, now_ns) || in->end.control_busy || in->end.failed)
        return;
    in->told = credit;
    in->told_ns = now_ns;
    if (in->end.lane->options.service == VERBS_UD)
        send_credit(in);
    else
        write_credit(in);
}

/* --- taking --- */

/* Verifies the message in the next place and takes it. */
static void take_message(struct verbs_in *in, uint8_t *data, uint32_t bytes, int64_t now_ns)
{
    struct flow_side *side = in->end.flow->side;

    in->place = after(in, in->place);
    in->held++;
    if (verbs_check_message(&in->check, data, bytes)) {
        side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
        side->last_ns = now_ns;
        in->came_ns = now_ns;
        in->end.lane->lane.arrived_ns = now_ns;
    }
    if (in->onward == NULL)
        verbs_in_give_back(in, 1);
}

/* All that the end mark tells of has come; of an unreliable service what will come. */
static void end(struct verbs_in *in)
{
    if (in->end.ended)
        return;
    in->end.ended = true;
    in->whole = in->check.at.sequence == in->total && in->check.at.before == in->total_bytes;
    if (in->end.lane->reliable && !in->whole)
        in->end.flow->side->corrupted += sizeof(struct verbs_mark);
    in->told_ns = 0;
    in->end.lane->ins_ended++;
}

static bool read_mark(struct verbs_in *in, const struct verbs_mark *mark)
{
    if (!verbs_mark_read(mark, &in->end.script, &in->total, &in->total_bytes))
        return false;
    in->marked = true;
    return true;
}

/* A receive that held no message of the stream is given back at once. */
static void return_receive(struct verbs_in *in)
{
    in->back++;
}

/* The message's sequence, of which the immediate has the low bits. */
static uint32_t sequence_of(const struct verbs_in *in, uint32_t immediate)
{
    uint32_t due = (uint32_t)in->check.at.sequence;
    uint32_t ahead = (immediate - due) & VERBS_IMMEDIATE_MASK;

    return ahead <= VERBS_IMMEDIATE_MASK / 2 ? due + ahead
                                             : due + ahead - (VERBS_IMMEDIATE_MASK + 1);
}

static unsigned took_send(struct verbs_in *in, const struct ibv_wc *completion, int64_t now_ns)
{
    uint32_t head = in->end.lane->options.service == VERBS_UD ? VERBS_GRH_BYTES : 0;
    uint8_t *data = message_at(in, (uint32_t)completion->wr_id) + head;
    uint32_t bytes = completion->byte_len - head;

    if (bytes == sizeof(struct verbs_mark) && data[0] == VERBS_KIND_END &&
        read_mark(in, (const struct verbs_mark *)(const void *)data)) {
        in->place = after(in, in->place);
        return_receive(in);
        return 1;
    }
    if ((completion->wc_flags & IBV_WC_WITH_IMM) != 0 &&
        verbs_check_gap(&in->check, sequence_of(in, ntohl(completion->imm_data)), bytes)) {
        in->place = after(in, in->place);
        return_receive(in);
        return 1;
    }
    take_message(in, data, bytes, now_ns);
    return 1;
}

/* The immediate tells which message it was: of an unreliable service some may be missing. */
static unsigned took_write(struct verbs_in *in, const struct ibv_wc *completion, int64_t now_ns)
{
    uint32_t immediate = ntohl(completion->imm_data);
    uint32_t gap = (immediate - (uint32_t)in->check.at.sequence) & VERBS_IMMEDIATE_MASK;

    if (immediate & VERBS_IMMEDIATE_END) {
        read_mark(in, &in->end.pair->control->mark);
        return_receive(in);
        return 1;
    }
    if (!in->end.lane->reliable && gap < VERBS_IMMEDIATE_MASK / 2) {
        in->place = (in->place + gap) % in->end.pair->need.slots;
        verbs_check_skip(&in->check, gap);
    }
    take_message(in, message_at(in, in->place), completion->byte_len, now_ns);
    return 1;
}

static unsigned take_completion(struct verbs_in *in, const struct ibv_wc *completion,
                                int64_t now_ns)
{
    enum verbs_work work = (enum verbs_work)(completion->wr_id >> VERBS_WORK_SHIFT);

    if (completion->status != IBV_WC_SUCCESS) {
        verbs_fault(&in->end, completion);
        return 0;
    }
    if (work == VERBS_WORK_RECEIVE)
        return completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? took_write(in, completion, now_ns)
                                                               : took_send(in, completion, now_ns);
    if (work == VERBS_WORK_CONTROL)
        in->end.control_busy = false;
    return 0;
}

static unsigned take_completions(struct verbs_in *in, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(in->end.pair->cq, VERBS_BATCH, completions);
    unsigned taken = 0;

    for (int i = 0; i < count; i++)
        taken += take_completion(in, &completions[i], now_ns);
    return taken;
}

/* --- schedules --- */

static unsigned note_arrival(struct verbs_in *in, const struct ibv_wc *completion)
{
    if (completion->status != IBV_WC_SUCCESS) {
        verbs_fault(&in->end, completion);
        return 0;
    }
    if (completion->wr_id >> VERBS_WORK_SHIFT == VERBS_WORK_RECEIVE) {
        in->lengths[(in->place + in->arrived) % in->end.pair->need.slots] = completion->byte_len;
        in->arrived++;
        return 1;
    }
    in->end.control_busy = false;
    return 0;
}

static unsigned note_arrivals(struct verbs_in *in, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(in->end.pair->cq, VERBS_BATCH, completions);
    unsigned arrived = 0;

    (void)now_ns;
    for (int i = 0; i < count; i++)
        arrived += note_arrival(in, &completions[i]);
    return arrived;
}

const uint8_t *verbs_in_arrived(const struct verbs_in *in, uint32_t *bytes)
{
    *bytes = in->arrived > 0 ? in->lengths[in->place] : 0;
    return in->arrived > 0 ? message_at(in, in->place) : NULL;
}

/* Its place is free again. */
static void leave_place(struct verbs_in *in)
{
    in->arrived--;
    in->place = after(in, in->place);
    return_receive(in);
}

void verbs_in_took(struct verbs_in *in, uint32_t bytes)
{
    leave_place(in);
    in->check.at.sequence++;
    in->check.at.before += bytes;
}

void verbs_in_take_mark(struct verbs_in *in)
{
    uint32_t bytes;
    const uint8_t *data = verbs_in_arrived(in, &bytes);

    if (bytes != sizeof(struct verbs_mark) || data[0] != VERBS_KIND_END ||
        !read_mark(in, (const struct verbs_mark *)(const void *)data))
        err_set(&in->end.lane->lane.error, -EPROTO,
                "rank %u sent a message behind the last barrier", in->end.flow->src);
    leave_place(in);
}

/* --- writes without immediate --- */

static bool has_come(const struct verbs_in *in, const struct verbs_cursor *at, uint32_t place)
{
    struct verbs_header header = verbs_header_of(at, &in->end.script, at->place);
    const volatile uint8_t *message = message_at(in, place);

    return at->length > 0 && message[at->length - 1] == verbs_last_byte(&header, at->length);
}

static unsigned take_places(struct verbs_in *in, uint32_t places, int64_t now_ns)
{
    unsigned taken = 0;

    while (taken < VERBS_BATCH && in->held < places && has_come(in, &in->check.at, in->place)) {
        atomic_thread_fence(memory_order_acquire);
        take_message(in, message_at(in, in->place), in->check.at.length, now_ns);
        taken++;
    }
    return taken;
}

/* How many of the next `most` messages come before the first that is there; `most`: none is. */
static uint32_t missing_before(const struct verbs_in *in, uint32_t most)
{
    struct verbs_cursor at = in->check.at;
    uint32_t place = in->place;

    for (uint32_t i = 0; i < most; i++) {
        if (has_come(in, &at, place))
            return i;
        verbs_cursor_next(&at, &in->end.script);
        place = after(in, place);
    }
    return most;
}

/* One is missing: if a later one is there, an unreliable service (which keeps the order) has lost
 * those before it, unless they have come since they were looked at: hence the second look. */
static unsigned look_further(struct verbs_in *in, int64_t now_ns)
{
    uint32_t slots = in->end.pair->need.slots;
    uint32_t missing = missing_before(in, slots);

    if (missing == slots)
        return 0;
    atomic_thread_fence(memory_order_acquire);
    missing = missing_before(in, missing);
    verbs_check_skip(&in->check, missing);
    for (; missing > 0; missing--) { /* their places are ready for their next messages */
        in->place = after(in, in->place);
        make_place_ready(in);
    }
    take_message(in, message_at(in, in->place), in->check.at.length, now_ns);
    return 1;
}

static unsigned take_written(struct verbs_in *in, int64_t now_ns)
{
    uint32_t slots = in->end.pair->need.slots;
    unsigned taken;

    take_completions(in, now_ns);
    taken = take_places(in, slots, now_ns);
    /* Messages come before the mark: those that came since the look above are there now. */
    if (taken == 0 && !in->marked && in->end.pair->control->mark.kind == VERBS_KIND_END &&
        read_mark(in, &in->end.pair->control->mark))
        taken = take_places(in, slots, now_ns);
    if (taken == 0 && !in->end.lane->reliable && !in->end.ended)
        taken = look_further(in, now_ns);
    return taken;
}

/* --- reads --- */

static void learn_ready(struct verbs_in *in)
{
    struct verbs_control *control = in->end.pair->control;
    uint64_t word = atomic_load_explicit(&control->word, memory_order_acquire);

    if (verbs_word_is_of(word, in->end.script.tag))
        in->known = verbs_word_messages(word);
    if (!in->marked && control->mark.kind == VERBS_KIND_END)
        read_mark(in, &control->mark);
}

static void fill_read(struct verbs_in *in, struct ibv_send_wr *work, bool last)
{
    const struct verbs_offer *theirs = &in->end.theirs;

    work->sg_list[0].addr = (uintptr_t)message_at(in, in->next_place);
    work->sg_list[0].length = in->next.length;
    work->wr.rdma.remote_addr = theirs->ring.address + (uint64_t)in->remote * theirs->stride;
    work->wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, in->next.sequence + 1);
    work->send_flags = 0;
    if (++in->unsignalled >= in->end.lane->options.signal_every || last) {
        work->send_flags = IBV_SEND_SIGNALED;
        in->unsignalled = 0;
    }
    in->remote = in->remote + 1 == theirs->slots ? 0 : in->remote + 1;
    in->next_place = after(in, in->next_place);
    verbs_cursor_next(&in->next, &in->end.script);
}

/* Asks for messages that are ready, as far as there are places. */
static void ask(struct verbs_in *in)
{
    uint64_t asked = in->next.sequence;
    uint64_t out = asked - in->check.at.sequence;
    uint64_t slots = in->end.pair->need.slots - in->held - out;
    uint64_t most = in->known > asked ? in->known - asked : 0;
    uint64_t works = in->end.lane->options.depth - out;
    struct ibv_send_wr *bad;
    struct ibv_send_wr *last;
    int code;

    most = most < slots ? most : slots;
    most = most < works ? most : works;
    most = most < VERBS_BATCH ? most : VERBS_BATCH;
    if (most == 0 || in->end.failed)
        return;
    for (uint64_t i = 0; i < most; i++)
        fill_read(in, &in->works[i], i + 1 == most);
    last = &in->works[most - 1];
    last->next = NULL;
    code = ibv_post_send(in->end.pair->qp, in->works, &bad);
    last->next = last + 1;
    if (code != 0)
        verbs_fault_post(&in->end, code);
}

static unsigned take_read(struct verbs_in *in, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(in->end.pair->cq, VERBS_BATCH, completions);
    unsigned taken = 0;

    for (int i = 0; i < count; i++) {
        const struct ibv_wc *completion = &completions[i];
        uint64_t done = completion->wr_id & ~VERBS_WORK_ID(UINT8_MAX, 0);

        if (completion->status != IBV_WC_SUCCESS ||
            completion->wr_id >> VERBS_WORK_SHIFT != VERBS_WORK_MESSAGE) {
            take_completion(in, completion, now_ns);
            continue;
        }
        for (; in->check.at.sequence < done; taken++)
            take_message(in, message_at(in, in->place), in->check.at.length, now_ns);
    }
    learn_ready(in);
    ask(in);
    return taken;
}

/* --- the stream --- */

void verbs_in_variant(struct verbs_in *in)
{
    if (in->end.lane->steps != NULL)
        in->take = note_arrivals;
    else if (in->end.lane->options.operation == VERBS_READ)
        in->take = take_read;
    else
        in->take = looks_at_memory(in) ? take_written : take_completions;
}

void verbs_in_connected(struct verbs_in *in)
{
    const struct verbs_pair *pair = in->end.pair;
    uint32_t slots = pair->need.slots;
    bool holds = in->end.lane->options.operation == VERBS_SEND;

    in->place = in->back_place = in->next_place = pair->place;
    in->remote = in->end.theirs.first;
    verbs_cursor_start(&in->next, &in->end.script);
    for (uint32_t i = 0; i < slots; i++) {
        in->scatters[i] = (struct ibv_sge){.addr = (uintptr_t)message_at(in, i),
                                           .length = pair->need.stride,
                                           .lkey = pair->range.lkey};
        in->receives[i] = (struct ibv_recv_wr){.wr_id = i,
                                               .next = &in->receives[i + 1 == slots ? 0 : i + 1],
                                               .sg_list = holds ? &in->scatters[i] : NULL,
                                               .num_sge = holds};
        if (looks_at_memory(in))
            make_place_ready(in);
    }
    for (uint32_t i = 0; in->works != NULL && i < VERBS_BATCH; i++) {
        struct ibv_send_wr *work = &in->works[i];

        *work = (struct ibv_send_wr){.next = work + 1,
                                     .sg_list = &in->scatters[slots + i],
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_READ};
        work->sg_list->lkey = pair->range.lkey;
        work->wr.rdma.rkey = in->end.theirs.ring.key;
    }
}

/* An unreliable service may have lost the last messages, and the end mark. */
static bool will_not_come(const struct verbs_in *in, int64_t now_ns)
{
    const struct lane *lane = &in->end.lane->lane;
    int64_t since_ns = in->came_ns;

    if (in->end.lane->reliable)
        return false;
    if (in->marked)
        return true;
    if (in->end.lane->pingpong != NULL) /* a flow may rest; the drain has its limit */
        return false;
    if (since_ns == 0 || (lane->stop_ns != CLOCK_NEVER && since_ns < lane->stop_ns))
        since_ns = lane->stop_ns;
    return since_ns != CLOCK_NEVER && now_ns - since_ns > SILENT_NS;
}

unsigned verbs_in_poll(struct verbs_in *in, int64_t now_ns)
{
    unsigned taken = in->take(in, now_ns);

    if (!in->end.ended && taken == 0 &&
        ((in->marked && in->check.at.sequence >= in->total) || will_not_come(in, now_ns)))
        end(in);
    verbs_in_tell(in, now_ns);
    return taken;
}
