/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_address.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIDS_MAX 1024

static_assert(sizeof(struct verbs_address) == 40, "layout");
static_assert(sizeof(struct verbs_address) <= BLOB_BYTES_MAX, "fits into a blob");

static int read_gids(struct transport_port *port, struct err *err)
{
    struct ibv_gid_entry *entries = calloc(GIDS_MAX, sizeof *entries);
    ssize_t count;

    port->gids = calloc(GIDS_MAX, sizeof *port->gids);
    if (entries == NULL || port->gids == NULL) {
        free(entries);
        return err_set(err, -ENOMEM, "%s: out of memory", port->label);
    }
    count = ibv_query_gid_table(port->context, entries, GIDS_MAX, 0);
    for (ssize_t i = 0; i < count; i++) {
        struct verbs_gid *gid = &port->gids[port->gid_count];

        if (entries[i].port_num != port->number)
            continue;
        gid->index = entries[i].gid_index;
        gid->type = (enum verbs_gid_type)entries[i].gid_type;
        memcpy(gid->bytes, entries[i].gid.raw, sizeof gid->bytes);
        if (entries[i].ndev_ifindex > 0 && port->netdev[0] == '\0')
            if_indextoname(entries[i].ndev_ifindex, port->netdev);
        port->gid_count++;
    }
    free(entries);
    return 0;
}

static int wanted_family(const struct port_conf *conf)
{
    if (conf->tcp_address != NULL)
        return strchr(conf->tcp_address, ':') != NULL ? 6 : 4;
    return conf->ipv6 != NULL && conf->ipv4 == NULL ? 6 : 0;
}

const struct verbs_gid *verbs_port_gid(const struct transport_port *port, int index)
{
    for (size_t i = 0; i < port->gid_count; i++)
        if ((int)port->gids[i].index == index)
            return &port->gids[i];
    return NULL;
}

/* On iWARP, where GIDs are no addresses: the first of the interface. */
static void find_interface_ip(struct transport_port *port)
{
    struct ifaddrs *list = NULL;

    if (port->netdev[0] == '\0' || getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *a = list; a != NULL && port->ip.sin6_family == 0; a = a->ifa_next) {
        if (a->ifa_addr == NULL || a->ifa_addr->sa_family != AF_INET ||
            strcmp(a->ifa_name, port->netdev) != 0)
            continue;
        port->ip.sin6_family = AF_INET6;
        port->ip.sin6_addr.s6_addr[10] = port->ip.sin6_addr.s6_addr[11] = 0xff;
        memcpy(&port->ip.sin6_addr.s6_addr[12],
               &((const struct sockaddr_in *)a->ifa_addr)->sin_addr, 4);
    }
    freeifaddrs(list);
}

int verbs_port_read_addresses(struct transport_port *port, struct err *err)
{
    bool roce = port->ethernet && !port->iwarp;
    int rc = read_gids(port, err);

    if (rc < 0)
        return rc;
    if (port->netdev[0] == '\0' && port->conf->iface != NULL)
        snprintf(port->netdev, sizeof port->netdev, "%s", port->conf->iface);
    port->gid = roce ? verbs_gid_choose(port->gids, port->gid_count, wanted_family(port->conf))
                     : verbs_port_gid(port, 0);
    if (!roce || port->gid == NULL) {
        find_interface_ip(port);
        return 0;
    }
    port->ip.sin6_family = AF_INET6;
    memcpy(&port->ip.sin6_addr, port->gid->bytes, sizeof port->ip.sin6_addr);
    if (verbs_gid_is_link_local(port->gid->bytes))
        port->ip.sin6_scope_id = if_nametoindex(port->netdev);
    return 0;
}

void verbs_address_write(const struct transport_port *port, uint16_t cm_port, struct blob *blob)
{
    struct verbs_address address = {.ethernet = port->ethernet,
                                    .iwarp = port->iwarp,
                                    .lid = htons(port->attributes.lid),
                                    .cm_port = cm_port};

    if (port->gid != NULL)
        memcpy(address.gid, port->gid->bytes, sizeof address.gid);
    if (port->ip.sin6_family != 0)
        memcpy(address.ip, &port->ip.sin6_addr, sizeof address.ip);
    blob->size = sizeof address;
    memcpy(blob->bytes, &address, sizeof address);
}

bool verbs_address_read(struct verbs_address *address, const struct blob *blob)
{
    if (blob->size != sizeof *address)
        return false;
    memcpy(address, blob->bytes, sizeof *address);
    return true;
}
