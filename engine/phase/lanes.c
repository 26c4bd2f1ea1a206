/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lanes of a phase: from the pattern's flows to lanes that are ready to start.
 */
#include "lanes.h"

#include "clock.h"
#include "event_loop.h"
#include "flows.h"
#include "memory.h"
#include "phase_times.h"
#include "schedule_executor.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define ASKED_MOST 32u /* partners whose addresses are asked for at the same time */

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

uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank)
{
    return (uint64_t)trial->doc->id << 32 | (uint64_t)part << 24 | rank;
}

/* The address of the other end of a flow. -EAGAIN: asked for. */
static int fetch_partner(const struct phase_run *run, const struct local_rank *own, uint32_t rank,
                         struct blob *blob, struct err *err)
{
    struct node *node = run->trial->node;
    const struct port_location *place = own->part->ranks[rank];
    uint64_t id = trial_blob_id(run->trial, own->part_index, rank);
    int rc;

    if (place->node == node->self) {
        *blob = node->ports[place->port].address;
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

/* --- what lanes leave for the partners of their flows --- */

/* How a blob is called between nodes. The highest bit keeps it apart from ports' addresses
 * (trial_blob_id), whose trial numbers do not reach that far. */
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
    return id | UINT64_C(1) << 63;
}

static int publish(void *context, const struct blob_key *key, const struct blob *blob)
{
    struct phase_lane *lane = context;

    return control_publish(lane->run->trial->node->control, blob_id(lane, key), blob);
}

/* The partner's node may be this one: then its blob lies in our own store. */
static int fetch(void *context, const struct blob_key *key, struct blob *blob)
{
    const struct phase_lane *lane = context;
    uint32_t rank = key->from_source ? key->src : key->dst;

    return control_fetch(lane->run->trial->node->control, lane->own->part->ranks[rank]->node,
                         blob_id(lane, key), blob, clock_now());
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

/* Room for interval results of what the port receives. */
static int make_intervals(struct phase_lane *lane)
{
    const struct phase_run *run = lane->run;

    if (run->trial->doc->interval_ns == 0 || phase_is_probe(run) || lane->receive_count == 0)
        return 0;
    lane->intervals.bytes =
        calloc((size_t)(INTERVAL_BATCH + 1) * lane->receive_count, sizeof *lane->intervals.bytes);
    if (lane->intervals.bytes == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < lane->queue_count; i++) {
        lane->queues[i].interval_ring = interval_ring_make(lane->receive_count);
        if (lane->queues[i].interval_ring == NULL)
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
    return rc == 0 ? make_intervals(lane) : rc;
}

static void free_queues(struct phase_lane *lane)
{
    for (uint32_t i = 0; i < lane->queue_count; i++) {
        struct queue_lane *queue = &lane->queues[i];

        if (queue->lane != NULL)
            lane_transport(lane)->destroy(queue->lane);
        if (lane->queue_count > 1) {
            free(queue->sends);
            free(queue->receives);
            free(queue->sides);
        }
        interval_ring_free(queue->interval_ring);
    }
    free(lane->intervals.bytes);
    free(lane->queues);
}

/* Of what the port sends, by this queue. */
static double queue_share(const struct phase_lane *lane, const struct queue_lane *queue)
{
    double sum = 0;

    if (lane->send_count == 0)
        return 1;
    for (uint32_t i = 0; i < queue->send_count; i++)
        sum += queue->sends[i].share > 0 ? queue->sends[i].share : 1.0 / lane->send_count;
    return sum;
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
        .first_queue_lane = number > 0 ? lane->lane : NULL,
        .share = queue_share(lane, queue),
        .blob_exchange = &lane->blob_exchange,
        .sleeps = run->trial->node->cores.sleeps,
        .executor = lane->executor,
    };
    int rc = lane_transport(lane)->prepare(&queue->lane, &request, err);

    if (number == 0)
        lane->lane = queue->lane;
    return rc;
}

static int begin_lane(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    int rc;

    lane->run = run;
    lane->blob_exchange = (struct blob_exchange){lane, publish, fetch};
    flows_apply_template(lane);
    lane->phase.tag = draw_tag(run, lane->own->part_index);
    rc = flows_make(run, lane);
    if (rc < 0)
        return err_set(err, rc, "out of memory");
    return phase_uses_port(run, lane) ? flows_set_load(run, lane, err) : 0;
}

/* The rank's steps, where the phase is a schedule: they wait for each other on one queue. */
static int make_executor(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct node_port *port = &run->trial->node->ports[lane->own->port];

    if (lane->phase.traffic != TRAFFIC_SCHEDULE)
        return 0;
    if (port->queues > 1)
        return err_set(err, -EINVAL,
                       "port %s: a schedule is executed by one queue, not by %u: say queues: 1",
                       port->doc->conf.name, port->queues);
    return executor_make(&lane->executor, &lane->phase, lane->own->part->plan, lane->own->rank,
                         lane->own->part->n, err);
}

/* Makes the lane once its partners are known. */
static int prepare_lane(struct phase_run *run, struct phase_lane *lane, struct err *err)
{
    const struct node_port *port = &run->trial->node->ports[lane->own->port];
    int rc;

    if (lane->lane != NULL || !phase_uses_port(run, lane))
        return 0;
    rc = fetch_partners(run, lane, err);
    if (rc == 0)
        rc = make_executor(run, lane, err);
    if (rc == 0 && make_queues(lane, port->queues) < 0)
        rc = err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < lane->queue_count && rc == 0; i++)
        rc = prepare_queue(run, lane, i, err);
    return rc;
}

/* 0: all lanes are ready. -EAGAIN: not yet, and `why` may name a partner that is waited for. */
static int connect_once(struct phase_run *run, struct err *why)
{
    int waiting = 0;

    for (size_t i = 0; i < run->lane_count; i++) {
        for (uint32_t q = 0; q < run->lanes[i].queue_count; q++) {
            struct lane *lane = run->lanes[i].queues[q].lane;
            int rc = lane_transport(&run->lanes[i])->connect(lane, clock_now(), why);

            if (rc == -EINPROGRESS)
                run->busy_ns = clock_now();
            else if (rc < 0 && rc != -EAGAIN)
                return rc;
            waiting = rc < 0 ? -EAGAIN : waiting;
        }
    }
    return waiting;
}

/* The lanes as the pattern's flows and the loads make them. */
static int begin(struct phase_run *run, struct err *err)
{
    struct node *node = run->trial->node;
    int rc = 0;

    flows_fill_template(run);
    run->lane_count = run->trial->own_count;
    run->lanes = calloc(run->lane_count + 1, sizeof *run->lanes);
    run->worker_lanes = calloc(node->lane_count + 1, sizeof *run->worker_lanes);
    run->tasks = calloc(node->worker_count, sizeof *run->tasks);
    if (run->lanes == NULL || run->worker_lanes == NULL || run->tasks == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < run->lane_count; i++)
        run->lanes[i].own = &run->trial->own[i];
    for (size_t i = 0; i < run->lane_count && rc == 0; i++)
        rc = begin_lane(run, &run->lanes[i], err);
    return rc;
}

/* Whether there is memory for the steps of all this node's ranks, before any of it is taken: the
 * kernel would give more than there is, and end a process when it is used. */
static int admit(struct phase_run *run, struct err *err)
{
    uint64_t needed = 0, spare;

    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        uint64_t bytes = 0;

        if (lane->phase.traffic == TRAFFIC_SCHEDULE && lane->send_count + lane->receive_count > 0 &&
            executor_needs(&lane->phase, lane->own->part->plan, lane->own->rank, &bytes) < 0)
            return err_set(err, -ENOMEM, "out of memory");
        needed += bytes;
    }
    spare = needed > 0 ? memory_spare() : 0;
    if (needed <= spare)
        return 0;
    return err_set(err, -EINVAL,
                   "trial %u: the messages of the ranks on this node need %llu MiB of memory, and "
                   "%llu MiB are to spare: use smaller messages or fewer ranks",
                   run->trial->doc->id, (unsigned long long)needed >> 20,
                   (unsigned long long)spare >> 20);
}

static int prepare_lanes(struct phase_run *run, struct err *err)
{
    int waiting = 0;

    for (size_t i = 0; i < run->lane_count; i++) {
        int rc = prepare_lane(run, &run->lanes[i], err);

        if (rc < 0 && rc != -EAGAIN)
            return rc;
        waiting = rc < 0 ? rc : waiting;
    }
    return waiting;
}

/* Makes the lanes once their partners are known, and connects them; waits for partners, but not too
 * long. */
static int await_partners(struct phase_run *run, struct err *err)
{
    struct node *node = run->trial->node;
    /* A probe leaves out by itself whom it can't reach. */
    int64_t limit_ns = phase_is_probe(run) ? 2 * phase_timeout_ns(run) : phase_timeout_ns(run);
    int64_t since_ns = clock_now();
    bool made = false;

    for (;;) {
        int rc = made ? 0 : prepare_lanes(run, err);
        struct err why;

        if (rc == 0 && !made)
            since_ns = clock_now();
        made = made || rc == 0;
        if (rc == 0)
            rc = connect_once(run, err);
        if (rc != -EAGAIN)
            return rc;
        why = *err; /* it may name one */
        *err = (struct err){0};
        since_ns = since_ns < run->busy_ns ? run->busy_ns : since_ns;
        if (clock_now() - since_ns > limit_ns)
            return err_set(err, -ETIMEDOUT,
                           "trial %u: partners were not connected within %u ms%s%s",
                           run->trial->doc->id, (unsigned)(limit_ns / NS_PER_MS),
                           why.text[0] != '\0' ? ": " : "", why.text);
        if (node_poll(node, clock_now() + NS_PER_MS, made ? run->trial->connect_fd : -1) < 0)
            return -ECANCELED;
    }
}

int lanes_prepare(struct phase_run *run)
{
    struct err err = {0};
    int rc = begin(run, &err);

    if (rc == 0)
        rc = admit(run, &err);
    if (rc == 0)
        rc = await_partners(run, &err);
    if (rc == 0 || rc == -ECANCELED)
        return rc;
    return node_fail(run->trial->node, err_set(&run->trial->node->err, rc, "%s", err.text));
}

void lanes_release(struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count && run->lanes != NULL; i++) {
        struct phase_lane *lane = &run->lanes[i];

        free_queues(lane);
        executor_free(lane->executor);
        free(lane->sends);
        free(lane->receives);
        free(lane->sides);
    }
    compute_free(run->compute);
    free(run->lanes);
    free(run->worker_lanes);
    free(run->tasks);
}

const struct phase_lane *lanes_owner(const struct phase_run *run, const struct lane *lane)
{
    for (size_t i = 0; i < run->lane_count; i++)
        for (uint32_t q = 0; q < run->lanes[i].queue_count; q++)
            if (run->lanes[i].queues[q].lane == lane)
                return &run->lanes[i];
    return NULL;
}

/* --- what the queues counted --- */

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
