/* SPDX-License-Identifier: BSD-3-Clause */
#include "setup.h"

#include "document_reader.h"
#include "log.h"
#include "netns.h"
#include "ports.h"
#include "registry.h"

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

/* A job file holds the run's key: nobody else may read it. */
static int open_file(const char *path, struct err *err)
{
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return err_set(err, -errno, "can't read %s: %s", path, strerror(errno));
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 077) != 0) {
        close(fd);
        return err_set(err, -EPERM, "%s holds a key and others may read it: chmod 600 %s", path,
                       path);
    }
    return fd;
}

static int block_signals(struct node *node, struct err *err)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    node->signal_fd = signalfd(-1, &signals, SFD_NONBLOCK | SFD_CLOEXEC);
    node->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (node->signal_fd < 0 || node->event_fd < 0)
        return err_set(err, -errno, "can't wait for signals: %s", strerror(errno));
    return 0;
}

int setup_node(struct node *node, const struct options *options, struct err *err)
{
    static char host[64];
    int previous;
    int rc;

    gethostname(host, sizeof host - 1);
    /* A loader that was given the program (engine/start.c) has left its own name. */
    prctl(PR_SET_NAME, "switchbench-node");
    node->name = options->name != NULL ? options->name : host;
    log_setup(node->name, LOG_LEVEL_INFO);
    if (sodium_init() < 0)
        return err_set(err, -ENOSYS, "libsodium can't be initialised");
    if (options->netns != NULL && (rc = netns_enter(options->netns, &previous, err)) < 0)
        return rc;
    rc = block_signals(node, err);
    if (rc == 0)
        rc = records_open(&node->records, STDOUT_FILENO, node->name, err);
    if (rc < 0)
        return rc;
    node->input_fd = options->file != NULL ? open_file(options->file, err) : STDIN_FILENO;
    if (node->input_fd < 0)
        return node->input_fd;
    return input_open(&node->input, node->input_fd, options->file != NULL || options->plan,
                      transports, err);
}

int tear_down_node(struct node *node)
{
    int rc;

    ports_close(node);
    for (size_t i = 0; i < node->worker_count; i++)
        worker_end(node->workers[i]);
    rc = records_close(node->records);
    input_close(node->input);
    document_free(node->job_document);
    free(node->ports);
    free(node->places);
    sodium_memzero(node->secret.key, sizeof node->secret.key);
    return rc;
}
