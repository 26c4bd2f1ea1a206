/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_clock.h"

#include <stdlib.h>

static const struct offset_estimate unknown = {0, -1};

void run_clock_init(struct run_clock *clock, bool is_node_0)
{
    *clock = (struct run_clock){
        .mode = CLOCK_AUTO,
        .is_root = is_node_0,
        .disciplined = unknown,
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

/* --- the filter --- */

/* Maximum drift of two clocks in a time span. */
static int64_t drift_ns(int64_t age_ns)
{
    return age_ns != 0 ? llabs(age_ns) / (1000000 / RUN_CLOCK_DRIFT_PPM) + 1 : 0;
}

static bool is_time(int64_t stamp_ns)
{
    return stamp_ns >= 0 && stamp_ns < INT64_MAX / 8;
}

/* Compute the parent's clock offset at the arrival of its answer, from the time stamps of an
 * exchange; the bound is -1 (unknown) if the stamps contradict each other. */
static struct offset_estimate offset_of(const struct offset_stamps *stamps)
{
    int64_t most_ns, least_ns;

    if (!is_time(stamps->origin_ns) || !is_time(stamps->receive_ns) ||
        !is_time(stamps->transmit_ns) || !is_time(stamps->arrive_ns))
        return unknown;
    most_ns =
        stamps->receive_ns - stamps->origin_ns + drift_ns(stamps->arrive_ns - stamps->origin_ns);
    least_ns = stamps->transmit_ns - stamps->arrive_ns;
    if (most_ns < least_ns)
        return unknown;
    return (struct offset_estimate){least_ns + (most_ns - least_ns) / 2,
                                    (most_ns - least_ns) / 2 + 1};
}

static struct offset_estimate measured_at(const struct run_clock *clock, int64_t at_ns)
{
    uint64_t kept = clock->count < RUN_CLOCK_SAMPLES ? clock->count : RUN_CLOCK_SAMPLES;
    struct offset_estimate best = unknown;

    for (uint64_t back = 1; back <= kept; back++) {
        const struct offset_sample *sample =
            &clock->samples[(clock->count - back) % RUN_CLOCK_SAMPLES];
        int64_t bound_ns = sample->seen.bound_ns + drift_ns(at_ns - sample->at_ns);

        if (best.bound_ns >= 0 && sample->at_ns < at_ns &&
            drift_ns(at_ns - sample->at_ns) >= best.bound_ns)
            break; /* earlier samples are older still */
        if (best.bound_ns < 0 || bound_ns < best.bound_ns)
            best = (struct offset_estimate){sample->seen.offset_ns, bound_ns};
    }
    return best;
}

/* Store a measured offset, unless its slot of time already has an offset with a smaller bound. */
static void keep(struct run_clock *clock, int64_t at_ns, struct offset_estimate seen)
{
    const struct offset_sample sample = {at_ns, seen};
    struct offset_estimate known = measured_at(clock, at_ns);
    struct offset_sample *newest;

    if (known.bound_ns >= 0 &&
        llabs(seen.offset_ns - known.offset_ns) > seen.bound_ns + known.bound_ns)
        clock->count = 0;
    newest = &clock->samples[(clock->count - 1) % RUN_CLOCK_SAMPLES];
    if (clock->count == 0 || at_ns - clock->slot_ns >= RUN_CLOCK_SLOT_NS) {
        clock->samples[clock->count++ % RUN_CLOCK_SAMPLES] = sample;
        clock->slot_ns = at_ns;
    } else if (seen.bound_ns <= newest->seen.bound_ns + drift_ns(at_ns - newest->at_ns)) {
        *newest = sample;
    }
}

/* --- run time --- */

/* Return whether a received offset estimate is plausible: valid values stay in this range until the
 * year 2079 (CLOCK_REALTIME), and sums of such values do not overflow. */
static bool is_plausible(const struct offset_estimate *said)
{
    return said->bound_ns >= 0 && said->bound_ns < INT64_MAX / 8 &&
           said->offset_ns / 3 > -INT64_MAX / 8 && said->offset_ns / 3 < INT64_MAX / 8;
}

void run_clock_heard(struct run_clock *clock, const struct offset_stamps *stamps,
                     struct offset_estimate parent_to_root)
{
    struct offset_estimate seen = offset_of(stamps);

    if (clock->mode == CLOCK_SHARED || clock->is_root || seen.bound_ns < 0 ||
        stamps->transmit_ns <= clock->parent_said_ns || !is_plausible(&parent_to_root))
        return; /* the parent has no estimate, or a newer datagram came before */
    clock->parent_said_ns = stamps->transmit_ns;
    seen.offset_ns += parent_to_root.offset_ns;
    seen.bound_ns += parent_to_root.bound_ns;
    if (parent_to_root.bound_ns > 0)
        seen.bound_ns += drift_ns(stamps->arrive_ns - stamps->origin_ns);
    keep(clock, stamps->arrive_ns, seen);
}

struct offset_estimate run_clock_estimate(const struct run_clock *clock, int64_t at_ns)
{
    struct offset_estimate said = clock->disciplined, seen = measured_at(clock, at_ns);
    int64_t apart_ns = llabs(said.offset_ns - seen.offset_ns);

    if (clock->mode != CLOCK_PTP)
        return clock->is_root ? (struct offset_estimate){0, 0} : seen;
    /* The kernel's bound on CLOCK_REALTIME, unless datagrams prove a larger error. */
    if (said.bound_ns >= 0 && seen.bound_ns >= 0 && apart_ns > said.bound_ns + seen.bound_ns)
        said.bound_ns = apart_ns + seen.bound_ns;
    return said;
}
