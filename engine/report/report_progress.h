/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `progress` records: what has moved since the last one.
 */
#ifndef ENGINE_REPORT_PROGRESS_H
#define ENGINE_REPORT_PROGRESS_H

#include "phase_run.h"

/* What the node and each of its ports moved since *last_ns, which becomes now.
 */
void report_progress(struct phase_run *run, int64_t *last_ns);

#endif
