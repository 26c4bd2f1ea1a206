/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Latency probes beside a load: each flow has two more queue pairs, on which small messages go to
 * the destination and come back while its streams send. They are a lane of their own, so none of
 * their bytes counts as a flow's.
 */
#ifndef VERBS_LATENCY_PROBES_H
#define VERBS_LATENCY_PROBES_H

#include "lane.h"

#define VERBS_PROBE_QPS 2u /* of each flow */

/* The lane of a load's probes; *lane stays NULL where the phase has none. 0 or a refusal. */
int verbs_probes_make(struct verbs_lane **lane, const struct verbs_lane *load, struct err *err);

/* Worker: the load's times are known. */
void verbs_probes_start(struct verbs_lane *lane, const struct phase *phase);

bool verbs_probes_latency(const struct verbs_lane *lane, const struct lane_flow *flow,
                          struct latency *sum);

#endif
