/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_prober.h"

#include "clock.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FLOWS_MAX 4096u /* 18 KB each and their stamps; with more none are probed */
/* An answer that takes longer than this counts as lost, or sooner where a flow has more probes in
 * that time than there is room for stamps. */
#define ANSWER_S 4.0
#define ROOM_LEAST 64u
#define ROOM_MOST 65536u

double probe_rate(const struct probe_budget *budget)
{
    double bits = 8.0 * (budget->frame_bytes + FRAME_OVERHEAD_L1);
    double frames = (double)budget->line_rate_bps / bits, rate;

    if (budget->line_rate_bps == 0 && budget->load.unlimited)
        return PROBE_FLOW_FPS;
    if (budget->line_rate_bps == 0)
        frames = budget->load.rate_bps > 0 ? budget->load.rate_bps / bits : budget->load.rate_fps;
    rate = PROBE_LOAD_SHARE * frames / (budget->flows > 0 ? budget->flows : 1);
    return rate < PROBE_FLOW_FPS ? rate : PROBE_FLOW_FPS;
}

double probe_displaces(const struct probe_budget *budget, double rate_fps)
{
    const struct load *load = &budget->load;
    double line_bps = (double)budget->line_rate_bps;
    double bits = 8.0 * (budget->frame_bytes + FRAME_OVERHEAD_L1);
    double probes_bps = rate_fps * budget->flows * bits;
    double load_bps = load->unlimited      ? line_bps
                      : load->rate_bps > 0 ? load->rate_bps
                                           : load->rate_fps * bits;
    double excess_bps = load_bps + probes_bps - line_bps;

    if (line_bps == 0 || probes_bps == 0 || excess_bps <= 0)
        return 0;
    return excess_bps < probes_bps ? excess_bps / probes_bps : 1;
}

/* The flows' rate, and the share of each frame that the load yields. */
static void choose_rate(struct frame_prober *prober, const struct lane_request *request)
{
    const struct phase *phase = request->phase;
    struct probe_budget budget = {
        .line_rate_bps = request->line_rate_bps,
        .load = phase->load,
        .flows = request->port_send_count + request->receive_count,
    };
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < phase->size_count; i++)
        bytes += phase->sizes[i];
    assert(phase->size_count > 0); /* others are refused before */
    budget.frame_bytes = (uint32_t)(bytes / phase->size_count);
    prober->rate_fps =
        phase->latency.probe_fps > 0 ? phase->latency.probe_fps : probe_rate(&budget);
    prober->displaces = probe_displaces(&budget, prober->rate_fps);
}

/* Room for what is sent; the lanes of a port's other queues share it. */
static int make_sent(struct frame_prober *prober)
{
    prober->room = ROOM_LEAST;
    while (prober->room < ROOM_MOST && prober->room < prober->rate_fps * ANSWER_S)
        prober->room *= 2;
    prober->sent = calloc(prober->count, sizeof *prober->sent);
    prober->stamps = calloc((size_t)prober->count * prober->room, sizeof *prober->stamps);
    if (prober->sent == NULL || prober->stamps == NULL) {
        free(prober->sent); /* frame_prober_free takes it for another's where there are no stamps */
        prober->sent = NULL;
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < prober->count; i++)
        prober->sent[i].stamps = &prober->stamps[(size_t)i * prober->room];
    return 0;
}

int frame_prober_make(struct frame_prober *prober, struct lane_request *request,
                      const struct frame_prober *first)
{
    const struct phase *phase = request->phase;

    if (request->port_sends == NULL) {
        request->port_sends = request->sends;
        request->port_send_count = request->send_count;
    }
    prober->next_ns = CLOCK_NEVER;
    prober->answers = phase->latency.probe_fps != 0 && phase->traffic != TRAFFIC_PROBE;
    prober->tags[0] = htobe16(probe_tag(phase->tag));
    prober->tags[1] = htobe16(probe_answer_tag(phase->tag));
    if (!prober->answers || request->port_send_count == 0 || request->port_send_count > FLOWS_MAX)
        return 0;
    prober->count = request->port_send_count;
    choose_rate(prober, request);
    prober->round_trips = calloc(prober->count, sizeof *prober->round_trips);
    prober->flow_of = calloc(PATTERN_RANKS_MAX, sizeof *prober->flow_of);
    if (prober->round_trips == NULL || prober->flow_of == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < prober->count; i++)
        prober->flow_of[request->port_sends[i].dst] = (uint16_t)(i + 1);
    if (first == NULL)
        return make_sent(prober);
    prober->sent = first->sent;
    prober->room = first->room;
    return 0;
}

void frame_prober_free(struct frame_prober *prober)
{
    if (prober->stamps != NULL)
        free(prober->sent);
    free(prober->stamps);
    free(prober->round_trips);
    free(prober->flow_of);
}

/* In the window; where there is none but the whole phase, while the lane sends. */
void frame_prober_start(struct frame_prober *prober, const struct lane_request *request,
                        uint64_t seed)
{
    const struct phase *phase = request->phase;
    bool window = phase_is_timed(phase);

    if (prober->count == 0 || request->send_count == 0)
        return;
    prober->until_ns = window ? phase->close_ns : CLOCK_NEVER;
    probe_scheduler_begin(&prober->schedule, 1e9 / (prober->rate_fps * request->send_count),
                          window ? phase->open_ns : phase->start_ns, seed);
    prober->next_ns = prober->schedule.next_ns;
}

bool frame_prober_is_due(struct frame_prober *prober, const struct lane *lane, bool sends,
                         int64_t now_ns)
{
    if (now_ns >= prober->until_ns || now_ns >= lane->stop_ns ||
        (prober->until_ns == CLOCK_NEVER && !sends))
        prober->next_ns = CLOCK_NEVER;
    return now_ns >= prober->next_ns;
}

void frame_prober_next(struct frame_prober *prober, const struct lane *lane, int64_t now_ns)
{
    prober->at = prober->at + 1 < lane->request.send_count ? prober->at + 1 : 0;
    probe_scheduler_step(&prober->schedule, now_ns);
    prober->next_ns = prober->schedule.next_ns;
}

static struct frame_prober_sent *sent_of(const struct frame_prober *prober,
                                         const struct lane_flow *flow)
{
    return &prober->sent[prober->flow_of[flow->dst] - 1];
}

void frame_prober_leaves(struct frame_prober *prober, const struct lane_flow *flow,
                         int64_t stamp_ns)
{
    struct frame_prober_sent *sent = sent_of(prober, flow);
    uint32_t number = atomic_load_explicit(&sent->count, memory_order_relaxed);
    struct signature stamped = {0};
    struct signature_time time = signature_time(stamp_ns);

    signature_stamp(&stamped, number, &time, time.sum);
    atomic_store_explicit(&sent->stamps[number % prober->room], signature_ns(&stamped),
                          memory_order_relaxed);
    atomic_store_explicit(&sent->count, number + 1, memory_order_release);
    prober->in_flight++;
}

void frame_prober_stays(struct frame_prober *prober, const struct lane_flow *flow)
{
    atomic_fetch_sub_explicit(&sent_of(prober, flow)->count, 1, memory_order_relaxed);
    prober->in_flight--;
}

bool frame_prober_measure(struct frame_prober *prober, const struct signature *answer,
                          int64_t came_ns)
{
    uint16_t flow = prober->count > 0 ? prober->flow_of[be16toh(answer->src)] : 0;
    uint64_t stamp_ns = signature_ns(answer), expected = stamp_ns;
    int64_t took_ns = came_ns - (int64_t)stamp_ns;
    uint32_t number = be32toh(answer->sequence), age;
    struct frame_prober_sent *sent;

    if (flow == 0)
        return false;
    sent = &prober->sent[flow - 1];
    age = atomic_load_explicit(&sent->count, memory_order_acquire) - number;
    if (age == 0 || age > INT32_MAX)
        return false; /* a number that is yet to be sent */
    if (age > prober->room)
        return true; /* too late */
    if (!atomic_compare_exchange_strong_explicit(&sent->stamps[number % prober->room], &expected,
                                                 FRAME_PROBER_ANSWERED, memory_order_relaxed,
                                                 memory_order_relaxed))
        return expected == FRAME_PROBER_ANSWERED;
    histogram_add(&prober->round_trips[flow - 1], took_ns > 0 ? (uint64_t)took_ns : 0);
    prober->in_flight--;
    return true;
}

bool frame_prober_sum(const struct frame_prober *prober, const struct lane_flow *flow,
                      struct latency *sum)
{
    uint16_t place;

    if (prober->count == 0 || flow->dst >= PATTERN_RANKS_MAX || prober->flow_of[flow->dst] == 0)
        return false;
    place = (uint16_t)(prober->flow_of[flow->dst] - 1);
    histogram_merge(&sum->histogram, &prober->round_trips[place]);
    if (prober->stamps != NULL)
        sum->sent += prober->sent[place].count;
    return true;
}
