/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Table of a mapping's keys: the values that a document may have, and their places in a
 * struct. Documents have such tables (document/documents.c), and each transport has one in its own
 * folder for the keys below its name in a trial; the core knows no option.
 */
#ifndef ENGINE_OPTION_H
#define ENGINE_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OPTION_BYTES_MAX 256 /* limit of a transport's struct */

enum option_type {
    OPTION_NUMBER,  /* an integer from min to max */
    OPTION_REAL,    /* a finite number of at least min, and at most max where that is above 0 */
    OPTION_BOOL,    /* true or false */
    OPTION_WORD,    /* one of `words`; its index is stored */
    OPTION_TEXT,    /* less than `size` bytes; default "" */
    OPTION_STRING,  /* pointer to the document's copy; NULL: absent */
    OPTION_MAPPING, /* struct with a `table` of its own */
    OPTION_POINTER, /* pointer to one `of`, owned by the document; NULL: absent */
    OPTION_LIST,    /* `min` to `max` elements `of`, behind a pointer or in the struct itself; their
                       number in `count` */
};

struct option {
    const char *key; /* NULL ends a table */
    enum option_type type;
    uint16_t offset;     /* offset of the member that stores it */
    uint16_t size;       /* size of this member in bytes */
    uint16_t given;      /* offset of a bool that is true where the document has the key; 0: none */
    uint16_t count;      /* offset of a list's number of elements */
    uint16_t count_size; /* size of this number in bytes */
    bool needed;         /* a mapping without the key is invalid */
    int64_t min;
    int64_t max;
    int64_t initial;            /* default value */
    const char *const *words;   /* NULL-terminated */
    const char *why;            /* reason for min and max, for the sentence; NULL: none */
    const struct option *table; /* for a mapping */
    const struct option *of;    /* element of a pointer or a list; its offset is 0 */
};

struct option_table {
    const struct option *options;
    size_t size; /* size of the transport's struct: at most OPTION_BYTES_MAX */
};

/* Initialisers of an option: the key, its type, and the member of struct `in` that stores its
 * value. */
#define OPTION(kind, in, name, member)                                                             \
    .key = (name), .type = (kind), .offset = offsetof(struct in, member),                          \
    .size = sizeof(((struct in *)NULL)->member)

/**
 * @brief Set the members of a struct to the defaults of a table of options, including the options
 * of nested mappings.
 * @param table ends with a NULL key
 * @param into the struct that the table describes, whole
 */
void option_defaults(const struct option *table, void *into);

#endif
