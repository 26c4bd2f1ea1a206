/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_queues.h"

#include <errno.h>
#include <stdlib.h>

/* The flows of one of several queues: a share of what is sent, all that is received (it may come by
 * any). A flow that is forwarded leaves by the queue by which it came. */
static int split_flows(const struct phase_lane *lane, uint32_t number)
{
    struct queue_lane *queue = &lane->queues[number];
    struct flow_side *side;

    queue->sends = calloc(lane->send_count + 1, sizeof *queue->sends);
    queue->receives = calloc(lane->receive_count + 1, sizeof *queue->receives);
    queue->sides = calloc(lane->send_count + lane->receive_count + 1, sizeof *queue->sides);
    if (queue->sends == NULL || queue->receives == NULL || queue->sides == NULL)
        return -ENOMEM;
    side = queue->sides;
    for (uint32_t i = 0; i < lane->send_count; i++) {
        bool forward = lane->sends[i].role == PATTERN_FORWARD;

        if (!forward && i % lane->queue_count != number)
            continue;
        queue->sends[queue->send_count] = lane->sends[i];
        if (forward)
            queue->sends[queue->send_count].side = side++;
        queue->send_count++;
    }
    for (uint32_t i = 0; i < lane->receive_count; i++) {
        queue->receives[i] = lane->receives[i];
        queue->receives[i].side = side++;
    }
    return 0;
}

/* Room for interval results of what the port receives. */
static int make_intervals(struct phase_lane *lane)
{
    const struct phase_run *run = lane->run;

    if (run->trial->doc->interval_ns == 0 || phase_is_probe(run) || lane->receive_count == 0)
        return 0;
    lane->intervals.bytes =
        calloc((size_t)(INTERVAL_BATCH + 1) * lane->receive_count, sizeof *lane->intervals.bytes);
    if (lane->intervals.bytes == NULL)
        return -ENOMEM;
    for (uint32_t i = 0; i < lane->queue_count; i++) {
        lane->queues[i].interval_ring = interval_ring_make(lane->receive_count);
        if (lane->queues[i].interval_ring == NULL)
            return -ENOMEM;
    }
    return 0;
}

int port_queues_make(struct phase_lane *lane, uint32_t count)
{
    int rc = 0;

    lane->queues = calloc(count, sizeof *lane->queues);
    if (lane->queues == NULL)
        return -ENOMEM;
    lane->queue_count = count;
    if (count == 1)
        lane->queues[0] = (struct queue_lane){
            .sends = lane->sends, .receives = lane->receives, .send_count = lane->send_count};
    for (uint32_t i = 0; i < count && count > 1 && rc == 0; i++)
        rc = split_flows(lane, i);
    return rc == 0 ? make_intervals(lane) : rc;
}

void port_queues_free(struct phase_lane *lane)
{
    for (uint32_t i = 0; i < lane->queue_count; i++) {
        struct queue_lane *queue = &lane->queues[i];

        if (queue->lane != NULL)
            lane_transport(lane)->destroy(queue->lane);
        if (lane->queue_count > 1) {
            free(queue->sends);
            free(queue->receives);
            free(queue->sides);
        }
        interval_ring_free(queue->interval_ring);
    }
    free(lane->intervals.bytes);
    free(lane->queues);
}

static void gather_queue(struct phase_lane *lane, const struct queue_lane *queue)
{
    uint32_t forwards = lane->send_count > 0 && lane->sends[0].role == PATTERN_FORWARD;

    for (uint32_t i = 0; i < forwards; i++)
        flow_side_add(lane->sends[i].side, queue->sends[i].side);
    for (uint32_t i = 0; i < lane->receive_count; i++)
        flow_side_add(lane->receives[i].side, queue->receives[i].side);
}

/* The first start, the last stop and arrival, and the first fault of all queues become queue 0's.
 */
static void gather_lane(struct lane *all, const struct lane *lane)
{
    if (lane->started_ns > 0 && (all->started_ns == 0 || lane->started_ns < all->started_ns))
        all->started_ns = lane->started_ns;
    if (lane->stopped_ns > all->stopped_ns)
        all->stopped_ns = lane->stopped_ns;
    if (lane->arrived_ns > all->arrived_ns)
        all->arrived_ns = lane->arrived_ns;
    if (all->error.text[0] == '\0')
        all->error = lane->error;
}

void port_queues_gather(struct phase_run *run)
{
    for (size_t i = 0; i < run->lane_count; i++) {
        struct phase_lane *lane = &run->lanes[i];

        for (uint32_t q = 0; q < lane->queue_count; q++) {
            const struct queue_lane *queue = &lane->queues[q];

            port_count_add(&lane->count, &queue->count);
            gather_lane(lane->lane, queue->lane);
            if (lane->queue_count > 1)
                gather_queue(lane, queue);
        }
    }
}
