/* SPDX-License-Identifier: BSD-3-Clause */
#include "iface.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define VLAN_TAG 4u /* bytes */
#define WAKES_CLEARED 64u

static bool set_filter(int fd, struct sock_filter *code, size_t bytes)
{
    struct sock_fprog program = {.len = (unsigned short)(bytes / sizeof *code), .filter = code};

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
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
        (void)set_filter(iface->ip.socket, code, sizeof code);
}

void iface_wake_clear(const struct iface *iface)
{
    char byte;

    /* Bounded: the rest wakes once more. */
    for (unsigned i = 0; i < WAKES_CLEARED; i++)
        if (recv(iface->ip.socket, &byte, sizeof byte, MSG_DONTWAIT | MSG_TRUNC) < 0)
            return;
}

int iface_open(struct iface *iface, const struct port_conf *conf, struct err *err)
{
    struct sock_filter none[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int rc = ip_port_open(&iface->ip, conf, "dpdk", SOCK_RAW, err), fd = iface->ip.socket, on = 1;

    /* Bound before the driver's: the kernel passes a frame last to the socket that was bound first.
     */
    address.sll_ifindex = iface->ip.ifindex;
    iface->wakes = rc == 0 &&
                   setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) == 0 &&
                   set_filter(fd, none, sizeof none) &&
                   bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    return rc;
}

int iface_promiscuous(struct iface *iface, struct err *err)
{
    struct packet_mreq request = {.mr_ifindex = iface->ip.ifindex, .mr_type = PACKET_MR_PROMISC};

    if (setsockopt(iface->ip.socket, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request) !=
        0)
        return err_set(err, -errno, "interface '%s' can't be made promiscuous: %s", iface->ip.iface,
                       strerror(errno));
    return 0;
}

/* Return whether a descriptor is the AF_PACKET driver's socket on this interface. The namespace is
 * compared too: in other namespaces, interfaces of other ports may have the same index. */
static bool is_ring(const struct iface *iface, int fd)
{
    struct sockaddr_ll address = {0};
    uint64_t ours = 0, theirs = 1;
    socklen_t size = sizeof address, int_size = sizeof(int), cookie_size = sizeof ours;
    int domain = 0;

    return fd != iface->ip.socket &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &int_size) == 0 && domain == AF_PACKET &&
           getsockname(fd, (struct sockaddr *)&address, &size) == 0 &&
           address.sll_ifindex == iface->ip.ifindex && address.sll_protocol == htons(ETH_P_ALL) &&
           getsockopt(iface->ip.socket, SOL_SOCKET, SO_NETNS_COOKIE, &ours, &cookie_size) == 0 &&
           getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &theirs, &cookie_size) == 0 &&
           ours == theirs;
}

#define SLOT_OVERHEAD 1024u /* the kernel's overhead of a frame: an sk_buff with its parts */

void iface_find_ring(struct iface *iface, uint32_t frames, uint32_t slot_bytes)
{
    struct sock_filter incoming[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    uint64_t ring = (uint64_t)frames * (slot_bytes + SLOT_OVERHEAD);
    DIR *folder = opendir("/proc/self/fd");
    socklen_t size = sizeof iface->send_buffer;

    iface->send_ring = ring < INT_MAX / 2 ? (int)ring : INT_MAX / 2;
    if (getsockopt(iface->ip.socket, SOL_SOCKET, SO_SNDBUF, &iface->send_buffer, &size) == 0)
        iface->send_buffer /= 2; /* the kernel doubles the requested value */
    if (folder == NULL)
        return;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder))
        if (entry->d_name[0] != '.' && iface->ring_count < IFACE_RINGS_MAX &&
            is_ring(iface, atoi(entry->d_name)))
            iface->ring_fds[iface->ring_count++] = atoi(entry->d_name);
    closedir(folder);
    /* Packet sockets also receive frames that other sockets of the host send by the interface.
     * PACKET_IGNORE_OUTGOING does not affect the driver's sockets in a fanout group; a filter does.
     */
    for (unsigned i = 0; i < iface->ring_count; i++)
        (void)set_filter(iface->ring_fds[i], incoming, sizeof incoming);
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

    for (unsigned i = 0; i < iface->ring_count && !iface->ip.has_wire; i++)
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
