/* SPDX-License-Identifier: BSD-3-Clause */
#include "offset.h"

#include <stdlib.h>

/* Stamps beyond 146 years are no clock's; without them no difference can overflow. */
#define STAMP_MOST_NS (INT64_MAX / 2)

static bool sane(int64_t stamp_ns)
{
    return stamp_ns >= 0 && stamp_ns < STAMP_MOST_NS;
}

int64_t offset_drift_ns(int64_t age_ns)
{
    return age_ns ? llabs(age_ns) / (1000000 / OFFSET_DRIFT_PPM) + 1 : 0;
}

void offset_init(struct offset *offset)
{
    *offset = (struct offset){0};
}

static int64_t upper_at(const struct offset *offset, int64_t now_ns)
{
    return offset->upper.limit_ns + offset_drift_ns(now_ns - offset->upper.since_ns);
}

static int64_t lower_at(const struct offset *offset, int64_t now_ns)
{
    return offset->lower.limit_ns - offset_drift_ns(now_ns - offset->lower.since_ns);
}

/* Limits that contradict each other: a clock was stepped. Only what is newer can be right. */
static void settle(const struct offset *offset, struct offset_limit *older, int64_t now_ns)
{
    if (offset->upper.known && offset->lower.known &&
        upper_at(offset, now_ns) < lower_at(offset, now_ns))
        older->known = false;
}

/* How much worse a limit is than one learned `newer_ns` later: negative when it is the newer. */
static int64_t handicap_ns(int64_t newer_ns)
{
    return newer_ns < 0 ? -offset_drift_ns(newer_ns) : offset_drift_ns(newer_ns);
}

void offset_departed(struct offset *offset, int64_t ours_ns, int64_t theirs_ns)
{
    const struct offset_limit *kept = &offset->upper;
    struct offset_limit limit;

    if (!sane(ours_ns) || !sane(theirs_ns))
        return;
    limit = (struct offset_limit){theirs_ns - ours_ns, ours_ns, true};
    if (kept->known && limit.limit_ns >= kept->limit_ns + handicap_ns(ours_ns - kept->since_ns))
        return;
    offset->upper = limit;
    settle(offset, &offset->lower, ours_ns);
}

void offset_arrived(struct offset *offset, int64_t theirs_ns, int64_t ours_ns)
{
    const struct offset_limit *kept = &offset->lower;
    struct offset_limit limit;

    if (!sane(ours_ns) || !sane(theirs_ns))
        return;
    limit = (struct offset_limit){theirs_ns - ours_ns, ours_ns, true};
    if (kept->known && limit.limit_ns <= kept->limit_ns - handicap_ns(ours_ns - kept->since_ns))
        return;
    offset->lower = limit;
    settle(offset, &offset->upper, ours_ns);
}

struct offset_estimate offset_estimate(const struct offset *offset, int64_t now_ns)
{
    int64_t upper_ns, lower_ns;

    if (!offset->upper.known || !offset->lower.known)
        return (struct offset_estimate){0, -1};
    upper_ns = upper_at(offset, now_ns);
    lower_ns = lower_at(offset, now_ns);
    return (struct offset_estimate){
        .offset_ns = lower_ns + (upper_ns - lower_ns) / 2,
        .bound_ns = (upper_ns - lower_ns + 1) / 2,
    };
}
