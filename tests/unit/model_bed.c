/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_bed.h"

#include "signature.h"

#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct model_frame *make(void *context, uint32_t length)
{
    struct model_bed *bed = context;
    struct model_frame *frame = calloc(1, sizeof *frame);

    assert_non_null(frame);
    frame->data = calloc(1, length > 64 ? length : 64);
    assert_non_null(frame->data);
    frame->length = length;
    bed->made++;
    return frame;
}

static void release(void *context, struct model_frame *frame)
{
    struct model_bed *bed = context;

    free(frame->data);
    free(frame);
    bed->gone++;
}

static void mix(struct model_bed *bed, uint64_t value)
{
    bed->hash = (bed->hash ^ value) * 0x100000001b3;
}

static void leave(void *context, struct model_frame *frame, int64_t at_ns)
{
    struct model_bed *bed = context;
    struct bed_port *port = &bed->port[frame->out];

    if (bed->note != NULL)
        bed->note(bed, frame, at_ns);
    mix(bed, (uint64_t)at_ns);
    mix(bed, frame->out);
    for (uint32_t i = 0; i < frame->length; i++)
        mix(bed, frame->data[i]);
    port->received++;
    port->received_bytes += frame->length + MODEL_FCS;
    port->pauses += frame->data[12] == 0x88 && frame->data[13] == 0x08;
    if (port->first_ns == 0)
        port->first_ns = at_ns;
    port->last_ns = at_ns;
    if (bed->peer != NULL && frame->out == bed->trunk) {
        struct model_frame *copy = make(bed->peer, frame->length);

        memcpy(copy->data, frame->data, frame->length);
        model_receive(bed->peer->model, bed->peer->trunk, copy, at_ns);
    }
    release(bed, frame);
}

void bed_plain(struct model_bed *bed, unsigned ports, uint64_t rate_bps)
{
    *bed = (struct model_bed){.hash = 0xcbf29ce484222325};
    for (unsigned i = 0; i < ports; i++) {
        snprintf(bed->names[i], sizeof bed->names[i], "p%u", i);
        bed->ports[i] = (struct model_port_conf){.name = bed->names[i]};
        if (rate_bps > 0)
            bed->ports[i].rate = (struct model_rates){.step = {{0, rate_bps}}, .step_count = 1};
    }
    bed->conf = (struct model_conf){
        .seed = 1,
        .port_count = ports,
        .mtu = 1500,
        .buffer_bytes = 1 << 20,
        .input_bytes = 1 << 20,
        .table = {.size = 1024, .ageing_ns = 300 * BED_NS_PER_S},
        .pause = {.high_bytes = 20000, .low_bytes = 10000},
    };
}

void bed_open(struct model_bed *bed)
{
    struct err err = {""};

    bed->conf.ports = bed->ports;
    bed->conf.faults = bed->faults;
    bed->host = (struct model_host){bed, make, release, leave};
    if (model_open(&bed->model, &bed->conf, &bed->host, 0, &err) != 0)
        fail_msg("%s", err.text);
}

static uint64_t outcome(const struct model_counts *counts)
{
    return counts->delivered + counts->astray + bed_dropped(counts);
}

void bed_close(struct model_bed *bed)
{
    uint64_t inside = model_inside(bed->model);
    struct model_counts all = bed_totals(bed);

    if (inside == 0) {
        for (unsigned i = 0; i < model_flow_count(bed->model); i++) {
            const struct model_counts *counts = &model_flow(bed->model, i)->counts;

            assert_int_equal(counts->received + counts->copies, outcome(counts));
        }
        for (unsigned i = 0; i < bed->conf.port_count; i++) {
            assert_int_equal(model_port_truth(bed->model, i).queue_bytes, 0);
            assert_int_equal(model_port_truth(bed->model, i).input_bytes, 0);
        }
    }
    assert_int_equal(all.received + all.copies <= outcome(&all) + inside, true);
    model_close(bed->model);
    assert_int_equal(bed->made, bed->gone);
}

static void put_mac(uint8_t *at, uint64_t mac)
{
    for (unsigned i = 0; i < 6; i++)
        at[i] = (uint8_t)(mac >> 8 * (5 - i));
}

static void sign(uint8_t *at, const struct bed_frame *what)
{
    struct signature signature = {.tag = htobe16(what->tag)};
    struct signature_time time = signature_time(1000);

    signature_stamp(&signature, what->sequence, &time, signature_base(&signature) + time.sum);
    memcpy(at, &signature, sizeof signature);
}

static struct model_frame *build(struct model_bed *bed, const struct bed_frame *what)
{
    struct model_frame *frame = make(bed, what->size - MODEL_FCS);
    uint16_t type = what->tag != 0 ? 0x88b5 : what->ethertype;

    put_mac(frame->data, what->destination);
    put_mac(frame->data + 6, what->source);
    frame->data[12] = (uint8_t)(type >> 8);
    frame->data[13] = (uint8_t)type;
    if (what->tag != 0)
        sign(frame->data + 14, what);
    else if (frame->length >= 18)
        memcpy(frame->data + 14, &what->sequence, 4);
    return frame;
}

void bed_send(struct model_bed *bed, unsigned port, const struct bed_frame *frame)
{
    model_receive(bed->model, port, build(bed, frame), bed->now_ns);
    bed->port[port].sent++;
}

void bed_learn(struct model_bed *bed)
{
    for (unsigned i = 0; i < bed->conf.port_count; i++) {
        struct bed_frame word = {BED_STATION(i), 0xffffffffffff, 64, 0x88b6, 0, 0};

        bed_send(bed, i, &word);
        bed_drain(bed);
    }
    for (unsigned i = 0; i < bed->conf.port_count; i++)
        bed->port[i] = (struct bed_port){0};
    bed->hash = 0xcbf29ce484222325;
    model_clear(bed->model);
}

/* The next moment at which a station may send, MODEL_NEVER when none has anything to say. */
static int64_t feed(struct model_bed *bed)
{
    int64_t next = MODEL_NEVER;

    for (unsigned i = 0; i < bed->conf.port_count && bed->source != NULL; i++) {
        struct bed_frame frame = {0};
        int64_t free_ns;

        if (bed->port[i].silent)
            continue;
        free_ns = model_wire_free(bed->model, i);
        if (free_ns <= bed->now_ns) {
            if (!bed->source(bed, i, &frame)) {
                bed->port[i].silent = true;
                continue;
            }
            bed_send(bed, i, &frame);
            free_ns = model_wire_free(bed->model, i);
        }
        next = free_ns < next ? free_ns : next;
    }
    return next;
}

void bed_run(struct model_bed *bed, int64_t until_ns)
{
    while (bed->now_ns < until_ns) {
        int64_t next = feed(bed);
        int64_t event = model_next(bed->model);

        next = event < next ? event : next;
        next = next < until_ns ? next : until_ns;
        bed->now_ns = next > bed->now_ns ? next : bed->now_ns + 1;
        model_run(bed->model, bed->now_ns);
    }
}

void bed_run_pair(struct model_bed *a, struct model_bed *b, int64_t until_ns)
{
    while (a->now_ns < until_ns) {
        int64_t step = a->now_ns + 500;

        bed_run(a, step);
        bed_run(b, step);
    }
}

void bed_drain(struct model_bed *bed)
{
    bed_source source = bed->source;

    bed->source = NULL;
    while (model_inside(bed->model) > 0 && model_next(bed->model) != MODEL_NEVER)
        bed_run(bed,
                model_next(bed->model) > bed->now_ns ? model_next(bed->model) : bed->now_ns + 1);
    bed->source = source;
}

uint64_t bed_dropped(const struct model_counts *counts)
{
    uint64_t dropped = 0;

    for (unsigned i = 0; i < MODEL_DROPS; i++)
        dropped += counts->dropped[i];
    return dropped;
}

struct model_counts bed_totals(const struct model_bed *bed)
{
    struct model_counts all = {0};

    for (unsigned i = 0; i < model_flow_count(bed->model); i++) {
        const uint64_t *from = (const uint64_t *)&model_flow(bed->model, i)->counts;
        uint64_t *to = (uint64_t *)&all;

        for (size_t k = 0; k < sizeof all / sizeof *to; k++)
            to[k] += from[k];
    }
    return all;
}

const struct model_flow *bed_flow(const struct model_bed *bed, unsigned in, unsigned out)
{
    for (unsigned i = 0; i < model_flow_count(bed->model); i++) {
        struct model_flow_name name = model_flow_name(model_flow(bed->model, i));

        if (name.in == in && name.out == out && name.source == BED_STATION(in))
            return model_flow(bed->model, i);
    }
    fail_msg("no flow from port %u to port %u", in, out);
    return NULL;
}
