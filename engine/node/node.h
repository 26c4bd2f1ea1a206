/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief State of one node of a run, which the files of node/, trial/ and app/ share.
 *
 * No other file uses this struct: transports, workers, the control endpoint and the records do not
 * depend on each other.
 */
#ifndef ENGINE_NODE_H
#define ENGINE_NODE_H

#include "clock.h"
#include "cpu_placement.h"
#include "documents.h"
#include "endpoint.h"
#include "record_writer.h"
#include "worker.h"

#include <net/if.h>
#include <signal.h>

#define NODE_WORKERS_MAX CORES_WORKERS_MAX

/** @brief Reason for which a run ends. */
enum node_end {
    NODE_GOES_ON,
    NODE_QUIT,              /**< the document `quit` was read */
    NODE_END_OF_INPUT,      /**< the controller is gone */
    NODE_SIGNAL,            /**< SIGTERM, SIGINT */
    NODE_HEARTBEAT_TIMEOUT, /**< the controller's heartbeats stopped */
    NODE_PEER,              /**< another node is missing or gave up */
    NODE_ERROR,             /**< this node cannot continue; node->err has the reason */
};

/** @brief A transport of one of this node's ports, with the port's handle while it is open in this
 * transport. */
struct port_opening {
    const struct transport *transport; /**< NULL: end of the list */
    struct transport_port *open;       /**< NULL: closed */
    bool is_reported;                  /**< true once a record describes it */
};

/**
 * @brief Port of this node: its configuration, its transports and the state of its link.
 *
 * A port is used in one transport at a time: in two at once, AF_XDP would take the TCP segments
 * that are meant for the kernel, and they would fill an AF_PACKET ring.
 */
struct node_port {
    const struct doc_port *doc;
    struct port_conf conf; /**< the document's configuration, with the number of queues decided */
    struct port_opening openings[DOC_TRANSPORTS_MAX]; /**< in the order of first use */
    unsigned capabilities;                            /**< of all its transports together */
    char iface[IF_NAMESIZE]; /**< interface of its PCI device, where the document has none */
    size_t first_lane;       /**< index of its queue 0's lane in the node */
    /** @brief Transport in which the present trial uses the port; NULL: the port has no rank in the
     * trial.
     */
    const struct transport *wanted;
    const struct transport *transport; /**< transport in use; NULL: none */
    struct transport_port *open;
    uint32_t queues;        /**< queues in the transport in use */
    struct blob address;    /**< address in the transport in use */
    int connect_fd;         /**< readable when connecting its lanes can continue; -1: none */
    uint64_t line_rate_bps; /**< rate found when its link came up; 0: unknown */
    bool link_up;           /**< state of the link at its last check */
    bool had_link;          /**< true once the link was up: only then its loss is an error
                             */
    int64_t down_ns;        /**< time at which the link went down; 0: it is up */
    uint64_t rejected_told; /**< rejected connections that records report */
};

/** @brief Location of a port of the run: the index of its node, and its index among this node's
 * ports. */
struct port_location {
    const char *name;
    uint32_t node;
    uint32_t port; /**< index among the node's ports */
};

struct node {
    const char *name;
    uint32_t self; /**< index in the job */
    int status;    /**< exit status so far */
    enum node_end end;
    struct err err;

    struct input *input;
    int input_fd;
    int signal_fd;
    int event_fd; /**< written by workers */
    struct records *records;
    struct control *control;
    struct document *job_document;
    const struct doc_job *job;
    struct transport_run run;
    struct transport_secret secret; /**< all zero until the node has joined */
    bool joined;                    /**< barriers can be entered */
    bool ready;                     /**< all nodes are there: the first barrier is passed */
    bool leaving;                   /**< only the last barrier is left */
    int64_t beat_ns;                /**< arrival of the controller's last heartbeat */
    /** @brief Time without a datagram for which the main thread polls in a barrier before it
     * sleeps, ns; 0: not yet measured. */
    int64_t spin_ns;

    struct node_port *ports;
    size_t port_count;
    struct port_location *places; /**< all ports of the run, by name */
    size_t place_count;

    struct cores_choice cores;
    size_t lane_count; /**< queues of all ports */
    struct worker *workers[NODE_WORKERS_MAX];
    size_t worker_count;
};

/**
 * @brief Return the index of the worker that serves a queue of a port.
 *
 * @param node This node.
 * @param port One of its ports.
 * @param queue Number of the queue, from 0.
 * @return Number of the worker.
 */
static inline size_t node_worker_of(const struct node *node, const struct node_port *port,
                                    uint32_t queue)
{
    return node->cores.worker[port->first_lane + queue];
}

/* --- the loop of the main thread (event_loop.c) --- */

/**
 * @brief Run the event loop of the main thread once: wait for an event or a time, then answer
 * control datagrams, read documents, and check for reasons to end the run.
 *
 * @param node This node.
 * @param until_ns Time of CLOCK_MONOTONIC at which the function returns without an event, ns.
 * @return 0; -ECANCELED: the run must end, for the reason in node->end, and the traffic stops.
 */
int node_turn(struct node *node, int64_t until_ns);
/**
 * @brief Run the event loop of the main thread once, as node_turn() does, but return also when a
 * descriptor is readable.
 *
 * @param node This node.
 * @param until_ns Time of CLOCK_MONOTONIC at which the function returns without an event, ns.
 * @param fd Descriptor at whose readability the function returns; -1: none.
 * @return As node_turn().
 */
int node_poll(struct node *node, int64_t until_ns, int fd);

/**
 * @brief Read the next document that is no heartbeat; run the node's event loop until it arrives.
 *
 * @param node This node.
 * @param[out] document Document.
 * @return 0 with the document, which the caller frees; -ECANCELED as node_turn(), also for
 *        NODE_QUIT.
 */
int node_await_document(struct node *node, struct document **document);

/**
 * @brief Enter the next barrier with this node's values, and wait until all nodes have entered it.
 *
 * @param node This node.
 * @param values Contribution of this node; takes the reduction. NULL: it contributes nothing.
 * @return 0, and `values` holds the reduction; -ECANCELED: a node is missing or gave up
 *        (reported).
 */
int node_barrier(struct node *node, struct barrier_values *values);

/**
 * @brief Raise the main thread's priority on shared cores, or restore it. A high priority is needed
 * because other nodes wait for this thread in barriers.
 *
 * Where one machine has more nodes than cores, the priority is real-time. The thread then polls for
 * datagrams no longer than elsewhere (spin_ns), because no worker can use the core while it polls.
 *
 * @param node This node.
 * @param claims True: raise the priority; false: restore it.
 */
void set_thread_priority(struct node *node, bool claims);

/**
 * @brief End the run because this node cannot continue, and notify the other nodes at once.
 *
 * @param node This node; node->err has the error message.
 * @param code Negative errno, which gives the exit status.
 * @return -ECANCELED.
 */
int node_fail(struct node *node, int code);

/**
 * @brief Return the name of a node of the run.
 *
 * @param node This node.
 * @param index Index of the node.
 * @return Name, owned by the job document.
 */
const char *node_name_of(const struct node *node, uint32_t index);

/* --- joining a run (join.c) --- */

/**
 * @brief Join the run: read the job, open the ports, start the workers, exchange addresses with the
 * other nodes, and pass the first barrier.
 *
 * @param node This node.
 * @return 0, or -ECANCELED.
 */
int join_run(struct node *node);

/**
 * @brief Find a port of the run by its name.
 *
 * @param node This node.
 * @param name Name of the port.
 * @return Port; NULL: there is none.
 */
const struct port_location *node_find_port(const struct node *node, const char *name);

/* --- ports (ports.c) --- */

/**
 * @brief Open each port of this node in each of its transports, one after the other, and record its
 * properties; the safety guard checks each port first.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the error message.
 */
int ports_survey(struct node *node);
/**
 * @brief Open the ports of the present trial in the trial's transport, and close each in its
 * previous transport first. Close the ports without a rank, except ports open in the transport
 * `rest`.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the error message.
 */
int ports_use(struct node *node, const struct transport *rest);
/**
 * @brief Close all ports of the node.
 *
 * @param node This node.
 */
void ports_close(struct node *node);
/**
 * @brief Wait until the links of all open ports are up; the error names the ports without a link.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the error message.
 */
int ports_await_link(struct node *node);
/**
 * @brief Write a record for each port whose link went down or came up since the last call.
 *
 * @param node This node.
 * @return 0; -ENOLINK: a link has been down for too long, and node->err has the error message.
 */
int ports_watch_links(struct node *node);

#endif
