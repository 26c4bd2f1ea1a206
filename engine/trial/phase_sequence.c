/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Phases on this node, one after the other. The life of a phase, and this order is the whole of it:
 * prepare the lanes and connect them, agree on the start in a barrier, run and drain in the
 * workers, agree on the end in a barrier, write the records. The probe of a plan goes the same way,
 * with all flows of the plan at once.
 */
#include "phase_sequence.h"

#include "clock.h"
#include "event_loop.h"
#include "lanes.h"
#include "log.h"
#include "node.h"
#include "phase_barrier.h"
#include "phase_run.h"
#include "phase_times.h"
#include "ports.h"
#include "report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PROGRESS_NS (500 * NS_PER_MS)
#define SCHEDULE_SILENCE_NS (30 * NS_PER_S)
#define LINKS_NS (100 * NS_PER_MS) /* a link that is down for less may pass unseen */
#define PROBE_SILENCE_NS (300 * NS_PER_MS)
#define BEGINNING_NS (2 * NS_PER_MS) /* the main thread keeps quiet until so long after a start */

/* --- running --- */

/* Steps that nobody ended: a partner is there, but sends nothing. */
static void check_schedules(const struct phase_run *run)
{
    for (size_t w = 0; w < run->trial->node->worker_count; w++) {
        const struct worker_task *task = &run->tasks[w];

        for (size_t i = 0; i < task->count && task->end == TASK_LIMIT; i++) {
            const struct phase_lane *lane = lanes_owner(run, task->lanes[i].lane);

            if (lane->executor == NULL || lane->executor->ended)
                continue;
            err_set(&lane->lane->error, -ETIMEDOUT,
                    "rank %u waited for the messages of its step, and none came for %lld s",
                    lane->own->rank, (long long)(task->drain_max_ns / NS_PER_S));
        }
    }
}

static void assign_lanes(struct phase_run *run)
{
    struct node *node = run->trial->node;
    const struct doc_trial *doc = run->trial->doc;
    int64_t silence_ns = phase_is_probe(run) && doc->drain_timeout_ns < PROBE_SILENCE_NS
                             ? PROBE_SILENCE_NS
                             : doc->drain_timeout_ns;
    struct worker_lane *next = run->worker_lanes;
    int64_t silence_most_ns, most_ns = 0;

    /* Of counted messages some may be lost, one after the other, before one comes. */
    if (run->template.traffic == TRAFFIC_PINGPONG && run->template.pingpong.count > 0)
        silence_ns = run->template.pingpong.start_delay_ns + 4 * silence_ns;
    silence_most_ns = doc->drain_max_ns > silence_ns ? doc->drain_max_ns : 2 * silence_ns;
    /* A rank may have to wait for others that compute, or move what is not for it. */
    for (size_t i = 0; i < run->lane_count; i++)
        if (run->lanes[i].executor != NULL && executor_compute_ns(run->lanes[i].executor) > most_ns)
            most_ns = executor_compute_ns(run->lanes[i].executor);
    if (run->template.traffic == TRAFFIC_SCHEDULE)
        silence_most_ns += SCHEDULE_SILENCE_NS + most_ns;
    for (size_t w = 0; w < node->worker_count; w++) {
        struct worker_task *task = &run->tasks[w];

        *task = (struct worker_task){
            .lanes = next,
            .phase = &run->template,
            .nominal_end_ns = run->template.start_ns + run->sending_ns,
            .drain_timeout_ns = silence_ns,
            .drain_max_ns = silence_most_ns,
            .flood_limit = doc->flood_limit,
        };
        for (size_t i = 0; i < run->lane_count; i++)
            for (uint32_t q = 0; q < run->lanes[i].queue_count; q++)
                if (node_worker_of(node, &node->ports[run->lanes[i].own->port], q) == w)
                    *next++ = (struct worker_lane){.transport = lane_transport(&run->lanes[i]),
                                                   .lane = run->lanes[i].queues[q].lane,
                                                   .foreign = &run->lanes[i].foreign,
                                                   .progress = &run->lanes[i].progress,
                                                   .interval_ring =
                                                       run->lanes[i].queues[q].interval_ring};
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

/* Whose frames most of a lane's misdelivered ones are: the port that the switch lost track of. */
static const char *most_flooded(const struct phase_lane *owner, const struct lane *lane)
{
    const struct misdelivered_flow *flows = lane->request.count->misdelivered_flows.flows;
    const struct trial_part *part = owner->own->part;
    const char *name = "ports unknown";
    uint64_t most = 0;

    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++) {
        uint64_t frames = 0;

        for (uint32_t j = 0; j < MISDELIVERED_SLOTS; j++)
            if (flows[j].dst == flows[i].dst)
                frames += flows[j].frames;
        if (frames > most && flows[i].dst < part->n) {
            most = frames;
            name = part->ranks[flows[i].dst]->name;
        }
    }
    return name;
}

static int check_floods(const struct phase_run *run)
{
    struct node *node = run->trial->node;

    for (size_t w = 0; w < node->worker_count; w++) {
        const struct worker_task *task = &run->tasks[w];
        const struct phase_lane *owner;
        const struct lane *lane;

        if (task->count == 0 || !worker_done(node->workers[w]) || task->end != TASK_FLOODED)
            continue;
        lane = task->lanes[task->flooded].lane;
        owner = lanes_owner(run, lane);
        err_set(&node->err, -ECONNABORTED,
                "trial %u: the switch floods: port %s got %llu frames for other ports, most for %s "
                "(has it lost its link?), and flood_limit is %llu",
                run->trial->doc->id, node->ports[owner->own->port].doc->conf.name,
                (unsigned long long)atomic_load(task->lanes[task->flooded].foreign),
                most_flooded(owner, lane), (unsigned long long)task->flood_limit);
        return node_fail(node, -ECONNABORTED);
    }
    return 0;
}

/* Keeps the node's loop going until the workers are done. */
static int await_workers(struct phase_run *run)
{
    struct node *node = run->trial->node;
    int64_t last_ns = clock_now(), watched_ns = last_ns;
    /* Interval results are fetched before there is no more room for them. */
    int64_t room_ns = run->trial->doc->interval_ns * INTERVAL_ROOM / 4;
    int64_t wait_ns = room_ns > 0 && room_ns < PROGRESS_NS ? room_ns : PROGRESS_NS;
    int rc = 0, links;

    while (!workers_done(node)) {
        if (rc == 0)
            rc = node_turn(node, clock_now() + wait_ns);
        else
            node_turn(node, clock_now() + NS_PER_MS);
        rc = rc < 0 ? rc : check_floods(run);
        report_intervals(run, false);
        if (clock_now() - last_ns >= PROGRESS_NS)
            report_progress(run, &last_ns);
        if (rc == 0 && clock_now() - watched_ns >= LINKS_NS) {
            rc = ports_watch_links(node);
            rc = rc < 0 ? node_fail(node, rc) : 0;
            watched_ns = clock_now();
        }
        if (rc < 0) /* node_turn no longer waits: do not spin */
            clock_sleep_until(clock_now() + NS_PER_MS / 2);
    }
    links = ports_watch_links(node); /* one that went down may be why all this ended */
    links = links < 0 ? node_fail(node, links) : 0;
    rc = rc < 0 ? rc : links;
    return rc < 0 ? rc : check_floods(run);
}

static void read_hardware(struct phase_run *run, bool before)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];
        struct node_port *port = &run->trial->node->ports[lane->own->port];
        struct port_facts facts;

        if (lane->lane == NULL)
            continue;
        lane_transport(lane)->facts(port->open, &facts, true);
        *(before ? &lane->before : &lane->after) = facts.hardware;
    }
}

static void begin_intervals(const struct phase_run *run)
{
    const struct phase *phase = &run->template;
    const struct interval_grid grid = {
        .open_ns = phase->open_ns,
        .step_ns = run->trial->doc->interval_ns,
        .close_ns = phase->stop_ns == CLOCK_NEVER ? CLOCK_NEVER : phase->close_ns,
    };

    for (size_t i = 0; i < run->lane_count; i++)
        for (uint32_t q = 0; run->lanes[i].intervals.bytes != NULL && q < run->lanes[i].queue_count;
             q++)
            interval_ring_begin(run->lanes[i].queues[q].interval_ring, &grid);
}

/* As many threads as this node has workers, whether they send in this phase or not. */
static void begin_computing(struct phase_run *run)
{
    struct compute_conf conf = {
        .threads = (unsigned)run->trial->node->worker_count,
        .share = run->trial->doc->compute,
        .start_ns = run->template.start_ns,
        .messages_ns = run->template.start_ns + run->template.pingpong.start_delay_ns,
    };
    int rc = conf.share > 0 && !phase_is_probe(run) ? compute_start(&run->compute, &conf) : 0;

    if (rc < 0)
        log_error("trial %u: no concurrent computation: %s", run->trial->doc->id, strerror(-rc));
}

/* Gives the lanes to the workers, who wait for the start. Until that whatever can wait leaves the
 * cores to the nodes and workers that are on their way to it. */
static void start(struct phase_run *run)
{
    struct node *node = run->trial->node;
    int64_t begun_ns;

    records_hold(node->records, node->has_shared_port);
    phase_set_times(run, run->start_run_ns - run->offset_ns);
    begin_intervals(run);
    assign_lanes(run);
    for (size_t w = 0; w < node->worker_count; w++)
        if (run->tasks[w].count > 0)
            worker_run(node->workers[w], &run->tasks[w]);
    begin_computing(run);
    run->begin = phase_cost_now();
    report_late(run);
    begun_ns = run->template.start_ns + BEGINNING_NS;
    while (clock_now() < begun_ns && !workers_done(node))
        if (node_turn(node, begun_ns) < 0)
            return; /* it will say so again */
}

/* From its start to what all nodes say of it. */
static int wait_end(struct phase_run *run)
{
    struct node *node = run->trial->node;
    int rc = await_workers(run);

    records_hold(node->records, false);
    if (run->compute != NULL)
        compute_stop(run->compute);
    check_schedules(run);
    lanes_gather(run);
    read_hardware(run, false);
    run->end = phase_cost_now();
    phase_barrier_note_start(run);
    /* Without a barrier nobody says that all are through: what partners may still need,
     * acknowledgements and bytes that they have not read, stays until they should be. */
    if (phase_goes_by_clock(run))
        for (int64_t until_ns = run->template.start_ns + phase_clock_hold_ns(run);
             rc == 0 && clock_now() < until_ns;)
            rc = node_turn(node, until_ns);
    return phase_barrier_end(run, rc);
}

static int run_phase(struct trial *trial, uint32_t number, uint32_t *states)
{
    struct phase_run run = {.trial = trial, .number = number};
    int rc = lanes_prepare(&run);

    if (rc == 0) {
        read_hardware(&run, true); /* before the barrier: behind it a partner may have begun */
        rc = phase_barrier_start(&run);
    }
    if (rc == 0) {
        start(&run);
        rc = wait_end(&run);
        report_end(&run);
        *states |= run.outcome.states;
    }
    lanes_release(&run);
    return rc;
}

int phase_sequence(struct trial *trial, const uint32_t *numbers, size_t count, uint32_t *states)
{
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = run_phase(trial, numbers != NULL ? numbers[i] : (uint32_t)i, states);
    return rc;
}
