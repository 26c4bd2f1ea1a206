/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Of a run whose job says `bind`: the node's PCI ports leave their kernel drivers before dpdk opens
 * the first of them, and are restored when the run ends, however it ends (engine/bind/bind.h).
 * All of them at once, under one journal. What kernel transports need of them comes before: there
 * is no way back within a run.
 */
#include "port_binding.h"

#include "bind.h"
#include "check.h"
#include "clock.h"
#include "guard_host.h"
#include "log.h"
#include "node.h"
#include "port_transports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a device must still have its kernel driver for. */
#define KERNEL_USE (TRANSPORT_NEEDS_IFACE | TRANSPORT_NEEDS_RDMA)

bool port_binding_wanted(const struct node *node, const struct node_port *port)
{
    const struct bind_place here = {.root = ""};

    return node->job->bind != NULL && port->doc->conf.pci != NULL &&
           port_transport_with(port->doc, TRANSPORT_TAKES_DEVICE) &&
           bind_needed(&here, port->doc->conf.pci);
}

bool port_binding_waits(const struct node *node, const struct node_port *port)
{
    for (size_t i = 0; i < node->port_count; i++)
        if (port_binding_wanted(node, &node->ports[i]) &&
            port_transport_with(node->ports[i].doc, KERNEL_USE))
            return port_binding_wanted(node, port) && !node->devices_bound;
    return false;
}

static void log_sentence(void *data, const char *sentence)
{
    (void)data;
    log_info("%s", sentence);
}

static struct bind_place place_of(const struct node *node)
{
    const char *journal = node->job->bind->journal;

    return (struct bind_place){
        .root = "",
        .journal = journal != NULL ? journal : BIND_JOURNAL,
        .kernel = &bind_kernel,
        .say = log_sentence,
    };
}

/* The devices of all ports that are to be bound; the list is the caller's, the texts are not. */
static int list_devices(const struct node *node, struct bind_request *request)
{
    const char **devices = calloc(node->port_count + 1, sizeof *devices);

    *request = (struct bind_request){.driver = node->job->bind->driver,
                                     .hugepages = node->job->bind->hugepages,
                                     .devices = devices};
    if (devices == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < node->port_count; i++)
        if (port_binding_wanted(node, &node->ports[i]))
            devices[request->count++] = node->ports[i].doc->conf.pci;
    return 0;
}

static void free_devices(struct bind_request *request)
{
    free((void *)(uintptr_t)request->devices);
}

/* A PCI device has a kernel interface as long as its kernel driver drives it. */
static int find_interface(struct node_port *port, struct err *err)
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
            "DPDK's? `switchbench-node --restore` gives it back",
            port->doc->conf.name, port->doc->conf.pci);
    if (rc != 0)
        return rc;
    memcpy(port->iface, found.names[0], sizeof port->iface);
    port->conf.iface = port->iface;
    return 0;
}

int port_binding_survey(struct node *node, struct err *err)
{
    struct bind_request request;
    struct bind_place place;
    int rc = 0;

    for (size_t i = 0; i < node->port_count && rc == 0; i++)
        rc = find_interface(&node->ports[i], err);
    if (rc != 0 || node->job->bind == NULL)
        return rc;
    place = place_of(node);
    rc = list_devices(node, &request);
    if (rc == 0 && request.count > 0)
        rc = bind_check(&place, &request, err);
    free_devices(&request);
    return rc < 0 ? rc : 0;
}

static void report(const struct node *node, const char *what, const struct bind_request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        const struct record_row rows[] = {
            {"kind", json_string(what)},
            {"text", json_string(request->devices[i])},
            {NULL, NULL},
        };

        record_write(node->records, "event", rows);
    }
}

static int bind_all(struct node *node, struct err *err)
{
    const struct bind_place place = place_of(node);
    struct bind_request request;
    int rc = list_devices(node, &request);

    if (rc == 0)
        rc = bind_devices(&place, &request, err);
    if (rc >= 0) {
        node->devices_bound = true;
        node->must_restore = rc == 0 && !node->job->bind->keep;
        rc = bind_hold(&place, &node->journal_lock_fd, err);
        report(node, "bound", &request);
    }
    free_devices(&request);
    return rc;
}

int port_binding_for(struct node *node, const struct node_port *port,
                     const struct transport *transport, struct err *err)
{
    if (!port_binding_wanted(node, port))
        return 0;
    if (transport_can(transport, TRANSPORT_TAKES_DEVICE))
        return node->devices_bound ? 0 : bind_all(node, err);
    if (!node->devices_bound)
        return 0;
    return err_set(err, -EINVAL,
                   "port %s has left its kernel driver for dpdk: trials of %s have to come before "
                   "those of dpdk in a run that binds",
                   port->doc->conf.name, transport->name);
}

int port_binding_end(struct node *node)
{
    struct bind_place place;
    struct bind_request request;
    struct err err = {0};
    int rc;

    if (node->journal_lock_fd >= 0)
        close(node->journal_lock_fd);
    node->journal_lock_fd = -1;
    if (!node->must_restore)
        return 0;
    place = place_of(node);
    node->must_restore = false;
    rc = bind_restore(&place, &err);
    if (list_devices(node, &request) == 0)
        report(node, rc == 0 ? "restored" : "not-restored", &request);
    free_devices(&request);
    if (rc < 0)
        return err_set(&node->err, rc, "%s", err.text);
    return 0;
}
