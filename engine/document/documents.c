/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 1000000
#define TIME_MAX_NS (30 * 86400 * NS_PER_S)
#define TIME(in, key, member) KEY_NUMBER(in, key, member, 0, TIME_MAX_NS, 0)
#define REPETITIONS_MAX 1000000
#define INTERVAL_MIN_NS (10 * NS_PER_MS)
#define PROBE_FPS_MAX 1000000 /* more probes would be a load */
#define RUN_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._"

static const struct option text_element = {.type = OPTION_STRING, .size = sizeof(char *)};
static const struct option u32_element = {
    .type = OPTION_NUMBER, .size = sizeof(uint32_t), .max = UINT32_MAX};
static const struct option size_element = {
    .type = OPTION_NUMBER, .size = sizeof(uint32_t), .min = 1, .max = UINT32_MAX};
static const struct option u64_element = {
    .type = OPTION_NUMBER, .size = sizeof(uint64_t), .max = INT64_MAX};
static const struct option bool_element = {.type = OPTION_BOOL, .size = sizeof(bool)};

/* --- job --- */

static const char *const worker_words[] = {
    [WORKER_AUTO] = "auto", [WORKER_SLEEP] = "sleep", [WORKER_POLL] = "poll", NULL};
static const char *const asked_clocks[] = {[CLOCK_AUTO] = "auto",
                                           [CLOCK_SHARED] = "",
                                           [CLOCK_PTP] = "ptp",
                                           [CLOCK_ESTIMATED] = "estimated",
                                           NULL};
static const struct option control_keys[] = {
    {KEY_STRING(doc_node, "netns", control_netns)},
    {KEY_STRING(doc_node, "address", control_address)},
    {.key = NULL},
};
static const struct option port_keys[] = {
    {KEY_STRING(doc_port, "name", conf.name), .needed = true},
    {KEY_STRING(doc_port, "network", conf.network), .needed = true},
    {KEY_STRING(doc_port, "netns", conf.netns)},
    {KEY_STRING(doc_port, "iface", conf.iface)},
    {KEY_STRING(doc_port, "pci", conf.pci)},
    {KEY_STRING(doc_port, "vdev", conf.vdev)},
    {KEY_STRING(doc_port, "driver", conf.driver)},
    {KEY_STRING(doc_port, "rdma", conf.rdma)},
    {KEY_STRING(doc_port, "mac", conf.mac)},
    {KEY_STRING(doc_port, "ipv4", conf.ipv4)},
    {KEY_STRING(doc_port, "ipv6", conf.ipv6)},
    {KEY_STRING(doc_port, "gateway", conf.gateway)},
    {KEY_STRING(doc_port, "tcp_address", conf.tcp_address)},
    {KEY_U64(doc_port, "line_rate_bps", conf.line_rate_bps)},
    {KEY_U32(doc_port, "queues", conf.queues)},
    {KEY_U32(doc_port, "queue_frames", conf.queue_frames)},
    {KEY_FLAG(doc_port, "shared", conf.shared)},
    {KEY_LIST(doc_port, "transports", transports, text_element, 1, DOC_TRANSPORTS_MAX),
     .needed = true},
    {.key = NULL},
};
static const struct option port_element = {KEY_ELEMENT(doc_port, port_keys)};
static const struct option node_keys[] = {
    {KEY_STRING(doc_node, "name", name), .needed = true},
    {.key = "control", .type = OPTION_MAPPING, .table = control_keys},
    {KEY_LIST(doc_node, "ports", ports, port_element, 0, 256)},
    {KEY_LIST(doc_node, "cores", cores, u32_element, 0, CORES_MAX)},
    {.key = NULL},
};
static const struct option node_element = {KEY_ELEMENT(doc_node, node_keys)};
static const struct option clock_keys[] = {
    {OPTION(OPTION_WORD, clock_conf, "mode", mode), .words = asked_clocks, .needed = true},
    {KEY_NUMBER(clock_conf, "error_ns", error_ns, 0, NS_PER_S, 0)},
    {.key = NULL},
};
static const struct option job_keys[] = {
    {OPTION(OPTION_NUMBER, doc_job, "protocol", protocol), .max = UINT32_MAX, .needed = true},
    {KEY_STRING(doc_job, "run", run), .needed = true},
    {KEY_FLAG(doc_job, "controlled", controlled)},
    {KEY_U32(doc_job, "heartbeat_timeout_ms", heartbeat_timeout_ms)},
    {KEY_NUMBER(doc_job, "barrier_timeout_ms", barrier_timeout_ms, 1, UINT32_MAX, 5000)},
    {KEY_WORD(doc_job, "worker", worker, worker_words)},
    {KEY_MAPPING(doc_job, "clock", clock, clock_keys)},
    {KEY_LIST(doc_job, "nodes", nodes, node_element, 1, PATTERN_RANKS_MAX), .needed = true},
    {.key = NULL},
};
static const struct option job_element = {KEY_ELEMENT(doc_job, job_keys)};

/* --- peers --- */

static const struct option peers_keys[] = {
    {KEY_LIST(doc_peers, "addresses", addresses, text_element, 1, PATTERN_RANKS_MAX),
     .needed = true},
    {KEY_LIST(doc_peers, "sealed_keys", sealed_keys, text_element, 0, PATTERN_RANKS_MAX)},
    {KEY_STRING(doc_peers, "key", key)},
    {.key = NULL},
};
static const struct option peers_element = {KEY_ELEMENT(doc_peers, peers_keys)};

/* --- plan and trial --- */

static const struct option group_keys[] = {
    {KEY_LIST_OF(pattern_ranks, "ranks", rank, count, u32_element, 0, PATTERN_RANKS_MAX),
     .needed = true},
    {.key = NULL},
};
static const struct option group_element = {KEY_ELEMENT(pattern_ranks, group_keys)};

/* The pattern's parameters, by their types (pattern.h). */
#define PATTERN_WORD(key, member, counter) KEY_STRING(pattern_request, key, member)
#define PATTERN_FLAG(key, member, counter) KEY_FLAG(pattern_request, key, member)
#define PATTERN_FLAG_OR_DEFAULT(key, member, counter)                                              \
    KEY_POINTER(pattern_request, key, member, bool_element)
#define PATTERN_NUMBER(key, member, counter)                                                       \
    KEY_NUMBER(pattern_request, key, member, 0,                                                    \
               KEY_BYTES(pattern_request, member) == 8 ? INT64_MAX : UINT32_MAX, 0)
#define PATTERN_NUMBERS(key, member, counter)                                                      \
    KEY_LIST_OF(pattern_request, key, member, counter, u32_element, 0, LIST_MAX)
#define PATTERN_GROUPS(key, member, counter)                                                       \
    KEY_LIST_OF(pattern_request, key, member, counter, group_element, 0, PATTERN_RANKS_MAX)
#define PATTERN_KEY(word, key, type, member, counter) {PATTERN_##type(key, member, counter)},

static const struct option pattern_keys[] = {
    {KEY_STRING(pattern_request, "name", name), .needed = true},
    {KEY_FLAG(pattern_request, "round_trip", round_trip)},
    PATTERN_PARAMS(PATTERN_KEY){.key = NULL},
};

static const struct option load_keys[] = {
    {KEY_REAL(doc_load, "percent", percent)},
    {KEY_REAL(doc_load, "bps", bps)},
    {KEY_REAL(doc_load, "fps", fps)},
    {.key = NULL},
};
static const struct option load_element = {KEY_ELEMENT(doc_load, load_keys)};

static const struct option part_keys[] = {
    {KEY_STRING(doc_part, "network", network), .needed = true},
    {KEY_LIST(doc_part, "ranks", ranks, text_element, 2, PATTERN_RANKS_MAX), .needed = true},
    {KEY_STRING(doc_part, "transport", transport)},
    {KEY_LIST(doc_part, "sizes", sizes, size_element, 1, TRANSPORT_SIZES_MAX)},
    {KEY_POINTER(doc_part, "load", load, load_element)},
    {.key = NULL},
};
static const struct option part_element = {KEY_ELEMENT(doc_part, part_keys)};

static const char *const traffic_words[] = {[TRAFFIC_STREAM] = "stream",
                                            [TRAFFIC_TRANSFER] = "transfer",
                                            [TRAFFIC_PROBE] = "",
                                            [TRAFFIC_PINGPONG] = "pingpong",
                                            [TRAFFIC_SCHEDULE] = "schedule",
                                            [TRAFFIC_BURST] = "burst",
                                            NULL};
static const struct option burst_keys[] = {
    {OPTION(OPTION_NUMBER, doc_trial, "frames", phase.burst.frames), .min = 1, .max = UINT32_MAX,
     .needed = true},
    {TIME(doc_trial, "gap_ns", phase.burst.gap_ns)},
    {KEY_NUMBER(doc_trial, "count", phase.burst.count, 0, UINT32_MAX, 1)},
    {.key = NULL},
};
static const struct option schedule_keys[] = {
    {KEY_U64(doc_trial, "count", phase.schedule.count)},
    {KEY_NUMBER(doc_trial, "batch", phase.schedule.batch, 1, REPETITIONS_MAX, 1)},
    {KEY_NUMBER(doc_trial, "warmup", phase.schedule.warmup, 0, UINT32_MAX, 1)},
    {KEY_FLAG(doc_trial, "compute", phase.schedule.compute)},
    {.key = NULL},
};
static const struct option latency_keys[] = {
    {OPTION(OPTION_REAL, doc_trial, "probe_fps", phase.latency.probe_fps), .max = PROBE_FPS_MAX,
     .initial = -1},
    {KEY_FLAG(doc_trial, "stamps", phase.latency.stamps)},
    {.key = NULL},
};
static const struct option trial_keys[] = {
    {OPTION(OPTION_NUMBER, doc_trial, "id", id), .max = UINT32_MAX, .needed = true},
    {KEY_U32(doc_trial, "repeat", repeat)},
    {KEY_STRING(doc_trial, "transport", transport), .needed = true},
    {KEY_LIST(doc_trial, "parts", parts, part_element, 1, 64), .needed = true},
    {OPTION(OPTION_MAPPING, doc_trial, "pattern", pattern), .table = pattern_keys, .needed = true},
    {KEY_U64(doc_trial, "seed", pattern.seed)},
    {KEY_LIST(doc_trial, "phases", phases, u32_element, 0, LIST_MAX)},
    {OPTION(OPTION_BOOL, doc_trial, "connectivity_check", probe), .initial = true},
    {KEY_LIST(doc_trial, "connectivity_check_sizes", connectivity_check_sizes, size_element, 1,
              TRANSPORT_SIZES_MAX)},
    {KEY_FLAG(doc_trial, "listen", listen)},
    {KEY_WORD(doc_trial, "traffic", phase.traffic, traffic_words)},
    {KEY_U64(doc_trial, "transfer_bytes", phase.transfer_bytes)},
    {KEY_LIST(doc_trial, "sizes", sizes, size_element, 1, TRANSPORT_SIZES_MAX)},
    {KEY_MAPPING(doc_trial, "load", load, load_keys)},
    {TIME(doc_trial, "warmup_ns", warmup_ns)},
    {TIME(doc_trial, "window_ns", window_ns)},
    {TIME(doc_trial, "cooldown_ns", cooldown_ns)},
    {TIME(doc_trial, "drain_timeout_ns", drain_timeout_ns)},
    {TIME(doc_trial, "drain_max_ns", drain_max_ns)},
    {KEY_U64(doc_trial, "flood_limit", flood_limit)},
    {TIME(doc_trial, "interval_ns", interval_ns)},
    {.key = "schedule", .type = OPTION_MAPPING, .table = schedule_keys},
    {.key = "burst", .type = OPTION_MAPPING, .table = burst_keys},
    {KEY_INSIDE(doc_trial, "latency", has_latency, latency_keys)},
    {.key = NULL},
};
#define TRIAL_KEYS (sizeof trial_keys / sizeof trial_keys[0])

static const struct option plan_keys[] = {
    {OPTION(OPTION_NUMBER, doc_plan, "ranks", pattern.n), .max = UINT32_MAX, .needed = true},
    {OPTION(OPTION_MAPPING, doc_plan, "pattern", pattern), .table = pattern_keys, .needed = true},
    {KEY_U64(doc_plan, "seed", pattern.seed)},
    {KEY_LIST(doc_plan, "phases", phases, u32_element, 0, LIST_MAX)},
    {KEY_FLAG(doc_plan, "totals_only", totals_only)},
    {.key = NULL},
};
static const struct option plan_element = {KEY_ELEMENT(doc_plan, plan_keys)};

/* Set the absent keys of a trial's parts to the trial's values. A part gets the options of its
 * transport; a trial whose transport is not in this build is rejected when the trial begins. */
static void complete_trial(struct doc_trial *trial, const struct transport *const *transports)
{
    if (!trial->has_latency)
        trial->phase.latency = (struct latency_options){0};
    for (unsigned p = 0; p < trial->parts_count; p++) {
        struct doc_part *part = &trial->parts[p];

        if (part->transport == NULL)
            part->transport = trial->transport;
        if (part->load == NULL)
            part->load = &trial->load;
        if (part->sizes_count == 0) {
            part->sizes = trial->sizes;
            part->sizes_count = trial->sizes_count;
        }
        for (size_t i = 0; transports[i] != NULL; i++)
            if (strcmp(transports[i]->name, part->transport) == 0)
                part->options = trial->options[i];
    }
}

/* --- rules beyond the tables of keys: those without which a phase could not run; what has a
 * meaning is checked by the command that makes the documents --- */

static int check_job(const struct doc_job *job, struct err *err)
{
    if (job->protocol != NODE_PROTOCOL)
        return err_set(
            err, -EINVAL,
            "job.protocol is %u, and this switchbench-node supports %u: use the same version "
            "everywhere",
            job->protocol, NODE_PROTOCOL);
    if (job->run[0] == '\0' || strlen(job->run) > 64 ||
        strspn(job->run, RUN_LETTERS) != strlen(job->run))
        return err_set(err, -EINVAL,
                       "job.run must be 1 to 64 letters, digits, '-', '.' or '_', not '%s'",
                       job->run);
    if (job->clock.error_ns > 0 && job->clock.mode != CLOCK_PTP)
        return err_set(err, -EINVAL, "job.clock: error_ns needs mode: ptp");
    return 0;
}

static int check_trial(const struct doc_trial *trial, struct err *err)
{
    const struct phase *phase = &trial->phase;
    bool schedules = phase->traffic == TRAFFIC_SCHEDULE;
    bool timed = phase_is_timed(phase); /* its length is known in advance */
    const struct {
        bool broken;
        const char *sentence;
    } rules[] = {
        {trial->sizes_count == 0 && !schedules, "sizes must not be empty"},
        {trial->interval_ns != 0 && trial->interval_ns < INTERVAL_MIN_NS,
         "interval_ns must be 10 ms to 30 days, or 0 for no intervals"},
        {timed && trial->window_ns == 0, "traffic without a count needs window_ns above 0"},
        {phase->traffic == TRAFFIC_TRANSFER && phase->transfer_bytes == 0,
         "traffic: transfer needs transfer_bytes above 0"},
        {phase->traffic == TRAFFIC_PINGPONG && trial->pattern.forward,
         "traffic: pingpong needs answers, which a forwarding chain does not send: remove forward"},
        {phase->traffic == TRAFFIC_BURST && phase->burst.frames == 0,
         "traffic: burst needs the key burst, with the frames per burst"},
    };
    const char *sentence = NULL;

    /* A schedule has no load: its steps send as fast as possible. */
    for (unsigned i = 0; i < trial->parts_count && !schedules; i++) {
        const struct doc_load *load = trial->parts[i].load;

        if ((load->percent > 0) + (load->bps > 0) + (load->fps > 0) != 1)
            sentence = "load needs exactly one of percent, bps and fps, above 0";
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && sentence == NULL; i++)
        sentence = rules[i].broken ? rules[i].sentence : NULL;
    return sentence != NULL ? err_set(err, -EINVAL, "trial %u: %s", trial->id, sentence) : 0;
}

/* --- a document --- */

static int complete(struct document *document, const struct transport *const *transports,
                    struct err *err)
{
    const void *const kinds[] = {
        [DOCUMENT_JOB] = document->job,        [DOCUMENT_PEERS] = document->peers,
        [DOCUMENT_TRIAL] = document->trial,    [DOCUMENT_PLAN] = document->plan,
        [DOCUMENT_BEAT] = document->heartbeat, [DOCUMENT_QUIT] = document->quit};

    unsigned given = 0;

    for (unsigned kind = DOCUMENT_JOB; kind < sizeof kinds / sizeof kinds[0]; kind++) {
        if (kinds[kind] == NULL)
            continue;
        document->kind = kind;
        given++;
    }
    if (given != 1)
        return err_set(
            err, -EINVAL,
            "a document must hold exactly one of the keys job, peers, trial, plan, heartbeat and "
            "quit");
    if (document->kind == DOCUMENT_JOB)
        return check_job(document->job, err);
    if (document->kind != DOCUMENT_TRIAL)
        return 0;
    complete_trial(document->trial, transports);
    return check_trial(document->trial, err);
}

int document_parse(struct document **document, const struct mapping_text *text,
                   const struct transport *const *transports, struct err *err)
{
    struct option trial[TRIAL_KEYS + DOC_TRANSPORTS_MAX];
    const struct option trial_element = {KEY_ELEMENT(doc_trial, trial)};
    const struct option keys[] = {
        {KEY_POINTER(document, "job", job, job_element)},
        {KEY_POINTER(document, "peers", peers, peers_element)},
        {KEY_POINTER(document, "trial", trial, trial_element)},
        {KEY_POINTER(document, "plan", plan, plan_element)},
        {KEY_POINTER(document, "heartbeat", heartbeat, u64_element)},
        {KEY_POINTER(document, "quit", quit, bool_element)},
        {.key = NULL},
    };
    size_t i = 0;
    int rc;

    *document = calloc(1, sizeof **document);
    if (*document == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (; transports[i] != NULL; i++) { /* the key of each transport holds its options */
        assert(i < DOC_TRANSPORTS_MAX && transports[i]->options->size <= OPTION_BYTES_MAX);
        trial[i] = (struct option){
            .key = transports[i]->name,
            .type = OPTION_MAPPING,
            .offset = (uint16_t)(offsetof(struct doc_trial, options) + i * OPTION_BYTES_MAX),
            .table = transports[i]->options->options,
        };
    }
    memcpy(&trial[i], trial_keys, sizeof trial_keys);
    rc = mapping_read(text, keys, *document, &(*document)->memory, err);
    if (rc == 0)
        rc = complete(*document, transports, err);
    if (rc < 0) {
        document_free(*document);
        *document = NULL;
    }
    return rc;
}

void document_free(struct document *document)
{
    if (document == NULL)
        return;
    mapping_free(&document->memory);
    free(document);
}
