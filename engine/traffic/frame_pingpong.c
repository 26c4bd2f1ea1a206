/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_pingpong.h"

#include "frame_judge.h"
#include "probe_frames.h"

#include <errno.h>
#include <stdlib.h>

int frame_pingpong_sizes(const struct lane_request *request, const char *port, uint32_t around,
                         uint32_t most, uint32_t bytes[TRANSPORT_SIZES_MAX], struct err *err)
{
    const struct phase *phase = request->phase;
    bool drawn = phase->pingpong.max_size > 0;
    uint32_t count = drawn ? 1 : phase->size_count;

    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = drawn ? phase->pingpong.max_size : phase->sizes[i];
        if (bytes[i] == 0 || around >= most || bytes[i] > most - around)
            return err_set(
                err, -EINVAL,
                "%s: a ping-pong message is one frame, of 1 to %u bytes here, not %u: larger "
                "ones run over tcp and verbs",
                port, around < most ? most - around : 0, bytes[i]);
    }
    return (int)count;
}

int frame_pingpong_make(struct frame_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct frame_pingpong *pingpong = lane->pingpong = calloc(1, sizeof *pingpong);
    uint16_t tag = htobe16(probe_answer_tag(request->phase->tag));

    if (pingpong == NULL)
        return -ENOMEM;
    lane->lane.pingpong = &pingpong->game;
    /* Answers are no load, and are told from it by their tag alone. */
    lane->prober = (struct frame_prober){
        .answers = true, .tags = {tag, tag}, .next_ns = CLOCK_NEVER, .until_ns = CLOCK_NEVER};
    pingpong->drawn = calloc(request->receive_count + 1, sizeof *pingpong->drawn);
    if (pingpong->drawn == NULL || pingpong_make(&pingpong->game, &lane->lane) != 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < request->receive_count; i++)
        pingpong->drawn[i] = pingpong_drawn(request->phase, &request->receives[i]);
    return 0;
}

void frame_pingpong_free(struct frame_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    pingpong_free(&lane->pingpong->game);
    free(lane->pingpong->drawn);
    free(lane->pingpong);
}

static uint32_t size_of(const struct frame_lane *lane, uint32_t bytes)
{
    const struct frame_conf *conf = &lane->conf;

    return frame_pingpong_size(conf->offset + SIGNATURE_BYTES + conf->outside, conf->least, bytes);
}

static void count(const struct frame_lane *lane, struct flow_side *side, uint32_t bytes)
{
    side->live.frames++;
    side->live.frame_bytes += size_of(lane, bytes);
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
        .frame_bytes = size_of(lane, bytes),
        .sequence = (uint32_t)game->flows[turn->flow].begun - 1,
        .stamp_ns = turn->begun_ns - base->request.phase->start_ns,
    };

    (void)now_ns;
    if (lane->ops->send_single(lane, &single))
        count(lane, side, bytes);
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
        frame_bytes == size_of(lane, pingpong_bytes(game, turn)) &&
        (int64_t)signature_ns(signature) == turn->begun_ns - request->phase->start_ns &&
        be32toh(signature->sequence) == (uint32_t)game->flows[flow].begun - 1)
        pingpong_back(game, turn, clock_now());
}

/* --- the destination's end --- */

static void reply(struct frame_lane *lane, uint32_t place, uint32_t bytes,
                  const struct signature *signature, int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;
    struct flow_side *side = request->receives[place].side;
    const struct frame_single single = {
        .place = request->send_count + place,
        .tag = probe_answer_tag(request->phase->tag),
        .frame_bytes = size_of(lane, bytes),
        .sequence = be32toh(signature->sequence),
        .stamp_ns = (int64_t)signature_ns(signature),
    };

    request->count->probes_sent += lane->ops->send_single(lane, &single);
    count(lane, side, bytes);
    side->last_ns = now_ns;
    if (side->first_ns == 0)
        side->first_ns = now_ns;
}

bool frame_pingpong_take(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;
    const struct signature *signature = seen->signature;
    uint32_t flow = receiver->flow_of[be16toh(signature->src)], bytes;
    uint32_t frame_bytes = seen->length + lane->conf.outside;
    struct received frame = {
        .signature = signature, .sequence = be32toh(signature->sequence), .length = seen->length};
    uint64_t number;

    if (!seen->ours || seen->length > FILL_BYTES || signature->dst != receiver->own ||
        !lane->ops->is_sound(lane, seen))
        return false;
    if (signature->tag == lane->prober.tags[1]) {
        take_answer(lane, signature, frame_bytes);
        return true;
    }
    if (signature->tag != receiver->tag || flow == 0)
        return false;
    frame.stream = &receiver->streams[flow - 1];
    number = sequence_unwrap(frame.stream->sequence.next, frame.sequence);
    bytes = pingpong_size(lane->lane.request.phase, &lane->pingpong->drawn[flow - 1], number);
    lane->lane.arrived_ns = now_ns;
    if (frame_bytes != size_of(lane, bytes))
        frame.stream->side->corrupted++;
    else if (frame_judge(receiver, &frame, now_ns, false))
        reply(lane, flow - 1, bytes, signature, now_ns);
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
        if (game->turns[i].in_flight) {
            int64_t due_ns = pingpong_due_ns(game, &game->turns[i]);

            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
    for (uint32_t i = 0; ended && i < base->request.send_count; i++)
        ended = pingpong_ended(game, i);
    base->tx_done = ended;
    if (ended && base->stopped_ns == 0)
        base->stopped_ns = now_ns;
    return next_ns;
}
