/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane made for a phase: its effective options, its streams, their queue pairs; and its end, when
 * queue pairs go back to the pool.
 */
#ifndef VERBS_LANE_PREPARE_H
#define VERBS_LANE_PREPARE_H

#include "lane.h"
#include "lane_check.h"

/* 0 or a refusal. */
int verbs_lane_make(struct verbs_lane **lane, const struct lane_request *request,
                    const struct verbs_traffic *traffic, struct err *err);
/* Bytes at layer 1 that a message of so many takes. */
double verbs_line_bytes(const struct verbs_lane *lane, uint32_t bytes);
/* NULL is none. */
void verbs_lane_free(struct verbs_lane *lane);

#endif
