/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The job document: which of its nodes this is, where all ports of the run are, and the workers.
 */
#include "clock.h"
#include "log.h"
#include "node.h"

#include <errno.h>
#include <sched.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int compare_places(const void *a, const void *b)
{
    return strcmp(((const struct node_place *)a)->name, ((const struct node_place *)b)->name);
}

const struct node_place *job_find_place(const struct node *node, const char *name)
{
    struct node_place wanted = {.name = name};

    return bsearch(&wanted, node->places, node->place_count, sizeof wanted, compare_places);
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

/* The cores on which this process may run. */
struct cores {
    int count; /* at least 1 */
    int known; /* so many of them are listed, in order; the others can't be named */
    int core[CPU_SETSIZE];
};

static void list_cores(struct cores *cores)
{
    cpu_set_t allowed;

    cores->known = 0;
    cores->count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return; /* more cores than the set can hold */
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &allowed))
            cores->core[cores->known++] = core;
    cores->count = cores->known;
}

/* Cores of its own: only where there are more cores than workers, and nobody said otherwise. */
static bool workers_sleep(const struct node *node, const struct cores *cores, size_t workers)
{
    if (node->job->worker != WORKER_AUTO)
        return node->job->worker == WORKER_SLEEP;
    return (size_t)cores->count < workers + 2;
}

static size_t worker_count(const struct node *node, const struct cores *cores)
{
    size_t most = cores->count > 2 ? (size_t)cores->count - 1 : 1;
    size_t count = node->port_count > 0 ? node->port_count : 1;

    if (node->job->worker == WORKER_SLEEP)
        return 1;
    if (most > NODE_WORKERS_MAX)
        most = NODE_WORKERS_MAX;
    return count < most ? count : most;
}

/* Workers that poll take the last cores. Those that sleep share cores with others and go where
 * there is room: tied to a core they gave up four times as many frames while it was busy. */
static int choose_core(const struct node *node, const struct cores *cores, size_t worker)
{
    if (node->sleeps || cores->known == 0)
        return -1;
    return cores->core[(size_t)cores->known - 1 - worker % (size_t)cores->known];
}

int job_start_workers(struct node *node)
{
    struct cores cores;
    struct err err = {0};
    size_t count;
    int rc = 0;

    list_cores(&cores);
    count = worker_count(node, &cores);
    node->sleeps = workers_sleep(node, &cores, count);
    for (size_t i = 0; i < count && rc == 0; i++) {
        struct worker_conf conf = {
            .sleeps = node->sleeps,
            .core = choose_core(node, &cores, i),
            .event_fd = node->event_fd,
            .seed = randombytes_random(),
        };

        rc = worker_start(&node->workers[i], &conf, &err);
        node->worker_count += rc == 0;
    }
    return rc < 0 ? node_fail(node, 3, &err) : 0;
}
