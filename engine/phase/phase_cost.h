/* SPDX-License-Identifier: BSD-3-Clause
 *
 * CPU time, of this process and of the machine.
 */
#ifndef ENGINE_PHASE_COST_H
#define ENGINE_PHASE_COST_H

/* Seconds of CPU that this process has used; seconds that this machine's CPUs have idled. */
double cpu_process_s(void);
double cpu_idle_s(void);

#endif
