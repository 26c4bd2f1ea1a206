/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving frames of messages, answers and end marks.
 */
#ifndef ENGINE_DPDK_MESSAGES_RECEIVE_H
#define ENGINE_DPDK_MESSAGES_RECEIVE_H

#include "messages.h"

/* The lane's `receive`. */
uint32_t messages_receive(struct dpdk_lane *lane, int64_t now_ns);
/* A segment of a message of so many bytes is delivered: it counts. */
void messages_delivered(const struct rx_segment *rx, uint32_t bytes);

#endif
