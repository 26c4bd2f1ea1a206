/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Tasks of the program: a run on this node; printing a plan; a test of the control network.
 */
#ifndef ENGINE_APP_H
#define ENGINE_APP_H

#include "err.h"

#include <stdbool.h>
#include <stdio.h>

struct doc_plan;
struct records;

struct run_conf {
    const char *file;  /* file of the documents; NULL: standard input */
    const char *name;  /* name of this node; NULL: the host's */
    const char *netns; /* namespace to enter first; NULL: none */
    bool plan;         /* print the plan of a plan document, and send nothing */
};

/**
 * @brief Run this node, from its first document to its last record.
 *
 * @param conf What the command line says.
 * @param err Takes the sentence where nothing else could tell it.
 * @return Exit status.
 */
int run(const struct run_conf *conf, struct err *err);

/**
 * @brief Print a plan exactly as the nodes will run it: its totals as a record, or the flows of its
 * phases as numbers.
 *
 * @param records Writer of records.
 * @param doc Document.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, or a negative errno with the sentence.
 */
int plan_print(struct records *records, const struct doc_plan *doc, struct err *err);

/**
 * @brief Test which nodes reach a control address (`switchbench doctor`); return once `in` has
 * ended.
 *
 * `in` brings a token of 32 hexadecimal digits, each partner's address on a line of its own, and an
 * empty line. Then `out` gets {"answered": [places of the partners that replied], "realtime_ns",
 * "synchronized", "max_error_ns"}. Requests with the token are answered until `in` ends.
 *
 * @param address Address and port of this host.
 * @param in Its end ends the check.
 * @param out Takes a line per node that is heard.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EADDRNOTAVAIL and its like: the address can't be bound.
 */
int control_check(const char *address, FILE *in, FILE *out, struct err *err);

#endif
