/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Run time as a node knows it. No I/O. Run time is node 0's CLOCK_MONOTONIC, and for `ptp` its
 * CLOCK_REALTIME. A node knows it in one of three ways:
 *
 * - shared: its clock is node 0's (equal boot hashes). Offset 0, bound 0, nothing to measure.
 * - estimated: it measures its offset to its parent in the binomial tree (offset.h), and the
 *   parent's datagrams carry the parent's own offset and bound to run time. Each answer so makes a
 *   pair of limits on our offset to run time, at that moment; what they say together of any other
 *   moment is offset.h's again.
 * - ptp: its CLOCK_REALTIME is run time, within what the kernel says that it may be wrong by
 *   (discipline.h), or within what the user says. Datagrams are measured all the same, as a
 *   witness: where they prove that it can't be, the bound is as wide as they say.
 *
 * `shared` and `estimated` are decided node by node when nothing is asked for.
 */
#ifndef ENGINE_RUN_CLOCK_H
#define ENGINE_RUN_CLOCK_H

#include "clock.h"
#include "offset_estimator.h"

struct run_clock {
    enum clock_mode mode; /* CLOCK_AUTO until the handshake has told whose clocks are ours */
    bool is_root;         /* our clock is run time's: we are node 0, or share its clock */
    bool is_parent;       /* our clock is the parent's */
    struct offset to_parent;
    struct offset to_root;
    struct offset_estimate disciplined; /* ptp: run time - ours, as the kernel had it last */
    int64_t parent_said_ns; /* when, of the parent's clock, it said what we know of it */
};

/* What the handshake told: whose boot hashes are ours. */
struct run_clock_shared {
    bool root;
    bool parent;
};

/* Before the handshake. Only node 0 knows run time then. `asymmetry_ns` as in offset.h. */
void run_clock_init(struct run_clock *clock, bool is_root, int64_t asymmetry_ns);
/* `asked` is the run's; CLOCK_AUTO: shared where it can be. */
void run_clock_decide(struct run_clock *clock, enum clock_mode asked,
                      const struct run_clock_shared *kin, bool is_node_0);
/* ptp: CLOCK_REALTIME - CLOCK_MONOTONIC now, and what it may be wrong by; bound -1: unknown. */
void run_clock_discipline(struct run_clock *clock, struct offset_estimate realtime);

/* What a datagram from the parent says. */
struct run_clock_stamps {
    int64_t origin_ns;   /* ours, of a datagram to it; negative: none */
    int64_t receive_ns;  /* its, when that came */
    int64_t transmit_ns; /* its, now */
    int64_t arrive_ns;   /* ours, when this came */
};
void run_clock_heard(struct run_clock *clock, const struct run_clock_stamps *stamps,
                     struct offset_estimate parent_to_root);

/* Run time - our clock, at any time of our clock. */
struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t at_ns);
/* Whether there is anything to ask the parent. */
bool run_clock_asks(const struct run_clock *clock);

#endif
