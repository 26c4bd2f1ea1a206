/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What the program does: a run on this node; a plan that is printed; the control network
 * that is tried.
 */
#ifndef ENGINE_APP_H
#define ENGINE_APP_H

#include "err.h"

#include <stdbool.h>
#include <stdio.h>

struct doc_plan;
struct records;

struct run_conf {
    const char *file;  /* of the documents; NULL: standard input */
    const char *name;  /* of this node; NULL: the host's */
    const char *netns; /* to enter first; NULL: none */
    bool plan;         /* a plan document is answered, and nothing is sent */
};

/**
 * @brief Run this node, from its documents to its last record.
 *
 * @param conf What the command line says.
 * @param err Takes the sentence where nothing else could tell it.
 * @return Exit status.
 */
int run(const struct run_conf *conf, struct err *err);

/**
 * @brief Print a plan, its totals as a record or the flows of its phases as numbers, so that the
 * command shows exactly what the nodes will run.
 *
 * @param records Writer of records.
 * @param doc Document.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, or a negative errno with the sentence.
 */
int plan_print(struct records *records, const struct doc_plan *doc, struct err *err);

/**
 * @brief Try which nodes are heard on a control address (`switchbench doctor`); returns once `in`
 * has ended.
 *
 * On `in` come a token of 32 hexadecimal digits, each partner's address on a line of its own, and
 * an empty line; then, on `out`, goes {"answered": [places of the partners that replied],
 * "realtime_ns", "synchronized", "max_error_ns"}. Requests are answered until `in` ends, and only
 * those with the token.
 *
 * @param address Address and port of this host.
 * @param in Its end ends the check.
 * @param out Takes a line per node that is heard.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EADDRNOTAVAIL and its like: the address can't be bound.
 */
int control_check(const char *address, FILE *in, FILE *out, struct err *err);

#endif
