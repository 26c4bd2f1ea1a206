/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Environment of an engine with more privilege than its caller (file capabilities).
 */
#ifndef ENGINE_ENVIRONMENT_H
#define ENGINE_ENVIRONMENT_H

/**
 * @brief Remove all environment variables except SSH_CONNECTION, which the guard reads, and set
 * PATH to the system's folders.
 *
 * Libraries use many others: libibverbs loads the library in IBV_DRIVERS and writes to the file
 * VERBS_LOG_FILE, libxdp takes programs for the kernel from LIBXDP_OBJECT_PATH, and the engine
 * loads files below SWITCHBENCH_BUNDLE. To be called before any thread is started.
 *
 * @return 0; -ENOMEM.
 */
int environment_clean(void);

#endif
