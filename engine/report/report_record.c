/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_record.h"

#include <stdlib.h>

json_t *report_make(const struct phase_run *run, const char *type, const struct record_row *rows)
{
    const struct record_row place[] = {
        {"trial", json_integer(run->trial->doc->id)},
        {"repeat", json_integer(run->trial->doc->repeat)},
        {"phase", json_integer(phase_is_probe(run) ? -1 : (json_int_t)run->number)},
        {NULL, NULL},
    };

    return record_fill(record_fill(record_new(run->trial->node->records, type), place), rows);
}

void report_write(const struct phase_run *run, const char *type, const struct record_row *rows)
{
    record_send(run->trial->node->records, report_make(run, type, rows));
}

bool report_counts_frames(const struct phase_lane *lane)
{
    return transport_can(lane_transport(lane), TRANSPORT_FRAMES);
}

/* Frames make messages only where these go there and back, or in steps. */
bool report_counts_messages(const struct phase_run *run, const struct phase_lane *lane)
{
    return !report_counts_frames(lane) || run->template.traffic == TRAFFIC_PINGPONG ||
           run->template.traffic == TRAFFIC_SCHEDULE;
}

json_t *report_count(bool counted, uint64_t count)
{
    return counted ? record_u64(count) : json_null();
}

json_t *report_run_time(const struct phase_run *run, int64_t local_ns)
{
    return local_ns > 0 ? json_integer(local_ns + run->offset_ns) : json_null();
}

json_t *report_rank(const struct phase_lane *lane, uint32_t rank)
{
    return record_text(lane->own->part->ranks[rank]->name);
}

json_t *report_network(const struct phase_lane *lane)
{
    return record_text(lane->own->part->doc->network);
}

json_t *report_buckets(const struct histogram *histogram)
{
    char *text = histogram_text(histogram);
    json_t *buckets = text != NULL ? json_string(text) : NULL;

    free(text);
    return buckets;
}

json_t *report_extreme(const struct histogram *histogram, uint64_t extreme_ns)
{
    return report_count(histogram->count > 0, extreme_ns);
}

uint64_t report_frames(const struct lane_flow *flows, uint32_t count)
{
    uint64_t frames = 0;

    for (uint32_t i = 0; i < count; i++) {
        const struct flow_side *side = flows[i].side;

        if (side->is_copy)
            continue;
        frames +=
            side->live.frames + side->duplicated + side->late + side->forged + side->corrupted;
    }
    return frames;
}
