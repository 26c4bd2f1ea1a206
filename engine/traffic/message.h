/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Messages of a stream as both ends compute them, without any I/O.
 *
 * A script describes a stream's messages, a cursor an end's progress in it, and the receiving end
 * verifies what arrived. A message is a header of 16 bytes followed by bytes of a fixed
 * pseudo-random sequence, which begins at a place that depends on the message's number and its
 * stream. Both ends have this sequence, so that sending copies nothing and verifying is a
 * comparison. A message shorter than the header is the header's first bytes. The sequence's period
 * is a prime, so that data displaced by a power of two are not mistaken for the right data.
 */
#ifndef ENGINE_MESSAGE_H
#define ENGINE_MESSAGE_H

#include "counters.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_HEADER_BYTES 16u
#define MESSAGE_PERIOD 65521u
#define MESSAGE_STEP 7919u          /* distance between the places of successive messages */
#define MESSAGE_STREAM_STEP 104729u /* distance between the first places of streams */
#define MESSAGE_RUN 65536u          /* bytes that can be read from any place of the payload */

/**
 * First byte of each unit on a stream: of a message, of the end mark after the last message, or of
 * a credit for further messages.
 *
 * End marks and credits are headers alone. An end mark has the number and the bytes of all
 * messages.
 */
enum message_kind { MESSAGE_BLOCK = 0xb1, MESSAGE_END = 0xe4, MESSAGE_CREDIT = 0xc7 };

/** Header of a message, in network byte order. */
struct message_header {
    uint8_t kind;
    uint8_t stream; /**< number among the flow's streams */
    uint16_t tag;   /**< tag of the phase */
    uint32_t sequence;
    uint32_t length; /**< bytes of the message, header included */
    uint16_t src;    /**< ranks */
    uint16_t dst;
};
static_assert(sizeof(struct message_header) == MESSAGE_HEADER_BYTES, "layout");

/* --- script and cursor --- */

struct message_script {
    const uint32_t *sizes; /**< repeated in this order; owned by the lane */
    uint32_t size_count;
    uint64_t total; /**< bytes, with the last message shortened; or FLOW_ENDLESS */
    uint16_t stream;
    uint16_t tag;
    uint16_t src;
    uint16_t dst;
};

struct message_cursor {
    uint64_t sequence; /**< number of the present message */
    uint64_t before;   /**< bytes of the messages before it */
    uint32_t length;   /**< bytes of the present message; 0: the script is at its end */
    uint32_t position; /**< position in the present message */
    uint32_t turn;     /**< index in the sizes */
    uint32_t place;    /**< place of the present message in the payload */
};

void message_cursor_start(struct message_cursor *at, const struct message_script *script);

/** @brief Return the length in bytes of the message at a cursor, computed from the cursor's other
 * members.
 */
static inline uint32_t message_cursor_length(const struct message_cursor *at,
                                             const struct message_script *script)
{
    uint64_t left = script->total - at->before;
    uint32_t size = script->sizes[at->turn];

    return size < left ? size : (uint32_t)left;
}

static inline uint32_t message_place_after(uint32_t place)
{
    place += MESSAGE_STEP;
    return place < MESSAGE_PERIOD ? place : place - MESSAGE_PERIOD;
}

/** @brief Move a cursor to the next message of its script. */
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

/**
 * @brief Move a cursor on by `count` messages, or to the script's end.
 */
void message_cursor_skip(struct message_cursor *at, const struct message_script *script,
                         uint32_t count);

/** @brief Return how many bytes of the present message are its header. */
static inline uint32_t message_cursor_head(const struct message_cursor *at)
{
    return at->length < MESSAGE_HEADER_BYTES ? at->length : MESSAGE_HEADER_BYTES;
}

/**
 * @brief Return the header of a message, end mark or credit of a script's stream; sequence and
 * length are modulo 2^32.
 *
 * End marks and credits have an inverted sequence number, so that a message's header with a damaged
 * first byte is not mistaken for one of these.
 */
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

/** @brief Return the header of the present message. */
static inline struct message_header message_cursor_header(const struct message_cursor *at,
                                                          const struct message_script *script)
{
    return message_header_make(MESSAGE_BLOCK, script, at->sequence, at->length);
}

/** @brief Read the header of an end mark or a credit; the bytes need not be aligned. `sequence` and
 * `length` take its number and length in host byte order.
 * @return true: the header is of this kind and stream. */
bool message_header_read(const void *bytes, enum message_kind kind,
                         const struct message_script *script, uint32_t *sequence, uint32_t *length);

/* --- payload --- */

extern uint8_t message_payload[MESSAGE_PERIOD + MESSAGE_RUN];

/** @brief Fill the payload sequence; called by the main thread before all other functions of this
 * header. */
void message_payload_init(void);

/** @brief Return a pointer to the payload bytes of the present message from `position` on;
 * MESSAGE_RUN bytes can be read there. */
static inline const uint8_t *message_payload_at(const struct message_cursor *at, uint32_t position)
{
    return message_payload + (at->place + position) % MESSAGE_PERIOD;
}

/* --- verification --- */

/**
 * End of a stream of messages: the stream's script, and the progress of this end. The members from
 * `count` on are used by a receiving end, which verifies the messages.
 */
struct message_stream {
    struct message_script script;
    struct message_cursor at; /**< the next byte or message expected */
    struct flow_side *side;   /**< counters of this end */
    struct port_count *count; /**< counters of the port, for an unreliable service */
    bool unreliable;          /**< gaps are losses of the network */
    bool sampled;             /**< only samples of whole messages' bytes are compared */
    bool damaged;             /**< the present message has wrong bytes */
    bool misplaced;           /**< it is not the expected message: nothing in it counts */
    bool ending;              /**< the end mark is being read */
    bool ended;               /**< nothing more may or will follow */
    bool whole;               /**< the stream had the length in the end mark */
    uint64_t missed;          /**< skipped messages, less those that came late */
    uint64_t seen;            /**< bit i: the message i + 1 before the expected one has arrived */
    struct message_header header; /**< read so far; or the end mark */
};

/** @brief Verify and count the next bytes of a reliable stream, in pieces of any size.
 *
 * payload_bytes counts the bytes that are correct at their position, with headers but without the
 * end mark; messages counts the messages without a wrong byte. Bytes after an end mark count as
 * corrupted. */
void message_stream_feed(struct message_stream *stream, const uint8_t *data, size_t bytes);

#define MESSAGE_SMALL 256u
#define MESSAGE_WHOLE_EVERY 64u
/** @brief Verify and count one complete message, which must be the expected one.
 *
 * Header, length and order are compared in every message. In a `sampled` stream all payload bytes
 * are compared in messages of at most MESSAGE_SMALL bytes and in every MESSAGE_WHOLE_EVERY-th
 * message; in other messages the last 8 bytes and one word in each eighth, at places that change
 * from message to message. If one of these is wrong, all bytes are compared. */
void message_stream_take(struct message_stream *stream, const uint8_t *data, uint32_t bytes);
/** @brief Return whether the header of a received message names this stream and phase. */
bool message_stream_owns(const struct message_stream *stream, const void *data, uint32_t bytes);
/** @brief Count the next `count` messages of a stream as missing; for a loss that no later
 * message's header shows. */
void message_stream_skip(struct message_stream *stream, uint32_t count);
/** @brief Count the messages that are missing before a received message of an unreliable service;
 * `sequence` is the received message's number.
 * @return true: the received message is late, a duplicate or forged; it is counted, and must not be
 * verified. */
bool message_stream_gap(struct message_stream *stream, uint32_t sequence, uint32_t bytes);
/** @brief Return whether the message that is `behind` messages before the expected one has
 * arrived. */
static inline bool message_stream_has(const struct message_stream *stream, uint64_t behind)
{
    return !stream->unreliable || (behind <= 64 && (stream->seen >> (behind - 1) & 1) != 0);
}

#endif
