/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switchbench-node: documents in, records out (doc/developer/node-protocol.md).
 */
#include "app.h"

#include <errno.h>
#include <getopt.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: switchbench-node [FILE] [--name NAME] [--plan] [--version] [--help]\n"
    "\n"
    "One node of a Switchbench run: reads JSON documents, one a line, from FILE or standard "
    "input,\n"
    "sends and receives as they say, writes one JSON record a line to standard output.\n"
    "\n"
    "  --name NAME    this node's name in the job (default: the host's name)\n"
    "  --connection SSH_CONNECTION\n"
    "                 address of the controller, when the environment lacks it (sudo)\n"
    "  --plan         print the plan of a `plan` document and send nothing\n"
    "\n"
    "The documents and records are described in doc/developer/node-protocol.md. By hand at two "
    "hosts:\n"
    "  switchbench plan CONF --job job.ndjson      # once; copy job.ndjson to both, mode 0600\n"
    "  switchbench-node job.ndjson --name node1    # on each, with its own name\n";

enum { NAME, CONNECTION, PLAN, VERSION, HELP, FILE_NAME, WORDS };

/* Read the command line's options: store each option's value, or "" for a given option that takes
 * no value; NULL stays for an option that is not given. */
static int parse_options(int argc, char **argv, const char *said[WORDS], struct err *err)
{
    static const struct option known[] = {
        {"name", required_argument, NULL, NAME},
        {"connection", required_argument, NULL, CONNECTION},
        {"plan", no_argument, NULL, PLAN},
        {"version", no_argument, NULL, VERSION},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option >= WORDS)
            return err_set(err, -EINVAL, "invalid option: see switchbench-node --help");
        said[option] = optarg != NULL ? optarg : "";
    }
    if (argc - optind > 1)
        return err_set(err, -EINVAL, "give at most one job file, not %d", argc - optind);
    said[FILE_NAME] = argv[optind];
    return 0;
}

int main(int argc, char **argv)
{
    const char *said[WORDS] = {NULL};
    struct err err = {0};
    int status = 2;
    int rc = parse_options(argc, argv, said, &err);

    if (rc == 0 && (said[HELP] != NULL || said[VERSION] != NULL)) {
        fputs(said[HELP] != NULL ? usage : "switchbench-node " SWITCHBENCH_VERSION "\n", stdout);
        return 0;
    }
    /* The guard reads the controller's connection there. */
    if (rc == 0 && said[CONNECTION] != NULL && setenv("SSH_CONNECTION", said[CONNECTION], 1) != 0)
        rc = err_set(&err, -errno,
                     "can't set the environment variable SSH_CONNECTION from --connection: %s",
                     strerror(errno));
    if (rc == 0 && sodium_init() < 0)
        rc = err_set(&err, -ENOSYS, "libsodium can't be initialised");
    if (rc == 0) {
        const struct run_conf conf = {said[FILE_NAME], said[NAME], said[PLAN] != NULL};

        status = run(&conf, &err);
    }
    if (err.text[0] != '\0')
        fprintf(stderr, "switchbench-node: %s\n", err.text);
    return status;
}
