/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Round trips beside a load: each flow has two more queue pairs, on which small messages go to the
 * destination and come back while its streams send. They are a lane of their own, which the load's
 * lane makes, settles, polls and finishes with itself; so nothing of them counts in a flow's bytes.
 */
#ifndef VERBS_PROBES_H
#define VERBS_PROBES_H

#include "lane.h"

/* A lane of streams gets probes if its phase wants them. 0 or a refusal. */
int verbs_probes_make(struct verbs_lane *lane, struct err *err);
void verbs_probes_free(struct verbs_lane *lane);
/* Their own lane; NULL: it has none. */
struct verbs_lane *verbs_probes_lane(const struct verbs_lane *lane);

/* The worker's calls: once the phase's times are known; in each round, returns when to look again.
 */
void verbs_probes_start(struct verbs_lane *lane, int64_t now_ns);
int64_t verbs_probes_poll(struct verbs_lane *lane, int64_t now_ns);
/* The variant of their lane's send. */
int64_t verbs_probes_send(struct verbs_lane *lane, int64_t now_ns);

bool verbs_probes_latency(const struct verbs_lane *lane, const struct lane_flow *flow,
                          struct latency *sum);

#endif
