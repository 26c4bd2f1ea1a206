/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane.h"

#include <string.h>

/* The streams of a flow taken together. */
struct sum {
    unsigned streams;
    unsigned reused;
    double waits;
    double setup_us;
    double bytes;
    double lost;
};

static void add(struct sum *sum, const struct verbs_end *end)
{
    const struct verbs_pair *pair = end->pair;

    sum->streams++;
    sum->reused += pair->reused;
    if (!pair->reused)
        sum->setup_us += (double)pair->setup_ns / 1e3;
    sum->bytes += (double)verbs_pair_bytes(pair);
}

unsigned verbs_lane_measure(struct lane *lane, const struct lane_flow *flow, struct measure *out,
                            unsigned room)
{
    struct verbs_lane *l = (struct verbs_lane *)lane;
    const struct verbs_options *o = &l->options;
    const struct verbs_end *one = NULL;
    struct sum sum = {0};
    unsigned count;

    for (unsigned i = 0; i < l->out_count + l->in_count; i++) {
        const struct verbs_end *end = verbs_lane_end(l, i);

        if (end->flow != flow)
            continue;
        one = end;
        add(&sum, end);
        if (end->source)
            sum.waits += (double)((const struct verbs_out *)end)->waits;
        else
            sum.lost += (double)((const struct verbs_in *)end)->check.missed;
    }
    if (one == NULL)
        return 0;
    const struct measure all[] = {
        {"depth", o->depth},
        {"queue_pairs", sum.streams},
        {"signal_every", o->signal_every},
        {"inline_bytes", one->pair->inline_bytes},
        {"path_mtu_bytes", one->pair->mtu},
        {"gid_index", one->pair->need.gid != NULL ? (double)one->pair->need.gid->index : -1},
        {"slots", one->source ? one->theirs.slots : one->pair->need.slots},
        {"reused_queue_pairs", sum.reused},
        {"setup_us", sum.setup_us},
        {"queue_pair_bytes", sum.bytes / sum.streams},
        {"retry", o->retry},
        {"rnr_retry", o->rnr_retry},
        {"timeout_us", 4.096 * (double)(1u << o->timeout)},
        {one->source ? "credit_waits" : "missed_messages", one->source ? sum.waits : sum.lost},
    };
    count = sizeof all / sizeof all[0] < room ? sizeof all / sizeof all[0] : room;
    memcpy(out, all, count * sizeof *out);
    return count;
}
