/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The modelled switch in simulated time: each part of its behaviour against its formula, and its
 * own counts of planted faults against its output, frame by frame. Each station sends its load
 * whenever its wire is free. Switches are described in the documents' form, and mistakes in
 * descriptions are refused.
 */
#include "describe.h"
#include "signature.h"
#include "unit.h"

#include <math.h>

#define S 1000000000LL
#define MS 1000000LL
#define M100 100000000ULL
#define SIZE 1518u
#define FRAME_NS 123040 /* (1518 + 20) * 8 / 100e6 s */
#define SHORT_NS 6720   /* 64 bytes */
#define TAG 0x1234
#define STATION(i) (0x025342000000ULL + (i))

/* --- the bed --- */

enum load { SILENT, TO_LAST, TO_NEXT, TO_ANY };

static struct bed {
    struct description description;
    struct model_conf *conf; /* keys of the description */
    struct model_host host;
    struct model *model;
    struct {
        uint64_t sent, received;
        int64_t first_ns, last_ns; /* of what it received */
    } port[MODEL_PORTS_MAX];
    enum load load;
    unsigned talking; /* ports that send */
    uint32_t size;    /* of their frames, with FCS */
    uint64_t limit;   /* frames of each; 0: none */
    bool tagged;      /* they bear a signature with TAG, and a number */
    uint64_t random;
    uint64_t hash;       /* of all frames that left, with their times */
    uint64_t made, gone; /* frames in memory */
    int64_t now_ns;
    void (*note)(const struct model_frame *frame); /* called for each frame that leaves */
} bed;

static struct model_frame *make(void *context, uint32_t length)
{
    struct model_frame *frame = calloc(1, sizeof *frame + (length > 64 ? length : 64));

    assert_non_null(frame);
    frame->data = (uint8_t *)(frame + 1);
    frame->length = length;
    bed.made++;
    return frame;
}

static void release(void *context, struct model_frame *frame)
{
    free(frame);
    bed.gone++;
}

static void mix(uint64_t value)
{
    bed.hash = (bed.hash ^ value) * 0x100000001b3;
}

static void leave(void *context, struct model_frame *frame, int64_t at_ns)
{
    if (bed.note != NULL)
        bed.note(frame);
    mix((uint64_t)at_ns << 8 | frame->out);
    for (uint32_t i = 0; i < frame->length; i++)
        mix(frame->data[i]);
    if (bed.port[frame->out].received++ == 0)
        bed.port[frame->out].first_ns = at_ns;
    bed.port[frame->out].last_ns = at_ns;
    release(context, frame);
}

/* Read the description of a switch with these keys. */
static int read_keys(struct description *description, struct err *err, const char *keys)
{
    char text[4096], json[8192];

    snprintf(text, sizeof text, "{switch: {name: s, %s}}", keys);
    err->text[0] = '\0';
    return describe_read(description, unit_json(json, text), err);
}

/* Describe a switch with `count` ports of one rate, the last one with keys of its own unless they
 * are "", and with further keys, which end with a comma. Change `conf`, then open_bed(). */
static void describe(unsigned count, uint64_t rate_bps, const char *keys, const char *last)
{
    char text[3072], rate[32];
    struct err err;
    size_t used;

    bed = (struct bed){.talking = count, .size = SIZE, .random = 7};
    bed.host = (struct model_host){NULL, make, release, leave};
    snprintf(rate, sizeof rate, "rate_bps: %llu", (unsigned long long)rate_bps);
    used = (size_t)snprintf(text, sizeof text, "%s ports: [", keys);
    for (unsigned i = 0; i < count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "{name: p%u, %s}%s", i,
                                 i + 1 < count || last[0] == '\0' ? rate : last,
                                 i + 1 < count ? ", " : "]");
    if (read_keys(&bed.description, &err, text) != 0)
        fail_msg("%s", err.text);
    bed.conf = &bed.description.conf;
}

static void receive(unsigned port, uint64_t from, uint64_t to, uint32_t size, uint16_t type)
{
    struct model_frame *frame = make(NULL, size - MODEL_FCS);
    struct signature signature = {.tag = htobe16(TAG)};
    struct signature_time time = signature_time(1000);

    for (unsigned i = 0; i < 6; i++) {
        frame->data[i] = (uint8_t)(to >> 8 * (5 - i));
        frame->data[6 + i] = (uint8_t)(from >> 8 * (5 - i));
    }
    frame->data[12] = (uint8_t)(type >> 8);
    frame->data[13] = (uint8_t)type;
    signature_stamp(&signature, (uint32_t)bed.port[port].sent, &time,
                    signature_base(&signature) + time.sum);
    if (bed.tagged && type == 0x88b5)
        memcpy(frame->data + 14, &signature, sizeof signature);
    model_receive(bed.model, port, frame, bed.now_ns);
    bed.port[port].sent++;
}

/* Send the next frame of a station's load. Return false when there is none. */
static bool send_next(unsigned port)
{
    unsigned last = bed.conf->port_count - 1, to = last;

    if (bed.load == SILENT || port >= bed.talking || (bed.load == TO_LAST && port == last) ||
        (bed.limit > 0 && bed.port[port].sent >= bed.limit))
        return false;
    if (bed.load == TO_NEXT)
        to = (port + 1) % (last + 1);
    if (bed.load == TO_ANY) {
        bed.random = bed.random * 6364136223846793005ULL + 1442695040888963407ULL;
        to = (unsigned)((bed.random >> 33) * last >> 31);
        to += to >= port;
    }
    receive(port, STATION(port), STATION(to), bed.size, 0x88b5);
    return true;
}

/* Run for `for_ns`; stations send whenever their wires are free. */
static void run(int64_t for_ns)
{
    int64_t until_ns = bed.now_ns + for_ns;

    while (bed.now_ns < until_ns) {
        int64_t next = until_ns;

        for (unsigned i = 0; i < bed.conf->port_count; i++)
            if (model_wire_free(bed.model, i) > bed.now_ns || send_next(i))
                next = model_wire_free(bed.model, i) < next ? model_wire_free(bed.model, i) : next;
        next = model_next(bed.model) < next ? model_next(bed.model) : next;
        bed.now_ns = next > bed.now_ns ? next : bed.now_ns + 1;
        model_run(bed.model, bed.now_ns);
    }
}

/* Run until no frame is inside the switch; stations send nothing. */
static void drain(void)
{
    while (model_truth(bed.model).inside > 0 && model_next(bed.model) != MODEL_NEVER) {
        bed.now_ns = model_next(bed.model);
        model_run(bed.model, bed.now_ns);
    }
}

/* Open the switch; each station sends one frame, so that the switch learns its address. */
static void open_bed(void)
{
    assert_int_equal(model_open(&bed.model, bed.conf, &bed.host, 0), 0);
    for (unsigned i = 0; i < bed.conf->port_count; i++) {
        receive(i, STATION(i), 0xffffffffffff, 64, 0x88b6);
        drain();
    }
    memset(bed.port, 0, sizeof bed.port);
    bed.hash = 0;
    model_clear(bed.model);
}

static uint64_t sum_dropped(const struct model_counts *counts)
{
    uint64_t dropped = 0;

    for (unsigned i = 0; i < MODEL_DROPS; i++)
        dropped += counts->dropped[i];
    return dropped;
}

/* Drain and close the switch: every frame was released, and the counts of each flow add up. */
static void close_bed(void)
{
    struct model_truth truth;

    drain();
    truth = model_truth(bed.model);
    assert_int_equal(truth.inside, 0);
    for (unsigned i = 0; i < truth.flow_count; i++) {
        const struct model_counts *counts = &truth.flows[i].counts;

        assert_int_equal(counts->received + counts->copies,
                         counts->delivered + counts->astray + sum_dropped(counts));
    }
    for (unsigned i = 0; i < bed.conf->port_count; i++) {
        assert_int_equal(truth.ports[i].queue_bytes, 0);
        assert_int_equal(truth.ports[i].input_bytes, 0);
    }
    model_close(bed.model);
    mapping_free(&bed.description.memory);
    assert_int_equal(bed.made, bed.gone);
}

/* Return the bit/s of layer 1 that all ports receive in a window after `settle_ns`. */
static double rate(int64_t settle_ns, int64_t window_ns)
{
    uint64_t frames = 0;

    run(settle_ns);
    for (unsigned i = 0; i < bed.conf->port_count; i++)
        frames -= bed.port[i].received;
    run(window_ns);
    for (unsigned i = 0; i < bed.conf->port_count; i++)
        frames += bed.port[i].received;
    return (double)frames * (bed.size + MODEL_LAYER1) * 8e9 / (double)window_ns;
}

/* Return the sums of all flows' counts. */
static struct model_counts totals(void)
{
    struct model_truth truth = model_truth(bed.model);
    struct model_counts all = {0};

    for (unsigned i = 0; i < truth.flow_count; i++)
        for (size_t k = 0; k < sizeof all / sizeof(uint64_t); k++)
            ((uint64_t *)&all)[k] += ((const uint64_t *)&truth.flows[i].counts)[k];
    return all;
}

static uint64_t dropped(enum model_drop why)
{
    return totals().dropped[why];
}

static const struct model_counts *flow(unsigned in, unsigned out)
{
    struct model_truth truth = model_truth(bed.model);

    for (unsigned i = 0; i < truth.flow_count; i++) {
        struct model_flow_name name = model_flow_name(&truth.flows[i]);

        if (name.in == in && name.out == out && name.source == STATION(in))
            return &truth.flows[i].counts;
    }
    fail_msg("no flow from port %u to port %u", in, out);
    return NULL;
}

/* Return the frames of a port's load that arrived. */
static uint64_t passed_on(unsigned port)
{
    unsigned last = bed.conf->port_count - 1;

    return flow(port, bed.load == TO_LAST ? last : (port + 1) % (last + 1))->delivered;
}

static void send_and_drain(unsigned port, uint64_t from, uint64_t to)
{
    receive(port, from, to, 64, 0x88b5);
    drain();
}

static void assert_near(double got, double expected, double share)
{
    if (!(fabs(got / expected - 1) < share))
        fail_msg("%g is not within %g of %g", got, share, expected);
}

/* --- frames --- */

/* Latency from the first bit in to the last bit out, and the time from one frame to the next. */
TEST_ROWS(rate_and_latency_are_exact, "wire")
{
    unsigned long long bps;
    long long least_ns;
    unsigned size;
    double per_s;

    assert_int_equal(sscanf(row->fields[0], "%llu %u", &bps, &size), 2);
    assert_int_equal(sscanf(row->fields[1], "%lld %lf", &least_ns, &per_s), 2);
    describe(2, bps, row->fields[2], "");
    open_bed();
    bed.now_ns += MS;
    least_ns += bed.now_ns;
    for (unsigned k = 0; k < 2000; k++)
        receive(0, STATION(0), STATION(1), size, 0x88b5);
    drain();
    assert_int_equal(bed.port[1].received, 2000);
    assert_int_equal(bed.port[1].first_ns, least_ns);
    assert_near(1999e9 / (double)(bed.port[1].last_ns - bed.port[1].first_ns), per_s, 1e-5);
    close_bed();
}

/* One frame from port 0 of five ports, and where it arrives. */
TEST_ROWS(each_frame_goes_where_it_should, "frame")
{
    static const char *const whys[MODEL_DROPS] = {
        [MODEL_DROP_SIZE] = "size", [MODEL_DROP_FILTERED] = "filtered"};
    unsigned long long from, to;
    unsigned size, type, left = 0;

    assert_int_equal(sscanf(row->fields[0], "%llx %llx %u %x", &from, &to, &size, &type), 4);
    describe(5, 0, row->fields[1], "");
    open_bed();
    receive(0, from, to, size, (uint16_t)type);
    drain();
    for (unsigned port = 0; port < 5; port++) {
        assert_int_equal(bed.port[port].received,
                         strchr(row->fields[2], (int)('0' + port)) != NULL);
        left += bed.port[port].received > 0;
    }
    assert_int_equal(totals().flooded, left > 1);
    assert_int_equal(totals().copies, left > 1 ? 3 : 0);
    for (unsigned why = 0; why < MODEL_DROPS; why++)
        assert_int_equal(dropped(why), whys[why] != NULL && strcmp(row->fields[2], whys[why]) == 0);
    assert_int_equal(model_truth(bed.model).ports[0].control_received,
                     strcmp(row->fields[2], "control") == 0);
    close_bed();
}

/* --- queues --- */

/* Open a switch whose ports before the last one send `frames` frames each to the last one. */
static void burst(unsigned ports, uint64_t frames, enum model_queueing queueing, uint64_t buffer,
                  bool shared, bool pause)
{
    describe(ports, M100, "", "");
    bed.conf->queueing = queueing;
    bed.conf->buffer_bytes = buffer;
    bed.conf->shared = shared;
    bed.conf->pause = (struct model_pause_conf){pause, 20000, 10000};
    bed.load = TO_LAST;
    bed.limit = frames;
    open_bed();
    run((int64_t)((ports - 1) * frames + 100) * FRAME_NS);
}

/* In each frame time N frames come and one leaves, which counts until its last bit has left: after
 * the k-th frames of all ports, N k - (k - 1) wait. So bursts of b frames fit into a buffer of (N -
 * 1) b + 1, exact to the frame and to the byte; shared memory holds as much. */
TEST(the_longest_burst_without_loss_is_exact)
{
    static const unsigned senders[] = {2, 3, 7}, frames[] = {100, 50, 16};

    for (size_t i = 0; i < 6; i++) {
        unsigned n = senders[i / 2], b = frames[i / 2];
        uint64_t buffer = ((uint64_t)(n - 1) * b + 1) * SIZE;
        const struct {
            unsigned frames;
            uint64_t buffer, lost;
        } cases[] = {{b, buffer, 0}, {b, buffer - 1, 1}, {b + 1, buffer, n - 1}};

        for (size_t k = 0; k < 3; k++) {
            burst(n + 1, cases[k].frames, MODEL_OUTPUT, cases[k].buffer, i % 2 == 1, false);
            assert_int_equal(dropped(MODEL_DROP_QUEUE), cases[k].lost);
            assert_int_equal(model_truth(bed.model).ports[n].dropped[MODEL_DROP_QUEUE],
                             cases[k].lost);
            assert_int_equal(bed.port[n].received, n * cases[k].frames - cases[k].lost);
            close_bed();
        }
    }
}

/* Throughput of all ports together. Karol, Hluchyj and Morgan 1987: head-of-line blocking leaves
 * 0.5858 of the line for many ports, about 0.60 for some dozens; output queues do not block.
 * Inputs, and those that pass a limited fabric, have equal shares. A module that collapses above
 * 55 % of 1.6 Gbit/s recovers below 30 %. */
TEST_ROWS(ports_together_carry_what_theory_says, "carry")
{
    static const char *const loads[] = {"", "last", "next", "any"};
    unsigned ports, size, senders;
    unsigned long long bps;
    char load[8];
    long long settle_ms;
    double mbps;
    int more;

    assert_int_equal(sscanf(row->fields[0], "%u %llu %u %7s", &ports, &bps, &size, load), 4);
    describe(ports, bps, row->fields[1], row->fields[2]);
    while (strcmp(loads[bed.load], load) != 0)
        bed.load++;
    bed.size = size;
    open_bed();
    for (const char *at = row->fields[3];
         sscanf(at, "%u %lld %lf,%n", &bed.talking, &settle_ms, &mbps, &more) == 3; at += more)
        assert_near(rate(settle_ms * MS, 100 * MS), mbps * 1e6, atof(row->fields[4]));
    senders = strstr(row->fields[5], "even") == NULL ? 0 : ports - (bed.load == TO_LAST);
    for (unsigned port = 1; port < senders; port++)
        assert_near((double)passed_on(port), (double)passed_on(0), 0.01);
    assert_int_equal(dropped(MODEL_DROP_INPUT) > 0, strstr(row->fields[5], "drops") != NULL);
    close_bed();
}

/* --- PAUSE --- */

/* With PAUSE the output never waits: its 1,500 frames are back to back. Without PAUSE the same load
 * loses frames. */
TEST(pause_loses_nothing_and_wastes_nothing)
{
    for (enum model_queueing queueing = MODEL_OUTPUT; queueing <= MODEL_VOQ; queueing++) {
        uint64_t pauses = 0;

        burst(4, 500, queueing, 100000, false, true);
        assert_int_equal(bed.port[3].received, 1500);
        for (unsigned i = 0; i < 3; i++)
            pauses += model_truth(bed.model).ports[i].pause_sent;
        assert_true(pauses > 10);
        assert_in_range(bed.port[3].last_ns - bed.port[3].first_ns, 1499 * FRAME_NS,
                        1499 * FRAME_NS + 100);
        close_bed();
    }
    burst(4, 500, MODEL_OUTPUT, 100000, false, false);
    assert_true(dropped(MODEL_DROP_QUEUE) > 800);
    close_bed();
}

static void send_pause(unsigned port, uint8_t quanta)
{
    static const uint8_t head[] = {1, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 0, 1};
    struct model_frame *frame = make(NULL, 60);

    memcpy(frame->data, head, sizeof head);
    frame->data[16] = quanta;
    model_receive(bed.model, port, frame, bed.now_ns);
}

/* The pause ends after 1,024 quanta of 512 bit times and the frame, or at once when it is taken
 * back. */
TEST(a_pause_frame_is_honoured_for_its_time)
{
    static const enum model_queueing kinds[] = {MODEL_OUTPUT, MODEL_VOQ};

    for (unsigned k = 0; k < 4; k++) {
        int64_t heard;

        describe(2, M100, "", "");
        bed.conf->queueing = kinds[k / 2];
        open_bed();
        send_pause(1, 4);
        if (k % 2 == 1)
            send_pause(1, 0);
        drain();
        heard = bed.now_ns;
        send_and_drain(0, STATION(0), STATION(1));
        assert_int_equal(bed.port[1].last_ns,
                         heard + (k % 2 == 0 ? 5242880 + SHORT_NS : 2 * SHORT_NS));
        assert_int_equal(model_truth(bed.model).ports[1].pause_received, 1 + k % 2);
        close_bed();
    }
}

/* --- the address table --- */

/* Addresses arrive one after the other, at a rate per second. A switch that learns 1,000 a second
 * gets them in bursts of ten: addresses above the rate wait until 16 wait, and 5 % of 1,000 minus
 * those are refused. */
TEST_ROWS(addresses_are_learned, "addresses")
{
    struct model_table_truth truth;
    unsigned count, per_s, at_once, full, slow_least, slow_most, aged_least;
    int64_t start;

    assert_int_equal(sscanf(row->fields[1], "%u %u %u", &count, &per_s, &at_once), 3);
    assert_int_equal(
        sscanf(row->fields[2], "%u %u %u %u", &full, &slow_least, &slow_most, &aged_least), 4);
    describe(3, 0, row->fields[0], "");
    open_bed();
    model_reset(bed.model, 0); /* the switch forgets the stations */
    run(S);
    start = bed.now_ns;
    for (unsigned k = 0; k < count; k++) {
        run(start + (int64_t)(k / at_once * at_once) * S / per_s - bed.now_ns);
        send_and_drain(0, STATION(1000 + k), STATION(9));
    }
    truth = *model_truth(bed.model).table;
    assert_int_equal(truth.learned - 3 + truth.refused_full + truth.refused_rate, count);
    assert_int_equal(truth.refused_full, full);
    assert_in_range(truth.refused_rate, slow_least, slow_most);
    assert_true(truth.aged >= aged_least);
    memset(bed.port, 0, sizeof bed.port);
    for (unsigned k = 0; k < count && full > 0; k++)
        receive(1, STATION(1), STATION(1000 + k), 64, 0x88b5);
    drain();
    assert_int_equal(bed.port[0].received, full > 0 ? count : 0);
    assert_int_equal(bed.port[2].received, full); /* flooded */
    close_bed();
}

TEST(addresses_age_and_move)
{
    int64_t start;

    describe(3, 0, "table: {ageing_ms: 10000},", "");
    open_bed();
    start = bed.now_ns;
    send_and_drain(0, STATION(0), STATION(2));
    run(start + 10 * S - bed.now_ns);
    send_and_drain(1, STATION(1), STATION(0));
    assert_int_equal(bed.port[2].received, 1);
    run(2);
    send_and_drain(1, STATION(1), STATION(0));
    assert_int_equal(bed.port[2].received, 2); /* flooded */
    send_and_drain(2, STATION(0), STATION(1)); /* the same station, at another port */
    send_and_drain(1, STATION(1), STATION(0));
    assert_int_equal(bed.port[2].received, 3);
    assert_int_equal(bed.port[0].received, 2);
    close_bed();
}

/* --- overload and reset --- */

static int64_t last_drop_ns, first_after_ns;

/* Send one frame from port 0 to port 2 each `gap_ns`, until a time. */
static void send_paced(int64_t gap_ns, int64_t until_ns, enum model_drop why)
{
    last_drop_ns = first_after_ns = 0;
    while (bed.now_ns < until_ns) {
        uint64_t before = dropped(why);

        receive(0, STATION(0), STATION(2), SIZE, 0x88b5);
        run(gap_ns);
        if (dropped(why) > before)
            last_drop_ns = bed.now_ns;
        else if (first_after_ns == 0 && last_drop_ns > 0)
            first_after_ns = bed.now_ns;
    }
}

/* Nothing is lost at the output's rate. After a load of 110 % the last loss comes the planted
 * recovery time behind the change to 50 %, within two frame times. */
TEST(an_overloaded_output_recovers_after_its_time)
{
    int64_t changed_ns;

    describe(3, 0, "buffer: 15180, recovery_ms: 50,", "rate_bps: 100000000");
    open_bed();
    send_paced(FRAME_NS, bed.now_ns + 2000LL * FRAME_NS, MODEL_DROP_RECOVERY);
    assert_int_equal(dropped(MODEL_DROP_RECOVERY), 0);
    send_paced(FRAME_NS * 10 / 11, bed.now_ns + 2000LL * FRAME_NS, MODEL_DROP_RECOVERY);
    changed_ns = bed.now_ns;
    send_paced(2 * FRAME_NS, changed_ns + 200 * MS, MODEL_DROP_RECOVERY);
    assert_in_range(last_drop_ns - changed_ns, 50 * MS - 2 * FRAME_NS, 50 * MS + 2 * FRAME_NS);
    assert_int_equal(dropped(MODEL_DROP_QUEUE), 0);
    close_bed();
}

/* A reset switch takes no frame during its downtime, loses those that wait, and learns again. */
TEST(a_reset_costs_its_time_and_what_waits)
{
    static const int64_t down_ns = 30 * MS;
    int64_t reset_ns;

    describe(3, 0, "buffer: 15180,", "rate_bps: 100000000");
    open_bed();
    for (unsigned i = 0; i < 5; i++)
        receive(0, STATION(0), STATION(2), SIZE, 0x88b5);
    run(10);
    reset_ns = bed.now_ns;
    model_reset(bed.model, down_ns);
    assert_int_equal(dropped(MODEL_DROP_RESET), 4); /* one was on the wire */
    assert_int_equal(model_truth(bed.model).table->entries, 0);
    send_paced(FRAME_NS, reset_ns + 2 * down_ns, MODEL_DROP_RESET);
    assert_in_range(first_after_ns - reset_ns, down_ns, down_ns + 2 * FRAME_NS);
    assert_true(totals().flooded > 0);
    send_and_drain(2, STATION(2), STATION(0));
    assert_int_equal(model_truth(bed.model).table->entries, 2);
    close_bed();
}

/* --- planted faults --- */

#define PORTS 6
#define FRAMES 20000
#define ALL (PORTS * FRAMES)

/* Counts of frames by their receiving stations. */
static struct sight {
    uint8_t seen[PORTS][FRAMES]; /* arrivals of each sequence at its destination */
    uint32_t highest[PORTS];
    uint64_t duplicates, reordered, corrupted, elsewhere, arrived;
    uint32_t most_extent; /* distance behind the highest sequence before it */
} sight;

static void look(const struct model_frame *frame)
{
    uint32_t *highest = &sight.highest[frame->data[11]], sequence;
    struct signature signature;

    if (frame->data[13] == 0xb6)
        return; /* as the bed was opened */
    memcpy(&signature, frame->data + 14, sizeof signature);
    sequence = be32toh(signature.sequence);
    if (frame->out != frame->data[5]) {
        sight.elsewhere++;
    } else if (frame->data[12] != 0x88 || frame->data[13] != 0xb5 || !signature_sound(&signature)) {
        sight.corrupted++;
    } else {
        sight.arrived++;
        if (sight.seen[frame->data[11]][sequence]++ > 0) {
            sight.duplicates++;
        } else if (*highest > sequence) {
            sight.reordered++;
            if (*highest - sequence > sight.most_extent)
                sight.most_extent = *highest - sequence;
        }
        *highest = sequence > *highest ? sequence : *highest;
    }
}

/* Describe a switch with a fault; each station sends its frames to the next port. */
static void plant(const char *fault)
{
    char keys[256];

    snprintf(keys, sizeof keys, "buffer: 67108864, faults: [{%s, displacement: 5, hold_ms: 10}],",
             fault);
    describe(PORTS, 10 * M100, keys, "");
    bed.load = TO_NEXT;
    bed.size = 64;
    bed.tagged = true;
    bed.limit = FRAMES;
    bed.note = look;
}

/* Frames end with their signature: a changed bit is always found. */
static void plant_kind(enum model_fault_kind kind, uint32_t one_in)
{
    char fault[64];

    snprintf(fault, sizeof fault, "kind: %s, one_in: %u", model_fault_names[kind], one_in);
    plant(fault);
    bed.size = 32 + MODEL_FCS;
}

/* Open the switch, and run until the whole load has left. */
static void play(void)
{
    open_bed();
    sight = (struct sight){0};
    run((int64_t)FRAMES * 700);
    drain();
}

/* The effect of one strike on the stations' counts (arrived, duplicates, corrupted, elsewhere), and
 * on the switch's counts (dropped, flooded, misdelivered); all frames fit. Reorder: all struck
 * frames are reordered except those after which no frame of their flow came. */
static const struct kind {
    uint32_t least_one_in;
    int each[7];
} kinds[] = {
    [MODEL_FAULT_DROP] = {1, {-1, 0, 0, 0, 1, 0, 0}},
    [MODEL_FAULT_DUPLICATE] = {1, {1, 1, 0, 0, 0, 0, 0}},
    [MODEL_FAULT_REORDER] = {10, {0, 0, 0, 0, 0, 0, 0}},
    [MODEL_FAULT_CORRUPT] = {1, {-1, 0, 1, 0, 0, 0, 0}},
    [MODEL_FAULT_WRONG_PORT] = {10, {-1, 0, 0, 1, 0, 0, 1}},
    [MODEL_FAULT_FLOOD] = {10, {0, 0, 0, PORTS - 2, 0, 1, 0}},
};

/* Run the load, and check all counts for this many strikes. Return the counts. `to`: the port by
 * which frames leave; -1: any. */
static uint64_t strike(uint64_t fitting, int to)
{
    enum model_fault_kind kind = bed.conf->faults[0].kind;
    struct model_counts counts;
    struct model_truth truth;
    uint64_t struck, wrong = 0;

    play();
    truth = model_truth(bed.model);
    counts = totals();
    struck = truth.faults[0].struck;
    for (unsigned i = 0; i < truth.wrong_count; i++) {
        int out = (int)model_flow_name(&truth.wrong[i]).out;

        assert_in_range(out, to < 0 ? 0 : to, to < 0 ? PORTS - 1 : to);
        wrong += truth.wrong[i].counts.misdelivered;
    }
    assert_int_equal(truth.faults[0].fitting, fitting);
    assert_int_equal(counts.received, ALL);
    /* The switch's counts equal the stations'. */
    assert_int_equal(counts.delivered, sight.arrived + sight.corrupted);
    assert_int_equal(counts.duplicated, sight.duplicates);
    assert_int_equal(counts.corrupted, sight.corrupted);
    assert_int_equal(counts.astray, sight.elsewhere);
    assert_int_equal(counts.misdelivered, wrong);
    assert_int_equal(counts.reordered, sight.reordered);
    assert_int_equal(sum_dropped(&counts), counts.dropped[MODEL_DROP_FAULT]);
    assert_true(sight.reordered == 0 || kind == MODEL_FAULT_REORDER);
    const uint64_t got[] = {sight.arrived - ALL, sight.duplicates,     sight.corrupted,
                            sight.elsewhere,     sum_dropped(&counts), counts.flooded,
                            counts.misdelivered};
    for (size_t i = 0; i < COUNT(got); i++)
        if (got[i] != struck * (uint64_t)kinds[kind].each[i])
            fail_msg("%s, count %zu: %llu", model_fault_names[kind], i, (unsigned long long)got[i]);
    close_bed();
    return struck;
}

TEST(each_fault_does_what_it_says)
{
    static const uint32_t rates[] = {1, 10, 1000, 20000};

    for (size_t i = 0; i < COUNT(rates) * COUNT(kinds); i++) {
        enum model_fault_kind kind = (enum model_fault_kind)(i / COUNT(rates));
        uint32_t one_in = rates[i % COUNT(rates)];
        double mean = (double)ALL / one_in, off;
        uint64_t struck;

        if (one_in < kinds[kind].least_one_in)
            continue;
        plant_kind(kind, one_in);
        struck = strike(ALL, -1);
        /* Numbers of random strikes are within five standard deviations of the mean. */
        off = (double)struck - mean;
        assert_true(struck > 0 && off * off <= 25 * mean + 25);
        if (kind != MODEL_FAULT_REORDER)
            continue;
        assert_in_range(sight.reordered, struck - PORTS * (one_in == 10 ? 3 : 1), struck);
        /* No two of 1,000 frames were held back at the same time. */
        assert_in_range(sight.most_extent, 5, one_in >= 1000 ? 6 : FRAMES);
    }
}

TEST_ROWS(a_fault_has_limits, "limit")
{
    unsigned long long fitting, struck, counted;
    int to;

    assert_int_equal(sscanf(row->fields[1], "%llu %llu %d", &fitting, &struck, &to), 3);
    plant(row->fields[0]);
    counted = strike(fitting, to);
    if (to < 0)
        assert_int_equal(counted, struck);
    else
        assert_int_equal(bed.port[to].received, FRAMES + counted);
}

/* The switch has not learned the station behind a dead port, and floods frames to it. Of 48 bytes
 * 20 are EtherType and signature. A slow port: in 10 ms 1,488 frames of 64 bytes at 100M, and ten
 * times as many at 1G. */
TEST(a_dead_and_a_slow_port_and_every_byte)
{
    plant("kind: dead, port: p2");
    play();
    assert_int_equal(bed.port[2].received, 0);
    assert_int_equal(dropped(MODEL_DROP_DEAD), FRAMES); /* all frames of the station */
    assert_int_equal(totals().flooded, FRAMES);
    close_bed();

    plant("kind: corrupt");
    play();
    assert_in_range(sight.corrupted, ALL * 39 / 100, ALL * 44 / 100);
    assert_int_equal(totals().corrupted, ALL);
    close_bed();

    plant("kind: slow, port: p2, rate_bps: 100000000");
    bed.conf->buffer_bytes = 64 << 10;
    open_bed();
    run(10 * MS);
    assert_in_range(bed.port[2].received, 1480, 1490);
    assert_in_range(bed.port[2].sent, 1480, 1490);
    assert_in_range(bed.port[5].received, 14850, 14900);
    assert_true(flow(1, 2)->dropped[MODEL_DROP_QUEUE] > 10000);
    close_bed();
}

/* Flows beyond the maximum number share one count, and their frames are not held back (reorder). */
TEST(flows_beyond_the_most_are_counted_together)
{
    static const enum model_fault_kind faults[] = {MODEL_FAULT_REORDER, MODEL_FAULT_WRONG_PORT};
    const unsigned more = 100;

    for (EACH(kind, faults)) {
        const struct model_counts *rest;

        plant_kind(*kind, 2);
        bed.note = NULL;
        bed.conf->faults[0].hold_ms = 1;
        open_bed();
        for (unsigned i = model_truth(bed.model).flow_count; i < MODEL_FLOWS_MAX + more; i++) {
            receive(0, STATION(100 + i), STATION(1), 64, 0x88b5);
            if (i < MODEL_FLOWS_MAX)
                drain();
        }
        drain();
        rest = &model_truth(bed.model).rest->counts;
        assert_int_equal(model_truth(bed.model).flow_count, MODEL_FLOWS_MAX);
        assert_true(rest->received == more && rest->reordered == 0);
        assert_int_equal(rest->misdelivered, rest->astray);
        assert_int_equal(rest->astray > 0, *kind == MODEL_FAULT_WRONG_PORT);
        assert_int_equal(rest->delivered + rest->astray, more);
        close_bed();
    }
}

/* Frames without a signature are not struck, since the benchmark does not measure them. */
TEST(measured_frames_alone_are_struck)
{
    struct model_truth truth;
    unsigned tagged = 0;

    plant("kind: drop, measured: true");
    bed.conf->by_tag = true;
    open_bed();
    receive(0, STATION(0), STATION(1), 64, 0x0806);
    receive(0, STATION(0), STATION(1), 64, 0x88b5);
    drain();
    truth = model_truth(bed.model);
    assert_int_equal(bed.port[1].received, 1);
    assert_int_equal(truth.faults[0].fitting, 1);
    for (unsigned i = 0; i < truth.flow_count; i++) {
        struct model_flow_name name = model_flow_name(&truth.flows[i]);

        tagged += name.tagged;
        assert_int_equal(name.tag, name.tagged ? TAG : 0);
        assert_int_equal(truth.flows[i].counts.dropped[MODEL_DROP_FAULT], name.tagged);
    }
    assert_int_equal(tagged, 1);
    close_bed();
}

TEST(the_first_fault_takes_the_frame)
{
    uint64_t struck;

    plant("kind: drop, one_in: 10}, {kind: corrupt");
    bed.size = 32 + MODEL_FCS;
    play();
    struck = model_truth(bed.model).faults[0].struck;
    close_bed();
    assert_int_equal(sight.corrupted, ALL - struck);
    assert_int_equal(sight.arrived, 0);
}

TEST(the_seed_decides)
{
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        uint64_t hashes[3];

        for (unsigned i = 0; i < 3; i++) {
            plant_kind((enum model_fault_kind)kind, 100);
            bed.conf->seed = i < 2 ? 42 : 43;
            strike(ALL, -1);
            hashes[i] = bed.hash;
        }
        assert_true(hashes[0] == hashes[1] && hashes[0] != hashes[2]);
    }
}

/* Ports in VLANs of two, joined by cables: both directions carry full load through each VLAN, in
 * order. */
TEST(a_chain_loads_all_its_ports)
{
    static const char *const cables[] = {NULL, "p2", "p1", "p4", "p3", NULL};
    struct model_truth truth;
    int64_t start_ns;

    describe(COUNT(cables), M100, "", "");
    for (unsigned i = 0; i < COUNT(cables); i++) {
        bed.conf->ports[i].vlan = i / 2 + 1;
        bed.conf->ports[i].cable = cables[i];
    }
    open_bed();
    start_ns = bed.now_ns;
    for (unsigned k = 0; k < 100; k++) {
        receive(0, STATION(0), STATION(5), SIZE, 0x88b5);
        receive(5, STATION(5), STATION(0), SIZE, 0x88b5);
    }
    receive(0, STATION(0), 0xffffffffffff, SIZE, 0x88b5);
    drain();
    assert_int_equal(bed.port[5].received, 101);
    assert_int_equal(bed.port[0].received, 100);
    /* The delay is one frame time into the switch, and one out of each of three VLANs; a cable
     * takes no time. */
    assert_int_equal(bed.port[0].first_ns - start_ns, (1 + 3) * FRAME_NS);
    assert_int_equal(bed.port[0].last_ns - bed.port[0].first_ns, 99 * FRAME_NS);
    truth = model_truth(bed.model);
    for (unsigned i = 0; i < COUNT(cables); i++) {
        assert_int_equal(truth.ports[i].received, 100 + (i % 2 == 0));
        assert_int_equal(truth.ports[i].sent, 100 + (i % 2 == 1));
    }
    close_bed();
}

/* --- descriptions --- */

#define TWO_PORTS                                                                                  \
    "ports: [{name: a, rate_bps: 100000000, buffer: 4096, vdev: net_null0, iface: p1}, {name: b}]"

/* Defaults that follow from other keys. */
TEST(sizes_have_defaults_by_others)
{
    struct description description;
    const struct model_conf *conf = &description.conf;
    struct err err;

    assert_int_equal(
        read_keys(&description, &err,
                  "buffer: 4000, collapse: {above_percent: 50, to_percent: 10}, " TWO_PORTS),
        0);
    assert_int_equal(conf->input_bytes, 4000);
    assert_int_equal(conf->pause.high_bytes, 2000);
    assert_int_equal(conf->pause.low_bytes, 1000);
    assert_float_equal(conf->collapse.recover, 25, 0);
    mapping_free(&description.memory);
}

/* Keys alone, or beside ports that are right. */
TEST_ROWS(each_mistake_is_one_sentence, "mistake")
{
    struct description description;
    struct err err;
    char keys[512];

    snprintf(keys, sizeof keys, "%s%s", row->fields[1],
             strcmp(row->fields[0], "ports") == 0 ? ", " TWO_PORTS : "");
    assert_int_equal(read_keys(&description, &err, keys), -EINVAL);
    assert_says(err.text, row->fields[2]);
}
