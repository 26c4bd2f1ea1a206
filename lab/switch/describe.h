/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The description of a modelled switch (doc/reference/model.md): one YAML document in, the core's
 * own description out. Unknown keys and wrong types are refused with their position.
 */
#ifndef MODEL_DESCRIBE_H
#define MODEL_DESCRIBE_H

#include "model.h"

#include <stddef.h>

#define DESCRIBE_BYTES_MAX (4u << 20)

/* One of the two. */
struct device_text {
    char *vdev;  /* any DPDK device arguments */
    char *iface; /* a kernel interface of this network namespace */
};

struct step_text {
    uint32_t ports;
    uint64_t bps;
};

struct port_text {
    char *name;
    uint64_t rate_bps;
    struct step_text *rates;
    unsigned rates_count;
    bool trunk;
    uint64_t buffer;
    struct device_text *devices;
    unsigned devices_count;
};

struct fault_text {
    enum model_fault_kind kind;
    uint32_t one_in;
    uint64_t at_most;
    char *source, *destination; /* addresses */
    char *in, *out, *to, *port; /* ports */
    uint32_t ethertype;
    bool measured;
    uint32_t displacement;
    uint32_t hold_ms;
    uint32_t first_byte, last_byte;
    uint64_t rate_bps;
};

struct collapse_text {
    double above_percent, to_percent, recover_percent;
    uint32_t window_ms;
};

struct table_text {
    uint32_t size;
    uint32_t learn_per_s;
    uint32_t ageing_ms;
};

struct pause_text {
    bool send;
    uint64_t high, low;
};

struct switch_text {
    char *name;
    uint64_t seed;
    uint32_t mtu;
    enum model_queueing queueing;
    uint64_t buffer;
    bool shared;
    uint64_t input_buffer;
    struct step_text *capacity;
    unsigned capacity_count;
    struct collapse_text collapse;
    struct table_text table;
    uint32_t recovery_ms;
    bool drop_undersize;
    uint32_t latency_ns;
    struct pause_text pause;
    bool by_tag;
    bool poll;
    int *core;
    struct fault_text *faults;
    unsigned faults_count;
    struct port_text *ports;
    unsigned ports_count;
};

struct description {
    struct switch_text *text;
    struct model_conf conf;
    struct model_port_conf ports[MODEL_PORTS_MAX];
    struct model_fault_conf *faults;
};

/* On success the caller owns what is in *description (describe_free). -EINVAL with one sentence. */
int describe_read(struct description *description, const char *yaml, size_t size, struct err *err);
void describe_free(struct description *description);

#endif
