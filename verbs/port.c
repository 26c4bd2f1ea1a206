/* SPDX-License-Identifier: BSD-3-Clause */
#include "port.h"

#include "device_lookup.h"
#include "log.h"
#include "message.h"
#include "netns.h"
#include "qp.h"
#include "qp_destroyer.h"
#include "rdma_cm.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GIDS_MAX 1024
#define NAME_BYTES 72
#define RXE_VENDOR 0xffffffu
#define SYSFS "/sys/class/infiniband"

static_assert(sizeof(struct verbs_address) == 40, "layout");
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

/* Lanes of a link by the code of active_width, and Gbit/s of data a lane by that of active_speed
 * (InfiniBand Architecture, PortInfo; a code is one bit). SDR to QDR lose a fifth to 8b/10b. */
static uint64_t link_bps(const struct ibv_port_attr *attributes)
{
    static const struct {
        uint8_t code;
        double value;
    } widths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}},
      speeds[] = {{1, 2}, {2, 4}, {4, 8}, {8, 10}, {16, 13.64}, {32, 25}, {64, 50}, {128, 100}};
    double lanes = 0;
    double gbps = 0;

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++)
        if (widths[i].code == attributes->active_width)
            lanes = widths[i].value;
    for (size_t i = 0; i < sizeof speeds / sizeof speeds[0]; i++)
        if (speeds[i].code == attributes->active_speed)
            gbps = speeds[i].value;
    return (uint64_t)(lanes * gbps * 1e9);
}

/* --- the device --- */

static int list_devices(struct ibv_device **devices, int count, char *names, size_t size)
{
    size_t used = 0;

    names[0] = '\0';
    for (int i = 0; i < count && used < size; i++)
        used += (size_t)snprintf(names + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 ibv_get_device_name(devices[i]));
    return count;
}

static int open_device(struct transport_port *port, struct err *err)
{
    int count = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    char names[256];

    for (int i = 0; devices != NULL && i < count; i++)
        if (strcmp(ibv_get_device_name(devices[i]), port->device) == 0) {
            port->iwarp = devices[i]->transport_type == IBV_TRANSPORT_IWARP;
            port->context = ibv_open_device(devices[i]);
            if (port->context == NULL)
                err_set(err, -errno,
                        "%s: can't open the RDMA device (%s): this user may not read and write "
                        "/dev/infiniband/uverbs*, or `modprobe ib_uverbs` was not done",
                        port->label, strerror(errno));
        }
    if (port->context == NULL &&
        list_devices(devices, devices != NULL ? count : 0, names, sizeof names) == 0)
        err_set(err, -ENODEV,
                "%s: this machine has no RDMA device, or none that libibverbs can drive; look at "
                "`rdma link` "
                "(a driver such as mlx5_ib, or `rdma link add %s type rxe netdev ...`, and the "
                "provider's "
                "library in ibverbs-providers)",
                port->label, port->device);
    if (port->context == NULL)
        err_set(err, -ENODEV, "%s: there is no RDMA device of that name; there are: %s",
                port->label, names);
    if (devices != NULL)
        ibv_free_device_list(devices);
    return port->context != NULL ? 0 : -ENODEV;
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
    char path[PATH_MAX];
    char target[PATH_MAX];
    ssize_t length;

    snprintf(path, sizeof path, SYSFS "/%s/device/driver", port->device);
    length = readlink(path, target, sizeof target - 1);
    if (length > 0 && port->limits.vendor_id != RXE_VENDOR) {
        target[length] = '\0';
        snprintf(port->driver, sizeof port->driver, "%.31s", basename(target));
        return;
    }
    /* Nothing is below a software device. */
    port->software = true;
    snprintf(port->driver, sizeof port->driver, "%s", port->iwarp ? "siw" : "rdma_rxe");
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

static void choose_gid(struct transport_port *port)
{
    if (port->ethernet && !port->iwarp)
        port->gid = verbs_gid_choose(port->gids, port->gid_count, wanted_family(port->conf));
    else
        port->gid = verbs_port_gid(port, 0);
}

/* For rdma_cm: the address behind the GID, or on iWARP, where GIDs are no addresses, the first of
 * the interface. */
static void find_ip(struct transport_port *port)
{
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&port->ip;
    struct ifaddrs *list = NULL;

    if (port->gid != NULL && !port->iwarp && port->ethernet) {
        v6->sin6_family = AF_INET6;
        memcpy(&v6->sin6_addr, port->gid->bytes, sizeof v6->sin6_addr);
        if (verbs_gid_is_link_local(port->gid->bytes))
            v6->sin6_scope_id = if_nametoindex(port->netdev);
        return;
    }
    if (port->netdev[0] == '\0' || getifaddrs(&list) != 0)
        return;
    for (const struct ifaddrs *a = list; a != NULL && port->ip.ss_family == 0; a = a->ifa_next) {
        if (a->ifa_addr == NULL || a->ifa_addr->sa_family != AF_INET ||
            strcmp(a->ifa_name, port->netdev) != 0)
            continue;
        v6->sin6_family = AF_INET6;
        v6->sin6_addr.s6_addr[10] = v6->sin6_addr.s6_addr[11] = 0xff;
        memcpy(&v6->sin6_addr.s6_addr[12], &((const struct sockaddr_in *)a->ifa_addr)->sin_addr, 4);
    }
    freeifaddrs(list);
}

const struct verbs_gid *verbs_port_gid(const struct transport_port *port, int index)
{
    for (size_t i = 0; i < port->gid_count; i++)
        if ((int)port->gids[i].index == index)
            return &port->gids[i];
    return NULL;
}

void verbs_port_address(struct transport_port *port, struct blob *blob)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&port->ip;
    struct verbs_address reach = {
        .ethernet = port->ethernet, .iwarp = port->iwarp, .lid = htons(port->attributes.lid)};

    if (port->gid != NULL)
        memcpy(reach.gid, port->gid->bytes, sizeof reach.gid);
    if (port->ip.ss_family != 0)
        memcpy(reach.ip, &v6->sin6_addr, sizeof reach.ip);
    reach.cm_port = verbs_cm_port(port);
    blob->size = sizeof reach;
    memcpy(blob->bytes, &reach, sizeof reach);
}

bool verbs_address_read(struct verbs_address *reach, const struct blob *blob)
{
    if (blob->size != sizeof *reach)
        return false;
    memcpy(reach, blob->bytes, sizeof *reach);
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

static int make_unblocking(int fd)
{
    return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
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
    make_unblocking(port->channel->fd);
    make_unblocking(port->context->async_fd);
    verbs_memory_init(&port->memory, port->pd, port->label);
    return 0;
}

static int open_inside(struct transport_port *port, struct err *err)
{
    int rc = open_device(port, err);

    if (rc == 0)
        rc = query(port, err);
    if (rc == 0)
        rc = read_gids(port, err);
    if (rc == 0)
        rc = make_resources(port, err);
    if (rc < 0)
        return rc;
    read_driver(port);
    if (port->netdev[0] == '\0' && port->conf->iface != NULL)
        snprintf(port->netdev, sizeof port->netdev, "%s", port->conf->iface);
    choose_gid(port);
    find_ip(port);
    verbs_counters_read(port->device, port->number, &port->base);
    return 0;
}

int verbs_port_open(struct transport_port **port, const struct port_conf *conf,
                    const struct transport_run *run, struct err *err)
{
    struct transport_port *p = calloc(1, sizeof *p);
    int home = -1;
    int rc;

    (void)run; /* the control plane authenticates what connects queue pairs */
    if (p == NULL)
        return err_set(err, -ENOMEM, "port %s: out of memory", conf->name);
    p->conf = conf;
    qp_cache_init(&p->cache);
    verbs_pattern_init();
    rc = read_name(p, err);
    if (rc == 0)
        rc = netns_enter(conf->netns, &home, err);
    if (rc == 0) {
        rc = open_inside(p, err);
        if (rc == 0)
            verbs_cm_listen(p);
        p->destroyer = rc == 0 ? qp_destroyer_start() : NULL;
        netns_leave(home);
    }
    if (rc < 0)
        verbs_port_close(p);
    else
        *port = p;
    return rc;
}

void verbs_port_close(struct transport_port *port)
{
    verbs_qps_evict(port, 0);
    if (!qp_destroyer_stop(port->destroyer))
        return;
    verbs_cm_close(port);
    verbs_memory_give(&port->pattern);
    verbs_memory_close(&port->memory);
    if (port->channel != NULL)
        ibv_destroy_comp_channel(port->channel);
    if (port->pd != NULL)
        ibv_dealloc_pd(port->pd);
    if (port->context != NULL)
        ibv_close_device(port->context);
    free(port->gids);
    free(port);
}

int verbs_port_pattern(struct transport_port *port, size_t bytes, struct err *err)
{
    int rc;

    bytes += VERBS_PERIOD;
    if (port->pattern.bytes >= bytes)
        return 0;
    /* A lane that runs goes on with the old one, which is freed with the port. */
    rc = verbs_memory_take(&port->memory, bytes, &port->pattern, err);
    if (rc == 0)
        verbs_payload_fill(port->pattern.at, port->pattern.bytes, 0);
    return rc;
}

/* --- events, facts, counters --- */

static void hear(struct transport_port *port, const struct ibv_async_event *event)
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
        hear(port, &event);
        ibv_ack_async_event(&event);
    }
}

bool verbs_port_link_up(struct transport_port *port)
{
    verbs_port_events(port);
    if (ibv_query_port(port->context, port->number, &port->attributes) == 0)
        port->up = port->attributes.state == IBV_PORT_ACTIVE;
    return port->up && !port->fatal;
}

static int numa_node(const char *device)
{
    char path[PATH_MAX];
    int node = -1;
    FILE *file;

    snprintf(path, sizeof path, SYSFS "/%s/device/numa_node", device);
    file = fopen(path, "re");
    if (file == NULL)
        return -1;
    if (fscanf(file, "%d", &node) != 1)
        node = -1;
    fclose(file);
    return node;
}

void verbs_port_facts(struct transport_port *port, struct port_facts *facts)
{
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&port->ip;

    *facts = (struct port_facts){.gid_index = -1};
    snprintf(facts->driver, sizeof facts->driver, "%s", port->driver);
    snprintf(facts->rdma, sizeof facts->rdma, "%s/%u", port->device, port->number);
    snprintf(facts->link_layer, sizeof facts->link_layer, "%s",
             port->ethernet ? "Ethernet" : "InfiniBand");
    if (port->gid != NULL) {
        verbs_gid_text(port->gid->bytes, facts->gid);
        facts->gid_index = (int)port->gid->index;
    }
    if (port->ip.ss_family != 0 && verbs_gid_is_ipv4(v6->sin6_addr.s6_addr))
        inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], facts->ipv4, sizeof facts->ipv4);
    else if (port->ip.ss_family != 0)
        inet_ntop(AF_INET6, &v6->sin6_addr, facts->ipv6, sizeof facts->ipv6);
    /* A software device invents a speed. */
    facts->link_bps = port->software ? 0 : link_bps(&port->attributes);
    facts->mtu = verbs_mtu_bytes(port->attributes.active_mtu);
    facts->numa_node = numa_node(port->device);
}

void verbs_port_hardware(struct transport_port *port, struct port_hardware *counters)
{
    verbs_counters_read(port->device, port->number, counters);
    verbs_counters_subtract(counters, &port->base);
}
