/* SPDX-License-Identifier: BSD-3-Clause */
#include "netlab.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMESPACES_MAX 8

extern char **environ;

static size_t made;
static char names[NAMESPACES_MAX][48];
static char addresses[NAMESPACES_MAX][40];
static char switch_name[32];

int netlab_run(const char *const *argv)
{
    char *copy[32];
    size_t n = 0;
    pid_t child;
    int status, result = -1;

    for (; argv[n] != NULL && n < 31; n++)
        copy[n] = strdup(argv[n]);
    copy[n] = NULL;
    if (posix_spawnp(&child, copy[0], NULL, NULL, copy, environ) == 0 &&
        waitpid(child, &status, 0) == child && WIFEXITED(status))
        result = WEXITSTATUS(status);
    for (size_t i = 0; i < n; i++)
        free(copy[i]);
    return result;
}

#define RUN(...) (netlab_run((const char *const[]){__VA_ARGS__, NULL}) == 0)

/* One node: a veth pair whose far end is a port of the bridge. No kernel chatter: no IPv6. */
static int make_node(size_t i, const char *mtu)
{
    char port[32], address[48];

    snprintf(names[i], sizeof names[i], "sbt%d-n%zu", (int)getpid(), i);
    snprintf(addresses[i], sizeof addresses[i], "10.99.0.%zu", i + 1);
    snprintf(address, sizeof address, "10.99.0.%zu/24", i + 1);
    snprintf(port, sizeof port, "p%zu", i);
    if (!RUN("ip", "netns", "add", names[i]))
        return -1;
    made = i + 1;
    return RUN("ip", "-n", switch_name, "link", "add", port, "mtu", mtu, "type", "veth", "peer",
               "name", "eth0", "mtu", mtu, "netns", names[i]) &&
                   RUN("ip", "-n", names[i], "link", "set", "eth0", "addrgenmode", "none") &&
                   RUN("ip", "-n", switch_name, "link", "set", port, "addrgenmode", "none",
                       "master", "br0", "up") &&
                   RUN("ip", "-n", names[i], "addr", "add", address, "dev", "eth0") &&
                   RUN("ip", "-n", names[i], "link", "set", "eth0", "up")
               ? 0
               : -1;
}

const char *netlab_make(size_t count, unsigned mtu)
{
    char text[16];
    int rc = 0;

    if (geteuid() != 0)
        return "network namespaces need root here";
    snprintf(text, sizeof text, "%u", mtu);
    snprintf(switch_name, sizeof switch_name, "sbt%d-sw", (int)getpid());
    atexit(netlab_unmake);
    if (!RUN("ip", "netns", "add", switch_name) ||
        !RUN("ip", "-n", switch_name, "link", "add", "br0", "type", "bridge", "mcast_snooping",
             "0") ||
        !RUN("ip", "-n", switch_name, "link", "set", "br0", "addrgenmode", "none", "up"))
        rc = -1;
    for (size_t i = 0; i < count && rc == 0; i++)
        rc = make_node(i, text);
    if (rc == 0)
        return NULL;
    netlab_unmake();
    return "the kernel or iproute2 can't make namespaces with veth and a bridge";
}

const char *netlab_make_ports(struct port_conf *confs, size_t count, unsigned mtu)
{
    static char ports[NAMESPACES_MAX][32];
    const char *reason = netlab_make(count, mtu);

    for (size_t i = 0; reason == NULL && i < count; i++) {
        snprintf(ports[i], sizeof ports[i], "node%zu:e0", i);
        confs[i] = (struct port_conf){
            .name = ports[i],
            .network = "default",
            .netns = names[i],
            .iface = "eth0",
        };
    }
    return reason;
}

void netlab_unmake(void)
{
    for (size_t i = 0; i < made; i++)
        (void)RUN("ip", "netns", "del", names[i]);
    made = 0;
    if (switch_name[0] != '\0')
        (void)RUN("ip", "netns", "del", switch_name);
    switch_name[0] = '\0';
}

const char *netlab_namespace(size_t i)
{
    return names[i];
}

const char *netlab_switch(void)
{
    return switch_name;
}

const char *netlab_address(size_t i)
{
    return addresses[i];
}
