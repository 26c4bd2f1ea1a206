/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records of a trial: each kind is a table of keys and values. A value of NULL leaves its key out;
 * JSON's null means unknown (doc/developer/node-protocol.md).
 */
#include "phase.h"

#include "clock.h"
#include "log.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- parts of several records --- */

/* Make a record about a phase, or, if `lane` is not NULL, about one rank in this phase. */
static json_t *make(const struct phase_run *run, const struct phase_lane *lane, const char *type,
                    const struct record_row *rows)
{
    json_t *record = record_fill(
        record_new(run->trial->node->records, type),
        RECORD_ROWS({"trial", json_integer(run->trial->doc->id)},
                    {"repeat", json_integer(run->trial->doc->repeat)},
                    {"phase", json_integer(run->is_probe ? -1 : (json_int_t)run->number)},
                    {"network", lane != NULL ? record_text(lane->own->part->doc->network) : NULL}));

    return record_fill(record, rows);
}

#define REPORT(run, lane, type, ...)                                                               \
    record_send((run)->trial->node->records, make(run, lane, type, RECORD_ROWS(__VA_ARGS__)), false)

static const char *rank_name(const struct phase_lane *lane, uint32_t rank)
{
    return lane->own->part->ranks[rank]->name;
}

static json_t *rank_text(const struct phase_lane *lane, uint32_t rank)
{
    return json_string(rank_name(lane, rank));
}

/* Return a count as JSON; null if it was not counted. */
static json_t *counted(bool known, uint64_t count)
{
    return known ? record_u64(count) : json_null();
}

/* Return the difference of two readings of a counter as JSON; null if it is negative, or a reading
 * is unknown. */
static json_t *since(int64_t before, int64_t after)
{
    return record_count(count_rest(after, before));
}

static json_t *run_time(const struct phase_run *run, int64_t local_ns)
{
    return local_ns > 0 ? json_integer(local_ns + run->offset_ns) : json_null();
}

static json_t *buckets(const struct histogram *histogram)
{
    char *text = histogram_text(histogram);
    json_t *value = text != NULL ? json_string(text) : NULL;

    free(text);
    return value;
}

static bool counts_frames(const struct phase_lane *lane)
{
    return transport_can(lane->transport, TRANSPORT_FRAMES);
}

static const struct lane_flow *receives(const struct phase_lane *lane)
{
    return lane->flows + lane->send_count;
}

/* Return the number of frames that flows sent or received, including incorrect frames, for
 * comparison with the counters of network devices.
 */
static uint64_t sum_frames(const struct lane_flow *flows, uint32_t count)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct flow_side *side = &flows[i].side;

        if (!side->is_copy)
            frames +=
                side->live.frames + side->duplicated + side->late + side->forged + side->corrupted;
    }
    return frames;
}

/* --- flows --- */

static void report_flow(const struct phase_run *run, const struct phase_lane *lane,
                        const struct lane_flow *flow, bool source,
                        const struct flow_reading *reading)
{
    const struct flow_side *side = &flow->side;
    bool timed = run->is_timed, frames = counts_frames(lane);
    /* Transports of frames count messages only in ping-pong and schedules. */
    bool messages = !frames || run->template.traffic == TRAFFIC_PINGPONG ||
                    run->template.traffic == TRAFFIC_SCHEDULE;
    bool numbered = frames || lane->lane->judges_order;
    struct flow_count open = timed ? side->window.open : (struct flow_count){0};
    struct flow_count close = timed ? side->window.close : side->live;
    const char *role = flow->role == PATTERN_FORWARD ? "forward" : "generate";
    const struct worker_lane *timing = &lane->queues[0];
    json_t *measures = json_object();

    for (unsigned i = 0; i < reading->metric_count; i++)
        json_object_set_new(measures, reading->metrics[i].name,
                            json_real(reading->metrics[i].value));
    REPORT(
        run, lane, "flow", {"side", json_string(source ? "source" : "destination")},
        {"src", rank_text(lane, flow->src)}, {"dst", rank_text(lane, flow->dst)},
        {"role", json_string(side->is_copy ? "copy" : role)},
        {"frames", counted(frames, side->live.frames)},
        {"frame_bytes", counted(frames, side->live.frame_bytes)},
        {"payload_bytes", record_u64(side->live.payload_bytes)},
        {"messages", counted(messages, side->live.messages)},
        {"window_frames", frames ? since(open.frames, close.frames) : json_null()},
        {"window_frame_bytes", frames ? since(open.frame_bytes, close.frame_bytes) : json_null()},
        {"window_payload_bytes", since(open.payload_bytes, close.payload_bytes)},
        {"window_messages", messages ? since(open.messages, close.messages) : json_null()},
        {"window_ns",
         record_count(timed ? timing->closed_ns - timing->opened_ns : run->outcome.elapsed_ns)},
        {"intended", source ? record_u64(side->intended) : NULL},
        {"duplicated", source ? NULL : counted(numbered, side->duplicated)},
        {"reordered", source ? NULL : counted(numbered, side->reordered)},
        {"late", source ? NULL : counted(numbered, side->late)},
        {"forged", source ? NULL : counted(frames, side->forged)},
        {"corrupted", source ? NULL : record_u64(side->corrupted)},
        {"first_run_ns", run_time(run, side->first_ns)},
        {"last_run_ns", run_time(run, side->last_ns)}, {"measures", measures});
}

/* Write the `histogram` records of the latencies that one side of a flow measured, and set these
 * latencies to zero. */
static void report_times(const struct phase_run *run, const struct phase_lane *lane,
                         const struct lane_flow *flow, bool source, struct flow_reading *reading)
{
    static const char *const names[LATENCY_KINDS] = {
        [LATENCY_ONE_WAY] = "one_way",
        [LATENCY_ROUND_TRIP] = "round_trip",
        [LATENCY_PINGPONG] = "pingpong",
    };
    /* The bound is that of this node's clock, and the maximum of all nodes' for the other end,
     * whose own bound is in its `clock` record. */
    int64_t ours_ns = run->clock.bound_ns, theirs_ns = run->outcome.clock_bound_ns;
    int64_t bound_ns = ours_ns < 0 || theirs_ns < 0 ? -1 : ours_ns + theirs_ns;

    for (enum latency_kind kind = 0; kind < LATENCY_KINDS; kind++) {
        bool of_source = kind == LATENCY_ROUND_TRIP || kind == LATENCY_PINGPONG;
        struct latency *sum = &reading->latency[kind];
        const struct histogram *times = &sum->histogram;

        if (!reading->measured[kind])
            continue;
        if (of_source == source) {
            REPORT(run, lane, "histogram", {"src", rank_text(lane, flow->src)},
                   {"dst", rank_text(lane, flow->dst)}, {"kind", json_string(names[kind])},
                   {"unit", json_string("ns")}, {"count", record_u64(times->count)},
                   {"sum_ns", record_u64(times->sum_ns)},
                   {"min_ns", counted(times->count > 0, times->min_ns)},
                   {"max_ns", counted(times->count > 0, times->max_ns)},
                   {"overflow", record_u64(times->beyond)},
                   {"lost", sum->sent > 0 ? since(times->count, sum->sent) : json_null()},
                   {"bound_ns", record_count(kind == LATENCY_ONE_WAY ? bound_ns : -1)},
                   {"buckets", buckets(times)});
        }
        reading->measured[kind] = false;
        *sum = (struct latency){0};
    }
}

/* Write the records of one side of a flow: its counts, metrics, and the latencies that all queues
 * of the port measured. The metrics are those of the first queue. */
static void report_side(const struct phase_run *run, const struct phase_lane *lane,
                        const struct lane_flow *flow, bool source)
{
    static struct flow_reading reading; /* used by the main thread only */

    reading.metric_count = 0;
    for (uint32_t q = lane->queue_count; q-- > 0;)
        lane->transport->read_flow(lane->queues[q].lane, flow, &reading);
    report_flow(run, lane, flow, source, &reading);
    report_times(run, lane, flow, source, &reading);
}

/* --- ports and ranks --- */

static struct record_row device_row(const struct port_hardware *before,
                                    const struct port_hardware *after, enum device_counter counter)
{
    return (struct record_row){device_counter_name(counter),
                               since(before->device[counter], after->device[counter])};
}

static void report_port(const struct phase_run *run, const struct phase_lane *lane)
{
    bool frames = counts_frames(lane);
    bool rdma = transport_can(lane->transport, TRANSPORT_NEEDS_RDMA);
    const struct port_count *count = &lane->count;
    const struct port_hardware *a = &lane->before, *b = &lane->after;
    REPORT(run, lane, "port", {"port", rank_text(lane, lane->own->rank)},
           {"sent_frames", counted(frames, sum_frames(lane->flows, lane->send_count))},
           {"received_frames", counted(frames, sum_frames(receives(lane), lane->receive_count))},
           {"misdelivered", counted(frames, count->misdelivered)},
           {"unexpected", counted(frames, count->foreign)},
           {"arp_nd_sent", counted(frames, count->arp_nd_sent)},
           {"arp_nd_received", counted(frames, count->arp_nd_received)},
           {"tag", json_integer(lane->phase.tag)},
           {"send_refused", counted(frames, count->send_refused)},
           {"probes_sent", counted(frames, count->probes_sent)},
           {"probes_received", counted(frames, count->probes_received)},
           {"variant", record_text(lane->lane->variant)},
           {"hardware_received", since(a->received_frames, b->received_frames)},
           {"hardware_sent", since(a->sent_frames, b->sent_frames)},
           {"dropped_receive", since(a->dropped_receive, b->dropped_receive)},
           {"dropped_send", since(a->dropped_send, b->dropped_send)},
           {"no_carrier", since(a->no_carrier, b->no_carrier)},
           {"errors", since(a->errors, b->errors)},
           {"pause", since(a->pause_received, b->pause_received)},
           device_row(a, b, DEVICE_PAUSE_SENT), device_row(a, b, DEVICE_FEC_CORRECTED),
           device_row(a, b, DEVICE_FEC_UNCORRECTED), device_row(a, b, DEVICE_SYMBOL_ERRORS),
           device_row(a, b, DEVICE_RX_DISCARDS), device_row(a, b, DEVICE_TX_DISCARDS),
           {"retransmitted", rdma ? since(a->retransmitted, b->retransmitted) : NULL},
           {"out_of_sequence", rdma ? since(a->out_of_sequence, b->out_of_sequence) : NULL},
           {"not_ready", rdma ? since(a->not_ready, b->not_ready) : NULL},
           {"cnp_sent", rdma ? since(a->cnp_sent, b->cnp_sent) : NULL},
           {"cnp_handled", rdma ? since(a->cnp_handled, b->cnp_handled) : NULL},
           {"ecn_marked", rdma ? since(a->ecn_marked, b->ecn_marked) : NULL},
           {"start_run_ns", run_time(run, lane->lane->started_ns)},
           {"stop_run_ns", run_time(run, lane->lane->stopped_ns)});
}

/* Write a record of the frames misdelivered at a port, by flow; the last entry has the frames of
 * all further flows. */
static void report_misdelivered(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct misdelivered_flows *all = &lane->count.misdelivered_flows;

    for (uint32_t i = 0; i <= MISDELIVERED_SLOTS; i++) {
        struct misdelivered_flow flow =
            i < MISDELIVERED_SLOTS ? all->flows[i]
                                   : (struct misdelivered_flow){all->others, UINT16_MAX, 0};
        /* A forged frame may name any ranks. */
        bool known = flow.src < lane->own->part->n && flow.dst < lane->own->part->n;

        if (flow.frames == 0)
            continue;
        REPORT(run, lane, "misdelivered-flow", {"port", rank_text(lane, lane->own->rank)},
               {"src", known ? rank_text(lane, flow.src) : json_null()},
               {"dst", known ? rank_text(lane, flow.dst) : json_null()},
               {"frames", record_u64(flow.frames)});
    }
}

/* Write the record of a rank's schedule, with the times of its repetitions. */
static void report_execution(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct schedule_options *options = &run->template.schedule;
    const struct execution *execution = &lane->executor->execution;
    const struct histogram *times = &execution->times;
    REPORT(run, lane, "execution", {"rank", rank_text(lane, lane->own->rank)},
           {"repetitions", record_u64(execution->repetitions)},
           {"batch", json_integer(options->batch)}, {"batches", record_u64(execution->batches)},
           {"verified", counted(options->compute, execution->verified)},
           {"sum_ns", record_u64(execution->sum_ns)},
           {"min_ns", counted(times->count > 0, times->min_ns)},
           {"max_ns", counted(times->count > 0, times->max_ns)}, {"buckets", buckets(times)});
}

/* --- the phase as a whole --- */

static void report_clock(const struct phase_run *run)
{
    struct control_clocks clocks = control_clocks(run->trial->node->control);
    int64_t shift_ns = run->clock.shift_ns, bound_ns = run->clock.bound_ns;
    REPORT(run, NULL, "clock", {"clock", json_string(clock_words[clocks.mode])},
           {"offset_ns", bound_ns >= 0 ? json_integer(run->offset_ns + shift_ns) : json_null()},
           {"bound_ns", record_count(bound_ns)},
           {"shift_ns", bound_ns >= 0 ? json_integer(shift_ns) : json_null()},
           {"maxerror_ns", record_count(clocks.maxerror_ns)});
}

static void report_phase(const struct phase_run *run)
{
    const struct trial *trial = run->trial;
    const struct phase_outcome *outcome = &run->outcome;
    const struct phase *phase = &run->template;
    bool idle_known = run->begin.idle_s >= 0 && run->end.idle_s >= 0;
    const char *state = "complete";
    char name[64] = ""; /* by the first network that has this phase */

    if ((outcome->states & STATE_FLOODED) != 0)
        state = "flooded";
    else if ((outcome->states & (STATE_STOPPED | STATE_LANE_FAILED)) != 0)
        state = "stopped";
    for (uint32_t i = trial->doc->parts_count; i-- > 0;)
        if (run->number < pattern_phases(trial->parts[i].plan))
            pattern_phase_name(trial->parts[i].plan, run->number, name, sizeof name);
    REPORT(run, NULL, "phase", {"name", record_text(name)},
           {"start_run_ns", json_integer(run->start_run_ns)},
           {"window_ns",
            record_count(run->is_timed ? phase->close_ns - phase->open_ns : outcome->elapsed_ns)},
           {"elapsed_ns", json_integer(outcome->elapsed_ns)},
           {"start_skew_us", record_amount(outcome->start_skew_us)},
           {"stop_skew_us", record_amount(outcome->stop_skew_us)},
           {"skew_bound_us", record_amount((double)outcome->clock_bound_ns / 1e3)},
           {"state", json_string(state)},
           {"drained", json_boolean((outcome->states & STATE_DRAIN_TIMEOUT) == 0)},
           {"cpu_span_s", json_real((double)(run->end.at_ns - run->begin.at_ns) / 1e9)},
           {"cpu_s", json_real(run->end.process_s - run->begin.process_s)},
           {"cpu_idle_s", record_amount(idle_known ? run->end.idle_s - run->begin.idle_s : -1)},
           {"cpus", json_integer(sysconf(_SC_NPROCESSORS_ONLN))});
}

static void report_event(const struct phase_run *run, const char *kind, const char *port,
                         const char *text)
{
    REPORT(run, NULL, "event", {"kind", json_string(kind)}, {"port", record_text(port)},
           {"text", json_string(text)});
}

void report_late(const struct phase_run *run)
{
    int64_t late_ns = clock_now() - run->template.open_ns;
    char text[160];

    if (!run->is_timed || run->lane_count == 0 || late_ns <= 0)
        return;
    snprintf(text, sizeof text,
             "this node was ready for phase %u of trial %u only %lld ms after the phase's window "
             "had opened",
             run->number, run->trial->doc->id, (long long)(late_ns / NS_PER_MS));
    report_event(run, "late", NULL, text);
    log_warning("%s", text);
}

/* --- during the phase --- */

static const char *step_name(const struct phase_run *run, int64_t now_ns)
{
    const struct phase *phase = &run->template;

    if (run->is_probe)
        return "connectivity-check";
    if (!run->is_timed)
        return "window";
    if (now_ns < phase->open_ns)
        return "warmup";
    if (now_ns < phase->close_ns)
        return "window";
    return now_ns < phase->stop_ns ? "cooldown" : "drain";
}

/* Return a port's rates as JSON, such as ["node1:e0", 92600000, 92599000, 94999000]: bit/s of
 * offered payload, of delivered payload, and delivered at layer 1; null if the phase has no flow in
 * this direction. Workers publish their counts at times of their own, and rates are between two of
 * these times. */
static json_t *port_rates(struct phase_lane *lane, bool in_window, int64_t last_ns,
                          int64_t sums_bps[2])
{
    struct shown_progress *shown = &lane->shown;
    struct shown_progress now = {.in_window = in_window};
    int64_t span_ns, offered_bps, delivered_bps, line_bps;
    double bps;

    for (uint32_t q = 0; q < lane->queue_count; q++) {
        const struct worker_lane *queue = &lane->queues[q];
        int64_t published_ns = atomic_load(&queue->published_ns);

        now.published_ns = published_ns > now.published_ns ? published_ns : now.published_ns;
        now.offered_bytes += atomic_load(&queue->offered_bytes);
        now.delivered_bytes += atomic_load(&queue->delivered_bytes);
        now.line_bytes += atomic_load(&queue->line_bytes);
    }
    span_ns = now.published_ns - (shown->published_ns > 0 ? shown->published_ns : last_ns);
    bps = 8e9 / (double)(span_ns > 0 ? span_ns : clock_now() - last_ns);
    offered_bps = (int64_t)((double)(now.offered_bytes - shown->offered_bytes) * bps);
    delivered_bps = (int64_t)((double)(now.delivered_bytes - shown->delivered_bytes) * bps);
    line_bps = (int64_t)((double)(now.line_bytes - shown->line_bytes) * bps);
    if (!in_window || !shown->in_window)
        *shown = now;
    sums_bps[0] += offered_bps;
    sums_bps[1] += delivered_bps;
    return json_pack("[o, o, o, o]", rank_text(lane, lane->own->rank),
                     lane->send_count > 0 ? json_integer(offered_bps) : json_null(),
                     lane->receive_count > 0 ? json_integer(delivered_bps) : json_null(),
                     lane->receive_count > 0 ? json_integer(line_bps) : json_null());
}

void report_progress(struct phase_run *run, int64_t *last_ns)
{
    int64_t now_ns = clock_now(), sums_bps[2] = {0, 0};
    const char *step = step_name(run, now_ns);
    json_t *ports = json_array();

    for (size_t i = 0; i < run->lane_count; i++)
        json_array_append_new(
            ports, port_rates(&run->lanes[i], strcmp(step, "window") == 0, *last_ns, sums_bps));
    record_send(
        run->trial->node->records,
        make(run, NULL, "progress",
             RECORD_ROWS({"step", json_string(step)}, {"offered_bps", json_integer(sums_bps[0])},
                         {"delivered_bps", json_integer(sums_bps[1])}, {"ports", ports})),
        true);
    *last_ns = now_ns;
}

/* --- intervals: results of a port's flows from mark to mark --- */

/* Return the time of an interval mark since the window's opening, in ms with three decimals. */
static json_t *mark_ms(const struct phase_run *run, int64_t at_ns)
{
    int64_t us = (at_ns - run->template.open_ns) / NS_PER_US;

    return json_real((double)us / 1e3);
}

/* Return whether the interval mark with the same number waits in the rings of all queues of a port.
 * If one queue missed a mark, the others drop it: counts are since the start of the phase, so the
 * next mark includes its bytes. */
static bool mark_waits(const struct phase_lane *lane)
{
    uint32_t latest = 0;

    for (uint32_t q = 0; q < lane->queue_count; q++) {
        struct interval_ring *ring = lane->queues[q].interval_ring;

        const struct interval_mark *first;

        while ((first = interval_ring_first(ring)) != NULL && first->number < latest)
            interval_ring_drop(ring);
        if (first == NULL)
            return false;
        if (first->number > latest) {
            latest = first->number;
            q = UINT32_MAX; /* again from the first queue */
        }
    }
    return true;
}

/* Take the waiting interval mark of all queues, and write a record of the bytes that each flow
 * received since the previous mark. */
static void report_mark(const struct phase_run *run, struct phase_lane *lane)
{
    int64_t before_ns = lane->marked_ns;
    json_t *flows = json_array(); /* [["node2:e0", [125000]]] */

    for (uint32_t i = 0; i < lane->receive_count; i++) {
        uint64_t bytes = 0;

        for (uint32_t q = 0; q < lane->queue_count; q++)
            bytes += interval_ring_first(lane->queues[q].interval_ring)->bytes[i];
        json_array_append_new(flows, json_pack("[o, [o]]", rank_text(lane, receives(lane)[i].src),
                                               record_u64(bytes - lane->marked[i])));
        lane->marked[i] = bytes;
    }
    for (uint32_t q = 0; q < lane->queue_count; q++) {
        int64_t at_ns = interval_ring_first(lane->queues[q].interval_ring)->at_ns;

        lane->marked_ns = at_ns > lane->marked_ns ? at_ns : lane->marked_ns;
        interval_ring_drop(lane->queues[q].interval_ring);
    }
    if (before_ns == 0)
        json_decref(flows); /* intervals begin at the first mark */
    else
        REPORT(run, lane, "interval", {"side", json_string("destination")},
               {"dst", rank_text(lane, lane->own->rank)}, {"from_ms", mark_ms(run, before_ns)},
               {"at_ms", json_pack("[o]", mark_ms(run, lane->marked_ns))}, {"flows", flows});
}

void report_intervals(struct phase_run *run, bool all)
{
    for (size_t i = 0; i < run->lane_count; i++)
        while (run->lanes[i].marked != NULL &&
               (all || !records_crowded(run->trial->node->records)) && mark_waits(&run->lanes[i]))
            report_mark(run, &run->lanes[i]);
}

/* --- the end --- */

/* Write records of the flows that delivered no frame or message in a connectivity check. */
static void report_unreachable(const struct phase_run *run, const struct phase_lane *lane)
{
    for (uint32_t i = 0; i < lane->receive_count; i++) {
        const struct lane_flow *flow = &receives(lane)[i];

        if (!flow_unreached(flow))
            continue;
        REPORT(run, NULL, "unreachable", {"src", rank_text(lane, flow->src)},
               {"dst", rank_text(lane, flow->dst)}, {"received", json_integer(0)},
               {"sent", json_integer(run->template.probes)});
        log_error("connectivity check: no frame or message from %s arrived at %s",
                  rank_name(lane, flow->src), rank_name(lane, flow->dst));
    }
}

static void report_lane(const struct phase_run *run, const struct phase_lane *lane)
{
    for (uint32_t i = 0; i < lane->flow_count; i++)
        report_side(run, lane, &lane->flows[i], i < lane->send_count);
    if (lane->executor != NULL)
        report_execution(run, lane);
    report_misdelivered(run, lane);
}

void report_end(struct phase_run *run)
{
    bool probe = run->is_probe, stopped = (run->outcome.states & STATE_STOPPED) != 0;

    report_intervals(run, true);
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        if (lane->lane == NULL || lane->lane->error.text[0] == '\0')
            continue;
        report_event(run, "lane-error", rank_name(lane, lane->own->rank), lane->lane->error.text);
        log_error("port %s: %s", rank_name(lane, lane->own->rank), lane->lane->error.text);
    }
    if (probe && !stopped && run->trial->probes_left > 0 &&
        (run->outcome.states & STATE_UNREACHABLE) != 0) {
        log_info("the connectivity check failed for at least one flow, and is repeated");
        return;
    }
    if (!probe) {
        run->clock = clock_of_phase(run);
        report_clock(run);
    }
    for (size_t i = 0; i < run->lane_count; i++) {
        const struct phase_lane *lane = &run->lanes[i];

        if (lane->lane == NULL)
            continue;
        if (!probe)
            report_lane(run, lane);
        else if (!stopped) /* a stopped check has no result */
            report_unreachable(run, lane);
        report_port(run, lane);
    }
    if (!probe || !stopped)
        report_phase(run);
}

void report_trial(const struct trial *trial, const char *state)
{
    const struct doc_trial *doc = trial->doc;
    record_write(
        trial->node->records, "trial",
        RECORD_ROWS(
            {"trial", json_integer(doc->id)}, {"repeat", json_integer(doc->repeat)},
            {"phases", json_integer(doc->phases != NULL ? doc->phases_count : trial->phase_count)},
            {"elapsed_ns", json_integer(clock_now() - trial->begun_ns)},
            {"state", json_string(state)}));
}
