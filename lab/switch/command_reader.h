/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Standard input: the description, ended by a line "...", then commands, one a line.
 */
#ifndef MODEL_COMMAND_READER_H
#define MODEL_COMMAND_READER_H

#include "err.h"

#include <stddef.h>

struct command_reader {
    int fd;
    char line[4096]; /**< what is too long for it is cut */
    size_t used;
};

/**
 * @brief Read the next line.
 *
 * @param reader Reader; its `fd` is set by the caller.
 * @param wait_ms How long to wait for each byte, ms; -1: without end, 0: not at all.
 * @return 1: the line, without its end, is in `line`; 0: it is not there yet; -1: the input has
 *         ended or can't be read.
 */
int command_reader_line(struct command_reader *reader, int wait_ms);

/**
 * @brief Wait for the description.
 *
 * @param reader Reader.
 * @param yaml Takes the document, the caller's to free, also after an error.
 * @param size Takes its bytes.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL: the input ends before, or a line is too long; -ENOMEM.
 */
int command_reader_description(struct command_reader *reader, char **yaml, size_t *size,
                               struct err *err);

#endif
