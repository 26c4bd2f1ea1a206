/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"

#include "messages_receive.h"
#include "messages_send.h"
#include "reassembly_window.h"
#include "schedule_executor.h"

#include <errno.h>
#include <stdlib.h>

#define TURNS 64u                     /* steps in one poll */
#define KEPT_BYTES ((size_t)32 << 20) /* for what comes ahead, all flows of a lane */
#define BEATS 4                       /* looks at what is due in the time that nothing is lost */
#define BEAT_LEAST_NS NS_PER_MS
#define END_LOOK_NS (5 * NS_PER_MS)
#define END_GRACE_NS (10 * NS_PER_MS) /* what was sent before an end mark may still come */
#define GONE_NS (30 * NS_PER_S)       /* whoever says nothing for so long is not there any more */

/* A flow that is received. */
struct steps_in {
    struct reassembly_window window;
    int64_t since_ns; /* the message that is waited for could have come since then */
    int64_t heard_ns; /* anything at all */
    int64_t ended_ns; /* its source sends nothing more; 0: it does */
    uint64_t lost;    /* messages given up */
    uint64_t early;   /* frames of messages too far ahead */
};

struct steps {
    struct stepper *stepper;
    struct steps_in *ins; /* as the lane's receives */
    uint32_t *follower;   /* by send of the step: the next one of the same flow; STEPPER_NONE */
    uint32_t *sending;    /* by flow sent: the step's send that is under way */
    int64_t beat_ns;
    int64_t look_ns; /* when something may be due */
};

/* --- preparation --- */

static int check(const struct lane_request *request, struct err *err)
{
    const char *port = request->port->conf->name;
    uint64_t most = request->stepper->most_bytes;

    if (request->phase->schedule.compute)
        return err_set(
            err, -EINVAL,
            "%s: compute needs the ranks' data in the messages, and frames of dpdk carry "
            "none: use tcp or verbs, or leave compute out",
            port);
    if (most > MESSAGE_BYTES_MAX)
        return err_set(err, -EINVAL, "%s: dpdk carries messages of %u bytes at most, not of %llu",
                       port, MESSAGE_BYTES_MAX, (unsigned long long)most);
    return 0;
}

/* Two passes: how many messages a flow has, and how long they are. */
static void count_meeting(void *context, const struct stepper_message *message)
{
    ((struct reassembly_cycle *)context)[message->flow].meetings++;
}

static void count_message(void *context, const struct stepper_message *message)
{
    ((struct reassembly_cycle *)context)[message->flow].count++;
}

static void list_message(void *context, const struct stepper_message *message)
{
    struct reassembly_cycle *cycle = &((struct reassembly_cycle *)context)[message->flow];

    cycle->bytes[cycle->count++] = (uint32_t)message->bytes;
}

static int list_messages(const struct stepper *stepper, struct reassembly_cycle *cycles,
                         uint32_t count)
{
    stepper_each_receive(stepper, true, count_meeting, cycles);
    stepper_each_receive(stepper, false, count_message, cycles);
    for (uint32_t i = 0; i < count; i++) {
        cycles[i].bytes = calloc((size_t)cycles[i].count + 1, sizeof *cycles[i].bytes);
        if (cycles[i].bytes == NULL)
            return -ENOMEM;
        cycles[i].batch = stepper->phase->schedule.lead + stepper->phase->schedule.batch;
        cycles[i].count = 0;
    }
    stepper_each_receive(stepper, false, list_message, cycles);
    return 0;
}

static int make_ins(struct dpdk_lane *lane, struct steps *steps)
{
    const struct messages *messages = lane->messages;
    uint32_t count = lane->lane.request.receive_count;
    struct reassembly_cycle *cycles = calloc((size_t)count + 1, sizeof *cycles);
    int rc = cycles != NULL ? list_messages(steps->stepper, cycles, count) : -ENOMEM;

    for (uint32_t i = 0; i < count && cycles != NULL; i++) {
        int made = reassembly_window_make(&steps->ins[i].window, &cycles[i],
                                          &messages->exchanges[messages->sends + i].cut,
                                          KEPT_BYTES / count);

        rc = rc == 0 ? made : rc;
    }
    free(cycles);
    return rc;
}

static int make(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    struct steps *steps = calloc(1, sizeof *steps);
    int64_t patience_ns = pingpong_patience_ns(&lane->messages->game, 0);
    int rc = -ENOMEM;

    if (steps == NULL)
        return err_set(err, rc, "%s: out of memory", request->port->conf->name);
    lane->messages->steps = steps;
    steps->stepper = request->stepper;
    steps->beat_ns = RTE_MAX(patience_ns / BEATS, BEAT_LEAST_NS);
    steps->ins = calloc((size_t)request->receive_count + 1, sizeof *steps->ins);
    steps->sending = calloc((size_t)request->send_count + 1, sizeof *steps->sending);
    steps->follower = calloc((size_t)steps->stepper->most_sends + 1, sizeof *steps->follower);
    if (steps->ins != NULL && steps->sending != NULL && steps->follower != NULL)
        rc = make_ins(lane, steps);
    return rc == 0 ? 0 : err_set(err, rc, "%s: out of memory", request->port->conf->name);
}

static void free_steps(struct messages *messages)
{
    struct steps *steps = messages->steps;

    if (steps == NULL)
        return;
    for (uint32_t i = 0; steps->ins != NULL && messages->sends + i < messages->count; i++)
        reassembly_window_free(&steps->ins[i].window);
    free(steps->ins);
    free(steps->sending);
    free(steps->follower);
    free(steps);
}

/* --- sending --- */

static void begin_send(struct dpdk_lane *lane, uint32_t place)
{
    const struct steps *steps = lane->messages->steps;
    const struct stepper_message *message = &steps->stepper->sends[place];
    struct exchange *exchange = &lane->messages->exchanges[message->flow];
    struct outgoing *out = &exchange->out;
    uint32_t says = SEGMENT_MEETING | steps->stepper->bits;

    steps->sending[message->flow] = place;
    out->number = out->next_number++;
    out->bytes = (uint32_t)message->bytes;
    out->segments = message_segments(&exchange->cut, out->bytes);
    out->next = 0;
    out->says = steps->stepper->meeting ? says : 0;
    messages_enqueue(lane, exchange);
}

static void message_sent(struct dpdk_lane *lane, struct exchange *exchange)
{
    struct steps *steps = lane->messages->steps;
    uint32_t flow = (uint32_t)(exchange - lane->messages->exchanges);
    uint32_t follower = steps->follower[steps->sending[flow]];

    steps->stepper->sends_left--;
    if (follower != STEPPER_NONE)
        begin_send(lane, follower);
}

static void begin_sends(struct dpdk_lane *lane)
{
    struct steps *steps = lane->messages->steps;
    const struct stepper *stepper = steps->stepper;

    for (uint32_t i = 0; i < stepper->send_count; i++) {
        uint32_t after = stepper->sends[i].after;

        steps->follower[i] = STEPPER_NONE;
        if (after == STEPPER_NONE)
            begin_send(lane, i);
        else
            steps->follower[after] = i;
    }
}

/* --- receiving --- */

/* The message that was waited for is whole, and so may be those behind it. */
static void close_whole(struct dpdk_lane *lane, struct steps_in *in, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;
    const struct exchange *exchange =
        &lane->messages->exchanges[lane->messages->sends + (in - steps->ins)];

    while (reassembly_window_waits(&in->window) && reassembly_window_whole(&in->window)) {
        const struct reassembly_message *message =
            reassembly_window_message(&in->window, in->window.base);

        if (message->meeting)
            stepper_hear(steps->stepper, message->bits);
        else
            exchange->got->live.messages++;
        reassembly_window_close(&in->window);
        in->since_ns = now_ns;
        steps->stepper->receives_left--;
    }
}

static void await_receives(struct dpdk_lane *lane, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;
    const struct stepper *stepper = steps->stepper;

    for (uint32_t i = 0; i < stepper->receive_count; i++) {
        struct steps_in *in = &steps->ins[stepper->receives[i].flow];

        if (!reassembly_window_waits(&in->window))
            in->since_ns = now_ns;
        in->window.opened++;
        close_whole(lane, in, now_ns);
        if (reassembly_window_waits(&in->window) && in->ended_ns != 0)
            steps->look_ns = now_ns;
    }
}

/* Whether it is a frame of this message, as both ends know it. */
static bool fits(const struct reassembly_window *window, const struct reassembly_message *message,
                 const struct rx_segment *rx)
{
    const struct message_cut *cut = &window->cut;

    if (message->meeting != (rx->segment >= SEGMENT_MEETING))
        return false;
    if (message->meeting)
        return rx->segment <= (SEGMENT_MEETING | SEGMENT_MEETING_BITS) &&
               rx->length == message_length(cut, 0, 0);
    return rx->segment < message_segments(cut, message->bytes) &&
           rx->length == message_length(cut, message->bytes, rx->segment);
}

static void take_meeting(struct steps_in *in, uint64_t number, const struct rx_segment *rx)
{
    reassembly_window_message(&in->window, number)->bits =
        (uint8_t)(rx->segment & SEGMENT_MEETING_BITS);
    (void)reassembly_window_take(&in->window, number, 0);
}

static void take_segment(struct steps_in *in, uint64_t number, const struct rx_segment *rx)
{
    struct flow_side *side = rx->exchange->got;
    enum sequence_verdict verdict = reassembly_window_take(&in->window, number, rx->segment);

    side->late += verdict == SEQUENCE_LATE;
    side->duplicated += verdict == SEQUENCE_DUPLICATE;
    side->reordered += verdict == SEQUENCE_REORDERED;
    if (verdict == SEQUENCE_FRESH || verdict == SEQUENCE_REORDERED)
        messages_delivered(rx, reassembly_window_message(&in->window, number)->bytes);
}

/* How many messages its source has handed over: one that was not is waited for anew. */
static void take_mark(struct steps_in *in, const struct rx_segment *rx)
{
    if ((int32_t)(rx->wire - (uint32_t)in->window.base) <= 0)
        in->since_ns = rx->at_ns;
}

static void take_message(struct dpdk_lane *lane, struct steps_in *in, const struct rx_segment *rx)
{
    struct flow_side *side = rx->exchange->got;
    bool beside = rx->segment >= SEGMENT_MEETING;
    uint64_t number = 0;
    enum reassembly_place place = reassembly_window_find(&in->window, rx->wire, &number);

    in->early += place == WINDOW_EARLY;
    if (place != WINDOW_KEPT) {
        side->late += !beside;
        return;
    }
    if (!fits(&in->window, reassembly_window_message(&in->window, number), rx)) {
        side->corrupted++;
        return;
    }
    if (beside)
        take_meeting(in, number, rx);
    else
        take_segment(in, number, rx);
    if (number == in->window.base)
        in->since_ns = rx->at_ns;
    close_whole(lane, in, rx->at_ns);
}

static void receive(struct dpdk_lane *lane, const struct rx_segment *rx)
{
    const struct messages *messages = lane->messages;
    struct steps_in *in;

    if (rx->exchange->source) { /* nobody answers a step's message */
        rx->exchange->got->corrupted++;
        return;
    }
    in = &messages->steps->ins[rx->exchange - messages->exchanges - messages->sends];
    in->heard_ns = rx->at_ns;
    if (rx->segment == SEGMENT_MARK)
        take_mark(in, rx);
    else
        take_message(lane, in, rx);
}

static void partner_ended(struct dpdk_lane *lane, const struct exchange *exchange, int64_t now_ns)
{
    const struct messages *messages = lane->messages;
    struct steps_in *in = &messages->steps->ins[exchange - messages->exchanges - messages->sends];

    in->heard_ns = now_ns;
    if (in->ended_ns == 0)
        in->ended_ns = now_ns;
    messages->steps->look_ns = RTE_MIN(messages->steps->look_ns, in->ended_ns + END_GRACE_NS);
}

/* --- what is lost --- */

static int64_t due_ns(const struct dpdk_lane *lane, const struct steps_in *in)
{
    uint32_t bytes = reassembly_window_message(&in->window, in->window.base)->bytes;
    int64_t due = in->since_ns + pingpong_patience_ns(&lane->messages->game, bytes);

    return in->ended_ns != 0 ? RTE_MIN(due, in->ended_ns + END_GRACE_NS) : due;
}

/* Who waits for one that has ended has missed that it is over: in the barrier it says so to the
 * others, too, elsewhere there is nobody to go on with. And who loses messages after the end of its
 * time, and has measured something, need not find the end of its batch. */
static void end_if_over(const struct dpdk_lane *lane, const struct steps_in *in, int64_t now_ns)
{
    struct stepper *stepper = lane->messages->steps->stepper;
    bool late = phase_is_timed(lane->lane.request.phase) && now_ns >= lane->lane.stop_ns &&
                stepper->execution.batches > 0;

    if (stepper->meeting && in->ended_ns != 0)
        stepper_hear(stepper, STEPPER_STOP);
    else if (!stepper->meeting && (in->ended_ns != 0 || late))
        stepper_quit(stepper);
}

static void give_up(struct dpdk_lane *lane, struct steps_in *in, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;
    const struct lane_request *request = &lane->lane.request;

    in->lost++;
    steps->stepper->execution.messages_lost++;
    steps->stepper->receives_left--;
    reassembly_window_close(&in->window);
    in->since_ns = now_ns;
    close_whole(lane, in, now_ns);
    end_if_over(lane, in, now_ns);
    if (now_ns - in->heard_ns < GONE_NS)
        return;
    stepper_quit(steps->stepper);
    err_set(&lane->lane.error, -ETIMEDOUT, "%s: rank %u has sent nothing for %lld s",
            request->port->conf->name, request->receives[in - steps->ins].src,
            (long long)(GONE_NS / NS_PER_S));
}

static void look_at_receives(struct dpdk_lane *lane, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;
    bool any = false;

    if (lane->messages->coming) /* it may lie behind what has come */
        return;
    for (uint32_t i = 0; i < lane->lane.request.receive_count && !steps->stepper->ended; i++) {
        struct steps_in *in = &steps->ins[i];

        if (!reassembly_window_waits(&in->window) || now_ns < due_ns(lane, in))
            continue;
        give_up(lane, in, now_ns);
        any = true;
    }
    steps->stepper->execution.timeouts += any;
}

/* Flows that rest say so. */
static void look_at_sends(struct dpdk_lane *lane, int64_t now_ns)
{
    struct messages *messages = lane->messages;

    for (uint32_t i = 0; i < messages->sends; i++) {
        struct exchange *exchange = &messages->exchanges[i];

        if (exchange->queued || now_ns - exchange->sent_ns < messages->steps->beat_ns)
            continue;
        exchange->out.mark = true;
        messages_enqueue(lane, exchange);
    }
}

static void look_at_ends(struct dpdk_lane *lane, int64_t now_ns)
{
    struct messages *messages = lane->messages;

    for (uint32_t i = 0; i < messages->sends; i++) {
        struct exchange *exchange = &messages->exchanges[i];

        if (!exchange->ended && (exchange->end_marks == 0 || now_ns >= exchange->due_ns))
            messages_say_end(lane, exchange, now_ns);
    }
}

static int64_t look(struct dpdk_lane *lane, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;

    if (now_ns < steps->look_ns)
        return steps->look_ns;
    if (!steps->stepper->ended) {
        look_at_receives(lane, now_ns);
        look_at_sends(lane, now_ns);
        steps->look_ns = now_ns + (lane->messages->coming ? BEAT_LEAST_NS : steps->beat_ns);
    }
    if (steps->stepper->ended) {
        look_at_ends(lane, now_ns);
        steps->look_ns = now_ns + END_LOOK_NS;
    }
    return steps->look_ns;
}

/* --- a step --- */

static void open_step(struct dpdk_lane *lane, int64_t now_ns)
{
    begin_sends(lane);
    await_receives(lane, now_ns);
}

static void begin(struct dpdk_lane *lane, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;

    for (uint32_t i = 0; i < lane->lane.request.receive_count; i++)
        steps->ins[i].heard_ns = now_ns;
    for (uint32_t i = 0; i < lane->messages->sends; i++)
        lane->messages->exchanges[i].sent_ns = now_ns;
    steps->look_ns = now_ns + steps->beat_ns;
    stepper_begin(steps->stepper);
    open_step(lane, now_ns);
}

/* All that was open is through. */
static void go_on(struct dpdk_lane *lane, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;
    enum stepper_state state = stepper_next(steps->stepper);

    if (state == STEPPER_OPEN)
        open_step(lane, now_ns);
    if (state == STEPPER_ENDED)
        steps->look_ns = now_ns;
}

static int64_t send_messages(struct dpdk_lane *lane, int64_t now_ns)
{
    struct steps *steps = lane->messages->steps;
    int64_t look_ns, send_ns = CLOCK_NEVER;

    if (!steps->stepper->begun)
        begin(lane, now_ns);
    look_ns = look(lane, now_ns);
    for (unsigned turn = 0; turn < TURNS; turn++) {
        if (stepper_is_through(steps->stepper))
            go_on(lane, now_ns);
        look_ns = RTE_MIN(look_ns, steps->look_ns);
        send_ns = messages_flush(lane, now_ns);
        if (!stepper_is_through(steps->stepper) || steps->stepper->busy)
            break;
    }
    return stepper_is_through(steps->stepper) ? now_ns : RTE_MIN(look_ns, send_ns);
}

/* --- what was measured --- */

static unsigned measure(const struct dpdk_lane *lane, const struct exchange *exchange,
                        struct measure *out, unsigned room)
{
    const struct messages *messages = lane->messages;
    const struct steps_in *in;

    if (exchange->source || room < 2)
        return 0;
    in = &messages->steps->ins[exchange - messages->exchanges - messages->sends];
    out[0] = (struct measure){"messages_lost", (double)in->lost};
    out[1] = (struct measure){"frames_too_early", (double)in->early};
    return 2;
}

const struct schedule_messages dpdk_steps = {
    .check = check,
    .make = make,
    .free = free_steps,
    .measure = measure,
    .send = send_messages,
    .message_sent = message_sent,
    .receive = receive,
    .partner_ended = partner_ended,
};
