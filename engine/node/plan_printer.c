/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan_printer.h"

#include "documents.h"
#include "schedule.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lister {
    struct records *records;
    const struct pattern_plan *plan;
    uint32_t n;
    uint32_t phase;
    uint64_t flow_count;
    struct pattern_flow *flows; /* of one rank, room for n */
};

static size_t own_flows(const struct lister *lister, uint32_t rank)
{
    return pattern_flows(lister->plan, lister->phase, rank, PATTERN_SENDS, lister->flows,
                         lister->n);
}

static uint32_t count_flows(const struct lister *lister)
{
    uint32_t count = 0;

    for (uint32_t rank = 0; rank < lister->n; rank++)
        count += (uint32_t)pattern_flows(lister->plan, lister->phase, rank, PATTERN_SENDS, NULL, 0);
    return count;
}

/* What one repetition of each phase is; steps and memory: of the rank with most, and memory_all:
 * of the ranks of the phase with most. */
static json_t *schedule_item(const struct lister *lister)
{
    uint32_t phases = pattern_phases(lister->plan);
    struct schedule all = {0};
    uint64_t memory_all = 0;

    for (uint32_t phase = 0; phase < phases; phase++) {
        uint64_t memory = 0;

        for (uint32_t rank = 0; rank < lister->n; rank++) {
            struct schedule own = pattern_schedule_sum(lister->plan, phase, rank);

            all.messages += own.messages;
            all.bytes += own.bytes;
            all.steps = own.steps > all.steps ? own.steps : all.steps;
            all.memory = own.memory > all.memory ? own.memory : all.memory;
            memory += own.memory;
        }
        memory_all = memory > memory_all ? memory : memory_all;
    }
    const struct record_row rows[] = {
        {"steps", json_integer(all.steps)},
        {"messages", record_u64(all.messages)},
        {"bytes", record_u64(all.bytes)},
        {"memory", record_u64(all.memory)},
        {"memory_all", record_u64(memory_all)},
        {"iterations", json_integer(pattern_iterations(lister->plan))},
        {NULL, NULL},
    };
    return record_fill(json_object(), rows);
}

static void list_headline(struct lister *lister)
{
    json_t *schedule = json_null();
    uint32_t phases = pattern_phases(lister->plan);

    lister->flow_count = 0;
    if (pattern_is_scheduled(lister->plan))
        schedule = schedule_item(lister);
    for (lister->phase = 0; lister->phase < phases; lister->phase++)
        lister->flow_count += count_flows(lister);
    const struct record_row rows[] = {
        {"ranks", json_integer(lister->n)},
        {"phases", json_integer(phases)},
        {"flows", record_u64(lister->flow_count)},
        {"schedule", schedule},
        {NULL, NULL},
    };
    record_write(lister->records, "plan", rows);
}

#define CANT_WRITE "standard output can't be written: %s"
#define FORWARDS (1u << 31) /* beside a source's number */

/* A phase: its number, how many flows, its name, and source and destination of each flow. */
static bool write_phase(const struct lister *lister)
{
    uint32_t head[2] = {htole32(lister->phase), htole32(count_flows(lister))};
    char name[64] = "";

    pattern_phase_name(lister->plan, lister->phase, name, sizeof name);
    if (fwrite(head, sizeof head, 1, stdout) != 1 || fwrite(name, sizeof name, 1, stdout) != 1)
        return false;
    for (uint32_t rank = 0; rank < lister->n; rank++) {
        size_t own = own_flows(lister, rank);

        for (size_t i = 0; i < own; i++) {
            uint32_t role = lister->flows[i].role == PATTERN_FORWARD ? FORWARDS : 0;
            uint32_t ends[2] = {htole32(lister->flows[i].src | role),
                                htole32(lister->flows[i].dst)};

            if (fwrite(ends, sizeof ends, 1, stdout) != 1)
                return false;
        }
    }
    return true;
}

static int list_phases(struct lister *lister, const struct doc_plan *doc, struct err *err)
{
    uint32_t phases = pattern_phases(lister->plan);
    uint32_t count = doc->phases != NULL ? doc->phases_count : phases;

    for (uint32_t i = 0; i < count; i++) {
        lister->phase = doc->phases != NULL ? doc->phases[i] : i;
        if (lister->phase >= phases)
            return err_set(err, -EINVAL, "plan.phases: %u: the plan has phases 0 to %u",
                           lister->phase, phases - 1);
        if (!write_phase(lister))
            return err_set(err, -EIO, CANT_WRITE, strerror(errno));
    }
    return fflush(stdout) == 0 ? 0 : err_set(err, -EIO, CANT_WRITE, strerror(errno));
}

int plan_print(struct records *records, const struct doc_plan *doc, struct err *err)
{
    struct pattern_plan *plan = NULL;
    struct lister lister = {.records = records, .n = doc->pattern.n};
    char why[512] = "";
    int rc = pattern_plan_make(&plan, &doc->pattern, why, sizeof why);

    if (rc < 0)
        return err_set(err, rc, "%s", why);
    lister.plan = plan;
    lister.flows = calloc(lister.n, sizeof *lister.flows);
    if (lister.flows == NULL) {
        rc = err_set(err, -ENOMEM, "out of memory");
    } else {
        if (doc->totals_only)
            list_headline(&lister);
        else
            rc = list_phases(&lister, doc, err);
    }
    free(lister.flows);
    pattern_plan_free(plan);
    return rc;
}
