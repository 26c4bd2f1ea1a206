/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Tasks of switchbench-node: take part in a run, print a plan, or test the control network.
 */
#ifndef ENGINE_APP_H
#define ENGINE_APP_H

#include "err.h"

#include <stdbool.h>
#include <stdio.h>

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

/**
 * @brief Test which nodes answer on the control network (`switchbench doctor`); return once `in`
 * has ended.
 *
 * `in` brings a token of 32 characters, which is the key of the datagrams, the control address of
 * each node on a line of its own, this node's among them, and an empty line. Then `out` gets
 * {"answered": [places of the nodes that answered], "realtime_ns", "synchronized", "max_error_ns"}.
 * Each node asks all others for an empty blob, and answers until `in` ends.
 *
 * @param address Control address and port of this node.
 * @param in Input with the key and the addresses; the check ends at its end of file.
 * @param out Output for the result line, written when all nodes have answered, or after 3 s.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno: -EADDRNOTAVAIL, for example, if the address cannot be bound.
 */
int control_check(const char *address, FILE *in, FILE *out, struct err *err);

#endif
