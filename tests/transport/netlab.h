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

/* Make `count` namespaces until the program ends, with MTU `mtu` at eth0 and its kernel address
 * 10.99.0.(i + 1)/24. Return NULL, or the reason why this machine can't. */
const char *netlab_make(size_t count, unsigned mtu);
/* As netlab_make(), and describe a port on each eth0, "node0:e0" and so on. */
const char *netlab_make_ports(struct port_conf *confs, size_t count, unsigned mtu);

/* Return the name of namespace i, or of the bridge's; a static string. */
const char *netlab_namespace(size_t i);
const char *netlab_switch(void);

/* Run a shell command, composed as by printf. Return whether it succeeded. */
__attribute__((format(printf, 1, 2))) bool netlab_run(const char *format, ...);

#endif
