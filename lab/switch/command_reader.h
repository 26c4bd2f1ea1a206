/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Standard input: the description, ended by a line "...", then commands, a word a line.
 */
#ifndef MODEL_COMMAND_READER_H
#define MODEL_COMMAND_READER_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>

struct command_reader {
    int fd;
    char line[256]; /* what is too long for it is cut */
    size_t used;
};

/* Waits for the description: *yaml (the caller's, also after an error) and its size.
 * -EINVAL when the input ends before, -ENOMEM, -E2BIG. */
int command_reader_description(int fd, char **yaml, size_t *size, struct err *err);

/* Without waiting: 1 when the next line, without its end, is in `line`; 0 when it is not there yet;
 * -1 when the input has ended or can't be read. */
int command_reader_line(struct command_reader *reader);

#endif
