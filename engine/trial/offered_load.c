/* SPDX-License-Identifier: BSD-3-Clause */
#include "offered_load.h"

#include <errno.h>

#define PROBE_PERCENT 10
#define PROBE_FPS_MAX 1000.0
#define PROBE_SPREAD_S 0.15 /* a partner whose cores are busy may begin so late */

/* Bits on the line for one frame; for one message at least so many. */
static double bits_each(const struct load_line *line)
{
    return (line->mean_size + (line->frames ? FRAME_OVERHEAD_L1 : 0)) * 8.0;
}

int load_resolve(struct load *load, const struct doc_load *ask, const struct load_line *line,
                 struct err *err)
{
    double line_bps = (double)line->rate_bps, asked_bps;

    *load = (struct load){
        .rate_bps = (ask->percent > 0 ? line_bps * ask->percent / 100 : ask->bps) * line->part,
        .rate_fps = ask->fps * line->part,
        .unlimited = !line->frames && ask->percent * line->part >= 100,
        .part = line->part,
    };
    asked_bps = load->rate_fps > 0 ? load->rate_fps * bits_each(line) : load->rate_bps;
    if (ask->percent > 0 && line->rate_bps == 0 && !load->unlimited)
        return err_set(err, -EINVAL,
                       "port %s: a load in percent needs a line rate, which its driver does not "
                       "know: set line_rate (--set site.ports.e0.line_rate=10Gbit), or give the "
                       "load in bit/s or frames/s",
                       line->port);
    /* A shared port's other users must get through, the controller's connection among them. */
    if (line->shared && line->rate_bps == 0)
        return err_set(err, -EINVAL,
                       "port %s is shared, and its line rate is not known: set line_rate, so that "
                       "%d %% of it can be kept to",
                       line->port, LOAD_SHARED_PERCENT);
    if (line->shared && (load->unlimited || asked_bps > line_bps * LOAD_SHARED_PERCENT / 100))
        return err_set(err, -EINVAL,
                       "port %s is shared: a load of at most %d %% of its line rate is for it",
                       line->port, LOAD_SHARED_PERCENT);
    if (line->rate_bps > 0 && asked_bps > line_bps)
        return err_set(err, -EINVAL,
                       "port %s: a load of %.6g Mbit/s is above its line rate of %.6g Mbit/s",
                       line->port, asked_bps / 1e6, line_bps / 1e6);
    return 0;
}

void load_for_probe(struct load *load, const struct load_line *line, uint32_t probes)
{
    double fps = (double)line->rate_bps * PROBE_PERCENT / 100 / bits_each(line);

    if (line->rate_bps == 0 || fps > PROBE_FPS_MAX)
        fps = PROBE_FPS_MAX;
    if (probes > 0 && fps > probes / PROBE_SPREAD_S)
        fps = probes / PROBE_SPREAD_S;
    *load = (struct load){.rate_fps = fps};
}
