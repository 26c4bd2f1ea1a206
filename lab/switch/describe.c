/* SPDX-License-Identifier: BSD-3-Clause */
#include "describe.h"

#include "mapping_reader.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000LL

/* What is not said. A buffer of 128 KiB is what switches of the paper's time had for a port. */
#define DEFAULT_BUFFER (128u << 10)
#define DEFAULT_WINDOW_MS 20
#define DEFAULT_AGEING_MS 300000 /* IEEE 802.1Q 8.8.3 */
#define DEFAULT_HOLD_MS 20

static const char *const queueing_words[] = {
    [MODEL_OUTPUT] = "output", [MODEL_INPUT] = "input", [MODEL_VOQ] = "voq", NULL};
static const char *const sharing_words[] = {"port", "shared", NULL};
static const char *const flow_words[] = {"addresses", "tags", NULL};

static const struct option step_keys[] = {
    {KEY_U32(model_step, "ports", ports)},
    {OPTION(OPTION_NUMBER, model_step, "bps", bps), .max = OPTION_ANY_U64, .needed = true},
    {.key = NULL},
};
static const struct option step_element = {KEY_ELEMENT(model_step, step_keys)};
static const struct option device_keys[] = {
    {KEY_STRING(device_text, "vdev", vdev)},
    {KEY_STRING(device_text, "iface", iface)},
    {.key = NULL},
};
static const struct option device_element = {KEY_ELEMENT(device_text, device_keys)};
static const struct option port_keys[] = {
    {KEY_STRING(port_text, "name", conf.name), .needed = true},
    {KEY_U64(port_text, "rate_bps", rate_bps)},
    {KEY_LIST_OF(port_text, "rates", conf.rate.step, conf.rate.step_count, step_element, 0,
                 MODEL_STEPS_MAX)},
    {KEY_FLAG(port_text, "trunk", conf.trunk)},
    {KEY_U32(port_text, "buffer", conf.buffer_bytes)},
    {KEY_LIST(port_text, "devices", devices, device_element, 0, 4)},
    {.key = NULL},
};
static const struct option port_element = {KEY_ELEMENT(port_text, port_keys)};
static const struct option fault_keys[] = {
    {OPTION(OPTION_WORD, fault_text, "kind", conf.kind), .words = model_fault_names,
     .needed = true},
    {KEY_NUMBER(fault_text, "one_in", conf.one_in, 0, UINT32_MAX, 1)},
    {KEY_U32(fault_text, "at_most", conf.at_most)},
    {KEY_STRING(fault_text, "source", source)},
    {KEY_STRING(fault_text, "destination", destination)},
    {KEY_STRING(fault_text, "in", in)},
    {KEY_STRING(fault_text, "out", out)},
    {KEY_STRING(fault_text, "to", to)},
    {KEY_STRING(fault_text, "port", port)},
    {KEY_NUMBER(fault_text, "ethertype", conf.ethertype, 0, UINT16_MAX, 0)},
    {KEY_FLAG(fault_text, "measured", conf.measured)},
    {KEY_U32(fault_text, "displacement", conf.displacement)},
    {KEY_U32(fault_text, "hold_ms", conf.hold_ns)},
    {KEY_U32(fault_text, "first_byte", conf.first_byte)},
    {KEY_U32(fault_text, "last_byte", conf.last_byte)},
    {KEY_U64(fault_text, "rate_bps", conf.rate_bps)},
    {.key = NULL},
};
static const struct option fault_element = {KEY_ELEMENT(fault_text, fault_keys)};
static const struct option collapse_keys[] = {
    {OPTION(OPTION_REAL, model_collapse_conf, "above_percent", above), .needed = true},
    {OPTION(OPTION_REAL, model_collapse_conf, "to_percent", to), .needed = true},
    {KEY_REAL(model_collapse_conf, "recover_percent", recover)},
    {KEY_U32(model_collapse_conf, "window_ms", window_ns)},
    {.key = NULL},
};
static const struct option table_keys[] = {
    {KEY_NUMBER(model_table_conf, "size", size, 0, UINT32_MAX, 8192)},
    {KEY_U32(model_table_conf, "learn_per_s", learn_per_s)},
    {KEY_U32(model_table_conf, "ageing_ms", ageing_ns)},
    {.key = NULL},
};
static const struct option pause_keys[] = {
    {KEY_FLAG(model_pause_conf, "send", send)},
    {KEY_U32(model_pause_conf, "high", high_bytes)},
    {KEY_U32(model_pause_conf, "low", low_bytes)},
    {.key = NULL},
};
static const struct option core_element = {
    .type = OPTION_NUMBER, .size = sizeof(int), .max = INT32_MAX};
static const struct option switch_keys[] = {
    {KEY_STRING(switch_text, "name", name), .needed = true},
    {KEY_U64(switch_text, "seed", conf.seed)},
    {KEY_NUMBER(switch_text, "mtu", conf.mtu, 68, 9600, 1500)},
    {KEY_WORD(switch_text, "queueing", conf.queueing, queueing_words)},
    {KEY_NUMBER(switch_text, "buffer", conf.buffer_bytes, 0, UINT32_MAX, DEFAULT_BUFFER)},
    {KEY_WORD(switch_text, "sharing", conf.shared, sharing_words)},
    {KEY_U32(switch_text, "input_buffer", conf.input_bytes)},
    {KEY_LIST_OF(switch_text, "capacity", conf.capacity.step, conf.capacity.step_count,
                 step_element, 0, MODEL_STEPS_MAX)},
    {KEY_MAPPING(switch_text, "collapse", conf.collapse, collapse_keys)},
    {KEY_MAPPING(switch_text, "table", conf.table, table_keys)},
    {KEY_U32(switch_text, "recovery_ms", conf.recovery_ns)},
    {KEY_FLAG(switch_text, "drop_undersize", conf.drop_undersize)},
    {KEY_U32(switch_text, "latency_ns", conf.latency_ns)},
    {KEY_MAPPING(switch_text, "pause", conf.pause, pause_keys)},
    {KEY_WORD(switch_text, "flows", conf.by_tag, flow_words)},
    {KEY_FLAG(switch_text, "poll", poll)},
    {KEY_POINTER(switch_text, "core", core, core_element)},
    {KEY_LIST(switch_text, "faults", faults, fault_element, 0, 256)},
    {KEY_LIST(switch_text, "ports", ports, port_element, 1, 1024), .needed = true},
    {.key = NULL},
};
static const struct option switch_element = {KEY_ELEMENT(switch_text, switch_keys)};
static const struct option description_keys[] = {
    {OPTION(OPTION_POINTER, description, "switch", text), .of = &switch_element, .needed = true},
    {.key = NULL},
};

/* --- from text to the core's description --- */

/* A time of `unit_ns` each; 0: it was not said. */
static void scale(int64_t *time, int64_t unit_ns, int64_t unsaid)
{
    *time = (*time > 0 ? *time : unsaid) * unit_ns;
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
    scale(&conf->hold_ns, MS, DEFAULT_HOLD_MS);
    if ((rc = read_mac(text->source, &conf->of_source, &conf->source, err)) < 0 ||
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

    *conf = description->text->conf;
    conf->ports = description->ports;
    conf->port_count = description->text->ports_count;
    conf->faults = description->faults;
    conf->fault_count = description->text->faults_count;
    if (conf->collapse.above > 100 || conf->collapse.to > 100 ||
        (conf->collapse.above > 0 && conf->collapse.to <= 0))
        return err_set(err, -EINVAL,
                       "collapse: above_percent and to_percent are shares of the ports' rates, "
                       "above 0 and up to 100");
    if (conf->collapse.recover <= 0)
        conf->collapse.recover = conf->collapse.above / 2;
    conf->collapse.above /= 100;
    conf->collapse.to /= 100;
    conf->collapse.recover /= 100;
    if (conf->buffer_bytes == 0)
        conf->buffer_bytes = DEFAULT_BUFFER;
    if (conf->input_bytes == 0)
        conf->input_bytes = conf->buffer_bytes;
    if (conf->pause.high_bytes == 0)
        conf->pause.high_bytes = conf->buffer_bytes / 2;
    if (conf->pause.low_bytes == 0)
        conf->pause.low_bytes = conf->pause.high_bytes / 2;
    scale(&conf->table.ageing_ns, MS, DEFAULT_AGEING_MS);
    scale(&conf->collapse.window_ns, MS, DEFAULT_WINDOW_MS);
    scale(&conf->recovery_ns, MS, 0);
    return 0;
}

int describe_read(struct description *description, const char *yaml, size_t size, struct err *err)
{
    const struct mapping_text text = {yaml, size, 1};
    int rc;

    *description = (struct description){0};
    rc = mapping_read(&text, description_keys, description, &description->memory, err);
    if (rc == 0)
        rc = err_set(err, -EINVAL, "the description is empty: it needs a mapping `switch`");
    if (rc > 0)
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
    free(description->faults);
    description->faults = NULL;
    mapping_free(&description->memory);
    description->text = NULL;
}
