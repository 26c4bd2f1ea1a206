/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What nodes agree on in barriers: when a phase starts and how long it sends, and what it was like
 * on all of them.
 */
#include "phase_barrier.h"

#include "clock.h"
#include "event_loop.h"
#include "phase_run.h"
#include "phase_times.h"
#include "start_margin.h"

#include <assert.h>

/* The maxima of the barrier before a phase ... */
enum agreed_start {
    START_ENTRY,   /* run time: the last node's entry, */
    START_LEAD,    /* and how long after it the phase starts */
    START_SENDING, /* how long the slowest sender needs */
};

/* ... and of the one behind it. */
enum agreed_end {
    END_START_LATE,
    END_START_EARLY,
    END_STOP_LATE,
    END_STOP_EARLY,
    END_FINISH,
    END_BOUND,
    END_AGREED
};

static_assert(END_AGREED <= BARRIER_MAXIMA_CALLER, "a barrier carries all that is agreed on");

static void note_latest(int64_t *maximum, int64_t value)
{
    if (value > *maximum)
        *maximum = value;
}

/* --- the start --- */

/* Run time - local time. Node 0 always knows it, so there is a start; a node that does not know it
 * begins when it is through the barrier, as far from it as the others mean to. */
static void take_clock(struct phase_run *run, int64_t lead_ns)
{
    struct offset_estimate now = control_clock_at(run->trial->node->control, clock_now());

    run->bound_ns = now.bound_ns;
    if (now.bound_ns >= 0)
        run->offset_ns = now.offset_ns;
    else if (run->trial->clock_turn > 0)
        run->offset_ns = run->trial->offset_ns;
    else
        run->offset_ns = run->start_run_ns - clock_now() - lead_ns;
}

int phase_barrier_start(struct phase_run *run)
{
    struct trial *trial = run->trial;
    bool by_clock = phase_goes_by_clock(run);
    struct barrier_values values;
    struct offset_estimate now;
    int64_t lead_ns = 0;
    int rc;

    run->sending_ns = phase_own_sending_ns(run);
    if (by_clock && trial->clock_turn > 0) {
        run->start_run_ns =
            trial->clock_start_ns + (int64_t)trial->clock_turn++ * phase_clock_step_ns(run);
        take_clock(run, 0);
        return 0;
    }
    barrier_values_clear(&values);
    values.maximum[START_SENDING] = run->sending_ns;
    values.maximum[START_LEAD] =
        start_margin_next(&trial->start_margin, run->template.traffic == TRAFFIC_TRANSFER);
    /* Without a common clock this node's time means nothing to the others: it proposes no start. */
    now = control_clock_at(trial->node->control, clock_now());
    if (now.bound_ns < 0)
        values.states |= STATE_NO_CLOCK;
    else
        values.maximum[START_ENTRY] = clock_now() + now.offset_ns;
    rc = node_barrier(trial->node, &values);
    if (rc < 0)
        return rc;
    lead_ns = values.maximum[START_LEAD];
    run->outcome.states = values.states & STATE_NO_CLOCK;
    run->sending_ns = values.maximum[START_SENDING];
    run->entry_run_ns = values.maximum[START_ENTRY];
    run->start_run_ns = run->entry_run_ns + lead_ns;
    take_clock(run, lead_ns);
    if (by_clock) {
        trial->clock_start_ns = run->start_run_ns;
        trial->offset_ns = run->offset_ns;
        trial->clock_turn = 1;
    }
    return 0;
}

void phase_barrier_note_start(const struct phase_run *run)
{
    int64_t awake_ns = 0;

    for (size_t w = 0; w < run->trial->node->worker_count; w++)
        if (run->tasks[w].count > 0)
            note_latest(&awake_ns, run->tasks[w].awake_ns);
    if (run->entry_run_ns != 0 && awake_ns > 0)
        start_margin_note(&run->trial->start_margin, awake_ns + run->offset_ns - run->entry_run_ns);
}

/* --- the end --- */

static void say_lane(const struct phase_run *run, const struct phase_lane *phase_lane,
                     struct barrier_values *values)
{
    const struct phase *phase = &run->template;
    const struct lane *lane = phase_lane->lane;
    bool sends = phase_lane->send_count > 0;

    if (lane->error.text[0] != '\0')
        values->states |= STATE_LANE_FAILED;
    for (uint32_t i = 0; phase_is_probe(run) && i < phase_lane->receive_count; i++)
        if (flow_unreached(&phase_lane->receives[i]))
            values->states |= STATE_UNREACHABLE;
    if (sends && lane->started_ns > 0) {
        note_latest(&values->maximum[END_START_LATE], lane->started_ns - phase->start_ns);
        note_latest(&values->maximum[END_START_EARLY], phase->start_ns - lane->started_ns);
    }
    if (sends && lane->stopped_ns > 0 && phase->stop_ns != CLOCK_NEVER) {
        note_latest(&values->maximum[END_STOP_LATE], lane->stopped_ns - phase->stop_ns);
        note_latest(&values->maximum[END_STOP_EARLY], phase->stop_ns - lane->stopped_ns);
    }
    if (lane->arrived_ns > 0)
        note_latest(&values->maximum[END_FINISH], lane->arrived_ns + run->offset_ns);
}

/* What this node says of a phase that is over. */
static void say_end(const struct phase_run *run, struct barrier_values *values)
{
    static const uint32_t states[] = {
        [TASK_LIMIT] = STATE_DRAIN_TIMEOUT, [TASK_FLOODED] = STATE_FLOODED, [TASK_STOPPED] = 0};
    struct phase_clock clock = clock_of_phase(run);

    barrier_values_clear(values);
    values->states = run->outcome.states & STATE_NO_CLOCK; /* a start that was a guess stays one */
    if (clock.bound_ns < 0)
        values->states |= STATE_NO_CLOCK;
    values->maximum[END_BOUND] = clock.bound_ns;
    for (size_t i = 0; i < run->lane_count; i++)
        if (run->lanes[i].lane != NULL)
            say_lane(run, &run->lanes[i], values);
    for (size_t w = 0; w < run->trial->node->worker_count; w++)
        if (run->tasks[w].count > 0)
            values->states |= states[run->tasks[w].end];
}

static double skew_us(int64_t latest_ns, int64_t earliest_ns)
{
    if (latest_ns == INT64_MIN || earliest_ns == INT64_MIN)
        return -1;
    return (double)(latest_ns + earliest_ns) / 1e3;
}

/* `alone`: the run ends in the middle, and what there is was measured by this node. */
static void take_end(struct phase_run *run, const struct barrier_values *values, bool alone)
{
    int64_t elapsed_ns = 0;

    if (alone)
        elapsed_ns = clock_now() - run->template.start_ns;
    else if (phase_is_timed(&run->template))
        elapsed_ns = run->template.stop_ns - run->template.start_ns;
    else if (values->maximum[END_FINISH] > run->start_run_ns)
        elapsed_ns = values->maximum[END_FINISH] - run->start_run_ns;
    run->outcome = (struct phase_outcome){
        .states = values->states | (alone ? STATE_STOPPED : 0),
        .start_skew_us = -1,
        .stop_skew_us = -1,
        .skew_bound_us = -1,
        .clock_bound_ns = -1,
        .elapsed_ns = elapsed_ns > 0 ? elapsed_ns : 0,
    };
    if (alone || phase_goes_by_clock(run) || (values->states & STATE_NO_CLOCK) != 0)
        return;
    run->outcome.start_skew_us =
        skew_us(values->maximum[END_START_LATE], values->maximum[END_START_EARLY]);
    run->outcome.stop_skew_us =
        skew_us(values->maximum[END_STOP_LATE], values->maximum[END_STOP_EARLY]);
    run->outcome.clock_bound_ns = values->maximum[END_BOUND];
    run->outcome.skew_bound_us = (double)values->maximum[END_BOUND] / 1e3;
}

int phase_barrier_end(struct phase_run *run, int rc)
{
    struct barrier_values values;

    say_end(run, &values);
    if (rc == 0 && !phase_goes_by_clock(run))
        rc = node_barrier(run->trial->node, &values);
    take_end(run, &values, rc < 0);
    return rc;
}
