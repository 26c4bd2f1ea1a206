/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The environment of an engine with more rights than its caller (file capabilities).
 */
#ifndef ENGINE_ENVIRONMENT_H
#define ENGINE_ENVIRONMENT_H

/* Removes all variables but SSH_CONNECTION, which the guard asks for, and sets PATH to the system's
 * folders: libraries heed many others. libibverbs loads what IBV_DRIVERS names and writes to the
 * file VERBS_LOG_FILE, libxdp takes programs for the kernel from LIBXDP_OBJECT_PATH, and we load
 * what is below SWITCHBENCH_BUNDLE. Returns 0, or -ENOMEM. Before any thread is started. */
int environment_clean(void);

#endif
