/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include <errno.h>
#include <stdlib.h>

#define WORD 64u

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

/* --- how messages are cut --- */

bool message_cut(struct message_cut *cut, const struct frame_shape *shape, uint32_t frame_bytes)
{
    cut->head = shape->payload + SIGNATURE_BYTES + SEGMENT_BYTES;
    cut->least = frame_least(shape) - FRAME_FCS;
    if (cut->least < cut->head)
        cut->least = cut->head;
    if (frame_bytes <= cut->head + FRAME_FCS || frame_bytes < cut->least + FRAME_FCS)
        return false;
    cut->room = frame_bytes - FRAME_FCS - cut->head;
    return true;
}

/* --- putting them together --- */

int assembly_make(struct assembly *assembly, uint32_t segments)
{
    *assembly = (struct assembly){.room = segments};
    assembly->seen = calloc(segments / WORD + 1, sizeof *assembly->seen);
    return assembly->seen != NULL ? 0 : -ENOMEM;
}

void assembly_free(struct assembly *assembly)
{
    free(assembly->seen);
    assembly->seen = NULL;
}

void assembly_begin(struct assembly *assembly, uint64_t number, uint32_t segments)
{
    assert(number >= assembly->next && segments > 0 && segments <= assembly->room);
    assembly->broken += assembly->missing > 0;
    assembly->next = number + 1;
    assembly->segments = assembly->missing = segments;
    assembly->expected = 0;
    memset(assembly->seen, 0, (segments / WORD + 1) * sizeof *assembly->seen);
}

void assembly_give_up(struct assembly *assembly)
{
    assembly->broken += assembly->missing > 0;
    assembly->segments = assembly->missing = 0;
}

enum sequence_verdict assembly_take(struct assembly *assembly, uint64_t number, uint32_t segment)
{
    uint64_t bit = UINT64_C(1) << segment % WORD;
    uint64_t *word;

    if (assembly->segments == 0 || number + 1 != assembly->next)
        return SEQUENCE_LATE;
    assert(segment < assembly->segments);
    word = &assembly->seen[segment / WORD];
    if (*word & bit)
        return SEQUENCE_DUPLICATE;
    *word |= bit;
    assembly->missing--;
    if (segment < assembly->expected)
        return SEQUENCE_REORDERED;
    assembly->expected = segment + 1;
    return SEQUENCE_FRESH;
}
