/* SPDX-License-Identifier: BSD-3-Clause */
#include "pingpong.h"

#include "clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define TIMEOUT_NS (250 * NS_PER_MS)
#define TIMEOUT_ROUNDS 4
#define UNKNOWN_LINE_BPS 100000000u
#define MOMENT_MOST_NS (UINT32_MAX * NS_PER_US) /* 71.6 minutes */
#define TIME_MOST ((UINT64_C(1) << 48) - 1)     /* of a sample: 78 hours */

static_assert(sizeof(struct sample) == 16, "layout");
static_assert(PATTERN_RANKS_MAX <= 65536, "a rank fits into a sample");

static const struct phase *phase_of(const struct pingpong *game)
{
    return game->lane->request.phase;
}

/* --- preparation --- */

struct prng_sizes pingpong_drawn(const struct phase *phase, const struct lane_flow *flow)
{
    bool drawn = phase->traffic == TRAFFIC_PINGPONG;

    return prng_sizes(prng_seed(phase->seed, flow->src, flow->dst),
                      drawn ? phase->pingpong.min_size : 0, drawn ? phase->pingpong.max_size : 0);
}

int pingpong_make(struct pingpong *game, struct lane *lane)
{
    const struct lane_request *request = &lane->request;
    const struct pingpong_options *options = &request->phase->pingpong;
    uint32_t flows = request->send_count;

    *game =
        (struct pingpong){.lane = lane,
                          .turn_count = options->random && flows > 0 ? 1 : flows,
                          .seed = prng_seed(request->phase->seed, request->rank, request->rank)};
    if (flows == 0)
        return 0;
    game->turns = calloc(game->turn_count, sizeof *game->turns);
    game->flows = calloc(flows, sizeof *game->flows);
    if (options->samples) {
        game->sample_room = options->count * game->turn_count;
        game->samples = malloc(game->sample_room * sizeof *game->samples);
    }
    if (game->turns == NULL || game->flows == NULL || (options->samples && game->samples == NULL))
        return -ENOMEM;
    for (uint32_t i = 0; i < game->turn_count; i++)
        game->turns[i].flow = i;
    for (uint32_t i = 0; i < flows; i++)
        game->flows[i].drawn = pingpong_drawn(request->phase, &request->sends[i]);
    return 0;
}

void pingpong_free(struct pingpong *game)
{
    free(game->turns);
    free(game->flows);
    free(game->samples);
    *game = (struct pingpong){.lane = NULL};
}

uint32_t pingpong_size(const struct phase *phase, const struct prng_sizes *drawn, uint64_t n)
{
    return drawn->most > 0 ? prng_size(drawn, n) : phase->sizes[n % phase->size_count];
}

int64_t pingpong_opens_ns(const struct phase *phase)
{
    return phase->start_ns + phase->pingpong.start_delay_ns;
}

/* --- play --- */

static bool is_measured(const struct phase *phase, int64_t begun_ns)
{
    return !phase_is_timed(phase) || (begun_ns >= phase->open_ns && begun_ns < phase->close_ns);
}

static bool is_over(const struct pingpong *game, const struct pingpong_turn *turn, int64_t now_ns)
{
    uint64_t count = phase_of(game)->pingpong.count;

    return now_ns >= game->lane->stop_ns || (count > 0 && turn->played >= count);
}

/* Begins the turn's next message, if one is due. */
static bool begin(struct pingpong *game, struct pingpong_turn *turn)
{
    const struct lane_request *request = &game->lane->request;
    int64_t now_ns = clock_now();
    struct pingpong_flow *flow;
    struct flow_side *side;

    if (is_over(game, turn, now_ns))
        return false;
    if (request->phase->pingpong.random)
        turn->flow =
            (uint32_t)(((prng_bits(game->seed, turn->played) >> 32) * request->send_count) >> 32);
    flow = &game->flows[turn->flow];
    side = request->sends[turn->flow].side;
    turn->begun_ns = now_ns;
    turn->in_flight = true;
    turn->measured = is_measured(request->phase, now_ns);
    flow->begun++;
    flow->measured += turn->measured;
    side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
    return true;
}

uint32_t pingpong_bytes(const struct pingpong *game, const struct pingpong_turn *turn)
{
    const struct pingpong_flow *flow = &game->flows[turn->flow];

    return pingpong_size(phase_of(game), &flow->drawn, flow->begun - 1);
}

static void keep_sample(struct pingpong *game, const struct pingpong_turn *turn, uint64_t time_ns)
{
    int64_t since_ns = turn->begun_ns - phase_of(game)->start_ns;

    if (game->sample_count < game->sample_room)
        game->samples[game->sample_count++] = (struct sample){
            .time_ns = time_ns < TIME_MOST ? time_ns : TIME_MOST,
            .dst = (uint16_t)game->lane->request.sends[turn->flow].dst,
            .size = pingpong_bytes(game, turn),
            .begun_us = (uint32_t)(since_ns < MOMENT_MOST_NS ? since_ns / NS_PER_US : UINT32_MAX),
        };
}

void pingpong_back(struct pingpong *game, struct pingpong_turn *turn, int64_t at_ns)
{
    uint64_t time_ns = (uint64_t)(at_ns - turn->begun_ns);

    turn->in_flight = false;
    turn->played++;
    if (at_ns == 0)
        return;
    if (turn->measured)
        histogram_add(&game->flows[turn->flow].times, time_ns);
    keep_sample(game, turn, time_ns);
    game->lane->request.sends[turn->flow].side->last_ns = at_ns;
}

int64_t pingpong_due_ns(const struct pingpong *game, const struct pingpong_turn *turn)
{
    const struct lane_request *request = &game->lane->request;
    int64_t timeout_ns = request->phase->pingpong.timeout_ns;
    uint64_t line_bps = request->line_rate_bps > 0 ? request->line_rate_bps : UNKNOWN_LINE_BPS;
    uint32_t flows = request->send_count + request->receive_count; /* they share the line */

    return turn->begun_ns + (timeout_ns > 0 ? timeout_ns : TIMEOUT_NS) +
           (int64_t)(TIMEOUT_ROUNDS * 2 * 8e9 * pingpong_bytes(game, turn) *
                     (flows > 1 ? flows : 1) / (double)line_bps);
}

bool pingpong_run(struct pingpong *game, const struct pingpong_hooks *hooks, int64_t now_ns)
{
    bool began = false;

    for (uint32_t i = 0; i < game->turn_count; i++) {
        struct pingpong_turn *turn = &game->turns[i];
        int64_t at_ns = 0;

        if (turn->in_flight && hooks->await(game->lane, turn, now_ns, &at_ns))
            pingpong_back(game, turn, at_ns);
        if (turn->in_flight || !begin(game, turn))
            continue;
        hooks->send(game->lane, turn, now_ns);
        began = true;
    }
    return began;
}

bool pingpong_ended(const struct pingpong *game, uint32_t flow)
{
    const struct pingpong_turn *turn = &game->turns[phase_of(game)->pingpong.random ? 0 : flow];

    return !turn->in_flight && is_over(game, turn, clock_now());
}

/* --- what was measured --- */

bool pingpong_latency(const struct pingpong *game, const struct lane_flow *flow,
                      struct latency *sum)
{
    for (uint32_t i = 0; game->lane != NULL && i < game->lane->request.send_count; i++) {
        const struct lane_flow *own = &game->lane->request.sends[i];

        /* By its ranks: with several queues the caller's flow is not the lane's own copy. */
        if (own->src != flow->src || own->dst != flow->dst)
            continue;
        histogram_merge(&sum->histogram, &game->flows[i].times);
        sum->sent += game->flows[i].measured;
        return true;
    }
    return false;
}
