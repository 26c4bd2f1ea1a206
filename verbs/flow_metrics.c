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

static void add(struct sum *sum, const struct verbs_endpoint *endpoint)
{
    const struct verbs_qp *qp = endpoint->qp;

    sum->streams++;
    sum->reused += qp->reused;
    if (!qp->reused)
        sum->setup_us += (double)qp->setup_ns / 1e3;
    sum->bytes += (double)verbs_qp_bytes(qp);
}

unsigned verbs_lane_flow_metrics(struct lane *lane, const struct lane_flow *flow,
                                 struct measure *out, unsigned room)
{
    struct verbs_lane *l = (struct verbs_lane *)lane;
    const struct verbs_options *o = &l->options;
    const struct verbs_endpoint *one = NULL;
    struct sum sum = {0};
    unsigned count;

    for (unsigned i = 0; i < l->sender_count + l->receiver_count; i++) {
        const struct verbs_endpoint *endpoint = verbs_lane_endpoint(l, i);

        if (endpoint->flow != flow)
            continue;
        one = endpoint;
        add(&sum, endpoint);
        if (endpoint->source)
            sum.waits += (double)((const struct verbs_sender *)endpoint)->waits;
        else
            sum.lost += (double)((const struct verbs_receiver *)endpoint)->verifier.missed;
    }
    if (one == NULL)
        return 0;
    const struct measure all[] = {
        {"depth", o->depth},
        {"queue_pairs", sum.streams},
        {"signal_every", o->signal_every},
        {"inline_bytes", one->qp->inline_bytes},
        {"path_mtu_bytes", one->qp->mtu},
        {"gid_index", one->qp->config.gid != NULL ? (double)one->qp->config.gid->index : -1},
        {"slots", one->source ? one->theirs.slots : one->qp->config.slots},
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
