/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `progress`: what the node and each of its ports moved since the last one. A record holds as many
 * ports as there is room for; all say the node's sums.
 */
#include "clock.h"
#include "report.h"
#include "report_record.h"

#include <string.h>

#define HEAD_BYTES 200u /* of a record without the node's name and ports */

static const char *step_name(const struct phase_run *run, int64_t now_ns)
{
    const struct phase *phase = &run->template;

    if (phase_is_probe(run))
        return "connectivity-check";
    if (!phase_is_timed(phase))
        return "window";
    if (now_ns < phase->open_ns)
        return "warmup";
    if (now_ns < phase->close_ns)
        return "window";
    return now_ns < phase->stop_ns ? "cooldown" : "drain";
}

/* The rate of what was added to *shown, which becomes `moved`; it is added to *sum_bps. */
static int64_t take_rate(uint64_t moved, uint64_t *shown, double seconds, int64_t *sum_bps)
{
    int64_t bps = (int64_t)((double)(moved - *shown) * 8 / seconds);

    *shown = moved;
    *sum_bps += bps;
    return bps;
}

/* ["node1:e0", 95000000, 94999000]: null where no flow of the phase goes this way. */
static json_t *port_entry(struct phase_lane *lane, double seconds, int64_t sums_bps[2])
{
    struct port_progress *progress = &lane->progress;
    int64_t offered_bps = take_rate(atomic_load(&progress->offered_bytes), &lane->offered_shown,
                                    seconds, &sums_bps[0]);
    int64_t delivered_bps = take_rate(atomic_load(&progress->delivered_bytes),
                                      &lane->delivered_shown, seconds, &sums_bps[1]);

    return json_pack("[o, o, o]", report_rank(lane, lane->own->rank),
                     lane->send_count > 0 ? json_integer(offered_bps) : json_null(),
                     lane->receive_count > 0 ? json_integer(delivered_bps) : json_null());
}

static void send_ports(const struct phase_run *run, const void *context, json_t *ports)
{
    const int64_t *sums_bps = context;
    const struct record_row rows[] = {
        {"step", json_string(step_name(run, clock_now()))},
        {"offered_bps", json_integer(sums_bps[0])},
        {"delivered_bps", json_integer(sums_bps[1])},
        {"ports", ports},
        {NULL, NULL},
    };

    record_offer(run->trial->node->records, report_make(run, "progress", rows));
}

void report_progress(struct phase_run *run, int64_t *last_ns)
{
    int64_t now_ns = clock_now(), sums_bps[2] = {0, 0};
    double seconds = (double)(now_ns - *last_ns) / 1e9;
    json_t *ports = json_array();

    for (size_t i = 0; i < run->lane_count; i++)
        json_array_append_new(ports, port_entry(&run->lanes[i], seconds, sums_bps));
    report_split(run, ports, HEAD_BYTES + strlen(run->trial->node->name), send_ports, sums_bps);
    *last_ns = now_ns;
}
