/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the host's memory has left for data, so that a run that needs more is refused with a
 * sentence before the kernel ends a process for it.
 */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include <stdint.h>

/* Bytes that may be taken now: seven eighths of the kernel's MemAvailable (proc(5)), which is an
 * estimate, and others live on the host, too. UINT64_MAX: not known. */
uint64_t memory_spare(void);
/* The same of /proc/meminfo's text. */
uint64_t memory_spare_of(const char *meminfo);

#endif
