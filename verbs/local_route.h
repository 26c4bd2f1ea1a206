/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Where the kernel would send packets for an address (rtnetlink(7)): a software RDMA device asks
 * the same routing tables as every socket.
 */
#ifndef VERBS_LOCAL_ROUTE_H
#define VERBS_LOCAL_ROUTE_H

#include "gid.h"

/* True: the kernel would deliver what is sent there to this same host, without a wire. */
bool verbs_route_is_local(const uint8_t gid[VERBS_GID_BYTES], const char *netdev);

#endif
