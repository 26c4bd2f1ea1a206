/* SPDX-License-Identifier: BSD-3-Clause */
#include "message_lane.h"

#include "clock.h"
#include "prng.h"
#include "schedule_executor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STEPS_MOST 64u             /* maximum steps of a schedule in one poll */
#define BARRIER 0x80u              /* in a header's stream: a barrier's message, with its bits */
#define GATHER_MOST (256.0 * 1024) /* bytes */
#define CATCH_UP_MOST 4e9          /* bytes: a pace counts bytes in 32 bits */
#define CHECK_NS (10 * NS_PER_MS)  /* between messages of a connectivity check */
/* Time after which a probe over an unreliable service counts as lost; it may wait in queues on its
 * way. */
#define PROBE_TIMEOUT_NS (500 * NS_PER_MS)

/* --- preparation --- */

static void make_end(struct message_lane *lane, unsigned index, const struct message_plan *plan)
{
    static const uint32_t probe_sizes[] = {MESSAGE_PROBE_BYTES};
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    struct message_end *end = message_lane_end(lane, index);
    bool sends = index < lane->out_count;
    unsigned place = sends ? index : index - lane->out_count;
    unsigned ends = (sends ? request->send_count : request->receive_count) * lane->stride;
    bool back = place >= ends;
    unsigned number = back ? lane->stride : place % lane->stride;
    unsigned flow = back ? place - ends : place / lane->stride;
    bool loads = number < lane->streams;
    bool probes = lane->probe_fps > 0 && !loads;
    uint64_t total = FLOW_ENDLESS;

    if (loads && phase->traffic == TRAFFIC_TRANSFER)
        total = phase->transfer_bytes / lane->streams +
                (number < phase->transfer_bytes % lane->streams);
    for (uint32_t i = 0; message_lane_checks(lane) && i < phase->probes; i++)
        total = (i > 0 ? total : 0) + lane->sizes[i % phase->size_count];
    end->lane = lane;
    end->sends = sends;
    end->flow = &request->flows[flow + (sends != back ? 0 : request->send_count)];
    end->use = back                                          ? MESSAGE_ANSWER
               : lane->replies && number + 1 == lane->stride ? MESSAGE_ASK
                                                             : MESSAGE_LOAD;
    end->window = UINT32_MAX;
    end->piece_bytes = UINT32_MAX - MESSAGE_HEADER_BYTES;
    end->stream = (struct message_stream){
        .script = {.sizes = probes ? probe_sizes : lane->sizes,
                   .size_count = probes ? 1 : phase->size_count,
                   .total = total,
                   .stream = (uint16_t)number,
                   .tag = phase->tag,
                   .src = (uint16_t)(back ? end->flow->dst : end->flow->src),
                   .dst = (uint16_t)(back ? end->flow->src : end->flow->dst)},
        .side = loads ? &end->flow->side : &end->own,
        .count = request->count,
        .unreliable = plan->unreliable,
        .sampled = plan->sampled && loads,
    };
    message_cursor_start(&end->stream.at, &end->stream.script);
    if (sends && loads)
        lane->flows[flow].open++;
}

static void pair(struct message_lane *lane, unsigned out, unsigned in)
{
    struct message_end *sender = message_lane_end(lane, out);
    struct message_end *receiver = message_lane_end(lane, lane->out_count + in);

    sender->pair = receiver;
    receiver->pair = sender;
}

static void pair_ends(struct message_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    unsigned last = lane->stride - 1;

    for (uint32_t i = 0; lane->replies && i < request->receive_count; i++)
        pair(lane, request->send_count * lane->stride + i, i * lane->stride + last);
    for (uint32_t i = 0; lane->replies && i < request->send_count; i++)
        pair(lane, i * lane->stride + last, request->receive_count * lane->stride + i);
    for (uint32_t i = 0; lane->schedules && i < request->send_count; i++)
        if (lane->flow_of[1][request->flows[i].dst] > 0)
            pair(lane, i, lane->flow_of[1][request->flows[i].dst] - 1);
    for (unsigned i = 0; lane->forwards && i < lane->streams; i++)
        pair(lane, i, i);
}

/* Make the ends of all streams of a lane, the tables of its flows, and its prober. */
static int make_ends(struct message_lane *lane, const struct message_plan *plan)
{
    const struct lane_request *request = &lane->lane.request;

    lane->out_count = request->send_count * lane->stride;
    lane->in_count = request->receive_count * lane->stride;
    lane->out_count += lane->replies ? request->receive_count : 0;
    lane->in_count += lane->replies ? request->send_count : 0;
    /* Each list has one element more than it needs: an empty list is not NULL. */
    lane->flows = calloc(request->send_count + 1, sizeof *lane->flows);
    lane->outs = calloc(lane->out_count + 1, lane->hooks->out_bytes);
    lane->ins = calloc(lane->in_count + 1, lane->hooks->in_bytes);
    lane->op_done =
        calloc(lane->schedules ? request->executor->op_count + 1 : 1, sizeof *lane->op_done);
    for (unsigned i = 0; i < 2; i++)
        lane->flow_of[i] = calloc(request->ranks + 1, sizeof *lane->flow_of[i]);
    if (lane->flows == NULL || lane->outs == NULL || lane->ins == NULL || lane->op_done == NULL ||
        lane->flow_of[0] == NULL || lane->flow_of[1] == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < request->send_count; i++) {
        lane->flows[i].flow = &request->flows[i];
        lane->flow_of[0][request->flows[i].dst] = i + 1;
    }
    for (uint32_t i = 0; i < request->receive_count; i++)
        lane->flow_of[1][lane_receives(request)[i].src] = i + 1;
    for (unsigned i = 0; i < message_lane_ends(lane); i++)
        make_end(lane, i, plan);
    pair_ends(lane);
    return lane->schedules ? 0 : prober_make(&lane->prober, &lane->lane, lane->probe_fps, NULL);
}

/* Check a request against the rules that all transports of messages share. Sizes and a load are
 * present: documents.c rejects a document without them. */
static int check(const struct message_lane *lane, const struct message_plan *plan, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    bool echoes = request->phase->traffic == TRAFFIC_PINGPONG;

    if ((lane->schedules || echoes) && plan->streams > 1)
        return err_set(err, -EINVAL, "%s: %s uses only one stream, but %u are set: remove %s",
                       plan->label, lane->schedules ? "a step's message" : "a ping-pong message",
                       plan->streams, plan->streams_key);
    if (lane->forwards && echoes)
        return err_set(err, -EINVAL, "%s: a ping-pong can't be forwarded: remove forward",
                       plan->label);
    if (lane->forwards && (request->send_count != 1 || request->receive_count != 1))
        return err_set(
            err, -EINVAL,
            "%s: %s can forward one received flow as one sent flow per phase, not %u flows as %u",
            plan->label, plan->transport, request->receive_count, request->send_count);
    if (lane->forwards && plan->unreliable)
        return err_set(err, -EINVAL, "%s: forwarding needs a reliable service: use service rc",
                       plan->label);
    return 0;
}

int message_lane_make(struct message_lane *lane, const struct message_hooks *hooks,
                      const struct message_plan *plan, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    int rc;

    lane->lane.judges_order = plan->unreliable;
    lane->hooks = hooks;
    lane->label = plan->label;
    for (uint32_t i = 0; i < request->send_count; i++)
        lane->forwards |= request->flows[i].role == PATTERN_FORWARD;
    lane->schedules = lane->stepping = phase->traffic == TRAFFIC_SCHEDULE;
    lane->unreliable = plan->unreliable;
    rc = check(lane, plan, err);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < phase->size_count; i++)
        lane->sizes[i] = message_lane_checks(lane) && phase->sizes[i] > plan->check_bytes
                             ? plan->check_bytes
                             : phase->sizes[i];
    lane->streams = message_lane_checks(lane) || plan->streams == 0 ? 1 : plan->streams;
    if (phase->traffic == TRAFFIC_STREAM && !lane->forwards)
        lane->probe_fps = plan->probe_fps;
    lane->stride = lane->streams + (lane->probe_fps > 0);
    lane->replies = lane->probe_fps > 0 || phase->traffic == TRAFFIC_PINGPONG;
    rc = make_ends(lane, plan);
    return rc < 0 ? err_set(err, rc, "%s: out of memory", plan->label) : 0;
}

void message_lane_free(struct message_lane *lane)
{
    prober_free(&lane->prober);
    free(lane->op_done);
    free(lane->flow_of[0]);
    free(lane->flow_of[1]);
    free(lane->flows);
    free(lane->outs);
    free(lane->ins);
}

/* --- loads --- */

void message_end_over(struct message_end *end)
{
    struct message_lane *lane = end->lane;

    if (end->ended)
        return;
    end->ended = end->stream.ended = true;
    if (end->sends && end->stream.side != &end->own)
        lane->flows[end->flow - lane->lane.request.flows].open--;
    *(end->sends ? &lane->outs_ended : &lane->ins_ended) += 1;
    lane->lane.rx_done = lane->ins_ended == lane->in_count;
}

static bool is_at_end(const struct message_end *out)
{
    const struct message_cursor *at = &out->stream.at;

    return at->position == 0 && (out->stopping || at->length == 0);
}

/* Set a flow's pace, which may catch up with one second of load after the stream was full or the
 * core was taken away. Due bytes are sent in whole segments; if messages may be shorter than a
 * segment, in any number of bytes, so that no message waits. */
static void set_pace(const struct message_lane *lane, struct message_flow *flow)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    const struct load *load = &phase->load;
    bool checks = message_lane_checks(lane);
    double share = flow->flow->share > 0 ? flow->flow->share : 1.0 / request->send_count;
    /* In payload bytes, and payload bytes per second. */
    double mean = 0, rate = 0, gather, catch_up;
    uint32_t segment = flow->segment;
    double least = checks || lane->sizes[0] < segment ? lane->sizes[0] : segment;

    for (uint32_t i = 0; i < phase->size_count; i++)
        mean += (double)lane->sizes[i] / phase->size_count;
    if (checks)
        rate = mean * NS_PER_S / CHECK_NS;
    else if (!load->unlimited)
        rate = load->rate_bps > 0 ? load->rate_bps / 8 * share * flow->payload_share
                                  : load->rate_fps * mean * share;
    gather = rate * MESSAGE_GATHER_NS / NS_PER_S;
    flow->segment = checks || segment == 0 ? 1 : segment;
    for (uint32_t i = 0; i < phase->size_count; i++)
        if (lane->sizes[i] < flow->segment)
            flow->segment = 1;
    if (segment > 0 && gather < least)
        gather = least + (flow->segment > 1); /* so that rounded times give no byte too few */
    if (segment > 0 && gather > GATHER_MOST)
        gather = GATHER_MOST;
    catch_up = checks ? (segment > 0 ? gather : 1) : rate + gather + 1;
    pace_init(&flow->pace, rate, (uint32_t)(catch_up < CATCH_UP_MOST ? catch_up : CATCH_UP_MOST),
              phase->start_ns);
    if (segment > 0)
        flow->gather_ns = (int64_t)((gather - 1) * flow->pace.ns_per_cost);
}

/* Return how many bytes a forwarder may send. The bytes that it has received are its intended load,
 * up to the end mark. In the middle of a message it sends whole segments, because more bytes
 * follow.
 */
static uint64_t follow(struct message_end *out, uint32_t segment)
{
    const struct message_stream *in = &out->pair->stream;
    uint64_t ahead = message_end_ahead(out);

    out->stream.side->intended = in->side->live.payload_bytes + in->side->corrupted;
    out->stopping |= in->ended && out->stream.at.sequence == in->at.sequence;
    return in->at.position > 0 && !in->ending ? ahead - ahead % segment : ahead;
}

/* Send the bytes of a flow that are due now; return the time at which the next bytes are due. */
static int64_t send_flow(struct message_lane *lane, struct message_flow *flow, int64_t now_ns)
{
    unsigned first = (unsigned)(flow - lane->flows) * lane->stride;
    bool stopping = now_ns >= lane->lane.stop_ns;
    bool free_running = flow->pace.ns_per_cost == 0 || stopping || lane->forwards;
    int64_t due_ns = flow->pace.next_ns + flow->gather_ns;
    uint64_t budget = UINT64_MAX, posted = 0;

    if (!free_running && now_ns < due_ns)
        return due_ns;
    /* Due bytes are sent in whole segments: the rest would be a small segment, whose headers add to
     * the load (at 95 % of 10 Mbit/s they filled the line). */
    if (!free_running) {
        budget = pace_allow(&flow->pace, now_ns, 1, UINT32_MAX);
        budget -= budget % flow->segment;
    }
    for (unsigned i = 0; i < lane->streams; i++) {
        struct message_end *out = message_lane_end(lane, first + (flow->turn + i) % lane->streams);
        uint64_t most = posted < budget ? budget - posted : 0;

        if (lane->forwards)
            most = follow(out, flow->segment);
        else
            out->stopping |= stopping;
        if (!out->ended && !is_at_end(out) && most > 0)
            posted += lane->hooks->post(out, most, now_ns);
    }
    flow->turn++;
    if (posted > 0) {
        pace_spend(&flow->pace, posted);
        flow_side_time(&flow->flow->side, now_ns);
    }
    if (free_running || posted < budget)
        return now_ns + (posted > 0 ? 0 : lane->refill_ns);
    return flow->pace.next_ns + flow->gather_ns;
}

static int64_t send_flows(struct message_lane *lane, int64_t now_ns)
{
    const struct phase *phase = lane->lane.request.phase;
    int64_t wake_ns = CLOCK_NEVER;

    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        struct message_flow *flow = &lane->flows[i];
        struct flow_side *side = &flow->flow->side;
        int64_t due_ns;

        if (flow->open == 0)
            continue;
        due_ns = send_flow(lane, flow, now_ns);
        wake_ns = due_ns < wake_ns ? due_ns : wake_ns;
        if (lane->forwards)
            continue;
        /* The intended load of an unlimited flow is what it has sent; and a message that began in
         * time is intended as a whole. */
        if (phase->traffic == TRAFFIC_TRANSFER)
            side->intended = phase->transfer_bytes;
        else if (phase->traffic == TRAFFIC_STREAM)
            side->intended = (uint64_t)pace_intended(
                &flow->pace, now_ns < lane->lane.stop_ns ? now_ns : lane->lane.stop_ns);
        if (side->intended < side->live.payload_bytes)
            side->intended = side->live.payload_bytes;
    }
    return wake_ns;
}

/* --- messages with answers --- */

/* Return the stream end that sends a flow's probes or ping-pong messages. */
static struct message_end *asking_end(const struct message_lane *lane, uint32_t flow)
{
    return message_lane_end(lane, (flow + 1) * lane->stride - 1);
}

/* Send the present message of an end, or the rest of this message; return the number of sent
 * bytes. */
static uint64_t post_one(struct message_end *out, int64_t now_ns)
{
    return out->lane->hooks->post(out, out->stream.at.length - out->stream.at.position, now_ns);
}

/* Send a reply to each received probe or ping-pong message. A message that an unreliable service
 * lost, or delivered after a later one, gets no reply. */
static void send_replies(struct message_end *out, int64_t now_ns)
{
    const struct message_stream *in = &out->pair->stream;

    while (out->stream.at.sequence < in->at.sequence) {
        if (!message_stream_has(in, in->at.sequence - out->stream.at.sequence))
            out->lane->hooks->skip(out);
        else if (post_one(out, now_ns) == 0)
            break;
    }
    out->stopping |= in->ended && out->stream.at.sequence == in->at.sequence;
}

/* Send the ping-pong message that a flow has just begun. */
static void send_message(struct lane *base, uint32_t flow)
{
    (void)post_one(asking_end((struct message_lane *)base, flow), clock_now());
}

/* Measure the round trips of the received answers to a flow's probes or messages; a damaged answer
 * does not count. Over an unreliable service, give up probes that took too long. */
static void take_answers(struct message_lane *lane, uint32_t flow, int64_t now_ns)
{
    struct prober *prober = &lane->prober;
    struct message_end *out = asking_end(lane, flow);
    const struct message_stream *in = &out->pair->stream;
    int64_t since_ns = now_ns - lane->lane.request.phase->start_ns;
    uint64_t due = in->at.sequence, number = prober->flows[flow].oldest;
    bool came = number < due;

    for (; number < due && number < prober_left(prober, flow); number++)
        if (prober_stamp(prober, flow, number) != PROBER_ENDED &&
            message_stream_has(in, due - number))
            (void)prober_back(prober, flow, (uint32_t)number, prober_stamp(prober, flow, number),
                              in->side->corrupted == 0 ? out->pair->came_ns : 0);
    if (came) /* damage belongs to the answer that is complete now */
        in->side->corrupted = 0;
    prober_forget(prober, flow,
                  lane->unreliable && !prober->pingpong ? since_ns - PROBE_TIMEOUT_NS : -1);
    if (out->stream.at.sequence < prober_left(prober, flow))
        (void)post_one(out, now_ns);
}

/* Send the probes or ping-pong messages that are due, and end their streams after the stop, once
 * all are answered; return the time at which the next is due. */
static int64_t run_prober(struct message_lane *lane, int64_t now_ns)
{
    struct prober *prober = &lane->prober;
    bool stopping = now_ns >= lane->lane.stop_ns;

    for (uint32_t i = 0; i < prober->count; i++)
        take_answers(lane, i, now_ns);
    if (prober->pingpong)
        (void)prober_pingpong(prober, lane->unreliable, send_message);
    /* A probe is left out if too many are in flight. A late one does not delay the next: otherwise
     * a slow moment would have fewer probes, and look shorter than it was. */
    for (uint32_t i = 0; i < prober->count && prober_due(prober, true, now_ns); i++) {
        uint32_t flow = prober->at;
        struct message_end *out = asking_end(lane, flow);
        uint64_t in_flight = prober_left(prober, flow) - prober->flows[flow].oldest;

        if (in_flight < out->window && in_flight < prober->room &&
            out->stream.at.sequence == prober_left(prober, flow)) {
            prober_leaves(prober, flow, clock_now() - lane->lane.request.phase->start_ns);
            if (post_one(out, now_ns) == 0)
                prober_stays(prober, flow);
        }
        prober_step(prober, now_ns);
    }
    for (uint32_t i = 0; i < lane->lane.request.send_count; i++) {
        struct message_end *out = asking_end(lane, i);

        out->stopping |= prober->pingpong ? prober->ended : stopping && prober->in_flight == 0;
        out->stream.side->intended = out->stream.side->live.payload_bytes;
    }
    if (prober->pingpong)
        return stopping ? CLOCK_NEVER : lane->lane.stop_ns;
    return prober->next_ns;
}

void message_lane_read_flow(struct lane *base, const struct lane_flow *flow,
                            struct flow_reading *reading)
{
    prober_read(&((const struct message_lane *)base)->prober, flow, reading);
}

/* --- the worker's calls --- */

static void begin(struct message_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;

    lane->begun = true;
    lane->hooks->begin(lane);
    lane->lane.stop_ns = phase->stop_ns;
    lane->lane.tx_done = lane->out_count == 0;
    /* All messages of a check may be lost. */
    lane->lane.rx_done = lane->ins_ended == lane->in_count;
    lane->opens_ns = phase->start_ns;
    for (uint32_t i = 0; i < request->send_count; i++)
        set_pace(lane, &lane->flows[i]);
    if (lane->replies)
        prober_begin(&lane->prober, prng_bits(phase->seed, request->rank));
}

/* --- schedules (doc/developer/schedules.md) ---
 *
 * The executor knows which messages are open (schedule_executor.h); messages of one flow are
 * moved in the listed order. A message is sent in one or several pieces, each with a header, and
 * its payload directly from and into the rank's memory. */

/* Check that a received header is the header of the expected piece of a schedule's message. */
static bool verify_header(struct message_end *in)
{
    struct schedule_executor *executor = in->lane->lane.request.executor;
    const struct message_header *here = &in->stream.header;
    struct message_header due = message_cursor_header(&in->stream.at, &in->stream.script);

    if (executor->in_barrier && (here->stream & BARRIER) != 0) {
        executor->bits |= here->stream & (uint8_t)~BARRIER;
        due.stream = here->stream;
    }
    if (memcmp(&due, here, sizeof due) == 0)
        return true;
    in->stream.side->corrupted++;
    err_set(
        &in->lane->lane.error, -EBADMSG,
        "rank %u sent message %u of %u bytes (kind %02x, stream %02x) instead of message %u of %u "
        "bytes",
        in->flow->src, ntohl(here->sequence), ntohl(here->length), here->kind, here->stream,
        ntohl(due.sequence), ntohl(due.length));
    return false;
}

static uint32_t payload_to(uint32_t position)
{
    return position > MESSAGE_HEADER_BYTES ? position - MESSAGE_HEADER_BYTES : 0;
}

/* Send or receive as much of an end's present message as possible, piece by piece; return true if
 * any byte was moved. */
static bool move_message(struct message_end *end, const struct schedule_op *op, int64_t now_ns)
{
    struct message_lane *lane = end->lane;
    struct schedule_executor *executor = lane->lane.request.executor;
    struct message_cursor *at = &end->stream.at;
    struct flow_side *side = end->stream.side;
    bool moved = false;

    while (!end->whole && !message_lane_failed(lane) && !(moved && at->position > 0)) {
        uint64_t left = op->bytes - end->moved;
        uint32_t from = at->position, bytes;

        if (from == 0) { /* a piece begins */
            end->memory = executor->place + op->at + end->moved;
            at->length = MESSAGE_HEADER_BYTES +
                         (left < end->piece_bytes ? (uint32_t)left : end->piece_bytes);
            end->stream.script.stream = executor->in_barrier ? BARRIER | executor->bits : 0;
        }
        if (end->sends)
            (void)lane->hooks->post(end, at->length - from, now_ns);
        else
            lane->hooks->take(end);
        if (at->position == from)
            break;
        moved = true;
        if (!end->sends) {
            lane->lane.arrived_ns = now_ns;
            if (from < MESSAGE_HEADER_BYTES && at->position >= MESSAGE_HEADER_BYTES &&
                !verify_header(end))
                break;
        }
        bytes = payload_to(at->position) - payload_to(from);
        end->moved += bytes;
        if (at->position == at->length) {
            message_cursor_next(at, &end->stream.script);
            end->stream.script.stream = 0; /* as in the end mark */
            end->whole = end->moved == op->bytes;
        }
        flow_side_time(side, now_ns);
        if (executor->in_barrier)
            continue;
        side->live.payload_bytes += bytes;
        side->live.messages += end->whole;
        if (end->sends)
            side->intended = side->live.payload_bytes;
    }
    if (!end->whole || end->done < end->awaited)
        return moved;
    end->whole = false;
    end->moved = 0;
    end->op = 0;
    lane->op_done[op - executor->ops] = true;
    *(end->sends ? &executor->sends_left : &executor->receives_left) -= 1;
    return true;
}

/* Execute the steps of a schedule as long as their messages move; return true if there is more to
 * do at once. */
static bool run_schedule(struct message_lane *lane, int64_t now_ns)
{
    struct schedule_executor *executor = lane->lane.request.executor;

    lane->step_moved = false;
    for (unsigned step = 0; step < STEPS_MOST && !message_lane_failed(lane); step++) {
        bool moved = false;

        if (executor_step_done(executor)) {
            executor_next(executor);
            lane->lane.error = executor->error;
            lane->stepping = !executor->ended;
            if (executor->busy || executor->ended)
                return executor->busy;
            memset(&lane->op_done[executor->first], 0,
                   (executor->messages - executor->first) * sizeof *lane->op_done);
        }
        for (size_t i = executor->first; i < executor->messages; i++) {
            const struct schedule_op *op = &executor->ops[i];
            bool sends = op->action == SCHEDULE_SEND;
            unsigned flow = lane->flow_of[sends ? 0 : 1][op->peer] - 1;
            struct message_end *end = message_lane_end(lane, sends ? flow : lane->out_count + flow);

            if (lane->op_done[i] || (end->op != 0 && end->op != i + 1))
                continue; /* an earlier message of the same flow is not complete */
            end->op = i + 1;
            moved |= move_message(end, op, now_ns);
        }
        lane->step_moved |= moved;
        if (!moved && !executor_step_done(executor))
            return false;
    }
    return !message_lane_failed(lane);
}

/* --- polling --- */

/* Send all data of the lane that are due; return the time at which the next data are due. */
static int64_t send_all(struct message_lane *lane, int64_t now_ns)
{
    const struct lane_request *request = &lane->lane.request;
    int64_t probe_ns = CLOCK_NEVER, load_ns = CLOCK_NEVER;

    for (unsigned i = request->send_count * lane->stride; i < lane->out_count; i++)
        send_replies(message_lane_end(lane, i), now_ns);
    if (lane->replies)
        probe_ns = run_prober(lane, now_ns);
    if (!lane->schedules && !lane->prober.pingpong)
        load_ns = send_flows(lane, now_ns);
    else if (lane->schedules)
        load_ns = lane->stepping && run_schedule(lane, now_ns) ? now_ns : CLOCK_NEVER;
    for (unsigned i = 0; i < lane->out_count && lane->outs_ended < lane->out_count; i++) {
        struct message_end *out = message_lane_end(lane, i);

        out->stopping |= lane->schedules && !lane->stepping;
        if (!out->ended && is_at_end(out))
            lane->hooks->finish(out, now_ns);
    }
    return probe_ns < load_ns ? probe_ns : load_ns;
}

int64_t message_lane_poll(struct lane *base, int64_t now_ns)
{
    struct message_lane *lane = (struct message_lane *)base;
    int64_t due_ns = CLOCK_NEVER;
    bool moved;

    if (!lane->begun)
        begin(lane);
    moved = lane->hooks->reap(lane, now_ns);
    if (message_lane_failed(lane))
        return CLOCK_NEVER;
    if (now_ns < lane->opens_ns)
        return lane->opens_ns;
    if (base->started_ns == 0)
        base->started_ns = now_ns;
    if (lane->outs_ended < lane->out_count || lane->stepping)
        due_ns = send_all(lane, now_ns);
    if (lane->outs_ended == lane->out_count) {
        if (base->stopped_ns == 0 && (lane->out_count > 0 || now_ns >= base->stop_ns))
            base->stopped_ns = now_ns;
        base->tx_done = lane->hooks->drained == NULL || lane->hooks->drained(lane);
    }
    return lane->hooks->next(lane, moved, due_ns, now_ns);
}
