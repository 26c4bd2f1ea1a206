/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One PCI device as /sys shows it. `root` goes before each path ("" outside tests).
 */
#ifndef ENGINE_BIND_DEVICE_H
#define ENGINE_BIND_DEVICE_H

#include "sysfs.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define DEVICE_WORD 64
#define DEVICE_INTERFACES_MAX 8

/* For sysfs_*: the device's folder, of `root` and its address; a file's name may follow. */
#define DEVICE_PATH "%s/sys/bus/pci/devices/%s"
#define DRIVER_PATH "%s/sys/bus/pci/drivers/%s"

/* The driver that drives it; "": none. */
void bind_device_driver(const char *root, const char *pci, char driver[static DEVICE_WORD]);

/* Does DPDK reach devices through this driver, which itself does nothing with them? */
bool bind_device_driver_is_user(const char *driver);

/* Its kernel interfaces that this network namespace shows, by their number on the device
 * (dev_port). */
struct device_interfaces {
    size_t count;
    struct {
        char name[IF_NAMESIZE];
        long port;
    } list[DEVICE_INTERFACES_MAX];
};
void bind_device_interfaces(const char *root, const char *pci, struct device_interfaces *found);

/* The process, other than this one, that has the device open through vfio or uio, and its command;
 * 0: none. */
int bind_device_holder(const char *root, const char *pci, char command[static DEVICE_WORD]);

#endif
