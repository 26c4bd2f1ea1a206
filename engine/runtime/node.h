/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A node of a run: what the parts above the workers share.
 *
 * Only runtime/, phase/, report/, trial/ and node/ know this struct; transports, workers, the
 * control endpoint and the records know nothing of each other.
 */
#ifndef ENGINE_NODE_H
#define ENGINE_NODE_H

#include "clock.h"
#include "cpu_placement.h"
#include "document_stream.h"
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
    bool leaves_kernel; /**< its PCI device has to leave its kernel driver for one */
    const struct transport *unsurveyed; /**< is reported when it is first used: the device has to
                                           leave its driver before; NULL: none */
    char iface[IF_NAMESIZE];            /**< of its PCI device, when the document does not say it */
    size_t first_lane;                  /**< of all the node's: its queue 0's */
    const struct transport *wanted;     /**< in the present trial; NULL: it has no rank there */
    const struct transport *transport;  /**< in which it is used; NULL: in none */
    struct transport_port *open;
    uint32_t queues;        /**< that it has in that transport */
    struct blob address;    /**< there, as the trial published it */
    uint64_t line_rate_bps; /**< as resolved when it was opened; 0: unknown */
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
    uint64_t dropped_datagrams; /**< once the endpoint is closed */
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

#endif
