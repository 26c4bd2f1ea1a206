/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lending PCI network devices to DPDK: away from their kernel driver and back (doc/bind.md).
 *
 * Before the first change a journal is on disk that says all that leaving the kernel driver takes
 * away: driver and override, virtual functions, and of each interface its name, MAC, MTU, state,
 * addresses, routes, offloads and settings. Giving back goes by the journal alone, so it works
 * after a kill as well; after a reboot the kernel has given the devices back by itself.
 *
 * What can't be given back is refused before anything is touched, and so is what must not go away
 * (engine/guard/guard.h).
 */
#ifndef ENGINE_BIND_BIND_H
#define ENGINE_BIND_BIND_H

#include "err.h"
#include "place.h"

#include <stdbool.h>
#include <stddef.h>

#define BIND_JOURNAL "/var/lib/switchbench/bind.json"

enum { BIND_ALREADY = 1 }; /* all of that is so already, by an earlier call and its journal */

/* Would bind_devices refuse? 0, BIND_ALREADY, or its error; touches nothing. */
int bind_check(const struct bind_place *place, const struct bind_request *request, struct err *err);

/* 0: all devices are bound, and the journal says how to give them back. BIND_ALREADY: nothing was
 * to do. Else nothing was changed, or what was is given back: -EINVAL (no such driver, not a
 * network device), -ENODEV, -EPERM (refused, or no permission), -EEXIST (another journal: restore
 * first), -EBUSY (somebody uses them), or what the kernel said; always with the sentence. */
int bind_devices(const struct bind_place *place, const struct bind_request *request,
                 struct err *err);

/* Gives everything back in reverse order and removes the journal; without one there is nothing to
 * do. -EBUSY: a process uses a device (its number is in the sentence). Any other error: the rest is
 * given back and the journal stays, so that it can be tried again. */
int bind_restore(const struct bind_place *place, struct err *err);

/* Keeps others from restoring while this process uses the devices. The descriptor is the caller's;
 * closing it (or dying) lets them. -EBUSY: another process holds the journal. */
int bind_hold(const struct bind_place *place, int *held_fd, struct err *err);

#endif
