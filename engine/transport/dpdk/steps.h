/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over dpdk (doc/schedules.md, ../stepper.h): steps' messages are cut into frames and put
 * together as those that go there and back are (messages.h), and carry none of the rank's data. A
 * send is complete when the driver has its last frame.
 *
 * Nothing is sent again, so who waits must know when to give up. A source that has sent nothing of
 * a flow for a while says with a mark how many of its messages it has handed over: a destination
 * waits on for one that is not sent yet, however long its partner takes, and gives one up that was
 * sent and has not come. So one lost frame costs one message, and not those of all ranks that wait
 * for each other.
 */
#ifndef ENGINE_DPDK_STEPS_H
#define ENGINE_DPDK_STEPS_H

#include "messages.h"

/* For the lane of a schedule; its exchanges are made. Errors with the sentence. */
int dpdk_steps_check(const struct lane_request *request, struct err *err);
int dpdk_steps_make(struct dpdk_lane *lane, struct err *err);
void dpdk_steps_free(struct messages *messages);
unsigned dpdk_steps_measure(const struct dpdk_lane *lane, const struct exchange *exchange,
                            struct measure *out, unsigned room);

/* The lane's `send`, and a sound frame of a message, or a mark, that came. */
int64_t dpdk_steps_send(struct dpdk_lane *lane, int64_t now_ns);
void dpdk_steps_take(struct dpdk_lane *lane, const struct arrival *arrival);
/* The driver has the last frame of the message that the exchange was sending. */
void dpdk_steps_handed(struct dpdk_lane *lane, struct exchange *exchange);
/* The partner will send nothing more. */
void dpdk_steps_hear_end(struct dpdk_lane *lane, const struct exchange *exchange, int64_t now_ns);

#endif
