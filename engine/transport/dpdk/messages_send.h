/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Sending frames of messages, answers and end marks.
 */
#ifndef ENGINE_DPDK_MESSAGES_SEND_H
#define ENGINE_DPDK_MESSAGES_SEND_H

#include "messages.h"

/* The lane's `send`, where messages go there and back. */
int64_t messages_send(struct dpdk_lane *lane, int64_t now_ns);
/* Sends what waits, as far as the pace and the driver allow. Returns when to call again. */
int64_t messages_flush(struct dpdk_lane *lane, int64_t now_ns);

#endif
