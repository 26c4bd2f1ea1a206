/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Back-pressure (IEEE 802.3 annex 31B). A station whose frames fill more than `high` is told to
 * pause, and to go on when they fill less than `low`. A PAUSE frame goes before all that waits, and
 * is sent again when half its time is over.
 */
#include "inside.h"

#define QUANTUM_BITS 512
#define QUANTA_MAX 0xffff
#define PAUSE_LENGTH (MODEL_SIZE_MIN - MODEL_FCS)
#define FALLBACK_BPS 10000000000ULL /* a link without a limit counts its quanta as 10G does */

static const uint8_t pause_head[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01, 0x02, 0x53,
                                     0x42, 0xff, 0x00, 0x00, 0x88, 0x08, 0x00, 0x01};

static int64_t quanta_ns(const struct model *model, unsigned port, uint32_t quanta)
{
    uint64_t bps = model->outputs[port].bps;

    return (int64_t)((double)quanta * QUANTUM_BITS * 1e9 / (double)(bps > 0 ? bps : FALLBACK_BPS));
}

/* When the first of them is to be told again. */
static void plan_renewal(struct model *model)
{
    int64_t first = MODEL_NEVER;

    for (unsigned i = 0; i < model->ports; i++)
        if (model->inputs[i].xoff && model->inputs[i].renew_ns < first)
            first = model->inputs[i].renew_ns;
    wake(model, agent_renew(model), first);
}

static void tell(struct model *model, unsigned port, uint16_t quanta)
{
    struct output *output = &model->outputs[port];

    output->control_waits = true;
    output->control_quanta = quanta;
    model->inputs[port].renew_ns = model->now_ns + quanta_ns(model, port, quanta / 2);
    plan_renewal(model);
    output_try(model, port);
}

void pause_stored(struct model *model, unsigned port)
{
    struct input *input = &model->inputs[port];

    if (!input->xoff && input->stored_bytes > model->conf->pause.high_bytes) {
        input->xoff = true;
        tell(model, port, QUANTA_MAX);
    } else if (input->xoff && input->stored_bytes < model->conf->pause.low_bytes) {
        input->xoff = false;
        tell(model, port, 0);
    }
}

void pause_act(struct model *model)
{
    for (unsigned i = 0; i < model->ports; i++)
        if (model->inputs[i].xoff && model->inputs[i].renew_ns <= model->now_ns)
            tell(model, i, QUANTA_MAX);
    plan_renewal(model);
}

/* To the module behind a trunk. */
static void emit(struct model *model, unsigned port)
{
    struct model_frame *frame = model->host->make(model->host->context, PAUSE_LENGTH);
    uint16_t quanta = model->outputs[port].control_quanta;

    if (frame == NULL) {
        model->truth[port].dropped[MODEL_DROP_MEMORY]++;
        return;
    }
    memset(frame->data, 0, PAUSE_LENGTH);
    memcpy(frame->data, pause_head, sizeof pause_head);
    frame->data[11] = (uint8_t)port;
    frame->data[16] = (uint8_t)(quanta >> 8);
    frame->data[17] = (uint8_t)quanta;
    frame->flow = NULL;
    frame->in = frame->out = (uint8_t)port;
    model->host->leave(model->host->context, frame, model->now_ns);
}

void pause_sent(struct model *model, unsigned port)
{
    uint16_t quanta = model->outputs[port].control_quanta;

    model->truth[port].pause_sent++;
    if (!model->conf->ports[port].trunk)
        model->inputs[port].paused_until_ns = model->now_ns + quanta_ns(model, port, quanta);
    else
        emit(model, port);
}

bool pause_hear(struct model *model, struct model_frame *frame)
{
    struct model_port_truth *truth = &model->truth[frame->in];
    const uint8_t *data = frame->data;

    if (memcmp(data, pause_head, 5) != 0 || data[5] > 0x0f)
        return false;
    truth->control_received++;
    if (frame->length >= 18 && data[5] == 1 && memcmp(data + 12, pause_head + 12, 4) == 0) {
        truth->pause_received++;
        model->outputs[frame->in].paused_until_ns =
            model->now_ns + quanta_ns(model, frame->in, big_endian(data + 16));
        output_try(model, frame->in);
    }
    model->inside--;
    model->host->release(model->host->context, frame);
    return true;
}
