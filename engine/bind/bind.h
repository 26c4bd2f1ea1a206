/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Binds PCI network devices to a driver of DPDK's, and restores them (doc/how-to/bind.md).
 *
 * Before the first change a journal is on disk that says all that leaving the kernel driver takes
 * away: driver and override, virtual functions, and of each interface its name, MAC, MTU, state,
 * addresses, routes, offloads and settings. Restoring uses the journal alone, so it works after a
 * kill, too; after a reboot the devices are back with their kernel drivers anyway.
 *
 * What can't be restored is blocked before anything is touched, and so is what must not go away
 * (engine/guard/guard.h).
 */
#ifndef ENGINE_BIND_BIND_H
#define ENGINE_BIND_BIND_H

#include "err.h"
#include "place.h"

#include <stdbool.h>
#include <stddef.h>

#define BIND_JOURNAL "/var/lib/switchbench/bind.json"

enum { BIND_ALREADY = 1 }; /* an earlier call has done all of that, says its journal */

/* Would bind_devices fail? 0, BIND_ALREADY, or its error; touches nothing. */
int bind_check(const struct bind_place *place, const struct bind_request *request, struct err *err);

/* 0: all devices are bound, and the journal says how to restore them. BIND_ALREADY: nothing was to
 * be done. Else all is as before: -EINVAL (no such driver, not a network device), -ENODEV, -EPERM
 * (blocked, or no permission), -EEXIST (another journal: restore first), -EBUSY (in use), or what
 * the kernel said; always with the sentence. */
int bind_devices(const struct bind_place *place, const struct bind_request *request,
                 struct err *err);

/* Restores everything in reverse order and removes the journal; without one there is nothing to
 * do. -EBUSY: a process uses a device (its number is in the sentence). Any other error: the rest is
 * restored and the journal stays, so that restoring can be tried again. */
int bind_restore(const struct bind_place *place, struct err *err);

/* Keeps others from restoring while this process uses the devices. The descriptor is the caller's;
 * closing it (or dying) lets them. -EBUSY: another process holds the journal. */
int bind_hold(const struct bind_place *place, int *lock_fd, struct err *err);

#endif
