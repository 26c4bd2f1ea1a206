/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The job document: which of its nodes this is, where all ports of the run are, and the workers.
 */
#include "job.h"

#include "clock.h"
#include "document_reader.h"
#include "event_loop.h"
#include "log.h"
#include "node.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static int compare_places(const void *a, const void *b)
{
    return strcmp(((const struct port_location *)a)->name, ((const struct port_location *)b)->name);
}

const struct port_location *job_find_place(const struct node *node, const char *name)
{
    struct port_location wanted = {.name = name};

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
                (struct port_location){job->nodes[n].ports[p].conf.name, n, p};
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
    log_setup(node->name, node->job->log);
    if (err.text[0] == '\0' && find_self(node, &err) == 0)
        index_places(node, &err);
    return err.text[0] != '\0' ? node_fail(node, 2, &err) : 0;
}

/* --- workers --- */

/* How many queues each port is opened with, as it says or as there are cores. A device of its own
 * may have fewer; of the others one is enough for what a kernel interface or a pipe carries. */
static void plan_queues(struct node *node, const struct cores_ask *ask)
{
    for (size_t i = 0; i < node->port_count; i++) {
        struct node_port *port = &node->ports[i];

        port->conf = port->doc->conf;
        port->conf.queues_at_most = port->conf.queues == 0;
        if (port->conf.queues == 0)
            port->conf.queues = port->conf.pci != NULL ? cores_queues(ask, node->port_count) : 1;
        port->first_lane = node->lane_count;
        node->lane_count += port->conf.queues;
    }
}

static int *list_lanes(const struct node *node)
{
    int *lanes = calloc(node->lane_count + 1, sizeof *lanes);

    for (size_t i = 0; lanes != NULL && i < node->port_count; i++) {
        const struct node_port *port = &node->ports[i];
        int numa = port->conf.pci != NULL ? cores_numa_of_pci(port->conf.pci) : -1;

        for (uint32_t queue = 0; queue < port->conf.queues; queue++)
            lanes[port->first_lane + queue] = numa;
    }
    return lanes;
}

static int choose_cores(struct node *node, struct err *err)
{
    const struct doc_node *self = &node->job->nodes[node->self];
    struct core usable[CORES_MAX];
    struct cores_ask ask = {
        .policy = node->job->worker,
        .usable = usable,
        .usable_count = cores_usable(usable, CORES_MAX, self->cores_count > 0),
        .named = self->cores,
        .named_count = self->cores_count,
    };
    int *lanes;
    int rc;

    plan_queues(node, &ask);
    lanes = list_lanes(node);
    if (lanes == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    ask.lanes = lanes;
    ask.lane_count = node->lane_count;
    rc = cores_choose(&node->cores, &ask, err);
    node->sleeps = node->cores.sleeps;
    free(lanes);
    return rc;
}

size_t job_worker_of(const struct node *node, uint32_t port, uint32_t queue)
{
    return node->cores.worker[node->ports[port].first_lane + queue];
}

int job_start_workers(struct node *node)
{
    struct err err = {0};
    int rc = choose_cores(node, &err);

    if (rc == 0)
        cores_yield(&node->cores);
    for (size_t i = 0; i < node->cores.workers && rc == 0; i++) {
        struct worker_conf conf = {
            .sleeps = node->cores.sleeps,
            .core = node->cores.core[i],
            .event_fd = node->event_fd,
            .seed = randombytes_random(),
        };

        rc = worker_start(&node->workers[i], &conf, &err);
        node->worker_count += rc == 0;
    }
    return rc < 0 ? node_fail(node, err_status(rc), &err) : 0;
}
