/* SPDX-License-Identifier: BSD-3-Clause */
#include "document_reader.h"

#include "document_checks.h"
#include "schema_error.h"

#include <assert.h>
#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define POINTER CYAML_FLAG_POINTER

#define STRING(key, flags, type, member)                                                           \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | (flags), struct type, member, 0, 4096)
#define LIST_MAX 1000000

static const cyaml_schema_value_t text_entry = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 4096)};
static const cyaml_schema_value_t u32_entry = {CYAML_VALUE_UINT(CYAML_FLAG_DEFAULT, uint32_t)};

static const cyaml_strval_t worker_words[] = {
    {"auto", WORKER_AUTO}, {"sleep", WORKER_SLEEP}, {"poll", WORKER_POLL}};
static const cyaml_strval_t traffic_words[] = {{"stream", TRAFFIC_STREAM},
                                               {"transfer", TRAFFIC_TRANSFER},
                                               {"pingpong", TRAFFIC_PINGPONG},
                                               {"schedule", TRAFFIC_SCHEDULE},
                                               {"burst", TRAFFIC_BURST}};
static const cyaml_strval_t partner_words[] = {{"fixed", false}, {"random", true}};
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
    CYAML_FIELD_BOOL("timestamps", OPTIONAL, struct doc_port, conf.timestamps),
    CYAML_FIELD_BOOL("shared", OPTIONAL, struct doc_port, conf.shared),
    CYAML_FIELD_SEQUENCE("transports", POINTER | OPTIONAL, struct doc_port, transports, &text_entry,
                         0, DOC_TRANSPORTS_MAX),
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

static const cyaml_strval_t clock_words[] = {{"auto", CLOCK_AUTO},
                                             {"shared", CLOCK_SHARED},
                                             {"ptp", CLOCK_PTP},
                                             {"estimated", CLOCK_ESTIMATED}};
static_assert(CYAML_ARRAY_LEN(clock_words) == CLOCK_MODES, "each has a word");

static const cyaml_schema_field_t clock_fields[] = {
    CYAML_FIELD_ENUM("mode", CYAML_FLAG_STRICT, struct clock_conf, mode, clock_words,
                     CYAML_ARRAY_LEN(clock_words)),
    CYAML_FIELD_INT("error_ns", OPTIONAL, struct clock_conf, error_ns),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t job_fields[] = {
    CYAML_FIELD_UINT("protocol", CYAML_FLAG_DEFAULT, struct doc_job, protocol),
    STRING("run", 0, doc_job, run),
    CYAML_FIELD_BOOL("controlled", OPTIONAL, struct doc_job, controlled),
    CYAML_FIELD_UINT("heartbeat_timeout_ms", OPTIONAL, struct doc_job, heartbeat_timeout_ms),
    CYAML_FIELD_UINT("barrier_timeout_ms", OPTIONAL, struct doc_job, barrier_timeout_ms),
    CYAML_FIELD_ENUM("worker", OPTIONAL, struct doc_job, worker, worker_words,
                     CYAML_ARRAY_LEN(worker_words)),
    STRING("log", OPTIONAL, doc_job, log),
    CYAML_FIELD_MAPPING("clock", OPTIONAL, struct doc_job, clock, clock_fields),
    CYAML_FIELD_BOOL("bind", OPTIONAL, struct doc_job, bind),
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
    CYAML_FIELD_SEQUENCE_COUNT("ranks", POINTER, struct pattern_ranks, rank, count, &u32_entry, 0,
                               PATTERN_RANKS_MAX),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t group_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct pattern_ranks, group_fields)};

/* The pattern's parameters by their types (pattern.h). */
#define PATTERN_WORD(key, member, count) STRING(key, OPTIONAL, pattern_request, member)
#define PATTERN_FLAG(key, member, count)                                                           \
    CYAML_FIELD_BOOL(key, OPTIONAL, struct pattern_request, member)
#define PATTERN_FLAG_OR_DEFAULT(key, member, count)                                                \
    CYAML_FIELD_BOOL_PTR(key, POINTER | OPTIONAL, struct pattern_request, member)
#define PATTERN_NUMBER(key, member, count)                                                         \
    CYAML_FIELD_UINT(key, OPTIONAL, struct pattern_request, member)
#define PATTERN_NUMBERS(key, member, count)                                                        \
    CYAML_FIELD_SEQUENCE_COUNT(key, POINTER | OPTIONAL, struct pattern_request, member, count,     \
                               &u32_entry, 0, LIST_MAX)
#define PATTERN_GROUPS(key, member, count)                                                         \
    CYAML_FIELD_SEQUENCE_COUNT(key, POINTER | OPTIONAL, struct pattern_request, member, count,     \
                               &group_entry, 0, PATTERN_RANKS_MAX)
#define PATTERN_FIELD(word, key, type, member, count) PATTERN_##type(key, member, count),

static const cyaml_schema_field_t pattern_fields[] = {
    STRING("name", 0, pattern_request, name),
    PATTERN_FLAG("round_trip", round_trip, ),
    PATTERN_PARAMS(PATTERN_FIELD) CYAML_FIELD_END,
};

static const cyaml_schema_field_t load_fields[] = {
    CYAML_FIELD_FLOAT("percent", OPTIONAL, struct doc_load, percent),
    CYAML_FIELD_FLOAT("bps", OPTIONAL, struct doc_load, bps),
    CYAML_FIELD_FLOAT("fps", OPTIONAL, struct doc_load, fps),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t part_fields[] = {
    STRING("network", 0, doc_part, network),
    CYAML_FIELD_SEQUENCE("ranks", POINTER, struct doc_part, ranks, &text_entry, 2,
                         PATTERN_RANKS_MAX),
    STRING("transport", OPTIONAL, doc_part, transport),
    CYAML_FIELD_SEQUENCE("sizes", POINTER | OPTIONAL, struct doc_part, sizes, &u32_entry, 1,
                         TRANSPORT_SIZES_MAX),
    CYAML_FIELD_MAPPING_PTR("load", POINTER | OPTIONAL, struct doc_part, load, load_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t part_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct doc_part, part_fields)};

static const cyaml_schema_field_t pingpong_fields[] = {
    CYAML_FIELD_INT("timeout_ns", OPTIONAL, struct doc_pingpong, timeout_ns),
    CYAML_FIELD_UINT("count", OPTIONAL, struct doc_pingpong, count),
    CYAML_FIELD_UINT("min_size", OPTIONAL, struct doc_pingpong, min_size),
    CYAML_FIELD_UINT("max_size", OPTIONAL, struct doc_pingpong, max_size),
    CYAML_FIELD_ENUM("partners", OPTIONAL, struct doc_pingpong, random, partner_words,
                     CYAML_ARRAY_LEN(partner_words)),
    CYAML_FIELD_BOOL("samples", OPTIONAL, struct doc_pingpong, samples),
    CYAML_FIELD_FLOAT("compute", OPTIONAL, struct doc_pingpong, compute),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t burst_fields[] = {
    CYAML_FIELD_UINT("frames", CYAML_FLAG_DEFAULT, struct doc_burst, frames),
    CYAML_FIELD_INT("gap_ns", OPTIONAL, struct doc_burst, gap_ns),
    CYAML_FIELD_UINT_PTR("count", POINTER | OPTIONAL, struct doc_burst, count),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t schedule_fields[] = {
    CYAML_FIELD_UINT("count", OPTIONAL, struct doc_schedule, count),
    CYAML_FIELD_UINT_PTR("batch", POINTER | OPTIONAL, struct doc_schedule, batch),
    CYAML_FIELD_UINT_PTR("warmup", POINTER | OPTIONAL, struct doc_schedule, warmup),
    CYAML_FIELD_BOOL("compute", OPTIONAL, struct doc_schedule, compute),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t latency_fields[] = {
    CYAML_FIELD_FLOAT_PTR("probe_fps", POINTER | OPTIONAL, struct doc_latency, probe_fps),
    CYAML_FIELD_BOOL("stamps", OPTIONAL, struct doc_latency, stamps),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t trial_fields[] = {
    CYAML_FIELD_UINT("id", CYAML_FLAG_DEFAULT, struct doc_trial, id),
    CYAML_FIELD_UINT("repeat", OPTIONAL, struct doc_trial, repeat),
    STRING("transport", 0, doc_trial, transport),
    CYAML_FIELD_SEQUENCE("parts", POINTER, struct doc_trial, parts, &part_entry, 1, 64),
    CYAML_FIELD_MAPPING("pattern", CYAML_FLAG_DEFAULT, struct doc_trial, pattern, pattern_fields),
    CYAML_FIELD_UINT("seed", OPTIONAL, struct doc_trial, pattern.seed),
    CYAML_FIELD_SEQUENCE("phases", POINTER | OPTIONAL, struct doc_trial, phases, &u32_entry, 0,
                         LIST_MAX),
    CYAML_FIELD_BOOL_PTR("connectivity_check", POINTER | OPTIONAL, struct doc_trial, probe),
    CYAML_FIELD_SEQUENCE("connectivity_check_sizes", POINTER | OPTIONAL, struct doc_trial,
                         connectivity_check_sizes, &u32_entry, 1, TRANSPORT_SIZES_MAX),
    CYAML_FIELD_BOOL("listen", OPTIONAL, struct doc_trial, listen),
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
    CYAML_FIELD_INT("drain_timeout_ns", OPTIONAL, struct doc_trial, drain_timeout_ns),
    CYAML_FIELD_INT("drain_max_ns", OPTIONAL, struct doc_trial, drain_max_ns),
    CYAML_FIELD_UINT("flood_limit", OPTIONAL, struct doc_trial, flood_limit),
    CYAML_FIELD_INT("interval_ns", OPTIONAL, struct doc_trial, interval_ns),
    CYAML_FIELD_MAPPING_PTR("pingpong", POINTER | OPTIONAL, struct doc_trial, pingpong,
                            pingpong_fields),
    CYAML_FIELD_MAPPING_PTR("schedule", POINTER | OPTIONAL, struct doc_trial, schedule,
                            schedule_fields),
    CYAML_FIELD_MAPPING_PTR("burst", POINTER | OPTIONAL, struct doc_trial, burst, burst_fields),
    CYAML_FIELD_MAPPING_PTR("latency", POINTER | OPTIONAL, struct doc_trial, latency,
                            latency_fields),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t plan_fields[] = {
    CYAML_FIELD_UINT("ranks", CYAML_FLAG_DEFAULT, struct doc_plan, pattern.n),
    CYAML_FIELD_MAPPING("pattern", CYAML_FLAG_DEFAULT, struct doc_plan, pattern, pattern_fields),
    CYAML_FIELD_UINT("seed", OPTIONAL, struct doc_plan, pattern.seed),
    CYAML_FIELD_SEQUENCE("phases", POINTER | OPTIONAL, struct doc_plan, phases, &u32_entry, 0,
                         LIST_MAX),
    CYAML_FIELD_BOOL_PTR("totals_only", POINTER | OPTIONAL, struct doc_plan, totals_only),
    CYAML_FIELD_END,
};

/* The schema of a document, with a trial's options below the names of this build's transports. */
struct schema {
    cyaml_schema_field_t options[DOC_TRANSPORTS_MAX][OPTIONS_MAX + 1];
    cyaml_schema_field_t trial[CYAML_ARRAY_LEN(trial_fields) + DOC_TRANSPORTS_MAX];
    cyaml_schema_field_t document[7];
    cyaml_schema_value_t root;
};

/* What a table's option is in YAML. */
static cyaml_schema_value_t option_value(const struct option *option)
{
    cyaml_schema_value_t value = {.flags = POINTER | OPTIONAL};

    switch (option->type) {
    case OPTION_NUMBER:
        value.type = CYAML_INT;
        value.data_size = sizeof(int64_t);
        break;
    case OPTION_REAL:
        value.type = CYAML_FLOAT;
        value.data_size = sizeof(double);
        break;
    case OPTION_BOOL:
        value.type = CYAML_BOOL;
        value.data_size = sizeof(bool);
        break;
    default:
        value.type = CYAML_STRING;
        value.data_size = sizeof(char);
        value.string.max = 4096;
    }
    return value;
}

/* Below a transport's name: an array of pointers to what is given, in the order of its table. */
static cyaml_schema_field_t options_field(const struct transport *transport,
                                          cyaml_schema_field_t fields[OPTIONS_MAX + 1])
{
    const struct option *options = transport->options->options;
    uint32_t count = 0;

    for (; options[count].key != NULL; count++) {
        assert(count < OPTIONS_MAX);
        fields[count] = (cyaml_schema_field_t){
            .key = options[count].key,
            .data_offset = (uint32_t)(count * sizeof(void *)),
            .value = option_value(&options[count]),
        };
    }
    fields[count] = (cyaml_schema_field_t)CYAML_FIELD_END;
    return (cyaml_schema_field_t){
        .key = transport->name,
        .value = {.type = CYAML_MAPPING,
                  .flags = POINTER | OPTIONAL,
                  .data_size = (uint32_t)(count * sizeof(void *)),
                  .mapping.fields = fields},
    };
}

static void schema_make(struct schema *schema, const struct transport *const *transports)
{
    const cyaml_schema_field_t fields[] = {
        CYAML_FIELD_MAPPING_PTR("job", POINTER | OPTIONAL, struct document, job, job_fields),
        CYAML_FIELD_MAPPING_PTR("peers", POINTER | OPTIONAL, struct document, peers, peers_fields),
        CYAML_FIELD_MAPPING_PTR("trial", POINTER | OPTIONAL, struct document, trial, schema->trial),
        CYAML_FIELD_MAPPING_PTR("plan", POINTER | OPTIONAL, struct document, plan, plan_fields),
        CYAML_FIELD_UINT_PTR("heartbeat", POINTER | OPTIONAL, struct document, heartbeat),
        CYAML_FIELD_BOOL_PTR("quit", POINTER | OPTIONAL, struct document, quit),
        CYAML_FIELD_END,
    };
    cyaml_schema_field_t *next = schema->trial;

    for (size_t i = 0; transports[i] != NULL; i++) {
        assert(i < DOC_TRANSPORTS_MAX);
        *next = options_field(transports[i], schema->options[i]);
        next->data_offset = (uint32_t)(offsetof(struct doc_trial, given) + i * sizeof(void *));
        next++;
    }
    memcpy(next, trial_fields, sizeof trial_fields);
    static_assert(sizeof fields == sizeof schema->document, "all of them");
    memcpy(schema->document, fields, sizeof fields);
    schema->root = (cyaml_schema_value_t){
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct document, schema->document)};
}

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
    if (document->heartbeat != NULL)
        return DOCUMENT_BEAT;
    return document->quit != NULL ? DOCUMENT_QUIT : DOCUMENT_NONE;
}

/* The options of a part's transport: those given, the others' defaults. */
static int fill_options(const struct doc_trial *trial, struct doc_part *part,
                        const struct transport *const *transports, struct err *err)
{
    const char *name = doc_part_transport(trial, part);
    struct err why = {""};
    size_t i = 0;
    int rc;

    while (transports[i] != NULL && strcmp(transports[i]->name, name) != 0)
        i++;
    if (transports[i] == NULL) /* the trial is refused when it begins */
        return 0;
    assert(transports[i]->options->size <= OPTION_BYTES_MAX);
    if ((part->options = calloc(1, OPTION_BYTES_MAX)) == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    rc = option_table_fill(transports[i]->options, (const void *const *)trial->given[i],
                           part->options, &why);
    return rc < 0 ? err_set(err, rc, "trial %u: %s %s", trial->id, name, why.text) : 0;
}

static int check(const struct document *document, struct err *err)
{
    int keys = (document->job != NULL) + (document->peers != NULL) + (document->trial != NULL) +
               (document->plan != NULL) + (document->heartbeat != NULL) + (document->quit != NULL);
    int rc;

    if (keys > 1)
        return err_set(
            err, -EINVAL,
            "a document holds more than one of job, peers, trial, plan, heartbeat and quit: "
            "end each with a line '...'");
    if (document->job != NULL)
        return check_job(document->job, err);
    if (document->trial == NULL)
        return 0;
    rc = check_trial(document->trial, err);
    for (unsigned i = 0; i < document->trial->parts_count && rc == 0; i++)
        rc = fill_options(document->trial, &document->trial->parts[i], document->transports, err);
    return rc;
}

int document_parse(struct document **document, const struct document_text *text,
                   const struct transport *const *transports, struct err *err)
{
    struct refusal refusal = {0};
    cyaml_config_t config = refusal_config(&refusal);
    struct schema schema;
    cyaml_err_t failed;
    int rc;

    *document = NULL;
    schema_make(&schema, transports);
    failed = cyaml_load_data((const uint8_t *)text->text, text->size, &config, &schema.root,
                             (cyaml_data_t **)document, NULL);
    if (failed != CYAML_OK) {
        unsigned line = refusal.line > 0 ? refusal.line - 1 : 0;

        return err_set(err, -EINVAL, "documents, near line %u, column %u: %s",
                       text->first_line + line, refusal.column, refusal_message(&refusal, failed));
    }
    if (*document == NULL)
        return 0;
    (*document)->transports = transports;
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
    struct schema schema;

    if (document == NULL)
        return;
    for (unsigned i = 0; document->trial != NULL && i < document->trial->parts_count; i++)
        free(document->trial->parts[i].options);
    schema_make(&schema, document->transports);
    cyaml_free(&config, &schema.root, document, 0);
}
