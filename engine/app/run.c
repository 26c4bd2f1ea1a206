/* SPDX-License-Identifier: BSD-3-Clause */
#include "app.h"

#include "clock.h"
#include "log.h"
#include "node.h"
#include "registry.h"
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* Open a job file. Fail if other users can read the file, because it holds the run's key. */
static int open_file(const char *path, struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, -errno, "can't read %s: %s", path, strerror(errno));
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 077) != 0) {
        close(fd);
        return err_set(err, -EPERM,
                       "%s holds a secret key, and other users may read it: chmod 600 %s", path,
                       path);
    }
    return fd;
}

/* Set up the node before its first document: name, log, signals, descriptors and the writer of
 * records. */
static int set_up(struct node *node, const struct run_conf *conf)
{
    static char host[64];
    sigset_t signals;
    int rc;

    gethostname(host, sizeof host - 1);
    /* A loader that started the program (engine/start.c) has set its own name. */
    prctl(PR_SET_NAME, "switchbench-node");
    node->name = conf->name != NULL ? conf->name : host;
    log_setup(node->name);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    node->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    node->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (node->signal_fd < 0 || node->event_fd < 0)
        return err_set(&node->err, -errno, "can't wait for signals: %s", strerror(errno));
    rc = records_open(&node->records, STDOUT_FILENO, node->name, &node->err);
    if (rc < 0)
        return rc;
    if (conf->file != NULL)
        node->input_fd = open_file(conf->file, &node->err);
    if (node->input_fd < 0)
        return node->input_fd;
    return input_open(&node->input, node->input_fd, conf->file != NULL || conf->plan, transports,
                      &node->err);
}

/* Print the plan of the pattern that a plan document requests. A signal ends the program at once,
 * because there are no partners. */
static int print_plan(struct node *node)
{
    struct document *document = NULL;
    int rc = node_await_document(node, &document);
    sigset_t none;

    if (rc < 0) {
        err_set(&node->err, rc, "no plan document on standard input");
        return node->status != 0 ? node->status : 2;
    }
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    if (document->kind == DOCUMENT_PLAN)
        rc = plan_print(node->records, document->plan, &node->err);
    else
        rc = err_set(&node->err, -EINVAL, "--plan needs a plan document on standard input");
    document_free(document);
    return rc < 0 ? err_status(rc) : 0;
}

/* Leave the run: send the other nodes the reason, or pass a last barrier with them, so that no node
 * leaves while another needs it. The endpoint is closed before the ports: it answers late partners
 * while it closes, and ports take their time. */
static void leave(struct node *node)
{
    static const char *const end_words[] = {
        [NODE_QUIT] = "quit",     [NODE_END_OF_INPUT] = "end-of-input",
        [NODE_SIGNAL] = "signal", [NODE_HEARTBEAT_TIMEOUT] = "heartbeat-timeout",
        [NODE_PEER] = "peer",     [NODE_ERROR] = "error",
    };
    uint64_t dropped = 0;

    if (node->joined && node->end == NODE_QUIT) {
        node->leaving = true;
        node->end = NODE_GOES_ON;
        if (node_barrier(node, NULL) == 0)
            node->end = NODE_QUIT;
    } else if (node->joined && node->end != NODE_PEER) {
        control_abort(node->control,
                      node->err.text[0] != '\0' ? node->err.text : end_words[node->end],
                      node->status == 2, clock_now());
    }
    if (node->control != NULL)
        dropped = control_dropped(node->control);
    control_close(node->control);
    node->control = NULL;
    ports_close(node);
    if (node->status == 0 && node->end != NODE_QUIT)
        node->status = 3;
    if (node->err.text[0] != '\0') {
        log_error("%s", node->err.text);
        record_write(node->records, "error",
                     RECORD_ROWS({"text", json_string(node->err.text)},
                                 {"status", json_integer(node->status)}));
    }
    record_write(node->records, "bye",
                 RECORD_ROWS({"status", json_integer(node->status)},
                             {"reason", json_string(end_words[node->end])},
                             {"dropped_datagrams", record_u64(dropped)},
                             {"dropped_records", record_u64(records_dropped(node->records))}));
}

static int run_node(struct node *node)
{
    struct document *document;
    int rc = join_run(node);

    while (rc == 0 && (rc = node_await_document(node, &document)) == 0) {
        if (document->kind == DOCUMENT_TRIAL)
            rc = trial_run(node, document->trial);
        else
            rc = err_set(&node->err, -EINVAL,
                         "after the peers document, only trial and quit documents are allowed");
        document_free(document);
        if (rc < 0 && rc != -ECANCELED)
            rc = node_fail(node, rc);
    }
    leave(node);
    return node->status;
}

int run(const struct run_conf *conf, struct err *err)
{
    struct node node = {.input_fd = STDIN_FILENO, .signal_fd = -1, .event_fd = -1};
    int status = 2;

    if (set_up(&node, conf) < 0) {
        *err = node.err;
    } else if (conf->plan) {
        status = print_plan(&node);
        *err = node.err;
    } else {
        status = run_node(&node);
    }
    for (size_t i = 0; i < node.worker_count; i++)
        worker_end(node.workers[i]);
    if (records_close(node.records) < 0 && status == 0)
        status = 3;
    input_close(node.input);
    document_free(node.job_document);
    free(node.ports);
    free(node.places);
    sodium_memzero(node.secret.key, sizeof node.secret.key);
    return status;
}
