/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a lane passes blobs to the partners of its flows: over the control endpoint.
 */
#ifndef ENGINE_BLOB_EXCHANGE_H
#define ENGINE_BLOB_EXCHANGE_H

#include "phase_run.h"

/* For the lane's requests; lives as long as the lane. */
struct blob_exchange blob_exchange_of(struct phase_lane *lane);

#endif
