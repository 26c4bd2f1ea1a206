/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard_host.h"

#include "sysfs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Their servers stand in the option `addr` (NFS, SMB), or as a list in the source. */
static const char *const network_file_systems[] = {"nfs",    "nfs4", "cifs",          "smb3",
                                                   "lustre", "ceph", "fuse.glusterfs"};

/* Network block devices: a file for each connection, and what stands before the address in it. */
static const struct {
    const char *pattern;
    const char *before;
    const char *what;
} block_connections[] = {
    {"/sys/class/iscsi_connection/*/persistent_address", "", "mounted storage (iSCSI)"},
    {"/sys/class/iscsi_connection/*/address", "", "mounted storage (iSCSI)"},
    {"/sys/class/nvme/*/address", "traddr=", "mounted storage (NVMe over fabrics)"},
};

struct search {
    guard_server_fn *each;
    void *data;
    char what[96];
};

/* A numeric address, perhaps with a scope ("fe80::1%eth0"). FC and PCI devices have a `traddr` too,
 * and an iSCSI address may be "<NULL>": neither is one. */
static bool is_address(const char *text)
{
    char plain[INET6_ADDRSTRLEN];
    unsigned char bytes[sizeof(struct in6_addr)];

    snprintf(plain, sizeof(plain), "%.*s", (int)strcspn(text, "%"), text);
    return inet_pton(AF_INET, plain, bytes) == 1 || inet_pton(AF_INET6, plain, bytes) == 1;
}

static int found(const struct search *search, const char *text, size_t length)
{
    char address[INET6_ADDRSTRLEN + IF_NAMESIZE + 1];

    if (length >= sizeof(address))
        return 0;
    memcpy(address, text, length);
    address[length] = '\0';
    return is_address(address) ? search->each(search->data, address, search->what) : 0;
}

/* Every IPv4 address in "10.0.0.1@tcp:10.0.0.2@tcp:/scratch" or "10.0.0.1:6789,10.0.0.2:6789:/". */
static int search_source(const struct search *search, const char *source)
{
    int code = 0;

    for (const char *at = source; *at && code == 0; at += *at != '\0') {
        size_t length = strcspn(at, "@:,/");

        code = found(search, at, length);
        at += length;
    }
    return code;
}

static int search_mount(struct search *search, const struct mntent *mount)
{
    const char *option = hasmntopt(mount, "addr");
    bool on_network = false;
    int code = 0;

    for (size_t i = 0; i < sizeof(network_file_systems) / sizeof(*network_file_systems); i++)
        on_network |= strcmp(mount->mnt_type, network_file_systems[i]) == 0;
    if (!on_network)
        return 0;
    snprintf(search->what, sizeof(search->what), "mounted storage (%s at %.60s)", mount->mnt_type,
             mount->mnt_dir);
    if (option && strncmp(option, "addr=", 5) == 0)
        code = found(search, option + 5, strcspn(option + 5, ","));
    return code ? code : search_source(search, mount->mnt_fsname);
}

static int search_mounts(const char *root, struct search *search)
{
    char path[PATH_MAX], line[4096];
    struct mntent mount;
    FILE *mounts;
    int code = 0;

    snprintf(path, sizeof(path), "%s/proc/self/mounts", root);
    mounts = setmntent(path, "re");
    if (!mounts)
        return -errno;
    while (code == 0 && getmntent_r(mounts, &mount, line, sizeof(line)))
        code = search_mount(search, &mount);
    endmntent(mounts);
    return code;
}

static int search_blocks(const char *root, struct search *search)
{
    int code = 0;

    for (size_t i = 0; i < sizeof(block_connections) / sizeof(*block_connections); i++) {
        const char *before = block_connections[i].before;
        glob_t files;

        sysfs_glob(&files, "%s%s", root, block_connections[i].pattern);
        snprintf(search->what, sizeof(search->what), "%s", block_connections[i].what);
        for (size_t k = 0; k < files.gl_pathc && code == 0; k++) {
            char line[256];
            const char *at;

            sysfs_line(line, sizeof(line), "%s", files.gl_pathv[k]);
            at = strstr(line, before);
            if (at)
                code = found(search, at + strlen(before), strcspn(at + strlen(before), ","));
        }
        globfree(&files);
    }
    return code;
}

int guard_host_storage(const char *root, guard_server_fn *each, void *data)
{
    struct search search = {.each = each, .data = data};
    int code = search_mounts(root, &search);

    return code ? code : search_blocks(root, &search);
}

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

/* Is one of the folders on the way of `path` named like one of `devices`? */
static bool lies_below(const char *path, const glob_t *devices)
{
    for (size_t i = 0; i < devices->gl_pathc; i++) {
        char target[PATH_MAX];
        const char *at;
        size_t length;

        if (!realpath(devices->gl_pathv[i], target))
            continue;
        length = strlen(target);
        at = strncmp(path, target, length) == 0 ? path + length : NULL;
        if (at && (*at == '\0' || *at == '/'))
            return true;
    }
    return false;
}

static void add_interface(struct guard_interfaces *interfaces, const char *name)
{
    for (size_t i = 0; i < interfaces->count; i++)
        if (strcmp(interfaces->names[i], name) == 0)
            return;
    if (interfaces->count < GUARD_PCI_INTERFACES_MAX)
        snprintf(interfaces->names[interfaces->count++], IF_NAMESIZE, "%.15s", name);
}

static void list_interfaces(const char *root, const glob_t *devices,
                            struct guard_interfaces *interfaces)
{
    char path[PATH_MAX];
    glob_t nets;

    sysfs_glob(&nets, "%s/sys/class/net/*/device", root);
    for (size_t i = 0; i < nets.gl_pathc; i++) {
        if (!realpath(nets.gl_pathv[i], path) || !lies_below(path, devices))
            continue;
        *strrchr(nets.gl_pathv[i], '/') = '\0';
        add_interface(interfaces, strrchr(nets.gl_pathv[i], '/') + 1);
    }
    globfree(&nets);
}

/* Adds the interfaces of the device whose folder in /sys is `device`, and of the functions that
 * share its cable by SR-IOV. */
static void add_family(const char *root, const char *device, struct guard_interfaces *interfaces)
{
    static const char *const members[] = {"", "/physfn", "/virtfn*", "/physfn/virtfn*"};
    char pattern[PATH_MAX];
    glob_t devices = {0};

    for (size_t i = 0; i < sizeof(members) / sizeof(*members); i++) {
        snprintf(pattern, sizeof(pattern), "%s%s", device, members[i]);
        glob(pattern, i > 0 ? GLOB_APPEND : 0, NULL, &devices);
    }
    list_interfaces(root, &devices, interfaces);
    globfree(&devices);
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
    add_family(root, device, interfaces);
    return 0;
}

void guard_host_siblings(const char *root, const char *iface, struct guard_interfaces *interfaces)
{
    char device[PATH_MAX];

    interfaces->count = 0;
    snprintf(device, sizeof(device), "%s/sys/class/net/%s/device", root, iface);
    add_family(root, device, interfaces);
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
    add_family(root, device, interfaces);
    if (interfaces->count == 0 && !sysfs_exists("%s", device))
        return err_set(err, -EPERM,
                       "RDMA port %.40s: no interface and no device is found that it belongs to, "
                       "so that what its cable carries is not known: give the port a device that "
                       "the kernel tells of.",
                       port);
    return 0;
}
