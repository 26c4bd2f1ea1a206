/* SPDX-License-Identifier: BSD-3-Clause */
#include "latency_probes.h"

#include "clock.h"
#include "prober.h"

#include <errno.h>
#include <stdlib.h>

#define PROBE_BYTES 64
/* A software device's every packet costs a core what the load needs. */
#define SOFTWARE_FPS 100.0
#define PATIENCE_NS (500 * NS_PER_MS) /* unreliable: what a probe may wait in queues on its way */

struct verbs_probes {
    struct phase phase;      /* the load's, with what is different for them */
    struct lane_flow *flows; /* those sent, then those received: as the load's ... */
    struct flow_side *sides; /* ... with counts that nobody reads */
    struct verbs_lane *lane;
    struct verbs_prober *probers; /* as what is sent */
};

/* Of a flow, in a second; 0: none. Both ends must come to the same of whether there are any, which
 * therefore depends on the phase alone. */
static double rate_of(const struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    double rate = flow_load_probe_rate(request, verbs_line_bytes(lane, PROBE_BYTES));

    if (request->phase->latency.probe_fps < 0 && lane->port->software && rate > SOFTWARE_FPS)
        return SOFTWARE_FPS;
    return rate;
}

/* --- preparation --- */

/* By the service of the load, so that the network treats them alike; and by an operation that has
 * a destination who can answer. */
static void plan_phase(struct verbs_probes *probes, const struct verbs_lane *lane)
{
    struct phase *phase = &probes->phase;
    struct verbs_options *options = &phase->verbs;

    *phase = *lane->lane.request.phase;
    phase->sizes[0] = PROBE_BYTES;
    phase->size_count = 1;
    phase->load = (struct load){.unlimited = true};
    phase->latency = (struct latency_options){.probe_fps = 0};
    *options = lane->options;
    options->operation = options->service == VERBS_UC ? VERBS_WRITE : VERBS_SEND;
    options->immediate = options->operation == VERBS_WRITE;
    options->queue_pairs = 1;
    options->depth = VERBS_PROBES_OUT;
    options->signal_every = 1;
    options->inline_bytes = VERBS_AUTOMATIC;
}

static int plan_flows(struct verbs_probes *probes, struct lane_request *request)
{
    uint32_t count = request->send_count + request->receive_count;

    probes->flows = calloc(count + 1, sizeof *probes->flows);
    probes->sides = calloc(count + 1, sizeof *probes->sides);
    probes->probers = calloc(request->send_count + 1, sizeof *probes->probers);
    if (probes->flows == NULL || probes->sides == NULL || probes->probers == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < count; i++) {
        probes->flows[i] = i < request->send_count ? request->sends[i]
                                                   : request->receives[i - request->send_count];
        probes->flows[i].side = &probes->sides[i];
    }
    request->sends = probes->flows;
    request->receives = probes->flows + request->send_count;
    request->phase = &probes->phase;
    return 0;
}

static void plan_probers(struct verbs_probes *probes, double rate_fps)
{
    const struct lane_request *request = &probes->lane->lane.request;

    for (uint32_t i = 0; i < request->send_count; i++) {
        const struct lane_flow *flow = &request->sends[i];

        probes->probers[i] = (struct verbs_prober){
            .schedule = {.gap_ns = NS_PER_S / rate_fps,
                         .seed = draw_seed(request->phase->seed, flow->src, flow->dst)},
            .patience_ns = probes->lane->reliable ? CLOCK_NEVER : PATIENCE_NS,
        };
    }
}

int verbs_probes_make(struct verbs_lane *lane, struct err *err)
{
    struct lane_request request = lane->lane.request;
    double rate_fps = rate_of(lane);
    int rc;

    if (rate_fps <= 0 || lane->forwards)
        return 0;
    lane->probes = calloc(1, sizeof *lane->probes);
    rc = lane->probes != NULL ? plan_flows(lane->probes, &request) : -ENOMEM;
    if (rc < 0)
        return err_set(err, rc, "%s: out of memory", lane->port->label);
    plan_phase(lane->probes, lane);
    rc = verbs_lane_make(&lane->probes->lane, &request, lane->probes, err);
    if (rc == 0)
        plan_probers(lane->probes, rate_fps);
    return rc;
}

void verbs_probes_free(struct verbs_lane *lane)
{
    struct verbs_probes *probes = lane->probes;

    if (probes == NULL)
        return;
    if (probes->lane != NULL)
        verbs_lane_destroy(&probes->lane->lane);
    free(probes->flows);
    free(probes->sides);
    free(probes->probers);
    free(probes);
}

struct verbs_lane *verbs_probes_lane(const struct verbs_lane *lane)
{
    return lane->probes != NULL ? lane->probes->lane : NULL;
}

/* --- the worker's calls --- */

/* No more than either end has places for, and one for the end eof. */
static uint32_t most_out(const struct verbs_sender *sender, const struct verbs_receiver *receiver)
{
    uint32_t there = sender->endpoint.theirs.slots;
    uint32_t here = receiver->endpoint.config.slots;
    uint32_t most = (there < here ? there : here) - 1;

    return most < VERBS_PROBES_OUT ? most : VERBS_PROBES_OUT;
}

void verbs_probes_start(struct verbs_lane *lane, int64_t now_ns)
{
    const struct phase *phase = lane->lane.request.phase;
    struct verbs_probes *probes = lane->probes;
    const struct lane_request *request;

    if (probes == NULL)
        return;
    probes->phase.start_ns = phase->start_ns;
    probes->phase.open_ns = phase->open_ns;
    probes->phase.close_ns = phase->close_ns;
    probes->phase.stop_ns = phase->stop_ns;
    verbs_lane_start(&probes->lane->lane, now_ns);
    request = &probes->lane->lane.request;
    for (uint32_t i = 0; i < request->send_count; i++) {
        const struct verbs_receiver *receiver =
            &probes->lane->receivers[request->receive_count + i];

        probes->probers[i].most = most_out(&probes->lane->senders[i], receiver);
        verbs_prober_begin(&probes->probers[i], phase->start_ns);
    }
}

static void take_returns(struct verbs_prober *prober, const struct verbs_receiver *receiver)
{
    struct flow_side *side = receiver->endpoint.flow->side;
    const struct verbs_verifier *verifier = &receiver->verifier;

    if (prober->out == 0)
        return;
    if (side->corrupted == 0)
        verbs_prober_back(prober, verifier->at.sequence, verifier->seen, clock_now());
    else
        verbs_prober_spoilt(prober, verifier->at.sequence, verifier->seen);
    side->corrupted = 0;
}

/* Sends what is due, and the end mark once all is back; returns when the next is due. */
static int64_t work_prober(struct verbs_lane *lane, uint32_t flow, int64_t now_ns)
{
    struct verbs_prober *prober = &lane->carries->probers[flow];
    const struct phase *phase = lane->lane.request.phase;
    struct verbs_sender *sender = &lane->senders[flow];
    int64_t begun_ns;

    take_returns(prober, &lane->receivers[lane->lane.request.receive_count + flow]);
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

int64_t verbs_probes_send(struct verbs_lane *lane, int64_t now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    verbs_replies_send(lane, now_ns);
    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        int64_t due_ns = work_prober(lane, i, now_ns);

        wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
    }
    verbs_streams_finish(lane, now_ns);
    return wake_ns;
}

int64_t verbs_probes_poll(struct verbs_lane *lane, int64_t now_ns)
{
    struct verbs_lane *beside = lane->probes->lane;
    int64_t wake_ns;

    beside->lane.stop_ns = lane->lane.stop_ns;
    wake_ns = verbs_lane_work(beside, now_ns);
    if (beside->lane.error.text[0] != '\0')
        lane->lane.error = beside->lane.error;
    return wake_ns;
}

/* --- what was measured --- */

bool verbs_probes_latency(const struct verbs_lane *lane, const struct lane_flow *flow,
                          struct latency *sum)
{
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 0; lane->probes != NULL && i < request->send_count; i++) {
        const struct verbs_prober *prober = &lane->probes->probers[i];

        if (request->sends[i].src != flow->src || request->sends[i].dst != flow->dst)
            continue;
        histogram_merge(&sum->histogram, &prober->times);
        sum->sent += prober->measured;
        return true;
    }
    return false;
}
