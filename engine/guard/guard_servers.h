/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whom a host has to reach whatever a test does: who started this process, and the servers of its
 * storage. They are found once for all ports of a node: the kernel's tables of connections take
 * some 10 ms to read, even when they are empty.
 */
#ifndef ENGINE_GUARD_SERVERS_H
#define ENGINE_GUARD_SERVERS_H

#include "guard_host.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* All zeros: nothing was looked for yet. */
struct guard_servers {
    bool found;
    size_t count;
    struct guard_server *list;
};

/* Finds them unless they were found before. Of processes `pid` and those that started it; `root`:
 * as in guard_host.h. What could not be found out is looked for again by the next call. */
int guard_servers_find(struct guard_servers *servers, const char *root, pid_t pid);

int guard_servers_each(const struct guard_servers *servers, guard_server_fn *each, void *data);

void guard_servers_free(struct guard_servers *servers);

#endif
