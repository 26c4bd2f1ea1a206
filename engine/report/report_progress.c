/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `progress`: the rates of the node and each of its ports: since the record before, and in the
 * window the mean since its first record, so that they come to what the table says. A record holds
 * as many ports as there is room for; all say the node's sums.
 */
#include "clock.h"
#include "report.h"
#include "report_record.h"

#include <string.h>

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

static int64_t rate_bps(uint64_t bytes, uint64_t before, int64_t span_ns)
{
    return (int64_t)((double)(bytes - before) * 8e9 / (double)span_ns);
}

/* ["node1:e0", 92600000, 92599000, 94999000]: payload offered and delivered, and what was delivered
 * as the line carries it; null where no flow of the phase goes this way. Workers come to tell at
 * their own times: the span is from one to the next of these. */
static json_t *port_entry(struct phase_lane *lane, bool in_window, int64_t last_ns,
                          int64_t sums_bps[2])
{
    struct port_progress *progress = &lane->progress;
    struct shown_progress *shown = &lane->shown;
    struct shown_progress now = {
        .told_ns = atomic_load(&progress->told_ns),
        .offered_bytes = atomic_load(&progress->offered_bytes),
        .delivered_bytes = atomic_load(&progress->delivered_bytes),
        .line_bytes = atomic_load(&progress->line_bytes),
        .in_window = in_window,
    };
    int64_t span_ns = now.told_ns - (shown->told_ns > 0 ? shown->told_ns : last_ns);
    int64_t offered_bps, delivered_bps, line_bps;

    if (span_ns <= 0) /* no worker has come to tell meanwhile */
        span_ns = clock_now() - last_ns;
    offered_bps = rate_bps(now.offered_bytes, shown->offered_bytes, span_ns);
    delivered_bps = rate_bps(now.delivered_bytes, shown->delivered_bytes, span_ns);
    line_bps = rate_bps(now.line_bytes, shown->line_bytes, span_ns);
    if (!in_window || !shown->in_window)
        *shown = now;
    sums_bps[0] += offered_bps;
    sums_bps[1] += delivered_bps;
    return json_pack("[o, o, o, o]", report_rank(lane, lane->own->rank),
                     lane->send_count > 0 ? json_integer(offered_bps) : json_null(),
                     lane->receive_count > 0 ? json_integer(delivered_bps) : json_null(),
                     lane->receive_count > 0 ? json_integer(line_bps) : json_null());
}

static void send_ports(const struct phase_run *run, const int64_t sums_bps[2], json_t *ports)
{
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
    bool in_window = strcmp(step_name(run, now_ns), "window") == 0;
    json_t *ports = json_array();

    for (size_t i = 0; i < run->lane_count; i++)
        json_array_append_new(ports, port_entry(&run->lanes[i], in_window, *last_ns, sums_bps));
    send_ports(run, sums_bps, ports);
    *last_ns = now_ns;
}
