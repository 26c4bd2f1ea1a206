/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_reader.h"

#include "describe.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 1, 0 at the end of the input, or a negative errno. A byte at a time: what is behind a line's end
 * stays where it is. */
static int read_byte(int fd, char *byte)
{
    struct pollfd input = {.fd = fd, .events = POLLIN};
    ssize_t n;

    while ((n = read(fd, byte, 1)) < 0 && (errno == EINTR || errno == EAGAIN))
        (void)poll(&input, 1, -1);
    return n < 0 ? -errno : (int)n;
}

/* The line "...", with its end. */
static bool is_end(const char *line, size_t size)
{
    return size >= 4 && strncmp(line, "...", 3) == 0 && strspn(line + 3, " \t\r") == size - 4;
}

int command_reader_description(int fd, char **yaml, size_t *size, struct err *err)
{
    char *line = malloc(DESCRIBE_BYTES_MAX), *at = line, *begin = line;
    int rc = 1;

    *yaml = begin;
    if (begin == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    while (at < begin + DESCRIBE_BYTES_MAX && (rc = read_byte(fd, at)) > 0) {
        if (*at++ != '\n')
            continue;
        *size = (size_t)(line - begin);
        if (is_end(line, (size_t)(at - line)))
            return 0;
        line = at;
    }
    if (rc > 0)
        return err_set(err, -E2BIG,
                       "the description is longer than %u MiB: is its end '...' missing?",
                       DESCRIBE_BYTES_MAX >> 20);
    if (rc == 0)
        return err_set(err, -EINVAL,
                       "the input ended before the description did: it ends with a line '...', and "
                       "the switch runs until the input ends");
    return err_set(err, rc, "can't read the description: %s", strerror(-rc));
}

int command_reader_line(struct command_reader *reader)
{
    struct pollfd input = {.fd = reader->fd, .events = POLLIN};
    char byte;

    while (poll(&input, 1, 0) == 1) {
        if (read_byte(reader->fd, &byte) <= 0)
            return -1;
        if (byte == '\n') {
            reader->line[reader->used] = '\0';
            reader->used = 0;
            return 1;
        }
        if (byte != '\r' && reader->used < sizeof reader->line - 1)
            reader->line[reader->used++] = byte;
    }
    return 0;
}
