/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Writer of records: one JSON object per line on standard output
 * (doc/developer/node-protocol.md).
 *
 * Standard output has its own thread and a queue, so that a blocked pipe never delays the barrier
 * or a worker; only `progress` records may be dropped.
 */
#ifndef ENGINE_RECORD_WRITER_H
#define ENGINE_RECORD_WRITER_H

#include "err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct records; /* opaque */

/**
 * @brief Start the writer of records.
 *
 * @param records Takes the writer.
 * @param fd Open descriptor; stays the caller's.
 * @param node Node's name; outlives the writer.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, and the caller ends it by records_close(); or a negative errno with a sentence.
 */
int records_open(struct records **records, int fd, const char *node, struct err *err);
/**
 * @brief Write the waiting records, for at most a second without a reader, and end the writer.
 *
 * @param records Writer of records.
 * @return 0; -EPIPE: some were lost.
 */
int records_close(struct records *records);

/**
 * @brief Make a record of a type that contains the node's name.
 *
 * @param records Writer of records.
 * @param type Type of the record.
 * @return Record, filled by the caller with jansson; NULL: out of memory, which record_send()
 *        counts as lost.
 */
json_t *record_new(const struct records *records, const char *type);
/**
 * @brief One value of a record.
 *
 * A row whose value is NULL is left out.
 */
struct record_row {
    const char *key; /**< NULL: the table's end */
    json_t *value;
};
/** @brief Rows of a record, each `{key, value}`. */
#define RECORD_ROWS(...) ((const struct record_row[]){__VA_ARGS__, {NULL, NULL}})
/**
 * @brief Add rows to a mapping of a record.
 *
 * @param record Record; taken over.
 * @param rows Rows; their values are taken over.
 * @return The mapping.
 */
json_t *record_fill(json_t *record, const struct record_row *rows);
/**
 * @brief Make a JSON number of an unsigned count.
 *
 * @return Value, for a row.
 */
#define record_u64(value) json_integer((json_int_t)(value))
/**
 * @brief Make a JSON integer of a count; null where the count is below 0.
 *
 * @return Value, for a row.
 */
json_t *record_count(int64_t value);
/**
 * @brief Make a JSON number of an amount; null where the amount is below 0.
 *
 * @return Value, for a row.
 */
json_t *record_amount(double value);
/**
 * @brief Make a JSON string of a text; null where the text is NULL.
 *
 * @param text Text; copied. NULL: none.
 * @return Value, for a row.
 */
json_t *record_text(const char *text);
/**
 * @brief Make a JSON list of the numbers that are not below 0; null where there are none.
 *
 * @return Value, for a row.
 */
json_t *record_numbers(const int *numbers, size_t count);

/**
 * @brief Send a record and release it.
 *
 * Waits only where 256 MiB wait already, while the reader takes some of them every ten seconds.
 *
 * @param records Writer of records.
 * @param record Record; taken over.
 * @param droppable Drop and count it where others wait: for `progress`.
 */
void record_send(struct records *records, json_t *record, bool droppable);
/**
 * @brief Send a record with the given rows.
 *
 * @param records Writer of records.
 * @param type Type of the record.
 * @param rows Rows; their values are taken over.
 */
void record_write(struct records *records, const char *type, const struct record_row *rows);
/**
 * @brief Send an `event` record about a port or, with NULL, about the node.
 *
 * @param records Writer of records.
 * @param what What happened.
 * @param port Port's name; NULL: of none.
 * @param text Sentence on it.
 */
void record_event(struct records *records, const char *what, const char *port, const char *text);
/**
 * @brief Return whether records wait in the queue, so that less urgent records should be sent
 * later.
 *
 * @param records Writer of records.
 * @return True: they do.
 */
bool records_crowded(const struct records *records);
/**
 * @brief Return the number of dropped records.
 *
 * @param records Writer of records.
 * @return Records.
 */
uint64_t records_dropped(const struct records *records);
/**
 * @brief Return whether records are being lost: standard output is closed, or full beyond the
 * queue.
 *
 * @param records Writer of records.
 * @return True: they are.
 */
bool records_broken(const struct records *records);

#endif
