/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames prepared in memory: a ring port (net_ring) whose receive ring is filled by hand. The
 * frames of many flows come in turn, in a seeded random order, with a known number of reordered
 * and repeated ones among them.
 */
#ifndef BENCH_DPDK_FEED_H
#define BENCH_DPDK_FEED_H

#include "dpdk_bed.h"

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
