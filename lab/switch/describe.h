/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Reader of a modelled switch's description, one line of JSON, into the model's
 * configuration (doc/developer/switch.md).
 *
 * Unknown keys and values of a wrong type are rejected with an error that names the key.
 */
#ifndef MODEL_DESCRIBE_H
#define MODEL_DESCRIBE_H

#include "mapping_reader.h"
#include "model.h"

struct description {
    char *name;
    bool poll; /**< never sleep */
    struct model_conf conf;
    struct mapping_memory memory; /**< memory of all pointers in this struct */
};

/**
 * @brief Read the description of a switch from a line of JSON.
 *
 * @param[out] description Description.
 * @param line Document.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, and the caller frees what is in it by mapping_free(); -EINVAL with an error message,
 *        and nothing is to be freed.
 */
int describe_read(struct description *description, const char *line, struct err *err);

#endif
