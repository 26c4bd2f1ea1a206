/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_state.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <rte_errno.h>
#include <rte_flow.h>
#include <stddef.h>

#define LAYERS_MAX 2
#define ITEMS_MAX (LAYERS_MAX + 3) /* Ethernet, 802.1Q, end */

/* Values that rules compare with, for this port. Bits outside a mask are zero. */
struct specs {
    struct rte_flow_item_ipv4 ipv4;
    struct rte_flow_item_ipv6 ipv6;
    struct rte_flow_item_udp udp;
    struct rte_flow_item_arp_eth_ipv4 arp;
    struct rte_flow_item_icmp6_nd_ns solicitation;
};

#define ALL_16                                                                                     \
    {                                                                                              \
        255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255             \
    }

static const struct rte_flow_item_eth type_mask = {.type = RTE_BE16(0xffff)};
static const struct rte_flow_item_vlan inner_type_mask = {.inner_type = RTE_BE16(0xffff)};
static const struct rte_flow_item_ipv4 ipv4_mask = {.hdr.dst_addr = RTE_BE32(0xffffffff)};
static const struct rte_flow_item_ipv6 ipv6_mask = {.hdr.dst_addr = ALL_16};
static const struct rte_flow_item_udp udp_mask = {.hdr.dst_port = RTE_BE16(0xffff)};
static const struct rte_flow_item_arp_eth_ipv4 arp_mask = {.tpa = RTE_BE32(0xffffffff)};
static const struct rte_flow_item_icmp6_nd_ns solicitation_mask = {.target_addr = ALL_16};

/* One header after Ethernet; without a mask any of its kind matches. */
struct layer {
    enum rte_flow_item_type type;
    size_t spec; /* its offset in struct specs */
    const void *mask;
};

static const struct layer to_ipv4 = {RTE_FLOW_ITEM_TYPE_IPV4, offsetof(struct specs, ipv4),
                                     &ipv4_mask};
static const struct layer to_ipv6 = {RTE_FLOW_ITEM_TYPE_IPV6, offsetof(struct specs, ipv6),
                                     &ipv6_mask};
static const struct layer any_ipv6 = {RTE_FLOW_ITEM_TYPE_IPV6, 0, NULL};
static const struct layer to_discard = {RTE_FLOW_ITEM_TYPE_UDP, offsetof(struct specs, udp),
                                        &udp_mask};
static const struct layer asks_arp = {RTE_FLOW_ITEM_TYPE_ARP_ETH_IPV4, offsetof(struct specs, arp),
                                      &arp_mask};
static const struct layer asks_nd = {RTE_FLOW_ITEM_TYPE_ICMP6_ND_NS,
                                     offsetof(struct specs, solicitation), &solicitation_mask};
static const struct layer any_icmpv6 = {RTE_FLOW_ITEM_TYPE_ICMP6, 0, NULL};

/* Properties of a port that a rule is made for, or needs. */
enum { ALWAYS = 1, IPV4 = 2, IPV6 = 4, GATEWAY4 = 8, GATEWAY6 = 16 };

/* Partners know each other's Ethernet addresses: only a gateway has to ask, and to be asked. Its
 * answers are sent to this port's address. */
static const struct rule {
    const char *what;
    unsigned made_for;
    unsigned needed_for;
    uint16_t type; /* EtherType */
    bool spreads;  /* devices spread IP only */
    const struct layer *layers[LAYERS_MAX];
} rules[] = {
    {"EtherType 0x88b5", ALWAYS, ALWAYS, FRAME_TYPE_L2, false, {NULL}},
    {"UDP to its IPv4 address", IPV4, IPV4, FRAME_TYPE_IPV4, true, {&to_ipv4, &to_discard}},
    {"UDP to its IPv6 address", IPV6, IPV6, FRAME_TYPE_IPV6, true, {&to_ipv6, &to_discard}},
    {"ARP for its address", IPV4, GATEWAY4, FRAME_TYPE_ARP, false, {&asks_arp}},
    {"neighbour solicitations for its address",
     IPV6,
     GATEWAY6,
     FRAME_TYPE_IPV6,
     false,
     {&any_ipv6, &asks_nd}},
    {"ICMPv6 to its address", IPV6, GATEWAY6, FRAME_TYPE_IPV6, false, {&to_ipv6, &any_icmpv6}},
};
static_assert(sizeof rules / sizeof rules[0] * 2 <= ISOLATE_RULES_MAX, "bare and tagged");

static unsigned has(const struct arp_nd_responder *responder)
{
    return ALWAYS | (responder->has_ipv4 ? IPV4 : 0) | (responder->has_ipv6 ? IPV6 : 0) |
           (responder->has_ipv4 && responder->has_gateway4 ? GATEWAY4 : 0) |
           (responder->has_ipv6 && responder->has_gateway6 ? GATEWAY6 : 0);
}

static bool is_ours(const struct arp_nd_responder *responder, const struct sockaddr *address)
{
    const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)address;

    if (address == NULL)
        return false;
    if (address->sa_family == AF_INET)
        return responder->has_ipv4 &&
               memcmp(&ipv4->sin_addr, responder->ipv4, sizeof responder->ipv4) == 0;
    return address->sa_family == AF_INET6 && responder->has_ipv6 &&
           memcmp(&ipv6->sin6_addr, responder->ipv6, sizeof responder->ipv6) == 0;
}

/* Checks that the port has no address of the kernel, which gets frames to its own addresses. */
static int check_addresses(const struct transport_port *port, struct err *err)
{
    struct ifaddrs *owned = NULL;
    int rc = 0;

    if (getifaddrs(&owned) != 0)
        return err_set(err, -errno, "%s: the kernel's addresses can't be listed: %s",
                       port->conf->name, strerror(errno));
    for (const struct ifaddrs *at = owned; at != NULL && rc == 0; at = at->ifa_next)
        if (is_ours(&port->responder, at->ifa_addr))
            rc = err_set(err, -EADDRINUSE,
                         "%s: its address %s is the kernel's too, on %s: give the shared port an "
                         "address of its own",
                         port->conf->name,
                         at->ifa_addr->sa_family == AF_INET ? port->conf->ipv4 : port->conf->ipv6,
                         at->ifa_name);
    freeifaddrs(owned);
    return rc;
}

/* Cause of a driver's failure: drivers return various values; DPDK's own variable has the cause. */
static int cause(void)
{
    return rte_errno > 0 ? -rte_errno : -ENOTSUP;
}

static const char *reason(const struct rte_flow_error *error)
{
    return error->message != NULL ? error->message : rte_strerror(-cause());
}

int isolate_begin(const struct transport_port *port, struct err *err)
{
    struct rte_flow_error error = {.message = NULL};
    int rc = check_addresses(port, err);

    if (rc != 0)
        return rc;
    rte_errno = 0;
    if (rte_flow_isolate(port->id, 1, &error) != 0)
        return err_set(err, cause(),
                       "%s: `shared: true` allows dpdk only where the driver isolates flows "
                       "(rte_flow isolated mode), which %s does not (%s): use tcp or verbs there, "
                       "or a port that nothing else needs",
                       port->conf->name, port->driver, reason(&error));
    return 0;
}

static void put(struct rte_flow_item **at, enum rte_flow_item_type type, const void *spec,
                const void *mask)
{
    *(*at)++ = (struct rte_flow_item){.type = type, .spec = spec, .mask = mask};
}

/* Data that all rules of a port are made from. */
struct maker {
    uint16_t id;
    struct specs specs;
    struct rte_flow_action first[2];  /* first queue; end */
    struct rte_flow_action spread[2]; /* all queues; end */
    struct rte_flow_error error;
};

/* Makes a rule. Untagged: of this EtherType. Tagged: of any VLAN and priority. */
static struct rte_flow *make(struct maker *maker, const struct rule *rule, bool tagged)
{
    const struct rte_flow_attr ingress = {.ingress = 1};
    const struct rte_flow_item_eth ethernet = {.type = htobe16(rule->type)};
    const struct rte_flow_item_vlan tag = {.inner_type = htobe16(rule->type)};
    struct rte_flow_item items[ITEMS_MAX];
    struct rte_flow_item *at = items;

    put(&at, RTE_FLOW_ITEM_TYPE_ETH, tagged ? NULL : &ethernet, tagged ? NULL : &type_mask);
    if (tagged)
        put(&at, RTE_FLOW_ITEM_TYPE_VLAN, &tag, &inner_type_mask);
    for (unsigned i = 0; i < LAYERS_MAX && rule->layers[i] != NULL; i++) {
        const struct layer *layer = rule->layers[i];
        const char *spec = (const char *)&maker->specs + layer->spec;

        put(&at, layer->type, layer->mask != NULL ? spec : NULL, layer->mask);
    }
    put(&at, RTE_FLOW_ITEM_TYPE_END, NULL, NULL);
    maker->error.message = NULL;
    rte_errno = 0;
    return rte_flow_create(maker->id, &ingress, items, rule->spreads ? maker->spread : maker->first,
                           &maker->error);
}

/* Adds a rule; an optional rule that the driver can't make is omitted, since no node of the run
 * needs it. */
static int add(struct transport_port *port, struct maker *maker, const struct rule *rule,
               struct err *err)
{
    bool needed = (rule->needed_for & has(&port->responder)) != 0;
    bool routed = (rule->needed_for & (GATEWAY4 | GATEWAY6)) != 0;

    for (int tagged = 0; tagged <= 1; tagged++) {
        struct rte_flow *flow = make(maker, rule, tagged);

        if (flow != NULL)
            port->isolation.rules[port->isolation.count++] = flow;
        else if (needed)
            return err_set(err, cause(),
                           "%s: %s can't tell %s from the frames of other users of the port (%s): "
                           "%suse tcp or verbs there, or a port that nothing else needs",
                           port->conf->name, port->driver, rule->what, reason(&maker->error),
                           routed ? "leave its `gateway` out, " : "");
    }
    return 0;
}

int isolate_install_rules(struct transport_port *port, uint64_t spread_by, struct err *err)
{
    const struct rte_flow_action_queue first = {.index = 0};
    uint16_t queues[RTE_MAX_QUEUES_PER_PORT];
    const struct rte_flow_action_rss all = {
        .types = spread_by, .queue_num = port->queue_count, .queue = queues};
    const struct rte_flow_action to_first = {RTE_FLOW_ACTION_TYPE_QUEUE, &first};
    const struct rte_flow_action to_all = {RTE_FLOW_ACTION_TYPE_RSS, &all};
    const struct rte_flow_action end = {RTE_FLOW_ACTION_TYPE_END, NULL};
    struct maker maker = {.id = port->id,
                          .first = {to_first, end},
                          .spread = {spread_by != 0 ? to_all : to_first, end}};
    const struct arp_nd_responder *responder = &port->responder;
    struct specs *specs = &maker.specs;
    int rc = 0;

    for (uint16_t i = 0; i < port->queue_count; i++)
        queues[i] = i;
    memcpy(&specs->ipv4.hdr.dst_addr, responder->ipv4, sizeof responder->ipv4);
    memcpy(specs->ipv6.hdr.dst_addr, responder->ipv6, sizeof responder->ipv6);
    specs->udp.hdr.dst_port = htobe16(FRAME_UDP_DESTINATION);
    memcpy(&specs->arp.tpa, responder->ipv4, sizeof responder->ipv4);
    memcpy(specs->solicitation.target_addr, responder->ipv6, sizeof responder->ipv6);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && rc == 0; i++)
        if ((rules[i].made_for & has(responder)) != 0)
            rc = add(port, &maker, &rules[i], err);
    if (rc != 0)
        isolate_end(port);
    return rc;
}

void isolate_end(struct transport_port *port)
{
    struct isolation *isolation = &port->isolation;
    struct rte_flow_error ignored;

    while (isolation->count > 0)
        (void)rte_flow_destroy(port->id, isolation->rules[--isolation->count], &ignored);
}
