/* SPDX-License-Identifier: BSD-3-Clause */
#include "describe.h"

#include <string.h>

#define DEFAULT_BUFFER                                                                             \
    (128u << 10)                 /* buffer per port of switches at the time of Rauch's thesis      \
                                  */
#define DEFAULT_AGEING_MS 300000 /* IEEE 802.1Q 8.8.3 */

static const char *const queueing_words[] = {
    [MODEL_OUTPUT] = "output", [MODEL_INPUT] = "input", [MODEL_VOQ] = "voq", NULL};
static const char *const sharing_words[] = {"port", "shared", NULL};
static const char *const flow_words[] = {"addresses", "tags", NULL};

#define KEY_TIME(in, key, member, unsaid) KEY_NUMBER(in, key, member, 1, UINT32_MAX, unsaid)

static const struct option port_keys[] = {
    {KEY_STRING(model_port_conf, "name", name), .needed = true},
    {KEY_U64(model_port_conf, "rate_bps", rate_bps)},
    {KEY_FLAG(model_port_conf, "trunk", trunk)},
    {KEY_U32(model_port_conf, "buffer", buffer_bytes)},
    {KEY_U32(model_port_conf, "vlan", vlan)},
    {KEY_STRING(model_port_conf, "cable", cable)},
    {KEY_STRING(model_port_conf, "vdev", vdev)},
    {KEY_STRING(model_port_conf, "iface", iface)},
    {.key = NULL},
};
static const struct option port_element = {KEY_ELEMENT(model_port_conf, port_keys)};
static const struct option fault_keys[] = {
    {OPTION(OPTION_WORD, model_fault_conf, "kind", kind), .words = model_fault_names,
     .needed = true},
    {KEY_NUMBER(model_fault_conf, "one_in", one_in, 1, UINT32_MAX, 1)},
    {KEY_U32(model_fault_conf, "at_most", at_most)},
    {KEY_STRING(model_fault_conf, "in", in)},
    {KEY_STRING(model_fault_conf, "out", out)},
    {KEY_STRING(model_fault_conf, "to", to)},
    {KEY_STRING(model_fault_conf, "port", port)},
    {KEY_FLAG(model_fault_conf, "measured", measured)},
    {KEY_U32(model_fault_conf, "displacement", displacement)},
    {KEY_TIME(model_fault_conf, "hold_ms", hold_ms, 20)},
    {KEY_U64(model_fault_conf, "rate_bps", rate_bps)},
    {.key = NULL},
};
static const struct option fault_element = {KEY_ELEMENT(model_fault_conf, fault_keys)};
static const struct option collapse_keys[] = {
    {OPTION(OPTION_REAL, model_collapse_conf, "above_percent", above), .needed = true},
    {OPTION(OPTION_REAL, model_collapse_conf, "to_percent", to), .needed = true},
    {KEY_REAL(model_collapse_conf, "recover_percent", recover)},
    {KEY_TIME(model_collapse_conf, "window_ms", window_ms, 20)},
    {.key = NULL},
};
static const struct option table_keys[] = {
    {KEY_NUMBER(model_table_conf, "size", size, 1, MODEL_TABLE_MAX, 8192)},
    {KEY_U32(model_table_conf, "learn_per_s", learn_per_s)},
    {KEY_TIME(model_table_conf, "ageing_ms", ageing_ms, DEFAULT_AGEING_MS)},
    {.key = NULL},
};
static const struct option pause_keys[] = {
    {KEY_FLAG(model_pause_conf, "send", send)},
    {KEY_U32(model_pause_conf, "high", high_bytes)},
    {KEY_U32(model_pause_conf, "low", low_bytes)},
    {.key = NULL},
};
static const struct option switch_keys[] = {
    {KEY_STRING(description, "name", name), .needed = true},
    {KEY_U64(description, "seed", conf.seed)},
    {KEY_NUMBER(description, "mtu", conf.mtu, 68, 9600, 1500)},
    {KEY_WORD(description, "queueing", conf.queueing, queueing_words)},
    {KEY_NUMBER(description, "buffer", conf.buffer_bytes, 1, UINT32_MAX, DEFAULT_BUFFER)},
    {KEY_WORD(description, "sharing", conf.shared, sharing_words)},
    {KEY_U32(description, "input_buffer", conf.input_bytes)},
    {KEY_U64(description, "capacity", conf.capacity_bps)},
    {KEY_MAPPING(description, "collapse", conf.collapse, collapse_keys)},
    {KEY_MAPPING(description, "table", conf.table, table_keys)},
    {KEY_U32(description, "recovery_ms", conf.recovery_ms)},
    {KEY_FLAG(description, "drop_undersize", conf.drop_undersize)},
    {KEY_U32(description, "latency_ns", conf.latency_ns)},
    {KEY_MAPPING(description, "pause", conf.pause, pause_keys)},
    {KEY_WORD(description, "flows", conf.by_tag, flow_words)},
    {KEY_FLAG(description, "poll", poll)},
    {KEY_LIST_OF(description, "faults", conf.faults, conf.fault_count, fault_element, 0,
                 MODEL_FAULTS_MAX)},
    {KEY_LIST_OF(description, "ports", conf.ports, conf.port_count, port_element, 2,
                 MODEL_PORTS_MAX),
     .needed = true},
    {.key = NULL},
};
static const struct option description_keys[] = {
    {.key = "switch", .type = OPTION_MAPPING, .table = switch_keys, .needed = true},
    {.key = NULL},
};

int describe_read(struct description *description, const char *line, struct err *err)
{
    const struct mapping_text text = {line, strlen(line), 1};
    struct model_conf *conf = &description->conf;
    int rc;

    *description = (struct description){0};
    rc = mapping_read(&text, description_keys, description, &description->memory, err);
    if (conf->collapse.recover <= 0)
        conf->collapse.recover = conf->collapse.above / 2;
    if (conf->input_bytes == 0)
        conf->input_bytes = conf->buffer_bytes;
    if (conf->pause.high_bytes == 0)
        conf->pause.high_bytes = conf->buffer_bytes / 2;
    if (conf->pause.low_bytes == 0)
        conf->pause.low_bytes = conf->pause.high_bytes / 2;
    if (rc == 0)
        rc = model_check(conf, err);
    if (rc < 0)
        mapping_free(&description->memory);
    return rc;
}
