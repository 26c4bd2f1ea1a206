/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which RDMA device belongs to a kernel interface or a PCI device, as sysfs tells.
 */
#ifndef VERBS_DEVICE_H
#define VERBS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes "mlx5_2/1" into `name` of `size` bytes. `sys` is where sysfs is mounted. An interface has
 * a port's GIDs (RoCE, Soft-RoCE), or lies on the port's PCI device (IPoIB). False: none. */
bool verbs_device_of_interface(const char *sys, const char *iface, char *name, size_t size);
/* The first port of the RDMA device of a PCI address ("0000:3b:00.0"). */
bool verbs_device_of_pci(const char *sys, const char *pci, char *name, size_t size);

#endif
