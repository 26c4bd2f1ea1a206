/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_pingpong.h"

#include "clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int frame_pingpong_make(struct frame_pingpong *game, struct lane *lane)
{
    const struct lane_request *request = &lane->request;

    lane->pingpong = &game->game;
    game->drawn = calloc(request->receive_count + 1, sizeof *game->drawn);
    game->flow_of = calloc(PATTERN_RANKS_MAX, sizeof *game->flow_of);
    if (game->drawn == NULL || game->flow_of == NULL || pingpong_make(&game->game, lane) != 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < request->receive_count; i++)
        game->drawn[i] = pingpong_drawn(request->phase, &request->receives[i]);
    for (uint32_t i = 0; i < request->send_count; i++)
        game->flow_of[request->sends[i].dst] = (uint16_t)(i + 1);
    return 0;
}

void frame_pingpong_free(struct frame_pingpong *game)
{
    pingpong_free(&game->game);
    free(game->drawn);
    free(game->flow_of);
}

static void count(const struct frame_pingpong *game, struct flow_side *side, uint32_t bytes)
{
    side->live.frames++;
    side->live.frame_bytes += frame_pingpong_size(game->around, game->least, bytes);
    side->live.payload_bytes += bytes;
    side->live.messages++;
}

/* --- the source's end --- */

/* The lane's ping-pong is the first member of it. */
static struct frame_pingpong *of_lane(const struct lane *lane)
{
    return (struct frame_pingpong *)(uintptr_t)lane->pingpong;
}

static bool begin(struct lane *lane, const struct pingpong_turn *turn, int64_t now_ns)
{
    struct frame_pingpong *game = of_lane(lane);
    const struct lane_flow *flow = &lane->request.sends[turn->flow];
    const struct pingpong_frame frame = {
        .flow = flow,
        .place = turn->flow,
        .number = (uint32_t)game->game.flows[turn->flow].begun - 1,
        .stamp_ns = turn->begun_ns - lane->request.phase->start_ns,
        .bytes = pingpong_bytes(&game->game, turn),
    };

    (void)now_ns;
    if (game->send(lane, &frame))
        count(game, flow->side, frame.bytes);
    flow->side->intended = flow->side->live.frames;
    return false;
}

/* What comes is taken as it comes: here a message is only lost. */
static enum pingpong_state await(struct lane *lane, const struct pingpong_turn *turn,
                                 int64_t now_ns, int64_t *at_ns)
{
    (void)at_ns;
    return now_ns < pingpong_due_ns(lane->pingpong, turn) ? PINGPONG_AWAITED : PINGPONG_LOST;
}

void frame_pingpong_take_answer(struct frame_pingpong *game, const struct signature *signature,
                                uint32_t frame_bytes)
{
    struct pingpong *play = &game->game;
    const struct lane_request *request = &play->lane->request;
    uint16_t flow = game->flow_of[be16toh(signature->src)];
    struct pingpong_turn *turn;

    request->count->probes_received++;
    if (flow-- == 0)
        return;
    turn = &play->turns[play->turn_count < request->send_count ? 0 : flow];
    /* One that was given up may come yet: it is no answer to the next. */
    if (turn->in_flight && turn->flow == flow &&
        frame_bytes == frame_pingpong_size(game->around, game->least, pingpong_bytes(play, turn)) &&
        (int64_t)signature_ns(signature) == turn->begun_ns - request->phase->start_ns &&
        be32toh(signature->sequence) == (uint32_t)play->flows[flow].begun - 1)
        pingpong_back(play, turn, clock_now());
}

/* --- the destination's end --- */

bool frame_pingpong_fits(const struct frame_pingpong *game, uint32_t place, uint64_t number,
                         uint32_t frame_bytes)
{
    uint32_t bytes = pingpong_size(game->game.lane->request.phase, &game->drawn[place], number);

    return frame_bytes == frame_pingpong_size(game->around, game->least, bytes);
}

void frame_pingpong_reply(struct frame_pingpong *game, uint32_t place, uint64_t number,
                          const struct signature *signature, int64_t now_ns)
{
    struct lane *lane = game->game.lane;
    const struct lane_flow *flow = &lane->request.receives[place];
    const struct pingpong_frame frame = {
        .flow = flow,
        .place = place,
        .back = true,
        .number = be32toh(signature->sequence),
        .stamp_ns = (int64_t)signature_ns(signature),
        .bytes = pingpong_size(lane->request.phase, &game->drawn[place], number),
    };

    lane->request.count->probes_sent += game->send(lane, &frame);
    count(game, flow->side, frame.bytes);
    flow->side->last_ns = now_ns;
    if (flow->side->first_ns == 0)
        flow->side->first_ns = now_ns;
}

/* --- the worker's call --- */

int64_t frame_pingpong_poll(struct frame_pingpong *game, int64_t now_ns)
{
    static const struct pingpong_hooks hooks = {.send = begin, .await = await};
    struct pingpong *play = &game->game;
    struct lane *lane = play->lane;
    int64_t next_ns = CLOCK_NEVER, opens_ns = pingpong_opens_ns(lane->request.phase);
    bool ended = true;

    if (now_ns < opens_ns && lane->stop_ns > now_ns)
        return opens_ns;
    if (lane->started_ns == 0)
        lane->started_ns = now_ns;
    if (pingpong_run(play, &hooks, now_ns))
        next_ns = now_ns;
    for (uint32_t i = 0; i < play->turn_count; i++)
        if (play->turns[i].in_flight) {
            int64_t due_ns = pingpong_due_ns(play, &play->turns[i]);

            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
    for (uint32_t i = 0; ended && i < lane->request.send_count; i++)
        ended = pingpong_ended(play, i);
    lane->tx_done = ended;
    if (ended && lane->stopped_ns == 0)
        lane->stopped_ns = now_ns;
    return next_ns;
}
