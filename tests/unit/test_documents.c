/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Documents and their stream: accepted documents, and the sentence of each refusal.
 */
#include "documents.h"
#include "option.h"
#include "transport.h"
#include "unit.h"

#include <fcntl.h>

/* Each transport accepts its own options only. */
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
static const struct option_table table = {options, sizeof(struct fast_options)};
static const struct transport fast = {.name = "fast", .options = &table};
static const struct transport slow = {.name = "slow", .options = &table};
static const struct transport *const transports[] = {&slow, &fast, NULL};

static struct document *parse(const char *text, struct err *err)
{
    struct document *document = NULL;
    char json[2048];

    *err = (struct err){""};
    unit_json(json, text);
    document_parse(&document, &(struct mapping_text){json, strlen(json), 1}, transports, err);
    return document;
}

static struct document *read_well(const char *text)
{
    struct err err;
    struct document *document = parse(text, &err);

    assert_string_equal(err.text, "");
    assert_non_null(document);
    return document;
}

#define JOB "{job: {protocol: 2, run: a, nodes: [{name: n}], "
#define PART                                                                                       \
    "{trial: {id: 3, transport: fast, sizes: [64, 1518], pattern: {name: ring, count: 2}, parts: " \
    "[{network: lab, ranks: ['a:e0', 'b:e0']"
#define TRIAL PART "}], "
#define RATE "load: {fps: 1}, window_ns: 1"

/* A part has its own values, else the trial's; its options are its transport's. */
TEST(a_trial_is_read_with_its_parts)
{
    struct document *document = read_well(
        PART "}, {network: b, ranks: ['c:e0', 'd:e0'], transport: slow, sizes: [9], load: "
             "{percent: 99.98}}], " RATE ", seed: 7, connectivity_check: false, "
             "fast: {mode: b, tag: 0, small: 3, name: x}, slow: {small: 4}}}");
    const struct doc_trial *trial = document->trial;
    const struct doc_part *first = &trial->parts[0], *second = first + 1;
    const struct fast_options *of_first = first->options, *of_second = second->options;

    assert_true(document->kind == DOCUMENT_TRIAL && trial->id == 3);
    assert_true(!trial->probe && trial->pattern.natural == NULL);
    assert_true(trial->pattern.count == 2 && trial->pattern.seed == 7);
    assert_string_equal(first->transport, "fast");
    assert_string_equal(first->ranks[1], "b:e0");
    assert_true(first->ranks_count == 2 && first->sizes_count == 2 && first->sizes[1] == 1518);
    assert_true(of_first->mode == 1 && of_first->small == 3 && of_first->tagged);
    assert_true(of_first->tag == 0 && of_first->index == -1 && of_first->eager); /* defaults */
    assert_string_equal(of_first->name, "x");
    assert_string_equal(second->transport, "slow");
    assert_true(second->sizes_count == 1 && second->sizes[0] == 9 && of_second->small == 4);
    assert_float_equal(first->load->fps, 1, 0);
    assert_float_equal(second->load->percent, 99.98, 1e-9);
    document_free(document);
}

/* Absent keys have their defaults. */
TEST(a_short_trial_has_defaults)
{
    for (int stamps = 0; stamps < 2; stamps++) {
        struct document *document =
            read_well(stamps ? TRIAL RATE ", latency: {stamps: true}}}" : TRIAL RATE "}}");
        const struct doc_trial *trial = document->trial;

        assert_true(trial->probe && trial->phase.traffic == TRAFFIC_STREAM);
        assert_null(trial->phases);
        assert_int_equal(trial->phase.latency.stamps, stamps);
        assert_float_equal(trial->phase.latency.probe_fps, stamps ? -1 : 0, 0);
        assert_true(trial->phase.schedule.batch == 1 && trial->phase.schedule.warmup == 1 &&
                    trial->phase.burst.count == 1);
        document_free(document);
    }
}

TEST(a_job_is_read)
{
    struct document *document = read_well(JOB "clock: {mode: auto}}}");
    const struct doc_job *job = document->job;

    assert_true(job->clock.mode == CLOCK_AUTO && job->barrier_timeout_ms == 5000);
    document_free(document);
    document = read_well("{job: {protocol: 2, run: a, clock: {mode: ptp, error_ns: 5}, "
                         "nodes: [{name: n, control: {address: '[::1]:1'}, cores: [3, 4], ports: "
                         "[{name: n:e0, network: lab, iface: e0, line_rate_bps: "
                         "9223372036854775807, transports: [tcp, udp]}]}, {name: m}]}}");
    job = document->job;
    assert_true(job->clock.mode == CLOCK_PTP && job->clock.error_ns == 5 && job->nodes_count == 2);
    assert_string_equal(job->nodes[0].control_address, "[::1]:1");
    assert_int_equal(job->nodes[0].cores[1], 4);
    assert_true(job->nodes[0].ports[0].conf.line_rate_bps == INT64_MAX &&
                job->nodes[0].ports[0].transports_count == 2);
    assert_string_equal(job->nodes[1].name, "m");
    document_free(document);
}

TEST_ROWS(each_mistake_is_one_sentence, "mistake")
{
    static const char *const frames[][3] = {
        {"document", "", ""},
        {"job", JOB, "}}"},
        {"trial", TRIAL, "}}"},
        {"stream", TRIAL RATE ", ", "}}"},
        {"part", PART ", ", "}], " RATE "}}"},
    };
    const char *const *frame = frames[0];
    char text[600];
    struct err err;

    while (strcmp(frame[0], row->fields[0]) != 0)
        frame += 3;
    snprintf(text, sizeof text, "%s%s%s", frame[1], row->fields[1], frame[2]);
    assert_null(parse(text, &err));
    assert_says(err.text, row->fields[2]);
}

/* --- streams --- */

/* Open a stream that reads a pipe. */
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

/* Write the whole text; the input reads whenever the pipe is full. Return the input's last result.
 */
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

/* Return the next document's beat; -1: no document is whole. */
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

/* Documents that arrive in pieces of any size are read as beats 1, 2 ... and no more. */
TEST(a_stream_gives_document_after_document)
{
    static const struct {
        const char *text;
        int64_t beats; /* documents of a pipe are read before its end ... */
        int64_t
            whole_at_end; /* ... and of a file when it has ended: its last one may lack a newline */
    } streams[] = {
        {"{\"heartbeat\": 1}\n\n{\"heartbeat\": 2}\r\n {\"heartbeat\": 3} \n", 3, 0},
        {"\n\n{\"heartbeat\": 1}\n\n", 1, 0},
        {"{\"heartbeat\": 1}\n{\"heartbeat\": 2}", 1, 1}, /* cut short: not run from a pipe */
        {"{\"heartbeat\": 1}\n{\"heartbeat\":", 1, -1},   /* at the end of a file no JSON */
    };
    struct err err = {0};

    for (EACH(stream, streams))
        for (int whole = 0; whole < 2; whole++)
            for (size_t piece = 1; piece < 99; piece += 97) {
                size_t size = strlen(stream->text);
                int64_t last = 0, end, beat;

                begin(whole);
                for (size_t at = 0; at < size; at += piece) {
                    assert_int_equal(
                        feed(stream->text + at, at + piece < size ? piece : size - at, &err), 0);
                    while ((beat = next_beat()) >= 0)
                        assert_int_equal(beat, ++last);
                }
                assert_int_equal(last, stream->beats);
                assert_false(input_ended(input));
                close(writer);
                writer = -1;
                assert_int_equal(input_read(input, &err), 0);
                assert_true(input_ended(input));
                end = whole ? stream->whole_at_end : 0;
                for (; end > 0; end--)
                    assert_int_equal(next_beat(), ++last);
                if (end == 0)
                    assert_int_equal(next_beat(), -1);
                finish();
            }
}

TEST(lines_are_counted_over_the_whole_stream)
{
    static const char text[] = "{\"heartbeat\": 1}\n\n\n\n{\"baet\": 2}\n";
    struct document *document;
    struct err err = {0};

    begin(false);
    assert_int_equal(input_read(input, &err), 0); /* without input the reader does not wait, ... */
    assert_int_equal(fcntl(reader, F_GETFL) & O_NONBLOCK,
                     0); /* ... and does not change the file for other processes */
    assert_int_equal(feed(text, sizeof text - 1, &err), 0);
    assert_int_equal(next_beat(), 1);
    assert_int_equal(input_next(input, &document, &err), -EINVAL);
    assert_says(err.text, "line 5: a document has the unknown key 'baet'");
    finish();
}

TEST(only_one_document_is_limited_in_size)
{
    const size_t size = DOCUMENT_BYTES_MAX / 4;
    static const char beat[] = "{\"heartbeat\": 8}\n";
    char *blanks = malloc(size);
    struct err err = {0};

    begin(false);
    memset(blanks, ' ', size);
    for (int i = 0; i < 8; i++) { /* twice the limit waits */
        assert_int_equal(feed(blanks, size, &err), 0);
        assert_int_equal(feed(beat, sizeof beat - 1, &err), 0);
    }
    for (int i = 0; i < 8; i++)
        assert_int_equal(next_beat(), 8);
    for (int i = 0; i < 4; i++)
        assert_int_equal(feed(blanks, size, &err), 0);
    assert_int_equal(feed(blanks, size, &err), -E2BIG);
    assert_says(err.text, "16 MiB");
    free(blanks);
    finish();
}
