/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An ordinary pattern as one schedule: its phases are the steps.
 */
#ifndef PATTERNS_LOCAL_H
#define PATTERNS_LOCAL_H

#include "kind.h"

/* As plan->tell, of an ordinary pattern whose phases are the steps of one. */
void pattern_tell_local(const struct pattern_plan *plan, struct steps *steps);

#endif
