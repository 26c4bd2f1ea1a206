/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Does the control network let nodes hear each other? Tried before a run, by `switchbench doctor`:
 * each host binds its control address, asks all others and answers them, by UDP as in a run.
 *
 * On `in` come a token of 32 hexadecimal digits, each partner's address on a line of its own, and
 * an empty line; then, on `out`, goes {"answered": [places of the partners that did],
 * "realtime_ns", "synchronized", "max_error_ns"}. Partners are answered until `in` ends. Who does
 * not know the token hears nothing.
 */
#ifndef ENGINE_CONTROL_CHECK_H
#define ENGINE_CONTROL_CHECK_H

#include "err.h"

#include <stdio.h>

/* Returns once `in` has ended. -EADDRNOTAVAIL and its like: the address can't be bound. */
int reach_try(const char *address, FILE *in, FILE *out, struct err *err);

#endif
