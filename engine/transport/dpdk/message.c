/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include <errno.h>
#include <stdlib.h>

/* --- on the wire --- */

void segment_write(struct segment *segment, uint32_t number)
{
    uint32_t field = htobe32(number);
    uint64_t sum = fill_table()->sum[SEGMENT_BYTES];

    sum += (uint16_t)~checksum_fold(signature_words(field)); /* one's complement: less it */
    segment->number = field;
    segment->balance = checksum_fold(sum);
}

bool segment_sound(const struct segment *segment)
{
    uint64_t sum = checksum_add(0, segment, sizeof *segment);

    return sum % 0xffff == fill_table()->sum[SEGMENT_BYTES] % 0xffffu;
}

/* --- segmentation --- */

bool segmentation_make(struct segmentation *segmentation, const struct frame_shape *shape,
                       uint32_t frame_bytes)
{
    segmentation->head = shape->payload + SIGNATURE_BYTES + SEGMENT_BYTES;
    segmentation->least = frame_least(shape) - FRAME_FCS;
    if (segmentation->least < segmentation->head)
        segmentation->least = segmentation->head;
    if (frame_bytes <= segmentation->head + FRAME_FCS ||
        frame_bytes < segmentation->least + FRAME_FCS)
        return false;
    segmentation->room = frame_bytes - FRAME_FCS - segmentation->head;
    return true;
}

/* --- putting them together --- */

void segment_set_begin(struct segment_set *set, uint64_t *seen, uint32_t segments)
{
    *set = (struct segment_set){.missing = segments};
    memset(seen, 0, segment_words(segments) * sizeof *seen);
}

enum sequence_verdict segment_set_take(struct segment_set *set, uint64_t *seen, uint32_t segment)
{
    uint64_t bit = UINT64_C(1) << segment % 64;

    if (seen[segment / 64] & bit)
        return SEQUENCE_DUPLICATE;
    seen[segment / 64] |= bit;
    assert(set->missing > 0);
    set->missing--;
    if (segment < set->expected)
        return SEQUENCE_REORDERED;
    set->expected = segment + 1;
    return SEQUENCE_FRESH;
}

int reassembly_make(struct reassembly *reassembly, uint32_t segments)
{
    *reassembly = (struct reassembly){.room = segments};
    reassembly->seen = calloc(segment_words(segments), sizeof *reassembly->seen);
    return reassembly->seen != NULL ? 0 : -ENOMEM;
}

void reassembly_free(struct reassembly *reassembly)
{
    free(reassembly->seen);
    reassembly->seen = NULL;
}

void reassembly_begin(struct reassembly *reassembly, uint64_t number, uint32_t segments)
{
    assert(number >= reassembly->next && segments > 0 && segments <= reassembly->room);
    reassembly->broken += reassembly->set.missing > 0;
    reassembly->next = number + 1;
    reassembly->segments = segments;
    segment_set_begin(&reassembly->set, reassembly->seen, segments);
}

void reassembly_give_up(struct reassembly *reassembly)
{
    reassembly->broken += reassembly->set.missing > 0;
    reassembly->segments = reassembly->set.missing = 0;
}

enum sequence_verdict reassembly_take(struct reassembly *reassembly, uint64_t number,
                                      uint32_t segment)
{
    if (reassembly->segments == 0 || number + 1 != reassembly->next)
        return SEQUENCE_LATE;
    assert(segment < reassembly->segments);
    return segment_set_take(&reassembly->set, reassembly->seen, segment);
}
