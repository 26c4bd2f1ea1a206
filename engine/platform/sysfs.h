/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Files of /sys and /proc: single lines, numbers, links, and available memory.
 *
 * Paths are printf formats.
 */
#ifndef ENGINE_SYSFS_H
#define ENGINE_SYSFS_H

#include <glob.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_PATH(path, arguments) __attribute__((format(printf, path, arguments)))

/**
 * @brief Return whether a file exists.
 *
 * @param path Path as a printf format, its arguments behind it.
 * @return True: there is.
 */
bool sysfs_exists(const char *path, ...) SYSFS_PATH(1, 2);

/**
 * @brief Read the first line of a file, without its newline.
 *
 * @param line Takes the line.
 * @param size Bytes that there are or that may be written.
 * @param path Path as a printf format, its arguments behind it.
 * @return False, and "": it can't be read, or is empty.
 */
bool sysfs_line(char *line, size_t size, const char *path, ...) SYSFS_PATH(3, 4);

/**
 * @brief Read a number from a file, decimal or with "0x".
 *
 * @param missing Value where there is none.
 * @param path Path as a printf format, its arguments behind it.
 * @return Number; `missing`: there is none.
 */
long long sysfs_number(long long missing, const char *path, ...) SYSFS_PATH(2, 3);

/**
 * @brief Read the last part of a symbolic link's target; "" for other files.
 *
 * @param name Takes the name; "": no link.
 * @param size Bytes that there are or that may be written.
 * @param path Path as a printf format, its arguments behind it.
 */
void sysfs_link(char *name, size_t size, const char *path, ...) SYSFS_PATH(3, 4);

/**
 * @brief List the paths that match a pattern; the caller frees the list by globfree(), even an
 * empty one.
 *
 * @param found Takes the paths.
 * @param pattern Pattern as a printf format, its arguments behind it.
 */
void sysfs_glob(glob_t *found, const char *pattern, ...) SYSFS_PATH(2, 3);

/**
 * @brief Return the memory that may be used now: seven eighths of the kernel's MemAvailable
 * (proc(5)), which is an estimate, and which other processes use too.
 *
 * @return Bytes; UINT64_MAX: not known.
 */
uint64_t memory_spare(void);

#endif
