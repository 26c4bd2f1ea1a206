/* SPDX-License-Identifier: BSD-3-Clause */
#include "report_common.h"

#include <stdio.h>
#include <string.h>

static void set_u64(json_t *record, const char *key, uint64_t value)
{
    json_object_set_new(record, key, json_integer((json_int_t)value));
}

json_t *report_new(const struct phase_run *run, const char *type)
{
    json_t *record = record_new(run->trial->node->records, type);

    set_u64(record, "trial", run->trial->doc->id);
    set_u64(record, "repeat", run->trial->doc->repeat);
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
    set_u64(record, "part", part);
    set_u64(record, "parts", parts);
    json_object_set_new(record, "buckets", json_string(buckets));
}

/* One kind of a flow's times, in as many parts as its buckets need. */
