/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What has passed, from the streams' own numbers into their flows' counts: some streams at a time.
 */
#include "frame_lane.h"

/* Adds a stream's totals to the ends of the window that it has yet to pass. */
static void pass_marks(const struct accounting *accounting, struct accounted *stream,
                       struct flow_side *side, const struct flow_count *total)
{
    for (; stream->marks < accounting->marks; stream->marks++)
        flow_count_add(stream->marks == 0 ? &side->window.open : &side->window.close, total);
}

/* So many frames of a stream: whole rounds of the list of sizes, and part of one. */
static struct flow_count count_of(const struct frame_lane *lane, uint64_t sequence)
{
    struct flow_count count = {.frames = sequence};
    uint64_t rounds = sequence / lane->order_count;
    uint32_t part = (uint32_t)(sequence % lane->order_count);

    for (uint32_t i = 0; i < lane->order_count; i++) {
        const struct frame_size *size = &lane->sizes[lane->order[i]];
        uint64_t frames = rounds + (i < part);

        count.frame_bytes += frames * size->frame_bytes;
        count.payload_bytes += frames * size->payload_bytes;
    }
    return count;
}

void frame_account_sent(struct frame_lane *lane, uint32_t number)
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
    pass_marks(&sender->accounting, before, side, &total);
}

void frame_account_received(struct frame_lane *lane, uint32_t number)
{
    struct receiver *receiver = &lane->receiver;
    const struct receiver_stream *stream = &receiver->streams[number];
    struct accounted *before = &receiver->accounting.streams[number];
    struct flow_side *side = stream->side;
    uint32_t offset = lane->offset, outside = lane->conf.outside;
    uint64_t frames = stream->frames - before->frames, bytes = stream->bytes - before->bytes;
    const struct flow_count total = {
        .frames = stream->frames,
        .frame_bytes = stream->bytes + stream->frames * outside,
        .payload_bytes = stream->bytes - stream->frames * offset,
    };

    side->numbers += stream->sequence.next - before->numbers;
    side->live.frames += frames;
    side->live.frame_bytes += bytes + frames * outside;
    side->live.payload_bytes += bytes - frames * offset;
    lane->lane.delivered += bytes - frames * offset;
    lane->lane.line_bytes += bytes + frames * (outside + FRAME_OVERHEAD_L1);
    if (stream->last_ns > side->last_ns)
        side->last_ns = stream->last_ns;
    before->frames = stream->frames;
    before->bytes = stream->bytes;
    before->numbers = stream->sequence.next;
    pass_marks(&receiver->accounting, before, side, &total);
}

/* Some more streams; true: all are now. */
static bool account_streams(struct frame_lane *lane, struct accounting *accounting, uint32_t count,
                            void (*account)(struct frame_lane *lane, uint32_t number))
{
    uint32_t most = count - accounting->next < FRAME_ACCOUNT_SOME ? count - accounting->next
                                                                  : FRAME_ACCOUNT_SOME;

    for (uint32_t i = 0; i < most; i++)
        account(lane, accounting->next++);
    if (accounting->next < count)
        return false;
    accounting->marked = false;
    return true;
}

static bool account_some(struct frame_lane *lane)
{
    struct receiver *receiver = &lane->receiver;
    struct sender *sender = &lane->sender;
    bool forwards = lane->forwarder.queue != NULL; /* it counts sizes as they come */
    bool received = account_streams(lane, &receiver->accounting,
                                    receiver->count * receiver->sources, frame_account_received);
    bool sent = account_streams(lane, &sender->accounting, forwards ? 0 : sender->count,
                                frame_account_sent);

    if (!received || !sent)
        return false;
    if (forwards)
        lane->lane.offered = sender->streams->side->live.payload_bytes;
    receiver->accounting.next = sender->accounting.next = 0;
    return true;
}

static void mark(struct accounting *accounting)
{
    accounting->marks++;
    accounting->marked = true;
    accounting->next = 0;
}

static void mark_window(struct frame_lane *lane)
{
    bool opens = lane->receiver.accounting.marks == 0;
    struct flow_side *side;

    mark(&lane->receiver.accounting);
    mark(&lane->sender.accounting);
    if (lane->forwarder.queue == NULL)
        return;
    side = lane->sender.streams->side; /* one flow each way */
    *(opens ? &side->window.open : &side->window.close) = side->live;
    while (!account_some(lane))
        ;
}

/* What goes to all is sent once, and is of each flow. */
static void copy_to_all(const struct lane_request *request)
{
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

/* What the load asked for: what was sent, and what was not, in turn, as it would have been. */
static void account_intended(struct frame_lane *lane)
{
    const struct sender *sender = &lane->sender;
    bool turns = sender_has_turns(sender);
    uint64_t count = turns ? sender->turns.count : sender->count;
    struct rotation next = sender->next;

    lane->train = 1;
    next.run = 0;
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

    if (lane->pingpong != NULL)
        return true; /* frames count as they go and come */
    if (what == ACCOUNT_SOME)
        return account_some(lane);
    if (what == ACCOUNT_MARK) {
        mark_window(lane);
        return false;
    }
    lane->receiver.accounting.next = lane->sender.accounting.next = 0;
    while (!account_some(lane))
        ;
    if (lane->forwarder.queue == NULL && lane->state == FRAME_LISTENS)
        account_intended(lane);
    copy_to_all(&base->request);
    return true;
}
