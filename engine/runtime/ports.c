/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This node's ports: used in one transport at a time, the guard asked first, their links watched.
 */
#include "ports.h"

#include "clock.h"
#include "event_loop.h"
#include "guard.h"
#include "guard_host.h"
#include "job.h"
#include "log.h"
#include "node.h"
#include "registry.h"
#include "sysfs.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_WAIT_NS (10 * NS_PER_S)

#define BINDING_WAIT_NS (60 * NS_PER_S) /* drivers and links take their time */
#define LOOK_NS (50 * NS_PER_MS)

/* What a device must still have its kernel driver for. */
#define KERNEL_USE (TRANSPORT_NEEDS_IFACE | TRANSPORT_NEEDS_RDMA)

/* --- transports of a port --- */

static bool has_needs(const struct port_conf *conf, const struct transport *transport)
{
    if (transport_can(transport, TRANSPORT_NEEDS_IFACE))
        return conf->iface != NULL;
    if (transport_can(transport, TRANSPORT_NEEDS_RDMA))
        return conf->rdma != NULL;
    return conf->iface != NULL || conf->pci != NULL || conf->vdev != NULL;
}

/* The port's transport number `place`, below DOC_TRANSPORTS_MAX: of its document's list, which is
 * in the order of first use; without a list, of the registry, if the port has what that transport
 * needs. NULL: none. */
static const struct transport *port_transport(const struct doc_port *doc, unsigned place)
{
    if (doc->transports_count > 0)
        return place < doc->transports_count ? transport_find(doc->transports[place]) : NULL;
    for (unsigned i = 0; i <= place; i++)
        if (transports[i] == NULL)
            return NULL;
    return has_needs(&doc->conf, transports[place]) ? transports[place] : NULL;
}

/* Whether one of the port's transports has one of these capabilities. */
static bool port_transport_with(const struct doc_port *doc, unsigned capabilities)
{
    for (unsigned place = 0; place < DOC_TRANSPORTS_MAX; place++) {
        const struct transport *transport = port_transport(doc, place);

        if (transport != NULL && transport_can(transport, capabilities))
            return true;
    }
    return false;
}

/* --- PCI ports that leave their kernel driver for DPDK during the run (doc/how-to/bind.md): the
 * node asks for it, by an event of kind `bind`, and waits: the controller, or a person, binds them
 * with scripts/python/switchbench/hosts/port_binding.py and restores them after the run. All of a
 * node's ports leave at once, before dpdk opens the first. Kernel transports come before: there is
 * no way back within a run --- */

static bool is_driven_by(const char *pci, const char *const *drivers, size_t count)
{
    char driver[64];

    sysfs_link(driver, sizeof driver, "/sys/bus/pci/devices/%s/driver", pci);
    for (size_t i = 0; i < count; i++)
        if (strcmp(driver, drivers[i]) == 0)
            return true;
    return false;
}

static bool leaves_kernel(const struct doc_port *port)
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

static bool is_to_be_bound(const struct node *node, const struct node_port *port)
{
    return node->job->bind && leaves_kernel(port->doc);
}

static bool waits_for_binding(const struct node *node, const struct node_port *port)
{
    for (size_t i = 0; i < node->port_count; i++)
        if (is_to_be_bound(node, &node->ports[i]) &&
            port_transport_with(node->ports[i].doc, KERNEL_USE))
            return is_to_be_bound(node, port) && !is_bound(port);
    return false;
}

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
        if (is_to_be_bound(node, &node->ports[i]) && !is_bound(&node->ports[i]))
            return &node->ports[i];
    return NULL;
}

static int await_binding(struct node *node, struct err *err)
{
    const struct node_port *port = find_unbound(node);
    int64_t limit_ns = clock_now() + BINDING_WAIT_NS;
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
                     port->doc->conf.name, port->doc->conf.pci, BINDING_WAIT_NS / NS_PER_S);
    return rc;
}

static int prepare_binding(struct node *node, const struct node_port *port,
                           const struct transport *transport, struct err *err)
{
    if (!is_to_be_bound(node, port))
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

/* --- opening and closing --- */

static void forget(struct node_port *port)
{
    port->transport = NULL;
    port->open = NULL;
}

/* Connections that did not show the run's key: told when there are twice as many as the last time,
 * and `all` when the port is closed, so that a flood of them fills no record. */
static void report_rejected(struct node *node, struct node_port *port,
                            const struct port_status *status, bool all)
{
    uint64_t count = status->rejected;
    char text[300];

    if (count <= port->rejected_told || (!all && count < 2 * port->rejected_told))
        return;
    port->rejected_told = count;
    snprintf(text, sizeof text,
             "connections that did not show this run's key: %llu; the last from %s",
             (unsigned long long)count, status->last_rejected);
    record_event(node->records, "unauthenticated", port->doc->conf.name, text);
}

static void shut(struct node *node, struct node_port *port)
{
    struct port_status status;

    port->transport->status(port->open, &status);
    report_rejected(node, port, &status, true);
    port->rejected_told = 0;
    port->transport->close(port->open);
}

static void close_port(struct node *node, struct node_port *port)
{
    if (port->transport != NULL)
        shut(node, port);
    forget(port);
    if (port->parked_transport != NULL)
        port->parked_transport->close(port->parked);
    port->parked_transport = NULL;
    port->parked = NULL;
}

/* Another transport has its turn. A device that shares nothing with it stays open meanwhile:
 * memif's other end would see it leave and come at each turn, and DPDK's thread takes such a
 * connection apart, and makes it, beside whoever uses it (22.11). */
static void leave_port(struct node *node, struct node_port *port)
{
    struct port_facts facts = {0};

    if (port->transport == NULL)
        return;
    port->transport->facts(port->open, &facts);
    if (facts.independent && port->parked_transport == NULL) {
        port->parked_transport = port->transport;
        port->parked = port->open;
    } else {
        shut(node, port);
    }
    forget(port);
}

static void release_workers(struct node *node)
{
    for (size_t i = 0; i < node->worker_count; i++)
        worker_set_ports(node->workers[i], NULL, 0);
}

void ports_close(struct node *node)
{
    release_workers(node);
    for (size_t i = 0; i < node->port_count; i++)
        close_port(node, &node->ports[i]);
}

static int open_port(struct node *node, struct node_port *port, const struct transport *transport,
                     struct err *err)
{
    struct port_facts facts = {0};
    struct port_status status;
    int rc;

    assert(transport != NULL);
    rc = prepare_binding(node, port, transport, err);
    if (rc == 0 && port->parked_transport == transport) {
        port->open = port->parked;
        port->parked = NULL;
        port->parked_transport = NULL;
    } else if (rc == 0) {
        rc = transport->open(&port->open, &port->conf, &node->run, err);
    }
    if (rc < 0)
        return rc;
    port->transport = transport;
    transport->facts(port->open, &facts);
    port->queues = facts.queues > 0 ? facts.queues : 1;
    port->core_fps = facts.core_fps;
    port->line_rate_bps =
        port->doc->conf.line_rate_bps > 0 ? port->doc->conf.line_rate_bps : facts.link_bps;
    transport->status(port->open, &status);
    port->link_up = status.link_up;
    port->had_link = port->link_up;
    port->down_ns = port->link_up ? 0 : clock_now();
    return 0;
}

/* A number; null when it is 0: not known. */
static json_t *known(uint64_t number)
{
    return number > 0 ? record_u64(number) : json_null();
}

static void report_port(struct node *node, struct node_port *port)
{
    struct port_facts facts = {.numa_node = -1};
    int cores[CORES_WORKERS_MAX]; /* of its queues */
    uint32_t queues = port->queues < CORES_WORKERS_MAX ? port->queues : CORES_WORKERS_MAX;
    bool rdma;

    for (uint32_t queue = 0; queue < queues; queue++)
        cores[queue] = node->cores.core[job_worker_of(node, (uint32_t)(port - node->ports), queue)];
    port->transport->facts(port->open, &facts);
    rdma = facts.rdma[0] != '\0';
    const struct record_row rows[] = {
        {"port", json_string(port->doc->conf.name)},
        {"network", json_string(port->doc->conf.network)},
        {"transport", json_string(port->transport->name)},
        {"driver", record_text(facts.driver)},
        {"mac", record_text(facts.mac)},
        {"ipv4", record_text(facts.ipv4)},
        {"ipv6", record_text(facts.ipv6)},
        {"link_bps", known(facts.link_bps)},
        {"line_rate_bps", known(port->line_rate_bps)},
        {"frame_max", known(facts.frame_max)},
        {"numa", record_count(facts.numa_node)},
        {"queues", json_integer(port->queues)},
        {"cores", record_numbers(cores, queues)},
        {"core_fps", record_count(facts.core_fps > 0 ? (int64_t)facts.core_fps : -1)},
        {"offloads", record_text(facts.offloads)},
        {"mtu", known(facts.mtu)},
        {"congestion", record_text(facts.congestion)},
        {"rdma", rdma ? record_text(facts.rdma) : NULL},
        {"link_layer", rdma ? record_text(facts.link_layer) : NULL},
        {"gid", rdma ? record_text(facts.gid) : NULL},
        {"gid_index", rdma ? record_count(facts.gid_index) : NULL},
        {NULL, NULL},
    };
    record_write(node->records, "port-open", rows);
}

/* The kernel gives each socket its own and nobody else's, an RDMA device each queue pair. Of a PCI
 * device DPDK's driver is asked to before it is configured (engine/transport/dpdk/isolate.h);
 * through a kernel interface none can. */
static bool isolates_flows(const struct doc_port *doc)
{
    return doc->conf.pci != NULL || !port_transport_with(doc, TRANSPORT_TAKES_DEVICE);
}

static int ask_guard(const struct doc_port *doc, struct err *err)
{
    const struct port_conf *conf = &doc->conf;
    const char *connection = getenv("SSH_CONNECTION");
    char controller[64], driver[64];
    struct guard_rules rules = {
        .controller = controller,
        .driver = driver,
        .shared = conf->shared,
        .isolates_flows = isolates_flows(doc),
        .leaves_kernel = leaves_kernel(doc),
    };
    int rc = 0;

    /* The first word: where the person or the controller that started us sits. */
    snprintf(controller, sizeof controller, "%s", connection != NULL ? connection : "");
    controller[strcspn(controller, " ")] = '\0';
    if (conf->pci != NULL)
        snprintf(driver, sizeof driver, "a PCI driver");
    else if (conf->vdev != NULL)
        snprintf(driver, sizeof driver, "%.*s", (int)strcspn(conf->vdev, ","), conf->vdev);
    else
        snprintf(driver, sizeof driver, "%s", conf->driver != NULL ? conf->driver : "af_packet");
    if (conf->pci != NULL)
        rc = guard_check_pci(conf->pci, &rules, err);
    if (rc == 0 && conf->vdev != NULL)
        rc = guard_check_vdev(conf->netns, conf->vdev, &rules, err);
    if (rc == 0 && conf->iface != NULL)
        rc = guard_check_interface(conf->netns, conf->iface, &rules, err);
    if (rc == 0 && conf->rdma != NULL) {
        rules.driver = "verbs";
        rc = guard_check_rdma(conf->netns, conf->rdma, &rules, err);
    }
    return rc;
}

/* Opening takes up to a second a port, so the node's loop has its turn after each. */
static int survey_port(struct node *node, struct node_port *port, const struct transport *transport,
                       struct err *err)
{
    int rc;

    if (transport_can(transport, TRANSPORT_TAKES_DEVICE) && waits_for_binding(node, port)) {
        port->unsurveyed = true;
        return 0;
    }
    leave_port(node, port);
    rc = open_port(node, port, transport, err);
    if (rc < 0)
        return rc;
    report_port(node, port);
    return node_turn(node, clock_now());
}

/* What is used first is opened last, and stays open for it. */
int ports_survey(struct node *node)
{
    struct err err = {0};
    int rc = 0;

    for (size_t i = 0; i < node->port_count && rc == 0; i++) {
        const struct doc_port *doc = node->ports[i].doc;

        for (unsigned t = 0; t < doc->transports_count && rc == 0; t++)
            if (transport_find(doc->transports[t]) == NULL)
                rc = err_set(&err, -EINVAL, "port %s: this build has no transport %s",
                             doc->conf.name, doc->transports[t]);
        node->has_shared_port |= doc->conf.shared;
        if (rc == 0)
            rc = ask_guard(doc, &err);
    }
    for (size_t i = 0; i < node->port_count && rc == 0; i++)
        rc = find_interface(&node->ports[i], &err);
    for (unsigned place = DOC_TRANSPORTS_MAX; place-- > 0 && rc == 0;) {
        for (size_t i = 0; i < node->port_count && rc == 0; i++) {
            struct node_port *port = &node->ports[i];
            const struct transport *transport = port_transport(port->doc, place);

            if (transport != NULL)
                rc = survey_port(node, port, transport, &err);
        }
    }
    return rc < 0 && err.text[0] != '\0' ? node_fail(node, 2, &err) : rc;
}

/* Gives each open port to its first queue's worker, which lets it answer the network between
 * phases.
 */
static int assign_workers(struct node *node)
{
    struct worker_port *mine = calloc(node->port_count > 0 ? node->port_count : 1, sizeof *mine);
    int rc = mine == NULL ? -ENOMEM : 0;

    for (size_t w = 0; w < node->worker_count && rc == 0; w++) {
        size_t count = 0;

        for (uint32_t i = 0; i < node->port_count; i++)
            if (node->ports[i].transport != NULL && job_worker_of(node, i, 0) == w)
                mine[count++] = (struct worker_port){node->ports[i].transport, node->ports[i].open};
        rc = worker_set_ports(node->workers[w], mine, count);
    }
    free(mine);
    return rc;
}

static int use_port(struct node *node, struct node_port *port, const struct transport *transport,
                    struct err *err)
{
    int rc = port->transport == NULL ? open_port(node, port, transport, err) : 0;

    if (rc == 0 && port->unsurveyed && is_to_be_bound(node, port) &&
        transport_can(transport, TRANSPORT_TAKES_DEVICE)) {
        report_port(node, port);
        port->unsurveyed = false;
    }
    return rc;
}

int ports_use(struct node *node, const struct transport *rest)
{
    struct err err = {0};
    int rc = 0;

    release_workers(node);
    for (size_t i = 0; i < node->port_count; i++) {
        struct node_port *port = &node->ports[i];

        if (port->transport != (port->wanted != NULL ? port->wanted : rest))
            leave_port(node, port);
    }
    for (size_t i = 0; i < node->port_count && rc == 0; i++) {
        if (node->ports[i].wanted == NULL)
            continue;
        rc = use_port(node, &node->ports[i], node->ports[i].wanted, &err);
        if (rc == 0)
            rc = node_turn(node, clock_now());
    }
    if (rc == 0 && (rc = assign_workers(node)) < 0)
        err_set(&err, rc, "out of memory");
    return rc < 0 && err.text[0] != '\0' ? node_fail(node, 3, &err) : rc;
}

static void report_link(struct node *node, const struct node_port *port, int64_t down_ns)
{
    char text[64] = "";

    if (port->link_up)
        snprintf(text, sizeof text, "it was down for %.1f s", (double)down_ns / 1e9);
    record_event(node->records, port->link_up ? "link-up" : "link-down", port->doc->conf.name,
                 text);
    log_warning("port %s: link %s%s%s", port->doc->conf.name, port->link_up ? "up" : "down",
                text[0] != '\0' ? ": " : "", text);
}

int ports_watch_links(struct node *node)
{
    int64_t now_ns = clock_now();

    for (size_t i = 0; i < node->port_count; i++) {
        struct node_port *port = &node->ports[i];
        struct port_status status;
        struct err err = {0};

        if (port->transport == NULL)
            continue;
        port->transport->status(port->open, &status);
        report_rejected(node, port, &status, false);
        if (status.link_up != port->link_up) {
            port->link_up = status.link_up;
            if (port->had_link)
                report_link(node, port, now_ns - port->down_ns);
            port->had_link = true;
            port->down_ns = status.link_up ? 0 : now_ns;
        }
        if (status.link_up || now_ns - port->down_ns <= LINK_WAIT_NS)
            continue;
        err_set(&err, -ENOLINK, "port %s has had no link for %lld s: check its cable and its peer",
                port->doc->conf.name, LINK_WAIT_NS / NS_PER_S);
        return node_fail(node, 3, &err);
    }
    return 0;
}

int ports_await_link(struct node *node)
{
    int64_t now_ns = clock_now();
    bool waiting = true;
    int rc = 0;

    for (size_t i = 0; i < node->port_count; i++) /* all have the same time from now on */
        node->ports[i].down_ns = node->ports[i].link_up ? 0 : now_ns;
    while (rc == 0 && waiting) {
        rc = ports_watch_links(node);
        waiting = false;
        for (size_t i = 0; i < node->port_count; i++)
            waiting |= node->ports[i].transport != NULL && !node->ports[i].link_up;
        if (rc == 0 && waiting)
            rc = node_turn(node, clock_now() + 50 * NS_PER_MS);
    }
    return rc;
}
