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
#include "report_reordering.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEASURES_MAX 16

static void set_u64(json_t *record, const char *key, uint64_t value)
{
    json_object_set_new(record, key, json_integer((json_int_t)value));
}

static const char *rank_name(const struct phase_lane *lane, uint32_t rank)
{
    return lane->own->part->ranks[rank]->name;
}

static void set_run_time(const struct phase_run *run, json_t *record, const char *key,
                         int64_t local_ns)
{
    json_object_set_new(record, key,
                        local_ns > 0 ? json_integer(local_ns + run->offset_ns) : json_null());
}

static bool counts_frames(const struct phase_run *run)
{
    return strcmp(run->trial->transport->size_unit, "frame") == 0;
}

/* Frames make messages only where these go there and back, or in steps. */
static bool counts_messages(const struct phase_run *run)
{
    return !counts_frames(run) || run->template.traffic == TRAFFIC_PINGPONG ||
           run->template.traffic == TRAFFIC_SCHEDULE;
}

static void set_counts(const struct phase_run *run, json_t *record, const struct flow_count *count)
{
    bool frames = counts_frames(run);

    record_set_count(record, "frames", frames ? (int64_t)count->frames : -1);
    record_set_count(record, "frame_bytes", frames ? (int64_t)count->frame_bytes : -1);
    set_u64(record, "payload_bytes", count->payload_bytes);
    record_set_count(record, "messages", counts_messages(run) ? (int64_t)count->messages : -1);
}

static void set_window(const struct phase_run *run, json_t *record, const struct flow_side *side,
                       const struct worker_lane *timing)
{
    bool timed = phase_is_timed(&run->template);
    bool frames = counts_frames(run);
    const struct flow_window *window = &side->window;
    struct flow_count count = side->live;

    if (timed) {
        count.frames = window->close.frames - window->open.frames;
        count.frame_bytes = window->close.frame_bytes - window->open.frame_bytes;
        count.payload_bytes = window->close.payload_bytes - window->open.payload_bytes;
        count.messages = window->close.messages - window->open.messages;
    }
    record_set_count(record, "window_frames", frames ? (int64_t)count.frames : -1);
    record_set_count(record, "window_frame_bytes", frames ? (int64_t)count.frame_bytes : -1);
    set_u64(record, "window_payload_bytes", count.payload_bytes);
    record_set_count(record, "window_messages",
                     counts_messages(run) ? (int64_t)count.messages : -1);
    record_set_count(record, "window_ns",
                     timed ? timing->closed_ns - timing->opened_ns : run->outcome.elapsed_ns);
}

static void set_judgement(const struct phase_run *run, json_t *record, const struct flow_side *side)
{
    bool unreliable = strcmp(run->trial->transport->name, "verbs") == 0 &&
                      run->template.verbs.service != VERBS_RC;
    bool judged = counts_frames(run) || unreliable;

    record_set_count(record, "duplicated", judged ? (int64_t)side->duplicated : -1);
    record_set_count(record, "reordered", judged ? (int64_t)side->reordered : -1);
    record_set_count(record, "late", judged ? (int64_t)side->late : -1);
    record_set_count(record, "forged", counts_frames(run) ? (int64_t)side->forged : -1);
    set_u64(record, "corrupted", side->corrupted);
}

static void set_measures(const struct phase_run *run, json_t *record, struct lane *lane,
                         const struct lane_flow *flow)
{
    struct measure measures[MEASURES_MAX];
    json_t *object = json_object();
    unsigned count = 0;

    if (run->trial->transport->measure != NULL)
        count = run->trial->transport->measure(lane, flow, measures, MEASURES_MAX);
    for (unsigned i = 0; i < count; i++)
        json_object_set_new(object, measures[i].name, json_real(measures[i].value));
    json_object_set_new(record, "measures", object);
}

struct flow_place {
    const struct phase_lane *lane;
    const struct worker_lane *timing;
    bool source;
};

static void report_flow(const struct phase_run *run, const struct flow_place *place,
                        const struct lane_flow *flow)
{
    json_t *record = report_new(run, "flow");
    const struct flow_side *side = flow->side;

    record_set_text(record, "network", place->lane->own->part->doc->network);
    record_set_text(record, "side", place->source ? "source" : "destination");
    record_set_text(record, "src", rank_name(place->lane, flow->src));
    record_set_text(record, "dst", rank_name(place->lane, flow->dst));
    record_set_text(record, "role", flow->role == PATTERN_FORWARD ? "forward" : "generate");
    set_counts(run, record, &side->live);
    set_window(run, record, side, place->timing);
    if (place->source)
        set_u64(record, "intended", side->intended);
    else
        set_judgement(run, record, side);
    set_run_time(run, record, "first_run_ns", side->first_ns);
    set_run_time(run, record, "last_run_ns", side->last_ns);
    set_measures(run, record, place->lane->lane, flow);
    record_send(run->trial->node->records, record);
}

/* --- times --- */

static const struct {
    const char *name;
    bool of_source; /* it is the source that measures it */
} latency_kinds[] = {
    [LATENCY_ONE_WAY] = {"one_way", false},
    [LATENCY_IPDV] = {"ipdv", false},
    [LATENCY_ROUND_TRIP] = {"round_trip", true},
    [LATENCY_PINGPONG] = {"pingpong", true},
};
static_assert(sizeof latency_kinds / sizeof latency_kinds[0] == LATENCY_KINDS, "each has a name");

/* Our clock may be wrong by so much, and the other end's by what the worst of all said. What it
 * says itself is in its `clock` record. */
static int64_t one_way_bound_ns(const struct phase_run *run)
{
    int64_t ours_ns = run->clock.bound_ns;
    int64_t theirs_ns = run->outcome.clock_bound_ns;

    return ours_ns < 0 || theirs_ns < 0 ? -1 : ours_ns + theirs_ns;
}

static void set_latency(json_t *record, enum latency_kind kind, const struct latency *latency,
                        int64_t bound_ns)
{
    const struct histogram *histogram = &latency->histogram;
    bool any = histogram->count > 0;

    record_set_text(record, "kind", latency_kinds[kind].name);
    record_set_text(record, "unit", "ns");
    set_u64(record, "count", histogram->count);
    set_u64(record, "sum_ns", histogram->sum_ns);
    record_set_count(record, "least_ns", any ? (int64_t)histogram->least_ns : -1);
    record_set_count(record, "greatest_ns", any ? (int64_t)histogram->greatest_ns : -1);
    set_u64(record, "beyond", histogram->beyond);
    record_set_count(record, "lost",
                     latency->sent > 0 ? (int64_t)(latency->sent - histogram->count) : -1);
    record_set_count(record, "bound_ns", bound_ns);
}

static void report_histogram(const struct phase_run *run, const struct flow_place *place,
                             const struct lane_flow *flow, enum latency_kind kind,
                             const struct latency *latency)
{
    uint32_t parts = report_histogram_parts(&latency->histogram), next = 0;

    for (uint32_t part = 0; part < parts; part++) {
        json_t *record = report_new(run, "histogram");
        char text[REPORT_HISTOGRAM_TEXT];

        histogram_write(&latency->histogram, &next, text, sizeof text);
        record_set_text(record, "network", place->lane->own->part->doc->network);
        record_set_text(record, "src", rank_name(place->lane, flow->src));
        record_set_text(record, "dst", rank_name(place->lane, flow->dst));
        set_latency(record, kind, latency, kind == LATENCY_ONE_WAY ? one_way_bound_ns(run) : -1);
        report_histogram_part(record, part, parts, text);
        record_send(run->trial->node->records, record);
    }
}

/* What all queues of the port measured of a flow's side. */
static void report_latency(const struct phase_run *run, const struct flow_place *place,
                           const struct lane_flow *flow)
{
    const struct transport *transport = run->trial->transport;

    for (enum latency_kind kind = 0; transport->latency != NULL && kind < LATENCY_KINDS; kind++) {
        struct latency sum = {0};
        bool measured = false;

        if (latency_kinds[kind].of_source != place->source)
            continue;
        for (uint32_t q = 0; q < place->lane->queue_count; q++)
            measured =
                transport->latency(place->lane->queues[q].lane, flow, kind, &sum) || measured;
        if (measured)
            report_histogram(run, place, flow, kind, &sum);
    }
}

static int64_t difference(int64_t before, int64_t after)
{
    return before < 0 || after < 0 ? -1 : after - before;
}

/* What the lane's flows sent and received, good or not: what the network's counters must show. */
static uint64_t lane_frames(const struct lane_flow *flows, uint32_t count)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct flow_side *side = flows[i].side;

        frames +=
            side->live.frames + side->duplicated + side->late + side->forged + side->corrupted;
    }
    return frames;
}

/* What an RDMA device says of the phase; null where it has no such counter. */
static void set_rdma(json_t *record, const struct phase_lane *lane)
{
    const struct port_hardware *before = &lane->before;
    const struct port_hardware *after = &lane->after;

    record_set_count(record, "retransmitted",
                     difference(before->retransmitted, after->retransmitted));
    record_set_count(record, "out_of_sequence",
                     difference(before->out_of_sequence, after->out_of_sequence));
    record_set_count(record, "not_ready", difference(before->not_ready, after->not_ready));
    record_set_count(record, "cnp_sent", difference(before->cnp_sent, after->cnp_sent));
    record_set_count(record, "cnp_handled", difference(before->cnp_handled, after->cnp_handled));
    record_set_count(record, "ecn_marked", difference(before->ecn_marked, after->ecn_marked));
}

static void report_port(const struct phase_run *run, const struct phase_lane *lane)
{
    json_t *record = report_new(run, "port");
    bool frames = strcmp(run->trial->transport->size_unit, "frame") == 0;
    const struct port_hardware *before = &lane->before;
    const struct port_hardware *after = &lane->after;

    record_set_text(record, "network", lane->own->part->doc->network);
    record_set_text(record, "port", rank_name(lane, lane->own->rank));
    record_set_count(record, "sent_frames",
                     frames ? (int64_t)lane_frames(lane->sends, lane->send_count) : -1);
    record_set_count(record, "received_frames",
                     frames ? (int64_t)lane_frames(lane->receives, lane->receive_count) : -1);
    record_set_count(record, "misdelivered", frames ? (int64_t)lane->count.misdelivered : -1);
    record_set_count(record, "foreign", frames ? (int64_t)lane->count.foreign : -1);
    record_set_count(record, "guest_sent", frames ? (int64_t)lane->count.guest_sent : -1);
    record_set_count(record, "guest_received", frames ? (int64_t)lane->count.guest_received : -1);
    set_u64(record, "tag", lane->phase.tag);
    record_set_count(record, "send_refused", frames ? (int64_t)lane->count.send_refused : -1);
    record_set_count(record, "probes_sent", frames ? (int64_t)lane->count.probes_sent : -1);
    record_set_count(record, "probes_received", frames ? (int64_t)lane->count.probes_received : -1);
    record_set_text(record, "variant", lane->lane->variant);
    record_set_count(record, "hardware_received",
                     difference(before->received_frames, after->received_frames));
    record_set_count(record, "hardware_sent", difference(before->sent_frames, after->sent_frames));
    record_set_count(record, "dropped_receive",
                     difference(before->dropped_receive, after->dropped_receive));
    record_set_count(record, "dropped_send", difference(before->dropped_send, after->dropped_send));
    record_set_count(record, "errors", difference(before->errors, after->errors));
    record_set_count(record, "pause", difference(before->pause_received, after->pause_received));
    if (strcmp(run->trial->transport->name, "verbs") == 0)
        set_rdma(record, lane);
    set_run_time(run, record, "start_run_ns", lane->lane->started_ns);
    set_run_time(run, record, "stop_run_ns", lane->lane->stopped_ns);
    record_send(run->trial->node->records, record);
}

static void report_stray(const struct phase_run *run, const struct phase_lane *lane,
                         const struct stray_flow *stray)
{
    const struct trial_part *part = lane->own->part;
    bool known = stray->src < part->n && stray->dst < part->n; /* anybody may send what looks so */
    json_t *record;

    if (stray->frames == 0)
        return;
    record = report_new(run, "stray");
    record_set_text(record, "network", part->doc->network);
    record_set_text(record, "port", rank_name(lane, lane->own->rank));
    record_set_text(record, "src", known ? rank_name(lane, stray->src) : NULL);
    record_set_text(record, "dst", known ? rank_name(lane, stray->dst) : NULL);
    set_u64(record, "frames", stray->frames);
    record_send(run->trial->node->records, record);
}

/* Frames for others, by whose they are; beyond those that were told apart with no name. */
static void report_strays(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct strays *strays = &lane->count.strays;
    struct stray_flow others = {strays->others, UINT16_MAX, UINT16_MAX};

    for (uint32_t i = 0; i < STRAYS_SLOTS; i++)
        report_stray(run, lane, &strays->flows[i]);
    report_stray(run, lane, &others);
}

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
    bool counted = strcmp(run->trial->transport->size_unit, "frame") == 0;
    uint64_t frames = 0;

    tsc_calibrate(&run->trial->node->tsc);
    for (size_t i = 0; i < run->lane_count && counted && !phase_is_probe(run); i++) {
        const struct phase_lane *lane = &run->lanes[i];

        frames += lane_frames(lane->sends, lane->send_count);
        frames += lane_frames(lane->receives, lane->receive_count);
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
    set_u64(record, "cpus", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
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
        report_strays(run, lane);
    }
    report_node(run);
}

static void report_unreachable(const struct phase_run *run, const struct phase_lane *lane,
                               const struct lane_flow *flow)
{
    json_t *record = report_new(run, "unreachable");

    record_set_text(record, "src", rank_name(lane, flow->src));
    record_set_text(record, "dst", rank_name(lane, flow->dst));
    set_u64(record, "received", flow->side->live.frames + flow->side->live.messages);
    set_u64(record, "sent", run->template.probes);
    record_send(run->trial->node->records, record);
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

void report_lane_errors(const struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];
        json_t *record;

        if (lane->lane == NULL || lane->lane->error.text[0] == '\0')
            continue;
        record = report_new(run, "event");
        record_set_text(record, "what", "lane-error");
        record_set_text(record, "port", rank_name(lane, lane->own->rank));
        record_set_text(record, "text", lane->lane->error.text);
        record_send(run->trial->node->records, record);
        log_error("port %s: %s", rank_name(lane, lane->own->rank), lane->lane->error.text);
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
        set_latency(record, kind, floor, kind == LATENCY_ONE_WAY ? 0 : -1);
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

    set_u64(record, "trial", trial->doc->id);
    set_u64(record, "repeat", trial->doc->repeat);
    set_u64(record, "phases",
            trial->doc->phases != NULL ? trial->doc->phases_count : trial->phase_count);
    json_object_set_new(record, "elapsed_ns", json_integer(clock_now() - trial->begun_ns));
    record_set_text(record, "state", state);
    record_send(trial->node->records, record);
}
