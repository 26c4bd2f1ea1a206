/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Print the records of phases and trials: each kind, with each value that may be null, at a fixed
 * time and on fixed clocks. The test compares them byte for byte with report_records.ndjson.
 */
#include "phase.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOW_S 100
#define AT(ms) (NOW_S * NS_PER_S + (ms)*NS_PER_MS)

/* These functions replace the engine's at linking (ld --wrap). */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);
long __wrap_sysconf(int name);
long __real_sysconf(int name);
struct control_clocks __wrap_control_clocks(const struct control *control);
struct offset_estimate __wrap_control_clock_at(struct control *control, int64_t at_ns);

static struct control_clocks clocks;
static struct offset_estimate clock_at;

int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    *time = (struct timespec){.tv_sec = NOW_S};
    return 0;
}

long __wrap_sysconf(int name)
{
    return name == _SC_NPROCESSORS_ONLN ? 16 : __real_sysconf(name);
}

struct control_clocks __wrap_control_clocks(const struct control *control)
{
    (void)control;
    return clocks;
}

struct offset_estimate __wrap_control_clock_at(struct control *control, int64_t at_ns)
{
    (void)control, (void)at_ns;
    return clock_at;
}

/* One network of three ranks. This node's port is rank 1: it sends one flow and receives two, the
 * last of which is silent. */
static char network[] = "fabric";
static const struct port_location places[] = {
    {"node1:e0", 0, 0}, {"node2:e0", 1, 0}, {"node3:e0", 2, 0}};
static const struct port_location *ranks[] = {&places[0], &places[1], &places[2]};
static bool has_metrics, has_times;
static struct records *records;
static struct node node;
static struct doc_trial doc;
static struct doc_part doc_part;
static struct transport transport;
static struct trial_part part;
static struct local_rank own;
static struct trial trial;
static struct lane_flow flows[3]; /* one that it sends, two that it receives */
static struct schedule_executor executor;
static struct lane lane;
static struct phase_lane port;
static struct worker_lane queue;
static struct phase_run run;

/* One-way delays fill many buckets; no IPDV was measured. */
static void read_flow(struct lane *of, const struct lane_flow *flow, struct flow_reading *reading)
{
    (void)of;
    for (uint64_t i = 0; has_times && i < 100; i++)
        histogram_add(&reading->latency[LATENCY_ONE_WAY].histogram, 100 + 977 * i, i + 1);
    if (has_times) {
        reading->latency[LATENCY_PINGPONG].sent = 5;
        histogram_add(&reading->latency[LATENCY_PINGPONG].histogram, UINT64_C(1) << 41, 3);
    }
    for (enum latency_kind kind = 0; kind < LATENCY_KINDS; kind++)
        reading->measured[kind] = has_times && kind != LATENCY_ROUND_TRIP;
    if (has_metrics && flow->src != 0) {
        reading->metrics[0] = (struct flow_metric){"rtt_us", 1234.56789012345};
        reading->metrics[1] = (struct flow_metric){"retransmitted_segments", 3};
        reading->metric_count = 2;
    }
}

static void lay(const char *name, unsigned capabilities, enum traffic traffic)
{
    struct pattern_plan *plan = part.plan;

    has_metrics = true;
    has_times = false;
    node = (struct node){.name = "node2", .worker_count = 2, .records = records};
    doc = (struct doc_trial){.id = 4, .repeat = 2, .parts_count = 1};
    doc_part.network = network;
    transport =
        (struct transport){.name = name, .capabilities = capabilities, .read_flow = read_flow};
    part = (struct trial_part){&doc_part, &transport, ranks, 3, plan};
    own = (struct local_rank){.part = &part, .rank = 1};
    trial = (struct trial){
        .node = &node, .doc = &doc, .parts = &part, .phase_count = 6, .begun_ns = AT(-2500)};
    memset(flows, 0, sizeof flows);
    flows[0] = (struct lane_flow){.src = 1, .dst = 2};
    flows[1] = (struct lane_flow){.src = 0, .dst = 1, .role = PATTERN_FORWARD};
    flows[2] = (struct lane_flow){.src = 2, .dst = 1};
    flows[0].side = (struct flow_side){.live = {1000, 64000, 46000, 12},
                                       .window = {{100, 6400, 4600, 1}, {900, 57600, 41400, 11}},
                                       .intended = 1001,
                                       .first_ns = AT(1),
                                       .last_ns = AT(999)};
    flows[1].side = (struct flow_side){.live = {990, 63360, 45540, 9},
                                       .window = {{90, 5760, 4140, 2}, {890, 56960, 40940, 8}},
                                       .duplicated = 1,
                                       .reordered = 2,
                                       .late = 3,
                                       .forged = 4,
                                       .corrupted = 5,
                                       .first_ns = AT(2)};
    lane = (struct lane){.started_ns = AT(0), .variant = "burst, l2"};
    queue = (struct worker_lane){.lane = &lane, .opened_ns = AT(100), .closed_ns = AT(900) + 17};
    port = (struct phase_lane){
        .own = &own,
        .transport = &transport,
        .phase = {.tag = 513},
        .flows = flows,
        .send_count = 1,
        .receive_count = 2,
        .flow_count = 3,
        .queues = &queue,
        .queue_count = 1,
        .lane = &lane,
        .count = {1, 2, 3, 4, 5, 6, 7, {.others = 8}},
        .before = {1, 2, 3, 4, 0, 5, -1, 1, 1, 1, 1, 1, -1, {1, 1, 1, 1, 1, 1, -1}},
        .after = {11, 22, 33, 44, 50, -1, 6, 2, 3, 4, 5, 6, 7, {9, 10, 11, 12, 13, -1, 7}},
    };
    misdelivered_add(&port.count.misdelivered_flows, &(struct misdelivered_flow){9, 0, 2});
    misdelivered_add(&port.count.misdelivered_flows, &(struct misdelivered_flow){1, 900, 2});
    run = (struct phase_run){
        .trial = &trial,
        .number = 1,
        .template = {.traffic = traffic,
                     .open_ns = AT(-900),
                     .close_ns = AT(-100),
                     .probes = 3,
                     .schedule = {.count = 8, .batch = 4, .compute = true}},
        .lanes = &port,
        .lane_count = 1,
        .start_run_ns = AT(-1000),
        .offset_ns = -250,
        .bound_ns = 300,
        .begin = {AT(0), 1.5, 3.25},
        .end = {AT(1234), 2.625, 4.5},
        .outcome = {.start_skew_us = 12.345678, .clock_bound_ns = 700, .elapsed_ns = 1000000001},
    };
    run.is_timed = phase_is_timed(&run.template);
}

static void report_ended(void)
{
    lay("dpdk", TRANSPORT_FRAMES, TRAFFIC_STREAM);
    has_times = true;
    clocks = (struct control_clocks){.mode = CLOCK_ESTIMATED, .maxerror_ns = -1};
    clock_at = (struct offset_estimate){.offset_ns = -200, .bound_ns = 321};
    report_end(&run);

    /* A phase that a flood ended early, of a node without a common clock. */
    lay("dpdk", TRANSPORT_FRAMES, TRAFFIC_STREAM);
    has_times = true;
    clocks = (struct control_clocks){.mode = CLOCK_PTP, .maxerror_ns = 1000};
    clock_at.bound_ns = -1;
    run.begin.idle_s = -1;
    run.outcome.states = STATE_FLOODED | STATE_STOPPED | STATE_DRAIN_TIMEOUT;
    run.outcome.start_skew_us = run.outcome.clock_bound_ns = -1;
    report_end(&run);

    lay("tcp", TRANSPORT_KNOWS_END, TRAFFIC_TRANSFER);
    run.outcome.states = STATE_LANE_FAILED;
    has_metrics = false;
    lane.variant[0] = '\0';
    doc_part.network = NULL;
    report_end(&run);

    lay("verbs", TRANSPORT_NEEDS_RDMA, TRAFFIC_PINGPONG);
    lane.judges_order = true;
    report_end(&run);

    lay("dpdk", TRANSPORT_FRAMES, TRAFFIC_SCHEDULE);
    port.executor = &executor;
    executor.execution =
        (struct execution){.repetitions = 8, .batches = 2, .sum_ns = 123456, .verified = 4};
    for (uint64_t i = 1; i < 120; i++)
        histogram_add(&executor.execution.times, 1000 + 997 * i, i);
    report_end(&run);
    executor.execution = (struct execution){0}; /* nothing was measured */
    run.template.schedule.compute = false;
    report_end(&run);

    lay("dpdk", TRANSPORT_FRAMES, TRAFFIC_STREAM);
    snprintf(lane.error.text, sizeof lane.error.text, "a \"quoted\" \\ reason\n");
    report_late(&run);
    run.number = PHASE_PROBE;
    run.is_probe = true;
    run.outcome.states = STATE_UNREACHABLE;
    report_end(&run);
}

/* Records of several ports, at the workers' times; in the window each has the mean since the
 * window's first record. */
static void report_rates(void)
{
    static const struct {
        int64_t open_ns, told_s;
        uint64_t bytes;
    } steps[] = {{CLOCK_NEVER, 2, 10}, {0, 3, 110}, {0, 4, 130}, {0, 7, 210}};

    lay("dpdk", TRANSPORT_FRAMES, TRAFFIC_STREAM);
    run.template.close_ns = run.template.stop_ns = CLOCK_NEVER;
    port.shown.published_ns = NS_PER_S;
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        struct worker_lane earlier = queue;
        struct phase_lane ports[2] = {port, port};
        int64_t last_ns = AT(-500);

        run.template.open_ns = steps[i].open_ns;
        queue.delivered_bytes = steps[i].bytes;
        queue.published_ns = steps[i].told_s * NS_PER_S;
        report_progress(&run, &last_ns);
        ports[1].send_count = 0;
        ports[0].queues = ports[1].queues = &earlier;
        run.lanes = ports;
        run.lane_count = 1 + i % 2;
        last_ns = AT(-500);
        report_progress(&run, &last_ns);
        run.lanes = &port;
        run.lane_count = 1;
    }
}

/* One of two queues misses marks: no byte is left out or counted twice. */
static void report_marks(void)
{
    const struct interval_grid grid = {AT(-900), 10 * NS_PER_MS, CLOCK_NEVER};
    struct worker_lane queues[2] = {{0}};

    lay("dpdk", TRANSPORT_FRAMES, TRAFFIC_STREAM);
    port.marked = calloc(2, sizeof *port.marked);
    port.queues = queues;
    port.queue_count = 2;
    for (unsigned q = 0; q < 2; q++)
        queues[q].interval_ring = interval_ring_make(2);
    for (unsigned i = 0; i < 15; i++) {
        flows[1].side.live.payload_bytes = flows[2].side.live.payload_bytes = 1000 * i;
        for (unsigned q = 0; q < 2; q++)
            if (q == 0 || i % 7 != 3)
                interval_ring_mark(queues[q].interval_ring, &grid, &flows[1],
                                   AT(-900) + i * 10 * NS_PER_MS + q, UINT32_MAX);
        if (i % 5 == 4)
            report_intervals(&run, false);
    }
    report_intervals(&run, true);
    for (unsigned q = 0; q < 2; q++)
        interval_ring_free(queues[q].interval_ring);
    free(port.marked);
}

int main(void)
{
    const struct pattern_request request = {.name = "aapc", .n = 3, .order = "shift"};
    uint32_t phases[] = {1, 2};
    struct err err = {0};
    char why[256];
    int rc = records_open(&records, STDOUT_FILENO, "node2", &err);

    rc |= pattern_plan_make(&part.plan, &request, why, sizeof why);
    assert(rc == 0);
    report_ended();
    records_close(records); /* progress records are dropped where many wait */
    records_open(&records, STDOUT_FILENO, "node2", &err);
    report_rates();
    report_marks();
    report_trial(&trial, "complete");
    doc.phases = phases;
    doc.phases_count = 2;
    report_trial(&trial, "partial");
    pattern_plan_free(part.plan);
    return records_close(records) < 0;
}
