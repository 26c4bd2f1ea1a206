/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Port of an RDMA device: its name, addresses, events and counters.
 */
#include "verbs.h"

#include "log.h"
#include "netns.h"
#include "sysfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME_BYTES 72
#define PATH_BYTES 512
#define GIDS_MAX 1024
#define RXE_VENDOR 0xffffffu
#define COUNTER_NAMES_MAX 3

static_assert(sizeof(struct verbs_address) == 20, "layout");
static_assert(sizeof(struct verbs_address) <= BLOB_BYTES_MAX, "fits into a blob");

/* --- its name --- */

/* Write "<device>/<number>" for the first path ".../infiniband/<device>/ports/<number>..." that
 * matches a pattern and whose file contains `owner`; NULL: any. */
static bool find(const char *pattern, const char *owner, char *name, size_t size)
{
    int written = 0;
    char line[64];
    glob_t found;

    sysfs_glob(&found, "%s", pattern);
    for (size_t i = 0; i < found.gl_pathc && written == 0; i++) {
        const char *device = strstr(found.gl_pathv[i], "/infiniband/") + strlen("/infiniband/");
        const char *number = strstr(device, "/ports/") + strlen("/ports/");

        if (owner == NULL ||
            (sysfs_line(line, sizeof line, "%s", found.gl_pathv[i]) && strcmp(line, owner) == 0))
            written = snprintf(name, size, "%.*s/%.*s", (int)strcspn(device, "/"), device,
                               (int)strcspn(number, "/"), number);
    }
    globfree(&found);
    return written > 0 && (size_t)written < size;
}

bool verbs_device_of_interface(const char *sys, const char *iface, char *name, size_t size)
{
    char pattern[PATH_BYTES];
    unsigned port = (unsigned)sysfs_number(0, "%s/class/net/%s/dev_port", sys, iface);

    snprintf(pattern, sizeof pattern, "%s/class/infiniband/*/ports/*/gid_attrs/ndevs/*", sys);
    if (find(pattern, iface, name, size))
        return true;
    snprintf(pattern, sizeof pattern, "%s/class/net/%s/device/infiniband/*/ports/%u", sys, iface,
             port + 1);
    return find(pattern, NULL, name, size);
}

bool verbs_device_of_pci(const char *sys, const char *pci, char *name, size_t size)
{
    char pattern[PATH_BYTES];

    snprintf(pattern, sizeof pattern, "%s/bus/pci/devices/%s/infiniband/*/ports/1", sys, pci);
    return find(pattern, NULL, name, size);
}

/* --- GIDs --- */

/* Return the preference of a GID as a number; larger is better. */
static int rank_of(const struct ibv_gid_entry *gid, int family)
{
    const uint8_t *raw = gid->gid.raw;
    bool ipv4 = verbs_gid_is_ipv4(raw), link_local = raw[0] == 0xfe && (raw[1] & 0xc0) == 0x80;
    bool wanted = family == 6 ? !ipv4 : ipv4;

    return 4 * (gid->gid_type == IBV_GID_TYPE_ROCE_V2) + 2 * !link_local + wanted;
}

const struct ibv_gid_entry *verbs_gid_choose(const struct ibv_gid_entry *table, size_t count,
                                             int family)
{
    const struct ibv_gid_entry *best = NULL;

    for (size_t i = 0; i < count; i++)
        if (best == NULL || rank_of(&table[i], family) > rank_of(best, family))
            best = &table[i];
    return best;
}

/* --- the device --- */

static int open_device(struct transport_port *port, struct err *err)
{
    int count = 0, rc = 0;
    struct ibv_device **devices = ibv_get_device_list(&count);
    char names[256] = ""; /* "mlx5_0, mlx5_1" */
    bool tried = false;

    for (int i = 0; devices != NULL && i < count && !tried; i++) {
        const char *name = ibv_get_device_name(devices[i]);
        size_t used = strlen(names);

        tried = strcmp(name, port->device) == 0;
        if (tried && devices[i]->transport_type == IBV_TRANSPORT_IWARP)
            rc = err_set(err, -EOPNOTSUPP,
                         "%s: an iWARP device: verbs is not implemented over iWARP; use tcp there",
                         port->label);
        else if (tried && (port->context = ibv_open_device(devices[i])) == NULL)
            rc = err_set(err, -ENODEV,
                         "%s: can't open the RDMA device (%s): this user may not read and write "
                         "/dev/infiniband/uverbs*, or `modprobe ib_uverbs` is needed",
                         port->label, strerror(errno));
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", name);
    }
    if (devices != NULL)
        ibv_free_device_list(devices);
    if (tried)
        return rc;
    if (names[0] != '\0')
        return err_set(err, -ENODEV, "%s: there is no RDMA device of that name; there are: %s",
                       port->label, names);
    return err_set(err, -ENODEV,
                   "%s: this machine has no RDMA device, or none that libibverbs can drive; "
                   "look at `rdma link` (a driver such as mlx5_ib, or `rdma link add %s type "
                   "rxe netdev ...`, and the provider's library in ibverbs-providers)",
                   port->label, port->device);
}

/* Find the name of the port's RDMA device: the configured name, else by the network interface, else
 * by the PCI address. */
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
                   "port %s: %s has no RDMA device; `rdma link` lists the existing ones "
                   "(Soft-RoCE: `rdma link add rxe0 type rxe netdev %s`), and rdma names one, such "
                   "as mlx5_0/1",
                   conf->name,
                   conf->iface != NULL ? conf->iface
                   : conf->pci != NULL ? conf->pci
                                       : "it",
                   conf->iface != NULL ? conf->iface : "...");
}

/* Parse the name of an RDMA port, such as "mlx5_2/1"; the port number is optional. */
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

/* --- addresses --- */

const struct ibv_gid_entry *verbs_port_gid(const struct transport_port *port, int index)
{
    for (size_t i = 0; i < port->gid_count; i++)
        if ((int)port->gids[i].gid_index == index)
            return &port->gids[i];
    return NULL;
}

static int read_addresses(struct transport_port *port, struct err *err)
{
    const struct port_conf *conf = port->conf;
    const char *address = conf->tcp_address;
    int family = conf->ipv6 != NULL && conf->ipv4 == NULL ? 6 : 0;
    const uint8_t *gid;
    ssize_t count;

    if (address != NULL)
        family = strchr(address, ':') != NULL ? 6 : 4;

    port->gids = calloc(GIDS_MAX, sizeof *port->gids);
    if (port->gids == NULL)
        return err_set(err, -ENOMEM, "%s: out of memory", port->label);
    count = ibv_query_gid_table(port->context, port->gids, GIDS_MAX, 0);
    for (ssize_t i = 0; i < count; i++) { /* of all ports of the device */
        const struct ibv_gid_entry entry = port->gids[i];

        if (entry.port_num != port->number)
            continue;
        if (entry.ndev_ifindex > 0 && port->netdev[0] == '\0')
            if_indextoname(entry.ndev_ifindex, port->netdev);
        port->gids[port->gid_count++] = entry;
    }
    if (port->netdev[0] == '\0' && conf->iface != NULL)
        snprintf(port->netdev, sizeof port->netdev, "%s", conf->iface);
    port->gid = port->ethernet ? verbs_gid_choose(port->gids, port->gid_count, family)
                               : verbs_port_gid(port, 0);
    gid = port->ethernet && port->gid != NULL ? port->gid->gid.raw : NULL;
    if (gid != NULL && verbs_gid_is_ipv4(gid))
        inet_ntop(AF_INET, gid + VERBS_IPV4_AT, port->ipv4, sizeof port->ipv4);
    else if (gid != NULL)
        inet_ntop(AF_INET6, gid, port->ipv6, sizeof port->ipv6);
    return 0;
}

bool verbs_address_read(struct verbs_address *address, const struct blob *blob)
{
    if (blob->size != sizeof *address)
        return false;
    memcpy(address, blob->bytes, sizeof *address);
    return true;
}

/* --- open and close --- */

/* Query the properties of the open device, and create the resources that all lanes share. */
static int set_up(struct transport_port *port, struct err *err)
{
    int code = ibv_query_device(port->context, &port->limits);

    if (code == 0 && port->number > port->limits.phys_port_cnt)
        return err_set(err, -EINVAL, "%s: there is no such port: the device has %u port(s)",
                       port->label, port->limits.phys_port_cnt);
    if (code == 0)
        code = ibv_query_port(port->context, port->number, &port->attributes);
    if (code != 0)
        return err_set(err, -code, "%s: the device does not answer: %s", port->label,
                       strerror(code));
    port->ethernet = port->attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    port->up = port->attributes.state == IBV_PORT_ACTIVE;
    sysfs_link(port->driver, sizeof port->driver, "/sys/class/infiniband/%s/device/driver",
               port->device);
    /* A software device has no driver below. */
    port->software = port->driver[0] == '\0' || port->limits.vendor_id == RXE_VENDOR;
    if (port->software)
        snprintf(port->driver, sizeof port->driver, "rdma_rxe");
    port->memory_max = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE) / 4;
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
    code = -verbs_destroyer_start(port);
    return code == 0 ? 0
                     : err_set(err, -code, "%s: can't start a thread that destroys queue pairs: %s",
                               port->label, strerror(code));
}

int verbs_port_open(struct transport_port *port, const struct port_conf *conf,
                    const struct transport_run *run, struct err *err)
{
    int home = -1, rc;

    (void)run; /* the control plane authenticates the infos that connect queue pairs */
    message_payload_init();
    port->conf = conf;
    rc = netns_enter(conf->netns, &home, err);
    if (rc == 0) {
        rc = read_name(port, err);
        if (rc == 0)
            rc = open_device(port, err);
        if (rc == 0)
            rc = set_up(port, err);
        if (rc == 0)
            rc = read_addresses(port, err);
        netns_leave(home);
    }
    return rc;
}

void verbs_port_close(struct transport_port *port)
{
    if (!verbs_destroyer_stop(port))
        return;
    registered_memory_free(port, &port->payload);
    if (port->channel != NULL)
        ibv_destroy_comp_channel(port->channel);
    if (port->pd != NULL)
        ibv_dealloc_pd(port->pd);
    if (port->context != NULL)
        ibv_close_device(port->context);
    free(port->gids);
    free(port);
}

/* --- events --- */

void verbs_port_events(struct transport_port *port)
{
    struct ibv_async_event event;

    while (ibv_get_async_event(port->context, &event) == 0) {
        bool ours = event.element.port_num == port->number;

        switch (event.event_type) {
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
            log_warning("%s: the device reports: %s", port->label,
                        ibv_event_type_str(event.event_type));
        }
        ibv_ack_async_event(&event);
    }
}

/* --- facts --- */

/* Return the data rate of a link, bit/s: the number of lanes (active_width) times the data rate per
 * lane (active_speed); each code is one bit (InfiniBand Architecture, PortInfo). SDR to QDR lose a
 * fifth to 8b/10b. */
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

/* --- counters --- */

/* Counter of an RDMA port, with the names that drivers use for it; the first existing name is
 * read. */
struct counter_source {
    size_t offset; /* in struct port_hardware */
    const char *names[COUNTER_NAMES_MAX];
};

#define AT(member) offsetof(struct port_hardware, member)

/* counters/: the InfiniBand architecture's (port_rcv_errors ...); hw_counters/: the driver's: mlx5
 * (out_of_sequence ...), rxe (sent_pkts ...), bnxt_re and irdma (others). */
static const struct counter_source sources[] = {
    {AT(received_frames),
     {"hw_counters/rcvd_pkts", "counters/port_rcv_packets", "hw_counters/ip4InPkts"}},
    {AT(sent_frames),
     {"hw_counters/sent_pkts", "counters/port_xmit_packets", "hw_counters/ip4OutPkts"}},
    {AT(dropped_receive), {"hw_counters/out_of_buffer", "hw_counters/rx_roce_discards"}},
    {AT(dropped_send), {"counters/port_xmit_discards"}},
    {AT(errors), {"counters/port_rcv_errors", "hw_counters/rcvd_with_error"}},
    {AT(retransmitted),
     {"hw_counters/completer_retry_err", "hw_counters/packet_seq_err",
      "hw_counters/to_retransmits"}},
    {AT(out_of_sequence),
     {"hw_counters/out_of_sequence", "hw_counters/out_of_seq_request",
      "hw_counters/oos_drop_count"}},
    {AT(not_ready),
     {"hw_counters/rnr_nak_retry_err", "hw_counters/rcvd_rnr_err", "hw_counters/rnr_naks_rcvd"}},
    {AT(cnp_sent), {"hw_counters/np_cnp_sent", "hw_counters/tx_cnp_pkts", "hw_counters/cnpSent"}},
    {AT(cnp_handled),
     {"hw_counters/rp_cnp_handled", "hw_counters/rx_cnp_pkts", "hw_counters/cnpHandled"}},
    {AT(ecn_marked),
     {"hw_counters/np_ecn_marked_roce_packets", "hw_counters/rx_ecn_marked_pkts",
      "hw_counters/RxECNMrkd"}},
};

void verbs_port_facts(struct transport_port *port, struct port_facts *facts, bool counters)
{
    struct verbs_address address = {.ethernet = port->ethernet};

    verbs_port_events(port);
    if (ibv_query_port(port->context, port->number, &port->attributes) == 0)
        port->up = port->attributes.state == IBV_PORT_ACTIVE;
    *facts = (struct port_facts){.gid_index = -1,
                                 .connect_fd = -1,
                                 .link_up = port->up && !port->fatal,
                                 .hardware = PORT_HARDWARE_UNKNOWN};
    snprintf(facts->driver, sizeof facts->driver, "%s", port->driver);
    snprintf(facts->rdma, sizeof facts->rdma, "%s/%u", port->device, port->number);
    snprintf(facts->link_layer, sizeof facts->link_layer, "%s",
             port->ethernet ? "Ethernet" : "InfiniBand");
    if (port->gid != NULL) {
        verbs_gid_text(port->gid->gid.raw, facts->gid);
        facts->gid_index = (int)port->gid->gid_index;
        memcpy(address.gid, port->gid->gid.raw, sizeof address.gid);
    }
    address.lid = htons(port->attributes.lid);
    facts->address.size = sizeof address;
    memcpy(facts->address.bytes, &address, sizeof address);
    snprintf(facts->ipv4, sizeof facts->ipv4, "%s", port->ipv4);
    snprintf(facts->ipv6, sizeof facts->ipv6, "%s", port->ipv6);
    /* A software device reports an invented speed. */
    facts->link_bps = port->software ? 0 : link_bps(&port->attributes);
    facts->mtu = verbs_mtu_bytes(port->attributes.active_mtu);
    facts->numa_node =
        (int)sysfs_number(-1, "/sys/class/infiniband/%s/device/numa_node", port->device);
    for (size_t i = 0; counters && i < sizeof sources / sizeof sources[0]; i++) {
        int64_t *value = (int64_t *)(void *)((char *)&facts->hardware + sources[i].offset);
        const char *const *names = sources[i].names;

        for (unsigned k = 0; k < COUNTER_NAMES_MAX && names[k] != NULL && *value < 0; k++)
            *value = sysfs_number(-1, "/sys/class/infiniband/%s/ports/%u/%s", port->device,
                                  port->number, names[k]);
    }
}
