/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Reader of one JSON object into a struct, by a table of its keys (traffic/option.h).
 */
#ifndef ENGINE_MAPPING_READER_H
#define ENGINE_MAPPING_READER_H

#include "err.h"
#include "option.h"

#include <stddef.h>
#include <sys/queue.h>

/* Blocks of memory allocated for a document, which are freed together. All zero: no block. */
struct mapping_block;
SLIST_HEAD(mapping_memory, mapping_block);

/** @brief Free the memory allocated for a document. */
void mapping_free(struct mapping_memory *memory);

/* Text of one document, and the number of its line in the stream. */
struct mapping_text {
    const char *text;
    size_t size;
    unsigned line; /* from 1 */
};

/**
 * @brief Read a document, which is a JSON object, into a struct.
 *
 * Unknown and duplicate keys, and values of another type or out of range, are rejected. Absent keys
 * have their defaults.
 *
 * @param table the mapping's keys; ends with a NULL key
 * @param into struct that the table describes; all its members are set
 * @param memory owns what the struct points to; the caller frees it, also after a failure
 * @return 0; -EINVAL with an error message that names the line and the key; -ENOMEM
 */
int mapping_read(const struct mapping_text *text, const struct option *table, void *into,
                 struct mapping_memory *memory, struct err *err);

/* Initialisers of an entry in a table of keys: the key, its type, and the member of struct `in`
 * that stores its value. */
#define KEY_BYTES(in, member) sizeof(((struct in *)NULL)->member)
#define KEY_STRING(in, key, member) OPTION(OPTION_STRING, in, key, member)
#define KEY_FLAG(in, key, member) OPTION(OPTION_BOOL, in, key, member)
#define KEY_REAL(in, key, member) OPTION(OPTION_REAL, in, key, member)
#define KEY_NUMBER(in, key, member, least, most, unsaid)                                           \
    OPTION(OPTION_NUMBER, in, key, member), .min = (least), .max = (most), .initial = (unsaid)
#define KEY_U32(in, key, member) KEY_NUMBER(in, key, member, 0, UINT32_MAX, 0)
#define KEY_U64(in, key, member) KEY_NUMBER(in, key, member, 0, INT64_MAX, 0)
#define KEY_WORD(in, key, member, among) OPTION(OPTION_WORD, in, key, member), .words = (among)
/* A list of `least` to `most` elements; `element` is an option, and `counter` has their number. */
#define KEY_LIST_OF(in, key, member, counter, element, least, most)                                \
    OPTION(OPTION_LIST, in, key, member), .count = offsetof(struct in, counter),                   \
                                          .count_size = KEY_BYTES(in, counter), .of = &(element),  \
                                          .min = (least), .max = (most)
#define KEY_LIST(in, key, member, element, least, most)                                            \
    KEY_LIST_OF(in, key, member, member##_count, element, least, most)
#define KEY_MAPPING(in, key, member, inner)                                                        \
    OPTION(OPTION_MAPPING, in, key, member), .table = (inner)
/* A mapping whose values are stored in members of the struct `in` itself; its member `noted` is
 * true where the document has the mapping. */
#define KEY_INSIDE(in, name, noted, inner)                                                         \
    .key = (name), .type = OPTION_MAPPING, .table = (inner), .given = offsetof(struct in, noted)
#define KEY_POINTER(in, key, member, element)                                                      \
    OPTION(OPTION_POINTER, in, key, member), .of = &(element)
#define KEY_ELEMENT(in, inner) .type = OPTION_MAPPING, .size = sizeof(struct in), .table = (inner)

#endif
