/* SPDX-License-Identifier: BSD-3-Clause */
#include "command_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DESCRIPTION_MAX (4u << 20)

/* A byte at a time: what is behind a line's end stays where it is. */
int command_reader_line(struct command_reader *reader, int wait_ms)
{
    struct pollfd input = {.fd = reader->fd, .events = POLLIN};
    char byte;

    while (poll(&input, 1, wait_ms) == 1) {
        if (read(reader->fd, &byte, 1) != 1)
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

static bool is_end(const char *line)
{
    return strncmp(line, "...", 3) == 0 && line[3 + strspn(line + 3, " \t")] == '\0';
}

int command_reader_description(struct command_reader *reader, char **yaml, size_t *size,
                               struct err *err)
{
    FILE *text = open_memstream(yaml, size);
    bool too_long = false;
    int rc = 0;

    if (text == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    while (rc >= 0 && !too_long && !(rc == 1 && is_end(reader->line))) {
        if (rc == 1)
            fprintf(text, "%s\n", reader->line);
        rc = command_reader_line(reader, -1);
        too_long = rc == 1 && (strlen(reader->line) == sizeof reader->line - 1 ||
                               ftell(text) > DESCRIPTION_MAX);
    }
    fclose(text);
    if (too_long)
        return err_set(err, -EINVAL,
                       "the description is longer than %u MiB, or a line of it than %zu bytes: is "
                       "its end '...' missing?",
                       DESCRIPTION_MAX >> 20, sizeof reader->line - 2);
    return rc == 1 ? 0
                   : err_set(err, -EINVAL,
                             "the input ended before the description did: it ends with a line "
                             "'...', and the switch runs until the input ends");
}
