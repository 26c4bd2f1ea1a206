/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Trial: one pattern at one setting, from the opening of its ports to its last record.
 */
#ifndef ENGINE_TRIAL_H
#define ENGINE_TRIAL_H

#include "node.h"

/** @brief Run the trial that a trial document describes, from its first barrier to its last. */
int trial_run(struct node *node, const struct doc_trial *doc);

#endif
