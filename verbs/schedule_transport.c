/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over verbs (doc/developer/schedules.md, schedule_executor.h), by sends of a reliable
 * connection. A message goes in pieces as long as a place of the receiver's ring: a header, and
 * payload straight from the rank's memory, which is registered for the phase. The receiver copies
 * it to where it belongs, once the step that receives it has come; what a partner sends ahead waits
 * in the ring, and credits bound it.
 *
 * A message is handed over when its pieces are acknowledged, or at once where the device has taken
 * them with the work request (inline).
 */
#include "clock.h"
#include "lane.h"
#include "reply_streams.h"
#include "schedule_loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (64u * 1024) /* of payload */
#define BARRIER 0x80u            /* in a header: of a barrier message, with its bits */
#define SLOTS 17u                /* pieces of messages that are ahead, and the eof */

struct verbs_schedule {
    struct schedule_loop loop;
    struct ibv_mr *memory;
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
    uint64_t most = lane->lane.request.executor->most_bytes;

    return VERBS_HEADER_BYTES + (most < PIECE_BYTES ? (uint32_t)most : PIECE_BYTES);
}

static bool push(struct lane *base, uint32_t place, int64_t now_ns);
static bool pull(struct lane *base, uint32_t place, int64_t now_ns);

static int make(struct verbs_lane *lane, struct err *err)
{
    static const struct schedule_hooks hooks = {.send = push, .receive = pull};
    const struct schedule_executor *executor = lane->lane.request.executor;
    struct verbs_schedule *schedule = calloc(1, sizeof *schedule);

    if (schedule == NULL)
        return -ENOMEM;
    lane->schedule = schedule;
    if (schedule_loop_make(&schedule->loop, &lane->lane, &hooks) != 0)
        return -ENOMEM;
    schedule->memory =
        ibv_reg_mr(lane->context.port->pd, executor->memory, executor->memory_bytes, 0);
    if (schedule->memory == NULL)
        return registered_memory_error(lane->context.port->label, executor->memory_bytes, errno,
                                       err);
    return 0;
}

static void free_schedule(struct verbs_lane *lane)
{
    if (lane->schedule == NULL)
        return;
    if (lane->schedule->memory != NULL)
        ibv_dereg_mr(lane->schedule->memory);
    schedule_loop_free(&lane->schedule->loop);
    free(lane->schedule);
}

/* --- a message --- */

static struct verbs_header make_header(const struct schedule_executor *executor,
                                       const struct step_message *message,
                                       const struct verbs_script *script, uint64_t sequence)
{
    return (struct verbs_header){
        .kind = VERBS_KIND_MESSAGE,
        .tag = htons(script->tag),
        .sequence = htonl((uint32_t)sequence),
        .length = htonl((uint32_t)message->bytes),
        .src = htons(script->src),
        .dst = htons(script->dst),
        .zero = executor->in_barrier ? htons((uint16_t)(BARRIER | executor->bits)) : 0,
    };
}

/* Bytes of payload in a message's next piece; both ends know how long a place is. */
static uint32_t piece_of(const struct step_message *message,
                         const struct message_progress *progress, uint32_t stride)
{
    uint64_t left = message->bytes - progress->moved;
    uint32_t room = stride - VERBS_HEADER_BYTES;

    room = room < PIECE_BYTES ? room : PIECE_BYTES;
    return left < room ? (uint32_t)left : room;
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
                       const struct step_message *message, uint64_t moved, uint32_t bytes)
{
    const struct verbs_qp *qp = sender->base.qp;
    struct verbs_header *header =
        (struct verbs_header *)(void *)(qp->headers + (size_t)sender->next * VERBS_HEADER_STRIDE);
    struct ibv_sge parts[] = {
        {.addr = (uintptr_t)header, .length = VERBS_HEADER_BYTES, .lkey = qp->range.lkey},
        {.addr = (uintptr_t)executor_address(schedule->loop.executor, message) + moved,
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

    *header =
        make_header(schedule->loop.executor, message, &sender->base.script, sender->at.sequence);
    code = ibv_post_send(qp->ibv, &work, &bad);
    if (code != 0)
        verbs_fault_post(&sender->base, code);
    sender->next = sender->next + 1 == sender->span ? 0 : sender->next + 1;
    sender->at.sequence++;
    sender->at.before += VERBS_HEADER_BYTES + bytes;
    return whole;
}

static bool push(struct lane *base, uint32_t place, int64_t now_ns)
{
    struct verbs_lane *lane = (struct verbs_lane *)base;
    struct schedule_loop *loop = &lane->schedule->loop;
    const struct step_message *message = &loop->executor->sends[place];
    struct message_progress *progress = &loop->sends[place];
    struct verbs_sender *sender = &lane->senders[message->flow];
    bool moved = false;

    while (!progress->posted && has_room(sender) && !sender->base.failed) {
        uint32_t bytes = piece_of(message, progress, sender->base.theirs.stride);

        if (!post_piece(lane->schedule, sender, message, progress->moved, bytes))
            progress->awaited = sender->at.sequence;
        schedule_sent(loop, place, sender->base.flow->side, bytes,
                      progress->moved + bytes == message->bytes, now_ns);
        moved = true;
    }
    if (!progress->posted || sender->done < progress->awaited)
        return moved;
    schedule_handed_over(loop, place);
    return true;
}

/* What came, and how long it must be. */
struct piece {
    const struct verbs_header *header;
    uint32_t came; /* bytes, with the header */
    uint32_t due;
};

/* Is it the piece that is due, and all of it? What lies behind a shorter one is another message's.
 */
static bool is_due(struct schedule_executor *executor, struct verbs_receiver *receiver,
                   const struct step_message *message, const struct piece *piece)
{
    const struct verbs_header *header = piece->header;
    struct verbs_header due =
        make_header(executor, message, &receiver->base.script, receiver->verifier.at.sequence);
    uint16_t bits = ntohs(header->zero);
    struct err *err = &receiver->base.context->lane->error;
    uint32_t rank = receiver->base.flow->src;

    if (piece->came == piece->due && executor->in_barrier && (bits & BARRIER) != 0) {
        executor_merge_bits(executor, (uint8_t)(bits & ~BARRIER));
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

static bool pull(struct lane *base, uint32_t place, int64_t now_ns)
{
    struct verbs_lane *lane = (struct verbs_lane *)base;
    struct schedule_loop *loop = &lane->schedule->loop;
    const struct step_message *message = &loop->executor->receives[place];
    struct message_progress *progress = &loop->receives[place];
    struct verbs_receiver *receiver = &lane->receivers[message->flow];
    const uint8_t *data;
    bool moved = false;
    uint32_t came;

    while (!progress->done && (data = verbs_receiver_arrived(receiver, &came)) != NULL) {
        uint32_t bytes = piece_of(message, progress, receiver->base.qp->config.stride);
        struct piece piece = {(const struct verbs_header *)(const void *)data, came,
                              VERBS_HEADER_BYTES + bytes};

        if (!is_due(loop->executor, receiver, message, &piece))
            return false;
        if (bytes > 0)
            memcpy(executor_address(loop->executor, message) + progress->moved,
                   data + VERBS_HEADER_BYTES, bytes);
        verbs_receiver_took(receiver, VERBS_HEADER_BYTES + bytes);
        schedule_received(loop, place, receiver->base.flow->side, bytes,
                          progress->moved + bytes == message->bytes, now_ns);
        moved = true;
    }
    return moved;
}

/* --- the worker's call --- */

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
    struct schedule_loop *loop = &lane->schedule->loop;
    bool moved = !loop->executor->ended && schedule_loop_run(loop, now_ns) != SCHEDULE_WAITS;

    if (loop->executor->ended)
        finish(lane, now_ns);
    return moved && !schedule_loop_failed(loop) ? now_ns + 1 : CLOCK_NEVER;
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
