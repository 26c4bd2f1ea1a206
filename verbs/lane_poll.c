/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker's calls: one round over the streams of a lane.
 */
#include "adaptive_poll.h"
#include "clock.h"
#include "latency_probes.h"
#include "pingpong.h"

#include <string.h>

#define EVENTS_MOST 64

/* --- load --- */

/* Bytes at layer 1 that a message of `bytes` takes: InfiniBand Architecture 5.2, RoCEv2 annex A17.
 * Ethernet: preamble to gap and FCS 38, IPv4 20 or IPv6 40, UDP 8; transport 12 and the checksum 4;
 * InfiniBand: local header 8, both checksums 6. First or only packets hold what the operation
 * needs (16); datagrams 8. */
double verbs_line_bytes(const struct verbs_lane *lane, uint32_t bytes)
{
    const struct verbs_gid *gid = lane->port->gid;
    double packet = 12 + 6 + 8;
    uint32_t packets = (bytes + lane->mtu - 1) / lane->mtu;
    double once = lane->options.operation != VERBS_SEND ? 16 : 0;

    if (lane->port->ethernet)
        packet = 12 + 4 + 38 + 8 + (gid != NULL && verbs_gid_is_ipv4(gid->bytes) ? 20 : 40);
    if (lane->options.service == VERBS_UD)
        packet += 8;
    return bytes + packets * packet + once;
}

/* The part of the line that is payload. */
static double payload_share(const struct verbs_lane *lane)
{
    double payload = 0;
    double line = 0;

    for (uint32_t i = 0; i < lane->lane.request.phase->size_count; i++) {
        payload += lane->sizes[i];
        line += verbs_line_bytes(lane, lane->sizes[i]);
    }
    return payload / line;
}

static void set_pace(struct verbs_lane *lane, struct verbs_flow *flow)
{
    const struct phase *phase = lane->lane.request.phase;
    double rate = flow_load_rate(&lane->lane.request, lane->sizes, payload_share(lane));
    double second = rate + rate * FLOW_LOAD_GATHER_NS / NS_PER_S + 1; /* as tcp */

    flow_load_pace(&flow->pace, phase, rate, phase->traffic == TRAFFIC_PROBE ? 1 : second);
    flow->unpaced = rate <= 0;
}

/* What a forwarder is asked for is what it has taken. */
static void account_intended(const struct verbs_lane *lane, struct verbs_flow *flow, int64_t now_ns)
{
    struct flow_side *side = flow->flow->side;

    if (flow->senders[0].from != NULL) {
        const struct flow_side *from = flow->senders[0].from->endpoint.flow->side;

        side->intended = from->live.payload_bytes + from->corrupted;
    } else {
        flow_load_account(&lane->lane, &flow->pace, side, now_ns);
    }
}

/* --- sending --- */

/* What a forwarder has taken up to the end mark is all that it will send. */
static void follow_end(struct verbs_sender *sender)
{
    sender->stopping |= sender->from != NULL && sender->from->endpoint.finished &&
                        sender->at.sequence == sender->from->verifier.at.sequence;
}

/* One stream's turn; returns the bytes posted. */
static uint64_t send_stream(struct verbs_sender *sender, uint64_t budget, bool stopping,
                            int64_t now_ns)
{
    uint64_t bytes = 0;

    if (sender->from != NULL)
        follow_end(sender);
    else
        sender->stopping |= stopping;
    if (!verbs_sender_at_end(sender))
        bytes = verbs_sender_post(sender, budget, now_ns);
    if (verbs_sender_at_end(sender))
        verbs_sender_finish(sender, now_ns);
    return bytes;
}

/* Posts what the flow's load allows now; returns when the next is due. */
static int64_t send_flow(struct verbs_lane *lane, struct verbs_flow *flow, int64_t now_ns)
{
    bool stopping = now_ns >= lane->lane.stop_ns;
    bool free_running = flow->unpaced || stopping || flow->senders[0].from != NULL;
    uint64_t budget = free_running ? UINT64_MAX : pace_allow(&flow->pace, now_ns, 1, UINT32_MAX);
    uint64_t posted = 0;

    for (unsigned i = 0; i < lane->streams; i++) {
        struct verbs_sender *sender = &flow->senders[(flow->turn + i) % lane->streams];

        if (!sender->endpoint.finished)
            posted += send_stream(sender, budget > posted ? budget - posted : 0, stopping, now_ns);
        if (sender->endpoint.finished && !sender->closed) {
            sender->closed = true;
            flow->open--;
            lane->senders_finished++;
        }
    }
    flow->turn++;
    if (posted > 0) {
        pace_spend(&flow->pace, posted);
        if (flow->flow->side->first_ns == 0)
            flow->flow->side->first_ns = now_ns;
    }
    return free_running || flow->pace.next_ns <= now_ns ? now_ns : flow->pace.next_ns;
}

int64_t verbs_stream_send(struct verbs_lane *lane, int64_t now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        struct verbs_flow *flow = &lane->flows[i];
        int64_t due_ns;

        if (flow->open == 0)
            continue;
        due_ns = send_flow(lane, flow, now_ns);
        account_intended(lane, flow, now_ns);
        wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
    }
    return wake_ns;
}

/* --- looking --- */

static bool look_once(struct verbs_lane *lane, int64_t now_ns)
{
    bool moved = false;

    for (unsigned i = 0; i < lane->receiver_count; i++)
        moved |= verbs_receiver_poll(&lane->receivers[i], now_ns) > 0;
    for (unsigned i = 0; i < lane->sender_count; i++)
        if (!lane->senders[i].endpoint.finished)
            moved |= verbs_sender_reap(&lane->senders[i], now_ns);
    return moved;
}

static void drain_events(struct verbs_lane *lane)
{
    struct ibv_cq *queue;
    void *context;

    for (int i = 0; i < EVENTS_MOST; i++) {
        if (ibv_get_cq_event(lane->port->channel, &queue, &context) != 0)
            return;
        ibv_ack_cq_events(queue, 1);
    }
}

/* What has woken the worker must be noted, else it would wake it for ever; but not by a system call
 * in each round of a busy stream, which arms nothing. A lane that is at its end is never armed
 * again, and completions that were awaited before may still come. */
static void note_wake(struct verbs_lane *lane)
{
    bool quiet = lane->lane.error.text[0] != '\0' ||
                 (lane->lane.sent_all && lane->lane.received_all) || lane->lane.started_ns == 0;
    struct verbs_lane *probes = verbs_probes_lane(lane);
    bool armed = lane->armed || (probes != NULL && probes->armed);

    if (lane->events && (armed || quiet))
        drain_events(lane);
    lane->armed = false;
    if (probes != NULL)
        probes->armed = false;
}

/* From now on completions wake the worker; those that have come meanwhile are taken here. */
static bool arm(struct verbs_lane *lane, int64_t now_ns)
{
    lane->armed = true;
    for (unsigned i = 0; i < lane->receiver_count + lane->sender_count; i++)
        ibv_req_notify_cq(verbs_lane_endpoint(lane, i)->qp->cq, 0);
    return look_once(lane, now_ns);
}

/* --- the worker's calls --- */

void verbs_lane_start(struct lane *lane, int64_t now_ns)
{
    struct verbs_lane *l = (struct verbs_lane *)lane;

    lane->stop_ns = lane->request.phase->stop_ns;
    lane->sent_all = l->sender_count == 0;
    lane->received_all = l->receiver_count == 0;
    l->opens_ns = pingpong_opens_ns(lane->request.phase);
    for (uint32_t i = 0; i < lane->request.send_count && l->replies == NULL; i++)
        set_pace(l, &l->flows[i]);
    for (unsigned i = 0; i < l->sender_count; i++)
        l->senders[i].moved_ns = lane->request.phase->start_ns;
    verbs_probes_start(l, now_ns);
}

/* The lane is through when its probes are, too. */
static void note_ends(struct verbs_lane *l, int64_t now_ns)
{
    const struct verbs_lane *probes = verbs_probes_lane(l);
    bool sent = l->senders_finished == l->sender_count;
    struct lane *lane = &l->lane;

    if (lane->stopped_ns == 0 && sent && (l->sender_count > 0 || now_ns >= lane->stop_ns))
        lane->stopped_ns = now_ns;
    lane->sent_all = sent && (probes == NULL || probes->lane.sent_all);
    lane->received_all =
        l->receivers_finished == l->receiver_count && (probes == NULL || probes->lane.received_all);
}

int64_t verbs_lane_work(struct verbs_lane *l, int64_t now_ns)
{
    struct lane *lane = &l->lane;
    int64_t send_ns = CLOCK_NEVER;
    int64_t look_ns;
    bool moved = look_once(l, now_ns);

    if (now_ns < l->opens_ns)
        return l->opens_ns;
    if (lane->started_ns == 0)
        lane->started_ns = now_ns;
    /* Steps take end marks there, too, which may come when ours are long acknowledged. */
    if (!lane->sent_all || l->schedule != NULL)
        send_ns = l->send(l, now_ns);
    note_ends(l, now_ns);
    if (lane->sent_all && lane->received_all)
        return CLOCK_NEVER;
    if (!moved && l->events && arm(l, now_ns))
        return now_ns;
    look_ns = look_next(&l->look_ns, moved, now_ns);
    return send_ns > now_ns && send_ns < look_ns ? send_ns : look_ns;
}

int64_t verbs_lane_poll(struct lane *lane, int64_t now_ns)
{
    struct verbs_lane *l = (struct verbs_lane *)lane;
    int64_t probe_ns = CLOCK_NEVER;
    int64_t work_ns;

    note_wake(l);
    if (lane->error.text[0] != '\0')
        return CLOCK_NEVER;
    if (l->probes != NULL)
        probe_ns = verbs_probes_poll(l, now_ns);
    work_ns = verbs_lane_work(l, now_ns);
    return probe_ns < work_ns ? probe_ns : work_ns;
}
