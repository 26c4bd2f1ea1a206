/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase.h"

#include "clock.h"
#include "node.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/param.h>

#define CLOCK_LOOKS 5 /* readings of the clock in a window, its ends included */

#define FIRST_SLEEP_NS (20 * NS_PER_MS)
#define FIRST_POLL_NS (2 * NS_PER_MS)
#define CAREFUL_TIMES 4 /* margin as a multiple of the longest need without outlier, */
#define CAREFUL_SHARE 4 /* minimum margin: the first margin divided by this */
/* Max start margin of a stream, unless one and a half times the longest needed time is more. */
#define CAREFUL_MOST_NS (500 * NS_PER_MS)
#define OUTLIER_NOTES 3 /* from this number of starts on, the longest is ignored */
#define HASTE_SHARE 2   /* a hasty margin is the median need and its half more */
#define HASTE_FLOOR_NS (100 * NS_PER_US)

/* Values whose maxima over all nodes the barrier before a phase returns. */
enum agreed_start {
    START_ENTRY,   /* run time of the last node's entry */
    START_LEAD,    /* start margin after it */
    START_SENDING, /* duration of the slowest sender */
};

/* Values whose maxima over all nodes the barrier after a phase returns. */
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

/* --- the margin before a start --- */

void start_margin_init(struct start_margin *margin, bool sleeps)
{
    *margin = (struct start_margin){.first_ns = sleeps ? FIRST_SLEEP_NS : FIRST_POLL_NS};
}

void start_margin_note(struct start_margin *margin, int64_t needed_ns)
{
    margin->needed_ns[margin->noted++ % MARGIN_MEMORY] = needed_ns;
}

int64_t start_margin_next(const struct start_margin *margin, bool hastes)
{
    uint32_t count = MIN(margin->noted, MARGIN_MEMORY);
    int64_t sorted_ns[MARGIN_MEMORY]; /* needed times, shortest first */
    int64_t longest_ns, wanted_ns, most_ns;

    if (count == 0)
        return margin->first_ns;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = i;

        for (; at > 0 && sorted_ns[at - 1] > margin->needed_ns[i]; at--)
            sorted_ns[at] = sorted_ns[at - 1];
        sorted_ns[at] = margin->needed_ns[i];
    }
    if (hastes) {
        wanted_ns = sorted_ns[count / 2] + sorted_ns[count / 2] / HASTE_SHARE;
        return MAX(wanted_ns, HASTE_FLOOR_NS);
    }
    longest_ns = sorted_ns[count - (count >= OUTLIER_NOTES ? 2 : 1)];
    most_ns = MAX(longest_ns + longest_ns / HASTE_SHARE, CAREFUL_MOST_NS);
    return MAX(MIN(CAREFUL_TIMES * longest_ns, most_ns), margin->first_ns / CAREFUL_SHARE);
}

/* --- the start --- */

/* Return how long the slowest sender of this node is expected to send in the phase. */
static int64_t own_sending_ns(const struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;
    const struct phase *phase = &run->template;
    double slowest_s = 0, gaps_s = 0;

    if (run->is_timed)
        return doc->warmup_ns + doc->window_ns + doc->cooldown_ns;
    if (phase->traffic == TRAFFIC_BURST)
        gaps_s = (double)(phase->burst.count - 1) * (double)phase->burst.gap_ns / 1e9;
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        const struct load *load = &lane->phase.load;
        double size = phase_mean_size(&lane->phase), frames, fps, seconds;
        /* The senders to a rank together are as slow as if the rank sent itself. */
        uint32_t flows =
            lane->send_count > lane->receive_count ? lane->send_count : lane->receive_count;

        if (run->is_probe)
            frames = (double)phase->probes * lane->send_count;
        else if (phase->traffic == TRAFFIC_BURST)
            frames = lane->send_count == 0
                         ? 0
                         : (double)lane->phase.burst.own_frames * (double)phase->burst.count;
        else /* of a transfer, estimated */
            frames = ((double)phase->transfer_bytes / size * 1.5 + 1) * flows;
        fps = load->rate_fps > 0 ? load->rate_fps
                                 : load->rate_bps / ((size + FRAME_OVERHEAD_L1) * 8.0);
        seconds = fps > 0 ? frames / fps + gaps_s : 0;
        if (lane->lane != NULL && seconds > slowest_s)
            slowest_s = seconds;
    }
    return (int64_t)(slowest_s * 1e9);
}

/* Write the agreed start, and the times that follow from it, into the template and all lanes. */
static void set_times(struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    /* The window of a phase without fixed length ends with the last byte. */
    phase->start_ns = phase->open_ns = phase->close_ns = run->start_run_ns - run->offset_ns;
    phase->stop_ns = CLOCK_NEVER;
    if (run->is_timed) {
        phase->open_ns = phase->start_ns + doc->warmup_ns;
        phase->close_ns = phase->open_ns + doc->window_ns;
        phase->stop_ns = phase->close_ns + doc->cooldown_ns;
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

int phase_agree_start(struct phase_run *run)
{
    struct trial *trial = run->trial;
    struct offset_estimate now = control_clock_at(trial->node->control, clock_now());
    struct barrier_values values;
    int64_t lead_ns;
    int rc;

    barrier_values_clear(&values);
    values.maximum[START_SENDING] = own_sending_ns(run);
    values.maximum[START_LEAD] =
        start_margin_next(&trial->start_margin, run->template.traffic == TRAFFIC_TRANSFER);
    /* A node without a common clock proposes no start: its time is meaningless to others. Node 0
     * always knows run time, so at least one node proposes a start. */
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
    now = control_clock_at(trial->node->control, clock_now());
    run->bound_ns = now.bound_ns;
    /* Without a common clock it starts after the barrier by the same margin as the others. */
    run->offset_ns = now.bound_ns >= 0 ? now.offset_ns : run->start_run_ns - clock_now() - lead_ns;
    set_times(run);
    return 0;
}

/* --- the end --- */

static void say_lane(const struct phase_run *run, const struct phase_lane *phase_lane,
                     struct barrier_values *values)
{
    const struct phase *phase = &run->template;
    const struct lane *lane = phase_lane->lane;
    bool sends = phase_lane->send_count > 0;
    int64_t *most = values->maximum;

    if (lane->error.text[0] != '\0')
        values->states |= STATE_LANE_FAILED;
    for (uint32_t i = 0; run->is_probe && i < phase_lane->receive_count; i++)
        if (flow_unreached(&phase_lane->flows[phase_lane->send_count + i]))
            values->states |= STATE_UNREACHABLE;
    if (sends && lane->started_ns > 0) {
        most[END_START_LATE] = MAX(most[END_START_LATE], lane->started_ns - phase->start_ns);
        most[END_START_EARLY] = MAX(most[END_START_EARLY], phase->start_ns - lane->started_ns);
    }
    if (sends && lane->stopped_ns > 0 && phase->stop_ns != CLOCK_NEVER) {
        most[END_STOP_LATE] = MAX(most[END_STOP_LATE], lane->stopped_ns - phase->stop_ns);
        most[END_STOP_EARLY] = MAX(most[END_STOP_EARLY], phase->stop_ns - lane->stopped_ns);
    }
    if (lane->arrived_ns > 0)
        most[END_FINISH] = MAX(most[END_FINISH], lane->arrived_ns + run->offset_ns);
}

static double skew_us(int64_t latest_ns, int64_t earliest_ns)
{
    bool known = latest_ns != INT64_MIN && earliest_ns != INT64_MIN;

    return known ? (double)(latest_ns + earliest_ns) / 1e3 : -1;
}

int phase_agree_end(struct phase_run *run, int rc)
{
    static const uint32_t states[] = {
        [TASK_LIMIT] = STATE_DRAIN_TIMEOUT, [TASK_FLOODED] = STATE_FLOODED, [TASK_STOPPED] = 0};
    struct phase_outcome *outcome = &run->outcome;
    const struct phase *phase = &run->template;
    bool common;
    struct phase_clock clock = clock_of_phase(run);
    struct barrier_values values;
    int64_t elapsed_ns = 0, awake_ns = 0;

    barrier_values_clear(&values);
    values.states = outcome->states & STATE_NO_CLOCK; /* the start was a guess */
    if (clock.bound_ns < 0)
        values.states |= STATE_NO_CLOCK;
    values.maximum[END_BOUND] = clock.bound_ns;
    for (size_t i = 0; i < run->lane_count; i++)
        if (run->lanes[i].lane != NULL)
            say_lane(run, &run->lanes[i], &values);
    for (size_t w = 0; w < run->trial->node->worker_count; w++)
        if (run->tasks[w].count > 0) {
            values.states |= states[run->tasks[w].end];
            awake_ns = MAX(awake_ns, run->tasks[w].awake_ns);
        }
    /* Note the margin that this start needed, for the next one. */
    if (awake_ns > 0)
        start_margin_note(&run->trial->start_margin, awake_ns + run->offset_ns - run->entry_run_ns);
    if (rc == 0) {
        rc = node_barrier(run->trial->node, &values);
        control_forget(run->trial->node->control, false); /* lanes no longer need blobs */
    }
    if (rc < 0)
        elapsed_ns = clock_now() - phase->start_ns;
    else if (run->is_timed)
        elapsed_ns = phase->stop_ns - phase->start_ns;
    else if (values.maximum[END_FINISH] > run->start_run_ns)
        elapsed_ns = values.maximum[END_FINISH] - run->start_run_ns;
    common = rc == 0 && (values.states & STATE_NO_CLOCK) == 0;
    *outcome = (struct phase_outcome){
        .states = values.states | (rc < 0 ? STATE_STOPPED : 0),
        .start_skew_us = -1,
        .stop_skew_us = -1,
        .clock_bound_ns = -1,
    };
    outcome->elapsed_ns = MAX(outcome->elapsed_ns, elapsed_ns);
    if (common) {
        outcome->start_skew_us =
            skew_us(values.maximum[END_START_LATE], values.maximum[END_START_EARLY]);
        outcome->stop_skew_us =
            skew_us(values.maximum[END_STOP_LATE], values.maximum[END_STOP_EARLY]);
        outcome->clock_bound_ns = values.maximum[END_BOUND];
    }
    return rc;
}

/* A phase runs with the clock offset measured before its start. After the phase, datagrams from
 * before and after it give a better estimate (run_clock.h). Its difference in the middle of the
 * window is the shift, which results are corrected by. The deviation from it within the window
 * cannot be corrected; the bound covers it. */
struct phase_clock clock_of_phase(const struct phase_run *run)
{
    struct control *control = run->trial->node->control;
    const struct phase *phase = &run->template;
    int64_t close_ns = run->is_timed ? phase->close_ns : run->end.at_ns;
    int64_t span_ns = close_ns > phase->open_ns ? close_ns - phase->open_ns : 0;
    struct offset_estimate middle = control_clock_at(control, phase->open_ns + span_ns / 2);
    struct phase_clock clock = {.bound_ns = -1};

    if (run->bound_ns < 0 || middle.bound_ns < 0)
        return clock;
    clock.shift_ns = middle.offset_ns - run->offset_ns;
    clock.bound_ns = middle.bound_ns;
    for (int64_t look = 0; look < CLOCK_LOOKS; look++) {
        struct offset_estimate there =
            control_clock_at(control, phase->open_ns + span_ns * look / (CLOCK_LOOKS - 1));

        clock.bound_ns =
            MAX(clock.bound_ns, llabs(there.offset_ns - middle.offset_ns) + there.bound_ns);
    }
    /* A disciplined clock may have jumped at any time: the bound covers both readings and the jump.
     */
    if (control_clocks(control).mode == CLOCK_PTP) {
        clock.bound_ns = MAX(clock.bound_ns, run->bound_ns);
        clock.bound_ns += llabs(clock.shift_ns);
    }
    return clock;
}
