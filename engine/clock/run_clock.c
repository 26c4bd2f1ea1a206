/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_clock.h"

#include <stdlib.h>

void run_clock_init(struct run_clock *clock, bool is_root)
{
    *clock = (struct run_clock){
        .mode = CLOCK_AUTO,
        .is_root = is_root,
        .disciplined = {.bound_ns = -1},
        .parent_said_ns = INT64_MIN,
    };
}

void run_clock_decide(struct run_clock *clock, enum clock_mode asked, bool is_shared,
                      bool is_node_0)
{
    bool measured = asked == CLOCK_PTP || asked == CLOCK_ESTIMATED;

    clock->is_root = measured ? is_node_0 : is_shared;
    clock->mode = asked;
    if (!measured)
        clock->mode = is_shared ? CLOCK_SHARED : CLOCK_ESTIMATED;
}

void run_clock_discipline(struct run_clock *clock, struct offset_estimate realtime)
{
    clock->disciplined = realtime;
}

/* What a node of a run can say, until the year 2079 by CLOCK_REALTIME; nothing overflows with it.
 */
static bool plausible(const struct offset_estimate *said)
{
    return said->bound_ns >= 0 && said->bound_ns < INT64_MAX / 8 &&
           said->offset_ns / 3 > -INT64_MAX / 8 && said->offset_ns / 3 < INT64_MAX / 8;
}

void run_clock_heard(struct run_clock *clock, const struct offset_stamps *stamps,
                     struct offset_estimate parent_to_root)
{
    struct offset_estimate parent;

    if (clock->mode == CLOCK_SHARED || clock->is_root)
        return;
    parent = offset_of_exchange(stamps);
    if (stamps->transmit_ns <= clock->parent_said_ns || parent.bound_ns < 0 ||
        !plausible(&parent_to_root))
        return; /* overtaken on the way, or nothing to go by */
    clock->parent_said_ns = stamps->transmit_ns;
    parent.offset_ns += parent_to_root.offset_ns;
    parent.bound_ns += parent_to_root.bound_ns;
    if (parent_to_root.bound_ns > 0)
        parent.bound_ns += offset_drift_ns(stamps->arrive_ns - stamps->origin_ns);
    offset_add(&clock->filter, stamps->arrive_ns, parent);
}

/* CLOCK_REALTIME, unless datagrams prove that it is not what it says. */
static struct offset_estimate witnessed(const struct run_clock *clock, int64_t at_ns)
{
    struct offset_estimate said = clock->disciplined;
    struct offset_estimate seen = offset_at(&clock->filter, at_ns);
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
    return offset_at(&clock->filter, at_ns);
}

bool run_clock_asks(const struct run_clock *clock)
{
    return !clock->is_root;
}
