/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a port is asked in a phase: the flows that the pattern's plan gives its rank, and what the
 * trial's document says of them, with its defaults.
 */
#include "flows.h"

#include "burst.h"
#include "offered_load.h"
#include "phase_times.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROBE_PHASES_MAX 2048 /* of a longer plan the first so many phases are probed */
#define PROBES 3
#define PROBE_BYTES 64
#define ALONE_NS (500 * NS_PER_MS) /* a node computes alone for so long, to be compared with */

/* --- flows --- */

static int compare_flows(const void *a, const void *b)
{
    const struct pattern_flow *x = a;
    const struct pattern_flow *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

struct flow_list {
    struct pattern_flow *flows;
    size_t count;
};

static int append_phase(struct flow_list *list, const struct local_rank *own, uint32_t phase,
                        enum pattern_side side)
{
    const struct pattern_plan *plan = own->part->plan;
    size_t more = pattern_flows(plan, phase, own->rank, side, NULL, 0);
    struct pattern_flow *grown =
        reallocarray(list->flows, list->count + more + 1, sizeof *list->flows);

    if (grown == NULL)
        return -ENOMEM;
    list->flows = grown;
    pattern_flows(plan, phase, own->rank, side, grown + list->count, more);
    list->count += more;
    return 0;
}

/* The flows of one side of an own rank: of one phase, or for the probe of all, each once. Each hop
 * of a chain is probed by itself. */
static int collect_flows(const struct phase_run *run, const struct local_rank *own,
                         enum pattern_side side, struct flow_list *list)
{
    uint32_t phases = pattern_phases(own->part->plan);
    size_t kept = 0;
    int rc = 0;

    if (!phase_is_probe(run))
        return run->number < phases ? append_phase(list, own, run->number, side) : 0;
    for (uint32_t i = 0; i < phases && i < PROBE_PHASES_MAX && rc == 0; i++)
        rc = append_phase(list, own, i, side);
    if (list->count > 0)
        qsort(list->flows, list->count, sizeof *list->flows, compare_flows);
    for (size_t i = 0; i < list->count; i++) {
        if (kept > 0 && compare_flows(&list->flows[kept - 1], &list->flows[i]) == 0)
            continue;
        list->flows[kept] = list->flows[i];
        list->flows[kept++].role = PATTERN_GENERATE;
    }
    list->count = kept;
    return rc;
}

/* The same as lanes have them, each with its side. */
static struct lane_flow *make_flows(const struct flow_list *list, struct flow_side *sides)
{
    struct lane_flow *flows = calloc(list->count + 1, sizeof *flows);

    for (size_t i = 0; flows != NULL && i < list->count; i++)
        flows[i] = (struct lane_flow){.src = list->flows[i].src,
                                      .dst = list->flows[i].dst,
                                      .role = list->flows[i].role,
                                      .side = &sides[i]};
    return flows;
}

/* What the port sends of the trial's load and of a burst, and each flow's share of that, where they
 * differ: of a probe, or of a transfer, each flow sends as much as the others. */
static void set_shares(const struct phase_run *run, struct phase_lane *lane,
                       const struct flow_list *sends, const struct flow_list *receives)
{
    uint64_t sum = 0;
    bool even = true;

    lane->part = 1;
    lane->phase.burst.own_frames = lane->phase.burst.frames;
    if (phase_is_probe(run))
        return;
    if (sends->count == 0 && receives->count > 0 && receives->flows[0].share > 0)
        lane->part = (double)receives->flows[0].share / PATTERN_WHOLE; /* as one who sends to it */
    if (sends->count == 0 || sends->flows[0].share == 0)
        return;
    for (size_t i = 0; i < sends->count; i++)
        sum += sends->flows[i].share;
    lane->part = (double)sum / PATTERN_WHOLE;
    if (run->trial->doc->pattern.share_count > 0) /* of a load of the receivers a burst is whole */
        lane->phase.burst.own_frames = burst_of_port(lane->phase.burst.frames, lane->part);
    for (size_t i = 1; i < sends->count; i++)
        even = even && sends->flows[i].share == sends->flows[0].share;
    even =
        even || (run->template.traffic != TRAFFIC_STREAM && run->template.traffic != TRAFFIC_BURST);
    for (size_t i = 0; i < sends->count && !even; i++)
        lane->sends[i].share = (double)sends->flows[i].share / (double)sum;
}

int flows_make(const struct phase_run *run, struct phase_lane *lane)
{
    struct flow_list sends = {0};
    struct flow_list receives = {0};
    int rc = collect_flows(run, lane->own, PATTERN_SENDS, &sends);

    if (rc == 0)
        rc = collect_flows(run, lane->own, PATTERN_RECEIVES, &receives);
    if (rc == 0) {
        lane->send_count = (uint32_t)sends.count;
        lane->receive_count = (uint32_t)receives.count;
        lane->sides = calloc(sends.count + receives.count + 1, sizeof *lane->sides);
        lane->sends = make_flows(&sends, lane->sides);
        lane->receives = make_flows(&receives, lane->sides + sends.count);
        if (lane->sends == NULL || lane->receives == NULL || lane->sides == NULL)
            rc = -ENOMEM;
        else
            set_shares(run, lane, &sends, &receives);
    }
    free(sends.flows);
    free(receives.flows);
    return rc;
}

/* --- what the document asks --- */

void flows_fill_template(struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    *phase = doc->phase;
    phase->trial = doc->id;
    phase->number = run->number;
    phase->seed = doc->pattern.seed + run->number;
    phase->messages = phase->traffic == TRAFFIC_PINGPONG;
    phase->probes = PROBES;
    phase->probe_timeout_ns = phase_timeout_ns(run);
    if (doc->compute > 0)
        phase->pingpong.start_delay_ns = ALONE_NS;
    if (phase->traffic == TRAFFIC_SCHEDULE)
        phase->pingpong.timeout_ns = doc->drain_timeout_ns;
    if (phase_is_probe(run)) {
        phase->traffic = TRAFFIC_PROBE;
        /* Whether partners can be reached is asked with nothing else on the way. */
        phase->latency = (struct latency_options){0};
    }
}

static void set_sizes(struct phase_lane *lane)
{
    static const uint32_t probe = PROBE_BYTES;
    const struct doc_trial *trial = lane->run->trial->doc;
    const struct doc_part *part = lane->own->part->doc;
    const uint32_t *sizes = part->sizes;
    unsigned count = part->sizes_count;

    if (phase_is_probe(lane->run) && trial->connectivity_check_sizes_count > 0) {
        sizes = trial->connectivity_check_sizes;
        count = trial->connectivity_check_sizes_count;
    } else if (count == 0) { /* a schedule's steps say how long messages are: this probes them */
        sizes = &probe;
        count = 1;
    }
    lane->phase.size_count = count;
    memcpy(lane->phase.sizes, sizes, count * sizeof *sizes);
}

/* The transport's own options: the part's, fitted to the phase. */
static void set_options(struct phase_lane *lane)
{
    const struct option_table *table = lane_transport(lane)->options;

    memcpy(lane->options, lane->own->part->doc->options, table->size);
    lane->phase.options = lane->options;
    if (table->fit != NULL)
        table->fit(lane->options, &lane->phase);
}

void flows_apply_template(struct phase_lane *lane)
{
    const struct doc_trial *trial = lane->run->trial->doc;

    lane->phase = lane->run->template;
    set_sizes(lane);
    set_options(lane);
    /* A burst asks how many frames fit: probes would be among them. A stream that is forwarded has
     * no connection of its own for them, and its ends can't know. */
    if ((trial->phase.traffic == TRAFFIC_BURST && lane->phase.latency.probe_fps < 0) ||
        (trial->pattern.forward && !transport_can(lane_transport(lane), TRANSPORT_FRAMES)))
        lane->phase.latency.probe_fps = 0;
    lane->phase.in_turn = pattern_in_turn(lane->own->part->plan);
}

/* --- load --- */

static int resolve_load(const struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct node_port *port = &run->trial->node->ports[lane->own->port];
    struct load_line line = {
        .port = port->doc->conf.name,
        .rate_bps = port->line_rate_bps,
        .frames = transport_can(lane_transport(lane), TRANSPORT_FRAMES),
        .mean_size = phase_mean_size(&lane->phase),
        .shared = port->doc->conf.shared,
        .part = lane->part,
    };

    if (run->template.traffic == TRAFFIC_PINGPONG || run->template.traffic == TRAFFIC_SCHEDULE) {
        /* The next message waits for the last one. */
        lane->phase.load = (struct load){.unlimited = true};
        return 0;
    }
    if (!phase_is_probe(run))
        return load_resolve(&lane->phase.load, lane->own->part->doc->load, &line, err);
    load_for_probe(&lane->phase.load, &line, run->template.probes * (uint32_t)lane->send_count);
    return 0;
}

/* Refuses a rate that the cores can't send at the very best: on this port, and with those before
 * it on this node. Drivers' bounds are the transport's. */
static int check_cores(struct phase_run *run, const struct phase_lane *lane, struct err *err)
{
    const struct node *node = run->trial->node;
    const struct node_port *port = &node->ports[lane->own->port];
    const struct load *load = &lane->phase.load;
    double bits = (phase_mean_size(&lane->phase) + FRAME_OVERHEAD_L1) * 8.0;
    double fps = load->rate_fps > 0 ? load->rate_fps : load->rate_bps / bits;
    size_t cores = port->queues < node->worker_count ? port->queues : node->worker_count;
    double needed = port->core_fps > 0 ? fps / port->core_fps : 0;

    if (load->unlimited || lane->send_count == 0 || phase_is_probe(run))
        return 0;
    if (needed > (double)cores)
        return err_set(err, -EINVAL,
                       "port %s: %.6g frames/s are more than %zu core(s) can send there, %.6g at "
                       "the very best: ask for less, or give it more queues and cores",
                       port->doc->conf.name, fps, cores, (double)cores * port->core_fps);
    run->busy_cores += needed;
    if (run->busy_cores > (double)node->worker_count)
        return err_set(err, -EINVAL,
                       "port %s: its %.6g frames/s and those of the ports before it are more than "
                       "%zu worker(s) of this node can send: ask for less, or give it more cores",
                       port->doc->conf.name, fps, node->worker_count);
    return 0;
}

int flows_set_load(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    int rc = resolve_load(run, lane, err);

    return rc == 0 ? check_cores(run, lane, err) : rc;
}
