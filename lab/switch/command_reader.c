/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_reader.h"

#include "describe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES 65536

void command_reader_open(struct command_reader *command_reader, int fd)
{
    *command_reader = (struct command_reader){.fd = fd};
}

void command_reader_close(struct command_reader *command_reader)
{
    free(command_reader->text);
    free(command_reader->description);
    *command_reader = (struct command_reader){.fd = -1, .ended = true};
}

static int make_room(struct command_reader *command_reader)
{
    char *text;

    if (command_reader->room - command_reader->used >= READ_BYTES)
        return 0;
    text = realloc(command_reader->text, command_reader->room + 2 * READ_BYTES);
    if (text == NULL)
        return -ENOMEM;
    command_reader->text = text;
    command_reader->room += 2 * READ_BYTES;
    return 0;
}

/* 0, or -EPIPE at the end, or a negative errno. */
static int read_more(struct command_reader *command_reader)
{
    int rc = make_room(command_reader);
    ssize_t n;

    if (rc < 0)
        return rc;
    n = read(command_reader->fd, command_reader->text + command_reader->used, READ_BYTES);
    if (n < 0)
        return errno == EINTR || errno == EAGAIN ? 0 : -errno;
    command_reader->used += (size_t)n;
    return n > 0 ? 0 : -EPIPE;
}

bool command_reader_read(struct command_reader *command_reader)
{
    struct pollfd input = {.fd = command_reader->fd, .events = POLLIN};

    if (!command_reader->ended && poll(&input, 1, 0) == 1)
        command_reader->ended = read_more(command_reader) < 0;
    return !command_reader->ended;
}

/* Size of the first line with its end; 0: it is not whole. */
static size_t line_size(const char *text, size_t size)
{
    const char *end = memchr(text, '\n', size);

    return end != NULL ? (size_t)(end - text) + 1 : 0;
}

static void drop_front(struct command_reader *command_reader, size_t size)
{
    memmove(command_reader->text, command_reader->text + size, command_reader->used - size);
    command_reader->used -= size;
}

/* Where the line "..." begins; *behind: where it ends. */
static bool find_end(const struct command_reader *command_reader, size_t *end, size_t *behind)
{
    size_t size;

    for (size_t at = 0;
         at < command_reader->used &&
         (size = line_size(command_reader->text + at, command_reader->used - at)) > 0;
         at += size) {
        if (size >= 4 && strncmp(command_reader->text + at, "...", 3) == 0 &&
            strspn(command_reader->text + at + 3, " \t\r") == size - 4) {
            *end = at;
            *behind = at + size;
            return true;
        }
    }
    return false;
}

int command_reader_description(struct command_reader *command_reader, const char **yaml,
                               size_t *size, struct err *err)
{
    size_t behind;
    int rc;

    while (!find_end(command_reader, size, &behind)) {
        if (command_reader->used > DESCRIBE_BYTES_MAX)
            return err_set(err, -E2BIG,
                           "the description is longer than %u MiB: is its end '...' "
                           "missing?",
                           DESCRIBE_BYTES_MAX >> 20);
        rc = read_more(command_reader);
        if (rc == -EPIPE)
            return err_set(err, -EINVAL,
                           "the input ended before the description did: it ends with a line '...', "
                           "and the switch runs until the input ends");
        if (rc < 0)
            return err_set(err, rc, "can't read the description: %s", strerror(-rc));
    }
    *yaml = command_reader->description = malloc(*size + 1);
    if (*yaml == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    memcpy(command_reader->description, command_reader->text, *size);
    drop_front(command_reader, behind);
    return 0;
}

bool command_reader_line(struct command_reader *command_reader, char *line, size_t size)
{
    size_t length = line_size(command_reader->text, command_reader->used);
    size_t copied;

    if (length == 0)
        return false;
    copied = strcspn(command_reader->text, "\r\n");
    copied = copied < size ? copied : size - 1;
    memcpy(line, command_reader->text, copied);
    line[copied] = '\0';
    drop_front(command_reader, length);
    return true;
}
