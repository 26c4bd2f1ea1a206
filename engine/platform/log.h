/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Log lines for users on standard error, never from the data path.
 *
 * Each line is "switchbench-node NAME: level: text".
 */
#ifndef ENGINE_LOG_H
#define ENGINE_LOG_H

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO };

/**
 * @brief Set the node's name in each log line.
 *
 * @param name Node's name; copied.
 */
void log_setup(const char *name);

/**
 * @brief Write a log line to standard error.
 *
 * @param level Level of the line.
 * @param format Line without its end, as printf takes it.
 */
void log_print(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_print(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_print(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_print(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
