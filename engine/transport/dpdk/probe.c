/* SPDX-License-Identifier: BSD-3-Clause */
#include "probe.h"

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
        memcpy(frame + headers, fill_table()->bytes, length - headers);
    memcpy(frame, template.bytes, headers);
    signature_stamp(signature, probe->sequence, &time, signature_base(signature) + time.sum);
}
