/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase_template.h"

#include <string.h>

#define PROBES 3
#define PROBE_BYTES 64
#define ALONE_NS (500 * NS_PER_MS) /* a node computes alone for so long, to be compared with */

/* Whether partners can be reached is asked with nothing else on the way. */
static void set_latency_options(struct phase_lane *lane)
{
    const struct doc_trial *trial = lane->run->trial->doc;
    struct latency_options *options = &lane->phase.latency;

    if (!trial->has_latency || phase_is_probe(lane->run))
        return;
    *options = trial->latency;
    /* A burst asks how many frames fit: probes would be among them. */
    if (options->probe_fps < 0 && trial->traffic == TRAFFIC_BURST)
        options->probe_fps = 0;
    /* A stream that is forwarded has no connection of its own for them, and its ends can't know. */
    if (trial->pattern.forward && !transport_can(lane_transport(lane), TRANSPORT_FRAMES))
        options->probe_fps = 0;
}

static void copy_sizes(struct phase *phase, const uint32_t *sizes, unsigned count)
{
    phase->size_count = count;
    memcpy(phase->sizes, sizes, count * sizeof *sizes);
}

static void set_sizes(struct phase_lane *lane)
{
    static const uint32_t probe = PROBE_BYTES;
    const struct doc_trial *trial = lane->run->trial->doc;
    const struct doc_part *part = lane->own->part->doc;
    bool probes = phase_is_probe(lane->run);

    if (probes && trial->connectivity_check_sizes_count > 0)
        copy_sizes(&lane->phase, trial->connectivity_check_sizes,
                   trial->connectivity_check_sizes_count);
    else if (part->sizes_count > 0)
        copy_sizes(&lane->phase, part->sizes, part->sizes_count);
    else if (trial->sizes_count > 0)
        copy_sizes(&lane->phase, trial->sizes, trial->sizes_count);
    else /* a schedule's steps say how long messages are: this is what probes them */
        copy_sizes(&lane->phase, &probe, 1);
}

/* The transport's own options: the part's, fitted to the phase. */
static void set_options(struct phase_lane *lane)
{
    const struct option_table *table = lane_transport(lane)->options;

    memcpy(lane->options, lane->own->part->doc->options, table->size);
    lane->phase.options = lane->options;
    if (table->fit != NULL)
        table->fit(lane->options, &lane->phase);
}

void phase_template_apply(struct phase_lane *lane)
{
    lane->phase = lane->run->template;
    set_sizes(lane);
    set_options(lane);
    set_latency_options(lane);
}

int64_t phase_timeout_ns(const struct phase_run *run)
{
    return 2 * run->trial->node->job->barrier_timeout_ms * NS_PER_MS;
}

void phase_template_fill(struct phase_run *run)
{
    const struct doc_trial *doc = run->trial->doc;
    struct phase *phase = &run->template;

    *phase = (struct phase){
        .trial = doc->id,
        .number = run->number,
        .seed = doc->pattern.seed + run->number,
        .traffic = phase_is_probe(run) ? TRAFFIC_PROBE : doc->traffic,
        .messages = doc->traffic == TRAFFIC_PINGPONG,
        .transfer_bytes = doc->transfer_bytes,
        .probes = PROBES,
        .probe_timeout_ns = phase_timeout_ns(run),
        .pingpong = doc->pingpong,
        .schedule = doc->schedule,
        .burst = doc->burst,
    };
    if (doc->compute > 0)
        phase->pingpong.start_delay_ns = ALONE_NS;
    if (doc->traffic == TRAFFIC_SCHEDULE)
        phase->pingpong.timeout_ns = doc->drain_timeout_ns;
}
