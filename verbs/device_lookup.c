/* SPDX-License-Identifier: BSD-3-Clause */
#include "device_lookup.h"

#include "sysfs.h"

#include <stdio.h>
#include <string.h>

#define PATH_BYTES 512

/* ".../infiniband/<device>/ports/<number>/gid_attrs/..." as "<device>/<number>" */
static bool write_name(const char *path, char *name, size_t size)
{
    const char *device = strstr(path, "/infiniband/") + strlen("/infiniband/");
    const char *number = strstr(device, "/ports/") + strlen("/ports/");
    int written = snprintf(name, size, "%.*s/%.*s", (int)strcspn(device, "/"), device,
                           (int)strcspn(number, "/"), number);

    return written > 0 && (size_t)written < size;
}

static bool find_by_gids(const char *sys, const char *iface, char *name, size_t size)
{
    bool named = false;
    char owner[64];
    glob_t found;

    sysfs_glob(&found, "%s/class/infiniband/*/ports/*/gid_attrs/ndevs/*", sys);
    for (size_t i = 0; i < found.gl_pathc && !named; i++)
        named = sysfs_line(owner, sizeof owner, "%s", found.gl_pathv[i]) &&
                strcmp(owner, iface) == 0 && write_name(found.gl_pathv[i], name, size);
    globfree(&found);
    return named;
}

/* The device in `folder`/infiniband, with a port of it. */
static bool find_in(const char *folder, unsigned port, char *name, size_t size)
{
    glob_t found;
    bool named;

    sysfs_glob(&found, "%s/infiniband/*/ports/%u", folder, port);
    named = found.gl_pathc > 0 && write_name(found.gl_pathv[0], name, size);
    globfree(&found);
    return named;
}

bool verbs_device_of_interface(const char *sys, const char *iface, char *name, size_t size)
{
    char path[PATH_BYTES];
    unsigned port;

    if (find_by_gids(sys, iface, name, size))
        return true;
    port = (unsigned)sysfs_number(0, "%s/class/net/%s/dev_port", sys, iface);
    snprintf(path, sizeof path, "%s/class/net/%s/device", sys, iface);
    return find_in(path, port + 1, name, size);
}

bool verbs_device_of_pci(const char *sys, const char *pci, char *name, size_t size)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/bus/pci/devices/%s", sys, pci);
    return find_in(path, 1, name, size);
}
