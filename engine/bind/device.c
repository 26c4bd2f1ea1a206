/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const user_drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

void bind_device_path(char *path, size_t size, const char *root, const char *pci, const char *name)
{
    snprintf(path, size, "%s/sys/bus/pci/devices/%s/%s", root, pci, name);
}

bool bind_device_exists(const char *root, const char *pci)
{
    char path[PATH_MAX];

    bind_device_path(path, sizeof path, root, pci, "");
    return access(path, F_OK) == 0;
}

/* The last part of what a link of the device points to. */
static void link_end(const char *root, const char *pci, const char *name, char *end)
{
    char path[PATH_MAX], target[PATH_MAX];
    const char *slash;
    ssize_t length;

    bind_device_path(path, sizeof path, root, pci, name);
    length = readlink(path, target, sizeof target - 1);
    target[length > 0 ? length : 0] = '\0';
    slash = strrchr(target, '/');
    snprintf(end, DEVICE_WORD, "%.63s", slash != NULL ? slash + 1 : target);
}

void bind_device_driver(const char *root, const char *pci, char driver[static DEVICE_WORD])
{
    link_end(root, pci, "driver", driver);
}

void bind_device_group(const char *root, const char *pci, char group[static DEVICE_WORD])
{
    link_end(root, pci, "iommu_group", group);
}

static void read_word(const char *path, char *word)
{
    FILE *file = fopen(path, "re");

    word[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(word, DEVICE_WORD, file) == NULL)
        word[0] = '\0';
    fclose(file);
    word[strcspn(word, "\n")] = '\0';
}

void bind_device_word(const char *root, const char *pci, const char *name,
                      char word[static DEVICE_WORD])
{
    char path[PATH_MAX];

    bind_device_path(path, sizeof path, root, pci, name);
    read_word(path, word);
    if (strcmp(word, "(null)") == 0)
        word[0] = '\0';
}

long bind_device_number(const char *root, const char *pci, const char *name)
{
    char word[DEVICE_WORD];

    bind_device_word(root, pci, name, word);
    return word[0] != '\0' ? strtol(word, NULL, 0) : -1;
}

static void add_interfaces(const char *pattern, struct device_interfaces *found)
{
    glob_t paths = {0};

    if (glob(pattern, 0, NULL, &paths) != 0)
        paths.gl_pathc = 0;
    for (size_t i = 0; i < paths.gl_pathc && found->count < DEVICE_INTERFACES_MAX; i++) {
        char port_path[PATH_MAX], port[DEVICE_WORD];

        snprintf(port_path, sizeof port_path, "%s/dev_port", paths.gl_pathv[i]);
        read_word(port_path, port);
        snprintf(found->list[found->count].name, IF_NAMESIZE, "%.15s",
                 strrchr(paths.gl_pathv[i], '/') + 1);
        found->list[found->count++].port = strtol(port, NULL, 0);
    }
    globfree(&paths);
}

void bind_device_interfaces(const char *root, const char *pci, struct device_interfaces *found)
{
    /* Virtio has a bus of its own in between. A star there would find the interfaces of physfn and
     * virtfn*, too. */
    static const char *const places[] = {"net/*", "virtio*/net/*"};
    char pattern[PATH_MAX];

    found->count = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        bind_device_path(pattern, sizeof pattern, root, pci, places[i]);
        add_interfaces(pattern, found);
    }
}

bool bind_device_driver_known(const char *root, const char *driver)
{
    char path[PATH_MAX];

    snprintf(path, sizeof path, "%s/sys/bus/pci/drivers/%s", root, driver);
    return access(path, F_OK) == 0;
}

bool bind_device_driver_is_user(const char *driver)
{
    for (size_t i = 0; i < sizeof user_drivers / sizeof user_drivers[0]; i++)
        if (strcmp(user_drivers[i], driver) == 0)
            return true;
    return false;
}

/* "/dev/uio0" or "/dev/vfio/12", by what drives the device; "": neither. */
static void find_node(const char *root, const char *pci, char node[static PATH_MAX])
{
    char pattern[PATH_MAX], driver[DEVICE_WORD], group[DEVICE_WORD];
    glob_t uio = {0};

    node[0] = '\0';
    bind_device_driver(root, pci, driver);
    bind_device_group(root, pci, group);
    if (strcmp(driver, "vfio-pci") == 0 && group[0] != '\0')
        snprintf(node, PATH_MAX, "/dev/vfio/%s", group);
    if (strcmp(driver, "vfio-pci") == 0)
        return;
    bind_device_path(pattern, sizeof pattern, root, pci, "uio/uio*");
    if (glob(pattern, 0, NULL, &uio) == 0)
        snprintf(node, PATH_MAX, "/dev/%.64s", strrchr(uio.gl_pathv[0], '/') + 1);
    globfree(&uio);
}

int bind_device_holder(const char *root, const char *pci, char name[static DEVICE_WORD])
{
    char node[PATH_MAX], path[PATH_MAX], target[PATH_MAX];
    glob_t open_files = {0};
    int holder = 0;

    find_node(root, pci, node);
    snprintf(path, sizeof path, "%s/proc/[0-9]*/fd/*", root);
    if (node[0] == '\0' || glob(path, GLOB_NOSORT, NULL, &open_files) != 0)
        open_files.gl_pathc = 0;
    for (size_t i = 0; i < open_files.gl_pathc && holder == 0; i++) {
        ssize_t length = readlink(open_files.gl_pathv[i], target, sizeof target - 1);
        int process = atoi(open_files.gl_pathv[i] + strlen(root) + strlen("/proc/"));

        target[length > 0 ? length : 0] = '\0';
        if (strcmp(target, node) == 0 && process != (int)getpid())
            holder = process;
    }
    globfree(&open_files);
    snprintf(path, sizeof path, "%s/proc/%d/comm", root, holder);
    read_word(path, name);
    return holder;
}
