/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Standard input: the description, ended by a line "...", then commands, a word a line. Reading
 * never waits unless asked to.
 */
#ifndef MODEL_INTAKE_H
#define MODEL_INTAKE_H

#include "err.h"

#include <stdbool.h>
#include <stddef.h>

struct intake {
    int fd;
    char *text;
    char *description;
    size_t used, room;
    bool ended;
};

void intake_open(struct intake *intake, int fd);
void intake_close(struct intake *intake);

/* Waits for the description: *yaml (the intake's) and its size.
 * -EINVAL when the input ends before, -ENOMEM, -E2BIG. */
int intake_description(struct intake *intake, const char **yaml, size_t *size, struct err *err);

/* Takes in what is there. False: the input has ended, or can't be read. */
bool intake_read(struct intake *intake);

/* The next whole line, without its end, in `line`; false: there is none. What is too long for it
 * is cut. */
bool intake_line(struct intake *intake, char *line, size_t size);

#endif
