/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `interval`: for each port that receives, what came of its flows from mark to mark. A record holds
 * several marks and is whole by itself.
 */
#include "clock.h"
#include "report.h"
#include "report_record.h"

#include <string.h>

#define BATCH_NS NS_PER_S /* marks that are close wait so long for each other */

static uint64_t *row(const struct phase_lane *lane, uint32_t number)
{
    return &lane->intervals.bytes[(size_t)number * lane->receive_count];
}

/* Whether a mark of one moment waits at all of the lane's queues. Marks of moments that other
 * queues missed are dropped: counts are since the start, and the next mark has them, too. */
static bool moment_waits(const struct phase_lane *lane)
{
    uint32_t latest = 0;
    bool equal = false;

    while (!equal) {
        for (uint32_t q = 0; q < lane->queue_count; q++) {
            struct interval_ring *ring = lane->queues[q].interval_ring;

            if (interval_ring_waiting(ring) == 0)
                return false;
            if (interval_ring_first(ring).number > latest)
                latest = interval_ring_first(ring).number;
        }
        equal = true;
        for (uint32_t q = 0; q < lane->queue_count; q++) {
            if (interval_ring_first(lane->queues[q].interval_ring).number < latest) {
                interval_ring_drop(lane->queues[q].interval_ring);
                equal = false;
            }
        }
    }
    return true;
}

/* Takes the moment that waits, of all queues together. */
static void take_moment(struct phase_lane *lane)
{
    struct interval_rows *rows = &lane->intervals;
    uint64_t *bytes = row(lane, rows->count);

    memset(bytes, 0, lane->receive_count * sizeof *bytes);
    rows->at_ns[rows->count] = 0;
    for (uint32_t q = 0; q < lane->queue_count; q++) {
        struct interval_mark mark = interval_ring_first(lane->queues[q].interval_ring);

        if (mark.at_ns > rows->at_ns[rows->count])
            rows->at_ns[rows->count] = mark.at_ns;
        for (uint32_t i = 0; i < lane->receive_count; i++)
            bytes[i] += mark.bytes[i];
        interval_ring_drop(lane->queues[q].interval_ring);
    }
    rows->count++;
}

/* To the microsecond, since the window's opening. */
static json_t *moment_ms(const struct phase_run *run, int64_t at_ns)
{
    int64_t since_us = (at_ns - run->template.open_ns) / NS_PER_US;

    return json_real((double)since_us / 1e3);
}

static void send_flows(const struct phase_run *run, const struct phase_lane *lane, json_t *flows)
{
    const struct interval_rows *marks = &lane->intervals;
    json_t *at_ms = json_array();
    const struct record_row rows[] = {
        {"network", report_network(lane)},
        {"side", json_string("destination")},
        {"dst", report_rank(lane, lane->own->rank)},
        {"from_ms", moment_ms(run, marks->at_ns[0])},
        {"at_ms", at_ms},
        {"flows", flows},
        {NULL, NULL},
    };

    for (uint32_t i = 1; i < marks->count; i++)
        json_array_append_new(at_ms, moment_ms(run, marks->at_ns[i]));
    report_write(run, "interval", rows);
}

/* ["node2:e0", [125000, 125000, 31250]] */
static json_t *flow_entry(const struct phase_lane *lane, uint32_t flow)
{
    const char *src = lane->own->part->ranks[lane->receives[flow].src]->name;
    json_t *counts = json_array();

    for (uint32_t i = 1; i < lane->intervals.count; i++) {
        uint64_t bytes = row(lane, i)[flow] - row(lane, i - 1)[flow];

        json_array_append_new(counts, json_integer((json_int_t)bytes));
    }
    return json_pack("[s, o]", src, counts);
}

/* Writes what was taken, and keeps the last row: the next record begins there. */
static void write_rows(const struct phase_run *run, struct phase_lane *lane)
{
    struct interval_rows *rows = &lane->intervals;
    uint32_t last = rows->count - 1;
    json_t *flows = json_array();

    for (uint32_t i = 0; i < lane->receive_count; i++)
        json_array_append_new(flows, flow_entry(lane, i));
    send_flows(run, lane, flows);
    memmove(row(lane, 0), row(lane, last), lane->receive_count * sizeof(uint64_t));
    rows->at_ns[0] = rows->at_ns[last];
    rows->count = 1;
}

static bool rows_are_due(const struct interval_rows *rows)
{
    return rows->count > INTERVAL_BATCH ||
           rows->at_ns[rows->count - 1] - rows->at_ns[0] >= BATCH_NS;
}

void report_interval(struct phase_run *run, bool all)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];

        if (lane->intervals.bytes == NULL)
            continue;
        while ((all || !records_crowded(run->trial->node->records)) && moment_waits(lane)) {
            take_moment(lane);
            if (rows_are_due(&lane->intervals))
                write_rows(run, lane);
        }
        if (all && lane->intervals.count > 1)
            write_rows(run, lane);
    }
}
