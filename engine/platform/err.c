/* SPDX-License-Identifier: BSD-3-Clause */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

/* Replace each byte that belongs to no whole UTF-8 character by a question mark: sentences quote
 * texts that are cut after a number of bytes, and records take whole characters only. */
static void repair_text(char *text)
{
    for (int step; *text != '\0'; text += step) {
        /* The leading ones of the first byte: bytes of the character; 0: ASCII. */
        int ones = __builtin_clz(~((uint32_t)(uint8_t)*text << 24));

        for (step = 1; step < ones && (text[step] & 0xc0) == 0x80; step++)
            ;
        if (ones == 1 || ones > 4 || step < ones)
            *text = '?';
        if (*text == '?')
            step = 1;
    }
}

int(err_set)(struct err *err, int code, const char *format, ...)
{
    va_list args;

    if (err->text[0] != '\0')
        return code;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    repair_text(err->text);
    return code;
}

int err_status(int code)
{
    return code == -EINVAL || code == -ENOTSUP || code == -EAFNOSUPPORT || code == -EPERM ? 2 : 3;
}
