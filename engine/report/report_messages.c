/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `samples`: the single times of round trips, 16 bytes each, in base64. `compute`: what a node
 * computed beside them. `execution`: what a rank needed for the repetitions of its schedule.
 */
#include "pingpong.h"
#include "report.h"
#include "report_record.h"

#include <sodium.h>

/* 10^8 samples of a rank are allowed: a record of them all would take gigabytes here, in the queue
 * and in the controller. */
#define SAMPLES_A_RECORD 4096u
#define TEXT_BYTES                                                                                 \
    sodium_base64_ENCODED_LEN(SAMPLES_A_RECORD * sizeof(struct sample),                            \
                              sodium_base64_VARIANT_ORIGINAL)

static_assert(sizeof(struct sample) == 16, "doc/reference/node-protocol.md");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a sample is written as it lies");

static void report_lane(const struct phase_run *run, const struct phase_lane *lane,
                        const struct pingpong *pingpong)
{
    const struct sample *samples = pingpong->samples;
    size_t count = pingpong->sample_count;

    for (size_t i = 0; i < count; i += SAMPLES_A_RECORD) {
        size_t some = count - i < SAMPLES_A_RECORD ? count - i : SAMPLES_A_RECORD;
        char text[TEXT_BYTES];
        const struct record_row rows[] = {
            {"network", report_network(lane)},
            {"rank", json_integer(lane->own->rank)},
            {"data", json_string(sodium_bin2base64(text, sizeof text, (const uint8_t *)&samples[i],
                                                   some * sizeof *samples,
                                                   sodium_base64_VARIANT_ORIGINAL))},
            {NULL, NULL},
        };

        report_write(run, "samples", rows);
    }
}

void report_samples(const struct phase_run *run)
{
    if (phase_is_probe(run))
        return;
    for (size_t i = 0; i < run->lane_count; i++)
        for (uint32_t q = 0; run->lanes[i].lane != NULL && q < run->lanes[i].queue_count; q++)
            if (run->lanes[i].queues[q].lane->pingpong != NULL)
                report_lane(run, &run->lanes[i], run->lanes[i].queues[q].lane->pingpong);
}

static json_t *compute_part(const struct compute_part *part)
{
    const struct histogram *pieces = &part->pieces;
    const struct record_row rows[] = {
        {"operations", record_u64(part->operations)},
        {"busy_ns", record_u64(pieces->sum_ns)},
        {"piece_p50_ns", record_u64(histogram_quantile(pieces, 0.5))},
        {"piece_p99_ns", record_u64(histogram_quantile(pieces, 0.99))},
        {"piece_max_ns", record_u64(pieces->max_ns)},
        {NULL, NULL},
    };

    return record_fill(json_object(), rows);
}

static void write_compute(const struct phase_run *run, const struct compute_part *alone,
                          const struct compute_part *beside)
{
    const struct record_row rows[] = {
        {"threads", record_u64(run->trial->node->worker_count)},
        {"share", json_real(run->trial->doc->compute)},
        {"compute_only", compute_part(alone)},
        {"concurrent", compute_part(beside)},
        {NULL, NULL},
    };

    report_write(run, "compute", rows);
}

void report_compute(const struct phase_run *run)
{
    struct compute_part alone = {0}, beside = {0};

    if (run->compute == NULL)
        return;
    compute_sum(run->compute, &alone, &beside);
    write_compute(run, &alone, &beside);
}

void report_execution(const struct phase_run *run, const struct phase_lane *lane)
{
    const struct schedule_options *options = &run->template.schedule;
    const struct execution *execution = &lane->executor->execution;
    const struct histogram *times = &execution->times;
    const struct record_row rows[] = {
        {"network", report_network(lane)},
        {"rank", report_rank(lane, lane->own->rank)},
        {"repetitions", record_u64(execution->repetitions)},
        {"batch", json_integer(options->batch)},
        {"batches", record_u64(execution->batches)},
        {"verified", report_count(options->compute, execution->verified)},
        {"sum_ns", record_u64(execution->sum_ns)},
        {"min_ns", report_extreme(times, times->min_ns)},
        {"max_ns", report_extreme(times, times->max_ns)},
        {"buckets", report_buckets(times)},
        {NULL, NULL},
    };

    report_write(run, "execution", rows);
}
