/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `interim` records: for each port that receives, what came of its flows from mark to mark. A
 * record holds several marks and as many flows as there is room for; each is whole by itself.
 */
#include "report_interval.h"

#include "clock.h"
#include "phase_run.h"
#include "report_common.h"

#include <stdio.h>
#include <string.h>

#define BATCH_NS NS_PER_S /* marks that are close wait so long for each other */
#define RECORD_ROOM 960u
#define HEAD_BYTES 190u /* of a record without names, marks and flows */
#define MARK_BYTES 14u  /* of a mark's time */
#define FLOW_BYTES 8u   /* of a flow without its name and counts */

static uint64_t *row(const struct phase_lane *lane, uint32_t number)
{
    return &lane->interim.bytes[(size_t)number * lane->receive_count];
}

/* Whether a mark of one moment waits at all of the lane's queues. Marks of moments that other
 * queues missed are dropped: counts are since the start, and the next mark has them, too. */
static bool moment_waits(const struct phase_lane *lane)
{
    uint32_t latest = 0;
    bool equal = false;

    while (!equal) {
        for (uint32_t q = 0; q < lane->queue_count; q++) {
            struct interim *interim = lane->queues[q].interim;

            if (interim_waiting(interim) == 0)
                return false;
            if (interim_first(interim).number > latest)
                latest = interim_first(interim).number;
        }
        equal = true;
        for (uint32_t q = 0; q < lane->queue_count; q++) {
            if (interim_first(lane->queues[q].interim).number < latest) {
                interim_drop(lane->queues[q].interim);
                equal = false;
            }
        }
    }
    return true;
}

/* Takes the moment that waits, of all queues together. */
static void take_moment(struct phase_lane *lane)
{
    struct interim_rows *rows = &lane->interim;
    uint64_t *bytes = row(lane, rows->count);

    memset(bytes, 0, lane->receive_count * sizeof *bytes);
    rows->at_ns[rows->count] = 0;
    for (uint32_t q = 0; q < lane->queue_count; q++) {
        struct interim_mark mark = interim_first(lane->queues[q].interim);

        if (mark.at_ns > rows->at_ns[rows->count])
            rows->at_ns[rows->count] = mark.at_ns;
        for (uint32_t i = 0; i < lane->receive_count; i++)
            bytes[i] += mark.bytes[i];
        interim_drop(lane->queues[q].interim);
    }
    rows->count++;
}

/* To the microsecond, since the window's opening. */
static json_t *moment_ms(const struct phase_run *run, int64_t at_ns)
{
    int64_t since_us = (at_ns - run->template.open_ns) / NS_PER_US;

    return json_real((double)since_us / 1e3);
}

static json_t *begin_record(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct interim_rows *rows = &lane->interim;
    json_t *record = report_new(run, "interim");
    json_t *at_ms = json_array();

    record_set_text(record, "network", lane->own->part->doc->network);
    record_set_text(record, "side", "destination");
    record_set_text(record, "dst", lane->own->part->ranks[lane->own->rank]->name);
    json_object_set_new(record, "from_ms", moment_ms(run, rows->at_ns[0]));
    for (uint32_t i = 1; i < rows->count; i++)
        json_array_append_new(at_ms, moment_ms(run, rows->at_ns[i]));
    json_object_set_new(record, "at_ms", at_ms);
    json_object_set_new(record, "flows", json_array());
    return record;
}

static size_t head_bytes(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct own_rank *own = lane->own;

    return HEAD_BYTES + strlen(run->trial->node->name) + strlen(own->part->doc->network) +
           strlen(own->part->ranks[own->rank]->name) + (size_t)lane->interim.count * MARK_BYTES;
}

/* ["node2:e0", [125000, 125000, 31250]]; *size grows by its length. */
static json_t *flow_entry(const struct phase_lane *lane, uint32_t flow, size_t *size)
{
    const char *src = lane->own->part->ranks[lane->receives[flow].src]->name;
    json_t *counts = json_array();

    *size += FLOW_BYTES + strlen(src);
    for (uint32_t i = 1; i < lane->interim.count; i++) {
        uint64_t bytes = row(lane, i)[flow] - row(lane, i - 1)[flow];

        *size += (size_t)snprintf(NULL, 0, "%llu,", (unsigned long long)bytes);
        json_array_append_new(counts, json_integer((json_int_t)bytes));
    }
    return json_pack("[s, o]", src, counts);
}

/* Writes what was taken, and keeps the last row: the next record begins there. */
static void write_rows(const struct phase_run *run, struct phase_lane *lane)
{
    struct interim_rows *rows = &lane->interim;
    uint32_t last = rows->count - 1;
    json_t *record = NULL;
    size_t size = 0;

    for (uint32_t i = 0; i < lane->receive_count; i++) {
        size_t before = size;
        json_t *entry = flow_entry(lane, i, &size);

        if (record != NULL && size > RECORD_ROOM) {
            record_send(run->trial->node->records, record);
            record = NULL;
        }
        if (record == NULL) {
            record = begin_record(run, lane);
            size = head_bytes(run, lane) + size - before;
        }
        json_array_append_new(json_object_get(record, "flows"), entry);
    }
    record_send(run->trial->node->records, record);
    memmove(row(lane, 0), row(lane, last), lane->receive_count * sizeof(uint64_t));
    rows->at_ns[0] = rows->at_ns[last];
    rows->count = 1;
}

static bool rows_are_due(const struct interim_rows *rows)
{
    return rows->count > INTERIM_BATCH || rows->at_ns[rows->count - 1] - rows->at_ns[0] >= BATCH_NS;
}

void report_interim(struct phase_run *run, bool all)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];

        if (lane->interim.bytes == NULL)
            continue;
        while ((all || !records_crowded(run->trial->node->records)) && moment_waits(lane)) {
            take_moment(lane);
            if (rows_are_due(&lane->interim))
                write_rows(run, lane);
        }
        if (all && lane->interim.count > 1)
            write_rows(run, lane);
    }
}
