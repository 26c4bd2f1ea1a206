/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A receiver's verdicts on sequence numbers, and its measures of reordering: by hand, with the
 * examples of RFC 4737, and for thousands of random streams against a judge that stores every
 * arrival.
 */
#include "sequence.h"
#include "unit.h"

#define ARRIVALS_MOST 8000
#define NUMBERS_MOST 16384u

/* A stream in the receiver's form, and all numbers that came, in order. */
struct bed {
    struct sequence sequence;
    struct sequence_past past;
    struct reordering reordering;
    uint16_t far[SEQUENCE_WINDOW];
    struct flow_reordering count;
    uint64_t reordered;
    uint64_t arrivals; /* delivered */
    uint64_t number[ARRIVALS_MOST];
    unsigned verdicts[SEQUENCE_VERDICTS];
    uint64_t next; /* by the memory: the greatest number plus one */
    bool seen[NUMBERS_MOST];
};

static void clear(struct bed *bed)
{
    memset(bed, 0, sizeof *bed);
    bed->reordering.far = bed->far;
}

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
    uint64_t next = bed->sequence.next;
    uint64_t number = sequence_unwrap(next, wire);
    enum sequence_verdict verdict = SEQUENCE_FRESH;

    if (!sequence_follows(&bed->sequence, wire)) {
        verdict = sequence_judge(&bed->sequence, &bed->past, wire);
        if (verdict == SEQUENCE_FRESH && number > next)
            reordering_gap(&bed->reordering, next, number, bed->arrivals + 1);
        else if (verdict == SEQUENCE_REORDERED)
            reordering_add(&bed->reordering, number, bed->arrivals + 1, &bed->count);
    }
    assert_int_equal(verdict, recall(bed, number));
    bed->verdicts[verdict]++;
    bed->reordered += verdict == SEQUENCE_REORDERED;
    if (verdict == SEQUENCE_FRESH || verdict == SEQUENCE_REORDERED)
        bed->number[bed->arrivals++] = number;
    return verdict;
}

/* RFC 4737, 4.2 (extent) and section 5 (n-reordering), word by word. */
static void recall_extents(const struct bed *bed, struct flow_reordering *count)
{
    for (uint64_t i = 0; i < bed->arrivals; i++) {
        uint64_t first = 0, nearest = 0;

        while (first < i && bed->number[first] < bed->number[i])
            first++;
        if (first == i)
            continue;
        while (nearest < i && bed->number[i - 1 - nearest] > bed->number[i])
            nearest++;
        count->extent_sum += i - first;
        if (i - first > count->extent_max)
            count->extent_max = i - first;
        count->near += nearest >= REORDERING_NEAR;
    }
}

/* --- by hand --- */

static const char letters[SEQUENCE_VERDICTS] = {[SEQUENCE_FRESH] = 'F',
                                                [SEQUENCE_REORDERED] = 'R',
                                                [SEQUENCE_DUPLICATE] = 'D',
                                                [SEQUENCE_LATE] = 'L'};

/* Numbers in order of arrival, and the verdict of each; then the sum of extents, the maximum, and
 * the number with three greater ones directly before them. */
TEST_ROWS(streams_are_as_by_hand, "stream")
{
    static struct bed bed;
    const char *verdicts = row->fields[1];
    char text[48];
    uint32_t number;

    clear(&bed);
    for (const char *at = row->fields[0]; *verdicts != '\0'; at += strcspn(at, " "), verdicts++) {
        at += strspn(at, " ");
        number = (uint32_t)strtoul(at, NULL, 10);
        assert_int_equal(letters[arrive(&bed, number)], *verdicts);
    }
    snprintf(text, sizeof text, "%llu %llu %llu", (unsigned long long)bed.count.extent_sum,
             (unsigned long long)bed.count.extent_max, (unsigned long long)bed.count.near);
    assert_string_equal(text, row->fields[2]);
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

/* Verdicts, extents and n-reordering are exact for all impairments. */
TEST(test_against_memory)
{
    static const struct network networks[] = {
        {0, 0, 10, 5},     {10, 10, 100, 8},   {300, 0, 50, 6},  {0, 0, 500, 10},
        {100, 50, 30, 40}, {500, 100, 300, 3}, {5, 5, 200, 500}, {0, 0, 2, 15},
    };
    static struct bed bed;

    for (unsigned seed = 0; seed < 200; seed++) {
        struct flow_reordering all = {0};

        clear(&bed);
        srandom(seed);
        send(&bed, &networks[seed % 8], 0, 200 + (unsigned)random() % 2500);
        recall_extents(&bed, &all);
        assert_int_equal(bed.verdicts[SEQUENCE_LATE], 0);
        assert_memory_equal(&bed.count, &all, sizeof all);
    }
    clear(
        &bed); /* a sender that begins again: its frames count once it has reached its old number */
    for (uint32_t n = 0; n < 5500; n++)
        arrive(&bed, n < 2500 ? n : n - 2500);
    assert_int_equal(bed.verdicts[SEQUENCE_LATE], 2500 - SEQUENCE_WINDOW);
    assert_int_equal(bed.verdicts[SEQUENCE_DUPLICATE], SEQUENCE_WINDOW);
    assert_int_equal(bed.arrivals, 3000);
    assert_int_equal(bed.reordered, 0);
    clear(&bed); /* loss alone is no reordering */
    for (uint32_t n = 0; n < 20000; n++)
        if (random() % 4 == 0)
            arrive(&bed, n);
    assert_int_equal(bed.reordered + bed.count.extent_sum, 0);
    for (unsigned seed = 0; seed < 200; seed++) { /* any numbers, near and far */
        uint32_t spread = seed % 2 == 0 ? 4000 : 100;

        clear(&bed);
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

        clear(&low);
        clear(&high);
        high.sequence.next = high.next = base;
        srandom(seed);
        send(&low, &network, 0, 3000);
        srandom(seed);
        send(&high, &network, base, 3000);
        assert_true(high.sequence.next > UINT64_C(0x100000000));
        assert_memory_equal(low.verdicts, high.verdicts, sizeof low.verdicts);
        assert_memory_equal(&low.count, &high.count, sizeof low.count);
    }
}
