/* SPDX-License-Identifier: BSD-3-Clause */
#include "prober.h"

#include "clock.h"
#include "prng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define FLOWS_MAX 4096u /* 18 KB each and their stamps; with more none are probed */
/* Time after which a probe without an answer counts as lost, in seconds; earlier if the flow sends
 * more probes meanwhile than its log has room for stamps. */
#define ANSWER_S 4.0
#define ROOM_LEAST 64u
#define ROOM_MOST 65536u
#define STAMP_MOST ((UINT64_C(1) << 48) - 1) /* of a signature: 78 hours */
#define TIMEOUT_NS (250 * NS_PER_MS)
#define TIMEOUT_ROUNDS 4
#define UNKNOWN_LINE_BPS 100000000u

static const struct phase *phase_of(const struct prober *prober)
{
    return prober->lane->request.phase;
}

/* --- preparation --- */

double prober_rate(const struct lane_request *request, double line_bytes)
{
    const struct load *load = &request->phase->load;
    uint32_t flows = request->receive_count +
                     (request->port_sends != NULL ? request->port_send_count : request->send_count);
    double bits = 8 * line_bytes, line_bps = (double)request->line_rate_bps, rate;

    if (request->phase->latency.probe_fps >= 0)
        return request->phase->latency.probe_fps;
    if (line_bps == 0 && !load->unlimited)
        line_bps = load->rate_bps > 0 ? load->rate_bps : load->rate_fps * bits;
    rate = PROBER_SHARE * line_bps / bits / (flows > 0 ? flows : 1);
    return line_bps > 0 && rate < PROBER_FPS ? rate : PROBER_FPS;
}

bool prober_displaces(const struct lane_request *request, double line_bytes, double rate_fps)
{
    const struct load *load = &request->phase->load;
    double bits = 8 * line_bytes, line_bps = (double)request->line_rate_bps;
    double probes_bps = rate_fps * (request->port_send_count + request->receive_count) * bits;
    double load_bps = load->unlimited      ? line_bps
                      : load->rate_bps > 0 ? load->rate_bps
                                           : load->rate_fps * bits;

    return line_bps > 0 && load_bps + probes_bps > line_bps;
}

int prober_make(struct prober *prober, struct lane *lane, double rate_fps,
                const struct prober *first)
{
    struct lane_request *request = &lane->request;
    const struct phase *phase = request->phase;

    if (request->port_sends == NULL) {
        request->port_sends = request->flows;
        request->port_send_count = request->send_count;
    }
    prober->lane = lane;
    prober->next_ns = CLOCK_NEVER;
    prober->pingpong = phase->traffic == TRAFFIC_PINGPONG;
    prober->answers = !prober->pingpong && rate_fps > 0;
    if ((!prober->pingpong && (rate_fps <= 0 || request->port_send_count > FLOWS_MAX)) ||
        request->port_send_count == 0)
        return 0;
    prober->rate_fps = rate_fps;
    prober->count = request->port_send_count;
    prober->flows = calloc(prober->count, sizeof *prober->flows);
    prober->flow_of = calloc(PATTERN_RANKS_MAX, sizeof *prober->flow_of);
    if (prober->flows == NULL || prober->flow_of == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < prober->count; i++)
        prober->flow_of[request->port_sends[i].dst] = (uint16_t)(i + 1);
    prober->room = prober->pingpong ? 1 : ROOM_LEAST;
    while (!prober->pingpong && prober->room < ROOM_MOST &&
           prober->room < prober->rate_fps * ANSWER_S)
        prober->room *= 2;
    prober->log = first != NULL
                      ? first->log
                      : calloc((size_t)prober->count * (1 + prober->room), sizeof *prober->log);
    prober->is_first = first == NULL;
    return prober->log == NULL ? -ENOMEM : 0;
}

void prober_free(struct prober *prober)
{
    if (prober->is_first)
        free(prober->log);
    free(prober->flows);
    free(prober->flow_of);
}

/* --- when probes leave --- */

/* Return a random number of at least 0 and below 1. */
static double draw(struct prober *prober)
{
    return (double)(prng_next(&prober->random) >> 11) * 0x1p-53;
}

void prober_begin(struct prober *prober, uint64_t seed)
{
    const struct lane_request *request = &prober->lane->request;
    const struct phase *phase = request->phase;
    prober->random = seed;
    if (prober->pingpong || prober->count == 0 || request->send_count == 0)
        return;
    prober->until_ns = phase_measures_to(phase);
    prober->gap_ns = 1e9 / (prober->rate_fps * request->send_count);
    prober->next_ns = phase_measures_from(phase) + (int64_t)(draw(prober) * prober->gap_ns);
}

bool prober_due(struct prober *prober, bool sends, int64_t now_ns)
{
    if (now_ns >= prober->until_ns || now_ns >= prober->lane->stop_ns ||
        (prober->until_ns == CLOCK_NEVER && !sends))
        prober->next_ns = CLOCK_NEVER;
    return now_ns >= prober->next_ns;
}

void prober_step(struct prober *prober, int64_t now_ns)
{
    uint32_t flows = prober->lane->request.send_count;
    int64_t from_ns = prober->next_ns;

    prober->at = prober->at + 1 < flows ? prober->at + 1 : 0;
    if ((double)(now_ns - from_ns) >
        prober->gap_ns * flows) /* one probe of each flow is sent late */
        from_ns = now_ns - (int64_t)(prober->gap_ns * (flows - 1));
    prober->next_ns = from_ns + (int64_t)((0.5 + draw(prober)) * prober->gap_ns);
}

/* --- sent probes and their answers --- */

static bool is_measured(const struct phase *phase, uint64_t stamp_ns)
{
    int64_t begun_ns = phase->start_ns + (int64_t)stamp_ns;

    return begun_ns >= phase_measures_from(phase) && begun_ns < phase_measures_to(phase);
}

void prober_leaves(struct prober *prober, uint32_t flow, int64_t stamp_ns)
{
    uint64_t number = prober_left(prober, flow);
    uint64_t stamp = (stamp_ns > 0 ? (uint64_t)stamp_ns : 0) & STAMP_MOST;

    atomic_store_explicit(prober_entry(prober, flow, number), stamp, memory_order_relaxed);
    atomic_store_explicit(prober_count(prober, flow), number + 1, memory_order_release);
    prober->flows[flow].sent += is_measured(phase_of(prober), stamp);
    prober->in_flight++;
}

void prober_stays(struct prober *prober, uint32_t flow)
{
    uint64_t number = prober_left(prober, flow) - 1;

    prober->flows[flow].sent -= is_measured(phase_of(prober), prober_stamp(prober, flow, number));
    atomic_store_explicit(prober_count(prober, flow), number, memory_order_relaxed);
    prober->in_flight--;
}

bool prober_back(struct prober *prober, uint32_t flow, uint32_t number, uint64_t stamp_ns,
                 int64_t came_ns)
{
    uint64_t left = atomic_load_explicit(prober_count(prober, flow), memory_order_acquire);
    uint32_t age = (uint32_t)left - number;
    int64_t took_ns = came_ns - phase_of(prober)->start_ns - (int64_t)stamp_ns;
    uint64_t expected = stamp_ns, took = took_ns > 0 ? (uint64_t)took_ns : 0;

    if (age == 0 || age > INT32_MAX || age > left)
        return false; /* the number was not sent */
    if (age > prober->room)
        return true; /* too late */
    if (!atomic_compare_exchange_strong_explicit(prober_entry(prober, flow, number), &expected,
                                                 PROBER_ENDED, memory_order_relaxed,
                                                 memory_order_relaxed))
        return expected == PROBER_ENDED;
    prober->in_flight--;
    if (came_ns != 0 && is_measured(phase_of(prober), stamp_ns))
        histogram_add(&prober->flows[flow].times, took, 1);
    if (prober->pingpong && came_ns != 0)
        prober->lane->request.flows[flow].side.last_ns = came_ns;
    return true;
}

void prober_forget(struct prober *prober, uint32_t flow, int64_t before_ns)
{
    uint64_t *oldest = &prober->flows[flow].oldest, left = prober_left(prober, flow);

    for (; *oldest < left; ++*oldest) {
        uint64_t stamp = prober_stamp(prober, flow, *oldest);

        if (stamp != PROBER_ENDED && (int64_t)stamp >= before_ns)
            return;
        if (stamp != PROBER_ENDED)
            (void)prober_back(prober, flow, (uint32_t)*oldest, stamp, 0);
    }
}

/* --- ping-pong --- */

/* Return whether a flow has a ping-pong message in flight. */
static bool is_in_flight(const struct prober *prober, uint32_t flow)
{
    uint64_t left = prober_left(prober, flow);

    return left > 0 && prober_stamp(prober, flow, left - 1) != PROBER_ENDED;
}

/* Return the time at which a flow's message in flight counts as lost. */
static int64_t lost_ns(const struct prober *prober, uint32_t flow)
{
    const struct lane_request *request = &prober->lane->request;
    int64_t timeout_ns = request->phase->answer_timeout_ns;
    uint64_t line_bps = request->line_rate_bps > 0 ? request->line_rate_bps : UNKNOWN_LINE_BPS;
    uint64_t number = prober_left(prober, flow) - 1;
    uint32_t flows = request->send_count + request->receive_count; /* flows share the line */
    uint32_t bytes = prober_bytes(request->phase, number);

    return request->phase->start_ns + (int64_t)prober_stamp(prober, flow, number) +
           (timeout_ns > 0 ? timeout_ns : TIMEOUT_NS) +
           (int64_t)(TIMEOUT_ROUNDS * 2 * 8e9 * bytes * (flows > 1 ? flows : 1) / (double)line_bps);
}

int64_t prober_pingpong(struct prober *prober, bool loses,
                        void (*send)(struct lane *lane, uint32_t flow))
{
    const struct lane_request *request = &prober->lane->request;
    int64_t next_ns = CLOCK_NEVER;

    prober->ended = true;
    for (uint32_t flow = 0; flow < prober->count; flow++) {
        struct flow_side *side = &request->flows[flow].side;
        int64_t now_ns = clock_now();
        bool waits = is_in_flight(prober, flow);

        if (waits && loses && now_ns >= lost_ns(prober, flow)) {
            prober_forget(prober, flow, INT64_MAX);
            waits = false;
        }
        if (!waits && now_ns < prober->lane->stop_ns) {
            side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
            prober_leaves(prober, flow, now_ns - request->phase->start_ns);
            send(prober->lane, flow);
            next_ns = now_ns;
            waits = true;
        }
        prober->ended &= !waits;
        if (waits && loses && lost_ns(prober, flow) < next_ns)
            next_ns = lost_ns(prober, flow);
    }
    return next_ns;
}

/* --- results --- */

void prober_read(const struct prober *prober, const struct lane_flow *flow,
                 struct flow_reading *reading)
{
    enum latency_kind kind = prober->pingpong ? LATENCY_PINGPONG : LATENCY_ROUND_TRIP;
    const struct prober_flow *own;

    /* Found by its ranks: the caller's flow may be another copy than the lane's. */
    if (prober->count == 0 || flow->src != prober->lane->request.port_sends[0].src ||
        flow->dst >= PATTERN_RANKS_MAX || prober->flow_of[flow->dst] == 0)
        return;
    own = &prober->flows[prober_place(prober, flow)];
    histogram_merge(&reading->latency[kind].histogram, &own->times);
    reading->latency[kind].sent += own->sent;
    reading->measured[kind] = true;
}
