/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `execution` records: what each rank needed for the repetitions of its schedule.
 */
#include "report_execution.h"

#include "phase_run.h"
#include "report_common.h"

static void set_times(json_t *record, const struct execution *execution)
{
    const struct histogram *times = &execution->times;
    bool any = times->count > 0;

    json_object_set_new(record, "sum_ns", json_integer((json_int_t)execution->sum_ns));
    record_set_count(record, "least_ns", any ? (int64_t)times->least_ns : -1);
    record_set_count(record, "greatest_ns", any ? (int64_t)times->greatest_ns : -1);
}

/* What a transport that repeats what is lost can't lose is not counted. */
static void set_losses(json_t *record, const struct phase_run *run,
                       const struct execution *execution)
{
    bool loses = !run->trial->transport->knows_end;

    record_set_count(record, "messages_lost", loses ? (int64_t)execution->messages_lost : -1);
    record_set_count(record, "timeouts", loses ? (int64_t)execution->timeouts : -1);
}

static void set_counts(json_t *record, const struct phase_run *run,
                       const struct execution *execution)
{
    const struct schedule_options *options = &run->template.schedule;

    json_object_set_new(record, "repetitions", json_integer((json_int_t)execution->repetitions));
    json_object_set_new(record, "batch", json_integer(options->batch));
    json_object_set_new(record, "batches", json_integer((json_int_t)execution->batches));
    record_set_count(record, "verified", options->compute ? (int64_t)execution->verified : -1);
}

void report_execution(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct execution *execution;
    uint32_t parts, next = 0;

    if (lane->stepper == NULL)
        return;
    execution = &lane->stepper->execution;
    parts = report_histogram_parts(&execution->times);
    for (uint32_t part = 0; part < parts; part++) {
        json_t *record = report_new(run, "execution");
        char text[REPORT_HISTOGRAM_TEXT];

        histogram_write(&execution->times, &next, text, sizeof text);
        record_set_text(record, "network", lane->own->part->doc->network);
        record_set_text(record, "rank", lane->own->part->ranks[lane->own->rank]->name);
        set_counts(record, run, execution);
        set_times(record, execution);
        set_losses(record, run, execution);
        report_histogram_part(record, part, parts, text);
        record_send(run->trial->node->records, record);
    }
}
