/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fuzzing of all that the partner of a message transport sends: a stream's bytes, single messages
 * and notices. The input: a script (one byte of message sizes in use, two bytes each, two bytes of
 * total in units of 16, 0 for endless), then records of four bytes: what comes next (enum record),
 * a byte that says how, two bytes of length. Built with -fsanitize=fuzzer by clang;
 * tests/unit/test_message.c runs the same entry point on seeded inputs with any compiler.
 */
#include "message.h"
#include "fuzz.h"

#include <arpa/inet.h>
#include <string.h>

#define SIZES 8u
#define RECORD_BYTES 4u

enum record {
    RECORD_RIGHT,   /* the bytes that the source would send next */
    RECORD_DAMAGED, /* the same with one bit flipped */
    RECORD_LOST,    /* a message of the source that is lost */
    RECORD_END,     /* the end mark that is due at the source */
    RECORD_RAW,     /* the input's own bytes */
    RECORDS,
};

struct input {
    const uint8_t *bytes;
    size_t size;
};

/* One end receives everything at once, one in pieces: they must agree. A third end, of an
 * unreliable service, takes the same bytes as one message. */
struct target {
    uint32_t sizes[SIZES];
    struct message_script script;
    struct message_cursor at;
    struct message_stream ends[3];
    struct flow_side sides[3];
    struct port_count count;
    uint64_t fed;
};

/* Return the next byte of the input; 0 after its end. */
static uint8_t take_byte(struct input *input)
{
    if (input->size == 0)
        return 0;
    input->size--;
    return *input->bytes++;
}

static uint32_t take_number(struct input *input)
{
    uint32_t high = take_byte(input);

    return high << 8 | take_byte(input);
}

static void set_up(struct target *target, struct input *input)
{
    struct message_script *script = &target->script;

    script->sizes = target->sizes;
    script->size_count = 1 + take_byte(input) % SIZES;
    for (uint32_t i = 0; i < script->size_count; i++)
        target->sizes[i] = 1 + take_number(input);
    script->total = 16 * (uint64_t)take_number(input);
    if (script->total == 0)
        script->total = FLOW_ENDLESS;
    script->stream = 3;
    script->tag = 0xb1e4;
    script->src = 1;
    script->dst = 2;
    message_cursor_start(&target->at, script);
    for (unsigned i = 0; i < 3; i++) {
        target->ends[i].script = *script;
        target->ends[i].side = &target->sides[i];
        target->ends[i].count = &target->count;
        message_cursor_start(&target->ends[i].at, script);
    }
    target->ends[2].unreliable = target->ends[2].sampled = true;
}

/* Return the bytes that an end has read but can't judge yet. */
static uint64_t undecided(const struct message_stream *end)
{
    if (end->ended)
        return 0;
    if (end->ending || end->at.position < message_cursor_head(&end->at))
        return end->at.position;
    return 0;
}

/* Check that every byte is counted once: as right, as corrupted, or as a valid end mark. */
static void check_agreement(const struct target *target)
{
    const struct message_stream *a = &target->ends[0], *b = &target->ends[1];
    uint64_t counted = a->side->live.payload_bytes + a->side->corrupted;

    check(counted + undecided(a) + (a->whole ? MESSAGE_HEADER_BYTES : 0) == target->fed);
    check(!a->whole || a->ended);
    check(memcmp(&target->sides[0], &target->sides[1], sizeof target->sides[0]) == 0);
    check(a->whole == b->whole && a->ended == b->ended && a->ending == b->ending);
    check(a->at.sequence == b->at.sequence && a->at.position == b->at.position);
    check(target->sides[2].live.payload_bytes <= target->fed);
}

static void feed(struct target *target, const uint8_t *bytes, size_t size, uint8_t how)
{
    size_t piece = 1 + how % 64;
    struct message_header header = {0};
    uint32_t messages, sum;

    message_stream_feed(&target->ends[0], bytes, size);
    memcpy(&header, bytes, size < sizeof header ? size : sizeof header);
    if (message_stream_owns(&target->ends[2], bytes, (uint32_t)size) &&
        !message_stream_gap(&target->ends[2], ntohl(header.sequence), (uint32_t)size))
        message_stream_take(&target->ends[2], bytes, (uint32_t)size);
    (void)message_header_read(&header, MESSAGE_CREDIT, &target->script, &messages, &sum);
    for (size_t at = 0; at < size; at += piece)
        message_stream_feed(&target->ends[1], bytes + at, size - at < piece ? size - at : piece);
    target->fed += size;
    check_agreement(target);
}

/* Make the source's next bytes, at most `size`. */
static size_t produce(struct target *target, uint8_t *bytes, size_t size)
{
    struct message_cursor *at = &target->at;
    size_t made = 0;

    while (made < size && at->length > 0) {
        struct message_header header = message_cursor_header(at, &target->script);

        bytes[made++] = at->position < MESSAGE_HEADER_BYTES
                            ? ((const uint8_t *)&header)[at->position]
                            : *message_payload_at(at, at->position);
        if (++at->position == at->length)
            message_cursor_next(at, &target->script);
    }
    return made;
}

static void take_record(struct target *target, struct input *input)
{
    static uint8_t bytes[UINT16_MAX];
    unsigned kind = take_byte(input) % RECORDS;
    uint8_t how = take_byte(input);
    size_t size = take_number(input);

    if (kind == RECORD_RAW) {
        size = size < input->size ? size : input->size;
        feed(target, input->bytes, size, how);
        input->bytes += size;
        input->size -= size;
        return;
    }
    if (kind == RECORD_END) {
        struct message_header mark = message_header_make(MESSAGE_END, &target->script,
                                                         target->at.sequence, target->at.before);

        feed(target, (const uint8_t *)&mark, sizeof mark, how);
        return;
    }
    size = produce(target, bytes, size);
    if (kind == RECORD_DAMAGED && size > 0)
        bytes[how * size / 256] ^= (uint8_t)(1 << how % 8);
    if (kind != RECORD_LOST)
        feed(target, bytes, size, how);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct input input = {bytes, size};
    struct target target = {0};
    static bool filled;

    if (!filled)
        message_payload_init();
    filled = true;
    set_up(&target, &input);
    while (input.size >= RECORD_BYTES)
        take_record(&target, &input);
    return 0;
}
