/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Tasks of switchbench-node: take part in a run, or print a plan.
 */
#ifndef ENGINE_APP_H
#define ENGINE_APP_H

#include "err.h"

#include <stdbool.h>

struct doc_plan;
struct records;

struct run_conf {
    const char *file; /* file of the documents; NULL: standard input */
    const char *name; /* name of this node; NULL: the host's */
    bool plan;        /* print the plan of a plan document, and send nothing */
};

/**
 * @brief Run this node's part of a run: read documents, execute the trials, and write the records.
 *
 * @param conf Values of the command line.
 * @param[out] err Error message of a failure that no record reports.
 * @return Exit status.
 */
int run(const struct run_conf *conf, struct err *err);

/**
 * @brief Print a plan exactly as the nodes will run it: its totals as a record, or the flows of its
 * phases as numbers.
 *
 * @param records Writer of records.
 * @param doc Document.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno with an error message.
 */
int plan_print(struct records *records, const struct doc_plan *doc, struct err *err);

#endif
