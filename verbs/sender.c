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
#define MARK_NS (5 * NS_PER_MS)   /* unreliable: the end mark is repeated so often ... */
#define MARKS_MOST 40             /* ... so many times */

/* --- a run of messages of one length --- */

static void gather(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_pair *pair = out->end.pair;
    const struct verbs_cursor *at = &out->at;
    const uint32_t head = at->length < VERBS_HEADER_BYTES ? at->length : VERBS_HEADER_BYTES;
    const uint32_t rest = at->length - head;
    const unsigned flags = at->length <= pair->inline_bytes ? IBV_SEND_INLINE : 0;
    const int parts = rest > 0 ? 2 : 1;
    uint32_t sequence = (uint32_t)at->sequence;
    uint32_t place = at->place;
    uint32_t next = out->next;

    out->header = verbs_header_of(at, &out->end.script, place);
    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        struct verbs_header *slot =
            (struct verbs_header *)(void *)(pair->headers + (size_t)next * VERBS_HEADER_STRIDE);
        struct ibv_sge *part = work->sg_list;

        *slot = out->header;
        slot->sequence = htonl(sequence++);
        slot->place = htons((uint16_t)place);
        part[0].addr = (uintptr_t)slot;
        part[0].length = head;
        part[1].addr = out->payload + place;
        part[1].length = rest;
        work->num_sge = parts;
        work->send_flags = flags;
        place = verbs_place_after(place);
        next = next + 1 == out->span ? 0 : next + 1;
    }
}

/* From the ring of the stream that is forwarded, without a copy. */
static void pass_on(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_pair *from = out->from->end.pair;
    uint32_t slots = from->need.slots;
    uint32_t place =
        (out->from->place + slots - out->from->held + (uint32_t)(out->at.sequence - out->done)) %
        slots;

    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        uint8_t *message = from->ring + (size_t)place * from->need.stride;

        verbs_redirect(message, out->at.length, &out->end.script);
        work->sg_list[0].addr = (uintptr_t)message;
        work->sg_list[0].length = out->at.length;
        work->sg_list[0].lkey = from->range.lkey;
        work->num_sge = 1;
        work->send_flags = out->at.length <= out->end.pair->inline_bytes ? IBV_SEND_INLINE : 0;
        place = place + 1 == slots ? 0 : place + 1;
    }
}

/* The immediate data: which message it is. */
static void number(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    uint32_t sequence = (uint32_t)out->at.sequence;

    for (const struct ibv_send_wr *end = work + count; work != end; work++)
        work->imm_data = htonl(sequence++ & VERBS_IMMEDIATE_MASK);
}

static void aim(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    const struct verbs_offer *theirs = &out->end.theirs;

    number(out, work, count);
    for (const struct ibv_send_wr *end = work + count; work != end; work++) {
        work->wr.rdma.remote_addr = theirs->ring.address + (uint64_t)out->remote * theirs->stride;
        out->remote = out->remote + 1 == theirs->slots ? 0 : out->remote + 1;
    }
}

static void fill_send(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    gather(out, work, count);
}

static void fill_send_numbered(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    gather(out, work, count);
    number(out, work, count);
}

static void fill_write(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    gather(out, work, count);
    aim(out, work, count);
}

static void fill_send_on(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    pass_on(out, work, count);
}

static void fill_write_on(struct verbs_out *out, struct ibv_send_wr *work, uint32_t count)
{
    pass_on(out, work, count);
    aim(out, work, count);
}

/* Datagrams there and back may be shorter than a header, and are known by their number only. */
static bool is_numbered(const struct verbs_out *out)
{
    const struct verbs_lane *lane = out->end.lane;

    return lane->options.service == VERBS_UD && lane->backs != NULL;
}

void verbs_out_variant(struct verbs_out *out)
{
    bool write = out->end.lane->options.operation == VERBS_WRITE;

    if (out->from != NULL)
        out->fill = write ? fill_write_on : fill_send_on;
    else
        out->fill = write ? fill_write : is_numbered(out) ? fill_send_numbered : fill_send;
}

void verbs_out_connected(struct verbs_out *out)
{
    const struct verbs_options *options = &out->end.lane->options;
    const struct verbs_offer *theirs = &out->end.theirs;
    const struct verbs_pair *pair = out->end.pair;
    bool write = options->operation == VERBS_WRITE;
    bool end_takes_one = options->operation == VERBS_SEND || (write && options->immediate);

    out->payload = (uintptr_t)pair->port->pattern.at;
    out->remote = theirs->first;
    out->allowed = theirs->slots - end_takes_one;
    if (options->operation == VERBS_READ)
        out->allowed = out->span;
    if (out->end.lane->backs != NULL)
        out->allowed = UINT64_MAX;
    for (uint32_t i = 0; i < VERBS_BATCH; i++) {
        struct ibv_send_wr *work = &out->works[i];

        *work =
            (struct ibv_send_wr){.next = work + 1,
                                 .sg_list = &out->gathers[2 * (size_t)i],
                                 .opcode = is_numbered(out) ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND};
        work->sg_list[0].lkey = pair->range.lkey;
        work->sg_list[1].lkey = pair->port->pattern.lkey;
        if (write) {
            work->opcode = options->immediate ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
            work->wr.rdma.rkey = theirs->ring.key;
        }
        if (options->service == VERBS_UD) {
            work->wr.ud.ah = pair->ah;
            work->wr.ud.remote_qpn = theirs->number;
            work->wr.ud.remote_qkey = theirs->queue_key;
        }
    }
}

/* --- posting --- */

/* Accounts a run as posted and goes on behind it. What a completion asks for is known only of
 * messages that are signalled, and of the last of each run. */
static void step(struct verbs_out *out, uint32_t count)
{
    uint32_t last = out->next + count - 1;

    out->next = last + 1 < out->span ? last + 1 : last + 1 - out->span;
    last = last < out->span ? last : last - out->span;
    out->bytes_after[last] = out->at.before + (uint64_t)count * out->at.length;
    verbs_cursor_skip(&out->at, &out->end.script, count);
}

/* How many messages may be posted now but for their bytes. */
static uint64_t room(struct verbs_out *out)
{
    uint64_t posted = out->at.sequence;
    uint64_t free_slots = out->allowed > posted ? out->allowed - posted : 0;
    uint64_t free_works = out->span - (posted - out->done);

    if (out->from != NULL) {
        uint64_t there = out->from->held - (posted - out->done);

        free_slots = free_slots < there ? free_slots : there;
    } else if (free_slots == 0 || free_works == 0) {
        out->waits++;
    }
    return free_slots < free_works ? free_slots : free_works;
}

static void post(struct verbs_out *out, uint32_t count)
{
    struct ibv_send_wr *last = &out->works[count - 1];
    struct ibv_send_wr *bad;
    int code;

    last->next = NULL;
    code = ibv_post_send(out->end.pair->qp, out->works, &bad);
    last->next = last + 1;
    if (code != 0)
        verbs_fault_post(&out->end, code);
}

/* Messages of the present length, up to the next one that is signalled. */
static uint32_t run_of(const struct verbs_out *out, uint64_t budget, uint32_t most)
{
    const struct verbs_script *script = &out->end.script;
    uint32_t length = out->at.length;
    uint32_t run = out->end.lane->options.signal_every - out->unsignalled;
    uint64_t due = (budget - 1) / length + 1;
    uint64_t left = (script->total - out->at.before) / length;

    if (script->size_count > 1 || script->drawn.most > 0)
        return 1;
    run = run < most ? run : most;
    run = run < due ? run : (uint32_t)due;
    return run < left ? run : (uint32_t)left;
}

/* A batch of messages within `budget` bytes; returns the bytes. Each run's last is signalled when
 * its turn has come, the batch's last always. */
static uint64_t post_batch(struct verbs_out *out, uint64_t budget, uint64_t most)
{
    uint32_t room = most < VERBS_BATCH ? (uint32_t)most : VERBS_BATCH;
    uint64_t bytes = 0;
    uint32_t count = 0;

    while (count < room && bytes < budget && out->at.length > 0) {
        uint32_t run = run_of(out, budget - bytes, room - count);
        struct ibv_send_wr *last = &out->works[count + run - 1];

        out->fill(out, &out->works[count], run);
        count += run;
        bytes += (uint64_t)run * out->at.length;
        out->unsignalled += run;
        step(out, run);
        if (out->unsignalled < out->end.lane->options.signal_every && count < room &&
            bytes < budget && out->at.length > 0)
            continue;
        last->wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, out->at.sequence);
        last->send_flags |= IBV_SEND_SIGNALED;
        out->unsignalled = 0;
    }
    if (count > 0)
        post(out, count);
    return bytes;
}

/* Makes messages ready to be read, and says so. */
static uint64_t offer_batch(struct verbs_out *out, uint64_t budget, uint64_t most)
{
    struct verbs_pair *pair = out->end.pair;
    uint64_t bytes = 0;

    for (uint64_t count = 0; count < most && bytes < budget && out->at.length > 0; count++) {
        uint32_t length = out->at.length;
        uint8_t *message = pair->ring + (size_t)pair->place * pair->need.stride;

        if (out->from == NULL) {
            struct verbs_header header =
                verbs_header_of(&out->at, &out->end.script, VERBS_SLOT_PLACE(pair->place));

            memcpy(message, &header, length < sizeof header ? length : sizeof header);
            pair->place = pair->place + 1 == pair->need.slots ? 0 : pair->place + 1;
        } else {
            struct ibv_send_wr unused = {.sg_list = out->gathers};

            pass_on(out, &unused, 1);
        }
        bytes += length;
        step(out, 1);
    }
    return bytes;
}

static void tell_ready(struct verbs_out *out)
{
    struct verbs_control *control = out->end.pair->control;

    if (out->end.control_busy || out->told == out->at.sequence)
        return;
    out->told = out->at.sequence;
    control->word_out = verbs_word(out->end.script.tag, false, out->told);
    verbs_end_write(&out->end,
                    &(struct verbs_post){.work = VERBS_WORK_CONTROL,
                                         .from = &control->word_out,
                                         .bytes = sizeof control->word_out,
                                         .offset = offsetof(struct verbs_control, word)});
}

/* Nothing has been acknowledged for long: an unreliable service has lost it, or the credit. */
static void give_up_waiting(struct verbs_out *out, int64_t now_ns)
{
    if (now_ns - out->moved_ns < LOST_NS || out->at.sequence < out->allowed)
        return;
    out->moved_ns = now_ns;
    out->allowed = out->at.sequence + out->end.theirs.slots - 1;
}

uint64_t verbs_out_post(struct verbs_out *out, uint64_t budget, int64_t now_ns)
{
    bool read = out->end.lane->options.operation == VERBS_READ;
    uint64_t bytes = 0;

    if (!out->end.lane->reliable)
        give_up_waiting(out, now_ns);
    while (bytes < budget && !verbs_out_at_end(out) && !out->end.failed) {
        uint64_t most = room(out);
        uint64_t batch = 0;

        if (most > 0)
            batch = read ? offer_batch(out, budget - bytes, most)
                         : post_batch(out, budget - bytes, most);
        if (batch == 0)
            break;
        bytes += batch;
    }
    if (read)
        tell_ready(out);
    return bytes;
}

void verbs_out_skip(struct verbs_out *out, uint64_t count)
{
    bool idle = out->done == out->at.sequence;
    uint32_t slots = out->end.theirs.slots;

    out->next = (uint32_t)((out->next + count) % out->span);
    out->remote = slots > 0 ? (uint32_t)((out->remote + count) % slots) : 0;
    for (uint64_t i = 0; i < count; i++)
        verbs_cursor_next(&out->at, &out->end.script);
    if (idle) {
        out->done = out->at.sequence;
        out->done_bytes = out->at.before;
    }
}

/* --- completions and credits --- */

static void complete(struct verbs_out *out, uint64_t done, int64_t now_ns)
{
    struct flow_side *side = out->end.flow->side;
    uint64_t messages = done - out->done;
    uint64_t bytes;

    if (out->end.lane->steps != NULL) /* they count what they send themselves */
        out->done = done;
    if (messages == 0 || out->end.lane->steps != NULL)
        return;
    bytes = out->bytes_after[(done - 1) % out->span];
    side->live.payload_bytes += bytes - out->done_bytes;
    side->live.messages += messages;
    out->done_bytes = bytes;
    side->last_ns = now_ns;
    out->done = done;
    if (out->from != NULL)
        verbs_in_give_back(out->from, (uint32_t)messages);
}

/* The sink's word: as a remote write, or on UD as a datagram. */
static bool hear_credit(struct verbs_out *out, uint64_t word, int64_t now_ns)
{
    const struct verbs_options *options = &out->end.lane->options;
    uint64_t count = verbs_word_messages(word);
    bool end_takes_one = options->operation == VERBS_SEND || options->immediate;
    uint64_t allowed = count + out->end.theirs.slots - end_takes_one;

    if (!verbs_word_is_of(word, out->end.script.tag))
        return false;
    if (verbs_word_ended(word) && out->marks > 0)
        out->end.ended = true;
    if (options->operation == VERBS_READ) {
        bool moved = count > out->done;

        if (moved)
            complete(out, count, now_ns);
        out->allowed = out->done + out->span;
        return moved;
    }
    if (allowed <= out->allowed)
        return false;
    out->allowed = allowed;
    out->moved_ns = now_ns;
    return true;
}

static void hear_datagram(struct verbs_out *out, const struct ibv_wc *completion, int64_t now_ns)
{
    struct verbs_pair *pair = out->end.pair;
    uint32_t slot = (uint32_t)completion->wr_id;
    const uint8_t *data = pair->ring + (size_t)slot * pair->need.stride + VERBS_GRH_BYTES;
    uint64_t word;
    int rc;

    if (completion->byte_len == VERBS_GRH_BYTES + sizeof(struct verbs_credit) &&
        verbs_credit_read((const struct verbs_credit *)(const void *)data, &out->end.script, &word))
        hear_credit(out, word, now_ns);
    rc = verbs_pair_receive(pair, slot);
    if (rc < 0)
        verbs_fault_post(&out->end, -rc);
}

bool verbs_out_reap(struct verbs_out *out, int64_t now_ns)
{
    struct ibv_wc completions[VERBS_BATCH];
    int count = ibv_poll_cq(out->end.pair->cq, VERBS_BATCH, completions);
    uint64_t word = atomic_load_explicit(&out->end.pair->control->word, memory_order_acquire);
    bool moved = count > 0;

    for (int i = 0; i < count; i++) {
        const struct ibv_wc *completion = &completions[i];
        enum verbs_work work = (enum verbs_work)(completion->wr_id >> VERBS_WORK_SHIFT);

        if (completion->status != IBV_WC_SUCCESS)
            verbs_fault(&out->end, completion);
        else if (work == VERBS_WORK_MESSAGE)
            complete(out, completion->wr_id & ~VERBS_WORK_ID(UINT8_MAX, 0), now_ns);
        else if (work == VERBS_WORK_RECEIVE)
            hear_datagram(out, completion, now_ns);
        else
            out->end.control_busy = false;
        if (work == VERBS_WORK_END && completion->status == IBV_WC_SUCCESS)
            out->end.ended |= out->end.lane->reliable;
    }
    if (word != 0)
        moved |= hear_credit(out, word, now_ns);
    return moved;
}

/* --- the end --- */

static void post_mark(struct verbs_out *out)
{
    const struct verbs_options *options = &out->end.lane->options;
    struct verbs_control *control = out->end.pair->control;
    struct verbs_post mark = {
        .work = VERBS_WORK_END,
        .from = &control->mark_out,
        .bytes = sizeof control->mark_out,
        .offset = offsetof(struct verbs_control, mark),
        .immediate = options->operation == VERBS_WRITE && options->immediate,
    };

    control->mark_out = verbs_mark_make(&out->end.script, out->at.sequence, out->at.before);
    if (options->operation == VERBS_SEND)
        verbs_end_send(&out->end, &mark);
    else
        verbs_end_write(&out->end, &mark);
}

void verbs_out_finish(struct verbs_out *out, int64_t now_ns)
{
    bool read = out->end.lane->options.operation == VERBS_READ;

    if (out->end.failed || out->end.control_busy || (!read && out->done < out->at.sequence))
        return;
    if (read && out->told < out->at.sequence) {
        tell_ready(out);
        return;
    }
    if (out->end.lane->reliable) {
        if (out->marks == 0 && (!read || out->done == out->at.sequence)) {
            out->marks++;
            post_mark(out);
        }
        return;
    }
    if (out->marks > 0 && now_ns - out->marked_ns < MARK_NS)
        return;
    if (out->marks == MARKS_MOST) {
        out->end.ended = true; /* the partner will do without */
        return;
    }
    out->marks++;
    out->marked_ns = now_ns;
    post_mark(out);
}
