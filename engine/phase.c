/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One phase on this node: prepare its lanes, agree on the start, let the workers run, agree on the
 * end, report. The probe of a plan goes the same way, with all flows of the plan at once.
 */
#include "clock.h"
#include "log.h"
#include "trial.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define LEAD_SLEEP_NS (20 * NS_PER_MS) /* from the barrier to the start, on shared cores ... */
#define LEAD_POLL_NS (2 * NS_PER_MS)   /* ... and on dedicated ones */
#define CLOCK_GAP_NS (250 * NS_PER_MS) /* sync none: between a drain and the next start */
#define PROGRESS_NS (500 * NS_PER_MS)
#define PROBES 3
#define PROBE_PHASES_MAX 2048 /* of a longer plan the first so many phases are probed */
#define PROBE_PERCENT 10      /* of line rate, and at most ... */
#define PROBE_FPS_MAX 1000.0
#define PROBE_SILENCE_NS (300 * NS_PER_MS)

/* What the two barriers of a phase carry. */
enum ready_value { READY_START, READY_BOUND };
enum end_value {
    END_START_LATE,
    END_START_EARLY,
    END_STOP_LATE,
    END_STOP_EARLY,
    END_FINISH,
    END_BOUND
};

static bool is_probe(const struct phase_run *run)
{
    return run->number == PHASE_PROBE;
}

static uint32_t mean_size(const struct phase *phase)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < phase->size_count; i++)
        sum += phase->sizes[i];
    return (uint32_t)(sum / phase->size_count);
}

/* --- what the documents ask for --- */

static void set_dpdk_options(struct dpdk_options *options, const struct doc_dpdk *doc)
{
    static const struct doc_dpdk none;

    doc = doc != NULL ? doc : &none;
    *options = (struct dpdk_options){
        .header = doc->header,
        .vlan = doc->vlan != NULL,
        .vlan_id = doc->vlan != NULL ? *doc->vlan : 0,
        .pcp = doc->pcp,
        .dscp = doc->dscp,
        .ttl = doc->ttl != NULL ? *doc->ttl : 64,
        .udp_sources = doc->udp_sources > 0 ? doc->udp_sources : 1,
        .burst = doc->burst > 0 ? doc->burst : 32,
        .catch_up = doc->catch_up > 0 ? doc->catch_up : 8,
    };
}

static void set_tcp_options(struct tcp_options *options, const struct doc_tcp *doc)
{
    static const struct doc_tcp none;

    doc = doc != NULL ? doc : &none;
    *options = (struct tcp_options){
        .streams = doc->streams > 0 ? doc->streams : 1,
        .send_buffer = doc->send_buffer,
        .receive_buffer = doc->receive_buffer,
        .nodelay = doc->nodelay == NULL || *doc->nodelay,
        .zero_copy = doc->zero_copy,
    };
    if (doc->congestion != NULL)
        strncpy(options->congestion, doc->congestion, sizeof options->congestion - 1);
}

static void make_template(struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    *phase = (struct phase){
        .trial = doc->id,
        .number = run->number,
        .seed = doc->seed + run->number,
        .traffic = is_probe(run) ? TRAFFIC_PROBE : doc->traffic,
        .transfer_bytes = doc->transfer_bytes,
        .probes = PROBES,
        .size_count = doc->sizes_count,
    };
    memcpy(phase->sizes, doc->sizes, doc->sizes_count * sizeof phase->sizes[0]);
    set_dpdk_options(&phase->dpdk, doc->dpdk);
    set_tcp_options(&phase->tcp, doc->tcp);
}

/* 16 bits that keep frames of other runs, trials, networks and phases apart; never 0. */
static uint16_t draw_tag(const struct phase_run *run, uint32_t part)
{
    const struct transport_run *keys = &run->trial->node->run;
    uint32_t place[] = {run->trial->doc->id, run->trial->doc->repeat, part, run->number};
    crypto_generichash_state state;
    uint16_t tag;

    crypto_generichash_init(&state, keys->key, sizeof keys->key, crypto_generichash_BYTES_MIN);
    crypto_generichash_update(&state, (const uint8_t *)keys->run_id, strlen(keys->run_id));
    crypto_generichash_update(&state, (const uint8_t *)place, sizeof place);
    uint8_t hash[crypto_generichash_BYTES_MIN];
    crypto_generichash_final(&state, hash, sizeof hash);
    memcpy(&tag, hash, sizeof tag);
    return tag != 0 ? tag : 1;
}

static void probe_load(struct phase *phase, uint64_t line_rate_bps)
{
    double bits = (mean_size(phase) + FRAME_OVERHEAD_L1) * 8.0;
    double fps = (double)line_rate_bps * PROBE_PERCENT / 100 / bits;

    phase->load = (struct load){
        .rate_fps = line_rate_bps > 0 && fps < PROBE_FPS_MAX ? fps : PROBE_FPS_MAX,
    };
}

/* The load of one port, from what the document asks and what the line carries. */
static int resolve_load(const struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct trial *trial = run->trial;
    const struct doc_load *ask = &trial->doc->load;
    const struct node_port *port = &trial->node->ports[lane->own->port];
    const char *name = port->doc->conf.name;
    bool frames = strcmp(trial->transport->size_unit, "frame") == 0;
    double line = (double)port->line_rate_bps;
    double bits = (mean_size(&lane->phase) + FRAME_OVERHEAD_L1) * 8.0;
    struct load *load = &lane->phase.load;

    if (is_probe(run)) {
        probe_load(&lane->phase, port->line_rate_bps);
        return 0;
    }
    *load = (struct load){
        .rate_bps = ask->percent > 0 ? line * ask->percent / 100 : ask->bps,
        .rate_fps = ask->fps,
        .unlimited = !frames && ask->percent >= 100,
    };
    if (ask->percent > 0 && line == 0 && !load->unlimited)
        return err_set(err, -EINVAL,
                       "port %s: a load in percent needs a line rate, which its driver does not "
                       "know: set line_rate, or give the load in bit/s or frames/s",
                       name);
    if (line > 0 && (load->rate_bps > line || (frames && load->rate_fps * bits > line)))
        return err_set(
            err, -EINVAL, "port %s: a load of %.6g Mbit/s is above its line rate of %.6g Mbit/s",
            name, (load->rate_bps > 0 ? load->rate_bps : load->rate_fps * bits) / 1e6, line / 1e6);
    return 0;
}

/* --- flows --- */

static int compare_flows(const void *a, const void *b)
{
    const struct pattern_flow *x = a;
    const struct pattern_flow *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

static size_t drop_repeats(struct pattern_flow *flows, size_t count)
{
    size_t kept = 0;

    qsort(flows, count, sizeof *flows, compare_flows);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || compare_flows(&flows[kept - 1], &flows[i]) != 0)
            flows[kept++] = flows[i];
    return kept;
}

struct flow_list {
    struct pattern_flow *flows;
    size_t count;
    size_t room;
};

static int append_phase(struct flow_list *list, const struct own_rank *own, uint32_t phase,
                        enum pattern_side side)
{
    const struct pattern_plan *plan = own->part->plan;
    struct pattern_flow *grown;
    size_t n = pattern_flows(plan, phase, own->rank, side, NULL, 0);

    if (list->count + n > list->room) {
        list->room = (list->count + n) * 2;
        grown = realloc(list->flows, list->room * sizeof *grown);
        if (grown == NULL)
            return -ENOMEM;
        list->flows = grown;
    }
    pattern_flows(plan, phase, own->rank, side, list->flows + list->count, n);
    list->count += n;
    return 0;
}

/* The flows of one side of an own rank: of one phase, or for the probe of all, each once. */
static int collect_flows(const struct phase_run *run, const struct own_rank *own,
                         enum pattern_side side, struct flow_list *list)
{
    uint32_t phases = pattern_phases(own->part->plan);
    int rc = 0;

    if (!is_probe(run))
        return run->number < phases ? append_phase(list, own, run->number, side) : 0;
    for (uint32_t i = 0; i < phases && i < PROBE_PHASES_MAX && rc == 0; i++)
        rc = append_phase(list, own, i, side);
    list->count = drop_repeats(list->flows, list->count);
    for (size_t i = 0; i < list->count; i++)
        list->flows[i].role = PATTERN_GENERATE; /* each hop of a chain is probed by itself */
    return rc;
}

static struct lane_flow *make_flows(const struct flow_list *list)
{
    struct lane_flow *flows = calloc(list->count + 1, sizeof *flows);

    for (size_t i = 0; flows != NULL && i < list->count; i++) {
        flows[i].src = list->flows[i].src;
        flows[i].dst = list->flows[i].dst;
        flows[i].role = list->flows[i].role;
    }
    return flows;
}

static int fill_lane(const struct phase_run *run, struct phase_lane *lane)
{
    struct flow_list sends = {0};
    struct flow_list receives = {0};
    int rc = collect_flows(run, lane->own, PATTERN_SENDS, &sends);

    if (rc == 0)
        rc = collect_flows(run, lane->own, PATTERN_RECEIVES, &receives);
    if (rc == 0) {
        lane->sends = make_flows(&sends);
        lane->receives = make_flows(&receives);
        lane->send_count = (uint32_t)sends.count;
        lane->receive_count = (uint32_t)receives.count;
        lane->sides = calloc(sends.count + receives.count + 1, sizeof *lane->sides);
        if (lane->sends == NULL || lane->receives == NULL || lane->sides == NULL)
            rc = -ENOMEM;
    }
    free(sends.flows);
    free(receives.flows);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < lane->send_count; i++)
        lane->sends[i].side = &lane->sides[i];
    for (uint32_t i = 0; i < lane->receive_count; i++)
        lane->receives[i].side = &lane->sides[lane->send_count + i];
    return 0;
}

/* --- preparation --- */

static int64_t patience_ns(const struct phase_run *run)
{
    return run->trial->node->job->barrier_timeout_ms * NS_PER_MS;
}

/* The address of the other end of a flow, asked for until it comes. */
static int fetch_partner(struct phase_run *run, const struct own_rank *own, uint32_t rank,
                         struct blob *blob)
{
    struct node *node = run->trial->node;
    const struct node_place *place = own->part->ranks[rank];
    uint64_t id = trial_blob_id(run->trial, own->part_index, rank);
    int64_t deadline_ns = clock_now() + patience_ns(run);
    struct err err = {0};
    int rc;

    if (place->node == node->self) {
        run->trial->transport->address(node->ports[place->port].open, blob);
        return 0;
    }
    while ((rc = control_fetch(node->control, place->node, id, blob, clock_now())) == -EAGAIN) {
        rc = node_turn(node, deadline_ns);
        if (rc < 0)
            return rc;
        if (clock_now() >= deadline_ns) {
            err_set(&err, -ETIMEDOUT, "%s did not tell the address of %s within %u ms",
                    node_name_of(node, place->node), place->name, node->job->barrier_timeout_ms);
            return node_fail(node, 3, &err);
        }
    }
    return rc;
}

static int fetch_partners(struct phase_run *run, struct phase_lane *lane)
{
    int rc = 0;

    for (uint32_t i = 0; i < lane->send_count && rc == 0; i++)
        rc = fetch_partner(run, lane->own, lane->sends[i].dst, &lane->sends[i].partner);
    for (uint32_t i = 0; i < lane->receive_count && rc == 0; i++)
        rc = fetch_partner(run, lane->own, lane->receives[i].src, &lane->receives[i].partner);
    return rc;
}

static int prepare_lane(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct trial *trial = run->trial;
    const struct node_port *port = &trial->node->ports[lane->own->port];
    struct lane_request request;
    int rc;

    lane->phase = run->template;
    lane->phase.tag = draw_tag(run, lane->own->part_index);
    rc = fill_lane(run, lane);
    if (rc < 0)
        return err_set(err, rc, "out of memory");
    if (lane->send_count + lane->receive_count == 0)
        return 0;
    rc = resolve_load(run, lane, err);
    if (rc == 0)
        rc = fetch_partners(run, lane);
    if (rc < 0)
        return rc;
    request = (struct lane_request){
        .port = port->open,
        .phase = &lane->phase,
        .rank = lane->own->rank,
        .ranks = lane->own->part->n,
        .sends = lane->sends,
        .send_count = lane->send_count,
        .receives = lane->receives,
        .receive_count = lane->receive_count,
        .count = &lane->count,
        .line_rate_bps = port->line_rate_bps,
    };
    return trial->transport->prepare(&lane->lane, &request, err);
}

/* Settles all lanes: connections made, gateways resolved. */
static int settle_lanes(struct phase_run *run, struct err *err)
{
    int64_t deadline_ns = clock_now() + 2 * patience_ns(run);
    bool waiting = true;

    while (waiting) {
        waiting = false;
        for (size_t i = 0; i < run->lane_count; i++) {
            struct lane *lane = run->lanes[i].lane;
            int rc = lane != NULL ? run->trial->transport->settle(lane, clock_now(), err) : 0;

            if (rc < 0 && rc != -EAGAIN)
                return rc;
            waiting = waiting || rc == -EAGAIN;
        }
        if (waiting && clock_now() > deadline_ns)
            return err_set(err, -ETIMEDOUT, "trial %u: partners were not connected within %u ms",
                           run->trial->doc->id, 2 * run->trial->node->job->barrier_timeout_ms);
        if (waiting && node_turn(run->trial->node, clock_now() + NS_PER_MS) < 0)
            return -ECANCELED;
    }
    return 0;
}

static int make_tasks(struct phase_run *run)
{
    struct node *node = run->trial->node;

    run->lane_count = run->trial->own_count;
    run->lanes = calloc(run->lane_count + 1, sizeof *run->lanes);
    run->worker_lanes = calloc(run->lane_count + 1, sizeof *run->worker_lanes);
    run->tasks = calloc(node->worker_count, sizeof *run->tasks);
    if (run->lanes == NULL || run->worker_lanes == NULL || run->tasks == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < run->lane_count; i++)
        run->lanes[i].own = &run->trial->own[i];
    return 0;
}

static int prepare(struct phase_run *run)
{
    struct node *node = run->trial->node;
    struct err err = {0};
    int rc = make_tasks(run);

    if (rc < 0)
        err_set(&err, rc, "out of memory");
    for (size_t i = 0; i < run->lane_count && rc == 0; i++)
        rc = prepare_lane(run, &run->lanes[i], &err);
    if (rc == 0)
        rc = settle_lanes(run, &err);
    return rc < 0 && err.text[0] != '\0' ? node_fail(node, 3, &err) : rc;
}

/* --- times --- */

static int64_t longest_flow_list(const struct phase_run *run)
{
    int64_t most = 1;

    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        most = lane->send_count > most ? lane->send_count : most;
        most = lane->receive_count > most ? lane->receive_count : most;
    }
    return most;
}

/* How long a port sends if nothing hinders it: a transfer or a probe of its flows at its load. */
static int64_t nominal_ns(const struct phase_run *run)
{
    const struct phase *phase = &run->template;
    double bits = (mean_size(phase) + FRAME_OVERHEAD_L1) * 8.0;
    double slowest_s = 0;

    for (size_t i = 0; i < run->lane_count; i++) {
        const struct load *load = &run->lanes[i].phase.load;
        double frames =
            is_probe(run) ? PROBES : (double)phase->transfer_bytes / mean_size(phase) * 1.5 + 1;
        double fps = load->rate_fps > 0 ? load->rate_fps : load->rate_bps / bits;
        double seconds = fps > 0 ? frames * (double)longest_flow_list(run) / fps : 0;

        if (run->lanes[i].lane != NULL && seconds > slowest_s)
            slowest_s = seconds;
    }
    return (int64_t)(slowest_s * 1e9);
}

static int64_t sending_ns(const struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;

    if (run->template.traffic != TRAFFIC_STREAM)
        return nominal_ns(run);
    return doc->warmup_ns + doc->window_ns + doc->cooldown_ns;
}

/* Writes the agreed start and what follows from it into the template and each lane's phase. */
static void set_times(struct phase_run *run, int64_t start_ns)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    phase->start_ns = start_ns;
    if (phase->traffic == TRAFFIC_STREAM) {
        phase->open_ns = start_ns + doc->warmup_ns;
        phase->close_ns = phase->open_ns + doc->window_ns;
        phase->stop_ns = phase->close_ns + doc->cooldown_ns;
    } else { /* the window is all of it; it ends when the last byte is there */
        phase->open_ns = start_ns;
        phase->close_ns = start_ns;
        phase->stop_ns = CLOCK_NEVER;
    }
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];

        lane->phase.start_ns = phase->start_ns;
        lane->phase.open_ns = phase->open_ns;
        lane->phase.close_ns = phase->close_ns;
        lane->phase.stop_ns = phase->stop_ns;
        if (lane->lane != NULL)
            lane->lane->stop_ns = phase->stop_ns;
    }
}

static int64_t lead_ns(const struct node *node)
{
    return node->sleeps ? LEAD_SLEEP_NS : LEAD_POLL_NS;
}

/* Phases that follow each other by the clock: one barrier before the first, then a fixed step. */
static bool goes_by_clock(const struct phase_run *run)
{
    return run->trial->doc->by_clock && !is_probe(run);
}

static int64_t clock_step_ns(const struct phase_run *run)
{
    return sending_ns(run) + run->trial->doc->drain_silence_ns + CLOCK_GAP_NS;
}

/* All nodes are ready: the latest proposal is the start. */
static int agree_on_start(struct phase_run *run)
{
    struct node *node = run->trial->node;
    struct control_clock now = control_clock(node->control);
    struct barrier_values values;
    int rc;

    for (size_t i = 0; i < BARRIER_MAXIMA; i++)
        values.maximum[i] = INT64_MIN;
    run->offset_ns = now.offset_ns;
    if (goes_by_clock(run) && run->trial->clock_turn > 0) {
        run->start_run_ns =
            run->trial->clock_start_ns + (int64_t)run->trial->clock_turn++ * clock_step_ns(run);
        return 0;
    }
    values.states = now.bound_ns < 0 ? STATE_NO_CLOCK : 0;
    values.maximum[READY_BOUND] = now.bound_ns;
    values.maximum[READY_START] = clock_now() + now.offset_ns + lead_ns(node);
    rc = node_barrier(node, &values);
    if (rc < 0)
        return rc;
    now = control_clock(node->control);
    run->offset_ns = now.offset_ns;
    run->start_run_ns = values.maximum[READY_START];
    run->trial->clock_start_ns = run->start_run_ns;
    run->trial->clock_turn++;
    return 0;
}

/* --- running --- */

static void deal_lanes(struct phase_run *run)
{
    struct node *node = run->trial->node;
    const struct doc_trial *doc = run->trial->doc;
    int64_t silence_ns = is_probe(run) && doc->drain_silence_ns < PROBE_SILENCE_NS
                             ? PROBE_SILENCE_NS
                             : doc->drain_silence_ns;
    struct worker_lane *next = run->worker_lanes;

    for (size_t w = 0; w < node->worker_count; w++) {
        struct worker_task *task = &run->tasks[w];

        *task = (struct worker_task){
            .lanes = next,
            .phase = &run->template,
            .nominal_end_ns = run->template.start_ns + sending_ns(run),
            .drain_silence_ns = silence_ns,
            .drain_max_ns = doc->drain_max_ns > silence_ns ? doc->drain_max_ns : 2 * silence_ns,
            .flood_limit = doc->flood_limit,
        };
        for (size_t i = 0; i < run->lane_count; i++)
            if (run->lanes[i].lane != NULL && run->lanes[i].own->port % node->worker_count == w)
                *next++ = (struct worker_lane){run->trial->transport, run->lanes[i].lane, 0, 0};
        task->count = (size_t)(next - task->lanes);
    }
}

static bool workers_done(struct node *node)
{
    for (size_t w = 0; w < node->worker_count; w++)
        if (!worker_done(node->workers[w]))
            return false;
    return true;
}

/* Lets the workers run and keeps the node's loop going. They are done when it returns. */
static int run_workers(struct phase_run *run)
{
    struct node *node = run->trial->node;
    struct worker_progress last = {0};
    int64_t last_ns = clock_now();
    int rc = 0;

    for (size_t w = 0; w < node->worker_count; w++)
        if (run->tasks[w].count > 0)
            worker_run(node->workers[w], &run->tasks[w]);
    while (!workers_done(node)) {
        int turn = node_turn(node, clock_now() + (rc < 0 ? NS_PER_MS : PROGRESS_NS));

        rc = rc < 0 ? rc : turn;
        if (clock_now() - last_ns >= PROGRESS_NS) {
            report_progress(run, &last, &last_ns);
            ports_watch_links(node);
        }
        if (rc < 0) /* node_turn no longer waits: do not spin */
            clock_sleep_until(clock_now() + NS_PER_MS / 2);
    }
    return rc;
}

/* --- the end --- */

static void note_latest(int64_t *maximum, int64_t value)
{
    if (value > *maximum)
        *maximum = value;
}

static uint32_t lane_states(const struct phase_run *run, const struct phase_lane *lane)
{
    if (!is_probe(run))
        return 0;
    for (uint32_t i = 0; i < lane->receive_count; i++)
        if (flow_unreached(&lane->receives[i]))
            return STATE_UNREACHABLE;
    return 0;
}

/* What this node says in the end barrier. */
static void end_values(const struct phase_run *run, struct barrier_values *values)
{
    const struct phase *phase = &run->template;
    struct control_clock now = control_clock(run->trial->node->control);

    for (size_t i = 0; i < BARRIER_MAXIMA; i++)
        values->maximum[i] = INT64_MIN;
    values->states = now.bound_ns < 0 ? STATE_NO_CLOCK : 0;
    values->maximum[END_BOUND] = now.bound_ns;
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        if (lane->lane == NULL)
            continue;
        values->states |= lane_states(run, lane);
        if (lane->send_count > 0 && lane->lane->started_ns > 0) {
            int64_t late_ns = lane->lane->started_ns - phase->start_ns;

            note_latest(&values->maximum[END_START_LATE], late_ns);
            note_latest(&values->maximum[END_START_EARLY], -late_ns);
        }
        if (lane->send_count > 0 && lane->lane->stopped_ns > 0 && phase->stop_ns != CLOCK_NEVER) {
            int64_t late_ns = lane->lane->stopped_ns - phase->stop_ns;

            note_latest(&values->maximum[END_STOP_LATE], late_ns);
            note_latest(&values->maximum[END_STOP_EARLY], -late_ns);
        }
        if (lane->lane->arrived_ns > 0)
            note_latest(&values->maximum[END_FINISH], lane->lane->arrived_ns + run->offset_ns);
    }
    for (size_t w = 0; w < run->trial->node->worker_count; w++) {
        if (run->tasks[w].count > 0 && run->tasks[w].end == TASK_LIMIT)
            values->states |= STATE_UNDRAINED;
        if (run->tasks[w].count > 0 && run->tasks[w].end == TASK_FLOODED)
            values->states |= STATE_FLOODED;
    }
}

static double skew_us(int64_t latest_ns, int64_t earliest_ns)
{
    if (latest_ns == INT64_MIN || earliest_ns == INT64_MIN)
        return -1;
    return (double)(latest_ns + earliest_ns) / 1e3;
}

static int64_t elapsed_ns(const struct phase_run *run, int64_t finish_run_ns)
{
    if (run->template.traffic == TRAFFIC_STREAM)
        return run->template.stop_ns - run->template.start_ns;
    return finish_run_ns > run->start_run_ns ? finish_run_ns - run->start_run_ns : 0;
}

/* All nodes are through: what the phase was like on all of them. */
static int agree_on_end(struct phase_run *run)
{
    struct barrier_values values;
    bool alone = goes_by_clock(run);
    int rc = 0;

    end_values(run, &values);
    if (!alone)
        rc = node_barrier(run->trial->node, &values);
    if (rc < 0)
        return rc;
    run->outcome = (struct phase_outcome){
        .states = values.states,
        .start_skew_us = -1,
        .stop_skew_us = -1,
        .skew_bound_us = -1,
        .elapsed_ns = elapsed_ns(run, values.maximum[END_FINISH]),
    };
    if (alone || (values.states & STATE_NO_CLOCK) != 0)
        return 0;
    run->outcome.start_skew_us =
        skew_us(values.maximum[END_START_LATE], values.maximum[END_START_EARLY]);
    run->outcome.stop_skew_us =
        skew_us(values.maximum[END_STOP_LATE], values.maximum[END_STOP_EARLY]);
    run->outcome.skew_bound_us = (double)values.maximum[END_BOUND] / 1e3;
    return 0;
}

/* The run ends in the middle: what there is was measured by this node alone. */
static void end_alone(struct phase_run *run)
{
    struct barrier_values values;

    end_values(run, &values);
    run->outcome = (struct phase_outcome){
        .states = values.states | STATE_STOPPED,
        .start_skew_us = -1,
        .stop_skew_us = -1,
        .skew_bound_us = -1,
        .elapsed_ns = clock_now() - run->template.start_ns,
    };
}

static void read_hardware(struct phase_run *run, bool before)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];
        struct node_port *port = &run->trial->node->ports[lane->own->port];

        if (lane->lane != NULL)
            run->trial->transport->hardware(port->open, before ? &lane->before : &lane->after);
    }
}

static void release(struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count && run->lanes != NULL; i++) {
        struct phase_lane *lane = &run->lanes[i];

        if (lane->lane != NULL)
            run->trial->transport->finish(lane->lane);
        free(lane->sends);
        free(lane->receives);
        free(lane->sides);
    }
    free(run->lanes);
    free(run->worker_lanes);
    free(run->tasks);
}

static void report(const struct phase_run *run)
{
    if (is_probe(run))
        report_probe(run);
    else
        report_phase(run);
}

int phase_perform(struct trial *trial, uint32_t number, uint32_t *states)
{
    struct phase_run run = {.trial = trial, .number = number};
    int rc;

    make_template(&run);
    rc = prepare(&run);
    if (rc == 0)
        rc = agree_on_start(&run);
    if (rc < 0)
        goto cleanup;
    set_times(&run, run.start_run_ns - run.offset_ns);
    deal_lanes(&run);
    read_hardware(&run, true);
    run.cpu_begin_s = cpu_process_s();
    run.idle_begin_s = cpu_idle_s();
    rc = run_workers(&run);
    read_hardware(&run, false);
    report_lane_errors(&run);
    if (rc == 0)
        rc = agree_on_end(&run);
    if (rc < 0)
        end_alone(&run);
    *states = run.outcome.states;
    report(&run);
cleanup:
    release(&run);
    return rc;
}
