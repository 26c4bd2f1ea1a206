/* SPDX-License-Identifier: BSD-3-Clause */
#include "describe.h"

#include "schema_error.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OPTIONAL CYAML_FLAG_OPTIONAL
#define POINTER CYAML_FLAG_POINTER
#define TEXT(key, flags, type, member)                                                             \
    CYAML_FIELD_STRING_PTR(key, POINTER | (flags), struct type, member, 1, 1024)
#define MS 1000000LL

/* What is not said. A buffer of 128 KiB is what switches of the paper's time had for a port. */
#define DEFAULT_MTU 1500
#define DEFAULT_BUFFER (128u << 10)
#define DEFAULT_WINDOW_MS 20
#define DEFAULT_TABLE 8192
#define DEFAULT_AGEING_MS 300000 /* IEEE 802.1Q 8.8.3 */
#define DEFAULT_HOLD_MS 20

static const cyaml_strval_t fault_words[] = {
    {"drop", MODEL_FAULT_DROP},       {"duplicate", MODEL_FAULT_DUPLICATE},
    {"reorder", MODEL_FAULT_REORDER}, {"corrupt", MODEL_FAULT_CORRUPT},
    {"flood", MODEL_FAULT_FLOOD},     {"wrong-port", MODEL_FAULT_WRONG_PORT},
    {"dead", MODEL_FAULT_DEAD},       {"slow", MODEL_FAULT_SLOW}};
static const cyaml_strval_t queueing_words[] = {
    {"output", MODEL_OUTPUT}, {"input", MODEL_INPUT}, {"voq", MODEL_VOQ}};
static const cyaml_strval_t sharing_words[] = {{"port", false}, {"shared", true}};
static const cyaml_strval_t flow_words[] = {{"addresses", false}, {"tags", true}};

static const cyaml_schema_field_t step_fields[] = {
    CYAML_FIELD_UINT("ports", OPTIONAL, struct model_step, ports),
    CYAML_FIELD_UINT("bps", CYAML_FLAG_DEFAULT, struct model_step, bps),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t step_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct model_step, step_fields)};

static const cyaml_schema_field_t device_fields[] = {
    TEXT("vdev", OPTIONAL, device_text, vdev),
    TEXT("iface", OPTIONAL, device_text, iface),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t device_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct device_text, device_fields)};

static const cyaml_schema_field_t port_fields[] = {
    TEXT("name", 0, port_text, conf.name),
    CYAML_FIELD_UINT("rate_bps", OPTIONAL, struct port_text, rate_bps),
    CYAML_FIELD_SEQUENCE("rates", OPTIONAL, struct port_text, conf.rate.step, &step_entry, 0,
                         MODEL_STEPS_MAX),
    CYAML_FIELD_BOOL("trunk", OPTIONAL, struct port_text, conf.trunk),
    CYAML_FIELD_UINT("buffer", OPTIONAL, struct port_text, conf.buffer_bytes),
    CYAML_FIELD_SEQUENCE("devices", POINTER | OPTIONAL, struct port_text, devices, &device_entry, 0,
                         4),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t port_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct port_text, port_fields)};

static const cyaml_schema_field_t fault_fields[] = {
    CYAML_FIELD_ENUM("kind", CYAML_FLAG_STRICT, struct fault_text, conf.kind, fault_words,
                     CYAML_ARRAY_LEN(fault_words)),
    CYAML_FIELD_UINT("one_in", OPTIONAL, struct fault_text, conf.one_in),
    CYAML_FIELD_UINT("at_most", OPTIONAL, struct fault_text, conf.at_most),
    TEXT("source", OPTIONAL, fault_text, source),
    TEXT("destination", OPTIONAL, fault_text, destination),
    TEXT("in", OPTIONAL, fault_text, in),
    TEXT("out", OPTIONAL, fault_text, out),
    TEXT("to", OPTIONAL, fault_text, to),
    TEXT("port", OPTIONAL, fault_text, port),
    CYAML_FIELD_UINT("ethertype", OPTIONAL, struct fault_text, conf.ethertype),
    CYAML_FIELD_BOOL("measured", OPTIONAL, struct fault_text, conf.measured),
    CYAML_FIELD_UINT("displacement", OPTIONAL, struct fault_text, conf.displacement),
    CYAML_FIELD_UINT("hold_ms", OPTIONAL, struct fault_text, conf.hold_ns),
    CYAML_FIELD_UINT("first_byte", OPTIONAL, struct fault_text, conf.first_byte),
    CYAML_FIELD_UINT("last_byte", OPTIONAL, struct fault_text, conf.last_byte),
    CYAML_FIELD_UINT("rate_bps", OPTIONAL, struct fault_text, conf.rate_bps),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t fault_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct fault_text, fault_fields)};

static const cyaml_schema_field_t collapse_fields[] = {
    CYAML_FIELD_FLOAT("above_percent", CYAML_FLAG_DEFAULT, struct model_collapse_conf, above),
    CYAML_FIELD_FLOAT("to_percent", CYAML_FLAG_DEFAULT, struct model_collapse_conf, to),
    CYAML_FIELD_FLOAT("recover_percent", OPTIONAL, struct model_collapse_conf, recover),
    CYAML_FIELD_UINT("window_ms", OPTIONAL, struct model_collapse_conf, window_ns),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t table_fields[] = {
    CYAML_FIELD_UINT("size", OPTIONAL, struct model_table_conf, size),
    CYAML_FIELD_UINT("learn_per_s", OPTIONAL, struct model_table_conf, learn_per_s),
    CYAML_FIELD_UINT("ageing_ms", OPTIONAL, struct model_table_conf, ageing_ns),
    CYAML_FIELD_END,
};
static const cyaml_schema_field_t pause_fields[] = {
    CYAML_FIELD_BOOL("send", OPTIONAL, struct model_pause_conf, send),
    CYAML_FIELD_UINT("high", OPTIONAL, struct model_pause_conf, high_bytes),
    CYAML_FIELD_UINT("low", OPTIONAL, struct model_pause_conf, low_bytes),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t switch_fields[] = {
    TEXT("name", 0, switch_text, name),
    CYAML_FIELD_UINT("seed", OPTIONAL, struct switch_text, conf.seed),
    CYAML_FIELD_UINT("mtu", OPTIONAL, struct switch_text, conf.mtu),
    CYAML_FIELD_ENUM("queueing", OPTIONAL | CYAML_FLAG_STRICT, struct switch_text, conf.queueing,
                     queueing_words, CYAML_ARRAY_LEN(queueing_words)),
    CYAML_FIELD_UINT("buffer", OPTIONAL, struct switch_text, conf.buffer_bytes),
    CYAML_FIELD_ENUM("sharing", OPTIONAL | CYAML_FLAG_STRICT, struct switch_text, conf.shared,
                     sharing_words, CYAML_ARRAY_LEN(sharing_words)),
    CYAML_FIELD_UINT("input_buffer", OPTIONAL, struct switch_text, conf.input_bytes),
    CYAML_FIELD_SEQUENCE("capacity", OPTIONAL, struct switch_text, conf.capacity.step, &step_entry,
                         0, MODEL_STEPS_MAX),
    CYAML_FIELD_MAPPING("collapse", OPTIONAL, struct switch_text, conf.collapse, collapse_fields),
    CYAML_FIELD_MAPPING("table", OPTIONAL, struct switch_text, conf.table, table_fields),
    CYAML_FIELD_UINT("recovery_ms", OPTIONAL, struct switch_text, conf.recovery_ns),
    CYAML_FIELD_BOOL("drop_undersize", OPTIONAL, struct switch_text, conf.drop_undersize),
    CYAML_FIELD_UINT("latency_ns", OPTIONAL, struct switch_text, conf.latency_ns),
    CYAML_FIELD_MAPPING("pause", OPTIONAL, struct switch_text, conf.pause, pause_fields),
    CYAML_FIELD_ENUM("flows", OPTIONAL | CYAML_FLAG_STRICT, struct switch_text, conf.by_tag,
                     flow_words, CYAML_ARRAY_LEN(flow_words)),
    CYAML_FIELD_BOOL("poll", OPTIONAL, struct switch_text, poll),
    CYAML_FIELD_INT_PTR("core", POINTER | OPTIONAL, struct switch_text, core),
    CYAML_FIELD_SEQUENCE("faults", POINTER | OPTIONAL, struct switch_text, faults, &fault_entry, 0,
                         256),
    CYAML_FIELD_SEQUENCE("ports", POINTER, struct switch_text, ports, &port_entry, 1, 1024),
    CYAML_FIELD_END,
};

struct document {
    struct switch_text *text;
};
static const cyaml_schema_field_t document_fields[] = {
    CYAML_FIELD_MAPPING_PTR("switch", POINTER, struct document, text, switch_fields),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t document_schema = {
    CYAML_VALUE_MAPPING(POINTER, struct document, document_fields)};

/* --- from text to the core's description --- */

/* A time as it was read, in `unit_ns`; 0: it was not said. */
static int scale(int64_t *time, int64_t unit_ns, int64_t unsaid, const char *key, struct err *err)
{
    if (*time < 0 || *time > UINT32_MAX)
        return err_set(err, -EINVAL, "%s: at most %u", key, UINT32_MAX);
    *time = (*time > 0 ? *time : unsaid) * unit_ns;
    return 0;
}

static int find_port(const struct switch_text *text, const char *name)
{
    for (unsigned i = 0; i < text->ports_count; i++)
        if (strcmp(text->ports[i].conf.name, name) == 0)
            return (int)i;
    return MODEL_NO_PORT;
}

static int read_port(const struct switch_text *text, const char *name, int *port, struct err *err)
{
    *port = MODEL_NO_PORT;
    if (name == NULL)
        return 0;
    *port = find_port(text, name);
    return *port != MODEL_NO_PORT ? 0
                                  : err_set(err, -EINVAL, "faults: there is no port '%s'", name);
}

static int read_mac(const char *text, bool *given, uint64_t *mac, struct err *err)
{
    unsigned byte[6];
    uint8_t bytes[6];
    int end = 0;

    *given = text != NULL;
    if (text == NULL)
        return 0;
    if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4],
               &byte[5], &end) != 6 ||
        text[end] != '\0')
        return err_set(err, -EINVAL, "faults: '%s' is no address such as 02:53:42:00:00:01", text);
    for (unsigned i = 0; i < 6; i++)
        bytes[i] = (uint8_t)byte[i];
    *mac = model_mac(bytes);
    return 0;
}

static int check_fault(const struct fault_text *text, const struct model_fault_conf *conf,
                       struct err *err)
{
    const char *kind = model_fault_names[conf->kind];

    if (conf->kind >= MODEL_FAULT_DEAD && conf->in == MODEL_NO_PORT)
        return err_set(err, -EINVAL, "faults: %s needs a `port`", kind);
    if (conf->kind < MODEL_FAULT_DEAD && text->port != NULL)
        return err_set(err, -EINVAL, "faults: %s has no `port`: say `in` or `out`", kind);
    if (conf->kind == MODEL_FAULT_SLOW && conf->rate_bps == 0)
        return err_set(err, -EINVAL, "faults: slow needs a `rate_bps`");
    if (conf->kind == MODEL_FAULT_REORDER && conf->displacement == 0)
        return err_set(err, -EINVAL,
                       "faults: reorder needs a `displacement`: how many frames go first");
    if (conf->last_byte > 0 && conf->last_byte < 12)
        return err_set(err, -EINVAL, "faults: the addresses, bytes 0 to 11, are never corrupted");
    return 0;
}

static int read_fault(const struct switch_text *from, const struct fault_text *text,
                      struct model_fault_conf *conf, struct err *err)
{
    int rc;

    *conf = text->conf;
    if (conf->one_in == 0)
        conf->one_in = 1;
    if ((rc = scale(&conf->hold_ns, MS, DEFAULT_HOLD_MS, "faults: hold_ms", err)) < 0 ||
        (rc = read_mac(text->source, &conf->of_source, &conf->source, err)) < 0 ||
        (rc = read_mac(text->destination, &conf->of_destination, &conf->destination, err)) < 0 ||
        (rc = read_port(from, text->port != NULL ? text->port : text->in, &conf->in, err)) < 0 ||
        (rc = read_port(from, text->out, &conf->out, err)) < 0 ||
        (rc = read_port(from, text->to, &conf->to, err)) < 0)
        return rc;
    return check_fault(text, conf, err);
}

static int read_ports(struct description *description, struct err *err)
{
    const struct switch_text *text = description->text;

    if (text->ports_count > MODEL_PORTS_MAX)
        return err_set(err, -EINVAL, "ports: a module has at most %d, not %u", MODEL_PORTS_MAX,
                       text->ports_count);
    for (unsigned i = 0; i < text->ports_count; i++) {
        const struct port_text *from = &text->ports[i];
        struct model_port_conf *to = &description->ports[i];

        *to = from->conf;
        if (find_port(text, to->name) != (int)i)
            return err_set(err, -EINVAL, "ports: duplicate name '%s'", to->name);
        if (to->rate.step_count > 0 && (from->rate_bps > 0 || !to->trunk))
            return err_set(err, -EINVAL,
                           "ports: %s: `rates` by senders are a trunk's, in place of `rate_bps`",
                           to->name);
        if (from->rate_bps > 0)
            to->rate = (struct model_rates){.step = {{0, from->rate_bps}}, .step_count = 1};
        for (unsigned k = 0; k < from->devices_count; k++)
            if ((from->devices[k].vdev != NULL) == (from->devices[k].iface != NULL))
                return err_set(err, -EINVAL, "ports: %s: a device is one of vdev and iface",
                               to->name);
    }
    return 0;
}

static int read_faults(struct description *description, struct err *err)
{
    const struct switch_text *text = description->text;
    int rc = 0;

    description->faults = calloc(text->faults_count + 1, sizeof *description->faults);
    if (description->faults == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (unsigned i = 0; i < text->faults_count && rc == 0; i++)
        rc = read_fault(text, &text->faults[i], &description->faults[i], err);
    return rc;
}

static int read_switch(struct description *description, struct err *err)
{
    struct model_conf *conf = &description->conf;
    int rc;

    *conf = description->text->conf;
    conf->ports = description->ports;
    conf->port_count = description->text->ports_count;
    conf->faults = description->faults;
    conf->fault_count = description->text->faults_count;
    if (conf->collapse.above < 0 || conf->collapse.above > 100 || conf->collapse.to < 0 ||
        conf->collapse.to > 100 || (conf->collapse.above > 0 && conf->collapse.to <= 0))
        return err_set(err, -EINVAL,
                       "collapse: above_percent and to_percent are shares of the ports' rates, "
                       "above 0 and up to 100");
    if (conf->collapse.recover <= 0)
        conf->collapse.recover = conf->collapse.above / 2;
    conf->collapse.above /= 100;
    conf->collapse.to /= 100;
    conf->collapse.recover /= 100;
    if (conf->mtu == 0)
        conf->mtu = DEFAULT_MTU;
    if (conf->mtu < 68 || conf->mtu > 9600)
        return err_set(err, -EINVAL, "mtu: 68 to 9600, not %u", conf->mtu);
    if (conf->buffer_bytes == 0)
        conf->buffer_bytes = DEFAULT_BUFFER;
    if (conf->input_bytes == 0)
        conf->input_bytes = conf->buffer_bytes;
    if (conf->table.size == 0)
        conf->table.size = DEFAULT_TABLE;
    if (conf->pause.high_bytes == 0)
        conf->pause.high_bytes = conf->buffer_bytes / 2;
    if (conf->pause.low_bytes == 0)
        conf->pause.low_bytes = conf->pause.high_bytes / 2;
    if ((rc = scale(&conf->table.ageing_ns, MS, DEFAULT_AGEING_MS, "ageing_ms", err)) < 0 ||
        (rc = scale(&conf->collapse.window_ns, MS, DEFAULT_WINDOW_MS, "window_ms", err)) < 0 ||
        (rc = scale(&conf->recovery_ns, MS, 0, "recovery_ms", err)) < 0)
        return rc;
    return scale(&conf->latency_ns, 1, 0, "latency_ns", err);
}

static int load(struct description *description, const char *yaml, size_t size, struct err *err)
{
    struct refusal refusal = {0};
    cyaml_config_t config = refusal_config(&refusal);
    struct document *document = NULL;
    cyaml_err_t failed;

    failed = cyaml_load_data((const uint8_t *)yaml, size, &config, &document_schema,
                             (cyaml_data_t **)&document, NULL);
    if (failed != CYAML_OK)
        return err_set(err, -EINVAL, "the description, near line %u, column %u: %s", refusal.line,
                       refusal.column, refusal_message(&refusal, failed));
    if (document == NULL)
        return err_set(err, -EINVAL, "the description is empty: it needs a mapping `switch`");
    description->text = document->text;
    free(document); /* libcyaml's allocator is realloc(3) */
    return 0;
}

int describe_read(struct description *description, const char *yaml, size_t size, struct err *err)
{
    int rc;

    *description = (struct description){0};
    rc = load(description, yaml, size, err);
    if (rc == 0)
        rc = read_ports(description, err);
    if (rc == 0)
        rc = read_faults(description, err);
    if (rc == 0)
        rc = read_switch(description, err);
    if (rc < 0)
        describe_free(description);
    return rc;
}

void describe_free(struct description *description)
{
    struct refusal refusal = {0};
    cyaml_config_t config = refusal_config(&refusal);
    static const cyaml_schema_value_t schema = {
        CYAML_VALUE_MAPPING(POINTER, struct switch_text, switch_fields)};

    free(description->faults);
    description->faults = NULL;
    if (description->text != NULL)
        cyaml_free(&config, &schema, description->text, 0);
    description->text = NULL;
}
