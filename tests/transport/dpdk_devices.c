/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over dpdk on devices without a kernel: dpdk_devices ring|null|delay|mischief
 * l2|ipv4-udp|ipv6-udp. Ring ports hand their buffers to each other by reference. With delay they
 * go over a wire that holds each for a known time, which what the lanes measure must show; with
 * mischief over one that loses, damages, doubles, displaces and delays ping-pong's.
 */
#include "battery.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "arp_nd_responder.h"
#include "ring_ports.h"

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
#define LOOK_NS (20 * NS_PER_US)

static enum header_kind header;
static struct ring_ports rings;
static struct rte_ether_addr macs[PORTS];

static struct dpdk_options *options_of(struct phase *phase)
{
    return battery_options(phase);
}

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

static const char *make_wire(struct port_conf *confs)
{
    return ring_ports_make(&rings, PORTS, false, confs);
}

static void tune(struct phase *phase)
{
    options_of(phase)->header = header;
    options_of(phase)->catch_up = 64;
    options_of(phase)->udp_sources = header == HEADER_L2 || phase->messages ? 1 : 2;
}

/* --- wires -------------------------------------------------------------------------------------*/

#define WIRE_NS (20 * NS_PER_MS)
#define WIRE_SLACK_NS (10 * NS_PER_MS) /* a shared machine may wake a thread so late */
#define HOLD_NS (120 * NS_PER_MS)      /* longer than a message is waited for */
#define HELD 1024u

/* Every so many-th frame of a direction. */
enum { DROP = 41, DAMAGE = 53, DOUBLE = 37, DISPLACE = 7, DELAY = 101 };

struct held {
    struct rte_mbuf *frame;
    int64_t until_ns;
};

/* One direction: frames that it holds, and what became of others. */
static struct wire {
    struct held held[HELD];
    unsigned head; /* free-running */
    unsigned tail;
    uint64_t frames, dropped, damaged, doubled;
    struct rte_mbuf *displaced; /* goes behind the next one */
} wires[PORTS];

static struct frame_shape shape; /* of the messages that mischief is done to */
static bool mischievous;
static atomic_bool wire_ends;

static void deliver(unsigned to, struct rte_mbuf *frame)
{
    while (rte_ring_enqueue(rings.received[to], frame) != 0)
        ;
}

static void hold(struct wire *wire, struct rte_mbuf *frame, int64_t for_ns)
{
    wire->held[wire->tail++ % HELD] = (struct held){frame, clock_now() + for_ns};
}

static bool is_message(const struct rte_mbuf *frame)
{
    const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
    uint16_t tag;

    if (rte_pktmbuf_data_len(frame) < shape.payload + SIGNATURE_BYTES)
        return false;
    tag = be16toh(((const struct signature *)(bytes + shape.payload))->tag);
    return tag == shape.tag || tag == probe_answer_tag(shape.tag);
}

/* A frame is the sender's buffer: what is kept or damaged is a copy of it. */
static void do_mischief(struct wire *wire, unsigned to, struct rte_mbuf *sent)
{
    struct rte_mbuf *frame = ring_ports_copy(sent), *before = wire->displaced;
    uint64_t n = ++wire->frames;

    rte_pktmbuf_free(sent);
    wire->displaced = NULL;
    if (n % DROP == 0) {
        rte_pktmbuf_free(frame);
        wire->dropped++;
    } else if (n % DELAY == 0) {
        hold(wire, frame, HOLD_NS);
    } else if (n % DISPLACE == 0) {
        wire->displaced = frame;
    } else {
        if (n % DAMAGE == 0) {
            rte_pktmbuf_mtod(frame, uint8_t *)[rte_pktmbuf_data_len(frame) / 2] ^= 4;
            wire->damaged++;
        } else if (n % DOUBLE == 0) {
            deliver(to, ring_ports_copy(frame));
            wire->doubled++;
        }
        deliver(to, frame);
    }
    if (before != NULL)
        deliver(to, before);
}

static void carry(struct wire *wire, unsigned from)
{
    void *frame;

    while (wire->tail - wire->head < HELD && rte_ring_dequeue(rings.sent[from], &frame) == 0) {
        if (!mischievous)
            hold(wire, frame, WIRE_NS);
        else if (is_message(frame))
            do_mischief(wire, 1 - from, frame);
        else
            deliver(1 - from, frame);
    }
    for (; wire->head != wire->tail && wire->held[wire->head % HELD].until_ns <= clock_now();
         wire->head++)
        deliver(1 - from, wire->held[wire->head % HELD].frame);
}

static void *be_wire(void *context)
{
    while (!atomic_load(&wire_ends)) {
        for (unsigned i = 0; i < PORTS; i++)
            carry(&wires[i], i);
        clock_sleep_until(clock_now() + LOOK_NS);
    }
    return NULL;
}

/* One flow over the wire. */
static void play_over_wire(struct battery_run *run)
{
    pthread_t thread;

    battery_add(run, 0, 1, PATTERN_GENERATE);
    assert_int_equal(pthread_create(&thread, NULL, be_wire, NULL), 0);
    battery_play(run);
    atomic_store(&wire_ends, true);
    pthread_join(thread, NULL);
}

/* What was measured is the wire's delay, `times` times: never less, and its median not much more.
 */
static void shows_wire(enum latency_kind kind, unsigned times)
{
    const struct histogram *histogram = &battery_times[0][kind].histogram;
    double median = (double)histogram_quantile(histogram, 0.5);

    print_message("%u x %lld ns: least %llu, median %.0f of %llu\n", times, (long long)WIRE_NS,
                  (unsigned long long)histogram->min_ns, median,
                  (unsigned long long)histogram->count);
    assert_true(histogram->count >= 20);
    assert_true(histogram->min_ns >= times * (uint64_t)WIRE_NS);
    assert_true(median <= (1 + HISTOGRAM_ERROR) * times * (double)(WIRE_NS + WIRE_SLACK_NS));
}

static void planted_delay(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    battery_begin(&run);
    run.phase.latency = (struct latency_options){.probe_fps = 500, .stamps = true};
    run.phase.load = (struct load){.rate_fps = 2000};
    play_over_wire(&run);
    battery_whole(&run, 100);
    shows_wire(LATENCY_ONE_WAY, 1);
    shows_wire(LATENCY_ROUND_TRIP, 2);
    assert_int_equal(battery_times[0][LATENCY_ROUND_TRIP].sent,
                     battery_times[0][LATENCY_ROUND_TRIP].histogram.count);
    assert_true(battery_times[0][LATENCY_IPDV].histogram.min_ns < (uint64_t)WIRE_SLACK_NS);
}

/* Every frame is accounted for as what became of it, lost messages are given up and the next ones
 * begin. */
static void mischief(struct transport_port **ports, const struct port_conf *confs)
{
    const struct latency *times = &battery_times[0][LATENCY_PINGPONG];
    const struct wire *wire = &wires[0];
    const struct flow_side *came;
    struct battery_run run;

    battery_begin(&run);
    run.phase.traffic = TRAFFIC_PINGPONG;
    run.phase.messages = true;
    tune(&run.phase);
    run.phase.sizes[0] = 1000;
    run.phase.pingpong.timeout_ns = 20 * NS_PER_MS;
    run.duration_ns = 2 * NS_PER_S;
    frame_shape(&shape, dpdk_options(&run.phase), run.phase.tag);
    mischievous = true;
    play_over_wire(&run);
    came = &run.flows[0].destination;
    print_message("%llu sent, %llu came, %llu late, %llu twice, %llu damaged, %llu dropped; %llu "
                  "messages of %llu came back\n",
                  (unsigned long long)wire->frames, (unsigned long long)came->live.frames,
                  (unsigned long long)came->late, (unsigned long long)came->duplicated,
                  (unsigned long long)wire->damaged, (unsigned long long)wire->dropped,
                  (unsigned long long)times->histogram.count, (unsigned long long)times->sent);
    assert_true(wire->dropped > 0 && wire->damaged > 0 && wire->doubled > 0);
    assert_int_equal(wire->frames, run.flows[0].source.live.frames);
    assert_int_equal(came->corrupted, wire->damaged);
    assert_in_range(wire->frames - wire->dropped + wire->doubled -
                        (came->live.frames + came->late + came->duplicated + came->corrupted),
                    0, 3); /* held by the wire when it ended */
    assert_true(came->duplicated > 0 && came->reordered > 0);
    assert_true(times->histogram.count > 5);
    assert_true(times->sent > times->histogram.count);
    assert_true(came->live.messages >= times->histogram.count);
    assert_int_equal(run.counts[0].misdelivered + run.counts[1].misdelivered, 0);
}

/* --- frames that a test puts into port 1's way while a phase runs ------------------------------*/

struct injection {
    struct battery_run *run;
    struct rte_mempool *pool;
    struct frame_shape shape;
};

static void put(const struct injection *injection, const uint8_t *frame, uint32_t length)
{
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(injection->pool);

    assert_non_null(buffer);
    memcpy(rte_pktmbuf_append(buffer, (uint16_t)length), frame, length);
    deliver(1, buffer);
}

/* One 256-byte frame of the flow from `src` to `dst`; `flip`: this byte is damaged, 0: none. */
static void inject(const struct injection *injection, uint16_t tag, uint16_t src, uint16_t dst,
                   uint32_t flip)
{
    struct frame_end ends[2] = {{.ipv4 = {198, 18, 0, 1}, .rank = src},
                                {.ipv4 = {198, 18, 0, 2}, .rank = dst}};
    struct frame_shape own = injection->shape;
    uint32_t headers = own.payload + SIGNATURE_BYTES;
    struct frame_template template;
    uint8_t frame[252];

    for (unsigned i = 0; i < PORTS; i++)
        memcpy(ends[i].mac, macs[i].addr_bytes, FRAME_MAC);
    own.tag = tag;
    frame_template(&template, &own, ends, 0, 256);
    memcpy(frame, template.bytes, FRAME_TEMPLATE);
    memcpy(frame + headers, fill_table()->bytes, sizeof frame - headers);
    frame[flip] ^= flip > 0 ? 4 : 0;
    put(injection, frame, sizeof frame);
}

static void *inject_all(void *context)
{
    const struct injection *injection = context;
    uint16_t tag = injection->run->phase.tag;
    uint32_t signature = injection->shape.payload;
    const uint32_t flips[] = {0, 0, 200, signature, signature + 2, signature + 8, 13};
    const struct arp_nd_responder asker = {.mac = {2, 0, 0, 0, 0, 9},
                                           .kind = HEADER_IPV4_UDP,
                                           .has_ipv4 = true,
                                           .ipv4 = {198, 18, 0, 9},
                                           .gateway4 = {198, 18, 0, 2}};
    uint8_t question[RESPONDER_FRAME_MAX];

    while (injection->run->flows[0].destination.live.frames == 0)
        clock_sleep_until(clock_now() + NS_PER_MS);
    /* Number 0 came before, twice more; fill, tag, source rank, number, EtherType. */
    for (unsigned i = 0; i < sizeof flips / sizeof flips[0]; i++)
        inject(injection, tag, 0, 1, flips[i]);
    for (unsigned i = 0; i < 3; i++)
        inject(injection, tag, 0, 7, 0);             /* meant for rank 7 */
    inject(injection, (uint16_t)(tag + 1), 0, 1, 0); /* another phase's */
    inject(injection, tag, 9, 1, 0);                 /* from a rank that sends us nothing */
    put(injection, question, responder_request(&asker, question));
    return NULL;
}

/* Everything that arrives is counted, once and as what it is. One stream has a way of its own. */
static void judged(uint16_t udp_sources)
{
    struct battery_run run;
    struct injection injection = {.run = &run};
    const struct flow_side *came = &run.flows[0].destination;
    const struct port_count *count = &run.counts[1];
    uint64_t strays = 0;
    pthread_t thread;

    battery_begin(&run);
    options_of(&run.phase)->udp_sources = udp_sources;
    run.phase.load = (struct load){.rate_fps = 20};
    frame_shape(&injection.shape, dpdk_options(&run.phase), run.phase.tag);
    injection.pool = rte_pktmbuf_pool_create("inject", 127, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
    assert_non_null(injection.pool);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    assert_int_equal(pthread_create(&thread, NULL, inject_all, &injection), 0);
    battery_play(&run);
    pthread_join(thread, NULL);
    rte_mempool_free(injection.pool);
    assert_true(run.flows[0].source.live.frames >= 3);
    assert_int_equal(came->live.frames, run.flows[0].source.live.frames);
    assert_int_equal(came->duplicated, 2);
    assert_int_equal(came->corrupted, 5);
    assert_int_equal(came->reordered + came->late, 0);
    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++)
        if (count->misdelivered_flows.flows[i].dst == 7)
            strays += count->misdelivered_flows.flows[i].frames;
    assert_int_equal(count->misdelivered, 3);
    assert_int_equal(strays, 3);
    assert_int_equal(count->foreign, 2);
    assert_true(count->arp_nd_received >= 1);
    assert_true(count->arp_nd_sent >= 2); /* its announcement and the answer */
}

static void more(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    /* What port 0 sends comes back from port 1 in the same buffers, rewritten; it must find its own
     * headers again when it sends them the next time. */
    battery_begin(&run);
    run.phase.load.rate_bps = 80e6;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_FORWARD);
    battery_play(&run);
    battery_whole(&run, 5000);
    for (unsigned i = 0; i < PORTS; i++) {
        struct port_facts facts;

        transport_dpdk.facts(ports[i], &facts, false);
        assert_int_equal(rte_ether_unformat_addr(facts.mac, &macs[i]), 0);
    }
    if (header != HEADER_L2)
        judged(2);
    judged(1);
}

int main(int argc, char **argv)
{
    static const char *const headers[] = {"l2", "ipv4-udp", "ipv6-udp"};
    static const struct {
        const char *word, *what;
        size_t ports;
        const char *(*make)(struct port_conf *confs);
        void (*more)(struct transport_port **ports, const struct port_conf *confs);
        bool only_more;
    } kinds[] = {
        {"ring", "dpdk on net_ring", PORTS, make_ring, more, false},
        {"null", "dpdk on net_null", 1, make_null, NULL, false},
        {"delay", "dpdk over a wire that delays", PORTS, make_wire, planted_delay, true},
        {"mischief", "ping-pong over a wire that hurts it", PORTS, make_wire, mischief, true},
    };
    size_t kind = 0;

    if (argc != 3)
        return 2;
    while (strcmp(kinds[kind].word, argv[1]) != 0)
        kind++;
    while (strcmp(headers[header], argv[2]) != 0)
        header++;
    return battery_main(&(struct battery_subject){
        .transport = &transport_dpdk,
        .what = kinds[kind].what,
        .ports = kinds[kind].ports,
        .make = kinds[kind].make,
        .tune = tune,
        .back_most = 1400,
        .sizes = {84, 333, 1518, 9216},
        .more = kinds[kind].more,
        .only_more = kinds[kind].only_more,
    });
}
