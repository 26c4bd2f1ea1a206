/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a schedule's lane receives over dpdk: messages are put together, also those of later steps,
 * and given up when they are lost (schedule_transport.h).
 */
#ifndef ENGINE_DPDK_SCHEDULE_RECEIVE_H
#define ENGINE_DPDK_SCHEDULE_RECEIVE_H

#include "messages.h"
#include "reassembly_window.h"
#include "schedule_loop.h"

/* A flow that is received. */
struct schedule_source {
    struct reassembly_window window;
    int64_t since_ns; /* the message that is waited for could have come since then */
    int64_t heard_ns; /* anything at all */
    int64_t ended_ns; /* its source sends nothing more; 0: it does */
    uint64_t lost;    /* messages given up */
    uint64_t early;   /* frames of messages too far ahead */
};

struct schedule_lane {
    struct schedule_loop loop;
    struct schedule_executor *executor;
    struct schedule_source *sources; /* as the lane's receives */
    uint32_t *sending;               /* by flow sent: the step's send that is in flight */
    int64_t beat_ns;
    int64_t look_ns; /* when something may be due */
};

/* For the lane's receives. -ENOMEM; free them then, too. */
int schedule_sources_make(struct dpdk_lane *lane);
void schedule_sources_free(struct messages *messages);

/* The messages of a step are open. */
void schedule_await(struct dpdk_lane *lane, int64_t now_ns);
/* As struct schedule_messages has them. */
void schedule_receive(struct dpdk_lane *lane, const struct rx_segment *rx);
void schedule_partner_ended(struct dpdk_lane *lane, const struct peer_channel *channel,
                            int64_t now_ns);
/* Gives up what is lost. */
void schedule_look(struct dpdk_lane *lane, int64_t now_ns);

#endif
