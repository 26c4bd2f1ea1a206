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
#include <stdlib.h>
#include <string.h>

#define STEPS_MOST 64u /* in one poll */
#define BARRIER 0x80u  /* in a header's stream: a barrier's message, with its bits */

/* How far an open message has come. */
struct progress {
    uint64_t moved;   /* bytes of payload */
    uint64_t awaited; /* of the end's `done`, until it is handed over */
    bool posted;      /* all of it: the next message of its flow may follow */
    bool done;        /* handed over, or received */
};

struct message_schedule {
    struct progress *sends; /* as the executor's */
    struct progress *receives;
};

int message_schedule_make(struct message_lane *lane)
{
    const struct schedule_executor *executor = lane->lane.request.executor;
    struct message_schedule *schedule = calloc(1, sizeof *schedule);

    if (schedule == NULL)
        return -ENOMEM;
    lane->schedule = schedule;
    lane->stepping = true;
    schedule->sends = calloc((size_t)executor->most_sends + 1, sizeof *schedule->sends);
    schedule->receives = calloc((size_t)executor->most_receives + 1, sizeof *schedule->receives);
    return schedule->sends == NULL || schedule->receives == NULL ? -ENOMEM : 0;
}

void message_schedule_free(struct message_lane *lane)
{
    if (lane->schedule == NULL)
        return;
    free(lane->schedule->sends);
    free(lane->schedule->receives);
    free(lane->schedule);
}

static struct message_header make_header(const struct schedule_executor *executor,
                                         const struct step_message *message,
                                         const struct message_script *script, uint64_t sequence)
{
    return (struct message_header){
        .kind = MESSAGE_BLOCK,
        .stream = executor->in_barrier ? (uint8_t)(BARRIER | executor->bits) : 0,
        .tag = htons(script->tag),
        .sequence = htonl((uint32_t)sequence),
        .length = htonl((uint32_t)message->bytes),
        .src = htons(script->src),
        .dst = htons(script->dst),
    };
}

/* Payload of a message that has yet to move; a piece may be less. */
static uint32_t left_of(const struct step_message *message, const struct progress *progress)
{
    uint64_t left = message->bytes - progress->moved;

    return left < UINT32_MAX ? (uint32_t)left : UINT32_MAX;
}

/* Accounts what moved of a message; the end mark tells its place in the stream. */
static void account(struct schedule_executor *executor, struct progress *progress,
                    const struct step_message *message, struct message_cursor *at,
                    struct flow_side *side, uint32_t bytes, bool whole, int64_t now_ns)
{
    progress->moved += bytes;
    at->before += bytes;
    if (whole) {
        at->position = 0;
        at->sequence++;
        at->before += MESSAGE_HEADER_BYTES;
    }
    progress->posted = whole && progress->moved == message->bytes;
    executor_count(executor, side, bytes, progress->posted);
    message_side_time(side, now_ns);
}

/* Sends what the transport takes of an open message. True: something moved. */
static bool push(struct message_lane *lane, uint32_t place, int64_t now_ns)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    const struct step_message *message = &executor->sends[place];
    struct progress *progress = &lane->schedule->sends[place];
    struct message_out *out = message_lane_out(lane, message->flow);
    enum message_piece piece = PIECE_MOVED;
    bool moved = false;

    while (!progress->posted && piece != PIECE_PART && !message_lane_failed(lane)) {
        struct message_header header =
            make_header(executor, message, &out->script, out->at.sequence);
        uint32_t bytes = 0;

        piece = lane->hooks->send_piece(out, &header,
                                        executor_address(executor, message) + progress->moved,
                                        left_of(message, progress), &bytes);
        if (piece == PIECE_NONE)
            break;
        moved = true;
        account(executor, progress, message, &out->at, out->side, bytes, piece != PIECE_PART,
                now_ns);
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
                          const struct step_message *message)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    const struct message_header *here = &in->sink.read.header;
    struct message_header due =
        make_header(executor, message, &in->sink.script, in->sink.at.sequence);

    if (executor->in_barrier && (here->stream & BARRIER) != 0) {
        executor_merge_bits(executor, here->stream & (uint8_t)~BARRIER);
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
static bool pull(struct message_lane *lane, uint32_t place, int64_t now_ns)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    const struct step_message *message = &executor->receives[place];
    struct progress *progress = &lane->schedule->receives[place];
    struct message_in *in = message_lane_in(lane, message->flow);
    enum message_piece piece = PIECE_MOVED;
    bool moved = false;

    while (!progress->done && piece != PIECE_PART && !message_lane_failed(lane)) {
        bool headed = in->sink.at.position == MESSAGE_HEADER_BYTES;
        uint32_t bytes = 0;

        piece =
            lane->hooks->receive_piece(in, executor_address(executor, message) + progress->moved,
                                       left_of(message, progress), &bytes);
        if (piece == PIECE_NONE)
            break;
        moved = true;
        if (!headed && in->sink.at.position == MESSAGE_HEADER_BYTES &&
            !verify_header(lane, in, message))
            break;
        account(executor, progress, message, &in->sink.at, in->sink.side, bytes,
                piece != PIECE_PART, now_ns);
        progress->done = progress->posted;
        executor->receives_left -= progress->done;
        lane->lane.arrived_ns = now_ns;
    }
    return moved;
}

static void open_step(struct message_lane *lane)
{
    const struct schedule_executor *executor = lane->lane.request.executor;

    memset(lane->schedule->sends, 0, executor->send_count * sizeof *lane->schedule->sends);
    memset(lane->schedule->receives, 0, executor->receive_count * sizeof *lane->schedule->receives);
}

/* Begins the schedule; takes up what is next where the present step is done. */
static void advance(struct message_lane *lane)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    enum executor_state state;

    if (!executor->begun) {
        executor_begin(executor);
        open_step(lane);
    }
    if (!executor_step_done(executor))
        return;
    state = executor_next(executor);
    if (state == EXECUTOR_OPEN)
        open_step(lane);
    if (state == EXECUTOR_WRONG)
        lane->lane.error = executor->error;
}

/* A message waits for the one before it of the same flow. */
static bool may_move(const struct step_message *messages, const struct progress *progress,
                     uint32_t place)
{
    uint32_t after = messages[place].after;

    return !progress[place].done && (after == EXECUTOR_NONE || progress[after].posted);
}

bool message_schedule_run(struct message_lane *lane, int64_t now_ns)
{
    struct schedule_executor *executor = lane->lane.request.executor;
    const struct message_schedule *schedule = lane->schedule;

    lane->step_moved = false;
    for (unsigned step = 0; step < STEPS_MOST && !message_lane_failed(lane); step++) {
        bool moved = false;

        advance(lane);
        lane->stepping = !executor->ended;
        if (executor->busy || executor->ended)
            return executor->busy;
        for (uint32_t i = 0; executor->sends_left > 0 && i < executor->send_count; i++)
            if (may_move(executor->sends, schedule->sends, i))
                moved = push(lane, i, now_ns) || moved;
        for (uint32_t i = 0; executor->receives_left > 0 && i < executor->receive_count; i++)
            if (may_move(executor->receives, schedule->receives, i))
                moved = pull(lane, i, now_ns) || moved;
        lane->step_moved |= moved;
        if (!moved && !executor_step_done(executor))
            return false;
    }
    return !message_lane_failed(lane);
}
