/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The load of a port: from what a trial's document asks to what the transport is told.
 */
#ifndef ENGINE_OFFERED_LOAD_H
#define ENGINE_OFFERED_LOAD_H

#include "documents.h"

#define LOAD_SHARED_PERCENT 95

/** @brief What a port's line carries, and what is to be sent on it. */
struct load_line {
    const char *port;  /**< its name, for sentences */
    uint64_t rate_bps; /**< layer 1; 0: unknown */
    bool frames;       /**< sizes are frames', which take FRAME_OVERHEAD_L1 more; false: messages */
    double mean_size;  /**< bytes */
    bool shared;       /**< others' traffic has LOAD_SHARED_PERCENT's rest */
    double part; /**< of the load that its flows have together: 1, or what their shares come to */
};

/**
 * @brief Work out the load of a flow.
 *
 * Messages at 100 % are unlimited: the transport finds the line's end.
 *
 * @param load Takes the load.
 * @param ask What the document asks for.
 * @param line Line of the port.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL with the sentence: the line can't carry it, or its share was asked for and the
 *        rate is unknown.
 */
int load_resolve(struct load *load, const struct doc_load *ask, const struct load_line *line,
                 struct err *err);

/**
 * @brief Set the load of the connectivity check: slow, since it is not known yet where the frames
 * go: 10 % of line, at most 1,000 a second; and the port's `probes` (0: not known) over 0.15 s at
 * least, for partners that begin late.
 *
 * @param load Takes the load.
 * @param line Line of the port.
 * @param probes Probes of the port; 0: not known.
 */
void load_for_probe(struct load *load, const struct load_line *line, uint32_t probes);

#endif
