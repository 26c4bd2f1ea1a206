/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The environment of an engine with more rights than its caller (file capabilities).
 */
#ifndef ENGINE_ENVIRONMENT_H
#define ENGINE_ENVIRONMENT_H

/**
 * @brief Remove all variables but SSH_CONNECTION, which the guard reads, and set PATH to the
 * system's folders.
 *
 * Libraries use many others: libibverbs loads what IBV_DRIVERS names and writes to the file
 * VERBS_LOG_FILE, libxdp takes programs for the kernel from LIBXDP_OBJECT_PATH, and the engine
 * loads what is below SWITCHBENCH_BUNDLE. Before any thread is started.
 *
 * @return 0; -ENOMEM.
 */
int environment_clean(void);

#endif
