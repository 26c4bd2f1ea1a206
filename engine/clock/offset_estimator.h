/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The offset between our clock and another one, at any time, with a bound that is a proof and not a
 * guess. No I/O, constant memory, nothing allocated.
 *
 * Limits. A datagram that we sent at t1 (our clock) and that came at t2 (the other's) can't have
 * come before it left, so other - ours <= t2 - t1 at t1. One that the other sent at t3 and that
 * came at t4 gives other - ours >= t3 - t4 at t4 (Cristian 1989; the four stamps of RFC 5905, 8).
 * Datagrams that waited on their way give loose limits; so of all in a slot of time the tightest
 * is kept (the minimum-delay filter of RFC 5905, 10, for each way by itself), and the last
 * OFFSET_POINTS slots.
 *
 * Offset and rate. Near a time t the offset is a straight line, offset(x) = o + r (x - t), but for
 * what the rate turns; so each limit at x says  o + r (x - t) <= limit + turn(x - t),  and the same
 * from below: half planes of (o, r). The least and the greatest o in their intersection bound the
 * offset at t (the linear programme of Moon, Skelly, Towsley 1999, whose solutions lie on the
 * convex hulls; Paxson 1998 finds the line by robust fits, without a bound). It takes limits on
 * both sides of t alike: a time that lies behind is interpolated, which is tighter than what could
 * be said then; one that lies ahead is extrapolated, and its bound grows with what the rate is
 * still unsure by.
 *
 * What is assumed: two clocks run apart by OFFSET_RATE_PPM at most (two free oscillators within
 * the 100 ppm that Ethernet allows each; NTP's steering, when it is settled, keeps within that);
 * and their rate turns by no more than OFFSET_WANDER_PPM at once and OFFSET_TURN_PPM_PER_S in a
 * second (cheap crystals: 1 ppm a kelvin; NTP's small corrections). Where that does not hold, or a
 * clock is stepped, limits contradict each other; then the oldest are forgotten until the rest
 * agree. A step smaller than a round trip contradicts nothing, until new limits have taken the
 * place of those before it.
 *
 * Asymmetry. No exchange of datagrams can tell an offset from a difference between the two ways
 * (Cristian 1989), so the middle of the limits may be wrong by half of what both ways took at the
 * least. That is the bound that holds whatever the delays. Who knows the path may state by how
 * much the middle can be off at most, `asymmetry_ns`: half the difference of the two ways' least
 * delays. Then the bound is that, and how far the tightest limits seen may lie from the least
 * delays, and what age adds. The second: with n limits of one way in the order of their delays,
 * dense near the least, the first lies from the least by more than k times what the m-th lies from
 * the first with probability (1 + k)^-(m-1) (Robson, Whitlock 1964, for m = 2); k is taken so that
 * this is 1 %.
 */
#ifndef ENGINE_OFFSET_ESTIMATOR_H
#define ENGINE_OFFSET_ESTIMATOR_H

#include <stdbool.h>
#include <stdint.h>

#define OFFSET_RATE_PPM 200
#define OFFSET_WANDER_PPM 1.0
#define OFFSET_TURN_PPM_PER_S 0.1
#define OFFSET_POINTS 64u
#define OFFSET_SLOT_NS INT64_C(250000000)
#define OFFSET_ANY_ASYMMETRY 0

struct offset_point {
    int64_t at_ns; /* our clock */
    int64_t limit_ns;
};

/* Limits of one kind: a ring, oldest first. */
struct offset_side {
    struct offset_point points[OFFSET_POINTS];
    uint32_t oldest;
    uint32_t count;
    int64_t slot_ns;   /* when the newest one's slot began */
    int64_t newest_ns; /* what is not newer than the last that was looked at tells nothing new */
};

struct offset {
    struct offset_side above;
    struct offset_side below;
    double rate; /* as the limits had it last: what tells the tighter of two in a slot */
    int64_t asymmetry_ns;
};

/* The other's clock = ours + offset_ns, within +-bound_ns; bound -1: not known. */
struct offset_estimate {
    int64_t offset_ns;
    int64_t bound_ns;
};

/* By how much the other's clock is the faster one. */
struct offset_rate {
    double ppm;
    double bound_ppm; /* below 0: not known */
};

/* `asymmetry_ns`: as stated, or OFFSET_ANY_ASYMMETRY. */
void offset_init(struct offset *offset, int64_t asymmetry_ns);

/* At `at_ns` of our clock the offset was at most, or at least, `limit_ns`. */
void offset_at_most(struct offset *offset, int64_t at_ns, int64_t limit_ns);
void offset_at_least(struct offset *offset, int64_t at_ns, int64_t limit_ns);
/* A datagram left us at `ours_ns` and arrived there at `theirs_ns`, each by its own clock. */
void offset_departed(struct offset *offset, int64_t ours_ns, int64_t theirs_ns);
/* A datagram left there at `theirs_ns` and arrived here at `ours_ns`. */
void offset_arrived(struct offset *offset, int64_t theirs_ns, int64_t ours_ns);

/* At any time of our clock, past or to come; microseconds of work. */
struct offset_estimate offset_estimate(const struct offset *offset, int64_t at_ns);
struct offset_rate offset_rate(const struct offset *offset, int64_t at_ns);

/* By how much two clocks may run apart in so long, whatever their rates. */
int64_t offset_drift_ns(int64_t age_ns);

#endif
