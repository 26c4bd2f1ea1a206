/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "device_lookup.h"
#include "log.h"
#include "message.h"
#include "sysfs.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 72
#define GIDS_MAX 1024
#define PAYLOAD_STEP (2u << 20)
#define RXE_VENDOR 0xffffffu

static_assert(sizeof(struct verbs_address) == 20, "layout");
static_assert(sizeof(struct verbs_address) <= BLOB_BYTES_MAX, "fits into a blob");

/* --- numbers of the architecture --- */

uint32_t verbs_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

bool verbs_mtu_code(uint32_t bytes, enum ibv_mtu *mtu)
{
    for (*mtu = IBV_MTU_256; *mtu <= IBV_MTU_4096; (*mtu)++)
        if (verbs_mtu_bytes(*mtu) == bytes)
            return true;
    return false;
}

/* --- the device --- */

/* "mlx5_0, mlx5_1"; false: there is none. */
static bool list_names(struct ibv_device **devices, int count, char *names, size_t size)
{
    size_t used = 0;

    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(names + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 ibv_get_device_name(devices[i]));
    return count > 0;
}

static int open_found(struct transport_port *port, struct ibv_device *device, struct err *err)
{
    if (device->transport_type == IBV_TRANSPORT_IWARP)
        return err_set(err, -EOPNOTSUPP,
                       "%s: an iWARP device: verbs is not implemented over iWARP; use tcp there",
                       port->label);
    port->context = ibv_open_device(device);
    if (port->context != NULL)
        return 0;
    return err_set(err, -ENODEV,
                   "%s: can't open the RDMA device (%s): this user may not read and write "
                   "/dev/infiniband/uverbs*, or `modprobe ib_uverbs` was not done",
                   port->label, strerror(errno));
}

static int find_device(struct transport_port *port, struct ibv_device **devices, int count,
                       struct err *err)
{
    char names[256] = "";

    for (int i = 0; i < count; i++)
        if (strcmp(ibv_get_device_name(devices[i]), port->device) == 0)
            return open_found(port, devices[i], err);
    if (!list_names(devices, count, names, sizeof names))
        return err_set(err, -ENODEV,
                       "%s: this machine has no RDMA device, or none that libibverbs can drive; "
                       "look at `rdma link` (a driver such as mlx5_ib, or `rdma link add %s type "
                       "rxe netdev ...`, and the provider's library in ibverbs-providers)",
                       port->label, port->device);
    return err_set(err, -ENODEV, "%s: there is no RDMA device of that name; there are: %s",
                   port->label, names);
}

static int open_device(struct transport_port *port, struct err *err)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    int rc = find_device(port, devices, devices != NULL ? count : 0, err);

    if (devices != NULL)
        ibv_free_device_list(devices);
    return rc;
}

/* The device's name as given, else that of the interface, else that of the PCI device. */
static int find_name(const struct port_conf *conf, char name[NAME_BYTES], struct err *err)
{
    if (conf->rdma != NULL) {
        snprintf(name, NAME_BYTES, "%s", conf->rdma);
        return 0;
    }
    if (conf->iface != NULL && verbs_device_of_interface("/sys", conf->iface, name, NAME_BYTES))
        return 0;
    if (conf->pci != NULL && verbs_device_of_pci("/sys", conf->pci, name, NAME_BYTES))
        return 0;
    return err_set(err, -ENODEV,
                   "port %s: %s has no RDMA device; `rdma link` lists those that there are "
                   "(Soft-RoCE: `rdma link add rxe0 type rxe netdev %s`), and rdma names one, such "
                   "as mlx5_0/1",
                   conf->name,
                   conf->iface != NULL ? conf->iface
                   : conf->pci != NULL ? conf->pci
                                       : "it",
                   conf->iface != NULL ? conf->iface : "...");
}

/* "mlx5_2/1"; the port number may be left out. */
static int read_name(struct transport_port *port, struct err *err)
{
    const struct port_conf *conf = port->conf;
    char rdma[NAME_BYTES] = "";
    int rc = find_name(conf, rdma, err);
    size_t length = strcspn(rdma, "/");
    char *end = NULL;
    unsigned long number = 1;

    if (rc < 0)
        return rc;
    if (rdma[length] == '/')
        number = strtoul(rdma + length + 1, &end, 10);
    if (length == 0 || length >= sizeof port->device || (end != NULL && *end != '\0') ||
        number < 1 || number > 255)
        return err_set(err, -EINVAL,
                       "port %s: rdma must name a device and its port, such as mlx5_0/1, not '%s'",
                       conf->name, rdma);
    memcpy(port->device, rdma, length);
    port->number = (uint8_t)number;
    snprintf(port->label, sizeof port->label, "%.24s (%.55s/%u)", conf->name, port->device,
             port->number);
    return 0;
}

static void read_driver(struct transport_port *port)
{
    sysfs_link(port->driver, sizeof port->driver, "/sys/class/infiniband/%s/device/driver",
               port->device);
    if (port->driver[0] != '\0' && port->limits.vendor_id != RXE_VENDOR)
        return;
    /* Nothing is below a software device. */
    port->software = true;
    snprintf(port->driver, sizeof port->driver, "rdma_rxe");
}

/* --- addresses --- */

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

/* Where GIDs are no addresses: the first of the interface. */
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

static int read_addresses(struct transport_port *port, struct err *err)
{
    int rc = read_gids(port, err);

    if (rc < 0)
        return rc;
    if (port->netdev[0] == '\0' && port->conf->iface != NULL)
        snprintf(port->netdev, sizeof port->netdev, "%s", port->conf->iface);
    port->gid = port->ethernet
                    ? verbs_gid_choose(port->gids, port->gid_count, wanted_family(port->conf))
                    : verbs_port_gid(port, 0);
    if (!port->ethernet || port->gid == NULL) {
        find_interface_ip(port);
        return 0;
    }
    port->ip.sin6_family = AF_INET6;
    memcpy(&port->ip.sin6_addr, port->gid->bytes, sizeof port->ip.sin6_addr);
    if (verbs_gid_is_link_local(port->gid->bytes))
        port->ip.sin6_scope_id = if_nametoindex(port->netdev);
    return 0;
}

void verbs_address_write(const struct transport_port *port, struct blob *blob)
{
    struct verbs_address address = {.ethernet = port->ethernet, .lid = htons(port->attributes.lid)};

    if (port->gid != NULL)
        memcpy(address.gid, port->gid->bytes, sizeof address.gid);
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

/* --- open and close --- */

static int query(struct transport_port *port, struct err *err)
{
    int code = ibv_query_device(port->context, &port->limits);

    if (code == 0 && port->number > port->limits.phys_port_cnt)
        return err_set(err, -EINVAL, "%s: the device has %u port(s)", port->label,
                       port->limits.phys_port_cnt);
    if (code == 0)
        code = ibv_query_port(port->context, port->number, &port->attributes);
    if (code != 0)
        return err_set(err, -code, "%s: the device does not answer: %s", port->label,
                       strerror(code));
    port->ethernet = port->attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    port->up = port->attributes.state == IBV_PORT_ACTIVE;
    return 0;
}

static int make_resources(struct transport_port *port, struct err *err)
{
    port->pd = ibv_alloc_pd(port->context);
    if (port->pd == NULL)
        return err_set(err, -errno, "%s: can't make a protection domain: %s", port->label,
                       strerror(errno));
    port->channel = ibv_create_comp_channel(port->context);
    if (port->channel == NULL)
        return err_set(err, -errno, "%s: can't make a channel for completions: %s", port->label,
                       strerror(errno));
    fcntl(port->channel->fd, F_SETFL, fcntl(port->channel->fd, F_GETFL) | O_NONBLOCK);
    fcntl(port->context->async_fd, F_SETFL, fcntl(port->context->async_fd, F_GETFL) | O_NONBLOCK);
    registered_memory_init(&port->memory, port->pd, port->label);
    return 0;
}

int verbs_port_open(struct transport_port **port, const struct port_conf *conf, struct err *err)
{
    struct transport_port *p = calloc(1, sizeof *p);
    int rc;

    if (p == NULL)
        return err_set(err, -ENOMEM, "port %s: out of memory", conf->name);
    p->conf = conf;
    rc = read_name(p, err);
    if (rc == 0)
        rc = open_device(p, err);
    if (rc == 0)
        rc = query(p, err);
    if (rc == 0)
        rc = make_resources(p, err);
    if (rc == 0)
        rc = read_addresses(p, err);
    if (rc < 0) {
        verbs_port_close(p);
        return rc;
    }
    read_driver(p);
    *port = p;
    return 0;
}

void verbs_port_close(struct transport_port *port)
{
    registered_memory_close(&port->memory);
    if (port->channel != NULL)
        ibv_destroy_comp_channel(port->channel);
    if (port->pd != NULL)
        ibv_dealloc_pd(port->pd);
    if (port->context != NULL)
        ibv_close_device(port->context);
    free(port->gids);
    free(port);
}

int verbs_port_payload(struct transport_port *port, size_t bytes, struct err *err)
{
    int rc;

    bytes += VERBS_PERIOD;
    if (port->payload.bytes >= bytes)
        return 0;
    /* A lane that runs may send from the old one, which is freed with the port: so in few steps. */
    bytes = (bytes + PAYLOAD_STEP - 1) / PAYLOAD_STEP * PAYLOAD_STEP;
    rc = registered_memory_take(&port->memory, bytes, &port->payload, err);
    if (rc == 0)
        verbs_payload_fill(port->payload.at, port->payload.bytes, 0);
    return rc;
}

/* --- events --- */

static void handle_event(struct transport_port *port, const struct ibv_async_event *event)
{
    bool ours = event->element.port_num == port->number;

    switch (event->event_type) {
    case IBV_EVENT_PORT_ACTIVE:
        port->up = ours || port->up;
        break;
    case IBV_EVENT_PORT_ERR:
        port->up = port->up && !ours;
        break;
    case IBV_EVENT_DEVICE_FATAL:
        port->fatal = true;
        log_error("%s: the device has failed; it must be reset", port->label);
        break;
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
    case IBV_EVENT_SQ_DRAINED:
        break;
    default:
        log_warning("%s: the device says: %s", port->label, ibv_event_type_str(event->event_type));
    }
}

void verbs_port_events(struct transport_port *port)
{
    struct ibv_async_event event;

    while (ibv_get_async_event(port->context, &event) == 0) {
        handle_event(port, &event);
        ibv_ack_async_event(&event);
    }
}

void verbs_port_status(struct transport_port *port, struct port_status *status)
{
    verbs_port_events(port);
    if (ibv_query_port(port->context, port->number, &port->attributes) == 0)
        port->up = port->attributes.state == IBV_PORT_ACTIVE;
    *status = (struct port_status){.link_up = port->up && !port->fatal};
}
