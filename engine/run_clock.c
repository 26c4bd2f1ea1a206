/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_clock.h"

void run_clock_init(struct run_clock *clock, bool is_root)
{
    *clock = (struct run_clock){
        .is_root = is_root,
        .parent_to_root = {.bound_ns = -1},
        .parent_said_ns = INT64_MIN,
    };
    offset_init(&clock->to_parent);
}

void run_clock_boot(struct run_clock *clock, bool is_root, bool is_parent)
{
    clock->is_root = is_root;
    clock->is_parent = is_parent;
}

void run_clock_heard(struct run_clock *clock, const struct run_clock_stamps *stamps,
                     struct offset_estimate parent_to_root)
{
    offset_departed(&clock->to_parent, stamps->origin_ns, stamps->receive_ns);
    offset_arrived(&clock->to_parent, stamps->transmit_ns, stamps->arrive_ns);
    if (stamps->transmit_ns <= clock->parent_said_ns)
        return; /* overtaken on the way, or said again by somebody else */
    clock->parent_to_root = parent_to_root;
    clock->parent_said_ns = stamps->transmit_ns;
    clock->parent_heard_ns = stamps->arrive_ns;
}

struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t now_ns)
{
    const struct offset_estimate *root = &clock->parent_to_root;
    struct offset_estimate parent = {0, 0};

    if (clock->is_root)
        return parent;
    if (!clock->is_parent)
        parent = offset_estimate(&clock->to_parent, now_ns);
    if (parent.bound_ns < 0 || root->bound_ns < 0)
        return (struct offset_estimate){0, -1};
    return (struct offset_estimate){
        .offset_ns = parent.offset_ns + root->offset_ns,
        .bound_ns =
            parent.bound_ns + root->bound_ns + offset_drift_ns(now_ns - clock->parent_heard_ns),
    };
}
