/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records: one JSON object a line on standard output (doc/reference/node-protocol.md). Standard
 * output has its own thread and a queue, so a blocked pipe never delays the barrier or a worker; of
 * all records only `progress` may be dropped.
 */
#ifndef ENGINE_RECORD_WRITER_H
#define ENGINE_RECORD_WRITER_H

#include "err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct records; /* opaque */

/* Starts the writer on `fd`; `node` (copied) is put into each record. */
int records_open(struct records **records, int fd, const char *node, struct err *err);
/* Writes what waits, for at most a second when nobody reads, and ends the writer. -EPIPE: some were
 * lost. */
int records_close(struct records *records);

/* A new record of a type, with the node's name in it. Filled by the caller with jansson; NULL when
 * out of memory, which record_send takes as "count it as lost". */
json_t *record_new(const struct records *records, const char *type);
/* One value of a record. A row whose value is NULL is left out. */
struct record_row {
    const char *key; /* NULL: the table's end */
    json_t *value;
};
/* Adds rows to a mapping, and returns it. */
json_t *record_fill(json_t *record, const struct record_row *rows);
/* Values of rows. What was not observed is null: a count or an amount below 0, no text. */
json_t *record_u64(uint64_t value);
json_t *record_count(int64_t value);
json_t *record_amount(double value);
json_t *record_text(const char *text);
/* The numbers that are not below 0, as a list; null: there are none. */
json_t *record_numbers(const int *numbers, size_t count);

/* Sends the record and lets go of it. Waits only where 256 MiB wait already, while the reader takes
 * some of it every ten seconds. */
void record_send(struct records *records, json_t *record);
/* A whole record of these rows; an `event`, of a port or of none (NULL). */
void record_write(struct records *records, const char *type, const struct record_row *rows);
void record_event(struct records *records, const char *what, const char *port, const char *text);
/* The same, but dropped (and counted) when others wait: for `progress`. */
void record_offer(struct records *records, json_t *record);
/* Whether others wait, so that a record that can wait, too, had better. */
bool records_crowded(struct records *records);
/* Holds records back, or lets them go: a shared port carries them too, and what is measured there
 * is not to meet them. Closing lets them go. */
void records_hold(struct records *records, bool hold);

uint64_t records_dropped(const struct records *records);
/* Standard output is closed or full beyond the queue: records are being lost. */
bool records_broken(const struct records *records);

#endif
