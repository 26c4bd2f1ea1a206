/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What benchmarks share: clocks, medians and verdicts. A verdict never fails a run: a figure that
 * is not reached is printed as RED and stays visible.
 */
#ifndef BENCH_COMMON_H
#define BENCH_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Ends the program with this sentence. */
_Noreturn void bench_fail(const char *what);

/* TSC ticks a nanosecond, measured for 50 ms. */
double bench_tsc_rate(void);

/* CLOCK_THREAD_CPUTIME_ID, CLOCK_PROCESS_CPUTIME_ID. */
int64_t bench_cpu_ns(clockid_t clock);

/* How often the kernel has taken the core away from this thread. */
long bench_preemptions(void);

/* Sorts `values`. */
double bench_median(double *values, size_t count);

/* "WHAT: VALUE UNIT (reach: at most REACH): PASS" */
void bench_verdict(const char *what, double value, const char *unit, bool at_most, double reach);

/* Prints what a frame costs whose `frames` took so many ns. */
void bench_show_frames(double frames, double ns);

#endif
