/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The journal's file: on disk, whole, before anything is changed, and one at a time. Its layout is
 * in doc/how-to/bind.md.
 */
#ifndef ENGINE_BIND_JOURNAL_H
#define ENGINE_BIND_JOURNAL_H

#include "err.h"

#include <jansson.h>
#include <stdbool.h>

#define JOURNAL_VERSION 1

/* Writes a new journal with its data and its folder's entry on disk, or nothing. -EEXIST without a
 * sentence: there is one. */
int bind_journal_write(const char *path, const json_t *journal, struct err *err);

/* Could it be written? Looks at the folder, or the nearest one above it that is there. */
int bind_journal_check(const char *path, struct err *err);

/* Reads it; the object is the caller's. -ENOENT without a sentence: there is none. -EINVAL: it is
 * not one that this version can read, others could have written it, or a name in it is a path. */
int bind_journal_read(const char *path, json_t **journal, struct err *err);

int bind_journal_remove(const char *path, struct err *err);

/* Locks the journal for as long as the descriptor is open. -EBUSY: another process has it. */
int bind_journal_lock(const char *path, int *fd, struct err *err);

/* A text of an object; "": there is none. */
const char *bind_journal_text(const json_t *object, const char *key);

/* The boot's id, for sysfs_line with `root`. Was the journal written in another one? */
#define BOOT_PATH "%s/proc/sys/kernel/random/boot_id"
bool bind_journal_is_past(const json_t *journal, const char *root);

#endif
