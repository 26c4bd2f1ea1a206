/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A node of a run: what the parts above the workers share.
 *
 * Only node/, trial/ and app/ know this struct; transports, workers, the
 * control endpoint and the records know nothing of each other.
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

/** @brief Why the run ends. */
enum node_end {
    NODE_GOES_ON,
    NODE_QUIT,              /**< the document */
    NODE_END_OF_INPUT,      /**< the controller is gone */
    NODE_SIGNAL,            /**< SIGTERM, SIGINT */
    NODE_HEARTBEAT_TIMEOUT, /**< no heartbeat */
    NODE_PEER,              /**< another node is missing or gave up */
    NODE_ERROR,             /**< this node can't go on; node->err says why */
};

/** @brief A port in one of its transports. */
struct port_opening {
    const struct transport *transport; /**< NULL: the list's end */
    struct transport_port *open;       /**< NULL: it is closed */
    bool is_reported;                  /**< since the node began */
};

/**
 * @brief One port of this node.
 *
 * A port is used in one transport at a time: AF_XDP would steal the kernel's TCP segments, and an
 * AF_PACKET ring would fill with them.
 */
struct node_port {
    const struct doc_port *doc;
    struct port_conf conf; /**< the document's, with the number of queues decided */
    struct port_opening openings[DOC_TRANSPORTS_MAX]; /**< in the order of first use */
    unsigned capabilities;                            /**< of all its transports */
    bool leaves_kernel;                /**< its PCI device has to leave its kernel driver for one */
    char iface[IF_NAMESIZE];           /**< of its PCI device, when the document does not say it */
    size_t first_lane;                 /**< of all the node's: its queue 0's */
    const struct transport *wanted;    /**< in the present trial; NULL: it has no rank there */
    const struct transport *transport; /**< in which it is used; NULL: in none */
    struct transport_port *open;
    uint32_t queues;        /**< that it has in that transport */
    struct blob address;    /**< there */
    int connect_fd;         /**< readable when its lanes can be connected further; -1: none */
    uint64_t line_rate_bps; /**< as resolved when its link came up; 0: unknown */
    double core_fps;        /**< frames/s that one core can send there at most; 0: no bound known */
    bool link_up;           /**< as last seen */
    bool had_link;          /**< since it was opened: only then it can lose it */
    int64_t down_ns;        /**< since when the link is down; 0: it is up */
    uint64_t rejected_told; /**< as many are in the records, since it was opened */
};

/** @brief Where a port of the run lives. */
struct port_location {
    const char *name;
    uint32_t node;
    uint32_t port; /**< of that node */
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
    int event_fd; /**< workers' */
    struct records *records;
    struct control *control;
    struct document *job_document;
    const struct doc_job *job;
    struct transport_run run;
    struct transport_secret secret; /**< all zero until the node has joined */
    struct tsc_mark begun;          /**< when the node began */
    bool joined;                    /**< barriers can be entered */
    bool ready;                     /**< all nodes are there: the first barrier is passed */
    bool leaving;                   /**< all is done: only the last barrier is left */
    int64_t beat_ns;                /**< when the controller's last heartbeat came */
    int64_t spin_ns; /**< in a barrier, before the kernel is asked to wake us; 0: not yet known */

    struct node_port *ports;
    size_t port_count;
    bool has_shared_port; /**< one of its ports carries other traffic, its own records too */
    struct port_location *places; /**< all ports of the run, by name */
    size_t place_count;

    struct cores_choice cores;
    size_t lane_count; /**< queues of all ports */
    struct worker *workers[NODE_WORKERS_MAX];
    size_t worker_count;
};

/**
 * @brief Return the worker of a port's queue.
 *
 * @param node This node.
 * @param port One of its ports.
 * @param queue From 0.
 * @return Number of the worker.
 */
static inline size_t node_worker_of(const struct node *node, const struct node_port *port,
                                    uint32_t queue)
{
    return node->cores.worker[port->first_lane + queue];
}

/* --- the loop of the main thread (event_loop.c) --- */

/**
 * @brief Take one turn of the node's loop: wait until something happens or a time, then answer
 * control datagrams, read documents, and look for reasons to end.
 *
 * @param node This node.
 * @param until_ns Time of CLOCK_MONOTONIC, ns.
 * @return 0; -ECANCELED: the run must end (node->end says why; traffic has been told to stop).
 */
int node_turn(struct node *node, int64_t until_ns);
/**
 * @brief Take one turn as node_turn() does, which also ends when a descriptor is readable.
 *
 * @param node This node.
 * @param until_ns Time of CLOCK_MONOTONIC, ns.
 * @param fd Descriptor that ends the turn when it is readable; -1: none.
 * @return As node_turn().
 */
int node_poll(struct node *node, int64_t until_ns, int fd);

/**
 * @brief Wait for the next document of a kind while the node's loop goes on; heartbeats are
 * consumed.
 *
 * @param node This node.
 * @param document Takes the document.
 * @return 0 with the document, which the caller frees; -ECANCELED as node_turn(), also for
 *        NODE_QUIT.
 */
int node_await_document(struct node *node, struct document **document);

/**
 * @brief Enter the next barrier with these values and wait.
 *
 * @param node This node.
 * @param values Contribution of this node; takes the reduction. NULL: it has nothing to say.
 * @return 0, and `values` holds the reduction; -ECANCELED: somebody is missing or gave up
 *        (reported).
 */
int node_barrier(struct node *node, struct barrier_values *values);

/**
 * @brief Claim precedence for this thread on shared cores, or give it back: others wait for it in
 * barriers.
 *
 * Where the nodes outnumber the cores of one machine it is real-time; it then looks for datagrams
 * itself no longer than elsewhere (spin_ns), for it keeps the core from workers meanwhile.
 *
 * @param node This node.
 * @param claims Claim precedence; false: give it back.
 */
void set_thread_priority(struct node *node, bool claims);

/**
 * @brief End the run because this node can't go on, and tell the others at once.
 *
 * @param node This node; its err has the sentence, of which the first stays.
 * @param code Negative errno, which gives the exit status.
 * @return -ECANCELED.
 */
int node_fail(struct node *node, int code);

/**
 * @brief Return a node's name.
 *
 * @param node This node.
 * @param index Index of the node.
 * @return Name; the job's.
 */
const char *node_name_of(const struct node *node, uint32_t index);

/* --- joining a run (join.c) --- */

/**
 * @brief Join the run: the job, its ports and workers, the control endpoint, hello, peers, the
 * first barrier, ready.
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
 * @brief Open this node's ports in turn in each of their transports and report what they are; the
 * guard is asked first.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the sentence.
 */
int ports_survey(struct node *node);
/**
 * @brief Open each port that is wanted in a transport there, closing what is open otherwise: of the
 * other ports what is not in `rest`.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the sentence.
 */
int ports_use(struct node *node, const struct transport *rest);
/**
 * @brief Close all ports.
 *
 * @param node This node.
 */
void ports_close(struct node *node);
/**
 * @brief Wait until all open ports have a link; names those that have none.
 *
 * @param node This node.
 * @return 0; -ECANCELED; another negative errno, and node->err has the sentence.
 */
int ports_await_link(struct node *node);
/**
 * @brief Report links that went down or came back since the last call.
 *
 * @param node This node.
 * @return 0; -ENOLINK: one stays down for too long, and node->err has the sentence.
 */
int ports_watch_links(struct node *node);

#endif
