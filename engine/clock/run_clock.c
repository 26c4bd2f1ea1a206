/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_clock.h"

#include <stdlib.h>

void run_clock_init(struct run_clock *clock, bool is_root, int64_t asymmetry_ns)
{
    *clock = (struct run_clock){
        .mode = CLOCK_AUTO,
        .is_root = is_root,
        .disciplined = {.bound_ns = -1},
        .parent_said_ns = INT64_MIN,
    };
    offset_init(&clock->to_parent, asymmetry_ns);
    offset_init(&clock->to_root, OFFSET_ANY_ASYMMETRY); /* its limits have it already */
}

void run_clock_decide(struct run_clock *clock, enum clock_mode asked,
                      const struct run_clock_shared *kin, bool is_node_0)
{
    if (asked == CLOCK_PTP || asked == CLOCK_ESTIMATED) {
        clock->mode = asked;
        clock->is_root = is_node_0;
        clock->is_parent = false;
        return;
    }
    clock->mode = kin->root ? CLOCK_SHARED : CLOCK_ESTIMATED;
    clock->is_root = kin->root;
    clock->is_parent = kin->parent;
}

void run_clock_discipline(struct run_clock *clock, struct offset_estimate realtime)
{
    clock->disciplined = realtime;
}

/* The parent's clock against ours, just after a datagram of its came. */
static struct offset_estimate parents(const struct run_clock *clock,
                                      const struct run_clock_stamps *stamps)
{
    if (clock->is_parent)
        return (struct offset_estimate){0, 0};
    return offset_estimate(&clock->to_parent, stamps->arrive_ns);
}

/* What a node of a run can say; nothing overflows with it. */
static bool plausible(const struct offset_estimate *said)
{
    return said->bound_ns >= 0 && said->bound_ns < INT64_MAX / 8 &&
           llabs(said->offset_ns / 2) < INT64_MAX / 4;
}

void run_clock_heard(struct run_clock *clock, const struct run_clock_stamps *stamps,
                     struct offset_estimate parent_to_root)
{
    struct offset_estimate parent;
    int64_t middle_ns, bound_ns;

    if (clock->mode == CLOCK_SHARED || clock->is_root)
        return;
    if (!clock->is_parent) {
        offset_departed(&clock->to_parent, stamps->origin_ns, stamps->receive_ns);
        offset_arrived(&clock->to_parent, stamps->transmit_ns, stamps->arrive_ns);
    }
    parent = parents(clock, stamps);
    if (stamps->transmit_ns <= clock->parent_said_ns || parent.bound_ns < 0 ||
        !plausible(&parent_to_root))
        return; /* overtaken on the way, or nothing to go by */
    clock->parent_said_ns = stamps->transmit_ns;
    middle_ns = parent.offset_ns + parent_to_root.offset_ns;
    bound_ns = parent.bound_ns + parent_to_root.bound_ns;
    if (parent_to_root.bound_ns > 0) /* it was said when the datagram left */
        bound_ns += offset_drift_ns(stamps->arrive_ns + parent.offset_ns + parent.bound_ns -
                                    stamps->transmit_ns);
    offset_at_most(&clock->to_root, stamps->arrive_ns, middle_ns + bound_ns);
    offset_at_least(&clock->to_root, stamps->arrive_ns, middle_ns - bound_ns);
}

/* CLOCK_REALTIME, unless datagrams prove that it is not what it says. */
static struct offset_estimate witnessed(const struct run_clock *clock, int64_t at_ns)
{
    struct offset_estimate said = clock->disciplined;
    struct offset_estimate seen = offset_estimate(&clock->to_root, at_ns);
    int64_t apart_ns = llabs(said.offset_ns - seen.offset_ns);

    if (said.bound_ns >= 0 && seen.bound_ns >= 0 && apart_ns > said.bound_ns + seen.bound_ns)
        said.bound_ns = apart_ns + seen.bound_ns;
    return said;
}

struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t at_ns)
{
    if (clock->mode == CLOCK_PTP)
        return witnessed(clock, at_ns);
    if (clock->is_root)
        return (struct offset_estimate){0, 0};
    return offset_estimate(&clock->to_root, at_ns);
}

bool run_clock_asks(const struct run_clock *clock)
{
    return !clock->is_root;
}
