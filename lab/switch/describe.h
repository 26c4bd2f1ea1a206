/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The description of a modelled switch (doc/developer/switch.md): one line of JSON in, the
 * core's own description out.
 *
 * Unknown keys and wrong types are refused by name.
 */
#ifndef MODEL_DESCRIBE_H
#define MODEL_DESCRIBE_H

#include "mapping_reader.h"
#include "model.h"

struct description {
    char *name;
    bool poll; /**< never sleep */
    struct model_conf conf;
    struct mapping_memory memory; /**< of what the others point to */
};

/**
 * @brief Read a description.
 *
 * @param description Takes the description.
 * @param line Document.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, and the caller frees what is in it by mapping_free(); -EINVAL with one sentence, and
 *         nothing is to be freed.
 */
int describe_read(struct description *description, const char *line, struct err *err);

#endif
