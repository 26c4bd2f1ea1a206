/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages as both ends know them, without any device: what a stream is made of (the script), how
 * far an end has come (the cursor), and what a message holds.
 *
 * A message is a header and then bytes of a fixed pseudo-random sequence, entered at a place that
 * the header names. Both ends hold that sequence, so nothing is copied to send, and verifying is a
 * comparison. A message shorter than the header is the header's first bytes. The period is a
 * prime, so that data that moved by a power of two is not mistaken for the right data.
 */
#ifndef VERBS_MESSAGE_H
#define VERBS_MESSAGE_H

#include "counters.h"
#include "prng.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERBS_PERIOD 65521u
#define VERBS_STEP 7919u /* from one message's place to the next */

enum verbs_kind { VERBS_KIND_MESSAGE = 0xb1, VERBS_KIND_EOF = 0xe4, VERBS_KIND_CREDIT = 0xc7 };

/* In network byte order. */
struct verbs_header {
    uint8_t kind;
    uint8_t stream; /* of the flow's queue pairs */
    uint16_t tag;   /* the phase's */
    uint32_t sequence;
    uint32_t length; /* of the message, header included */
    uint16_t src;    /* ranks: a forwarding rank replaces these two and nothing else */
    uint16_t dst;
    uint16_t place; /* where the payload begins in the sequence */
    uint16_t zero;
};
#define VERBS_HEADER_BYTES 20u
static_assert(sizeof(struct verbs_header) == VERBS_HEADER_BYTES, "layout");

/* What an end tells the other beside messages: what the stream was, after the last message (eof);
 * or a credit, where there is no remote write (UD). Complete when `check` is right: an eof may come
 * by a remote write, of which a reader may see only a part. */
struct verbs_notice {
    uint8_t kind;
    uint8_t stream;
    uint16_t tag;
    uint16_t src;
    uint16_t dst;
    uint64_t messages; /* of the stream; or the credit */
    uint64_t bytes;
    uint64_t check;
};
static_assert(sizeof(struct verbs_notice) == 32, "layout");

/* A credit: how far an end has come, told to the other end in one word, so that no part of it can
 * be seen without the rest: the phase's tag, whether the eof has come, and a count of messages. */
#define VERBS_CREDIT_COUNT_BITS 47
static inline uint64_t verbs_credit(uint16_t tag, bool finished, uint64_t messages)
{
    return (uint64_t)tag << 48 | (uint64_t)finished << VERBS_CREDIT_COUNT_BITS |
           (messages & ((UINT64_C(1) << VERBS_CREDIT_COUNT_BITS) - 1));
}
static inline bool verbs_credit_is_of(uint64_t credit, uint16_t tag)
{
    return credit >> 48 == tag;
}
static inline bool verbs_credit_finished(uint64_t credit)
{
    return (credit >> VERBS_CREDIT_COUNT_BITS & 1) != 0;
}
static inline uint64_t verbs_credit_messages(uint64_t credit)
{
    return credit & ((UINT64_C(1) << VERBS_CREDIT_COUNT_BITS) - 1);
}

/* --- script and cursor --- */

struct verbs_script {
    const uint32_t *sizes; /* in turn, repeated; owned by the lane */
    uint32_t size_count;
    struct prng_sizes drawn; /* random sizes instead of `sizes`; most 0: none */
    uint64_t total;          /* bytes, the last message shortened; or FLOW_ENDLESS */
    uint16_t stream;
    uint16_t tag;
    uint16_t src;
    uint16_t dst;
};

struct verbs_cursor {
    uint64_t sequence;
    uint64_t before; /* bytes of the messages before this one */
    uint32_t length; /* of this one; 0: the script is at its end */
    uint32_t turn;   /* of the sizes */
    uint32_t place;
};

void verbs_cursor_start(struct verbs_cursor *at, const struct verbs_script *script);

static inline uint32_t verbs_cursor_length(const struct verbs_cursor *at,
                                           const struct verbs_script *script)
{
    uint64_t left = script->total - at->before;
    uint32_t size =
        script->drawn.most > 0 ? prng_size(&script->drawn, at->sequence) : script->sizes[at->turn];

    return size < left ? size : (uint32_t)left;
}

static inline uint32_t verbs_place_after(uint32_t place)
{
    place += VERBS_STEP;
    return place < VERBS_PERIOD ? place : place - VERBS_PERIOD;
}

static inline void verbs_cursor_next(struct verbs_cursor *at, const struct verbs_script *script)
{
    at->sequence++;
    at->before += at->length;
    at->turn = at->turn + 1 == script->size_count ? 0 : at->turn + 1;
    at->place = verbs_place_after(at->place);
    at->length = verbs_cursor_length(at, script);
}

/* Goes on after `count` messages of the present length: one, or any number where all sizes are
 * equal and none is random. */
static inline void verbs_cursor_skip(struct verbs_cursor *at, const struct verbs_script *script,
                                     uint32_t count)
{
    at->sequence += count;
    at->before += (uint64_t)count * at->length;
    at->turn = (at->turn + count) % script->size_count;
    at->place = (uint32_t)((at->place + (uint64_t)count * VERBS_STEP) % VERBS_PERIOD);
    at->length = verbs_cursor_length(at, script);
}

/* Goes on by whole rounds of the sizes, as many of them as `count` messages have and the script has
 * left; not at all where sizes are random. What is left to skip is less than a round, or behind the
 * script's end. */
static inline void verbs_cursor_skip_rounds(struct verbs_cursor *at,
                                            const struct verbs_script *script, uint32_t count)
{
    uint64_t rounds = count / script->size_count, bytes = 0;

    if (script->drawn.most > 0 || at->length == 0)
        return;
    for (uint32_t i = 0; i < script->size_count; i++)
        bytes += script->sizes[i];
    if (rounds > (script->total - at->before) / bytes)
        rounds = (script->total - at->before) / bytes;
    at->sequence += rounds * script->size_count;
    at->before += rounds * bytes;
    at->place = (uint32_t)((at->place + rounds * script->size_count * VERBS_STEP) % VERBS_PERIOD);
    at->length = verbs_cursor_length(at, script);
}

/* The header of the present message with its payload from `place`. */
static inline struct verbs_header verbs_header_of(const struct verbs_cursor *at,
                                                  const struct verbs_script *script, uint32_t place)
{
    return (struct verbs_header){
        .kind = VERBS_KIND_MESSAGE,
        .stream = (uint8_t)script->stream,
        .tag = __builtin_bswap16(script->tag),
        .sequence = __builtin_bswap32((uint32_t)at->sequence),
        .length = __builtin_bswap32(at->length),
        .src = __builtin_bswap16(script->src),
        .dst = __builtin_bswap16(script->dst),
        .place = __builtin_bswap16((uint16_t)place),
    };
}

struct verbs_notice verbs_notice_make(enum verbs_kind kind, const struct verbs_script *script,
                                      uint64_t messages, uint64_t bytes);
/* True: a whole notice of this kind and stream; then the numbers are in host order. */
bool verbs_notice_read(const struct verbs_notice *notice, enum verbs_kind kind,
                       const struct verbs_script *script, uint64_t *messages, uint64_t *bytes);

/* --- content --- */

/* Once, before any of the others. */
void verbs_payload_init(void);
/* Fills `bytes` with the sequence from `place` on. */
void verbs_payload_fill(uint8_t *data, size_t bytes, uint32_t place);
/* How many of `bytes` at `data` differ from the payload from `place` on. */
uint64_t verbs_payload_wrong(const uint8_t *data, size_t bytes, uint32_t place);
/* Whether nine words of at least 64 bytes are right: the last, and one in each eighth, which moves
 * on by one word per `turn`. */
bool verbs_payload_samples_right(const uint8_t *payload, uint32_t bytes, uint32_t place,
                                 uint64_t turn);

/* Gives a message the ranks of the next hop; `bytes` of it are there. */
void verbs_redirect(uint8_t *data, uint32_t bytes, const struct verbs_script *onward);

#endif
