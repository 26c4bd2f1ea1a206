/* SPDX-License-Identifier: BSD-3-Clause */
#include "err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *err, int code, const char *format, ...)
{
    va_list args;

    if (err->text[0] != '\0')
        return code;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    return code;
}

int err_status(int code)
{
    return code == -EINVAL || code == -ENOTSUP || code == -EAFNOSUPPORT || code == -EPERM ? 2 : 3;
}
