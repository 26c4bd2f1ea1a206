/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known of this node's clock in a phase.
 */
#ifndef ENGINE_PHASE_CLOCK_H
#define ENGINE_PHASE_CLOCK_H

#include "phase_run.h"

/* As well as it is known now: when the phase is over, better than before. */
struct phase_clock clock_of_phase(const struct phase_run *run);

#endif
