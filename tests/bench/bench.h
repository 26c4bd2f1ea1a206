/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bed of the benchmarks on DPDK: clocks, medians and verdicts; one port with one lane of
 * 64-byte ipv4-udp frames, made as the node makes it; and frames prepared in memory, which a ring
 * port (net_ring) receives. Whatever fails ends the program with the sentence.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"
#include "dpdk_options.h"
#include "transport.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <x86intrin.h>

/* Ends the program with this sentence. */
_Noreturn void bench_fail(const char *what);

/* TSC ticks a nanosecond, measured for 50 ms. */
double bench_tsc_rate(void);

/* CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID. */
int64_t bench_cpu_ns(clockid_t clock);

/* How often the kernel has taken the core away from this thread. */
long bench_preemptions(void);

/* Sorts `values`. */
double bench_median(double *values, size_t count);

/* "WHAT: VALUE UNIT (reach: at most REACH): PASS" */
void bench_verdict(const char *what, double value, const char *unit, bool at_most, double reach);

/* Prints what a frame costs whose `frames` took so many ns. */
void bench_show_frames(double frames, double ns);

/* --- a port and its lane --- */

#define BED_BURST 64
#define BED_SIZE 64
#define BED_TAG 1

extern const struct transport transport_dpdk;

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

/* --- frames in memory --- */

#define FEED_CHUNK 512u /* frames that lie ready at a time: as many as a device's ring holds */
#define FEED_PORT "net_ring_feed"

/* Opens `bed` on FEED_PORT, starts it, and makes a stream from each of its flows' sources. */
void feed_open(struct bed *bed);

/* Puts FEED_CHUNK frames into the ring. `reorder`: one in 128 swaps places with its flow's next,
 * and one in 1,024 comes twice. Where the bed measures times, frames are stamped as if their
 * senders' bursts of 32 had been on their way for up to 16 us: each sender's burst has a stamp, and
 * bursts of different senders come mixed frame by frame. */
void feed_fill(bool reorder);

/* Has the lane poll as often as the frames of feed_fill() need; returns the TSC ticks. */
uint64_t feed_poll(struct bed *bed);

/* Throws away what the port has sent; returns how many frames. */
uint32_t feed_drain(void);

/* What the receiver must have found. */
struct feed_truth {
    uint64_t delivered, reordered, duplicated;
};
extern struct feed_truth feed_truth;

#endif
