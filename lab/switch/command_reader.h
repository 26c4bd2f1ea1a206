/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Standard input: the description, ended by a line "...", then commands, a word a line.
 */
#ifndef MODEL_COMMAND_READER_H
#define MODEL_COMMAND_READER_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>

struct command_reader {
    int fd;
    char line[256]; /**< what is too long for it is cut */
    size_t used;
};

/**
 * @brief Wait for the description on standard input.
 *
 * @param fd Open descriptor; stays the caller's.
 * @param yaml Takes the document.
 * @param size Takes its bytes.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, with `*yaml` (the caller's to free, also after an error) and its size; -EINVAL: the
 *        input ends before; -ENOMEM; -E2BIG.
 */
int command_reader_description(int fd, char **yaml, size_t *size, struct err *err);

/**
 * @brief Read a line without waiting.
 *
 * @param reader Reader; its `fd` is set by the caller.
 * @return 1: the next line, without its end, is in `line`; 0: it is not there yet; -1: the input
 *        has ended or can't be read.
 */
int command_reader_line(struct command_reader *reader);

#endif
