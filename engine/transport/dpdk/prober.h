/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane's probes: it sends its flows', answers those that come, and keeps how long its own were
 * under way. Not a hot path: at most a few thousand frames a second.
 */
#ifndef ENGINE_DPDK_PROBER_H
#define ENGINE_DPDK_PROBER_H

#include "probe.h"
#include "probe_scheduler.h"
#include "sequence.h"
#include "transport.h"

struct dpdk_lane;
struct rte_mbuf;

/* One of the port's flows: each queue's lane has all, because an answer may come by any. */
struct prober_flow {
    struct histogram histogram; /* there and back */
    struct sequence sequence;   /* of answers: one that comes twice counts once */
    struct sequence_past past;
    uint32_t sent; /* by this queue; also the next one's sequence */
};

struct prober {
    bool answers;     /* the phase has probes */
    uint16_t tags[2]; /* as on the wire: of probes, of answers */
    struct prober_flow *flows;
    uint16_t *flow_of; /* by destination's rank: number of a flow + 1; 0: none */
    uint32_t count;
    double rate_fps;                 /* a flow's */
    struct probe_scheduler schedule; /* of all flows, in turn */
    uint32_t at;                     /* whose turn it is, of the flows that the lane sends */
    int64_t next_ns;                 /* when; CLOCK_NEVER: none is sent (any more) */
    int64_t until_ns;
    int64_t under_way; /* sent by this queue, less answers that came by it */
};

/* Main thread: in prepare; -ENOMEM. And when the lane goes. */
int prober_make(struct dpdk_lane *lane);
void prober_free(struct dpdk_lane *lane);

/* Worker. At the start; the window is known then. */
void prober_start(struct dpdk_lane *lane, uint64_t seed);
/* Sends the probe that is due; returns when the next one is. */
int64_t prober_turn(struct dpdk_lane *lane, int64_t now_ns);
/* Takes a sound frame with one of the tags that is meant for this rank: answers it, or measures. */
void prober_take(struct dpdk_lane *lane, const struct rte_mbuf *buffer);

/* Whether answers may still come: a transfer does not end before them. Where they may come by
 * another queue that is not known, and silence tells. */
bool prober_waits(const struct dpdk_lane *lane);

static inline bool prober_knows(const struct prober *prober, uint16_t tag)
{
    return prober->answers && (tag == prober->tags[0] || tag == prober->tags[1]);
}

/* The same of a damaged frame, whose tag may have lost a bit: the load's tag differs in eight. */
static inline bool prober_resembles(const struct prober *prober, uint16_t tag)
{
    return prober->answers && (__builtin_popcount(tag ^ prober->tags[0]) <= 1 ||
                               __builtin_popcount(tag ^ prober->tags[1]) <= 1);
}

/* Main thread, afterwards. */
bool prober_sum(const struct dpdk_lane *lane, const struct lane_flow *flow, struct latency *sum);

#endif
