/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over dpdk on devices without a kernel: dpdk_devices ring|null|delay
 * l2|ipv4-udp|ipv6-udp. Ring ports hand their buffers to each other by reference; with delay they
 * go over a wire that holds each for a known time, and what the lanes measure must show that time.
 */
#include "battery.h"

#include "arp_nd_responder.h"
#include "frame.h"
#include "ring_ports.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

#include <rte_ether.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

#define PORTS 2

static struct dpdk_options *options_of(struct phase *phase)
{
    return battery_options(phase);
}

static enum header_kind header;
static struct ring_ports rings;
static struct rte_ether_addr macs[PORTS];

static const char *make_null(struct port_conf *confs)
{
    ring_ports_describe(&confs[0], 0, "net_null0,no-rx=1");
    return NULL;
}

/* Two ports, crosswise: what one sends the other receives, buffer for buffer. */
static const char *make_ring(struct port_conf *confs)
{
    return ring_ports_make(&rings, PORTS, true, confs);
}

/* The wire of `delay`: what a port sends lies in its ring until the wire has held it. */
#define WIRE_NS (20 * NS_PER_MS)
#define WIRE_LOOK_NS (100 * NS_PER_US)
#define WIRE_SLACK_NS (10 * NS_PER_MS) /* a shared machine may wake a thread so late */
#define HELD 1024u

static atomic_bool wire_ends;

struct held {
    struct rte_mbuf *frame;
    int64_t until_ns;
};

static struct wire {
    struct held held[HELD];
    unsigned head; /* free-running */
    unsigned tail;
} wires[PORTS];

static void carry(struct wire *wire, struct rte_ring *from, struct rte_ring *to)
{
    int64_t now_ns = clock_now();
    void *frame;

    while (wire->tail - wire->head < HELD && rte_ring_dequeue(from, &frame) == 0)
        wire->held[wire->tail++ % HELD] = (struct held){frame, now_ns + WIRE_NS};
    while (wire->head != wire->tail && wire->held[wire->head % HELD].until_ns <= clock_now() &&
           rte_ring_enqueue(to, wire->held[wire->head % HELD].frame) == 0)
        wire->head++;
}

static void *be_wire(void *context)
{
    while (!atomic_load(&wire_ends)) {
        for (unsigned i = 0; i < PORTS; i++)
            carry(&wires[i], rings.sent[i], rings.received[1 - i]);
        clock_sleep_until(clock_now() + WIRE_LOOK_NS);
    }
    return NULL;
}

static const char *make_delay(struct port_conf *confs)
{
    return ring_ports_make(&rings, PORTS, false, confs);
}

static void tune(struct phase *phase)
{
    options_of(phase)->header = header;
    options_of(phase)->catch_up = 64;
    options_of(phase)->udp_sources = header == HEADER_L2 ? 1 : 2;
}

/* What port 0 sends comes back from port 1 in the same buffers, rewritten; it must find its own
 * headers again when it sends them the next time. */
static void round_trip(void)
{
    struct battery_run run;

    battery_begin(&run);
    run.phase.load.rate_bps = 80e6;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_FORWARD);
    battery_play(&run);
    battery_whole(&run, 5000);
}

/* Frames that a test puts into port 1's way while a phase runs. */
struct injection {
    struct battery_run *run;
    struct rte_mempool *pool;
    struct frame_shape shape;
};

/* One 256-byte frame of the flow from `src` to `dst`; `flip`: this byte is damaged, 0: none. */
static void inject(const struct injection *injection, uint16_t tag, uint16_t src, uint16_t dst,
                   uint32_t flip)
{
    struct frame_end ends[2] = {{.ipv4 = {198, 18, 0, 1}, .rank = src},
                                {.ipv4 = {198, 18, 0, 2}, .rank = dst}};
    struct frame_shape shape = injection->shape;
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(injection->pool);
    uint32_t headers = shape.payload + SIGNATURE_BYTES;
    struct frame_template template;
    uint8_t *frame;

    assert_non_null(buffer);
    frame = (uint8_t *)rte_pktmbuf_append(buffer, 252);
    for (unsigned i = 0; i < PORTS; i++)
        memcpy(ends[i].mac, macs[i].addr_bytes, FRAME_MAC);
    shape.tag = tag;
    frame_template(&template, &shape, ends, 0, 256);
    memcpy(frame + headers, fill_table()->bytes, 252 - headers);
    memcpy(frame, template.bytes, FRAME_TEMPLATE);
    frame[flip] ^= flip > 0 ? 4 : 0;
    assert_int_equal(rte_ring_enqueue(rings.received[1], buffer), 0);
}

/* Asks for port 1's IPv4 address. */
static void inject_arp(const struct injection *injection)
{
    struct arp_nd_responder asker = {.mac = {2, 0, 0, 0, 0, 9},
                                     .kind = HEADER_IPV4_UDP,
                                     .has_ipv4 = true,
                                     .ipv4 = {198, 18, 0, 9},
                                     .gateway4 = {198, 18, 0, 2}};
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(injection->pool);

    assert_non_null(buffer);
    (void)responder_request(&asker, (uint8_t *)rte_pktmbuf_append(buffer, 60));
    assert_int_equal(rte_ring_enqueue(rings.received[1], buffer), 0);
}

static void *inject_all(void *context)
{
    const struct injection *injection = context;
    uint16_t tag = injection->run->phase.tag;
    uint32_t signature = injection->shape.payload;

    while (injection->run->flows[0].destination.live.frames == 0)
        clock_sleep_until(clock_now() + NS_PER_MS);
    for (unsigned i = 0; i < 2; i++)
        inject(injection, tag, 0, 1, 0);         /* sequence 0 came before */
    inject(injection, tag, 0, 1, 200);           /* fill */
    inject(injection, tag, 0, 1, signature);     /* tag */
    inject(injection, tag, 0, 1, signature + 2); /* source rank */
    inject(injection, tag, 0, 1, signature + 8); /* sequence */
    inject(injection, tag, 0, 1, 13);            /* EtherType */
    for (unsigned i = 0; i < 3; i++)
        inject(injection, tag, 0, 7, 0);             /* meant for rank 7 */
    inject(injection, (uint16_t)(tag + 1), 0, 1, 0); /* another phase's */
    inject(injection, tag, 9, 1, 0);                 /* from a rank that sends us nothing */
    inject_arp(injection);
    return NULL;
}

static uint64_t misdelivered_frames(const struct misdelivered_flows *misdelivered, uint16_t src,
                                    uint16_t dst)
{
    uint64_t frames = misdelivered->others;

    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++)
        if (misdelivered->flows[i].src == src && misdelivered->flows[i].dst == dst)
            frames += misdelivered->flows[i].frames;
    return frames;
}

/* Everything that arrives is counted, once and as what it is. */
static void judged(struct battery_run *run)
{
    struct injection injection = {.run = run};
    pthread_t thread;

    frame_shape(&injection.shape, dpdk_options(&run->phase), run->phase.tag);
    injection.pool = rte_pktmbuf_pool_create("inject", 127, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    assert_non_null(injection.pool);
    run->phase.load = (struct load){.rate_fps = 20};
    battery_add(run, 0, 1, PATTERN_GENERATE);
    assert_int_equal(pthread_create(&thread, NULL, inject_all, &injection), 0);
    battery_play(run);
    pthread_join(thread, NULL);
    rte_mempool_free(injection.pool);
    assert_true(run->flows[0].source.live.frames >= 3);
    assert_int_equal(run->flows[0].destination.live.frames, run->flows[0].source.live.frames);
    assert_int_equal(run->flows[0].destination.duplicated, 2);
    assert_int_equal(run->flows[0].destination.corrupted, 5);
    assert_int_equal(run->flows[0].destination.reordered + run->flows[0].destination.late, 0);
    assert_int_equal(run->counts[1].misdelivered, 3);
    assert_int_equal(misdelivered_frames(&run->counts[1].misdelivered_flows, 0, 7), 3);
    assert_int_equal(run->counts[1].foreign, 2);
    assert_true(run->counts[1].arp_nd_received >= 1);
    assert_true(run->counts[1].arp_nd_sent >= 2); /* its announcement and the answer */
}

/* What was measured is the wire's delay, `times` times: never less, and its median not much more.
 */
static void shows_wire(const struct latency *latency, unsigned times)
{
    const struct histogram *histogram = &latency->histogram;
    uint64_t median = histogram_quantile(histogram, 0.5);

    print_message("%u x %lld ns: least %llu, median %llu, greatest %llu of %llu\n", times,
                  (long long)WIRE_NS, (unsigned long long)histogram->min_ns,
                  (unsigned long long)median, (unsigned long long)histogram->max_ns,
                  (unsigned long long)histogram->count);
    assert_true(histogram->count >= 20);
    assert_true(histogram->min_ns >= times * (uint64_t)WIRE_NS);
    assert_true((double)median <=
                (1 + HISTOGRAM_ERROR) * (double)(times * (uint64_t)(WIRE_NS + WIRE_SLACK_NS)));
}

static void planted_delay(struct transport_port **ports, const struct port_conf *confs)
{
    static struct latency latency[BATTERY_FLOWS][LATENCY_KINDS];
    struct battery_run run;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, be_wire, NULL), 0);
    battery_begin(&run);
    run.phase.latency = (struct latency_options){.probe_fps = 500, .stamps = true};
    run.phase.load = (struct load){.rate_fps = 2000};
    run.latency = latency;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_play(&run);
    atomic_store(&wire_ends, true);
    pthread_join(thread, NULL);
    battery_whole(&run, 100);
    shows_wire(&latency[0][LATENCY_ONE_WAY], 1);
    shows_wire(&latency[0][LATENCY_ROUND_TRIP], 2);
    assert_int_equal(latency[0][LATENCY_ROUND_TRIP].sent,
                     latency[0][LATENCY_ROUND_TRIP].histogram.count);
    assert_true(latency[0][LATENCY_IPDV].histogram.min_ns < (uint64_t)WIRE_SLACK_NS);
}

static void more(struct transport_port **ports, const struct port_conf *confs)
{
    struct port_facts facts;
    struct battery_run run;

    round_trip();
    for (unsigned i = 0; i < PORTS; i++) {
        transport_dpdk.facts(ports[i], &facts, false);
        assert_int_equal(rte_ether_unformat_addr(facts.mac, &macs[i]), 0);
    }
    battery_begin(&run);
    judged(&run);
    battery_begin(&run);
    options_of(&run.phase)->udp_sources =
        1; /* then there is one stream, which has a way of its own */
    judged(&run);
}

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "dpdk on net_ring",
        .ports = PORTS,
        .make = make_ring,
        .tune = tune,
        .back_most = 1400,
        .sizes = {84, 333, 1518, 9216},
        .more = more,
    };

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "null") == 0) {
            subject.what = "dpdk on net_null";
            subject.ports = 1;
            subject.make = make_null;
            subject.more = NULL;
        } else if (strcmp(argv[i], "delay") == 0) {
            subject.what = "dpdk over a wire that delays";
            subject.make = make_delay;
            subject.more = planted_delay;
            subject.only_more = true;
        } else if (strcmp(argv[i], "ipv4-udp") == 0) {
            header = HEADER_IPV4_UDP;
        } else if (strcmp(argv[i], "ipv6-udp") == 0) {
            header = HEADER_IPV6_UDP;
        }
    }
    return battery_main(&subject);
}
