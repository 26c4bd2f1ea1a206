/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verbs transport: messages through RDMA devices by libibverbs, on InfiniBand, RoCE and iWARP.
 *
 * - A flow is `queue_pairs` queue pairs, made for a phase's partners when it is prepared, connected
 *   while it settles by data that travels over the run's authenticated datagrams (or by rdma_cm),
 *   and kept connected for later phases up to `reuse`.
 * - Receivers verify what arrives (message.h says what is compared) and give credit for places that
 *   are free again, so that nothing is sent that has no place.
 * - A load at layer 1 becomes a payload rate by what a message's packets cost on the line.
 * - At stop each stream sends an end eof.
 */
#ifndef VERBS_VERBS_H
#define VERBS_VERBS_H

#include "transport.h"

extern const struct transport transport_verbs;

#endif
