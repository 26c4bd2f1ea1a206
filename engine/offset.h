/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The offset between our clock and another node's, with a bound that is a proof and not a guess.
 * No I/O. A datagram that we sent at t1 (our clock) and that came at t2 (the other's) can't have
 * come before it left, so other - ours <= t2 - t1. One that the other sent at t3 and that came at
 * t4 gives other - ours >= t3 - t4. These are RFC 5905's four stamps; the offset of its section 8
 * is the middle between the two limits, and half the round trip is the bound, whatever the delays
 * and however asymmetric. Instead of the sample with the least round trip we keep the least upper
 * and the greatest lower limit, each from its own datagram: never worse, and answers may come at
 * any time after the question.
 *
 * Limits grow old: two clocks may run apart by OFFSET_DRIFT_PPM, so a limit of age a is widened by
 * that share of a. 200 ppm: two free running oscillators within the 100 ppm that Ethernet allows
 * each; NTP's steering, when it is settled, keeps within that. A clock that is being stepped or
 * slewed faster makes the limits contradict each other; then they are forgotten and learned anew.
 */
#ifndef ENGINE_OFFSET_H
#define ENGINE_OFFSET_H

#include <stdbool.h>
#include <stdint.h>

#define OFFSET_DRIFT_PPM 200

struct offset_limit {
    int64_t limit_ns;
    int64_t since_ns; /* our clock when it held exactly */
    bool known;
};

struct offset {
    struct offset_limit upper;
    struct offset_limit lower;
};

/* The other's clock = ours + offset_ns, within +-bound_ns; bound -1: not known. */
struct offset_estimate {
    int64_t offset_ns;
    int64_t bound_ns;
};

void offset_init(struct offset *offset);
/* A datagram left us at `ours_ns` and arrived there at `theirs_ns`, each by its own clock. */
void offset_departed(struct offset *offset, int64_t ours_ns, int64_t theirs_ns);
/* A datagram left there at `theirs_ns` and arrived here at `ours_ns`. */
void offset_arrived(struct offset *offset, int64_t theirs_ns, int64_t ours_ns);
struct offset_estimate offset_estimate(const struct offset *offset, int64_t now_ns);

/* By how much two clocks may run apart in so long. */
int64_t offset_drift_ns(int64_t age_ns);

#endif
