/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The description of a modelled switch (doc/reference/model.md): one YAML document in, the
 * core's own description out.
 *
 * Unknown keys and wrong types are refused with their position.
 */
#ifndef MODEL_DESCRIBE_H
#define MODEL_DESCRIBE_H

#include "mapping_reader.h"
#include "model.h"

#include <stddef.h>

#define DESCRIBE_BYTES_MAX (4u << 20)

/** @brief One of the two. */
struct device_text {
    char *vdev;  /**< any DPDK device arguments */
    char *iface; /**< a kernel interface of this network namespace */
};

struct port_text {
    struct model_port_conf conf;
    uint64_t rate_bps;
    struct device_text *devices;
    unsigned devices_count;
};

struct fault_text {
    struct model_fault_conf conf;
    char *source, *destination; /**< addresses */
    char *in, *out, *to, *port; /**< ports */
};

struct switch_text {
    char *name;
    struct model_conf conf;
    bool poll;
    int *core;
    struct fault_text *faults;
    unsigned faults_count;
    struct port_text *ports;
    unsigned ports_count;
};

struct description {
    struct switch_text *text;
    struct mapping_memory memory; /**< of the text */
    struct model_conf conf;
    struct model_port_conf ports[MODEL_PORTS_MAX];
    struct model_fault_conf *faults;
};

/**
 * @brief Read a description.
 *
 * @param description Takes the description.
 * @param yaml Document.
 * @param size Bytes of `yaml`.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, and the caller frees what is in it by describe_free(); -EINVAL with one sentence.
 */
int describe_read(struct description *description, const char *yaml, size_t size, struct err *err);
/**
 * @brief Free what a description holds.
 *
 * @param description Description.
 */
void describe_free(struct description *description);

#endif
