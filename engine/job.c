/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The job document: which of its nodes this is, where all ports of the run are, and the workers.
 */
#include "clock.h"
#include "log.h"
#include "node.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_places(const void *a, const void *b)
{
    return strcmp(((const struct node_place *)a)->name, ((const struct node_place *)b)->name);
}

static int index_places(struct node *node, struct err *err)
{
    const struct doc_job *job = node->job;
    size_t count = 0;

    for (uint32_t n = 0; n < job->nodes_count; n++)
        count += job->nodes[n].ports_count;
    node->places = calloc(count + 1, sizeof *node->places);
    if (node->places == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t n = 0; n < job->nodes_count; n++)
        for (uint32_t p = 0; p < job->nodes[n].ports_count; p++)
            node->places[node->place_count++] =
                (struct node_place){job->nodes[n].ports[p].conf.name, n, p};
    qsort(node->places, node->place_count, sizeof *node->places, compare_places);
    for (size_t i = 1; i < node->place_count; i++)
        if (strcmp(node->places[i - 1].name, node->places[i].name) == 0)
            return err_set(err, -EINVAL, "job: two ports are called %s", node->places[i].name);
    return 0;
}

static int find_self(struct node *node, struct err *err)
{
    const struct doc_job *job = node->job;
    const struct doc_node *self = NULL;

    for (uint32_t n = 0; n < job->nodes_count; n++) {
        if (strcmp(job->nodes[n].name, node->name) == 0) {
            self = &job->nodes[n];
            node->self = n;
        }
    }
    if (self == NULL)
        return err_set(err, -EINVAL, "job: no node is called %s: give --name", node->name);
    node->port_count = self->ports_count;
    node->ports = calloc(node->port_count + 1, sizeof *node->ports);
    if (node->ports == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < node->port_count; i++)
        node->ports[i].doc = &self->ports[i];
    return 0;
}

int job_read(struct node *node)
{
    struct err err = {0};
    enum log_level level = LOG_LEVEL_INFO;
    int rc = node_await_document(node, &node->job_document);

    if (rc < 0)
        return rc;
    if (document_kind(node->job_document) != DOCUMENT_JOB) {
        err_set(&err, -EINVAL, "the first document must be a job");
        return node_fail(node, 2, &err);
    }
    node->job = node->job_document->job;
    node->by_hand = !node->job->controlled;
    node->beat_ns = clock_now();
    if (node->job->log != NULL && log_level_parse(node->job->log, &level) < 0)
        err_set(&err, -EINVAL, "job.log: '%s' is not one of error, warning, info, debug",
                node->job->log);
    log_setup(node->name, level);
    if (node->job->barrier_timeout_ms == 0)
        node->job_document->job->barrier_timeout_ms = 5000;
    if (err.text[0] == '\0' && find_self(node, &err) == 0)
        index_places(node, &err);
    return err.text[0] != '\0' ? node_fail(node, 2, &err) : 0;
}

/* Cores of its own: only where there are more cores than workers, and nobody said otherwise. */
static bool workers_sleep(const struct node *node, size_t workers)
{
    if (node->job->worker != WORKER_AUTO)
        return node->job->worker == WORKER_SLEEP;
    return sysconf(_SC_NPROCESSORS_ONLN) < (long)workers + 2;
}

int job_start_workers(struct node *node)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = node->port_count > 0 ? node->port_count : 1;
    struct err err = {0};
    int rc = 0;

    if (count > (size_t)(cores > 2 ? cores - 1 : 1))
        count = (size_t)(cores > 2 ? cores - 1 : 1);
    if (node->job->worker == WORKER_SLEEP)
        count = 1;
    if (count > NODE_WORKERS_MAX)
        count = NODE_WORKERS_MAX;
    node->sleeps = workers_sleep(node, count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct worker_conf conf = {
            .sleeps = node->sleeps,
            .core = node->sleeps ? -1 : (int)(cores - 1 - (long)i),
            .event_fd = node->event_fd,
            .seed = randombytes_random(),
        };

        rc = worker_start(&node->workers[i], &conf, &err);
        node->worker_count += rc == 0;
    }
    return rc < 0 ? node_fail(node, 3, &err) : 0;
}
