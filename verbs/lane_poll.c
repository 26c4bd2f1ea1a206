/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_poll.h"

#include "adaptive_poll.h"
#include "pingpong.h"

static bool poll_streams(struct verbs_lane *lane, int64_t now_ns)
{
    bool moved = false;

    for (unsigned i = 0; i < lane->receiver_count; i++)
        moved |= verbs_receiver_poll(&lane->receivers[i], now_ns) > 0;
    for (unsigned i = 0; i < lane->sender_count; i++)
        if (!lane->senders[i].base.finished)
            moved |= verbs_sender_reap(&lane->senders[i], now_ns);
    return moved;
}

/* From now on completions wake the worker; those that have come meanwhile are taken here. */
static bool arm(struct verbs_lane *lane, int64_t now_ns)
{
    lane->armed = true;
    for (unsigned i = 0; i < verbs_lane_endpoints(lane); i++)
        ibv_req_notify_cq(verbs_lane_endpoint(lane, i)->qp->cq, 0);
    return poll_streams(lane, now_ns);
}

void verbs_lane_start(struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;

    lane->lane.stop_ns = phase->stop_ns;
    lane->lane.sent_all = lane->sender_count == 0;
    lane->lane.received_all = lane->receiver_count == 0;
    lane->opens_ns = pingpong_opens_ns(phase);
    for (unsigned i = 0; i < lane->sender_count; i++)
        lane->senders[i].moved_ns = phase->start_ns;
    if (lane->traffic->start != NULL)
        lane->traffic->start(lane);
}

static bool all_sent(const struct verbs_lane *lane)
{
    unsigned i = 0;

    while (i < lane->sender_count && lane->senders[i].base.finished)
        i++;
    return i == lane->sender_count;
}

static bool all_received(const struct verbs_lane *lane)
{
    unsigned i = 0;

    while (i < lane->receiver_count && lane->receivers[i].base.finished)
        i++;
    return i == lane->receiver_count;
}

int64_t verbs_lane_work(struct verbs_lane *lane, int64_t now_ns)
{
    bool moved = poll_streams(lane, now_ns);
    int64_t send_ns = CLOCK_NEVER;
    int64_t poll_ns;

    if (now_ns < lane->opens_ns)
        return lane->opens_ns;
    if (lane->lane.started_ns == 0)
        lane->lane.started_ns = now_ns;
    if (!all_sent(lane) || lane->traffic->polls_to_the_end)
        send_ns = lane->traffic->send(lane, now_ns);
    lane->lane.sent_all = all_sent(lane);
    lane->lane.received_all = all_received(lane);
    if (lane->lane.stopped_ns == 0 && lane->lane.sent_all &&
        (lane->sender_count > 0 || now_ns >= lane->lane.stop_ns))
        lane->lane.stopped_ns = now_ns;
    if (lane->lane.sent_all && lane->lane.received_all)
        return CLOCK_NEVER;
    if (!moved && lane->events && arm(lane, now_ns))
        return now_ns;
    poll_ns = look_next(&lane->poll_gap_ns, moved, now_ns);
    return send_ns > now_ns && send_ns < poll_ns ? send_ns : poll_ns;
}
