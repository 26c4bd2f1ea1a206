/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A source's bytes fed to a sink, whole and damaged, without a socket; and a seeded, bounded run of
 * the fuzzer's entry point (tests/fuzz/tcp_stream.c).
 */
#include "tcp/stream.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM (4u << 20)
#define FUZZ_ROUNDS 3000

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

struct pair {
    struct tcp_source source;
    struct tcp_sink sink;
    struct flow_side sent;
    struct flow_side received;
    uint8_t *data; /* the stream's bytes as the source made them */
    size_t bytes;
};

static const uint32_t one_size[] = {1000};
static const uint32_t imix[] = {40, 1, 576, 15, 1500, 16, 17};

static void make_pair(struct pair *pair, const uint32_t *sizes, uint32_t count, uint64_t total)
{
    struct tcp_script script = {
        .sizes = sizes,
        .size_count = count,
        .total = total,
        .stream = 3,
        .tag = 0xbeef,
        .src = 65535,
        .dst = 7,
    };

    tcp_payload_init();
    memset(pair, 0, sizeof *pair);
    pair->source.script = pair->sink.script = script;
    pair->sink.side = &pair->received;
    tcp_cursor_start(&pair->source.at, &script);
    tcp_cursor_start(&pair->sink.at, &script);
    pair->data = malloc(ROOM);
    assert_non_null(pair->data);
}

/* Writes what the source wants to send, as a kernel would that takes `piece` bytes at a time. */
static void produce(struct pair *pair, size_t budget, size_t piece, size_t limit)
{
    static struct tcp_batch batch;
    struct tcp_end_mark mark;

    while (!tcp_source_at_end(&pair->source)) {
        size_t taken = 0;

        pair->source.stopping = pair->bytes >= limit;
        tcp_source_fill(&pair->source, &batch, budget);
        for (unsigned i = 0; i < batch.count && taken < piece; i++) {
            size_t part = batch.iov[i].iov_len;

            part = part < piece - taken ? part : piece - taken;
            memcpy(pair->data + pair->bytes + taken, batch.iov[i].iov_base, part);
            taken += part;
        }
        pair->bytes += taken;
        assert_true(pair->bytes < ROOM - 65536);
        tcp_source_sent(&pair->source, taken, &pair->sent);
    }
    assert_int_equal(pair->bytes, pair->sent.live.payload_bytes);
    mark = tcp_source_end_mark(&pair->source);
    memcpy(pair->data + pair->bytes, &mark, sizeof mark);
    pair->bytes += sizeof mark;
}

static void consume(struct pair *pair, size_t piece)
{
    for (size_t at = 0; at < pair->bytes; at += piece)
        tcp_sink_feed(&pair->sink, pair->data + at,
                      pair->bytes - at < piece ? pair->bytes - at : piece);
}

static void assert_clean(const struct pair *pair)
{
    assert_true(pair->sink.ended);
    assert_true(pair->sink.whole);
    assert_int_equal(pair->received.corrupted, 0);
    assert_int_equal(pair->received.reordered, 0);
    assert_int_equal(pair->received.live.payload_bytes, pair->sent.live.payload_bytes);
    assert_int_equal(pair->received.live.messages, pair->sent.live.messages);
}

static void any_pieces(void **state)
{
    static const size_t pieces[] = {1, 7, 16, 17, 1448, 65536, 1 << 20};
    const size_t count = sizeof pieces / sizeof pieces[0];

    for (size_t i = 0; i < count * count; i++) {
        struct pair pair;

        make_pair(&pair, imix, 7, FLOW_ENDLESS);
        produce(&pair, 3000, pieces[i / count], 30000);
        consume(&pair, pieces[i % count]);
        assert_clean(&pair);
        assert_true(pair.sent.live.messages > 90);
        free(pair.data);
    }
}

static void every_size(void **state)
{
    static const uint32_t sizes[] = {1,    2,     15,    16,    17,     1447,   1448,
                                     4096, 65535, 65536, 65537, 131072, 1 << 20};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct pair pair;

        make_pair(&pair, &sizes[i], 1, 3 * (uint64_t)sizes[i]);
        produce(&pair, 262144, 100000, SIZE_MAX);
        consume(&pair, 262144);
        assert_clean(&pair);
        assert_int_equal(pair.received.live.messages, 3);
        assert_int_equal(pair.received.live.payload_bytes, 3 * (uint64_t)sizes[i]);
        free(pair.data);
    }
}

static void shortened_last_block(void **state)
{
    struct pair pair;

    make_pair(&pair, one_size, 1, 2003);
    produce(&pair, 700, 333, SIZE_MAX);
    consume(&pair, 50);
    assert_clean(&pair);
    assert_int_equal(pair.received.live.messages, 3);
    assert_int_equal(pair.received.live.payload_bytes, 2003);
    free(pair.data);
}

static void nothing_at_all(void **state)
{
    struct pair pair;

    make_pair(&pair, one_size, 1, 0);
    produce(&pair, 700, 333, SIZE_MAX);
    consume(&pair, 5);
    assert_clean(&pair);
    assert_int_equal(pair.bytes, sizeof(struct tcp_end_mark));
    free(pair.data);
}

/* Whatever byte of a stream is changed, exactly that is not delivered, or the end is not whole. */
static void every_flipped_byte(void **state)
{
    for (size_t at = 0; at < 3 * 1000 + sizeof(struct tcp_end_mark); at++) {
        struct pair pair;

        make_pair(&pair, one_size, 1, 3000);
        produce(&pair, 65536, 65536, SIZE_MAX);
        pair.data[at] ^= 0x20;
        consume(&pair, 1448);
        assert_true(pair.received.corrupted > 0);
        assert_true(pair.received.live.payload_bytes < 3000 || !pair.sink.whole);
        if (at < 3000 && at % 1000 >= TCP_HEADER_BYTES) {
            assert_int_equal(pair.received.corrupted, 1);
            assert_int_equal(pair.received.live.payload_bytes, 2999);
            assert_int_equal(pair.received.live.messages, 2);
            assert_true(pair.sink.whole);
        }
        free(pair.data);
    }
}

/* A block's first byte that turns into an end mark's must not end the count of what follows. */
static void false_end_mark(void **state)
{
    struct pair pair;

    make_pair(&pair, one_size, 1, 5000);
    produce(&pair, 65536, 65536, SIZE_MAX);
    pair.data[1000] = TCP_KIND_END;
    consume(&pair, 100);
    assert_false(pair.sink.whole);
    assert_int_equal(pair.received.live.payload_bytes, 1000);
    assert_int_equal(pair.received.corrupted, 4000 + sizeof(struct tcp_end_mark));
    free(pair.data);
}

static void swapped_blocks(void **state)
{
    struct pair pair;
    uint8_t block[1000];

    make_pair(&pair, one_size, 1, 10000);
    produce(&pair, 65536, 65536, SIZE_MAX);
    memcpy(block, pair.data + 4000, 1000);
    memmove(pair.data + 4000, pair.data + 5000, 1000);
    memcpy(pair.data + 5000, block, 1000);
    consume(&pair, 300);
    assert_int_equal(pair.received.reordered, 1);
    assert_int_equal(pair.received.live.messages, 8);
    assert_int_equal(pair.received.live.payload_bytes, 8000);
    assert_int_equal(pair.received.corrupted, 2000);
    free(pair.data);
}

/* From a block that came twice on, none is where it has to be. */
static void repeated_block(void **state)
{
    struct pair pair;

    make_pair(&pair, one_size, 1, 10000);
    produce(&pair, 65536, 65536, SIZE_MAX);
    memmove(pair.data + 5000, pair.data + 4000, pair.bytes - 4000);
    pair.bytes += 1000;
    consume(&pair, 300);
    assert_int_equal(pair.received.reordered, 5);
    assert_int_equal(pair.received.live.payload_bytes, 5000);
    assert_false(pair.sink.whole);
    free(pair.data);
}

static void missing_block(void **state)
{
    struct pair pair;

    make_pair(&pair, one_size, 1, FLOW_ENDLESS);
    produce(&pair, 65536, 65536, 10000);
    memmove(pair.data + 4000, pair.data + 5000, pair.bytes - 5000);
    pair.bytes -= 1000;
    consume(&pair, 300);
    assert_false(pair.sink.whole);
    assert_int_equal(pair.received.reordered, 0);
    assert_int_equal(pair.received.live.payload_bytes, 4000);
    assert_true(pair.received.corrupted > 0);
    free(pair.data);
}

/* One wrong bit in a header's sequence costs that block, not those behind it. */
static void wrong_sequence(void **state)
{
    struct pair pair;

    make_pair(&pair, one_size, 1, 10000);
    produce(&pair, 65536, 65536, SIZE_MAX);
    pair.data[4000 + offsetof(struct tcp_block_header, sequence)] ^= 0x40;
    consume(&pair, 300);
    assert_true(pair.sink.whole);
    assert_int_equal(pair.received.live.messages, 9);
    assert_int_equal(pair.received.corrupted, 1000);
    free(pair.data);
}

/* The right block in another stream is wrong there: its header says where it belongs. */
static void other_flow(void **state)
{
    struct pair pair;

    make_pair(&pair, one_size, 1, 3000);
    produce(&pair, 65536, 65536, SIZE_MAX);
    pair.sink.script.src = 1;
    consume(&pair, 1448);
    assert_true(pair.received.corrupted >= 3);
    assert_int_equal(pair.received.live.messages, 0);
    free(pair.data);
}

/* A relay gives the next hop's ranks to the headers, however the stream is cut. */
static void redirected(void **state)
{
    static const size_t pieces[] = {1, 5, 13, 14, 15, 16, 4096};

    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct pair first;
        struct pair next;
        struct tcp_script onward;

        make_pair(&first, imix, 7, 20000);
        make_pair(&next, imix, 7, 20000);
        onward = first.source.script;
        onward.src = 7;
        onward.dst = 0x0102;
        first.sink.onward = &onward;
        next.sink.script = onward;
        produce(&first, 65536, 65536, SIZE_MAX);
        consume(&first, pieces[i]);
        assert_clean(&first);
        memcpy(next.data, first.data, first.bytes);
        next.bytes = first.bytes;
        next.sent = first.sent;
        consume(&next, 1448);
        assert_clean(&next);
        free(first.data);
        free(next.data);
    }
}

static void payload_is_contiguous(void **state)
{
    tcp_payload_init();
    for (uint64_t sequence = 0; sequence < 200; sequence++) {
        const uint8_t *whole = tcp_payload_at(sequence, 5, 16);
        const uint8_t *later = tcp_payload_at(sequence, 5, 16 + 30000);

        assert_memory_equal(whole + 30000, later, 20000);
        assert_memory_not_equal(whole, tcp_payload_at(sequence + 1, 5, 16), 64);
        assert_memory_not_equal(whole, tcp_payload_at(sequence, 6, 16), 64);
    }
}

/* xorshift64 (Marsaglia 2003). */
static uint64_t next_random(uint64_t *random)
{
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    return *random;
}

/* Records that are mostly right, of a few hundred bytes, behind a script of short blocks. */
static void survives_the_fuzzer(void **state)
{
    uint64_t random = 4;

    for (unsigned round = 0; round < FUZZ_ROUNDS; round++) {
        uint8_t bytes[400];

        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)(next_random(&random) >> 32);
        for (size_t i = 1; i < sizeof bytes && round % 2 == 0; i += 2)
            bytes[i] &= 1;
        assert_int_equal(LLVMFuzzerTestOneInput(bytes, sizeof bytes), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_pieces),
        cmocka_unit_test(every_size),
        cmocka_unit_test(shortened_last_block),
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(every_flipped_byte),
        cmocka_unit_test(false_end_mark),
        cmocka_unit_test(swapped_blocks),
        cmocka_unit_test(repeated_block),
        cmocka_unit_test(missing_block),
        cmocka_unit_test(wrong_sequence),
        cmocka_unit_test(other_flow),
        cmocka_unit_test(redirected),
        cmocka_unit_test(payload_is_contiguous),
        cmocka_unit_test(survives_the_fuzzer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
