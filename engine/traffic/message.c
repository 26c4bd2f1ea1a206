/* SPDX-License-Identifier: BSD-3-Clause */
#include "message.h"

#include "prng.h"

#include <arpa/inet.h>
#include <string.h>

#define PAYLOAD_SEED UINT64_C(0x5377697463684265)
#define SAMPLES 8u
#define WORD 8u
#define SEEN_BITS 64

uint8_t message_payload[MESSAGE_PERIOD + MESSAGE_RUN];

static_assert(MESSAGE_RUN < 2 * MESSAGE_PERIOD, "one repetition fills the buffer");

void message_payload_init(void)
{
    for (size_t i = 0; i < MESSAGE_PERIOD; i++)
        message_payload[i] = (uint8_t)(prng_bits(PAYLOAD_SEED, i) >> 56);
    for (size_t i = MESSAGE_PERIOD; i < sizeof message_payload; i++)
        message_payload[i] = message_payload[i - MESSAGE_PERIOD];
}

/* Return the number of bytes in which two buffers differ. It is nearly always 0, so the whole
 * buffers are compared first. */
static uint64_t differ_bytes(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    uint64_t count = 0;

    if (memcmp(a, b, bytes) == 0)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        count += a[i] != b[i];
    return count;
}

/* --- script and cursor --- */

void message_cursor_start(struct message_cursor *at, const struct message_script *script)
{
    *at = (struct message_cursor){.place = script->stream * MESSAGE_STREAM_STEP % MESSAGE_PERIOD};
    at->length = message_cursor_length(at, script);
}

void message_cursor_skip(struct message_cursor *at, const struct message_script *script,
                         uint32_t count)
{
    if (at->length > 0 && count >= script->size_count) {
        uint64_t rounds = count / script->size_count, bytes = 0;

        for (uint32_t i = 0; i < script->size_count; i++)
            bytes += script->sizes[i];
        if (rounds > (script->total - at->before) / bytes)
            rounds = (script->total - at->before) / bytes;
        at->sequence += rounds * script->size_count;
        at->before += rounds * bytes;
        at->place =
            (uint32_t)((at->place + rounds * script->size_count * MESSAGE_STEP) % MESSAGE_PERIOD);
        at->length = message_cursor_length(at, script);
        count -= (uint32_t)rounds * script->size_count;
    }
    while (count-- > 0 && at->length > 0)
        message_cursor_next(at, script);
}

bool message_header_read(const void *bytes, enum message_kind kind,
                         const struct message_script *script, uint32_t *sequence, uint32_t *length)
{
    struct message_header here, due;

    memcpy(&here, bytes, sizeof here);
    *sequence = ~ntohl(here.sequence);
    *length = ntohl(here.length);
    due = message_header_make(kind, script, *sequence, *length);
    return memcmp(&here, &due, sizeof here) == 0;
}

/* --- a stream of bytes --- */

static void account(struct message_stream *stream, size_t bytes, uint64_t wrong)
{
    stream->side->live.payload_bytes += bytes - wrong;
    if (wrong > 0) {
        stream->side->corrupted += wrong;
        stream->damaged = true;
    }
}

/* Return whether a header belongs to this stream, whatever the number and length of its message. */
static bool is_of(const struct message_stream *stream, struct message_header here)
{
    struct message_header due = message_cursor_header(&stream->at, &stream->script);

    here.sequence = due.sequence;
    here.length = due.length;
    return memcmp(&here, &due, sizeof here) == 0;
}

/* Check a complete received header. A header of this stream, but of another message than the
 * expected one, is misplaced: messages are out of order, or missing. The expected message stays the
 * same. */
static void judge_header(struct message_stream *stream)
{
    struct message_header due = message_cursor_header(&stream->at, &stream->script);
    uint32_t bytes = message_cursor_head(&stream->at);

    stream->misplaced = bytes == MESSAGE_HEADER_BYTES && stream->header.sequence != due.sequence &&
                        is_of(stream, stream->header);
    account(stream, bytes,
            stream->misplaced
                ? bytes
                : differ_bytes((const uint8_t *)&stream->header, (const uint8_t *)&due, bytes));
    if (stream->misplaced &&
        (int32_t)(ntohl(stream->header.sequence) - (uint32_t)stream->at.sequence) < 0)
        stream->side->reordered++;
}

/* Verify the next received bytes of the present message or of the end mark; return how many bytes
 * were used. */
static size_t feed_message(struct message_stream *stream, const uint8_t *data, size_t bytes)
{
    struct message_cursor *at = &stream->at;
    uint32_t head = stream->ending ? MESSAGE_HEADER_BYTES : message_cursor_head(at);
    uint32_t left = (at->position < head ? head : at->length) - at->position;
    uint32_t take = left < MESSAGE_RUN ? left : MESSAGE_RUN;

    take = bytes < take ? (uint32_t)bytes : take;
    if (at->position < head) {
        memcpy((uint8_t *)&stream->header + at->position, data, take);
        at->position += take;
        if (at->position == head && !stream->ending) {
            judge_header(stream);
        } else if (at->position == head) {
            uint32_t messages, length;

            stream->ended = true;
            stream->whole = message_header_read(&stream->header, MESSAGE_END, &stream->script,
                                                &messages, &length) &&
                            messages == (uint32_t)at->sequence && length == (uint32_t)at->before;
            stream->side->corrupted += stream->whole ? 0 : MESSAGE_HEADER_BYTES;
        }
    } else {
        account(stream, take,
                stream->misplaced ? take
                                  : differ_bytes(data, message_payload_at(at, at->position), take));
        at->position += take;
    }
    if (at->position == at->length && !stream->ending) {
        stream->side->live.messages += !stream->damaged;
        message_cursor_next(at, &stream->script);
        stream->damaged = stream->misplaced = false;
    }
    return take;
}

void message_stream_feed(struct message_stream *stream, const uint8_t *data, size_t bytes)
{
    size_t done = 0;

    while (done < bytes && !stream->ended) {
        /* Behind a finished script only the end mark follows. */
        if (stream->at.position == 0 && !stream->ending)
            stream->ending = data[done] == MESSAGE_END || stream->at.length == 0;
        done += feed_message(stream, data + done, bytes - done);
    }
    stream->side->corrupted += bytes - done;
}

/* --- whole messages --- */

/* Return whether nine words of a message's payload are correct: the last one, and one in each
 * eighth, at a place that moves by one word with each message. */
static bool samples_right(const struct message_stream *stream, const uint8_t *data, uint32_t bytes)
{
    uint32_t payload = bytes - MESSAGE_HEADER_BYTES, sector = payload / SAMPLES;
    uint32_t within = (uint32_t)(stream->at.sequence * WORD % (sector - WORD + 1));

    for (uint32_t i = 0; i <= SAMPLES; i++) {
        uint32_t offset =
            MESSAGE_HEADER_BYTES + (i < SAMPLES ? i * sector + within : payload - WORD);

        if (memcmp(data + offset, message_payload_at(&stream->at, offset), WORD) != 0)
            return false;
    }
    return true;
}

void message_stream_skip(struct message_stream *stream, uint32_t count)
{
    if (count == 0)
        return;
    stream->missed += count;
    stream->seen = count < SEEN_BITS ? stream->seen << count : 0;
    message_cursor_skip(&stream->at, &stream->script, count);
}

bool message_stream_gap(struct message_stream *stream, uint32_t sequence, uint32_t bytes)
{
    struct flow_side *side = stream->side;
    uint32_t ahead = sequence - (uint32_t)stream->at.sequence, behind = -ahead; /* modulo 2^32 */
    uint64_t bit = behind <= SEEN_BITS ? UINT64_C(1) << ((behind - 1) % SEEN_BITS) : 0;

    if (ahead == 0)
        return false;
    if ((int32_t)ahead > 0) {
        message_stream_skip(stream, ahead);
        return false;
    }
    if (behind > stream->at.sequence) {
        stream->count->foreign++;
    } else if (bit == 0) { /* before the due one: late, or received twice */
        side->late++;
    } else if ((stream->seen & bit) != 0) {
        side->duplicated++;
    } else {
        stream->seen |= bit;
        stream->missed -= stream->missed > 0;
        side->reordered++;
        side->live.messages++;
        side->live.payload_bytes += bytes;
    }
    return true;
}

bool message_stream_owns(const struct message_stream *stream, const void *data, uint32_t bytes)
{
    struct message_header here = message_cursor_header(&stream->at, &stream->script);

    memcpy(&here, data, bytes < sizeof here ? bytes : sizeof here);
    return is_of(stream, here);
}

void message_stream_take(struct message_stream *stream, const uint8_t *data, uint32_t bytes)
{
    struct message_header due = message_cursor_header(&stream->at, &stream->script);
    bool whole = bytes == stream->at.length;
    bool right = whole && stream->sampled && bytes > MESSAGE_SMALL &&
                 stream->at.sequence % MESSAGE_WHOLE_EVERY != 0 &&
                 memcmp(data, &due, sizeof due) == 0 && samples_right(stream, data, bytes);

    if (right) {
        stream->side->live.payload_bytes += bytes;
        stream->side->live.messages++;
    } else if (!whole) {
        stream->side->corrupted += bytes;
    }
    if (right || !whole)
        message_cursor_next(&stream->at, &stream->script);
    for (uint32_t done = 0; whole && !right && done < bytes;)
        done += (uint32_t)feed_message(stream, data + done, bytes - done);
    stream->seen = stream->seen << 1 | 1;
}
