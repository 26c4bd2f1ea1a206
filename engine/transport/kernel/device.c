/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include "ethtool.h"
#include "sysfs.h"
#include "transport.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- address --- */

static bool parse_address(const char *text, struct sockaddr_storage *address)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;

    memset(address, 0, sizeof *address);
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1)
        address->ss_family = AF_INET;
    else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1)
        address->ss_family = AF_INET6;
    return address->ss_family != AF_UNSPEC;
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr *b)
{
    if (a->ss_family != b->sa_family)
        return false;
    if (a->ss_family == AF_INET)
        return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)(const void *)b)->sin_addr.s_addr;
    return memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
                  &((const struct sockaddr_in6 *)(const void *)b)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

/* The kernel owns all of 127.0.0.0/8 on the loopback interface, but lists one address only. */
static bool in_loopback_net(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET &&
           ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) >> 24 == 127;
}

/* How willingly an address is taken when none is named; 0: never. */
static int rank_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return 3;
    if (address->sa_family != AF_INET6)
        return 0;
    return IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr)
               ? 1
               : 2;
}

static void keep_address(struct sockaddr_storage *address, char *iface, const struct ifaddrs *found)
{
    bool v4 = found->ifa_addr->sa_family == AF_INET;

    memset(address, 0, sizeof *address);
    memcpy(address, found->ifa_addr, v4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    snprintf(iface, IF_NAMESIZE, "%s", found->ifa_name);
}

static int find_named(const struct port_conf *conf, const struct ifaddrs *all,
                      struct sockaddr_storage *address, char *iface, struct err *err)
{
    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr || !same_address(address, a->ifa_addr))
            continue;
        if (conf->iface && strcmp(conf->iface, a->ifa_name) != 0)
            continue;
        keep_address(address, iface, a);
        return 0;
    }
    if (in_loopback_net(address) && (!conf->iface || strcmp(conf->iface, "lo") == 0)) {
        snprintf(iface, IF_NAMESIZE, "lo");
        return 0;
    }
    return err_set(err, -EADDRNOTAVAIL, "%s: address %s is not on %s%s; see `ip address`",
                   conf->name, conf->tcp_address, conf->iface ? "interface " : "any interface",
                   conf->iface ? conf->iface : "");
}

static int find_first(const struct port_conf *conf, const char *transport,
                      const struct ifaddrs *all, struct sockaddr_storage *address, char *iface,
                      struct err *err)
{
    int best = 0;

    for (const struct ifaddrs *a = all; a; a = a->ifa_next) {
        if (!a->ifa_addr || strcmp(a->ifa_name, conf->iface) != 0)
            continue;
        if (rank_of(a->ifa_addr) > best) {
            best = rank_of(a->ifa_addr);
            keep_address(address, iface, a);
        }
    }
    if (best > 0)
        return 0;
    if (if_nametoindex(conf->iface) == 0)
        return err_set(err, -ENODEV, "%s: there is no interface %s%s%s", conf->name, conf->iface,
                       conf->netns ? " in namespace " : "", conf->netns ? conf->netns : "");
    return err_set(err, -EADDRNOTAVAIL, "%s: interface %s has no IP address; %s needs one",
                   conf->name, conf->iface, transport);
}

int kernel_device_address(const struct port_conf *conf, const char *transport,
                          struct sockaddr_storage *address, char *iface, struct err *err)
{
    struct ifaddrs *all;
    int rc;

    if (!conf->tcp_address && !conf->iface)
        return err_set(err, -EINVAL, "%s: %s needs an interface (iface) or an address", conf->name,
                       transport);
    if (conf->tcp_address && !parse_address(conf->tcp_address, address))
        return err_set(err, -EINVAL, "%s: `%s` is not an IPv4 or IPv6 address", conf->name,
                       conf->tcp_address);
    if (getifaddrs(&all))
        return err_set(err, -errno, "%s: can't list addresses: %s", conf->name, strerror(errno));
    rc = conf->tcp_address ? find_named(conf, all, address, iface, err)
                           : find_first(conf, transport, all, address, iface, err);
    freeifaddrs(all);
    return rc;
}

/* --- ethtool --- */

uint64_t kernel_device_speed_bps(int fd, const char *iface)
{
    return strcmp(ethtool_driver(fd, iface).driver, "veth") == 0 ? 0 : ethtool_speed_bps(fd, iface);
}

bool kernel_device_has_wire(int fd, const char *iface)
{
    return ethtool_driver(fd, iface).bus_info[0] != '\0';
}

int kernel_device_numa_node(int fd, const char *iface)
{
    /* By the bus address: /sys/class/net shows only the namespace that mounted it. */
    const struct ethtool_drvinfo driver = ethtool_driver(fd, iface);

    return driver.bus_info[0] != '\0'
               ? (int)sysfs_number(-1, "/sys/bus/pci/devices/%s/numa_node", driver.bus_info)
               : -1;
}

void kernel_device_offloads(int fd, const char *iface, char *text, size_t size)
{
    static const struct {
        uint32_t command;
        const char *word;
    } offloads[] = {
        {ETHTOOL_GTXCSUM, "tx"}, {ETHTOOL_GRXCSUM, "rx"}, {ETHTOOL_GTSO, "tso"},
        {ETHTOOL_GGSO, "gso"},   {ETHTOOL_GGRO, "gro"},
    };
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof offloads / sizeof offloads[0]; i++)
        if (ethtool_number(fd, iface, offloads[i].command) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? "," : "",
                                     offloads[i].word);
}
