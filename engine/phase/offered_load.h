/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The load of a port: from what a trial's document asks to what the transport is told.
 */
#ifndef ENGINE_OFFERED_LOAD_H
#define ENGINE_OFFERED_LOAD_H

#include "documents.h"

#define LOAD_SHARED_PERCENT 95

/* What a port's line carries, and what is to be sent on it. */
struct load_line {
    const char *port;  /* its name, for sentences */
    uint64_t rate_bps; /* layer 1; 0: unknown */
    bool frames;       /* sizes are frames', which take FRAME_OVERHEAD_L1 more; false: messages */
    double mean_size;  /* bytes */
    bool shared;       /* others' traffic has LOAD_SHARED_PERCENT's rest */
    double part; /* of the load that its flows have together: 1, or what their shares come to */
};

/* 0; -EINVAL with the sentence when the line can't carry it, or when its share was asked for and
 * the rate is unknown. Messages at 100 % are unlimited: the transport finds the line's end. */
int load_resolve(struct load *load, const struct doc_load *ask, const struct load_line *line,
                 struct err *err);

/* Slowly, since nobody knows yet where the frames go: 10 % of line, at most 1,000 a second; and the
 * port's `probes` (0: not known) over 0.15 s at least, for partners that begin late. */
void load_for_probe(struct load *load, const struct load_line *line, uint32_t probes);

#endif
