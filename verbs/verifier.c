/* SPDX-License-Identifier: BSD-3-Clause */
#include "verifier.h"

#include "byte_compare.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <string.h>

#define SEEN_BITS 64
#define SEQUENCE_END (offsetof(struct verbs_header, sequence) + sizeof(uint32_t))

void verbs_verify_start(struct verbs_verifier *verifier)
{
    verbs_cursor_start(&verifier->at, &verifier->script);
    verifier->missed = 0;
    verifier->seen = 0;
}

static uint64_t payload_wrong(const struct verbs_verifier *verifier, const uint8_t *data,
                              uint32_t bytes, uint32_t place)
{
    const uint8_t *payload = data + VERBS_HEADER_BYTES;

    if (bytes <= VERBS_HEADER_BYTES)
        return 0;
    bytes -= VERBS_HEADER_BYTES;
    if (!verifier->whole && bytes > VERBS_SMALL && verifier->at.sequence % VERBS_WHOLE_EVERY != 0 &&
        verbs_payload_samples_right(payload, bytes, place, verifier->at.sequence))
        return 0;
    return verbs_payload_wrong(payload, bytes, place);
}

/* Random sizes have to be drawn one by one: whoever sends a number that is further ahead has forged
 * it, or lost more than a second of small messages. */
#define DRAWN_JUMP_MOST (1u << 24)

/* Jumps to the message that came: those between are missing, so far. */
static void jump(struct verbs_verifier *verifier, uint32_t sequence)
{
    uint32_t gap = sequence - (uint32_t)verifier->at.sequence;

    verifier->missed += gap;
    verifier->seen = gap < SEEN_BITS ? verifier->seen << gap : 0;
    verbs_cursor_skip_rounds(&verifier->at, &verifier->script, gap);
    while ((uint32_t)verifier->at.sequence != sequence && verifier->at.length > 0)
        verbs_cursor_next(&verifier->at, &verifier->script);
}

void verbs_verify_skip(struct verbs_verifier *verifier, uint32_t count)
{
    if (count > 0)
        jump(verifier, (uint32_t)verifier->at.sequence + count);
}

/* A message too short to hold its sequence is taken for the next one of its length. */
static void jump_to_length(struct verbs_verifier *verifier, uint32_t bytes)
{
    struct verbs_cursor at = verifier->at;

    for (uint32_t i = 0; i < verifier->script.size_count; i++) {
        if (at.length == bytes) {
            verbs_verify_skip(verifier, i);
            return;
        }
        verbs_cursor_next(&at, &verifier->script);
    }
}

/* A message from before the one that is due: it came late, or twice. */
static void count_late(struct verbs_verifier *verifier, uint32_t behind, uint32_t bytes)
{
    struct flow_side *side = verifier->side;
    uint64_t bit = behind <= SEEN_BITS ? UINT64_C(1) << (behind - 1) : 0;

    if (bit == 0) {
        side->late++;
        return;
    }
    if ((verifier->seen & bit) != 0) {
        side->duplicated++;
        return;
    }
    verifier->seen |= bit;
    verifier->missed -= verifier->missed > 0;
    side->reordered++;
    side->live.messages++;
    side->live.payload_bytes += bytes;
}

static bool same_stream(const struct verbs_header *here, const struct verbs_header *due)
{
    return here->kind == due->kind && here->stream == due->stream && here->tag == due->tag &&
           here->src == due->src && here->dst == due->dst;
}

static void account(struct verbs_verifier *verifier, uint32_t bytes, uint64_t wrong)
{
    struct flow_side *side = verifier->side;

    side->live.payload_bytes += bytes - wrong;
    side->live.messages += wrong == 0;
    side->corrupted += wrong;
    verifier->seen = verifier->seen << 1 | 1;
    verbs_cursor_next(&verifier->at, &verifier->script);
}

bool verbs_verify_gap(struct verbs_verifier *verifier, uint32_t sequence, uint32_t bytes)
{
    uint32_t ahead = sequence - (uint32_t)verifier->at.sequence;

    if (ahead == 0)
        return false;
    if ((int32_t)ahead < 0) {
        count_late(verifier, -ahead, bytes); /* modulo 2^32 */
        return true;
    }
    if (verifier->script.drawn.most > 0 && ahead > DRAWN_JUMP_MOST) {
        verifier->count->foreign++;
        return true;
    }
    jump(verifier, sequence);
    return false;
}

bool verbs_verify_message(struct verbs_verifier *verifier, const uint8_t *data, uint32_t bytes)
{
    uint32_t head = bytes < VERBS_HEADER_BYTES ? bytes : VERBS_HEADER_BYTES;
    struct verbs_header due = verbs_header_of(&verifier->at, &verifier->script, verifier->at.place);
    struct verbs_header here = due;
    uint64_t wrong;

    memcpy(&here, data, head);
    if (!verifier->reliable) {
        if (!same_stream(&here, &due)) {
            verifier->count->foreign++;
            return false;
        }
        if (head < SEQUENCE_END)
            jump_to_length(verifier, bytes);
        else if (verbs_verify_gap(verifier, ntohl(here.sequence), bytes))
            return true;
        due = verbs_header_of(&verifier->at, &verifier->script, verifier->at.place);
        if (head < SEQUENCE_END)
            due.sequence = here.sequence;
    }
    if (bytes != verifier->at.length)
        wrong = bytes;
    else
        wrong = differ_bytes(data, (const uint8_t *)&due, head) +
                payload_wrong(verifier, data, bytes, ntohs(due.place));
    if (here.sequence != due.sequence &&
        (int32_t)(ntohl(here.sequence) - (uint32_t)verifier->at.sequence) < 0)
        verifier->side->reordered++;
    account(verifier, bytes, wrong);
    return true;
}
