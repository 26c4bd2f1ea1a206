/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records written to a pipe with a reader that reads, sleeps, or has closed it.
 */
#include "clock.h"
#include "record_writer.h"
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#define MANY 20000 /* number of records that no pipe holds */

static struct records *records;
static int writer_fd;
static FILE *reader;

static int open_records(void **state)
{
    struct err err = {0};
    int ends[2];

    signal(SIGPIPE, SIG_IGN);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    reader = fdopen(ends[0], "r");
    writer_fd = ends[1];
    return records_open(&records, writer_fd, "node1", &err);
}

static void send_numbers(const char *type, int count, bool droppable)
{
    for (int i = 0; i < count; i++) {
        record_send(
            records,
            record_fill(record_new(records, type), RECORD_ROWS({"number", json_integer(i)})),
            droppable);
    }
}

/* Return the number of the next line after a check of the rest of it; -1: end of file. */
static int next_number(const char *type)
{
    char line[128], whole[128];
    int number = -1;

    if (fgets(line, sizeof line, reader) == NULL)
        return -1;
    sscanf(strrchr(line, ':'), ":%d", &number);
    snprintf(whole, sizeof whole, "{\"type\":\"%s\",\"node\":\"node1\",\"number\":%d}\n", type,
             number);
    assert_string_equal(line, whole);
    return number;
}

static void *close_records(void *context)
{
    records_close(records);
    close(writer_fd);
    return NULL;
}

static void end_reading(pthread_t closer)
{
    assert_int_equal(getc(reader), EOF);
    pthread_join(closer, NULL);
    fclose(reader);
}

/* While nobody reads the pipe, senders do not wait, and only progress records are dropped. */
TEST_BETWEEN(a_blocked_pipe_blocks_no_sender, open_records, NULL)
{
    uint64_t dropped;
    pthread_t closer;

    send_numbers("flow", MANY, false);
    assert_int_equal(records_dropped(records), 0);
    send_numbers("progress", MANY, true);
    dropped = records_dropped(records);
    assert_true(dropped > MANY / 2 && dropped <= MANY);
    assert_false(records_broken(records));
    /* Send by another thread, while this one reads. */
    assert_int_equal(pthread_create(&closer, NULL, close_records, NULL), 0);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(next_number("flow"), i);
    for (int i = 0; i < MANY - (int)dropped; i++)
        assert_true(next_number("progress") >= 0);
    end_reading(closer);
}

TEST_BETWEEN(closing_waits_for_no_reader_that_is_gone, open_records, NULL)
{
    send_numbers("flow", MANY, false);
    assert_int_equal(records_close(records), -EPIPE);
    close(writer_fd);
    fclose(reader);
}

/* A pipe without a reader, and a disk that is full. */
TEST(what_can_not_be_written_is_noticed)
{
    for (int full = 0; full < 2; full++) {
        struct records *lost;
        struct err err = {0};
        int ends[2];

        assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
        close(ends[0]);
        if (full) {
            close(ends[1]);
            ends[1] = open("/dev/full", O_WRONLY | O_CLOEXEC);
        }
        assert_int_equal(records_open(&lost, ends[1], "node1", &err), 0);
        record_send(lost, record_new(lost, "flow"), false);
        for (int i = 0; i < 1000 && !records_broken(lost); i++)
            clock_sleep_until(clock_now() + 5 * NS_PER_MS);
        assert_int_equal(records_close(lost), -EPIPE);
        close(ends[1]);
    }
}

#define BIG 300000u /* bytes of a record that no pipe holds */
#define BIGS 1000   /* total bytes that exceed the limit of waiting records */

static atomic_int big_sent;

static void *send_big(void *context)
{
    char *text = calloc(1, BIG + 1);

    memset(text, 'x', BIG);
    for (; big_sent < BIGS; big_sent++)
        record_write(records, "histogram", RECORD_ROWS({"buckets", json_string(text)}));
    free(text);
    return close_records(context);
}

/* Records of a run exceed the memory for them: their sender waits for the reader, and long lines
 * stay whole. */
TEST_BETWEEN(a_full_queue_waits_for_a_reader_that_reads, open_records, NULL)
{
    pthread_t sender;
    char *line = NULL;
    size_t room = 0;
    int count = 0;

    assert_int_equal(pthread_create(&sender, NULL, send_big, NULL), 0);
    for (int sent = -1; sent != big_sent;
         poll(NULL, 0, 200)) /* the sender waits, or has sent all */
        sent = big_sent;
    for (ssize_t size; (size = getline(&line, &room, reader)) > (ssize_t)BIG; count++)
        assert_int_equal(line[size - 2], '}');
    assert_int_equal(count, BIGS);
    free(line);
    end_reading(sender);
}
