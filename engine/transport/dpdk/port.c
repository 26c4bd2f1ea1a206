/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_state.h"

#include "eal.h"
#include "netns.h"

#include <errno.h>
#include <rte_ether.h>
#include <stdio.h>
#include <stdlib.h>

/* Derive a locally administered MAC address from the names of the run and the port. */
static void derive_mac(const struct transport_run *run, const char *name, uint8_t mac[FRAME_MAC])
{
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (const char *at = run->run_id != NULL ? run->run_id : ""; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    for (const char *at = name; *at != '\0'; at++)
        hash = (hash ^ (uint8_t)*at) * 0x100000001b3;
    mac[0] = 0x02;
    for (unsigned i = 1; i < FRAME_MAC; i++)
        mac[i] = (uint8_t)(hash >> 8 * i);
}

int port_take_all(struct transport_port *port, struct err *err)
{
    if (port->kernel)
        return iface_promiscuous(&port->iface, err);
    /* A device without these modes (null, ring) takes every frame anyway. */
    (void)rte_eth_promiscuous_enable(port->id);
    (void)rte_eth_allmulticast_enable(port->id);
    return 0;
}

/* Choose the port's MAC address, and the mode in which the device receives frames to this
 * address. */
static int choose_mac(struct transport_port *port, const struct transport_run *run, struct err *err)
{
    const char *wanted = port->conf->mac;
    struct rte_ether_addr own, mac;

    if (rte_eth_macaddr_get(port->id, &own) != 0)
        memset(&own, 0, sizeof own);
    mac = own;
    if (wanted == NULL && (port->kernel || rte_is_zero_ether_addr(&own)))
        derive_mac(run, port->conf->name, mac.addr_bytes);
    else if (wanted != NULL && strcmp(wanted, "keep") != 0 &&
             (rte_ether_unformat_addr(wanted, &mac) != 0 || (mac.addr_bytes[0] & 1)))
        return err_set(err, -EINVAL,
                       "%s: '%s' is not a unicast MAC address, such as "
                       "02:00:00:00:00:01",
                       port->conf->name, wanted);
    memcpy(port->responder.mac, mac.addr_bytes, FRAME_MAC);
    return rte_is_same_ether_addr(&mac, &own) ? 0 : port_take_all(port, err);
}

int port_open(struct transport_port *port, const struct port_conf *conf,
              const struct transport_run *run, struct err *err)
{
    int before = -1;
    int rc;

    port->conf = conf;
    port->iface.ip.netlink = port->iface.ip.socket = -1;
    lock_init(&port->responder_lock);
    lock_init(&port->lock);
    /* Drivers create their sockets in the namespace of the opening thread. */
    if ((rc = eal_start(run->node, err)) != 0 ||
        (rc = responder_set_addresses(&port->responder, conf, err)) != 0 ||
        (rc = netns_enter(conf->netns, &before, err)) != 0)
        return rc;
    if ((rc = port_device_open(port, err)) == 0)
        rc = choose_mac(port, run, err);
    netns_leave(before);
    return rc;
}

void port_close(struct transport_port *port)
{
    struct err ignored = {""};
    int before = -1;

    (void)netns_enter(port->conf->netns, &before, &ignored);
    port_device_close(port);
    netns_leave(before);
    pthread_mutex_destroy(&port->responder_lock);
    pthread_mutex_destroy(&port->lock);
    free(port);
}

static uint64_t port_link_bps(const struct transport_port *port)
{
    struct rte_eth_link link;

    /* Only a device on a bus has a reliable speed: bridges and the like report 10G. */
    if (port->kernel)
        return port->iface.ip.has_wire ? port->iface.ip.facts.link_bps : 0;
    /* Devices without a wire report an invented speed. */
    if (port->conf->pci == NULL || rte_eth_link_get_nowait(port->id, &link) != 0 ||
        link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
        return 0;
    return link.link_speed * UINT64_C(1000000);
}

static void bare_address(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%.*s", text != NULL ? (int)strcspn(text, "/") : 0, text);
}

/* Write the names of the offloads in use, as DPDK names them. */
static void name_offloads(const struct transport_port *port, char *out, size_t size)
{
    const struct {
        bool used;
        const char *name;
    } offloads[] = {
        {(port->send_offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0,
         rte_eth_dev_tx_offload_name(RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE)},
        {port->spreads, "RSS"},
    };
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < sizeof offloads / sizeof offloads[0]; i++)
        if (offloads[i].used && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "",
                                     offloads[i].name);
}

/* Return whether a device's counter counts received PAUSE frames, by its name; devices use many
 * names. */
static bool counts_pause(const char *name)
{
    return (strstr(name, "rx") != NULL || strstr(name, "receive") != NULL) &&
           (strstr(name, "pause") != NULL || strstr(name, "xoff") != NULL ||
            strstr(name, "pfc") != NULL) &&
           strstr(name, "duration") == NULL && strstr(name, "transition") == NULL;
}

static void read_xstats(uint16_t id, struct port_hardware *counters)
{
    int count = rte_eth_xstats_get_names(id, NULL, 0);
    struct rte_eth_xstat_name *names = calloc(count > 0 ? (size_t)count : 1, sizeof *names);
    struct rte_eth_xstat *values = calloc(count > 0 ? (size_t)count : 1, sizeof *values);

    if (names != NULL && values != NULL && count > 0 &&
        rte_eth_xstats_get_names(id, names, (unsigned)count) == count &&
        rte_eth_xstats_get(id, values, (unsigned)count) == count) {
        for (int i = 0; i < count; i++) {
            enum device_counter counter = counts_pause(names[i].name)
                                              ? DEVICE_PAUSE_RECEIVED
                                              : device_counter_of(names[i].name);
            int64_t *sum = counter < DEVICE_COUNTERS ? &counters->device[counter] : NULL;

            if (sum != NULL)
                *sum = (*sum > 0 ? *sum : 0) + (int64_t)values[i].value;
        }
        counters->pause_received = counters->device[DEVICE_PAUSE_RECEIVED];
    }
    free(names);
    free(values);
}

/* Read the kernel's counters of the interface, because the AF_PACKET driver counts no loss, and the
 * AF_XDP driver only its own. */
static void kernel_hardware(struct transport_port *port, struct port_hardware *counters)
{
    struct port_facts kernel;
    int64_t dropped;

    if (strcmp(port->driver, "net_af_packet") == 0)
        counters->dropped_receive = iface_ring_drops(&port->iface);
    ip_port_facts(&port->iface.ip, &kernel, true);
    counters->errors = kernel.hardware.errors;
    counters->no_carrier = kernel.hardware.no_carrier;
    dropped = ip_port_dropped(&port->iface.ip, &kernel.hardware, counters->sent_frames);
    if (dropped < 0) {
        counters->dropped_send = -1;
        return;
    }
    counters->dropped_send += dropped;
    counters->sent_frames -= dropped;
}

static void read_counters(struct transport_port *port, struct port_hardware *counters)
{
    struct rte_eth_stats stats;

    if (rte_eth_stats_get(port->id, &stats) != 0)
        return;
    counters->received_frames = (int64_t)stats.ipackets;
    counters->sent_frames = (int64_t)stats.opackets;
    counters->dropped_receive = (int64_t)(stats.imissed + stats.rx_nombuf);
    counters->dropped_send = 0;
    for (uint16_t i = 0; i < port->queue_count; i++)
        counters->dropped_send += (int64_t)port->queues[i].forward_dropped;
    counters->errors = (int64_t)stats.ierrors;
    if (port->conf->pci != NULL)
        read_xstats(port->id, counters);
    else if (!port->kernel) /* an interface's MAC does not consume them either */
        counters->pause_received = (int64_t)atomic_load(&port->pause_frames);
    if (port->kernel)
        kernel_hardware(port, counters);
    else
        counters->dropped_send += (int64_t)stats.oerrors;
}

void port_facts(struct transport_port *port, struct port_facts *facts, bool counters)
{
    const struct arp_nd_responder *responder = &port->responder;
    const struct port_conf *conf = port->conf;
    const uint8_t *mac = responder->mac;
    uint64_t link_bps = port_link_bps(port);
    uint32_t frame_max = htobe32(port->frame_max);
    uint64_t line_bps = htobe64(conf->line_rate_bps > 0 ? conf->line_rate_bps : link_bps);
    struct port_blob own = {
        .version = 1, .has_ipv4 = responder->has_ipv4, .has_ipv6 = responder->has_ipv6};
    struct rte_eth_link link;
    struct port_facts kernel;

    *facts =
        (struct port_facts){.link_bps = link_bps,
                            .frame_max = port->frame_max,
                            .queues = port->queue_count,
                            .numa_node = conf->pci != NULL ? rte_eth_dev_socket_id(port->id) : -1,
                            .independent = strcmp(port->driver, "net_memif") == 0,
                            .connect_fd = -1,
                            .hardware = PORT_HARDWARE_UNKNOWN};
    if (port->kernel) {
        ip_port_facts(&port->iface.ip, &kernel, false);
        facts->link_up = kernel.link_up;
    } else {
        facts->link_up =
            rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
    }
    name_offloads(port, facts->offloads, sizeof facts->offloads);
    snprintf(facts->driver, sizeof facts->driver, "%s", port->driver);
    snprintf(facts->mac, sizeof facts->mac, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
             mac[3], mac[4], mac[5]);
    bare_address(facts->ipv4, sizeof facts->ipv4, conf->ipv4);
    bare_address(facts->ipv6, sizeof facts->ipv6, conf->ipv6);
    memcpy(own.mac, mac, sizeof own.mac);
    memcpy(own.ipv4, responder->ipv4, sizeof own.ipv4);
    memcpy(own.ipv6, responder->ipv6, sizeof own.ipv6);
    memcpy(own.frame_max, &frame_max, sizeof own.frame_max);
    memcpy(own.line_bps, &line_bps, sizeof own.line_bps);
    facts->address.size = sizeof own;
    memcpy(facts->address.bytes, &own, sizeof own);
    if (counters)
        read_counters(port, &facts->hardware);
}
