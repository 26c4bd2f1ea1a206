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
 * @param[out] records Writer of records.
 * @param fd Open descriptor; stays the caller's.
 * @param node Node's name; outlives the writer.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, and the caller ends it by records_close(); or a negative errno with an error message.
 */
int records_open(struct records **records, int fd, const char *node, struct err *err);
/**
 * @brief Write the queued records and stop the writer; give up if the output is still blocked after
 * a second.
 *
 * @param records Writer of records.
 * @return 0; -EPIPE: records were lost.
 */
int records_close(struct records *records);

/**
 * @brief Make a record of the given type, which contains the node's name.
 *
 * @param records Writer of records.
 * @param type Type of the record.
 * @return Record, filled by the caller with jansson; NULL: out of memory, which record_send()
 *        counts as lost.
 */
json_t *record_new(const struct records *records, const char *type);
/**
 * @brief Row of a record: a key with its value.
 *
 * A row whose value is NULL is omitted.
 */
struct record_row {
    const char *key; /**< NULL: the table's end */
    json_t *value;
};
/** @brief Make a table of record rows from initialisers `{key, value}`, and append its end mark. */
#define RECORD_ROWS(...) ((const struct record_row[]){__VA_ARGS__, {NULL, NULL}})
/**
 * @brief Add key-value rows to a JSON object, such as a record.
 *
 * @param record JSON object.
 * @param rows Rows; their values are taken over.
 * @return `record`.
 */
json_t *record_fill(json_t *record, const struct record_row *rows);
/**
 * @brief Make a JSON number of an unsigned count.
 *
 * @return JSON value for a row.
 */
#define record_u64(value) json_integer((json_int_t)(value))
/**
 * @brief Make a JSON integer of a count; null where the count is below 0.
 *
 * @return JSON value for a row.
 */
json_t *record_count(int64_t value);
/**
 * @brief Make a JSON number of an amount; null where the amount is below 0.
 *
 * @return JSON value for a row.
 */
json_t *record_amount(double value);
/**
 * @brief Make a JSON string of a text; null where the text is NULL.
 *
 * @param text Text; copied. NULL: none.
 * @return JSON value for a row.
 */
json_t *record_text(const char *text);
/**
 * @brief Make a JSON list of the non-negative numbers of an array; null if the array has none.
 *
 * @return JSON value for a row.
 */
json_t *record_numbers(const int *numbers, size_t count);

/**
 * @brief Queue a record for writing, and release it.
 *
 * Blocks only while 256 MiB of records are queued, as long as the reader reads at least once in ten
 * seconds.
 *
 * @param records Writer of records.
 * @param record Record; taken over.
 * @param droppable True: drop the record if others are queued, and count it as dropped (for
 *        `progress`).
 */
void record_send(struct records *records, json_t *record, bool droppable);
/**
 * @brief Make a record with the given rows and queue it for writing.
 *
 * @param records Writer of records.
 * @param type Type of the record.
 * @param rows Rows; their values are taken over.
 */
void record_write(struct records *records, const char *type, const struct record_row *rows);
/**
 * @brief Queue an `event` record about a port or about the node.
 *
 * @param records Writer of records.
 * @param what Kind of the event, a word.
 * @param port Port's name; NULL: the event concerns the node.
 * @param text Description of the event, one sentence.
 */
void record_event(struct records *records, const char *what, const char *port, const char *text);
/**
 * @brief Return whether records wait in the queue; the caller should then delay less urgent
 * records.
 *
 * @param records Writer of records.
 * @return True: records wait.
 */
bool records_crowded(const struct records *records);
/**
 * @brief Return the number of records that were dropped because others were queued.
 *
 * @param records Writer of records.
 * @return Number of records.
 */
uint64_t records_dropped(const struct records *records);
/**
 * @brief Return whether records are being lost: standard output is closed, or blocked with a full
 * queue.
 *
 * @param records Writer of records.
 * @return True: records are lost.
 */
bool records_broken(const struct records *records);

#endif
