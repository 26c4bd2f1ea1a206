/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_facts.h"

#include "port.h"
#include "sysfs.h"

#include <arpa/inet.h>
#include <stdio.h>

#define COUNTER_NAMES_MAX 3

/* Lanes of a link by the code of active_width, and Gbit/s of data a lane by that of active_speed
 * (InfiniBand Architecture, PortInfo; a code is one bit). SDR to QDR lose a fifth to 8b/10b. */
static uint64_t link_bps(const struct ibv_port_attr *attributes)
{
    static const struct {
        uint8_t code;
        double value;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
      speeds[] = {{1, 2}, {2, 4}, {4, 8}, {8, 10}, {16, 13.64}, {32, 25}, {64, 50}, {128, 100}};
    double lanes = 0;
    double gbps = 0;

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        if (widths[i].code == attributes->active_width)
            lanes = widths[i].value;
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        if (speeds[i].code == attributes->active_speed)
            gbps = speeds[i].value;
    return (uint64_t)(lanes * gbps * 1e9);
}

void verbs_port_facts(struct transport_port *port, struct port_facts *facts)
{
    const struct sockaddr_in6 *v6 = &port->ip;

    *facts = (struct port_facts){.gid_index = -1, .connect_fd = -1};
    snprintf(facts->driver, sizeof facts->driver, "%s", port->driver);
    snprintf(facts->rdma, sizeof facts->rdma, "%s/%u", port->device, port->number);
    snprintf(facts->link_layer, sizeof facts->link_layer, "%s",
             port->ethernet ? "Ethernet" : "InfiniBand");
    if (port->gid != NULL) {
        verbs_gid_text(port->gid->bytes, facts->gid);
        facts->gid_index = (int)port->gid->index;
    }
    if (v6->sin6_family != 0 && verbs_gid_is_ipv4(v6->sin6_addr.s6_addr))
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], facts->ipv4, sizeof facts->ipv4);
    else if (v6->sin6_family != 0)
        inet_ntop(AF_INET6, &v6->sin6_addr, facts->ipv6, sizeof facts->ipv6);
    /* A software device invents a speed. */
    facts->link_bps = port->software ? 0 : link_bps(&port->attributes);
    facts->mtu = verbs_mtu_bytes(port->attributes.active_mtu);
    facts->numa_node =
        (int)sysfs_number(-1, "/sys/class/infiniband/%s/device/numa_node", port->device);
    verbs_address_write(port, &facts->address);
}

/* --- counters --- */

/* Where a counter of ours is found. Drivers name them as they like; the first that exists counts.
 */
struct counter_source {
    size_t offset; /* in struct port_hardware */
    const char *names[COUNTER_NAMES_MAX];
};

#define AT(member) offsetof(struct port_hardware, member)

/* counters/: the InfiniBand architecture's (port_rcv_errors ...); hw_counters/: the driver's: mlx5
 * (out_of_sequence ...), rxe (sent_pkts ...), bnxt_re and irdma (others). */
static const struct counter_source sources[] = {
    {AT(received_frames),
     {"hw_counters/rcvd_pkts", "counters/port_rcv_packets", "hw_counters/ip4InPkts"}},
    {AT(sent_frames),
     {"hw_counters/sent_pkts", "counters/port_xmit_packets", "hw_counters/ip4OutPkts"}},
    {AT(dropped_receive), {"hw_counters/out_of_buffer", "hw_counters/rx_roce_discards"}},
    {AT(dropped_send), {"counters/port_xmit_discards"}},
    {AT(errors), {"counters/port_rcv_errors", "hw_counters/rcvd_with_error"}},
    {AT(retransmitted),
     {"hw_counters/completer_retry_err", "hw_counters/packet_seq_err",
      "hw_counters/to_retransmits"}},
    {AT(out_of_sequence),
     {"hw_counters/out_of_sequence", "hw_counters/out_of_seq_request",
      "hw_counters/oos_drop_count"}},
    {AT(not_ready),
     {"hw_counters/rnr_nak_retry_err", "hw_counters/rcvd_rnr_err", "hw_counters/rnr_naks_rcvd"}},
    {AT(cnp_sent), {"hw_counters/np_cnp_sent", "hw_counters/tx_cnp_pkts", "hw_counters/cnpSent"}},
    {AT(cnp_handled),
     {"hw_counters/rp_cnp_handled", "hw_counters/rx_cnp_pkts", "hw_counters/cnpHandled"}},
    {AT(ecn_marked),
     {"hw_counters/np_ecn_marked_roce_packets", "hw_counters/rx_ecn_marked_pkts",
      "hw_counters/RxECNMrkd"}},
};

static int64_t *counter_of(struct port_hardware *counters, const struct counter_source *source)
{
    return (int64_t *)(void *)((char *)counters + source->offset);
}

static int64_t read_counter(const struct transport_port *port, const struct counter_source *source)
{
    int64_t value = -1;

    for (unsigned i = 0; i < COUNTER_NAMES_MAX && source->names[i] != NULL && value < 0; i++)
        value = sysfs_number(-1, "/sys/class/infiniband/%s/ports/%u/%s", port->device, port->number,
                             source->names[i]);
    return value;
}

void verbs_port_hardware(struct transport_port *port, struct port_hardware *counters)
{
    struct port_hardware base = port->base;

    *counters = PORT_HARDWARE_UNKNOWN;
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        int64_t value = read_counter(port, &sources[i]);
        int64_t before = *counter_of(&base, &sources[i]);

        *counter_of(counters, &sources[i]) = value < 0 || before < 0 ? -1 : value - before;
    }
}
