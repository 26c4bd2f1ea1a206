/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queues of the modelled switch: output queues with their limits and wires, back-pressure (PAUSE),
 * the module's capacity, and queues at the inputs.
 */
#include "inside.h"

#define PAUSE_BYTES (MODEL_SIZE_MIN + MODEL_LAYER1)

/* --- PAUSE (IEEE 802.3 annex 31B) ---------------------------------------------------------------
 */

/* The functions below send PAUSE frames. A station whose frames fill more than `high` bytes is
 * paused, and resumed below `low`. A PAUSE frame goes before all waiting frames, and is repeated
 * after half of its time. Trunks get none: the module behind a trunk has its own queues. */

#define QUANTUM_BITS 512
#define QUANTA_MAX 0xffff
#define FALLBACK_BPS 10000000000ULL /* a link without a limit counts its quanta as 10G does */

static const uint8_t reserved[] = {0x01, 0x80, 0xc2, 0x00, 0x00}; /* ... 00 to 0f */
static const uint8_t pause_type[] = {0x88, 0x08, 0x00, 0x01};

static int64_t quanta_ns(const struct model *model, unsigned port, uint32_t quanta)
{
    uint64_t bps = model->outputs[port].bps;

    return (int64_t)((double)quanta * QUANTUM_BITS * 1e9 / (double)(bps > 0 ? bps : FALLBACK_BPS));
}

/* --- frames -------------------------------------------------------------------------------------
 */

static void pause_stored(struct model *model, unsigned port);

struct model_frame *frame_copy(struct model *model, const struct model_frame *frame)
{
    struct model_frame *copy = model->host->make(model->host->context, frame->length);
    uint8_t *data;
    void *host;

    if (copy == NULL)
        return NULL;
    data = copy->data;
    host = copy->host;
    *copy = *frame;
    copy->data = data;
    copy->host = host;
    copy->marks &= (uint16_t)~MARK_STORED;
    memcpy(copy->data, frame->data, frame->length);
    model->inside++;
    frame->flow->counts.copies++;
    return copy;
}

static void frame_store(struct model *model, struct model_frame *frame)
{
    frame->marks |= MARK_STORED;
    model->truth[frame->in].input_bytes += frame_size(frame);
    pause_stored(model, frame->in);
}

static void frame_unstore(struct model *model, struct model_frame *frame)
{
    if ((frame->marks & MARK_STORED) == 0)
        return;
    frame->marks &= (uint16_t)~MARK_STORED;
    model->truth[frame->in].input_bytes -= frame_size(frame);
    pause_stored(model, frame->in);
}

void frame_drop(struct model *model, struct model_frame *frame, enum model_drop why)
{
    bool at_output = why == MODEL_DROP_QUEUE || why == MODEL_DROP_RECOVERY;
    unsigned port = at_output ? frame->out : frame->in;

    frame_unstore(model, frame);
    frame->flow->counts.dropped[why]++;
    model->truth[port].dropped[why]++;
    model->inside--;
    model->host->release(model->host->context, frame);
}

/* --- outputs ------------------------------------------------------------------------------------
 */

static bool has_room(const struct model *model, const struct model_frame *frame)
{
    uint32_t size = frame_size(frame);

    if (model->conf->shared)
        return model->shared_bytes + size <= model->conf->buffer_bytes;
    return model->truth[frame->out].queue_bytes + size <= model->outputs[frame->out].most_bytes;
}

static void take_room(struct model *model, unsigned port, int64_t bytes)
{
    model->truth[port].queue_bytes += (uint64_t)bytes;
    model->shared_bytes += (uint64_t)bytes;
}

/* Return whether an output drops a frame because its queue overflows or recovers. An output drops
 * all frames for some time after an overload. The overload lasts as long as a queue that dropped
 * only for lack of room would be too full for a second frame: an overload of a tenth drops only one
 * frame of eleven. */
static bool recovers(const struct model *model, struct output *output,
                     const struct model_frame *frame)
{
    int64_t now_ns = model->now_ns;
    int64_t from_ns = output->load_ns > now_ns ? output->load_ns : now_ns;
    uint64_t most_ns = output->most_bytes * output->wire.byte_time >> RATE_SHIFT;
    uint64_t frame_ns = wire_bytes(frame) * output->wire.byte_time >> RATE_SHIFT;
    uint64_t held_ns = (uint64_t)(from_ns - now_ns) + frame_ns;
    bool recovers = held_ns > most_ns || now_ns < output->recovers_ns;

    if (recovers && held_ns + frame_ns > most_ns)
        output->recovers_ns = now_ns + model->conf->recovery_ms * NS_PER_MS;
    if (held_ns <= most_ns)
        output->load_ns = from_ns + (int64_t)frame_ns;
    return recovers;
}

static void output_send(struct model *model, unsigned port, struct model_frame *frame)
{
    struct output *output = &model->outputs[port];

    output->sending = frame;
    model->outputs_free &= ~bit(port);
    wake(model, port, serve(&output->wire, model->now_ns, wire_bytes(frame)));
}

static void output_try(struct model *model, unsigned port)
{
    struct output *output = &model->outputs[port];
    struct model_frame *frame;
    int64_t start;

    if (output->sending != NULL || output->control_leaves)
        return;
    if (output->control_waits) {
        output->control_waits = false;
        output->control_leaves = true;
        model->outputs_free &= ~bit(port);
        wake(model, port, serve(&output->wire, model->now_ns, PAUSE_BYTES));
        return;
    }
    if (model->conf->queueing != MODEL_OUTPUT) {
        wake(model, port, MODEL_NEVER);
        wake(model, agent_of(model, AGENT_MATCH), model->now_ns);
        return;
    }
    frame = output->queue.first;
    if (frame == NULL) {
        wake(model, port, MODEL_NEVER);
        return;
    }
    start = frame->time_ns > output->paused_until_ns ? frame->time_ns : output->paused_until_ns;
    if (start > model->now_ns)
        wake(model, port, start);
    else
        output_send(model, port, fifo_pop(&output->queue));
}

static bool output_accept(struct model *model, struct model_frame *frame)
{
    struct output *output = &model->outputs[frame->out];

    if (model->conf->recovery_ms > 0 && recovers(model, output, frame)) {
        frame_drop(model, frame, MODEL_DROP_RECOVERY);
        return false;
    }
    if (!has_room(model, frame)) {
        frame_drop(model, frame, MODEL_DROP_QUEUE);
        return false;
    }
    take_room(model, frame->out, frame_size(frame));
    fifo_push(&output->queue, frame);
    if ((frame->marks & MARK_STORED) == 0)
        frame_store(model, frame);
    if (output->sending == NULL && !output->control_leaves)
        output_try(model, frame->out);
    return true;
}

void output_empty(struct model *model, unsigned port, enum model_drop why)
{
    struct model_frame *frame;

    while ((frame = fifo_pop(&model->outputs[port].queue)) != NULL) {
        take_room(model, port, -(int64_t)frame_size(frame));
        frame_drop(model, frame, why);
    }
}

/* Count a misdelivered frame by its flow, and by flow and wrong port. */
static void count_wrong(struct model *model, const struct model_frame *frame, uint64_t sign)
{
    uint64_t key[2] = {(frame->flow->key[0] & ~(uint64_t)0xff) | frame->out, frame->flow->key[1]};

    frame->flow->counts.misdelivered += sign;
    if (frame->flow != &model->flows.all[MODEL_FLOWS_MAX])
        flows_get(&model->wrong, key)->counts.misdelivered += sign;
}

/* Count a frame that left the switch; `sign` is 1, or -1 to undo the count of a frame that did not
 * leave. */
static void count_left(struct model *model, const struct model_frame *frame, uint64_t sign)
{
    struct model_counts *counts = &frame->flow->counts;
    struct model_port_truth *truth = &model->truth[frame->out];

    truth->sent += sign;
    truth->sent_bytes += sign * frame_size(frame);
    if (frame->meant == MODEL_FLOOD || frame->meant == frame->out) {
        counts->delivered += sign;
        counts->delivered_bytes += sign * frame_size(frame);
    } else {
        counts->astray += sign;
    }
    if ((frame->marks & ~MARK_FLOODED) == 0)
        return;
    counts->duplicated += (frame->marks & MARK_DUPLICATE) != 0 ? sign : 0;
    counts->reordered += (frame->marks & MARK_REORDERED) != 0 ? sign : 0;
    counts->corrupted += (frame->marks & MARK_CORRUPTED) != 0 ? sign : 0;
    if ((frame->marks & MARK_WRONG) != 0)
        count_wrong(model, frame, sign);
}

void model_refused(struct model *model, const struct model_frame *frame, enum model_drop why)
{
    if (frame->flow == NULL) /* the host's own copy */
        return;
    count_left(model, frame, (uint64_t)-1);
    frame->flow->counts.dropped[why]++;
    model->truth[frame->out].dropped[why]++;
}

void model_receive(struct model *model, unsigned port, struct model_frame *frame,
                   int64_t earliest_ns)
{
    struct input *input = &model->inputs[port];
    int64_t start = earliest_ns > model->now_ns ? earliest_ns : model->now_ns;
    bool alone = input->arriving.first == NULL;

    if (start < input->paused_until_ns)
        start = input->paused_until_ns;
    if (start < input->wire.free_ns)
        start = input->wire.free_ns;
    frame->in = (uint8_t)port;
    frame->marks = 0;
    frame->time_ns = serve(&input->wire, start, wire_bytes(frame));
    fifo_push(&input->arriving, frame);
    model->inside++;
    if (alone)
        wake(model, agent_input(model, port), frame->time_ns);
}

static void finish(struct model *model, unsigned port)
{
    struct output *output = &model->outputs[port];
    struct model_frame *frame = output->sending;

    output->sending = NULL;
    if (model->conf->queueing == MODEL_OUTPUT)
        take_room(model, port, -(int64_t)frame_size(frame));
    else
        model->inputs_free |= bit(frame->in);
    frame_unstore(model, frame);
    count_left(model, frame, 1);
    model->inside--;
    if (model->cable_peer[port] != MODEL_NO_PORT)
        model_receive(model, (unsigned)model->cable_peer[port], frame, model->now_ns);
    else
        model->host->leave(model->host->context, frame, model->now_ns);
}

void output_act(struct model *model, unsigned port)
{
    struct output *output = &model->outputs[port];

    if (output->control_leaves) {
        output->control_leaves = false;
        model->outputs_free |= bit(port);
        model->truth[port].pause_sent++;
        model->inputs[port].paused_until_ns =
            model->now_ns + quanta_ns(model, port, output->control_quanta);
    } else if (output->sending != NULL) {
        model->outputs_free |= bit(port);
        finish(model, port);
    }
    output_try(model, port);
}

/* --- PAUSE: when --------------------------------------------------------------------------------
 */

/* Set the time at which the next PAUSE frame must be renewed. */
static void plan_renewal(struct model *model)
{
    int64_t first = MODEL_NEVER;

    for (unsigned i = 0; i < model->ports; i++)
        if (model->inputs[i].xoff && model->inputs[i].renew_ns < first)
            first = model->inputs[i].renew_ns;
    wake(model, agent_of(model, AGENT_RENEW), first);
}

static void send_pause(struct model *model, unsigned port, uint16_t quanta)
{
    struct output *output = &model->outputs[port];

    output->control_waits = true;
    output->control_quanta = quanta;
    model->inputs[port].renew_ns = model->now_ns + quanta_ns(model, port, quanta / 2);
    plan_renewal(model);
    output_try(model, port);
}

static void pause_stored(struct model *model, unsigned port)
{
    struct input *input = &model->inputs[port];
    uint64_t bytes = model->truth[port].input_bytes;

    if (!model->conf->pause.send || model->conf->ports[port].trunk)
        return;
    if (!input->xoff && bytes > model->conf->pause.high_bytes) {
        input->xoff = true;
        send_pause(model, port, QUANTA_MAX);
    } else if (input->xoff && bytes < model->conf->pause.low_bytes) {
        input->xoff = false;
        send_pause(model, port, 0);
    }
}

void pause_act(struct model *model)
{
    for (unsigned i = 0; i < model->ports; i++)
        if (model->inputs[i].xoff && model->inputs[i].renew_ns <= model->now_ns)
            send_pause(model, i, QUANTA_MAX);
    plan_renewal(model);
}

bool consume_control(struct model *model, struct model_frame *frame)
{
    struct model_port_truth *truth = &model->truth[frame->in];
    const uint8_t *data = frame->data;

    if (memcmp(data, reserved, sizeof reserved) != 0 || data[5] > 0x0f)
        return false;
    truth->control_received++;
    if (frame->length >= 18 && data[5] == 1 &&
        memcmp(data + 12, pause_type, sizeof pause_type) == 0) {
        truth->pause_received++;
        model->outputs[frame->in].paused_until_ns =
            model->now_ns + quanta_ns(model, frame->in, big_endian(data + 16));
        output_try(model, frame->in);
    }
    model->inside--;
    model->host->release(model->host->context, frame);
    return true;
}

/* --- a module's capacity ------------------------------------------------------------------------
 */

/* The functions below model a module's capacity: one server (the fabric) through which all frames
 * pass one by one. Each input has a queue before the server, and the inputs take turns by frames.
 * Frames from a trunk have passed the other module's server, and go directly to the outputs'
 * queues. */

static int64_t window_ns(const struct model_conf *conf)
{
    return conf->collapse.window_ms * NS_PER_MS;
}

static void set_capacity(struct model *model)
{
    const struct model_conf *conf = model->conf;
    double collapsed_bps = conf->collapse.to / 100 * (double)model->line_bps;

    model->fabric.byte_time =
        byte_time(model->collapsed ? (uint64_t)collapsed_bps : conf->capacity_bps);
}

void fabric_open(struct model *model)
{
    const struct model_conf *conf = model->conf;

    model->has_fabric = conf->capacity_bps > 0 || conf->collapse.above > 0;
    model->offered_from_ns = model->now_ns;
    model->line_bytes = (double)model->line_bps / 8e9 * (double)window_ns(conf);
    model->fabric.free_ns = model->now_ns;
    set_capacity(model);
}

/* Update whether the module's capacity has collapsed, from the offered load of each window since
 * the last call; windows without frames count, too. */
static void judge_load(struct model *model)
{
    const struct model_conf *conf = model->conf;
    double offered = 100 * (double)model->offered_bytes / model->line_bytes;
    int64_t windows = (model->now_ns - model->offered_from_ns) / window_ns(conf);

    if (offered > conf->collapse.above)
        model->collapsed = true;
    else if (offered < conf->collapse.recover)
        model->collapsed = false;
    if (windows > 1)
        model->collapsed = false;
    model->offered_bytes = 0;
    model->offered_from_ns += windows * window_ns(conf);
    set_capacity(model);
}

void fabric_note(struct model *model, uint32_t bytes)
{
    const struct model_conf *conf = model->conf;

    if (conf->collapse.above <= 0)
        return;
    if (model->now_ns - model->offered_from_ns >= window_ns(conf))
        judge_load(model);
    model->offered_bytes += bytes;
}

static void begin(struct model *model)
{
    struct input *input;
    unsigned port;

    if (model->fabric_waits == 0) {
        wake(model, agent_of(model, AGENT_FABRIC), MODEL_NEVER);
        return;
    }
    port = next_bit(model->fabric_waits, model->fabric_next);
    input = &model->inputs[port];
    model->in_fabric = fifo_pop(&input->waiting);
    if (input->waiting.first == NULL)
        model->fabric_waits &= ~bit(port);
    model->fabric_next = port + 1;
    wake(model, agent_of(model, AGENT_FABRIC),
         serve(&model->fabric, model->now_ns, wire_bytes(model->in_fabric)));
}

static bool fabric_accept(struct model *model, struct model_frame *frame)
{
    struct input *input = &model->inputs[frame->in];

    if (input->waiting_bytes + frame_size(frame) > model->conf->input_bytes) {
        frame_drop(model, frame, MODEL_DROP_INPUT);
        return false;
    }
    input->waiting_bytes += frame_size(frame);
    fifo_push(&input->waiting, frame);
    model->fabric_waits |= bit(frame->in);
    frame_store(model, frame);
    if (model->in_fabric == NULL)
        begin(model);
    return true;
}

void fabric_act(struct model *model)
{
    struct model_frame *frame = model->in_fabric;

    model->in_fabric = NULL;
    model->inputs[frame->in].waiting_bytes -= frame_size(frame);
    if (frame->time_ns < model->now_ns)
        frame->time_ns = model->now_ns;
    output_accept(model, frame);
    begin(model);
}

/* --- queueing at the inputs ---------------------------------------------------------------------
 */

/* The functions below model queues at the inputs. An input sends one frame at a time, an output
 * takes one at a time, at the rate of the output's wire. With one queue per input, the frame at its
 * head blocks those behind it, even where outputs are free (Karol, Hluchyj and Morgan 1987: 2 -
 * sqrt 2 = 58.6 % of line under uniform load); with a queue for each output at each input this does
 * not happen.
 *
 * Matching: the free outputs in order, beginning one further each time, grant the first free
 * input at or behind their pointer that has a frame for them; the pointer moves behind this
 * input. */

static struct fifo *queue_of(struct model *model, unsigned in, unsigned out)
{
    return model->conf->queueing == MODEL_VOQ ? &model->voq[in][out] : &model->inputs[in].waiting;
}

static void want(struct model *model, unsigned in, unsigned out)
{
    model->outputs[out].from |= bit(in);
    model->wanted |= bit(out);
}

static bool crossbar_accept(struct model *model, struct model_frame *frame)
{
    struct fifo *queue = queue_of(model, frame->in, frame->out);
    int64_t due = frame->time_ns > model->now_ns ? frame->time_ns : model->now_ns;

    /* With these queues, the port's part of the buffer belongs to the input. */
    if (model->truth[frame->in].input_bytes + frame_size(frame) >
        model->outputs[frame->in].most_bytes) {
        frame_drop(model, frame, MODEL_DROP_INPUT);
        return false;
    }
    if (queue->first == NULL)
        want(model, frame->in, frame->out);
    fifo_push(queue, frame);
    frame_store(model, frame);
    if (due < model->event_queue.time_ns[agent_of(model, AGENT_MATCH)])
        wake(model, agent_of(model, AGENT_MATCH), due);
    return true;
}

static void start(struct model *model, unsigned in, unsigned out)
{
    struct output *output = &model->outputs[out];
    struct fifo *queue = queue_of(model, in, out);
    struct model_frame *frame = fifo_pop(queue);

    if (queue->first == NULL || queue->first->out != out) {
        output->from &= ~bit(in);
        if (output->from == 0)
            model->wanted &= ~bit(out);
    }
    if (queue->first != NULL)
        want(model, in, queue->first->out);
    output->grant = in + 1;
    model->inputs_free &= ~bit(in);
    output_send(model, out, frame);
}

/* Grant one free output to a free input with a frame for this output; return the next time at which
 * the result may change without a new frame. */
static int64_t grant(struct model *model, unsigned out)
{
    struct output *output = &model->outputs[out];
    uint64_t inputs = output->from & model->inputs_free;
    int64_t again = MODEL_NEVER;

    if (output->paused_until_ns > model->now_ns)
        return output->paused_until_ns;
    while (inputs != 0) {
        unsigned in = next_bit(inputs, output->grant);
        int64_t due = queue_of(model, in, out)->first->time_ns;

        if (due <= model->now_ns) {
            start(model, in, out);
            return MODEL_NEVER;
        }
        again = due < again ? due : again;
        inputs &= ~bit(in);
    }
    return again;
}

void crossbar_act(struct model *model)
{
    uint64_t outputs = model->wanted & model->outputs_free;
    int64_t next = MODEL_NEVER;

    model->match_first = (model->match_first + 1) % model->ports;
    while (outputs != 0) {
        unsigned out = next_bit(outputs, model->match_first);
        int64_t again = grant(model, out);

        next = again < next ? again : next;
        outputs &= ~bit(out);
    }
    wake(model, agent_of(model, AGENT_MATCH), next);
}

/* --- admission to an output ------------------------------------------------------------------ */

bool frame_admit(struct model *model, struct model_frame *frame, unsigned out)
{
    frame->out = (uint8_t)out;
    frame->time_ns = model->now_ns + model->conf->latency_ns;
    if ((model->dead & bit(out)) != 0) {
        frame_drop(model, frame, MODEL_DROP_DEAD);
        return false;
    }
    if (model->conf->queueing != MODEL_OUTPUT)
        return crossbar_accept(model, frame);
    if (model->has_fabric && !model->conf->ports[frame->in].trunk)
        return fabric_accept(model, frame);
    return output_accept(model, frame);
}

/* Send copies by all ports but the last; the frame itself leaves by the last port. */
void frame_flood(struct model *model, struct model_frame *frame)
{
    uint64_t outs = model->flood_mask & ~bit(frame->in);

    frame->flow->counts.flooded++;
    frame->marks |= MARK_FLOODED;
    if (outs == 0) {
        frame_drop(model, frame, MODEL_DROP_FILTERED);
        return;
    }
    for (; (outs & (outs - 1)) != 0; outs &= outs - 1) {
        struct model_frame *copy = frame_copy(model, frame);

        if (copy != NULL) {
            frame_admit(model, copy, (unsigned)__builtin_ctzll(outs));
            continue;
        }
        /* A copy that could not be made counts as made and lost. */
        frame->flow->counts.copies++;
        frame->flow->counts.dropped[MODEL_DROP_MEMORY]++;
        model->truth[frame->in].dropped[MODEL_DROP_MEMORY]++;
    }
    frame_admit(model, frame, (unsigned)__builtin_ctzll(outs));
}
