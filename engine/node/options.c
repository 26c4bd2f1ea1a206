/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: switchbench-node [FILE] [--name NAME] [--netns NAME] [--plan] [--version] [--help]\n"
    "\n"
    "One node of a Switchbench run: reads YAML documents from FILE or standard input, sends and\n"
    "receives as they say, writes one JSON record a line to standard output.\n"
    "\n"
    "  --name NAME    this node's name in the job (default: the host's name)\n"
    "  --netns NAME   enter this network namespace first\n"
    "  --connection SSH_CONNECTION\n"
    "                 where the controller sits, when the environment does not say (sudo)\n"
    "  --plan         print the plan of a `plan` document and send nothing\n"
    "  --reach ADDRESS:PORT\n"
    "                 try who is heard on this control address (switchbench doctor)\n"
    "\n"
    "The documents and records are described in doc/reference/node-protocol.md. By hand at two "
    "hosts:\n"
    "  switchbench plan CONF --job job.yaml      # once; copy job.yaml to both, mode 0600\n"
    "  switchbench-node job.yaml --name node1    # on each, with its own name\n";

/* Where the text of an option goes; NULL: it is not kept as it is. */
static const char **text_of(struct options *options, int option)
{
    switch (option) {
    case 'n':
        return &options->name;
    case 's':
        return &options->netns;
    case 'c':
        return &options->connection;
    case 'e':
        return &options->reach;
    default:
        return NULL;
    }
}

int options_parse(int argc, char **argv, struct options *options, struct err *err)
{
    static const struct option known[] = {
        {"name", required_argument, NULL, 'n'},       {"netns", required_argument, NULL, 's'},
        {"connection", required_argument, NULL, 'c'}, {"plan", no_argument, NULL, 'p'},
        {"version", no_argument, NULL, 'v'},          {"help", no_argument, NULL, 'h'},
        {"reach", required_argument, NULL, 'e'},      {NULL, 0, NULL, 0},
    };
    const char **text;
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        text = text_of(options, option);
        if (text != NULL) {
            *text = optarg;
            continue;
        }
        switch (option) {
        case 'p':
            options->plan = true;
            break;
        case 'v':
            puts("switchbench-node " SWITCHBENCH_VERSION);
            exit(0);
        case 'h':
            fputs(usage, stdout);
            exit(0);
        default:
            return err_set(err, -EINVAL, "see switchbench-node --help");
        }
    }
    if (argc - optind > 1)
        return err_set(err, -EINVAL, "one job file at most, not %d", argc - optind);
    options->file = argv[optind];
    return 0;
}

int options_note_connection(const struct options *options, struct err *err)
{
    if (options->connection == NULL || setenv("SSH_CONNECTION", options->connection, 1) == 0)
        return 0;
    return err_set(err, -errno, "can't keep --connection: %s", strerror(errno));
}
