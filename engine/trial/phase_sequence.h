/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The phases of a trial on this node, one after the other.
 */
#ifndef ENGINE_PHASE_SEQUENCE_H
#define ENGINE_PHASE_SEQUENCE_H

#include "phase_run.h"

/**
 * @brief Runs these phases of the trial one after the other, or the probe of its whole plan, from
 * preparation to records.
 *
 * 0; -ECANCELED when the run ends. *states: theirs are added. `numbers` NULL: 0 to count - 1.
 */
int phase_sequence(struct trial *trial, const uint32_t *numbers, size_t count, uint32_t *states);

#endif
