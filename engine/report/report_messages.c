/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `samples` records: the single times of messages there and back, 16 bytes each, in base64; and
 * `compute` records: what a node computed beside them.
 */
#include "report_messages.h"

#include "log.h"
#include "phase_run.h"
#include "report_common.h"

#include <sodium.h>
#include <string.h>

#define SAMPLES_A_RECORD 32u
#define TEXT_BYTES                                                                                 \
    sodium_base64_ENCODED_LEN(SAMPLES_A_RECORD * sizeof(struct sample),                            \
                              sodium_base64_VARIANT_ORIGINAL)

static_assert(sizeof(struct sample) == 16, "doc/node-protocol.md");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a sample is written as it lies");

static void report_lane(const struct phase_run *run, const struct phase_lane *lane,
                        struct lane *of_queue)
{
    const struct sample *samples = NULL;
    size_t count = run->trial->transport->samples(of_queue, &samples);

    for (size_t i = 0; i < count; i += SAMPLES_A_RECORD) {
        size_t some = count - i < SAMPLES_A_RECORD ? count - i : SAMPLES_A_RECORD;
        json_t *record = report_new(run, "samples");
        char text[TEXT_BYTES];

        sodium_bin2base64(text, sizeof text, (const uint8_t *)&samples[i], some * sizeof *samples,
                          sodium_base64_VARIANT_ORIGINAL);
        record_set_text(record, "network", lane->own->part->doc->network);
        json_object_set_new(record, "rank", json_integer(lane->own->rank));
        json_object_set_new(record, "data", json_string(text));
        record_send(run->trial->node->records, record);
    }
}

void report_samples(const struct phase_run *run)
{
    if (run->trial->transport->samples == NULL || phase_is_probe(run))
        return;
    for (size_t i = 0; i < run->lane_count; i++)
        for (uint32_t q = 0; run->lanes[i].lane != NULL && q < run->lanes[i].queue_count; q++)
            report_lane(run, &run->lanes[i], run->lanes[i].queues[q].lane);
}

static void set_part(json_t *record, const char *name, const struct compute_part *part)
{
    const struct histogram *pieces = &part->pieces;

    json_object_set_new(record, name,
                        json_pack("{s:I, s:I, s:I, s:I, s:I}", "operations",
                                  (json_int_t)part->operations, "busy_ns",
                                  (json_int_t)pieces->sum_ns, "piece_p50_ns",
                                  (json_int_t)histogram_quantile(pieces, 0.5), "piece_p99_ns",
                                  (json_int_t)histogram_quantile(pieces, 0.99), "piece_most_ns",
                                  (json_int_t)pieces->greatest_ns));
}

void report_compute(const struct phase_run *run)
{
    struct compute_part alone = {0}, beside = {0};
    json_t *record;

    if (run->compute == NULL)
        return;
    compute_sum(run->compute, &alone, &beside);
    record = report_new(run, "compute");
    json_object_set_new(record, "threads",
                        json_integer((json_int_t)run->trial->node->worker_count));
    json_object_set_new(record, "share", json_real(run->trial->doc->pingpong->compute));
    set_part(record, "alone", &alone);
    set_part(record, "beside", &beside);
    record_send(run->trial->node->records, record);
}

void report_compute_failed(const struct phase_run *run, int code)
{
    log_error("trial %u: no computing beside the messages: %s", run->trial->doc->id,
              strerror(-code));
}
