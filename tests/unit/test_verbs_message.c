/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages made and verified without a device: whole, damaged, shortened, lost, late, twice.
 */
#include "verifier.h"

#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM (1u << 20)

struct bench {
    struct verbs_script script;
    struct verbs_cursor at;
    struct verbs_verifier verifier;
    struct flow_side side;
    struct port_count count;
    uint8_t message[ROOM];
};

static struct bench bench;

static void begin(const uint32_t *sizes, uint32_t count, uint64_t total)
{
    verbs_payload_init();
    memset(&bench, 0, sizeof bench);
    bench.script = (struct verbs_script){.sizes = sizes,
                                         .size_count = count,
                                         .total = total,
                                         .stream = 2,
                                         .tag = 0xbeef,
                                         .src = 65535,
                                         .dst = 7};
    verbs_cursor_start(&bench.at, &bench.script);
    bench.verifier = (struct verbs_verifier){
        .script = bench.script, .side = &bench.side, .count = &bench.count, .reliable = true};
    verbs_verify_start(&bench.verifier);
}

/* The present message as a source gathers it; returns its length and goes on. */
static uint32_t make(void)
{
    struct verbs_header header = verbs_header_of(&bench.at, &bench.script, bench.at.place);
    uint32_t length = bench.at.length;

    memcpy(bench.message, &header, length < sizeof header ? length : sizeof header);
    if (length > sizeof header)
        verbs_payload_fill(bench.message + sizeof header, length - sizeof header, bench.at.place);
    verbs_cursor_next(&bench.at, &bench.script);
    return length;
}

static const uint32_t mixed[] = {1, 16, 20, 21, 300, 4096, 70000, 200001};
#define MIXED (sizeof mixed / sizeof mixed[0])

static void whole_messages_count(void **state)
{
    uint64_t bytes = 0;

    begin(mixed, MIXED, FLOW_ENDLESS);
    for (unsigned i = 0; i < 40; i++) {
        uint32_t length = make();

        bytes += length;
        assert_true(verbs_verify_message(&bench.verifier, bench.message, length));
    }
    assert_int_equal(bench.side.live.messages, 40);
    assert_int_equal(bench.side.live.payload_bytes, bytes);
    assert_int_equal(bench.side.corrupted + bench.side.reordered, 0);
}

static void a_script_ends_with_a_shortened_message(void **state)
{
    static const uint32_t size[] = {1000};

    begin(size, 1, 2500);
    assert_int_equal(make(), 1000);
    assert_int_equal(make(), 1000);
    assert_int_equal(make(), 500);
    assert_int_equal(bench.at.length, 0);
    assert_int_equal(bench.at.before, 2500);
}

static void assert_same_cursor(const struct verbs_cursor *a, const struct verbs_cursor *b)
{
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->before, b->before);
    assert_int_equal(a->length, b->length);
    assert_int_equal(a->turn, b->turn);
    assert_int_equal(a->place, b->place);
}

/* A run of messages leaves the cursor where one after the other would. */
static void a_run_ends_where_its_messages_do(void **state)
{
    static const uint32_t one[] = {1024};
    struct verbs_cursor skipped;

    begin(one, 1, UINT64_C(1024) * 70000 + 5);
    skipped = bench.at;
    for (uint32_t run = 1; run < 300; run++) {
        verbs_cursor_skip(&skipped, &bench.script, run);
        for (uint32_t i = 0; i < run; i++)
            verbs_cursor_next(&bench.at, &bench.script);
        assert_same_cursor(&skipped, &bench.at);
    }
    verbs_cursor_skip(&skipped, &bench.script, 70000 - (uint32_t)skipped.sequence);
    assert_int_equal(skipped.length, 5);
    verbs_cursor_skip(&skipped, &bench.script, 1);
    assert_int_equal(skipped.length, 0);

    begin(mixed, MIXED, FLOW_ENDLESS);
    skipped = bench.at;
    for (uint32_t i = 0; i < 3 * MIXED; i++) {
        verbs_cursor_skip(&skipped, &bench.script, 1);
        verbs_cursor_next(&bench.at, &bench.script);
        assert_same_cursor(&skipped, &bench.at);
    }
}

/* Sizes that are drawn are the same for whoever has the script. */
static void drawn_sizes_are_known_to_both_ends(void **state)
{
    uint32_t least = UINT32_MAX, most = 0;

    begin(mixed, 1, FLOW_ENDLESS);
    bench.script.drawn = bench.verifier.script.drawn = prng_sizes(7, 3, 50000);
    verbs_cursor_start(&bench.at, &bench.script);
    verbs_verify_start(&bench.verifier);
    for (uint32_t i = 0; i < 500; i++) {
        uint32_t length = make();

        assert_true(verbs_verify_message(&bench.verifier, bench.message, length));
        least = length < least ? length : least;
        most = length > most ? length : most;
    }
    assert_int_equal(bench.side.live.messages, 500);
    assert_int_equal(bench.side.corrupted, 0);
    assert_true(least >= 3 && least < 10);
    assert_true(most <= 50000 && most > 25000);
}

/* A message shorter than its own sequence is placed by a number from elsewhere. */
static void a_number_tells_what_is_missing(void **state)
{
    static const uint32_t size[] = {4};

    begin(size, 1, FLOW_ENDLESS);
    bench.verifier.reliable = false;
    assert_false(verbs_verify_gap(&bench.verifier, 0, 4));
    assert_true(verbs_verify_message(&bench.verifier, bench.message, make()));
    for (int i = 0; i < 4; i++)
        make();
    assert_false(verbs_verify_gap(&bench.verifier, 4, 4));
    assert_true(verbs_verify_message(&bench.verifier, bench.message, 4));
    assert_int_equal(bench.verifier.missed, 3);
    assert_int_equal(bench.verifier.at.sequence, 5);
    assert_true(verbs_verify_gap(&bench.verifier, 2, 4)); /* it comes after all */
    assert_int_equal(bench.verifier.missed, 2);
    assert_int_equal(bench.side.reordered, 1);
    assert_int_equal(bench.verifier.at.sequence, 5);
    /* As far behind as a number can be. */
    assert_true(
        verbs_verify_gap(&bench.verifier, (uint32_t)bench.verifier.at.sequence + 0x80000000u, 4));
}

static void every_wrong_byte_is_counted(void **state)
{
    begin(mixed, MIXED, FLOW_ENDLESS);
    bench.verifier.whole = true;
    for (unsigned i = 0; i < MIXED; i++) {
        uint32_t length = make();
        uint64_t before = bench.side.corrupted;

        bench.message[length / 2] ^= 0x40;
        bench.message[length - 1] ^= 1;
        verbs_verify_message(&bench.verifier, bench.message, length);
        assert_int_equal(bench.side.corrupted - before, length == 1 ? 1 : 2);
    }
    assert_int_equal(bench.side.live.messages, 0);
}

/* In a stream's large messages a wrong last word is always found, a wrong block of any eighth of a
 * message, too; a single byte only when it is sampled, but then counted exactly. */
static void samples_find_damage(void **state)
{
    static const uint32_t size[] = {65536};
    unsigned found = 0;

    begin(size, 1, FLOW_ENDLESS);
    for (unsigned i = 0; i < 1200; i++) {
        uint32_t length = make();
        uint64_t before = bench.side.corrupted;

        bench.message[30000] ^= 1;
        verbs_verify_message(&bench.verifier, bench.message, length);
        assert_true(bench.side.corrupted - before <= 1);
        found += bench.side.corrupted > before;
    }
    /* Those that are compared whole (every 64th), and the one whose sample is there. */
    assert_true(found >= 1200 / VERBS_WHOLE_EVERY);
    assert_int_equal(bench.side.live.messages + found, 1200);
    for (unsigned i = 0; i < 100; i++) {
        uint32_t length = make();
        uint64_t before = bench.side.corrupted;

        memset(bench.message + 24000, 0, 8192); /* more than an eighth of the payload away */
        bench.message[length - 3] ^= 4;
        verbs_verify_message(&bench.verifier, bench.message, length);
        assert_true(bench.side.corrupted > before + 8000);
    }
}

static void an_old_message_in_place_is_no_new_one(void **state)
{
    static const uint32_t size[] = {4096};
    static uint8_t old[4096];

    begin(size, 1, FLOW_ENDLESS);
    memcpy(old, bench.message, make());
    memcpy(old, bench.message, sizeof old);
    verbs_verify_message(&bench.verifier, bench.message, sizeof old);
    make();
    verbs_verify_message(&bench.verifier, old, sizeof old);
    assert_int_equal(bench.side.live.messages, 1);
    assert_true(bench.side.corrupted > 3000);
    assert_int_equal(bench.side.reordered, 1);
    /* Only the header is new: the payload did not come. */
    begin(size, 1, FLOW_ENDLESS);
    verbs_verify_message(&bench.verifier, bench.message, make());
    memcpy(old, bench.message, sizeof old);
    make();
    memcpy(old, bench.message, VERBS_HEADER_BYTES);
    verbs_verify_message(&bench.verifier, old, sizeof old);
    assert_int_equal(bench.side.live.messages, 1);
}

static void a_wrong_length_is_all_wrong(void **state)
{
    begin(mixed + 5, 1, FLOW_ENDLESS);
    make();
    verbs_verify_message(&bench.verifier, bench.message, 4000);
    assert_int_equal(bench.side.live.messages, 0);
    assert_int_equal(bench.side.live.payload_bytes, 0);
    assert_int_equal(bench.side.corrupted, 4000);
}

static void what_is_lost_late_or_twice_is_told_apart(void **state)
{
    static const uint32_t size[] = {100};
    uint8_t cached[100];

    begin(size, 1, FLOW_ENDLESS);
    bench.verifier.reliable = false;
    verbs_verify_message(&bench.verifier, bench.message, make());
    make(); /* 1: late */
    memcpy(cached, bench.message, sizeof cached);
    make(); /* 2: lost */
    verbs_verify_message(&bench.verifier, bench.message, make());
    assert_int_equal(bench.verifier.missed, 2);
    verbs_verify_message(&bench.verifier, cached, sizeof cached);
    assert_int_equal(bench.side.reordered, 1);
    assert_int_equal(bench.verifier.missed, 1);
    verbs_verify_message(&bench.verifier, cached, sizeof cached);
    assert_int_equal(bench.side.duplicated, 1);
    for (unsigned i = 0; i < 70; i++)
        verbs_verify_message(&bench.verifier, bench.message, make());
    verbs_verify_message(&bench.verifier, cached, sizeof cached);
    assert_int_equal(bench.side.late, 1);
    assert_int_equal(bench.side.live.messages, 73);
    assert_int_equal(bench.side.corrupted, 0);
}

/* The receiver of a service that loses gets the rest: none of it is damaged, all of it counts. */
static void lose_one_in_three(const uint32_t *sizes, uint32_t count, unsigned *came)
{
    begin(sizes, count, FLOW_ENDLESS);
    bench.verifier.reliable = false;
    *came = 0;
    for (unsigned i = 0; i < 300; i++) {
        uint32_t length = make();

        if (i % 3 == 1)
            continue;
        assert_true(verbs_verify_message(&bench.verifier, bench.message, length));
        ++*came;
    }
}

static void loss_of_short_messages_is_no_damage(void **state)
{
    static const uint32_t lengths[] = {1, 4, 7, 8, 16, 19, 20, 21};
    static const uint32_t both[] = {4, 100};
    unsigned came;

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        lose_one_in_three(&lengths[i], 1, &came);
        assert_int_equal(bench.side.live.messages, came);
        assert_int_equal(bench.side.corrupted + bench.side.reordered + bench.side.duplicated, 0);
        /* Less than 8 bytes hold no sequence: only the source knows that some are missing. */
        assert_int_equal(bench.verifier.missed, lengths[i] < 8 ? 0 : 300 / 3);
    }
    lose_one_in_three(both, 2, &came);
    assert_int_equal(bench.side.live.messages, came);
    assert_int_equal(bench.side.corrupted, 0);
}

/* What a write's immediate tells before the message is looked at. */
static void messages_that_are_skipped_are_missed(void **state)
{
    static const uint32_t size[] = {4};

    begin(size, 1, FLOW_ENDLESS);
    bench.verifier.reliable = false;
    verbs_verify_skip(&bench.verifier, 0);
    assert_int_equal(bench.verifier.missed, 0);
    make();
    make();
    verbs_verify_skip(&bench.verifier, 2);
    assert_true(verbs_verify_message(&bench.verifier, bench.message, make()));
    assert_int_equal(bench.verifier.missed, 2);
    assert_int_equal(bench.verifier.at.sequence, 3);
    assert_int_equal(bench.side.corrupted, 0);
}

static void other_streams_are_foreign(void **state)
{
    static const uint32_t size[] = {100};

    begin(size, 1, FLOW_ENDLESS);
    bench.verifier.reliable = false;
    make();
    bench.message[2] ^= 1; /* the tag */
    assert_false(verbs_verify_message(&bench.verifier, bench.message, 100));
    assert_int_equal(bench.count.foreign, 1);
    assert_int_equal(bench.side.live.messages + bench.side.corrupted, 0);
}

static void forwarding_changes_the_ranks_only(void **state)
{
    static const uint32_t size[] = {100};
    struct verbs_script onward;
    uint32_t length;

    begin(size, 1, FLOW_ENDLESS);
    length = make();
    onward = bench.script;
    onward.src = 7;
    onward.dst = 9;
    verbs_redirect(bench.message, length, &onward);
    bench.verifier.script = onward;
    verbs_verify_message(&bench.verifier, bench.message, length);
    assert_int_equal(bench.side.live.messages, 1);
    verbs_redirect(bench.message, 3, &onward); /* shorter than the ranks: nothing to change */
}

static void eofs_and_credits_are_read_whole_or_not(void **state)
{
    static const uint32_t size[] = {100};
    struct verbs_notice credit, eof;
    uint64_t messages, bytes;

    begin(size, 1, FLOW_ENDLESS);
    eof = verbs_notice_make(VERBS_KIND_EOF, &bench.script, 12345678901, 99);
    assert_true(verbs_notice_read(&eof, VERBS_KIND_EOF, &bench.script, &messages, &bytes));
    assert_true(messages == 12345678901 && bytes == 99);
    assert_false(verbs_notice_read(&eof, VERBS_KIND_CREDIT, &bench.script, &messages, &bytes));
    for (size_t i = 0; i < sizeof eof; i++) {
        struct verbs_notice torn = eof;

        ((uint8_t *)&torn)[i] ^= 1;
        assert_false(verbs_notice_read(&torn, VERBS_KIND_EOF, &bench.script, &messages, &bytes));
    }
    credit = verbs_notice_make(VERBS_KIND_CREDIT, &bench.script,
                               verbs_credit(bench.script.tag, true, 77), 0);
    assert_true(verbs_notice_read(&credit, VERBS_KIND_CREDIT, &bench.script, &messages, &bytes));
    assert_true(verbs_credit_finished(messages) && verbs_credit_messages(messages) == 77);
    bench.script.tag++;
    assert_false(verbs_notice_read(&credit, VERBS_KIND_CREDIT, &bench.script, &messages, &bytes));
}

/* A number from the wire may be anything: the jump to it takes a round of the sizes, and ends where
 * steps would. */
static void a_far_jump_ends_where_steps_would(void **state)
{
    static const uint32_t sizes[] = {64, 1500, 9000};
    const uint64_t totals[] = {FLOW_ENDLESS, 3000000};

    for (unsigned t = 0; t < 2; t++) {
        const struct verbs_script script = {.sizes = sizes, .size_count = 3, .total = totals[t]};
        struct verbs_cursor steps, jump;

        verbs_cursor_start(&steps, &script);
        verbs_cursor_start(&jump, &script);
        for (unsigned i = 0; i < 1001 && steps.length > 0; i++)
            verbs_cursor_next(&steps, &script);
        verbs_cursor_skip_rounds(&jump, &script, 1001);
        while (jump.sequence < 1001 && jump.length > 0)
            verbs_cursor_next(&jump, &script);
        assert_memory_equal(&jump, &steps, sizeof jump);
    }
}

static void a_forged_number_takes_no_time(void **state)
{
    static const uint32_t sizes[] = {4, 8};
    struct flow_side side = {0};
    struct port_count count = {0};
    struct verbs_verifier verifier = {
        .script = {.sizes = sizes, .size_count = 2, .total = FLOW_ENDLESS},
        .side = &side,
        .count = &count,
    };

    verbs_verify_start(&verifier);
    for (unsigned i = 1; i <= 1000; i++) /* by steps these took a quarter of an hour */
        assert_false(verbs_verify_gap(&verifier, i * (uint32_t)INT32_MAX, 4));
    verifier.script.drawn = prng_sizes(7, 3, 50000);
    verbs_verify_start(&verifier);
    assert_true(verbs_verify_gap(&verifier, INT32_MAX, 4));
    assert_int_equal(count.foreign, 1);
    assert_int_equal(verifier.at.sequence, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_messages_count),
        cmocka_unit_test(a_script_ends_with_a_shortened_message),
        cmocka_unit_test(a_run_ends_where_its_messages_do),
        cmocka_unit_test(drawn_sizes_are_known_to_both_ends),
        cmocka_unit_test(a_number_tells_what_is_missing),
        cmocka_unit_test(every_wrong_byte_is_counted),
        cmocka_unit_test(samples_find_damage),
        cmocka_unit_test(an_old_message_in_place_is_no_new_one),
        cmocka_unit_test(a_wrong_length_is_all_wrong),
        cmocka_unit_test(what_is_lost_late_or_twice_is_told_apart),
        cmocka_unit_test(loss_of_short_messages_is_no_damage),
        cmocka_unit_test(messages_that_are_skipped_are_missed),
        cmocka_unit_test(other_streams_are_foreign),
        cmocka_unit_test(forwarding_changes_the_ranks_only),
        cmocka_unit_test(a_far_jump_ends_where_steps_would),
        cmocka_unit_test(a_forged_number_takes_no_time),
        cmocka_unit_test(eofs_and_credits_are_read_whole_or_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
