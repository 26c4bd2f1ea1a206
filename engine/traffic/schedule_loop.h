/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loop that carries a schedule over a transport. The executor (schedule_executor.h) says which
 * messages are open; this loop says which of them may move now, and goes on to the next step. How
 * bytes travel is the transport's, in its hooks:
 *
 *     schedule_loop_run      a transport that moves one message at a time, by `send` and `receive`
 *     schedule_loop_advance  a transport that moves all open messages by itself
 *
 * Messages of one flow move in the order in which they are listed.
 */
#ifndef ENGINE_SCHEDULE_LOOP_H
#define ENGINE_SCHEDULE_LOOP_H

#include "schedule_executor.h"

#define SCHEDULE_TURNS_MAX 64u /* steps in one poll */

/* How far an open message has come. */
struct message_progress {
    uint64_t moved;   /* bytes of payload */
    uint64_t awaited; /* the transport's: what tells that it is handed over */
    bool posted;      /* all of it: the next message of its flow may follow */
    bool done;        /* handed over, or received */
};

struct schedule_hooks {
    /* The messages of a step, or of a barrier's round, are open. NULL: nothing to do. */
    void (*open)(struct lane *lane, int64_t now_ns);
    /* Moves the open message at `place` as far as the transport takes it, or as it has come. Notes
     * that by schedule_sent, schedule_handed_over and schedule_received. True: something moved. */
    bool (*send)(struct lane *lane, uint32_t place, int64_t now_ns);
    bool (*receive)(struct lane *lane, uint32_t place, int64_t now_ns);
};

struct schedule_loop {
    struct lane *lane;
    struct schedule_executor *executor;
    const struct schedule_hooks *hooks;
    struct message_progress *sends; /* as the executor's */
    struct message_progress *receives;
};

enum schedule_progress {
    SCHEDULE_WAITS, /* nothing moved */
    SCHEDULE_MOVED, /* something did, and now it waits, or has ended */
    SCHEDULE_BUSY,  /* there is more to do at once */
};

/* For the schedule of the lane's request. -ENOMEM; free it then, too. */
int schedule_loop_make(struct schedule_loop *loop, struct lane *lane,
                       const struct schedule_hooks *hooks);
void schedule_loop_free(struct schedule_loop *loop);

/* Begins the schedule. If the present step is done: takes up what is next, and opens its messages.
 * A wrong result is the lane's error. */
void schedule_loop_advance(struct schedule_loop *loop, int64_t now_ns);
/* Goes on as far as messages move, through SCHEDULE_TURNS_MAX steps at most. */
enum schedule_progress schedule_loop_run(struct schedule_loop *loop, int64_t now_ns);

static inline bool schedule_loop_failed(const struct schedule_loop *loop)
{
    return loop->lane->error.text[0] != '\0';
}

/* --- for the hooks --- */

/* So many bytes of a message were sent, `all`: its last ones. */
static inline void schedule_sent(struct schedule_loop *loop, uint32_t place, struct flow_side *side,
                                 uint64_t bytes, bool all, int64_t now_ns)
{
    loop->sends[place].moved += bytes;
    loop->sends[place].posted = all;
    executor_count(loop->executor, side, bytes, all);
    side->intended = side->live.payload_bytes;
    executor_note_time(side, now_ns);
}

/* The memory of a message that was sent may be used again. */
static inline void schedule_handed_over(struct schedule_loop *loop, uint32_t place)
{
    loop->sends[place].done = true;
    loop->executor->sends_left--;
}

/* So many bytes of a message have come. */
static inline void schedule_received(struct schedule_loop *loop, uint32_t place,
                                     struct flow_side *side, uint64_t bytes, bool all,
                                     int64_t now_ns)
{
    struct message_progress *progress = &loop->receives[place];

    progress->moved += bytes;
    progress->posted = progress->done = all;
    loop->executor->receives_left -= all;
    executor_count(loop->executor, side, bytes, all);
    executor_note_time(side, now_ns);
    loop->lane->arrived_ns = now_ns;
}

#endif
