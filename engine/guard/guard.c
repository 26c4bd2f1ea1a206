/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"

#include "guard_host.h"
#include "guard_servers.h"
#include "topology.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OWN_INTERFACE "give the port an interface that nothing else needs"

/* Why a port is refused: the device that it is about, and what there is to say of it. */
struct reason {
    const struct topology_link *device;
    char text[192]; /* a verb and its object: "carries the IPv4 default route (table main)" */
};

static const char *driver_name(const struct guard_rules *rules)
{
    return rules->driver && *rules->driver ? rules->driver : "this driver";
}

/* What to do, by what `shared` could change. */
static void remedy(const struct guard_rules *rules, char *text, size_t size)
{
    if (rules->leaves_kernel && rules->shared)
        snprintf(text, size,
                 "a device that has to leave its kernel driver is never shared, whatever `shared` "
                 "says: " OWN_INTERFACE);
    else if (rules->shared)
        snprintf(text, size,
                 "`shared: true` allows it only where the driver isolates flows (rte_flow isolated "
                 "mode), which %s does not: " OWN_INTERFACE,
                 driver_name(rules));
    else if (rules->isolates_flows && !rules->leaves_kernel)
        snprintf(text, size, OWN_INTERFACE ", or say `shared: true`");
    else
        snprintf(text, size, OWN_INTERFACE);
}

/* "eth0 of network namespace n1" */
static void name_port(const struct topology_link *port, const char *netns, char *text, size_t size)
{
    bool inside = netns && *netns;

    snprintf(text, size, "%s%s%.80s", port->name, inside ? " of network namespace " : "",
             inside ? netns : "");
}

static int refuse(const struct reason *reason, const struct topology_link *port, const char *name,
                  const struct guard_rules *rules, struct err *err)
{
    char advice[200], by[64] = "";

    remedy(rules, advice, sizeof(advice));
    if (reason->device && reason->device != port)
        snprintf(by, sizeof(by), "shares a cable or a bridge with %s, which ",
                 reason->device->name);
    return err_set(err, -EPERM, "Interface %s %s%s; traffic at line rate may not go there: %s.",
                   name, by, reason->text, advice);
}

static const struct topology_link *user(const struct topology *map, const struct critical_use *use)
{
    for (size_t i = 0; i < map->link_count; i++) {
        const struct topology_link *link = &map->links[i];

        if (link->reached && link->space == use->space &&
            (use->index == ANY_DEVICE || link->index == use->index))
            return link;
    }
    return NULL;
}

static bool find_use(const struct topology *map, const struct topology_link *port,
                     struct reason *reason)
{
    for (size_t i = 0; i < map->use_count; i++) {
        const struct critical_use *use = &map->uses[i];

        reason->device =
            use->index == port->index && use->space == port->space ? port : user(map, use);
        if (!reason->device)
            continue;
        snprintf(reason->text, sizeof(reason->text), "%s %s",
                 use->index == ANY_DEVICE ? "may carry" : "carries", use->what);
        return true;
    }
    return false;
}

/* A veth's end is a cable's end; what sits on a device (VLAN, macvlan) sends through it. */
static bool is_pair(const struct topology_link *link)
{
    return strcmp(link->kind, "veth") == 0 || strcmp(link->kind, "netkit") == 0;
}

static bool find_device(const struct topology *map, const struct topology_link *port,
                        struct reason *reason)
{
    for (size_t i = 0; i < map->link_count; i++) {
        const struct topology_link *link = &map->links[i];

        if (!link->reached)
            continue;
        reason->device = link;
        if (strcmp(link->kind, "bond") == 0 || strcmp(link->kind, "team") == 0) {
            snprintf(reason->text, sizeof(reason->text), "is a %s", link->kind);
            return true;
        }
        if (topology_is_tunnel(link) && (link == port || link->master)) {
            snprintf(reason->text, sizeof(reason->text),
                     "is a tunnel (%s), whose packets leave by another port", link->kind);
            return true;
        }
        if (link->peer && link->peer_space == SPACE_UNKNOWN && !is_pair(link)) {
            snprintf(
                reason->text, sizeof(reason->text),
                "sits on a device of a network namespace that can't be seen from here, so that "
                "what the cable carries is not known");
            return true;
        }
    }
    return false;
}

int guard_judge(const struct topology *map, const struct topology_link *port, const char *netns,
                const struct guard_rules *rules, struct err *err)
{
    bool may_share = rules->shared && rules->isolates_flows && !rules->leaves_kernel;
    struct reason reason = {0};
    char name[160];

    name_port(port, netns, name, sizeof(name));
    if (port->loopback)
        return err_set(
            err, -EPERM,
            "Interface %s is the loopback, where no traffic meets a network; " OWN_INTERFACE ".",
            name);
    if (may_share)
        return 0;
    if (find_use(map, port, &reason) || find_device(map, port, &reason))
        return refuse(&reason, port, name, rules, err);
    if (rules->shared && rules->leaves_kernel)
        return err_set(err, -EPERM,
                       "Interface %s can't be `shared: true`: it has to leave its kernel driver, "
                       "and such a device is never shared; leave `shared` out.",
                       name);
    if (rules->shared)
        return err_set(err, -EPERM,
                       "Interface %s can't be `shared: true`: %s does not isolate flows (rte_flow "
                       "isolated mode); nothing was found there that needs it, so leave `shared` "
                       "out.",
                       name, driver_name(rules));
    return 0;
}

static int no_such_interface(const struct topology *map, int space, const char *iface,
                             const char *netns, struct err *err)
{
    char names[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < map->link_count; i++) {
        if (map->links[i].space != space)
            continue;
        if (used + IF_NAMESIZE + sizeof(", ...") > sizeof(names)) {
            snprintf(names + used, sizeof(names) - used, ", ...");
            break;
        }
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
                                 map->links[i].name);
    }
    return err_set(err, -ENODEV, "There is no interface %.40s in %s%.80s; there are: %s.", iface,
                   netns && *netns ? "network namespace " : "this network namespace",
                   netns ? netns : "", names);
}

/* Where what belongs to the whole host is added to. */
struct host {
    struct topology *map;
    int space;
    struct err *err;
};

static int add_server(void *data, const char *address, const char *what)
{
    struct host *host = data;

    return topology_add_route(host->map, host->space, address, what, host->err);
}

static int add_host_uses(struct host *host, const struct guard_rules *rules)
{
    struct guard_servers own = {0}, *servers = rules->servers ? rules->servers : &own;
    char what[96];
    int code = 0;

    if (rules->controller && *rules->controller) {
        snprintf(what, sizeof(what), "the controller's connection (from %.46s)", rules->controller);
        code = topology_add_route(host->map, host->space, rules->controller, what, host->err);
    }
    if (code == 0)
        code = guard_servers_find(servers, "", getppid());
    if (code == 0)
        code = guard_servers_each(servers, add_server, host);
    guard_servers_free(&own);
    if (code)
        err_set(host->err, code,
                "It can't be found out which interfaces lead to the controller or to mounted "
                "storage: %s.",
                strerror(-code));
    return code;
}

/* Virtual functions share their physical function's cable, but the kernel links none of them. /sys
 * has the interfaces of the process's own namespace. */
static void mark_siblings(struct topology *map, int own_space)
{
    struct guard_interfaces siblings;

    for (size_t i = 0; i < map->link_count; i++) {
        const struct topology_link *link = &map->links[i];

        if (!link->reached || link->space != own_space || *link->kind)
            continue;
        guard_host_siblings("", link->name, &siblings);
        for (size_t k = 0; k < siblings.count; k++) {
            struct topology_link *sibling = topology_find(map, own_space, siblings.names[k]);

            if (sibling)
                sibling->reached = true;
        }
    }
    topology_mark_connected(map);
}

/* Marks all that shares a cable or a bridge with `iface`, across namespaces once. */
static int mark(struct topology *map, int own_space, int space, const char *iface,
                const char *netns, struct err *err)
{
    struct topology_link *port = topology_find(map, space, iface);
    int code;

    if (!port)
        return no_such_interface(map, space, iface, netns, err);
    port->reached = true;
    topology_mark_connected(map);
    code = topology_cross_namespaces(map, space, netns, err);
    topology_mark_connected(map);
    mark_siblings(map, own_space);
    return code;
}

int guard_check_interface(const char *netns, const char *iface, const struct guard_rules *rules,
                          struct err *err)
{
    struct topology map = {0};
    struct host host = {.map = &map, .err = err};
    int space, code;

    code = topology_read(&map, NULL, &host.space, err);
    if (code == 0)
        code = topology_read(&map, netns, &space, err);
    if (code == 0)
        code = mark(&map, host.space, space, iface, netns, err);
    if (code == 0)
        code = add_host_uses(&host, rules);
    if (code == 0)
        code = guard_judge(&map, topology_find(&map, space, iface), netns, rules, err);
    topology_free(&map);
    return code;
}

int guard_check_pci(const char *pci, const struct guard_rules *rules, struct err *err)
{
    struct guard_interfaces interfaces;
    int code = guard_host_pci("", pci, &interfaces, err);

    for (size_t i = 0; i < interfaces.count && code == 0; i++)
        code = guard_check_interface(NULL, interfaces.names[i], rules, err);
    if (code == 0 && rules->shared && rules->leaves_kernel)
        code = err_set(err, -EPERM,
                       "PCI device %s can't be `shared: true`: DPDK has it without the kernel, so "
                       "that nobody else can use it; leave `shared` out.",
                       pci);
    return code;
}

int guard_check_rdma(const char *netns, const char *rdma, const struct guard_rules *rules,
                     struct err *err)
{
    struct guard_interfaces interfaces;
    int code = guard_host_rdma("", rdma, &interfaces, err);

    for (size_t i = 0; i < interfaces.count && code == 0; i++) {
        struct err here = {0};

        code = guard_check_interface(netns, interfaces.names[i], rules, &here);
        /* A virtual function's relatives stay in the host's namespace. */
        if (code == -ENODEV && netns != NULL)
            code = guard_check_interface(NULL, interfaces.names[i], rules, err);
        else if (code < 0)
            *err = here;
    }
    return code;
}

/* One value among a device's arguments: an interface, a PCI address, or neither. */
static int check_value(const struct topology *map, const char *netns, const char *value,
                       const struct guard_rules *rules, struct err *err)
{
    if (topology_find(map, 0, value))
        return guard_check_interface(netns, value, rules, err);
    if (guard_host_is_pci(value))
        return guard_check_pci(value, rules, err);
    return 0;
}

int guard_check_vdev(const char *netns, const char *vdev, const struct guard_rules *rules,
                     struct err *err)
{
    struct topology map = {0};
    int space, code = topology_read(&map, netns, &space, err);

    /* Nested devices (net_failsafe) stand in parentheses, lists in brackets. */
    for (const char *at = vdev; *at && code == 0; at += *at != '\0') {
        size_t length = strcspn(at, ",=()[]");
        char value[64];

        if (length < sizeof(value)) {
            memcpy(value, at, length);
            value[length] = '\0';
            code = check_value(&map, netns, value, rules, err);
        }
        at += length;
    }
    topology_free(&map);
    return code;
}
