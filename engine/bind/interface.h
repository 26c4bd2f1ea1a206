/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A kernel interface as the journal keeps it: name, MAC, MTU, up or down, addresses and routes of
 * both families (all tables), offloads. Addresses and routes are kept as the kernel's own messages,
 * as `ip route save` does, so that nothing of them is lost; with a text beside, for people.
 */
#ifndef ENGINE_BIND_INTERFACE_H
#define ENGINE_BIND_INTERFACE_H

#include "err.h"

#include <jansson.h>
#include <net/if.h>

/* Both work in the thread's network namespace. */
int bind_interface_read(const char *name, json_t **state, struct err *err);
int bind_interface_write(const char *name, const json_t *state, struct err *err);

/* offloads.c: {"tx-checksum-ipv4": true, ...}, as ethtool names them and as asked for; writing
 * changes those that differ and can be changed. */
json_t *bind_offloads_read(const char *name);
int bind_offloads_write(const char *name, const json_t *offloads);

#endif
