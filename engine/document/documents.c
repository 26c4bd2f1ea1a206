/* SPDX-License-Identifier: BSD-3-Clause */
#include "documents.h"

#include "clock.h"
#include "schema_error.h"

#include <assert.h>
#include <cyaml/cyaml.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define POINTER CYAML_FLAG_POINTER

#define STRING(key, flags, type, member)                                                           \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | (flags), struct type, member, 0, 4096)
#define LIST_MAX 1000000
#define BATCH_MAX 1000000u
#define INTERIM_LEAST_NS (10 * NS_PER_MS)
#define TIME_MAX_NS (30 * 86400 * NS_PER_S)
#define PROBE_FPS_MAX 1e6 /* beyond that they are a load */

static const cyaml_schema_value_t text_entry = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 4096)};
static const cyaml_schema_value_t u32_entry = {CYAML_VALUE_UINT(CYAML_FLAG_DEFAULT, uint32_t)};

static const cyaml_strval_t worker_words[] = {
    {"auto", WORKER_AUTO}, {"sleep", WORKER_SLEEP}, {"poll", WORKER_POLL}};
static const cyaml_strval_t header_words[] = {
    {"l2", HEADER_L2}, {"ipv4-udp", HEADER_IPV4_UDP}, {"ipv6-udp", HEADER_IPV6_UDP}};
static const cyaml_strval_t traffic_words[] = {{"stream", TRAFFIC_STREAM},
                                               {"transfer", TRAFFIC_TRANSFER},
                                               {"pingpong", TRAFFIC_PINGPONG},
                                               {"schedule", TRAFFIC_SCHEDULE}};
static const cyaml_strval_t partner_words[] = {{"fixed", false}, {"random", true}};
static const cyaml_strval_t service_words[] = {
    {"rc", VERBS_RC}, {"uc", VERBS_UC}, {"ud", VERBS_UD}};
static const cyaml_strval_t operation_words[] = {
    {"send", VERBS_SEND}, {"write", VERBS_WRITE}, {"read", VERBS_READ}};
static const cyaml_strval_t completion_words[] = {{"auto", VERBS_COMPLETION_AUTO},
                                                  {"poll", VERBS_COMPLETION_POLL},
                                                  {"event", VERBS_COMPLETION_EVENT}};
static const cyaml_strval_t connect_words[] = {{"exchange", VERBS_CONNECT_EXCHANGE},
                                               {"cm", VERBS_CONNECT_CM}};
static const cyaml_strval_t sync_words[] = {{"barrier", false}, {"none", true}};

static const cyaml_schema_field_t control_fields[] = {
    STRING("netns", OPTIONAL, doc_control, netns),
    STRING("address", OPTIONAL, doc_control, address),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t port_fields[] = {
    STRING("name", 0, doc_port, conf.name),
    STRING("network", 0, doc_port, conf.network),
    STRING("netns", OPTIONAL, doc_port, conf.netns),
    STRING("iface", OPTIONAL, doc_port, conf.iface),
    STRING("pci", OPTIONAL, doc_port, conf.pci),
    STRING("vdev", OPTIONAL, doc_port, conf.vdev),
    STRING("driver", OPTIONAL, doc_port, conf.driver),
    STRING("rdma", OPTIONAL, doc_port, conf.rdma),
    STRING("mac", OPTIONAL, doc_port, conf.mac),
    STRING("ipv4", OPTIONAL, doc_port, conf.ipv4),
    STRING("ipv6", OPTIONAL, doc_port, conf.ipv6),
    STRING("gateway", OPTIONAL, doc_port, conf.gateway),
    STRING("tcp_address", OPTIONAL, doc_port, conf.tcp_address),
    CYAML_FIELD_UINT("line_rate_bps", OPTIONAL, struct doc_port, conf.line_rate_bps),
    CYAML_FIELD_UINT("queues", OPTIONAL, struct doc_port, conf.queues),
    CYAML_FIELD_UINT("queue_frames", OPTIONAL, struct doc_port, conf.queue_frames),
    CYAML_FIELD_BOOL("shared", OPTIONAL, struct doc_port, conf.shared),
    CYAML_FIELD_SEQUENCE("transports", POINTER | OPTIONAL, struct doc_port, transports, &text_entry,
                         0, 8),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t port_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_port, port_fields)};

static const cyaml_schema_field_t node_fields[] = {
    STRING("name", 0, doc_node, name),
    CYAML_FIELD_MAPPING("control", OPTIONAL, struct doc_node, control, control_fields),
    CYAML_FIELD_SEQUENCE("ports", POINTER | OPTIONAL, struct doc_node, ports, &port_entry, 0, 256),
    CYAML_FIELD_SEQUENCE("cores", POINTER | OPTIONAL, struct doc_node, cores, &u32_entry, 0,
                         CORES_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t node_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_node, node_fields)};

static const cyaml_strval_t restore_words[] = {{"always", false}, {"never", true}};

static const cyaml_schema_field_t bind_fields[] = {
    STRING("driver", 0, doc_bind, driver),
    STRING("journal", OPTIONAL, doc_bind, journal),
    CYAML_FIELD_ENUM("restore", OPTIONAL, struct doc_bind, keep, restore_words,
                     CYAML_ARRAY_LEN(restore_words)),
    CYAML_FIELD_UINT("hugepages", OPTIONAL, struct doc_bind, hugepages),
    CYAML_FIELD_END,
};

static const cyaml_strval_t clock_words[] = {{"auto", CLOCK_AUTO},
                                             {"shared", CLOCK_SHARED},
                                             {"ptp", CLOCK_PTP},
                                             {"estimated", CLOCK_ESTIMATED}};
static_assert(CYAML_ARRAY_LEN(clock_words) == CLOCK_MODES, "each has a word");

static const cyaml_schema_field_t clock_fields[] = {
    CYAML_FIELD_ENUM("mode", CYAML_FLAG_STRICT, struct clock_conf, mode, clock_words,
                     CYAML_ARRAY_LEN(clock_words)),
    CYAML_FIELD_INT("asymmetry_ns", OPTIONAL, struct clock_conf, asymmetry_ns),
    CYAML_FIELD_INT("error_ns", OPTIONAL, struct clock_conf, error_ns),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t job_fields[] = {
    CYAML_FIELD_UINT("protocol", CYAML_FLAG_DEFAULT, struct doc_job, protocol),
    STRING("run", 0, doc_job, run),
    CYAML_FIELD_BOOL("controlled", OPTIONAL, struct doc_job, controlled),
    CYAML_FIELD_UINT("deadman_ms", OPTIONAL, struct doc_job, deadman_ms),
    CYAML_FIELD_UINT("barrier_timeout_ms", OPTIONAL, struct doc_job, barrier_timeout_ms),
    CYAML_FIELD_ENUM("worker", OPTIONAL, struct doc_job, worker, worker_words,
                     CYAML_ARRAY_LEN(worker_words)),
    STRING("log", OPTIONAL, doc_job, log),
    CYAML_FIELD_MAPPING("clock", OPTIONAL, struct doc_job, clock, clock_fields),
    CYAML_FIELD_MAPPING_PTR("bind", POINTER | OPTIONAL, struct doc_job, bind, bind_fields),
    CYAML_FIELD_SEQUENCE("nodes", POINTER, struct doc_job, nodes, &node_entry, 1,
                         PATTERN_RANKS_MAX),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t peers_fields[] = {
    CYAML_FIELD_SEQUENCE("addresses", POINTER, struct doc_peers, addresses, &text_entry, 1,
                         PATTERN_RANKS_MAX),
    CYAML_FIELD_SEQUENCE("sealed_keys", POINTER | OPTIONAL, struct doc_peers, sealed_keys,
                         &text_entry, 0, PATTERN_RANKS_MAX),
    STRING("key", OPTIONAL, doc_peers, key),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t group_fields[] = {
    CYAML_FIELD_SEQUENCE("ranks", POINTER, struct doc_group, rank, &u32_entry, 0,
                         PATTERN_RANKS_MAX),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t group_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_group, group_fields)};

static const cyaml_schema_field_t pattern_fields[] = {
    STRING("name", 0, doc_pattern, name),
    STRING("order", OPTIONAL, doc_pattern, order),
    STRING("partners", OPTIONAL, doc_pattern, partners),
    STRING("directions", OPTIONAL, doc_pattern, directions),
    STRING("draw", OPTIONAL, doc_pattern, draw),
    CYAML_FIELD_BOOL("forward", OPTIONAL, struct doc_pattern, forward),
    CYAML_FIELD_UINT("shift", OPTIONAL, struct doc_pattern, shift),
    CYAML_FIELD_UINT("count", OPTIONAL, struct doc_pattern, count),
    CYAML_FIELD_UINT("degree", OPTIONAL, struct doc_pattern, degree),
    CYAML_FIELD_BOOL_PTR("natural", POINTER | OPTIONAL, struct doc_pattern, natural),
    CYAML_FIELD_BOOL("there_and_back", OPTIONAL, struct doc_pattern, there_and_back),
    CYAML_FIELD_BOOL("local", OPTIONAL, struct doc_pattern, local),
    CYAML_FIELD_UINT("bytes", OPTIONAL, struct doc_pattern, bytes),
    STRING("algorithm", OPTIONAL, doc_pattern, algorithm),
    CYAML_FIELD_UINT("skew", OPTIONAL, struct doc_pattern, skew),
    STRING("class", OPTIONAL, doc_pattern, class),
    CYAML_FIELD_UINT("matrix", OPTIONAL, struct doc_pattern, matrix),
    CYAML_FIELD_UINT("block", OPTIONAL, struct doc_pattern, block),
    CYAML_FIELD_UINT("dimensions", OPTIONAL, struct doc_pattern, dimensions),
    STRING("method", OPTIONAL, doc_pattern, method),
    CYAML_FIELD_SEQUENCE("list", POINTER | OPTIONAL, struct doc_pattern, list, &u32_entry, 0,
                         LIST_MAX),
    CYAML_FIELD_SEQUENCE("groups", POINTER | OPTIONAL, struct doc_pattern, groups, &group_entry, 0,
                         PATTERN_RANKS_MAX),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t part_fields[] = {
    STRING("network", 0, doc_part, network),
    CYAML_FIELD_SEQUENCE("ranks", POINTER, struct doc_part, ranks, &text_entry, 2,
                         PATTERN_RANKS_MAX),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t part_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_part, part_fields)};

static const cyaml_schema_field_t load_fields[] = {
    CYAML_FIELD_FLOAT("percent", OPTIONAL, struct doc_load, percent),
    CYAML_FIELD_FLOAT("bps", OPTIONAL, struct doc_load, bps),
    CYAML_FIELD_FLOAT("fps", OPTIONAL, struct doc_load, fps),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t pingpong_fields[] = {
    CYAML_FIELD_INT("patience_ns", OPTIONAL, struct doc_pingpong, patience_ns),
    CYAML_FIELD_UINT("count", OPTIONAL, struct doc_pingpong, count),
    CYAML_FIELD_UINT("size_least", OPTIONAL, struct doc_pingpong, size_least),
    CYAML_FIELD_UINT("size_most", OPTIONAL, struct doc_pingpong, size_most),
    CYAML_FIELD_ENUM("partners", OPTIONAL, struct doc_pingpong, random, partner_words,
                     CYAML_ARRAY_LEN(partner_words)),
    CYAML_FIELD_BOOL("samples", OPTIONAL, struct doc_pingpong, samples),
    CYAML_FIELD_FLOAT("compute", OPTIONAL, struct doc_pingpong, compute),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t schedule_fields[] = {
    CYAML_FIELD_UINT("count", OPTIONAL, struct doc_schedule, count),
    CYAML_FIELD_UINT_PTR("batch", POINTER | OPTIONAL, struct doc_schedule, batch),
    CYAML_FIELD_UINT("lead", OPTIONAL, struct doc_schedule, lead),
    CYAML_FIELD_UINT_PTR("warmup", POINTER | OPTIONAL, struct doc_schedule, warmup),
    CYAML_FIELD_BOOL("compute", OPTIONAL, struct doc_schedule, compute),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t latency_fields[] = {
    CYAML_FIELD_FLOAT_PTR("probe_fps", POINTER | OPTIONAL, struct doc_latency, probe_fps),
    CYAML_FIELD_BOOL("stamps", OPTIONAL, struct doc_latency, stamps),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t dpdk_fields[] = {
    CYAML_FIELD_ENUM("header", OPTIONAL, struct doc_dpdk, header, header_words,
                     CYAML_ARRAY_LEN(header_words)),
    CYAML_FIELD_UINT_PTR("vlan", POINTER | OPTIONAL, struct doc_dpdk, vlan),
    CYAML_FIELD_UINT("pcp", OPTIONAL, struct doc_dpdk, pcp),
    CYAML_FIELD_UINT("dscp", OPTIONAL, struct doc_dpdk, dscp),
    CYAML_FIELD_UINT_PTR("ttl", POINTER | OPTIONAL, struct doc_dpdk, ttl),
    CYAML_FIELD_UINT("udp_sources", OPTIONAL, struct doc_dpdk, udp_sources),
    CYAML_FIELD_UINT("burst", OPTIONAL, struct doc_dpdk, burst),
    CYAML_FIELD_UINT("catch_up", OPTIONAL, struct doc_dpdk, catch_up),
    CYAML_FIELD_FLOAT("dither", OPTIONAL, struct doc_dpdk, dither),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t tcp_fields[] = {
    CYAML_FIELD_UINT("streams", OPTIONAL, struct doc_tcp, streams),
    CYAML_FIELD_UINT("send_buffer", OPTIONAL, struct doc_tcp, send_buffer),
    CYAML_FIELD_UINT("receive_buffer", OPTIONAL, struct doc_tcp, receive_buffer),
    STRING("congestion", OPTIONAL, doc_tcp, congestion),
    CYAML_FIELD_BOOL_PTR("nodelay", POINTER | OPTIONAL, struct doc_tcp, nodelay),
    CYAML_FIELD_BOOL("zero_copy", OPTIONAL, struct doc_tcp, zero_copy),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t udp_fields[] = {
    CYAML_FIELD_BOOL_PTR("offload", POINTER | OPTIONAL, struct doc_udp, offload),
    CYAML_FIELD_UINT("receive_buffer", OPTIONAL, struct doc_udp, receive_buffer),
    CYAML_FIELD_UINT("burst", OPTIONAL, struct doc_udp, burst),
    CYAML_FIELD_UINT("catch_up", OPTIONAL, struct doc_udp, catch_up),
    CYAML_FIELD_FLOAT("dither", OPTIONAL, struct doc_udp, dither),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t verbs_fields[] = {
    CYAML_FIELD_ENUM("service", OPTIONAL, struct doc_verbs, service, service_words,
                     CYAML_ARRAY_LEN(service_words)),
    CYAML_FIELD_ENUM("operation", OPTIONAL, struct doc_verbs, operation, operation_words,
                     CYAML_ARRAY_LEN(operation_words)),
    CYAML_FIELD_BOOL_PTR("immediate", POINTER | OPTIONAL, struct doc_verbs, immediate),
    CYAML_FIELD_UINT("depth", OPTIONAL, struct doc_verbs, depth),
    CYAML_FIELD_UINT("queue_pairs", OPTIONAL, struct doc_verbs, queue_pairs),
    CYAML_FIELD_UINT_PTR("inline", POINTER | OPTIONAL, struct doc_verbs, inline_bytes),
    CYAML_FIELD_UINT("signal_every", OPTIONAL, struct doc_verbs, signal_every),
    CYAML_FIELD_UINT("mtu", OPTIONAL, struct doc_verbs, mtu),
    CYAML_FIELD_UINT_PTR("gid_index", POINTER | OPTIONAL, struct doc_verbs, gid_index),
    CYAML_FIELD_UINT("service_level", OPTIONAL, struct doc_verbs, service_level),
    CYAML_FIELD_UINT("traffic_class", OPTIONAL, struct doc_verbs, traffic_class),
    CYAML_FIELD_UINT("pkey_index", OPTIONAL, struct doc_verbs, pkey_index),
    CYAML_FIELD_UINT_PTR("retry", POINTER | OPTIONAL, struct doc_verbs, retry),
    CYAML_FIELD_UINT_PTR("rnr_retry", POINTER | OPTIONAL, struct doc_verbs, rnr_retry),
    CYAML_FIELD_UINT("timeout", OPTIONAL, struct doc_verbs, timeout),
    CYAML_FIELD_ENUM("completion", OPTIONAL, struct doc_verbs, completion, completion_words,
                     CYAML_ARRAY_LEN(completion_words)),
    CYAML_FIELD_ENUM("connect", OPTIONAL, struct doc_verbs, connect, connect_words,
                     CYAML_ARRAY_LEN(connect_words)),
    CYAML_FIELD_UINT_PTR("reuse", POINTER | OPTIONAL, struct doc_verbs, reuse),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t trial_fields[] = {
    CYAML_FIELD_UINT("id", CYAML_FLAG_DEFAULT, struct doc_trial, id),
    CYAML_FIELD_UINT("repeat", OPTIONAL, struct doc_trial, repeat),
    STRING("transport", 0, doc_trial, transport),
    CYAML_FIELD_SEQUENCE("parts", POINTER, struct doc_trial, parts, &part_entry, 1, 64),
    CYAML_FIELD_MAPPING("pattern", CYAML_FLAG_DEFAULT, struct doc_trial, pattern, pattern_fields),
    CYAML_FIELD_UINT("seed", OPTIONAL, struct doc_trial, seed),
    CYAML_FIELD_SEQUENCE("phases", POINTER | OPTIONAL, struct doc_trial, phases, &u32_entry, 0,
                         LIST_MAX),
    CYAML_FIELD_BOOL_PTR("probe", POINTER | OPTIONAL, struct doc_trial, probe),
    CYAML_FIELD_SEQUENCE("probe_sizes", POINTER | OPTIONAL, struct doc_trial, probe_sizes,
                         &u32_entry, 1, TRANSPORT_SIZES_MAX),
    CYAML_FIELD_ENUM("sync", OPTIONAL, struct doc_trial, by_clock, sync_words,
                     CYAML_ARRAY_LEN(sync_words)),
    CYAML_FIELD_ENUM("traffic", OPTIONAL, struct doc_trial, traffic, traffic_words,
                     CYAML_ARRAY_LEN(traffic_words)),
    CYAML_FIELD_UINT("transfer_bytes", OPTIONAL, struct doc_trial, transfer_bytes),
    CYAML_FIELD_SEQUENCE("sizes", POINTER | OPTIONAL, struct doc_trial, sizes, &u32_entry, 1,
                         TRANSPORT_SIZES_MAX),
    CYAML_FIELD_MAPPING("load", OPTIONAL, struct doc_trial, load, load_fields),
    CYAML_FIELD_INT("warmup_ns", OPTIONAL, struct doc_trial, warmup_ns),
    CYAML_FIELD_INT("window_ns", OPTIONAL, struct doc_trial, window_ns),
    CYAML_FIELD_INT("cooldown_ns", OPTIONAL, struct doc_trial, cooldown_ns),
    CYAML_FIELD_INT("drain_silence_ns", OPTIONAL, struct doc_trial, drain_silence_ns),
    CYAML_FIELD_INT("drain_max_ns", OPTIONAL, struct doc_trial, drain_max_ns),
    CYAML_FIELD_UINT("flood_limit", OPTIONAL, struct doc_trial, flood_limit),
    CYAML_FIELD_INT("interim_ns", OPTIONAL, struct doc_trial, interim_ns),
    CYAML_FIELD_MAPPING_PTR("pingpong", POINTER | OPTIONAL, struct doc_trial, pingpong,
                            pingpong_fields),
    CYAML_FIELD_MAPPING_PTR("schedule", POINTER | OPTIONAL, struct doc_trial, schedule,
                            schedule_fields),
    CYAML_FIELD_MAPPING_PTR("latency", POINTER | OPTIONAL, struct doc_trial, latency,
                            latency_fields),
    CYAML_FIELD_MAPPING_PTR("dpdk", POINTER | OPTIONAL, struct doc_trial, dpdk, dpdk_fields),
    CYAML_FIELD_MAPPING_PTR("tcp", POINTER | OPTIONAL, struct doc_trial, tcp, tcp_fields),
    CYAML_FIELD_MAPPING_PTR("udp", POINTER | OPTIONAL, struct doc_trial, udp, udp_fields),
    CYAML_FIELD_MAPPING_PTR("verbs", POINTER | OPTIONAL, struct doc_trial, verbs, verbs_fields),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t plan_fields[] = {
    CYAML_FIELD_UINT("ranks", CYAML_FLAG_DEFAULT, struct doc_plan, ranks),
    CYAML_FIELD_MAPPING("pattern", CYAML_FLAG_DEFAULT, struct doc_plan, pattern, pattern_fields),
    CYAML_FIELD_UINT("seed", OPTIONAL, struct doc_plan, seed),
    CYAML_FIELD_SEQUENCE("phases", POINTER | OPTIONAL, struct doc_plan, phases, &u32_entry, 0,
                         LIST_MAX),
    CYAML_FIELD_BOOL_PTR("headline", POINTER | OPTIONAL, struct doc_plan, headline),
    CYAML_FIELD_BOOL_PTR("packed", POINTER | OPTIONAL, struct doc_plan, packed),
    CYAML_FIELD_BOOL_PTR("ops", POINTER | OPTIONAL, struct doc_plan, ops),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t document_fields[] = {
    CYAML_FIELD_MAPPING_PTR("job", POINTER | OPTIONAL, struct document, job, job_fields),
    CYAML_FIELD_MAPPING_PTR("peers", POINTER | OPTIONAL, struct document, peers, peers_fields),
    CYAML_FIELD_MAPPING_PTR("trial", POINTER | OPTIONAL, struct document, trial, trial_fields),
    CYAML_FIELD_MAPPING_PTR("plan", POINTER | OPTIONAL, struct document, plan, plan_fields),
    CYAML_FIELD_UINT_PTR("beat", POINTER | OPTIONAL, struct document, beat),
    CYAML_FIELD_BOOL_PTR("quit", POINTER | OPTIONAL, struct document, quit),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t document_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct document, document_fields)};

enum document_kind document_kind(const struct document *document)
{
    if (document->job != NULL)
        return DOCUMENT_JOB;
    if (document->peers != NULL)
        return DOCUMENT_PEERS;
    if (document->trial != NULL)
        return DOCUMENT_TRIAL;
    if (document->plan != NULL)
        return DOCUMENT_PLAN;
    if (document->beat != NULL)
        return DOCUMENT_BEAT;
    return document->quit != NULL ? DOCUMENT_QUIT : DOCUMENT_NONE;
}

/* What is stated belongs to one way of knowing the clocks, and is not more than a second. */
static int check_clock(const struct clock_conf *clock, struct err *err)
{
    if (clock->asymmetry_ns < 0 || clock->asymmetry_ns > NS_PER_S || clock->error_ns < 0 ||
        clock->error_ns > NS_PER_S)
        return err_set(err, -EINVAL, "job.clock: asymmetry_ns and error_ns are 0 to 1 s");
    if ((clock->asymmetry_ns > 0 && clock->mode != CLOCK_ESTIMATED) ||
        (clock->error_ns > 0 && clock->mode != CLOCK_PTP))
        return err_set(err, -EINVAL,
                       "job.clock: asymmetry_ns goes with estimated, error_ns with ptp");
    return 0;
}

static int check_job(const struct doc_job *job, struct err *err)
{
    if (job->protocol != NODE_PROTOCOL)
        return err_set(err, -EINVAL,
                       "job.protocol is %u, this switchbench-node speaks %u: use the same version "
                       "everywhere",
                       job->protocol, NODE_PROTOCOL);
    if (job->run[0] == '\0' || strlen(job->run) > 64 ||
        strspn(job->run, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") !=
            strlen(job->run))
        return err_set(err, -EINVAL,
                       "job.run must be 1 to 64 letters, digits, '-', '.' or '_', not '%s'",
                       job->run);
    return check_clock(&job->clock, err);
}

static int check_load(const struct doc_trial *trial, struct err *err)
{
    const struct doc_load *load = &trial->load;

    if (trial->traffic == TRAFFIC_SCHEDULE) /* what a step sends goes as fast as it can */
        return 0;
    if (!isfinite(load->percent) || !isfinite(load->bps) || !isfinite(load->fps) ||
        (load->percent > 0) + (load->bps > 0) + (load->fps > 0) != 1)
        return err_set(err, -EINVAL,
                       "trial %u: load needs exactly one of percent, bps and fps, above 0",
                       trial->id);
    if (load->percent > 100)
        return err_set(err, -EINVAL, "trial %u: a load of %g %% is more than the line carries",
                       trial->id, load->percent);
    return 0;
}

/* What would otherwise be cut short or overflow on its way. */
static int check_numbers(const struct doc_trial *trial, struct err *err)
{
    if (trial->sizes_count == 0 && trial->traffic != TRAFFIC_SCHEDULE)
        return err_set(err, -EINVAL, "trial %u: sizes are missing", trial->id);
    for (unsigned i = 0; i < trial->sizes_count; i++)
        if (trial->sizes[i] == 0)
            return err_set(err, -EINVAL, "trial %u: a size of 0 bytes", trial->id);
    for (unsigned i = 0; i < trial->probe_sizes_count; i++)
        if (trial->probe_sizes[i] == 0)
            return err_set(err, -EINVAL, "trial %u: a probe of 0 bytes", trial->id);
    if (trial->warmup_ns < 0 || trial->cooldown_ns < 0 || trial->drain_silence_ns < 0 ||
        trial->drain_max_ns < 0)
        return err_set(err, -EINVAL, "trial %u: a time is below 0", trial->id);
    if (trial->warmup_ns > TIME_MAX_NS || trial->window_ns > TIME_MAX_NS ||
        trial->cooldown_ns > TIME_MAX_NS || trial->drain_silence_ns > TIME_MAX_NS ||
        trial->drain_max_ns > TIME_MAX_NS)
        return err_set(err, -EINVAL, "trial %u: a time is above 30 days", trial->id);
    if (trial->interim_ns != 0 &&
        (trial->interim_ns < INTERIM_LEAST_NS || trial->interim_ns > TIME_MAX_NS))
        return err_set(err, -EINVAL, "trial %u: interim_ns is 10 ms to 30 days, or 0 for none",
                       trial->id);
    if (trial->latency != NULL && trial->latency->probe_fps != NULL &&
        !(*trial->latency->probe_fps >= 0 && *trial->latency->probe_fps <= PROBE_FPS_MAX))
        return err_set(err, -EINVAL, "trial %u: probe_fps is 0 to %g a second and flow, not %g",
                       trial->id, PROBE_FPS_MAX, *trial->latency->probe_fps);
    if (trial->tcp != NULL && trial->tcp->congestion != NULL &&
        strlen(trial->tcp->congestion) >= sizeof((struct tcp_options *)NULL)->congestion)
        return err_set(err, -EINVAL, "trial %u: no congestion control has a name as long as '%s'",
                       trial->id, trial->tcp->congestion);
    return 0;
}

/* What no device could mean; what this port can't do is its transport's to refuse. */
static int check_verbs(const struct doc_trial *trial, struct err *err)
{
    static const struct doc_verbs none;
    const struct doc_verbs *verbs = trial->verbs != NULL ? trial->verbs : &none;
    const uint8_t *retry = verbs->retry;

    if ((retry != NULL && *retry > 6) || (verbs->rnr_retry != NULL && *verbs->rnr_retry > 6))
        return err_set(err, -EINVAL,
                       "trial %u: verbs retry and rnr_retry are 0 to 6: with 7 a dead partner is "
                       "never noticed",
                       trial->id);
    if (verbs->inline_bytes != NULL && *verbs->inline_bytes > UINT16_MAX)
        return err_set(err, -EINVAL, "trial %u: verbs inline is %u bytes; no device takes that",
                       trial->id, *verbs->inline_bytes);
    return 0;
}

static int check_pingpong(const struct doc_trial *trial, struct err *err)
{
    static const struct doc_pingpong none;
    const struct doc_pingpong *pingpong = trial->pingpong != NULL ? trial->pingpong : &none;

    if (trial->traffic != TRAFFIC_PINGPONG)
        return trial->pingpong == NULL
                   ? 0
                   : err_set(err, -EINVAL, "trial %u: pingpong needs traffic: pingpong", trial->id);
    if (pingpong->count == 0 && trial->window_ns <= 0)
        return err_set(err, -EINVAL,
                       "trial %u: messages there and back need a count or a window_ns above 0",
                       trial->id);
    if (pingpong->size_most < pingpong->size_least ||
        (pingpong->size_most > 0 && pingpong->size_least == 0))
        return err_set(err, -EINVAL, "trial %u: sizes from %u to %u bytes can't be drawn",
                       trial->id, pingpong->size_least, pingpong->size_most);
    if (pingpong->samples && (pingpong->count == 0 || pingpong->count > PINGPONG_SAMPLES_MAX))
        return err_set(err, -EINVAL,
                       "trial %u: single times are kept of a count from 1 to %u, not of %llu",
                       trial->id, PINGPONG_SAMPLES_MAX, (unsigned long long)pingpong->count);
    if (pingpong->patience_ns < 0)
        return err_set(err, -EINVAL, "trial %u: patience_ns is below 0", trial->id);
    if (!(pingpong->compute >= 0 && pingpong->compute <= 1))
        return err_set(err, -EINVAL, "trial %u: compute is a share from 0 to 1, not %g", trial->id,
                       pingpong->compute);
    if (trial->pattern.forward)
        return err_set(err, -EINVAL,
                       "trial %u: a chain that forwards sends nothing back: leave forward out",
                       trial->id);
    return 0;
}

static int check_schedule(const struct doc_trial *trial, struct err *err)
{
    static const struct doc_schedule none;
    const struct doc_schedule *schedule = trial->schedule != NULL ? trial->schedule : &none;

    if (trial->traffic != TRAFFIC_SCHEDULE)
        return trial->schedule == NULL
                   ? 0
                   : err_set(err, -EINVAL, "trial %u: schedule needs traffic: schedule", trial->id);
    if (schedule->count == 0 && trial->window_ns <= 0)
        return err_set(err, -EINVAL, "trial %u: a schedule needs a count or a window_ns above 0",
                       trial->id);
    if (schedule->batch != NULL && (*schedule->batch == 0 || *schedule->batch > BATCH_MAX))
        return err_set(err, -EINVAL, "trial %u: a batch has 1 to %u repetitions, not %u", trial->id,
                       BATCH_MAX, *schedule->batch);
    if (schedule->lead > BATCH_MAX)
        return err_set(err, -EINVAL, "trial %u: a batch's lead has %u repetitions at most, not %u",
                       trial->id, BATCH_MAX, schedule->lead);
    if (schedule->lead > 0 && schedule->compute)
        return err_set(err, -EINVAL,
                       "trial %u: results of a batch's lead are not verified: leave lead or "
                       "compute out",
                       trial->id);
    return 0;
}

static int check_trial(const struct doc_trial *trial, struct err *err)
{
    int rc = check_load(trial, err);

    if (rc == 0)
        rc = check_numbers(trial, err);
    if (rc == 0)
        rc = check_verbs(trial, err);
    if (rc == 0)
        rc = check_pingpong(trial, err);
    if (rc == 0)
        rc = check_schedule(trial, err);
    if (rc < 0)
        return rc;
    if (trial->traffic == TRAFFIC_STREAM && trial->window_ns <= 0)
        return err_set(err, -EINVAL, "trial %u: a stream needs a window_ns above 0", trial->id);
    if (trial->traffic == TRAFFIC_TRANSFER && trial->transfer_bytes == 0)
        return err_set(err, -EINVAL, "trial %u: a transfer needs transfer_bytes above 0",
                       trial->id);
    if (trial->by_clock && trial->traffic == TRAFFIC_SCHEDULE)
        return err_set(
            err, -EINVAL,
            "trial %u: the ranks of a schedule wait for each other: leave sync: none out",
            trial->id);
    if (trial->by_clock && (trial->traffic == TRAFFIC_TRANSFER ||
                            (trial->pingpong != NULL && trial->pingpong->count > 0)))
        return err_set(err, -EINVAL,
                       "trial %u: phases that follow the clock (sync: none) have a fixed length; "
                       "a transfer or a count of messages has none: use sync: barrier",
                       trial->id);
    return 0;
}

static int check(const struct document *document, struct err *err)
{
    int keys = (document->job != NULL) + (document->peers != NULL) + (document->trial != NULL) +
               (document->plan != NULL) + (document->beat != NULL) + (document->quit != NULL);

    if (keys > 1)
        return err_set(err, -EINVAL,
                       "a document holds more than one of job, peers, trial, plan, beat and quit: "
                       "end each with a line '...'");
    if (document->job != NULL)
        return check_job(document->job, err);
    return document->trial != NULL ? check_trial(document->trial, err) : 0;
}

int document_parse(struct document **document, const char *text, size_t size, unsigned first_line,
                   struct err *err)
{
    struct refusal refusal = {0};
    cyaml_config_t config = refusal_config(&refusal);
    cyaml_err_t failed;
    int rc;

    *document = NULL;
    failed = cyaml_load_data((const uint8_t *)text, size, &config, &document_schema,
                             (cyaml_data_t **)document, NULL);
    if (failed != CYAML_OK) {
        unsigned line = refusal.line > 0 ? refusal.line - 1 : 0;

        return err_set(err, -EINVAL, "documents, near line %u, column %u: %s", first_line + line,
                       refusal.column, refusal_message(&refusal, failed));
    }
    if (*document == NULL)
        return 0;
    rc = check(*document, err);
    if (rc < 0) {
        document_free(*document);
        *document = NULL;
    }
    return rc;
}

void document_free(struct document *document)
{
    struct refusal refusal = {0};
    cyaml_config_t config = refusal_config(&refusal);

    if (document != NULL)
        cyaml_free(&config, &document_schema, document, 0);
}

void doc_pattern_request(const struct doc_pattern *pattern, uint32_t n, uint64_t seed,
                         struct pattern_ranks *groups, struct pattern_request *request)
{
    for (unsigned i = 0; i < pattern->groups_count; i++) {
        groups[i].rank = pattern->groups[i].rank;
        groups[i].count = pattern->groups[i].rank_count;
    }
    *request = (struct pattern_request){
        .name = pattern->name,
        .n = n,
        .seed = seed,
        .order = pattern->order,
        .partners = pattern->partners,
        .directions = pattern->directions,
        .draw = pattern->draw,
        .forward = pattern->forward,
        .shift = pattern->shift,
        .count = pattern->count,
        .degree = pattern->degree,
        .natural =
            pattern->natural != NULL ? *pattern->natural : strcmp(pattern->name, "ring") == 0,
        .list = {pattern->list, pattern->list_count},
        .there_and_back = pattern->there_and_back,
        .local = pattern->local,
        .bytes = pattern->bytes,
        .algorithm = pattern->algorithm,
        .skew = pattern->skew,
        .class = pattern->class,
        .matrix = pattern->matrix,
        .block = pattern->block,
        .dimensions = pattern->dimensions,
        .method = pattern->method,
        .groups = groups,
        .group_count = pattern->groups_count,
    };
}
