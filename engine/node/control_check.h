/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Does the control network let nodes hear each other? `switchbench doctor` tries it before a
 * run: each host binds its control address, sends requests to all others and replies to theirs, by
 * UDP as in a run.
 *
 * On `in` come a token of 32 hexadecimal digits, each partner's address on a line of its own, and
 * an empty line; then, on `out`, goes {"answered": [places of the partners that replied],
 * "realtime_ns", "synchronized", "max_error_ns"}. Requests are answered until `in` ends, and only
 * those with the token.
 */
#ifndef ENGINE_CONTROL_CHECK_H
#define ENGINE_CONTROL_CHECK_H

#include "err.h"

#include <stdio.h>

/**
 * @brief Try which nodes are heard on a control address; returns once `in` has ended.
 *
 * @param address Address and port of this host.
 * @param in Its end ends the check.
 * @param out Takes a line per node that is heard.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EADDRNOTAVAIL and its like: the address can't be bound.
 */
int control_check(const char *address, FILE *in, FILE *out, struct err *err);

#endif
