/* SPDX-License-Identifier: BSD-3-Clause */
#include "netlab.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMESPACES_MAX 8

static size_t made;
static char names[NAMESPACES_MAX][48];
static char switch_name[32];

bool netlab_run(const char *format, ...)
{
    char command[512];
    va_list list;

    va_start(list, format);
    vsnprintf(command, sizeof command, format, list);
    va_end(list);
    return system(command) == 0;
}

static void unmake(void)
{
    while (made > 0)
        (void)netlab_run("ip netns del %s", names[--made]);
    if (switch_name[0] != '\0')
        (void)netlab_run("ip netns del %s", switch_name);
    switch_name[0] = '\0';
}

/* Make one node: a veth pair whose far end is a port of the bridge. Without IPv6 the kernel sends
 * no frames of its own. */
static bool make_node(size_t i, unsigned mtu)
{
    const char *name = names[i];

    snprintf(names[i], sizeof names[i], "sbt%d-n%zu", (int)getpid(), i);
    if (!netlab_run("ip netns add %s", name))
        return false;
    made = i + 1;
    return netlab_run("ip -n %s link add p%zu mtu %u type veth peer name eth0 mtu %u netns %s",
                      switch_name, i, mtu, mtu, name) &&
           netlab_run("ip -n %s link set eth0 addrgenmode none", name) &&
           netlab_run("ip -n %s link set p%zu addrgenmode none master br0 up", switch_name, i) &&
           netlab_run("ip -n %s addr add 10.99.0.%zu/24 dev eth0", name, i + 1) &&
           netlab_run("ip -n %s link set eth0 up", name);
}

const char *netlab_make(size_t count, unsigned mtu)
{
    bool done;

    if (geteuid() != 0)
        return "network namespaces need root here";
    snprintf(switch_name, sizeof switch_name, "sbt%d-sw", (int)getpid());
    atexit(unmake);
    done = netlab_run("ip netns add %s", switch_name) &&
           netlab_run("ip -n %s link add br0 type bridge mcast_snooping 0", switch_name) &&
           netlab_run("ip -n %s link set br0 addrgenmode none up", switch_name);
    for (size_t i = 0; i < count && done; i++)
        done = make_node(i, mtu);
    if (done)
        return NULL;
    unmake();
    return "the kernel or iproute2 can't make namespaces with veth and a bridge";
}

const char *netlab_make_ports(struct port_conf *confs, size_t count, unsigned mtu)
{
    static char ports[NAMESPACES_MAX][32];
    const char *reason = netlab_make(count, mtu);

    for (size_t i = 0; reason == NULL && i < count; i++) {
        snprintf(ports[i], sizeof ports[i], "node%zu:e0", i);
        confs[i] = (struct port_conf){
            .name = ports[i], .network = "default", .netns = names[i], .iface = "eth0"};
    }
    return reason;
}

const char *netlab_namespace(size_t i)
{
    return names[i];
}

const char *netlab_switch(void)
{
    return switch_name;
}
