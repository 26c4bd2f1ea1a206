/* SPDX-License-Identifier: BSD-3-Clause
 *
 * May a device be bound? Each reason against it is one sentence with what to do.
 */
#ifndef ENGINE_BIND_CHECK_H
#define ENGINE_BIND_CHECK_H

#include "place.h"

/* The driver for all of them: DPDK knows it, it is loaded. */
int bind_check_driver(const struct bind_place *place, const char *driver, struct err *err);

/* One of the request's devices. */
int bind_check_device(const struct bind_place *place, const struct bind_request *request,
                      const char *pci, struct err *err);

/* Does DPDK want this device from its kernel driver at all? It works through those of some NICs. */
bool bind_needed(const struct bind_place *place, const char *pci);

#endif
