/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping-pong of a lane of frames. Each message is one frame, of headers, signature and the message's
 * bytes, which the destination verifies and sends back with a tag of its own. Nothing is sent
 * again: what does not come back in time is lost. Not a hot path: the next message waits for the
 * last.
 */
#include "frame_lane.h"
#include "pingpong.h"

#include <errno.h>

struct frame_pingpong {
    struct pingpong game;
    struct prng_sizes *drawn; /* of the flows that the lane receives */
};

int frame_pingpong_make(struct frame_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct frame_pingpong *pingpong = frame_lane_zeros(lane, 1, sizeof *pingpong);
    uint16_t tag = htobe16(probe_answer_tag(request->phase->tag));

    lane->pingpong = pingpong;
    if (pingpong == NULL)
        return -ENOMEM;
    lane->receiver.sources = 1;
    lane->responds = true;
    lane->lane.pingpong = &pingpong->game;
    /* Answers are no load, and are told from it by their tag alone. */
    lane->prober = (struct frame_prober){
        .answers = true, .tags = {tag, tag}, .next_ns = CLOCK_NEVER, .until_ns = CLOCK_NEVER};
    pingpong->drawn = frame_lane_zeros(lane, request->receive_count, sizeof *pingpong->drawn);
    if (pingpong->drawn == NULL || pingpong_make(&pingpong->game, &lane->lane) != 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < request->receive_count; i++)
        pingpong->drawn[i] = pingpong_drawn(request->phase, &request->receives[i]);
    return 0;
}

void frame_pingpong_free(struct frame_lane *lane)
{
    if (lane->pingpong != NULL)
        pingpong_free(&lane->pingpong->game);
}

static void count(struct flow_side *side, uint32_t frame_bytes, uint32_t bytes)
{
    side->live.frames++;
    side->live.frame_bytes += frame_bytes;
    side->live.payload_bytes += bytes;
    side->live.messages++;
}

/* --- the source's end --- */

static void begin(struct lane *base, const struct pingpong_turn *turn, int64_t now_ns)
{
    struct frame_lane *lane = (struct frame_lane *)base;
    const struct pingpong *game = &lane->pingpong->game;
    struct flow_side *side = base->request.sends[turn->flow].side;
    uint32_t bytes = pingpong_bytes(game, turn);
    const struct frame_single single = {
        .place = turn->flow,
        .tag = base->request.phase->tag,
        .frame_bytes = frame_message_size(lane, bytes),
        .sequence = (uint32_t)game->flows[turn->flow].begun - 1,
        .stamp_ns = turn->begun_ns - base->request.phase->start_ns,
    };

    (void)now_ns;
    if (lane->conf.ops->send_single(lane, &single))
        count(side, single.frame_bytes, bytes);
    side->intended = side->live.frames;
}

/* What comes is taken as it comes: here a message is only lost. */
static bool await(struct lane *lane, const struct pingpong_turn *turn, int64_t now_ns,
                  int64_t *at_ns)
{
    *at_ns = 0;
    return now_ns >= pingpong_due_ns(lane->pingpong, turn);
}

static void take_answer(struct frame_lane *lane, const struct signature *signature,
                        uint32_t frame_bytes)
{
    struct pingpong *game = &lane->pingpong->game;
    const struct lane_request *request = &lane->lane.request;
    uint16_t flow = lane->sender.flow_of[be16toh(signature->src)];
    struct pingpong_turn *turn;

    request->count->probes_received++;
    if (flow-- == 0)
        return;
    turn = &game->turns[game->turn_count < request->send_count ? 0 : flow];
    /* One that was given up may come yet: it is no answer to the next. */
    if (turn->in_flight && turn->flow == flow &&
        frame_bytes == frame_message_size(lane, pingpong_bytes(game, turn)) &&
        (int64_t)signature_ns(signature) == turn->begun_ns - request->phase->start_ns &&
        be32toh(signature->sequence) == (uint32_t)game->flows[flow].begun - 1)
        pingpong_back(game, turn, clock_now());
}

/* --- the destination's end --- */

static void reply(struct frame_lane *lane, uint32_t flow, uint32_t bytes,
                  const struct signature *signature)
{
    const struct lane_request *request = &lane->lane.request;
    const struct frame_single single = {
        .place = request->send_count + flow,
        .tag = probe_answer_tag(request->phase->tag),
        .frame_bytes = frame_message_size(lane, bytes),
        .sequence = be32toh(signature->sequence),
        .stamp_ns = (int64_t)signature_ns(signature),
    };

    request->count->probes_sent += lane->conf.ops->send_single(lane, &single);
}

bool frame_pingpong_take(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;
    const struct signature *signature = seen->signature;
    uint32_t flow = receiver->flow_of[be16toh(signature->src)], bytes;
    uint32_t frame_bytes = seen->length + lane->conf.outside;
    struct received frame = {
        .signature = signature, .sequence = be32toh(signature->sequence), .length = seen->length};
    struct flow_side *side;

    if (!seen->ours || seen->length > FILL_BYTES || signature->dst != receiver->own ||
        !lane->conf.ops->is_sound(lane, seen))
        return false;
    if (signature->tag == lane->prober.tags[1]) {
        take_answer(lane, signature, frame_bytes);
        return true;
    }
    if (signature->tag != receiver->tag || flow-- == 0)
        return false;
    frame.stream = &receiver->streams[flow];
    side = frame.stream->side;
    bytes = pingpong_size(lane->lane.request.phase, &lane->pingpong->drawn[flow],
                          sequence_unwrap(frame.stream->sequence.next, frame.sequence));
    lane->lane.arrived_ns = now_ns;
    if (frame_bytes != frame_message_size(lane, bytes)) {
        side->corrupted++;
    } else if (frame_judge(receiver, &frame, now_ns, false)) {
        reply(lane, flow, bytes, signature);
        count(side, frame_bytes, bytes);
        side->last_ns = now_ns;
        side->first_ns = side->first_ns == 0 ? now_ns : side->first_ns;
    }
    return true;
}

/* --- the worker's call --- */

int64_t frame_pingpong_poll(struct frame_lane *lane, int64_t now_ns)
{
    static const struct pingpong_hooks hooks = {.send = begin, .await = await};
    struct pingpong *game = &lane->pingpong->game;
    struct lane *base = &lane->lane;
    int64_t next_ns = CLOCK_NEVER, opens_ns = pingpong_opens_ns(base->request.phase);
    bool ended = true;

    if (now_ns < opens_ns && base->stop_ns > now_ns)
        return opens_ns;
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    if (pingpong_run(game, &hooks, now_ns))
        next_ns = now_ns;
    for (uint32_t i = 0; i < game->turn_count; i++)
        if (game->turns[i].in_flight && pingpong_due_ns(game, &game->turns[i]) < next_ns)
            next_ns = pingpong_due_ns(game, &game->turns[i]);
    for (uint32_t i = 0; ended && i < base->request.send_count; i++)
        ended = pingpong_ended(game, i);
    base->tx_done = ended;
    if (ended && base->stopped_ns == 0)
        base->stopped_ns = now_ns;
    return next_ns;
}
