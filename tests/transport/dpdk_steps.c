/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules by dpdk on net_ring: four ranks, first over a wire that carries everything, then over
 * one that drops, doubles, displaces and delays frames: of messages, of barriers, and marks. All
 * ranks end after the same repetitions, a lost frame costs one message at most, and every frame is
 * counted as what became of it.
 */
#include "battery.h"

#include "frame.h"
#include "message.h"
#include "ring_ports.h"
#include "schedule_executor.h"

#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"

#include <rte_mbuf.h>
#include <rte_ring.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

extern const struct transport transport_dpdk;

#define PORTS 4
#define BATCH 4u
#define REPETITIONS 24u
#define LOOK_NS (20 * NS_PER_US)

/* Every so many-th frame of the run. */
enum { DROP = 61, DOUBLE = 37, DISPLACE = 11, DELAY = 211 };
#define HOLD_NS (250 * NS_PER_MS) /* longer than a message is waited for */

static struct dpdk_options *options_of(struct phase *phase)
{
    return battery_options(phase);
}

static struct ring_ports rings;

/* What lies between the ports, and what it did to segments of messages, and to all of ours. */
static struct wire {
    struct frame_shape shape;
    bool hurts;
    atomic_bool ends;
    uint64_t frames, segments;
    uint64_t dropped, segments_dropped;
    uint64_t segments_doubled;
    uint64_t delayed_count;
    struct rte_mbuf *displaced; /* goes behind the next one */
    struct rte_mbuf *delayed;
    int64_t until_ns;
} wire;

static const char *make(struct port_conf *confs)
{
    return ring_ports_make(&rings, PORTS, false, confs);
}

/* Ours: NULL, or its signature, with the segment behind it. */
static const struct signature *signature_of(const struct rte_mbuf *frame)
{
    const uint8_t *bytes = rte_pktmbuf_mtod(frame, const uint8_t *);
    const struct signature *signature = (const struct signature *)(bytes + wire.shape.payload);
    uint16_t tag;

    if (rte_pktmbuf_data_len(frame) < wire.shape.payload + SIGNATURE_BYTES + SEGMENT_BYTES)
        return NULL;
    tag = be16toh(signature->tag);
    return tag == wire.shape.tag || tag == message_answer_tag(wire.shape.tag) ? signature : NULL;
}

static uint32_t segment_of(const struct signature *signature)
{
    return be32toh(((const struct segment *)(signature + 1))->number);
}

/* To the rank that it is for; what is not ours, to nobody: nothing here asks for addresses. */
static void deliver(struct rte_mbuf *frame)
{
    const struct signature *signature = frame != NULL ? signature_of(frame) : NULL;

    if (signature == NULL) {
        rte_pktmbuf_free(frame);
        return;
    }
    while (rte_ring_enqueue(rings.received[be16toh(signature->dst)], frame) != 0)
        ;
}

/* A frame is the sender's buffer: what is kept is a copy of it. */
static void do_mischief(struct rte_mbuf *frame)
{
    bool segment = segment_of(signature_of(frame)) < SEGMENT_BARRIER;
    uint64_t n = ++wire.frames;

    if (n % DROP == 0) {
        rte_pktmbuf_free(frame);
        wire.dropped++;
        wire.segments_dropped += segment;
        return;
    }
    if ((n % DELAY == 0 && wire.delayed == NULL) || (n % DISPLACE == 0 && wire.displaced == NULL)) {
        bool delays = n % DELAY == 0;

        *(delays ? &wire.delayed : &wire.displaced) = ring_ports_copy(frame);
        wire.delayed_count += delays;
        wire.until_ns = delays ? clock_now() + HOLD_NS : wire.until_ns;
        rte_pktmbuf_free(frame);
        return;
    }
    if (n % DOUBLE == 0) {
        deliver(ring_ports_copy(frame));
        wire.segments_doubled += segment;
    }
    deliver(frame);
}

static void carry(struct rte_mbuf *frame)
{
    struct rte_mbuf *held = wire.displaced;
    const struct signature *signature = signature_of(frame);

    if (signature != NULL)
        wire.segments += segment_of(signature) < SEGMENT_BARRIER;
    if (signature != NULL && wire.hurts)
        do_mischief(frame);
    else
        deliver(frame);
    if (held != NULL) {
        wire.displaced = NULL;
        deliver(held);
    }
}

static void *be_wire(void *context)
{
    while (!atomic_load(&wire.ends)) {
        for (unsigned i = 0; i < PORTS; i++) {
            void *frame;

            while (rte_ring_dequeue(rings.sent[i], &frame) == 0)
                carry(frame);
        }
        if (clock_now() >= wire.until_ns) {
            deliver(wire.delayed);
            wire.delayed = NULL;
        }
        clock_sleep_until(clock_now() + LOOK_NS);
    }
    rte_pktmbuf_free(wire.displaced);
    rte_pktmbuf_free(wire.delayed);
    return NULL;
}

static uint64_t lost, timeouts;
static struct hurt {
    uint64_t lost, timeouts, duplicated, late;
} hurt; /* in all */

static void look_at_execution(struct battery_run *run, uint32_t rank, struct lane *lane)
{
    const struct schedule_executor *executor = lane->request.executor;
    const struct execution *execution = &executor->execution;

    assert_true(rank < PORTS && run->plan != NULL);
    assert_true(executor->ended);
    assert_true(lane->rx_done);
    if (!wire.hurts)
        assert_int_equal(execution->repetitions, REPETITIONS);
    assert_int_equal(execution->times.count, execution->batches);
    lost += execution->messages_lost;
    timeouts += execution->timeouts;
}

/* What the flows' ends counted, in all. */
static struct flow_side sum_of(const struct battery_run *run, bool source)
{
    struct flow_side sum = {.first_ns = 0};

    for (size_t i = 0; i < run->flow_count; i++) {
        const struct flow_side *side = source ? &run->flows[i].source : &run->flows[i].destination;

        sum.live.frames += side->live.frames;
        sum.live.messages += side->live.messages;
        sum.live.payload_bytes += side->live.payload_bytes;
        sum.late += side->late;
        sum.duplicated += side->duplicated;
        sum.reordered += side->reordered;
        sum.corrupted += side->corrupted;
    }
    return sum;
}

static void check_whole(const struct flow_side *there, const struct flow_side *came)
{
    assert_int_equal(lost + timeouts, 0);
    assert_int_equal(came->live.frames, there->live.frames);
    assert_int_equal(came->live.messages, there->live.messages);
    assert_int_equal(came->live.payload_bytes, there->live.payload_bytes);
    assert_int_equal(came->late + came->duplicated + came->reordered + came->corrupted, 0);
}

/* A lost end mark is sent again, a lost mark is followed by others: they cost nothing. */
static void check_hurt(const struct flow_side *there, const struct flow_side *came)
{
    uint64_t kept = wire.segments - wire.segments_dropped + wire.segments_doubled;

    assert_int_equal(wire.segments, there->live.frames);
    assert_in_range(kept - (came->live.frames + came->late + came->duplicated), 0, 2);
    assert_int_equal(came->corrupted, 0);
    assert_true(lost <= wire.dropped + wire.delayed_count);
    assert_true(timeouts <= lost);
    assert_in_range(there->live.messages - came->live.messages, 0, lost);
    hurt.lost += lost;
    hurt.timeouts += timeouts;
    hurt.duplicated += came->duplicated;
    hurt.late += came->late;
}

static void execute(const struct pattern_request *request, bool hurts)
{
    struct flow_side there, came;
    struct battery_run run;
    pthread_t thread;

    battery_begin(&run);
    run.phase.pingpong.timeout_ns = (hurts ? 50 : 1000) * NS_PER_MS;
    run.phase.schedule =
        (struct schedule_options){.count = REPETITIONS, .batch = BATCH, .warmup = 1};
    run.line_rate_bps = 10000000000;
    run.look = look_at_execution;
    battery_plan(&run, request);
    memset(&wire, 0, sizeof wire);
    wire.hurts = hurts;
    frame_shape(&wire.shape, dpdk_options(&run.phase), run.phase.tag);
    lost = timeouts = 0;
    assert_int_equal(pthread_create(&thread, NULL, be_wire, NULL), 0);
    battery_play(&run);
    atomic_store(&wire.ends, true);
    pthread_join(thread, NULL);
    pattern_plan_free(run.plan);

    there = sum_of(&run, true);
    came = sum_of(&run, false);
    print_message("%s of %llu bytes: %llu messages in %llu frames, %llu came in %llu; %llu frames "
                  "dropped, %llu late, %llu twice; %llu lost in %llu waits\n",
                  request->name, (unsigned long long)request->bytes,
                  (unsigned long long)there.live.messages, (unsigned long long)there.live.frames,
                  (unsigned long long)came.live.messages, (unsigned long long)came.live.frames,
                  (unsigned long long)wire.dropped, (unsigned long long)came.late,
                  (unsigned long long)came.duplicated, (unsigned long long)lost,
                  (unsigned long long)timeouts);
    assert_true(there.live.messages > 0);
    if (hurts)
        check_hurt(&there, &came);
    else
        check_whole(&there, &came);
}

static void more(struct transport_port **ports, const struct port_conf *confs)
{
    static const struct pattern_request requests[] = {
        {.name = "allreduce", .n = PORTS, .bytes = 40000},
        {.name = "bcast", .n = PORTS, .bytes = 8}, /* whose root is ahead */
        {.name = "alltoall", .n = PORTS, .bytes = 9000},
        {.name = "sendrecv", .n = PORTS, .bytes = 0},
        {.name = "aapc", .n = PORTS, .bytes = 20000, .local = true},
    };

    for (size_t i = 0; i < RTE_DIM(requests); i++) {
        execute(&requests[i], false);
        execute(&requests[i], true);
    }
    assert_true(hurt.lost > 0 && hurt.timeouts > 0 && hurt.duplicated > 0 && hurt.late > 0);
}

static void tune(struct phase *phase)
{
    options_of(phase)->header = HEADER_L2;
    options_of(phase)->catch_up = 64;
}

int main(void)
{
    const struct battery_subject subject = {
        .transport = &transport_dpdk,
        .what = "steps by dpdk over a wire that hurts them",
        .ports = PORTS,
        .make = make,
        .tune = tune,
        .more = more,
        .only_more = true,
    };

    return battery_main(&subject);
}
