/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief DPDK's environment (EAL) in a process that is not DPDK's: started once, when the first
 * port opens, quiet, without files, without moving the caller to another core, without taking
 * signals.
 */
#ifndef ENGINE_DPDK_EAL_H
#define ENGINE_DPDK_EAL_H

#include "err.h"

/**
 * @brief Starts the EAL if it does not run yet; it ends with the process.
 *
 * With hugepages when enough of them are free (EAL_HUGE_MIN), else without. Not thread-safe: the
 * main thread opens ports.
 *
 * @param err Takes the sentence of a failure; unchanged on success.
 */
int eal_start(const char *node, struct err *err);

/**
 * @brief Gives the calling thread a DPDK number (mempool caches need one) until it ends.
 *
 * Cheap when it has one already; a thread beyond RTE_MAX_LCORE goes on without, which the log says
 * once.
 */
void eal_thread(void);

/**
 * @brief Forgets what DPDK has logged so far, and the first line that it has logged since: the
 * cause of a failure in its own words; "" when it said nothing.
 *
 * Valid until the next call of either.
 */
void eal_log_clear(void);
const char *eal_log_first(void);

/** @brief Keeps the libraries behind AF_XDP from printing on standard error. */
void eal_silence_xdp(void);

/** @brief What a person can do when memory for packets runs out, by the kind of memory in use. */
const char *eal_memory_remedy(void);

#endif
