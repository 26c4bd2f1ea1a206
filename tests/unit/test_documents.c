/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Documents and their stream: what is accepted, and the sentence of each refusal.
 */
#include "document_stream.h"
#include "documents.h"
#include "option.h"
#include "transport.h"

#include <errno.h>
#include <fcntl.h>
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
    document_parse(&document, &(struct mapping_text){text, strlen(text), 1}, transports, err);
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
    assert_int_equal(document->kind, DOCUMENT_TRIAL);
    trial = document->trial;
    assert_int_equal(trial->id, 3);
    assert_int_equal(trial->parts[0].ranks_count, 2);
    assert_string_equal(trial->parts[0].ranks[1], "b:e0");
    assert_int_equal(trial->sizes_count, 2);
    assert_int_equal(trial->sizes[1], 1518);
    assert_true(trial->load.percent > 99.97 && trial->load.percent < 99.99);
    assert_true(trial->by_clock);
    assert_false(trial->probe);
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
    assert_string_equal(first->transport, "fast");
    assert_int_equal(first->sizes_count, 2);
    assert_float_equal(first->load->fps, 1, 0);
    assert_int_equal(((const struct fast_options *)first->options)->small, 3);
    assert_string_equal(second->transport, "slow");
    assert_int_equal(second->sizes_count, 1);
    assert_int_equal(second->sizes[0], 9);
    assert_true(second->load->percent > 6.9 && second->load->percent < 7.1);
    assert_int_equal(((const struct fast_options *)second->options)->small, 4);
    document_free(document);
}

/* What is absent has its default. */
static void a_short_trial_has_defaults(void **state)
{
    struct err err;
    struct document *document =
        parse(TRIAL "  load: {fps: 1}\n  window_ns: 1\n  latency: {stamps: true}\n", &err);
    const struct doc_trial *trial = document->trial;

    assert_true(trial->probe && !trial->by_clock && trial->phase.traffic == TRAFFIC_STREAM);
    assert_null(trial->phases);
    assert_true(trial->has_latency && trial->phase.latency.stamps &&
                trial->phase.latency.probe_fps < 0);
    assert_false(trial->has_pingpong || trial->has_schedule || trial->has_burst);
    assert_int_equal(trial->phase.schedule.batch, 1);
    assert_int_equal(trial->phase.schedule.warmup, 1);
    assert_int_equal(trial->phase.burst.count, 1);
    document_free(document);
}

#define JOB "job: {protocol: 2, run: a, nodes: [{name: n}]"

static void a_job_is_read(void **state)
{
    struct err err;
    struct document *document = parse(JOB "}\n", &err);

    assert_int_equal(document->job->clock.mode, CLOCK_AUTO);
    assert_int_equal(document->job->barrier_timeout_ms, 5000);
    assert_int_equal(document->job->log, LOG_LEVEL_INFO);
    document_free(document);
    document = parse("job: {protocol: 2, run: a, log: debug, clock: {mode: ptp, error_ns: 1000}, "
                     "nodes: [{name: n, control: {address: '[::1]:1'}, cores: [3, 4], ports: "
                     "[{name: n:e0, network: lab, iface: e0, line_rate_bps: 18446744073709551615, "
                     "transports: [tcp, udp]}]}, {name: m}]}\n",
                     &err);
    assert_string_equal(err.text, "");
    assert_int_equal(document->job->clock.mode, CLOCK_PTP);
    assert_int_equal(document->job->clock.error_ns, 1000);
    assert_int_equal(document->job->log, LOG_LEVEL_DEBUG);
    assert_int_equal(document->job->nodes_count, 2);
    assert_string_equal(document->job->nodes[0].control_address, "[::1]:1");
    assert_int_equal(document->job->nodes[0].cores[1], 4);
    assert_true(document->job->nodes[0].ports[0].conf.line_rate_bps == UINT64_MAX);
    assert_int_equal(document->job->nodes[0].ports[0].transports_count, 2);
    assert_string_equal(document->job->nodes[1].name, "m");
    document_free(document);
}

static void a_pattern_s_parameters_are_read(void **state)
{
    struct err err;
    struct document *document =
        parse("plan:\n"
              "  ranks: 6\n"
              "  totals_only: true\n"
              "  pattern: {name: ring, local: true, bytes: 1073741824, algorithm: binomial,"
              " skew: 3, natural: false, list: [7, 8, 9],"
              " groups: [{ranks: [0, 2]}, {ranks: [4]}]}\n",
              &err);
    const struct pattern_request *request = &document->plan->pattern;

    assert_true(document->plan->totals_only);
    assert_int_equal(request->n, 6);
    assert_true(request->local && !*request->natural);
    assert_int_equal(request->bytes, PATTERN_BYTES_MAX);
    assert_string_equal(request->algorithm, "binomial");
    assert_int_equal(request->skew, 3);
    assert_int_equal(request->list.count, 3);
    assert_int_equal(request->list.rank[2], 9);
    assert_int_equal(request->group_count, 2);
    assert_int_equal(request->groups[0].rank[1], 2);
    assert_int_equal(request->groups[1].count, 1);
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
        {"foo: 1\n", "line 1, column 1: a document has no key 'foo'"},
        {"heartbeat: x\n", "line 1, column 12: heartbeat is a number, not 'x'"},
        {"heartbeat: ' 1'\n", "line 1, column 12: heartbeat is a number, not ' 1'"},
        {"heartbeat: 1\nquit: true\n", "more than one of"},
        {"heartbeat: 1\nheartbeat: 1\n", "has the key 'heartbeat' twice"},
        {"heartbeat: 18446744073709551616\n", "0 to 18446744073709551615"},
        {"heartbeat: -1\n", "0 to 18446744073709551615"},
        {"quit: yes\n", "valid values: false, true"},
        {"heartbeat: {\n", "a document is no YAML"},
        {"plan: {ranks: 2, pattern: &a {name: ring}, seed: *a}\n",
         "plan.seed has an alias: write its value out"},
        {"plan: {ranks: 2, pattern: {name: ring, list: [&a 1, *a, *a, *a, *a, *a, *a]}}\n",
         "has an alias: write its value out"},
        {"- a\n", "a document is a mapping, not a list"},
        {"job: {protocol: 9, run: a, nodes: [{name: n}]}\n", "speaks 2"},
        {"job: {protocol: 2, run: 'a b', nodes: [{name: n}]}\n", "letters, digits"},
        {"job: {protocol: 2, run: a}\n", "job lacks the key 'nodes'"},
        {JOB ", clock: {mode: gps}}\n", "no value 'gps'; valid values: auto, shared"},
        {JOB ", clock: {mode: estimated, error_ns: 5}}\n", "error_ns goes with ptp"},
        {JOB ", clock: {mode: auto, error_ns: 5}}\n", "error_ns goes with ptp"},
        {JOB ", clock: {mode: ptp, error_ns: -1}}\n", "job.clock.error_ns is 0 to 1000000000"},
        {JOB ", clock: {mode: ptp, error_ns: 2000000000}}\n",
         "job.clock.error_ns is 0 to 1000000000"},
        {TRIAL "  load: {percent: 95}\n", "window_ns above 0"},
        {TRIAL "  load: {percent: 101}\n  window_ns: 1\n", "more than the line carries"},
        {TRIAL "  load: {percent: 5, bps: 1}\n  window_ns: 1\n", "exactly one of"},
        {TRIAL "  load: {}\n  window_ns: 1\n", "exactly one of"},
        {TRIAL_OF("transport: slow, load: {percent: 101}"), "more than the line carries"},
        {TRIAL_OF("load: {percent: 5, bps: 1}"), "exactly one of"},
        {TRIAL_OF("sizes: [64, 0]"), "trial.parts.sizes is 1 to 4294967295, not 0"},
        {TRIAL_OF("sizes: []"), "line 4, column 58: trial.parts.sizes has 1 to 64 entries"},
        {TRIAL_OF("slow: {small: 1}"), "slow"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  latency: {probe_fps: -1}\n",
         "probe_fps is 0 to 1000000, not -1"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  latency: {probe_fps: 2e6}\n",
         "probe_fps is 0 to 1000000, not 2e6"},
        {TRIAL "  load: {fps: 1}\n  traffic: transfer\n", "transfer_bytes above 0"},
        {TRIAL "  load: {fps: 1}\n  traffic: transfer\n  transfer_bytes: 9\n  sync: none\n",
         "use sync: barrier"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  warmup_ns: -1\n",
         "trial.warmup_ns is 0 to 2592000000000000, not -1"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  interval_ns: 9999999\n", "10 ms to 30 days"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  interval_ns: -1\n", "interval_ns is 0 to"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 2592000000000001\n",
         "window_ns is 0 to 2592000000000000, not 2592000000000001"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  connectivity_check_sizes: [64, 0]\n",
         "connectivity_check_sizes is 1 to"},
        {TRIAL "  traffic: ''\n",
         "has no value ''; valid values: stream, transfer, pingpong, schedule, burst"},
        {PINGPONG "}\n", "a count or a window_ns above 0"},
        {PINGPONG "count: 1, min_size: 9, max_size: 8}\n", "random sizes"},
        {PINGPONG "count: 10000001, samples: true}\n", "a count from 1 to 10000000"},
        {PINGPONG "count: 1, timeout_ns: -1}\n", "pingpong.timeout_ns is 0 to"},
        {PINGPONG "count: 1, compute: 1.5}\n", "0 to 1, not 1.5"},
        {PINGPONG "count: 1}\n  sync: none\n", "use sync: barrier"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  pingpong: {}\n", "needs traffic: pingpong"},
        {SCHEDULE "}\n", "a count or a window_ns above 0"},
        {SCHEDULE "count: 1, batch: 0}\n", "schedule.batch is 1 to 1000000, not 0"},
        {SCHEDULE "count: 1}\n  sync: none\n", "leave sync: none out"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  schedule: {}\n", "needs traffic: schedule"},
        {BURST "frames: 0}\n", "burst.frames is 1 to 4294967295, not 0"},
        {BURST "frames: 4294967296}\n", "1 to 4294967295, not 4294967296"},
        {BURST "gap_ns: 1}\n", "trial.burst lacks the key 'frames'"},
        {BURST "frames: 1, gap_ns: -1}\n", "gap_ns is 0 to 2592000000000000, not -1"},
        {BURST "frames: 1, count: 4294967296}\n", "burst.count is 0 to 4294967295"},
        {BURST "frames: 1, count: 0}\n", "a count or a window_ns above 0"},
        {BURST "frames: 1}\n  sync: none\n", "use sync: barrier"},
        {TRIAL "  load: {fps: 1}\n  traffic: burst\n", "traffic: burst needs burst"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  burst: {frames: 1}\n", "needs traffic: burst"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {mode: c}\n",
         "trial.fast.mode has no value 'c'; valid values: a, b"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {small: 7}\n",
         "small is 1 to 6, not 7: seven is too many"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {small: 0}\n", "small is 1 to 6, not 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {index: -1}\n",
         "index is 0 to 255, not -1"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {share: nan}\n", "share is at least 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {share: -1}\n", "share is at least 0"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {name: longest!}\n",
         "name has at most 7 characters, unlike 'longest!'"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  fast: {speed: 1}\n",
         "trial.fast has no key 'speed'"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  slow: {mode: [1]}\n",
         "trial.slow.mode is a value, not a list"},
        {TRIAL "  load: {fps: 1}\n  window_ns: 1\n  udp: {burst: 1}\n", "trial has no key 'udp'"},
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

/* --- streams --- */

/* A stream that comes by a pipe. */
static struct input *input;
static int reader, writer;

static void begin(bool whole)
{
    struct err err = {0};
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    reader = ends[0];
    writer = ends[1];
    assert_int_equal(input_open(&input, reader, whole, transports, &err), 0);
}

static void finish(void)
{
    input_close(input);
    close(reader);
    close(writer);
}

/* Writes all of it, read by the input whenever the pipe is full; the input's answer. */
static int feed(const char *text, size_t size, struct err *err)
{
    int rc = 0;

    while (size > 0 && rc == 0) {
        ssize_t n = write(writer, text, size);

        if (n < 0)
            assert_int_equal(errno, EAGAIN);
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
        rc = input_read(input, err);
    }
    return rc;
}

/* The next document's beat; -1: none is whole. */
static int64_t next_beat(void)
{
    struct document *document;
    struct err err = {0};
    int64_t beat;

    if (input_next(input, &document, &err) != 1) {
        assert_string_equal(err.text, "");
        return -1;
    }
    assert_int_equal(document->kind, DOCUMENT_BEAT);
    beat = (int64_t)*document->heartbeat;
    document_free(document);
    return beat;
}

/* In whatever pieces it comes, beats 1, 2 ... and no more. */
static void a_stream_gives_document_after_document(void **state)
{
    static const struct {
        const char *text;
        int64_t beats;        /* before the stream's end ... */
        int64_t at_end;       /* ... and once it has ended */
        int64_t whole_at_end; /* of a file, whose last document may lack its end */
    } streams[] = {
        {"heartbeat: 1\n...\n# a word\nheartbeat: 2\n... \r\n---\nheartbeat: 3\n...\n", 3, 0, 0},
        {"...\n...\n# nothing\n...\nheartbeat: 1\n...\n", 1, 0, 0},
        {"heartbeat: 1\n...\nheartbeat: 2\n", 1, 0, 1}, /* cut short: not run from a pipe */
        {"heartbeat: 1\n...\nheartbeat: 2", 1, 0, 1},
        {"heartbeat: 1\n...", 0, 1, 1},
        {"# ...\n ...\n....\n", 0, 0, -1}, /* dots elsewhere; at the end of a file no YAML */
    };
    struct err err = {0};

    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++)
        for (int whole = 0; whole < 2; whole++)
            for (size_t piece = 1; piece < 99; piece += 97) {
                size_t size = strlen(streams[i].text);
                int64_t last = 0, end, beat;

                begin(whole);
                for (size_t at = 0; at < size; at += piece) {
                    assert_int_equal(
                        feed(streams[i].text + at, at + piece < size ? piece : size - at, &err), 0);
                    while ((beat = next_beat()) >= 0)
                        assert_int_equal(beat, ++last);
                }
                assert_int_equal(last, streams[i].beats);
                assert_false(input_ended(input));
                close(writer);
                writer = -1;
                assert_int_equal(input_read(input, &err), 0);
                assert_true(input_ended(input));
                end = whole ? streams[i].whole_at_end : streams[i].at_end;
                for (; end > 0; end--)
                    assert_int_equal(next_beat(), ++last);
                if (end == 0)
                    assert_int_equal(next_beat(), -1);
                finish();
            }
}

static void many_documents_wait_in_order(void **state)
{
    struct err err = {0};
    char text[32];

    begin(false);
    for (int i = 0; i < 3000; i++) {
        snprintf(text, sizeof text, "heartbeat: %d\n...\n", i);
        assert_int_equal(feed(text, strlen(text), &err), 0);
    }
    for (int i = 0; i < 3000; i++)
        assert_int_equal(next_beat(), i);
    assert_int_equal(next_beat(), -1);
    finish();
}

static void lines_are_counted_over_the_whole_stream(void **state)
{
    static const char text[] = "heartbeat: 1\n...\n\n\nbaet: 2\n...\n";
    struct document *document;
    struct err err = {0};

    begin(false);
    assert_int_equal(feed(text, sizeof text - 1, &err), 0);
    assert_int_equal(next_beat(), 1);
    assert_int_equal(input_next(input, &document, &err), -EINVAL);
    assert_non_null(strstr(err.text, "line 5, column 1: a document has no key 'baet'"));
    finish();
}

static void only_one_document_is_limited_in_size(void **state)
{
    const size_t size = DOCUMENT_BYTES_MAX / 4;
    static const char beat[] = "heartbeat: 8\n...\n";
    char *comment = malloc(size);
    struct err err = {0};

    begin(false);
    for (size_t i = 0; i < size; i++)
        comment[i] = i % 100 == 0 ? '\n' : i % 100 == 1 ? '#' : 'x';
    comment[size - 1] = '\n';
    for (int i = 0; i < 8; i++) { /* twice the limit waits */
        assert_int_equal(feed(comment, size, &err), 0);
        assert_int_equal(feed(beat, sizeof beat - 1, &err), 0);
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(next_beat(), 8);
    for (int i = 0; i < 4; i++)
        assert_int_equal(feed(comment, size, &err), 0);
    assert_int_equal(feed(comment, size, &err), -E2BIG);
    assert_non_null(strstr(err.text, "16 MiB"));
    free(comment);
    finish();
}

/* A shell that shares its terminal with a node would find it changed. */
static void the_flags_of_the_file_stay(void **state)
{
    struct err err = {0};
    int before;

    begin(false);
    before = fcntl(reader, F_GETFL);
    assert_int_equal(before & O_NONBLOCK, 0);
    assert_int_equal(input_read(input, &err), 0); /* nobody waits */
    assert_int_equal(fcntl(reader, F_GETFL), before);
    finish();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_whole_trial_is_read),
        cmocka_unit_test(a_part_has_what_it_says_and_else_the_trial_s),
        cmocka_unit_test(a_short_trial_has_defaults),
        cmocka_unit_test(a_job_is_read),
        cmocka_unit_test(a_pattern_s_parameters_are_read),
        cmocka_unit_test(each_mistake_is_one_sentence),
        cmocka_unit_test(a_stream_gives_document_after_document),
        cmocka_unit_test(many_documents_wait_in_order),
        cmocka_unit_test(lines_are_counted_over_the_whole_stream),
        cmocka_unit_test(only_one_document_is_limited_in_size),
        cmocka_unit_test(the_flags_of_the_file_stay),
    };

    return cmocka_run_group_tests_name("documents", tests, NULL, NULL);
}
