/* SPDX-License-Identifier: BSD-3-Clause */
#include "iface.h"

#include "ethtool.h"
#include "netlink.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int read_facts(struct iface *iface, struct err *err)
{
    struct link_state link;
    int rc;

    iface->index = (int)if_nametoindex(iface->name);
    if (iface->index == 0)
        return err_set(err, -ENODEV, "there is no interface '%s' here: see 'ip link'", iface->name);
    if ((rc = link_read(iface->route_fd, iface->index, &link)) != 0)
        return err_set(err, rc, "interface '%s' can't be read: %s", iface->name, strerror(-rc));
    if (link.type != ARPHRD_ETHER)
        return err_set(err, -EINVAL, "interface '%s' is not an Ethernet interface", iface->name);
    if (!(link.flags & IFF_UP))
        return err_set(err, -ENETDOWN, "interface '%s' is down: 'ip link set %s up'", iface->name,
                       iface->name);
    memcpy(iface->mac, link.mac, sizeof iface->mac);
    iface->mtu = link.mtu;
    iface->on_bus = ethtool_driver(iface->packet_fd, iface->name).bus_info[0] != '\0';
    /* Only a device on a bus has a reliable speed: veth, bridges and the like report 10G. */
    iface->link_bps = iface->on_bus ? ethtool_speed_bps(iface->packet_fd, iface->name) : 0;
    iface->vlan_offloaded =
        ethtool_number(iface->packet_fd, iface->name, ETHTOOL_GFLAGS) & ETH_FLAG_RXVLAN;
    return 0;
}

#define VLAN_TAG 4u /* bytes */
#define WAKES_CLEARED 64u

static bool set_filter(int fd, struct sock_filter *code, size_t bytes)
{
    struct sock_fprog program = {.len = (unsigned short)(bytes / sizeof *code), .filter = code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

/* Binds the socket before the driver's: the kernel passes a frame last to the socket that was
 * bound first. */
static bool bind_filtered(const struct iface *iface)
{
    struct sock_filter none[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = iface->index};
    int on = 1;

    return setsockopt(iface->packet_fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) == 0 &&
           set_filter(iface->packet_fd, none, sizeof none) &&
           bind(iface->packet_fd, (struct sockaddr *)&address, sizeof address) == 0;
}

void iface_wake_by(struct iface *iface, const uint16_t tags[2], uint32_t offset, bool vlan)
{
    /* A frame that is too short ends the program without waking a thread. */
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, vlan ? offset - VLAN_TAG : offset),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(tags[0]), 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(tags[1]), 4, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, offset),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(tags[0]), 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohs(tags[1]), 1, 0),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, 1), /* one byte is kept */
    };

    if (iface->wakes)
        (void)set_filter(iface->packet_fd, code, sizeof code);
}

void iface_wake_clear(const struct iface *iface)
{
    char byte;

    /* Bounded: the rest wakes once more. */
    for (unsigned i = 0; i < WAKES_CLEARED; i++)
        if (recv(iface->packet_fd, &byte, sizeof byte, MSG_DONTWAIT | MSG_TRUNC) < 0)
            return;
}

int iface_open(struct iface *iface, const char *name, struct err *err)
{
    int rc;

    *iface = (struct iface){.packet_fd = -1, .route_fd = -1};
    if (strlen(name) >= sizeof iface->name)
        return err_set(err, -EINVAL, "'%s' is too long for the name of an interface", name);
    memcpy(iface->name, name, strlen(name));
    iface->packet_fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (iface->packet_fd < 0)
        return err_set(err, -errno,
                       "raw frames on '%s' need the capabilities CAP_NET_RAW and CAP_NET_ADMIN: "
                       "run as root, or use transport tcp",
                       name);
    iface->route_fd = netlink_open();
    rc = iface->route_fd < 0
             ? err_set(err, iface->route_fd, "no rtnetlink socket: %s", strerror(-iface->route_fd))
             : read_facts(iface, err);
    if (rc != 0)
        iface_close(iface);
    else
        iface->wakes = bind_filtered(iface);
    return rc;
}

int iface_promiscuous(struct iface *iface, struct err *err)
{
    struct packet_mreq request = {.mr_ifindex = iface->index, .mr_type = PACKET_MR_PROMISC};

    if (setsockopt(iface->packet_fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) !=
        0)
        return err_set(err, -errno, "interface '%s' can't be made promiscuous: %s", iface->name,
                       strerror(errno));
    return 0;
}

bool iface_running(const struct iface *iface)
{
    struct link_state link;

    return link_read(iface->route_fd, iface->index, &link) == 0 && link_is_running(&link);
}

void iface_counts_begin(struct iface *iface)
{
    struct link_state link;

    (void)link_read(iface->route_fd, iface->index, &link);
    iface->begun = link.stats;
    link_drops_begin(&iface->drops, &link);
}

int iface_counts(struct iface *iface, struct link_state *link)
{
    int rc = link_read(iface->route_fd, iface->index, link);

    if (rc == 0)
        link_drops_update(&iface->drops, link);
    return rc;
}

/* Whether a socket is in this namespace: sockets of other ports may have an interface of the
 * same index elsewhere. */
static bool same_namespace(const struct iface *iface, int fd)
{
    uint64_t ours = 0, theirs = 1;
    socklen_t size = sizeof ours;

    return getsockopt(iface->packet_fd, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &size) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &size) == 0 && ours == theirs;
}

static bool is_ring(const struct iface *iface, int fd)
{
    struct sockaddr_ll address = {0};
    socklen_t size = sizeof address, int_size = sizeof(int);
    int domain = 0;

    return fd != iface->packet_fd &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &int_size) == 0 && domain == AF_PACKET &&
           getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
           address.sll_ifindex == iface->index && address.sll_protocol == htons(ETH_P_ALL) &&
           same_namespace(iface, fd);
}

/* Packet sockets also receive frames that other sockets of the host send by the interface.
 * PACKET_IGNORE_OUTGOING does not affect the driver's sockets in a fanout group; a filter does. */
static void ignore_outgoing(int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };

    (void)set_filter(fd, code, sizeof code);
}

#define SLOT_OVERHEAD 1024u /* the kernel's overhead of a frame: an sk_buff with its parts */

void iface_find_ring(struct iface *iface, uint32_t frames, uint32_t slot_bytes)
{
    uint64_t ring = (uint64_t)frames * (slot_bytes + SLOT_OVERHEAD);
    DIR *folder = opendir("/proc/self/fd");
    socklen_t size = sizeof iface->send_buffer;

    iface->send_ring = ring < INT_MAX / 2 ? (int)ring : INT_MAX / 2;
    if (getsockopt(iface->packet_fd, SOL_SOCKET, SO_SNDBUF, &iface->send_buffer, &size) == 0)
        iface->send_buffer /= 2; /* the kernel doubles the requested value */
    if (folder == NULL)
        return;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        if (entry->d_name[0] != '.' && iface->ring_count < IFACE_RINGS_MAX &&
            is_ring(iface, atoi(entry->d_name)))
            iface->ring_fds[iface->ring_count++] = atoi(entry->d_name);
    closedir(folder);
    for (unsigned i = 0; i < iface->ring_count; i++)
        ignore_outgoing(iface->ring_fds[i]);
}

int64_t iface_ring_drops(struct iface *iface)
{
    struct tpacket_stats stats;
    socklen_t size = sizeof stats;

    for (unsigned i = 0; i < iface->ring_count; i++) {
        if (getsockopt(iface->ring_fds[i], SOL_PACKET, PACKET_STATISTICS, &stats, &size) != 0)
            return -1;
        iface->ring_drops += stats.tp_drops; /* reading resets the counter */
    }
    return iface->ring_count > 0 ? (int64_t)iface->ring_drops : -1;
}

void iface_cork(const struct iface *iface, bool paced)
{
    int bytes = paced ? iface->send_ring : iface->send_buffer;

    for (unsigned i = 0; i < iface->ring_count && !iface->on_bus; i++)
        if (setsockopt(iface->ring_fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
            (void)setsockopt(iface->ring_fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

bool iface_push(const struct iface *iface)
{
    bool more = false;

    /* 0: nothing waits. Otherwise the number of sent bytes, after which the send buffer may have
     * been full. */
    for (unsigned i = 0; i < iface->ring_count; i++) {
        ssize_t sent = send(iface->ring_fds[i], NULL, 0, MSG_DONTWAIT);

        more = more || sent > 0 || (sent < 0 && (errno == EAGAIN || errno == ENOBUFS));
    }
    return more;
}

void iface_close(struct iface *iface)
{
    if (iface->packet_fd >= 0)
        close(iface->packet_fd);
    if (iface->route_fd >= 0)
        close(iface->route_fd);
    iface->packet_fd = iface->route_fd = -1;
    iface->ring_count = 0;
}
