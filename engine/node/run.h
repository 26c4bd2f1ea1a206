/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A run on this node: prepare, join, trials, leave; or a plan that is printed.
 */
#ifndef ENGINE_RUN_H
#define ENGINE_RUN_H

#include "err.h"

#include <stdbool.h>

struct run_conf {
    const char *file;  /* of the documents; NULL: standard input */
    const char *name;  /* of this node; NULL: the host's */
    const char *netns; /* to enter first; NULL: none */
    bool plan;         /* a plan document is answered, and nothing is sent */
};

/**
 * @brief Runs this node, from its documents to its last record.
 * @param err has the sentence where nothing else could tell it
 * @return the exit status
 */
int run(const struct run_conf *conf, struct err *err);

#endif
