/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages there and back (doc/reference/messages.md, ../pingpong.h). The source of a flow sends
 * one, the destination verifies it whole and sends as many bytes of its own back on the same
 * connection, the source verifies those: that is a round trip. Then the next one begins.
 *
 * A round trip's time is taken before the call that sends the message's first bytes and behind the
 * one that reads the last byte that came back: what an application would wait.
 */
#include "pingpong.h"
#include "clock.h"
#include "echo_connection.h"

#include <errno.h>
#include <stdlib.h>

#define DRAIN_LOOK_NS (100 * NS_PER_US)

struct tcp_pingpong {
    struct pingpong game;
    struct tcp_echo *echoes; /* of the connections out, as the game's flows; then of those in */
};

/* --- preparation --- */

static int make(struct tcp_lane *lane)
{
    struct tcp_pingpong *pingpong = calloc(1, sizeof *pingpong);
    int rc;

    if (pingpong == NULL)
        return -ENOMEM;
    lane->pingpong = pingpong;
    lane->lane.pingpong = &pingpong->game;
    rc = pingpong_make(&pingpong->game, &lane->lane);
    pingpong->echoes = calloc(lane->out_count + lane->in_count + 1, sizeof *pingpong->echoes);
    if (rc != 0 || pingpong->echoes == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < lane->out_count; i++)
        tcp_echo_out(&pingpong->echoes[i], &lane->outs[i]);
    for (unsigned i = 0; i < lane->in_count; i++)
        tcp_echo_in(&pingpong->echoes[lane->out_count + i], &lane->ins[i]);
    return 0;
}

static void free_game(struct tcp_lane *lane)
{
    if (lane->pingpong == NULL)
        return;
    pingpong_free(&lane->pingpong->game);
    free(lane->pingpong->echoes);
    free(lane->pingpong);
}

/* --- the source's end --- */

static bool send_message(struct lane *base, const struct pingpong_turn *turn, int64_t now_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)base;

    (void)now_ns;
    tcp_echo_push(lane, &lane->pingpong->echoes[turn->flow]);
    return base->error.text[0] == '\0';
}

static enum pingpong_state await_reply(struct lane *base, const struct pingpong_turn *turn,
                                       int64_t now_ns, int64_t *at_ns)
{
    struct tcp_lane *lane = (struct tcp_lane *)base;
    struct tcp_echo *echo = &lane->pingpong->echoes[turn->flow];
    uint64_t begun = lane->pingpong->game.flows[turn->flow].begun;

    (void)now_ns;
    if (echo->source->at.sequence < begun)
        tcp_echo_push(lane, echo);
    *at_ns = tcp_echo_pull(lane, echo, begun);
    if (echo->sink->at.sequence < begun)
        return PINGPONG_AWAITED;
    echo->sent->intended = echo->sent->live.payload_bytes;
    return PINGPONG_BACK;
}

/* Says goodbye on every connection that has nothing in flight and is to begin nothing more. */
static void end_echoes(struct tcp_lane *lane)
{
    for (unsigned i = 0; i < lane->out_count; i++)
        if (!lane->outs[i].ended && pingpong_ended(&lane->pingpong->game, i))
            tcp_push_end(lane, &lane->outs[i]);
    if (lane->outs_ended < lane->out_count)
        return;
    if (lane->lane.stopped_ns == 0)
        lane->lane.stopped_ns = clock_now();
    lane->lane.tx_done = tcp_drained(lane);
}

/* --- the worker's call --- */

static int64_t poll_pingpong(struct tcp_lane *lane, int64_t now_ns)
{
    static const struct pingpong_hooks hooks = {.send = send_message, .await = await_reply};
    struct tcp_pingpong *pingpong = lane->pingpong;
    struct lane *base = &lane->lane;
    int64_t opens_ns = pingpong_opens_ns(base->request.phase);

    tcp_echo_events(pingpong->echoes, lane->epoll);
    if (now_ns < opens_ns)
        return opens_ns;
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    for (unsigned i = 0; i < lane->in_count; i++) {
        int64_t at_ns = tcp_echo_reply(lane, &pingpong->echoes[lane->out_count + i]);

        if (at_ns > 0)
            tcp_side_time(lane->ins[i].flow->side, base->arrived_ns = at_ns);
    }
    (void)pingpong_run(&pingpong->game, &hooks, now_ns);
    if (!base->tx_done)
        end_echoes(lane);
    if (lane->outs_ended == lane->out_count && !base->tx_done)
        return now_ns + DRAIN_LOOK_NS;
    return base->stop_ns > now_ns && !base->tx_done ? base->stop_ns : CLOCK_NEVER;
}

const struct tcp_mode tcp_pingpong_mode = {
    .make = make,
    .free = free_game,
    .poll = poll_pingpong,
    .out_events = EPOLLIN,
    .in_events = EPOLLOUT | EPOLLET,
    .wakes = true,
};

/* --- what was measured --- */

bool tcp_pingpong_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                          struct latency *sum)
{
    const struct tcp_lane *l = (const struct tcp_lane *)lane;

    if (kind == LATENCY_ROUND_TRIP)
        return tcp_probes_latency(l, flow, sum);
    return kind == LATENCY_PINGPONG && l->pingpong != NULL &&
           pingpong_latency(&l->pingpong->game, flow, sum);
}
