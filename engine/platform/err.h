/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Error convention: a function returns 0 or a negative errno; the function that knows the
 * cause writes the error message into a struct err, and main prints the message once.
 */
#ifndef ENGINE_ERR_H
#define ENGINE_ERR_H

#define ERR_TEXT_MAX 512

struct err {
    char
        text[ERR_TEXT_MAX]; /**< error message in one sentence: what, where, what to do; "": none */
};

/**
 * @brief Set the message of an error and return the error's code; a failing function ends with
 * `return err_set(err, -EINVAL, "...");`.
 *
 * @param err Takes the message, unless it has one already: the first cause is kept.
 * @param code Negative errno.
 * @param format Message as a printf format, its arguments behind it.
 * @return `code`.
 */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__ /* which does not see from err.c that the code is returned */
#define err_set(err, code, ...) ((err_set)(err, code, __VA_ARGS__), (code))
#endif

/**
 * @brief Return the program's exit status for an error code.
 *
 * @param code Negative errno.
 * @return 2: the request is invalid or cannot be met (such as -EINVAL); 3: the run failed.
 */
int err_status(int code);

#endif
