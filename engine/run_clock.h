/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Run time, the clock of node 0, as a node knows it. No I/O. Each node measures its offset to its
 * parent in the binomial tree (offset.h); the parent's datagrams carry the parent's own offset to
 * node 0. The sum is ours, and the bounds add up. Nodes with equal boot hashes have one clock:
 * offset 0, bound 0, nothing to measure.
 */
#ifndef ENGINE_RUN_CLOCK_H
#define ENGINE_RUN_CLOCK_H

#include "offset.h"

struct run_clock {
    bool is_root;   /* our clock is node 0's: we are node 0, or on its machine */
    bool is_parent; /* our clock is the parent's */
    struct offset to_parent;
    struct offset_estimate parent_to_root; /* as the parent said ... */
    int64_t parent_said_ns;                /* ... at this time of its clock, */
    int64_t parent_heard_ns;               /* which came to us then */
};

void run_clock_init(struct run_clock *clock, bool is_root);
/* The handshake told whose clocks are ours. */
void run_clock_boot(struct run_clock *clock, bool is_root, bool is_parent);

/* What a datagram from the parent says. */
struct run_clock_stamps {
    int64_t origin_ns;   /* ours, of a datagram to it; negative: none */
    int64_t receive_ns;  /* its, when that came */
    int64_t transmit_ns; /* its, now */
    int64_t arrive_ns;   /* ours, when this came */
};
void run_clock_heard(struct run_clock *clock, const struct run_clock_stamps *stamps,
                     struct offset_estimate parent_to_root);

struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t now_ns);

#endif
