/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "MemAvailable:"

uint64_t memory_spare_of(const char *meminfo)
{
    const char *at = strstr(meminfo, KEY);
    char *end;
    uint64_t kib;

    if (at == NULL)
        return UINT64_MAX;
    at += sizeof KEY - 1;
    kib = strtoull(at, &end, 10);
    return end != at ? (kib << 10) / 8 * 7 : UINT64_MAX;
}

uint64_t memory_spare(void)
{
    char text[4096];
    FILE *file = fopen("/proc/meminfo", "re");
    size_t got;

    if (file == NULL)
        return UINT64_MAX;
    got = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[got] = '\0';
    return memory_spare_of(text);
}
