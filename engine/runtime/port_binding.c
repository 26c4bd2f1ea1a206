/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_binding.h"

#include "clock.h"
#include "event_loop.h"
#include "guard_host.h"
#include "log.h"
#include "port_transports.h"
#include "sysfs.h"

#include <errno.h>
#include <string.h>

#define WAIT_NS (60 * NS_PER_S) /* drivers and links take their time */
#define LOOK_NS (50 * NS_PER_MS)

/* What a device must still have its kernel driver for. */
#define KERNEL_USE (TRANSPORT_NEEDS_IFACE | TRANSPORT_NEEDS_RDMA)

static bool is_driven_by(const char *pci, const char *const *drivers, size_t count)
{
    char driver[64];

    sysfs_link(driver, sizeof driver, "/sys/bus/pci/devices/%s/driver", pci);
    for (size_t i = 0; i < count; i++)
        if (strcmp(driver, drivers[i]) == 0)
            return true;
    return false;
}

bool port_binding_leaves_kernel(const struct doc_port *port)
{
    /* DPDK drives these through their kernel driver (verbs), which has to stay. */
    static const char *const bifurcated[] = {"mlx4_core", "mlx5_core", "mana"};

    return port->conf.pci != NULL && port_transport_with(port, TRANSPORT_TAKES_DEVICE) &&
           !is_driven_by(port->conf.pci, bifurcated, sizeof bifurcated / sizeof *bifurcated);
}

static bool is_bound(const struct node_port *port)
{
    static const char *const user[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

    return is_driven_by(port->doc->conf.pci, user, sizeof user / sizeof *user);
}

bool port_binding_wanted(const struct node *node, const struct node_port *port)
{
    return node->job->bind && port_binding_leaves_kernel(port->doc);
}

bool port_binding_waits(const struct node *node, const struct node_port *port)
{
    for (size_t i = 0; i < node->port_count; i++)
        if (port_binding_wanted(node, &node->ports[i]) &&
            port_transport_with(node->ports[i].doc, KERNEL_USE))
            return port_binding_wanted(node, port) && !is_bound(port);
    return false;
}

int port_binding_find_interface(struct node_port *port, struct err *err)
{
    struct guard_interfaces found;
    int rc;

    if (port->doc->conf.pci == NULL || port->conf.iface != NULL ||
        !port_transport_with(port->doc, TRANSPORT_NEEDS_IFACE))
        return 0;
    rc = guard_host_pci("", port->doc->conf.pci, &found, err);
    if (rc == 0 && found.count == 0)
        rc = err_set(
            err, -ENODEV,
            "port %s: PCI device %s has no interface for tcp or udp: is it bound to a driver of "
            "DPDK's? `switchbench restore` gives it back",
            port->doc->conf.name, port->doc->conf.pci);
    if (rc != 0)
        return rc;
    memcpy(port->iface, found.names[0], sizeof port->iface);
    port->conf.iface = port->iface;
    return 0;
}

/* The first port that is to be bound and is not; NULL: all are. */
static const struct node_port *find_unbound(const struct node *node)
{
    for (size_t i = 0; i < node->port_count; i++)
        if (port_binding_wanted(node, &node->ports[i]) && !is_bound(&node->ports[i]))
            return &node->ports[i];
    return NULL;
}

static int await_binding(struct node *node, struct err *err)
{
    const struct node_port *port = find_unbound(node);
    int64_t limit_ns = clock_now() + WAIT_NS;
    int rc = 0;

    if (port == NULL)
        return 0;
    record_event(node->records, "bind", port->doc->conf.name, port->doc->conf.pci);
    log_info("waiting until PCI device %s is bound to DPDK (doc/how-to/bind.md)",
             port->doc->conf.pci);
    while (rc == 0 && (port = find_unbound(node)) != NULL && clock_now() < limit_ns)
        rc = node_turn(node, clock_now() + LOOK_NS);
    if (rc == 0 && port != NULL)
        rc = err_set(err, -ETIMEDOUT,
                     "port %s: PCI device %s was not bound to DPDK within %lld s: "
                     "doc/how-to/bind.md has the command",
                     port->doc->conf.name, port->doc->conf.pci, WAIT_NS / NS_PER_S);
    return rc;
}

int port_binding_for(struct node *node, const struct node_port *port,
                     const struct transport *transport, struct err *err)
{
    if (!port_binding_wanted(node, port))
        return 0;
    if (transport_can(transport, TRANSPORT_TAKES_DEVICE))
        return await_binding(node, err);
    if (!is_bound(port))
        return 0;
    return err_set(err, -EINVAL,
                   "port %s has left its kernel driver for dpdk: trials of %s have to come before "
                   "those of dpdk in a run that binds",
                   port->doc->conf.name, transport->name);
}
