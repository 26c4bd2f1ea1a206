/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase_template.h"

#include <string.h>

#define PROBES 3
#define PROBE_BYTES 64
#define ALONE_NS (500 * NS_PER_MS) /* a node computes alone for so long, to be compared with */
#define PROBE_FRAME_BYTES 1518

/* Whether partners can be reached is asked with nothing else on the way. */
static void set_latency_options(struct latency_options *options, const struct phase_run *run)
{
    const struct doc_latency *doc = run->trial->doc->latency;

    if (doc == NULL || phase_is_probe(run))
        return;
    *options = (struct latency_options){
        .probe_fps = doc->probe_fps != NULL ? *doc->probe_fps : -1,
        .stamps = doc->stamps,
    };
    /* A burst asks how many frames fit: probes would be among them. */
    if (doc->probe_fps == NULL && run->trial->doc->traffic == TRAFFIC_BURST)
        options->probe_fps = 0;
    /* A stream that is forwarded has no connection of its own for them, and its ends can't know. */
    if (run->trial->doc->pattern.forward && !transport_can(run->trial->transport, TRANSPORT_FRAMES))
        options->probe_fps = 0;
}

static void set_pingpong_options(struct pingpong_options *options, const struct doc_pingpong *doc)
{
    static const struct doc_pingpong none;

    doc = doc != NULL ? doc : &none;
    *options = (struct pingpong_options){
        .count = doc->count,
        .min_size = doc->min_size,
        .max_size = doc->max_size,
        .random = doc->random,
        .samples = doc->samples,
        .start_delay_ns = doc->compute > 0 ? ALONE_NS : 0,
        .timeout_ns = doc->timeout_ns,
    };
}

static void set_schedule_options(struct schedule_options *options, const struct doc_schedule *doc)
{
    static const struct doc_schedule none;

    doc = doc != NULL ? doc : &none;
    *options = (struct schedule_options){
        .count = doc->count,
        .batch = doc->batch != NULL ? *doc->batch : 1,
        .batch_warmup = doc->batch_warmup,
        .warmup = doc->warmup != NULL ? *doc->warmup : 1,
        .compute = doc->compute,
    };
}

static void set_burst_options(struct burst_options *options, const struct doc_burst *doc)
{
    if (doc != NULL)
        *options = (struct burst_options){
            .frames = doc->frames,
            .gap_ns = doc->gap_ns,
            .count = doc->count != NULL ? *doc->count : 1,
        };
}

/* Frames that ask whether messages can pass are chosen by their transport; an ordinary one stands
 * for them where loads and times are computed. */
static void set_probe_size(const struct phase_run *run, struct phase *phase)
{
    if (!transport_can(run->trial->transport, TRANSPORT_FRAMES))
        return;
    phase->sizes[0] = PROBE_FRAME_BYTES;
    phase->size_count = 1;
}

/* The transport's own options: the trial's, fitted to the phase. */
static void set_options(struct phase_run *run)
{
    const struct option_table *table = run->trial->transport->options;

    memcpy(run->options, run->trial->doc->options, table->size);
    run->template.options = run->options;
    if (table->fit != NULL)
        table->fit(run->options, &run->template);
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
        .seed = doc->seed + run->number,
        .traffic = phase_is_probe(run) ? TRAFFIC_PROBE : doc->traffic,
        .messages = doc->traffic == TRAFFIC_PINGPONG || doc->traffic == TRAFFIC_SCHEDULE,
        .transfer_bytes = doc->transfer_bytes,
        .probes = PROBES,
        .probe_timeout_ns = phase_timeout_ns(run),
        .size_count = doc->sizes_count,
    };
    if (phase_is_probe(run) && doc->connectivity_check_sizes_count > 0) {
        phase->size_count = doc->connectivity_check_sizes_count;
        memcpy(phase->sizes, doc->connectivity_check_sizes,
               phase->size_count * sizeof phase->sizes[0]);
    } else if (doc->sizes_count > 0)
        memcpy(phase->sizes, doc->sizes, doc->sizes_count * sizeof phase->sizes[0]);
    else /* a schedule's steps say how long messages are: this is what probes them */
        phase->sizes[phase->size_count++] = PROBE_BYTES;
    if (phase->messages && phase_is_probe(run))
        set_probe_size(run, phase);
    set_options(run);
    set_pingpong_options(&phase->pingpong, doc->pingpong);
    set_schedule_options(&phase->schedule, doc->schedule);
    set_burst_options(&phase->burst, doc->burst);
    if (doc->traffic == TRAFFIC_SCHEDULE)
        phase->pingpong.timeout_ns = doc->drain_timeout_ns;
    set_latency_options(&phase->latency, run);
}
