/* SPDX-License-Identifier: BSD-3-Clause
 *
 * `port` records, and `stray` records: frames for others that came to a port.
 */
#ifndef ENGINE_REPORT_PORT_H
#define ENGINE_REPORT_PORT_H

#include "phase_run.h"

void report_port(const struct phase_run *run, const struct phase_lane *lane);

void report_misdelivered(const struct phase_run *run, const struct phase_lane *lane);

#endif
