/* SPDX-License-Identifier: BSD-3-Clause */
#include "forged_cases.h"

#include <stdint.h>

#include <cmocka.h>

#define AHEAD 100000u

static const struct forged_bed *bed;

struct phase forged_phase(const void *options)
{
    return (struct phase){
        .tag = 7,
        .traffic = TRAFFIC_STREAM,
        .sizes = {FORGED_SIZE},
        .size_count = 1,
        .load = {.rate_fps = (double)NS_PER_S / FORGED_STEP_NS},
        .options = options,
        .start_ns = FORGED_START_NS,
        .stop_ns = 100 * NS_PER_S,
    };
}

static void send_and_receive(unsigned frames, const struct forgery *forgery,
                             struct forged_counts *sent)
{
    for (unsigned i = 0; i < frames; i += bed->batch) {
        bed->send(bed->batch, forgery, sent);
        bed->receive();
    }
}

static void expect(const struct forged_counts *sent)
{
    assert_int_equal(bed->received->late, 0);
    assert_int_equal(bed->received->forged, sent->forged);
    assert_int_equal(bed->received->duplicated, 0);
    assert_int_equal(bed->received->reordered, 0);
    assert_int_equal(bed->received->live.frames, sent->honest);
}

static void forged_for_a_second(int64_t later_ns)
{
    const struct forgery forgery = {AHEAD, later_ns};
    struct forged_counts sent = {0};

    send_and_receive(10000, &forgery, &sent);
    assert_in_range(sent.forged, 900, 1100);
    expect(&sent);
}

static void a_jump_ahead_is_refused(void **state)
{
    forged_for_a_second(0);
}

/* A stamp of the future says nothing of how much a sender may have sent. */
static void so_is_one_with_a_stamp_of_the_future(void **state)
{
    forged_for_a_second(20 * NS_PER_S);
}

static void the_first_frame_can_be_forged_too(void **state)
{
    const struct forgery forgery = {AHEAD, 0};
    struct forged_counts sent = {.forged = 1};

    bed->send_forged(&forgery);
    bed->receive();
    expect(&sent);
    send_and_receive(10, NULL, &sent);
    assert_true(sent.honest > 0);
    expect(&sent);
}

/* What is lost for a while leaves a gap that the time since then explains. */
static void a_long_loss_is_a_loss(void **state)
{
    struct forged_counts sent = {0};
    uint64_t before;

    send_and_receive(200, NULL, &sent);
    before = sent.honest;
    bed->lose(5 * NS_PER_S);
    send_and_receive(200, NULL, &sent);
    assert_in_range(sent.honest, before + 190, before + 210);
    expect(&sent);
}

/* A receiver that was away finds old frames and, behind what its queue had no room for, new ones,
 * all at one time. */
static void a_receiver_that_was_away_believes_the_stamps(void **state)
{
    struct forged_counts sent = {0};

    bed->send(500, NULL, &sent);
    bed->lose(3 * NS_PER_S);
    bed->send(300, NULL, &sent);
    bed->receive();
    assert_in_range(sent.honest, 790, 810);
    expect(&sent);
}

/* One frame of each second comes, with a stamp that is off; then the time between arrivals has to
 * do. */
static void with_clocks_that_differ(int64_t by_ns)
{
    const struct forgery forgery = {0, by_ns};
    const struct forged_counts honest = {.honest = 5};

    for (unsigned i = 0; i < 5; i++) {
        bed->lose(NS_PER_S);
        bed->send_forged(&forgery);
        bed->receive();
    }
    expect(&honest);
}

static void clocks_that_differ_do_no_harm(void **state)
{
    with_clocks_that_differ(20 * NS_PER_S);
}

static void nor_those_that_are_behind(void **state)
{
    with_clocks_that_differ(-20 * NS_PER_S);
}

#define CASE(test, setup) cmocka_unit_test_setup_teardown(test, cases_bed->setup, cases_bed->end)

int forged_cases_run(const struct forged_bed *cases_bed)
{
    const struct CMUnitTest tests[] = {
        CASE(a_jump_ahead_is_refused, begin),
        CASE(so_is_one_with_a_stamp_of_the_future, begin),
        CASE(the_first_frame_can_be_forged_too, begin),
        CASE(a_long_loss_is_a_loss, begin),
        CASE(a_receiver_that_was_away_believes_the_stamps, begin),
        CASE(clocks_that_differ_do_no_harm, begin),
        CASE(nor_those_that_are_behind, begin),
        CASE(a_jump_ahead_is_refused, begin_without_line),
        CASE(a_long_loss_is_a_loss, begin_without_line),
        CASE(a_receiver_that_was_away_believes_the_stamps, begin_without_line),
    };

    bed = cases_bed;
    return cmocka_run_group_tests(tests, bed->open, bed->close);
}
