/* SPDX-License-Identifier: BSD-3-Clause */
#include "netns.h"

#include "log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int netns_enter(const char *name, int *previous_fd, struct err *err)
{
    char path[PATH_MAX];
    int target, previous, code = 0;

    *previous_fd = -1;
    if (name == NULL || *name == '\0')
        return 0;
    if ((size_t)snprintf(path, sizeof(path), "%s%s", strchr(name, '/') ? "" : "/run/netns/",
                         name) >= sizeof(path))
        return err_set(err, -ENAMETOOLONG, "The name of network namespace %.40s... is too long.",
                       name);
    target = open(path, O_RDONLY | O_CLOEXEC);
    if (target < 0)
        return err_set(err, -errno, "Network namespace %s can't be opened (%s): %s.", name, path,
                       strerror(errno));
    previous = open(NETNS_OWN, O_RDONLY | O_CLOEXEC);
    if (previous < 0) {
        code = err_set(err, -errno, "%s can't be opened: %s.", NETNS_OWN, strerror(errno));
    } else if (setns(target, CLONE_NEWNET) < 0) {
        code = err_set(err, -errno, "Network namespace %s can't be entered: %s%s.", name,
                       strerror(errno), errno == EPERM ? "; it needs CAP_SYS_ADMIN" : "");
        close(previous);
    } else {
        *previous_fd = previous;
    }
    close(target);
    return code;
}

void netns_leave(int previous_fd)
{
    if (previous_fd < 0)
        return;
    if (setns(previous_fd, CLONE_NEWNET) < 0) {
        log_error("The thread can't go back to its network namespace: %s.", strerror(errno));
        abort();
    }
    close(previous_fd);
}
