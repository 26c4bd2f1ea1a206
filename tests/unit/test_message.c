/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages made and verified without I/O: as a stream of bytes and one by one, complete, damaged,
 * lost, late, and repeated; and a seeded, bounded run of the fuzzer's entry point
 * (tests/fuzz/message.c).
 */
#include "../fuzz/fuzz.h"
#include "message.h"
#include "prng.h"
#include "unit.h"

#define ROOM (8u << 20)
#define FUZZ_ROUNDS 3000

static struct bed {
    struct message_script script;
    struct message_cursor at;
    struct message_stream end;
    struct flow_side side;
    struct port_count count;
    uint8_t *last; /* the last message */
    size_t bytes;
    uint8_t data[ROOM]; /* all messages */
} bed;

static const uint32_t one_size[] = {1000};
static const uint32_t imix[] = {40, 1, 576, 15, 1500, 16, 17};
static const uint32_t mixed[] = {1, 2, 15, 16, 17, 300, 4096, 65535, 65537, 200001};

static void begin(const uint32_t *sizes, uint32_t count, uint64_t total)
{
    message_payload_init();
    bed.bytes = 0;
    bed.side = (struct flow_side){0};
    bed.count = (struct port_count){0};
    bed.script = (struct message_script){.sizes = sizes,
                                         .size_count = count,
                                         .total = total,
                                         .stream = 3,
                                         .tag = 0xbeef,
                                         .src = 65535,
                                         .dst = 7};
    bed.end = (struct message_stream){.script = bed.script, .side = &bed.side, .count = &bed.count};
    message_cursor_start(&bed.at, &bed.script);
    message_cursor_start(&bed.end.at, &bed.script);
}

/* Append the present message to those before it. Return its length, and go on to the next. */
static uint32_t make(void)
{
    struct message_header header = message_cursor_header(&bed.at, &bed.script);
    uint32_t length = bed.at.length;

    assert_true(bed.bytes + length + MESSAGE_HEADER_BYTES < ROOM);
    bed.last = bed.data + bed.bytes;
    for (uint32_t i = sizeof header; i < length; i += 30000)
        memcpy(bed.last + i, message_payload_at(&bed.at, i),
               length - i < 30000 ? length - i : 30000);
    memcpy(bed.last, &header, length < sizeof header ? length : sizeof header);
    bed.bytes += length;
    message_cursor_next(&bed.at, &bed.script);
    return length;
}

/* Replace earlier messages by the present one. Return its length. */
static uint32_t make_alone(void)
{
    bed.bytes = 0;
    return make();
}

static void take(uint32_t length)
{
    message_stream_take(&bed.end, bed.last, length);
}

/* Make messages up to `limit` bytes or the script's end, and the end mark. */
static void make_stream(size_t limit)
{
    struct message_header end;

    while (bed.bytes < limit && bed.at.length > 0)
        make();
    end = message_header_make(MESSAGE_END, &bed.script, bed.at.sequence, bed.at.before);
    memcpy(bed.data + bed.bytes, &end, sizeof end);
    bed.bytes += sizeof end;
}

static void feed(size_t piece)
{
    for (size_t at = 0; at < bed.bytes; at += piece)
        message_stream_feed(&bed.end, bed.data + at,
                            bed.bytes - at < piece ? bed.bytes - at : piece);
}

static void check_counts(uint64_t messages, uint64_t payload, uint64_t corrupted,
                         uint64_t reordered)
{
    assert_int_equal(bed.side.live.messages, messages);
    assert_int_equal(bed.side.live.payload_bytes, payload);
    assert_int_equal(bed.side.corrupted, corrupted);
    assert_int_equal(bed.side.reordered, reordered);
}

/* --- streams --- */

TEST(streams_are_whole_in_any_pieces)
{
    static const size_t pieces[] = {1, 5, 13, 14, 15, 16, 17, 1448, 65536, 1 << 20};
    static const struct {
        const uint32_t *sizes;
        uint32_t count;
        uint64_t total;
        size_t limit;
    } streams[] = {
        {imix, COUNT(imix), 20000, ROOM},
        {mixed, COUNT(mixed), FLOW_ENDLESS, 700000},
        {one_size, 1, 2003, ROOM}, /* the last message is shortened */
        {one_size, 1, 0, ROOM},    /* nothing but the end mark */
    };

    for (size_t i = 0; i < COUNT(streams) * COUNT(pieces); i++) {
        size_t s = i / COUNT(pieces), piece = pieces[i % COUNT(pieces)];

        begin(streams[s].sizes, streams[s].count, streams[s].total);
        make_stream(streams[s].limit);
        feed(piece);
        assert_true(bed.end.ended && bed.end.whole);
        check_counts(bed.at.sequence, bed.at.before, 0, 0);
    }
}

/* A changed byte of a stream makes exactly that byte undelivered, or the end incomplete. */
TEST(every_flipped_byte)
{
    for (size_t at = 0; at < 3 * 1000 + MESSAGE_HEADER_BYTES; at++) {
        begin(one_size, 1, 3000);
        make_stream(ROOM);
        bed.data[at] ^= 0x20;
        feed(1448);
        assert_true(bed.side.corrupted > 0);
        assert_true(bed.side.live.payload_bytes < 3000 || !bed.end.whole);
        if (at >= 3000 || at % 1000 < MESSAGE_HEADER_BYTES)
            continue;
        check_counts(2, 2999, 1, 0);
        assert_true(bed.end.whole);
    }
}

enum damage { FALSE_END, SWAPPED, REPEATED, MISSING, WRONG_SEQUENCE, OTHER_FLOW };

/* Damage a stream of ten messages of 1,000 bytes. */
static void spoil(enum damage damage)
{
    uint8_t message[1000], *fifth = bed.data + 4000;

    memcpy(message, fifth, sizeof message);
    if (damage == FALSE_END)
        bed.data[1000] = MESSAGE_END;
    if (damage == SWAPPED)
        memmove(fifth, fifth + 1000, 1000);
    if (damage == SWAPPED)
        memcpy(fifth + 1000, message, 1000);
    if (damage == REPEATED)
        memmove(fifth + 1000, fifth, bed.bytes - 4000);
    if (damage == MISSING)
        memmove(fifth, fifth + 1000, bed.bytes - 5000);
    bed.bytes += damage == REPEATED ? 1000 : 0;
    bed.bytes -= damage == MISSING ? 1000 : 0;
    if (damage == WRONG_SEQUENCE)
        fifth[offsetof(struct message_header, sequence)] ^= 0x40;
    if (damage == OTHER_FLOW)
        bed.end.script.src = 1;
}

TEST(damaged_streams)
{
    static const struct {
        enum damage damage;
        uint64_t messages, payload, corrupted, reordered;
        bool whole;
    } cases[] = {
        {FALSE_END, 1, 1000, 9000 + MESSAGE_HEADER_BYTES, 0, false},
        {SWAPPED, 8, 8000, 2000, 1, true},
        /* After a message that came twice, no byte of the stream is at its place. */
        {REPEATED, 5, 5000, 6000 + MESSAGE_HEADER_BYTES, 5, false},
        {MISSING, 4, 4000, 5000 + MESSAGE_HEADER_BYTES, 0, false},
        /* One wrong bit in a header's sequence costs that message, not those behind it. */
        {WRONG_SEQUENCE, 9, 9000, 1000, 0, true},
        {OTHER_FLOW, 0, 9980, 20 + MESSAGE_HEADER_BYTES, 0, false},
    };

    for (EACH(c, cases)) {
        begin(one_size, 1, 10000);
        make_stream(ROOM);
        spoil(c->damage);
        feed(300);
        check_counts(c->messages, c->payload, c->corrupted, c->reordered);
        assert_int_equal(bed.end.whole, c->whole);
    }
}

/* --- cursors --- */

TEST(a_skip_ends_where_steps_would)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 7, 64, 1001, 70001};
    static const uint64_t totals[] = {FLOW_ENDLESS, 3000000, UINT64_C(1000) * 70000 + 5};

    for (size_t i = 0; i < COUNT(counts) * COUNT(totals) * 2; i++) {
        struct message_cursor steps;
        uint32_t count = counts[i % COUNT(counts)];
        bool one = i < COUNT(counts) * COUNT(totals);

        begin(one ? one_size : imix, one ? 1 : COUNT(imix),
              totals[i / COUNT(counts) % COUNT(totals)]);
        steps = bed.at;
        message_cursor_skip(&bed.at, &bed.script, count);
        while (count-- > 0 && steps.length > 0)
            message_cursor_next(&steps, &bed.script);
        assert_memory_equal(&bed.at, &steps, sizeof steps);
    }
}

/* A message of another stream has nearly all bytes wrong, and so has a wrong message of the same
 * stream (damaged_streams). */
TEST(payloads_of_streams_differ)
{
    begin(one_size, 1, FLOW_ENDLESS);
    bed.end.script.stream++;
    message_cursor_start(&bed.end.at, &bed.end.script);
    take(make());
    assert_true(bed.side.corrupted > 950);
}

/* --- whole messages --- */

/* Sizes in turn: both ends compute the same. */
TEST(whole_messages_count)
{
    begin(mixed, COUNT(mixed), FLOW_ENDLESS);
    bed.end.sampled = true;
    for (unsigned i = 0; i < 500; i++)
        take(make_alone());
    check_counts(500, bed.at.before, 0, 0);
}

/* Each wrong byte counts; so do all bytes of a message of another length, and nearly all of an old
 * message in place of the new one, whether or not its header is new. */
TEST(damage_is_counted)
{
    begin(mixed, COUNT(mixed), FLOW_ENDLESS);
    for (unsigned i = 0; i < COUNT(mixed); i++) {
        uint32_t length = make();
        uint64_t before = bed.side.corrupted;

        bed.last[length / 2] ^= 0x40;
        bed.last[length - 1] ^= 1;
        take(length);
        assert_int_equal(bed.side.corrupted - before, length / 2 == length - 1 ? 1 : 2);
    }
    assert_int_equal(bed.side.live.messages, 0);
    begin(mixed + 6, 1, FLOW_ENDLESS);
    make();
    take(4000);
    check_counts(0, 0, 4000, 0);
    for (unsigned header_is_new = 0; header_is_new < 2; header_is_new++) {
        begin(mixed + 6, 1, FLOW_ENDLESS);
        take(make());
        make();
        if (header_is_new)
            memcpy(bed.data, bed.last, MESSAGE_HEADER_BYTES);
        message_stream_take(&bed.end, bed.data, 4096);
        assert_int_equal(bed.side.live.messages, 1);
        assert_true(bed.side.corrupted > 3000);
        assert_int_equal(bed.side.reordered, !header_is_new);
    }
}

/* In large messages of a stream a wrong last word is always found, and so is a wrong block of any
 * eighth of a message; a single byte is found only when it is sampled, but is then counted exactly.
 */
TEST(samples_find_damage)
{
    static const uint32_t size[] = {65536};
    unsigned found = 0;

    begin(size, 1, FLOW_ENDLESS);
    bed.end.sampled = true;
    for (unsigned i = 0; i < 1300; i++) {
        uint64_t before = bed.side.corrupted;
        uint32_t length = make_alone();

        if (i < 1200) {
            bed.last[30000] ^= 1;
        } else {
            memset(bed.last + 24000, 0, 8192); /* more than an eighth of the payload */
            bed.last[length - 3] ^= 4;
        }
        take(length);
        if (i < 1200)
            assert_true(bed.side.corrupted - before <= 1);
        else
            assert_true(bed.side.corrupted > before + 8000);
        found += i < 1200 && bed.side.corrupted > before;
    }
    /* The messages that are compared whole (every 64th), and the one whose sample has the byte. */
    assert_true(found >= 1200 / MESSAGE_WHOLE_EVERY);
    assert_int_equal(bed.side.live.messages + found, 1200);
}

/* --- an unreliable service --- */

/* The order in which sent messages arrive. */
TEST(what_is_lost_late_or_twice_is_told_apart)
{
    static const struct {
        uint32_t size;
        uint8_t order[8], count;
        uint64_t messages, missed, reordered, duplicated, late;
    } cases[] = {
        {100, {0, 3, 1, 1, 74, 1}, 6, 4, 71, 1, 1, 1},
        {4, {0, 4, 2}, 3, 3, 2, 1, 0, 0},
        {21, {1, 2, 4, 0}, 4, 4, 1, 1, 0, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        uint32_t size = cases[i].size;

        begin(&size, 1, FLOW_ENDLESS);
        bed.end.unreliable = true;
        for (unsigned n = 0; n < 80; n++)
            make();
        for (unsigned n = 0; n < cases[i].count; n++)
            if (!message_stream_gap(&bed.end, cases[i].order[n], size))
                message_stream_take(&bed.end, bed.data + cases[i].order[n] * size, size);
        check_counts(cases[i].messages, cases[i].messages * size, 0, cases[i].reordered);
        assert_int_equal(bed.end.missed, cases[i].missed);
        assert_int_equal(bed.side.duplicated, cases[i].duplicated);
        assert_int_equal(bed.side.late, cases[i].late);
        if (i == 1) /* the answering side knows which messages have come */
            assert_true(message_stream_has(&bed.end, 3) && !message_stream_has(&bed.end, 2));
    }
}

/* A message belongs to this stream, or is rejected. A number from the network may be anything: a
 * jump takes one round of the sizes. */
TEST(what_is_forged_is_foreign)
{
    static const uint32_t sizes[] = {4, 8};

    begin(one_size, 1, FLOW_ENDLESS);
    bed.end.unreliable = true;
    make();
    assert_true(message_stream_owns(&bed.end, bed.last, 1000));
    for (unsigned i = 0; i < MESSAGE_HEADER_BYTES; i++) { /* all except its number and length */
        bed.last[i] ^= 1;
        assert_int_equal(message_stream_owns(&bed.end, bed.last, 1000), i >= 4 && i < 12);
        bed.last[i] ^= 1;
    }
    assert_true(message_stream_gap(&bed.end, UINT32_MAX, 1000)); /* one before the first */
    assert_int_equal(bed.count.foreign, 1);
    check_counts(0, 0, 0, 0);
    begin(sizes, 2, FLOW_ENDLESS);
    for (unsigned i = 1; i <= 1000; i++) /* in single steps these took a quarter of an hour */
        assert_false(message_stream_gap(&bed.end, i * (uint32_t)INT32_MAX, 4));
}

/* Records of a few hundred bytes that are mostly right, after a script of short messages. */
TEST(survives_the_fuzzer)
{
    uint64_t random = 4;

    for (unsigned round = 0; round < FUZZ_ROUNDS; round++) {
        uint8_t bytes[400];

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(prng_next(&random) >> 32);
        for (size_t i = 1; i < sizeof bytes && round % 2 == 0; i += 2)
            bytes[i] &= 1;
        assert_int_equal(LLVMFuzzerTestOneInput(bytes, sizeof bytes), 0);
    }
}
