/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_request.h"

#include <errno.h>
#include <string.h>

int lane_refuse(struct err *err, const struct lane_request *request, const char *what)
{
    return err_set(err, -EINVAL, "%s: %s", request->port->conf->name, what);
}

static int check_options(const struct lane_request *request, struct err *err)
{
    const struct phase *phase = request->phase;
    const struct dpdk_options *options = dpdk_options(phase);
    const struct arp_nd_responder *responder = &request->port->responder;

    if (phase->size_count == 0 || phase->size_count > TRANSPORT_SIZES_MAX)
        return lane_refuse(err, request, "a phase has 1 to 64 frame sizes");
    if (options->burst == 0 || options->burst > PORT_BURST_MAX)
        return lane_refuse(err, request, "a burst has 1 to 128 frames");
    if (options->udp_sources > (options->header == HEADER_L2 ? 1 : FRAME_UDP_SOURCES_MAX))
        return lane_refuse(err, request, "a flow has 1 to 16384 UDP source ports, and l2 has none");
    if (options->vlan && options->vlan_id > 4094)
        return lane_refuse(err, request, "VLAN ids end at 4094");
    if (options->header != HEADER_L2 && options->ttl == 0)
        return lane_refuse(err, request, "a ttl of 0 goes nowhere: 1 at least");
    if (options->header == HEADER_IPV4_UDP && !responder->has_ipv4)
        return lane_refuse(err, request, "ipv4-udp needs an IPv4 address on this port: set ipv4");
    if (options->header == HEADER_IPV6_UDP && !responder->has_ipv6)
        return lane_refuse(err, request, "ipv6-udp needs an IPv6 address on this port: set ipv6");
    if (request->ranks > PATTERN_RANKS_MAX)
        return lane_refuse(err, request, "dpdk counts 65536 ranks at most");
    if (request->receive_count >= PATTERN_RANKS_MAX)
        return lane_refuse(err, request, "a port receives one flow from each other rank at most");
    if (!phase->load.unlimited && phase->load.rate_bps <= 0 && phase->load.rate_fps <= 0)
        return lane_refuse(err, request, "the phase has no load");
    return 0;
}

/* AF_PACKET puts an offloaded tag back, AF_XDP can't. */
static int check_vlan(const struct lane_request *request, struct err *err)
{
    const struct transport_port *port = request->port;

    if (!dpdk_options(request->phase)->vlan || !port->kernel || !port->iface.vlan_offloaded ||
        strcmp(port->driver, "net_af_xdp") != 0)
        return 0;
    return err_set(err, -ENOTSUP,
                   "%s: AF_XDP does not see VLAN tags that '%s' takes out of its frames: 'ethtool "
                   "-K %s rxvlan off' (and txvlan off at the far end of a veth), or driver "
                   "af_packet",
                   port->conf->name, port->iface.name, port->iface.name);
}

/* A forwarder sends on what one flow brings, and nothing else. */
static int check_roles(const struct lane_request *request, struct err *err)
{
    uint32_t forwards = 0;

    for (uint32_t i = 0; i < request->send_count; i++)
        forwards += request->sends[i].role == PATTERN_FORWARD;
    if (forwards > 0 && (request->send_count != 1 || request->receive_count != 1))
        return lane_refuse(err, request, "a forwarding port receives one flow and sends one");
    return 0;
}

int lane_check_request(const struct lane_request *request, struct err *err)
{
    int rc;

    if ((rc = check_options(request, err)) != 0 || (rc = check_roles(request, err)) != 0)
        return rc;
    return check_vlan(request, err);
}
