/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Two ring ports and one flow from port 0 to port 1, whose two lanes a test starts and polls by
 * hand, with times of its own. What fails ends the test.
 */
#ifndef TESTS_TRANSPORT_RING_PAIR_H
#define TESTS_TRANSPORT_RING_PAIR_H

#include "ring_ports.h"

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

/* `crossed`: as ring_ports_make. */
void ring_pair_open(struct ring_pair *pair, bool crossed);
void ring_pair_close(struct ring_pair *pair);

/* Makes both lanes for a phase, half of its start before it, with counts of zero: neither worker
 * is there. The line's rate is that of `confs`. A lane that learns is asked every millisecond. */
void ring_pair_connect(struct ring_pair *pair, const struct phase *phase);
void ring_pair_destroy(struct ring_pair *pair);

#endif
