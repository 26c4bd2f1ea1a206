/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the records of a phase share.
 */
#ifndef ENGINE_REPORT_COMMON_H
#define ENGINE_REPORT_COMMON_H

#include "phase_run.h"

/* A new record with the place that all of a phase's records share. */
json_t *report_new(const struct phase_run *run, const char *type);
/* A histogram in as many records as its buckets need: how many, and what each says of it. */
#define REPORT_HISTOGRAM_TEXT 480 /* bytes of buckets in one, which has room for long names */
uint32_t report_histogram_parts(const struct histogram *histogram);
void report_histogram_part(json_t *record, uint32_t part, uint32_t parts, const char *buckets);

#endif
