/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stdio.h>

uint64_t memory_spare(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t spare = UINT64_MAX;
    unsigned long long kib;
    char line[128];

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            spare = ((uint64_t)kib << 10) / 8 * 7;
    if (file != NULL)
        fclose(file);
    return spare;
}
