/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a task is over: all that was sent has come, silence says that the rest never will, or one of
 * the limits says that it is waited for no longer.
 */
#ifndef ENGINE_DRAIN_H
#define ENGINE_DRAIN_H

#include "worker_task.h"

/* Housekeeping, some hundred times a second: true when the task is over, and task->end says how.
 * `stop`: worker_stop was called. */
bool drain_is_over(struct worker_task *task, bool stop, int64_t now_ns);

#endif
