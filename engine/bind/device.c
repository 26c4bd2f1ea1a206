/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void bind_device_driver(const char *root, const char *pci, char driver[static DEVICE_WORD])
{
    sysfs_link(driver, DEVICE_WORD, DEVICE_PATH "/driver", root, pci);
}

bool bind_device_driver_is_user(const char *driver)
{
    return strcmp(driver, "vfio-pci") == 0 || strcmp(driver, "uio_pci_generic") == 0 ||
           strcmp(driver, "igb_uio") == 0;
}

void bind_device_interfaces(const char *root, const char *pci, struct device_interfaces *found)
{
    /* Virtio has a bus of its own in between. A star there would find the interfaces of physfn and
     * virtfn*, too. */
    static const char *const places[] = {"net/*", "virtio*/net/*"};

    found->count = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        glob_t paths;

        sysfs_glob(&paths, DEVICE_PATH "/%s", root, pci, places[i]);
        for (size_t k = 0; k < paths.gl_pathc && found->count < DEVICE_INTERFACES_MAX; k++) {
            const char *path = paths.gl_pathv[k];

            found->list[found->count].port = (long)sysfs_number(0, "%s/dev_port", path);
            snprintf(found->list[found->count++].name, IF_NAMESIZE, "%.15s",
                     strrchr(path, '/') + 1);
        }
        globfree(&paths);
    }
}

/* "/dev/uio0" or "/dev/vfio/12", by what drives the device; "": neither. */
static void find_node(const char *root, const char *pci, char node[static PATH_MAX])
{
    char driver[DEVICE_WORD], group[DEVICE_WORD];
    glob_t uio;

    node[0] = '\0';
    bind_device_driver(root, pci, driver);
    if (strcmp(driver, "vfio-pci") == 0) {
        sysfs_link(group, sizeof group, DEVICE_PATH "/iommu_group", root, pci);
        if (group[0] != '\0')
            snprintf(node, PATH_MAX, "/dev/vfio/%s", group);
        return;
    }
    sysfs_glob(&uio, DEVICE_PATH "/uio/uio*", root, pci);
    if (uio.gl_pathc > 0)
        snprintf(node, PATH_MAX, "/dev/%s", strrchr(uio.gl_pathv[0], '/') + 1);
    globfree(&uio);
}

int bind_device_holder(const char *root, const char *pci, char command[static DEVICE_WORD])
{
    char node[PATH_MAX], target[PATH_MAX];
    glob_t open_files = {0};
    int holder = 0;

    find_node(root, pci, node);
    if (node[0] != '\0')
        sysfs_glob(&open_files, "%s/proc/[0-9]*/fd/*", root);
    for (size_t i = 0; i < open_files.gl_pathc && holder == 0; i++) {
        ssize_t length = readlink(open_files.gl_pathv[i], target, sizeof target - 1);
        int process = atoi(open_files.gl_pathv[i] + strlen(root) + strlen("/proc/"));

        target[length > 0 ? length : 0] = '\0';
        if (strcmp(target, node) == 0 && process != (int)getpid())
            holder = process;
    }
    globfree(&open_files);
    sysfs_line(command, DEVICE_WORD, "%s/proc/%d/comm", root, holder);
    return holder;
}
