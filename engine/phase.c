/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One phase on this node: prepare its lanes, agree on the start, let the workers run, agree on the
 * end, report. The probe of a plan goes the same way, with all flows of the plan at once.
 */
#include "clock.h"
#include "log.h"
#include "trial.h"

#include <errno.h>
#include <stdlib.h>

#define LEAD_SLEEP_NS (20 * NS_PER_MS) /* from the barrier to the start, on shared cores ... */
#define LEAD_POLL_NS (2 * NS_PER_MS)   /* ... and on dedicated ones */
/* sync none: after its drain a phase is held for partners that are not through yet; then the next
 * is prepared. */
#define CLOCK_HOLD_NS (150 * NS_PER_MS)
#define CLOCK_GAP_NS (250 * NS_PER_MS)
#define PROGRESS_NS (500 * NS_PER_MS)
#define PROBE_SILENCE_NS (300 * NS_PER_MS)

/* What the two barriers of a phase carry. */
enum ready_value { READY_START, READY_SENDING };
enum end_value {
    END_START_LATE,
    END_START_EARLY,
    END_STOP_LATE,
    END_STOP_EARLY,
    END_FINISH,
    END_BOUND
};

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
    double bits = (phase_mean_size(phase) + FRAME_OVERHEAD_L1) * 8.0;
    double slowest_s = 0;

    for (size_t i = 0; i < run->lane_count; i++) {
        const struct load *load = &run->lanes[i].phase.load;
        double frames = phase_is_probe(run)
                            ? phase->probes
                            : (double)phase->transfer_bytes / phase_mean_size(phase) * 1.5 + 1;
        double fps = load->rate_fps > 0 ? load->rate_fps : load->rate_bps / bits;
        double seconds = fps > 0 ? frames * (double)longest_flow_list(run) / fps : 0;

        if (run->lanes[i].lane != NULL && seconds > slowest_s)
            slowest_s = seconds;
    }
    return (int64_t)(slowest_s * 1e9);
}

/* How long this node's ports send, as far as they know. */
static int64_t own_sending_ns(const struct phase_run *run)
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
        for (uint32_t q = 0; q < lane->queue_count; q++)
            lane->queues[q].lane->stop_ns = phase->stop_ns;
    }
}

static int64_t lead_ns(const struct node *node)
{
    return node->sleeps ? LEAD_SLEEP_NS : LEAD_POLL_NS;
}

/* Phases that follow each other by the clock: one barrier before the first, then a fixed step. */
static bool goes_by_clock(const struct phase_run *run)
{
    return run->trial->doc->by_clock && !phase_is_probe(run);
}

/* From a phase's start until it is held no longer. */
static int64_t clock_hold_ns(const struct phase_run *run)
{
    return run->sending_ns + run->trial->doc->drain_silence_ns + CLOCK_HOLD_NS;
}

static int64_t clock_step_ns(const struct phase_run *run)
{
    return clock_hold_ns(run) + CLOCK_GAP_NS;
}

/* What this node says when its lanes are ready. Without a common clock its times mean nothing to
 * the others, so it proposes no start. */
static void ready_values(const struct phase_run *run, struct barrier_values *values)
{
    struct control_clock now = control_clock(run->trial->node->control);

    node_no_values(values);
    values->maximum[READY_SENDING] = own_sending_ns(run);
    if (now.bound_ns < 0)
        values->states = STATE_NO_CLOCK;
    else
        values->maximum[READY_START] = clock_now() + now.offset_ns + lead_ns(run->trial->node);
}

/* Run time - local time. Node 0 always knows it, so there is a start; a node that does not know it
 * begins when it is through the barrier, as far from it as the others mean to. */
static int64_t clock_offset_ns(const struct phase_run *run)
{
    struct control_clock now = control_clock(run->trial->node->control);

    if (now.bound_ns >= 0)
        return now.offset_ns;
    if (run->trial->clock_turn > 0)
        return run->trial->offset_ns;
    return run->start_run_ns - clock_now() - lead_ns(run->trial->node);
}

/* All nodes are ready: the latest proposal is the start, and traffic lasts as long as the slowest
 * sender needs. */
static int agree_on_start(struct phase_run *run)
{
    struct trial *trial = run->trial;
    struct barrier_values values;
    int rc;

    ready_values(run, &values);
    if (goes_by_clock(run) && trial->clock_turn > 0) {
        run->sending_ns = values.maximum[READY_SENDING];
        run->start_run_ns =
            trial->clock_start_ns + (int64_t)trial->clock_turn++ * clock_step_ns(run);
        run->offset_ns = clock_offset_ns(run);
        return 0;
    }
    rc = node_barrier(trial->node, &values);
    if (rc < 0)
        return rc;
    run->outcome.states = values.states;
    run->sending_ns = values.maximum[READY_SENDING];
    run->start_run_ns = values.maximum[READY_START];
    run->offset_ns = clock_offset_ns(run);
    if (goes_by_clock(run)) {
        trial->clock_start_ns = run->start_run_ns;
        trial->offset_ns = run->offset_ns;
        trial->clock_turn = 1;
    }
    return 0;
}

/* --- running --- */

static void deal_lanes(struct phase_run *run)
{
    struct node *node = run->trial->node;
    const struct doc_trial *doc = run->trial->doc;
    int64_t silence_ns = phase_is_probe(run) && doc->drain_silence_ns < PROBE_SILENCE_NS
                             ? PROBE_SILENCE_NS
                             : doc->drain_silence_ns;
    struct worker_lane *next = run->worker_lanes;

    for (size_t w = 0; w < node->worker_count; w++) {
        struct worker_task *task = &run->tasks[w];

        *task = (struct worker_task){
            .lanes = next,
            .phase = &run->template,
            .nominal_end_ns = run->template.start_ns + run->sending_ns,
            .drain_silence_ns = silence_ns,
            .drain_max_ns = doc->drain_max_ns > silence_ns ? doc->drain_max_ns : 2 * silence_ns,
            .flood_limit = doc->flood_limit,
        };
        for (size_t i = 0; i < run->lane_count; i++)
            for (uint32_t q = 0; q < run->lanes[i].queue_count; q++)
                if (job_worker_of(node, run->lanes[i].own->port, q) == w)
                    *next++ = (struct worker_lane){.transport = run->trial->transport,
                                                   .lane = run->lanes[i].queues[q].lane};
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

static const char *port_of_lane(const struct phase_run *run, const struct lane *lane)
{
    const struct own_rank *own = lanes_owner(run, lane)->own;

    return run->trial->node->ports[own->port].doc->conf.name;
}

/* A port that hears what is meant for others knows that the switch floods, and only those who send
 * can end that: so it ends the run for all of them. */
static int check_floods(const struct phase_run *run)
{
    struct node *node = run->trial->node;

    for (size_t w = 0; w < node->worker_count; w++) {
        const struct worker_task *task = &run->tasks[w];
        const struct lane *lane;
        struct err err = {0};

        if (task->count == 0 || !worker_done(node->workers[w]) || task->end != TASK_FLOODED)
            continue;
        lane = task->lanes[task->flooded].lane;
        err_set(&err, -ECONNABORTED,
                "trial %u: the switch floods: port %s got %llu frames for other ports, and "
                "flood_limit is %llu",
                run->trial->doc->id, port_of_lane(run, lane),
                (unsigned long long)lane->request.count->misdelivered,
                (unsigned long long)task->flood_limit);
        return node_fail(node, 3, &err);
    }
    return 0;
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
        rc = rc < 0 ? rc : check_floods(run);
        if (clock_now() - last_ns >= PROGRESS_NS) {
            report_progress(run, &last, &last_ns);
            ports_watch_links(node);
        }
        if (rc < 0) /* node_turn no longer waits: do not spin */
            clock_sleep_until(clock_now() + NS_PER_MS / 2);
    }
    ports_watch_links(node); /* a link that went down may be why all this ended */
    return rc < 0 ? rc : check_floods(run);
}

/* --- the end --- */

static void note_latest(int64_t *maximum, int64_t value)
{
    if (value > *maximum)
        *maximum = value;
}

static uint32_t lane_states(const struct phase_run *run, const struct phase_lane *lane)
{
    if (!phase_is_probe(run))
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

    node_no_values(values);
    values->states = run->outcome.states & STATE_NO_CLOCK; /* a start that was a guess stays one */
    if (now.bound_ns < 0)
        values->states |= STATE_NO_CLOCK;
    values->maximum[END_BOUND] = now.bound_ns;
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        if (lane->lane == NULL)
            continue;
        values->states |= lane_states(run, lane);
        if (lane->lane->error.text[0] != '\0')
            values->states |= STATE_BROKEN;
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

static int64_t positive_ns(int64_t ns)
{
    return ns > 0 ? ns : 0;
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

/* Nobody says that all are through: what partners may still need, acknowledgements and bytes that
 * they have not read, stays until they should be. */
static int hold_by_clock(const struct phase_run *run)
{
    int64_t until_ns = run->template.start_ns + clock_hold_ns(run);
    int rc = 0;

    while (rc == 0 && clock_now() < until_ns)
        rc = node_turn(run->trial->node, until_ns);
    return rc;
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
        .elapsed_ns = positive_ns(clock_now() - run->template.start_ns),
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

static void report(const struct phase_run *run)
{
    if (phase_is_probe(run))
        report_probe(run);
    else
        report_phase(run);
}

int phase_perform(struct trial *trial, uint32_t number, uint32_t *states)
{
    struct phase_run run = {.trial = trial, .number = number};
    int rc;

    rc = lanes_prepare(&run);
    if (rc == 0)
        rc = agree_on_start(&run);
    if (rc < 0)
        goto cleanup;
    set_times(&run, run.start_run_ns - run.offset_ns);
    deal_lanes(&run);
    report_late(&run);
    read_hardware(&run, true);
    run.cpu_begin_ns = clock_now();
    run.cpu_begin_s = cpu_process_s();
    run.idle_begin_s = cpu_idle_s();
    rc = run_workers(&run);
    lanes_gather(&run);
    read_hardware(&run, false);
    report_lane_errors(&run);
    if (rc == 0 && goes_by_clock(&run))
        rc = hold_by_clock(&run);
    if (rc == 0)
        rc = agree_on_end(&run);
    if (rc < 0)
        end_alone(&run);
    *states = run.outcome.states;
    report(&run);
cleanup:
    lanes_release(&run);
    return rc;
}
