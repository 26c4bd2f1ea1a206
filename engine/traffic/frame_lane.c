/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work of a lane of frames during a phase, except for the hot path: timers, unexpected frames, and
 * counts.
 */
#include "frame_lane.h"

#include <string.h>
#include <sys/param.h>

#define ON_TIME_NS 10000 /* time that a round of polls may take */
#define FALL_BURSTS 64u  /* bursts that may still be due when the load falls */

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return MIN(a_ns, b_ns);
}

/* --- poll -------------------------------------------------------------------------------------*/

static int64_t send_nothing(struct frame_lane *lane, int64_t now_ns)
{
    (void)lane;
    (void)now_ns;
    return CLOCK_NEVER;
}

/* End the sending of the load, and store how many frames of the load were not sent. */
static void end_sending(struct frame_lane *lane, int64_t now_ns)
{
    struct sender *sender = &lane->sender;
    int64_t end_ns = MIN(lane->lane.stop_ns, now_ns);

    if (lane->lane.request.phase->traffic == TRAFFIC_STREAM && lane->options.window_frames == 0)
        sender->missing = sender->pace.given_up + pace_due(&sender->pace, end_ns - 1, sender->cost);
    else
        sender->missing = sender->left;
    if (sender->bursts_left != UINT64_MAX)
        sender->missing += sender->bursts_left * sender->burst;
    lane->send = send_nothing;
    lane->state = FRAME_LISTENS;
    frame_flush_later(lane, now_ns - FRAME_FLUSH_NS);
}

/* Begin the next burst, one gap after the burst that was sent completely; return false if there is
 * no further burst. */
static bool next_burst(struct frame_lane *lane, int64_t now_ns)
{
    struct sender *sender = &lane->sender;
    int64_t begin_ns = MAX(sender->pace.next_ns, now_ns) + lane->lane.request.phase->burst.gap_ns;

    if (sender->burst == 0 || sender->bursts_left == 0 || begin_ns >= lane->lane.stop_ns)
        return false;
    pace_restart(&sender->pace, begin_ns);
    sender->left = sender->burst;
    sender->bursts_left -= sender->bursts_left != UINT64_MAX;
    return true;
}

/* Handle the lane's timers: start, fall of the load, stop, probes, measuring. A worker that wakes
 * after the stop still sends the frames that were due before the stop, up to catch_up frames. A
 * burst is completed after the stop, unless the worker has set an earlier stop. */
static void timer(struct frame_lane *lane, int64_t now_ns)
{
    struct lane *base = &lane->lane;
    struct sender *sender = &lane->sender;
    const struct phase *phase = base->request.phase;
    int64_t from_ns = phase_measures_from(phase), to_ns = phase_measures_to(phase);
    bool timing = now_ns >= from_ns && now_ns < to_ns;
    const char *name;
    bool ends_burst = sender->burst > 0 && sender->left > 0 && base->stop_ns == phase->stop_ns;

    if (lane->state == FRAME_WAITS && base->stop_ns <= lane->start_ns)
        end_sending(lane, lane->start_ns); /* ended before it began */
    if (lane->state == FRAME_WAITS && now_ns >= lane->start_ns) {
        bool generates = sender->count > 0 && lane->forwarder.queue == NULL;

        lane->state = generates ? FRAME_SENDS : FRAME_LISTENS;
        base->started_ns = lane->prober.pingpong ? 0 : now_ns;
        lane->send = lane->prober.pingpong ? frame_pingpong
                     : sender->count > 0   ? lane->conf.ops->choose_send(lane, &name)
                                           : send_nothing;
    }
    /* The load falls (RFC 2544, 26.5). Frames that were due before go first, at the old rate. */
    if (lane->state == FRAME_SENDS && now_ns >= lane->falls_ns) {
        for (unsigned i = 0; i < FALL_BURSTS && sender->pace.next_ns < lane->falls_ns; i++)
            (void)lane->send(lane, lane->falls_ns - 1);
        pace_slow(&sender->pace, lane->options.falls_to / 100, lane->falls_ns, sender->cost);
        lane->falls_ns = CLOCK_NEVER;
    }
    if (lane->state == FRAME_SENDS && now_ns >= base->stop_ns && !ends_burst) {
        (void)lane->send(lane, base->stop_ns - 1);
        end_sending(lane, now_ns);
    }
    if (base->stopped_ns == 0 && now_ns >= base->stop_ns)
        base->stopped_ns = now_ns;
    if (lane->receiver.delay_stats != NULL && timing != lane->timing) {
        lane->timing = timing;
        lane->receive = lane->conf.ops->choose_receive(lane);
    }
    lane->timer_ns = earlier(lane->falls_ns, frame_probe(lane, now_ns));
    if (lane->conf.ops->housekeep != NULL)
        lane->timer_ns = earlier(lane->timer_ns, lane->conf.ops->housekeep(lane, now_ns));
    if (lane->receiver.delay_stats != NULL && now_ns < to_ns)
        lane->timer_ns = earlier(lane->timer_ns, timing ? to_ns : from_ns);
    if (lane->state == FRAME_WAITS)
        lane->timer_ns = earlier(lane->timer_ns, lane->start_ns);
}

int64_t frame_lane_poll(struct lane *base, int64_t now_ns)
{
    struct frame_lane *lane = (struct frame_lane *)base;
    int64_t next_ns = CLOCK_NEVER;
    uint32_t received;

    if (__builtin_expect(base->error.text[0] != '\0', false))
        return CLOCK_NEVER;
    if (__builtin_expect(base->woken, false)) {
        base->woken = false;
        if (lane->conf.ops->woken != NULL && !lane->prober.pingpong)
            lane->conf.ops->woken(lane);
    }
    if (__builtin_expect(lane->state == FRAME_NEW, false))
        frame_lane_begin(lane, now_ns);
    if (now_ns >= lane->timer_ns || now_ns >= base->stop_ns)
        timer(lane, now_ns);
    /* A late poll sends several frames of a burst at once: keep the maximum. */
    if (__builtin_expect(lane->sender.burst > 0, false) && lane->state == FRAME_SENDS &&
        lane->sender.left > 0 && now_ns > lane->sender.pace.next_ns + ON_TIME_NS) {
        uint64_t due = pace_due(&lane->sender.pace, now_ns, lane->sender.cost);

        due = MIN(due, lane->sender.left);
        if (due > lane->sender.late_frames)
            lane->sender.late_frames = due - 1;
    }
    if (!lane->responds)
        next_ns = lane->send(lane, now_ns);
    received = lane->receive(lane, now_ns);
    if (lane->responds)
        next_ns = lane->send(lane, now_ns);
    if (lane->sender.left == 0 && lane->state == FRAME_SENDS && !next_burst(lane, now_ns)) {
        if (base->request.phase->traffic != TRAFFIC_STREAM) /* otherwise it ends with the others */
            base->stopped_ns = now_ns;
        end_sending(lane, now_ns);
    }
    /* A transfer is complete when the probes beside it are answered, too. */
    base->rx_done = lane->receiver.left == 0 && lane->prober.in_flight <= 0;
    if (__builtin_expect(now_ns >= lane->flush_ns, false))
        lane->flush_ns = lane->conf.ops->flush(lane) ? now_ns + FRAME_FLUSH_NS : CLOCK_NEVER;
    if (lane->state == FRAME_LISTENS && (lane->send != frame_pingpong || lane->prober.ended))
        base->tx_done =
            lane->forwarder.head == lane->forwarder.tail && lane->flush_ns == CLOCK_NEVER;
    next_ns = earlier(next_ns, MIN(lane->prober.next_ns, lane->flush_ns));
    if (lane->prober.pingpong && base->wake_fd < 0)
        next_ns = earlier(next_ns, adaptive_poll(&lane->look_gap_ns, received > 0, now_ns));
    if (lane->state == FRAME_LISTENS && base->stopped_ns == 0 && lane->sender.count > 0)
        next_ns = earlier(next_ns, base->stop_ns);
    return received == lane->conf.receive_burst ? now_ns : next_ns;
}

/* --- frames beside the load -------------------------------------------------------------------*/

static bool tags_resemble(uint16_t a, uint16_t b, bool whole)
{
    return whole ? a == b : __builtin_popcount(a ^ b) <= 1;
}

/* Classify a frame by its signature; if the signature is damaged, by the fields that still match. A
 * damaged tag may differ in one bit: the tags of load and probes differ in eight. */
void frame_lane_unexpected(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns)
{
    struct receiver *receiver = &lane->receiver;
    const struct lane_request *request = &lane->lane.request;
    struct port_count *count = request->count;
    const struct signature *signature = seen->signature;
    const struct prober *prober = &lane->prober;
    bool whole = signature_sound(signature);
    bool probe = (prober->answers && tags_resemble(signature->tag, lane->tags[0], whole)) ||
                 ((prober->answers || prober->pingpong) &&
                  tags_resemble(signature->tag, lane->tags[1], whole));
    bool tagged = signature->tag == receiver->tag || probe;
    bool here = signature->dst == (probe ? receiver->own : receiver->rank);
    uint32_t flow = receiver->flow_of[be16toh(signature->src)];

    if ((probe || prober->pingpong) && frame_single_take(lane, seen, now_ns))
        return;
    /* A frame whose signature is damaged belongs to the flow from its sender's address. */
    for (uint32_t i = 0; flow == 0 && !whole && seen->mac != NULL && i < receiver->count; i++)
        if (memcmp(frame_partner(lane, request->send_count + i), seen->mac, FRAME_MAC) == 0)
            flow = i + 1;
    if (tagged && whole && !here && signature->src != receiver->own) {
        struct misdelivered_flow other = {1, be16toh(signature->src), be16toh(signature->dst)};

        count->probes_received += probe; /* its destination counts it as lost */
        count->misdelivered += !probe;
        if (!probe)
            misdelivered_add(&count->misdelivered_flows, &other);
    } else if (probe && seen->ours) {
        count->probes_received++; /* a damaged one counts as lost */
    } else if (flow != 0 && seen->ours && (tagged || (here && !whole))) {
        lane_receives(request)[flow - 1].side.corrupted++;
        lane->lane.arrived_ns = now_ns;
    } else {
        count->foreign++;
    }
}

/* --- counts -----------------------------------------------------------------------------------*/

/* Sum the counts of a flow's streams into the flow's live counts. The counts of sent streams follow
 * from their sequence numbers: whole rounds of the list of sizes, and part of one round. */
static void sum_streams(const struct frame_lane *lane, uint32_t number, struct flow_side *side)
{
    const struct receiver *receiver = &lane->receiver;
    const struct sender *sender = &lane->sender;
    uint32_t sends = lane->lane.request.send_count, count = lane->order_count;
    struct flow_count live = {0};

    side->numbers = 0;
    for (uint32_t i = 0; number < sends && i < receiver->sources; i++) {
        const struct sender_stream *stream =
            &sender->streams[sender->index_of[(size_t)number * receiver->sources + i]];

        live.frames += stream->sequence;
        for (uint32_t k = 0; k < count; k++) {
            const struct frame_size *size = &lane->sizes[lane->order[k]];
            uint64_t frames = stream->sequence / count + (k < stream->sequence % count);

            live.frame_bytes += frames * size->frame_bytes;
            live.payload_bytes += frames * size->payload_bytes;
        }
        if (stream->sequence > 0)
            side->last_ns = MAX(side->last_ns, stream->last_ns);
    }
    for (uint32_t i = 0; number >= sends && i < receiver->sources; i++) {
        const struct receiver_stream *stream =
            &receiver->streams[(size_t)(number - sends) * receiver->sources + i];

        live.frames += stream->frames;
        live.frame_bytes += stream->bytes + stream->frames * lane->conf.outside;
        live.payload_bytes += stream->bytes - stream->frames * lane->conf.offset;
        side->numbers += stream->sequence.next;
        side->last_ns = MAX(side->last_ns, stream->last_ns);
    }
    side->live = live;
}

void frame_account_flow(struct frame_lane *lane, uint32_t number)
{
    struct accounting *accounting = &lane->accounting;
    uint32_t sends = lane->lane.request.send_count;
    struct flow_side *side = &lane->lane.request.flows[number].side;
    /* A ping-pong counts each frame at once, and so does a forwarder each frame that it sends. */
    bool counted =
        lane->prober.pingpong || side->is_copy || (number < sends && lane->forwarder.queue != NULL);

    if (!counted)
        sum_streams(lane, number, side);
    lane_count_moved(&accounting->moved, side, number < sends);
    for (uint8_t *marks = &accounting->marks[number]; *marks < accounting->ends; ++*marks)
        *(*marks == 0 ? &side->window.open : &side->window.close) = side->live;
}

/* Update the counts of the next flows, of at most `most` streams in total; return true if all flows
 * are up to date now. */
static bool account_some(struct frame_lane *lane, uint32_t most)
{
    const struct lane_request *request = &lane->lane.request;
    struct accounting *accounting = &lane->accounting;
    uint32_t flows = request->send_count + request->receive_count;

    for (uint32_t streams = 0; accounting->next < flows && streams < most;
         streams += lane->receiver.sources)
        frame_account_flow(lane, accounting->next++);
    if (accounting->next < flows)
        return false;
    lane->lane.moved = accounting->moved;
    accounting->moved = (struct lane_moved){0};
    accounting->next = 0;
    accounting->marked = false;
    return true;
}

/* Set the number of intended frames of each flow: its sent frames, and its share of the frames that
 * were not sent. These are divided in the order in which the flows would have sent them. */
static void account_intended(struct frame_lane *lane)
{
    const struct sender *sender = &lane->sender;
    bool turns = sender_has_turns(sender);
    uint64_t count = turns ? sender->turns.count : sender->count;
    struct rotation next = sender->next;

    for (uint32_t i = 0; i < sender->count; i++)
        sender->streams[i].side->intended = sender->streams[i].side->live.frames;
    for (uint64_t i = 0; i < count; i++) {
        rotation_stream(sender, &next, turns)->side->intended +=
            sender->missing / count + (i < sender->missing % count);
        rotation_step(lane, &next, turns);
    }
}

bool frame_lane_account(struct lane *base, enum account what)
{
    struct frame_lane *lane = (struct frame_lane *)base;
    struct lane_flow *flows = base->request.flows;
    bool counts_itself = lane->prober.pingpong || lane->forwarder.queue != NULL;

    if (what == ACCOUNT_SOME)
        return account_some(lane, FRAME_ACCOUNT_SOME);
    lane->accounting.next = 0;
    lane->accounting.moved = (struct lane_moved){0};
    if (what == ACCOUNT_MARK) {
        lane->accounting.ends++;
        lane->accounting.marked = !counts_itself;
    }
    if (what == ACCOUNT_ALL || counts_itself)
        (void)account_some(lane, UINT32_MAX);
    if (what == ACCOUNT_MARK)
        return false;
    if (!counts_itself && lane->state == FRAME_LISTENS)
        account_intended(lane);
    /* Frames to all ports are sent once, and count for each flow. */
    for (uint32_t i = 1; i < base->request.send_count && flows[i].side.is_copy; i++) {
        flows[i].side = flows[0].side;
        flows[i].side.is_copy = true;
    }
    return true;
}

/* --- results ----------------------------------------------------------------------------------*/

void frame_lane_read_flow(struct lane *base, const struct lane_flow *flow,
                          struct flow_reading *reading)
{
    const struct frame_lane *lane = (const struct frame_lane *)base;
    const struct receiver *receiver = &lane->receiver;
    enum traffic traffic = base->request.phase->traffic;
    bool bursts = traffic == TRAFFIC_BURST;
    uint32_t index = flow->src < PATTERN_RANKS_MAX ? receiver->flow_of[flow->src] : 0;

    reading->metric_count = 0;
    if (flow->src == base->request.rank && (bursts || traffic == TRAFFIC_STREAM))
        reading->metrics[reading->metric_count++] = (struct flow_metric){
            "late_frames", (double)(bursts ? lane->sender.late_frames : lane->sender.pace.clumped)};
    if (flow->src != base->request.rank && flow->dst == base->request.rank &&
        lane->options.falls_to > 0) {
        reading->metrics[reading->metric_count++] =
            (struct flow_metric){"numbers", (double)flow->side.numbers};
        reading->metrics[reading->metric_count++] =
            (struct flow_metric){"gap_ns", (double)flow->side.gap_ns};
    }
    prober_read(&lane->prober, flow, reading);
    if (receiver->delay_stats == NULL || index == 0)
        return;
    delay_stats_sum(&receiver->delay_stats[(size_t)(index - 1) * receiver->sources],
                    receiver->sources, receiver->buckets,
                    &reading->latency[LATENCY_ONE_WAY].histogram);
    reading->measured[LATENCY_ONE_WAY] = true;
}
