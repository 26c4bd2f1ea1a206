/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The records of phases and trials, byte for byte, against the lines of the file that is given as
 * an argument: each kind, with each value that may be null, at a fixed time and on fixed clocks.
 * `SAVE=1` in the environment writes that file instead.
 */
#include "clock.h"
#include "phase_run.h"
#include "pingpong.h"
#include "report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS 3u
#define NOW_S 100
#define AT(ms) (NOW_S * NS_PER_S + (ms)*NS_PER_MS)

static const char *golden_path;
static struct control_clocks clocks;
static struct offset_estimate clock_at = {.bound_ns = -1};
static double hz;

/* Linked in place of the originals. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
long __wrap_sysconf(int name);
struct control_clocks __wrap_control_clocks(const struct control *control);
struct offset_estimate __wrap_control_clock_at(struct control *control, int64_t at_ns);
double __wrap_tsc_hz(const struct tsc_mark *begin);
void __wrap_compute_sum(const struct compute *compute, struct compute_part *alone,
                        struct compute_part *beside);

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    *time = (struct timespec){.tv_sec = NOW_S};
    return 0;
}

long __wrap_sysconf(int name)
{
    return 16;
}

struct control_clocks __wrap_control_clocks(const struct control *control)
{
    return clocks;
}

struct offset_estimate __wrap_control_clock_at(struct control *control, int64_t at_ns)
{
    return clock_at;
}

double __wrap_tsc_hz(const struct tsc_mark *begin)
{
    return hz;
}

void __wrap_compute_sum(const struct compute *compute, struct compute_part *alone,
                        struct compute_part *beside)
{
    alone->operations = 123456789012;
    for (uint64_t i = 1; i <= 1000; i++)
        histogram_add(&alone->pieces, 100000 + i);
    beside->operations = 7;
    histogram_add(&beside->pieces, 3);
}

static const struct pingpong *pingpong_with_samples(void)
{
    static struct sample kept[33];
    static const struct pingpong pingpong = {.samples = kept, .sample_count = 33};

    for (unsigned i = 0; i < 33; i++)
        kept[i] = (struct sample){.time_ns = 1000 + i, .dst = 1, .size = 64 * i, .begun_us = i};
    return &pingpong;
}

static struct {
    struct node node;
    struct doc_trial doc;
    struct doc_part doc_part;
    struct transport transport;
    bool metrics; /* the transport has some, */
    bool times;   /* and times of flows */
    struct trial trial;
    struct trial_part part;
    struct local_rank own;
    struct phase_run run;
    struct phase_lane lane;
    struct queue_lane queue;
    struct worker_lane timing;
    struct lane transport_lane;
    struct lane_flow sends[1];
    struct lane_flow receives[2];
    struct flow_side sides[3];
    struct schedule_executor executor;
    struct port_location places[RANKS];
    const struct port_location *ranks[RANKS];
    struct pattern_plan *plan;
} bed;

/* One way: in more buckets than a record holds; IPDV: none was seen. */
static void add_times(struct flow_reading *reading)
{
    struct latency *pingpong = &reading->latency[LATENCY_PINGPONG];

    for (uint64_t i = 0; i < 100; i++)
        histogram_add_times(&reading->latency[LATENCY_ONE_WAY].histogram, 100 + 977 * i, i + 1);
    pingpong->sent = 5;
    histogram_add_times(&pingpong->histogram, UINT64_C(1) << 41, 3);
    for (enum latency_kind kind = 0; kind < LATENCY_KINDS; kind++)
        reading->measured[kind] = kind != LATENCY_ROUND_TRIP;
}

static void read_flow(struct lane *lane, const struct lane_flow *flow, struct flow_reading *reading)
{
    if (bed.times)
        add_times(reading);
    if (bed.metrics && flow->src != 0) {
        reading->metrics[0] = (struct flow_metric){"rtt_us", 1234.56789012345};
        reading->metrics[1] = (struct flow_metric){"retransmitted_segments", 3};
        reading->metric_count = 2;
    }
}

static void lay_counts(void)
{
    struct flow_side *sent = &bed.sides[0], *received = &bed.sides[1];

    *sent = (struct flow_side){.live = {1000, 64000, 46000, 12},
                               .window = {{100, 6400, 4600, 1}, {900, 57600, 41400, 11}},
                               .intended = 1001,
                               .first_ns = AT(1),
                               .last_ns = AT(999)};
    *received = (struct flow_side){.live = {990, 63360, 45540, 9},
                                   .window = {{90, 5760, 4140, 2}, {890, 56960, 40940, 8}},
                                   .duplicated = 1,
                                   .reordered = 2,
                                   .late = 3,
                                   .forged = 4,
                                   .reordering = {50, 40, 1},
                                   .corrupted = 5,
                                   .first_ns = AT(2)};
    bed.lane.count = (struct port_count){1, 2, 3, 4, 5, 6, 7, {.others = 8}};
    misdelivered_add(&bed.lane.count.misdelivered_flows, &(struct misdelivered_flow){9, 0, 2});
    misdelivered_add(&bed.lane.count.misdelivered_flows, &(struct misdelivered_flow){1, 900, 2});
    bed.lane.before = (struct port_hardware){1, 2, 3, 4, 0, 5, -1, 1, 1, 1, 1, 1, -1};
    bed.lane.after = (struct port_hardware){11, 22, 33, 44, 50, -1, 6, 2, 3, 4, 5, 6, 7};
}

static void lay_plan(void)
{
    const struct pattern_request request = {.name = "aapc", .n = RANKS, .order = "shift"};
    char why[256];

    assert_int_equal(pattern_plan_make(&bed.plan, &request, why, sizeof why), 0);
}

/* This node's port is rank 1: it sends one flow and receives two, the last of which is silent. */
static void lay(const char *transport, unsigned capabilities)
{
    static char network[] = "fabric";
    static const char *const names[RANKS] = {"node1:e0", "node2:e0", "node3:e0"};

    memset(&bed, 0, sizeof bed);
    lay_plan();
    bed.node.name = "node2";
    bed.node.worker_count = 2;
    hz = 2.5e9;
    bed.doc = (struct doc_trial){.id = 4, .repeat = 2, .parts_count = 1};
    bed.doc_part.network = network;
    bed.transport =
        (struct transport){.name = transport, .capabilities = capabilities, .read_flow = read_flow};
    bed.metrics = true;
    bed.trial = (struct trial){.node = &bed.node,
                               .doc = &bed.doc,
                               .parts = &bed.part,
                               .phase_count = 6,
                               .begun_ns = AT(-2500)};
    for (unsigned i = 0; i < RANKS; i++) {
        bed.places[i].name = names[i];
        bed.ranks[i] = &bed.places[i];
    }
    bed.part = (struct trial_part){&bed.doc_part, &bed.transport, bed.ranks, RANKS, bed.plan};
    bed.own = (struct local_rank){.part = &bed.part, .rank = 1};
    bed.sends[0] = (struct lane_flow){.src = 1, .dst = 2, .side = &bed.sides[0]};
    bed.receives[0] =
        (struct lane_flow){.src = 0, .dst = 1, .role = PATTERN_FORWARD, .side = &bed.sides[1]};
    bed.receives[1] = (struct lane_flow){.src = 2, .dst = 1, .side = &bed.sides[2]};
    bed.transport_lane = (struct lane){.started_ns = AT(0), .variant = "burst, l2"};
    bed.queue.lane = &bed.transport_lane;
    bed.lane = (struct phase_lane){.own = &bed.own,
                                   .phase = {.tag = 513},
                                   .sends = bed.sends,
                                   .send_count = 1,
                                   .receives = bed.receives,
                                   .receive_count = 2,
                                   .queues = &bed.queue,
                                   .queue_count = 1,
                                   .lane = &bed.transport_lane};
    bed.timing = (struct worker_lane){
        .lane = &bed.transport_lane, .opened_ns = AT(100), .closed_ns = AT(900) + 17};
    bed.run = (struct phase_run){.trial = &bed.trial,
                                 .number = 1,
                                 .lanes = &bed.lane,
                                 .lane_count = 1,
                                 .worker_lanes = &bed.timing,
                                 .start_run_ns = AT(-1000),
                                 .offset_ns = -250,
                                 .bound_ns = 300,
                                 .begin = {AT(0), 1.5, 3.25},
                                 .end = {AT(1234), 2.625, 4.5}};
    bed.run.template.open_ns = AT(-900);
    bed.run.template.close_ns = AT(-100);
    bed.run.template.probes = 3;
    bed.run.outcome = (struct phase_outcome){.start_skew_us = 12.345678,
                                             .stop_skew_us = 0,
                                             .skew_bound_us = 0.5,
                                             .clock_bound_ns = 700,
                                             .elapsed_ns = 1000000001};
    lay_counts();
}

static void lay_stream(void)
{
    lay("dpdk", TRANSPORT_FRAMES);
    bed.times = true;
    clocks = (struct control_clocks){.mode = CLOCK_ESTIMATED, .maxerror_ns = -1, .esterror_ns = -1};
    clock_at = (struct offset_estimate){.offset_ns = -200, .bound_ns = 321};
}

/* A flood cut it short, its clock is not known, and it has no counter of cycles. */
static void lay_flooded(void)
{
    lay("dpdk", TRANSPORT_FRAMES);
    clock_at.bound_ns = -1;
    clocks = (struct control_clocks){.mode = CLOCK_PTP, .maxerror_ns = 1000, .esterror_ns = 0};
    bed.times = true;
    hz = 0;
    bed.run.begin.idle_s = -1;
    bed.run.outcome.states = STATE_FLOODED | STATE_STOPPED | STATE_DRAIN_TIMEOUT;
    bed.run.outcome.skew_bound_us = bed.run.outcome.start_skew_us = -1;
    bed.run.outcome.clock_bound_ns = -1;
}

static void lay_transfer(void)
{
    lay("tcp", TRANSPORT_KNOWS_END);
    bed.run.template.traffic = TRAFFIC_TRANSFER;
    bed.run.outcome.states = STATE_LANE_FAILED;
    bed.metrics = false;
    bed.transport_lane.variant[0] = '\0';
    bed.doc_part.network = NULL;
}

static void lay_unreliable(void)
{
    lay("verbs", TRANSPORT_NEEDS_RDMA);
    bed.run.template.traffic = TRAFFIC_PINGPONG;
    bed.transport_lane.judges_order = true;
    bed.transport_lane.pingpong = pingpong_with_samples();
    bed.doc.compute = 0.3;
    bed.run.compute = (struct compute *)&bed;
}

static void lay_reliable(void)
{
    lay("verbs", TRANSPORT_NEEDS_RDMA);
    bed.run.template.traffic = TRAFFIC_PINGPONG;
    bed.run.template.pingpong.count = 100;
}

static void lay_schedule(void)
{
    lay("dpdk", TRANSPORT_FRAMES);
    bed.run.template.traffic = TRAFFIC_SCHEDULE;
    bed.run.template.schedule = (struct schedule_options){.count = 8, .batch = 4, .compute = true};
    bed.lane.executor = &bed.executor;
    bed.executor.execution =
        (struct execution){.repetitions = 8, .batches = 2, .sum_ns = 123456, .verified = 4};
    for (uint64_t i = 1; i < 120; i++)
        histogram_add_times(&bed.executor.execution.times, 1000 + 997 * i, i);
}

/* Nothing was measured, nothing can be lost. */
static void lay_idle_schedule(void)
{
    lay_schedule();
    bed.transport.capabilities |= TRANSPORT_KNOWS_END;
    bed.run.template.schedule.compute = false;
    memset(&bed.executor.execution, 0, sizeof bed.executor.execution);
}

static void report_ended(void (*prepare)(void), struct records *records)
{
    prepare();
    bed.node.records = records;
    report_end(&bed.run);
    pattern_plan_free(bed.plan);
    assert_false(records_broken(records));
}

static void report_events(struct records *records)
{
    lay("dpdk", TRANSPORT_FRAMES);
    bed.node.records = records;
    snprintf(bed.transport_lane.error.text, sizeof bed.transport_lane.error.text,
             "a \"quoted\" \\ reason\n");
    report_late(&bed.run);
    bed.run.number = PHASE_PROBE;
    bed.run.outcome.states = STATE_UNREACHABLE;
    report_end(&bed.run);
    pattern_plan_free(bed.plan);
}

static void report_running(struct records *records)
{
    const struct interval_grid grid = {AT(-900), 10 * NS_PER_MS, CLOCK_NEVER};
    int64_t last_ns = AT(-500);

    lay("dpdk", TRANSPORT_FRAMES);
    bed.node.records = records;
    atomic_store(&bed.lane.progress.offered_bytes, 123456);
    bed.lane.receive_count = 2;
    report_progress(&bed.run, &last_ns);
    bed.lane.send_count = 0;
    bed.run.template.open_ns = AT(10);
    last_ns = AT(-500);
    report_progress(&bed.run, &last_ns);
    bed.run.template.open_ns = AT(-900);
    bed.lane.intervals.bytes = calloc((INTERVAL_BATCH + 1) * 2, sizeof(uint64_t));
    bed.queue.interval_ring = interval_ring_make(2);
    interval_ring_begin(bed.queue.interval_ring, &grid);
    for (unsigned i = 0; i < 12; i++) {
        bed.sides[1].live.payload_bytes += 1000 * i;
        interval_ring_mark(bed.queue.interval_ring, bed.receives,
                           AT(-900) + i * 10 * NS_PER_MS + i * 1777, UINT32_MAX);
    }
    report_intervals(&bed.run, true);
    interval_ring_free(bed.queue.interval_ring);
    free(bed.lane.intervals.bytes);
    pattern_plan_free(bed.plan);
}

/* Of several ports; by the workers' times, and in the window the mean since its first record. */
static void report_rates(struct records *records)
{
    static const struct {
        int64_t open_ns, told_s;
        uint64_t bytes;
    } steps[] = {{CLOCK_NEVER, 2, 10}, {0, 3, 110}, {0, 4, 130}, {0, 7, 210}};
    int64_t last_ns;

    lay("dpdk", TRANSPORT_FRAMES);
    bed.node.records = records;
    bed.run.template.close_ns = bed.run.template.stop_ns = CLOCK_NEVER;
    bed.lane.shown.told_ns = NS_PER_S;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct phase_lane ports[2] = {bed.lane, bed.lane};

        last_ns = AT(-500);
        bed.run.template.open_ns = steps[i].open_ns;
        atomic_store(&bed.lane.progress.delivered_bytes, steps[i].bytes);
        atomic_store(&bed.lane.progress.told_ns, steps[i].told_s * NS_PER_S);
        report_progress(&bed.run, &last_ns);
        ports[1].send_count = 0;
        bed.run.lanes = ports;
        bed.run.lane_count = 1 + i % 2;
        last_ns = AT(-500);
        report_progress(&bed.run, &last_ns);
        bed.run.lanes = &bed.lane;
        bed.run.lane_count = 1;
    }
    pattern_plan_free(bed.plan);
}

/* Two queues, of which one misses marks: no byte is left out or counted twice. */
static void report_queues(struct records *records)
{
    const struct interval_grid grid = {AT(-900), 10 * NS_PER_MS, CLOCK_NEVER};
    struct queue_lane queues[2] = {{0}};

    lay("dpdk", TRANSPORT_FRAMES);
    bed.node.records = records;
    bed.lane.intervals.bytes = calloc((INTERVAL_BATCH + 1) * 2, sizeof(uint64_t));
    bed.lane.queues = queues;
    bed.lane.queue_count = 2;
    for (unsigned q = 0; q < 2; q++) {
        queues[q].interval_ring = interval_ring_make(2);
        interval_ring_begin(queues[q].interval_ring, &grid);
    }
    for (unsigned i = 0; i < 15; i++) {
        bed.sides[1].live.payload_bytes = bed.sides[2].live.payload_bytes = 1000 * i;
        for (unsigned q = 0; q < 2; q++)
            if (q == 0 || i % 7 != 3)
                interval_ring_mark(queues[q].interval_ring, bed.receives,
                                   AT(-900) + i * 10 * NS_PER_MS + q, UINT32_MAX);
        if (i % 5 == 4)
            report_intervals(&bed.run, false);
    }
    report_intervals(&bed.run, true);
    for (unsigned q = 0; q < 2; q++)
        interval_ring_free(queues[q].interval_ring);
    free(bed.lane.intervals.bytes);
    pattern_plan_free(bed.plan);
}

static void report_trials(struct records *records)
{
    uint32_t phases[] = {1, 2};

    lay("udp", TRANSPORT_FRAMES);
    bed.node.records = records;
    report_trial(&bed.trial, "complete");
    bed.doc.phases = phases;
    bed.doc.phases_count = 2;
    report_trial(&bed.trial, "partial");
    pattern_plan_free(bed.plan);
}

static void write_all(FILE *lines)
{
    static void (*const phases[])(void) = {lay_stream,       lay_flooded,  lay_transfer,
                                           lay_unreliable,   lay_reliable, lay_schedule,
                                           lay_idle_schedule};
    struct records *records;
    struct err err = {0};

    assert_int_equal(records_open(&records, fileno(lines), "node2", &err), 0);
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        report_ended(phases[i], records);
    report_events(records);
    assert_int_equal(records_close(records), 0); /* progress is dropped where many wait */
    assert_int_equal(records_open(&records, fileno(lines), "node2", &err), 0);
    report_running(records);
    report_rates(records);
    report_queues(records);
    report_trials(records);
    assert_int_equal(records_close(records), 0);
    rewind(lines);
}

static void test_every_byte(void **state)
{
    char *line = NULL, *expected = NULL;
    size_t room = 0, expected_room = 0;
    FILE *lines = tmpfile(), *golden;

    assert_non_null(lines);
    write_all(lines);
    golden = fopen(golden_path, getenv("SAVE") != NULL ? "w" : "r");
    assert_non_null(golden);
    while (getline(&line, &room, lines) > 0) {
        if (getenv("SAVE") != NULL) {
            assert_true(fputs(line, golden) >= 0);
        } else {
            assert_true(getline(&expected, &expected_room, golden) > 0);
            assert_string_equal(line, expected);
        }
    }
    assert_true(getenv("SAVE") != NULL || getline(&expected, &expected_room, golden) < 0);
    free(line);
    free(expected);
    fclose(golden);
    fclose(lines);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_byte)};

    if (argc != 2)
        return 2;
    golden_path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
