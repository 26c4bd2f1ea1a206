/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The verbs transport: messages through RDMA devices by libibverbs, on InfiniBand, RoCE and iWARP.
 *
 * - A flow is `queue_pairs` queue pairs. They are made when a phase is prepared, connected by infos
 *   that travel over the run's authenticated datagrams (or by rdma_cm), and kept connected for
 *   later phases up to `reuse`.
 * - Receivers verify what arrives (verifier.h says what is compared) and give credit for places
 * that are free again, so that nothing is sent that has no place.
 * - A load at layer 1 becomes a payload rate by what a message's packets cost on the line.
 * - At its end each stream sends an eof.
 */
#include "connection_pool.h"
#include "netns.h"
#include "phase_lane.h"
#include "port_address.h"
#include "port_facts.h"
#include "rdma_cm.h"

static void close_port(struct transport_port *port)
{
    if (connection_pool_close(port))
        verbs_port_close(port);
}

static int open_port(struct transport_port **port, const struct port_conf *conf,
                     const struct transport_run *run, struct err *err)
{
    int home = -1;
    int rc = netns_enter(conf->netns, &home, err);

    (void)run; /* the control plane authenticates what connects queue pairs */
    if (rc < 0)
        return rc;
    verbs_payload_init();
    rc = verbs_port_open(port, conf, err);
    if (rc == 0) {
        rc = verbs_port_read_addresses(*port, err);
        verbs_port_hardware(*port, &(*port)->base);
        connection_pool_open(*port);
        if (rc < 0)
            close_port(*port);
    }
    netns_leave(home);
    return rc;
}

static void write_address(struct transport_port *port, struct blob *blob)
{
    verbs_address_write(port, verbs_cm_port(port), blob);
}

/* Between phases there is nothing to do: the device answers the network. */
const struct transport transport_verbs = {
    .name = "verbs",
    .size_unit = "message",
    .pingpong = true,
    .schedules = true,
    .knows_end = true,
    .open = open_port,
    .facts = verbs_port_facts,
    .link_up = verbs_port_link_up,
    .address = write_address,
    .prepare = verbs_phase_lane_prepare,
    .settle = verbs_phase_lane_connect,
    .settle_fd = verbs_cm_fd,
    .wake_fd = verbs_phase_lane_wake_fd,
    .start = verbs_phase_lane_start,
    .poll = verbs_phase_lane_poll,
    .measure = verbs_phase_lane_metrics,
    .latency = verbs_phase_lane_latency,
    .samples = verbs_phase_lane_samples,
    .hardware = verbs_port_hardware,
    .finish = verbs_phase_lane_destroy,
    .close = close_port,
};
