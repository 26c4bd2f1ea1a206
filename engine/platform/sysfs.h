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
 * @return True: the file exists.
 */
bool sysfs_exists(const char *path, ...) SYSFS_PATH(1, 2);

/**
 * @brief Read the first line of a file, without its newline.
 *
 * @param[out] line Line.
 * @param size Size of the buffer, bytes.
 * @param path Path as a printf format, its arguments behind it.
 * @return False: the file cannot be read or its first line is empty, and `line` is "".
 */
bool sysfs_line(char *line, size_t size, const char *path, ...) SYSFS_PATH(3, 4);

/**
 * @brief Read a number from a file, decimal or with "0x".
 *
 * @param missing Value to return if the file has no number.
 * @param path Path as a printf format, its arguments behind it.
 * @return Number; `missing`: the file has none.
 */
long long sysfs_number(long long missing, const char *path, ...) SYSFS_PATH(2, 3);

/**
 * @brief Read the last component of a symbolic link's target.
 *
 * @param[out] name Last component; "": the path is not a symbolic link.
 * @param size Size of the buffer, bytes.
 * @param path Path as a printf format, its arguments behind it.
 */
void sysfs_link(char *name, size_t size, const char *path, ...) SYSFS_PATH(3, 4);

/**
 * @brief List the paths that match a pattern; the caller frees the list by globfree(), even an
 * empty one.
 *
 * @param[out] found Paths.
 * @param pattern Pattern as a printf format, its arguments behind it.
 */
void sysfs_glob(glob_t *found, const char *pattern, ...) SYSFS_PATH(2, 3);

/**
 * @brief Return how many bytes of memory this process may allocate now: seven eighths of the
 * kernel's MemAvailable (proc(5)), because this is an estimate, and shared with other processes.
 *
 * @return Bytes; UINT64_MAX: unknown.
 */
uint64_t memory_spare(void);

#endif
