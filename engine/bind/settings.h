/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a device's leaving takes away beyond its interface's own state: the kernel's settings of the
 * interface (/proc/sys/net/ipv[46]/conf/NAME), and the hugepages as they were.
 */
#ifndef ENGINE_BIND_SETTINGS_H
#define ENGINE_BIND_SETTINGS_H

#include "place.h"

/* {"ipv4/rp_filter": "1", ...}: the object is the caller's. */
json_t *bind_settings_read(const char *root, const char *interface);
/* Writes those that differ. What can't be written is left: the kernel may have new ones. */
void bind_settings_write(const struct bind_place *place, const char *interface,
                         const json_t *settings);

/* {"/sys/.../nr_hugepages": 0, ...}, by size and NUMA node where there are any. */
json_t *bind_hugepages_read(const char *root);
/* Reserves pages of 2 MiB until there are so many. -ENOMEM: the kernel has no room for them. */
int bind_hugepages_reserve(const struct bind_place *place, unsigned count, struct err *err);
int bind_hugepages_write(const struct bind_place *place, const json_t *before, struct err *err);

#endif
