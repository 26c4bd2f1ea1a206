/* SPDX-License-Identifier: BSD-3-Clause */
#include "phase_cost.h"

#include "phase_run.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

double cpu_process_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Busy time is sampled by ticks and misses short work; idle time is not. */
double cpu_idle_s(void)
{
    FILE *stat = fopen("/proc/stat", "re");
    unsigned long long idle = 0;
    unsigned long long iowait = 0;
    int fields;

    if (stat == NULL)
        return -1;
    fields = fscanf(stat, "cpu %*u %*u %*u %llu %llu", &idle, &iowait);
    fclose(stat);
    return fields == 2 ? (double)(idle + iowait) / (double)sysconf(_SC_CLK_TCK) : -1;
}
