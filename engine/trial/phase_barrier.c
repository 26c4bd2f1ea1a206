/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What nodes agree on in barriers: when a phase starts and how long it sends, and what it was like
 * on all of them.
 */
#include "phase_barrier.h"

#include "clock.h"
#include "event_loop.h"
#include "phase_clock.h"
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

static int64_t wanted_lead_ns(const struct phase_run *run)
{
    return start_margin_next(&run->trial->start_margin, run->template.traffic == TRAFFIC_TRANSFER);
}

/* Adds what this node says of a phase whose lanes are ready. Without a common clock its times mean
 * nothing to the others, so it proposes no start. */
static void say_ready(const struct phase_run *run, struct barrier_values *values)
{
    struct control_clock now = control_clock(run->trial->node->control);

    values->maximum[START_SENDING] = phase_own_sending_ns(run);
    values->maximum[START_LEAD] = wanted_lead_ns(run);
    if (now.bound_ns < 0)
        values->states |= STATE_NO_CLOCK;
    else
        values->maximum[START_ENTRY] = clock_now() + now.offset_ns;
}

/* Run time - local time. Node 0 always knows it, so there is a start; a node that does not know it
 * begins when it is through the barrier, as far from it as the others mean to. */
static int64_t clock_offset_ns(const struct phase_run *run, int64_t lead_ns)
{
    struct control_clock now = control_clock(run->trial->node->control);

    if (now.bound_ns >= 0)
        return now.offset_ns;
    if (run->trial->clock_turn > 0)
        return run->trial->offset_ns;
    return run->start_run_ns - clock_now() - lead_ns;
}

/* How this node's clock becomes run time in a phase. */
static void take_clock(struct phase_run *run, int64_t lead_ns)
{
    run->bound_ns = control_clock(run->trial->node->control).bound_ns;
    run->offset_ns = clock_offset_ns(run, lead_ns);
}

/* All nodes are ready. */
static void take_start(struct phase_run *run, const struct barrier_values *values)
{
    int64_t lead_ns = values->maximum[START_LEAD];

    run->outcome.states = values->states & STATE_NO_CLOCK;
    run->sending_ns = values->maximum[START_SENDING];
    run->entry_run_ns = values->maximum[START_ENTRY];
    run->start_run_ns = run->entry_run_ns + lead_ns;
    take_clock(run, lead_ns);
}

static void start_by_clock(struct phase_run *run)
{
    struct trial *trial = run->trial;

    run->sending_ns = phase_own_sending_ns(run);
    run->start_run_ns =
        trial->clock_start_ns + (int64_t)trial->clock_turn++ * phase_clock_step_ns(run);
    take_clock(run, 0);
}

int phase_barrier_start(struct phase_run *run)
{
    struct trial *trial = run->trial;
    struct barrier_values values;
    int rc;

    if (phase_goes_by_clock(run) && trial->clock_turn > 0) {
        start_by_clock(run);
        return 0;
    }
    barrier_values_clear(&values);
    say_ready(run, &values);
    rc = node_barrier(trial->node, &values);
    if (rc < 0)
        return rc;
    take_start(run, &values);
    if (phase_goes_by_clock(run)) {
        trial->clock_start_ns = run->start_run_ns;
        trial->offset_ns = run->offset_ns;
        trial->clock_turn = 1;
    }
    return 0;
}

void phase_barrier_note_start(const struct phase_run *run)
{
    int64_t awake_ns = 0;

    if (run->entry_run_ns == 0)
        return;
    for (size_t w = 0; w < run->trial->node->worker_count; w++)
        if (run->tasks[w].count > 0)
            note_latest(&awake_ns, run->tasks[w].awake_ns);
    if (awake_ns > 0)
        start_margin_note(&run->trial->start_margin, awake_ns + run->offset_ns - run->entry_run_ns);
}

/* --- the end --- */

static uint32_t lane_states(const struct phase_run *run, const struct phase_lane *lane)
{
    uint32_t states = lane->lane->error.text[0] != '\0' ? STATE_LANE_FAILED : 0;

    if (!phase_is_probe(run))
        return states;
    for (uint32_t i = 0; i < lane->receive_count; i++)
        if (flow_unreached(&lane->receives[i]))
            return states | STATE_UNREACHABLE;
    return states;
}

static void say_lane(const struct phase_run *run, const struct phase_lane *lane,
                     struct barrier_values *values)
{
    const struct phase *phase = &run->template;

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

/* What this node says of a phase that is over. */
static void say_end(const struct phase_run *run, struct barrier_values *values)
{
    struct phase_clock clock = clock_of_phase(run);

    values->states = run->outcome.states & STATE_NO_CLOCK; /* a start that was a guess stays one */
    if (clock.bound_ns < 0)
        values->states |= STATE_NO_CLOCK;
    values->maximum[END_BOUND] = clock.bound_ns;
    for (size_t i = 0; i < run->lane_count; i++)
        if (run->lanes[i].lane != NULL)
            say_lane(run, &run->lanes[i], values);
    for (size_t w = 0; w < run->trial->node->worker_count; w++) {
        if (run->tasks[w].count > 0 && run->tasks[w].end == TASK_LIMIT)
            values->states |= STATE_DRAIN_TIMEOUT;
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
    if (phase_is_timed(&run->template))
        return run->template.stop_ns - run->template.start_ns;
    return finish_run_ns > run->start_run_ns ? finish_run_ns - run->start_run_ns : 0;
}

static void take_end(struct phase_run *run, const struct barrier_values *values)
{
    run->outcome = (struct phase_outcome){
        .states = values->states,
        .start_skew_us = -1,
        .stop_skew_us = -1,
        .skew_bound_us = -1,
        .clock_bound_ns = -1,
        .elapsed_ns = elapsed_ns(run, values->maximum[END_FINISH]),
    };
    if (phase_goes_by_clock(run) || (values->states & STATE_NO_CLOCK) != 0)
        return;
    run->outcome.start_skew_us =
        skew_us(values->maximum[END_START_LATE], values->maximum[END_START_EARLY]);
    run->outcome.stop_skew_us =
        skew_us(values->maximum[END_STOP_LATE], values->maximum[END_STOP_EARLY]);
    run->outcome.clock_bound_ns = values->maximum[END_BOUND];
    run->outcome.skew_bound_us = (double)values->maximum[END_BOUND] / 1e3;
}

int phase_barrier_end(struct phase_run *run)
{
    struct barrier_values values;
    int rc = 0;

    barrier_values_clear(&values);
    say_end(run, &values);
    if (!phase_goes_by_clock(run))
        rc = node_barrier(run->trial->node, &values);
    if (rc < 0)
        return rc;
    take_end(run, &values);
    return 0;
}

void phase_barrier_alone(struct phase_run *run)
{
    struct barrier_values values;

    barrier_values_clear(&values);
    say_end(run, &values);
    run->outcome = (struct phase_outcome){
        .states = values.states | STATE_STOPPED,
        .start_skew_us = -1,
        .stop_skew_us = -1,
        .skew_bound_us = -1,
        .clock_bound_ns = -1,
        .elapsed_ns = positive_ns(clock_now() - run->template.start_ns),
    };
}
