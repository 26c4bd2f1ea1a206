/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queueing at the inputs: an input sends one frame at a time, an output takes one at a time, and
 * the output's wire is the pace. With one queue an input, the frame at its head blocks those behind
 * it, whatever outputs are free (Karol, Hluchyj and Morgan 1987: 2 - sqrt 2 = 58.6 % of line under
 * uniform load); with a queue for each output at each input it does not.
 *
 * Matching: the free outputs in turn, beginning one further each time, grant the first input at or
 * behind their pointer that is free and has a frame for them; the pointer moves behind it.
 */
#include "inside.h"

static struct fifo *queue_of(struct model *model, unsigned in, unsigned out)
{
    return model->conf->queueing == MODEL_VOQ ? &model->voq[in][out] : &model->inputs[in].waiting;
}

static void want(struct model *model, unsigned in, unsigned out)
{
    model->outputs[out].from |= bit(in);
    model->wanted |= bit(out);
}

bool crossbar_accept(struct model *model, struct model_frame *frame)
{
    struct input *input = &model->inputs[frame->in];
    const struct output *share = &model->outputs[frame->in]; /* the port's part of the buffer */
    struct fifo *queue = queue_of(model, frame->in, frame->out);
    int64_t due = frame->time_ns > model->now_ns ? frame->time_ns : model->now_ns;

    if (input->stored_bytes + frame_size(frame) > share->most_bytes) {
        frame_drop(model, frame, MODEL_DROP_INPUT);
        return false;
    }
    if (queue->first == NULL)
        want(model, frame->in, frame->out);
    fifo_push(queue, frame);
    frame_store(model, frame);
    if (due < model->event_queue.time_ns[agent_match(model)])
        wake(model, agent_match(model), due);
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

/* Matches one output. Returns when something may change by time alone. */
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
    wake(model, agent_match(model), next);
}

void crossbar_done(struct model *model, const struct model_frame *frame)
{
    model->inputs_free |= bit(frame->in);
}
