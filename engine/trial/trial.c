/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A trial: all phases of one plan at one setting, barrier to barrier.
 */
#include "trial.h"

#include "clock.h"
#include "documents.h"
#include "event_loop.h"
#include "join.h"
#include "lanes.h"
#include "log.h"
#include "node.h"
#include "phase_run.h"
#include "phase_sequence.h"
#include "ports.h"
#include "registry.h"
#include "report.h"
#include "start_margin.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define PROBES_MOST 3 /* so often a plan is probed at most */

static int choose_transport(const struct trial *trial, struct trial_part *part, struct err *err)
{
    const struct doc_trial *doc = trial->doc;
    const char *name = part->doc->transport;

    part->transport = transport_find(name);
    if (part->transport == NULL)
        return err_set(err, -EINVAL, "trial %u: this build has no transport %s", doc->id, name);
    if (doc->phase.traffic == TRAFFIC_PINGPONG &&
        !transport_can(part->transport, TRANSPORT_PINGPONG))
        return err_set(err, -EINVAL, "trial %u: %s has no ping-pong", doc->id, name);
    if (doc->phase.traffic == TRAFFIC_SCHEDULE &&
        !transport_can(part->transport, TRANSPORT_SCHEDULES))
        return err_set(err, -EINVAL,
                       "trial %u: %s carries no dependent steps (sync: local): collectives run "
                       "over tcp and verbs",
                       doc->id, name);
    if (doc->phase.traffic == TRAFFIC_BURST && !transport_can(part->transport, TRANSPORT_BURSTS))
        return err_set(err, -EINVAL,
                       "trial %u: %s sends no bursts of a counted length: use transport dpdk",
                       doc->id, name);
    return 0;
}

/* The port behind a rank: it must exist, in the part's network, and have no other rank. */
static int find_rank(const struct trial *trial, struct trial_part *part, uint32_t rank,
                     struct err *err)
{
    const struct node *node = trial->node;
    const char *name = part->doc->ranks[rank];
    const struct port_location *place = node_find_port(node, name);
    const struct port_conf *conf;

    if (place == NULL)
        return err_set(err, -EINVAL, "trial %u: rank %u is port '%s', which no node has",
                       trial->doc->id, rank, name);
    conf = &node->job->nodes[place->node].ports[place->port].conf;
    if (strcmp(conf->network, part->doc->network) != 0)
        return err_set(err, -EINVAL, "trial %u: port %s is in network %s, not in %s",
                       trial->doc->id, name, conf->network, part->doc->network);
    if (trial->taken[place - node->places])
        return err_set(err, -EINVAL, "trial %u: port %s has two ranks", trial->doc->id, name);
    trial->taken[place - node->places] = true;
    part->ranks[rank] = place;
    return 0;
}

static int make_ranks(struct trial *trial, struct trial_part *part, struct err *err)
{
    int rc = 0;

    part->n = part->doc->ranks_count;
    part->ranks = calloc(part->n, sizeof(*part->ranks));
    if (part->ranks == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t rank = 0; rank < part->n && rc == 0; rank++)
        rc = find_rank(trial, part, rank, err);
    return rc;
}

/* Steps wait for each other in no other traffic, and nothing else does in this one. */
static int check_schedule(const struct trial *trial, const struct pattern_plan *plan,
                          struct err *err)
{
    const struct doc_trial *doc = trial->doc;
    bool wanted = doc->phase.traffic == TRAFFIC_SCHEDULE;

    if (wanted != pattern_is_scheduled(plan))
        return err_set(err, -EINVAL,
                       wanted ? "trial %u: traffic: schedule needs a pattern of steps, or local: "
                                "true with pattern %s"
                              : "trial %u: the steps of pattern %s need traffic: schedule",
                       doc->id, doc->pattern.name);
    if (doc->phase.schedule.compute && !pattern_verifies(plan))
        return err_set(err, -EINVAL,
                       "trial %u: pattern %s has no result that could be verified: leave compute "
                       "out",
                       doc->id, doc->pattern.name);
    return 0;
}

static int make_plan(struct trial *trial, struct trial_part *part, struct err *err)
{
    struct pattern_request request = trial->doc->pattern;
    char why[512] = "";
    int rc;

    request.n = part->n;
    rc = pattern_plan_make(&part->plan, &request, why, sizeof why);
    if (rc < 0)
        return err_set(err, rc, "trial %u: %s", trial->doc->id, why);
    rc = check_schedule(trial, part->plan, err);
    if (rc < 0)
        return rc;
    if (pattern_phases(part->plan) > trial->phase_count)
        trial->phase_count = pattern_phases(part->plan);
    return 0;
}

/* This node's ranks of a part, appended to trial->own, which has room for all its ports. */
static void find_own(struct trial *trial, uint32_t part_index)
{
    const struct trial_part *part = &trial->parts[part_index];

    for (uint32_t rank = 0; rank < part->n; rank++) {
        if (part->ranks[rank] == NULL || part->ranks[rank]->node != trial->node->self)
            continue;
        trial->own[trial->own_count++] = (struct local_rank){
            .part = part,
            .part_index = part_index,
            .rank = rank,
            .port = part->ranks[rank]->port,
        };
    }
}

static int make_parts(struct trial *trial, struct err *err)
{
    const struct doc_trial *doc = trial->doc;
    int rc = 0;

    trial->parts = calloc(doc->parts_count, sizeof *trial->parts);
    trial->own = calloc(trial->node->port_count + 1, sizeof *trial->own);
    trial->taken = calloc(trial->node->place_count + 1, sizeof *trial->taken);
    if (trial->parts == NULL || trial->own == NULL || trial->taken == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < doc->parts_count && rc == 0; i++) {
        trial->parts[i].doc = &doc->parts[i];
        rc = choose_transport(trial, &trial->parts[i], err);
        if (rc == 0)
            rc = make_ranks(trial, &trial->parts[i], err);
        if (rc == 0)
            rc = make_plan(trial, &trial->parts[i], err);
        if (rc == 0)
            find_own(trial, i);
    }
    for (unsigned i = 0; i < doc->phases_count && rc == 0; i++)
        if (doc->phases[i] >= trial->phase_count)
            rc = err_set(err, -EINVAL, "trial %u: phase %u: the plan has phases 0 to %u", doc->id,
                         doc->phases[i], trial->phase_count - 1);
    return rc;
}

static void free_parts(struct trial *trial)
{
    for (uint32_t i = 0; trial->parts != NULL && i < trial->doc->parts_count; i++) {
        free(trial->parts[i].ranks);
        pattern_plan_free(trial->parts[i].plan);
    }
    free(trial->parts);
    free(trial->own);
    free(trial->taken);
}

/* One descriptor for those of all ports. Without it lanes are connected by the clock, a little
 * later.
 */
static void watch_ports(struct trial *trial)
{
    for (size_t i = 0; i < trial->own_count; i++) {
        struct epoll_event event = {.events = EPOLLIN};
        int fd = trial->node->ports[trial->own[i].port].connect_fd;

        if (fd >= 0 && trial->connect_fd < 0)
            trial->connect_fd = epoll_create1(EPOLL_CLOEXEC);
        if (fd >= 0 && trial->connect_fd >= 0)
            epoll_ctl(trial->connect_fd, EPOLL_CTL_ADD, fd, &event);
    }
}

/* Opens the ports of this trial and tells the other nodes where they are. */
static int open_ports(struct trial *trial, struct err *err)
{
    struct node *node = trial->node;
    int rc;

    for (size_t i = 0; i < node->port_count; i++)
        node->ports[i].wanted = NULL;
    for (size_t i = 0; i < trial->own_count; i++)
        node->ports[trial->own[i].port].wanted = trial->own[i].part->transport;
    rc = ports_use(node, trial->parts[0].transport);
    if (rc < 0)
        return rc;
    control_forget(node->control); /* all are through the trial before, and need nothing of it */
    for (size_t i = 0; i < trial->own_count && rc == 0; i++) {
        const struct local_rank *own = &trial->own[i];
        struct node_port *port = &node->ports[own->port];
        struct port_facts facts = {0};

        own->part->transport->facts(port->open, &facts, false);
        port->address = facts.address;
        port->connect_fd = facts.connect_fd;
        rc = control_publish(node->control, trial_blob_id(trial, own->part_index, own->rank),
                             &port->address);
    }
    if (rc < 0)
        return err_set(err, rc, "trial %u: can't publish addresses: %s", trial->doc->id,
                       strerror(-rc));
    return ports_await_link(node);
}

/* Whether all partners can be reached. Frames are asked for again before a pair is called
 * unreachable; where a transport has connections, those ask again by themselves. */
static int check_connectivity(struct trial *trial, uint32_t *states)
{
    static const uint32_t probe = PHASE_PROBE;
    const struct doc_trial *doc = trial->doc;
    int rc;

    if (!doc->probe)
        return 0;
    trial->probes_left = trial_knows_end(trial) ? 1 : PROBES_MOST;
    do {
        trial->probes_left--;
        *states = 0;
        rc = phase_sequence(trial, &probe, 1, states);
    } while (rc == 0 && (*states & STATE_UNREACHABLE) != 0 && trial->probes_left > 0);
    return rc;
}

/* Ports open, their addresses published, their links up. */
static int prepare(struct trial *trial, struct err *err)
{
    int rc = make_parts(trial, err);

    if (rc == 0)
        rc = open_ports(trial, err);
    if (rc < 0)
        return rc;
    start_margin_init(&trial->start_margin, trial->node->cores.sleeps);
    watch_ports(trial);
    set_thread_priority(trial->node, true);
    return 0;
}

/* A trial that is not complete gives the run its status. */
static void report(const struct trial *trial, int rc, uint32_t states)
{
    const char *state = "partial";

    if (rc == 0 && (states & STATE_UNREACHABLE) != 0)
        state = "unreachable";
    else if (rc == 0 && (states & STATE_LANE_FAILED) == 0)
        state = "complete";
    report_trial(trial, state);
    if (strcmp(state, "complete") != 0 && trial->node->status == 0)
        trial->node->status = 3;
}

static void release(struct trial *trial)
{
    set_thread_priority(trial->node, false);
    if (trial->connect_fd >= 0)
        close(trial->connect_fd);
    free_parts(trial);
}

int trial_run(struct node *node, const struct doc_trial *doc)
{
    struct trial trial = {
        .node = node,
        .doc = doc,
        .begun_ns = clock_now(),
        .connect_fd = -1,
    };
    struct barrier_values values;
    uint32_t states = 0;
    int rc = prepare(&trial, &node->err);

    /* Nobody asks another for its address, or sends, before the ports of all nodes are open and
     * have a link. */
    barrier_values_clear(&values);
    if (rc == 0)
        rc = node_barrier(node, &values);
    if (rc == 0) {
        rc = check_connectivity(&trial, &states);
        if (rc == 0 && (states & STATE_UNREACHABLE) == 0)
            rc = phase_sequence(&trial, doc->phases,
                                doc->phases != NULL ? doc->phases_count : trial.phase_count,
                                &states);
        report(&trial, rc, states);
    }
    release(&trial);
    return rc;
}
