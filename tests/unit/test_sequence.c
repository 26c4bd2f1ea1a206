/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A receiver's verdicts on sequence numbers: by hand, with the examples of RFC 4737, and for
 * thousands of random streams against a judge that stores every arrival.
 */
#include "sequence.h"
#include "unit.h"

#define NUMBERS_MOST 16384u

/* A stream in the receiver's form, and all numbers that came, in order. */
struct bed {
    struct sequence sequence;
    struct sequence_past past;
    unsigned verdicts[SEQUENCE_VERDICTS];
    uint64_t next; /* by the memory: the greatest number plus one */
    bool seen[NUMBERS_MOST];
};

/* Return the verdict by a memory of all numbers, from `base` on, where the stream began. */
static enum sequence_verdict recall(struct bed *bed, uint64_t n)
{
    bool fresh = n >= bed->next, seen = bed->seen[n % NUMBERS_MOST];

    if (fresh)
        bed->next = n + 1;
    else if (bed->next - n > SEQUENCE_WINDOW)
        return SEQUENCE_LATE;
    bed->seen[n % NUMBERS_MOST] = true;
    return fresh ? SEQUENCE_FRESH : seen ? SEQUENCE_DUPLICATE : SEQUENCE_REORDERED;
}

/* Judge a number as rx.c does, and by the memory. */
static enum sequence_verdict arrive(struct bed *bed, uint32_t wire)
{
    uint64_t number = sequence_unwrap(bed->sequence.next, wire);
    enum sequence_verdict verdict = SEQUENCE_FRESH;

    if (!sequence_follows(&bed->sequence, wire))
        verdict = sequence_judge(&bed->sequence, &bed->past, wire);
    assert_int_equal(verdict, recall(bed, number));
    bed->verdicts[verdict]++;
    return verdict;
}

/* --- by hand --- */

static const char letters[SEQUENCE_VERDICTS] = {[SEQUENCE_FRESH] = 'F',
                                                [SEQUENCE_REORDERED] = 'R',
                                                [SEQUENCE_DUPLICATE] = 'D',
                                                [SEQUENCE_LATE] = 'L'};

/* Numbers in order of arrival, and the verdict of each. */
TEST_ROWS(streams_are_as_by_hand, "stream")
{
    static struct bed bed;
    const char *verdicts = row->fields[1];
    uint32_t number;

    bed = (struct bed){0};
    for (const char *at = row->fields[0]; *verdicts != '\0'; at += strcspn(at, " "), verdicts++) {
        at += strspn(at, " ");
        number = (uint32_t)strtoul(at, NULL, 10);
        assert_int_equal(letters[arrive(&bed, number)], *verdicts);
    }
}

/* The short path judges as the long one does, and serves all numbers but the first of each word. */
TEST(test_short_way)
{
    static struct bed stream;
    struct sequence early = {.next = 4, .recent = 8};
    unsigned taken = 0;

    /* A number before the stream's first. */
    assert_int_equal(sequence_judge(&early, &stream.past, 0xffffffff), SEQUENCE_LATE);

    for (uint32_t n = 0; n < 640; n++) {
        static struct bed same;

        same = stream;
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

/* --- properties --- */

struct network {
    unsigned lost, duplicated, reordered; /* out of 1,000 frames */
    unsigned reach;                       /* number of frames that a late one waits for */
};

/* Send `count` frames from number `first` on through the network. */
static void send(struct bed *bed, const struct network *network, uint64_t first, unsigned count)
{
    uint64_t held[64];
    unsigned due[64], holds = 0;

    for (unsigned i = 0; i < count || holds > 0; i++) {
        for (unsigned h = 0; h < holds; h++) {
            if (due[h] > i && i < count)
                continue;
            arrive(bed, (uint32_t)held[h]);
            held[h] = held[--holds];
            due[h--] = due[holds];
        }
        if (i >= count || (unsigned)random() % 1000 < network->lost)
            continue;
        if ((unsigned)random() % 1000 < network->reordered && holds < 64) {
            held[holds] = first + i;
            due[holds++] = i + 1 + (unsigned)random() % network->reach;
            continue;
        }
        arrive(bed, (uint32_t)(first + i));
        if ((unsigned)random() % 1000 < network->duplicated)
            arrive(bed, (uint32_t)(first + i));
    }
}

/* Verdicts are exact for all impairments. */
TEST(test_against_memory)
{
    static const struct network networks[] = {
        {0, 0, 10, 5},     {10, 10, 100, 8},   {300, 0, 50, 6},  {0, 0, 500, 10},
        {100, 50, 30, 40}, {500, 100, 300, 3}, {5, 5, 200, 500}, {0, 0, 2, 15},
    };
    static struct bed bed;

    for (unsigned seed = 0; seed < 200; seed++) {
        bed = (struct bed){0};
        srandom(seed);
        send(&bed, &networks[seed % 8], 0, 200 + (unsigned)random() % 2500);
        assert_int_equal(bed.verdicts[SEQUENCE_LATE], 0);
    }
    /* a sender that begins again: its frames count once it has reached its old number */
    bed = (struct bed){0};
    for (uint32_t n = 0; n < 5500; n++)
        arrive(&bed, n < 2500 ? n : n - 2500);
    assert_int_equal(bed.verdicts[SEQUENCE_LATE], 2500 - SEQUENCE_WINDOW);
    assert_int_equal(bed.verdicts[SEQUENCE_DUPLICATE], SEQUENCE_WINDOW);
    assert_int_equal(bed.verdicts[SEQUENCE_FRESH], 3000);
    assert_int_equal(bed.verdicts[SEQUENCE_REORDERED], 0);
    bed = (struct bed){0}; /* loss alone is no reordering */
    for (uint32_t n = 0; n < 20000; n++)
        if (random() % 4 == 0)
            arrive(&bed, n);
    assert_int_equal(bed.verdicts[SEQUENCE_REORDERED], 0);
    for (unsigned seed = 0; seed < 200; seed++) { /* any numbers, near and far */
        uint32_t spread = seed % 2 == 0 ? 4000 : 100;

        bed = (struct bed){0};
        srandom(seed);
        for (uint32_t i = 0; i < 5000; i++)
            arrive(&bed, i / 2 + (uint32_t)random() % spread);
        assert_true(bed.verdicts[SEQUENCE_DUPLICATE] > 100);
    }
}

/* A stream that runs through the wrap of 32 bits is judged as any other. */
TEST(test_wrap)
{
    static const struct network network = {50, 20, 100, 8};

    for (unsigned seed = 0; seed < 20; seed++) {
        static struct bed low, high;
        const uint64_t base = UINT64_C(0xfffffc00); /* a multiple of the window before the wrap */

        low = high = (struct bed){0};
        high.sequence.next = high.next = base;
        srandom(seed);
        send(&low, &network, 0, 3000);
        srandom(seed);
        send(&high, &network, base, 3000);
        assert_true(high.sequence.next > UINT64_C(0x100000000));
        assert_memory_equal(low.verdicts, high.verdicts, sizeof low.verdicts);
    }
}
