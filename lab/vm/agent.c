/* SPDX-License-Identifier: BSD-3-Clause
 *
 * switchbench-guest: the first process of a guest once its init script has made network and
 * devices. It serves each virtio-serial port named `switchbench.N` by a process of its own
 * (session.h), and buries whatever dies in the guest.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "session.h"

#define PORTS_FOLDER "/sys/class/virtio-ports"
#define OURS "switchbench."
#define MAX_PORTS 32

struct port {
    char device[64];
    pid_t server;
};

static bool is_ours(const char *entry)
{
    char path[300], name[64] = "";
    snprintf(path, sizeof path, PORTS_FOLDER "/%s/name", entry);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool ours = fgets(name, sizeof name, file) != NULL && strncmp(name, OURS, strlen(OURS)) == 0;
    fclose(file);
    return ours;
}

static int find_ports(struct port *ports)
{
    DIR *folder = opendir(PORTS_FOLDER);
    if (folder == NULL)
        return -errno;
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < MAX_PORTS;)
        if (is_ours(entry->d_name))
            snprintf(ports[count++].device, sizeof ports->device, "/dev/%.58s", entry->d_name);
    closedir(folder);
    return count;
}

static pid_t serve(const char *device)
{
    pid_t server = fork();
    if (server != 0)
        return server;
    int error = session_serve(device);
    fprintf(stderr, "switchbench-guest: %s: %s\n", device, strerror(-error));
    _exit(1);
}

int main(void)
{
    static struct port ports[MAX_PORTS];
    // RDMA memory is pinned memory; a guest has nobody to protect from it.
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_MEMLOCK, &unlimited);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});

    int count = find_ports(ports);
    if (count <= 0) {
        fprintf(stderr, "switchbench-guest: no port %s* in " PORTS_FOLDER "\n", OURS);
        return 1;
    }
    for (int i = 0; i < count; i++)
        ports[i].server = serve(ports[i].device);
    for (;;) {
        pid_t gone = wait(NULL);
        for (int i = 0; i < count; i++)
            if (gone == ports[i].server)
                ports[i].server = serve(ports[i].device);
        if (gone < 0)
            pause();
    }
}
