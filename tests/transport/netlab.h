/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small lab for tests: some network namespaces, each with an interface `eth0` on one bridge,
 * which lives in a namespace of its own. All names begin with "sbt" and the process id. Nothing
 * is shaped.
 */
#ifndef TESTS_TRANSPORT_NETLAB_H
#define TESTS_TRANSPORT_NETLAB_H

#include "transport.h"

#include <stdbool.h>
#include <stddef.h>

/* Makes `count` namespaces until the program ends, eth0's MTU `mtu`, its kernel address 10.99.0.(i
 * + 1)/24. Returns NULL, or the reason why this machine can't. */
const char *netlab_make(size_t count, unsigned mtu);
/* The same, and describes a port on each eth0, "node0:e0" and so on. */
const char *netlab_make_ports(struct port_conf *confs, size_t count, unsigned mtu);

/* The name of namespace i, and of the bridge's. Static. */
const char *netlab_namespace(size_t i);
const char *netlab_switch(void);

/* Runs a shell's command, which is put together as by printf; whether it worked. */
__attribute__((format(printf, 1, 2))) bool netlab_run(const char *format, ...);

#endif
