/* SPDX-License-Identifier: BSD-3-Clause */
#include "guard_servers.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>

struct guard_server {
    char address[INET6_ADDRSTRLEN + IF_NAMESIZE + 1]; /* perhaps with a scope */
    char what[96];
};

static int add(void *data, const char *address, const char *what)
{
    struct guard_servers *servers = data;
    struct guard_server *grown = realloc(servers->list, (servers->count + 1) * sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    servers->list = grown;
    snprintf(grown[servers->count].address, sizeof(grown->address), "%s", address);
    snprintf(grown[servers->count].what, sizeof(grown->what), "%s", what);
    servers->count++;
    return 0;
}

static int find(struct guard_servers *servers, const char *root, pid_t pid)
{
    int code = guard_host_ancestors(root, pid, add, servers);

    return code ? code : guard_host_storage(root, add, servers);
}

int guard_servers_find(struct guard_servers *servers, const char *root, pid_t pid)
{
    int code = servers->found ? 0 : find(servers, root, pid);

    if (code)
        guard_servers_free(servers);
    else
        servers->found = true;
    return code;
}

int guard_servers_each(const struct guard_servers *servers, guard_server_fn *each, void *data)
{
    int code = 0;

    for (size_t i = 0; i < servers->count && code == 0; i++)
        code = each(data, servers->list[i].address, servers->list[i].what);
    return code;
}

void guard_servers_free(struct guard_servers *servers)
{
    free(servers->list);
    *servers = (struct guard_servers){0};
}
