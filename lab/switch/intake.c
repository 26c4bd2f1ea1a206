/* SPDX-License-Identifier: BSD-3-Clause */
#include "intake.h"

#include "describe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

void intake_open(struct intake *intake, int fd)
{
    *intake = (struct intake){.fd = fd};
}

void intake_close(struct intake *intake)
{
    free(intake->text);
    free(intake->description);
    *intake = (struct intake){.fd = -1, .ended = true};
}

static int make_room(struct intake *intake)
{
    char *text;

    if (intake->room - intake->used >= READ_BYTES)
        return 0;
    text = realloc(intake->text, intake->room + 2 * READ_BYTES);
    if (text == NULL)
        return -ENOMEM;
    intake->text = text;
    intake->room += 2 * READ_BYTES;
    return 0;
}

/* 0, or -EPIPE at the end, or a negative errno. */
static int read_more(struct intake *intake)
{
    int rc = make_room(intake);
    ssize_t n;

    if (rc < 0)
        return rc;
    n = read(intake->fd, intake->text + intake->used, READ_BYTES);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    intake->used += (size_t)n;
    return n > 0 ? 0 : -EPIPE;
}

bool intake_read(struct intake *intake)
{
    struct pollfd input = {.fd = intake->fd, .events = POLLIN};

    if (!intake->ended && poll(&input, 1, 0) == 1)
        intake->ended = read_more(intake) < 0;
    return !intake->ended;
}

/* Size of the first line with its end; 0: it is not whole. */
static size_t line_size(const char *text, size_t size)
{
    const char *end = memchr(text, '\n', size);

    return end != NULL ? (size_t)(end - text) + 1 : 0;
}

static void drop_front(struct intake *intake, size_t size)
{
    memmove(intake->text, intake->text + size, intake->used - size);
    intake->used -= size;
}

/* Where the line "..." begins; *behind: where it ends. */
static bool find_end(const struct intake *intake, size_t *end, size_t *behind)
{
    size_t size;

    for (size_t at = 0;
         at < intake->used && (size = line_size(intake->text + at, intake->used - at)) > 0;
         at += size) {
        if (size >= 4 && strncmp(intake->text + at, "...", 3) == 0 &&
            strspn(intake->text + at + 3, " \t\r") == size - 4) {
            *end = at;
            *behind = at + size;
            return true;
        }
    }
    return false;
}

int intake_description(struct intake *intake, const char **yaml, size_t *size, struct err *err)
{
    size_t behind;
    int rc;

    while (!find_end(intake, size, &behind)) {
        if (intake->used > DESCRIBE_BYTES_MAX)
            return err_set(err, -E2BIG,
                           "the description is longer than %u MiB: is its end '...' "
                           "missing?",
                           DESCRIBE_BYTES_MAX >> 20);
        rc = read_more(intake);
        if (rc == -EPIPE)
            return err_set(err, -EINVAL,
                           "the input ended before the description did: it ends with a line '...', "
                           "and the switch runs until the input ends");
        if (rc < 0)
            return err_set(err, rc, "can't read the description: %s", strerror(-rc));
    }
    *yaml = intake->description = malloc(*size + 1);
    if (*yaml == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    memcpy(intake->description, intake->text, *size);
    drop_front(intake, behind);
    return 0;
}

bool intake_line(struct intake *intake, char *line, size_t size)
{
    size_t length = line_size(intake->text, intake->used);
    size_t copied;

    if (length == 0)
        return false;
    copied = strcspn(intake->text, "\r\n");
    copied = copied < size ? copied : size - 1;
    memcpy(line, intake->text, copied);
    line[copied] = '\0';
    drop_front(intake, length);
    return true;
}
