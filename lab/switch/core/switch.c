/* SPDX-License-Identifier: BSD-3-Clause */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

#define HEADER 14

const char *const model_drop_names[MODEL_DROPS] = {
    [MODEL_DROP_QUEUE] = "queue",       [MODEL_DROP_INPUT] = "input",
    [MODEL_DROP_FAULT] = "fault",       [MODEL_DROP_DEAD] = "dead",
    [MODEL_DROP_SIZE] = "size",         [MODEL_DROP_FILTERED] = "filtered",
    [MODEL_DROP_RECOVERY] = "recovery", [MODEL_DROP_RESET] = "reset",
    [MODEL_DROP_MEMORY] = "memory",     [MODEL_DROP_HOST] = "host",
    [MODEL_DROP_LINK] = "link",
};

/* --- input --- */

static struct model_flow *flow_of(struct model *model, const struct model_frame *frame,
                                  struct model_flow_name *name)
{
    struct model_flow *last = model->last_flow[frame->in];
    uint64_t key[2];

    if (!model->conf->by_tag)
        name->tagged = false;
    if (!name->tagged)
        name->tag = 0;
    flows_key(key, name);
    if (last != NULL && last->key[0] == key[0] && last->key[1] == key[1])
        return last;
    last = flows_get(&model->flows, key);
    return model->last_flow[frame->in] = last;
}

/* Return the reason for which a received frame must be dropped; MODEL_DROPS: it is not dropped. */
static enum model_drop refusal(const struct model *model, const struct model_frame *frame,
                               unsigned out)
{
    uint32_t most = model->conf->mtu + HEADER;

    if ((model->dead & bit(frame->in)) != 0)
        return MODEL_DROP_DEAD;
    if (model->now_ns < model->down_until_ns)
        return MODEL_DROP_RESET;
    if (model->conf->drop_undersize && frame_size(frame) < MODEL_SIZE_MIN)
        return MODEL_DROP_SIZE;
    if (frame->length > most &&
        (frame->length > most + VLAN_TAG || big_endian(frame->data + 12) != TYPE_VLAN))
        return MODEL_DROP_SIZE;
    return out == frame->in ? MODEL_DROP_FILTERED : MODEL_DROPS;
}

static void route(struct model *model, struct model_frame *frame)
{
    uint64_t source = model_mac(frame->data + 6), destination = model_mac(frame->data);
    struct model_flow_name name = {
        .source = source, .destination = destination, .in = frame->in, .out = MODEL_FLOOD};
    enum model_drop why;
    bool measured;
    int found;

    found = model->vlan_peer[frame->in]; /* a VLAN of two ports needs no address table */
    if (found == MODEL_NO_PORT && !is_group(source) && (model->dead & bit(frame->in)) == 0 &&
        model->now_ns >= model->down_until_ns)
        table_learn(&model->table, source, frame->in, model->now_ns);
    if (found == MODEL_NO_PORT && !is_group(destination))
        found = table_find(&model->table, destination, model->now_ns);
    if (found != MODEL_NO_PORT)
        name.out = (unsigned)found;
    frame->meant = (uint8_t)name.out;
    measured = name.tagged = model->reads_tags && frame_tag(frame, &name.tag);
    frame->flow = flow_of(model, frame, &name);
    frame->flow->counts.received++;
    frame->flow->counts.received_bytes += frame_size(frame);
    why = refusal(model, frame, name.out);
    if (why != MODEL_DROPS)
        frame_drop(model, frame, why);
    else if (!apply_faults(model, frame, name.out, measured))
        frame_forward(model, frame, name.out);
}

static void input_act(struct model *model, unsigned port)
{
    struct input *input = &model->inputs[port];
    struct model_port_truth *truth = &model->truth[port];
    struct model_frame *frame = fifo_pop(&input->arriving);

    if (input->arriving.first != NULL)
        __builtin_prefetch(input->arriving.first->data);
    wake(model, agent_input(model, port),
         input->arriving.first != NULL ? input->arriving.first->time_ns : MODEL_NEVER);
    truth->received++;
    truth->received_bytes += frame_size(frame);
    if (frame->length < HEADER) {
        truth->dropped[MODEL_DROP_SIZE]++;
        model->inside--;
        model->host->release(model->host->context, frame);
        return;
    }
    if (consume_control(model, frame))
        return;
    fabric_note(model, wire_bytes(frame));
    route(model, frame);
}

int64_t model_wire_free(const struct model *model, unsigned port)
{
    const struct input *input = &model->inputs[port];

    return input->wire.free_ns > input->paused_until_ns ? input->wire.free_ns
                                                        : input->paused_until_ns;
}

/* --- time --- */

void model_run(struct model *model, int64_t until_ns)
{
    void (*const others[])(struct model *) = {fabric_act, faults_act, pause_act, crossbar_act};
    unsigned agent;
    int64_t time_ns;

    for (;;) {
        agent = event_queue_first(&model->event_queue);
        time_ns = model->event_queue.time_ns[agent];
        if (time_ns > until_ns || time_ns == MODEL_NEVER)
            break;
        model->now_ns = time_ns;
        if (agent < model->ports)
            output_act(model, agent);
        else if (agent < 2 * model->ports)
            input_act(model, agent - model->ports);
        else
            others[agent - 2 * model->ports](model);
    }
    if (model->now_ns < until_ns)
        model->now_ns = until_ns;
}

int64_t model_next(const struct model *model)
{
    return model->event_queue.time_ns[event_queue_first(&model->event_queue)];
}

/* --- counts --- */

void model_reset(struct model *model, int64_t down_ns)
{
    model->down_until_ns = model->now_ns + down_ns;
    table_clear(&model->table);
    for (unsigned i = 0; i < model->ports; i++)
        output_empty(model, i, MODEL_DROP_RESET);
}

void model_clear(struct model *model)
{
    flows_clear(&model->flows);
    flows_clear(&model->wrong);
    for (unsigned i = 0; i < model->ports; i++) {
        const struct model_port_truth *truth = &model->truth[i];

        model->truth[i] = (struct model_port_truth){
            .queue_bytes = truth->queue_bytes,
            .input_bytes = truth->input_bytes,
        };
    }
    faults_clear(model);
}

struct model_truth model_truth(const struct model *model)
{
    return (struct model_truth){
        .flows = model->flows.all,
        .flow_count = model->flows.count,
        .rest = &model->flows.all[MODEL_FLOWS_MAX],
        .wrong = model->wrong.all,
        .wrong_count = model->wrong.count,
        .ports = model->truth,
        .faults = model->fault_truth,
        .table = &model->table.truth,
        .inside = model->inside,
    };
}

/* --- open and close --- */

/* Return the first other port of a port's VLAN, and the number of such ports. */
static int vlan_peer(const struct model_conf *conf, unsigned port, unsigned *count)
{
    int found = MODEL_NO_PORT;

    *count = 0;
    for (unsigned i = conf->port_count; i-- > 0 && conf->ports[port].vlan > 0;) {
        if (i == port || conf->ports[i].vlan != conf->ports[port].vlan)
            continue;
        found = (int)i;
        ++*count;
    }
    return found;
}

static int check_chain(const struct model_conf *conf, unsigned port, struct err *err)
{
    const struct model_port_conf *of = &conf->ports[port];
    int other = model_port(conf, of->cable);
    unsigned others;

    vlan_peer(conf, port, &others);
    if (of->vlan > 0 && others != 1)
        return err_set(err, -EINVAL, "ports: %s: VLAN %u has %u ports: a VLAN must have two",
                       of->name, of->vlan, others + 1);
    if (of->cable == NULL)
        return 0;
    if (other == MODEL_NO_PORT || other == (int)port || conf->ports[other].cable == NULL ||
        strcmp(conf->ports[other].cable, of->name) != 0)
        return err_set(err, -EINVAL, "ports: %s: its `cable` and that of %s must name each other",
                       of->name, of->cable);
    if (conf->pause.send)
        return err_set(
            err, -EINVAL,
            "ports: %s: `pause` can't be combined with a cable between two ports of the switch",
            of->name);
    return 0;
}

static int check_ports(const struct model_conf *conf, struct err *err)
{
    int rc;
    bool rated = false;

    for (unsigned i = 0; i < conf->port_count; i++) {
        const struct model_port_conf *port = &conf->ports[i];

        rated |= port->rate_bps > 0;
        if (model_port(conf, port->name) != (int)i)
            return err_set(err, -EINVAL, "ports: duplicate name '%s'", port->name);
        rc = check_chain(conf, i, err);
        if (rc < 0)
            return rc;
    }
    if (conf->collapse.above > 0 && !rated)
        return err_set(
            err, -EINVAL,
            "collapse: above_percent is a share of the ports' rates: set `rate_bps` for the ports");
    return 0;
}

int model_check(const struct model_conf *conf, struct err *err)
{
    bool at_inputs = conf->queueing != MODEL_OUTPUT;
    const struct model_collapse_conf *collapse = &conf->collapse;
    int rc;

    if (at_inputs && (conf->capacity_bps > 0 || collapse->above > 0))
        return err_set(err, -EINVAL,
                       "queueing input or voq can't be combined with `capacity` or `collapse`: "
                       "remove one of the two");
    if (at_inputs && conf->shared)
        return err_set(err, -EINVAL, "shared memory needs output queues: set queueing: output");
    if (at_inputs && conf->recovery_ms > 0)
        return err_set(err, -EINVAL, "recovery_ms needs output queues: set queueing: output");
    if (conf->pause.send && conf->pause.low_bytes >= conf->pause.high_bytes)
        return err_set(err, -EINVAL, "pause: low has to be below high");
    if (collapse->above > 100 || collapse->to > 100 || (collapse->above > 0 && collapse->to <= 0))
        return err_set(err, -EINVAL,
                       "collapse: above_percent and to_percent are shares of the ports' rates, "
                       "above 0 and up to 100");
    rc = check_ports(conf, err);
    return rc < 0 ? rc : faults_check(conf, err);
}

static uint64_t port_bps(const struct model_conf *conf, unsigned port)
{
    const struct model_port_conf *of = &conf->ports[port];
    uint64_t bps = of->rate_bps;

    for (unsigned i = 0; i < conf->fault_count; i++) {
        const struct model_fault_conf *fault = &conf->faults[i];

        if (fault->kind == MODEL_FAULT_SLOW && strcmp(fault->port, of->name) == 0 &&
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
    unsigned count;

    model->vlan_peer[port] = vlan_peer(model->conf, port, &count);
    model->cable_peer[port] = model_port(model->conf, conf->cable);
    output->bps = port_bps(model->conf, port);
    output->wire = (struct server){.byte_time = byte_time(output->bps), .free_ns = now_ns};
    output->most_bytes = conf->buffer_bytes > 0 ? conf->buffer_bytes : model->conf->buffer_bytes;
    input->wire = (struct server){
        .byte_time = conf->trunk || conf->cable ? 0 : output->wire.byte_time, .free_ns = now_ns};
    input->paused_until_ns = output->paused_until_ns = now_ns;
    output->load_ns = output->recovers_ns = now_ns;
    input->renew_ns = MODEL_NEVER;
    model->flood_mask |= bit(port);
    model->line_bps += output->bps;
}

int model_open(struct model **out, const struct model_conf *conf, const struct model_host *host,
               int64_t now_ns)
{
    struct model *model = *out = calloc(1, sizeof *model);

    if (model == NULL)
        return -ENOMEM;
    model->conf = conf;
    model->host = host;
    model->ports = conf->port_count;
    model->now_ns = model->down_until_ns = now_ns;
    model->reads_tags = conf->by_tag;
    event_queue_open(&model->event_queue, agent_of(model, AGENTS));
    for (unsigned i = 0; i < model->ports; i++)
        open_port(model, i, now_ns);
    model->inputs_free = model->outputs_free = model->flood_mask;
    faults_open(model);
    model->flood_mask &= ~model->dead;
    for (unsigned i = 0; i < model->ports; i++)
        if (model->vlan_peer[i] != MODEL_NO_PORT)
            model->flood_mask &= ~bit(i);
    fabric_open(model);
    if (table_open(&model->table, &conf->table) == 0)
        return 0;
    model_close(model);
    *out = NULL;
    return -ENOMEM;
}

static void release_all(struct model *model, struct model_frame *frame)
{
    while (frame != NULL) {
        struct model_frame *next = frame->next;

        model->host->release(model->host->context, frame);
        frame = next;
    }
}

void model_close(struct model *model)
{
    if (model == NULL)
        return;
    for (unsigned i = 0; i < model->ports; i++) {
        release_all(model, model->inputs[i].arriving.first);
        release_all(model, model->inputs[i].waiting.first);
        release_all(model, model->outputs[i].queue.first);
        release_all(model, model->outputs[i].sending);
        for (unsigned j = 0; j < model->ports; j++)
            release_all(model, model->voq[i][j].first);
    }
    release_all(model, model->in_fabric);
    for (unsigned i = 0; i < model->hold_count; i++)
        release_all(model, model->holds[i].frame);
    table_close(&model->table);
    free(model);
}
