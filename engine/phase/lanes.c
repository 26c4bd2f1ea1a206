/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lanes of a phase: from the documents' words and the pattern's flows to lanes that are ready
 * to start.
 */
#include "lanes.h"

#include "clock.h"
#include "event_loop.h"
#include "memory.h"
#include "offered_load.h"
#include "phase_run.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define PROBES 3
#define PROBE_BYTES 64
#define ALONE_NS (500 * NS_PER_MS) /* a node computes alone for so long, to be compared with */
#define FLOWS_USUAL 2              /* of a rank in a phase, each way: most patterns have no more */
#define ASKED_MOST 32u             /* partners whose addresses are asked for at the same time */
#define PROBE_PHASES_MAX 2048      /* of a longer plan the first so many phases are probed */
#define CATCH_UP_FRAMES 8          /* of ... */
#define CATCH_UP_BYTES 1518

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
        .catch_up = doc->catch_up > 0 ? doc->catch_up : CATCH_UP_FRAMES,
        .dither = doc->dither,
    };
}

/* catch_up is said in frames of 1,518 bytes, for a queue in the switch holds bytes: of smaller
 * frames as many more, of larger ones fewer, but CATCH_UP_FRAMES if so many are allowed. */
static uint16_t catch_up_frames(const struct phase *phase)
{
    uint16_t least =
        phase->dpdk.catch_up < CATCH_UP_FRAMES ? phase->dpdk.catch_up : CATCH_UP_FRAMES;
    double frames = phase->dpdk.catch_up * (CATCH_UP_BYTES + (double)FRAME_OVERHEAD_L1) /
                    (phase_mean_size(phase) + FRAME_OVERHEAD_L1);

    if (frames < least)
        return least;
    return frames < UINT16_MAX ? (uint16_t)frames : UINT16_MAX;
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

static void set_verbs_options(struct verbs_options *options, const struct doc_verbs *doc)
{
    static const struct doc_verbs none;

    doc = doc != NULL ? doc : &none;
    *options = (struct verbs_options){
        .service = doc->service,
        .operation = doc->operation,
        .immediate = doc->immediate == NULL || *doc->immediate,
        .depth = doc->depth > 0 ? doc->depth : 128,
        .queue_pairs = doc->queue_pairs > 0 ? doc->queue_pairs : 1,
        .inline_bytes = doc->inline_bytes != NULL ? (int32_t)*doc->inline_bytes : VERBS_AUTOMATIC,
        .signal_every = doc->signal_every,
        .mtu = doc->mtu,
        .gid_index = doc->gid_index != NULL ? *doc->gid_index : VERBS_AUTOMATIC,
        .service_level = doc->service_level,
        .traffic_class = doc->traffic_class,
        .pkey_index = doc->pkey_index,
        .retry = doc->retry != NULL ? *doc->retry : 6,
        .rnr_retry = doc->rnr_retry != NULL ? *doc->rnr_retry : 6,
        .timeout = doc->timeout > 0 ? doc->timeout : 14,
        .completion = doc->completion,
        .connect = doc->connect,
        .reuse = doc->reuse != NULL ? *doc->reuse : 64,
    };
}

/* Whether partners can be reached is asked with nothing else on the way. */
static void set_latency_options(struct latency_options *options, const struct phase_run *run)
{
    const struct doc_latency *doc = run->trial->doc->latency;

    if (doc == NULL || phase_is_probe(run))
        return;
    *options = (struct latency_options){
        .probe_fps = doc->probe_fps != NULL ? *doc->probe_fps : -1,
        .stamps = doc->stamps,
    };
    /* A stream that is forwarded has no connection of its own for them, and its ends can't know. */
    if (run->trial->doc->pattern.forward &&
        strcmp(run->trial->transport->size_unit, "message") == 0)
        options->probe_fps = 0;
}

static void set_pingpong_options(struct pingpong_options *options, const struct doc_pingpong *doc)
{
    static const struct doc_pingpong none;

    doc = doc != NULL ? doc : &none;
    *options = (struct pingpong_options){
        .count = doc->count,
        .size_least = doc->size_least,
        .size_most = doc->size_most,
        .random = doc->random,
        .samples = doc->samples,
        .quiet_ns = doc->compute > 0 ? ALONE_NS : 0,
        .patience_ns = doc->patience_ns,
    };
}

static void set_schedule_options(struct schedule_options *options, const struct doc_schedule *doc)
{
    static const struct doc_schedule none;

    doc = doc != NULL ? doc : &none;
    *options = (struct schedule_options){
        .count = doc->count,
        .batch = doc->batch != NULL ? *doc->batch : 1,
        .lead = doc->lead,
        .warmup = doc->warmup != NULL ? *doc->warmup : 1,
        .compute = doc->compute,
    };
}

/* Frames that ask whether messages can pass are chosen by their transport; an ordinary one stands
 * for them where loads and times are computed. */
static void set_probe_size(const struct phase_run *run, struct phase *phase)
{
    if (strcmp(run->trial->transport->size_unit, "frame") != 0)
        return;
    phase->sizes[0] = CATCH_UP_BYTES;
    phase->size_count = 1;
}

/* How long partners may take to be connected. */
static int64_t patience_ns(const struct phase_run *run)
{
    return 2 * run->trial->node->job->barrier_timeout_ms * NS_PER_MS;
}

static void make_template(struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    *phase = (struct phase){
        .trial = doc->id,
        .number = run->number,
        .seed = doc->seed + run->number,
        .traffic = phase_is_probe(run) ? TRAFFIC_PROBE : doc->traffic,
        .messages = doc->traffic == TRAFFIC_PINGPONG || doc->traffic == TRAFFIC_SCHEDULE,
        .transfer_bytes = doc->transfer_bytes,
        .probes = PROBES,
        .probe_patience_ns = patience_ns(run),
        .size_count = doc->sizes_count,
    };
    if (phase_is_probe(run) && doc->probe_sizes_count > 0) {
        phase->size_count = doc->probe_sizes_count;
        memcpy(phase->sizes, doc->probe_sizes, phase->size_count * sizeof phase->sizes[0]);
    } else if (doc->sizes_count > 0)
        memcpy(phase->sizes, doc->sizes, doc->sizes_count * sizeof phase->sizes[0]);
    else /* a schedule's steps say how long messages are: this is what probes them */
        phase->sizes[phase->size_count++] = PROBE_BYTES;
    if (phase->messages && phase_is_probe(run))
        set_probe_size(run, phase);
    set_dpdk_options(&phase->dpdk, doc->dpdk);
    if (!phase->messages)
        phase->dpdk.catch_up = catch_up_frames(phase);
    set_tcp_options(&phase->tcp, doc->tcp);
    set_verbs_options(&phase->verbs, doc->verbs);
    set_pingpong_options(&phase->pingpong, doc->pingpong);
    set_schedule_options(&phase->schedule, doc->schedule);
    if (doc->traffic == TRAFFIC_SCHEDULE)
        phase->pingpong.patience_ns = doc->drain_silence_ns;
    set_latency_options(&phase->latency, run);
}

/* 16 bits that keep frames of other runs, trials, networks and phases apart; never 0. */
static uint16_t draw_tag(const struct phase_run *run, uint32_t part)
{
    const struct transport_secret *secret = &run->trial->node->secret;
    uint32_t place[] = {run->trial->doc->id, run->trial->doc->repeat, part, run->number};
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

static int set_load(const struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct trial *trial = run->trial;
    const struct node_port *port = &trial->node->ports[lane->own->port];
    struct load_line line = {
        .port = port->doc->conf.name,
        .rate_bps = port->line_rate_bps,
        .frames = strcmp(trial->transport->size_unit, "frame") == 0,
        .mean_size = phase_mean_size(&lane->phase),
        .shared = port->doc->conf.shared,
    };

    if (run->template.traffic == TRAFFIC_PINGPONG || run->template.traffic == TRAFFIC_SCHEDULE) {
        /* The next message waits for the last one. */
        lane->phase.load = (struct load){.unlimited = true};
        return 0;
    }
    if (!phase_is_probe(run))
        return load_resolve(&lane->phase.load, &trial->doc->load, &line, err);
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

    if (count == 0) /* then there may be no list either, and qsort wants one */
        return 0;
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

static int make_room(struct flow_list *list, size_t more)
{
    size_t room = (list->count + more) * 2;
    struct pattern_flow *grown;

    if (list->count + more <= list->room)
        return 0;
    grown = realloc(list->flows, room * sizeof *grown);
    if (grown == NULL)
        return -ENOMEM;
    list->flows = grown;
    list->room = room;
    return 0;
}

static int append_phase(struct flow_list *list, const struct own_rank *own, uint32_t phase,
                        enum pattern_side side)
{
    const struct pattern_plan *plan = own->part->plan;
    size_t n;
    int rc = make_room(list, FLOWS_USUAL);

    if (rc < 0)
        return rc;
    n = pattern_flows(plan, phase, own->rank, side, list->flows + list->count,
                      list->room - list->count);
    if (n > list->room - list->count) {
        rc = make_room(list, n);
        if (rc == 0)
            pattern_flows(plan, phase, own->rank, side, list->flows + list->count, n);
    }
    list->count += rc == 0 ? n : 0;
    return rc;
}

/* The flows of one side of an own rank: of one phase, or for the probe of all, each once. */
static int collect_flows(const struct phase_run *run, const struct own_rank *own,
                         enum pattern_side side, struct flow_list *list)
{
    uint32_t phases = pattern_phases(own->part->plan);
    int rc = 0;

    if (!phase_is_probe(run))
        return run->number < phases ? append_phase(list, own, run->number, side) : 0;
    for (uint32_t i = 0; i < phases && i < PROBE_PHASES_MAX && rc == 0; i++)
        rc = append_phase(list, own, i, side);
    list->count = drop_repeats(list->flows, list->count);
    for (size_t i = 0; list->flows != NULL && i < list->count; i++)
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

/* --- queues --- */

/* The flows of one of several queues: a share of what is sent, all that is received (it may come by
 * any). A flow that is forwarded leaves by the queue by which it came. */
static int split_flows(const struct phase_lane *lane, uint32_t number)
{
    struct queue_lane *queue = &lane->queues[number];
    struct flow_side *side;

    queue->sends = calloc(lane->send_count + 1, sizeof *queue->sends);
    queue->receives = calloc(lane->receive_count + 1, sizeof *queue->receives);
    queue->sides = calloc(lane->send_count + lane->receive_count + 1, sizeof *queue->sides);
    if (queue->sends == NULL || queue->receives == NULL || queue->sides == NULL)
        return -ENOMEM;
    side = queue->sides;
    for (uint32_t i = 0; i < lane->send_count; i++) {
        bool forward = lane->sends[i].role == PATTERN_FORWARD;

        if (!forward && i % lane->queue_count != number)
            continue;
        queue->sends[queue->send_count] = lane->sends[i];
        if (forward)
            queue->sends[queue->send_count].side = side++;
        queue->send_count++;
    }
    for (uint32_t i = 0; i < lane->receive_count; i++) {
        queue->receives[i] = lane->receives[i];
        queue->receives[i].side = side++;
    }
    return 0;
}

/* Room for interim results of what the port receives. */
static int make_interims(struct phase_lane *lane)
{
    const struct phase_run *run = lane->run;

    if (run->trial->doc->interim_ns == 0 || phase_is_probe(run) || lane->receive_count == 0)
        return 0;
    lane->interim.bytes =
        calloc((size_t)(INTERIM_BATCH + 1) * lane->receive_count, sizeof *lane->interim.bytes);
    if (lane->interim.bytes == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < lane->queue_count; i++) {
        lane->queues[i].interim = interim_make(lane->receive_count);
        if (lane->queues[i].interim == NULL)
            return -ENOMEM;
    }
    return 0;
}

static int make_queues(struct phase_lane *lane, uint32_t count)
{
    int rc = 0;

    lane->queues = calloc(count, sizeof *lane->queues);
    if (lane->queues == NULL)
        return -ENOMEM;
    lane->queue_count = count;
    if (count == 1)
        lane->queues[0] = (struct queue_lane){
            .sends = lane->sends, .receives = lane->receives, .send_count = lane->send_count};
    for (uint32_t i = 0; i < count && count > 1 && rc == 0; i++)
        rc = split_flows(lane, i);
    return rc == 0 ? make_interims(lane) : rc;
}

static void free_queues(const struct phase_run *run, struct phase_lane *lane)
{
    for (uint32_t i = 0; i < lane->queue_count; i++) {
        struct queue_lane *queue = &lane->queues[i];

        if (queue->lane != NULL)
            run->trial->transport->finish(queue->lane);
        if (lane->queue_count > 1) {
            free(queue->sends);
            free(queue->receives);
            free(queue->sides);
        }
        interim_free(queue->interim);
    }
    free(lane->interim.bytes);
    free(lane->queues);
}

static void gather_queue(struct phase_lane *lane, const struct queue_lane *queue)
{
    uint32_t forwards = lane->send_count > 0 && lane->sends[0].role == PATTERN_FORWARD;

    for (uint32_t i = 0; i < forwards; i++)
        flow_side_add(lane->sends[i].side, queue->sends[i].side);
    for (uint32_t i = 0; i < lane->receive_count; i++)
        flow_side_add(lane->receives[i].side, queue->receives[i].side);
}

/* The first start, the last stop and arrival, and the first fault of all queues become queue 0's.
 */
static void gather_lane(struct lane *all, const struct lane *lane)
{
    if (lane->started_ns > 0 && (all->started_ns == 0 || lane->started_ns < all->started_ns))
        all->started_ns = lane->started_ns;
    if (lane->stopped_ns > all->stopped_ns)
        all->stopped_ns = lane->stopped_ns;
    if (lane->arrived_ns > all->arrived_ns)
        all->arrived_ns = lane->arrived_ns;
    if (all->error.text[0] == '\0')
        all->error = lane->error;
}

void lanes_gather(struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];

        for (uint32_t q = 0; q < lane->queue_count; q++) {
            const struct queue_lane *queue = &lane->queues[q];

            port_count_add(&lane->count, &queue->count);
            gather_lane(lane->lane, queue->lane);
            if (lane->queue_count > 1)
                gather_queue(lane, queue);
        }
    }
}

const struct phase_lane *lanes_owner(const struct phase_run *run, const struct lane *lane)
{
    for (size_t i = 0; i < run->lane_count; i++)
        for (uint32_t q = 0; q < run->lanes[i].queue_count; q++)
            if (run->lanes[i].queues[q].lane == lane)
                return &run->lanes[i];
    return NULL;
}

/* --- the courier --- */

/* How a letter is called between nodes. The highest bit keeps it apart from ports' addresses
 * (trial_blob_id), whose trial numbers do not reach that far. */
static uint64_t letter_id(const struct phase_lane *lane, const struct courier_letter *letter)
{
    const struct phase_run *run = lane->run;
    const uint32_t words[] = {
        run->trial->doc->id,   run->trial->doc->repeat,
        lane->own->part_index, run->number,
        letter->src,           letter->dst,
        letter->from_source,   letter->piece,
    };
    uint8_t hash[crypto_generichash_BYTES_MIN];
    uint64_t id;

    crypto_generichash(hash, sizeof hash, (const uint8_t *)words, sizeof words, NULL, 0);
    memcpy(&id, hash, sizeof id);
    return id | UINT64_C(1) << 63;
}

struct posted {
    struct posted *next;
    uint64_t id;
};

static int publish_letter(void *context, const struct courier_letter *letter,
                          const struct blob *blob)
{
    struct phase_lane *lane = context;
    uint64_t id = letter_id(lane, letter);
    struct posted *posted = malloc(sizeof *posted);
    int rc = posted != NULL ? control_publish(lane->run->trial->node->control, id, blob) : -ENOMEM;

    if (rc < 0) {
        free(posted);
        return rc;
    }
    *posted = (struct posted){.next = lane->posted, .id = id};
    lane->posted = posted;
    return 0;
}

/* A partner that has sent or received here has fetched all. One that was still waiting when the
 * phase failed must find the letters: those stay. */
static void forget_letters(struct phase_lane *lane)
{
    bool had_traffic = lane->lane != NULL && lane->lane->started_ns > 0;

    while (lane->posted != NULL) {
        struct posted *posted = lane->posted;

        lane->posted = posted->next;
        if (had_traffic)
            control_withdraw(lane->run->trial->node->control, posted->id);
        free(posted);
    }
}

/* The partner's node may be this one: then its letter lies in our own mailbox. */
static int fetch_letter(void *context, const struct courier_letter *letter, struct blob *blob)
{
    const struct phase_lane *lane = context;
    uint32_t rank = letter->from_source ? letter->src : letter->dst;

    return control_fetch(lane->run->trial->node->control, lane->own->part->ranks[rank]->node,
                         letter_id(lane, letter), blob, clock_now());
}

/* --- preparation --- */

uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank)
{
    return (uint64_t)trial->doc->id << 32 | (uint64_t)part << 24 | rank;
}

/* The address of the other end of a flow. -EAGAIN: asked for. */
static int fetch_partner(const struct phase_run *run, const struct own_rank *own, uint32_t rank,
                         struct blob *blob, struct err *err)
{
    struct node *node = run->trial->node;
    const struct node_place *place = own->part->ranks[rank];
    uint64_t id = trial_blob_id(run->trial, own->part_index, rank);
    int rc;

    if (place->node == node->self) {
        run->trial->transport->address(node->ports[place->port].open, blob);
        return 0;
    }
    rc = control_fetch(node->control, place->node, id, blob, clock_now());
    if (rc == -EAGAIN)
        return err_set(err, rc, "%s has not told the address of %s",
                       node_name_of(node, place->node), place->name);
    return rc < 0 ? err_set(err, rc, "can't ask %s for the address of %s: %s",
                            node_name_of(node, place->node), place->name, strerror(-rc))
                  : 0;
}

/* Asks for some addresses at the same time, in the flows' order. -EAGAIN: some have not come. */
static int fetch_partners(const struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    uint32_t count = lane->send_count + lane->receive_count;

    for (uint32_t i = lane->fetched; i < count && i < lane->fetched + ASKED_MOST; i++) {
        bool sends = i < lane->send_count;
        struct lane_flow *flow = sends ? &lane->sends[i] : &lane->receives[i - lane->send_count];
        int rc = fetch_partner(run, lane->own, sends ? flow->dst : flow->src, &flow->partner, err);

        if (rc < 0 && rc != -EAGAIN)
            return rc;
        if (rc == 0 && i == lane->fetched)
            lane->fetched++;
    }
    return lane->fetched == count ? 0 : -EAGAIN;
}

static int prepare_queue(struct phase_run *run, struct phase_lane *lane, uint32_t number,
                         struct err *err)
{
    const struct node_port *port = &run->trial->node->ports[lane->own->port];
    struct queue_lane *queue = &lane->queues[number];
    struct lane_request request = {
        .port = port->open,
        .secret = &run->trial->node->secret,
        .phase = &lane->phase,
        .rank = lane->own->rank,
        .ranks = lane->own->part->n,
        .sends = queue->sends,
        .send_count = queue->send_count,
        .receives = queue->receives,
        .receive_count = lane->receive_count,
        .port_sends = lane->sends,
        .port_send_count = lane->send_count,
        .count = &queue->count,
        .line_rate_bps = port->line_rate_bps,
        .queue = number,
        .leader = number > 0 ? lane->lane : NULL,
        .share = lane->send_count > 0 ? (double)queue->send_count / lane->send_count : 1,
        .courier = &lane->courier,
        .sleeps = run->trial->node->sleeps,
        .stepper = lane->stepper,
    };
    int rc = run->trial->transport->prepare(&queue->lane, &request, err);

    if (number == 0)
        lane->lane = queue->lane;
    return rc;
}

static int begin_lane(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    int rc;

    lane->run = run;
    lane->courier = (struct courier){lane, publish_letter, fetch_letter};
    lane->phase = run->template;
    lane->phase.tag = draw_tag(run, lane->own->part_index);
    rc = fill_lane(run, lane);
    if (rc < 0)
        return err_set(err, rc, "out of memory");
    if (lane->send_count + lane->receive_count == 0)
        return 0;
    rc = set_load(run, lane, err);
    return rc == 0 ? check_cores(run, lane, err) : rc;
}

/* The rank's steps, where the phase is a schedule: they wait for each other on one queue. */
static int make_stepper(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct node_port *port = &run->trial->node->ports[lane->own->port];
    const struct stepper_conf conf = {
        .phase = &lane->phase,
        .plan = lane->own->part->plan,
        .rank = lane->own->rank,
        .ranks = lane->own->part->n,
        .sends = lane->sends,
        .send_count = lane->send_count,
        .receives = lane->receives,
        .receive_count = lane->receive_count,
    };

    if (lane->phase.traffic != TRAFFIC_SCHEDULE)
        return 0;
    if (port->queues > 1)
        return err_set(err, -EINVAL,
                       "port %s: a schedule is executed by one queue, not by %u: say queues: 1",
                       port->doc->conf.name, port->queues);
    return stepper_make(&lane->stepper, &conf, err);
}

/* Makes the lane once its partners are known. */
static int prepare_lane(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct node_port *port = &run->trial->node->ports[lane->own->port];
    int rc;

    if (lane->lane != NULL || lane->send_count + lane->receive_count == 0)
        return 0;
    rc = fetch_partners(run, lane, err);
    if (rc == 0)
        rc = make_stepper(run, lane, err);
    if (rc == 0 && make_queues(lane, port->queues) < 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < lane->queue_count && rc == 0; i++)
        rc = prepare_queue(run, lane, i, err);
    return rc;
}

/* 0: all lanes are ready. -EAGAIN: not yet, and `why` may name a partner that is waited for. */
static int settle_once(struct phase_run *run, struct err *why)
{
    int waiting = 0;

    for (size_t i = 0; i < run->lane_count; i++) {
        for (uint32_t q = 0; q < run->lanes[i].queue_count; q++) {
            struct lane *lane = run->lanes[i].queues[q].lane;
            int rc = run->trial->transport->settle(lane, clock_now(), why);

            if (rc < 0 && rc != -EAGAIN)
                return rc;
            waiting = rc < 0 ? rc : waiting;
        }
    }
    return waiting;
}

static int make_tasks(struct phase_run *run)
{
    struct node *node = run->trial->node;

    run->lane_count = run->trial->own_count;
    run->lanes = calloc(run->lane_count + 1, sizeof *run->lanes);
    run->worker_lanes = calloc(node->lane_count + 1, sizeof *run->worker_lanes);
    run->tasks = calloc(node->worker_count, sizeof *run->tasks);
    if (run->lanes == NULL || run->worker_lanes == NULL || run->tasks == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < run->lane_count; i++)
        run->lanes[i].own = &run->trial->own[i];
    return 0;
}

int lanes_begin(struct phase_run *run, struct err *err)
{
    int rc;

    make_template(run);
    rc = make_tasks(run);
    if (rc < 0)
        err_set(err, rc, "out of memory");
    for (size_t i = 0; i < run->lane_count && rc == 0; i++)
        rc = begin_lane(run, &run->lanes[i], err);
    return rc;
}

/* What the steps of this node's ranks take together. */
static int sum_needs(const struct phase_run *run, uint64_t *sum)
{
    int rc = 0;

    *sum = 0;
    for (size_t i = 0; i < run->lane_count && rc == 0; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        uint64_t bytes = 0;

        if (lane->phase.traffic == TRAFFIC_SCHEDULE && lane->send_count + lane->receive_count > 0)
            rc = stepper_needs(&lane->phase, lane->own->part->plan, lane->own->rank, &bytes);
        *sum += bytes;
    }
    return rc;
}

/* Whether there is memory for the steps of all ranks, before any of it is taken: the kernel would
 * give more than there is, and end a process when it is used. A phase that is early waits for what
 * those before it give back. */
static int admit(struct phase_run *run, struct err *err)
{
    uint64_t needed = 0, spare;
    int rc = run->admitted ? 0 : sum_needs(run, &needed);

    if (rc < 0)
        return err_set(err, rc, "out of memory");
    spare = needed > 0 ? memory_spare() : 0;
    run->admitted = needed <= spare;
    if (run->admitted)
        return 0;
    if (!run->due)
        return -EAGAIN;
    return err_set(err, -EINVAL,
                   "trial %u: the messages of the ranks on this node need %llu MiB of memory, and "
                   "%llu MiB are to spare: use smaller messages or fewer ranks",
                   run->trial->doc->id, (unsigned long long)needed >> 20,
                   (unsigned long long)spare >> 20);
}

int lanes_advance(struct phase_run *run, struct err *err)
{
    int waiting = admit(run, err);

    if (waiting < 0)
        return waiting;
    for (size_t i = 0; i < run->lane_count; i++) {
        int rc = prepare_lane(run, &run->lanes[i], err);

        if (rc < 0 && rc != -EAGAIN)
            return rc;
        waiting = rc < 0 ? rc : waiting;
    }
    run->made = waiting == 0;
    return run->made ? settle_once(run, err) : waiting;
}

int lanes_settle_fd(const struct phase_run *run)
{
    return run->made ? run->trial->settle_fd : -1;
}

int lanes_prepare(struct phase_run *run)
{
    struct node *node = run->trial->node;
    /* A probe leaves out by itself whom it can't reach. */
    int64_t limit_ns = phase_is_probe(run) ? 2 * patience_ns(run) : patience_ns(run);
    int64_t since_ns = clock_now();

    run->due = true;
    for (;;) {
        bool made = run->made;
        struct err err = run->err;
        int rc = run->failed < 0 ? run->failed : lanes_advance(run, &err);

        if (rc == 0)
            return 0;
        if (run->made && !made)
            since_ns = clock_now();
        if (rc == -EAGAIN && clock_now() - since_ns > limit_ns) {
            struct err why = err;

            err = (struct err){0};
            rc = err_set(&err, -ETIMEDOUT, "trial %u: partners were not connected within %u ms%s%s",
                         run->trial->doc->id, (unsigned)(limit_ns / NS_PER_MS),
                         why.text[0] != '\0' ? ": " : "", why.text);
        }
        if (rc != -EAGAIN)
            return node_fail(node, node_status_for(rc), &err);
        if (node_turn_or(node, clock_now() + NS_PER_MS, lanes_settle_fd(run)) < 0)
            return -ECANCELED;
    }
}

void lanes_release(struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count && run->lanes != NULL; i++) {
        struct phase_lane *lane = &run->lanes[i];

        forget_letters(lane);
        free_queues(run, lane);
        stepper_free(lane->stepper);
        free(lane->sends);
        free(lane->receives);
        free(lane->sides);
    }
    compute_free(run->compute);
    free(run->lanes);
    free(run->worker_lanes);
    free(run->tasks);
}
