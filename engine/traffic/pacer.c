/* SPDX-License-Identifier: BSD-3-Clause */
#include "pacer.h"

#include "counters.h"
#include "prng.h"

#define CATCH_UP_BYTES 1518
#define LATE_FRAMES 2 /* intervals of delay beyond the frames that a sleeping sender gathers */

uint16_t pace_catch_up(uint16_t catch_up, uint32_t mean_size)
{
    double frames = catch_up * (CATCH_UP_BYTES + (double)FRAME_OVERHEAD_L1) /
                    (mean_size + (double)FRAME_OVERHEAD_L1);

    return (uint16_t)MIN(MAX(frames, MIN(catch_up, PACE_CATCH_UP)), UINT16_MAX);
}

void pace_init(struct pace *pace, double cost_per_s, uint32_t catch_up, int64_t origin_ns)
{
    *pace = (struct pace){
        .origin_ns = origin_ns,
        .ns_per_cost = cost_per_s > 0 ? 1e9 / cost_per_s : 0,
        .cost_per_ns = cost_per_s / 1e9,
        .next_ns = origin_ns,
        .catch_up = catch_up > 0 ? catch_up : 1,
    };
}

void pace_slow(struct pace *pace, double part, int64_t from_ns, uint32_t cost)
{
    pace->ns_per_cost /= part;
    pace->cost_per_ns *= part;
    pace->late_cost = 0;
    pace_restart(pace, from_ns + (int64_t)(cost * pace->ns_per_cost));
}

/* Return the time for which a sleeping sender lets frames gather: until three quarters of the
 * frames that it may catch up with are due. The rest is a reserve for a late wake-up. */
static double gather_ns(const struct pace *pace, uint32_t cost)
{
    uint32_t frames = MAX(pace->catch_up * 3 / 4, 1);
    double gather = (double)(frames - 1) * cost * pace->ns_per_cost;

    if (pace->catch_up == PACE_CATCH_UP_ALL)
        return 0;
    return gather < PACE_GATHER_NS ? gather : PACE_GATHER_NS;
}

void pace_dither(struct pace *pace, double times, uint32_t cost, uint64_t seed)
{
    double interval_ns = cost * pace->ns_per_cost;
    double gather = gather_ns(pace, cost);

    pace->dither_ns = (int64_t)(times * (interval_ns > gather ? interval_ns : gather));
    pace->random = seed;
}

int64_t pace_draw(struct pace *pace)
{
    return (int64_t)((prng_next(&pace->random) >> 32) * (uint64_t)pace->dither_ns >> 32);
}

uint64_t pace_due(const struct pace *pace, int64_t now_ns, uint32_t cost)
{
    double behind = pace_behind(pace, now_ns);

    return pace->ns_per_cost == 0 || behind < 0 ? 0 : (uint64_t)(behind / cost) + 1;
}

void pace_late(struct pace *pace, int64_t now_ns, uint32_t cost)
{
    uint64_t due = pace_due(pace, now_ns, cost);
    double on_time_ns = gather_ns(pace, cost) + LATE_FRAMES * cost * pace->ns_per_cost;
    double most = (double)pace->catch_up * cost;

    pace->late_cost = on_time_ns * pace->cost_per_ns;
    if (pace->late_cost > most || pace->catch_up == PACE_CATCH_UP_ALL)
        pace->late_cost = most;
    if (due * cost < pace->late_cost)
        return;
    if ((double)(now_ns - pace->polled_ns) > on_time_ns)
        pace->clumped += due < pace->catch_up ? due : pace->catch_up;
    if (due <= pace->catch_up)
        return;
    pace->given_up += due - pace->catch_up;
    pace_spend(pace, (due - pace->catch_up) * cost);
}

int64_t pace_wake(const struct pace *pace, uint32_t cost)
{
    bool at_once = pace->ns_per_cost == 0 || pace->dither_ns > 0;

    return pace->next_ns + (at_once ? 0 : (int64_t)gather_ns(pace, cost));
}

double pace_intended(const struct pace *pace, int64_t time_ns)
{
    return time_ns > pace->origin_ns ? (double)(time_ns - pace->origin_ns) * pace->cost_per_ns : 0;
}
