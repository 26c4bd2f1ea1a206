/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ring ports and one flow from port 0 to port 1, whose two lanes a test starts and polls by
 * hand, with times of its own. What fails ends the test.
 */
#ifndef TESTS_TRANSPORT_RING_PAIR_H
#define TESTS_TRANSPORT_RING_PAIR_H

#include "dpdk_lane.h"
#include "ring_ports.h"

#include <rte_ring.h>

#define RING_PAIR_START_NS NS_PER_S

extern const struct transport transport_dpdk;

struct ring_pair {
    struct ring_ports rings;
    struct port_conf confs[2];
    struct transport_port *ports[2];
    struct phase phase;
    struct lane *lanes[2]; /* by rank */
    struct lane_flow flows[2];
    struct flow_side sides[2];
    struct port_count counts[2];
};

/* The one of a program. */
extern struct ring_pair pair;

/* What a group of tests begins and ends with. Rings are crossed, or what is sent waits in them for
 * the test. */
int ring_pair_open_crossed(void **state);
int ring_pair_open(void **state);
int ring_pair_close(void **state);

/* A phase of one size that starts at RING_PAIR_START_NS, for ever. */
struct phase ring_pair_phase(enum traffic traffic, uint32_t size, double rate_fps,
                             const struct dpdk_options *options);

/* Makes both lanes for a phase, half of its start before it, with counts of zero: neither worker
 * is there. The line's rate is that of `confs`. A lane that learns is asked every millisecond. */
void ring_pair_connect(const struct phase *phase);
void ring_pair_destroy(void);

/* Both workers are at their lanes. */
void ring_pair_start(int64_t now_ns);

/* A metric of the flow at a rank's lane; a test fails where there is none of that name. */
double ring_pair_metric(uint32_t rank, const char *name);

/* Frees what a port has sent. */
void ring_pair_lose_sent(unsigned port);

/* Polls both lanes, by steps. Between the two `arrives` says of each frame of rank 0 whether rank 1
 * gets it; NULL where rings are crossed. */
void ring_pair_poll(int64_t from_ns, int64_t until_ns, int64_t step_ns,
                    bool (*arrives)(const struct rte_mbuf *frame, int64_t now_ns));

#endif
