/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Documents and their stream: what is accepted, and the sentence of each refusal.
 */
#include "document_reader.h"
#include "document_stream.h"
#include "option.h"
#include "transport.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* What options a transport may have. */
struct fast_options {
    uint32_t mode;
    uint8_t small;
    int16_t index;
    uint16_t tag;
    bool tagged;
    bool eager;
    double share;
    char name[8];
};

static const struct option options[] = {
    {OPTION(OPTION_WORD, fast_options, "mode", mode), .words = (const char *[]){"a", "b", NULL}},
    {OPTION(OPTION_NUMBER, fast_options, "small", small), .min = 1, .max = 6, .initial = 5,
     .why = "seven is too many"},
    {OPTION(OPTION_NUMBER, fast_options, "index", index), .max = 255, .initial = -1},
    {OPTION(OPTION_NUMBER, fast_options, "tag", tag), .max = 4094,
     .given = offsetof(struct fast_options, tagged)},
    {OPTION(OPTION_BOOL, fast_options, "eager", eager), .initial = true},
    {OPTION(OPTION_REAL, fast_options, "share", share)},
    {OPTION(OPTION_TEXT, fast_options, "name", name)},
    {.key = NULL},
};
static const struct option_table table = {options, sizeof(struct fast_options), NULL};
static const struct transport fast = {.name = "fast", .options = &table};
static const struct transport slow = {.name = "slow", .options = &table};
static const struct transport *const transports[] = {&slow, &fast, NULL};

static struct document *parse(const char *text, struct err *err)
{
    struct document *document = NULL;

    *err = (struct err){""};
    document_parse(&document, &(struct document_text){text, strlen(text), 1}, transports, err);
    return document;
}

#define TRIAL                                                                                      \
    "trial:\n"                                                                                     \
    "  id: 3\n"                                                                                    \
    "  transport: fast\n"                                                                          \
    "  parts: [{network: lab, ranks: [\"a:e0\", \"b:e0\"]}]\n"                                     \
    "  pattern: {name: ring, count: 2}\n"                                                          \
    "  sizes: [64, 1518]\n"

static void a_whole_trial_is_read(void **state)
{
    struct err err;
    struct document *document = parse(TRIAL "  load: {percent: 99.98}\n"
                                            "  window_ns: 2000000000\n"
                                            "  sync: none\n"
                                            "  seed: 7\n"
                                            "  connectivity_check: false\n"
                                            "  fast: {mode: b, tag: 0, small: 3, name: x}\n",
                                      &err);
    const struct fast_options *fast_options;
    const struct doc_trial *trial;

    assert_string_equal(err.text, "");
    assert_non_null(document);
    assert_int_equal(document_kind(document), DOCUMENT_TRIAL);
    trial = document->trial;
    assert_int_equal(trial->id, 3);
    assert_int_equal(trial->parts[0].ranks_count, 2);
    assert_string_equal(trial->parts[0].ranks[1], "b:e0");
    assert_int_equal(trial->sizes_count, 2);
    assert_int_equal(trial->sizes[1], 1518);
    assert_true(trial->load.percent > 99.97 && trial->load.percent < 99.99);
    assert_true(trial->by_clock);
    assert_false(*trial->probe);
    fast_options = trial->parts[0].options;
    assert_int_equal(fast_options->mode, 1);
    assert_int_equal(fast_options->small, 3);
    assert_int_equal(fast_options->index, -1); /* the default, as of all others */
    assert_true(fast_options->tagged && fast_options->tag == 0 && fast_options->eager);
    assert_string_equal(fast_options->name, "x");
    assert_null(trial->pattern.natural);
    assert_int_equal(trial->pattern.count, 2);
    assert_int_equal(trial->pattern.seed, 7);
    document_free(document);
}

static void a_part_has_what_it_says_and_else_the_trial_s(void **state)
{
    struct err err;
    struct document *document =
        parse("trial:\n"
              "  id: 3\n"
              "  transport: fast\n"
              "  parts:\n"
              "  - {network: a, ranks: [\"a:e0\", \"b:e0\"]}\n"
              "  - {network: b, ranks: [\"c:e0\", \"d:e0\"], transport: slow, sizes: [9],\n"
              "     load: {percent: 7}}\n"
              "  pattern: {name: ring, count: 2}\n"
              "  sizes: [64, 1518]\n"
              "  load: {fps: 1}\n"
              "  window_ns: 1\n"
              "  fast: {small: 3}\n"
              "  slow: {small: 4}\n",
              &err);
    const struct doc_part *first, *second;

    assert_string_equal(err.text, "");
    first = &document->trial->parts[0];
    second = &document->trial->parts[1];
    assert_string_equal(doc_part_transport(document->trial, first), "fast");
    assert_null(first->sizes);
    assert_null(first->load);
    assert_int_equal(((const struct fast_options *)first->options)->small, 3);
    assert_string_equal(doc_part_transport(document->trial, second), "slow");
    assert_int_equal(second->sizes_count, 1);
    assert_int_equal(second->sizes[0], 9);
    assert_true(second->load->percent > 6.9 && second->load->percent < 7.1);
    assert_int_equal(((const struct fast_options *)second->options)->small, 4);
    document_free(document);
}

static void times_are_asked_for(void **state)
{
    static const struct {
        const char *text;
        double probe_fps; /* below 0: left to the transport */
        bool stamps;
    } some[] = {{"{stamps: true}", -1, true}, {"{probe_fps: 12.5}", 12.5, false}};

    for (size_t i = 0; i < 2; i++) {
        struct document *document;
        char text[512];
        struct err err;

        snprintf(text, sizeof text, "%s  load: {fps: 1}\n  window_ns: 1\n  latency: %s\n", TRIAL,
                 some[i].text);
        document = parse(text, &err);
        assert_non_null(document);
        assert_non_null(document->trial->latency);
        assert_int_equal(document->trial->latency->stamps, some[i].stamps);
        if (some[i].probe_fps < 0)
            assert_null(document->trial->latency->probe_fps);
        else
            assert_float_equal(*document->trial->latency->probe_fps, some[i].probe_fps, 0);
        document_free(document);
    }
}

#define JOB "job: {protocol: 2, run: a, nodes: [{name: n}]"

static void clocks_are_asked_for(void **state)
{
    static const struct {
        const char *text;
        struct clock_conf clock;
    } some[] = {
        {"", {CLOCK_AUTO, 0}},
        {", clock: {mode: auto}", {CLOCK_AUTO, 0}},
        {", clock: {mode: shared}", {CLOCK_SHARED, 0}},
        {", clock: {mode: ptp, error_ns: 1000}", {CLOCK_PTP, 1000}},
    };

    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
        struct document *document;
        char text[256];
        struct err err;

        snprintf(text, sizeof text, "%s%s}\n", JOB, some[i].text);
        document = parse(text, &err);
        assert_non_null(document);
        assert_int_equal(document->job->clock.mode, some[i].clock.mode);
        assert_int_equal(document->job->clock.error_ns, some[i].clock.error_ns);
        document_free(document);
    }
}

static void groups_and_lists_reach_the_request(void **state)
{
    struct err err;
    struct document *document = parse(
        "plan:\n"
        "  ranks: 6\n"
        "  pattern: {name: pairs, partners: across, groups: [{ranks: [0, 2]}, {ranks: [4]}]}\n",
        &err);
    const struct pattern_request *request;

    assert_non_null(document);
    request = &document->plan->pattern;
    assert_int_equal(request->group_count, 2);
    assert_int_equal(request->groups[0].rank[1], 2);
    assert_int_equal(request->groups[1].count, 1);
    document_free(document);
}

static void what_a_schedule_needs_reaches_the_request(void **state)
{
    struct err err;
    struct document *document = parse("plan:\n"
                                      "  ranks: 4\n"
                                      "  pattern: {name: ring, local: true, bytes: 1073741824,"
                                      " algorithm: binomial, skew: 3,"
                                      " class: A, matrix: 4, block: 5, dimensions: 6}\n",
                                      &err);
    const struct pattern_request *request;

    assert_non_null(document);
    request = &document->plan->pattern;
    assert_true(request->local);
    assert_int_equal(request->bytes, PATTERN_BYTES_MAX);
    assert_string_equal(request->algorithm, "binomial");
    assert_int_equal(request->skew, 3);
    assert_string_equal(request->class, "A");
    assert_int_equal(request->matrix, 4);
    assert_int_equal(request->block, 5);
    assert_int_equal(request->dimensions, 6);
    document_free(document);
}

/* A part with these keys. */
#define TRIAL_OF(keys)                                                                             \
    "trial:\n"                                                                                     \
    "  id: 3\n"                                                                                    \
    "  transport: fast\n"                                                                          \
    "  parts: [{network: lab, ranks: [\"a:e0\", \"b:e0\"], " keys "}]\n"                           \
    "  pattern: {name: ring, count: 2}\n"                                                          \
    "  sizes: [64]\n"                                                                              \
    "  load: {fps: 1}\n"                                                                           \
    "  window_ns: 1\n"

#define PINGPONG TRIAL "  load: {fps: 1}\n  traffic: pingpong\n  pingpong: {"
#define BURST TRIAL "  load: {fps: 1}\n  traffic: burst\n  burst: {"
#define SCHEDULE TRIAL "  traffic: schedule\n  schedule: {"

struct refusal {
    const char *text;
    const char *part; /* of the sentence */
};

static void each_mistake_is_one_sentence(void **state)
{
    static const struct refusal refusals[] = {
        {"foo: 1\n", "Unexpected key: foo"},
        {"heartbeat: x\n", "near line 1, column 12: Invalid uint64_t value"},
        {"heartbeat: 1\nquit: true\n", "more than one of"},
        {"- a\n", "Expecting MAPPING"},
        {"job: {protocol: 9, run: a, nodes: [{name: n}]}\n", "speaks 2"},
        {"job: {protocol: 2, run: 'a b', nodes: [{name: n}]}\n", "letters, digits"},
        {"job: {protocol: 2, run: a}\n", "Missing required mapping field: nodes"},
        {JOB ", clock: {mode: gps}}\n", "Invalid"},
        {JOB ", clock: {mode: estimated, error_ns: 5}}\n", "error_ns goes with ptp"},
        {JOB ", clock: {mode: auto, error_ns: 5}}\n", "error_ns goes with ptp"},
        {JOB ", clock: {mode: ptp, error_ns: -1}}\n", "0 to 1 s"},
        {JOB ", clock: {mode: ptp, error_ns: 2000000000}}\n", "0 to 1 s"},
        {TRIAL "  load: {percent: 95}\n", "window_ns above 0"},
        {TRIAL "  load: {percent: 101}\n  window_ns: 1\n", "more than the line carries"},
        {TRIAL "  load: {percent: 5, bps: 1}\n  window_ns: 1\n", "exactly one of"},
        {TRIAL "  load: {}\n  window_ns: 1\n", "exactly one of"},
        {TRIAL_OF("transport: slow, load: {percent: 101}"), "more than the line carries"},
        {TRIAL_OF("load: {percent: 5, bps: 1}"), "exactly one of"},
        {TRIAL_OF("sizes: [64, 0]"), "a size of 0 bytes"},
        {TRIAL_OF("sizes: []"), "near line 4"},
        {TRIAL_OF("slow: {small: 1}"), "slow"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  latency: {probe_fps: -1}\n",
         "probe_fps is 0 to 1e+06"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  latency: {probe_fps: 2e6}\n",
         "probe_fps is 0 to 1e+06"},
        {TRIAL "  load: {fps: 1}\n  traffic: transfer\n", "transfer_bytes above 0"},
        {TRIAL "  load: {fps: 1}\n  traffic: transfer\n  transfer_bytes: 9\n  sync: none\n",
         "use sync: barrier"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  warmup_ns: -1\n", "below 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  interval_ns: 9999999\n", "10 ms to 30 days"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  interval_ns: -1\n", "10 ms to 30 days"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 2592000000000001\n", "above 30 days"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  connectivity_check_sizes: [64, 0]\n",
         "probe of 0 bytes"},
        {PINGPONG "}\n", "a count or a window_ns above 0"},
        {PINGPONG "count: 1, min_size: 9, max_size: 8}\n", "random sizes"},
        {PINGPONG "count: 10000001, samples: true}\n", "1 to 10000000, not 10000001"},
        {PINGPONG "count: 1, timeout_ns: -1}\n", "timeout_ns is below 0"},
        {PINGPONG "count: 1, compute: 1.5}\n", "0 to 1, not 1.5"},
        {PINGPONG "count: 1}\n  sync: none\n", "use sync: barrier"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  pingpong: {}\n", "needs traffic: pingpong"},
        {SCHEDULE "}\n", "a count or a window_ns above 0"},
        {SCHEDULE "count: 1, batch: 0}\n", "1 to 1000000 repetitions, not 0"},
        {SCHEDULE "count: 1}\n  sync: none\n", "leave sync: none out"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  schedule: {}\n", "needs traffic: schedule"},
        {BURST "frames: 0}\n", "1 to 4294967295 frames, not 0"},
        {BURST "frames: 4294967296}\n", "1 to 4294967295 frames, not 4294967296"},
        {BURST "gap_ns: 1}\n", "frames"},
        {BURST "frames: 1, gap_ns: -1}\n", "0 ns to 30 days, not -1"},
        {BURST "frames: 1, count: 4294967296}\n", "4294967295 bursts at most"},
        {BURST "frames: 1, count: 0}\n", "a count or a window_ns above 0"},
        {BURST "frames: 1}\n  sync: none\n", "use sync: barrier"},
        {TRIAL "  load: {fps: 1}\n  traffic: burst\n", "1 to 4294967295 frames, not 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  burst: {frames: 1}\n", "needs traffic: burst"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {mode: c}\n",
         "fast mode has no value 'c'; valid values: a, b"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {small: 7}\n",
         "small is 1 to 6, not 7: seven is too many"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {small: 0}\n", "small is 1 to 6, not 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {index: -1}\n",
         "index is 0 to 255, not -1"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {share: nan}\n", "share is at least 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {share: -1}\n", "share is at least 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {name: longest!}\n",
         "name has at most 7 characters, unlike 'longest!'"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {speed: 1}\n", "speed"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  slow: {mode: [1]}\n", "near line"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  udp: {burst: 1}\n", "udp"},
    };

    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct err err;
        struct document *document = parse(refusals[i].text, &err);

        assert_null(document);
        if (strstr(err.text, refusals[i].part) == NULL)
            fail_msg("'%s' gave: %s", refusals[i].text, err.text);
        assert_null(strchr(err.text, '\n'));
    }
}

static struct input *stream(const char *text, bool whole)
{
    struct input *input;
    struct err err = {0};
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], text, strlen(text)), (int)strlen(text));
    close(fds[1]);
    assert_int_equal(input_open(&input, fds[0], whole, transports, &err), 0);
    assert_int_equal(input_read(input, &err), 0);
    close(fds[0]);
    return input;
}

static void a_stream_gives_document_after_document(void **state)
{
    struct input *input =
        stream("# comment\n...\nheartbeat: 1\n...  \nheartbeat: 2\n...\nquit: tr", false);
    struct document *document;
    struct err err = {0};

    assert_true(input_ended(input));
    for (uint64_t i = 1; i <= 2; i++) {
        assert_int_equal(input_next(input, &document, &err), 1);
        assert_int_equal(*document->heartbeat, i);
        document_free(document);
    }
    /* cut short by the end of the pipe: never run */
    assert_int_equal(input_next(input, &document, &err), 0);
    input_close(input);
}

static void a_file_may_lack_its_last_end(void **state)
{
    struct input *input = stream("heartbeat: 1\n...\nquit: true", true);
    struct document *document;
    struct err err = {0};

    assert_int_equal(input_next(input, &document, &err), 1);
    document_free(document);
    assert_int_equal(input_next(input, &document, &err), 1);
    assert_int_equal(document_kind(document), DOCUMENT_QUIT);
    document_free(document);
    assert_int_equal(input_next(input, &document, &err), 0);
    input_close(input);
}

static void lines_are_counted_over_the_whole_stream(void **state)
{
    struct input *input = stream("heartbeat: 1\n...\n\n\nheartbeat: x\n...\n", false);
    struct document *document;
    struct err err = {0};

    assert_int_equal(input_next(input, &document, &err), 1);
    document_free(document);
    assert_int_equal(input_next(input, &document, &err), -EINVAL);
    assert_non_null(strstr(err.text, "near line 5"));
    input_close(input);
}

static void a_document_may_come_in_pieces(void **state)
{
    static const char text[] = "heartbeat: 42\n...\n";
    struct document *document;
    struct input *input;
    struct err err = {0};
    int fds[2];

    assert_int_equal(pipe(fds), 0);
    assert_int_equal(input_open(&input, fds[0], false, transports, &err), 0);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        assert_int_equal(input_next(input, &document, &err), 0);
        assert_int_equal(write(fds[1], text + i, 1), 1);
        assert_int_equal(input_read(input, &err), 0);
        assert_false(input_ended(input));
    }
    assert_int_equal(input_next(input, &document, &err), 1);
    assert_int_equal(*document->heartbeat, 42);
    document_free(document);
    input_close(input);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_trial_is_read),
        cmocka_unit_test(a_part_has_what_it_says_and_else_the_trial_s),
        cmocka_unit_test(times_are_asked_for),
        cmocka_unit_test(clocks_are_asked_for),
        cmocka_unit_test(groups_and_lists_reach_the_request),
        cmocka_unit_test(what_a_schedule_needs_reaches_the_request),
        cmocka_unit_test(each_mistake_is_one_sentence),
        cmocka_unit_test(a_stream_gives_document_after_document),
        cmocka_unit_test(a_file_may_lack_its_last_end),
        cmocka_unit_test(lines_are_counted_over_the_whole_stream),
        cmocka_unit_test(a_document_may_come_in_pieces),
    };

    return cmocka_run_group_tests_name("documents", tests, NULL, NULL);
}
