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
    uint32_t most = phase->pingpong.size_most;

    for (uint32_t i = 0; phase->pingpong.size_most == 0 && i < phase->size_count; i++)
        most = phase->sizes[i] > most ? phase->sizes[i] : most;
    return most;
}

static int check_sizes(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    uint32_t most = greatest(phase);

    for (uint32_t i = 0; phase->pingpong.size_most == 0 && i < phase->size_count; i++)
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
                       "%s: messages there and back go by one queue, and the port has %u: set "
                       "queues: 1",
                       port->conf->name, port->queue_count);
    return schedule != NULL ? schedule->check(request, err) : check_sizes(request, err);
}

/* Frames are as large as the two ports take. */
static int make_exchange(struct dpdk_lane *lane, struct exchange *exchange, struct lane_flow *flow,
                         struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    bool source = flow->src == lane->lane.request.rank;
    uint16_t there = htobe16(lane->shape.tag), back = htobe16(message_answer_tag(lane->shape.tag));
    uint32_t frame_bytes = 0;
    int rc;

    *exchange = (struct exchange){
        .flow = flow,
        .source = source,
        .tags = {source ? there : back, source ? back : there},
        .drawn = pingpong_drawn(phase, flow),
        .due_ns = CLOCK_NEVER,
    };
    exchange->sent = source ? flow->side : &exchange->answers;
    exchange->got = source ? &exchange->answers : flow->side;
    rc = partner_read(lane, flow, source ? flow->dst : flow->src, &exchange->ends[1], &frame_bytes,
                      err);
    if (rc != 0)
        return rc;
    frame_bytes =
        RTE_MIN(RTE_MIN(frame_bytes, lane->port->frame_max) + (lane->shape.vlan ? FRAME_VLAN : 0),
                FRAME_SIZE_MAX);
    if (!message_cut(&exchange->cut, &lane->shape, frame_bytes))
        return err_set(err, -EINVAL, "%s: frames of %u bytes have no room for a message",
                       lane->port->conf->name, frame_bytes);
    return assembly_make(&exchange->in, message_segments(&exchange->cut, greatest(phase)));
}

static int make_exchanges(struct dpdk_lane *lane, struct err *err)
{
    struct lane_request *request = &lane->lane.request;
    struct messages *messages = lane->messages;

    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        bool source = i < request->send_count;
        struct lane_flow *flow =
            source ? &request->sends[i] : &request->receives[i - request->send_count];
        uint32_t partner = source ? flow->dst : flow->src;
        int rc = partner < request->ranks
                     ? make_exchange(lane, &messages->exchanges[i], flow, err)
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
    const struct exchange *first = lane->messages->exchanges;

    snprintf(lane->lane.variant, sizeof lane->lane.variant,
             "messages in frames of up to %u bytes, %s",
             lane->messages->count > 0 ? first->cut.head + first->cut.room + FRAME_FCS : 0,
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
    messages->exchanges = calloc(count + 1, sizeof *messages->exchanges);
    messages->queue = calloc(count + 1, sizeof *messages->queue);
    messages->source_of = calloc(PATTERN_RANKS_MAX, sizeof *messages->source_of);
    messages->destination_of = calloc(PATTERN_RANKS_MAX, sizeof *messages->destination_of);
    if (messages->exchanges == NULL || messages->queue == NULL || messages->source_of == NULL ||
        messages->destination_of == NULL || pingpong_make(&messages->game, &lane->lane) != 0)
        return -ENOMEM;
    frame_check(&lane->receiver.check, &lane->shape);
    lane->receiver.left = request->receive_count; /* end marks that are to come */
    lane->lane.knows_end = true;
    lane->responds = true;
    lane->prober.next_ns = CLOCK_NEVER;
    rc = make_exchanges(lane, err);
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
        assembly_free(&messages->exchanges[i].in);
    if (messages->schedule != NULL)
        messages->schedule->free(messages);
    pingpong_free(&messages->game);
    free(messages->destination_of);
    free(messages->source_of);
    free(messages->queue);
    free(messages->exchanges);
    free(messages);
}

/* Partners' addresses are known now, and the gateway's. */
void messages_build(struct dpdk_lane *lane)
{
    struct messages *messages = lane->messages;
    uint32_t longest = FRAME_TEMPLATE;

    for (uint32_t i = 0; i < messages->count; i++) {
        struct exchange *exchange = &messages->exchanges[i];
        const struct lane_flow *flow = exchange->flow;
        struct frame_shape shape = lane->shape;

        partner_ends(lane, flow, exchange->source ? flow->dst : flow->src, exchange->ends);
        shape.tag = be16toh(exchange->tags[0]);
        exchange->full.length = exchange->cut.head + exchange->cut.room;
        frame_template(&exchange->full.template, &shape, exchange->ends, 0,
                       exchange->full.length + FRAME_FCS);
        exchange->base = checksum_fold(signature_base(
            (const struct signature *)(exchange->full.template.bytes + shape.payload)));
        exchange->full_in.length = exchange->full.length;
        frame_expect(&exchange->full_in.expect, &lane->shape, exchange->full.length);
        longest = RTE_MAX(longest, exchange->full.length);
    }
    if (messages->count > 0)
        prefill_mbufs(lane->sender.pool,
                      &(struct prefill){.template = &messages->exchanges[0].full.template,
                                        .headers = lane->shape.payload + SIGNATURE_BYTES,
                                        .longest = longest,
                                        .length = messages->exchanges[0].full.length});
}

void messages_start(struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct messages *messages = lane->messages;

    messages->look_ns = pingpong_opens_ns(request->phase);
    pace_init(&lane->sender.pace, (double)request->line_rate_bps, request->phase->dpdk.catch_up,
              messages->look_ns);
}

/* --- when messages begin and end --- */

void messages_enqueue(struct dpdk_lane *lane, struct exchange *exchange)
{
    struct messages *messages = lane->messages;

    if (exchange->queued)
        return;
    exchange->queued = true;
    messages->queue[(messages->head + messages->queued++) % messages->count] = exchange;
}

static void await_until(struct messages *messages, struct exchange *exchange, int64_t due_ns)
{
    exchange->due_ns = due_ns;
    messages->look_ns = due_ns < messages->look_ns ? due_ns : messages->look_ns;
}

static void leave(struct dpdk_lane *lane, struct exchange *exchange)
{
    struct messages *messages = lane->messages;

    exchange->ended = true;
    exchange->due_ns = CLOCK_NEVER;
    if (--messages->open > 0)
        return;
    lane->lane.sent_all = true;
    if (lane->lane.stopped_ns == 0)
        lane->lane.stopped_ns = clock_now();
}

void messages_say_end(struct dpdk_lane *lane, struct exchange *exchange, int64_t now_ns)
{
    if (exchange->end_marks++ == END_MARKS) {
        leave(lane, exchange);
        return;
    }
    exchange->out.end = true;
    messages_enqueue(lane, exchange);
    await_until(lane->messages, exchange, now_ns + END_MARK_NS);
}

static void begin(struct dpdk_lane *lane, const struct pingpong_turn *turn)
{
    struct messages *messages = lane->messages;
    struct exchange *exchange = &messages->exchanges[turn->flow];
    uint32_t bytes = pingpong_bytes(&messages->game, turn);
    uint64_t number = messages->game.flows[turn->flow].begun - 1;

    exchange->out = (struct outgoing){
        .number = number, .bytes = bytes, .segments = message_segments(&exchange->cut, bytes)};
    assembly_begin(&exchange->in, number, exchange->out.segments);
    messages_enqueue(lane, exchange);
    await_until(messages, exchange, turn->begun_ns + pingpong_patience_ns(&messages->game, bytes));
}

/* Begins a turn's next message, if there is to be one. */
static void go_on(struct dpdk_lane *lane, struct pingpong_turn *turn)
{
    if (pingpong_begin(&lane->messages->game, turn))
        begin(lane, turn);
    else
        lane->messages->look_ns = 0; /* the turn's end is looked after there */
}

static struct pingpong_turn *turn_of(struct messages *messages, const struct exchange *exchange)
{
    uint32_t flow = (uint32_t)(exchange - messages->exchanges);

    return &messages->game.turns[messages->game.turn_count < messages->sends ? 0 : flow];
}

void messages_back(struct dpdk_lane *lane, struct exchange *exchange, int64_t at_ns)
{
    struct pingpong_turn *turn = turn_of(lane->messages, exchange);

    exchange->due_ns = CLOCK_NEVER;
    pingpong_back(&lane->messages->game, turn, at_ns);
    go_on(lane, turn);
}

void messages_ended(struct dpdk_lane *lane, struct exchange *exchange)
{
    if (!exchange->ended && exchange->end_marks > 0)
        leave(lane, exchange);
}

/* What has waited for too long: a message under way, or an end mark's answer. */
static void look_at_due(struct dpdk_lane *lane, struct exchange *exchange, int64_t now_ns)
{
    struct pingpong_turn *turn = turn_of(lane->messages, exchange);

    if (exchange->end_marks > 0) {
        messages_say_end(lane, exchange, now_ns);
        return;
    }
    if (lane->messages->coming) /* who was late himself may find the answer behind what has come */
        return;
    exchange->due_ns = CLOCK_NEVER;
    exchange->lost++;
    exchange->out.next = exchange->out.segments;
    assembly_give_up(&exchange->in);
    pingpong_give_up(&lane->messages->game, turn);
    go_on(lane, turn);
}

int64_t messages_look(struct dpdk_lane *lane, int64_t now_ns)
{
    struct messages *messages = lane->messages;

    if (now_ns < messages->look_ns)
        return messages->look_ns;
    messages->look_ns = CLOCK_NEVER;
    for (uint32_t i = 0; i < messages->game.turn_count; i++)
        if (!messages->game.turns[i].under_way && messages->exchanges[i].end_marks == 0)
            go_on(lane, &messages->game.turns[i]);
    messages->look_ns = CLOCK_NEVER;
    for (uint32_t i = 0; i < messages->sends; i++) {
        struct exchange *exchange = &messages->exchanges[i];

        if (now_ns >= exchange->due_ns)
            look_at_due(lane, exchange, now_ns);
        if (exchange->end_marks == 0 && pingpong_ended(&messages->game, i))
            messages_say_end(lane, exchange, now_ns);
        if (exchange->due_ns < messages->look_ns)
            messages->look_ns = exchange->due_ns;
    }
    return messages->look_ns;
}

unsigned messages_measure(const struct dpdk_lane *lane, const struct lane_flow *flow,
                          struct measure *out, unsigned room)
{
    for (uint32_t i = 0; i < lane->messages->count; i++) {
        const struct exchange *exchange = &lane->messages->exchanges[i];
        const struct flow_side *answers = &exchange->answers;
        const struct measure sources[] = {
            {"messages_lost", (double)exchange->lost},
            {"answer_frames", (double)answers->live.frames},
            {"answer_frames_reordered", (double)answers->reordered},
            {"answer_frames_duplicated", (double)answers->duplicated},
            {"answer_frames_late", (double)answers->late},
            {"answer_frames_corrupted", (double)answers->corrupted},
        };
        const struct measure destinations[] = {
            {"messages_broken", (double)(exchange->in.broken + (exchange->in.missing > 0))},
            {"answer_frames", (double)answers->live.frames},
        };
        unsigned count = exchange->source ? RTE_DIM(sources) : RTE_DIM(destinations);

        if (exchange->flow->src != flow->src || exchange->flow->dst != flow->dst)
            continue;
        if (lane->messages->schedule != NULL)
            return lane->messages->schedule->measure(lane, exchange, out, room);
        count = RTE_MIN(count, room);
        memcpy(out, exchange->source ? sources : destinations, count * sizeof *out);
        return count;
    }
    return 0;
}
