/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A flow's probes at its source, without any device: when the next one is due, which are in flight,
 * and how long those took that came back. A late probe does not hold up the next one (else a slow
 * moment would be probed less, and look shorter than it was); but no more may be in flight than
 * both ends have places for.
 */
#ifndef VERBS_PROBER_H
#define VERBS_PROBER_H

#include "histogram.h"
#include "probe_scheduler.h"

#include <stdbool.h>
#include <stdint.h>

#define VERBS_PROBES_OUT 64u /* in flight, max: as many as a verifying end remembers */

struct verbs_prober {
    struct probe_scheduler schedule;
    int64_t timeout_ns;                 /* after it a probe is lost; CLOCK_NEVER: none ever is */
    uint32_t max;                       /* in flight, up to VERBS_PROBES_OUT ... */
    uint32_t out;                       /* ... and now */
    uint64_t sent;                      /* also the next one's sequence */
    uint64_t measured;                  /* of those sent the ones that count */
    int64_t begun_ns[VERBS_PROBES_OUT]; /* by sequence; 0: none is in flight there */
    uint64_t counts;                    /* bit by sequence: whether it does */
    struct histogram times;             /* of those that count and came back */
};

/* Sets the first one's time (probe_scheduler.h). The rest of *prober is all zero but for
 * timeout_ns, max, and the schedule's gap_ns and seed. */
void verbs_prober_begin(struct verbs_prober *prober, int64_t from_ns);

/* Whether a probe is to be sent now. One whose time has come while there is no room is left out. */
bool verbs_prober_due(struct verbs_prober *prober, int64_t now_ns);
/* It was sent, and counts if it is one of those to be measured. */
void verbs_prober_sent(struct verbs_prober *prober, int64_t begun_ns, bool counts);

/* Which replies have come, as the verifying end knows them: the sequence that is due next, and bit
 * i of `seen` for the one i + 1 before it. A reply counts once. at_ns 0: they were not whole, so
 * their probes are lost. */
void verbs_prober_replies(struct verbs_prober *prober, uint64_t due, uint64_t seen, int64_t at_ns);

/* Whether a reply may still come. */
bool verbs_prober_waits(struct verbs_prober *prober, int64_t now_ns);

#endif
