/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cases of patterns.txt: of each line its fields, and the request that its pattern is.
 */
#ifndef PATTERN_CASES_H
#define PATTERN_CASES_H

#include "pattern.h"

#define CASE_FIELDS 8

struct pattern_case {
    struct pattern_request request;
    char *fields[CASE_FIELDS]; /* behind the pattern; "" where there are no more */
    int line;
};

/* The file that is read: a test program's argument. */
extern const char *pattern_cases_path;

/* Calls `check` for each case of a kind; fails the test when there is none. */
void pattern_cases(const char *kind, void (*check)(const struct pattern_case *one));

#endif
