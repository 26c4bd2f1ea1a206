/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include "byte_compare.h"

#include <arpa/inet.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

#define SAMPLES 8u
#define WORD 8u
#define PAYLOAD_SEED UINT64_C(0x5377697463684265)

static uint8_t sequence_bytes[2 * VERBS_PERIOD];

void verbs_payload_init(void)
{
    for (size_t i = 0; i < VERBS_PERIOD; i++)
        sequence_bytes[i] = (uint8_t)(prng_bits(PAYLOAD_SEED, i) >> 56);
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

bool verbs_payload_samples_right(const uint8_t *payload, uint32_t bytes, uint32_t place,
                                 uint64_t turn)
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

/* --- script and cursor --- */

void verbs_cursor_start(struct verbs_cursor *at, const struct verbs_script *script)
{
    *at = (struct verbs_cursor){0};
    at->length = verbs_cursor_length(at, script);
}

static uint64_t check_of(const struct verbs_notice *notice)
{
    uint64_t stream = (uint64_t)notice->kind << 56 ^ (uint64_t)notice->stream << 48 ^
                      (uint64_t)notice->tag << 32 ^ (uint64_t)notice->src << 16 ^ notice->dst;

    return prng_bits(prng_bits(notice->messages ^ stream, 0) ^ notice->bytes, 0);
}

struct verbs_notice verbs_notice_make(enum verbs_kind kind, const struct verbs_script *script,
                                      uint64_t messages, uint64_t bytes)
{
    struct verbs_notice notice = {
        .kind = (uint8_t)kind,
        .stream = (uint8_t)script->stream,
        .tag = htons(script->tag),
        .src = htons(script->src),
        .dst = htons(script->dst),
        .messages = htobe64(messages),
        .bytes = htobe64(bytes),
    };

    notice.check = check_of(&notice);
    return notice;
}

bool verbs_notice_read(const struct verbs_notice *notice, enum verbs_kind kind,
                       const struct verbs_script *script, uint64_t *messages, uint64_t *bytes)
{
    struct verbs_notice here;
    struct verbs_notice due;

    memcpy(&here, notice, sizeof here);
    *messages = be64toh(here.messages);
    *bytes = be64toh(here.bytes);
    due = verbs_notice_make(kind, script, *messages, *bytes);
    return memcmp(&here, &due, sizeof here) == 0;
}

void verbs_redirect(uint8_t *data, uint32_t bytes, const struct verbs_script *onward)
{
    uint16_t ranks[2] = {htons(onward->src), htons(onward->dst)};
    const uint32_t at = offsetof(struct verbs_header, src);

    if (bytes > at)
        memcpy(data + at, ranks, bytes - at < sizeof ranks ? bytes - at : sizeof ranks);
}
