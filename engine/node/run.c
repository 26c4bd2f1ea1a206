/* SPDX-License-Identifier: BSD-3-Clause */
#include "run.h"

#include "clock.h"
#include "document_reader.h"
#include "event_loop.h"
#include "job.h"
#include "join.h"
#include "log.h"
#include "node.h"
#include "plan_printer.h"
#include "ports.h"
#include "trial.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>

static const char *const end_words[] = {
    [NODE_QUIT] = "quit",     [NODE_END_OF_INPUT] = "end-of-input",
    [NODE_SIGNAL] = "signal", [NODE_HEARTBEAT_TIMEOUT] = "heartbeat-timeout",
    [NODE_PEER] = "peer",     [NODE_ERROR] = "error",
};

/* All nodes go through one more barrier, so that none leaves while another still needs it. */
static void pass_last_barrier(struct node *node)
{
    struct barrier_values values;

    node_no_values(&values);
    node->leaving = true;
    node->end = NODE_GOES_ON;
    if (node_barrier(node, &values) == 0)
        node->end = NODE_QUIT;
}

/* No node leaves alone: it tells the others why, or goes through the last barrier with them. The
 * endpoint answers late partners for a while when it is closed, and ports take their time to close:
 * so it comes first. */
static void leave(struct node *node)
{
    const char *why = node->err.text[0] != '\0' ? node->err.text : end_words[node->end];

    if (node->joined && node->end == NODE_QUIT)
        pass_last_barrier(node);
    else if (node->joined && node->end != NODE_PEER)
        control_abort(node->control, why, node->status == 2, clock_now());
    if (node->control != NULL)
        node->dropped_datagrams = control_dropped(node->control);
    control_close(node->control);
    node->control = NULL;
    node->joined = false;
}

static void say_bye(struct node *node)
{
    double hz = tsc_hz(&node->begun);

    if (node->err.text[0] != '\0') {
        const struct record_row rows[] = {
            {"text", json_string(node->err.text)},
            {"status", json_integer(node->status)},
            {NULL, NULL},
        };

        log_error("%s", node->err.text);
        record_write(node->records, "error", rows);
    }
    const struct record_row rows[] = {
        {"status", json_integer(node->status)},
        {"reason", json_string(end_words[node->end])},
        {"dropped_datagrams", record_u64(node->dropped_datagrams)},
        {"dropped_records", record_u64(records_dropped(node->records))},
        {"tsc_hz", record_count(hz > 0 ? (int64_t)hz : -1)},
        {NULL, NULL},
    };
    record_write(node->records, "bye", rows);
}

int run_node(struct node *node)
{
    static const struct err misplaced = {"after peers come only trials and quit"};
    struct document *document;
    int rc = job_read(node);

    if (rc == 0) {
        node->run.run_id = node->secret.run_id = node->job->run;
        node->run.node = node->name;
        rc = job_start_workers(node);
    }
    if (rc == 0)
        rc = ports_survey(node);
    if (rc == 0)
        rc = join_open_control(node);
    if (rc == 0)
        rc = join_run(node);
    while (rc == 0 && (rc = node_await_document(node, &document)) == 0) {
        rc = document_kind(document) == DOCUMENT_TRIAL ? trial_run(node, document->trial)
                                                       : node_fail(node, 2, &misplaced);
        document_free(document);
    }
    leave(node);
    ports_close(node);
    if (node->status == 0 && node->end != NODE_QUIT)
        node->status = 3;
    say_bye(node);
    return node->status;
}

/* A plan has no partners who would have to be told: a signal ends it at once. */
static void unblock_signals(void)
{
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int answer_plan(struct node *node, struct err *err)
{
    struct document *document = NULL;
    int rc = node_await_document(node, &document);

    if (rc < 0)
        return node->err.text[0] != '\0' ? err_set(err, rc, "%s", node->err.text)
                                         : err_set(err, -EINVAL, "no plan document");
    if (document_kind(document) != DOCUMENT_PLAN) {
        rc = err_set(err, -EINVAL, "--plan wants a plan document");
    } else {
        unblock_signals();
        rc = plan_print(node->records, document->plan, err);
    }
    document_free(document);
    return rc;
}

int run_plan_document(struct node *node, struct err *err)
{
    int rc = answer_plan(node, err);

    if (rc == 0)
        return 0;
    return node->status != 0 ? node->status : node_status_for(rc);
}
