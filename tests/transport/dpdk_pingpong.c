/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Ping-pong over a wire that loses, damages, doubles, displaces and delays frames, by dpdk on
 * net_ring: every frame is accounted for as what became of it, lost messages are given up and the
 * next ones begin. dpdk_pingpong l2|ipv4-udp|ipv6-udp
 */
#include "battery.h"

#include "frame_prober.h"
#include "ring_ports.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"
#include "frame.h"

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
#define MESSAGE 1000u
#define LOOK_NS (20 * NS_PER_US)
#define HOLD_NS (120 * NS_PER_MS) /* longer than a message is waited for */

/* Every so many-th frame of a direction. */
enum { DROP = 41, DAMAGE = 53, DOUBLE = 37, DISPLACE = 7, DELAY = 101 };

static struct dpdk_options *options_of(struct phase *phase)
{
    return battery_options(phase);
}

static enum header_kind header;
static struct ring_ports rings;
static atomic_bool wire_ends;

/* One direction of the wire, and what it did. */
static struct wire {
    struct frame_shape shape;
    uint64_t frames;
    uint64_t dropped;
    uint64_t damaged;
    uint64_t doubled;
    struct rte_mbuf *displaced; /* goes behind the next one */
    struct rte_mbuf *delayed;
    int64_t until_ns;
} wires[PORTS];

static const char *make(struct port_conf *confs)
{
    return ring_ports_make(&rings, PORTS, false, confs);
}

static void tune(struct phase *phase)
{
    options_of(phase)->header = header;
    options_of(phase)->catch_up = 64;
}

/* The others go through. */
static bool is_message(const struct wire *wire, const struct rte_mbuf *frame)
{
    const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
    uint32_t head = wire->shape.payload + SIGNATURE_BYTES;
    uint16_t tag;

    if (rte_pktmbuf_data_len(frame) < head)
        return false;
    tag = be16toh(((const struct signature *)(bytes + wire->shape.payload))->tag);
    return tag == wire->shape.tag || tag == probe_answer_tag(wire->shape.tag);
}

static void deliver(unsigned to, struct rte_mbuf *frame)
{
    while (rte_ring_enqueue(rings.received[to], frame) != 0)
        ;
}

/* A frame is the sender's buffer: what is kept or damaged is a copy of it. */
static void do_mischief(struct wire *wire, unsigned to, struct rte_mbuf *frame)
{
    uint64_t n = ++wire->frames;
    struct rte_mbuf *twin = ring_ports_copy(frame);

    rte_pktmbuf_free(frame);
    if (n % DROP == 0) {
        rte_pktmbuf_free(twin);
        wire->dropped++;
    } else if (n % DELAY == 0 && wire->delayed == NULL) {
        wire->delayed = twin;
        wire->until_ns = clock_now() + HOLD_NS;
    } else if (n % DISPLACE == 0 && wire->displaced == NULL) {
        wire->displaced = twin;
    } else {
        if (n % DAMAGE == 0) {
            rte_pktmbuf_mtod(twin, uint8_t *)[rte_pktmbuf_data_len(twin) / 2] ^= 4;
            wire->damaged++;
        } else if (n % DOUBLE == 0) {
            deliver(to, ring_ports_copy(twin));
            wire->doubled++;
        }
        deliver(to, twin);
    }
}

static void let_go(struct rte_mbuf **held, unsigned to)
{
    if (*held != NULL)
        deliver(to, *held);
    *held = NULL;
}

static void carry(struct wire *wire, unsigned from)
{
    unsigned to = 1 - from;
    void *frame;

    while (rte_ring_dequeue(rings.sent[from], &frame) == 0) {
        bool held = wire->displaced != NULL;

        if (is_message(wire, frame))
            do_mischief(wire, to, frame);
        else
            deliver(to, frame);
        if (held)
            let_go(&wire->displaced, to);
    }
    if (clock_now() >= wire->until_ns)
        let_go(&wire->delayed, to);
}

static void *be_wire(void *context)
{
    while (!atomic_load(&wire_ends)) {
        for (unsigned i = 0; i < PORTS; i++)
            carry(&wires[i], i);
        clock_sleep_until(clock_now() + LOOK_NS);
    }
    for (unsigned i = 0; i < PORTS; i++) {
        rte_pktmbuf_free(wires[i].displaced);
        rte_pktmbuf_free(wires[i].delayed);
    }
    return NULL;
}

static void mischief(struct transport_port **ports, const struct port_conf *confs)
{
    static struct latency latency[BATTERY_FLOWS][LATENCY_KINDS];
    const struct latency *times = &latency[0][LATENCY_PINGPONG];
    const struct flow_side *there, *came;
    struct battery_run run;
    pthread_t thread;

    battery_begin(&run);
    run.phase.traffic = TRAFFIC_PINGPONG;
    run.phase.messages = true;
    run.phase.sizes[0] = MESSAGE;
    run.phase.pingpong.timeout_ns = 20 * NS_PER_MS;
    run.duration_ns = 2 * NS_PER_S;
    run.latency = latency;
    for (unsigned i = 0; i < PORTS; i++)
        frame_shape(&wires[i].shape, dpdk_options(&run.phase), run.phase.tag);
    assert_int_equal(pthread_create(&thread, NULL, be_wire, NULL), 0);
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_play(&run);
    atomic_store(&wire_ends, true);
    pthread_join(thread, NULL);

    there = &run.flows[0].source;
    came = &run.flows[0].destination;
    print_message("%llu frames there, %llu came, %llu late, %llu twice, %llu damaged of %llu, %llu "
                  "dropped; %llu messages of %llu came back\n",
                  (unsigned long long)there->live.frames, (unsigned long long)came->live.frames,
                  (unsigned long long)came->late, (unsigned long long)came->duplicated,
                  (unsigned long long)came->corrupted, (unsigned long long)wires[0].damaged,
                  (unsigned long long)wires[0].dropped, (unsigned long long)times->histogram.count,
                  (unsigned long long)times->sent);
    assert_true(wires[0].dropped > 0 && wires[0].damaged > 0 && wires[0].doubled > 0);
    assert_int_equal(wires[0].frames, there->live.frames);
    assert_int_equal(came->corrupted, wires[0].damaged);
    assert_in_range(wires[0].frames - wires[0].dropped + wires[0].doubled -
                        (came->live.frames + came->late + came->duplicated + came->corrupted),
                    0, 2); /* held by the wire when it ended */
    assert_true(came->duplicated > 0 && came->reordered > 0);
    assert_true(times->histogram.count > 5);
    assert_true(times->sent > times->histogram.count);
    assert_true(came->live.messages >= times->histogram.count);
    assert_int_equal(run.counts[0].misdelivered + run.counts[1].misdelivered, 0);
}

int main(int argc, char **argv)
{
    const struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "ping-pong by dpdk over a wire that hurts it",
        .ports = PORTS,
        .make = make,
        .tune = tune,
        .more = mischief,
        .only_more = true,
    };

    if (argc > 1 && strcmp(argv[1], "ipv4-udp") == 0)
        header = HEADER_IPV4_UDP;
    if (argc > 1 && strcmp(argv[1], "ipv6-udp") == 0)
        header = HEADER_IPV6_UDP;
    return battery_main(&subject);
}
