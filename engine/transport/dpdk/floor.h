/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loopback baseline: times measured where there is no network.
 */
#ifndef ENGINE_DPDK_FLOOR_H
#define ENGINE_DPDK_FLOOR_H

#include "transport.h"

int floor_measure(const struct transport_run *run, struct latency floor[LATENCY_KINDS],
                  struct err *err);

#endif
