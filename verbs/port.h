/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A verbs port: one port of one RDMA device. All of this is the main thread's; a worker only posts
 * to and polls the queue pairs of its lane.
 */
#ifndef VERBS_PORT_H
#define VERBS_PORT_H

#include "gid.h"
#include "registered_memory.h"
#include "transport.h"

#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>

struct transport_port {
    const struct port_conf *conf;
    char device[64];
    uint8_t number; /* of the device's ports */
    char label[96]; /* "node1:e0 (mlx5_2/1)" */
    char driver[32];
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* of all its completion queues */
    struct ibv_device_attr limits;
    struct ibv_port_attr attributes;
    bool ethernet; /* RoCE; false: InfiniBand */
    bool software; /* rxe: what goes to this same host takes no wire */
    struct verbs_gid *gids;
    size_t gid_count;
    const struct verbs_gid *gid; /* where the options do not say; NULL: it has none */
    char netdev[IF_NAMESIZE];    /* "": none */
    struct sockaddr_in6 ip;      /* of the netdev, IPv4 mapped; family 0: none */
    bool up;
    bool fatal; /* the device has failed */
    struct registered_memory memory;
    struct memory_range payload; /* of whatever this port sends */
    struct port_hardware base;   /* counters when it was opened */
    struct connection_pool *pool;
};

/* The device, its limits, its addresses. 0 or a refusal. */
int verbs_port_open(struct transport_port **port, const struct port_conf *conf, struct err *err);
void verbs_port_close(struct transport_port *port);
void verbs_port_status(struct transport_port *port, struct port_status *status);
/* Reads what the device says of itself: link changes, failures. Never blocks. */
void verbs_port_events(struct transport_port *port);
/* So many bytes of payload from any place can be sent from port->payload. 0 or a refusal. */
int verbs_port_payload(struct transport_port *port, size_t bytes, struct err *err);

/* By its index; NULL: the table has no such entry. */
const struct verbs_gid *verbs_port_gid(const struct transport_port *port, int index);

/* What partners are told. */
void verbs_address_write(const struct transport_port *port, struct blob *blob);
/* A partner's. False: not one of this transport. */
bool verbs_address_read(struct verbs_address *address, const struct blob *blob);

uint32_t verbs_mtu_bytes(enum ibv_mtu mtu);
/* False: no path MTU has so many bytes. */
bool verbs_mtu_code(uint32_t bytes, enum ibv_mtu *mtu);

#endif
