/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Declarations for unit tests in C: TEST(name) { ... } defines a test and adds it to its program,
 * whose main (unit.c) runs all of them in the order of their definition. TEST_ROWS(name, kind)
 * defines one that runs for each row of a kind in the program's file of cases.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The head of a for loop: `item` points to each element of an array in turn. */
#define EACH(item, array)                                                                          \
    const __typeof__((array)[0]) *item = (array);                                                  \
    item < (array) + COUNT(array);                                                                 \
    item++

/* TEST_BETWEEN: with a function before the test and one after it, either may be NULL. */
#define TEST(name) TEST_BETWEEN(name, NULL, NULL)
#define TEST_BETWEEN(name, before, after)                                                          \
    static void name(void **state);                                                                \
    __attribute__((constructor)) static void add_##name(void)                                      \
    {                                                                                              \
        unit_add(#name, name, before, after);                                                      \
    }                                                                                              \
    static void name(void **state)

void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction before,
              CMFixtureFunction after);

/* The program's first argument: a file of cases; "" without one. */
extern const char *unit_argument;

#define UNIT_FIELDS 8

/* A line of that file, "KIND | FIELD | FIELD ...": its fields; "" after the last one. */
struct unit_row {
    int line;
    char *fields[UNIT_FIELDS];
};

/* Call `check` for each row of a kind; fail the test if there is none. */
void unit_each_row(const char *kind, void (*check)(const struct unit_row *row));

/* Make a new folder and run shell commands in it. Return its path, valid until
 * unit_folder_remove(). */
const char *unit_folder(const char *commands);
void unit_folder_remove(void);

/* Fail the test unless the program's file is this text; comments of the file (# ...) do not count.
 */
void unit_same(const char *text);

/* The body of the test runs for each row of the kind, which is `row`. */
#define TEST_ROWS(name, kind)                                                                      \
    static void check_##name(const struct unit_row *row);                                          \
    TEST(name)                                                                                     \
    {                                                                                              \
        unit_each_row(kind, check_##name);                                                         \
    }                                                                                              \
    static void check_##name(const struct unit_row *row)

/* Fail the test, and print the row. */
#define row_fails(row, ...)                                                                        \
    do {                                                                                           \
        print_error("%s:%d: ", unit_argument, (row)->line);                                        \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

/* Write JSON from a shorter form of it: words need no quotes, and texts can have single quotes. */
const char *unit_json(char *json, const char *text);

/* Check a sentence for people: one line that contains this part. */
static inline void assert_says(const char *sentence, const char *part)
{
    if (strstr(sentence, part) == NULL || strchr(sentence, '\n') != NULL)
        fail_msg("'%s' does not say '%s' in one line", sentence, part);
}

#endif
