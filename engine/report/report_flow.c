/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `flow`: one side of a flow. `histogram`: its times.
 * `reorder`: how its frames were out of order.
 */
#include "report.h"
#include "report_record.h"

#define METRICS_MAX 16

static json_t *window_ns(const struct phase_run *run, const struct lane *lane)
{
    const struct worker_lane *timing = run->worker_lanes;

    if (!phase_is_timed(&run->template))
        return record_count(run->outcome.elapsed_ns);
    while (timing->lane != lane)
        timing++;
    return record_count(timing->closed_ns - timing->opened_ns);
}

static json_t *metrics_of(const struct phase_lane *lane, const struct lane_flow *flow)
{
    const struct transport *transport = lane_transport(lane);
    struct flow_metric metrics[METRICS_MAX];
    json_t *object = json_object();
    unsigned count = 0;

    if (transport->flow_metrics != NULL)
        count = transport->flow_metrics(lane->lane, flow, metrics, METRICS_MAX);
    for (unsigned i = 0; i < count; i++)
        json_object_set_new(object, metrics[i].name, json_real(metrics[i].value));
    return object;
}

static const char *role_of(const struct lane_flow *flow)
{
    if (flow->side->is_copy)
        return "copy";
    return flow->role == PATTERN_FORWARD ? "forward" : "generate";
}

/* What passed in the window. */
static json_t *in_window(uint64_t close, uint64_t open)
{
    return record_count(count_rest((int64_t)close, (int64_t)open));
}

static void report_flow(const struct phase_run *run, const struct phase_lane *lane,
                        const struct lane_flow *flow, bool source)
{
    bool frames = report_counts_frames(lane), messages = report_counts_messages(run, lane);
    bool numbered = frames || lane->lane->judges_order;
    const struct flow_side *side = flow->side;
    bool timed = phase_is_timed(&run->template);
    struct flow_count open = timed ? side->window.open : (struct flow_count){0};
    struct flow_count close = timed ? side->window.close : side->live;
    const struct record_row rows[] = {
        {"network", report_network(lane)},
        {"side", json_string(source ? "source" : "destination")},
        {"src", report_rank(lane, flow->src)},
        {"dst", report_rank(lane, flow->dst)},
        {"role", json_string(role_of(flow))},
        {"frames", report_count(frames, side->live.frames)},
        {"frame_bytes", report_count(frames, side->live.frame_bytes)},
        {"payload_bytes", record_u64(side->live.payload_bytes)},
        {"messages", report_count(messages, side->live.messages)},
        {"window_frames", frames ? in_window(close.frames, open.frames) : json_null()},
        {"window_frame_bytes",
         frames ? in_window(close.frame_bytes, open.frame_bytes) : json_null()},
        {"window_payload_bytes", in_window(close.payload_bytes, open.payload_bytes)},
        {"window_messages", messages ? in_window(close.messages, open.messages) : json_null()},
        {"window_ns", window_ns(run, lane->lane)},
        {"intended", source ? record_u64(side->intended) : NULL},
        {"duplicated", source ? NULL : report_count(numbered, side->duplicated)},
        {"reordered", source ? NULL : report_count(numbered, side->reordered)},
        {"late", source ? NULL : report_count(numbered, side->late)},
        {"forged", source ? NULL : report_count(frames, side->forged)},
        {"corrupted", source ? NULL : record_u64(side->corrupted)},
        {"first_run_ns", report_run_time(run, side->first_ns)},
        {"last_run_ns", report_run_time(run, side->last_ns)},
        {"measures", metrics_of(lane, flow)},
        {NULL, NULL},
    };

    report_write(run, "flow", rows);
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

/* What all records of times say; `bound_ns`: of one-way delays. */
static json_t *add_times(json_t *record, enum latency_kind kind, const struct latency *latency,
                         int64_t bound_ns)
{
    const struct histogram *histogram = &latency->histogram;
    const struct record_row rows[] = {
        {"kind", json_string(latency_kinds[kind].name)},
        {"unit", json_string("ns")},
        {"count", record_u64(histogram->count)},
        {"sum_ns", record_u64(histogram->sum_ns)},
        {"min_ns", report_extreme(histogram, histogram->min_ns)},
        {"max_ns", report_extreme(histogram, histogram->max_ns)},
        {"overflow", record_u64(histogram->beyond)},
        {"lost", latency->sent > 0
                     ? record_count(count_rest((int64_t)latency->sent, (int64_t)histogram->count))
                     : json_null()},
        {"bound_ns", record_count(kind == LATENCY_ONE_WAY ? bound_ns : -1)},
        {"buckets", report_buckets(histogram)},
        {NULL, NULL},
    };

    return record_fill(record, rows);
}

/* One kind of a flow's times. Our clock may be wrong by its bound, and the other end's by what the
 * worst of all said: what that end says itself is in its `clock` record. */
static void report_histogram(const struct phase_run *run, const struct phase_lane *lane,
                             const struct lane_flow *flow, enum latency_kind kind,
                             const struct latency *latency)
{
    int64_t ours_ns = run->clock.bound_ns, theirs_ns = run->outcome.clock_bound_ns;
    int64_t bound_ns = ours_ns < 0 || theirs_ns < 0 ? -1 : ours_ns + theirs_ns;
    const struct record_row rows[] = {
        {"network", report_network(lane)},
        {"src", report_rank(lane, flow->src)},
        {"dst", report_rank(lane, flow->dst)},
        {NULL, NULL},
    };

    record_send(run->trial->node->records,
                add_times(report_make(run, "histogram", rows), kind, latency, bound_ns));
}

/* What all queues of the port measured of a flow's side. */
static void report_latency(const struct phase_run *run, const struct phase_lane *lane,
                           const struct lane_flow *flow, bool source)
{
    const struct transport *transport = lane_transport(lane);

    for (enum latency_kind kind = 0; transport->latency != NULL && kind < LATENCY_KINDS; kind++) {
        struct latency sum = {0};
        bool measured = false;

        if (latency_kinds[kind].of_source != source)
            continue;
        for (uint32_t q = 0; q < lane->queue_count; q++)
            measured = transport->latency(lane->queues[q].lane, flow, kind, &sum) || measured;
        if (measured)
            report_histogram(run, lane, flow, kind, &sum);
    }
}

/* --- order --- */

static void report_reordering(const struct phase_run *run, const struct phase_lane *lane,
                              const struct lane_flow *flow)
{
    const struct flow_reordering *reordering = &flow->side->reordering;
    const struct record_row rows[] = {
        {"network", report_network(lane)},
        {"src", report_rank(lane, flow->src)},
        {"dst", report_rank(lane, flow->dst)},
        {"reordered", record_u64(flow->side->reordered)},
        {"extent_sum", record_u64(reordering->extent_sum)},
        {"extent_max", record_u64(reordering->extent_max)},
        {"three_reordered", record_u64(reordering->near)},
        {NULL, NULL},
    };

    report_write(run, "reorder", rows);
}

void report_flows(const struct phase_run *run, const struct phase_lane *lane)
{
    for (uint32_t f = 0; f < lane->send_count; f++) {
        report_flow(run, lane, &lane->sends[f], true);
        report_latency(run, lane, &lane->sends[f], true);
    }
    for (uint32_t f = 0; f < lane->receive_count; f++) {
        report_flow(run, lane, &lane->receives[f], false);
        report_latency(run, lane, &lane->receives[f], false);
        /* 0: in order, or a transport that does not look. */
        if (lane->receives[f].side->reordering.extent_max > 0)
            report_reordering(run, lane, &lane->receives[f]);
    }
}
