/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard.h"

#include "guard_map.h"
#include "sysfs.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define OWN_INTERFACE "give the port an interface that nothing else needs"
#define HEX "[0-9a-f]"
#define PCI_SHAPE HEX HEX HEX HEX ":" HEX HEX ":" HEX HEX "." HEX
#define LOWER_MAX 16 /* maximum depth of stacked devices; more are a loop */

/* Return whether a device is the device `below`, or is stacked on it, directly or through other
 * devices. */
static bool leads_to(const struct guard_map *map, const struct guard_link *link, int below)
{
    for (int i = 0; link && i < LOWER_MAX; i++) {
        if (link->index == below)
            return true;
        link = link->elsewhere ? NULL : guard_map_at(map, link->lower);
    }
    return false;
}

/* Write the reason why a device is blocked by the routes that use it: "carries the IPv4 default
 * route"; "": not blocked. */
static void find_use(const struct guard_map *map, const struct guard_link *device, char *text,
                     size_t size)
{
    for (size_t i = 0; i < map->use_count; i++) {
        const struct guard_use *use = &map->uses[i];
        const struct guard_link *user = guard_map_at(map, use->index);

        if (use->index == ANY_DEVICE)
            snprintf(text, size, "may carry %s", use->what);
        else if (use->index == device->index)
            snprintf(text, size, "carries %s", use->what);
        else if (user && leads_to(map, user, device->index))
            snprintf(text, size, "shares a cable with %s, which carries %s", user->name, use->what);
        else
            continue;
        return;
    }
}

/* Write the reason why a device is blocked by its kind or its master (bridge, bond); "": not
 * blocked. A VRF is no reason, because its devices share routes but no cable. */
static void find_kind(const struct guard_map *map, const struct guard_link *device, char *text,
                      size_t size)
{
    const struct guard_link *master = guard_map_at(map, device->master);

    if (strcmp(device->kind, "bond") == 0 || strcmp(device->kind, "team") == 0)
        snprintf(text, size, "is a %s", device->kind);
    else if (device->master && !(master && strcmp(master->kind, "vrf") == 0))
        snprintf(text, size, "is a member of %s %s", master ? master->kind : "a device",
                 master ? master->name : "that is not known");
    else if (guard_link_is_tunnel(device))
        snprintf(text, size, "is a tunnel (%s), whose packets leave by another port", device->kind);
    else if (device->elsewhere)
        snprintf(text, size,
                 "sits on a device of another network namespace, so it is unknown what its cable "
                 "carries");
}

int guard_judge(const struct guard_map *map, const struct guard_link *port, const char *netns,
                const struct guard_rules *rules, struct err *err)
{
    bool inside = netns && *netns;
    const struct guard_link *device = port;
    char name[160], reason[256] = "", by[64] = "";

    snprintf(name, sizeof(name), "%s%s%.80s", port->name, inside ? " of network namespace " : "",
             inside ? netns : "");
    if (port->loopback)
        return err_set(err, -EPERM,
                       "Interface %s is the loopback interface, whose traffic never leaves this "
                       "host; " OWN_INTERFACE ".",
                       name);
    if (rules->shared)
        return 0;
    for (int i = 0; device && !*reason && i < LOWER_MAX; i++) {
        if (device != port)
            snprintf(by, sizeof(by), "sits on %s, which ", device->name);
        find_use(map, device, reason, sizeof(reason));
        if (!*reason)
            find_kind(map, device, reason, sizeof(reason));
        device = device->elsewhere ? NULL : guard_map_at(map, device->lower);
    }
    if (!*reason)
        return 0;
    return err_set(err, -EPERM,
                   "Interface %s %s%s; switchbench does not send there at line rate: " OWN_INTERFACE
                   "%s.",
                   name, by, reason, rules->takes_frames ? "" : ", or set `shared: true`");
}

/* --- interfaces of devices, from /sys --- */

static void add_interface(struct guard_interfaces *interfaces, const char *name)
{
    for (size_t i = 0; i < interfaces->count; i++)
        if (strcmp(interfaces->names[i], name) == 0)
            return;
    if (interfaces->count < GUARD_INTERFACES_MAX)
        snprintf(interfaces->names[interfaces->count++], IF_NAMESIZE, "%.15s", name);
}

/* Add the interfaces of the device whose folder in /sys is `device`. For virtio they are one level
 * deeper. */
static void add_device(const char *device, struct guard_interfaces *interfaces)
{
    glob_t found;

    sysfs_glob(&found, "%s/{net,virtio*/net}/*", device);
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_interface(interfaces, strrchr(found.gl_pathv[i], '/') + 1);
    globfree(&found);
}

int guard_host_pci(const char *root, const char *pci, struct guard_interfaces *interfaces,
                   struct err *err)
{
    char device[PATH_MAX];

    interfaces->count = 0;
    if (fnmatch(PCI_SHAPE, pci, 0) != 0)
        return err_set(
            err, -EINVAL,
            "%.40s is not a PCI address; write it as 0000:3b:00.0 (lspci -D shows them).", pci);
    snprintf(device, sizeof(device), "%s/sys/bus/pci/devices/%s", root, pci);
    if (!sysfs_exists("%s", device))
        return err_set(err, -ENODEV,
                       "There is no PCI device %s; `lspci -D -d ::02xx` lists the network devices.",
                       pci);
    add_device(device, interfaces);
    return 0;
}

int guard_host_rdma(const char *root, const char *port, struct guard_interfaces *interfaces,
                    struct err *err)
{
    const char *number = strchr(port, '/') ? strchr(port, '/') + 1 : "1";
    char rdma[PATH_MAX], device[PATH_MAX + 8], name[IF_NAMESIZE + 1];
    glob_t owners;

    interfaces->count = 0;
    snprintf(rdma, sizeof(rdma), "%s/sys/class/infiniband/%.*s", root, (int)strcspn(port, "/"),
             port);
    snprintf(device, sizeof(device), "%s/device", rdma);
    if (*port == '.' || strspn(number, "0123456789") != strlen(number) ||
        !sysfs_exists("%s/ports/%s", rdma, number))
        return err_set(err, -ENODEV, "There is no RDMA port %.40s; `rdma link` lists them.", port);
    /* Unused GIDs can't be read, and a device without interfaces names none. */
    sysfs_glob(&owners, "%s/ports/%s/gid_attrs/ndevs/*", rdma, number);
    for (size_t i = 0; i < owners.gl_pathc; i++)
        if (sysfs_line(name, sizeof(name), "%s", owners.gl_pathv[i]))
            add_interface(interfaces, name);
    globfree(&owners);
    if (sysfs_line(name, sizeof(name), "%s/parent", rdma)) /* Soft-RoCE names its interface here */
        add_interface(interfaces, name);
    add_device(device, interfaces);
    if (interfaces->count == 0 && !sysfs_exists("%s", device))
        return err_set(
            err, -EPERM,
            "RDMA port %.40s belongs to no interface or PCI device in /sys, so it is not "
            "known whether traffic there is safe: name an RDMA port that has one.",
            port);
    return 0;
}

/* --- the checks --- */

static int no_such_interface(const struct guard_map *map, const char *iface, const char *netns,
                             struct err *err)
{
    char names[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < map->link_count && used < sizeof(names); i++)
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
                                 map->links[i].name);
    return err_set(err, -ENODEV, "There is no interface %.40s in %s%.80s; there are: %s.", iface,
                   netns && *netns ? "network namespace " : "this network namespace",
                   netns ? netns : "", names);
}

int guard_check_interface(const char *netns, const char *iface, const struct guard_rules *rules,
                          struct err *err)
{
    struct guard_map map = {0};
    int code = guard_map_read(&map, netns, rules->controller, err);

    if (code == 0) {
        const struct guard_link *port = guard_map_find(&map, iface);

        code = port ? guard_judge(&map, port, netns, rules, err)
                    : no_such_interface(&map, iface, netns, err);
    }
    guard_map_free(&map);
    return code;
}

int guard_check_pci(const char *pci, const struct guard_rules *rules, struct err *err)
{
    struct guard_interfaces interfaces;
    int code = guard_host_pci("", pci, &interfaces, err);

    for (size_t i = 0; i < interfaces.count && code == 0; i++)
        code = guard_check_interface(NULL, interfaces.names[i], rules, err);
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
        if (code == -ENODEV && netns != NULL) /* /sys shows the namespace of the process */
            code = guard_check_interface(NULL, interfaces.names[i], rules, err);
        else if (code < 0)
            *err = here;
    }
    return code;
}

/* Device arguments may contain nested devices (net_failsafe) in parentheses, and lists in brackets;
 * the check splits at these characters, too. */
int guard_check_vdev(const char *netns, const char *vdev, const struct guard_rules *rules,
                     struct err *err)
{
    struct guard_map map = {0};
    int code = guard_map_read(&map, netns, NULL, err);

    for (const char *at = vdev; *at && code == 0; at += *at != '\0') {
        size_t length = strcspn(at, ",=()[]");
        char value[64];

        if (length < sizeof(value)) {
            snprintf(value, sizeof(value), "%.*s", (int)length, at);
            if (guard_map_find(&map, value))
                code = guard_check_interface(netns, value, rules, err);
            else if (fnmatch(PCI_SHAPE, value, 0) == 0)
                code = guard_check_pci(value, rules, err);
        }
        at += length;
    }
    guard_map_free(&map);
    return code;
}
