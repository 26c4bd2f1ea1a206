/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A trial: its networks, ranks and ports; then all phases of a plan at one setting, in sequence.
 * run_phase() is a phase from begin to end: prepare the lanes and connect them, agree on the start
 * in a barrier, run and drain in the workers, agree on the end in a barrier, write the records. The
 * connectivity check of a plan is such a phase, with all flows of the plan at once.
 */
#include "trial.h"

#include "clock.h"
#include "log.h"
#include "node.h"
#include "phase.h"
#include "registry.h"
#include "sysfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/param.h>
#include <unistd.h>

#define PROBES_MOST 3 /* maximum number of connectivity checks of a plan */
#define PROGRESS_NS (500 * NS_PER_MS)
#define SCHEDULE_SILENCE_NS (30 * NS_PER_S)
#define LINKS_NS (100 * NS_PER_MS) /* a link that is down for less may be missed */
#define PROBE_SILENCE_NS (300 * NS_PER_MS)
#define BEGINNING_NS                                                                               \
    (2 * NS_PER_MS) /* the main thread leaves the core until this time after a start */

/* --- networks, ranks, plans --- */

/* Find the ports of a part's ranks: each must exist in the part's network, and have no other rank.
 * Append this node's ranks to trial->own, which has room for all ports of the node. */
static int find_ranks(struct trial *trial, struct trial_part *part)
{
    struct node *node = trial->node;
    uint32_t id = trial->doc->id;

    part->n = part->doc->ranks_count;
    part->ranks = calloc(part->n, sizeof *part->ranks);
    if (part->ranks == NULL)
        return err_set(&node->err, -ENOMEM, "out of memory");
    for (uint32_t rank = 0; rank < part->n; rank++) {
        const char *name = part->doc->ranks[rank];
        const struct port_location *place = node_find_port(node, name);
        const struct port_conf *conf;

        if (place == NULL)
            return err_set(&node->err, -EINVAL, "trial %u: rank %u is port '%s', which no node has",
                           id, rank, name);
        conf = &node->job->nodes[place->node].ports[place->port].conf;
        if (strcmp(conf->network, part->doc->network) != 0)
            return err_set(&node->err, -EINVAL, "trial %u: port %s is in network %s, not in %s", id,
                           name, conf->network, part->doc->network);
        if (trial->taken[place - node->places])
            return err_set(&node->err, -EINVAL, "trial %u: port %s has two ranks", id, name);
        trial->taken[place - node->places] = true;
        part->ranks[rank] = place;
        if (place->node == node->self)
            trial->own[trial->own_count++] = (struct local_rank){
                .part = part,
                .part_index = (uint32_t)(part - trial->parts),
                .rank = rank,
                .port = place->port,
            };
    }
    return 0;
}

static int make_plan(struct trial *trial, struct trial_part *part)
{
    const struct doc_trial *doc = trial->doc;
    struct err *err = &trial->node->err;
    struct pattern_request request = doc->pattern;
    char why[512] = "";
    int rc;

    request.n = part->n;
    rc = pattern_plan_make(&part->plan, &request, why, sizeof why);
    if (rc < 0)
        return err_set(err, rc, "trial %u: %s", doc->id, why);
    if ((doc->phase.traffic == TRAFFIC_SCHEDULE) != pattern_is_scheduled(part->plan))
        return err_set(err, -EINVAL,
                       "trial %u: traffic: schedule and a pattern that is a schedule (a collective "
                       "operation or kernel) need each other: set both or neither",
                       doc->id);
    trial->phase_count = MAX(trial->phase_count, pattern_phases(part->plan));
    return 0;
}

static int make_parts(struct trial *trial)
{
    const struct doc_trial *doc = trial->doc;
    struct node *node = trial->node;
    int rc = 0;

    trial->parts = calloc(doc->parts_count, sizeof *trial->parts);
    trial->own = calloc(node->port_count + 1, sizeof *trial->own);
    trial->taken = calloc(node->place_count + 1, sizeof *trial->taken);
    if (trial->parts == NULL || trial->own == NULL || trial->taken == NULL)
        return err_set(&node->err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < doc->parts_count && rc == 0; i++) {
        trial->parts[i].doc = &doc->parts[i];
        trial->parts[i].transport = transport_find(doc->parts[i].transport);
        if (trial->parts[i].transport == NULL)
            rc = err_set(&node->err, -EINVAL, "trial %u: this build has no transport %s", doc->id,
                         doc->parts[i].transport);
        if (rc == 0)
            rc = find_ranks(trial, &trial->parts[i]);
        if (rc == 0)
            rc = make_plan(trial, &trial->parts[i]);
    }
    for (unsigned i = 0; i < doc->phases_count && rc == 0; i++)
        if (doc->phases[i] >= trial->phase_count)
            rc = err_set(&node->err, -EINVAL,
                         "trial %u: there is no phase %u: the plan has phases 0 to %u", doc->id,
                         doc->phases[i], trial->phase_count - 1);
    return rc;
}

/* Open the ports of this trial, wait for their links, and publish their address data, which contain
 * the links' rates. The descriptor trial->connect_fd becomes readable when a port's lanes can
 * continue to connect; if no port supports this, lanes are polled at intervals. */
static int open_ports(struct trial *trial)
{
    struct node *node = trial->node;
    int rc;

    for (size_t i = 0; i < node->port_count; i++)
        node->ports[i].wanted = NULL;
    for (size_t i = 0; i < trial->own_count; i++)
        node->ports[trial->own[i].port].wanted = trial->own[i].part->transport;
    rc = ports_use(node, trial->parts[0].transport);
    if (rc == 0)
        rc = ports_await_link(node);
    /* All nodes have ended the trial before, and need none of its blobs. */
    control_forget(node->control, true);
    for (size_t i = 0; i < trial->own_count && rc == 0; i++) {
        const struct local_rank *own = &trial->own[i];
        const struct node_port *port = &node->ports[own->port];
        struct epoll_event event = {.events = EPOLLIN};

        rc = control_publish(node->control, trial_blob_id(trial, own->part_index, own->rank),
                             &port->address);
        if (rc < 0)
            return err_set(&node->err, rc, "out of memory");
        if (port->connect_fd >= 0 && trial->connect_fd < 0)
            trial->connect_fd = epoll_create1(EPOLL_CLOEXEC);
        if (port->connect_fd >= 0 && trial->connect_fd >= 0)
            epoll_ctl(trial->connect_fd, EPOLL_CTL_ADD, port->connect_fd, &event);
    }
    return rc;
}

/* --- a phase: start --- */

/* Set the drain timeout, which is the time without received data that ends a drain, and the maximum
 * duration of the drain. */
static void set_drain(const struct phase_run *run, struct worker_task *task)
{
    const struct doc_trial *doc = run->trial->doc;
    int64_t silence_ns = doc->drain_timeout_ns, compute_ns = 0;

    if (run->is_probe && silence_ns < PROBE_SILENCE_NS)
        silence_ns = PROBE_SILENCE_NS;
    task->drain_timeout_ns = silence_ns;
    task->drain_max_ns = doc->drain_max_ns > silence_ns ? doc->drain_max_ns : 2 * silence_ns;
    if (run->template.traffic != TRAFFIC_SCHEDULE)
        return;
    /* A rank may wait for others that compute, or exchange messages among themselves. */
    for (size_t i = 0; i < run->lane_count; i++)
        if (run->lanes[i].executor != NULL &&
            executor_compute_ns(run->lanes[i].executor) > compute_ns)
            compute_ns = executor_compute_ns(run->lanes[i].executor);
    task->drain_max_ns += SCHEDULE_SILENCE_NS + compute_ns;
}

static void assign_lanes(struct phase_run *run)
{
    struct node *node = run->trial->node;
    const struct phase *phase = &run->template;
    struct worker_lane **next = run->worker_lanes;

    for (size_t w = 0; w < node->worker_count; w++) {
        struct worker_task *task = &run->tasks[w];

        *task = (struct worker_task){
            .lanes = next,
            .phase = phase,
            .nominal_end_ns = phase->start_ns + run->sending_ns,
            .flood_limit = run->trial->doc->flood_limit,
            .grid = {.open_ns = phase->open_ns,
                     .step_ns = run->trial->doc->interval_ns,
                     .close_ns = phase->stop_ns == CLOCK_NEVER ? CLOCK_NEVER : phase->close_ns},
        };
        set_drain(run, task);
        for (size_t i = 0; i < run->lane_count; i++) {
            struct phase_lane *lane = &run->lanes[i];

            for (uint32_t q = 0; q < lane->queue_count; q++)
                if (node_worker_of(node, lane->port, q) == w)
                    *next++ = &lane->queues[q];
        }
        task->count = (size_t)(next - task->lanes);
    }
}

/* Read the CPU time of this process, and the idle time of the machine. */
static struct phase_cost phase_cost_now(void)
{
    struct phase_cost cost = {.at_ns = clock_now(), .idle_s = -1};
    unsigned long long idle = 0, iowait = 0;
    struct timespec used;
    char line[256];

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    cost.process_s = (double)used.tv_sec + (double)used.tv_nsec / 1e9;
    /* The kernel samples busy time by ticks, which miss short work; idle time is exact. */
    if (sysfs_line(line, sizeof line, "/proc/stat") &&
        sscanf(line, "cpu %*u %*u %*u %llu %llu", &idle, &iowait) == 2)
        cost.idle_s = (double)(idle + iowait) / (double)sysconf(_SC_CLK_TCK);
    return cost;
}

static bool workers_done(struct node *node)
{
    for (size_t w = 0; w < node->worker_count; w++)
        if (!worker_done(node->workers[w]))
            return false;
    return true;
}

/* Start the workers' tasks; the workers wait for the phase's start. Until then the main thread does
 * no other work, so that nodes and workers on shared cores get ready. */
static void start(struct phase_run *run)
{
    struct node *node = run->trial->node;
    const struct phase *phase = &run->template;

    assign_lanes(run);
    for (size_t w = 0; w < node->worker_count; w++)
        if (run->tasks[w].count > 0)
            worker_run(node->workers[w], &run->tasks[w]);
    run->begin = phase_cost_now();
    report_late(run);
    while (clock_now() < phase->start_ns + BEGINNING_NS && !workers_done(node))
        if (node_turn(node, phase->start_ns + BEGINNING_NS) < 0)
            return; /* the next call returns the same */
}

/* --- a phase: run and drain --- */

/* Return the destination rank of the flow with most misdelivered frames at a port: the switch may
 * have lost this rank's address. */
static const char *most_flooded(const struct phase_lane *lane, const struct port_count *count)
{
    const struct misdelivered_flow *flows = count->misdelivered_flows.flows, *most = flows;
    const struct trial_part *part = lane->own->part;

    for (uint32_t i = 1; i < MISDELIVERED_SLOTS; i++)
        if (flows[i].frames > most->frames)
            most = &flows[i];
    return most->frames > 0 && most->dst < part->n ? part->ranks[most->dst]->name : "ports unknown";
}

/* Return -ECONNABORTED when a worker has stopped because the switch floods one of its ports; else
 * 0. */
static int check_floods(const struct phase_run *run)
{
    struct node *node = run->trial->node;

    for (size_t i = 0; i < run->lane_count; i++)
        for (uint32_t q = 0; q < run->lanes[i].queue_count; q++) {
            const struct phase_lane *lane = &run->lanes[i];
            size_t w = node_worker_of(node, lane->port, q);
            const struct worker_task *task = &run->tasks[w];

            if (!worker_done(node->workers[w]) || task->end != TASK_FLOODED ||
                task->flooded != &lane->queues[q])
                continue;
            return err_set(&node->err, -ECONNABORTED,
                           "trial %u: the switch floods: port %s received %llu frames for other "
                           "ports, most for %s "
                           "(has it lost its link?), and flood_limit is %llu",
                           run->trial->doc->id, lane->port->conf.name,
                           (unsigned long long)atomic_load(&lane->foreign),
                           most_flooded(lane, &lane->queues[q].count),
                           (unsigned long long)task->flood_limit);
        }
    return 0;
}

/* Run the node's loop until the workers are done. */
static int await_workers(struct phase_run *run)
{
    struct node *node = run->trial->node;
    int64_t last_ns = clock_now(), watched_ns = last_ns;
    /* Interval results are read before their ring is full. */
    int64_t room_ns = run->trial->doc->interval_ns * INTERVAL_ROOM / 4;
    int64_t wait_ns = room_ns > 0 && room_ns < PROGRESS_NS ? room_ns : PROGRESS_NS;
    bool done;
    int rc = 0;

    do {
        done = workers_done(node);
        if (!done && rc == 0)
            rc = node_turn(node, clock_now() + wait_ns);
        else if (!done) { /* node_turn() no longer waits: sleep instead */
            node_turn(node, clock_now() + NS_PER_MS);
            clock_sleep_until(clock_now() + NS_PER_MS / 2);
        }
        if (rc == 0)
            rc = check_floods(run);
        report_intervals(run, false);
        if (!done && clock_now() - last_ns >= PROGRESS_NS)
            report_progress(run, &last_ns);
        /* At the end, too: a link that went down may be the reason. */
        if (done || (rc == 0 && clock_now() - watched_ns >= LINKS_NS)) {
            int links = ports_watch_links(node);

            rc = rc < 0 ? rc : links;
            watched_ns = clock_now();
        }
        if (rc < 0 && rc != -ECANCELED)
            rc = node_fail(node, rc);
    } while (!done);
    return rc;
}

/* --- a phase: end --- */

/* Set the error for a schedule that did not end, because a connected partner sends nothing. */
static void check_schedules(const struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        const struct worker_task *task =
            &run->tasks[node_worker_of(run->trial->node, lane->port, 0)];

        if (lane->executor != NULL && !lane->executor->ended && task->end == TASK_LIMIT)
            err_set(&lane->lane->error, -ETIMEDOUT,
                    "rank %u received no message of its current step for %lld s", lane->own->rank,
                    (long long)(task->drain_max_ns / NS_PER_S));
    }
}

static void read_hardware(struct phase_run *run, bool before)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];
        struct port_facts facts;

        if (lane->lane == NULL)
            continue;
        lane->transport->facts(lane->port->open, &facts, true);
        *(before ? &lane->before : &lane->after) = facts.hardware;
    }
}

/* Run a phase, or the connectivity check of the whole plan, from preparation to records; add the
 * states that nodes reported in it to the trial's states. */
static int run_phase(struct trial *trial, uint32_t number)
{
    struct node *node = trial->node;
    struct phase_run run = {
        .trial = trial,
        .number = number,
        .is_probe = number == PHASE_PROBE,
    };
    int rc;

    run.is_timed = !run.is_probe && phase_is_timed(&trial->doc->phase);
    rc = lanes_prepare(&run);
    if (rc < 0 && rc != -ECANCELED)
        rc = node_fail(node, rc);
    if (rc == 0) {
        read_hardware(&run, true); /* before the barrier: after it partners may send */
        rc = phase_agree_start(&run);
    }
    if (rc == 0) {
        start(&run);
        rc = await_workers(&run);
        check_schedules(&run);
        lanes_gather(&run);
        read_hardware(&run, false);
        run.end = phase_cost_now();
        rc = phase_agree_end(&run, rc);
        report_end(&run);
        trial->states |= run.outcome.states;
    }
    lanes_release(&run);
    return rc;
}

/* --- the trial --- */

/* Check that all partners can be reached. Transports of frames repeat the check before a pair
 * counts as unreachable; connections repeat by themselves. */
static int check_connectivity(struct trial *trial)
{
    int rc;

    trial->probes_left = 1;
    for (unsigned i = 0; i < trial->doc->parts_count; i++)
        if (!transport_can(trial->parts[i].transport, TRANSPORT_KNOWS_END))
            trial->probes_left = PROBES_MOST;
    do {
        trial->probes_left--;
        trial->states = 0;
        rc = run_phase(trial, PHASE_PROBE);
    } while (rc == 0 && (trial->states & STATE_UNREACHABLE) != 0 && trial->probes_left > 0);
    return rc;
}

static int run_phases(struct trial *trial)
{
    const struct doc_trial *doc = trial->doc;
    uint32_t count = doc->phases != NULL ? doc->phases_count : trial->phase_count;
    const char *state = "partial";
    int rc = doc->probe ? check_connectivity(trial) : 0;

    for (uint32_t i = 0; i < count && rc == 0 && (trial->states & STATE_UNREACHABLE) == 0; i++)
        rc = run_phase(trial, doc->phases != NULL ? doc->phases[i] : i);
    if (rc == 0 && (trial->states & STATE_UNREACHABLE) != 0)
        state = "unreachable";
    else if (rc == 0 && (trial->states & STATE_LANE_FAILED) == 0)
        state = "complete";
    report_trial(trial, state);
    /* An incomplete trial sets the run's status. */
    if (strcmp(state, "complete") != 0 && trial->node->status == 0)
        trial->node->status = 3;
    return rc;
}

int trial_run(struct node *node, const struct doc_trial *doc)
{
    struct trial trial = {
        .node = node,
        .doc = doc,
        .begun_ns = clock_now(),
        .connect_fd = -1,
    };
    int rc = make_parts(&trial);

    if (rc == 0)
        rc = open_ports(&trial);
    if (rc == 0) {
        start_margin_init(&trial.start_margin, node->cores.sleeps);
        set_thread_priority(node, true);
        /* No node requests addresses or sends before all ports are open and have a link. */
        rc = node_barrier(node, NULL);
        if (rc == 0)
            rc = run_phases(&trial);
        set_thread_priority(node, false);
    }
    if (trial.connect_fd >= 0)
        close(trial.connect_fd);
    for (uint32_t i = 0; trial.parts != NULL && i < doc->parts_count; i++) {
        free(trial.parts[i].ranks);
        pattern_plan_free(trial.parts[i].plan);
    }
    free(trial.parts);
    free(trial.own);
    free(trial.taken);
    return rc;
}
