/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is recorded of a phase as a whole: `phase`, `clock`, `unreachable`, `event`; and `trial`.
 */
#include "report.h"

#include "clock.h"
#include "log.h"
#include "phase_times.h"
#include "report_record.h"

#include <stdio.h>
#include <unistd.h>

static const char *rank_name(const struct phase_lane *lane, uint32_t rank)
{
    return lane->own->part->ranks[rank]->name;
}

static const char *state_name(uint32_t states)
{
    if ((states & STATE_FLOODED) != 0)
        return "flooded";
    return (states & (STATE_STOPPED | STATE_LANE_FAILED)) != 0 ? "stopped" : "complete";
}

/* As the first network calls it that has so many phases. */
static json_t *phase_name(const struct phase_run *run)
{
    const struct trial *trial = run->trial;
    char name[64];

    for (uint32_t i = 0; i < trial->doc->parts_count; i++)
        if (run->number < pattern_phases(trial->parts[i].plan)) {
            pattern_phase_name(trial->parts[i].plan, run->number, name, sizeof name);
            return record_text(name);
        }
    return json_null();
}

/* What this process's CPU time comes to on each frame that its ports sent or received; below 0:
 * there were none, not all of them are counted, or no counter of cycles. */
static double cycles_per_frame(const struct phase_run *run, double cpu_s)
{
    bool counted = !phase_is_probe(run);
    double hz = tsc_hz(&run->trial->node->begun);
    uint64_t frames = 0;

    for (size_t i = 0; i < run->lane_count && counted; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        counted = report_counts_frames(lane);
        frames += report_frames(lane->sends, lane->send_count);
        frames += report_frames(lane->receives, lane->receive_count);
    }
    if (!counted || frames == 0 || hz <= 0)
        return -1;
    return cpu_s * hz / (double)frames;
}

static void report_node(const struct phase_run *run)
{
    const struct phase_outcome *outcome = &run->outcome;
    const struct phase_cost *begin = &run->begin, *end = &run->end;
    const struct phase *phase = &run->template;
    bool idle_known = begin->idle_s >= 0 && end->idle_s >= 0;
    double cpu_s = end->process_s - begin->process_s;
    const struct record_row rows[] = {
        {"name", phase_name(run)},
        {"start_run_ns", json_integer(run->start_run_ns)},
        {"window_ns", record_count(phase_is_timed(phase) ? phase->close_ns - phase->open_ns
                                                         : outcome->elapsed_ns)},
        {"elapsed_ns", json_integer(outcome->elapsed_ns)},
        {"start_skew_us", record_amount(outcome->start_skew_us)},
        {"stop_skew_us", record_amount(outcome->stop_skew_us)},
        {"skew_bound_us", record_amount(outcome->skew_bound_us)},
        {"state", json_string(state_name(outcome->states))},
        {"drained", json_boolean((outcome->states & STATE_DRAIN_TIMEOUT) == 0)},
        {"cpu_span_s", json_real((double)(end->at_ns - begin->at_ns) / 1e9)},
        {"cpu_s", json_real(cpu_s)},
        {"cpu_idle_s", record_amount(idle_known ? end->idle_s - begin->idle_s : -1)},
        {"cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN))},
        {"cycles_per_frame", record_amount(cycles_per_frame(run, cpu_s))},
        {NULL, NULL},
    };

    report_write(run, "phase", rows);
}

static void report_clock(const struct phase_run *run)
{
    struct control_clocks clocks = control_clocks(run->trial->node->control);
    int64_t shift_ns = run->clock.shift_ns, bound_ns = run->clock.bound_ns;
    bool known = bound_ns >= 0;
    const struct record_row rows[] = {
        {"clock", json_string(clock_mode_name(clocks.mode))},
        {"offset_ns", known ? json_integer(run->offset_ns + shift_ns) : json_null()},
        {"bound_ns", record_count(bound_ns)},
        {"shift_ns", known ? json_integer(shift_ns) : json_null()},
        {"maxerror_ns", record_count(clocks.maxerror_ns)},
        {"esterror_ns", record_count(clocks.esterror_ns)},
        {NULL, NULL},
    };

    report_write(run, "clock", rows);
}

void report_phase(struct phase_run *run)
{
    run->clock = clock_of_phase(run);
    report_clock(run);
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        if (lane->lane == NULL)
            continue;
        report_flows(run, lane);
        if (lane->executor != NULL)
            report_execution(run, lane);
        report_port(run, lane);
        report_misdelivered(run, lane);
    }
    report_node(run);
}

static void report_unreachable(const struct phase_run *run, const struct phase_lane *lane,
                               const struct lane_flow *flow)
{
    const struct flow_count *live = &flow->side->live;
    const struct record_row rows[] = {
        {"src", report_rank(lane, flow->src)},
        {"dst", report_rank(lane, flow->dst)},
        {"received", record_u64(live->frames + live->messages)},
        {"sent", json_integer(run->template.probes)},
        {NULL, NULL},
    };

    report_write(run, "unreachable", rows);
    log_error("the probe of %s -> %s did not arrive", rank_name(lane, flow->src),
              rank_name(lane, flow->dst));
}

void report_probe(const struct phase_run *run)
{
    bool stopped = (run->outcome.states & STATE_STOPPED) != 0; /* then silence says nothing */

    if (!stopped && run->trial->probes_left > 0 && (run->outcome.states & STATE_UNREACHABLE) != 0) {
        log_info("a probe did not arrive: the plan is probed again");
        return;
    }
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        for (uint32_t f = 0; lane->lane != NULL && !stopped && f < lane->receive_count; f++)
            if (flow_unreached(&lane->receives[f]))
                report_unreachable(run, lane, &lane->receives[f]);
        if (lane->lane != NULL)
            report_port(run, lane);
    }
    if (!stopped)
        report_node(run);
}

static void report_event(const struct phase_run *run, const char *what, const char *port,
                         const char *text)
{
    const struct record_row rows[] = {
        {"kind", json_string(what)},
        {"port", record_text(port)},
        {"text", json_string(text)},
        {NULL, NULL},
    };

    report_write(run, "event", rows);
}

void report_lane_errors(const struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        const char *port = rank_name(lane, lane->own->rank);

        if (lane->lane == NULL || lane->lane->error.text[0] == '\0')
            continue;
        report_event(run, "lane-error", port, lane->lane->error.text);
        log_error("port %s: %s", port, lane->lane->error.text);
    }
}

void report_late(const struct phase_run *run)
{
    int64_t late_ns = clock_now() - run->template.open_ns;
    char text[160];

    if (!phase_is_timed(&run->template) || run->lane_count == 0 || late_ns <= 0)
        return;
    snprintf(text, sizeof text,
             "phase %u of trial %u was ready %lld ms after its window had opened", run->number,
             run->trial->doc->id, (long long)(late_ns / NS_PER_MS));
    report_event(run, "late", NULL, text);
    log_warning("%s", text);
}

void report_trial(const struct trial *trial, const char *state)
{
    const struct doc_trial *doc = trial->doc;
    const struct record_row rows[] = {
        {"trial", json_integer(doc->id)},
        {"repeat", json_integer(doc->repeat)},
        {"phases", json_integer(doc->phases != NULL ? doc->phases_count : trial->phase_count)},
        {"elapsed_ns", json_integer(clock_now() - trial->begun_ns)},
        {"state", json_string(state)},
        {NULL, NULL},
    };

    record_write(trial->node->records, "trial", rows);
}
