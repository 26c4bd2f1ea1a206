/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Files of /sys and /proc with one line each: words, numbers, links. Paths are given as a format,
 * as printf takes it.
 */
#ifndef ENGINE_SYSFS_H
#define ENGINE_SYSFS_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>

#define SYSFS_PATH(path, arguments) __attribute__((format(printf, path, arguments)))

bool sysfs_exists(const char *path, ...) SYSFS_PATH(1, 2);

/* The first line without its end; false, and "": it can't be read, or is empty. */
bool sysfs_line(char *line, size_t size, const char *path, ...) SYSFS_PATH(3, 4);

/* A number, decimal or with "0x"; `missing`: there is none. */
long long sysfs_number(long long missing, const char *path, ...) SYSFS_PATH(2, 3);

/* The last part of what a symbolic link points to; "": no link. */
void sysfs_link(char *name, size_t size, const char *path, ...) SYSFS_PATH(3, 4);

/* The paths that match; free with globfree also where there are none. */
void sysfs_glob(glob_t *found, const char *pattern, ...) SYSFS_PATH(2, 3);

#endif
