/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A module's switching capacity: one server that all frames pass one by one, before which each
 * input has a queue of its own; the inputs take turns by frames. What comes by a trunk has passed
 * the other module's, and goes to the outputs' queues.
 */
#include "inside.h"

#define ACTIVE_NS 100000000 /* a port is active so long after a frame came in by it */

uint64_t rates_at(const struct model_rates *rates, unsigned active)
{
    const struct model_step *step = rates->step;
    double share;

    if (rates->step_count == 0)
        return 0;
    if (active <= step[0].ports)
        return step[0].bps;
    for (unsigned i = 1; i < rates->step_count; i++) {
        if (active > step[i].ports)
            continue;
        share = (double)(active - step[i - 1].ports) / (step[i].ports - step[i - 1].ports);
        return (uint64_t)((1 - share) * (double)step[i - 1].bps + share * (double)step[i].bps);
    }
    return step[rates->step_count - 1].bps;
}

static void set_capacity(struct model *model)
{
    uint64_t bps = rates_at(&model->conf->capacity, model->active);

    if (model->collapsed)
        bps = (uint64_t)(model->conf->collapse.to * (double)model->line_bps);
    if (bps == model->capacity_bps)
        return;
    model->capacity_bps = bps;
    model->fabric.byte_time = byte_time(bps);
}

void fabric_open(struct model *model)
{
    const struct model_conf *conf = model->conf;

    model->has_fabric = conf->capacity.step_count > 0 || conf->collapse.above > 0;
    model->recount_ns = model->now_ns;
    model->offered_from_ns = model->now_ns;
    model->line_bytes = (double)model->line_bps / 8e9 * (double)conf->collapse.window_ns;
    model->fabric.free_ns = model->now_ns;
    set_capacity(model);
}

/* A trunk carries what so many senders can bring over it. */
static void set_trunk(struct model *model, unsigned port)
{
    const struct model_rates *rate = &model->conf->ports[port].rate;
    struct output *output = &model->outputs[port];
    unsigned senders = 0;

    if (!model->conf->ports[port].trunk || rate->step_count < 2)
        return;
    for (unsigned i = 0; i < model->ports; i++)
        senders += model->now_ns - output->over_ns[i] <= ACTIVE_NS;
    output->bps = rates_at(rate, senders);
    output->wire.byte_time = byte_time(output->bps);
}

static void recount(struct model *model)
{
    model->active = 0;
    for (unsigned i = 0; i < model->ports; i++) {
        model->active +=
            !model->conf->ports[i].trunk && model->now_ns - model->inputs[i].active_ns <= ACTIVE_NS;
        set_trunk(model, i);
    }
    model->recount_ns = model->now_ns + ACTIVE_NS / 8 + 1;
    set_capacity(model);
}

/* The windows of the offered load follow each other; one without a frame counts too. */
static void judge_load(struct model *model)
{
    const struct model_conf *conf = model->conf;
    double offered = (double)model->offered_bytes / model->line_bytes;
    int64_t windows = (model->now_ns - model->offered_from_ns) / conf->collapse.window_ns;

    if (offered > conf->collapse.above)
        model->collapsed = true;
    else if (offered < conf->collapse.recover)
        model->collapsed = false;
    if (windows > 1)
        model->collapsed = false;
    model->offered_bytes = 0;
    model->offered_from_ns += windows * conf->collapse.window_ns;
    set_capacity(model);
}

void fabric_note(struct model *model, unsigned in, uint32_t bytes)
{
    const struct model_conf *conf = model->conf;

    model->inputs[in].active_ns = model->now_ns;
    if (model->now_ns >= model->recount_ns)
        recount(model);
    if (conf->collapse.above <= 0)
        return;
    if (model->now_ns - model->offered_from_ns >= conf->collapse.window_ns)
        judge_load(model);
    model->offered_bytes += bytes;
}

static void begin(struct model *model)
{
    struct input *input;
    unsigned port;

    if (model->fabric_waits == 0) {
        wake(model, agent_fabric(model), MODEL_NEVER);
        return;
    }
    port = next_bit(model->fabric_waits, model->fabric_next);
    input = &model->inputs[port];
    model->in_fabric = fifo_pop(&input->waiting);
    if (input->waiting.first == NULL)
        model->fabric_waits &= ~bit(port);
    model->fabric_next = port + 1;
    wake(model, agent_fabric(model),
         serve(&model->fabric, model->now_ns, wire_bytes(model->in_fabric)));
}

bool fabric_accept(struct model *model, struct model_frame *frame)
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
