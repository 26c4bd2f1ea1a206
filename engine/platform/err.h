/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Error convention: functions return 0 or a negative errno; the sentence for the user is
 * made where the cause is known, passed up in a struct err, and printed once, by main.
 */
#ifndef ENGINE_ERR_H
#define ENGINE_ERR_H

#define ERR_TEXT_MAX 512

struct err {
    char text[ERR_TEXT_MAX]; /**< one sentence: what, where, what to do; "" = none */
};

/**
 * @brief Set the sentence of an error, so that a failing function ends with `return err_set(err,
 * -EINVAL, "...");`.
 *
 * @param err Takes the sentence, unless it has one: the first cause wins.
 * @param code Negative errno.
 * @param format Sentence, as printf takes it.
 * @return `code`.
 */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#ifdef __clang_analyzer__ /* which does not see from err.c that the code is returned */
#define err_set(err, code, ...) ((err_set)(err, code, __VA_ARGS__), (code))
#endif

/**
 * @brief Return the exit status of an error.
 *
 * @param code Negative errno.
 * @return 2: what was asked for is impossible, as -EINVAL says; 3: it went wrong.
 */
int err_status(int code);

#endif
