/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lanes of a phase: the flows and loads of each port by the trial's document and the pattern's
 * plan; then the partners' addresses and connections of each lane.
 */
#include "phase.h"

#include "clock.h"
#include "node.h"
#include "schedule_executor.h"
#include "sysfs.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#define PROBE_PHASES_MAX 2048u /* maximum number of phases that are probed */
#define PROBES 3
#define PROBE_BYTES 64
#define PROBE_PERCENT 10
#define PROBE_FPS_MAX 1000.0
#define PROBE_SPREAD_S 0.15 /* delay with which a partner on busy cores may begin */
#define SHARED_PERCENT 95   /* maximum load of a shared port's line */
#define ASKED_MOST 32u      /* addresses that are requested at the same time */

/* --- settings of all ports, and of one --- */

/* Return the time limit for connecting a phase's lanes to their partners. */
static int64_t timeout_ns(const struct phase_run *run)
{
    return 2 * run->trial->node->job->barrier_timeout_ms * NS_PER_MS;
}

static void fill_template(struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    *phase = doc->phase;
    phase->trial = doc->id;
    phase->number = run->number;
    phase->seed = doc->pattern.seed + run->number;
    phase->messages = phase->traffic == TRAFFIC_PINGPONG;
    phase->probes = PROBES;
    phase->probe_timeout_ns = timeout_ns(run);
    phase->answer_timeout_ns = doc->drain_timeout_ns;
    if (run->is_probe) {
        phase->traffic = TRAFFIC_PROBE;
        /* A connectivity check measures no latency. */
        phase->latency = (struct latency_options){0};
    }
}

/* Return a tag that distinguishes frames of runs, trials, networks and phases; never 0. */
static uint16_t draw_tag(const struct phase_lane *lane)
{
    const struct trial *trial = lane->run->trial;
    const struct transport_secret *secret = &trial->node->secret;
    uint32_t place[] = {trial->doc->id, trial->doc->repeat, lane->own->part_index,
                        lane->run->number};
    uint8_t hash[crypto_generichash_BYTES_MIN];
    crypto_generichash_state state;
    uint16_t tag;

    crypto_generichash_init(&state, secret->key, sizeof secret->key, crypto_generichash_BYTES_MIN);
    crypto_generichash_update(&state, (const uint8_t *)secret->run_id, strlen(secret->run_id));
    crypto_generichash_update(&state, (const uint8_t *)place, sizeof place);
    crypto_generichash_final(&state, hash, sizeof hash);
    memcpy(&tag, hash, sizeof tag);
    return tag != 0 ? tag : 1;
}

/* Fill a lane's phase from the template, its part's sizes, and its transport's options. */
static void fill_phase(struct phase_lane *lane)
{
    static const uint32_t probe = PROBE_BYTES;
    const struct doc_trial *trial = lane->run->trial->doc;
    const struct doc_part *part = lane->own->part->doc;
    struct phase *phase = &lane->phase;
    const uint32_t *sizes = part->sizes;

    *phase = lane->run->template;
    phase->tag = draw_tag(lane);
    phase->in_turn = pattern_in_turn(lane->own->part->plan);
    phase->size_count = part->sizes_count;
    if (lane->run->is_probe && trial->connectivity_check_sizes_count > 0) {
        sizes = trial->connectivity_check_sizes;
        phase->size_count = trial->connectivity_check_sizes_count;
    } else if (part->sizes_count ==
               0) { /* a schedule has its own sizes: its probe has one of these */
        sizes = &probe;
        phase->size_count = 1;
    }
    memcpy(phase->sizes, sizes, phase->size_count * sizeof *sizes);
    phase->options = part->options;
    /* A burst counts frames, and probes would be among them. A forwarded stream of messages has no
     * connection for probes. */
    if ((phase->traffic == TRAFFIC_BURST && phase->latency.probe_fps < 0) ||
        (trial->pattern.forward && !transport_can(lane->transport, TRANSPORT_FRAMES)))
        phase->latency.probe_fps = 0;
}

/* --- flows --- */

static int compare_flows(const void *a, const void *b)
{
    const struct lane_flow *x = a, *y = b;

    if (x->src != y->src)
        return x->src < y->src ? -1 : 1;
    return x->dst < y->dst ? -1 : x->dst > y->dst;
}

/* Add the flows that a local rank sends or receives in one phase; for a connectivity check, the
 * flows of all phases, each once. Each hop of a chain is checked separately. */
static int add_flows(struct phase_lane *lane, enum pattern_side side, uint32_t *count)
{
    const struct pattern_plan *plan = lane->own->part->plan;
    bool probe = lane->run->is_probe;
    uint32_t phases = pattern_phases(plan), first = lane->flow_count, kept = first;
    uint32_t phase = probe ? 0 : lane->run->number;
    uint32_t end = probe ? PROBE_PHASES_MAX : phase + 1;

    for (end = end < phases ? end : phases; phase < end; phase++) {
        size_t more = pattern_flows(plan, phase, lane->own->rank, side, NULL, 0);
        struct lane_flow *grown =
            reallocarray(lane->flows, lane->flow_count + more + 1, sizeof *grown);
        struct pattern_flow *found = calloc(more + 1, sizeof *found);

        lane->flows = grown != NULL ? grown : lane->flows;
        if (grown == NULL || found == NULL) {
            free(found);
            return -ENOMEM;
        }
        pattern_flows(plan, phase, lane->own->rank, side, found, more);
        for (size_t i = 0; i < more; i++)
            grown[lane->flow_count++] = (struct lane_flow){
                .src = found[i].src,
                .dst = found[i].dst,
                .role = probe ? PATTERN_GENERATE : found[i].role,
                .share = probe ? 0 : (double)found[i].share / PATTERN_WHOLE,
            };
        free(found);
    }
    if (probe && lane->flow_count > first) {
        qsort(lane->flows + first, lane->flow_count - first, sizeof *lane->flows, compare_flows);
        for (uint32_t i = first; i < lane->flow_count; i++)
            if (kept == first || compare_flows(&lane->flows[kept - 1], &lane->flows[i]) != 0)
                lane->flows[kept++] = lane->flows[i];
        lane->flow_count = kept;
    }
    *count = lane->flow_count - first;
    return 0;
}

/* Make the flows of a lane's rank from the pattern's plan, in time and memory proportional to the
 * rank's own flows. */
static int make_flows(struct phase_lane *lane)
{
    struct phase *phase = &lane->phase;
    bool uneven = false;
    double whole = 0; /* part of the trial's load that the port sends */

    if (add_flows(lane, PATTERN_SENDS, &lane->send_count) < 0 ||
        add_flows(lane, PATTERN_RECEIVES, &lane->receive_count) < 0)
        return -ENOMEM;
    for (uint32_t i = 0; i < lane->send_count; i++) {
        whole += lane->flows[i].share;
        uneven |= lane->flows[i].share != lane->flows[0].share;
    }
    lane->part = lane->send_count == 0 && lane->receive_count > 0
                     ? lane->flows[0].share /* the part of a rank that sends to it */
                     : whole;
    if (lane->part == 0)
        lane->part = 1;
    phase->burst.own_frames = phase->burst.frames;
    /* All ports must end at the same time. */
    if (whole > 0 && lane->run->trial->doc->pattern.share_count > 0)
        phase->burst.own_frames =
            (uint64_t)fmax(round((double)phase->burst.frames * lane->part), 1);
    /* In a transfer all flows send the same number of bytes. */
    uneven &= phase->traffic == TRAFFIC_STREAM || phase->traffic == TRAFFIC_BURST;
    for (uint32_t i = 0; i < lane->flow_count; i++) {
        lane->flows[i].number = i;
        lane->flows[i].share = uneven ? lane->flows[i].share / whole : 0;
    }
    return 0;
}

/* --- load --- */

/* Return the bits of one frame at layer 1; for a message, the min number of bits. */
static double bits_each(const struct phase_lane *lane)
{
    bool frames = transport_can(lane->transport, TRANSPORT_FRAMES);

    return (phase_mean_size(&lane->phase) + (frames ? FRAME_OVERHEAD_L1 : 0)) * 8.0;
}

int lane_resolve_load(struct phase_lane *lane, struct err *err)
{
    const struct doc_load *ask = lane->own->part->doc->load;
    const struct port_conf *conf = &lane->port->conf;
    struct load *load = &lane->phase.load;
    double line_bps = (double)lane->port->line_rate_bps, asked_bps;

    *load = (struct load){
        .rate_bps = (ask->percent > 0 ? line_bps * ask->percent / 100 : ask->bps) * lane->part,
        .rate_fps = ask->fps * lane->part,
        .unlimited =
            !transport_can(lane->transport, TRANSPORT_FRAMES) && ask->percent * lane->part >= 100,
        .part = lane->part,
    };
    asked_bps = load->rate_fps > 0 ? load->rate_fps * bits_each(lane) : load->rate_bps;
    if (ask->percent > 0 && line_bps == 0 && !load->unlimited)
        return err_set(err, -EINVAL,
                       "port %s: a load in percent needs a line rate, which its driver does not "
                       "report: set line_rate (--set site.ports.e0.line_rate=10Gbit), or give the "
                       "load in bit/s or frames/s",
                       conf->name);
    /* The other users of a shared port need room, among them the controller's connection. */
    if (conf->shared && line_bps == 0)
        return err_set(err, -EINVAL,
                       "port %s is shared, and its line rate is not known: set line_rate, because "
                       "the load may be at most %d %% of it",
                       conf->name, SHARED_PERCENT);
    if (conf->shared && (load->unlimited || asked_bps > line_bps * SHARED_PERCENT / 100))
        return err_set(err, -EINVAL,
                       "port %s is shared: its load may be at most %d %% of its line rate",
                       conf->name, SHARED_PERCENT);
    if (line_bps > 0 && asked_bps > line_bps)
        return err_set(err, -EINVAL,
                       "port %s: a load of %.6g Mbit/s is above its line rate of %.6g Mbit/s",
                       conf->name, asked_bps / 1e6, line_bps / 1e6);
    return 0;
}

double lane_probe_fps(const struct phase_lane *lane, uint32_t probes)
{
    double fps = (double)lane->port->line_rate_bps * PROBE_PERCENT / 100 / bits_each(lane);

    if (lane->port->line_rate_bps == 0 || fps > PROBE_FPS_MAX)
        fps = PROBE_FPS_MAX;
    return probes > 0 ? fmin(fps, probes / PROBE_SPREAD_S) : fps;
}

/* Make this node's lanes with their flows and loads. */
static int begin_lanes(struct phase_run *run)
{
    struct node *node = run->trial->node;
    int rc = 0;

    fill_template(run);
    run->lane_count = run->trial->own_count;
    run->lanes = calloc(run->lane_count + 1, sizeof *run->lanes);
    run->worker_lanes = calloc(node->lane_count + 1, sizeof *run->worker_lanes);
    run->tasks = calloc(node->worker_count, sizeof *run->tasks);
    if (run->lanes == NULL || run->worker_lanes == NULL || run->tasks == NULL)
        return err_set(&node->err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < run->lane_count && rc == 0; i++) {
        struct phase_lane *lane = &run->lanes[i];

        lane->run = run;
        lane->own = &run->trial->own[i];
        lane->transport = lane->own->part->transport;
        lane->port = &node->ports[lane->own->port];
        fill_phase(lane);
        if (make_flows(lane) < 0)
            return err_set(&node->err, -ENOMEM, "out of memory");
        lane->is_idle = lane->flow_count == 0 && !run->trial->doc->listen;
        if (run->is_probe)
            lane->phase.load.rate_fps =
                lane_probe_fps(lane, run->template.probes * lane->send_count);
        else if (run->template.traffic == TRAFFIC_PINGPONG ||
                 run->template.traffic == TRAFFIC_SCHEDULE)
            lane->phase.load.unlimited = true; /* each message waits for the one before */
        else if (!lane->is_idle)
            rc = lane_resolve_load(lane, &node->err);
    }
    return rc;
}

/* --- addresses of ports for other nodes, and blobs for the partners of flows --- */

uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank)
{
    return (uint64_t)trial->doc->id << 32 | (uint64_t)part << 24 | rank;
}

/* Fetch the addresses of the partners in the order of the flows, with up to ASKED_MOST requests at
 * the same time. Return -EAGAIN while some are missing. */
static int fetch_partners(struct phase_lane *lane, struct err *err)
{
    const struct trial *trial = lane->run->trial;
    const struct local_rank *own = lane->own;
    struct node *node = trial->node;

    for (uint32_t i = lane->fetched; i < lane->flow_count && i < lane->fetched + ASKED_MOST; i++) {
        struct lane_flow *flow = &lane->flows[i];
        uint32_t rank = i < lane->send_count ? flow->dst : flow->src;
        const struct port_location *place = own->part->ranks[rank];
        int rc =
            control_fetch(node->control, place->node, trial_blob_id(trial, own->part_index, rank),
                          &flow->partner, clock_now());

        if (rc == -EAGAIN)
            err_set(err, rc, "node %s has not sent the address of port %s",
                    node_name_of(node, place->node), place->name);
        else if (rc < 0)
            return err_set(err, rc, "out of memory");
        else if (i == lane->fetched)
            lane->fetched++;
    }
    return lane->fetched == lane->flow_count ? 0 : -EAGAIN;
}

/* Return the id under which nodes exchange a blob of a lane. The ids of ports' addresses
 * (trial_blob_id) have smaller trial numbers, and so differ. */
static uint64_t blob_id(const struct phase_lane *lane, const struct blob_key *key)
{
    const struct phase_run *run = lane->run;
    const uint32_t words[] = {
        run->trial->doc->id,
        run->trial->doc->repeat,
        lane->own->part_index,
        run->number,
        key->src,
        key->dst,
        key->from_source,
        key->piece,
    };
    uint8_t hash[crypto_generichash_BYTES_MIN];
    uint64_t id;

    crypto_generichash(hash, sizeof hash, (const uint8_t *)words, sizeof words, NULL, 0);
    memcpy(&id, hash, sizeof id);
    return id | CONTROL_PHASE_BLOB;
}

static int publish(void *context, const struct blob_key *key, const struct blob *blob)
{
    struct phase_lane *lane = context;

    return control_publish(lane->run->trial->node->control, blob_id(lane, key), blob);
}

/* Fetch a partner's blob; if the partner is on this node, the blob is in this node's own store. */
static int fetch(void *context, const struct blob_key *key, struct blob *blob)
{
    const struct phase_lane *lane = context;
    uint32_t rank = key->from_source ? key->src : key->dst;

    return control_fetch(lane->run->trial->node->control, lane->own->part->ranks[rank]->node,
                         blob_id(lane, key), blob, clock_now());
}

/* --- queues --- */

/* Copy the flows of one of several queues: a part of the sent flows, and all received flows, which
 * may arrive on any queue. A forwarded flow leaves by the queue on which it arrived. */
static int split_flows(const struct phase_lane *lane, struct worker_lane *queue,
                       struct lane_request *request)
{
    struct lane_flow *kept = queue->flows = calloc(lane->flow_count + 1, sizeof *queue->flows);

    if (kept == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < lane->flow_count; i++)
        if (i >= lane->send_count || lane->flows[i].role == PATTERN_FORWARD ||
            i % lane->queue_count == request->queue)
            *kept++ = lane->flows[i];
    request->flows = queue->flows;
    request->send_count = (uint32_t)(kept - queue->flows) - lane->receive_count;
    return 0;
}

/* Return the share of the port's load that its first `queues` queues send. */
static double share_of(const struct phase_lane *lane, uint32_t queues)
{
    double sum = 0;

    for (uint32_t i = 0; i < lane->send_count; i++)
        if (i % lane->queue_count < queues)
            sum += lane->flows[i].share > 0 ? lane->flows[i].share : 1.0 / lane->send_count;
    return sum;
}

/* Make the lane of a queue, with room for its interval results. */
static int prepare_queue(struct phase_lane *lane, uint32_t number, struct err *err)
{
    const struct node *node = lane->run->trial->node;
    struct worker_lane *queue = &lane->queues[number];
    struct lane_request request = {
        .port = lane->port->open,
        .secret = &node->secret,
        .phase = &lane->phase,
        .rank = lane->own->rank,
        .ranks = lane->own->part->n,
        .flows = lane->flows,
        .send_count = lane->send_count,
        .receive_count = lane->receive_count,
        .port_sends = lane->flows,
        .port_send_count = lane->send_count,
        .count = &queue->count,
        .line_rate_bps = lane->port->line_rate_bps,
        .queue = number,
        .first_queue_lane = number > 0 ? lane->lane : NULL,
        .share_from = share_of(lane, number),
        .share_to = share_of(lane, number + 1),
        .blob_exchange = &lane->blob_exchange,
        .sleeps = node->cores.sleeps,
        .executor = lane->executor,
    };
    int rc = lane->queue_count > 1 ? split_flows(lane, queue, &request) : 0;

    queue->transport = lane->transport;
    queue->foreign = &lane->foreign;
    if (lane->marked != NULL &&
        (queue->interval_ring = interval_ring_make(lane->receive_count)) == NULL)
        rc = -ENOMEM;
    if (rc < 0)
        return err_set(err, rc, "out of memory");
    rc = transport_prepare(lane->transport, &queue->lane, &request, err);
    if (number == 0)
        lane->lane = queue->lane;
    return rc;
}

/* Make a port's lanes once the partners' addresses are known. */
static int prepare_lane(struct phase_lane *lane, struct err *err)
{
    bool marks =
        lane->run->trial->doc->interval_ns > 0 && !lane->run->is_probe && lane->receive_count > 0;
    int rc;

    if (lane->lane != NULL || lane->is_idle)
        return 0;
    rc = fetch_partners(lane, err);
    if (rc < 0)
        return rc;
    lane->blob_exchange = (struct blob_exchange){lane, publish, fetch};
    /* The steps of a schedule wait for each other, and so need one queue. */
    if (lane->phase.traffic == TRAFFIC_SCHEDULE && lane->port->queues > 1)
        return err_set(err, -EINVAL, "port %s: a schedule needs one queue, not %u: set queues: 1",
                       lane->port->conf.name, lane->port->queues);
    if (lane->phase.traffic == TRAFFIC_SCHEDULE)
        rc = executor_make(&lane->executor, &lane->phase, lane->own->part->plan, lane->own->rank,
                           lane->own->part->n, err);
    if (rc < 0)
        return rc;
    lane->queues = calloc(lane->port->queues, sizeof *lane->queues);
    if (marks)
        lane->marked = calloc(lane->receive_count, sizeof *lane->marked);
    if (lane->queues == NULL || (marks && lane->marked == NULL))
        return err_set(err, -ENOMEM, "out of memory");
    lane->queue_count = lane->port->queues;
    for (uint32_t i = 0; i < lane->queue_count && rc == 0; i++)
        rc = prepare_queue(lane, i, err);
    return rc;
}

/* --- a phase's lanes --- */

/* Make the lanes of all this node's ports in the phase. Return -EAGAIN while partners' addresses
 * are missing. */
static int prepare_lanes(struct phase_run *run, struct err *err)
{
    int waiting = 0;

    for (size_t i = 0; i < run->lane_count; i++) {
        int rc = prepare_lane(&run->lanes[i], err);

        if (rc < 0 && rc != -EAGAIN)
            return rc;
        waiting = rc < 0 ? rc : waiting;
    }
    return waiting;
}

/* Connect all lanes of this node. Return 0 when all are ready; -EAGAIN: some wait for partners, and
 * `err` may name one of these; -EINPROGRESS: some need more time, but wait for no partner. */
static int connect_lanes(struct phase_run *run, struct err *err)
{
    int waiting = 0;

    for (size_t i = 0; i < run->lane_count; i++)
        for (uint32_t q = 0; q < run->lanes[i].queue_count; q++) {
            struct err why = {0};
            int rc =
                run->lanes[i].transport->connect(run->lanes[i].queues[q].lane, clock_now(), &why);
            bool failed = rc < 0 && rc != -EAGAIN && rc != -EINPROGRESS;

            if (failed ||
                err->text[0] == '\0') /* else the sentence of the first waiting lane stays */
                *err = why;
            if (failed)
                return rc;
            if (rc == -EINPROGRESS || waiting == 0)
                waiting = rc;
        }
    return waiting;
}

int lanes_prepare(struct phase_run *run)
{
    struct node *node = run->trial->node;
    /* A probe skips unreachable partners by itself. */
    int64_t limit_ns = (run->is_probe ? 2 : 1) * timeout_ns(run);
    int64_t since_ns = clock_now();
    bool made = false;
    int rc = begin_lanes(run);

    while (rc == 0) {
        struct err why = {0};

        rc = made ? 0 : prepare_lanes(run, &why);
        if (rc == 0 && !made) {
            made = true;
            since_ns = clock_now();
        }
        if (rc == 0)
            rc = connect_lanes(run, &why);
        if (rc == 0)
            return 0;
        if (rc == -EINPROGRESS)
            since_ns = clock_now();
        else if (rc != -EAGAIN)
            return err_set(&node->err, rc, "%s", why.text);
        if (clock_now() - since_ns > limit_ns)
            return err_set(&node->err, -ETIMEDOUT,
                           "trial %u: partners were not connected within %u ms%s%s",
                           run->trial->doc->id, (unsigned)(limit_ns / NS_PER_MS),
                           why.text[0] != '\0' ? ": " : "", why.text);
        rc = node_poll(node, clock_now() + NS_PER_MS, made ? run->trial->connect_fd : -1);
    }
    return rc;
}

/* The lane of queue 0 gets the first start, the last stop, the last arrival and the first fault of
 * all queues of its port. */
void lanes_gather(struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];
        struct lane *all = lane->lane;

        for (uint32_t q = 0; q < lane->queue_count; q++) {
            const struct worker_lane *queue = &lane->queues[q];
            const struct lane *one = queue->lane;
            uint32_t flows = one->request.send_count + one->request.receive_count;

            port_count_add(&lane->count, &queue->count);
            if (one->started_ns > 0 && (all->started_ns == 0 || one->started_ns < all->started_ns))
                all->started_ns = one->started_ns;
            all->stopped_ns = MAX(all->stopped_ns, one->stopped_ns);
            all->arrived_ns = MAX(all->arrived_ns, one->arrived_ns);
            if (all->error.text[0] == '\0')
                all->error = one->error;
            for (uint32_t f = 0; f < flows && queue->flows != NULL; f++)
                flow_side_add(&lane->flows[queue->flows[f].number].side, &queue->flows[f].side);
        }
    }
}

void lanes_release(struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count && run->lanes != NULL; i++) {
        struct phase_lane *lane = &run->lanes[i];

        for (uint32_t q = 0; q < lane->queue_count; q++) {
            struct worker_lane *queue = &lane->queues[q];

            if (queue->lane != NULL)
                lane->transport->destroy(queue->lane);
            free(queue->flows);
            interval_ring_free(queue->interval_ring);
        }
        free(lane->marked);
        free(lane->queues);
        executor_free(lane->executor);
        free(lane->flows);
    }
    free(run->lanes);
    free(run->worker_lanes);
    free(run->tasks);
}
