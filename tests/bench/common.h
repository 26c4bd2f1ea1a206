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

/* TSC ticks a nanosecond, measured for 50 ms. */
double bench_tsc_rate(void);

/* CPU time of this thread; of all others of this process. */
int64_t bench_thread_ns(void);
int64_t bench_others_ns(void);

/* How often the kernel has taken the core away from this thread. */
long bench_preemptions(void);

/* Sorts `values`. */
double bench_median(double *values, size_t count);

/* "WHAT: VALUE UNIT (reach: at most REACH): PASS" */
void bench_at_most(const char *what, double value, const char *unit, double reach);
void bench_at_least(const char *what, double value, const char *unit, double reach);

#endif
