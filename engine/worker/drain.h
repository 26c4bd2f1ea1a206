/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief When a task is over: all that was sent has come, silence says that the rest never will, or
 * one of the limits says that it is waited for no longer.
 */
#ifndef ENGINE_DRAIN_H
#define ENGINE_DRAIN_H

#include "worker_task.h"

/**
 * @brief Keep house, some hundred times a second.
 *
 * @param task Task; the caller's, who leaves it alone until it has ended.
 * @param stop worker_stop() was called.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: the task is over, and task->end says how.
 */
bool drain_is_over(struct worker_task *task, bool stop, int64_t now_ns);

#endif
