/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "eal.h"
#include "netns.h"

#include <errno.h>
#include <inttypes.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMPOOL_CACHE 256u
#define FRAMES 1023u         /* buffers of a pool: burst, caches and the driver's send ring */
#define FRAMES_XDP 16383u    /* AF_XDP fills its own rings from the pool first: 4,095 fail */
#define DRIVER_HEADER 64u    /* at most what a driver receives in front of a frame (virtio: 12) */
#define DESCRIPTORS 1024u    /* of a device's rings */
#define RING_FRAMES 2048u    /* AF_PACKET's receive and send ring by default ... */
#define RING_FRAMES_BIG 512u /* ... and when frames need RING_BIG bytes each */
#define RING_SMALL 2048u
#define RING_BIG 16384u
#define RING_HEADER 66u /* of a slot, before the frame (TPACKET_V2) */
#define RING_EXCEPT 32u /* of a slot, not asked of a buffer by the driver */
#define XDP_PAGE 4096u
#define XDP_ROOM 2048u    /* a buffer holds at least so much */
#define XDP_HEADROOM 256u /* the kernel's own */

struct port_blob {
    uint8_t version;
    uint8_t has_ipv4;
    uint8_t has_ipv6;
    uint8_t mac[FRAME_MAC];
    uint8_t ipv4[4];
    uint8_t ipv6[16];
    uint8_t frame_max[4]; /* big-endian, and so is */
    uint8_t line_bps[8];
} __attribute__((packed));
static_assert(sizeof(struct port_blob) == 41, "the layout of a port's address");
static_assert(sizeof(struct port_blob) <= BLOB_BYTES_MAX, "it fits");

/* How a port's device comes to be, and what its buffers hold. */
struct plan {
    const char *bus;
    char arguments[128];
    uint32_t data_room; /* behind the headroom */
    uint32_t receive_frames;
    uint32_t frame_max;   /* 0: ask the device */
    uint32_t queues;      /* that a kernel interface is opened with */
    uint32_t ring_frames; /* AF_PACKET's rings */
    uint32_t ring_slot;   /* bytes */
};

static unsigned device_number;

static void plan_packet(struct transport_port *port, struct plan *plan)
{
    uint32_t slot = port->iface.mtu + FRAME_ETHERNET + FRAME_VLAN + RING_HEADER;
    bool big = slot > RING_SMALL;
    uint32_t frames = port->conf->queue_frames;

    if (frames == 0)
        frames = big ? RING_FRAMES_BIG : RING_FRAMES;
    frames = (frames + 1) & ~1u; /* two small slots are one block */
    snprintf(port->device, sizeof port->device, "net_af_packet%u", device_number++);
    snprintf(plan->arguments, sizeof plan->arguments,
             "iface=%s,qpairs=%u,framecnt=%u,framesz=%u,blocksz=%u", port->iface.name, plan->queues,
             frames, big ? RING_BIG : RING_SMALL, big ? RING_BIG : 2 * RING_SMALL);
    plan->ring_frames = frames;
    plan->ring_slot = big ? RING_BIG : RING_SMALL;
    plan->data_room = plan->ring_slot - RING_EXCEPT;
    plan->receive_frames = FRAMES;
    plan->frame_max = port->iface.mtu + FRAME_ETHERNET + FRAME_FCS;
}

/* The pool is the memory that kernel and driver share (zero copy, unaligned chunks): a buffer with
 * all its headers is one page at most. */
static void plan_xdp(struct transport_port *port, struct plan *plan)
{
    uint32_t room = port->iface.mtu + FRAME_ETHERNET + FRAME_VLAN + XDP_HEADROOM;
    uint32_t most;

    room = room < XDP_ROOM ? XDP_ROOM : RTE_ALIGN(room, RTE_CACHE_LINE_SIZE);
    while (rte_mempool_calc_obj_size(
               (uint32_t)sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + room, 0, NULL) > XDP_PAGE)
        room -= RTE_CACHE_LINE_SIZE;
    most = room - XDP_HEADROOM - FRAME_VLAN + FRAME_FCS;
    eal_silence_xdp();
    snprintf(port->device, sizeof port->device, "net_af_xdp%u", device_number++);
    snprintf(plan->arguments, sizeof plan->arguments, "iface=%s,queue_count=%u", port->iface.name,
             plan->queues);
    plan->data_room = room;
    plan->receive_frames = FRAMES_XDP;
    plan->frame_max = port->iface.mtu + FRAME_ETHERNET + FRAME_FCS;
    if (plan->frame_max > most)
        plan->frame_max = most;
}

/* "net_ring0,arguments" -> name and arguments. */
static int plan_vdev(struct transport_port *port, struct plan *plan, struct err *err)
{
    const char *comma = strchrnul(port->conf->vdev, ',');
    size_t name = (size_t)(comma - port->conf->vdev);

    if (name >= sizeof port->device || strlen(comma) > sizeof plan->arguments)
        return err_set(err, -EINVAL, "%s: the device '%s' has too long a name", port->conf->name,
                       port->conf->vdev);
    memcpy(port->device, port->conf->vdev, name);
    snprintf(plan->arguments, sizeof plan->arguments, "%s", *comma != '\0' ? comma + 1 : "");
    return 0;
}

static int plan_device(struct transport_port *port, struct plan *plan, struct err *err)
{
    const struct port_conf *conf = port->conf;
    int rc;

    *plan = (struct plan){
        .bus = "vdev",
        .receive_frames = FRAMES,
        .queues = conf->queues > 0 && !conf->queues_at_most ? conf->queues : 1,
    };
    if (conf->pci != NULL) {
        plan->bus = "pci";
        plan->receive_frames = FRAMES + DESCRIPTORS;
        snprintf(port->device, sizeof port->device, "%s", conf->pci);
        return 0;
    }
    if (conf->vdev != NULL)
        return plan_vdev(port, plan, err);
    if (conf->iface == NULL)
        return err_set(err, -EINVAL, "%s: dpdk needs one of iface, pci and vdev", conf->name);
    if ((rc = iface_open(&port->iface, conf->iface, err)) != 0)
        return rc;
    port->kernel = true;
    if (conf->driver == NULL || strcmp(conf->driver, "af_packet") == 0)
        plan_packet(port, plan);
    else if (strcmp(conf->driver, "af_xdp") == 0)
        plan_xdp(port, plan);
    else
        return err_set(err, -EINVAL, "%s: driver '%s' is neither af_packet nor af_xdp", conf->name,
                       conf->driver);
    return 0;
}

/* What a person can do when a device can't be had. */
static const char *attach_remedy(const struct port_conf *conf)
{
    if (conf->pci != NULL)
        return "is it bound to vfio-pci, and may this user open /dev/vfio?";
    if (conf->iface != NULL)
        return "it needs CAP_NET_RAW and CAP_NET_ADMIN, and a driver of DPDK's for it";
    return "see the device's page in DPDK's guide for its arguments";
}

static int attach(struct transport_port *port, const struct plan *plan, struct err *err)
{
    struct rte_eth_dev_info info;
    int rc;

    if (rte_eth_dev_count_total() >= RTE_MAX_ETHPORTS)
        return err_set(err, -ENOSPC,
                       "%s: this process holds %u ports already, the most that this build of DPDK "
                       "allows: pack fewer ports into one process",
                       port->conf->name, RTE_MAX_ETHPORTS);
    if (rte_eth_dev_get_port_by_name(port->device, &port->id) != 0) {
        eal_log_clear();
        rc = rte_eal_hotplug_add(plan->bus, port->device, plan->arguments);
        if (rc != 0 || rte_eth_dev_get_port_by_name(port->device, &port->id) != 0)
            return err_set(err, rc < 0 ? rc : -ENODEV, "%s: DPDK can't use '%s': %s (%s)",
                           port->conf->name,
                           port->conf->iface != NULL ? port->conf->iface : port->device,
                           attach_remedy(port->conf), eal_log_first());
        port->attached = true;
    }
    if ((rc = rte_eth_dev_info_get(port->id, &info)) != 0)
        return err_set(err, rc, "%s: DPDK knows nothing of '%s'", port->conf->name, port->device);
    snprintf(port->driver, sizeof port->driver, "%s", info.driver_name);
    port->by_reference = strcmp(port->driver, "net_ring") == 0;
    return 0;
}

static struct rte_mempool *make_pool(const struct port_queue *queue, const char *use,
                                     uint32_t count, uint32_t room)
{
    uint16_t id = queue->port->id;
    char name[RTE_MEMPOOL_NAMESIZE];

    snprintf(name, sizeof name, "sb%u.%u%s", id, queue->number, use);
    return rte_pktmbuf_pool_create(name, count, MEMPOOL_CACHE, 0,
                                   (uint16_t)(room + RTE_PKTMBUF_HEADROOM),
                                   rte_eth_dev_socket_id(id));
}

static int make_pools(struct port_queue *queue, const struct plan *plan, uint32_t frames,
                      struct err *err)
{
    uint32_t room = queue->port->room_max;
    uint32_t receive_room = plan->data_room > 0 ? plan->data_room : room + DRIVER_HEADER;

    queue->receive_pool = make_pool(queue, "in", plan->receive_frames, receive_room);
    queue->frames[0] = make_pool(queue, "a", frames, room);
    queue->frames[1] = make_pool(queue, "b", frames, room);
    if (queue->receive_pool == NULL || queue->frames[0] == NULL || queue->frames[1] == NULL)
        return err_set(err, -ENOMEM, "%s: no memory for packets (%s): %s", queue->port->conf->name,
                       rte_strerror(rte_errno), eal_memory_remedy());
    return 0;
}

/* Rates by queue (rte_eth_set_queue_rate_limit) are whole Mbit/s without preamble and gap: not
 * exact, so frames are paced here. The checksums that we send are right already (frame.h). */
int port_lay_out(struct port_layout *layout, const struct port_conf *conf,
                 const struct rte_eth_dev_info *info, struct err *err)
{
    uint32_t most =
        RTE_MIN((uint32_t)RTE_MIN(info->max_rx_queues, info->max_tx_queues), PORT_QUEUES_MAX);
    uint32_t wanted = conf->queues > 0 ? conf->queues : 1;

    if (wanted > most && !conf->queues_at_most)
        return err_set(err, -EINVAL, "%s: queues: %u are more than its device has (%s: %u)",
                       conf->name, wanted, info->driver_name, most);
    wanted = RTE_MAX(RTE_MIN(wanted, most), 1u);
    *layout = (struct port_layout){.queues = (uint16_t)wanted, .send_queues = (uint16_t)wanted};
    if ((info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0 &&
        wanted * PORT_SENDS <= info->max_tx_queues) {
        layout->send_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
        layout->send_queues = (uint16_t)(wanted * PORT_SENDS);
    }
    if (wanted > 1)
        layout->spread_by = info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
    return 0;
}

static int make_queues(struct transport_port *port, const struct port_layout *layout)
{
    port->queues =
        aligned_alloc(_Alignof(struct port_queue), layout->queues * sizeof *port->queues);
    if (port->queues == NULL)
        return -ENOMEM;
    memset(port->queues, 0, layout->queues * sizeof *port->queues);
    port->queue_count = layout->queues;
    port->send_offloads = layout->send_offloads;
    port->spreads = layout->spread_by != 0;
    for (uint16_t i = 0; i < layout->queues; i++) {
        struct port_queue *queue = &port->queues[i];
        bool apart = layout->send_queues > layout->queues;

        queue->port = port;
        queue->number = i;
        queue->count = &queue->idle;
        atomic_flag_clear(&queue->busy);
        for (uint16_t pool = 0; pool < PORT_SENDS; pool++)
            queue->send[pool] = apart ? (uint16_t)(i * PORT_SENDS + pool) : i;
    }
    return 0;
}

/* The largest frame: the interface's MTU; of other devices what they can, up to 9,216. Some say it
 * by frame and leave the MTU open (memif). */
static void choose_mtu(struct transport_port *port, const struct plan *plan,
                       struct rte_eth_conf *conf)
{
    struct rte_eth_dev_info info;
    uint32_t most;

    port->frame_max = plan->frame_max;
    if (plan->frame_max == 0 && rte_eth_dev_info_get(port->id, &info) == 0) {
        most = RTE_MIN(info.max_rx_pktlen, FRAME_SIZE_MAX) - FRAME_ETHERNET - FRAME_FCS;
        conf->rxmode.mtu = info.max_mtu < most ? info.max_mtu : most;
        port->frame_max = conf->rxmode.mtu + FRAME_ETHERNET + FRAME_FCS;
    }
    if (port->frame_max > FRAME_SIZE_MAX)
        port->frame_max = FRAME_SIZE_MAX;
}

/* Memory and rings of all queues, on the device's NUMA node. */
static int set_up_queues(struct transport_port *port, const struct plan *plan,
                         const struct port_layout *layout, struct err *err)
{
    uint16_t receives = DESCRIPTORS, sends = DESCRIPTORS;
    unsigned node = (unsigned)rte_eth_dev_socket_id(port->id);
    int rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &receives, &sends);
    uint32_t frames = port->conf->pci != NULL ? FRAMES + sends : FRAMES;

    for (uint16_t i = 0; i < layout->queues && rc == 0; i++) {
        rc = make_pools(&port->queues[i], plan, frames, err);
        if (rc == 0)
            rc = rte_eth_rx_queue_setup(port->id, i, receives, node, NULL,
                                        port->queues[i].receive_pool);
    }
    for (uint16_t i = 0; i < layout->send_queues && rc == 0; i++)
        rc = rte_eth_tx_queue_setup(port->id, i, sends, node, NULL);
    return rc;
}

static int start_queues(struct transport_port *port, const struct plan *plan, struct err *err)
{
    struct rte_eth_conf conf = {.rxmode = {.mtu = 0}};
    struct rte_eth_dev_info info;
    struct port_layout layout = {0};
    struct isolated_port isolated;
    int rc;

    if ((rc = rte_eth_dev_info_get(port->id, &info)) != 0 ||
        (rc = port_lay_out(&layout, port->conf, &info, err)) != 0)
        return err_set(err, rc, "%s: DPDK knows nothing of '%s'", port->conf->name, port->device);
    isolated = (struct isolated_port){.conf = port->conf,
                                      .driver = port->driver,
                                      .guest = &port->guest,
                                      .id = port->id,
                                      .queue_count = layout.queues};
    choose_mtu(port, plan, &conf);
    port->room_max = RTE_MAX(port->frame_max - FRAME_FCS + FRAME_VLAN, FRAME_TEMPLATE);
    conf.txmode.offloads = layout.send_offloads;
    conf.rxmode.offloads = arrival_offload(&info);
    if (layout.spread_by != 0) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = layout.spread_by;
    }
    eal_log_clear();
    rc = port->conf->shared ? isolate_begin(&isolated, err) : 0;
    if (rc == 0)
        rc = make_queues(port, &layout);
    if (rc == 0)
        rc = rte_eth_dev_configure(port->id, layout.queues, layout.send_queues, &conf);
    if (rc == 0)
        rc = set_up_queues(port, plan, &layout, err);
    if (rc == 0)
        rc = rte_eth_dev_start(port->id);
    if (rc == 0 && port->conf->shared)
        rc = isolate_install_rules(&port->isolation, &isolated, layout.spread_by, err);
    if (rc == 0 && conf.rxmode.offloads != 0)
        arrival_begin(&port->arrival, port->id);
    if (rc != 0)
        return err_set(err, rc, "%s: '%s' does not start: %s (%s)%s", port->conf->name,
                       port->device, rte_strerror(-rc), eal_log_first(),
                       strcmp(port->driver, "net_af_xdp") == 0
                           ? "; AF_XDP needs a driver with XDP, an MTU of 3,000 or so at most, and "
                             "no other XDP program"
                           : "");
    return 0;
}

/* A locally administered address that stays the same for a port of the same name. */
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

/* Others' frames are no business of a shared port's: no promiscuous mode. */
static int add_mac(const struct transport_port *port, struct rte_ether_addr *mac, struct err *err)
{
    int rc = rte_eth_dev_mac_addr_add(port->id, mac, 0);

    if (rc == 0)
        return 0;
    return err_set(err, rc,
                   "%s: it is shared, so it can't be promiscuous, and %s takes no second MAC (%s): "
                   "say `address: keep` for the device's own",
                   port->conf->name, port->driver, rte_strerror(-rc));
}

/* The port's address, and the mode in which frames to it come in. */
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
                       "%s: '%s' is no address of one station, as in "
                       "02:00:00:00:00:01",
                       port->conf->name, wanted);
    memcpy(port->guest.mac, mac.addr_bytes, FRAME_MAC);
    if (rte_is_same_ether_addr(&mac, &own))
        return 0;
    if (port->conf->shared)
        return add_mac(port, &mac, err);
    if (port->kernel)
        return iface_promiscuous(&port->iface, err);
    /* A device without this mode (null, ring) takes every frame anyway. */
    (void)rte_eth_promiscuous_enable(port->id);
    return 0;
}

static int open_device(struct transport_port *port, const struct transport_run *run,
                       struct err *err)
{
    struct plan plan;
    int rc;

    if ((rc = plan_device(port, &plan, err)) != 0 || (rc = attach(port, &plan, err)) != 0 ||
        (rc = start_queues(port, &plan, err)) != 0 || (rc = choose_mac(port, run, err)) != 0)
        return rc;
    if (strcmp(port->driver, "net_af_packet") == 0)
        iface_find_ring(&port->iface, plan.ring_frames, plan.ring_slot);
    if (port->kernel)
        (void)iface_counts(&port->iface, &port->baseline);
    return 0;
}

int port_open(struct transport_port **out, const struct port_conf *conf,
              const struct transport_run *run, struct err *err)
{
    struct transport_port *port;
    int before = -1;
    int rc;

    if ((rc = eal_start(run->node, err)) != 0)
        return rc;
    port = calloc(1, sizeof *port);
    if (port == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", conf->name);
    port->conf = conf;
    port->iface.packet_fd = port->iface.route_fd = -1;
    lock_init(&port->guest_lock);
    lock_init(&port->visit_lock);
    if ((rc = guest_addresses(&port->guest, conf, err)) != 0)
        goto cleanup;
    /* Drivers make their sockets in the namespace of the thread that opens them. */
    if ((rc = netns_enter(conf->netns, &before, err)) != 0)
        goto cleanup;
    rc = open_device(port, run, err);
    netns_leave(before);

cleanup:
    if (rc != 0)
        port_close(port);
    else
        *out = port;
    return rc;
}

void port_close(struct transport_port *port)
{
    struct err ignored = {""};
    int before = -1;

    (void)netns_enter(port->conf->netns, &before, &ignored);
    if (port->driver[0] != '\0') {
        isolate_end(&port->isolation, port->id);
        (void)rte_eth_dev_stop(port->id);
        (void)rte_eth_dev_close(port->id);
    }
    if (port->attached)
        (void)rte_eal_hotplug_remove(port->conf->pci != NULL ? "pci" : "vdev", port->device);
    iface_close(&port->iface);
    netns_leave(before);
    for (uint16_t i = 0; i < port->queue_count; i++) {
        rte_mempool_free(port->queues[i].receive_pool);
        for (unsigned pool = 0; pool < PORT_POOLS; pool++)
            rte_mempool_free(port->queues[i].frames[pool]);
    }
    free(port->queues);
    pthread_mutex_destroy(&port->guest_lock);
    pthread_mutex_destroy(&port->visit_lock);
    free(port);
}

static uint64_t link_bps(const struct transport_port *port)
{
    struct rte_eth_link link;

    if (port->kernel)
        return port->iface.link_bps;
    /* Devices without a wire invent a speed. */
    if (port->conf->pci == NULL || rte_eth_link_get_nowait(port->id, &link) != 0 ||
        link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN)
        return 0;
    return link.link_speed * UINT64_C(1000000);
}

static void bare_address(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%.*s", text != NULL ? (int)strcspn(text, "/") : 0, text);
}

/* Frames/s that one core can send by a driver, at the very best: to ask for more is a mistake. No
 * bound stands for devices in memory (null, ring): what they do is this engine's own speed. */
static const struct {
    const char *driver; /* "": any on a bus */
    double core_fps;
} bounds[] = {
    {"net_af_packet", 1e6}, /* a system call a burst and a copy in the kernel: 0.3 to 0.7 M seen */
    {"net_af_xdp", 25e6},   /* on veth 0.4 to 1.2 M; with zero copy 14 to 24 M are reported */
    {"net_tap", 1e6},       /* a system call a frame */
    {"net_pcap", 1e6},      /* the same */
    {"net_memif", 50e6},    /* a copy on either side */
    {"net_virtio_user", 50e6},
    {"", 150e6}, /* 100 Gbit/s of 64-byte frames: no send queue of a NIC takes more */
};

static double core_fps(const struct transport_port *port)
{
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
        if (strcmp(bounds[i].driver, port->driver) == 0 ||
            (bounds[i].driver[0] == '\0' && port->conf->pci != NULL))
            return bounds[i].core_fps;
    return 0;
}

/* By DPDK's names. */
static void name_offloads(const struct transport_port *port, char *out, size_t size)
{
    const struct {
        bool used;
        const char *name;
    } offloads[] = {
        {(port->send_offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0,
         rte_eth_dev_tx_offload_name(RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE)},
        {port->spreads, "RSS"},
        {port->arrival.runs, rte_eth_dev_rx_offload_name(RTE_ETH_RX_OFFLOAD_TIMESTAMP)},
        {port->isolation.count > 0, "ISOLATED"},
    };
    size_t used = 0;

    out[0] = '\0';
    for (size_t i = 0; i < sizeof offloads / sizeof offloads[0]; i++)
        if (offloads[i].used && used < size)
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "",
                                     offloads[i].name);
}

void port_facts(struct transport_port *port, struct port_facts *facts)
{
    const uint8_t *mac = port->guest.mac;
    int node = rte_eth_dev_socket_id(port->id);

    *facts = (struct port_facts){.link_bps = link_bps(port),
                                 .frame_max = port->frame_max,
                                 .queues = port->queue_count,
                                 .numa_node = port->conf->pci != NULL ? node : -1,
                                 .apart = strcmp(port->driver, "net_memif") == 0};
    facts->core_fps = core_fps(port);
    name_offloads(port, facts->offloads, sizeof facts->offloads);
    snprintf(facts->driver, sizeof facts->driver, "%s", port->driver);
    snprintf(facts->mac, sizeof facts->mac, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
             mac[3], mac[4], mac[5]);
    bare_address(facts->ipv4, sizeof facts->ipv4, port->conf->ipv4);
    bare_address(facts->ipv6, sizeof facts->ipv6, port->conf->ipv6);
}

bool port_link_up(struct transport_port *port)
{
    struct rte_eth_link link;

    if (port->kernel)
        return iface_running(&port->iface);
    return rte_eth_link_get_nowait(port->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

void port_address(struct transport_port *port, struct blob *blob)
{
    const struct guest *guest = &port->guest;
    uint32_t frame_max = htobe32(port->frame_max);
    uint64_t line_bps =
        htobe64(port->conf->line_rate_bps > 0 ? port->conf->line_rate_bps : link_bps(port));
    struct port_blob own = {.version = 1, .has_ipv4 = guest->has_ipv4, .has_ipv6 = guest->has_ipv6};

    memcpy(own.mac, guest->mac, sizeof own.mac);
    memcpy(own.ipv4, guest->ipv4, sizeof own.ipv4);
    memcpy(own.ipv6, guest->ipv6, sizeof own.ipv6);
    memcpy(own.frame_max, &frame_max, sizeof own.frame_max);
    memcpy(own.line_bps, &line_bps, sizeof own.line_bps);
    blob->size = sizeof own;
    memcpy(blob->bytes, &own, sizeof own);
}

bool port_read_address(const struct blob *blob, struct frame_end *end, bool has_ip[2],
                       uint32_t *frame_max)
{
    struct port_blob peer;

    if (blob->size != sizeof peer)
        return false;
    memcpy(&peer, blob->bytes, sizeof peer);
    memcpy(end->mac, peer.mac, sizeof end->mac);
    memcpy(end->ipv4, peer.ipv4, sizeof end->ipv4);
    memcpy(end->ipv6, peer.ipv6, sizeof end->ipv6);
    memcpy(frame_max, peer.frame_max, sizeof peer.frame_max);
    *frame_max = be32toh(*frame_max);
    has_ip[0] = peer.has_ipv4;
    has_ip[1] = peer.has_ipv6;
    return peer.version == 1;
}

uint64_t port_read_line_bps(const struct blob *blob)
{
    struct port_blob peer;
    uint64_t line_bps;

    memcpy(&peer, blob->bytes, sizeof peer);
    memcpy(&line_bps, peer.line_bps, sizeof line_bps);
    return be64toh(line_bps);
}

/* Devices name their counters of received pause frames in many ways. */
static bool counts_pause(const char *name)
{
    return (strstr(name, "rx") != NULL || strstr(name, "receive") != NULL) &&
           (strstr(name, "pause") != NULL || strstr(name, "xoff") != NULL ||
            strstr(name, "pfc") != NULL) &&
           strstr(name, "duration") == NULL && strstr(name, "transition") == NULL;
}

static int64_t pause_received(uint16_t id)
{
    int count = rte_eth_xstats_get_names(id, NULL, 0);
    struct rte_eth_xstat_name *names = calloc(count > 0 ? (size_t)count : 1, sizeof *names);
    struct rte_eth_xstat *values = calloc(count > 0 ? (size_t)count : 1, sizeof *values);
    int64_t frames = -1;

    if (names != NULL && values != NULL && count > 0 &&
        rte_eth_xstats_get_names(id, names, (unsigned)count) == count &&
        rte_eth_xstats_get(id, values, (unsigned)count) == count) {
        for (int i = 0; i < count; i++)
            if (counts_pause(names[i].name))
                frames = (frames > 0 ? frames : 0) + (int64_t)values[i].value;
    }
    free(names);
    free(values);
    return frames;
}

/* AF_PACKET's driver counts no loss at all, AF_XDP's only its own: the kernel is asked. */
static void kernel_hardware(struct transport_port *port, struct port_hardware *counters)
{
    struct iface_counts now;
    bool packet = strcmp(port->driver, "net_af_packet") == 0;

    if (packet)
        counters->dropped_receive = iface_ring_drops(&port->iface);
    counters->errors = -1;
    if (iface_counts(&port->iface, &now) != 0) {
        counters->dropped_send = -1;
        return;
    }
    counters->errors = (int64_t)(now.receive_errors - port->baseline.receive_errors);
    counters->dropped_send += (int64_t)(now.send_dropped - port->baseline.send_dropped);
    counters->sent_frames -= (int64_t)(now.send_dropped - port->baseline.send_dropped);
}

static int64_t forward_dropped(const struct transport_port *port)
{
    uint64_t frames = 0;

    for (uint16_t i = 0; i < port->queue_count; i++)
        frames += port->queues[i].forward_dropped;
    return (int64_t)frames;
}

void port_hardware(struct transport_port *port, struct port_hardware *counters)
{
    struct rte_eth_stats stats;

    *counters = PORT_HARDWARE_UNKNOWN;
    if (rte_eth_stats_get(port->id, &stats) != 0)
        return;
    counters->received_frames = (int64_t)stats.ipackets;
    counters->sent_frames = (int64_t)stats.opackets;
    counters->dropped_receive = (int64_t)(stats.imissed + stats.rx_nombuf);
    counters->dropped_send = forward_dropped(port);
    counters->errors = (int64_t)stats.ierrors;
    if (port->conf->pci != NULL)
        counters->pause_received = pause_received(port->id);
    if (port->kernel)
        kernel_hardware(port, counters);
    else
        counters->dropped_send += (int64_t)stats.oerrors;
}

void port_send_guest(struct port_queue *queue, const uint8_t *frame, uint32_t length)
{
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(queue->receive_pool);

    if (buffer == NULL)
        return;
    memcpy(rte_pktmbuf_append(buffer, (uint16_t)length), frame, length);
    if (rte_eth_tx_burst(queue->port->id, queue->send[PORT_POOLS], &buffer, 1) == 1)
        queue->count->guest_sent++;
    else
        rte_pktmbuf_free(buffer);
}

void port_announce(struct port_queue *queue, int64_t now_ns)
{
    uint8_t frame[GUEST_FRAME_MAX];
    uint32_t length = guest_announcement(port_guest_lock(queue->port), frame);

    port_guest_unlock(queue->port);
    port_send_guest(queue, frame, length);
    queue->port->announced_ns = now_ns;
}

bool port_hear(struct port_queue *queue, const struct rte_mbuf *frame)
{
    uint8_t answer[GUEST_FRAME_MAX];
    uint32_t answer_length = 0;
    enum guest_verdict verdict =
        guest_hear(port_guest_lock(queue->port), rte_pktmbuf_mtod(frame, const uint8_t *),
                   rte_pktmbuf_data_len(frame), answer, &answer_length);

    port_guest_unlock(queue->port);
    if (verdict == GUEST_IGNORES)
        return false;
    queue->count->guest_received++;
    if (verdict == GUEST_ANSWERS)
        port_send_guest(queue, answer, answer_length);
    return true;
}

void port_listen(struct port_queue *queue)
{
    struct transport_port *port = queue->port;
    struct rte_mbuf *frames[PORT_BURST_MAX];
    uint16_t count;

    /* Bounded: a device that always has more (net_null) must not keep the worker here. */
    for (unsigned bursts = 0; bursts < PORT_LISTEN_BURSTS; bursts++) {
        count = rte_eth_rx_burst(port->id, queue->number, frames, PORT_BURST_MAX);
        for (uint16_t i = 0; i < count; i++)
            if (!port_hear(queue, frames[i]))
                queue->count->foreign++;
        rte_pktmbuf_free_bulk(frames, count);
        if (count == 0)
            break;
    }
}

void port_stay_known(struct port_queue *queue, int64_t now_ns)
{
    const struct transport_port *port = queue->port;

    if (queue->number == 0 && port->announced_ns != 0 &&
        now_ns - port->announced_ns >= PORT_ANNOUNCE_NS)
        port_announce(queue, now_ns);
}
