/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The arguments of switchbench-node.
 */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include "err.h"
#include <stdbool.h>

struct options {
    const char *file; /* NULL: standard input */
    const char *name;
    const char *netns;
    const char *connection; /* NULL: the environment has it, or nobody */
    bool plan;
    const char *reach; /* the control address that is tried; NULL: a run */
};

/* -EINVAL with the sentence. Ends the program for --help and --version. */
int options_parse(int argc, char **argv, struct options *options, struct err *err);

/* The guard asks the environment for the controller's connection: keeps --connection there. */
int options_note_connection(const struct options *options, struct err *err);

#endif
