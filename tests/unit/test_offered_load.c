/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Loads: shares of a line, rates in bits and in frames, and what no line carries.
 */
#include "offered_load.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define LINE_BPS 100000000
#define FRAME 1518
#define FRAMES_A_SECOND (LINE_BPS / 8.0 / (FRAME + FRAME_OVERHEAD_L1)) /* 8,127.4 */

static const struct load_line frames = {"node1:e0", LINE_BPS, true, FRAME, false, 1};
static const struct load_line messages = {"node1:e0", LINE_BPS, false, 65536, false, 1};
static const struct load_line unknown = {"node1:e0", 0, true, FRAME, false, 1};

static struct load resolve(struct doc_load ask, const struct load_line *line)
{
    struct err err = {0};
    struct load load;

    assert_int_equal(load_resolve(&load, &ask, line, &err), 0);
    assert_string_equal(err.text, "");
    return load;
}

static void refused(struct doc_load ask, const struct load_line *line, const char *words)
{
    struct err err = {0};
    struct load load;

    assert_int_equal(load_resolve(&load, &ask, line, &err), -EINVAL);
    assert_non_null(strstr(err.text, "node1:e0"));
    assert_non_null(strstr(err.text, words));
}

static void percent_is_of_the_line(void **state)
{
    struct load load = resolve((struct doc_load){.percent = 95}, &frames);

    assert_float_equal(load.rate_bps, 95e6, 1);
    assert_float_equal(load.rate_fps, 0, 0);
    assert_false(load.unlimited);
    load = resolve((struct doc_load){.percent = 100}, &frames);
    assert_float_equal(load.rate_bps, LINE_BPS, 1);
    assert_false(load.unlimited); /* a frame too many is a frame lost */
}

static void messages_at_full_line_are_unlimited(void **state)
{
    static const struct load_line nameless = {"node1:e0", 0, false, 65536, false, 1};

    assert_true(resolve((struct doc_load){.percent = 100}, &messages).unlimited);
    assert_false(resolve((struct doc_load){.percent = 99.9}, &messages).unlimited);
    assert_true(resolve((struct doc_load){.percent = 100}, &nameless).unlimited);
    refused((struct doc_load){.percent = 50}, &nameless, "needs a line rate");
}

static void rates_are_taken_as_they_are(void **state)
{
    assert_float_equal(resolve((struct doc_load){.bps = 5e6}, &frames).rate_bps, 5e6, 0);
    assert_float_equal(resolve((struct doc_load){.fps = 500}, &frames).rate_fps, 500, 0);
    assert_float_equal(resolve((struct doc_load){.bps = LINE_BPS}, &frames).rate_bps, LINE_BPS, 0);
}

/* Of an incast's sender, a seventh of what the receiver's line is asked for. */
static void a_port_has_its_part_of_the_load(void **state)
{
    struct load_line seventh = frames, streams = messages;

    seventh.part = streams.part = 1.0 / 7;
    assert_float_equal(resolve((struct doc_load){.percent = 105}, &seventh).rate_bps, 15e6, 1);
    assert_float_equal(resolve((struct doc_load){.fps = 700}, &seventh).rate_fps, 100, 1e-9);
    assert_float_equal(resolve((struct doc_load){.percent = 70}, &seventh).part, 1.0 / 7, 0);
    assert_false(resolve((struct doc_load){.percent = 100}, &streams).unlimited);
    assert_float_equal(resolve((struct doc_load){.percent = 70}, &streams).rate_bps, 10e6, 1);
    refused((struct doc_load){.percent = 701}, &seventh, "is above its line rate");
}

static void above_the_line_is_refused(void **state)
{
    refused((struct doc_load){.bps = LINE_BPS + 1}, &frames,
            "is above its line rate of 100 Mbit/s");
    resolve((struct doc_load){.fps = FRAMES_A_SECOND - 1}, &frames);
    refused((struct doc_load){.fps = FRAMES_A_SECOND + 1}, &frames, "is above its line rate");
    resolve((struct doc_load){.fps = LINE_BPS / 8.0 / 65536 - 1}, &messages);
    refused((struct doc_load){.fps = LINE_BPS / 8.0 / 65536 + 1}, &messages, "above its line rate");
}

static void without_a_line_rate_only_rates_are_possible(void **state)
{
    refused((struct doc_load){.percent = 1}, &unknown, "set line_rate");
    resolve((struct doc_load){.bps = 1e12}, &unknown);
    resolve((struct doc_load){.fps = 1e9}, &unknown);
}

static void probes_are_slow(void **state)
{
    static const struct load_line slow = {"node1:e0", 1000000, true, FRAME, false, 1};
    struct load load;

    load_for_probe(&load, &frames, 3000);
    assert_float_equal(load.rate_fps, FRAMES_A_SECOND / 10, 0.1);
    load_for_probe(&load, &slow, 3000);
    assert_float_equal(load.rate_fps, FRAMES_A_SECOND / 1000, 0.01);
    load_for_probe(&load, &unknown, 0);
    assert_float_equal(load.rate_fps, 1000, 0);
    load_for_probe(&load, &(struct load_line){"node1:e0", 100000000000, true, 64, false, 1}, 3000);
    assert_float_equal(load.rate_fps, 1000, 0);
    assert_false(load.unlimited);
}

/* Three to one partner take as long as three to each of many: 0.15 s. */
static void few_probes_are_spread(void **state)
{
    struct load load;

    load_for_probe(&load, &frames, 3);
    assert_float_equal(load.rate_fps, 20, 0.001);
    load_for_probe(&load, &unknown, 30);
    assert_float_equal(load.rate_fps, 200, 0.001);
}

static void a_shared_line_is_left_to_others_too(void **state)
{
    struct load_line shared = frames;
    struct load_line streams = messages;
    struct load_line nameless = unknown;

    shared.shared = streams.shared = nameless.shared = true;
    assert_float_equal(resolve((struct doc_load){.percent = 95}, &shared).rate_bps, 95e6, 1);
    resolve((struct doc_load){.fps = FRAMES_A_SECOND * 0.949}, &shared);
    refused((struct doc_load){.percent = 96}, &shared, "is shared: a load of at most 95 %");
    refused((struct doc_load){.fps = FRAMES_A_SECOND * 0.951}, &shared, "is shared");
    refused((struct doc_load){.bps = 96e6}, &shared, "is shared");
    refused((struct doc_load){.percent = 100}, &streams, "is shared");
    refused((struct doc_load){.bps = 1e6}, &nameless, "set line_rate");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percent_is_of_the_line),
        cmocka_unit_test(messages_at_full_line_are_unlimited),
        cmocka_unit_test(rates_are_taken_as_they_are),
        cmocka_unit_test(a_port_has_its_part_of_the_load),
        cmocka_unit_test(above_the_line_is_refused),
        cmocka_unit_test(without_a_line_rate_only_rates_are_possible),
        cmocka_unit_test(probes_are_slow),
        cmocka_unit_test(few_probes_are_spread),
        cmocka_unit_test(a_shared_line_is_left_to_others_too),
    };

    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
