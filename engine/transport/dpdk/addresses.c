/* SPDX-License-Identifier: BSD-3-Clause */
#include "addresses.h"

#include "partner.h"

#include <errno.h>
#include <rte_ethdev.h>

#define SETTLE_NS (200 * NS_PER_MS) /* a switch's processor may be behind */
#define CATCH_UP_S 0.005            /* more at once would ask for more than the rate */

static int refuse(const struct dpdk_lane *lane, struct err *err, const char *what)
{
    return err_set(err, -EINVAL, "%s: %s", lane->port->conf->name, what);
}

int addresses_prepare(struct dpdk_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->frame.lane.request;
    const struct dpdk_options *options = dpdk_options(request->phase);
    struct transport_port *port = lane->port;
    bool to_all = options->destination != DESTINATION_PORT;

    if (options->addresses <= 1 && !to_all)
        return 0;
    if (port->conf->shared)
        return refuse(lane, err, "it is shared: it has one address, and sends no frames to all");
    if (options->addresses > 1 && request->ranks > ADDRESSES_RANKS_MAX)
        return refuse(lane, err, "several addresses a port are for 4096 ranks at most");
    if (to_all && (options->header != HEADER_L2 || options->addresses > 1))
        return refuse(lane, err, "frames to all ports have header l2, and ports one address");
    if (to_all && (port->queue_count > 1 || request->ranks >= FRAME_RANK_ALL))
        return refuse(lane, err,
                      "frames to all ports are sent by one queue, to 65534 others at most");
    if (port->kernel)
        return iface_promiscuous(&port->iface, err);
    /* A device without these modes (null, ring) takes every frame anyway. */
    (void)rte_eth_promiscuous_enable(port->id);
    (void)rte_eth_allmulticast_enable(port->id);
    return 0;
}

/* False: the device is full. */
static bool send_learning(struct dpdk_lane *lane, uint32_t number, const uint8_t to[FRAME_MAC])
{
    const struct dpdk_options *options = dpdk_options(lane->frame.lane.request.phase);
    uint8_t frame[RESPONDER_FRAME_MAX];
    uint32_t length = responder_learning(port_responder_lock(lane->port), frame, to);

    port_responder_unlock(lane->port);
    address_write(frame + FRAME_MAC, options->address_block,
                  (uint16_t)lane->frame.lane.request.rank, options->address_first + number);
    return queue_send(lane->queue, frame, length);
}

int addresses_learn(struct dpdk_lane *lane, int64_t now_ns)
{
    const struct phase *phase = lane->frame.lane.request.phase;
    const struct dpdk_options *options = dpdk_options(phase);
    struct learning *learning = &lane->learning;
    struct frame_end ends[2];
    uint32_t due, sent = 0;

    if (options->addresses <= 1 || phase->traffic == TRAFFIC_PROBE)
        return 0;
    if (learning->until_ns == 0) {
        pace_init(&learning->pace, options->learning_rate,
                  1 + (uint32_t)(options->learning_rate * CATCH_UP_S), now_ns);
        learning->until_ns =
            now_ns + (int64_t)(options->addresses * 1e9 / options->learning_rate) + SETTLE_NS;
        learning->next = lane->frame.lane.request.receive_count > 0 && lane->queue->number == 0
                             ? 0
                             : options->addresses;
    }
    due = learning->next < options->addresses
              ? pace_allow(&learning->pace, now_ns, 1, options->addresses - learning->next)
              : 0; /* a pace that has nothing left would give up what is due */
    if (due > 0)
        partner_ends(lane, lane->frame.lane.request.send_count, ends); /* the test port */
    while (sent < due && send_learning(lane, learning->next, ends[1].mac)) {
        learning->next++;
        sent++;
    }
    pace_spend(&learning->pace, sent);
    /* A sender that was late keeps to the rate, and ends later. */
    if (learning->next < options->addresses && now_ns + SETTLE_NS > learning->until_ns)
        learning->until_ns = now_ns + SETTLE_NS;
    if (now_ns >= learning->until_ns)
        return 0;
    return sent < due ? -EAGAIN : -EINPROGRESS; /* a device that stays full is not waited for */
}
