/* SPDX-License-Identifier: BSD-3-Clause */
#include "lane_options.h"

#include "request_check.h"
#include "rtnetlink.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPV4_AT 12 /* in a mapped GID */
#define DEPTH_MAX 16384
#define MESSAGE_MAX (1u << 30)
#define CHECK_BYTES 10000u /* of a message of the connectivity check, max */

static const char *const service_names[] = {
    [VERBS_RC] = "rc", [VERBS_UC] = "uc", [VERBS_UD] = "ud"};
static const char *const operation_names[] = {[VERBS_SEND] = "send", [VERBS_WRITE] = "write"};

/* --- what the port can do --- */

static int check_options(const struct verbs_lane *lane, struct err *err)
{
    static const bool possible[3][2] = {
        [VERBS_RC] = {true, true},
        [VERBS_UC] = {[VERBS_WRITE] = true},
        [VERBS_UD] = {[VERBS_SEND] = true},
    };
    const struct verbs_options *o = &lane->context.options;
    const char *label = lane->context.port->label;

    if (!possible[o->service][o->operation])
        return err_set(err, -EINVAL,
                       "%s: verbs service %s has no operation %s; rc has send and write, uc has "
                       "write, ud has send",
                       label, service_names[o->service], operation_names[o->operation]);
    if (o->retry > 6 || o->rnr_retry > 6)
        return err_set(err, -EINVAL, "%s: retry and rnr_retry are 0 to 6: 7 never ends", label);
    if (o->depth < 1 || o->depth > DEPTH_MAX || o->queue_pairs < 1 ||
        o->queue_pairs > VERBS_QUEUE_PAIRS_MAX || o->timeout < 1 || o->timeout > 31 ||
        o->service_level > 15)
        return err_set(err, -EINVAL,
                       "%s: depth %u, queue_pairs %u, timeout %u or service_level %u is out of "
                       "range: 1 to %u, 1 to %u, 1 to 31, 0 to 15",
                       label, o->depth, o->queue_pairs, o->timeout, o->service_level, DEPTH_MAX,
                       VERBS_QUEUE_PAIRS_MAX);
    return 0;
}

static int check_device(const struct verbs_lane *lane, struct err *err)
{
    const struct verbs_options *o = &lane->context.options;
    struct transport_port *port = lane->context.port;
    uint32_t active = verbs_mtu_bytes(port->attributes.active_mtu);
    enum ibv_mtu code;

    if (o->mtu != 0 && !verbs_mtu_code(o->mtu, &code))
        return err_set(err, -EINVAL, "%s: mtu %u; a path MTU is 256, 512, 1024, 2048 or 4096",
                       port->label, o->mtu);
    if (o->mtu > active)
        return err_set(err, -EINVAL,
                       "%s: mtu %u is larger than the port's active MTU %u; use at most that, or "
                       "raise the MTU of the link (on RoCE that of %s, and of the switch)",
                       port->label, o->mtu, active,
                       port->netdev[0] != '\0' ? port->netdev : "its interface");
    if ((int)o->depth + (int)VERBS_CONTROL_WRS > port->limits.max_qp_wr)
        return err_set(err, -EINVAL, "%s: depth %u; the device's queue pairs hold %d at most",
                       port->label, o->depth, port->limits.max_qp_wr - (int)VERBS_CONTROL_WRS);
    if (o->pkey_index >= port->attributes.pkey_tbl_len && o->pkey_index > 0)
        return err_set(err, -EINVAL, "%s: pkey_index %u; the port's table has %u", port->label,
                       o->pkey_index, port->attributes.pkey_tbl_len);
    return 0;
}

static int check_gid(const struct verbs_lane *lane, struct err *err)
{
    struct transport_port *port = lane->context.port;
    int index = lane->context.options.gid_index;
    char list[256] = "";
    size_t used = 0;

    if (index == VERBS_AUTOMATIC && port->gid != NULL)
        return 0;
    if (index != VERBS_AUTOMATIC && verbs_port_gid(port, index) != NULL)
        return 0;
    for (size_t i = 0; i < port->gid_count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%u", i > 0 ? ", " : "",
                                 port->gids[i].index);
    if (port->gid_count == 0)
        return err_set(err, -EADDRNOTAVAIL,
                       "%s: the port has no GID; give %s an address and bring it up", port->label,
                       port->netdev[0] != '\0' ? port->netdev : "its interface");
    return err_set(
        err, -EINVAL,
        "%s: gid_index %d is not in the port's GID table, which has %s: use one of these, or "
        "leave it out",
        port->label, index, list);
}

static int check_size(const struct verbs_lane *lane, uint32_t size, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    uint32_t device = lane->context.port->attributes.max_msg_sz;
    const char *label = lane->context.port->label;

    if (size > MESSAGE_MAX || size > device)
        return err_set(err, -EMSGSIZE,
                       "%s: a message of %u bytes; %u are the most that this device sends at once: "
                       "use smaller message_sizes",
                       label, size, device < MESSAGE_MAX ? device : MESSAGE_MAX);
    if (lane->context.options.service == VERBS_UD && size > lane->mtu &&
        phase->traffic != TRAFFIC_PROBE)
        return err_set(err, -EMSGSIZE,
                       "%s: a message of %u bytes; with service ud a message is one packet, "
                       "and %u, the path MTU, is the most",
                       label, size, lane->mtu);
    return 0;
}

static int check_sizes(const struct verbs_lane *lane, struct err *err)
{
    const struct phase *phase = lane->lane.request.phase;
    int rc = 0;

    if (phase->traffic == TRAFFIC_PINGPONG && phase->pingpong.max_size > 0)
        return check_size(lane, phase->pingpong.max_size, err);
    for (uint32_t i = 0; i < phase->size_count && rc == 0; i++)
        rc = check_size(lane, phase->sizes[i], err);
    return rc;
}

static int check_forward(const struct verbs_lane *lane, struct err *err)
{
    const char *label = lane->context.port->label;

    if (lane->forwards && !lane->context.reliable)
        return err_set(err, -EINVAL,
                       "%s: a chain is forwarded over service rc only: what %s loses could not be "
                       "sent on",
                       label, service_names[lane->context.options.service]);
    return request_check_forward(&lane->lane.request, "verbs", label, err);
}

/* A software RDMA device sends where the kernel's routes point: does it deliver packets to this
 * address within the host, without a wire? */
static bool is_local(const uint8_t gid[VERBS_GID_BYTES], const char *netdev)
{
    bool ipv4 = verbs_gid_is_ipv4(gid);
    int fd = netlink_open();
    bool local = fd >= 0 && route_is_local(fd, ipv4 ? AF_INET : AF_INET6,
                                           gid + (ipv4 ? IPV4_AT : 0), if_nametoindex(netdev));

    if (fd >= 0)
        close(fd);
    return local;
}

/* What stays in this host would say nothing about the network. */
static int check_partner(const struct verbs_lane *lane, const struct lane_flow *flow, bool sends,
                         struct err *err)
{
    const struct transport_port *port = lane->context.port;
    uint32_t rank = sends ? flow->dst : flow->src;
    struct verbs_address address;
    char gid[VERBS_GID_TEXT];

    if (!verbs_address_read(&address, &flow->partner))
        return err_set(err, -EINVAL, "%s: rank %u gave no verbs address", port->label, rank);
    if (address.ethernet != port->ethernet)
        return err_set(err, -EINVAL,
                       "%s: rank %u's port is %s, this one is %s: they can't reach each other; put "
                       "them into different networks",
                       port->label, rank, address.ethernet ? "RoCE" : "InfiniBand",
                       port->ethernet ? "RoCE" : "InfiniBand");
    if (port->gid != NULL && memcmp(address.gid, port->gid->bytes, sizeof address.gid) == 0)
        return err_set(err, -EINVAL,
                       "%s: rank %u is this same port, so the bytes would never leave it",
                       port->label, rank);
    if (port->software && port->ethernet && is_local(address.gid, port->netdev))
        return err_set(err, -EINVAL,
                       "%s: rank %u (%s) is on this same host, and a software device keeps what is "
                       "for it inside, so the bytes would never leave it; use ports of two hosts, "
                       "or route between the two interfaces over the wire",
                       port->label, rank, verbs_gid_text(address.gid, gid));
    return 0;
}

static int check_partners(const struct verbs_lane *lane, struct err *err)
{
    const struct lane_request *request = &lane->lane.request;
    int rc = 0;

    for (uint32_t i = 0; i < request->send_count && rc == 0; i++)
        rc = check_partner(lane, &request->sends[i], true, err);
    for (uint32_t i = 0; i < request->receive_count && rc == 0; i++)
        rc = check_partner(lane, &request->receives[i], false, err);
    return rc;
}

/* --- effective options --- */

static void choose_options(struct verbs_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct verbs_options *o = &lane->context.options;
    uint32_t active = verbs_mtu_bytes(request->port->attributes.active_mtu);

    *o = *verbs_options(request->phase);
    lane->mtu = (uint16_t)(o->mtu != 0 ? o->mtu : active);
    lane->context.reliable = o->service == VERBS_RC;
    lane->lane.judges_order = !lane->context.reliable;
    lane->context.has_replies = lane->traffic->has_replies;
    lane->context.may_rest = lane->traffic->may_rest;
    lane->events = o->completion == VERBS_COMPLETION_EVENT ||
                   (o->completion == VERBS_COMPLETION_AUTO && request->sleeps);
    lane->forwards = request_forwards(request);
}

static const struct verbs_mode *choose_mode(const struct verbs_lane *lane)
{
    const struct verbs_options *o = &lane->context.options;

    if (lane->lane.request.phase->traffic == TRAFFIC_SCHEDULE)
        return &verbs_mode_send_scheduled;
    if (o->operation == VERBS_WRITE)
        return &verbs_mode_write;
    return o->service == VERBS_UD && lane->context.has_replies ? &verbs_mode_send_numbered
                                                               : &verbs_mode_send;
}

static void choose_sizes(struct verbs_lane *lane)
{
    const struct phase *phase = lane->lane.request.phase;
    const struct verbs_options *o = &lane->context.options;
    bool check = phase->traffic == TRAFFIC_PROBE;
    uint32_t most = o->service == VERBS_UD && lane->mtu < CHECK_BYTES ? lane->mtu : CHECK_BYTES;

    for (uint32_t i = 0; i < phase->size_count; i++)
        lane->sizes[i] = check && phase->sizes[i] > most ? most : phase->sizes[i];
    lane->streams = check ? 1 : o->queue_pairs;
}

int verbs_lane_choose(struct verbs_lane *lane, struct err *err)
{
    int rc = request_check_messages(&lane->lane.request, "verbs", err);

    choose_options(lane);
    lane->context.mode = choose_mode(lane);
    if (rc == 0)
        rc = check_options(lane, err);
    if (rc == 0)
        rc = check_device(lane, err);
    if (rc == 0)
        rc = check_gid(lane, err);
    if (rc == 0)
        rc = check_sizes(lane, err);
    if (rc == 0)
        rc = check_forward(lane, err);
    if (rc == 0 && lane->traffic->check != NULL)
        rc = lane->traffic->check(lane, err);
    if (rc == 0)
        rc = check_partners(lane, err);
    if (rc == 0)
        choose_sizes(lane);
    return rc;
}

/* --- what follows from them --- */

/* Bytes at layer 1 that a message of `bytes` takes: InfiniBand Architecture 5.2, RoCEv2 annex A17.
 * Ethernet: preamble to gap and FCS 38, IPv4 20 or IPv6 40, UDP 8; transport 12 and the checksum 4;
 * InfiniBand: local header 8, both checksums 6. First or only packets hold what the operation
 * needs (16); datagrams 8. */
double verbs_line_bytes(const struct verbs_lane *lane, uint32_t bytes)
{
    const struct verbs_gid *gid = lane->context.port->gid;
    double packet = 12 + 6 + 8;
    uint32_t packets = (bytes + lane->mtu - 1) / lane->mtu;
    double once = lane->context.options.operation != VERBS_SEND ? 16 : 0;

    if (lane->context.port->ethernet)
        packet = 12 + 4 + 38 + 8 + (gid != NULL && verbs_gid_is_ipv4(gid->bytes) ? 20 : 40);
    if (lane->context.options.service == VERBS_UD)
        packet += 8;
    return bytes + packets * packet + once;
}

void verbs_lane_name_variant(struct verbs_lane *lane)
{
    const struct verbs_options *o = &lane->context.options;

    snprintf(lane->lane.variant, sizeof lane->lane.variant, "%s %s%s%s, %s%s",
             service_names[o->service], operation_names[o->operation],
             o->operation == VERBS_WRITE ? " immediate" : "", lane->forwards ? " forward" : "",
             lane->events ? "event" : "poll", lane->context.port->memory.huge ? ", hugepages" : "");
}
