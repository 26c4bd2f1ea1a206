/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending, run to completion: as many frames as are due, a burst at most, taken from a pool whose
 * buffers all hold the phase's frame already. One body, of which the compiler makes variants:
 *
 *     one    one stream of one size: 12 bytes are written a frame
 *     many   several streams of one size: and their headers, 64 bytes
 *     long   the same, for headers that end behind 64 bytes
 *     mixed  several sizes, unequal shares or addresses of a port: and what of these there is
 *
 * A frame that the driver does not take never was: its sequence number is used again.
 */
#include "tx.h"

#include "addresses.h"

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#define ON_TIME_NS 10000 /* what a round of polls may take */

enum variant { ONE, MANY, LONG, MIXED };

/* Buffers of our pools have no private part and keep their headroom. */
static inline uint8_t *data_of(struct rte_mbuf *frame)
{
    return (uint8_t *)(frame + 1) + RTE_PKTMBUF_HEADROOM;
}

/* rte_mempool_get_bulk copies pointers one by one and backwards: a fifth of what sending a frame
 * through net_null costs. What the core's cache holds is taken as it lies. */
static inline int take(struct rte_mempool *pool, struct rte_mbuf **frames, uint32_t count)
{
    struct rte_mempool_cache *cache = rte_mempool_default_cache(pool, rte_lcore_id());

    if (unlikely(cache == NULL || cache->len < count))
        return rte_mempool_get_bulk(pool, (void **)frames, count);
    cache->len -= count;
    memcpy(frames, cache->objs + cache->len, count * sizeof *frames);
    return 0;
}

static inline uint8_t size_at(const struct dpdk_lane *lane, uint32_t turn, enum variant variant)
{
    return variant == MIXED ? lane->order[turn] : 0;
}

static inline bool has_turns(const struct sender *sender, enum variant variant)
{
    return variant == MIXED && sender->turns.flow != NULL;
}

static inline struct sender_stream *stream_of(const struct sender *sender, struct sender_turn turn,
                                              enum variant variant)
{
    return &sender->streams[has_turns(sender, variant) ? turn.round + sender->turns.flow[turn.at]
                                                       : turn.at];
}

static inline void step(const struct dpdk_lane *lane, struct sender_turn *turn,
                        enum variant variant)
{
    const struct sender *sender = &lane->sender;
    uint32_t flows = lane->lane.request.send_count;

    if (!has_turns(sender, variant)) {
        turn->at = turn->at + 1 < sender->count ? turn->at + 1 : 0;
    } else if (++turn->at == sender->turns.count) {
        turn->at = 0;
        turn->round = turn->round + flows < sender->count ? turn->round + flows : 0;
    }
}

static inline void step_back(const struct dpdk_lane *lane, struct sender_turn *turn,
                             enum variant variant)
{
    const struct sender *sender = &lane->sender;

    if (turn->at > 0) {
        turn->at--;
    } else if (!has_turns(sender, variant)) {
        turn->at = sender->count - 1;
    } else {
        turn->at = sender->turns.count - 1;
        turn->round =
            (turn->round > 0 ? turn->round : sender->count) - lane->lane.request.send_count;
    }
}

static inline void begin_flow(struct flow_side *side, int64_t now_ns)
{
    if (side->first_ns == 0)
        side->first_ns = now_ns;
}

static inline void choose_address(const struct dpdk_lane *lane, uint8_t *frame, uint64_t sequence)
{
    const struct dpdk_options *options = dpdk_options(lane->lane.request.phase);
    const struct signature *signature = (const struct signature *)(frame + lane->shape.payload);

    address_write(frame, options->address_block, be16toh(signature->dst),
                  options->address_first + (uint32_t)(sequence % options->addresses));
}

/* Writes the frames of the stream whose turn it is, and of those that follow; returns their cost
 * to the pace. */
static __rte_always_inline uint64_t fill_many(struct dpdk_lane *lane, struct rte_mbuf **frames,
                                              uint32_t count, int64_t now_ns, enum variant variant)
{
    struct sender *sender = &lane->sender;
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    uint64_t cost = variant == MIXED ? 0 : (uint64_t)count * lane->sizes[0].cost;
    struct sender_turn turn = sender->next;

    for (uint32_t i = 0; i < count; i++) {
        struct sender_stream *stream = stream_of(sender, turn, variant);
        const struct frame_template *template = &stream->template;

        if (unlikely(stream->sequence == 0))
            begin_flow(stream->side, now_ns);
        if (variant == MIXED) {
            uint8_t which = lane->order[stream->turn];

            template = lane_template(lane, stream, which);
            cost += lane->sizes[which].cost;
            frames[i]->pkt_len = frames[i]->data_len = lane->sizes[which].length;
            stream->turn = (uint16_t)(stream->turn + 1u < lane->order_count ? stream->turn + 1 : 0);
        }
        lane_write(lane, data_of(frames[i]), stream, template,
                   variant == MANY ? LANE_SHORT : FRAME_TEMPLATE, &time);
        if (variant == MIXED && dpdk_options(lane->lane.request.phase)->addresses > 1)
            choose_address(lane, data_of(frames[i]), stream->sequence - 1);
        stream->last_ns = now_ns;
        step(lane, &turn, variant);
    }
    sender->next = turn;
    return cost;
}

/* Undoes fill_many for the last `count` frames; returns their cost. */
static uint64_t unfill_many(struct dpdk_lane *lane, uint32_t count, int64_t now_ns,
                            enum variant variant)
{
    struct sender *sender = &lane->sender;
    uint64_t cost = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct sender_stream *stream;

        step_back(lane, &sender->next, variant);
        stream = stream_of(sender, sender->next, variant);
        if (variant == MIXED)
            stream->turn = (uint16_t)((stream->turn > 0 ? stream->turn : lane->order_count) - 1);
        cost += lane->sizes[size_at(lane, stream->turn, variant)].cost;
        if (--stream->sequence == 0 && stream->side->first_ns == now_ns)
            stream->side->first_ns = 0;
    }
    return cost;
}

static inline void fill_one(struct dpdk_lane *lane, struct rte_mbuf **frames, uint32_t count,
                            int64_t now_ns)
{
    struct sender_stream *stream = lane->sender.streams;
    struct signature_time time = signature_time(now_ns - lane->start_ns);
    uint32_t sequence = (uint32_t)stream->sequence;
    uint32_t base = stream->base + time.sum;
    uint32_t offset = lane->shape.payload;

    for (uint32_t i = 0; i < count; i++)
        signature_stamp((struct signature *)(data_of(frames[i]) + offset), sequence++, &time, base);
}

/* Accounts `count` frames of the only stream and size; returns their cost. */
static inline uint64_t count_one(struct dpdk_lane *lane, uint32_t count, int64_t now_ns)
{
    struct sender_stream *stream = lane->sender.streams;

    if (count > 0) {
        stream->sequence += count;
        stream->last_ns = now_ns;
        begin_flow(stream->side, now_ns);
    }
    return (uint64_t)count * lane->sizes[0].cost;
}

/* Streams that are not yet behind the last end of the window are accounted before they change. */
static __rte_noinline void account_before(struct dpdk_lane *lane, uint32_t count,
                                          enum variant variant)
{
    struct sender *sender = &lane->sender;
    struct sender_turn turn = sender->next;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (uint32_t)(stream_of(sender, turn, variant) - sender->streams);

        if (sender->accounting.streams[number].marks != sender->accounting.marks)
            sender_account_stream(lane, number);
        step(lane, &turn, variant);
    }
}

static __rte_always_inline int64_t send_due(struct dpdk_lane *lane, int64_t now_ns,
                                            enum variant variant)
{
    struct sender *sender = &lane->sender;
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint32_t due = pace_allow(&sender->pace, now_ns, sender->cost, lane->burst);
    uint64_t cost = 0;
    uint32_t sent;

    if (due > sender->left)
        due = (uint32_t)sender->left;
    if (due == 0 || take(lane->queue->send_pool, frames, due) != 0)
        return pace_wake(&sender->pace, sender->cost);
    if (unlikely(sender->accounting.marked))
        account_before(lane, due, variant);
    if (variant == ONE)
        fill_one(lane, frames, due, now_ns);
    else
        cost = fill_many(lane, frames, due, now_ns, variant);
    sent = rte_eth_tx_burst(lane->port->id, lane->queue->send, frames, (uint16_t)due);
    if (unlikely(sent < due)) {
        rte_mempool_put_bulk(lane->queue->send_pool, (void **)(frames + sent), due - sent);
        lane->lane.request.count->send_refused += due - sent;
        if (variant != ONE)
            cost -= unfill_many(lane, due - sent, now_ns, variant);
    }
    if (variant == ONE)
        cost = count_one(lane, sent, now_ns);
    sender->left -= sender->left != UINT64_MAX ? sent : 0;
    pace_spend(&sender->pace, cost);
    return pace_wake(&sender->pace, sender->cost);
}

static int64_t send_one(struct dpdk_lane *lane, int64_t now_ns)
{
    return send_due(lane, now_ns, ONE);
}

static int64_t send_many(struct dpdk_lane *lane, int64_t now_ns)
{
    return send_due(lane, now_ns, MANY);
}

static int64_t send_long(struct dpdk_lane *lane, int64_t now_ns)
{
    return send_due(lane, now_ns, LONG);
}

static int64_t send_mixed(struct dpdk_lane *lane, int64_t now_ns)
{
    return send_due(lane, now_ns, MIXED);
}

static const struct {
    const char *name;
    int64_t (*send)(struct dpdk_lane *lane, int64_t now_ns);
} variants[] = {
    [ONE] = {"one", send_one},
    [MANY] = {"many", send_many},
    [LONG] = {"long", send_long},
    [MIXED] = {"mixed", send_mixed},
};

static enum variant choose(const struct dpdk_lane *lane)
{
    if (lane->size_count > 1 || lane->sender.turns.flow != NULL ||
        dpdk_options(lane->lane.request.phase)->addresses > 1)
        return MIXED;
    /* Whoever received our buffer itself may have rewritten its headers (a forwarder). */
    if (lane->sender.count == 1 && !lane->port->by_reference)
        return ONE;
    return lane_short(lane) ? MANY : LONG;
}

/* Until the load falls. What was due before that goes first, at the old rate. */
static int64_t send_falling(struct dpdk_lane *lane, int64_t now_ns)
{
    const struct dpdk_options *options = dpdk_options(lane->lane.request.phase);
    int64_t falls_ns = lane->start_ns + (int64_t)options->falls_after_ns;
    int64_t (*send)(struct dpdk_lane *, int64_t) = variants[choose(lane)].send;
    int64_t wake_ns = send(lane, RTE_MIN(now_ns, falls_ns - 1));

    if (now_ns < falls_ns)
        return RTE_MIN(wake_ns, falls_ns);
    if (lane->sender.pace.next_ns < falls_ns)
        return now_ns;
    pace_slow(&lane->sender.pace, options->falls_to / 100, falls_ns, lane->sender.cost);
    lane->send = send;
    return pace_wake(&lane->sender.pace, lane->sender.cost);
}

/* Notes how many frames of a burst were due at once where a poll came late. */
static int64_t send_burst(struct dpdk_lane *lane, int64_t now_ns)
{
    struct sender *sender = &lane->sender;

    if (sender->left > 0 && now_ns > sender->pace.next_ns + ON_TIME_NS) {
        uint64_t due = RTE_MIN(pace_due(&sender->pace, now_ns, sender->cost), sender->left);

        if (due > 0)
            sender->late_frames = RTE_MAX(sender->late_frames, due - 1);
    }
    return variants[choose(lane)].send(lane, now_ns);
}

int64_t (*sender_variant(const struct dpdk_lane *lane))(struct dpdk_lane *, int64_t)
{
    const struct phase *phase = lane->lane.request.phase;

    if (phase->traffic == TRAFFIC_BURST)
        return send_burst;
    if (phase->traffic == TRAFFIC_STREAM && dpdk_options(phase)->falls_to > 0)
        return send_falling;
    return variants[choose(lane)].send;
}

const char *sender_variant_name(const struct dpdk_lane *lane)
{
    if (lane->forwarder.queue != NULL)
        return "received ones";
    return lane->sender.count > 0 ? variants[choose(lane)].name : "none";
}

int64_t sender_wait(struct dpdk_lane *lane, int64_t now_ns)
{
    (void)now_ns;
    return lane->start_ns;
}

int64_t sender_rest(struct dpdk_lane *lane, int64_t now_ns)
{
    (void)lane;
    (void)now_ns;
    return CLOCK_NEVER;
}

/* So many frames of a stream: whole rounds of the list of sizes, and part of one. */
static struct flow_count count_of(const struct dpdk_lane *lane, uint64_t sequence)
{
    struct flow_count count = {.frames = sequence};
    uint64_t rounds = sequence / lane->order_count;
    uint32_t part = (uint32_t)(sequence % lane->order_count);

    for (uint32_t i = 0; i < lane->order_count; i++) {
        const struct lane_size *size = &lane->sizes[lane->order[i]];
        uint64_t frames = rounds + (i < part);

        count.frame_bytes += frames * size->frame_bytes;
        count.payload_bytes += frames * size->payload_bytes;
    }
    return count;
}

void sender_account_stream(struct dpdk_lane *lane, uint32_t number)
{
    struct sender *sender = &lane->sender;
    const struct sender_stream *stream = &sender->streams[number];
    struct accounted *before = &sender->accounting.streams[number];
    struct flow_count total = count_of(lane, stream->sequence);
    struct flow_count already = count_of(lane, before->frames);
    struct flow_side *side = stream->side;

    side->live.frames += total.frames - already.frames;
    side->live.frame_bytes += total.frame_bytes - already.frame_bytes;
    side->live.payload_bytes += total.payload_bytes - already.payload_bytes;
    lane->lane.offered += total.payload_bytes - already.payload_bytes;
    if (stream->sequence > 0 && stream->last_ns > side->last_ns)
        side->last_ns = stream->last_ns;
    before->frames = stream->sequence;
    accounting_pass(&sender->accounting, before, side, &total);
}

/* What goes to all is sent once, and is of each flow. */
static void copy_to_all(const struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;

    for (uint32_t i = 1; i < request->send_count && request->sends[i].side->is_copy; i++) {
        const struct flow_side *sent = request->sends[0].side;
        struct flow_side *side = request->sends[i].side;

        side->live = sent->live;
        side->window = sent->window;
        side->intended = sent->intended;
        side->first_ns = sent->first_ns;
        side->last_ns = sent->last_ns;
    }
}

unsigned sender_flow_metrics(const struct dpdk_lane *lane, const struct lane_flow *flow,
                             struct flow_metric *out, unsigned room)
{
    const struct lane_request *request = &lane->lane.request;
    const struct sender *sender = &lane->sender;
    enum traffic traffic = request->phase->traffic;
    uint64_t late = traffic == TRAFFIC_BURST ? sender->late_frames : sender->pace.clumped;

    if (flow->src != request->rank || room == 0 ||
        (traffic != TRAFFIC_BURST && traffic != TRAFFIC_STREAM))
        return 0;
    out[0] = (struct flow_metric){"late_frames", (double)late};
    return 1;
}

bool sender_next_burst(struct dpdk_lane *lane, int64_t now_ns)
{
    struct sender *sender = &lane->sender;
    struct pace *pace = &sender->pace;
    int64_t begin_ns = RTE_MAX(pace->next_ns, now_ns) + lane->lane.request.phase->burst.gap_ns;

    if (sender->burst == 0 || sender->bursts_left == 0 || begin_ns >= lane->lane.stop_ns)
        return false;
    pace_restart(pace, begin_ns);
    sender->left = sender->burst;
    sender->bursts_left -= sender->bursts_left != UINT64_MAX;
    return true;
}

bool sender_ends_burst(const struct dpdk_lane *lane)
{
    return lane->sender.burst > 0 && lane->sender.left > 0 &&
           lane->lane.stop_ns == lane->lane.request.phase->stop_ns;
}

/* Frames that were not sent, in turn, as they would have been. */
static void intend_missing(struct dpdk_lane *lane, uint64_t missing)
{
    const struct sender *sender = &lane->sender;
    struct sender_turn turn = sender->next;
    uint64_t turns = sender->turns.flow != NULL ? sender->turns.count : sender->count;
    uint64_t rounds = turns > 0 ? missing / turns : 0;
    enum variant variant = sender->turns.flow != NULL ? MIXED : MANY;

    for (uint64_t i = 0; i < turns; i++) {
        stream_of(sender, turn, variant)->side->intended += rounds + (i < missing % turns);
        step(lane, &turn, variant);
    }
}

void sender_missing(struct dpdk_lane *lane, int64_t end_ns)
{
    struct sender *sender = &lane->sender;

    lane->missing = sender->pace.given_up + pace_due(&sender->pace, end_ns - 1, sender->cost);
    if (lane->lane.request.phase->traffic != TRAFFIC_STREAM)
        lane->missing = sender->left;
    if (sender->bursts_left != UINT64_MAX)
        lane->missing += sender->bursts_left * sender->burst;
}

void sender_account_end(struct dpdk_lane *lane)
{
    struct sender *sender = &lane->sender;

    if (lane->forwarder.queue == NULL && lane->state == LANE_LISTENS) {
        for (uint32_t i = 0; i < sender->count; i++)
            sender->streams[i].side->intended = sender->streams[i].side->live.frames;
        intend_missing(lane, lane->missing);
    }
    copy_to_all(lane);
}
