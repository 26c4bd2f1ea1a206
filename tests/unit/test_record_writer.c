/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records against a pipe whose reader reads, sleeps, or is gone.
 */
#include "clock.h"
#include "record_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 20000 /* records: more than any pipe holds */

struct scene {
    struct records *records;
    int reader;
    int writer;
    FILE *lines;
};

static void set_scene(struct scene *scene)
{
    struct err err = {0};
    int ends[2];

    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    *scene = (struct scene){.reader = ends[0], .writer = ends[1]};
    assert_int_equal(records_open(&scene->records, scene->writer, "node1", &err), 0);
}

static void say(struct scene *scene, const char *type, int number)
{
    json_t *record = record_new(scene->records, type);

    json_object_set_new(record, "number", json_integer(number));
    if (strcmp(type, "progress") == 0)
        record_send(scene->records, record, true);
    else
        record_send(scene->records, record, false);
}

/* The next line's number, having checked the rest of it; -1: end of file. */
static int next_number(FILE *lines, const char *type)
{
    char line[2000];
    json_error_t error;
    json_t *record;
    int number;

    if (fgets(line, sizeof line, lines) == NULL)
        return -1;
    assert_int_equal(line[strlen(line) - 1], '\n');
    record = json_loads(line, 0, &error);
    assert_non_null(record);
    assert_string_equal(json_string_value(json_object_get(record, "type")), type);
    assert_string_equal(json_string_value(json_object_get(record, "node")), "node1");
    number = (int)json_integer_value(json_object_get(record, "number"));
    json_decref(record);
    return number;
}

static void *close_records(void *context)
{
    struct scene *scene = context;

    records_close(scene->records);
    close(scene->writer);
    return NULL;
}

static pthread_t closer;

/* The records are closed by another thread while this one reads what they leave. */
static FILE *read_to_the_end(struct scene *scene)
{
    FILE *lines = fdopen(scene->reader, "r");

    assert_non_null(lines);
    assert_int_equal(pthread_create(&closer, NULL, close_records, scene), 0);
    return lines;
}

static void end_reading(FILE *lines)
{
    assert_int_equal(getc(lines), EOF);
    pthread_join(closer, NULL);
    fclose(lines);
}

/* Nobody reads: senders wait for no one, and of all records only progress is dropped. */
static void a_blocked_pipe_blocks_no_sender(void **state)
{
    struct scene scene;
    uint64_t dropped;
    FILE *lines;
    int flows = 0;
    char line[2000];
    int64_t begin_ns;

    set_scene(&scene);
    begin_ns = clock_now();
    for (int i = 0; i < MANY; i++)
        say(&scene, "flow", i);
    assert_true(clock_now() - begin_ns < 10 * NS_PER_S);
    assert_int_equal(records_dropped(scene.records), 0);
    for (int i = 0; i < MANY; i++)
        say(&scene, "progress", i);
    dropped = records_dropped(scene.records);
    assert_true(dropped > MANY / 2 && dropped <= MANY);
    assert_false(records_broken(scene.records));
    lines = read_to_the_end(&scene);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(next_number(lines, "flow"), i);
    for (int i = 0; i < MANY - (int)dropped; i++) {
        assert_non_null(fgets(line, sizeof line, lines));
        flows += strstr(line, "\"flow\"") != NULL;
    }
    assert_int_equal(flows, 0);
    end_reading(lines);
}

static void closing_waits_no_longer_than_it_says(void **state)
{
    struct scene scene;
    int64_t begin_ns;

    set_scene(&scene);
    for (int i = 0; i < MANY; i++)
        say(&scene, "flow", i);
    begin_ns = clock_now();
    close_records(&scene);
    assert_true(clock_now() - begin_ns >= 900 * NS_PER_MS);
    assert_true(clock_now() - begin_ns < 5 * NS_PER_S);
    close(scene.reader);
}

/* A pipe without a reader, and a disk that is full. */
static void what_can_not_be_written_is_noticed(void **state)
{
    for (int full = 0; full < 2; full++) {
        struct records *records;
        struct err err = {0};
        int ends[2] = {-1, open("/dev/full", O_WRONLY | O_CLOEXEC)};

        if (full && ends[1] < 0)
            skip();
        if (!full) {
            close(ends[1]);
            assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
            close(ends[0]);
        }
        assert_int_equal(records_open(&records, ends[1], "node1", &err), 0);
        record_send(records, record_new(records, "flow"), false);
        for (int i = 0; i < 1000 && !records_broken(records); i++)
            clock_sleep_until(clock_now() + 5 * NS_PER_MS);
        assert_true(records_broken(records));
        assert_int_equal(records_close(records), -EPIPE);
        close(ends[1]);
    }
}

static void long_lines_stay_whole(void **state)
{
    struct scene scene;
    char *long_text = calloc(1, 300001);
    char *line = NULL;
    size_t room = 0;
    json_t *record;
    FILE *lines;

    set_scene(&scene);
    memset(long_text, 'x', 300000); /* more than a pipe holds */
    record = record_new(scene.records, "error");
    json_object_set_new(record, "text", record_text(long_text));
    record_send(scene.records, record, false);
    lines = read_to_the_end(&scene);
    assert_true(getline(&line, &room, lines) > 300000);
    record = json_loads(line, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(record, "text")), long_text);
    json_decref(record);
    end_reading(lines);
    free(line);
    free(long_text);
}

static void unknown_is_null_and_no_value_left_out(void **state)
{
    const struct record_row rows[] = {
        {"z", record_count(0)},    {"b", record_count(-1)},
        {"c", record_text("x")},   {"d", record_text("")},
        {"e", record_text(NULL)},  {"f", record_amount(-0.5)},
        {"g", record_amount(0.5)}, {"h", NULL},
        {"i", record_u64(7)},      {NULL, NULL},
    };
    json_t *record = record_fill(json_object(), rows);
    char *text;

    text = json_dumps(record, JSON_COMPACT);
    assert_string_equal(text, "{\"z\":0,\"b\":null,\"c\":\"x\",\"d\":null,\"e\":null,\"f\":null,"
                              "\"g\":0.5,\"i\":7}");
    free(text);
    json_decref(record);
}

static void records_that_are_held_come_later(void **state)
{
    struct scene scene;
    struct pollfd ready;

    set_scene(&scene);
    ready = (struct pollfd){.fd = scene.reader, .events = POLLIN};
    records_hold(scene.records, true);
    say(&scene, "flow", 0);
    say(&scene, "flow", 1);
    assert_int_equal(poll(&ready, 1, 200), 0);
    records_hold(scene.records, false);
    scene.lines = fdopen(scene.reader, "r");
    assert_int_equal(next_number(scene.lines, "flow"), 0);
    assert_int_equal(next_number(scene.lines, "flow"), 1);
    records_hold(scene.records, true);
    say(&scene, "flow", 2);
    close_records(&scene); /* lets them go */
    assert_int_equal(next_number(scene.lines, "flow"), 2);
    assert_int_equal(next_number(scene.lines, "flow"), -1);
    fclose(scene.lines);
}

#define BIG 900
#define BIGS 330000 /* more bytes than may wait */

static atomic_int big_sent;

static void *send_big(void *context)
{
    struct scene *scene = context;
    char *text = calloc(1, BIG + 1);

    memset(text, 'x', BIG);
    for (int i = 0; i < BIGS; i++) {
        json_t *record = record_new(scene->records, "samples");

        json_object_set_new(record, "data", json_string(text));
        record_send(scene->records, record, false);
        atomic_store(&big_sent, i + 1);
    }
    free(text);
    return close_records(context);
}

/* The samples of a run are more than may wait: their sender waits for the reader. */
static void a_full_queue_waits_for_a_reader_that_reads(void **state)
{
    struct scene scene;
    pthread_t sender;
    FILE *lines;
    char *line = NULL;
    size_t room = 0;
    int count = 0;

    set_scene(&scene);
    lines = fdopen(scene.reader, "r");
    assert_int_equal(pthread_create(&sender, NULL, send_big, &scene), 0);
    for (int sent = -1; sent != atomic_load(&big_sent);) { /* it waits, or has sent all */
        sent = atomic_load(&big_sent);
        poll(NULL, 0, 200);
    }
    while (getline(&line, &room, lines) > (ssize_t)BIG)
        count++;
    pthread_join(sender, NULL);
    assert_int_equal(count, BIGS);
    free(line);
    fclose(lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_queue_waits_for_a_reader_that_reads),
        cmocka_unit_test(a_blocked_pipe_blocks_no_sender),
        cmocka_unit_test(closing_waits_no_longer_than_it_says),
        cmocka_unit_test(what_can_not_be_written_is_noticed),
        cmocka_unit_test(long_lines_stay_whole),
        cmocka_unit_test(records_that_are_held_come_later),
        cmocka_unit_test(unknown_is_null_and_no_value_left_out),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
