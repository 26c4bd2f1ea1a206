/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Visits to another network namespace. The calling thread moves there, makes its sockets or
 * devices, and moves back; what was made stays in the namespace where it was made. Other threads
 * are not moved.
 */
#ifndef ENGINE_NETNS_H
#define ENGINE_NETNS_H

#include "err.h"

/* Moves the calling thread into namespace `name`: a name below /run/netns, or a path when it holds
 * a slash; NULL or "": stay. `*previous_fd` is the way back (-1 when nothing moved or on failure).
 * Returns 0, -ENOENT (no such namespace), -EPERM (needs CAP_SYS_ADMIN), -EINVAL (not a network
 * namespace) or another negative errno, with the sentence. */
int netns_enter(const char *name, int *previous_fd, struct err *err);

/* Moves the thread back and closes `previous_fd`; nothing to do when that is -1. A thread that
 * could not go back would work in the wrong network from then on, so the process ends there. */
void netns_leave(int previous_fd);

#endif
