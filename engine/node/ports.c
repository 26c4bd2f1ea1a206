/* SPDX-License-Identifier: BSD-3-Clause
 *
 * This node's ports: each is used in one transport at a time, after the guard's check, and its link
 * is watched.
 */
#include "node.h"

#include "clock.h"
#include "guard.h"
#include "log.h"
#include "registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINK_WAIT_NS (10 * NS_PER_S)
#define LOOK_NS (50 * NS_PER_MS)

/* --- which transports a port has --- */

static struct port_opening *opening_in(struct node_port *port, const struct transport *transport)
{
    struct port_opening *opening = port->openings;

    while (opening->transport != NULL && opening->transport != transport)
        opening++;
    opening->transport = transport;
    return opening;
}

/* Find the transports of the document's list, in the order of first use. */
static int choose_transports(struct node_port *port, struct err *err)
{
    const struct doc_port *doc = port->doc;

    for (unsigned i = 0; i < doc->transports_count; i++) {
        const struct transport *transport = transport_find(doc->transports[i]);

        if (transport == NULL)
            return err_set(err, -EINVAL, "port %s: this build has no transport %s", doc->conf.name,
                           doc->transports[i]);
        port->capabilities |= opening_in(port, transport)->transport->capabilities;
    }
    return 0;
}

/* --- opening and closing --- */

/* Return a number as JSON; null if it is 0, which means unknown. */
static json_t *known(uint64_t number)
{
    return number > 0 ? record_u64(number) : json_null();
}

static void report_port(struct node *node, const struct node_port *port,
                        const struct port_facts *facts)
{
    int cores[CORES_WORKERS_MAX]; /* cores of its queues */
    uint32_t queues = port->queues < CORES_WORKERS_MAX ? port->queues : CORES_WORKERS_MAX;
    bool rdma = facts->rdma[0] != '\0';

    for (uint32_t queue = 0; queue < queues; queue++)
        cores[queue] = node->cores.core[node_worker_of(node, port, queue)];
    record_write(
        node->records, "port-open",
        RECORD_ROWS(
            {"port", json_string(port->conf.name)}, {"network", json_string(port->conf.network)},
            {"transport", json_string(port->transport->name)},
            {"driver", record_text(facts->driver)}, {"mac", record_text(facts->mac)},
            {"ipv4", record_text(facts->ipv4)}, {"ipv6", record_text(facts->ipv6)},
            {"link_bps", known(facts->link_bps)}, {"line_rate_bps", known(port->line_rate_bps)},
            {"frame_max", known(facts->frame_max)}, {"numa", record_count(facts->numa_node)},
            {"queues", json_integer(port->queues)}, {"cores", record_numbers(cores, queues)},
            {"offloads", record_text(facts->offloads)}, {"mtu", known(facts->mtu)},
            {"congestion", record_text(facts->congestion)},
            {"rdma", rdma ? record_text(facts->rdma) : NULL},
            {"link_layer", rdma ? record_text(facts->link_layer) : NULL},
            {"gid", rdma ? record_text(facts->gid) : NULL},
            {"gid_index", rdma ? record_count(facts->gid_index) : NULL}));
}

/* Update a port's line rate, and its address data, from which partners read the line rate. */
static void learn_line(struct node_port *port, const struct port_facts *facts)
{
    port->line_rate_bps = port->conf.line_rate_bps > 0 ? port->conf.line_rate_bps : facts->link_bps;
    port->address = facts->address;
}

static int open_port(struct node *node, struct node_port *port, const struct transport *transport)
{
    struct port_opening *opening = opening_in(port, transport);
    struct port_facts facts = {.numa_node = -1};
    int rc = 0;

    if (opening->open == NULL)
        rc = transport_open(transport, &opening->open, &port->conf, &node->run, &node->err);
    if (rc < 0)
        return rc;
    port->transport = transport;
    port->open = opening->open;
    transport->facts(port->open, &facts, false);
    port->queues = facts.queues > 0 ? facts.queues : 1;
    learn_line(port, &facts);
    port->had_link = port->link_up = facts.link_up;
    port->down_ns = port->link_up ? 0 : clock_now();
    port->connect_fd = facts.connect_fd;
    if (!opening->is_reported)
        report_port(node, port, &facts);
    opening->is_reported = true;
    return 0;
}

/* Write a record about connections that did not prove the run's key, if their number has doubled
 * since the last such record: a flood of connections must not fill the records. `all`: also if it
 * has not doubled, when the port is closed. */
static void report_rejected(struct node *node, struct node_port *port,
                            const struct port_facts *facts, bool all)
{
    char text[300];

    if (facts->rejected <= port->rejected_told ||
        (!all && facts->rejected < 2 * port->rejected_told))
        return;
    port->rejected_told = facts->rejected;
    snprintf(text, sizeof text,
             "rejected connections without this run's key: %llu; the last one from %s",
             (unsigned long long)facts->rejected, facts->last_rejected);
    record_event(node->records, "unauthenticated", port->conf.name, text);
}

static void close_opening(struct node *node, struct node_port *port, struct port_opening *opening)
{
    struct port_facts facts;

    if (opening->open == NULL)
        return;
    opening->transport->facts(opening->open, &facts, false);
    report_rejected(node, port, &facts, true);
    port->rejected_told = 0;
    opening->transport->close(opening->open);
    opening->open = NULL;
}

/* End the use of a port in its present transport, and close the port, so that another transport can
 * use it. An independent device stays open: closing a memif would disconnect its other end at each
 * change, and DPDK 22.11 does this in a thread of its own while other threads use the device. */
static void leave_port(struct node *node, struct node_port *port)
{
    struct port_facts facts = {0};

    if (port->transport == NULL)
        return;
    port->transport->facts(port->open, &facts, false);
    if (!facts.independent)
        close_opening(node, port, opening_in(port, port->transport));
    port->transport = NULL;
    port->open = NULL;
}

void ports_close(struct node *node)
{
    for (size_t i = 0; i < node->worker_count; i++)
        worker_set_ports(node->workers[i], NULL, 0);
    for (size_t i = 0; i < node->port_count; i++) {
        struct node_port *port = &node->ports[i];

        for (unsigned t = 0; t < DOC_TRANSPORTS_MAX; t++)
            close_opening(node, port, &port->openings[t]);
        port->transport = NULL;
    }
}

/* --- before the run --- */

static int ask_guard(const struct node_port *port, struct err *err)
{
    const struct port_conf *conf = &port->doc->conf;
    const char *connection = getenv("SSH_CONNECTION");
    bool takes_frames = (port->capabilities & TRANSPORT_TAKES_DEVICE) != 0;
    char controller[64];
    struct guard_rules rules = {
        .controller = controller,
        .shared = conf->shared,
        .takes_frames = takes_frames,
    };
    int rc = 0;

    /* Sockets of the kernel and queue pairs of an RDMA device get only their own traffic. */
    if (conf->shared && takes_frames)
        return err_set(err, -EPERM,
                       "port %s can't be `shared: true`: dpdk receives all frames of a port; "
                       "remove `shared`, or use tcp, udp or verbs there",
                       conf->name);
    /* The first word is the address of the person or the controller that started this node. */
    snprintf(controller, sizeof controller, "%s", connection != NULL ? connection : "");
    controller[strcspn(controller, " ")] = '\0';
    if (conf->pci != NULL)
        rc = guard_check_pci(conf->pci, &rules, err);
    if (rc == 0 && conf->vdev != NULL)
        rc = guard_check_vdev(conf->netns, conf->vdev, &rules, err);
    if (rc == 0 && conf->iface != NULL)
        rc = guard_check_interface(conf->netns, conf->iface, &rules, err);
    if (rc == 0 && conf->rdma != NULL)
        rc = guard_check_rdma(conf->netns, conf->rdma, &rules, err);
    return rc;
}

/* Find the kernel interface of a PCI device that the document does not name. */
static int find_interface(struct node_port *port, struct err *err)
{
    struct guard_interfaces found;
    int rc;

    if (port->conf.pci == NULL || port->conf.iface != NULL ||
        (port->capabilities & TRANSPORT_NEEDS_IFACE) == 0)
        return 0;
    rc = guard_host_pci("", port->conf.pci, &found, err);
    if (rc == 0 && found.count == 0)
        rc = err_set(err, -ENODEV,
                     "port %s: PCI device %s has no kernel interface for tcp or udp; if it is "
                     "bound to a DPDK driver, run `switchbench restore`",
                     port->conf.name, port->conf.pci);
    if (rc != 0)
        return rc;
    memcpy(port->iface, found.names[0], sizeof port->iface);
    port->conf.iface = port->iface;
    return 0;
}

int ports_use(struct node *node, const struct transport *rest)
{
    struct worker_port *open = calloc(node->port_count + 1, sizeof *open);
    int rc = open != NULL ? 0 : err_set(&node->err, -ENOMEM, "out of memory");

    for (size_t w = 0; w < node->worker_count; w++)
        worker_set_ports(node->workers[w], NULL, 0);
    for (size_t i = 0; i < node->port_count; i++) {
        struct node_port *port = &node->ports[i];

        if (port->transport != (port->wanted != NULL ? port->wanted : rest))
            leave_port(node, port);
    }
    for (size_t i = 0; i < node->port_count && rc == 0; i++) {
        struct node_port *port = &node->ports[i];
        struct port_facts facts;

        if (port->wanted == NULL)
            continue;
        if (port->transport == NULL) {
            rc = open_port(node, port, port->wanted);
        } else {
            port->transport->facts(port->open, &facts, false);
            if (facts.link_up)
                learn_line(port, &facts); /* the link may have come up after the port was opened */
        }
        if (rc == 0) /* opening a port takes up to a second */
            rc = node_turn(node, clock_now());
    }
    /* The worker of a port's first queue answers the network between phases. */
    for (size_t w = 0; w < node->worker_count && rc == 0; w++) {
        size_t count = 0;

        for (size_t i = 0; i < node->port_count; i++)
            if (node->ports[i].transport != NULL && node_worker_of(node, &node->ports[i], 0) == w)
                open[count++] = (struct worker_port){node->ports[i].transport, node->ports[i].open};
        if (worker_set_ports(node->workers[w], open, count) < 0)
            rc = err_set(&node->err, -ENOMEM, "out of memory");
    }
    free(open);
    return rc;
}

/* Open the ports in their transports in reverse order: the first one is opened last, and stays
 * open. */
int ports_survey(struct node *node)
{
    int rc = 0;

    for (size_t i = 0; i < node->port_count && rc == 0; i++) {
        struct node_port *port = &node->ports[i];

        rc = choose_transports(port, &node->err);
        if (rc == 0)
            rc = ask_guard(port, &node->err);
    }
    for (size_t i = 0; i < node->port_count && rc == 0; i++)
        rc = find_interface(&node->ports[i], &node->err);
    for (unsigned place = DOC_TRANSPORTS_MAX; place-- > 0 && rc == 0;) {
        for (size_t i = 0; i < node->port_count; i++)
            node->ports[i].wanted = node->ports[i].openings[place].transport;
        rc = ports_use(node, NULL);
    }
    return rc;
}

int ports_watch_links(struct node *node)
{
    int64_t now_ns = clock_now();

    for (size_t i = 0; i < node->port_count; i++) {
        struct node_port *port = &node->ports[i];
        struct port_facts facts;
        char text[64] = "";

        if (port->transport == NULL)
            continue;
        port->transport->facts(port->open, &facts, false);
        report_rejected(node, port, &facts, false);
        if (facts.link_up != port->link_up) {
            port->link_up = facts.link_up;
            if (port->link_up) {
                learn_line(port, &facts); /* a device may know its speed only now */
                snprintf(text, sizeof text, "the link was down for %.1f s",
                         (double)(now_ns - port->down_ns) / 1e9);
            }
            if (port->had_link) {
                record_event(node->records, port->link_up ? "link-up" : "link-down",
                             port->conf.name, text);
                log_warning("port %s: link %s%s%s", port->conf.name, port->link_up ? "up" : "down",
                            port->link_up ? ": " : "", text);
            }
            port->had_link = true;
            port->down_ns = facts.link_up ? 0 : now_ns;
        }
        if (!facts.link_up && now_ns - port->down_ns > LINK_WAIT_NS)
            return err_set(&node->err, -ENOLINK,
                           "port %s has had no link for %lld s: check its cable and its peer",
                           port->conf.name, LINK_WAIT_NS / NS_PER_S);
    }
    return 0;
}

int ports_await_link(struct node *node)
{
    bool waiting = true;
    int rc = 0;

    for (size_t i = 0; i < node->port_count; i++) /* the time limit of all links begins now */
        node->ports[i].down_ns = node->ports[i].link_up ? 0 : clock_now();
    while (rc == 0 && waiting) {
        rc = ports_watch_links(node);
        waiting = false;
        for (size_t i = 0; i < node->port_count; i++)
            waiting |= node->ports[i].transport != NULL && !node->ports[i].link_up;
        if (rc == 0 && waiting)
            rc = node_turn(node, clock_now() + LOOK_NS);
    }
    return rc;
}
