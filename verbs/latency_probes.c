/* SPDX-License-Identifier: BSD-3-Clause */
#include "latency_probes.h"

#include "clock.h"
#include "lane_options.h"
#include "lane_streams.h"
#include "prober.h"
#include "reply_streams.h"

#include <errno.h>
#include <stdlib.h>

#define PROBE_BYTES 64
#define FIRST_STREAM 128 /* behind all queue pairs that a flow can have */
/* A software device's every packet costs a core what the load needs. */
#define SOFTWARE_FPS 100.0
#define TIMEOUT_NS (500 * NS_PER_MS) /* unreliable: a probe may wait in queues on its way */
static_assert(VERBS_QUEUE_PAIRS_MAX < FIRST_STREAM && FIRST_STREAM + VERBS_PROBE_QPS <= UINT8_MAX,
              "a message's header has 8 bits for its stream");

struct verbs_probes {
    struct phase phase;           /* the load's, with what is different for them ... */
    struct verbs_options options; /* ... and its options */
    struct lane_flow *flows;      /* those sent, then those received: as the load's ... */
    struct flow_side *sides;      /* ... with counts that nobody reads */
    struct verbs_prober *probers; /* as what is sent */
};

/* Of a flow, per second; 0: none. Both ends must come to the same of whether there are any, which
 * therefore depends on the phase alone. */
static double rate_of(const struct verbs_lane *load)
{
    const struct lane_request *request = &load->lane.request;
    double rate = flow_load_probe_rate(request, verbs_line_bytes(load, PROBE_BYTES));
    bool automatic = request->phase->latency.probe_fps < 0;

    return automatic && load->context.port->software && rate > SOFTWARE_FPS ? SOFTWARE_FPS : rate;
}

/* --- preparation --- */

/* By the service of the load, so that the network treats them alike; and by an operation that has
 * a destination that can answer. */
static void plan_phase(struct verbs_probes *probes, const struct verbs_lane *load)
{
    struct verbs_options *options = &probes->options;
    struct phase *phase = &probes->phase;

    *phase = *load->lane.request.phase;
    phase->options = options;
    phase->sizes[0] = PROBE_BYTES;
    phase->size_count = 1;
    phase->load = (struct load){.unlimited = true};
    phase->latency = (struct latency_options){.probe_fps = 0};
    *options = load->context.options;
    options->operation = options->service == VERBS_UC ? VERBS_WRITE : VERBS_SEND;
    options->queue_pairs = 1;
    options->depth = VERBS_PROBES_OUT;
    options->signal_every = 1;
    options->inline_bytes = VERBS_AUTOMATIC;
}

static int plan_flows(struct verbs_probes *probes, struct lane_request *request)
{
    int rc = verbs_flows_copy(request, &probes->flows, &probes->sides);

    probes->probers = calloc(request->send_count + 1, sizeof *probes->probers);
    if (rc < 0 || probes->probers == NULL)
        return -ENOMEM;
    request->sends = probes->flows;
    request->receives = probes->flows + request->send_count;
    request->phase = &probes->phase;
    return 0;
}

static void plan_probers(struct verbs_probes *probes, const struct verbs_lane *load,
                         double rate_fps)
{
    const struct lane_request *request = &load->lane.request;

    for (uint32_t i = 0; i < request->send_count; i++) {
        const struct lane_flow *flow = &request->sends[i];

        probes->probers[i] = (struct verbs_prober){
            .schedule = {.gap_ns = NS_PER_S / rate_fps,
                         .seed = prng_seed(request->phase->seed, flow->src, flow->dst)},
            .timeout_ns = load->context.reliable ? CLOCK_NEVER : TIMEOUT_NS,
        };
    }
}

static void free_state(struct verbs_probes *probes)
{
    if (probes == NULL)
        return;
    free(probes->flows);
    free(probes->sides);
    free(probes->probers);
    free(probes);
}

static void free_probes(struct verbs_lane *lane)
{
    free_state(lane->probes);
}

/* --- the worker's calls --- */

/* No more than either end has places for, and one for the eof. */
static uint32_t max_out(const struct verbs_sender *sender, const struct verbs_receiver *replies)
{
    uint32_t there = sender->base.theirs.slots;
    uint32_t here = replies->base.config.slots;
    uint32_t most = (there < here ? there : here) - 1;

    return most < VERBS_PROBES_OUT ? most : VERBS_PROBES_OUT;
}

void verbs_probes_start(struct verbs_lane *lane, const struct phase *phase)
{
    lane->probes->phase.start_ns = phase->start_ns;
    lane->probes->phase.open_ns = phase->open_ns;
    lane->probes->phase.close_ns = phase->close_ns;
    lane->probes->phase.stop_ns = phase->stop_ns;
    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        lane->probes->probers[i].max = max_out(&lane->senders[i], verbs_replies_to(lane, i));
        verbs_prober_begin(&lane->probes->probers[i], phase->start_ns);
    }
}

static void take_replies(struct verbs_prober *prober, const struct verbs_receiver *replies)
{
    const struct verbs_verifier *verifier = &replies->verifier;
    struct flow_side *side = replies->base.flow->side;

    if (prober->out == 0)
        return;
    verbs_prober_replies(prober, verifier->at.sequence, verifier->seen,
                         side->corrupted == 0 ? clock_now() : 0);
    side->corrupted = 0;
}

/* Sends what is due, and the eof once all is back; returns when the next is due. */
static int64_t run_prober(struct verbs_lane *lane, uint32_t flow, int64_t now_ns)
{
    struct verbs_prober *prober = &lane->probes->probers[flow];
    const struct phase *phase = lane->lane.request.phase;
    struct verbs_sender *sender = &lane->senders[flow];
    int64_t begun_ns;

    take_replies(prober, verbs_replies_to(lane, flow));
    if (now_ns >= lane->lane.stop_ns) {
        sender->stopping = sender->stopping || !verbs_prober_waits(prober, now_ns);
        return CLOCK_NEVER;
    }
    if (!verbs_prober_due(prober, now_ns))
        return prober->schedule.next_ns;
    begun_ns = clock_now();
    if (verbs_sender_post(sender, 1, now_ns) > 0)
        verbs_prober_sent(prober, begun_ns,
                          begun_ns >= phase->open_ns && begun_ns < phase->close_ns);
    return prober->schedule.next_ns;
}

static int64_t run_probers(struct verbs_lane *lane, int64_t now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    verbs_replies_send(lane, now_ns);
    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        int64_t due_ns = run_prober(lane, i, now_ns);

        wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
    }
    verbs_senders_finish(lane, now_ns);
    return wake_ns;
}

static const struct verbs_traffic traffic_probes = {
    .has_replies = true,
    .slots = VERBS_PROBES_OUT + 1, /* the eof takes one */
    .first_stream = FIRST_STREAM,
    .free = free_probes,
    .send = run_probers,
};

int verbs_probes_make(struct verbs_lane **lane, const struct verbs_lane *load, struct err *err)
{
    struct lane_request request = load->lane.request;
    double rate_fps = rate_of(load);
    struct verbs_probes *probes;
    int rc;

    if (rate_fps <= 0 || load->forwards)
        return 0;
    probes = calloc(1, sizeof *probes);
    rc = probes != NULL ? plan_flows(probes, &request) : -ENOMEM;
    if (rc == 0) {
        plan_phase(probes, load);
        plan_probers(probes, load, rate_fps);
        rc = verbs_lane_make(lane, &request, &traffic_probes, err);
    }
    if (rc == 0) {
        (*lane)->probes = probes;
        return 0;
    }
    free_state(probes);
    return err_set(err, rc, "%s: out of memory", load->context.port->label);
}

/* --- what was measured --- */

bool verbs_probes_latency(const struct verbs_lane *lane, const struct lane_flow *flow,
                          struct latency *sum)
{
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 0; i < request->send_count; i++) {
        const struct verbs_prober *prober = &lane->probes->probers[i];

        if (request->sends[i].src != flow->src || request->sends[i].dst != flow->dst)
            continue;
        histogram_merge(&sum->histogram, &prober->times);
        sum->sent += prober->measured;
        return true;
    }
    return false;
}
