/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard_host.h"

#include "sysfs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bool guard_host_is_pci(const char *text)
{
    static const char shape[] = "hhhh:hh:hh.h";

    for (size_t i = 0; i < sizeof(shape); i++) {
        if (shape[i] == 'h' ? !text[i] || !strchr("0123456789abcdef", text[i])
                            : text[i] != shape[i])
            return false;
    }
    return true;
}

static void add_interface(struct guard_interfaces *interfaces, const char *name)
{
    for (size_t i = 0; i < interfaces->count; i++)
        if (strcmp(interfaces->names[i], name) == 0)
            return;
    if (interfaces->count < GUARD_INTERFACES_MAX)
        snprintf(interfaces->names[interfaces->count++], IF_NAMESIZE, "%.15s", name);
}

/* Those of the device whose folder in /sys is `device`. Virtio has a bus of its own in between. */
static void add_device(const char *device, struct guard_interfaces *interfaces)
{
    static const char *const places[] = {"net/*", "virtio*/net/*"};

    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        glob_t found;

        sysfs_glob(&found, "%s/%s", device, places[i]);
        for (size_t k = 0; k < found.gl_pathc; k++)
            add_interface(interfaces, strrchr(found.gl_pathv[k], '/') + 1);
        globfree(&found);
    }
}

int guard_host_pci(const char *root, const char *pci, struct guard_interfaces *interfaces,
                   struct err *err)
{
    char device[PATH_MAX];

    interfaces->count = 0;
    if (!guard_host_is_pci(pci))
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
    /* Unused GIDs can't be read, and those of a device without interfaces name none. */
    sysfs_glob(&owners, "%s/ports/%s/gid_attrs/ndevs/*", rdma, number);
    for (size_t i = 0; i < owners.gl_pathc; i++)
        if (sysfs_line(name, sizeof(name), "%s", owners.gl_pathv[i]))
            add_interface(interfaces, name);
    globfree(&owners);
    if (sysfs_line(name, sizeof(name), "%s/parent", rdma)) /* Soft-RoCE's own word for it */
        add_interface(interfaces, name);
    add_device(device, interfaces);
    if (interfaces->count == 0 && !sysfs_exists("%s", device))
        return err_set(err, -EPERM,
                       "RDMA port %.40s: no interface and no device is found that it belongs to, "
                       "so that what its cable carries is not known: give the port a device that "
                       "the kernel tells of.",
                       port);
    return 0;
}
