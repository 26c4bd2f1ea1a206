/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Standard input: the description, ended by a line "...", then commands, a word a line. Reading
 * never waits unless asked to.
 */
#ifndef MODEL_COMMAND_READER_H
#define MODEL_COMMAND_READER_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>

struct command_reader {
    int fd;
    char *text;
    char *description;
    size_t used, room;
    bool ended;
};

void command_reader_open(struct command_reader *command_reader, int fd);
void command_reader_close(struct command_reader *command_reader);

/* Waits for the description: *yaml (the intake's) and its size.
 * -EINVAL when the input ends before, -ENOMEM, -E2BIG. */
int command_reader_description(struct command_reader *command_reader, const char **yaml,
                               size_t *size, struct err *err);

/* Takes in what is there. False: the input has ended, or can't be read. */
bool command_reader_read(struct command_reader *command_reader);

/* The next whole line, without its end, in `line`; false: there is none. What is too long for it
 * is cut. */
bool command_reader_line(struct command_reader *command_reader, char *line, size_t size);

#endif
