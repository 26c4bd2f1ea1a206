/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switchbench-node: documents in, records out (doc/reference/node-protocol.md).
 */
#include "control_check.h"
#include "environment.h"
#include "event_loop.h"
#include "options.h"
#include "run.h"
#include "setup.h"

#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>

/* With file capabilities it has more rights than whoever has set its environment. */
static int sanitize_environment(struct err *err)
{
    int rc = getauxval(AT_SECURE) != 0 ? environment_clean() : 0;

    return rc < 0 ? err_set(err, rc, "can't clean the environment: %s", strerror(-rc)) : 0;
}

/* What is done without a run. The exit status. */
static int run_tool(const struct options *options, struct err *err)
{
    int rc = control_check(options->reach, stdin, stdout, err);

    return rc < 0 ? node_status_for(rc) : 0;
}

/* A run, or a plan that is printed. The exit status. */
static int run(const struct options *options, struct err *err)
{
    struct node node = {.signal_fd = -1, .event_fd = -1, .begun = tsc_now()};
    int status = 2;

    if (setup_node(&node, options, err) == 0)
        status = options->plan ? run_plan_document(&node, err) : run_node(&node);
    if (tear_down_node(&node) < 0 && status == 0)
        status = 3;
    return status;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    struct err err = {0};
    int status = 2;
    int rc = options_parse(argc, argv, &options, &err);

    if (rc == 0)
        rc = sanitize_environment(&err);
    if (rc == 0)
        rc = options_note_connection(&options, &err);
    if (rc == 0)
        status = options.reach == NULL ? run(&options, &err) : run_tool(&options, &err);
    if (err.text[0] != '\0')
        fprintf(stderr, "switchbench-node: %s\n", err.text);
    return status;
}
