/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Records: one JSON object a line on standard output (doc/node-protocol.md). Standard output has
 * its own thread and a queue, so a blocked pipe never delays the barrier or a worker; of all
 * records only `progress` may be dropped.
 */
#ifndef ENGINE_RECORD_WRITER_H
#define ENGINE_RECORD_WRITER_H

#include "err.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define RECORD_BYTES_MAX 1000

struct records; /* opaque */

/* Starts the writer on `fd`; `node` (copied) is put into each record. */
int records_open(struct records **records, int fd, const char *node, struct err *err);
/* Writes what waits, for at most a second when nobody reads, and ends the writer. -EPIPE: some were
 * lost. */
int records_close(struct records *records);

/* A new record of a type, with the node's name in it. Filled by the caller with jansson; NULL when
 * out of memory, which record_send takes as "count it as lost". */
json_t *record_new(const struct records *records, const char *type);
/* Sends the record and lets go of it. */
void record_send(struct records *records, json_t *record);
/* The same, but dropped (and counted) when others wait: for `progress`. */
void record_offer(struct records *records, json_t *record);
/* Whether others wait, so that a record that can wait, too, had better. */
bool records_crowded(struct records *records);
/* Waits until few records wait, for who writes many and may wait for the reader. -EPIPE: standard
 * output can't be written any more. */
int records_await_room(struct records *records);

/* Holds records back, or lets them go: a shared port carries them too, and what is measured there
 * is not to meet them. Who closes or awaits room lets them go. */
void records_hold(struct records *records, bool hold);

/* Sets `key` to the value, or to null when it is below 0: not observed. */
void record_set_count(json_t *record, const char *key, int64_t value);

/* Sets `key` to the text, or to null when it is NULL or "". */
void record_set_text(json_t *record, const char *key, const char *text);

uint64_t records_dropped(const struct records *records);
/* Standard output is closed or full beyond the queue: records are being lost. */
bool records_broken(const struct records *records);

#endif
