/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports: what the switch did, as JSON records, one a line. A report shows one moment: the counts
 * are copied at once and written bit by bit between turns, so that a slow reader delays no frame.
 */
#ifndef MODEL_SWITCH_REPORT_H
#define MODEL_SWITCH_REPORT_H

#include "port_array.h"

#include <jansson.h>

/* Lines on their way to a file descriptor that may not take them at once. */
struct lines {
    int fd;
    char *text;
    size_t used, room;
    bool broken; /* the reader has gone, or there was no memory */
};

void lines_open(struct lines *lines, int fd);
/* Takes the record over. */
void lines_add(struct lines *lines, json_t *record);
/* Writes what goes without waiting. */
void lines_flush(struct lines *lines);
/* Writes all, but not for longer; false: some are left. */
bool lines_close(struct lines *lines, int64_t until_ns);

struct switch_report {
    const struct port_array *port_array;
    const struct description *description;
    unsigned number; /* of the report, from 1 */
    int64_t began_ns;
    /* The present report; NULL: none. */
    struct snapshot *snapshot;
};

void switch_report_open(struct switch_report *report, const struct port_array *port_array,
                        const struct description *description);
void switch_report_close(struct switch_report *report);

void switch_report_ready(const struct switch_report *report, struct lines *lines);
/* Begins a report; no other is under way. `reason`: a word that stays. */
void switch_report_begin(struct switch_report *report, const char *reason);
/* Writes some of its records; true: there is no report (any more). */
bool switch_report_step(struct switch_report *report, struct lines *lines);

#endif
