/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase_lane.h"

#include "clock.h"
#include "lane_connect.h"
#include "lane_poll.h"
#include "lane_prepare.h"
#include "latency_probes.h"
#include "pingpong.h"

#include <errno.h>
#include <string.h>

#define EVENTS_MAX 64

static struct verbs_lane *load_of(struct lane *lane)
{
    return (struct verbs_lane *)lane;
}

/* --- main thread --- */

static const struct verbs_traffic *traffic_of(const struct phase *phase)
{
    switch (phase->traffic) {
    case TRAFFIC_PINGPONG:
        return &verbs_traffic_pingpong;
    case TRAFFIC_SCHEDULE:
        return &verbs_traffic_schedule;
    default:
        return &verbs_traffic_stream;
    }
}

int verbs_phase_lane_prepare(struct lane **lane, const struct lane_request *request,
                             struct err *err)
{
    struct verbs_lane *load;
    int rc = verbs_lane_make(&load, request, traffic_of(request->phase), err);

    if (rc < 0)
        return rc;
    rc = verbs_probes_make(&load->probe_lane, load, err);
    if (rc < 0) {
        verbs_lane_free(load);
        return rc;
    }
    /* With the queue pairs of its load a flow keeps those of its probes. */
    if (load->probe_lane != NULL)
        load->keep_max = load->probe_lane->keep_max *= 1 + VERBS_PROBE_QPS;
    *lane = &load->lane;
    return 0;
}

int verbs_phase_lane_connect(struct lane *lane, int64_t now_ns, struct err *err)
{
    struct verbs_lane *load = load_of(lane);
    int rc = verbs_lane_connect(load, now_ns, err);
    struct err beside = {""};
    int probes_rc;

    if (load->probe_lane == NULL || (rc < 0 && rc != -EAGAIN))
        return rc;
    probes_rc = verbs_lane_connect(load->probe_lane, now_ns, &beside);
    if (probes_rc == 0 || (probes_rc == -EAGAIN && rc == -EAGAIN))
        return rc;
    *err = beside;
    return probes_rc;
}

bool verbs_phase_lane_latency(struct lane *lane, const struct lane_flow *flow,
                              enum latency_kind kind, struct latency *sum)
{
    const struct verbs_lane *load = load_of(lane);

    if (kind == LATENCY_ROUND_TRIP)
        return load->probe_lane != NULL && verbs_probes_latency(load->probe_lane, flow, sum);
    return kind == LATENCY_PINGPONG && load->pingpong != NULL &&
           pingpong_latency(load->pingpong, flow, sum);
}

size_t verbs_phase_lane_samples(struct lane *lane, const struct sample **samples)
{
    const struct verbs_lane *load = load_of(lane);

    if (load->pingpong == NULL)
        return 0;
    *samples = load->pingpong->samples;
    return load->pingpong->sample_count;
}

unsigned verbs_phase_lane_metrics(struct lane *lane, const struct lane_flow *flow,
                                  struct measure *out, unsigned room)
{
    const struct verbs_lane *load = load_of(lane);
    const struct verbs_options *o = &load->context.options;
    const struct verbs_endpoint *one = NULL;
    double streams = 0, reused = 0, setup_us = 0, bytes = 0, waits = 0, missed = 0;
    unsigned count;
    bool sends;

    for (unsigned i = 0; i < verbs_lane_endpoints(load); i++) {
        const struct verbs_endpoint *endpoint = verbs_lane_endpoint(load, i);
        const struct verbs_qp *qp = endpoint->qp;

        if (endpoint->flow != flow)
            continue;
        one = endpoint;
        streams++;
        reused += qp->reused;
        setup_us += qp->reused ? 0 : (double)qp->setup_ns / 1e3;
        bytes += (double)(sizeof *qp + qp->range.bytes);
        if (verbs_endpoint_sends(endpoint))
            waits += (double)((const struct verbs_sender *)endpoint)->waits;
        else
            missed += (double)((const struct verbs_receiver *)endpoint)->verifier.missed;
    }
    if (one == NULL)
        return 0;
    sends = verbs_endpoint_sends(one);
    const struct measure all[] = {
        {"depth", o->depth},
        {"queue_pairs", streams},
        {"signal_every", o->signal_every},
        {"inline_bytes", one->qp->inline_bytes},
        {"path_mtu_bytes", one->qp->mtu},
        {"gid_index", one->qp->config.gid != NULL ? (double)one->qp->config.gid->index : -1},
        {"slots", sends ? one->theirs.slots : one->qp->config.slots},
        {"reused_queue_pairs", reused},
        {"setup_us", setup_us},
        {"queue_pair_bytes", bytes / streams},
        {"retry", o->retry},
        {"rnr_retry", o->rnr_retry},
        {"timeout_us", 4.096 * (double)(1u << o->timeout)},
        {sends ? "credit_waits" : "missed_messages", sends ? waits : missed},
    };
    count = sizeof all / sizeof all[0] < room ? sizeof all / sizeof all[0] : room;
    memcpy(out, all, count * sizeof *out);
    return count;
}

void verbs_phase_lane_destroy(struct lane *lane)
{
    verbs_lane_free(load_of(lane)->probe_lane);
    verbs_lane_free(load_of(lane));
}

/* --- worker --- */

int verbs_phase_lane_wake_fd(struct lane *lane)
{
    const struct verbs_lane *load = load_of(lane);

    return load->events && load->context.mode->completes_at_receiver
               ? load->context.port->channel->fd
               : -1;
}

void verbs_phase_lane_start(struct lane *lane, int64_t now_ns)
{
    struct verbs_lane *load = load_of(lane);

    (void)now_ns;
    verbs_lane_start(load);
    if (load->probe_lane == NULL)
        return;
    verbs_probes_start(load->probe_lane, lane->request.phase);
    verbs_lane_start(load->probe_lane);
}

static void drain_events(struct ibv_comp_channel *channel)
{
    struct ibv_cq *queue;
    void *context;

    for (int i = 0; i < EVENTS_MAX && ibv_get_cq_event(channel, &queue, &context) == 0; i++)
        ibv_ack_cq_events(queue, 1);
}

/* What has woken the worker must be noted, else it would wake it for ever; but not by a system call
 * in each round of a busy stream, which arms nothing. A lane that is at its end is never armed
 * again, and completions that were awaited before may still come. */
static void note_wake(struct verbs_lane *load)
{
    const struct lane *lane = &load->lane;
    struct verbs_lane *probes = load->probe_lane;
    bool quiet = lane->error.text[0] != '\0' || (lane->sent_all && lane->received_all) ||
                 lane->started_ns == 0;
    bool armed = load->armed || (probes != NULL && probes->armed);

    if (load->events && (armed || quiet))
        drain_events(load->context.port->channel);
    load->armed = false;
    if (probes != NULL)
        probes->armed = false;
}

int64_t verbs_phase_lane_poll(struct lane *lane, int64_t now_ns)
{
    struct verbs_lane *load = load_of(lane);
    struct lane *probes = load->probe_lane != NULL ? &load->probe_lane->lane : NULL;
    int64_t probes_ns = CLOCK_NEVER;
    int64_t load_ns;

    note_wake(load);
    if (lane->error.text[0] != '\0')
        return CLOCK_NEVER;
    if (probes != NULL) {
        probes->stop_ns = lane->stop_ns;
        probes_ns = verbs_lane_work(load->probe_lane, now_ns);
        if (probes->error.text[0] != '\0')
            lane->error = probes->error;
    }
    load_ns = verbs_lane_work(load, now_ns);
    /* The lane is through when its probes are, too. */
    if (probes != NULL) {
        lane->sent_all = lane->sent_all && probes->sent_all;
        lane->received_all = lane->received_all && probes->received_all;
    }
    return probes_ns < load_ns ? probes_ns : load_ns;
}
