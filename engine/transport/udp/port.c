/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "netns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IPV4_UDP_HEADERS 28u
#define IPV6_UDP_HEADERS 48u

/* A column of /proc/net/snmp: a line of names, then one of numbers, both begin with "Udp:". */
static int64_t column(const char *text, const char *wanted)
{
    const char *names = strstr(text, "Udp: ");
    const char *numbers = names != NULL ? strstr(names + 1, "Udp: ") : NULL;
    size_t length = strlen(wanted);

    while (numbers != NULL && *names != '\n') {
        names += strcspn(names, " \n") + 1;
        numbers += strcspn(numbers, " \n") + 1;
        if (strncmp(names, wanted, length) == 0)
            return strtoll(numbers, NULL, 10);
        if (names[-1] == '\n')
            break;
    }
    return 0;
}

/* Datagrams whose UDP checksum was wrong, of all sockets of the namespace: damaged on their way.
 * The file stays in the namespace where it was opened. */
static int64_t damaged(const struct transport_port *port)
{
    char text[8192] = "";
    ssize_t got = pread(port->statistics, text, sizeof text - 1, 0);
    const char *v6;

    if (got <= 0)
        return 0;
    if (port->ip.address.ss_family == AF_INET)
        return column(text, "InCsumErrors");
    v6 = strstr(text, "Udp6InCsumErrors");
    return v6 != NULL ? strtoll(v6 + strlen("Udp6InCsumErrors"), NULL, 10) : 0;
}

/* Datagrams that the kernel had for the socket and did not hand to us. */
static int64_t dropped(const struct transport_port *port)
{
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof info;

    if (getsockopt(port->ip.socket, SOL_SOCKET, SO_MEMINFO, info, &size) ||
        size <= SK_MEMINFO_DROPS * sizeof info[0])
        return 0;
    return info[SK_MEMINFO_DROPS];
}

/* A datagram is one frame. */
static void forbid_fragments(const struct transport_port *port)
{
    int v4 = IP_PMTUDISC_PROBE, v6 = IPV6_PMTUDISC_PROBE;

    if (port->ip.address.ss_family == AF_INET6)
        setsockopt(port->ip.socket, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &v6, sizeof v6);
    else
        setsockopt(port->ip.socket, IPPROTO_IP, IP_MTU_DISCOVER, &v4, sizeof v4);
}

int udp_port_open(struct transport_port **out, const struct port_conf *conf,
                  const struct transport_run *run, struct err *err)
{
    struct transport_port *port = calloc(1, sizeof *port);
    bool v6;
    int home = -1;
    int rc;

    (void)run;
    if (port == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", conf->name);
    port->statistics = -1;
    rc = ip_port_open(&port->ip, conf, "udp", SOCK_DGRAM, err);
    if (rc == 0)
        rc = netns_enter(conf->netns, &home, err);
    if (rc != 0) {
        udp_port_close(port);
        return rc;
    }
    forbid_fragments(port);
    v6 = port->ip.address.ss_family == AF_INET6;
    port->statistics = open(v6 ? "/proc/thread-self/net/snmp6" : "/proc/thread-self/net/snmp",
                            O_RDONLY | O_CLOEXEC);
    netns_leave(home);
    port->base_damaged = damaged(port);
    port->mtu = port->ip.facts.mtu;
    port->ip.facts.queues = 1;
    port->ip.facts.frame_max = port->mtu + UDP_ETHERNET + FRAME_FCS;
    port->headers = v6 ? IPV6_UDP_HEADERS : IPV4_UDP_HEADERS;
    port->segments = port->ip.has_wire;
    *out = port;
    return 0;
}

void udp_port_close(struct transport_port *port)
{
    ip_port_close(&port->ip);
    if (port->statistics >= 0)
        close(port->statistics);
    free(port);
}

/* What passed is the socket's own: the interface's counters are of the kernel's other traffic, too.
 * The socket counts a damaged datagram as dropped; but the network is to blame for it. */
void udp_port_facts(struct transport_port *port, struct port_facts *facts, bool asked)
{
    struct port_hardware *counters = &facts->hardware;
    int64_t bad, drops;

    ip_port_facts(&port->ip, facts, asked);
    if (!asked)
        return;
    bad = damaged(port) - port->base_damaged;
    drops = dropped(port) - bad;
    counters->received_frames = (int64_t)port->received;
    counters->sent_frames = (int64_t)port->sent;
    /* The interface's drops may be others'. */
    if (counters->dropped_send > 0)
        counters->sent_frames -= counters->dropped_send < counters->sent_frames
                                     ? counters->dropped_send
                                     : counters->sent_frames;
    if (counters->dropped_receive >= 0)
        counters->dropped_receive += (drops > 0 ? drops : 0) + (int64_t)port->forward_dropped;
    if (counters->errors >= 0)
        counters->errors += bad;
}
