/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a receiver makes of sequence numbers: by hand, and against a judge that remembers all.
 */
#include "sequence.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

struct stream {
    struct sequence sequence;
    struct sequence_past past;
};

static void expect(struct stream *stream, uint32_t wire, enum sequence_verdict verdict)
{
    if (sequence_follows(&stream->sequence, wire))
        assert_int_equal(verdict, SEQUENCE_FRESH);
    else
        assert_int_equal(sequence_judge(&stream->sequence, &stream->past, wire), verdict);
}

static void test_in_order_then_duplicate(void **state)
{
    struct stream stream = {0};

    for (uint32_t n = 0; n < 5000; n++)
        expect(&stream, n, SEQUENCE_FRESH);
    for (uint32_t n = 4999; n >= 5000 - SEQUENCE_WINDOW; n--)
        expect(&stream, n, SEQUENCE_DUPLICATE);
    expect(&stream, 5000 - SEQUENCE_WINDOW - 1, SEQUENCE_LATE);
    expect(&stream, 5000, SEQUENCE_FRESH);
}

/* The short way is one way only: it takes what the long way would, and all but words' first. */
static void test_short_way(void **state)
{
    struct stream stream = {0};
    unsigned taken = 0;

    for (uint32_t n = 0; n < 640; n++) {
        struct stream same = stream;

        assert_false(sequence_follows(&stream.sequence, n + 1));
        assert_false(n > 0 && sequence_follows(&stream.sequence, n - 1));
        assert_int_equal(sequence_judge(&same.sequence, &same.past, n), SEQUENCE_FRESH);
        if (sequence_follows(&stream.sequence, n)) {
            assert_memory_equal(&same, &stream, sizeof same);
            taken++;
        }
        stream = same;
    }
    assert_int_equal(taken, 630);
}

static void test_gap_is_filled(void **state)
{
    struct stream stream = {0};

    expect(&stream, 0, SEQUENCE_FRESH);
    expect(&stream, 100, SEQUENCE_FRESH);
    for (uint32_t n = 1; n < 100; n++)
        expect(&stream, n, SEQUENCE_REORDERED);
    for (uint32_t n = 0; n <= 100; n++)
        expect(&stream, n, SEQUENCE_DUPLICATE);
}

static void test_long_gap_forgets(void **state)
{
    struct stream stream = {0};

    for (uint32_t n = 0; n < 100; n++)
        expect(&stream, n, SEQUENCE_FRESH);
    expect(&stream, 99 + SEQUENCE_WINDOW, SEQUENCE_FRESH);
    expect(&stream, 99, SEQUENCE_LATE);
    expect(&stream, 100, SEQUENCE_REORDERED);
    expect(&stream, 100, SEQUENCE_DUPLICATE);
}

static void test_first_was_lost(void **state)
{
    struct stream stream = {0};

    expect(&stream, 3, SEQUENCE_FRESH);
    expect(&stream, 0, SEQUENCE_REORDERED);
    expect(&stream, 0xffffffff, SEQUENCE_LATE); /* a number before the first */
}

static void test_wraps(void **state)
{
    struct stream stream = {.sequence.next = 0xfffffff0};

    for (uint32_t i = 0; i < 64; i += 2)
        expect(&stream, 0xfffffff0 + i, SEQUENCE_FRESH);
    assert_int_equal(stream.sequence.next, UINT64_C(0x10000002f));
    for (uint32_t i = 1; i < 62; i += 2)
        expect(&stream, 0xfffffff0 + i, SEQUENCE_REORDERED);
    expect(&stream, 0xfffffff4, SEQUENCE_DUPLICATE);
    expect(&stream, 2, SEQUENCE_DUPLICATE);
}

/* Jumps of every length up to beyond the window, from every place in a word. */
static void test_jumps(void **state)
{
    for (uint32_t from = 0; from < 64; from++) {
        for (uint32_t jump = 1; jump < SEQUENCE_WINDOW + 130; jump += 7) {
            struct stream stream = {0};
            uint32_t to = 2000 + from + jump;

            for (uint32_t n = 0; n <= 2000 + from; n++)
                expect(&stream, n, SEQUENCE_FRESH);
            expect(&stream, to, SEQUENCE_FRESH);
            for (uint32_t n = to; n > to - SEQUENCE_WINDOW; n--)
                expect(&stream, n,
                       n == to || n <= 2000 + from ? SEQUENCE_DUPLICATE : SEQUENCE_REORDERED);
            expect(&stream, to - SEQUENCE_WINDOW, SEQUENCE_LATE);
        }
    }
}

/* A judge with a memory of everything. */
static enum sequence_verdict recall(bool *seen, int64_t *next, uint32_t n)
{
    if (n >= *next) {
        *next = (int64_t)n + 1;
        seen[n] = true;
        return SEQUENCE_FRESH;
    }
    if (*next - n > SEQUENCE_WINDOW)
        return SEQUENCE_LATE;
    if (seen[n])
        return SEQUENCE_DUPLICATE;
    seen[n] = true;
    return SEQUENCE_REORDERED;
}

static void test_against_memory(void **state)
{
    static bool seen[400000];
    struct stream stream = {0};
    unsigned counts[SEQUENCE_VERDICTS] = {0};
    int64_t next = 0, base = 0;

    srandom(7);
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t spread = random() % 100 == 0 ? 3000 : 40;
        int64_t n = base + random() % spread - spread / 2;
        enum sequence_verdict verdict;

        base += random() % 2;
        if (n < 0)
            continue;
        verdict = recall(seen, &next, (uint32_t)n);
        counts[verdict]++;
        expect(&stream, (uint32_t)n, verdict);
    }
    for (unsigned verdict = 0; verdict < SEQUENCE_VERDICTS; verdict++)
        assert_true(counts[verdict] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order_then_duplicate),
        cmocka_unit_test(test_short_way),
        cmocka_unit_test(test_gap_is_filled),
        cmocka_unit_test(test_long_gap_forgets),
        cmocka_unit_test(test_first_was_lost),
        cmocka_unit_test(test_wraps),
        cmocka_unit_test(test_jumps),
        cmocka_unit_test(test_against_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
