/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_common.h"

#include <stdio.h>
#include <string.h>

void report_set_u64(json_t *record, const char *key, uint64_t value)
{
    json_object_set_new(record, key, json_integer((json_int_t)value));
}

const char *report_rank_name(const struct phase_lane *lane, uint32_t rank)
{
    return lane->own->part->ranks[rank]->name;
}

void report_set_run_time(const struct phase_run *run, json_t *record, const char *key,
                         int64_t local_ns)
{
    json_object_set_new(record, key,
                        local_ns > 0 ? json_integer(local_ns + run->offset_ns) : json_null());
}

bool report_counts_frames(const struct phase_run *run)
{
    return strcmp(run->trial->transport->size_unit, "frame") == 0;
}

/* Frames make messages only where these go there and back, or in steps. */
bool report_counts_messages(const struct phase_run *run)
{
    return !report_counts_frames(run) || run->template.traffic == TRAFFIC_PINGPONG ||
           run->template.traffic == TRAFFIC_SCHEDULE;
}

void report_set_counts(const struct phase_run *run, json_t *record, const struct flow_count *count)
{
    bool frames = report_counts_frames(run);

    record_set_count(record, "frames", frames ? (int64_t)count->frames : -1);
    record_set_count(record, "frame_bytes", frames ? (int64_t)count->frame_bytes : -1);
    report_set_u64(record, "payload_bytes", count->payload_bytes);
    record_set_count(record, "messages",
                     report_counts_messages(run) ? (int64_t)count->messages : -1);
}

uint64_t report_frames(const struct lane_flow *flows, uint32_t count)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct flow_side *side = flows[i].side;

        frames +=
            side->live.frames + side->duplicated + side->late + side->forged + side->corrupted;
    }
    return frames;
}

json_t *report_new(const struct phase_run *run, const char *type)
{
    json_t *record = record_new(run->trial->node->records, type);

    report_set_u64(record, "trial", run->trial->doc->id);
    report_set_u64(record, "repeat", run->trial->doc->repeat);
    json_object_set_new(record, "phase",
                        json_integer(run->number == PHASE_PROBE ? -1 : (json_int_t)run->number));
    return record;
}

uint32_t report_histogram_parts(const struct histogram *histogram)
{
    char text[REPORT_HISTOGRAM_TEXT];
    uint32_t next = 0, parts = 0;

    while (histogram_write(histogram, &next, text, sizeof text) > 0)
        parts++;
    return parts > 0 ? parts : 1;
}

void report_histogram_part(json_t *record, uint32_t part, uint32_t parts, const char *buckets)
{
    report_set_u64(record, "part", part);
    report_set_u64(record, "parts", parts);
    json_object_set_new(record, "buckets", json_string(buckets));
}
