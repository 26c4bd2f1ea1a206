/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `interval` records of many flows over two queues: short enough for any launcher, and no byte of
 * any flow left out or counted twice.
 */
#include "clock.h"
#include "phase_run.h"
#include "report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define FLOWS 40u
#define QUEUES 2u
#define STEP (10 * NS_PER_MS)
#define OPEN NS_PER_S
#define MARKS 30u

static struct {
    struct node node;
    struct doc_trial doc;
    struct trial trial;
    struct doc_part doc_part;
    struct trial_part part;
    struct local_rank own;
    struct phase_run run;
    struct phase_lane lane;
    struct queue_lane queues[QUEUES];
    struct lane_flow flows[FLOWS];
    struct flow_side sides[QUEUES][FLOWS];
    struct lane_flow queue_flows[QUEUES][FLOWS];
    struct port_location places[FLOWS + 1];
    const struct port_location *ranks[FLOWS + 1];
    char names[FLOWS + 1][64];
    uint64_t sent[FLOWS];
    uint64_t told[FLOWS];
    double until_ms[FLOWS];
} bed;

/* Rank 0 receives from all others, by two queues. */
static void lay(void)
{
    static char network[] = "network";
    const struct interval_grid grid = {.open_ns = OPEN, .step_ns = STEP, .close_ns = CLOCK_NEVER};

    memset(&bed, 0, sizeof bed);
    bed.node.name = "a-node-with-a-rather-long-name";
    bed.doc_part.network = network;
    bed.trial = (struct trial){.node = &bed.node, .doc = &bed.doc};
    bed.part = (struct trial_part){.doc = &bed.doc_part, .ranks = bed.ranks, .n = FLOWS + 1};
    bed.own.part = &bed.part;
    for (unsigned i = 0; i <= FLOWS; i++) {
        snprintf(bed.names[i], sizeof bed.names[i], "a-node-with-a-rather-long-name%u:port", i);
        bed.places[i].name = bed.names[i];
        bed.ranks[i] = &bed.places[i];
    }
    bed.lane = (struct phase_lane){.own = &bed.own,
                                   .receives = bed.flows,
                                   .receive_count = FLOWS,
                                   .queues = bed.queues,
                                   .queue_count = QUEUES};
    bed.lane.intervals.bytes = calloc((size_t)(INTERVAL_BATCH + 1) * FLOWS, sizeof(uint64_t));
    for (unsigned q = 0; q < QUEUES; q++) {
        bed.queues[q].interval_ring = interval_ring_make(FLOWS);
        interval_ring_begin(bed.queues[q].interval_ring, &grid);
        for (unsigned i = 0; i < FLOWS; i++) {
            bed.flows[i].src = i + 1;
            bed.queue_flows[q][i] = (struct lane_flow){.src = i + 1, .side = &bed.sides[q][i]};
        }
    }
    bed.run = (struct phase_run){.trial = &bed.trial, .lanes = &bed.lane, .lane_count = 1};
    bed.run.template.open_ns = OPEN;
}

static void clear(void)
{
    for (unsigned q = 0; q < QUEUES; q++)
        interval_ring_free(bed.queues[q].interval_ring);
    free(bed.lane.intervals.bytes);
}

/* Both queues make a mark, or one of them is too late for it. */
static void mark(unsigned number, bool both)
{
    for (unsigned q = 0; q < QUEUES; q++) {
        for (unsigned i = 0; i < FLOWS && number > 0; i++) {
            uint64_t bytes = 1000000000u + (uint64_t)random() % 1000000;

            bed.sides[q][i].live.payload_bytes += bytes;
        }
        if (q == 0 || both)
            interval_ring_mark(bed.queues[q].interval_ring, bed.queue_flows[q],
                               OPEN + number * STEP + q, UINT32_MAX);
    }
    for (unsigned i = 0; i < FLOWS && both; i++)
        bed.sent[i] = bed.sides[0][i].live.payload_bytes + bed.sides[1][i].live.payload_bytes;
}

static unsigned flow_of(const char *name)
{
    unsigned i = 1;

    while (strcmp(bed.names[i], name) != 0)
        assert_true(++i <= FLOWS);
    return i - 1;
}

/* One record: each flow goes on where its last record ended. */
static void check(const char *line)
{
    json_t *record = json_loads(line, 0, NULL), *entry;
    json_t *at_ms = json_object_get(record, "at_ms");
    double from_ms = json_number_value(json_object_get(record, "from_ms"));
    size_t number, place;

    assert_non_null(record);
    assert_in_range(json_array_size(at_ms), 1, INTERVAL_BATCH);
    assert_string_equal(json_string_value(json_object_get(record, "dst")), bed.names[0]);
    json_array_foreach(json_object_get(record, "flows"), number, entry)
    {
        unsigned flow = flow_of(json_string_value(json_array_get(entry, 0)));
        json_t *counts = json_array_get(entry, 1), *count;

        assert_int_equal(json_array_size(counts), json_array_size(at_ms));
        assert_true(from_ms >= bed.until_ms[flow] - 1e-6 && from_ms <= bed.until_ms[flow] + 1e-6);
        bed.until_ms[flow] = json_number_value(json_array_get(at_ms, json_array_size(at_ms) - 1));
        json_array_foreach(counts, place, count) bed.told[flow] +=
            (uint64_t)json_integer_value(count);
    }
    json_decref(record);
}

static void test_every_byte_is_reported(void **state)
{
    struct err err = {0};
    char line[1 << 16];
    unsigned lines = 0;
    FILE *out;
    int fds[2];

    lay();
    srandom(1);
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(records_open(&bed.node.records, fds[1], bed.node.name, &err), 0);
    out = fdopen(fds[0], "r");
    for (unsigned i = 0; i < MARKS; i++) {
        mark(i, i % 7 != 3);
        if (i % 5 == 4)
            report_interval(&bed.run, false);
    }
    report_interval(&bed.run, true);
    assert_int_equal(records_close(bed.node.records), 0);
    close(fds[1]);
    while (fgets(line, sizeof line, out) != NULL) {
        lines++;
        check(line);
    }
    fclose(out);
    assert_true(lines >= MARKS / INTERVAL_BATCH);
    for (unsigned i = 0; i < FLOWS; i++)
        assert_int_equal(bed.told[i], bed.sent[i]);
    clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_byte_is_reported)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
