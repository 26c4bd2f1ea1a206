/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An output: a queue with a limit, and a wire.
 */
#include "inside.h"

#define PAUSE_BYTES (MODEL_SIZE_MIN + MODEL_LAYER1)

static bool has_room(const struct model *model, const struct output *output,
                     const struct model_frame *frame)
{
    uint32_t size = frame_size(frame);

    if (model->conf->shared)
        return model->shared_bytes + size <= model->conf->buffer_bytes;
    return output->queue_bytes + size <= output->most_bytes;
}

static void take_room(struct model *model, unsigned port, int64_t bytes)
{
    struct output *output = &model->outputs[port];

    output->queue_bytes += (uint64_t)bytes;
    model->shared_bytes += (uint64_t)bytes;
    if (output->queue_bytes > model->truth[port].queue_high_bytes)
        model->truth[port].queue_high_bytes = output->queue_bytes;
}

/* The output's processor is busy with an overload until some time behind its end: what it would
 * hold had it dropped for want of room alone says when that is. An overload of a tenth drops one
 * frame of eleven, so it goes on for as long as there is no room for a second frame. */
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
        output->recovers_ns = now_ns + model->conf->recovery_ns;
    if (held_ns <= most_ns)
        output->load_ns = from_ns + (int64_t)frame_ns;
    return recovers;
}

bool output_accept(struct model *model, struct model_frame *frame)
{
    struct output *output = &model->outputs[frame->out];

    if (model->conf->ports[frame->out].trunk)
        output->over_ns[frame->in] = model->now_ns;
    if (model->conf->recovery_ns > 0 && recovers(model, output, frame)) {
        frame_drop(model, frame, MODEL_DROP_RECOVERY);
        return false;
    }
    if (!has_room(model, output, frame)) {
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

static void send_control(struct model *model, unsigned port)
{
    struct output *output = &model->outputs[port];

    output->control_waits = false;
    output->control_leaves = true;
    model->outputs_free &= ~bit(port);
    wake(model, agent_output(model, port), serve(&output->wire, model->now_ns, PAUSE_BYTES));
}

void output_send(struct model *model, unsigned port, struct model_frame *frame)
{
    struct output *output = &model->outputs[port];

    output->sending = frame;
    model->outputs_free &= ~bit(port);
    wake(model, agent_output(model, port), serve(&output->wire, model->now_ns, wire_bytes(frame)));
}

void output_try(struct model *model, unsigned port)
{
    struct output *output = &model->outputs[port];
    struct model_frame *frame;
    int64_t start;

    if (output->sending != NULL || output->control_leaves)
        return;
    if (output->control_waits) {
        send_control(model, port);
        return;
    }
    if (model->conf->queueing != MODEL_OUTPUT) {
        wake(model, agent_output(model, port), MODEL_NEVER);
        wake(model, agent_match(model), model->now_ns);
        return;
    }
    frame = output->queue.first;
    if (frame == NULL) {
        wake(model, agent_output(model, port), MODEL_NEVER);
        return;
    }
    start = frame->time_ns > output->paused_until_ns ? frame->time_ns : output->paused_until_ns;
    if (start > model->now_ns)
        wake(model, agent_output(model, port), start);
    else
        output_send(model, port, fifo_pop(&output->queue));
}

void output_empty(struct model *model, unsigned port, enum model_drop why)
{
    struct model_frame *frame;

    while ((frame = fifo_pop(&model->outputs[port].queue)) != NULL) {
        take_room(model, port, -(int64_t)frame_size(frame));
        frame_drop(model, frame, why);
    }
}

/* By its flow, and by flow and the port where nobody asked for it. */
static void count_wrong(struct model *model, const struct model_frame *frame, uint64_t sign)
{
    uint64_t key[2] = {(frame->flow->key[0] & ~(uint64_t)0xff) | frame->out, frame->flow->key[1]};

    frame->flow->counts.misdelivered += sign;
    if (frame->flow != flows_rest(&model->flows))
        flows_get(&model->wrong, key)->counts.misdelivered += sign;
}

/* `sign`: 1, or -1 when a frame did not leave after all. */
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
    if (frame->flow == NULL) /* a PAUSE frame of the switch's own */
        return;
    count_left(model, frame, (uint64_t)-1);
    frame->flow->counts.dropped[why]++;
    model->truth[frame->out].dropped[why]++;
}

static void finish(struct model *model, unsigned port)
{
    struct output *output = &model->outputs[port];
    struct model_frame *frame = output->sending;

    output->sending = NULL;
    if (model->conf->queueing == MODEL_OUTPUT)
        take_room(model, port, -(int64_t)frame_size(frame));
    else
        crossbar_done(model, frame);
    frame_unstore(model, frame);
    count_left(model, frame, 1);
    model->inside--;
    model->host->leave(model->host->context, frame, model->now_ns);
}

void output_act(struct model *model, unsigned port)
{
    struct output *output = &model->outputs[port];

    if (output->control_leaves) {
        output->control_leaves = false;
        model->outputs_free |= bit(port);
        pause_sent(model, port);
    } else if (output->sending != NULL) {
        model->outputs_free |= bit(port);
        finish(model, port);
    }
    output_try(model, port);
}
