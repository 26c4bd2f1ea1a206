/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_state.h"

#include "eal.h"
#include "frame_lane.h"

#include <errno.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMPOOL_CACHE 256u
#define FRAMES 1023u         /* buffers of a pool: burst, caches and the driver's send ring */
#define FRAMES_XDP 16383u    /* AF_XDP fills its own rings from the pool first: 4,095 fail */
#define DRIVER_HEADER 64u    /* maximum that a driver receives in front of a frame (virtio: 12) */
#define DESCRIPTORS 1024u    /* of a device's rings */
#define RING_FRAMES 2048u    /* AF_PACKET's receive and send ring by default ... */
#define RING_FRAMES_BIG 512u /* ... and when frames need RING_BIG bytes each */
#define RING_SMALL 2048u
#define RING_BIG 16384u
#define RING_HEADER 66u /* part of a slot before the frame (TPACKET_V2) */
#define RING_EXCEPT 32u /* part of a slot that needs no room in the driver's buffer */
#define XDP_PAGE 4096u
#define XDP_ROOM 2048u    /* minimum room of a buffer */
#define XDP_HEADROOM 256u /* the kernel's own */

/* Plan for opening a port's device: device arguments, queues, and sizes of its buffers and
 * pools. */
struct plan {
    const char *bus;
    char arguments[128];
    uint32_t data_room;      /* after the headroom */
    uint32_t receive_frames; /* 0: by its rings */
    uint32_t frame_max;      /* 0: ask the device */
    uint32_t queues;         /* queues of a kernel interface */
    uint32_t ring_frames;    /* AF_PACKET's rings */
    uint32_t ring_slot;      /* bytes */
};

static unsigned device_number;

static void plan_packet(struct transport_port *port, struct plan *plan)
{
    uint32_t slot = port->iface.ip.link.mtu + FRAME_ETHERNET + FRAME_VLAN + RING_HEADER;
    bool big = slot > RING_SMALL;
    uint32_t frames = port->conf->queue_frames;

    if (frames == 0)
        frames = big ? RING_FRAMES_BIG : RING_FRAMES;
    frames = (frames + 1) & ~1u; /* two small slots are one block */
    snprintf(port->device, sizeof port->device, "net_af_packet%u", device_number++);
    snprintf(plan->arguments, sizeof plan->arguments,
             "iface=%s,qpairs=%u,framecnt=%u,framesz=%u,blocksz=%u", port->iface.ip.iface,
             plan->queues, frames, big ? RING_BIG : RING_SMALL, big ? RING_BIG : 2 * RING_SMALL);
    plan->ring_frames = frames;
    plan->ring_slot = big ? RING_BIG : RING_SMALL;
    plan->data_room = plan->ring_slot - RING_EXCEPT;
    plan->receive_frames = FRAMES;
    plan->frame_max = port->iface.ip.link.mtu + FRAME_ETHERNET + FRAME_FCS;
}

/* Plan an AF_XDP device. Its pool is memory that kernel and driver share (zero copy, unaligned
 * chunks), so a buffer with all its headers must fit in one page. */
static void plan_xdp(struct transport_port *port, struct plan *plan)
{
    uint32_t room = port->iface.ip.link.mtu + FRAME_ETHERNET + FRAME_VLAN + XDP_HEADROOM;
    uint32_t most;

    room = room < XDP_ROOM ? XDP_ROOM : RTE_ALIGN(room, RTE_CACHE_LINE_SIZE);
    while (rte_mempool_calc_obj_size(
               (uint32_t)sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM + room, 0, NULL) > XDP_PAGE)
        room -= RTE_CACHE_LINE_SIZE;
    most = room - XDP_HEADROOM - FRAME_VLAN + FRAME_FCS;
    eal_silence_xdp();
    snprintf(port->device, sizeof port->device, "net_af_xdp%u", device_number++);
    snprintf(plan->arguments, sizeof plan->arguments, "iface=%s,queue_count=%u",
             port->iface.ip.iface, plan->queues);
    plan->data_room = room;
    plan->receive_frames = FRAMES_XDP;
    plan->frame_max = port->iface.ip.link.mtu + FRAME_ETHERNET + FRAME_FCS;
    if (plan->frame_max > most)
        plan->frame_max = most;
}

static int plan_device(struct transport_port *port, struct plan *plan, struct err *err)
{
    const struct port_conf *conf = port->conf;
    size_t name;
    int rc;

    *plan = (struct plan){
        .bus = "vdev",
        .receive_frames = FRAMES,
        .queues = conf->queues > 0 && !conf->queues_at_most ? conf->queues : 1,
    };
    if (conf->pci != NULL) {
        plan->bus = "pci";
        plan->receive_frames = 0;
        snprintf(port->device, sizeof port->device, "%s", conf->pci);
        return 0;
    }
    if (conf->vdev != NULL) { /* "net_ring0,arguments" */
        name = strcspn(conf->vdev, ",");
        if (name >= sizeof port->device || strlen(conf->vdev + name) > sizeof plan->arguments)
            return err_set(err, -EINVAL, "%s: the device name in '%s' is too long", conf->name,
                           conf->vdev);
        memcpy(port->device, conf->vdev, name);
        snprintf(plan->arguments, sizeof plan->arguments, "%s",
                 conf->vdev + name + (conf->vdev[name] == ','));
        return 0;
    }
    if (conf->iface == NULL)
        return err_set(err, -EINVAL, "%s: dpdk needs one of iface, pci and vdev", conf->name);
    if ((rc = iface_open(&port->iface, conf, err)) != 0)
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

static int attach(struct transport_port *port, const struct plan *plan, struct err *err)
{
    const struct port_conf *conf = port->conf;
    const char *remedy =
        conf->pci != NULL
            ? "is it bound to vfio-pci (`switchbench bind`), and may this user open /dev/vfio?"
        : conf->iface != NULL ? "it needs CAP_NET_RAW and CAP_NET_ADMIN, and a driver of DPDK's"
                              : "see the device's page in DPDK's guide for its arguments";
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
                           conf->name, conf->iface != NULL ? conf->iface : port->device, remedy,
                           eal_log_first());
        port->attached = true;
    }
    if ((rc = rte_eth_dev_info_get(port->id, &info)) != 0)
        return err_set(err, rc, "%s: DPDK does not know the device '%s'", port->conf->name,
                       port->device);
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

/* A core's mempool cache holds up to one and a half times its size before it is emptied
 * (rte_mempool); a queue has two users, its worker and the main thread. */
uint32_t receive_pool_frames(uint16_t receives, uint16_t sends)
{
    uint32_t held = (uint32_t)receives + sends + FRAME_FORWARD_QUEUE + FRAME_BURST_MAX;

    return rte_align32pow2(held + 2 * (MEMPOOL_CACHE * 3 / 2) + 1) - 1;
}

/* No rate limits of queues are used: rte_eth_set_queue_rate_limit() takes whole Mbit/s without
 * preamble and gap, which is not exact, so the sender paces frames itself. No checksum offloads are
 * used for sending, because sent checksums are already correct (frame.h). */
int choose_queues(struct queue_layout *layout, const struct port_conf *conf,
                  const struct rte_eth_dev_info *info, struct err *err)
{
    uint32_t most =
        RTE_MIN((uint32_t)RTE_MIN(info->max_rx_queues, info->max_tx_queues), PORT_QUEUES_MAX);
    uint32_t wanted = conf->queues > 0 ? conf->queues : 1;

    if (wanted > most && !conf->queues_at_most)
        return err_set(err, -EINVAL, "%s: queues: %u is more than the port's device has (%s: %u)",
                       conf->name, wanted, info->driver_name, most);
    wanted = RTE_MAX(RTE_MIN(wanted, most), 1u);
    *layout = (struct queue_layout){.queues = (uint16_t)wanted, .send_queues = (uint16_t)wanted};
    if ((info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0 &&
        wanted * 2 <= info->max_tx_queues) {
        layout->send_offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
        layout->send_queues = (uint16_t)(wanted * 2);
    }
    if (wanted > 1)
        layout->spread_by = info->flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
    return 0;
}

static int make_queues(struct transport_port *port, const struct queue_layout *layout)
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
        queue->send = apart ? 2 * i : i;
        queue->pass = apart ? 2 * i + 1 : i;
    }
    return 0;
}

/* Set up the memory and descriptor rings of all queues, on the device's NUMA node. */
static int set_up_queues(struct transport_port *port, const struct plan *plan,
                         const struct queue_layout *layout, struct err *err)
{
    uint16_t receives = DESCRIPTORS, sends = DESCRIPTORS;
    unsigned node = (unsigned)rte_eth_dev_socket_id(port->id);
    int rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->id, &receives, &sends);
    uint32_t received =
        plan->receive_frames > 0 ? plan->receive_frames : receive_pool_frames(receives, sends);
    uint32_t receive_room = plan->data_room > 0 ? plan->data_room : port->room_max + DRIVER_HEADER;
    uint32_t sent = port->conf->pci != NULL ? FRAMES + sends : FRAMES;

    for (uint16_t i = 0; i < layout->queues && rc == 0; i++) {
        struct port_queue *queue = &port->queues[i];

        queue->receive_pool = make_pool(queue, "in", received, receive_room);
        queue->send_pool = make_pool(queue, "out", sent, port->room_max);
        if (queue->receive_pool == NULL || queue->send_pool == NULL)
            return err_set(err, -ENOMEM, "%s: no memory for packets (%s): %s", port->conf->name,
                           rte_strerror(rte_errno), eal_memory_remedy());
        rc = rte_eth_rx_queue_setup(port->id, i, receives, node, NULL, queue->receive_pool);
    }
    for (uint16_t i = 0; i < layout->send_queues && rc == 0; i++)
        rc = rte_eth_tx_queue_setup(port->id, i, sends, node, NULL);
    return rc;
}

static int start_queues(struct transport_port *port, const struct plan *plan, struct err *err)
{
    struct rte_eth_conf conf = {.rxmode = {.mtu = 0}};
    struct rte_eth_dev_info info;
    struct queue_layout layout = {0};
    uint32_t most;
    int rc;

    if ((rc = rte_eth_dev_info_get(port->id, &info)) != 0 ||
        (rc = choose_queues(&layout, port->conf, &info, err)) != 0)
        return err_set(err, rc, "%s: DPDK does not know the device '%s'", port->conf->name,
                       port->device);
    /* The largest frame: the interface's MTU; other devices' own maximum, up to 9,216. Some state
     * it by frame and leave the MTU open (memif). */
    port->frame_max = plan->frame_max;
    if (plan->frame_max == 0) {
        most = RTE_MIN(info.max_rx_pktlen, FRAME_SIZE_MAX) - FRAME_ETHERNET - FRAME_FCS;
        conf.rxmode.mtu = RTE_MIN(info.max_mtu, most);
        port->frame_max = conf.rxmode.mtu + FRAME_ETHERNET + FRAME_FCS;
    }
    port->frame_max = RTE_MIN(port->frame_max, FRAME_SIZE_MAX);
    port->room_max = RTE_MAX(port->frame_max - FRAME_FCS + FRAME_VLAN, FRAME_TEMPLATE);
    conf.txmode.offloads = layout.send_offloads;
    if (layout.spread_by != 0) {
        conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
        conf.rx_adv_conf.rss_conf.rss_hf = layout.spread_by;
    }
    eal_log_clear();
    rc = make_queues(port, &layout);
    if (rc == 0)
        rc = rte_eth_dev_configure(port->id, layout.queues, layout.send_queues, &conf);
    if (rc == 0)
        rc = set_up_queues(port, plan, &layout, err);
    if (rc == 0)
        rc = rte_eth_dev_start(port->id);
    if (rc != 0)
        return err_set(err, rc, "%s: '%s' does not start: %s (%s)%s", port->conf->name,
                       port->device, rte_strerror(-rc), eal_log_first(),
                       strcmp(port->driver, "net_af_xdp") == 0
                           ? "; AF_XDP needs a driver with XDP, an MTU of 3,000 or so at most, and "
                             "no other XDP program"
                           : "");
    return 0;
}

int port_device_open(struct transport_port *port, struct err *err)
{
    struct plan plan;
    int rc;

    if ((rc = plan_device(port, &plan, err)) != 0 || (rc = attach(port, &plan, err)) != 0 ||
        (rc = start_queues(port, &plan, err)) != 0)
        return rc;
    if (strcmp(port->driver, "net_af_packet") == 0)
        iface_find_ring(&port->iface, plan.ring_frames, plan.ring_slot);
    return 0;
}

void port_device_close(struct transport_port *port)
{
    if (port->driver[0] != '\0') {
        (void)rte_eth_dev_stop(port->id);
        (void)rte_eth_dev_close(port->id);
    }
    if (port->attached)
        (void)rte_eal_hotplug_remove(port->conf->pci != NULL ? "pci" : "vdev", port->device);
    ip_port_close(&port->iface.ip);
    for (uint16_t i = 0; i < port->queue_count; i++) {
        rte_mempool_free(port->queues[i].receive_pool);
        rte_mempool_free(port->queues[i].send_pool);
    }
    free(port->queues);
}
