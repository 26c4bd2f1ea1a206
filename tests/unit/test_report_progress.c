/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `progress` records of many ports: short enough for any launcher, every port in one of them, and
 * no byte counted twice from one report to the next.
 */
#include "clock.h"
#include "phase_run.h"
#include "report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define PORTS 32u /* what DPDK holds in a process */
#define SPAN_NS (NS_PER_S / 2)
#define STEP_BYTES 1000000u

static struct {
    struct node node;
    struct doc_trial doc;
    struct trial trial;
    struct trial_part part;
    struct local_rank owns[PORTS];
    struct phase_run run;
    struct phase_lane lanes[PORTS];
    struct port_location places[PORTS];
    const struct port_location *ranks[PORTS];
    char names[PORTS][64];
} bed;

/* All ports receive; of every second one no flow begins. */
static void lay(void)
{
    memset(&bed, 0, sizeof bed);
    bed.node.name = "a-node-with-a-rather-long-name";
    bed.trial = (struct trial){.node = &bed.node, .doc = &bed.doc};
    bed.part = (struct trial_part){.ranks = bed.ranks, .n = PORTS};
    for (unsigned i = 0; i < PORTS; i++) {
        snprintf(bed.names[i], sizeof bed.names[i], "a-node-with-a-rather-long-name%u:port", i);
        bed.places[i].name = bed.names[i];
        bed.ranks[i] = &bed.places[i];
        bed.owns[i] = (struct local_rank){.part = &bed.part, .rank = i};
        bed.lanes[i].own = &bed.owns[i];
        bed.lanes[i].receive_count = 1;
        bed.lanes[i].send_count = i % 2;
    }
    bed.run = (struct phase_run){.trial = &bed.trial, .lanes = bed.lanes, .lane_count = PORTS};
    bed.run.template = (struct phase){.close_ns = CLOCK_NEVER, .stop_ns = CLOCK_NEVER};
}

/* Every port has received so much more, and sent half of it where it sends. */
static void move_and_report(void)
{
    int64_t last_ns = clock_now() - SPAN_NS;

    for (unsigned i = 0; i < PORTS; i++) {
        atomic_fetch_add(&bed.lanes[i].progress.delivered_bytes, STEP_BYTES);
        atomic_fetch_add(&bed.lanes[i].progress.line_bytes, 2 * STEP_BYTES);
        atomic_fetch_add(&bed.lanes[i].progress.offered_bytes, i % 2 * STEP_BYTES / 2);
    }
    report_progress(&bed.run, &last_ns);
    assert_true(last_ns > clock_now() - SPAN_NS);
}

/* The span is a little longer than SPAN_NS, by what this test itself takes. */
static void assert_rate(json_int_t bps, double bytes)
{
    double most = bytes * 8 * NS_PER_S / SPAN_NS;

    assert_true((double)bps <= most && (double)bps > most * 0.5);
}

static unsigned check_ports(json_t *record, unsigned first)
{
    json_t *ports = json_object_get(record, "ports");

    assert_true(json_array_size(ports) > 0);
    for (unsigned i = 0; i < json_array_size(ports); i++) {
        json_t *port = json_array_get(ports, i);
        unsigned number = (first + i) % PORTS;

        assert_string_equal(json_string_value(json_array_get(port, 0)), bed.names[number]);
        assert_int_equal(json_is_null(json_array_get(port, 1)), number % 2 == 0);
        if (number % 2 == 1)
            assert_rate(json_integer_value(json_array_get(port, 1)), STEP_BYTES / 2.0);
        assert_rate(json_integer_value(json_array_get(port, 2)), STEP_BYTES);
        assert_rate(json_integer_value(json_array_get(port, 3)), 2.0 * STEP_BYTES);
    }
    return first + (unsigned)json_array_size(ports);
}

static unsigned check(const char *line, unsigned first)
{
    json_t *record = json_loads(line, 0, NULL);
    unsigned next;

    assert_non_null(record);
    assert_string_equal(json_string_value(json_object_get(record, "type")), "progress");
    assert_rate(json_integer_value(json_object_get(record, "offered_bps")),
                PORTS / 4.0 * STEP_BYTES);
    assert_rate(json_integer_value(json_object_get(record, "delivered_bps")),
                (double)PORTS * STEP_BYTES);
    next = check_ports(record, first);
    json_decref(record);
    return next;
}

static void test_every_port_is_reported(void **state)
{
    struct err err = {0};
    char line[1 << 16];
    unsigned seen = 0, lines = 0;
    int fds[2];
    FILE *out;

    lay();
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(records_open(&bed.node.records, fds[1], bed.node.name, &err), 0);
    out = fdopen(fds[0], "r");
    move_and_report();
    move_and_report();
    assert_int_equal(records_close(bed.node.records), 0);
    close(fds[1]);
    while (fgets(line, sizeof line, out) != NULL) {
        lines++;
        seen = check(line, seen);
    }
    fclose(out);
    assert_int_equal(seen, 2 * PORTS);
    assert_int_equal(lines, 2);
}

/* A worker has counted so many bytes of a port, at this time. */
static void tell(int64_t at_ns, uint64_t bytes)
{
    int64_t last_ns = clock_now() - SPAN_NS;

    atomic_store(&bed.lanes[0].progress.delivered_bytes, bytes);
    atomic_store(&bed.lanes[0].progress.told_ns, at_ns);
    report_progress(&bed.run, &last_ns);
}

static void test_rates_are_of_the_window_by_the_workers_times(void **state)
{
    const json_int_t expected[] = {80, 800, 160, 200};
    struct err err = {0};
    char line[1 << 16];
    int fds[2];
    FILE *out;

    (void)state;
    lay();
    bed.run.lane_count = 1;
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(records_open(&bed.node.records, fds[1], bed.node.name, &err), 0);
    out = fdopen(fds[0], "r");
    bed.lanes[0].shown.told_ns = NS_PER_S;
    bed.run.template.open_ns = CLOCK_NEVER;
    tell(2 * NS_PER_S, 10);
    bed.run.template.open_ns = 0;
    tell(3 * NS_PER_S, 110); /* the window's first: since the record before */
    tell(4 * NS_PER_S, 130);
    tell(7 * NS_PER_S, 210); /* 100 bytes in the 4 s since the first */
    assert_int_equal(records_close(bed.node.records), 0);
    close(fds[1]);
    for (unsigned i = 0; i < 4; i++) {
        json_t *record;

        assert_non_null(fgets(line, sizeof line, out));
        record = json_loads(line, 0, NULL);
        assert_int_equal(json_integer_value(json_object_get(record, "delivered_bps")), expected[i]);
        json_decref(record);
    }
    fclose(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_port_is_reported),
        cmocka_unit_test(test_rates_are_of_the_window_by_the_workers_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
