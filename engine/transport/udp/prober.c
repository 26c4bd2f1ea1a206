/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Round trips beside the load: probes leave at random times (probe_scheduler.h), whoever gets one
 * sends it back with the ranks changed about, and who sent it measures by its own stamp.
 */
#include "lane.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#define PROBED_FLOWS_MAX 4096u /* 18 KB each; with more none are probed */

int udp_prober_make(struct udp_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    const struct phase *phase = request->phase;
    struct probe_budget budget = {
        .line_rate_bps = request->line_rate_bps,
        .load = phase->load,
        .flows = request->send_count + request->receive_count,
    };
    uint64_t bytes = 0;

    lane->probe_ns = CLOCK_NEVER;
    lane->answers = phase->latency.probe_fps != 0 && phase->traffic != TRAFFIC_PROBE;
    if (!lane->answers || request->send_count == 0 || request->send_count > PROBED_FLOWS_MAX)
        return 0;
    for (uint32_t i = 0; i < lane->order_count; i++)
        bytes += lane->sizes[lane->order[i]].frame_bytes;
    assert(lane->order_count > 0);
    budget.frame_bytes = (uint32_t)(bytes / lane->order_count);
    lane->probe_fps = phase->latency.probe_fps > 0 ? phase->latency.probe_fps : probe_rate(&budget);
    lane->trips = calloc(request->send_count, sizeof *lane->trips);
    return lane->trips != NULL ? 0 : -ENOMEM;
}

/* In the window; where there is none but the whole phase, while the lane sends. */
void udp_prober_start(struct udp_lane *lane, uint64_t seed)
{
    const struct phase *phase = lane->lane.request.phase;
    bool window = phase->traffic == TRAFFIC_STREAM;

    if (lane->probe_fps <= 0)
        return;
    lane->probe_until_ns = window ? phase->close_ns : CLOCK_NEVER;
    probe_scheduler_begin(&lane->schedule, 1e9 / (lane->probe_fps * lane->lane.request.send_count),
                          window ? phase->open_ns : phase->start_ns, seed);
    lane->probe_ns = lane->schedule.next_ns;
}

/* A probe, or with both ranks changed about an answer. */
static struct signature sign(uint16_t tag, const struct signature *like, uint32_t sequence,
                             int64_t stamp_ns)
{
    struct signature signature = *like;
    struct signature_time time = signature_time(stamp_ns);

    signature.tag = htobe16(tag);
    signature_stamp(&signature, sequence, &time, signature_base(&signature) + time.sum);
    return signature;
}

static void send_probe(struct udp_lane *lane)
{
    struct udp_stream *stream = &lane->streams[lane->probe_at];
    const struct udp_size *size = &lane->sizes[lane->order[stream->probes % lane->order_count]];
    struct signature signature = sign(probe_tag(lane->lane.request.phase->tag), &stream->signature,
                                      stream->probes, clock_now() - lane->start_ns);

    if (!udp_send_probe(lane, &stream->to, &signature, size))
        return;
    stream->probes++;
    lane->under_way++;
}

int64_t udp_prober_turn(struct udp_lane *lane, int64_t now_ns)
{
    bool over = now_ns >= lane->probe_until_ns || now_ns >= lane->lane.stop_ns ||
                (lane->probe_until_ns == CLOCK_NEVER && lane->state != UDP_SENDS);

    if (lane->state == UDP_WAITS)
        return CLOCK_NEVER;
    if (lane->probe_ns == CLOCK_NEVER || over)
        return lane->probe_ns = CLOCK_NEVER;
    if (now_ns < lane->probe_ns)
        return lane->probe_ns;
    send_probe(lane);
    lane->probe_at = lane->probe_at + 1 < lane->lane.request.send_count ? lane->probe_at + 1 : 0;
    probe_scheduler_step(&lane->schedule, now_ns);
    return lane->probe_ns = lane->schedule.next_ns;
}

static void answer(struct udp_lane *lane, const struct signature *probe,
                   const struct udp_size *size)
{
    uint16_t source = lane->source_of[be16toh(probe->src)];
    struct signature back = {.src = probe->dst, .dst = probe->src};

    if (source == 0)
        return;
    back = sign(probe_answer_tag(lane->lane.request.phase->tag), &back, be32toh(probe->sequence),
                (int64_t)signature_ns(probe));
    (void)udp_send_probe(lane, &lane->sources[source - 1].from, &back, size);
}

static void measure(struct udp_lane *lane, const struct signature *back)
{
    uint16_t place = lane->stream_of[be16toh(back->src)];
    int64_t took_ns = clock_now() - lane->start_ns - (int64_t)signature_ns(back);
    struct udp_stream *stream;
    enum sequence_verdict verdict;

    if (place == 0)
        return;
    stream = &lane->streams[place - 1];
    verdict = sequence_judge(&stream->answers, &stream->past, be32toh(back->sequence));
    if (verdict != SEQUENCE_FRESH && verdict != SEQUENCE_REORDERED)
        return;
    histogram_add(&lane->trips[place - 1], took_ns > 0 ? (uint64_t)took_ns : 0);
    lane->under_way--;
}

void udp_prober_take(struct udp_lane *lane, const struct signature *signature,
                     const struct udp_size *size)
{
    if (be16toh(signature->tag) == probe_tag(lane->lane.request.phase->tag))
        answer(lane, signature, size);
    else
        measure(lane, signature);
}
