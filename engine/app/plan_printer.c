/* SPDX-License-Identifier: BSD-3-Clause */
#include "app.h"

#include "documents.h"
#include "record_writer.h"
#include "schedule.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORWARDS (1u << 31) /* flag in a source's number */

static uint32_t count_flows(const struct pattern_plan *plan, uint32_t n, uint32_t phase)
{
    size_t count = 0;

    for (uint32_t rank = 0; rank < n; rank++)
        count += pattern_flows(plan, phase, rank, PATTERN_SENDS, NULL, 0);
    return (uint32_t)count;
}

/* Sum the schedules of all ranks, for one repetition of each phase. `steps` and `memory` are maxima
 * over the ranks; `memory_all` is the memory of all ranks together, in the phase that needs
 * most. */
static int sum_schedules(const struct pattern_plan *plan, uint32_t n, json_t **sums)
{
    struct schedule all = {0};
    uint64_t memory_all = 0;

    for (uint32_t phase = 0; phase < pattern_phases(plan); phase++) {
        uint64_t memory = 0;

        for (uint32_t rank = 0; rank < n; rank++) {
            struct schedule own;
            int rc = pattern_schedule(plan, phase, rank, &own);

            if (rc < 0)
                return rc;
            all.messages += own.messages;
            all.bytes += own.bytes;
            all.steps = own.steps > all.steps ? own.steps : all.steps;
            all.memory = own.memory > all.memory ? own.memory : all.memory;
            memory += own.memory;
            schedule_free(&own);
        }
        memory_all = memory > memory_all ? memory : memory_all;
    }
    *sums = record_fill(
        json_object(),
        RECORD_ROWS({"steps", json_integer(all.steps)}, {"messages", record_u64(all.messages)},
                    {"bytes", record_u64(all.bytes)}, {"memory", record_u64(all.memory)},
                    {"memory_all", record_u64(memory_all)},
                    {"iterations", json_integer(pattern_iterations(plan))}));
    return 0;
}

static int print_totals(struct records *records, const struct pattern_plan *plan, uint32_t n,
                        struct err *err)
{
    json_t *schedule = NULL;
    uint64_t flows = 0;

    for (uint32_t phase = 0; phase < pattern_phases(plan); phase++)
        flows += count_flows(plan, n, phase);
    if (pattern_is_scheduled(plan) && sum_schedules(plan, n, &schedule) < 0)
        return err_set(err, -ENOMEM, "out of memory");
    record_write(records, "plan",
                 RECORD_ROWS({"ranks", json_integer(n)},
                             {"phases", json_integer(pattern_phases(plan))},
                             {"flows", record_u64(flows)},
                             {"schedule", schedule != NULL ? schedule : json_null()}));
    return 0;
}

/* Print each phase: its number, the number of flows, its name, source and destination of each flow.
 */
static int print_phases(const struct pattern_plan *plan, const struct doc_plan *doc,
                        struct err *err)
{
    uint32_t n = doc->pattern.n, phases = pattern_phases(plan);
    uint32_t count = doc->phases != NULL ? doc->phases_count : phases;
    struct pattern_flow *flows = calloc(n, sizeof *flows); /* of one rank */
    int rc = flows != NULL ? 0 : err_set(err, -ENOMEM, "out of memory");

    for (uint32_t i = 0; i < count && rc == 0 && !ferror(stdout); i++) {
        uint32_t phase = doc->phases != NULL ? doc->phases[i] : i;
        uint32_t head[2] = {htole32(phase), 0};
        char name[64] = "";

        if (phase >= phases) {
            rc = err_set(err, -EINVAL,
                         "plan.phases: there is no phase %u: the plan has phases 0 to %u", phase,
                         phases - 1);
            break;
        }
        head[1] = htole32(count_flows(plan, n, phase));
        pattern_phase_name(plan, phase, name, sizeof name);
        fwrite(head, sizeof head, 1, stdout);
        fwrite(name, sizeof name, 1, stdout);
        for (uint32_t rank = 0; rank < n; rank++) {
            size_t own = pattern_flows(plan, phase, rank, PATTERN_SENDS, flows, n);

            for (size_t f = 0; f < own; f++) {
                uint32_t role = flows[f].role == PATTERN_FORWARD ? FORWARDS : 0;
                uint32_t ends[2] = {htole32(flows[f].src | role), htole32(flows[f].dst)};

                fwrite(ends, sizeof ends, 1, stdout);
            }
        }
    }
    if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
        rc = err_set(err, -EIO, "standard output can't be written: %s", strerror(errno));
    free(flows);
    return rc;
}

int plan_print(struct records *records, const struct doc_plan *doc, struct err *err)
{
    struct pattern_plan *plan = NULL;
    char why[512] = "";
    int rc = pattern_plan_make(&plan, &doc->pattern, why, sizeof why);

    if (rc < 0)
        return err_set(err, rc, "%s", why);
    if (doc->totals_only)
        rc = print_totals(records, plan, doc->pattern.n, err);
    else
        rc = print_phases(plan, doc, err);
    pattern_plan_free(plan);
    return rc;
}
