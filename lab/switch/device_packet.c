/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Kernel interface at a port of the modelled switch, through a packet socket: a ring shared with
 * the kernel for received frames (packet(7), TPACKET_V2), so that polling needs no system call, and
 * sendmmsg(2) for sent frames.
 */
#include "device.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <rte_mbuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK (1u << 16)
#define BLOCKS_MOST 32
#define FRAME_BYTES 1538 /* frame bytes assumed per slot */
#define VLAN_TAG 4
#define ADDRESSES 12
#define SEND_BUFFER (16 << 20)

struct packet {
    struct device device;
    int fd;
    uint8_t *ring; /* MAP_FAILED: none */
    uint32_t slot; /* bytes */
    uint32_t blocks;
    uint32_t slots;
    uint32_t at;
};

/* Copy a received frame out of the ring, with the 802.1Q tag that the kernel has removed. */
static void copy_in(struct rte_mbuf *frame, const struct tpacket2_hdr *head)
{
    const uint8_t *from = (const uint8_t *)head + head->tp_mac;
    bool tagged = (head->tp_status & TP_STATUS_VLAN_VALID) != 0;
    uint16_t length = (uint16_t)(head->tp_snaplen + (tagged ? VLAN_TAG : 0));
    uint8_t *to = (uint8_t *)rte_pktmbuf_append(frame, length);
    uint16_t type =
        (head->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? head->tp_vlan_tpid : ETHERTYPE_VLAN;

    if (!tagged) {
        memcpy(to, from, length);
        return;
    }
    memcpy(to, from, ADDRESSES);
    to[ADDRESSES] = (uint8_t)(type >> 8);
    to[ADDRESSES + 1] = (uint8_t)type;
    to[ADDRESSES + 2] = (uint8_t)(head->tp_vlan_tci >> 8);
    to[ADDRESSES + 3] = (uint8_t)head->tp_vlan_tci;
    memcpy(to + ADDRESSES + VLAN_TAG, from + ADDRESSES, length - ADDRESSES - VLAN_TAG);
}

static uint16_t receive(struct device *device, struct rte_mbuf **frames, uint16_t most)
{
    struct packet *packet = (struct packet *)device;
    uint16_t count = 0;

    while (count < most) {
        /* Slots fill blocks without rest. */
        struct tpacket2_hdr *head =
            (struct tpacket2_hdr *)(packet->ring + (size_t)packet->at * packet->slot);
        uint32_t status = __atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE);
        struct rte_mbuf *frame;

        if ((status & TP_STATUS_USER) == 0)
            break;
        frame = rte_pktmbuf_alloc(device->pool);
        if (frame == NULL)
            break;
        if (head->tp_snaplen < head->tp_len || head->tp_snaplen < ADDRESSES ||
            head->tp_snaplen + VLAN_TAG > rte_pktmbuf_tailroom(frame)) {
            rte_pktmbuf_free(frame);
            device->lost++;
        } else {
            copy_in(frame, head);
            frames[count++] = frame;
        }
        __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        packet->at = (packet->at + 1) % packet->slots;
    }
    return count;
}

static uint16_t send_frames(struct device *device, struct rte_mbuf **frames, uint16_t count)
{
    struct packet *packet = (struct packet *)device;
    struct mmsghdr messages[DEVICE_BURST];
    struct iovec parts[DEVICE_BURST];
    int sent;

    for (uint16_t i = 0; i < count; i++) {
        parts[i] = (struct iovec){rte_pktmbuf_mtod(frames[i], void *), frames[i]->data_len};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &parts[i], .msg_iovlen = 1}};
    }
    sent = sendmmsg(packet->fd, messages, count, MSG_DONTWAIT);
    if (sent <= 0)
        return 0;
    for (int i = 0; i < sent; i++)
        rte_pktmbuf_free(frames[i]);
    return (uint16_t)sent;
}

static uint64_t lost(struct device *device)
{
    struct packet *packet = (struct packet *)device;
    struct tpacket_stats stats = {0};
    socklen_t size = sizeof stats;
    uint64_t own = device->lost;

    device->lost = 0;
    if (getsockopt(packet->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size) != 0)
        return own;
    return own + stats.tp_drops;
}

static void close_packet(struct device *device)
{
    struct packet *packet = (struct packet *)device;

    if (packet->ring != MAP_FAILED)
        munmap(packet->ring, (size_t)BLOCK * packet->blocks);
    if (packet->fd >= 0)
        close(packet->fd);
    free(packet);
}

static const struct device_kind kind = {
    .receive = receive, .send = send_frames, .lost = lost, .close = close_packet};

/* Compute the size of a ring slot, and the number of blocks of slots for the bytes that the
 * interface must hold. */
static void size_ring(struct packet *packet, const struct device_need *need)
{
    uint32_t wanted = need->length_max + VLAN_TAG + TPACKET_ALIGN(TPACKET2_HDRLEN) + 64;
    uint64_t frames = need->room_bytes / FRAME_BYTES;

    packet->slot = 2048;
    while (packet->slot < wanted)
        packet->slot *= 2;
    packet->blocks = (uint32_t)(frames / (BLOCK / packet->slot)) + 1;
    packet->blocks = packet->blocks < BLOCKS_MOST ? packet->blocks : BLOCKS_MOST;
    packet->slots = packet->blocks * (BLOCK / packet->slot);
}

static int set(const struct packet *packet, int option, const void *value, socklen_t size)
{
    return setsockopt(packet->fd, SOL_PACKET, option, value, size);
}

int device_open_packet(struct device **device, const char *iface, const struct device_need *need,
                       struct err *err)
{
    struct packet *packet = calloc(1, sizeof *packet);
    const int version = TPACKET_V2, on = 1, room = SEND_BUFFER, index = (int)if_nametoindex(iface);
    const struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
    const struct packet_mreq every = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
    struct tpacket_req request = {.tp_block_size = BLOCK};
    int rc;

    if (packet == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    packet->device = (struct device){.kind = &kind, .pool = need->pool};
    packet->ring = MAP_FAILED;
    size_ring(packet, need);
    request.tp_block_nr = packet->blocks;
    request.tp_frame_size = packet->slot;
    request.tp_frame_nr = packet->slots;
    /* Bound last: nothing comes before. What it sent itself is not to come back; no queue of the
     * kernel's before the wire. */
    packet->fd = index > 0 ? socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0) : -1;
    if (packet->fd < 0 || set(packet, PACKET_VERSION, &version, sizeof version) != 0 ||
        set(packet, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
        set(packet, PACKET_QDISC_BYPASS, &on, sizeof on) != 0 ||
        set(packet, PACKET_RX_RING, &request, sizeof request) != 0 ||
        (packet->ring = mmap(NULL, (size_t)BLOCK * packet->blocks, PROT_READ | PROT_WRITE,
                             MAP_SHARED, packet->fd, 0)) == MAP_FAILED ||
        set(packet, PACKET_ADD_MEMBERSHIP, &every, sizeof every) != 0 ||
        bind(packet->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        rc = index > 0 ? -errno : -ENODEV;
        close_packet(&packet->device);
        return err_set(err, rc, "interface %s can't be used: %s", iface, strerror(-rc));
    }
    (void)setsockopt(packet->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    *device = &packet->device;
    return 0;
}
