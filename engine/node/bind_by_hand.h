/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Devices bound to DPDK and restored without a run (doc/how-to/bind.md).
 */
#ifndef ENGINE_BIND_BY_HAND_H
#define ENGINE_BIND_BY_HAND_H

#include "options.h"

/* As --bind or --restore asks. 0 or an error with the sentence. */
int bind_by_hand(const struct options *options, struct err *err);

#endif
