/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames prepared in memory: a ring port (net_ring) whose receive ring is filled by hand. The
 * frames of many flows come in turn, in a seeded random order, with a known number of reordered
 * and repeated ones among them.
 */
#ifndef BENCH_DPDK_FEED_H
#define BENCH_DPDK_FEED_H

#include "dpdk_bed.h"

#include <stdint.h>

#define FEED_CHUNK 512u /* frames that lie ready at a time: as many as a device's ring holds */

struct feed;

/* Frames to `bed`, one stream from each of its flows' sources. Makes the port that bed->conf must
 * name: "net_ring_feed". Before bed_open(). */
struct feed *feed_make(const struct bed *bed);

/* Puts FEED_CHUNK frames into the ring. `reorder`: one in 128 swaps places with its flow's next,
 * and one in 1,024 comes twice. */
void feed_fill(struct feed *feed, bool reorder);

/* From now on frames are stamped as if their senders' bursts of 32 had been on their way for up to
 * 16 us, by a phase that began at `start_ns`: each sender's burst has a stamp, and bursts of
 * different senders come mixed frame by frame. Before that all stamps are 0. */
void feed_stamp(struct feed *feed, int64_t start_ns);

/* Throws away what the port has sent; returns how many frames. */
uint32_t feed_drain(struct feed *feed);

/* What the receiver must have found. */
struct feed_truth {
    uint64_t delivered;
    uint64_t reordered;
    uint64_t duplicated;
};
struct feed_truth feed_truth(const struct feed *feed);

#endif
