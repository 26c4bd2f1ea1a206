/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The records of trials and phases (doc/node-protocol.md).
 */
#include "report_phase.h"

#include "clock.h"
#include "log.h"
#include "phase_clock.h"
#include "phase_run.h"
#include "report_clock.h"
#include "report_common.h"
#include "report_execution.h"
#include "report_flow.h"
#include "report_port.h"
#include "report_reordering.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *state_name(uint32_t states)
{
    if ((states & STATE_FLOODED) != 0)
        return "flooded";
    return (states & (STATE_STOPPED | STATE_BROKEN)) != 0 ? "stopped" : "complete";
}

static void set_known(json_t *record, const char *key, double value)
{
    json_object_set_new(record, key, value < 0 ? json_null() : json_real(value));
}

static void phase_name(const struct phase_run *run, char *name, size_t size)
{
    const struct trial_part *part = &run->trial->parts[0];

    name[0] = '\0';
    for (uint32_t i = 0; i < run->trial->doc->parts_count; i++) {
        part = &run->trial->parts[i];
        if (run->number < pattern_phases(part->plan)) {
            pattern_phase_name(part->plan, run->number, name, size);
            return;
        }
    }
}

/* What this process's CPU time comes to on each frame that its ports sent or received; below 0:
 * there were none, or no counter of cycles. */
static double cycles_per_frame(const struct phase_run *run, double cpu_s)
{
    bool counted = report_counts_frames(run);
    uint64_t frames = 0;

    tsc_calibrate(&run->trial->node->tsc);
    for (size_t i = 0; i < run->lane_count && counted && !phase_is_probe(run); i++) {
        const struct phase_lane *lane = &run->lanes[i];

        frames += report_frames(lane->sends, lane->send_count);
        frames += report_frames(lane->receives, lane->receive_count);
    }
    if (frames == 0 || run->trial->node->tsc.hz <= 0)
        return -1;
    return cpu_s * run->trial->node->tsc.hz / (double)frames;
}

static void report_node(const struct phase_run *run)
{
    const struct phase_outcome *outcome = &run->outcome;
    json_t *record = report_new(run, "phase");
    const struct phase_cost *begin = &run->begin;
    const struct phase_cost *end = &run->end;
    char name[64];

    phase_name(run, name, sizeof name);
    record_set_text(record, "name", name);
    json_object_set_new(record, "start_run_ns", json_integer(run->start_run_ns));
    record_set_count(record, "window_ns",
                     phase_is_timed(&run->template) ? run->template.close_ns - run->template.open_ns
                                                    : outcome->elapsed_ns);
    json_object_set_new(record, "elapsed_ns", json_integer(outcome->elapsed_ns));
    set_known(record, "start_skew_us", outcome->start_skew_us);
    set_known(record, "stop_skew_us", outcome->stop_skew_us);
    set_known(record, "skew_bound_us", outcome->skew_bound_us);
    record_set_text(record, "state", state_name(outcome->states));
    json_object_set_new(record, "drained", json_boolean((outcome->states & STATE_UNDRAINED) == 0));
    json_object_set_new(record, "cpu_span_s", json_real((double)(end->at_ns - begin->at_ns) / 1e9));
    json_object_set_new(record, "cpu_s", json_real(end->process_s - begin->process_s));
    set_known(record, "cpu_idle_s",
              begin->idle_s < 0 || end->idle_s < 0 ? -1 : end->idle_s - begin->idle_s);
    report_set_u64(record, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    set_known(record, "cycles_per_frame",
              cycles_per_frame(run, json_number_value(json_object_get(record, "cpu_s"))));
    record_send(run->trial->node->records, record);
}

static const struct worker_lane *find_timing(const struct phase_run *run, const struct lane *lane)
{
    const struct worker_lane *timing = run->worker_lanes;

    while (timing->lane != lane)
        timing++;
    return timing;
}

void report_phase(struct phase_run *run)
{
    run->clock = clock_of_phase(run);
    report_clock(run);
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        struct flow_place place = {.lane = lane, .source = true};

        if (lane->lane == NULL)
            continue;
        place.timing = find_timing(run, lane->lane);
        for (uint32_t f = 0; f < lane->send_count; f++) {
            report_flow(run, &place, &lane->sends[f]);
            report_latency(run, &place, &lane->sends[f]);
        }
        place.source = false;
        for (uint32_t f = 0; f < lane->receive_count; f++) {
            report_flow(run, &place, &lane->receives[f]);
            report_latency(run, &place, &lane->receives[f]);
            report_disorder(run, lane, &lane->receives[f]);
        }
        report_execution(run, lane);
        report_port(run, lane);
        report_misdelivered(run, lane);
    }
    report_node(run);
}

static void report_unreachable(const struct phase_run *run, const struct phase_lane *lane,
                               const struct lane_flow *flow)
{
    json_t *record = report_new(run, "unreachable");

    record_set_text(record, "src", report_rank_name(lane, flow->src));
    record_set_text(record, "dst", report_rank_name(lane, flow->dst));
    report_set_u64(record, "received", flow->side->live.frames + flow->side->live.messages);
    report_set_u64(record, "sent", run->template.probes);
    record_send(run->trial->node->records, record);
    log_error("the probe of %s -> %s did not arrive", report_rank_name(lane, flow->src),
              report_rank_name(lane, flow->dst));
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

void report_lane_errors(const struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        json_t *record;

        if (lane->lane == NULL || lane->lane->error.text[0] == '\0')
            continue;
        record = report_new(run, "event");
        record_set_text(record, "what", "lane-error");
        record_set_text(record, "port", report_rank_name(lane, lane->own->rank));
        record_set_text(record, "text", lane->lane->error.text);
        record_send(run->trial->node->records, record);
        log_error("port %s: %s", report_rank_name(lane, lane->own->rank), lane->lane->error.text);
    }
}

void report_late(const struct phase_run *run)
{
    int64_t late_ns = clock_now() - run->template.open_ns;
    char text[160];
    json_t *record;

    if (!phase_is_timed(&run->template) || run->lane_count == 0 || late_ns <= 0)
        return;
    snprintf(text, sizeof text,
             "phase %u of trial %u was ready %lld ms after its window had opened", run->number,
             run->trial->doc->id, (long long)(late_ns / NS_PER_MS));
    record = report_new(run, "event");
    record_set_text(record, "what", "late");
    record_set_text(record, "port", NULL);
    record_set_text(record, "text", text);
    record_send(run->trial->node->records, record);
    log_warning("%s", text);
}

static void report_floor_kind(const struct trial *trial, enum latency_kind kind,
                              const struct latency *floor)
{
    struct records *records = trial->node->records;
    uint32_t parts = report_histogram_parts(&floor->histogram), next = 0;

    for (uint32_t part = 0; part < parts; part++) {
        json_t *record = record_new(records, "floor");
        char text[REPORT_HISTOGRAM_TEXT];

        histogram_write(&floor->histogram, &next, text, sizeof text);
        record_set_text(record, "transport", trial->transport->name);
        report_set_latency(record, kind, floor, kind == LATENCY_ONE_WAY ? 0 : -1);
        report_histogram_part(record, part, parts, text);
        record_send(records, record);
    }
}

void report_floor(const struct trial *trial, const struct latency floor[LATENCY_KINDS])
{
    for (enum latency_kind kind = 0; kind < LATENCY_KINDS; kind++)
        if (floor[kind].histogram.count > 0)
            report_floor_kind(trial, kind, &floor[kind]);
}

void report_trial(const struct trial *trial, const char *state)
{
    json_t *record = record_new(trial->node->records, "trial");

    report_set_u64(record, "trial", trial->doc->id);
    report_set_u64(record, "repeat", trial->doc->repeat);
    report_set_u64(record, "phases",
                   trial->doc->phases != NULL ? trial->doc->phases_count : trial->phase_count);
    json_object_set_new(record, "elapsed_ns", json_integer(clock_now() - trial->begun_ns));
    record_set_text(record, "state", state);
    record_send(trial->node->records, record);
}
