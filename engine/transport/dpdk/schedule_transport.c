/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_transport.h"

#include "messages_send.h"
#include "schedule_receive.h"

#include <errno.h>
#include <stdlib.h>

#define BEATS 4 /* looks at what is due in the time that nothing is lost */
#define BEAT_LEAST_NS NS_PER_MS
#define END_LOOK_NS (5 * NS_PER_MS)

/* --- preparation --- */

static int check(const struct lane_request *request, struct err *err)
{
    const char *port = request->port->conf->name;
    uint64_t most = request->executor->most_bytes;

    if (request->phase->schedule.compute)
        return err_set(
            err, -EINVAL,
            "%s: compute needs the ranks' data in the messages, and frames of dpdk carry "
            "none: use tcp or verbs, or leave compute out",
            port);
    if (most > MESSAGE_BYTES_MAX)
        return err_set(err, -EINVAL, "%s: dpdk carries messages of %u bytes at most, not of %llu",
                       port, MESSAGE_BYTES_MAX, (unsigned long long)most);
    return 0;
}

static void open_step(struct lane *base, int64_t now_ns);

static int make(struct dpdk_lane *lane, struct err *err)
{
    static const struct schedule_hooks hooks = {.open = open_step};
    const struct lane_request *request = &lane->lane.request;
    struct schedule_lane *schedule = calloc(1, sizeof *schedule);
    int64_t timeout_ns = pingpong_timeout_ns(&lane->messages->game, 0);
    int rc = -ENOMEM;

    if (schedule == NULL)
        return err_set(err, rc, "%s: out of memory", request->port->conf->name);
    lane->messages->schedule_lane = schedule;
    schedule->executor = request->executor;
    schedule->beat_ns = RTE_MAX(timeout_ns / BEATS, BEAT_LEAST_NS);
    schedule->sending = calloc((size_t)request->send_count + 1, sizeof *schedule->sending);
    if (schedule_loop_make(&schedule->loop, &lane->lane, &hooks) == 0 && schedule->sending != NULL)
        rc = schedule_sources_make(lane);
    return rc == 0 ? 0 : err_set(err, rc, "%s: out of memory", request->port->conf->name);
}

static void free_schedule(struct messages *messages)
{
    struct schedule_lane *schedule = messages->schedule_lane;

    if (schedule == NULL)
        return;
    schedule_sources_free(messages);
    free(schedule->sending);
    schedule_loop_free(&schedule->loop);
    free(schedule);
}

/* --- sending --- */

static void begin_send(struct dpdk_lane *lane, uint32_t place)
{
    const struct schedule_lane *schedule = lane->messages->schedule_lane;
    const struct step_message *message = &schedule->executor->sends[place];
    struct peer_channel *channel = &lane->messages->channels[message->flow];
    struct tx_message *out = &channel->out;
    uint32_t says = SEGMENT_BARRIER | schedule->executor->bits;

    schedule->sending[message->flow] = place;
    out->number = out->next_number++;
    out->bytes = (uint32_t)message->bytes;
    out->segments = message_segments(&channel->segmentation, out->bytes);
    out->next = 0;
    out->says = schedule->executor->in_barrier ? says : 0;
    messages_enqueue(lane, channel);
}

static void message_sent(struct dpdk_lane *lane, struct peer_channel *channel)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;
    uint32_t flow = (uint32_t)(channel - lane->messages->channels);
    uint32_t next = schedule->executor->sends[schedule->sending[flow]].next;

    schedule->executor->sends_left--;
    if (next != EXECUTOR_NONE)
        begin_send(lane, next);
}

/* --- when nothing is sent --- */

/* Flows that rest say so. */
static void look_at_sends(struct dpdk_lane *lane, int64_t now_ns)
{
    struct messages *messages = lane->messages;

    for (uint32_t i = 0; i < messages->sends; i++) {
        struct peer_channel *channel = &messages->channels[i];

        if (channel->queued || now_ns - channel->sent_ns < messages->schedule_lane->beat_ns)
            continue;
        channel->out.mark = true;
        messages_enqueue(lane, channel);
    }
}

static void look_at_ends(struct dpdk_lane *lane, int64_t now_ns)
{
    struct messages *messages = lane->messages;

    for (uint32_t i = 0; i < messages->sends; i++) {
        struct peer_channel *channel = &messages->channels[i];

        if (!channel->ended && (channel->end_marks == 0 || now_ns >= channel->due_ns))
            messages_say_end(lane, channel, now_ns);
    }
}

static int64_t look(struct dpdk_lane *lane, int64_t now_ns)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;

    if (now_ns < schedule->look_ns)
        return schedule->look_ns;
    if (!schedule->executor->ended) {
        schedule_look(lane, now_ns);
        look_at_sends(lane, now_ns);
        schedule->look_ns = now_ns + (lane->messages->coming ? BEAT_LEAST_NS : schedule->beat_ns);
    }
    if (schedule->executor->ended) {
        look_at_ends(lane, now_ns);
        schedule->look_ns = now_ns + END_LOOK_NS;
    }
    return schedule->look_ns;
}

/* --- a step --- */

static void open_step(struct lane *base, int64_t now_ns)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    const struct schedule_executor *executor = lane->messages->schedule_lane->executor;

    for (uint32_t i = 0; i < executor->send_count; i++)
        if (executor->sends[i].after == EXECUTOR_NONE)
            begin_send(lane, i);
    schedule_await(lane, now_ns);
}

static void begin(struct dpdk_lane *lane, int64_t now_ns)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;

    for (uint32_t i = 0; i < lane->lane.request.receive_count; i++)
        schedule->sources[i].heard_ns = now_ns;
    for (uint32_t i = 0; i < lane->messages->sends; i++)
        lane->messages->channels[i].sent_ns = now_ns;
    schedule->look_ns = now_ns + schedule->beat_ns;
}

static int64_t send_messages(struct dpdk_lane *lane, int64_t now_ns)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;
    const struct schedule_executor *executor = schedule->executor;
    int64_t look_ns, send_ns = CLOCK_NEVER;

    if (!executor->begun)
        begin(lane, now_ns);
    look_ns = look(lane, now_ns);
    for (unsigned turn = 0; turn < SCHEDULE_TURNS_MAX; turn++) {
        bool ended = executor->ended;

        schedule_loop_advance(&schedule->loop, now_ns);
        if (executor->ended && !ended)
            schedule->look_ns = now_ns;
        look_ns = RTE_MIN(look_ns, schedule->look_ns);
        send_ns = messages_flush(lane, now_ns);
        if (!executor_step_done(executor) || executor->busy)
            break;
    }
    return executor_step_done(executor) ? now_ns : RTE_MIN(look_ns, send_ns);
}

/* --- what was measured --- */

static unsigned flow_metrics(const struct dpdk_lane *lane, const struct peer_channel *channel,
                             struct flow_metric *out, unsigned room)
{
    const struct messages *messages = lane->messages;
    const struct schedule_source *source;

    if (channel->source || room < 2)
        return 0;
    source = &messages->schedule_lane->sources[channel - messages->channels - messages->sends];
    out[0] = (struct flow_metric){"messages_lost", (double)source->lost};
    out[1] = (struct flow_metric){"frames_too_early", (double)source->early};
    return 2;
}

const struct schedule_messages dpdk_schedule = {
    .check = check,
    .make = make,
    .free = free_schedule,
    .flow_metrics = flow_metrics,
    .send = send_messages,
    .message_sent = message_sent,
    .receive = schedule_receive,
    .partner_ended = schedule_partner_ended,
};
