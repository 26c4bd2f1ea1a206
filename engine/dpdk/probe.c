/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

double probe_rate(const struct probe_budget *budget)
{
    double bits = 8.0 * (budget->frame_bytes + FRAME_OVERHEAD_L1);
    double frames = (double)budget->line_rate_bps / bits, rate;

    if (budget->line_rate_bps == 0 && budget->load.unlimited)
        return PROBE_FLOW_FPS;
    if (budget->line_rate_bps == 0)
        frames = budget->load.rate_bps > 0 ? budget->load.rate_bps / bits : budget->load.rate_fps;
    rate = PROBE_LOAD_SHARE * frames / (budget->flows > 0 ? budget->flows : 1);
    return rate < PROBE_FLOW_FPS ? rate : PROBE_FLOW_FPS;
}

/* xorshift64* (Vigna 2016), 0 to below 1. */
static double draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (double)(*state * 0x2545f4914f6cdd1d >> 11) / (double)(UINT64_C(1) << 53);
}

void probe_schedule_begin(struct probe_schedule *schedule, double rate_fps, int64_t begin_ns,
                          uint64_t seed)
{
    *schedule = (struct probe_schedule){.gap_ns = 1e9 / rate_fps, .random = seed | 1};
    schedule->next_ns = begin_ns + (int64_t)(draw(&schedule->random) * schedule->gap_ns);
}

void probe_schedule_step(struct probe_schedule *schedule, int64_t now_ns)
{
    int64_t from_ns = schedule->next_ns;

    if ((double)(now_ns - from_ns) > schedule->gap_ns)
        from_ns = now_ns;
    schedule->next_ns = from_ns + (int64_t)((0.5 + draw(&schedule->random)) * schedule->gap_ns);
}

void probe_write(const struct probe *probe, uint8_t *frame)
{
    struct frame_shape shape = *probe->shape;
    uint32_t headers = shape.payload + SIGNATURE_BYTES, length = probe->size - FRAME_FCS;
    struct signature_time time = signature_time((int64_t)probe->stamp_ns);
    struct signature *signature = (struct signature *)(frame + shape.payload);
    struct frame_template template;

    shape.tag = probe->tag;
    frame_template(&template, &shape, probe->ends, probe->udp_source, probe->size);
    if (length > headers)
        memcpy(frame + headers, frame_fill()->bytes, length - headers);
    memcpy(frame, template.bytes, headers);
    signature_stamp(signature, probe->sequence, &time, signature_base(signature) + time.sum);
}
