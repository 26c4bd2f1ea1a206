/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reports: what the switch did, as JSON records, one a line. A report shows one moment: the counts
 * are copied at once and written bit by bit between turns, so that a slow reader delays no frame.
 */
#ifndef MODEL_TRUTH_H
#define MODEL_TRUTH_H

#include "panel.h"

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

struct truth {
    const struct panel *panel;
    const struct description *description;
    unsigned number; /* of the report, from 1 */
    int64_t began_ns;
    /* The present report; NULL: none. */
    struct snapshot *snapshot;
};

void truth_open(struct truth *truth, const struct panel *panel,
                const struct description *description);
void truth_close(struct truth *truth);

void truth_ready(const struct truth *truth, struct lines *lines);
/* Begins a report; no other is under way. `reason`: a word that stays. */
void truth_begin(struct truth *truth, const char *reason);
/* Writes some of its records; true: there is no report (any more). */
bool truth_step(struct truth *truth, struct lines *lines);

#endif
