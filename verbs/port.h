/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A verbs port: one port of one RDMA device. All of this is the main thread's; a worker only posts
 * to and polls the queue pairs of its lane.
 */
#ifndef VERBS_PORT_H
#define VERBS_PORT_H

#include "gid.h"
#include "qp_cache.h"
#include "registered_memory.h"
#include "transport.h"

#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>

struct verbs_cm;     /* cm.h */
struct qp_destroyer; /* destroyer.h */

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
    bool ethernet; /* RoCE or iWARP; false: InfiniBand */
    bool iwarp;
    bool software; /* rxe, siw: what goes to this same host takes no wire */
    struct verbs_gid *gids;
    size_t gid_count;
    const struct verbs_gid *gid; /* where the options do not say; NULL: it has none */
    char netdev[IF_NAMESIZE];    /* "": none */
    struct sockaddr_storage ip;  /* of the netdev; family 0: none */
    bool up;
    bool fatal; /* the device has failed */
    struct verbs_memory memory;
    struct verbs_range pattern; /* the payload of whatever this port sends */
    struct qp_cache cache;
    struct qp_destroyer *destroyer; /* NULL: pairs are destroyed by the main thread */
    struct verbs_cm *cm;            /* NULL: nobody has asked for rdma_cm */
    struct port_hardware base;
};

/* What partners must know of a port before a phase. */
struct verbs_address {
    uint8_t ethernet;
    uint8_t iwarp;
    uint16_t lid;
    uint8_t gid[VERBS_GID_BYTES]; /* of the automatic choice */
    uint8_t ip[16];               /* for rdma_cm, IPv4 mapped */
    uint16_t cm_port;             /* network byte order; 0: it does not listen */
    uint16_t zero;
};

int verbs_port_open(struct transport_port **port, const struct port_conf *conf,
                    const struct transport_run *run, struct err *err);
void verbs_port_facts(struct transport_port *port, struct port_facts *facts);
bool verbs_port_link_up(struct transport_port *port);
void verbs_port_address(struct transport_port *port, struct blob *blob);
void verbs_port_hardware(struct transport_port *port, struct port_hardware *counters);
void verbs_port_close(struct transport_port *port);

/* A partner's blob. False: not one of this transport. */
bool verbs_address_read(struct verbs_address *reach, const struct blob *blob);
/* By its index; NULL: the table has no such entry. */
const struct verbs_gid *verbs_port_gid(const struct transport_port *port, int index);
/* Reads what the device says of itself: link changes, failures. Never blocks. */
void verbs_port_events(struct transport_port *port);
/* So many bytes of payload from any place can be sent from port->pattern. 0 or a refusal. */
int verbs_port_pattern(struct transport_port *port, size_t bytes, struct err *err);

uint32_t verbs_mtu_bytes(enum ibv_mtu mtu);
/* False: no path MTU has so many bytes. */
bool verbs_mtu_code(uint32_t bytes, enum ibv_mtu *mtu);

/* --- counters.c: what the kernel exports of a port below /sys/class/infiniband --- */

void verbs_counters_read(const char *device, uint8_t number, struct port_hardware *counters);
/* counters since base */
void verbs_counters_subtract(struct port_hardware *counters, const struct port_hardware *base);

/* --- route.c --- */

/* True: the kernel would deliver what is sent there to this same host, without a wire. */
bool verbs_route_is_local(const uint8_t gid[VERBS_GID_BYTES], const char *netdev);

#endif
