/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loopback baseline: times measured where there is no network.
 */
#ifndef ENGINE_DPDK_LOOPBACK_BASELINE_H
#define ENGINE_DPDK_LOOPBACK_BASELINE_H

#include "transport.h"

int loopback_baseline_measure(const struct transport_run *run,
                              struct latency baseline[LATENCY_KINDS], struct err *err);

#endif
