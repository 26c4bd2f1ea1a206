/* SPDX-License-Identifier: BSD-3-Clause */
#include "record_writer.h"

#include "clock.h"
#include "lock.h"
#include "log.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#define QUEUE_OFFER_MAX 64           /* maximum of waiting records for which progress is queued */
#define QUEUE_BYTES_MAX (256u << 20) /* maximum memory for records that nobody reads */
#define STALLED_NS (10 * NS_PER_S)   /* time without reading after which records are lost */
#define CLOSE_WAIT_NS NS_PER_S
#define DUMP_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(12))

struct line {
    STAILQ_ENTRY(line) next;
    size_t size;
    char text[];
};

struct records {
    int fd;
    const char *node;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    pthread_cond_t taken;
    STAILQ_HEAD(, line) queue;
    atomic_size_t queue_count;
    size_t queue_bytes;
    atomic_llong closing_ns; /* time limit of the last writes; 0: not closing */
    atomic_ullong dropped;
    atomic_bool broken;
};

/* Write a text. Return 0 or a negative errno. A pipe that poll() reports as writable accepts at
 * least PIPE_BUF bytes without blocking. */
static int write_all(struct records *records, const char *text, size_t size)
{
    while (size > 0) {
        struct pollfd ready = {.fd = records->fd, .events = POLLOUT};
        int64_t closing_ns = atomic_load(&records->closing_ns);
        ssize_t n = 0;

        if (poll(&ready, 1, 100) != 0)
            n = write(records->fd, text, size < PIPE_BUF ? size : PIPE_BUF);
        else if (closing_ns != 0 && clock_now() > closing_ns)
            return -ETIMEDOUT;
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

static void *writer(void *context)
{
    struct records *records = context;
    struct line *line;

    do {
        int rc = 0;

        pthread_mutex_lock(&records->lock);
        while (STAILQ_EMPTY(&records->queue) && records->closing_ns == 0)
            pthread_cond_wait(&records->filled, &records->lock);
        line = STAILQ_FIRST(&records->queue);
        if (line != NULL) {
            STAILQ_REMOVE_HEAD(&records->queue, next);
            records->queue_count--;
            records->queue_bytes -= line->size;
            pthread_cond_signal(&records->taken);
        }
        pthread_mutex_unlock(&records->lock);
        if (line != NULL && !records_broken(records))
            rc = write_all(records, line->text, line->size);
        if (rc < 0) {
            atomic_store(&records->broken, true);
            log_error("standard output can't be written (%s): records are lost",
                      rc == -ETIMEDOUT ? "no process reads it" : strerror(-rc));
        }
        free(line);
    } while (line != NULL);
    return NULL;
}

int records_open(struct records **records, int fd, const char *node, struct err *err)
{
    struct records *r = calloc(1, sizeof *r);
    int rc;

    if (r == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    r->fd = fd;
    r->node = node;
    STAILQ_INIT(&r->queue);
    lock_init(&r->lock);
    pthread_cond_init(&r->filled, NULL);
    pthread_cond_init(&r->taken, NULL);
    rc = pthread_create(&r->thread, NULL, writer, r);
    if (rc != 0) {
        free(r);
        return err_set(err, -rc, "can't start the records' thread: %s", strerror(rc));
    }
    *records = r;
    return 0;
}

int records_close(struct records *records)
{
    bool broken;

    if (records == NULL)
        return 0;
    pthread_mutex_lock(&records->lock);
    records->closing_ns = clock_now() + CLOSE_WAIT_NS;
    pthread_cond_signal(&records->filled);
    pthread_mutex_unlock(&records->lock);
    pthread_join(records->thread, NULL);
    pthread_cond_destroy(&records->filled);
    pthread_cond_destroy(&records->taken);
    pthread_mutex_destroy(&records->lock);
    broken = records_broken(records);
    free(records);
    return broken ? -EPIPE : 0;
}

json_t *record_new(const struct records *records, const char *type)
{
    return json_pack("{s:s, s:s}", "type", type, "node", records->node);
}

json_t *record_fill(json_t *record, const struct record_row *rows)
{
    for (; rows->key != NULL; rows++)
        if (rows->value != NULL)
            json_object_set_new(record, rows->key, rows->value);
    return record;
}

json_t *record_count(int64_t value)
{
    return value < 0 ? json_null() : json_integer(value);
}

json_t *record_amount(double value)
{
    return value < 0 ? json_null() : json_real(value);
}

json_t *record_text(const char *text)
{
    return text == NULL || text[0] == '\0' ? json_null() : json_string(text);
}

json_t *record_numbers(const int *numbers, size_t count)
{
    json_t *list = json_array();

    for (size_t i = 0; i < count; i++)
        if (numbers[i] >= 0)
            json_array_append_new(list, json_integer(numbers[i]));
    if (json_array_size(list) > 0)
        return list;
    json_decref(list);
    return json_null();
}

void record_send(struct records *records, json_t *record, bool droppable)
{
    size_t size = record != NULL ? json_dumpb(record, NULL, 0, DUMP_FLAGS) : 0;
    struct line *line = size > 0 ? malloc(sizeof *line + size + 1) : NULL;
    bool full = line == NULL;
    int rc = 0;

    if (line != NULL) {
        line->size = json_dumpb(record, line->text, size, DUMP_FLAGS) + 1;
        line->text[size] = '\n';
    }
    json_decref(record);
    pthread_mutex_lock(&records->lock);
    /* Wait while the queue is full and its reader still reads. */
    while (!droppable && rc == 0 && records->queue_bytes > QUEUE_BYTES_MAX &&
           !records_broken(records)) {
        int64_t until_ns = clock_now() + STALLED_NS;
        struct timespec until = {until_ns / NS_PER_S, until_ns % NS_PER_S};

        rc = pthread_cond_clockwait(&records->taken, &records->lock, CLOCK_MONOTONIC, &until);
    }
    if (!droppable && records->queue_bytes > QUEUE_BYTES_MAX)
        atomic_store(&records->broken, true);
    full = full || records->queue_bytes > QUEUE_BYTES_MAX ||
           (droppable && records->queue_count > QUEUE_OFFER_MAX);
    if (!full) {
        STAILQ_INSERT_TAIL(&records->queue, line, next);
        records->queue_count++;
        records->queue_bytes += line->size;
        pthread_cond_signal(&records->filled);
    }
    pthread_mutex_unlock(&records->lock);
    if (full) {
        atomic_fetch_add(&records->dropped, 1);
        free(line);
    }
}

void record_write(struct records *records, const char *type, const struct record_row *rows)
{
    record_send(records, record_fill(record_new(records, type), rows), false);
}

void record_event(struct records *records, const char *what, const char *port, const char *text)
{
    record_write(records, "event",
                 RECORD_ROWS({"kind", json_string(what)}, {"port", record_text(port)},
                             {"text", record_text(text)}));
}

bool records_crowded(const struct records *records)
{
    return atomic_load(&records->queue_count) > QUEUE_OFFER_MAX;
}

uint64_t records_dropped(const struct records *records)
{
    return atomic_load(&records->dropped);
}

bool records_broken(const struct records *records)
{
    return atomic_load(&records->broken);
}
