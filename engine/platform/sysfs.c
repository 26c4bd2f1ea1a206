/* SPDX-License-Identifier: BSD-3-Clause */
#include "sysfs.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Write into `whole` the path that a function got as a format with arguments. */
#define FORMAT(whole, format)                                                                      \
    do {                                                                                           \
        va_list args;                                                                              \
        va_start(args, format);                                                                    \
        vsnprintf(whole, sizeof(whole), format, args);                                             \
        va_end(args);                                                                              \
    } while (0)

bool sysfs_exists(const char *path, ...)
{
    char whole[PATH_MAX];

    FORMAT(whole, path);
    return access(whole, F_OK) == 0;
}

bool sysfs_line(char *line, size_t size, const char *path, ...)
{
    char whole[PATH_MAX];
    FILE *file;

    FORMAT(whole, path);
    file = fopen(whole, "re");
    if (file == NULL || fgets(line, (int)size, file) == NULL)
        line[0] = '\0';
    if (file != NULL)
        fclose(file);
    line[strcspn(line, "\n")] = '\0';
    return line[0] != '\0';
}

long long sysfs_number(long long missing, const char *path, ...)
{
    char whole[PATH_MAX], line[64], *end;
    long long number;

    FORMAT(whole, path);
    sysfs_line(line, sizeof line, "%s", whole);
    number = strtoll(line, &end, 0);
    return end != line ? number : missing;
}

void sysfs_link(char *name, size_t size, const char *path, ...)
{
    char whole[PATH_MAX], target[PATH_MAX];
    const char *slash;
    ssize_t length;

    FORMAT(whole, path);
    length = readlink(whole, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    slash = strrchr(target, '/');
    snprintf(name, size, "%s", slash != NULL ? slash + 1 : target);
}

void sysfs_glob(glob_t *found, const char *pattern, ...)
{
    char whole[PATH_MAX];

    FORMAT(whole, pattern);
    *found = (glob_t){0};
    if (glob(whole, GLOB_BRACE, NULL, found) != 0)
        found->gl_pathc = 0;
}

uint64_t memory_spare(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t spare = UINT64_MAX;
    unsigned long long kib;

    if (file != NULL &&
        fscanf(file, "MemTotal: %*u kB MemFree: %*u kB MemAvailable: %llu", &kib) == 1)
        spare = ((uint64_t)kib << 10) / 8 * 7;
    if (file != NULL)
        fclose(file);
    return spare;
}
