/* SPDX-License-Identifier: BSD-3-Clause */
#include "schedule_receive.h"

#include "messages_receive.h"

#include <errno.h>
#include <stdlib.h>

#define KEPT_BYTES ((size_t)32 << 20) /* for what comes ahead, all flows of a lane */
#define END_GRACE_NS (10 * NS_PER_MS) /* what was sent before an end mark may still come */
#define GONE_NS (30 * NS_PER_S)       /* whoever says nothing for so long is not there any more */

/* --- preparation --- */

/* Two passes: how many messages a flow has, and how long they are. */
static void count_barrier_round(void *context, const struct step_message *message)
{
    ((struct reassembly_cycle *)context)[message->flow].barrier_rounds++;
}

static void count_message(void *context, const struct step_message *message)
{
    ((struct reassembly_cycle *)context)[message->flow].count++;
}

static void list_message(void *context, const struct step_message *message)
{
    struct reassembly_cycle *cycle = &((struct reassembly_cycle *)context)[message->flow];

    cycle->bytes[cycle->count++] = (uint32_t)message->bytes;
}

static int list_messages(const struct schedule_executor *executor, struct reassembly_cycle *cycles,
                         uint32_t count)
{
    executor_each_receive(executor, true, count_barrier_round, cycles);
    executor_each_receive(executor, false, count_message, cycles);
    for (uint32_t i = 0; i < count; i++) {
        cycles[i].bytes = calloc((size_t)cycles[i].count + 1, sizeof *cycles[i].bytes);
        if (cycles[i].bytes == NULL)
            return -ENOMEM;
        cycles[i].batch = executor->phase->schedule.batch_warmup + executor->phase->schedule.batch;
        cycles[i].count = 0;
    }
    executor_each_receive(executor, false, list_message, cycles);
    return 0;
}

int schedule_sources_make(struct dpdk_lane *lane)
{
    const struct messages *messages = lane->messages;
    struct schedule_lane *schedule = messages->schedule_lane;
    uint32_t count = lane->lane.request.receive_count;
    struct reassembly_cycle *cycles = calloc((size_t)count + 1, sizeof *cycles);
    int rc = -ENOMEM;

    schedule->sources = calloc((size_t)count + 1, sizeof *schedule->sources);
    if (cycles != NULL && schedule->sources != NULL)
        rc = list_messages(schedule->executor, cycles, count);
    for (uint32_t i = 0; i < count && cycles != NULL && schedule->sources != NULL; i++) {
        int made = reassembly_window_make(&schedule->sources[i].window, &cycles[i],
                                          &messages->channels[messages->sends + i].segmentation,
                                          KEPT_BYTES / count);

        rc = rc == 0 ? made : rc;
    }
    free(cycles);
    return rc;
}

void schedule_sources_free(struct messages *messages)
{
    struct schedule_lane *schedule = messages->schedule_lane;

    for (uint32_t i = 0; schedule->sources != NULL && messages->sends + i < messages->count; i++)
        reassembly_window_free(&schedule->sources[i].window);
    free(schedule->sources);
}

/* --- receiving --- */

/* The message that was waited for is whole, and so may be those behind it. */
static void close_whole(struct dpdk_lane *lane, struct schedule_source *source, int64_t now_ns)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;
    const struct peer_channel *channel =
        &lane->messages->channels[lane->messages->sends + (source - schedule->sources)];

    while (reassembly_window_waits(&source->window) && reassembly_window_whole(&source->window)) {
        const struct reassembly_message *message =
            reassembly_window_message(&source->window, source->window.base);

        if (message->in_barrier)
            executor_merge_bits(schedule->executor, message->bits);
        else
            channel->got->live.messages++;
        reassembly_window_close(&source->window);
        source->since_ns = now_ns;
        schedule->executor->receives_left--;
    }
}

void schedule_await(struct dpdk_lane *lane, int64_t now_ns)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;
    const struct schedule_executor *executor = schedule->executor;

    for (uint32_t i = 0; i < executor->receive_count; i++) {
        struct schedule_source *source = &schedule->sources[executor->receives[i].flow];

        if (!reassembly_window_waits(&source->window))
            source->since_ns = now_ns;
        source->window.opened++;
        close_whole(lane, source, now_ns);
        if (reassembly_window_waits(&source->window) && source->ended_ns != 0)
            schedule->look_ns = now_ns;
    }
}

/* Whether it is a frame of this message, as both ends know it. */
static bool fits(const struct reassembly_window *window, const struct reassembly_message *message,
                 const struct rx_segment *rx)
{
    const struct segmentation *segmentation = &window->segmentation;

    if (message->in_barrier != (rx->segment >= SEGMENT_BARRIER))
        return false;
    if (message->in_barrier)
        return rx->segment <= (SEGMENT_BARRIER | SEGMENT_BARRIER_BITS) &&
               rx->length == message_length(segmentation, 0, 0);
    return rx->segment < message_segments(segmentation, message->bytes) &&
           rx->length == message_length(segmentation, message->bytes, rx->segment);
}

static void take_barrier_segment(struct schedule_source *source, uint64_t number,
                                 const struct rx_segment *rx)
{
    reassembly_window_message(&source->window, number)->bits =
        (uint8_t)(rx->segment & SEGMENT_BARRIER_BITS);
    (void)reassembly_window_take(&source->window, number, 0);
}

static void take_segment(struct schedule_source *source, uint64_t number,
                         const struct rx_segment *rx)
{
    struct flow_side *side = rx->channel->got;
    enum sequence_verdict verdict = reassembly_window_take(&source->window, number, rx->segment);

    side->late += verdict == SEQUENCE_LATE;
    side->duplicated += verdict == SEQUENCE_DUPLICATE;
    side->reordered += verdict == SEQUENCE_REORDERED;
    if (verdict == SEQUENCE_FRESH || verdict == SEQUENCE_REORDERED)
        messages_delivered(rx, reassembly_window_message(&source->window, number)->bytes);
}

/* How many messages its source has handed over: one that was not is waited for anew. */
static void take_mark(struct schedule_source *source, const struct rx_segment *rx)
{
    if ((int32_t)(rx->wire - (uint32_t)source->window.base) <= 0)
        source->since_ns = rx->at_ns;
}

static void take_message(struct dpdk_lane *lane, struct schedule_source *source,
                         const struct rx_segment *rx)
{
    struct flow_side *side = rx->channel->got;
    bool beside = rx->segment >= SEGMENT_BARRIER;
    uint64_t number = 0;
    enum reassembly_place place = reassembly_window_find(&source->window, rx->wire, &number);

    source->early += place == WINDOW_EARLY;
    if (place != WINDOW_KEPT) {
        side->late += !beside;
        return;
    }
    if (!fits(&source->window, reassembly_window_message(&source->window, number), rx)) {
        side->corrupted++;
        return;
    }
    if (beside)
        take_barrier_segment(source, number, rx);
    else
        take_segment(source, number, rx);
    if (number == source->window.base)
        source->since_ns = rx->at_ns;
    close_whole(lane, source, rx->at_ns);
}

void schedule_receive(struct dpdk_lane *lane, const struct rx_segment *rx)
{
    const struct messages *messages = lane->messages;
    struct schedule_source *source;

    if (rx->channel->source) { /* nobody answers a step's message */
        rx->channel->got->corrupted++;
        return;
    }
    source = &messages->schedule_lane->sources[rx->channel - messages->channels - messages->sends];
    source->heard_ns = rx->at_ns;
    if (rx->segment == SEGMENT_MARK)
        take_mark(source, rx);
    else
        take_message(lane, source, rx);
}

void schedule_partner_ended(struct dpdk_lane *lane, const struct peer_channel *channel,
                            int64_t now_ns)
{
    const struct messages *messages = lane->messages;
    struct schedule_source *source =
        &messages->schedule_lane->sources[channel - messages->channels - messages->sends];

    source->heard_ns = now_ns;
    if (source->ended_ns == 0)
        source->ended_ns = now_ns;
    messages->schedule_lane->look_ns =
        RTE_MIN(messages->schedule_lane->look_ns, source->ended_ns + END_GRACE_NS);
}

/* --- what is lost --- */

static int64_t due_ns(const struct dpdk_lane *lane, const struct schedule_source *source)
{
    uint32_t bytes = reassembly_window_message(&source->window, source->window.base)->bytes;
    int64_t due = source->since_ns + pingpong_timeout_ns(&lane->messages->game, bytes);

    return source->ended_ns != 0 ? RTE_MIN(due, source->ended_ns + END_GRACE_NS) : due;
}

/* Who waits for one that has ended has missed that it is over: in the barrier it says so to the
 * others, too, elsewhere there is nobody to go on with. And who loses messages after the end of its
 * time, and has measured something, need not find the end of its batch. */
static void end_if_over(const struct dpdk_lane *lane, const struct schedule_source *source,
                        int64_t now_ns)
{
    struct schedule_executor *executor = lane->messages->schedule_lane->executor;
    bool late = phase_is_timed(lane->lane.request.phase) && now_ns >= lane->lane.stop_ns &&
                executor->execution.batches > 0;

    if (executor->in_barrier && source->ended_ns != 0)
        executor_merge_bits(executor, EXECUTOR_STOP);
    else if (!executor->in_barrier && (source->ended_ns != 0 || late))
        executor_abort(executor);
}

static void give_up(struct dpdk_lane *lane, struct schedule_source *source, int64_t now_ns)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;
    const struct lane_request *request = &lane->lane.request;

    source->lost++;
    schedule->executor->execution.messages_lost++;
    schedule->executor->receives_left--;
    reassembly_window_close(&source->window);
    source->since_ns = now_ns;
    close_whole(lane, source, now_ns);
    end_if_over(lane, source, now_ns);
    if (now_ns - source->heard_ns < GONE_NS)
        return;
    executor_abort(schedule->executor);
    err_set(&lane->lane.error, -ETIMEDOUT, "%s: rank %u has sent nothing for %lld s",
            request->port->conf->name, request->receives[source - schedule->sources].src,
            (long long)(GONE_NS / NS_PER_S));
}

void schedule_look(struct dpdk_lane *lane, int64_t now_ns)
{
    struct schedule_lane *schedule = lane->messages->schedule_lane;
    bool any = false;

    if (lane->messages->coming) /* it may lie behind what has come */
        return;
    for (uint32_t i = 0; i < lane->lane.request.receive_count && !schedule->executor->ended; i++) {
        struct schedule_source *source = &schedule->sources[i];

        if (!reassembly_window_waits(&source->window) || now_ns < due_ns(lane, source))
            continue;
        give_up(lane, source, now_ns);
        any = true;
    }
    schedule->executor->execution.timeouts += any;
}
