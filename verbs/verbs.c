/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verbs transport: messages through RDMA devices by libibverbs, on InfiniBand and RoCE.
 *
 * - A flow is `queue_pairs` queue pairs. They are made when a phase is prepared, connected by infos
 *   that travel over the run's authenticated datagrams, and kept connected for later phases up to
 *   `reuse`.
 * - Receivers verify what arrives (verifier.h says what is compared) and give credit for places
 * that are free again, so that nothing is sent that has no place.
 * - A load at layer 1 becomes a payload rate by what a message's packets cost on the line.
 * - At its end each stream sends an eof.
 *
 * What the engine sees as one lane is that of the phase's load, and beside it the lane of the
 * load's latency probes, if the phase has any.
 */
#include "clock.h"
#include "connection_pool.h"
#include "lane_connect.h"
#include "lane_streams.h"
#include "latency_probes.h"
#include "netns.h"
#include "pingpong.h"
#include "port_facts.h"

#include <errno.h>
#include <string.h>

#define EVENTS_MAX 64

/* --- the port --- */

static void close_port(struct transport_port *port)
{
    if (connection_pool_close(port))
        verbs_port_close(port);
}

static int open_port(struct transport_port **port, const struct port_conf *conf,
                     const struct transport_run *run, struct err *err)
{
    int home = -1;
    int rc = netns_enter(conf->netns, &home, err);

    (void)run; /* the control plane authenticates what connects queue pairs */
    if (rc < 0)
        return rc;
    verbs_payload_init();
    rc = verbs_port_open(port, conf, err);
    if (rc == 0) {
        verbs_port_hardware(*port, &(*port)->base);
        rc = connection_pool_open(*port);
        if (rc < 0)
            verbs_port_close(*port);
    }
    netns_leave(home);
    return rc < 0 ? err_set(err, rc, "port %s: out of memory", conf->name) : 0;
}

/* --- the lane: main thread --- */

static struct verbs_lane *load_of(struct lane *lane)
{
    return (struct verbs_lane *)lane;
}

static int prepare(struct lane **lane, const struct lane_request *request, struct err *err)
{
    static const struct verbs_traffic *const traffics[] = {
        [TRAFFIC_STREAM] = &verbs_traffic_stream,     [TRAFFIC_TRANSFER] = &verbs_traffic_stream,
        [TRAFFIC_PROBE] = &verbs_traffic_stream,      [TRAFFIC_PINGPONG] = &verbs_traffic_pingpong,
        [TRAFFIC_SCHEDULE] = &verbs_traffic_schedule,
    };
    struct verbs_lane *load;
    int rc = verbs_lane_make(&load, request, traffics[request->phase->traffic], err);

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
    load->lane.wake_fd = load->events ? load->context.port->channel->fd : -1;
    *lane = &load->lane;
    return 0;
}

static int connect_lane(struct lane *lane, int64_t now_ns, struct err *err)
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

static bool latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                    struct latency *sum)
{
    const struct verbs_lane *load = load_of(lane);

    if (kind == LATENCY_ROUND_TRIP)
        return load->probe_lane != NULL && verbs_probes_latency(load->probe_lane, flow, sum);
    return kind == LATENCY_PINGPONG && load->pingpong != NULL &&
           pingpong_latency(load->pingpong, flow, sum);
}

/* Its queue pairs and what they were made of. */
static unsigned flow_metrics(struct lane *lane, const struct lane_flow *flow,
                             struct flow_metric *out, unsigned room)
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
    const struct flow_metric all[] = {
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

static void destroy_lane(struct lane *lane)
{
    verbs_lane_free(load_of(lane)->probe_lane);
    verbs_lane_free(load_of(lane));
}

/* --- the lane: worker --- */

static void start(struct lane *lane, int64_t now_ns)
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
    bool quiet =
        lane->error.text[0] != '\0' || (lane->tx_done && lane->rx_done) || lane->started_ns == 0;
    bool armed = load->armed || (probes != NULL && probes->armed);

    if (load->events && (armed || quiet))
        drain_events(load->context.port->channel);
    load->armed = false;
    if (probes != NULL)
        probes->armed = false;
}

static int64_t poll(struct lane *lane, int64_t now_ns)
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
        lane->tx_done = lane->tx_done && probes->tx_done;
        lane->rx_done = lane->rx_done && probes->rx_done;
    }
    return probes_ns < load_ns ? probes_ns : load_ns;
}

/* Between phases there is nothing to do: the device answers the network. */
const struct transport transport_verbs = {
    .name = "verbs",
    .capabilities =
        TRANSPORT_PINGPONG | TRANSPORT_SCHEDULES | TRANSPORT_KNOWS_END | TRANSPORT_NEEDS_RDMA,
    .options = &verbs_option_table,
    .open = open_port,
    .facts = verbs_port_facts,
    .status = verbs_port_status,
    .prepare = prepare,
    .connect = connect_lane,
    .start = start,
    .poll = poll,
    .flow_metrics = flow_metrics,
    .latency = latency,
    .hardware = verbs_port_hardware,
    .destroy = destroy_lane,
    .close = close_port,
};
