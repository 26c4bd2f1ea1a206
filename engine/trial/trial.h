/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A trial: one pattern at one setting, from the opening of its ports to its last record.
 */
#ifndef ENGINE_TRIAL_H
#define ENGINE_TRIAL_H

#include "node.h"

/** @brief Runs one trial document, barrier to barrier. */
int trial_run(struct node *node, const struct doc_trial *doc);

#endif
