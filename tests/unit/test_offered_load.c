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
#define FPS (LINE_BPS / 8.0 / (FRAME + FRAME_OVERHEAD_L1)) /* 8,127.4 */
#define MESSAGES (LINE_BPS / 8.0 / 65536)
#define FRAMES_OF(bps, shared, part)                                                               \
    {                                                                                              \
        "node1:e0", bps, true, FRAME, shared, part                                                 \
    }
#define MESSAGES_OF(bps, shared, part)                                                             \
    {                                                                                              \
        "node1:e0", bps, false, 65536, shared, part                                                \
    }

static const struct load_line frames = FRAMES_OF(LINE_BPS, false, 1);
static const struct load_line messages = MESSAGES_OF(LINE_BPS, false, 1);
static const struct load_line unknown = FRAMES_OF(0, false, 1);
static const struct load_line nameless = MESSAGES_OF(0, false, 1);
static const struct load_line shared = FRAMES_OF(LINE_BPS, true, 1);
static const struct load_line shared_messages = MESSAGES_OF(LINE_BPS, true, 1);
static const struct load_line shared_unknown = FRAMES_OF(0, true, 1);
/* Of an incast's sender, a seventh of what the receiver's line is asked for. */
static const struct load_line seventh = FRAMES_OF(LINE_BPS, false, 1.0 / 7);
static const struct load_line seventh_messages = MESSAGES_OF(LINE_BPS, false, 1.0 / 7);

static const struct {
    const struct load_line *line;
    struct doc_load ask;
    double bps, fps;
    bool unlimited;
    const char *refused; /* words of the sentence; NULL: it is not */
} cases[] = {
    {&frames, {.percent = 95}, 95e6, 0, false, NULL},
    {&frames, {.percent = 100}, LINE_BPS, 0, false, NULL}, /* a frame too many is a frame lost */
    {&frames, {.bps = 5e6}, 5e6, 0, false, NULL},
    {&frames, {.bps = LINE_BPS}, LINE_BPS, 0, false, NULL},
    {&frames, {.bps = LINE_BPS + 1}, 0, 0, false, "is above its line rate of 100 Mbit/s"},
    {&frames, {.fps = FPS - 1}, 0, FPS - 1, false, NULL},
    {&frames, {.fps = FPS + 1}, 0, 0, false, "is above its line rate"},
    {&messages, {.percent = 100}, LINE_BPS, 0, true, NULL},
    {&messages, {.percent = 99.9}, 99.9e6, 0, false, NULL},
    {&messages, {.fps = MESSAGES - 1}, 0, MESSAGES - 1, false, NULL},
    {&messages, {.fps = MESSAGES + 1}, 0, 0, false, "above its line rate"},
    {&nameless, {.percent = 100}, 0, 0, true, NULL},
    {&nameless, {.percent = 50}, 0, 0, false, "needs a line rate"},
    {&unknown, {.percent = 1}, 0, 0, false, "set line_rate"},
    {&unknown, {.bps = 1e12}, 1e12, 0, false, NULL},
    {&unknown, {.fps = 1e9}, 0, 1e9, false, NULL},
    {&seventh, {.percent = 105}, 15e6, 0, false, NULL},
    {&seventh, {.fps = 700}, 0, 100, false, NULL},
    {&seventh, {.percent = 701}, 0, 0, false, "is above its line rate"},
    {&seventh_messages, {.percent = 100}, 14285714, 0, false, NULL},
    {&shared, {.percent = 95}, 95e6, 0, false, NULL},
    {&shared, {.fps = FPS * 0.949}, 0, FPS * 0.949, false, NULL},
    {&shared, {.percent = 96}, 0, 0, false, "is shared: a load of at most 95 %"},
    {&shared, {.fps = FPS * 0.951}, 0, 0, false, "is shared"},
    {&shared, {.bps = 96e6}, 0, 0, false, "is shared"},
    {&shared_messages, {.percent = 100}, 0, 0, false, "is shared"},
    {&shared_unknown, {.bps = 1e6}, 0, 0, false, "set line_rate"},
};

static void a_load_is_resolved_or_refused(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = {0};
        struct load load;
        int rc = load_resolve(&load, &cases[i].ask, cases[i].line, &err);

        assert_int_equal(rc, cases[i].refused != NULL ? -EINVAL : 0);
        if (rc < 0) {
            assert_non_null(strstr(err.text, "node1:e0"));
            assert_non_null(strstr(err.text, cases[i].refused));
            continue;
        }
        assert_string_equal(err.text, "");
        assert_float_equal(load.rate_bps, cases[i].bps, 1);
        assert_float_equal(load.rate_fps, cases[i].fps, 1e-9);
        assert_int_equal(load.unlimited, cases[i].unlimited);
        assert_float_equal(load.part, cases[i].line->part, 0);
    }
}

/* Slow: the network is not known yet. Three to one partner take as long as three to each of many:
 * 0.15 s. */
static void probes_are_slow_and_spread(void **state)
{
    static const struct load_line slow = FRAMES_OF(1000000, false, 1);
    static const struct load_line fast = FRAMES_OF(100000000000, false, 1);
    static const struct {
        const struct load_line *line;
        uint32_t probes;
        double fps;
    } probes[] = {{&frames, 3000, FPS / 10}, {&slow, 3000, FPS / 1000}, {&unknown, 0, 1000},
                  {&fast, 3000, 1000},       {&frames, 3, 20},          {&unknown, 30, 200}};

    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        struct load load;

        load_for_probe(&load, probes[i].line, probes[i].probes);
        assert_float_equal(load.rate_fps, probes[i].fps, 0.01);
        assert_false(load.unlimited);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_is_resolved_or_refused),
        cmocka_unit_test(probes_are_slow_and_spread),
    };

    return cmocka_run_group_tests_name("load", tests, NULL, NULL);
}
