/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting queue pairs by rdma_cm (`connect: cm`): the sender calls the receiver's port, and
 * shows a token that the receiver has published, so that only a partner of this run is let in.
 * Main thread only; nothing here blocks.
 */
#ifndef VERBS_RDMA_CM_H
#define VERBS_RDMA_CM_H

#include "callers.h"
#include "qp.h"

/* How one end's queue pair gets its connection. */
struct cm_call {
    struct verbs_caller caller; /* of an end that is called */
    struct verbs_qp *qp;
    bool calls;     /* false: it is called */
    uint64_t token; /* of the end that it calls */
    uint8_t reads;  /* that the partner answers at the same time */
    uint32_t rank;  /* the partner's, for sentences */
    int state;      /* 0: connected; -EAGAIN: not yet; or it failed */
};

/* Listens, if the machine has rdma_cm and the port an address; without them only `connect: cm` is
 * refused, later. */
void verbs_cm_listen(struct transport_port *port);
void verbs_cm_close(struct transport_port *port);
/* Where the port listens, network byte order; 0: it does not. */
uint16_t verbs_cm_port(const struct transport_port *port);
/* Readable when there is something to do; -1: never. */
int verbs_cm_fd(struct transport_port *port);
/* Takes what callers and partners have said. */
void verbs_cm_work(struct transport_port *port);

/* The end expects to be called with a token, which is returned; 0: rdma_cm can't be used. */
uint64_t verbs_cm_expect(struct transport_port *port, struct cm_call *call);
/* Calls, or begins to wait for the call. 0 or a refusal. */
int verbs_cm_begin(struct cm_call *call, struct err *err);
/* 0: connected; -EAGAIN; or it failed. */
int verbs_cm_advance(struct cm_call *call, struct err *err);
/* The end goes; its queue pair may stay. */
void verbs_cm_forget(struct transport_port *port, struct cm_call *call, struct verbs_qp *qp);

#endif
