/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Schedules over dpdk (doc/developer/schedules.md, schedule_executor.h): steps' messages are cut
 * into frames and put together as those that go there and back are (messages.h), and carry none of
 * the rank's data. A send is complete when the driver has its last frame.
 *
 * Nothing is sent again, so who waits must know when to give up. A source that has sent nothing of
 * a flow for a while says with a mark how many of its messages it has handed over: a destination
 * waits on for one that is not sent yet, however long its partner takes, and gives one up that was
 * sent and has not come. So one lost frame costs one message, and not those of all ranks that wait
 * for each other.
 */
#ifndef ENGINE_DPDK_SCHEDULE_TRANSPORT_H
#define ENGINE_DPDK_SCHEDULE_TRANSPORT_H

#include "messages.h"

extern const struct schedule_messages dpdk_schedule;

#endif
