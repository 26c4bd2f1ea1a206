/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One port with one lane of 64-byte ipv4-udp frames, made as the node makes it, for the benchmarks
 * of the dpdk transport. Whatever fails ends the program with the sentence.
 */
#ifndef BENCH_DPDK_BED_H
#define BENCH_DPDK_BED_H

#include "dpdk_options.h"
#include "transport.h"

#define BED_BURST 64
#define BED_SIZE 64
#define BED_TAG 1

extern const struct transport transport_dpdk;

struct rte_ring;

/* Fill in what stands before `phase`, then bed_open(). */
struct bed {
    struct port_conf conf;
    uint32_t rank;
    uint32_t send_count;    /* to the ranks from 0 on, without the own one; a load without limit */
    uint32_t receive_count; /* from those ranks */
    bool forwards;          /* the flow that it sends is the one that it receives */
    bool stamps;            /* frames' times are measured while bed_time() says so */
    struct blob partner;    /* every flow's other end; empty: the port's own */
    struct phase phase;
    struct dpdk_options options; /* of the phase */
    struct transport_port *port;
    struct lane *lane;
    struct lane_flow *flows; /* sends, then receives */
    struct flow_side *sides; /* theirs */
    struct port_count count;
};

void bed_open(struct bed *bed);
/* Starts the lane on this thread, from now on for ever. */
void bed_start(struct bed *bed);
/* Opens or closes the window in which the lane measures times, from the next poll on. */
void bed_time(struct bed *bed, bool timed);
/* Polls as a worker on a core of its own does, for so long. */
void bed_burn(struct bed *bed, int64_t for_ns);
/* Frames that all flows have sent or received so far. */
uint64_t bed_sent(struct bed *bed);
uint64_t bed_received(struct bed *bed);
void bed_close(struct bed *bed);

/* A port "net_ring_NAME" whose two rings are in the caller's hands; starts DPDK. */
void bed_make_rings(const char *name, struct rte_ring **in, struct rte_ring **out, uint32_t size);

#endif
