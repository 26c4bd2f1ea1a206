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
