/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_flow.h"

#include "report_common.h"
#include "report_reordering.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MEASURES_MAX 16

static void set_window(const struct phase_run *run, json_t *record, const struct flow_side *side,
                       const struct worker_lane *timing)
{
    bool timed = phase_is_timed(&run->template);
    bool frames = report_counts_frames(run);
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
    report_set_u64(record, "window_payload_bytes", count.payload_bytes);
    record_set_count(record, "window_messages",
                     report_counts_messages(run) ? (int64_t)count.messages : -1);
    record_set_count(record, "window_ns",
                     timed ? timing->closed_ns - timing->opened_ns : run->outcome.elapsed_ns);
}

static void set_judgement(const struct phase_run *run, json_t *record, const struct flow_side *side)
{
    bool unreliable = strcmp(run->trial->transport->name, "verbs") == 0 &&
                      run->template.verbs.service != VERBS_RC;
    bool judged = report_counts_frames(run) || unreliable;

    record_set_count(record, "duplicated", judged ? (int64_t)side->duplicated : -1);
    record_set_count(record, "reordered", judged ? (int64_t)side->reordered : -1);
    record_set_count(record, "late", judged ? (int64_t)side->late : -1);
    record_set_count(record, "forged", report_counts_frames(run) ? (int64_t)side->forged : -1);
    report_set_u64(record, "corrupted", side->corrupted);
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

void report_flow(const struct phase_run *run, const struct flow_place *place,
                 const struct lane_flow *flow)
{
    json_t *record = report_new(run, "flow");
    const struct flow_side *side = flow->side;

    record_set_text(record, "network", place->lane->own->part->doc->network);
    record_set_text(record, "side", place->source ? "source" : "destination");
    record_set_text(record, "src", report_rank_name(place->lane, flow->src));
    record_set_text(record, "dst", report_rank_name(place->lane, flow->dst));
    record_set_text(record, "role", flow->role == PATTERN_FORWARD ? "forward" : "generate");
    report_set_counts(run, record, &side->live);
    set_window(run, record, side, place->timing);
    if (place->source)
        report_set_u64(record, "intended", side->intended);
    else
        set_judgement(run, record, side);
    report_set_run_time(run, record, "first_run_ns", side->first_ns);
    report_set_run_time(run, record, "last_run_ns", side->last_ns);
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

void report_set_latency(json_t *record, enum latency_kind kind, const struct latency *latency,
                        int64_t bound_ns)
{
    const struct histogram *histogram = &latency->histogram;
    bool any = histogram->count > 0;

    record_set_text(record, "kind", latency_kinds[kind].name);
    record_set_text(record, "unit", "ns");
    report_set_u64(record, "count", histogram->count);
    report_set_u64(record, "sum_ns", histogram->sum_ns);
    record_set_count(record, "least_ns", any ? (int64_t)histogram->least_ns : -1);
    record_set_count(record, "greatest_ns", any ? (int64_t)histogram->greatest_ns : -1);
    report_set_u64(record, "beyond", histogram->beyond);
    record_set_count(record, "lost",
                     latency->sent > 0 ? (int64_t)(latency->sent - histogram->count) : -1);
    record_set_count(record, "bound_ns", bound_ns);
}

/* One kind of a flow's times, in as many parts as its buckets need. */
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
        record_set_text(record, "src", report_rank_name(place->lane, flow->src));
        record_set_text(record, "dst", report_rank_name(place->lane, flow->dst));
        report_set_latency(record, kind, latency,
                           kind == LATENCY_ONE_WAY ? one_way_bound_ns(run) : -1);
        report_histogram_part(record, part, parts, text);
        record_send(run->trial->node->records, record);
    }
}

/* What all queues of the port measured of a flow's side. */
void report_latency(const struct phase_run *run, const struct flow_place *place,
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
