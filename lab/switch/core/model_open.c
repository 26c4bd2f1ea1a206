/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a model is made of its configuration, and taken apart.
 */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t slowed(const struct model_conf *conf, unsigned port, uint64_t bps)
{
    for (unsigned i = 0; i < conf->fault_count; i++) {
        const struct model_fault_conf *fault = &conf->faults[i];

        if (fault->kind == MODEL_FAULT_SLOW && fault->in == (int)port &&
            (bps == 0 || fault->rate_bps < bps))
            bps = fault->rate_bps;
    }
    return bps;
}

static void open_port(struct model *model, unsigned port, int64_t now_ns)
{
    const struct model_port_conf *conf = &model->conf->ports[port];
    struct output *output = &model->outputs[port];
    struct input *input = &model->inputs[port];

    output->bps = slowed(model->conf, port, rates_at(&conf->rate, 0));
    output->wire = (struct server){.byte_time = byte_time(output->bps), .free_ns = now_ns};
    output->most_bytes = conf->buffer_bytes > 0 ? conf->buffer_bytes : model->conf->buffer_bytes;
    input->wire =
        (struct server){.byte_time = conf->trunk ? 0 : output->wire.byte_time, .free_ns = now_ns};
    input->paused_until_ns = output->paused_until_ns = now_ns;
    output->load_ns = output->recovers_ns = now_ns;
    input->active_ns = INT64_MIN / 2;
    input->renew_ns = MODEL_NEVER;
    for (unsigned i = 0; i < MODEL_PORTS_MAX; i++)
        output->over_ns[i] = INT64_MIN / 2;
    model->flood_mask |= bit(port);
    model->line_bps += output->bps;
}

static bool ascend(const struct model_rates *rates)
{
    for (unsigned i = 1; i < rates->step_count; i++)
        if (rates->step[i].ports <= rates->step[i - 1].ports)
            return false;
    return true;
}

static int check(const struct model_conf *conf, struct err *err)
{
    if (conf->port_count < 2 || conf->port_count > MODEL_PORTS_MAX)
        return err_set(err, -EINVAL, "ports: a module has 2 to %d, not %u", MODEL_PORTS_MAX,
                       conf->port_count);
    if (conf->queueing != MODEL_OUTPUT &&
        (conf->capacity.step_count > 0 || conf->collapse.above > 0))
        return err_set(
            err, -EINVAL,
            "queueing input or voq and a capacity or collapse of the module exclude each "
            "other: a frame would wait at its input for two things");
    if (conf->queueing != MODEL_OUTPUT && conf->shared)
        return err_set(err, -EINVAL, "shared memory is the outputs': queueing has to be output");
    if (conf->queueing != MODEL_OUTPUT && conf->recovery_ns > 0)
        return err_set(err, -EINVAL, "a recovery is the outputs': queueing has to be output");
    if (conf->pause.send && conf->pause.low_bytes >= conf->pause.high_bytes)
        return err_set(err, -EINVAL, "pause: low has to be below high");
    if (conf->table.size == 0 || conf->table.size > TABLE_SIZE_MAX)
        return err_set(err, -EINVAL, "the address table holds 1 to %u addresses", TABLE_SIZE_MAX);
    if (conf->collapse.above > 0 && conf->collapse.window_ns <= 0)
        return err_set(err, -EINVAL, "collapse needs a window");
    for (unsigned i = 0; i < conf->port_count; i++)
        if (!ascend(&conf->ports[i].rate))
            return err_set(err, -EINVAL, "port %s: its rates have to ascend by ports",
                           conf->ports[i].name);
    if (!ascend(&conf->capacity))
        return err_set(err, -EINVAL, "capacity: its steps have to ascend by ports");
    return 0;
}

static int allocate(struct model *model)
{
    int rc = table_open(&model->table, model->conf);

    if (rc == 0)
        rc = flows_open(&model->flows);
    if (rc == 0)
        rc = flows_open(&model->wrong);
    if (rc == 0)
        rc = faults_open(model);
    if (rc == 0 && model->conf->queueing != MODEL_OUTPUT) {
        model->voq = calloc(MODEL_PORTS_MAX, sizeof *model->voq);
        rc = model->voq != NULL ? 0 : -ENOMEM;
    }
    return rc;
}

int model_open(struct model **out, const struct model_conf *conf, const struct model_host *host,
               int64_t now_ns, struct err *err)
{
    struct model *model;
    int rc = check(conf, err);

    *out = NULL;
    if (rc < 0)
        return rc;
    model = calloc(1, sizeof *model);
    if (model == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    model->conf = conf;
    model->host = host;
    model->ports = conf->port_count;
    model->now_ns = model->down_until_ns = now_ns;
    event_queue_open(&model->event_queue, agent_match(model) + 1);
    for (unsigned i = 0; i < model->ports; i++)
        open_port(model, i, now_ns);
    model->inputs_free = model->outputs_free = model->flood_mask;
    if ((rc = allocate(model)) < 0) {
        model_close(model);
        return err_set(err, rc, "out of memory");
    }
    if (conf->collapse.above > 0 && model->line_bps == 0)
        rc = err_set(err, -EINVAL,
                     "collapse above a share of the line rate needs ports with a rate");
    fabric_open(model);
    model->flood_mask &= ~model->dead;
    model->reads_tags |= conf->by_tag;
    if (rc < 0)
        model_close(model);
    else
        *out = model;
    return rc;
}

static void release_all(struct model *model, struct fifo *fifo)
{
    struct model_frame *frame;

    while ((frame = fifo_pop(fifo)) != NULL)
        model->host->release(model->host->context, frame);
}

void model_close(struct model *model)
{
    if (model == NULL)
        return;
    for (unsigned i = 0; i < model->ports; i++) {
        release_all(model, &model->inputs[i].arriving);
        release_all(model, &model->inputs[i].waiting);
        release_all(model, &model->outputs[i].queue);
        for (unsigned j = 0; model->voq != NULL && j < model->ports; j++)
            release_all(model, &model->voq[i][j]);
        if (model->outputs[i].sending != NULL)
            model->host->release(model->host->context, model->outputs[i].sending);
    }
    if (model->in_fabric != NULL)
        model->host->release(model->host->context, model->in_fabric);
    for (unsigned i = 0; i < model->hold_count; i++)
        model->host->release(model->host->context, model->holds[i].frame);
    faults_close(model);
    table_close(&model->table);
    flows_close(&model->flows);
    flows_close(&model->wrong);
    free(model->voq);
    free(model);
}
