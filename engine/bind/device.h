/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One PCI device as /sys shows it. `root` goes before each path; a word that the device does not
 * have is "".
 */
#ifndef ENGINE_BIND_DEVICE_H
#define ENGINE_BIND_DEVICE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>

#define DEVICE_WORD 64
#define DEVICE_INTERFACES_MAX 8

bool bind_device_exists(const char *root, const char *pci);

/* The path of one of its files. */
void bind_device_path(char *path, size_t size, const char *root, const char *pci, const char *name);

/* Which driver drives it. */
void bind_device_driver(const char *root, const char *pci, char driver[static DEVICE_WORD]);
/* The number of its IOMMU group. */
void bind_device_group(const char *root, const char *pci, char group[static DEVICE_WORD]);
/* A one-line file of its own, without the line's end; "(null)" is "" (driver_override). */
void bind_device_word(const char *root, const char *pci, const char *name,
                      char word[static DEVICE_WORD]);
/* A number in such a file; -1: there is none. */
long bind_device_number(const char *root, const char *pci, const char *name);

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

/* Does a driver of this name drive PCI devices here (its module is loaded)? */
bool bind_device_driver_known(const char *root, const char *driver);

/* Does DPDK reach devices through this driver of the kernel, which itself does nothing with them?
 */
bool bind_device_driver_is_user(const char *driver);

/* The process, other than this one, that has the device open through vfio or uio; 0: none. `name`
 * is what it calls itself. */
int bind_device_holder(const char *root, const char *pci, char name[static DEVICE_WORD]);

#endif
