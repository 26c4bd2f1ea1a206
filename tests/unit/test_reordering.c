/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How frames were out of order: the examples of RFC 4737, and thousands of random streams against a
 * judge that remembers every arrival.
 */
#include "reordering.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARRIVALS_MOST 6000

/* A stream as the receiver keeps it, and all that came, in order. */
struct bed {
    struct sequence sequence;
    struct sequence_past past;
    struct reordering reordering;
    uint32_t missing;
    struct gap gaps[REORDERING_GAPS];
    struct flow_reordering count;
    uint64_t reordered;
    uint64_t arrivals; /* delivered */
    uint64_t number[ARRIVALS_MOST];
    unsigned verdicts[SEQUENCE_VERDICTS];
};

static void clear(struct bed *bed)
{
    memset(bed, 0, sizeof *bed);
    bed->reordering.far = bed->gaps;
}

/* As rx.c does. */
static enum sequence_verdict arrive(struct bed *bed, uint32_t wire)
{
    uint64_t next = bed->sequence.next;
    struct reordered_frame frame = {.number = sequence_unwrap(next, wire),
                                    .arrival = bed->arrivals + 1};
    enum sequence_verdict verdict = SEQUENCE_FRESH;

    if (!sequence_follows(&bed->sequence, wire)) {
        verdict = sequence_judge(&bed->sequence, &bed->past, wire);
        if (verdict == SEQUENCE_FRESH && frame.number > next)
            reordering_gap(&bed->reordering, &bed->missing, &bed->sequence, next, frame.arrival);
        else if (verdict == SEQUENCE_REORDERED)
            reordering_add(&bed->reordering, &bed->missing, &frame, &bed->count);
    }
    bed->verdicts[verdict]++;
    bed->reordered += verdict == SEQUENCE_REORDERED;
    if (verdict == SEQUENCE_FRESH || verdict == SEQUENCE_REORDERED)
        bed->number[bed->arrivals++] = frame.number;
    return verdict;
}

static void arrive_all(struct bed *bed, const uint32_t *wires, size_t count)
{
    clear(bed);
    for (size_t i = 0; i < count; i++)
        arrive(bed, wires[i]);
}

#define ARRIVE(bed, ...)                                                                           \
    arrive_all(bed, (const uint32_t[]){__VA_ARGS__},                                               \
               sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

/* --- a judge that remembers everything --- */

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

/* 4 comes behind 5 and 6, so its extent is 2. */
static void test_extent_by_hand(void **state)
{
    struct bed bed;

    ARRIVE(&bed, 0, 1, 2, 3, 5, 6, 4, 7);
    assert_int_equal(bed.reordered, 1);
    assert_int_equal(bed.count.extent_sum, 2);
    assert_int_equal(bed.count.extent_max, 2);
    assert_int_equal(bed.count.near, 0);
    ARRIVE(&bed, 0, 2, 3, 4, 1, 5);
    assert_int_equal(bed.count.extent_sum, 3);
    assert_int_equal(bed.count.near, 1); /* three greater ones directly before it */
    /* 7, 8, 4, 5, 6: each is behind 7; before 5 and 6 stands a smaller one. */
    ARRIVE(&bed, 0, 1, 2, 3, 7, 8, 9, 4, 5, 6);
    assert_int_equal(bed.reordered, 3);
    assert_int_equal(bed.count.extent_sum, 3 + 4 + 5);
    assert_int_equal(bed.count.near, 1);
}

static void test_loss_is_no_reordering(void **state)
{
    struct bed bed;

    clear(&bed);
    srandom(3);
    for (uint32_t n = 0; n < 20000; n++)
        if (random() % 4 == 0)
            arrive(&bed, n);
    assert_int_equal(bed.reordered, 0);
    assert_int_equal(bed.count.extent_sum, 0);
}

/* --- properties --- */

struct network {
    unsigned lost, duplicated, reordered; /* of 1,000 */
    unsigned reach;                       /* how many frames a late one waits for */
};

/* Sends `count` frames from number `first` on through the network. */
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

/* Extents and n-reordering are exact whatever happens. */
static void test_against_memory(void **state)
{
    static const struct network networks[] = {
        {0, 0, 10, 5},     {10, 10, 100, 8},   {300, 0, 50, 6},  {0, 0, 500, 10},
        {100, 50, 30, 40}, {500, 100, 300, 3}, {5, 5, 200, 500}, {0, 0, 2, 15},
    };

    for (unsigned seed = 0; seed < 200; seed++) {
        static struct bed bed;
        struct flow_reordering all = {0};

        clear(&bed);
        srandom(seed);
        send(&bed, &networks[seed % 8], 0, 200 + (unsigned)random() % 2500);
        recall_extents(&bed, &all);
        assert_int_equal(bed.verdicts[SEQUENCE_LATE], 0);
        assert_int_equal(bed.count.extent_sum, all.extent_sum);
        assert_int_equal(bed.count.extent_max, all.extent_max);
        assert_int_equal(bed.count.near, all.near);
    }
}

/* Every other frame is missing: no stream has more gaps. All that are not late come after all. */
static void test_most_gaps(void **state)
{
    static struct bed bed;
    struct flow_reordering all = {0};

    clear(&bed);
    for (uint32_t n = 1; n < 3000; n += 2)
        arrive(&bed, n);
    for (uint32_t n = 2998; n >= 3000 - SEQUENCE_WINDOW; n -= 2)
        assert_int_equal(arrive(&bed, n), SEQUENCE_REORDERED);
    recall_extents(&bed, &all);
    assert_memory_equal(&bed.count, &all, sizeof all);
}

/* A stream that runs through the wrap of 32 bits is judged as any other. */
static void test_wrap(void **state)
{
    static const struct network network = {50, 20, 100, 8};

    for (unsigned seed = 0; seed < 20; seed++) {
        static struct bed low, high;
        const uint64_t base = UINT64_C(0xfffffc00); /* a multiple of the window before the wrap */

        clear(&low);
        clear(&high);
        high.sequence.next = base;
        srandom(seed);
        send(&low, &network, 0, 3000);
        srandom(seed);
        send(&high, &network, base, 3000);
        assert_true(high.sequence.next > UINT64_C(0x100000000));
        assert_memory_equal(low.verdicts, high.verdicts, sizeof low.verdicts);
        assert_memory_equal(&low.count, &high.count, sizeof low.count);
    }
}

/* A sender that begins anew in the middle is heard again once it is where it was: nothing counts
 * twice, and nothing that it sent before counts as lost twice. */
static void test_restart(void **state)
{
    static struct bed bed;

    clear(&bed);
    for (uint32_t n = 0; n < 2500; n++)
        assert_int_equal(arrive(&bed, n), SEQUENCE_FRESH);
    for (uint32_t n = 0; n < 2500; n++)
        assert_int_equal(arrive(&bed, n),
                         n < 2500 - SEQUENCE_WINDOW ? SEQUENCE_LATE : SEQUENCE_DUPLICATE);
    for (uint32_t n = 2500; n < 3000; n++)
        assert_int_equal(arrive(&bed, n), SEQUENCE_FRESH);
    assert_int_equal(bed.arrivals, 3000);
    assert_int_equal(bed.reordered, 0);
}

/* Whatever comes, no number is delivered twice, and each arrival has one verdict. */
static void test_nothing_counts_twice(void **state)
{
    for (unsigned seed = 0; seed < 200; seed++) {
        static bool delivered[8192];
        static struct bed bed;
        unsigned verdicts = 0;

        clear(&bed);
        memset(delivered, 0, sizeof delivered);
        srandom(seed);
        for (unsigned i = 0; i < 5000; i++) {
            uint32_t spread = seed % 2 == 0 ? 4000 : 100;
            uint32_t number = (i / 2 + (uint32_t)random() % spread) % 8192;
            enum sequence_verdict verdict = arrive(&bed, number);

            if (verdict == SEQUENCE_FRESH || verdict == SEQUENCE_REORDERED) {
                assert_false(delivered[number]);
                delivered[number] = true;
            }
        }
        for (unsigned v = 0; v < SEQUENCE_VERDICTS; v++)
            verdicts += bed.verdicts[v];
        assert_int_equal(verdicts, 5000);
        assert_int_equal(bed.arrivals,
                         bed.verdicts[SEQUENCE_FRESH] + bed.verdicts[SEQUENCE_REORDERED]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_extent_by_hand),
        cmocka_unit_test(test_loss_is_no_reordering),
        cmocka_unit_test(test_against_memory),
        cmocka_unit_test(test_most_gaps),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_restart),
        cmocka_unit_test(test_nothing_counts_twice),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
