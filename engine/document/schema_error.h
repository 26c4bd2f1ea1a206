/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Why libcyaml refuses a document: its return value is only a code, so what it logs is caught.
 */
#ifndef ENGINE_SCHEMA_ERROR_H
#define ENGINE_SCHEMA_ERROR_H

#include <cyaml/cyaml.h>

/* The first message and the innermost place. All zero: nothing was said. Its place for an unknown
 * key is that of the event before it, often one line early. */
struct refusal {
    char message[256];
    unsigned line; /* from 1; 0: no place was said */
    unsigned column;
};

/* A configuration of libcyaml whose log goes to `refusal`, which must outlive it. */
cyaml_config_t refusal_config(struct refusal *refusal);

/* What was said, else what the code means. Valid as long as `refusal`. */
const char *refusal_message(const struct refusal *refusal, cyaml_err_t code);

#endif
