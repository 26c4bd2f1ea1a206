/* SPDX-License-Identifier: BSD-3-Clause */
#include "receiver_setup.h"

#include "lane_request.h"
#include "lane_sizes.h"
#include "partner.h"
#include "port_address.h"

#include <errno.h>
#include <stdlib.h>

/* Whether all of a transfer is there is known to no queue alone. */
static int share_received(struct dpdk_lane *lane)
{
    const struct dpdk_lane *first_queue_lane =
        (const struct dpdk_lane *)lane->lane.request.first_queue_lane;
    size_t bytes = lane->port->queue_count * sizeof *lane->queues_received;

    if (lane->port->queue_count == 1 || lane->receiver.all == UINT64_MAX)
        return 0;
    if (first_queue_lane != NULL) {
        lane->queues_received = first_queue_lane->queues_received;
        return 0;
    }
    lane->queues_received = aligned_alloc(_Alignof(struct queue_received), bytes);
    if (lane->queues_received == NULL)
        return -ENOMEM;
    memset(lane->queues_received, 0, bytes);
    return 0;
}
/* Of so many flows every frame is measured; of more some are (their buckets lie in no near cache,
 * and a frame would cost twice as much), beyond the last none. */
#define DELAY_EVERY_MAX 8u
#define DELAY_FLOWS_MAX 4096u

static int make_delay_stats(struct dpdk_lane *lane)
{
    struct receiver *receiver = &lane->receiver;
    size_t streams = (size_t)receiver->count * receiver->sources;

    if (!lane->lane.request.phase->latency.stamps || receiver->count == 0 ||
        receiver->count > DELAY_FLOWS_MAX || lane->pingpong != NULL)
        return 0;
    receiver->sampled = receiver->count > DELAY_EVERY_MAX;
    receiver->delay_stats =
        aligned_alloc(_Alignof(struct delay_stats), streams * sizeof *receiver->delay_stats);
    receiver->buckets = calloc(receiver->count, sizeof *receiver->buckets);
    if (receiver->delay_stats == NULL || receiver->buckets == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < streams; i++)
        delay_stats_init(&receiver->delay_stats[i], (uint32_t)(i / receiver->sources));
    return 0;
}

static int make_tables(struct receiver *receiver)
{
    size_t streams = (size_t)receiver->count * receiver->sources;

    receiver->flow_of = calloc(PATTERN_RANKS_MAX, sizeof *receiver->flow_of);
    receiver->macs = calloc(receiver->count + 1, sizeof *receiver->macs);
    receiver->pasts = calloc(streams + 1, sizeof *receiver->pasts);
    receiver->reorderings =
        aligned_alloc(_Alignof(struct reordering), (streams + 1) * sizeof *receiver->reorderings);
    receiver->gaps = calloc(streams + 1, REORDERING_GAPS * sizeof *receiver->gaps);
    receiver->streams =
        aligned_alloc(_Alignof(struct receiver_stream), (streams + 1) * sizeof *receiver->streams);
    if (receiver->flow_of == NULL || receiver->macs == NULL || receiver->pasts == NULL ||
        receiver->reorderings == NULL || receiver->gaps == NULL || receiver->streams == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < streams; i++)
        receiver->reorderings[i] = (struct reordering){.far = &receiver->gaps[i * REORDERING_GAPS]};
    return 0;
}

int receiver_make(struct dpdk_lane *lane, struct err *err)
{
    const struct dpdk_options *options = dpdk_options(lane->lane.request.phase);
    const struct lane_request *request = &lane->lane.request;
    const struct load unlimited = {.unlimited = true}; /* ping-pong has none */
    const struct load *load = lane->pingpong != NULL ? &unlimited : &request->phase->load;
    struct receiver *receiver = &lane->receiver;
    uint32_t least = FRAME_SIZE_MAX;
    int rc;

    for (uint32_t i = 0; i < lane->size_count; i++)
        least = RTE_MIN(least, lane->sizes[i].frame_bytes);
    receiver->count = request->receive_count;
    receiver->tag = htobe16(lane->shape.tag);
    receiver->own = htobe16((uint16_t)request->rank);
    receiver->rank = options->destination == DESTINATION_PORT ? receiver->own : FRAME_RANK_ALL;
    receiver->all = receiver->left = lane_frames(lane, receiver->count);
    receiver->limit.at_once =
        sequence_limit_at_once(options->burst, options->catch_up) +
        (double)request->phase->burst.frames; /* a late sender catches up with all of it */
    frame_check(&receiver->check, &lane->shape);
    if ((rc = make_tables(receiver)) != 0 || (rc = make_delay_stats(lane)) != 0 ||
        (rc = share_received(lane)) != 0)
        return rc;
    for (uint32_t i = 0; i < receiver->count; i++) {
        const struct lane_flow *flow = &request->receives[i];
        struct frame_end end;

        if (flow->src >= request->ranks)
            return lane_refuse(err, request, "a flow comes from a rank that is not there");
        if ((rc = partner_check(lane, flow, flow->src, &end, err)) != 0)
            return rc;
        memcpy(receiver->macs[i], end.mac, sizeof receiver->macs[i]);
        sequence_limit_add(&receiver->limit, flow, load, port_read_line_bps(&flow->partner), least);
        for (uint32_t j = 0; j < receiver->sources; j++)
            receiver->streams[(size_t)i * receiver->sources + j] =
                (struct receiver_stream){.side = flow->side};
        receiver->flow_of[flow->src] = (uint16_t)(i + 1);
    }
    return 0;
}

void receiver_free(struct dpdk_lane *lane)
{
    struct receiver *receiver = &lane->receiver;

    if (lane->lane.request.first_queue_lane == NULL)
        free(lane->queues_received);
    free(receiver->streams);
    free(receiver->delay_stats);
    free(receiver->buckets);
    free(receiver->pasts);
    free(receiver->reorderings);
    free(receiver->gaps);
    free(receiver->macs);
    free(receiver->flow_of);
}
