/* SPDX-License-Identifier: BSD-3-Clause */
#include "messages.h"

#include "partner.h"
#include "prefill.h"

#include <errno.h>
#include <stdlib.h>

/* Sent at most: a partner that answers none of them is not there any more. */
#define END_MARKS 20u
#define END_MARK_NS (10 * NS_PER_MS)

/* --- making --- */

static uint32_t greatest(const struct phase *phase)
{
    uint32_t most = phase->pingpong.max_size;

    for (uint32_t i = 0; phase->pingpong.max_size == 0 && i < phase->size_count; i++)
        most = phase->sizes[i] > most ? phase->sizes[i] : most;
    return most;
}

static int check_sizes(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    uint32_t most = greatest(phase);

    for (uint32_t i = 0; phase->pingpong.max_size == 0 && i < phase->size_count; i++)
        if (phase->sizes[i] == 0)
            return err_set(err, -EINVAL, "%s: a message has 1 byte at least",
                           request->port->conf->name);
    if (most > MESSAGE_BYTES_MAX)
        return err_set(err, -EINVAL, "%s: dpdk carries messages of %u bytes at most, not of %u",
                       request->port->conf->name, MESSAGE_BYTES_MAX, most);
    return 0;
}

static int check(const struct lane_request *request, const struct schedule_messages *schedule,
                 struct err *err)
{
    const struct transport_port *port = request->port;

    if (port->queue_count > 1)
        return err_set(err, -EINVAL,
                       "%s: a ping-pong uses one queue, and the port has %u: set queues: 1",
                       port->conf->name, port->queue_count);
    return schedule != NULL ? schedule->check(request, err) : check_sizes(request, err);
}

/* Frames are as large as the two ports take. */
static int make_channel(struct dpdk_lane *lane, struct peer_channel *channel,
                        struct lane_flow *flow, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    bool source = flow->src == lane->lane.request.rank;
    uint16_t there = htobe16(lane->shape.tag), back = htobe16(message_answer_tag(lane->shape.tag));
    uint32_t frame_bytes = 0;
    int rc;

    *channel = (struct peer_channel){
        .flow = flow,
        .source = source,
        .tags = {source ? there : back, source ? back : there},
        .drawn = pingpong_drawn(phase, flow),
        .due_ns = CLOCK_NEVER,
    };
    channel->sent = source ? flow->side : &channel->answers;
    channel->got = source ? &channel->answers : flow->side;
    rc = partner_read(lane, flow, source ? flow->dst : flow->src, &channel->ends[1], &frame_bytes,
                      err);
    if (rc != 0)
        return rc;
    frame_bytes =
        RTE_MIN(RTE_MIN(frame_bytes, lane->port->frame_max) + (lane->shape.vlan ? FRAME_VLAN : 0),
                FRAME_SIZE_MAX);
    if (!segmentation_make(&channel->segmentation, &lane->shape, frame_bytes))
        return err_set(err, -EINVAL, "%s: frames of %u bytes have no room for a message",
                       lane->port->conf->name, frame_bytes);
    return reassembly_make(&channel->in, message_segments(&channel->segmentation, greatest(phase)));
}

static int make_channels(struct dpdk_lane *lane, struct err *err)
{
    struct lane_request *request = &lane->lane.request;
    struct messages *messages = lane->messages;

    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        bool source = i < request->send_count;
        struct lane_flow *flow =
            source ? &request->sends[i] : &request->receives[i - request->send_count];
        uint32_t partner = source ? flow->dst : flow->src;
        int rc = partner < request->ranks
                     ? make_channel(lane, &messages->channels[i], flow, err)
                     : err_set(err, -EINVAL, "%s: a flow's partner is not there",
                               lane->port->conf->name);

        if (rc != 0)
            return rc;
        (source ? messages->source_of : messages->destination_of)[partner] = i + 1;
        messages->count++;
    }
    return 0;
}

static bool sound_l2(const struct frame_check *check, const struct frame_expect *expect,
                     const uint8_t *frame)
{
    return frame_headers_l2(check, expect, frame);
}

static bool sound_ipv4(const struct frame_check *check, const struct frame_expect *expect,
                       const uint8_t *frame)
{
    return frame_headers_ipv4(check, expect, frame);
}

static bool sound_ipv6(const struct frame_check *check, const struct frame_expect *expect,
                       const uint8_t *frame)
{
    return frame_headers_ipv6(check, expect, frame);
}

static void describe(struct dpdk_lane *lane)
{
    const struct peer_channel *first = lane->messages->channels;

    snprintf(
        lane->lane.variant, sizeof lane->lane.variant, "messages in frames of up to %u bytes, %s",
        lane->messages->count > 0 ? first->segmentation.head + first->segmentation.room + FRAME_FCS
                                  : 0,
        frame_kind_name(lane->shape.kind));
}

int messages_make(struct dpdk_lane *lane, const struct schedule_messages *schedule, struct err *err)
{
    static bool (*const variants[])(const struct frame_check *, const struct frame_expect *,
                                    const uint8_t *) = {
        [HEADER_L2] = sound_l2, [HEADER_IPV4_UDP] = sound_ipv4, [HEADER_IPV6_UDP] = sound_ipv6};
    const struct lane_request *request = &lane->lane.request;
    uint32_t count = request->send_count + request->receive_count;
    struct messages *messages;
    int rc = check(request, schedule, err);

    if (rc != 0)
        return rc;
    messages = lane->messages = calloc(1, sizeof *messages);
    if (messages == NULL)
        return -ENOMEM;
    messages->schedule = schedule;
    messages->sends = messages->open = request->send_count;
    messages->headers_sound = variants[lane->shape.kind];
    messages->channels = calloc(count + 1, sizeof *messages->channels);
    messages->queue = calloc(count + 1, sizeof *messages->queue);
    messages->source_of = calloc(PATTERN_RANKS_MAX, sizeof *messages->source_of);
    messages->destination_of = calloc(PATTERN_RANKS_MAX, sizeof *messages->destination_of);
    if (messages->channels == NULL || messages->queue == NULL || messages->source_of == NULL ||
        messages->destination_of == NULL || pingpong_make(&messages->game, &lane->lane) != 0)
        return -ENOMEM;
    if (schedule == NULL)
        lane->lane.pingpong = &messages->game;
    frame_check(&lane->receiver.check, &lane->shape);
    lane->receiver.left = request->receive_count; /* end marks that are to come */
    lane->lane.knows_end = true;
    lane->responds = true;
    lane->prober.next_ns = CLOCK_NEVER;
    rc = make_channels(lane, err);
    if (rc == 0 && schedule != NULL)
        rc = schedule->make(lane, err);
    describe(lane);
    return rc;
}

void messages_free(struct dpdk_lane *lane)
{
    struct messages *messages = lane->messages;

    if (messages == NULL)
        return;
    for (uint32_t i = 0; i < messages->count; i++)
        reassembly_free(&messages->channels[i].in);
    if (messages->schedule != NULL)
        messages->schedule->free(messages);
    pingpong_free(&messages->game);
    free(messages->destination_of);
    free(messages->source_of);
    free(messages->queue);
    free(messages->channels);
    free(messages);
}

/* Partners' addresses are known now, and the gateway's. */
void messages_build(struct dpdk_lane *lane)
{
    struct messages *messages = lane->messages;
    uint32_t longest = FRAME_TEMPLATE;

    for (uint32_t i = 0; i < messages->count; i++) {
        struct peer_channel *channel = &messages->channels[i];
        const struct lane_flow *flow = channel->flow;
        struct frame_shape shape = lane->shape;

        partner_ends(lane, flow, channel->source ? flow->dst : flow->src, channel->ends);
        shape.tag = be16toh(channel->tags[0]);
        channel->full.length = channel->segmentation.head + channel->segmentation.room;
        frame_template(&channel->full.template, &shape, channel->ends, 0,
                       channel->full.length + FRAME_FCS);
        channel->base = checksum_fold(signature_base(
            (const struct signature *)(channel->full.template.bytes + shape.payload)));
        channel->full_in.length = channel->full.length;
        frame_expect(&channel->full_in.expect, &lane->shape, channel->full.length);
        longest = RTE_MAX(longest, channel->full.length);
    }
    if (messages->count > 0)
        prefill_mbufs(lane->sender.pool,
                      &(struct prefill){.template = &messages->channels[0].full.template,
                                        .headers = lane->shape.payload + SIGNATURE_BYTES,
                                        .longest = longest,
                                        .length = messages->channels[0].full.length});
}

void messages_start(struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct messages *messages = lane->messages;

    messages->look_ns = pingpong_opens_ns(request->phase);
    pace_init(&lane->sender.pace, (double)request->line_rate_bps,
              dpdk_options(request->phase)->catch_up, messages->look_ns);
}

/* --- when messages begin and end --- */

void messages_enqueue(struct dpdk_lane *lane, struct peer_channel *channel)
{
    struct messages *messages = lane->messages;

    if (channel->queued)
        return;
    channel->queued = true;
    messages->queue[(messages->head + messages->queued++) % messages->count] = channel;
}

static void await_until(struct messages *messages, struct peer_channel *channel, int64_t due_ns)
{
    channel->due_ns = due_ns;
    messages->look_ns = due_ns < messages->look_ns ? due_ns : messages->look_ns;
}

static void leave(struct dpdk_lane *lane, struct peer_channel *channel)
{
    struct messages *messages = lane->messages;

    channel->ended = true;
    channel->due_ns = CLOCK_NEVER;
    if (--messages->open > 0)
        return;
    lane->lane.tx_done = true;
    if (lane->lane.stopped_ns == 0)
        lane->lane.stopped_ns = clock_now();
}

void messages_say_end(struct dpdk_lane *lane, struct peer_channel *channel, int64_t now_ns)
{
    if (channel->end_marks++ == END_MARKS) {
        leave(lane, channel);
        return;
    }
    channel->out.end = true;
    messages_enqueue(lane, channel);
    await_until(lane->messages, channel, now_ns + END_MARK_NS);
}

static bool begin(struct lane *base, const struct pingpong_turn *turn, int64_t now_ns)
{
    struct dpdk_lane *lane = (struct dpdk_lane *)base;
    struct messages *messages = lane->messages;
    struct peer_channel *channel = &messages->channels[turn->flow];
    uint32_t bytes = pingpong_bytes(&messages->game, turn);
    uint64_t number = messages->game.flows[turn->flow].begun - 1;

    (void)now_ns;
    channel->out = (struct tx_message){.number = number,
                                       .bytes = bytes,
                                       .segments = message_segments(&channel->segmentation, bytes)};
    reassembly_begin(&channel->in, number, channel->out.segments);
    messages_enqueue(lane, channel);
    await_until(messages, channel, pingpong_due_ns(&messages->game, turn));
    return false;
}

/* What comes is taken as it comes: here a message is only lost. */
static enum pingpong_state await(struct lane *base, const struct pingpong_turn *turn,
                                 int64_t now_ns, int64_t *at_ns)
{
    const struct dpdk_lane *lane = (const struct dpdk_lane *)base;
    struct peer_channel *channel = &lane->messages->channels[turn->flow];

    (void)at_ns;
    /* Who was late himself may find the answer behind what has come. */
    if (now_ns < channel->due_ns || lane->messages->coming)
        return PINGPONG_AWAITED;
    channel->due_ns = CLOCK_NEVER;
    channel->lost++;
    channel->out.next = channel->out.segments;
    reassembly_give_up(&channel->in);
    return PINGPONG_LOST;
}

static const struct pingpong_hooks hooks = {.send = begin, .await = await};

static struct pingpong_turn *turn_of(struct messages *messages, const struct peer_channel *channel)
{
    uint32_t flow = (uint32_t)(channel - messages->channels);

    return &messages->game.turns[messages->game.turn_count < messages->sends ? 0 : flow];
}

void messages_back(struct dpdk_lane *lane, struct peer_channel *channel, int64_t at_ns)
{
    struct pingpong_turn *turn = turn_of(lane->messages, channel);

    channel->due_ns = CLOCK_NEVER;
    pingpong_back(&lane->messages->game, turn, at_ns);
    if (!pingpong_advance(&lane->messages->game, &hooks, turn, at_ns))
        lane->messages->look_ns = 0; /* the turn's end is looked after there */
}

void messages_ended(struct dpdk_lane *lane, struct peer_channel *channel)
{
    if (!channel->ended && channel->end_marks > 0)
        leave(lane, channel);
}

int64_t messages_look(struct dpdk_lane *lane, int64_t now_ns)
{
    struct messages *messages = lane->messages;

    if (now_ns < messages->look_ns)
        return messages->look_ns;
    (void)pingpong_run(&messages->game, &hooks, now_ns);
    messages->look_ns = CLOCK_NEVER;
    for (uint32_t i = 0; i < messages->sends; i++) {
        struct peer_channel *channel = &messages->channels[i];
        bool again = channel->end_marks > 0 && now_ns >= channel->due_ns;

        if (again || (channel->end_marks == 0 && pingpong_ended(&messages->game, i)))
            messages_say_end(lane, channel, now_ns);
        if (channel->due_ns < messages->look_ns)
            messages->look_ns = channel->due_ns;
    }
    return messages->look_ns;
}

unsigned messages_flow_metrics(const struct dpdk_lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room)
{
    for (uint32_t i = 0; i < lane->messages->count; i++) {
        const struct peer_channel *channel = &lane->messages->channels[i];
        const struct flow_side *answers = &channel->answers;
        const struct flow_metric sources[] = {
            {"messages_lost", (double)channel->lost},
            {"answer_frames", (double)answers->live.frames},
            {"answer_frames_reordered", (double)answers->reordered},
            {"answer_frames_duplicated", (double)answers->duplicated},
            {"answer_frames_late", (double)answers->late},
            {"answer_frames_corrupted", (double)answers->corrupted},
        };
        const struct flow_metric destinations[] = {
            {"messages_broken", (double)(channel->in.broken + (channel->in.set.missing > 0))},
            {"answer_frames", (double)answers->live.frames},
        };
        unsigned count = channel->source ? RTE_DIM(sources) : RTE_DIM(destinations);

        if (channel->flow->src != flow->src || channel->flow->dst != flow->dst)
            continue;
        if (lane->messages->schedule != NULL)
            return lane->messages->schedule->flow_metrics(lane, channel, out, room);
        count = RTE_MIN(count, room);
        memcpy(out, channel->source ? sources : destinations, count * sizeof *out);
        return count;
    }
    return 0;
}
