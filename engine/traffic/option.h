/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The options of a transport as one table in its own folder: what a trial's document may say below
 * the transport's name, and where each value is stored in the transport's own struct. The document
 * reader walks the table (documents.c); the rest of the core knows no option.
 */
#ifndef ENGINE_OPTION_H
#define ENGINE_OPTION_H

#include "err.h"

#include <stddef.h>
#include <stdint.h>

#define OPTIONS_MAX 32 /* of one transport */
#define OPTION_BYTES_MAX 256

enum option_type {
    OPTION_NUMBER, /* an integer from min to max */
    OPTION_REAL,   /* a finite number of at least min */
    OPTION_BOOL,   /* 0 or 1 */
    OPTION_WORD,   /* one of `words`; its index is stored */
    OPTION_TEXT,   /* of less than `size` bytes; by default "" */
};

struct option {
    const char *key; /* NULL ends a table */
    enum option_type type;
    uint16_t offset; /* of the member in which it is stored; a real is stored as a double */
    uint16_t size;   /* of that member, in bytes */
    uint16_t given;  /* offset of a bool that says whether the document has the key; 0: none */
    int64_t min;
    int64_t max;
    int64_t initial;          /* if the document does not have the key */
    const char *const *words; /* NULL-terminated */
    const char *why;          /* the reason of min and max, for the sentence; NULL: none */
};

struct phase;

struct option_table {
    const struct option *options;
    size_t size; /* of the transport's struct: at most OPTION_BYTES_MAX */
    /* Changes what depends on a phase's traffic and sizes; NULL: nothing does. */
    void (*fit)(void *options, const struct phase *phase);
};

/* The first members of an entry: the key, its type, and the struct's member. */
#define OPTION(kind, in, name, member)                                                             \
    .key = (name), .type = (kind), .offset = offsetof(struct in, member),                          \
    .size = sizeof(((struct in *)NULL)->member)

/* Fills a transport's struct. `given` has the document's values in the order of the table, NULL for
 * a key that it does not have: int64_t, double, bool, or a string. Without `given` all options have
 * their defaults. -EINVAL, and the sentence, for a value that the table does not allow. */
int option_table_fill(const struct option_table *table, const void *const *given, void *options,
                      struct err *err);

#endif
