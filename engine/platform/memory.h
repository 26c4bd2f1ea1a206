/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What the host's memory has left for data, so that a run that needs more is refused with a
 * sentence before the kernel ends a process for it.
 */
#ifndef ENGINE_MEMORY_H
#define ENGINE_MEMORY_H

#include <stdint.h>

/**
 * @brief Return the bytes that may be taken now: seven eighths of the kernel's MemAvailable
 * (proc(5)), which is an estimate, and others live on the host, too.
 *
 * @return Bytes; UINT64_MAX: not known.
 */
uint64_t memory_spare(void);

#endif
