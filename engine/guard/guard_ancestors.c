/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whom the processes that started this one are connected with. What the environment says of an ssh
 * connection anyone can set, and sudo takes it away.
 */
#include "guard_host.h"
#include "sysfs.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANCESTORS_MAX 32 /* of a tree that changes meanwhile */
#define SOCKETS_MAX 8192 /* of all ancestors; an agent among them may hold hundreds */
#define TCP_ESTABLISHED 1
#define WHAT "the connection of a process that started this node"

struct sockets {
    size_t count;
    uint64_t inodes[SOCKETS_MAX];
};

/* 0: not known. A command may hold blanks and parentheses: what follows the last of these counts.
 */
static pid_t parent_of(const char *root, pid_t pid)
{
    char line[512];
    const char *after;
    int parent = 0;

    sysfs_line(line, sizeof(line), "%s/proc/%d/stat", root, (int)pid);
    after = strrchr(line, ')');
    return after && sscanf(after + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

static void add_sockets(const char *root, pid_t pid, struct sockets *sockets)
{
    char target[64];
    glob_t files;

    sysfs_glob(&files, "%s/proc/%d/fd/*", root, (int)pid);
    for (size_t i = 0; i < files.gl_pathc && sockets->count < SOCKETS_MAX; i++) {
        sysfs_link(target, sizeof(target), "%s", files.gl_pathv[i]);
        if (sscanf(target, "socket:[%" SCNu64 "]", &sockets->inodes[sockets->count]) == 1)
            sockets->count++;
    }
    globfree(&files);
}

static bool holds(const struct sockets *sockets, uint64_t inode)
{
    for (size_t i = 0; i < sockets->count; i++)
        if (sockets->inodes[i] == inode)
            return true;
    return false;
}

/* An address as /proc/net/tcp has it: words of 32 bits in the host's order. */
static bool read_address(const char *text, char *address, size_t size)
{
    size_t words = strlen(text) / 8;
    uint32_t bytes[4];

    for (size_t i = 0; i < words && i < 4; i++)
        if (sscanf(text + 8 * i, "%8" SCNx32, &bytes[i]) != 1)
            return false;
    return inet_ntop(words == 1 ? AF_INET : AF_INET6, bytes, address, (socklen_t)size) != NULL;
}

static int search_table(const char *path, const struct sockets *sockets, guard_server_fn *each,
                        void *data)
{
    char line[512], far[33], address[INET6_ADDRSTRLEN];
    FILE *file = fopen(path, "re");
    uint64_t inode;
    unsigned state;
    int code = 0;

    if (!file)
        return 0; /* a kernel without that family */
    while (code == 0 && fgets(line, sizeof(line), file))
        if (sscanf(line, " %*d: %*[0-9A-F]:%*x %32[0-9A-F]:%*x %x %*s %*s %*s %*d %*d %" SCNu64,
                   far, &state, &inode) == 3 &&
            state == TCP_ESTABLISHED && holds(sockets, inode) &&
            read_address(far, address, sizeof(address)))
            code = each(data, address, WHAT);
    fclose(file);
    return code;
}

int guard_host_ancestors(const char *root, pid_t pid, guard_server_fn *each, void *data)
{
    struct sockets sockets = {0};
    char path[PATH_MAX];
    int code;

    for (unsigned i = 0; pid > 1 && i < ANCESTORS_MAX; i++, pid = parent_of(root, pid))
        add_sockets(root, pid, &sockets);
    if (sockets.count == 0)
        return 0; /* nothing to look for in tables that take 5 ms each */
    snprintf(path, sizeof(path), "%s/proc/self/net/tcp", root);
    code = search_table(path, &sockets, each, data);
    snprintf(path, sizeof(path), "%s/proc/self/net/tcp6", root);
    return code ? code : search_table(path, &sockets, each, data);
}
