/* SPDX-License-Identifier: BSD-3-Clause */
#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static const char *const words[] = {"error", "warning", "info"};

static char node_name[64];

void log_setup(const char *name)
{
    snprintf(node_name, sizeof node_name, "%s", name);
}

void log_print(enum log_level level, const char *format, ...)
{
    char line[1024];
    va_list args;
    int n;

    n = snprintf(line, sizeof line, "switchbench-node %s: %s: ", node_name, words[level]);
    va_start(args, format);
    n += vsnprintf(line + n, sizeof line - (size_t)n, format, args);
    va_end(args);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    /* A line is one write, so that lines of several threads do not mix; a full pipe drops it. */
    (void)!write(STDERR_FILENO, line, (size_t)n);
}
