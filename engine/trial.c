/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A trial: all phases of one plan at one setting, barrier to barrier.
 */
#include "trial.h"

#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int make_ranks(struct trial *trial, struct trial_part *part, struct err *err)
{
    const struct doc_part *doc = part->doc;

    part->n = doc->ranks_count;
    part->ranks = calloc(part->n, sizeof(*part->ranks));
    if (part->ranks == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t rank = 0; rank < part->n; rank++) {
        part->ranks[rank] = job_find_place(trial->node, doc->ranks[rank]);
        if (part->ranks[rank] == NULL)
            return err_set(err, -EINVAL, "trial %u: rank %u is port '%s', which no node has",
                           trial->doc->id, rank, doc->ranks[rank]);
    }
    return 0;
}

static int make_plan(struct trial *trial, struct trial_part *part, struct err *err)
{
    const struct doc_pattern *doc = &trial->doc->pattern;
    struct pattern_ranks *groups = calloc(doc->groups_count + 1, sizeof *groups);
    struct pattern_request request;
    char why[256] = "";
    int rc;

    if (groups == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    doc_pattern_request(doc, part->n, trial->doc->seed, groups, &request);
    rc = pattern_plan_make(&part->plan, &request, why, sizeof why);
    free(groups);
    if (rc < 0)
        return err_set(err, rc, "trial %u: %s", trial->doc->id, why);
    if (pattern_phases(part->plan) > trial->phase_count)
        trial->phase_count = pattern_phases(part->plan);
    return 0;
}

/* This node's ranks of a part, appended to trial->own, which has room for all its ports. */
static void find_own(struct trial *trial, uint32_t part_index)
{
    const struct trial_part *part = &trial->parts[part_index];

    for (uint32_t rank = 0; rank < part->n; rank++) {
        if (part->ranks[rank]->node != trial->node->self)
            continue;
        if (trial->own_count == trial->node->port_count)
            return;
        trial->own[trial->own_count++] = (struct own_rank){
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
    if (trial->parts == NULL || trial->own == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (uint32_t i = 0; i < doc->parts_count && rc == 0; i++) {
        trial->parts[i].doc = &doc->parts[i];
        rc = make_ranks(trial, &trial->parts[i], err);
        if (rc == 0)
            rc = make_plan(trial, &trial->parts[i], err);
        if (rc == 0)
            find_own(trial, i);
    }
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
}

uint64_t trial_blob_id(const struct trial *trial, uint32_t part, uint32_t rank)
{
    return (uint64_t)trial->doc->id << 32 | (uint64_t)part << 24 | rank;
}

/* Opens the ports of this trial and tells the other nodes where they are. */
static int open_ports(struct trial *trial, struct err *err)
{
    struct node *node = trial->node;
    uint32_t *ports = calloc(trial->own_count + 1, sizeof *ports);
    int rc;

    if (ports == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < trial->own_count; i++)
        ports[i] = trial->own[i].port;
    rc = ports_use(node, trial->transport, ports, trial->own_count);
    free(ports);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < trial->own_count && rc == 0; i++) {
        const struct own_rank *own = &trial->own[i];
        struct blob blob = {0};

        trial->transport->address(node->ports[own->port].open, &blob);
        rc =
            control_publish(node->control, trial_blob_id(trial, own->part_index, own->rank), &blob);
    }
    if (rc < 0)
        return err_set(err, rc, "trial %u: can't publish addresses: %s", trial->doc->id,
                       strerror(-rc));
    return ports_await_link(node);
}

static int run_phases(struct trial *trial, uint32_t *states)
{
    const struct doc_trial *doc = trial->doc;
    uint32_t count = doc->phases != NULL ? doc->phases_count : trial->phase_count;
    int rc = 0;

    for (uint32_t i = 0; i < count && rc == 0; i++) {
        uint32_t number = doc->phases != NULL ? doc->phases[i] : i;
        struct err err = {0};

        if (number >= trial->phase_count) {
            err_set(&err, -EINVAL, "trial %u: phase %u: the plan has phases 0 to %u", doc->id,
                    number, trial->phase_count - 1);
            return node_fail(trial->node, 2, &err);
        }
        rc = phase_perform(trial, number, states);
    }
    return rc;
}

int trial_run(struct node *node, const struct doc_trial *doc)
{
    struct trial trial = {
        .node = node,
        .doc = doc,
        .transport = transport_find(doc->transport),
        .begun_ns = clock_now(),
    };
    struct err err = {0};
    uint32_t states = 0;
    int rc;

    if (trial.transport == NULL)
        rc = err_set(&err, -EINVAL, "trial %u: this build has no transport %s", doc->id,
                     doc->transport);
    else
        rc = make_parts(&trial, &err);
    if (rc == 0)
        rc = open_ports(&trial, &err);
    if (rc == 0 && (doc->probe == NULL || *doc->probe))
        rc = phase_perform(&trial, PHASE_PROBE, &states);
    if (rc == 0 && (states & STATE_UNREACHABLE) != 0) {
        report_trial(&trial, "unreachable");
        node->status = node->status == 0 ? 3 : node->status;
    } else if (rc == 0) {
        rc = run_phases(&trial, &states);
        report_trial(&trial, rc == 0 ? "complete" : "partial");
    }
    if (rc < 0 && err.text[0] != '\0')
        rc = node_fail(node, 3, &err);
    free_parts(&trial);
    return rc;
}
