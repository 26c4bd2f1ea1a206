/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_loop.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int schedule_loop_make(struct schedule_loop *loop, struct lane *lane,
                       const struct schedule_hooks *hooks)
{
    struct schedule_executor *executor = lane->request.executor;

    *loop = (struct schedule_loop){.lane = lane, .executor = executor, .hooks = hooks};
    loop->sends = calloc((size_t)executor->most_sends + 1, sizeof *loop->sends);
    loop->receives = calloc((size_t)executor->most_receives + 1, sizeof *loop->receives);
    return loop->sends == NULL || loop->receives == NULL ? -ENOMEM : 0;
}

void schedule_loop_free(struct schedule_loop *loop)
{
    free(loop->sends);
    free(loop->receives);
}

static void open_step(struct schedule_loop *loop, int64_t now_ns)
{
    const struct schedule_executor *executor = loop->executor;

    memset(loop->sends, 0, executor->send_count * sizeof *loop->sends);
    memset(loop->receives, 0, executor->receive_count * sizeof *loop->receives);
    if (loop->hooks->open != NULL)
        loop->hooks->open(loop->lane, now_ns);
}

void schedule_loop_advance(struct schedule_loop *loop, int64_t now_ns)
{
    struct schedule_executor *executor = loop->executor;
    enum executor_state state;

    if (!executor->begun) {
        executor_begin(executor);
        open_step(loop, now_ns);
    }
    if (!executor_step_done(executor))
        return;
    state = executor_next(executor);
    if (state == EXECUTOR_OPEN)
        open_step(loop, now_ns);
    if (state == EXECUTOR_WRONG)
        loop->lane->error = executor->error;
}

/* A message waits for the one before it of the same flow. */
static bool may_move(const struct step_message *messages, const struct message_progress *progress,
                     uint32_t place)
{
    uint32_t after = messages[place].after;

    return !progress[place].done && (after == EXECUTOR_NONE || progress[after].posted);
}

static bool send_all(struct schedule_loop *loop, int64_t now_ns)
{
    const struct schedule_executor *executor = loop->executor;
    bool moved = false;

    for (uint32_t i = 0; executor->sends_left > 0 && i < executor->send_count; i++)
        if (may_move(executor->sends, loop->sends, i))
            moved = loop->hooks->send(loop->lane, i, now_ns) || moved;
    return moved;
}

static bool receive_all(struct schedule_loop *loop, int64_t now_ns)
{
    const struct schedule_executor *executor = loop->executor;
    bool moved = false;

    for (uint32_t i = 0; executor->receives_left > 0 && i < executor->receive_count; i++)
        if (may_move(executor->receives, loop->receives, i))
            moved = loop->hooks->receive(loop->lane, i, now_ns) || moved;
    return moved;
}

enum schedule_progress schedule_loop_run(struct schedule_loop *loop, int64_t now_ns)
{
    const struct schedule_executor *executor = loop->executor;
    enum schedule_progress progress = SCHEDULE_WAITS;

    for (unsigned turn = 0; turn < SCHEDULE_TURNS_MAX && !schedule_loop_failed(loop); turn++) {
        bool sent, received;

        schedule_loop_advance(loop, now_ns);
        if (executor->busy)
            return SCHEDULE_BUSY;
        if (executor->ended)
            return SCHEDULE_MOVED;
        sent = send_all(loop, now_ns);
        received = receive_all(loop, now_ns);
        if (sent || received)
            progress = SCHEDULE_MOVED;
        else if (!executor_step_done(executor))
            return progress;
    }
    return schedule_loop_failed(loop) ? SCHEDULE_WAITS : SCHEDULE_BUSY;
}
