/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery over dpdk on devices without a kernel: dpdk_devices ring|delay|mischief
 * [KEY=VALUE...]. Ring ports hand their buffers to each other by reference. With delay they
 * go over a wire that holds each for a known time, which what the lanes measure must show; with
 * mischief over one that loses, damages, doubles, displaces and delays ping-pong's.
 */
#include "battery.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "frame.h"
#include "frame_prober.h"
#include "ring_ports.h"

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

static struct ring_ports rings;

/* Two ports, crosswise: what one sends the other receives, buffer for buffer. */
static const char *make_ring(struct port_conf *confs)
{
    return ring_ports_make(&rings, PORTS, true, confs);
}

static const char *make_wire(struct port_conf *confs)
{
    return ring_ports_make(&rings, PORTS, false, confs);
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
    battery_set(&run.phase, "udp_sources=1");
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

/* What port 0 sends comes back from port 1 in the same buffers, rewritten; it must find its own
 * headers again when it sends them the next time. */
static void more(struct transport_port **ports, const struct port_conf *confs)
{
    struct battery_run run;

    battery_begin(&run);
    run.phase.load.rate_bps = 80e6;
    battery_add(&run, 0, 1, PATTERN_GENERATE);
    battery_add(&run, 1, 0, PATTERN_FORWARD);
    battery_play(&run);
    battery_whole(&run, 5000);
}

int main(int argc, char **argv)
{
    struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "dpdk over net_ring",
        .ports = PORTS,
        .make = make_wire,
        .options =
            battery_word(argc, argv, "header=l2") ? "catch_up=64" : "catch_up=64 udp_sources=2",
        .back_most = 1400,
        .sizes = {84, 333, 1518, 9216},
        .more = mischief,
        .only_more = true,
    };

    if (battery_word(argc, argv, "delay"))
        subject.more = planted_delay;
    if (battery_word(argc, argv, "ring")) {
        subject.make = make_ring;
        subject.more = more;
        subject.only_more = false;
    }
    return battery_main(&subject, argc, argv);
}
