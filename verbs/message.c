/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include "byte_compare.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

#define SAMPLES 8u
#define WORD 8u
#define SEEN_BITS 64
#define SEQUENCE_END (offsetof(struct verbs_header, sequence) + sizeof(uint32_t))

static uint8_t sequence_bytes[2 * VERBS_PERIOD];

/* splitmix64 (Steele, Lea, Flood 2014): the same bytes on every machine, and none of them twice. */
static uint64_t next_word(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void verbs_pattern_init(void)
{
    uint64_t state = UINT64_C(0x5377697463684265);

    for (size_t i = 0; i < VERBS_PERIOD; i++)
        sequence_bytes[i] = (uint8_t)(next_word(&state) >> 56);
    for (size_t i = VERBS_PERIOD; i < sizeof sequence_bytes; i++)
        sequence_bytes[i] = sequence_bytes[i - VERBS_PERIOD];
}

void verbs_payload_fill(uint8_t *data, size_t bytes, uint32_t place)
{
    for (size_t done = 0; done < bytes; done += VERBS_PERIOD) {
        size_t left = bytes - done;

        memcpy(data + done, sequence_bytes + place, left < VERBS_PERIOD ? left : VERBS_PERIOD);
    }
}

uint64_t verbs_payload_wrong(const uint8_t *data, size_t bytes, uint32_t place)
{
    uint64_t wrong = 0;

    for (size_t done = 0; done < bytes; done += VERBS_PERIOD) {
        size_t left = bytes - done;

        wrong += differ_bytes(data + done, sequence_bytes + place,
                              left < VERBS_PERIOD ? left : VERBS_PERIOD);
    }
    return wrong;
}

static uint8_t payload_byte(uint32_t place, uint64_t offset)
{
    return sequence_bytes[(place + offset) % VERBS_PERIOD];
}

uint8_t verbs_last_byte(const struct verbs_header *header, uint32_t length)
{
    if (length <= VERBS_HEADER_BYTES)
        return ((const uint8_t *)header)[length - 1];
    return payload_byte(ntohs(header->place), length - VERBS_HEADER_BYTES - 1);
}

/* --- script and cursor --- */

void verbs_cursor_start(struct verbs_cursor *at, const struct verbs_script *script)
{
    *at = (struct verbs_cursor){0};
    at->length = verbs_cursor_length(at, script);
}

static uint64_t eof_check(const struct verbs_eof *eof)
{
    uint64_t state = eof->messages ^ (uint64_t)eof->tag << 32 ^ (uint64_t)eof->src << 16 ^
                     eof->dst ^ (uint64_t)eof->stream << 56;

    next_word(&state);
    state ^= eof->bytes;
    return next_word(&state);
}

struct verbs_eof verbs_eof_make(const struct verbs_script *script, uint64_t messages,
                                uint64_t bytes)
{
    struct verbs_eof eof = {
        .kind = VERBS_KIND_EOF,
        .stream = (uint8_t)script->stream,
        .tag = htons(script->tag),
        .src = htons(script->src),
        .dst = htons(script->dst),
        .messages = htobe64(messages),
        .bytes = htobe64(bytes),
    };

    eof.check = eof_check(&eof);
    return eof;
}

bool verbs_eof_read(const struct verbs_eof *eof, const struct verbs_script *script,
                    uint64_t *messages, uint64_t *bytes)
{
    struct verbs_eof here;
    struct verbs_eof due;

    memcpy(&here, eof, sizeof here);
    due = verbs_eof_make(script, be64toh(here.messages), be64toh(here.bytes));
    if (memcmp(&here, &due, sizeof here) != 0)
        return false;
    *messages = be64toh(here.messages);
    *bytes = be64toh(here.bytes);
    return true;
}

struct verbs_credit_datagram verbs_credit_datagram_make(const struct verbs_script *script,
                                                        uint64_t word)
{
    return (struct verbs_credit_datagram){
        .kind = VERBS_KIND_CREDIT,
        .stream = (uint8_t)script->stream,
        .tag = htons(script->tag),
        .src = htons(script->src),
        .dst = htons(script->dst),
        .word = htobe64(word),
    };
}

bool verbs_credit_datagram_read(const struct verbs_credit_datagram *credit,
                                const struct verbs_script *script, uint64_t *word)
{
    struct verbs_credit_datagram here;
    struct verbs_credit_datagram due;

    memcpy(&here, credit, sizeof here);
    *word = be64toh(here.word);
    due = verbs_credit_datagram_make(script, *word);
    return memcmp(&here, &due, sizeof here) == 0 && verbs_credit_is_of(*word, script->tag);
}

/* --- the verifying end --- */

void verbs_verify_start(struct verbs_verifier *verifier)
{
    verbs_cursor_start(&verifier->at, &verifier->script);
    verifier->missed = 0;
    verifier->seen = 0;
}

/* Nine words of the payload; the eight move on by one word from message to message. */
static bool samples_right(const uint8_t *payload, uint32_t bytes, uint32_t place, uint64_t turn)
{
    uint32_t sector = bytes / SAMPLES;
    uint32_t within = (uint32_t)(turn * WORD % (sector - WORD + 1));

    for (uint32_t i = 0; i <= SAMPLES; i++) {
        uint32_t offset = i < SAMPLES ? i * sector + within : bytes - WORD;

        if (memcmp(payload + offset, sequence_bytes + (place + offset) % VERBS_PERIOD, WORD) != 0)
            return false;
    }
    return true;
}

static uint64_t payload_wrong(const struct verbs_verifier *verifier, const uint8_t *data,
                              uint32_t bytes, uint32_t place)
{
    const uint8_t *payload = data + VERBS_HEADER_BYTES;

    if (bytes <= VERBS_HEADER_BYTES)
        return 0;
    bytes -= VERBS_HEADER_BYTES;
    if (!verifier->whole && bytes > VERBS_SMALL && verifier->at.sequence % VERBS_WHOLE_EVERY != 0 &&
        samples_right(payload, bytes, place, verifier->at.sequence))
        return 0;
    return verbs_payload_wrong(payload, bytes, place);
}

/* Jumps to the message that came: those between are missing, so far. */
static void jump(struct verbs_verifier *verifier, uint32_t sequence)
{
    uint32_t gap = sequence - (uint32_t)verifier->at.sequence;

    verifier->missed += gap;
    verifier->seen = gap < SEEN_BITS ? verifier->seen << gap : 0;
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
static void judge_late(struct verbs_verifier *verifier, uint32_t behind, uint32_t bytes)
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
        judge_late(verifier, (uint32_t) - (int32_t)ahead, bytes);
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
    if (verifier->places && ntohs(here.place) < VERBS_PERIOD)
        due.place = here.place;
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

void verbs_redirect(uint8_t *data, uint32_t bytes, const struct verbs_script *onward)
{
    uint16_t ranks[2] = {htons(onward->src), htons(onward->dst)};
    const uint32_t at = offsetof(struct verbs_header, src);

    if (bytes > at)
        memcpy(data + at, ranks, bytes - at < sizeof ranks ? bytes - at : sizeof ranks);
}
