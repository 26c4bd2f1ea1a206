/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting queue pairs by rdma_cm (`connect: cm`): the sender calls the receiver's port, and
 * shows a token that the receiver has published, so that only a partner of this run is let in.
 * Main thread only; nothing here blocks.
 */
#ifndef VERBS_RDMA_CM_H
#define VERBS_RDMA_CM_H

#include "qp.h"

#include <sys/queue.h>

/* How one end's queue pair gets its connection. */
struct cm_call {
    struct verbs_qp *qp;
    bool calls;     /* false: it is called */
    uint64_t token; /* that the end which is called has published; 0: none */
    uint8_t reads;  /* that the partner answers at the same time */
    uint32_t rank;  /* the partner's, for sentences */
    int state;      /* 0: connected; -EAGAIN: not yet; or it failed */
    /* Of an end that is called: */
    LIST_ENTRY(cm_call) link;
    bool expected;             /* it is in the port's list */
    struct rdma_cm_id *caller; /* NULL: the call has not come */
    uint32_t caller_number;    /* the caller's queue pair */
};

/* A port's. A call is expected for each token that an end of its own has published, as long as that
 * end lives. A call with any other token is a stranger's and takes no room. */
struct verbs_cm {
    struct rdma_event_channel *channel;
    struct rdma_cm_id *listener;
    uint16_t port; /* where it listens, network byte order */
    LIST_HEAD(, cm_call) expected;
};

/* Listens, if the machine has rdma_cm and the port an address; without them only `connect: cm` is
 * refused, later. */
void verbs_cm_listen(struct transport_port *port);
void verbs_cm_close(struct transport_port *port);
/* Readable when there is something to do; -1: never. */
int verbs_cm_fd(struct transport_port *port);
/* Takes what callers and partners have said. */
void verbs_cm_work(struct transport_port *port);

/* The end expects to be called with a token, which is call->token; 0: rdma_cm can't be used. */
void verbs_cm_expect(struct transport_port *port, struct cm_call *call);
/* A call has come. False: nobody expects it, or another one has come with its token. */
bool verbs_cm_came(struct verbs_cm *cm, uint64_t token, uint32_t number, struct rdma_cm_id *id);
/* Calls, or begins to wait for the call. 0 or a refusal. */
int verbs_cm_begin(struct cm_call *call, struct err *err);
/* 0: connected; -EAGAIN; or it failed. */
int verbs_cm_advance(struct cm_call *call, struct err *err);
/* The end goes; its queue pair may stay. */
void verbs_cm_forget(struct cm_call *call, struct verbs_qp *qp);

#endif
