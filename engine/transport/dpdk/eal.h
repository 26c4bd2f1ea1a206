/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief DPDK's environment (EAL) inside another program: started once, when the first port opens;
 * without output, files, changes of the caller's core, or signal handlers.
 */
#ifndef ENGINE_DPDK_EAL_H
#define ENGINE_DPDK_EAL_H

#include "err.h"

/**
 * @brief Start the EAL (DPDK's environment) if it does not run yet; it ends with the process.
 *
 * With hugepages when enough of them are free (EAL_HUGE_MIN), else without. Not thread-safe: the
 * main thread opens ports.
 *
 * @param[out] err Error message, set on failure; unchanged on success.
 */
int eal_start(const char *node, struct err *err);

/**
 * @brief Register the calling thread with DPDK until the thread ends: caches of mempools need a
 * thread number.
 *
 * Cheap for a thread that has one already. A thread beyond RTE_MAX_LCORE continues without, which
 * is logged once.
 */
void eal_thread(void);

/**
 * @brief Clear DPDK's log. eal_log_first() returns the first line logged since then, which has the
 * cause of a failure, or "" if there is none.
 *
 * Valid until the next call of either.
 */
void eal_log_clear(void);
const char *eal_log_first(void);

/** @brief Keep the libraries behind AF_XDP from printing on standard error. */
void eal_silence_xdp(void);

/** @brief Return advice for the user when packet memory is short, by the kind of memory in use. */
const char *eal_memory_remedy(void);

#endif
