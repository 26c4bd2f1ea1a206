/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Messages as both ends of a stream know them, without any I/O.
 *
 * A script says what a stream is made of, a cursor how far an end has come in it, and the end that
 * receives verifies what came. A message is a header of 16 bytes and then bytes of a fixed
 * pseudo-random sequence, entered at a place that depends on the message's number and its stream.
 * Both ends hold that sequence, so that sending copies nothing and verifying is a comparison. A
 * message shorter than the header is the header's first bytes. The sequence's period is a prime, so
 * that data that moved by a power of two is not mistaken for the right data.
 */
#ifndef ENGINE_MESSAGE_H
#define ENGINE_MESSAGE_H

#include "counters.h"
#include "prng.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_HEADER_BYTES 16u
#define MESSAGE_PERIOD 65521u
#define MESSAGE_STEP 7919u          /* from one message's place to the next */
#define MESSAGE_STREAM_STEP 104729u /* from one stream's first place to the next */
#define MESSAGE_RUN 65536u          /* bytes that can be read from any place of the payload */

/** The first byte of all that travels on a stream: a message; the end mark behind the last one, a
 * header alone, of the number and the bytes of all messages; and, likewise, how many may come. */
enum message_kind { MESSAGE_BLOCK = 0xb1, MESSAGE_END = 0xe4, MESSAGE_CREDIT = 0xc7 };

/** In network byte order. */
struct message_header {
    uint8_t kind;
    uint8_t stream; /**< of the flow's streams */
    uint16_t tag;   /**< the phase's */
    uint32_t sequence;
    uint32_t length; /**< of the message, header included */
    uint16_t src;    /**< ranks */
    uint16_t dst;
};
static_assert(sizeof(struct message_header) == MESSAGE_HEADER_BYTES, "layout");

/* --- script and cursor --- */

struct message_script {
    const uint32_t *sizes; /**< in turn, again and again; owned by the lane */
    uint32_t size_count;
    struct prng_sizes drawn; /**< random sizes instead of `sizes`; most 0: none */
    uint64_t total;          /**< bytes, the last message shortened; or FLOW_ENDLESS */
    uint16_t stream;
    uint16_t tag;
    uint16_t src;
    uint16_t dst;
};

struct message_cursor {
    uint64_t sequence; /**< of the present message */
    uint64_t before;   /**< bytes of the messages before it */
    uint32_t length;   /**< of the present message; 0: the script is at its end */
    uint32_t position; /**< in the present message */
    uint32_t turn;     /**< of the sizes */
    uint32_t place;    /**< of the present message in the payload */
};

void message_cursor_start(struct message_cursor *at, const struct message_script *script);

/** @brief Length of the message at a cursor whose other members are set. */
static inline uint32_t message_cursor_length(const struct message_cursor *at,
                                             const struct message_script *script)
{
    uint64_t left = script->total - at->before;
    uint32_t size =
        script->drawn.most > 0 ? prng_size(&script->drawn, at->sequence) : script->sizes[at->turn];

    return size < left ? size : (uint32_t)left;
}

static inline uint32_t message_place_after(uint32_t place)
{
    place += MESSAGE_STEP;
    return place < MESSAGE_PERIOD ? place : place - MESSAGE_PERIOD;
}

/** @brief Begins the next message. */
static inline void message_cursor_next(struct message_cursor *at,
                                       const struct message_script *script)
{
    at->sequence++;
    at->before += at->length;
    at->position = 0;
    at->turn = at->turn + 1 == script->size_count ? 0 : at->turn + 1;
    at->place = message_place_after(at->place);
    at->length = message_cursor_length(at, script);
}

/** @brief Goes on by `count` messages, or to the script's end: by whole rounds of the sizes where
 * none is random. */
void message_cursor_skip(struct message_cursor *at, const struct message_script *script,
                         uint32_t count);

/** @brief How many bytes of the present message are header. */
static inline uint32_t message_cursor_head(const struct message_cursor *at)
{
    return at->length < MESSAGE_HEADER_BYTES ? at->length : MESSAGE_HEADER_BYTES;
}

/** @brief Returns a header of a script's stream; the numbers are modulo 2^32. That of a message is
 * none of another kind, whatever becomes of its first byte: theirs are inverted. */
static inline struct message_header message_header_make(enum message_kind kind,
                                                        const struct message_script *script,
                                                        uint64_t sequence, uint64_t length)
{
    return (struct message_header){
        .kind = (uint8_t)kind,
        .stream = (uint8_t)script->stream,
        .tag = __builtin_bswap16(script->tag),
        .sequence = __builtin_bswap32((uint32_t)(kind == MESSAGE_BLOCK ? sequence : ~sequence)),
        .length = __builtin_bswap32((uint32_t)length),
        .src = __builtin_bswap16(script->src),
        .dst = __builtin_bswap16(script->dst),
    };
}

/** @brief Returns the header of the present message. */
static inline struct message_header message_cursor_header(const struct message_cursor *at,
                                                          const struct message_script *script)
{
    return message_header_make(MESSAGE_BLOCK, script, at->sequence, at->length);
}

/** @brief Reads a header that is not a message's; it need not be aligned.
 * @param sequence Takes its number, `length` its length, in host order.
 * @return true: it is of this kind and stream. */
bool message_header_read(const void *bytes, enum message_kind kind,
                         const struct message_script *script, uint32_t *sequence, uint32_t *length);

/* --- payload --- */

extern uint8_t message_payload[MESSAGE_PERIOD + MESSAGE_RUN];

/** @brief Fills the payload; the main thread, before all else of this header. */
void message_payload_init(void);

/** @brief The present message's bytes from `position` on, MESSAGE_RUN of them. */
static inline const uint8_t *message_payload_at(const struct message_cursor *at, uint32_t position)
{
    return message_payload + (at->place + position) % MESSAGE_PERIOD;
}

/* --- verification --- */

/** One end of a stream: what it is made of, and how far this end has come. The members behind
 * `side` are those of an end that receives, and verifies. */
struct message_stream {
    struct message_script script;
    struct message_cursor at; /**< the next byte or message that is due */
    struct flow_side *side;   /**< where this end counts */
    struct port_count *count; /**< of an unreliable service */
    bool unreliable;          /**< gaps are the network's loss */
    bool sampled;             /**< of whole messages not every byte of every one is compared */
    bool damaged;             /**< the present message has had other bytes than expected */
    bool misplaced;  /**< it is another message than the one that was due: nothing in it counts */
    bool ending;     /**< the end mark is being read */
    bool ended;      /**< nothing may follow, or nothing will */
    bool whole;      /**< and the stream was as long as the end mark says */
    uint64_t missed; /**< messages that were jumped over; less when one comes late */
    uint64_t seen;   /**< bit i: the message i + 1 before the one that is due has come */
    struct message_header header; /**< read so far; or the end mark */
};

/** @brief Verifies and accounts bytes that came next on a reliable stream, in pieces of any size.
 *
 * payload_bytes are those that were what and where they had to be (headers included, the end mark
 * not), messages are those without a wrong byte. What follows an end mark is corrupted. */
void message_stream_feed(struct message_stream *stream, const uint8_t *data, size_t bytes);

#define MESSAGE_SMALL 256u
#define MESSAGE_WHOLE_EVERY 64u
/** @brief Verifies and accounts one message, which came whole: the one that is due.
 *
 * Compared are header, length and order; of a `sampled` stream's payload all bytes of a message of
 * at most MESSAGE_SMALL, and of every MESSAGE_WHOLE_EVERY-th; of the others the last 8 bytes and 8
 * further words, each in another eighth, at places that move from message to message. Where one of
 * these is wrong, all bytes are compared. */
void message_stream_take(struct message_stream *stream, const uint8_t *data, uint32_t bytes);
/** @brief Whether a message is this stream's in this phase, as far as its header goes. */
bool message_stream_owns(const struct message_stream *stream, const void *data, uint32_t bytes);
/** @brief Notes that `count` messages are missing, as something else than a header tells. */
void message_stream_skip(struct message_stream *stream, uint32_t count);
/** @brief Notes what is missing before a message of an unreliable service, whose number is known.
 * @return true: it came late, or twice, or is forged, and was counted; it is not to be verified. */
bool message_stream_gap(struct message_stream *stream, uint32_t sequence, uint32_t bytes);
/** @brief Whether the message `behind` before the one that is due has come. */
static inline bool message_stream_has(const struct message_stream *stream, uint64_t behind)
{
    return !stream->unreliable || (behind <= 64 && (stream->seen >> (behind - 1) & 1) != 0);
}

#endif
