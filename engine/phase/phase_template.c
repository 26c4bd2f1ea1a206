/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase_template.h"

#include <string.h>

#define PROBES 3
#define PROBE_BYTES 64
#define ALONE_NS (500 * NS_PER_MS) /* a node computes alone for so long, to be compared with */
#define CATCH_UP_FRAMES 8          /* of ... */
#define CATCH_UP_BYTES 1518

static void set_dpdk_options(struct dpdk_options *options, const struct doc_dpdk *doc)
{
    static const struct doc_dpdk none;

    doc = doc != NULL ? doc : &none;
    *options = (struct dpdk_options){
        .header = doc->header,
        .vlan = doc->vlan != NULL,
        .vlan_id = doc->vlan != NULL ? *doc->vlan : 0,
        .pcp = doc->pcp,
        .dscp = doc->dscp,
        .ttl = doc->ttl != NULL ? *doc->ttl : 64,
        .udp_sources = doc->udp_sources > 0 ? doc->udp_sources : 1,
        .burst = doc->burst > 0 ? doc->burst : 32,
        .catch_up = doc->catch_up > 0 ? doc->catch_up : CATCH_UP_FRAMES,
        .dither = doc->dither,
    };
}

/* catch_up is said in frames of 1,518 bytes, for a queue in the switch holds bytes: of smaller
 * frames as many more, of larger ones fewer, but CATCH_UP_FRAMES if so many are allowed. */
static uint16_t catch_up_frames(const struct phase *phase, uint16_t catch_up)
{
    uint16_t least = catch_up < CATCH_UP_FRAMES ? catch_up : CATCH_UP_FRAMES;
    double frames = catch_up * (CATCH_UP_BYTES + (double)FRAME_OVERHEAD_L1) /
                    (phase_mean_size(phase) + FRAME_OVERHEAD_L1);

    if (frames < least)
        return least;
    return frames < UINT16_MAX ? (uint16_t)frames : UINT16_MAX;
}

static void set_tcp_options(struct tcp_options *options, const struct doc_tcp *doc)
{
    static const struct doc_tcp none;

    doc = doc != NULL ? doc : &none;
    *options = (struct tcp_options){
        .streams = doc->streams > 0 ? doc->streams : 1,
        .send_buffer = doc->send_buffer,
        .receive_buffer = doc->receive_buffer,
        .nodelay = doc->nodelay == NULL || *doc->nodelay,
        .zero_copy = doc->zero_copy,
    };
    if (doc->congestion != NULL)
        strncpy(options->congestion, doc->congestion, sizeof options->congestion - 1);
}

static void set_udp_options(struct udp_options *options, const struct doc_udp *doc)
{
    static const struct doc_udp none;

    doc = doc != NULL ? doc : &none;
    *options = (struct udp_options){
        .offload = doc->offload == NULL ? UDP_OFFLOAD_AUTO
                   : *doc->offload      ? UDP_OFFLOAD_ON
                                        : UDP_OFFLOAD_OFF,
        .receive_buffer = doc->receive_buffer,
        .burst = doc->burst > 0 ? doc->burst : 32,
        .catch_up = doc->catch_up > 0 ? doc->catch_up : CATCH_UP_FRAMES,
        .dither = doc->dither,
    };
}

static void set_verbs_options(struct verbs_options *options, const struct doc_verbs *doc)
{
    static const struct doc_verbs none;

    doc = doc != NULL ? doc : &none;
    *options = (struct verbs_options){
        .service = doc->service,
        .operation = doc->operation,
        .immediate = doc->immediate == NULL || *doc->immediate,
        .depth = doc->depth > 0 ? doc->depth : 128,
        .queue_pairs = doc->queue_pairs > 0 ? doc->queue_pairs : 1,
        .inline_bytes = doc->inline_bytes != NULL ? (int32_t)*doc->inline_bytes : VERBS_AUTOMATIC,
        .signal_every = doc->signal_every,
        .mtu = doc->mtu,
        .gid_index = doc->gid_index != NULL ? *doc->gid_index : VERBS_AUTOMATIC,
        .service_level = doc->service_level,
        .traffic_class = doc->traffic_class,
        .pkey_index = doc->pkey_index,
        .retry = doc->retry != NULL ? *doc->retry : 6,
        .rnr_retry = doc->rnr_retry != NULL ? *doc->rnr_retry : 6,
        .timeout = doc->timeout > 0 ? doc->timeout : 14,
        .completion = doc->completion,
        .connect = doc->connect,
        .reuse = doc->reuse != NULL ? *doc->reuse : 64,
    };
}

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
    /* A stream that is forwarded has no connection of its own for them, and its ends can't know. */
    if (run->trial->doc->pattern.forward &&
        strcmp(run->trial->transport->size_unit, "message") == 0)
        options->probe_fps = 0;
}

static void set_pingpong_options(struct pingpong_options *options, const struct doc_pingpong *doc)
{
    static const struct doc_pingpong none;

    doc = doc != NULL ? doc : &none;
    *options = (struct pingpong_options){
        .count = doc->count,
        .size_least = doc->size_least,
        .size_most = doc->size_most,
        .random = doc->random,
        .samples = doc->samples,
        .quiet_ns = doc->compute > 0 ? ALONE_NS : 0,
        .patience_ns = doc->patience_ns,
    };
}

static void set_schedule_options(struct schedule_options *options, const struct doc_schedule *doc)
{
    static const struct doc_schedule none;

    doc = doc != NULL ? doc : &none;
    *options = (struct schedule_options){
        .count = doc->count,
        .batch = doc->batch != NULL ? *doc->batch : 1,
        .lead = doc->lead,
        .warmup = doc->warmup != NULL ? *doc->warmup : 1,
        .compute = doc->compute,
    };
}

/* Frames that ask whether messages can pass are chosen by their transport; an ordinary one stands
 * for them where loads and times are computed. */
static void set_probe_size(const struct phase_run *run, struct phase *phase)
{
    if (strcmp(run->trial->transport->size_unit, "frame") != 0)
        return;
    phase->sizes[0] = CATCH_UP_BYTES;
    phase->size_count = 1;
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
        .probe_patience_ns = phase_timeout_ns(run),
        .size_count = doc->sizes_count,
    };
    if (phase_is_probe(run) && doc->probe_sizes_count > 0) {
        phase->size_count = doc->probe_sizes_count;
        memcpy(phase->sizes, doc->probe_sizes, phase->size_count * sizeof phase->sizes[0]);
    } else if (doc->sizes_count > 0)
        memcpy(phase->sizes, doc->sizes, doc->sizes_count * sizeof phase->sizes[0]);
    else /* a schedule's steps say how long messages are: this is what probes them */
        phase->sizes[phase->size_count++] = PROBE_BYTES;
    if (phase->messages && phase_is_probe(run))
        set_probe_size(run, phase);
    set_dpdk_options(&phase->dpdk, doc->dpdk);
    if (!phase->messages)
        phase->dpdk.catch_up = catch_up_frames(phase, phase->dpdk.catch_up);
    set_tcp_options(&phase->tcp, doc->tcp);
    set_udp_options(&phase->udp, doc->udp);
    phase->udp.catch_up = catch_up_frames(phase, phase->udp.catch_up);
    set_verbs_options(&phase->verbs, doc->verbs);
    set_pingpong_options(&phase->pingpong, doc->pingpong);
    set_schedule_options(&phase->schedule, doc->schedule);
    if (doc->traffic == TRAFFIC_SCHEDULE)
        phase->pingpong.patience_ns = doc->drain_silence_ns;
    set_latency_options(&phase->latency, run);
}
