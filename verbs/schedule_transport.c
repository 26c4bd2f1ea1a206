/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over verbs (doc/schedules.md, schedule_executor.h), by sends of a reliable connection.
 * A message goes in pieces as long as a place of the receiver's ring: a header, and payload
 * straight from the rank's memory, which is registered for the phase. The receiver copies it to
 * where it belongs, once the step that receives it has come; what a partner sends ahead waits in
 * the ring, and credits bound it.
 *
 * A message is handed over when its pieces are acknowledged, or at once where the device has taken
 * them with the work request (inline).
 */
#include "clock.h"
#include "lane.h"
#include "reply_streams.h"
#include "schedule_executor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (64u * 1024) /* of payload */
#define BARRIER 0x80u            /* in a header: of a barrier message, with its bits */
#define TURNS 64u                /* in one poll */
#define SLOTS 17u                /* pieces of messages that are ahead, and the eof */

/* A message in flight. */
struct transit {
    uint64_t moved;   /* bytes of payload */
    uint64_t awaited; /* sender: it is handed over when so many pieces are acknowledged */
    bool begun;       /* at least one piece has moved */
    bool through;
};

struct verbs_schedule {
    struct stepper *stepper;
    struct ibv_mr *memory;
    struct transit *sends; /* of the present step, as the executor's */
    struct transit *receives;
};

/* --- preparation --- */

static int check(const struct verbs_lane *lane, struct err *err)
{
    const struct verbs_options *options = &lane->context.options;
    const char *label = lane->context.port->label;

    if (options->service != VERBS_RC || options->operation != VERBS_SEND)
        return err_set(err, -EINVAL,
                       "%s: the messages of steps go by service rc and operation send", label);
    if (options->queue_pairs > 1)
        return err_set(err, -EINVAL,
                       "%s: a step's message goes by one queue pair, not %u: leave queue_pairs out",
                       label, options->queue_pairs);
    return 0;
}

/* A piece, with its header. */
static uint32_t largest(const struct verbs_lane *lane)
{
    uint64_t most = lane->lane.request.stepper->most_bytes;

    return VERBS_HEADER_BYTES + (most < PIECE_BYTES ? (uint32_t)most : PIECE_BYTES);
}

static int make(struct verbs_lane *lane, struct err *err)
{
    struct stepper *stepper = lane->lane.request.stepper;
    struct verbs_schedule *schedule = calloc(1, sizeof *schedule);

    if (schedule == NULL)
        return -ENOMEM;
    lane->schedule = schedule;
    schedule->stepper = stepper;
    schedule->sends = calloc((size_t)stepper->most_sends + 1, sizeof *schedule->sends);
    schedule->receives = calloc((size_t)stepper->most_receives + 1, sizeof *schedule->receives);
    if (schedule->sends == NULL || schedule->receives == NULL)
        return -ENOMEM;
    schedule->memory =
        ibv_reg_mr(lane->context.port->pd, stepper->memory, stepper->memory_bytes, 0);
    if (schedule->memory == NULL)
        return registered_memory_error(lane->context.port->label, stepper->memory_bytes, errno,
                                       err);
    return 0;
}

static void free_schedule(struct verbs_lane *lane)
{
    if (lane->schedule == NULL)
        return;
    if (lane->schedule->memory != NULL)
        ibv_dereg_mr(lane->schedule->memory);
    free(lane->schedule->sends);
    free(lane->schedule->receives);
    free(lane->schedule);
}

/* --- a message --- */

static struct verbs_header make_header(const struct verbs_schedule *schedule,
                                       const struct stepper_message *message,
                                       const struct verbs_script *script, uint64_t sequence)
{
    bool meeting = schedule->stepper->meeting;

    return (struct verbs_header){
        .kind = VERBS_KIND_MESSAGE,
        .tag = htons(script->tag),
        .sequence = htonl((uint32_t)sequence),
        .length = htonl((uint32_t)message->bytes),
        .src = htons(script->src),
        .dst = htons(script->dst),
        .zero = meeting ? htons((uint16_t)(BARRIER | schedule->stepper->bits)) : 0,
    };
}

/* Bytes of payload in a message's next piece; both ends know how long a place is. */
static uint32_t piece_of(const struct stepper_message *message, const struct transit *transit,
                         uint32_t stride)
{
    uint64_t left = message->bytes - transit->moved;
    uint32_t room = stride - VERBS_HEADER_BYTES;

    room = room < PIECE_BYTES ? room : PIECE_BYTES;
    return left < room ? (uint32_t)left : room;
}

/* A message waits for the one before it on the same connection. */
static bool waits(const struct stepper_message *messages, const struct transit *transits,
                  uint32_t place)
{
    uint32_t after = messages[place].after;

    return after != STEPPER_NONE &&
           !(transits[after].begun && transits[after].moved == messages[after].bytes);
}

static bool has_room(struct verbs_sender *sender)
{
    if (sender->at.sequence < sender->allowed && sender->at.sequence - sender->done < sender->span)
        return true;
    sender->waits++;
    return false;
}

/* Posts a piece of so many bytes, the message's last or not. True: its memory may be used again. */
static bool post_piece(const struct verbs_schedule *schedule, struct verbs_sender *sender,
                       const struct stepper_message *message, const struct transit *transit,
                       uint32_t bytes)
{
    const struct verbs_qp *qp = sender->base.qp;
    struct verbs_header *header =
        (struct verbs_header *)(void *)(qp->headers + (size_t)sender->next * VERBS_HEADER_STRIDE);
    struct ibv_sge parts[] = {
        {.addr = (uintptr_t)header, .length = VERBS_HEADER_BYTES, .lkey = qp->range.lkey},
        {.addr = (uintptr_t)stepper_at(schedule->stepper, message) + transit->moved,
         .length = bytes,
         .lkey = schedule->memory->lkey},
    };
    bool whole = VERBS_HEADER_BYTES + bytes <= qp->inline_bytes;
    struct ibv_send_wr work = {
        .wr_id = VERBS_WORK_ID(VERBS_WORK_MESSAGE, sender->at.sequence + 1),
        .sg_list = parts,
        .num_sge = bytes > 0 ? 2 : 1,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED | (whole ? IBV_SEND_INLINE : 0),
    };
    struct ibv_send_wr *bad;
    int code;

    *header = make_header(schedule, message, &sender->base.script, sender->at.sequence);
    code = ibv_post_send(qp->ibv, &work, &bad);
    if (code != 0)
        verbs_fault_post(&sender->base, code);
    sender->next = sender->next + 1 == sender->span ? 0 : sender->next + 1;
    sender->at.sequence++;
    sender->at.before += VERBS_HEADER_BYTES + bytes;
    return whole;
}

static bool is_handed_over(const struct verbs_sender *sender, const struct transit *transit,
                           const struct stepper_message *message)
{
    return transit->begun && transit->moved == message->bytes && sender->done >= transit->awaited;
}

/* Whether something was posted, or is handed over. */
static bool push(struct verbs_lane *lane, uint32_t place, int64_t now_ns)
{
    struct verbs_schedule *schedule = lane->schedule;
    const struct stepper_message *message = &schedule->stepper->sends[place];
    struct verbs_sender *sender = &lane->senders[message->flow];
    struct transit *transit = &schedule->sends[place];
    struct flow_side *side = sender->base.flow->side;
    bool moved = false;

    while (!(transit->begun && transit->moved == message->bytes) && has_room(sender) &&
           !sender->base.failed) {
        uint32_t bytes = piece_of(message, transit, sender->base.theirs.stride);

        if (!post_piece(schedule, sender, message, transit, bytes))
            transit->awaited = sender->at.sequence;
        transit->moved += bytes;
        transit->begun = moved = true;
        stepper_account(schedule->stepper, side, bytes, transit->moved == message->bytes);
        side->intended = side->live.payload_bytes;
        stepper_note_time(side, now_ns);
    }
    transit->through = is_handed_over(sender, transit, message);
    schedule->stepper->sends_left -= transit->through;
    return moved || transit->through;
}

/* What came, and how long it must be. */
struct piece {
    const struct verbs_header *header;
    uint32_t came; /* bytes, with the header */
    uint32_t due;
};

/* Is it the piece that is due, and all of it? What lies behind a shorter one is another message's.
 */
static bool is_due(const struct verbs_schedule *schedule, struct verbs_receiver *receiver,
                   const struct stepper_message *message, const struct piece *piece)
{
    const struct verbs_header *header = piece->header;
    struct verbs_header due =
        make_header(schedule, message, &receiver->base.script, receiver->verifier.at.sequence);
    uint16_t bits = ntohs(header->zero);
    struct err *err = &receiver->base.context->lane->error;
    uint32_t rank = receiver->base.flow->src;

    if (piece->came == piece->due && schedule->stepper->meeting && (bits & BARRIER) != 0) {
        stepper_hear(schedule->stepper, (uint8_t)(bits & ~BARRIER));
        due.zero = header->zero;
    }
    if (piece->came == piece->due && memcmp(&due, header, sizeof due) == 0)
        return true;
    receiver->base.flow->side->corrupted++;
    if (piece->came != piece->due)
        err_set(err, -EBADMSG, "rank %u sent a piece of %u bytes where one of %u was due", rank,
                piece->came, piece->due);
    err_set(err, -EBADMSG,
            "rank %u sent piece %u of a message of %u bytes (kind %02x, %04x) where piece %u, of "
            "%u bytes, was due",
            rank, ntohl(header->sequence), ntohl(header->length), header->kind, bits,
            ntohl(due.sequence), ntohl(due.length));
    return false;
}

/* Whether something was taken. */
static bool pull(struct verbs_lane *lane, uint32_t place, int64_t now_ns)
{
    struct verbs_schedule *schedule = lane->schedule;
    const struct stepper_message *message = &schedule->stepper->receives[place];
    struct verbs_receiver *receiver = &lane->receivers[message->flow];
    struct transit *transit = &schedule->receives[place];
    const uint8_t *data;
    bool moved = false;
    uint32_t came;

    while (!transit->through && (data = verbs_receiver_arrived(receiver, &came)) != NULL) {
        uint32_t bytes = piece_of(message, transit, receiver->base.qp->config.stride);
        struct piece piece = {(const struct verbs_header *)(const void *)data, came,
                              VERBS_HEADER_BYTES + bytes};

        if (!is_due(schedule, receiver, message, &piece))
            return false;
        if (bytes > 0)
            memcpy(stepper_at(schedule->stepper, message) + transit->moved,
                   data + VERBS_HEADER_BYTES, bytes);
        verbs_receiver_took(receiver, VERBS_HEADER_BYTES + bytes);
        transit->moved += bytes;
        transit->begun = moved = true;
        transit->through = transit->moved == message->bytes;
        stepper_account(schedule->stepper, receiver->base.flow->side, bytes, transit->through);
        stepper_note_time(receiver->base.flow->side, now_ns);
        lane->lane.arrived_ns = now_ns;
    }
    schedule->stepper->receives_left -= moved && transit->through;
    return moved;
}

/* --- a step --- */

static bool push_all(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_schedule *schedule = lane->schedule;
    bool moved = false;

    for (uint32_t i = 0; schedule->stepper->sends_left > 0 && i < schedule->stepper->send_count;
         i++)
        if (!schedule->sends[i].through && !waits(schedule->stepper->sends, schedule->sends, i))
            moved = push(lane, i, now_ns) || moved;
    return moved;
}

static bool pull_all(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_schedule *schedule = lane->schedule;
    bool moved = false;

    for (uint32_t i = 0;
         schedule->stepper->receives_left > 0 && i < schedule->stepper->receive_count; i++)
        if (!schedule->receives[i].through &&
            !waits(schedule->stepper->receives, schedule->receives, i))
            moved = pull(lane, i, now_ns) || moved;
    return moved;
}

static void open_step(struct verbs_schedule *schedule)
{
    const struct stepper *stepper = schedule->stepper;

    for (uint32_t i = 0; i < stepper->send_count; i++)
        schedule->sends[i] = (struct transit){0};
    for (uint32_t i = 0; i < stepper->receive_count; i++)
        schedule->receives[i] = (struct transit){0};
}

/* All that was open is through. */
static void advance_step(struct verbs_lane *lane)
{
    struct verbs_schedule *schedule = lane->schedule;
    enum stepper_state state = stepper_next(schedule->stepper);

    if (state == STEPPER_OPEN)
        open_step(schedule);
    if (state == STEPPER_WRONG)
        lane->lane.error = schedule->stepper->error;
}

static bool is_broken(const struct verbs_lane *lane)
{
    return lane->lane.error.text[0] != '\0';
}

/* As far as it gets; true: something moved. */
static bool run_steps(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_schedule *schedule = lane->schedule;
    bool moved = false;

    for (unsigned turn = 0; turn < TURNS && !is_broken(lane); turn++) {
        bool pushed, pulled;

        if (stepper_is_through(schedule->stepper))
            advance_step(lane);
        if (schedule->stepper->busy || schedule->stepper->ended)
            return true;
        pushed = push_all(lane, now_ns);
        pulled = pull_all(lane, now_ns);
        moved = moved || pushed || pulled;
        if (!pushed && !pulled && !stepper_is_through(schedule->stepper))
            break;
    }
    return moved;
}

/* After the last barrier comes nothing but the eofs. */
static void finish(struct verbs_lane *lane, int64_t now_ns)
{
    for (unsigned i = 0; i < lane->sender_count; i++)
        lane->senders[i].stopping = true;
    for (unsigned i = 0; i < lane->receiver_count; i++)
        if (!lane->receivers[i].eof_seen && lane->receivers[i].arrived > 0)
            verbs_receiver_take_eof(&lane->receivers[i]);
    verbs_senders_finish(lane, now_ns);
}

static int64_t run_schedule(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_schedule *schedule = lane->schedule;
    bool moved = false;

    if (!schedule->stepper->begun) {
        stepper_begin(schedule->stepper);
        open_step(schedule);
    }
    if (!schedule->stepper->ended)
        moved = run_steps(lane, now_ns);
    if (schedule->stepper->ended)
        finish(lane, now_ns);
    return moved && !is_broken(lane) ? now_ns + 1 : CLOCK_NEVER;
}

const struct verbs_traffic verbs_traffic_schedule = {
    .polls_to_the_end = true, /* eofs are taken here, which may come when ours are acknowledged */
    .slots = SLOTS,
    .check = check,
    .make = make,
    .free = free_schedule,
    .largest = largest,
    .send = run_schedule,
};
