/* SPDX-License-Identifier: BSD-3-Clause */
#include "model_bed.h"

#include "signature.h"

#include <stddef.h>

#include <cmocka.h>
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
    free(frame->data);
    free(frame);
    ((struct model_bed *)context)->gone++;
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
        bed->note(bed, frame);
    mix(bed, (uint64_t)at_ns);
    mix(bed, frame->out);
    for (uint32_t i = 0; i < frame->length; i++)
        mix(bed, frame->data[i]);
    port->received++;
    port->pauses += frame->data[12] == 0x88 && frame->data[13] == 0x08;
    if (port->first_ns == 0)
        port->first_ns = at_ns;
    port->last_ns = at_ns;
    if (bed->peer != NULL && frame->out + 1u == bed->conf.port_count) {
        struct model_frame *copy = make(bed->peer, frame->length);

        memcpy(copy->data, frame->data, frame->length);
        model_receive(bed->peer->model, frame->out, copy, at_ns);
    }
    release(bed, frame);
}

void bed_plain(struct model_bed *bed, unsigned ports, uint64_t rate_bps)
{
    *bed = (struct model_bed){.talking = ports, .size = 1518, .random = 7};
    for (unsigned i = 0; i < ports; i++) {
        bed->ports[i] = (struct model_port_conf){.name = "p"};
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
        .ports = bed->ports,
        .faults = bed->faults,
    };
}

static void open_model(struct model_bed *bed)
{
    struct err err = {""};

    bed->host = (struct model_host){bed, make, release, leave};
    if (model_open(&bed->model, &bed->conf, &bed->host, 0, &err) != 0)
        fail_msg("%s", err.text);
}

void bed_open(struct model_bed *bed)
{
    open_model(bed);
    for (unsigned i = 0; i < bed->conf.port_count; i++) {
        bed_send_type(bed, i, BED_STATION(i), 0xffffffffffff, 64, 0x88b6);
        bed_drain(bed);
    }
    memset(bed->port, 0, sizeof bed->port);
    bed->hash = 0;
    model_clear(bed->model);
}

void bed_join(struct model_bed beds[2], const struct model_rates *trunk)
{
    for (unsigned k = 0; k < 2; k++) {
        struct model_bed *bed = &beds[k];

        bed->ports[bed->conf.port_count - 1] =
            (struct model_port_conf){.name = "trunk", .trunk = true, .rate = *trunk};
        bed->peer = &beds[1 - k];
        bed->first_station = 100 * k;
        bed->load = TO_PEER;
        open_model(bed);
    }
}

static uint64_t outcome(const struct model_counts *counts)
{
    return counts->delivered + counts->astray + bed_dropped(counts);
}

void bed_close(struct model_bed *bed)
{
    bed->load = SILENT;
    bed_drain(bed);
    assert_int_equal(model_inside(bed->model), 0);
    for (unsigned i = 0; i < model_flow_count(bed->model); i++) {
        const struct model_counts *counts = &model_flow(bed->model, i)->counts;

        assert_int_equal(counts->received + counts->copies, outcome(counts));
    }
    for (unsigned i = 0; i < bed->conf.port_count; i++) {
        assert_int_equal(model_port_truth(bed->model, i).queue_bytes, 0);
        assert_int_equal(model_port_truth(bed->model, i).input_bytes, 0);
    }
    model_close(bed->model);
    assert_int_equal(bed->made, bed->gone);
}

static struct model_frame *build(struct model_bed *bed, uint64_t from, uint64_t to, uint32_t size,
                                 uint16_t type)
{
    struct model_frame *frame = make(bed, size - MODEL_FCS);

    for (unsigned i = 0; i < 6; i++) {
        frame->data[i] = (uint8_t)(to >> 8 * (5 - i));
        frame->data[6 + i] = (uint8_t)(from >> 8 * (5 - i));
    }
    frame->data[12] = (uint8_t)(type >> 8);
    frame->data[13] = (uint8_t)type;
    return frame;
}

void bed_send_type(struct model_bed *bed, unsigned port, uint64_t from, uint64_t to, uint32_t size,
                   uint16_t type)
{
    model_receive(bed->model, port, build(bed, from, to, size, type), bed->now_ns);
    bed->port[port].sent++;
}

void bed_send(struct model_bed *bed, unsigned port, uint64_t from, uint64_t to, uint32_t size)
{
    bed_send_type(bed, port, from, to, size, 0x88b5);
}

static void sign(uint8_t *at, uint32_t sequence)
{
    struct signature signature = {.tag = htobe16(BED_TAG)};
    struct signature_time time = signature_time(1000);

    signature_stamp(&signature, sequence, &time, signature_base(&signature) + time.sum);
    memcpy(at, &signature, sizeof signature);
}

/* One more frame of a station's load; false: it has none. */
static bool send_next(struct model_bed *bed, unsigned port)
{
    unsigned ports = bed->conf.port_count, last = ports - 1, to = last;
    unsigned base = bed->first_station, other = base;
    struct model_frame *frame;

    if (bed->load == SILENT || port >= bed->talking ||
        (bed->limit > 0 && bed->port[port].sent >= bed->limit) ||
        (port == last && (bed->load == TO_LAST || bed->load == TO_PEER)))
        return false;
    if (bed->load == TO_PAIR)
        to = port ^ 1;
    if (bed->load == TO_NEXT)
        to = (port + 1) % ports;
    if (bed->load == TO_ANY) {
        bed->random = bed->random * 6364136223846793005ULL + 1442695040888963407ULL;
        to = (unsigned)((bed->random >> 33) * last >> 31);
        to += to >= port;
    }
    if (bed->load == TO_PEER) {
        to = port;
        other = bed->peer->first_station;
    }
    frame = build(bed, BED_STATION(base + port), BED_STATION(other + to), bed->size, 0x88b5);
    if (bed->tagged)
        sign(frame->data + 14, (uint32_t)bed->port[port].sent);
    model_receive(bed->model, port, frame, bed->now_ns);
    bed->port[port].sent++;
    return true;
}

/* The next moment at which a station may send, MODEL_NEVER when none has anything to send. */
static int64_t feed(struct model_bed *bed)
{
    int64_t next = MODEL_NEVER;

    for (unsigned i = 0; i < bed->conf.port_count; i++) {
        int64_t free_ns = model_wire_free(bed->model, i);

        if (free_ns <= bed->now_ns && !send_next(bed, i))
            continue;
        free_ns = model_wire_free(bed->model, i);
        next = free_ns < next ? free_ns : next;
    }
    return next;
}

static void run_one(struct model_bed *bed, int64_t until_ns)
{
    while (bed->now_ns < until_ns) {
        int64_t next = feed(bed), event = model_next(bed->model);

        next = event < next ? event : next;
        next = next < until_ns ? next : until_ns;
        bed->now_ns = next > bed->now_ns ? next : bed->now_ns + 1;
        model_run(bed->model, bed->now_ns);
    }
}

/* Of two in steps short against a frame's time. */
void bed_run(struct model_bed *bed, int64_t for_ns)
{
    int64_t until_ns = bed->now_ns + for_ns;

    while (bed->peer != NULL && bed->now_ns < until_ns) {
        run_one(bed, bed->now_ns + 500);
        run_one(bed->peer, bed->now_ns);
    }
    run_one(bed, until_ns);
}

void bed_drain(struct model_bed *bed)
{
    enum bed_load load = bed->load;

    bed->load = SILENT;
    while (model_inside(bed->model) > 0 && model_next(bed->model) != MODEL_NEVER)
        run_one(bed,
                model_next(bed->model) > bed->now_ns ? model_next(bed->model) : bed->now_ns + 1);
    bed->load = load;
}

double bed_rate(struct model_bed *bed, unsigned first, unsigned count, int64_t settle_ns,
                int64_t window_ns)
{
    uint64_t frames = 0;

    bed_run(bed, settle_ns);
    for (unsigned i = first; i < first + count; i++)
        frames -= bed->port[i].received;
    bed_run(bed, window_ns);
    for (unsigned i = first; i < first + count; i++)
        frames += bed->port[i].received;
    return (double)frames * (bed->size + MODEL_LAYER1) * 8e9 / (double)window_ns;
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

const struct model_counts *bed_flow(const struct model_bed *bed, unsigned in, unsigned out)
{
    for (unsigned i = 0; i < model_flow_count(bed->model); i++) {
        struct model_flow_name name = model_flow_name(model_flow(bed->model, i));

        if (name.in == in && name.out == out && name.source == BED_STATION(in))
            return &model_flow(bed->model, i)->counts;
    }
    fail_msg("no flow from port %u to port %u", in, out);
    return NULL;
}
