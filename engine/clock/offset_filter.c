/* SPDX-License-Identifier: BSD-3-Clause */
#include "offset_filter.h"

#include <stdbool.h>
#include <stdlib.h>

static bool is_time(int64_t stamp_ns)
{
    return stamp_ns >= 0 && stamp_ns < INT64_MAX / 8;
}

int64_t offset_drift_ns(int64_t age_ns)
{
    return age_ns != 0 ? llabs(age_ns) / (1000000 / OFFSET_DRIFT_PPM) + 1 : 0;
}

struct offset_estimate offset_of_exchange(const struct offset_stamps *stamps)
{
    int64_t most_ns, least_ns;

    if (!is_time(stamps->origin_ns) || !is_time(stamps->receive_ns) ||
        !is_time(stamps->transmit_ns) || !is_time(stamps->arrive_ns))
        return (struct offset_estimate){0, -1};
    most_ns = stamps->receive_ns - stamps->origin_ns +
              offset_drift_ns(stamps->arrive_ns - stamps->origin_ns);
    least_ns = stamps->transmit_ns - stamps->arrive_ns;
    if (most_ns < least_ns)
        return (struct offset_estimate){0, -1};
    return (struct offset_estimate){least_ns + (most_ns - least_ns) / 2,
                                    (most_ns - least_ns) / 2 + 1};
}

void offset_add(struct offset_filter *filter, int64_t at_ns, struct offset_estimate seen)
{
    struct offset_estimate known = offset_at(filter, at_ns);
    struct offset_sample *newest;

    if (known.bound_ns >= 0 &&
        llabs(seen.offset_ns - known.offset_ns) > seen.bound_ns + known.bound_ns)
        filter->count = 0;
    newest = &filter->samples[(filter->count - 1) % OFFSET_SAMPLES];
    if (filter->count > 0 && at_ns - filter->slot_ns < OFFSET_SLOT_NS) {
        if (seen.bound_ns <= newest->seen.bound_ns + offset_drift_ns(at_ns - newest->at_ns))
            *newest = (struct offset_sample){at_ns, seen};
        return;
    }
    filter->samples[filter->count++ % OFFSET_SAMPLES] = (struct offset_sample){at_ns, seen};
    filter->slot_ns = at_ns;
}

struct offset_estimate offset_at(const struct offset_filter *filter, int64_t at_ns)
{
    uint64_t kept = filter->count < OFFSET_SAMPLES ? filter->count : OFFSET_SAMPLES;
    struct offset_estimate best = {0, -1};

    for (uint64_t back = 1; back <= kept; back++) {
        const struct offset_sample *sample =
            &filter->samples[(filter->count - back) % OFFSET_SAMPLES];
        int64_t drift_ns = offset_drift_ns(at_ns - sample->at_ns);

        if (best.bound_ns >= 0 && sample->at_ns < at_ns && drift_ns >= best.bound_ns)
            break; /* those before it are older still */
        if (best.bound_ns < 0 || sample->seen.bound_ns + drift_ns < best.bound_ns)
            best =
                (struct offset_estimate){sample->seen.offset_ns, sample->seen.bound_ns + drift_ns};
    }
    return best;
}
