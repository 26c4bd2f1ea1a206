/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The carrier of schedules (doc/developer/schedules.md, schedule_executor.h). The executor says
 * which messages are open; this loop moves them, in the order in which they are listed for one
 * flow, and goes on to the next step. A message goes in one piece or several, each with a header,
 * and its payload straight from and into the rank's memory.
 */
#include "message_lane.h"
#include "schedule_executor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define STEPS_MOST 64u /* in one poll */
#define BARRIER 0x80u  /* in a header's stream: a barrier's message, with its bits */

static struct message_header make_header(const struct schedule_executor *executor,
                                         const struct schedule_op *op,
                                         const struct message_script *script, uint64_t sequence)
{
    struct message_header header = message_header_make(MESSAGE_BLOCK, script, sequence, op->bytes);

    if (executor->in_barrier)
        header.stream = (uint8_t)(BARRIER | executor->bits);
    return header;
}

/* Accounts what moved of a message; the end mark tells its place in the stream. */
static void account(const struct schedule_executor *executor, struct message_progress *progress,
                    const struct schedule_op *op, struct message_cursor *at, struct flow_side *side,
                    uint32_t bytes, bool piece_whole, int64_t now_ns)
{
    progress->moved += bytes;
    at->before += bytes;
    if (piece_whole) {
        at->position = 0;
        at->sequence++;
        at->before += MESSAGE_HEADER_BYTES;
    }
    progress->posted = piece_whole && progress->moved == op->bytes;
    message_side_time(side, now_ns);
    if (executor->in_barrier)
        return;
    side->live.payload_bytes += bytes;
    side->live.messages += progress->posted;
}

/* Payload of a message that has yet to move; a piece may be less. */
static uint32_t left_of(const struct schedule_op *op, const struct message_progress *progress)
{
    uint64_t left = op->bytes - progress->moved;

    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

/* Sends what the transport takes of an open message. True: something moved. */
static bool push(struct message_lane *lane, const struct schedule_op *op,
                 struct message_progress *progress, struct message_out *out, int64_t now_ns)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    enum message_piece piece = PIECE_MOVED;
    bool moved = false;

    while (!progress->posted && piece != PIECE_PART && !message_lane_failed(lane)) {
        struct message_header header = make_header(executor, op, &out->script, out->at.sequence);
        uint32_t bytes = 0;

        piece = lane->hooks->send_piece(out, &header, executor->place + op->at + progress->moved,
                                        left_of(op, progress), &bytes);
        if (piece == PIECE_NONE)
            break;
        moved = true;
        account(executor, progress, op, &out->at, out->side, bytes, piece != PIECE_PART, now_ns);
        out->side->intended = out->side->live.payload_bytes;
        if (piece == PIECE_POSTED)
            progress->awaited = out->at.sequence;
    }
    if (!progress->posted || out->done < progress->awaited)
        return moved;
    progress->done = true;
    executor->sends_left--;
    return true;
}

/* A whole header has come: is it the message that is due? */
static bool verify_header(struct message_lane *lane, struct message_in *in,
                          const struct schedule_op *op)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    const struct message_header *here = &in->sink.header;
    struct message_header due = make_header(executor, op, &in->sink.script, in->sink.at.sequence);

    if (executor->in_barrier && (here->stream & BARRIER) != 0) {
        executor->bits |= here->stream & (uint8_t)~BARRIER;
        due.stream = here->stream;
    }
    if (memcmp(&due, here, sizeof due) == 0)
        return true;
    in->sink.side->corrupted++;
    err_set(&lane->lane.error, -EBADMSG,
            "rank %u sent message %u of %u bytes (kind %02x, %02x) where message %u of %u bytes "
            "was due",
            in->flow->src, ntohl(here->sequence), ntohl(here->length), here->kind, here->stream,
            ntohl(due.sequence), ntohl(due.length));
    return false;
}

/* Receives what has come of an open message. True: something moved. */
static bool pull(struct message_lane *lane, const struct schedule_op *op,
                 struct message_progress *progress, struct message_in *in, int64_t now_ns)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    enum message_piece piece = PIECE_MOVED;
    bool moved = false;

    while (!progress->done && piece != PIECE_PART && !message_lane_failed(lane)) {
        bool headed = in->sink.at.position == MESSAGE_HEADER_BYTES;
        uint32_t bytes = 0;

        piece = lane->hooks->receive_piece(in, executor->place + op->at + progress->moved,
                                           left_of(op, progress), &bytes);
        if (piece == PIECE_NONE)
            break;
        moved = true;
        if (!headed && in->sink.at.position == MESSAGE_HEADER_BYTES && !verify_header(lane, in, op))
            break;
        account(executor, progress, op, &in->sink.at, in->sink.side, bytes, piece != PIECE_PART,
                now_ns);
        progress->done = progress->posted;
        executor->receives_left -= progress->done;
        lane->lane.arrived_ns = now_ns;
    }
    return moved;
}

/* Moves what can move of the present step; a message waits for those before it of the same flow. */
static bool move_step(struct message_lane *lane, int64_t now_ns)
{
    const struct schedule_executor *executor = lane->lane.request.executor;
    bool moved = false;

    lane->round++;
    for (size_t i = executor->first; i < executor->messages; i++) {
        const struct schedule_op *op = &executor->ops[i];
        struct message_progress *progress = &lane->progress[i];
        bool sends = op->action == SCHEDULE_SEND;
        uint32_t flow = lane->flow_of[sends ? 0 : 1][op->peer] - 1;
        struct message_out *out = message_lane_out(lane, sends ? flow : 0);
        struct message_in *in = message_lane_in(lane, sends ? 0 : flow);
        uint64_t *held = sends ? &out->held_round : &in->held_round;

        if (progress->done || *held == lane->round)
            continue;
        moved = (sends ? push(lane, op, progress, out, now_ns)
                       : pull(lane, op, progress, in, now_ns)) ||
                moved;
        if (!progress->posted)
            *held = lane->round;
    }
    return moved;
}

bool message_schedule_run(struct message_lane *lane, int64_t now_ns)
{
    struct schedule_executor *executor = lane->lane.request.executor;

    lane->step_moved = false;
    for (unsigned step = 0; step < STEPS_MOST && !message_lane_failed(lane); step++) {
        bool moved;

        if (executor_step_done(executor)) {
            if (executor_next(executor) == EXECUTOR_WRONG)
                lane->lane.error = executor->error;
            memset(&lane->progress[executor->first], 0,
                   (executor->messages - executor->first) * sizeof *lane->progress);
        }
        lane->stepping = !executor->ended;
        if (executor->busy || executor->ended)
            return executor->busy;
        moved = move_step(lane, now_ns);
        lane->step_moved |= moved;
        if (!moved && !executor_step_done(executor))
            return false;
    }
    return !message_lane_failed(lane);
}
