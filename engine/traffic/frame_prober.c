/* SPDX-License-Identifier: BSD-3-Clause */
#include "frame_prober.h"

#include "clock.h"
#include "probe_frames.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FLOWS_MAX 4096u /* 18 KB each; with more none are probed */

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

int frame_prober_make(struct frame_prober *prober, struct lane_request *request)
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
    prober->flows = calloc(prober->count, sizeof *prober->flows);
    prober->flow_of = calloc(PATTERN_RANKS_MAX, sizeof *prober->flow_of);
    if (prober->flows == NULL || prober->flow_of == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < prober->count; i++)
        prober->flow_of[request->port_sends[i].dst] = (uint16_t)(i + 1);
    return 0;
}

void frame_prober_free(struct frame_prober *prober)
{
    free(prober->flows);
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

void frame_prober_measure(struct frame_prober *prober, const struct signature *answer,
                          int64_t came_ns)
{
    uint16_t flow = prober->count > 0 ? prober->flow_of[be16toh(answer->src)] : 0;
    int64_t took_ns = came_ns - (int64_t)signature_ns(answer);
    struct frame_prober_flow *kept;
    enum sequence_verdict verdict;

    if (flow == 0)
        return;
    kept = &prober->flows[flow - 1];
    verdict = sequence_judge(&kept->sequence, &kept->past, be32toh(answer->sequence));
    if (verdict != SEQUENCE_FRESH && verdict != SEQUENCE_REORDERED)
        return;
    histogram_add(&kept->round_trips, took_ns > 0 ? (uint64_t)took_ns : 0);
    prober->in_flight--;
}

bool frame_prober_sum(const struct frame_prober *prober, const struct lane_flow *flow,
                      struct latency *sum)
{
    const struct frame_prober_flow *kept;

    if (prober->count == 0 || flow->dst >= PATTERN_RANKS_MAX || prober->flow_of[flow->dst] == 0)
        return false;
    kept = frame_prober_flow(prober, flow);
    histogram_merge(&sum->histogram, &kept->round_trips);
    sum->sent += kept->sent;
    return true;
}
