/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A node of a run: what the parts of the engine's core share. Only the core
 * (main.c, node.c, job.c, join.c, ports.c and the trial's files) knows this struct; transports,
 * workers, the control endpoint and the records know nothing of each other.
 */
#ifndef ENGINE_NODE_H
#define ENGINE_NODE_H

#include "endpoint.h"
#include "cpu_placement.h"
#include "documents.h"
#include "document_stream.h"
#include "record_writer.h"
#include "tsc.h"
#include "worker.h"

#include <net/if.h>
#include <signal.h>

#define NODE_TRANSPORTS_MAX 4
#define NODE_WORKERS_MAX CORES_WORKERS_MAX

/* Why the run ends. */
enum node_end {
    NODE_GOES_ON,
    NODE_QUIT,         /* the document */
    NODE_END_OF_INPUT, /* the controller is gone */
    NODE_SIGNAL,       /* SIGTERM, SIGINT */
    NODE_DEADMAN,      /* no heartbeat */
    NODE_PEER,         /* another node is missing or gave up */
    NODE_ERROR,        /* this node can't go on; node->err says why */
};

/* One port of this node. A port is open in one transport at a time: AF_XDP would steal the
 * kernel's TCP segments, and an AF_PACKET ring would fill with them. */
struct node_port {
    const struct doc_port *doc;
    struct port_conf conf;             /* the document's, with the number of queues decided */
    size_t first_lane;                 /* of all the node's: its queue 0's */
    const struct transport *transport; /* in which it is open; NULL: closed */
    struct transport_port *open;
    const struct transport *parked_transport; /* it stays open in this one, unused; NULL: none */
    struct transport_port *parked;
    uint32_t queues;         /* that it has in that transport */
    uint64_t line_rate_bps;  /* as resolved when it was opened; 0: unknown */
    double core_fps;         /* frames/s that one core can send there at most; 0: no bound known */
    bool link_up;            /* as last seen */
    bool had_link;           /* since it was opened: only then it can lose it */
    int64_t down_ns;         /* since when the link is down; 0: it is up */
    uint64_t rejected_told;  /* as many are in the records, since it was opened */
    bool unsurveyed;         /* it is reported when it is first used: to open it binds the device */
    char iface[IF_NAMESIZE]; /* of its PCI device, when the document does not say it */
};

/* Where a port of the run lives. */
struct node_place {
    const char *name;
    uint32_t node;
    uint32_t port; /* of that node */
};

struct node {
    const char *name;
    uint32_t self; /* index in the job */
    bool by_hand;
    int status; /* exit status so far */
    enum node_end end;
    struct err err;

    struct input *input;
    int input_fd;
    int signal_fd;
    int event_fd; /* workers' */
    struct records *records;
    struct control *control;
    uint64_t dropped_datagrams; /* once the endpoint is closed */
    struct document *job_document;
    const struct doc_job *job;
    struct transport_run run;
    struct transport_secret secret; /* all zero until the node has joined */
    struct tsc tsc;                 /* since the node began */
    bool joined;                    /* barriers can be entered */
    bool ready;                     /* all nodes are there: the first barrier is passed */
    bool leaving;                   /* all is done: only the last barrier is left */
    int64_t beat_ns;                /* when the controller's last heartbeat came */
    int64_t spin_ns; /* in a barrier, before the kernel is asked to wake us; 0: not yet known */

    struct node_port *ports;
    size_t port_count;
    bool shares;               /* one of its ports carries other traffic, its own records too */
    bool lent;                 /* its PCI ports have left their kernel drivers, ... */
    bool owes;                 /* ... it was this node that took them, and it gives them back */
    int held_fd;               /* keeps others from doing that; -1: nothing held */
    struct node_place *places; /* all ports of the run, by name */
    size_t place_count;

    struct cores_choice cores;
    size_t lane_count; /* queues of all ports */
    struct worker *workers[NODE_WORKERS_MAX];
    size_t worker_count;
    bool sleeps;                      /* as cores.sleeps */
    const struct transport *floor_of; /* whose floor was measured last; NULL: none yet */
};

/* One turn of the node's loop: waits until something happens or `until_ns`, then answers control
 * datagrams, reads documents, and looks for reasons to end. 0, or -ECANCELED when the run must
 * end (node->end says why; traffic has been told to stop). */
int node_turn(struct node *node, int64_t until_ns);
/* The same, but it also ends when `fd` is readable (-1: none). */
int node_turn_or(struct node *node, int64_t until_ns, int fd);

/* Waits for the next document of this kind while the node's loop goes on; heartbeats are eaten.
 * The document is the caller's. -ECANCELED as above; NODE_QUIT counts as an end. */
int node_await_document(struct node *node, struct document **document);

/* Nothing to say in a barrier. */
void node_no_values(struct barrier_values *values);

/* Enters the next barrier with these values and waits. On success `values` holds the reduction.
 * -ECANCELED when somebody is missing or gave up (reported). */
int node_barrier(struct node *node, struct barrier_values *values);

/* Others wait for this thread in barriers: on shared cores it claims precedence, or gives it back.
 * Where the nodes outnumber the cores of one machine it is real-time; it then looks for datagrams
 * itself no longer than elsewhere (spin_ns), for it keeps the core from workers meanwhile. */
void node_claim(struct node *node, bool claims);

/* Notes that this node can't go on: the first sentence wins. Returns -ECANCELED. */
int node_fail(struct node *node, int status, const struct err *err);
/* The exit status for a failure with this code: 2 when what was asked for is impossible, as -EINVAL
 * says, 3 when it went wrong. */
int node_status_for(int code);

const char *node_name_of(const struct node *node, uint32_t index);

/* ports.c: opens this node's ports in turn in each of their transports and reports what they are.
 * The guard has its say first. */
int ports_survey(struct node *node);
/* Opens `count` ports (indices) in `transport`, closing what is open otherwise. */
int ports_use(struct node *node, const struct transport *transport, const uint32_t *ports,
              size_t count);
void ports_close(struct node *node);
/* Waits until all open ports have a link, names those that have none. */
int ports_await_link(struct node *node);
/* Reports links that went down or came back since the last call. -ECANCELED: one stays down for
 * too long. */
int ports_watch_links(struct node *node);

/* lend.c: the job says `bind`, and this is a port that leaves its kernel driver for dpdk. */
bool lend_wanted(const struct node *node, const struct node_port *port);
/* The same, and some port of the node is used through its kernel driver before. */
bool lend_waits(const struct node *node, const struct node_port *port);
/* Finds the interfaces of PCI ports that kernel transports use, and refuses now what could not be
 * lent later. */
int lend_survey(struct node *node, struct err *err);
/* Before a port is opened: binds all ports that are to be bound, or refuses to go back. */
int lend_for(struct node *node, const struct node_port *port, const struct transport *transport,
             struct err *err);
/* At the end, the ports being closed: what this node has taken is given back. 0, or what failed,
 * with the sentence in node->err. */
int lend_end(struct node *node);

/* job.c: reads the job document, finds this node and its ports in it, starts its workers. */
int job_read(struct node *node);
/* By a port's name; NULL when there is none. */
const struct node_place *job_find_place(const struct node *node, const char *name);
int job_start_workers(struct node *node);
/* The worker of a port's queue, by its number. */
size_t job_worker_of(const struct node *node, uint32_t port, uint32_t queue);

/* join.c: the control endpoint; hello, peers, the first barrier, ready. */
int join_open_control(struct node *node);
int join_run(struct node *node);

/* trial.c: runs one trial document, barrier to barrier. */
int trial_run(struct node *node, const struct doc_trial *doc);

#endif
