/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One error convention: functions return 0 or a negative errno; the sentence for a person is made
 * where the cause is known, carried up in a struct err, and printed once, by main.
 */
#ifndef ENGINE_ERR_H
#define ENGINE_ERR_H

#define ERR_TEXT_MAX 512

struct err {
    char text[ERR_TEXT_MAX]; /* one sentence: what, where, what to do; "" = none */
};

/* Writes the sentence and returns `code` (a negative errno), so that a failing function ends with
 * `return err_set(err, -EINVAL, "...");`. The first cause wins: a sentence already there stays. */
int err_set(struct err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The exit status of a failure with this negative errno: 2 when what was asked for is impossible,
 * as -EINVAL says, 3 when it went wrong. */
int err_status(int code);

#endif
