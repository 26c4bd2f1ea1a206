/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `progress` records: what the node and each of its ports moved since the last one. A record holds
 * as many ports as there is room for; all say the node's sums.
 */
#include "report_progress.h"

#include "clock.h"
#include "phase_run.h"
#include "report_common.h"

#include <stdio.h>
#include <string.h>

#define RECORD_ROOM 960u
#define HEAD_BYTES 200u /* of a record without the node's name and ports */
#define PORT_BYTES 6u   /* of a port without its name and rates */

static const char *step_name(const struct phase_run *run, int64_t now_ns)
{
    const struct phase *phase = &run->template;

    if (run->number == PHASE_PROBE)
        return "probe";
    if (!phase_is_timed(phase))
        return "window";
    if (now_ns < phase->open_ns)
        return "warmup";
    if (now_ns < phase->close_ns)
        return "window";
    return now_ns < phase->stop_ns ? "cooldown" : "drain";
}

static const char *port_name(const struct phase_lane *lane)
{
    return lane->own->part->ranks[lane->own->rank]->name;
}

/* The rate of what was added to *shown, which becomes `moved`. */
static json_int_t rate_bps(uint64_t moved, uint64_t *shown, double seconds)
{
    uint64_t fresh = moved - *shown;

    *shown = moved;
    return (json_int_t)((double)fresh * 8 / seconds);
}

/* Null where no flow of the phase goes this way. */
static json_t *rate_or_null(json_int_t bps, uint32_t flows)
{
    return flows > 0 ? json_integer(bps) : json_null();
}

/* ["node1:e0", 95000000, 94999000], and its rates added to the sums. */
static json_t *port_entry(struct phase_lane *lane, double seconds, json_int_t sums_bps[2])
{
    struct port_progress *progress = &lane->progress;
    json_int_t offered_bps =
        rate_bps(atomic_load(&progress->offered_bytes), &lane->offered_shown, seconds);
    json_int_t delivered_bps =
        rate_bps(atomic_load(&progress->delivered_bytes), &lane->delivered_shown, seconds);

    sums_bps[0] += offered_bps;
    sums_bps[1] += delivered_bps;
    return json_pack("[s, o, o]", port_name(lane), rate_or_null(offered_bps, lane->send_count),
                     rate_or_null(delivered_bps, lane->receive_count));
}

static size_t entry_bytes(const struct phase_lane *lane, const json_t *entry)
{
    size_t size = PORT_BYTES + strlen(port_name(lane));

    for (size_t i = 1; i <= 2; i++)
        size += (size_t)snprintf(NULL, 0, "%lld,",
                                 (long long)json_integer_value(json_array_get(entry, i)));
    return size + 2 * strlen("null");
}

static void send_ports(const struct phase_run *run, const json_int_t sums_bps[2], json_t *ports)
{
    json_t *record = report_new(run, "progress");

    record_set_text(record, "step", step_name(run, clock_now()));
    json_object_set_new(record, "offered_bps", json_integer(sums_bps[0]));
    json_object_set_new(record, "delivered_bps", json_integer(sums_bps[1]));
    json_object_set_new(record, "ports", ports);
    record_offer(run->trial->node->records, record);
}

void report_progress(struct phase_run *run, int64_t *last_ns)
{
    int64_t now_ns = clock_now();
    double seconds = (double)(now_ns - *last_ns) / 1e9;
    size_t head = HEAD_BYTES + strlen(run->trial->node->name), size = head;
    json_int_t sums_bps[2] = {0, 0};
    json_t *entries = json_array(), *ports = json_array();
    json_t *entry;
    size_t i;

    for (size_t l = 0; l < run->lane_count; l++)
        json_array_append_new(entries, port_entry(&run->lanes[l], seconds, sums_bps));
    json_array_foreach(entries, i, entry)
    {
        size_t more = entry_bytes(&run->lanes[i], entry);

        if (size + more > RECORD_ROOM && json_array_size(ports) > 0) {
            send_ports(run, sums_bps, ports);
            ports = json_array();
            size = head;
        }
        json_array_append(ports, entry);
        size += more;
    }
    send_ports(run, sums_bps, ports);
    json_decref(entries);
    *last_ns = now_ns;
}
