/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Control endpoint of a node: one UDP socket for barriers, partners' addresses, aborts and
 * heartbeats, with every datagram authenticated.
 *
 * Everything runs in the caller's thread: poll control_fd() for reading and control_deadline() for
 * time, then call control_work(). The state machines behind it (engine/control/membership.h,
 * engine/clock/run_clock.h) do no I/O of their own.
 *
 * Sources: Hensgen, Finkel, Manber 1988 (dissemination barrier); RFC 5905 (the four timestamps).
 */
#ifndef ENGINE_ENDPOINT_H
#define ENGINE_ENDPOINT_H

#include "blob.h"
#include "err.h"
#include "run_clock.h"
#include "values.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_KEY_BYTES 32
#define CONTROL_PHASE_BLOB (UINT64_C(1) << 63) /**< in the id of a blob of one phase */

struct control; /* opaque */

struct control_conf {
    const char *netns;               /**< namespace of the socket; NULL: the process's own */
    struct sockaddr_storage address; /**< to bind; port 0: any */
    int64_t barrier_timeout_ns; /**< time after which a waiting node reports the missing node */
    struct clock_conf clock;    /**< equal on all nodes */
};

/**
 * @brief Nodes of a run with their addresses, this node's index among them, and the run's key.
 *
 * Copied by control_join.
 */
struct control_peers {
    uint32_t self; /**< this node's index, 0..count-1 */
    uint32_t count;
    const struct sockaddr_storage *addresses; /**< by index */
    const char *run_id;
    uint8_t key[CONTROL_KEY_BYTES];
};

/**
 * @brief Relation of this node's clock to node 0's, by which this node computes run time; `mode` is
 * CLOCK_AUTO until the first barrier is passed.
 */
struct control_clocks {
    enum clock_mode mode;
    bool with_node_0;    /**< node 0 is on this machine */
    bool one_clock;      /**< node 0's CLOCK_MONOTONIC is also this node's */
    bool crowded;        /**< all nodes are on one machine and outnumber its cores */
    uint64_t id;         /**< identity of this CLOCK_MONOTONIC: equal on nodes that share it */
    bool settled;        /**< the first clock exchanges with the parent are answered, or need not be
                            awaited */
    int64_t maxerror_ns; /**< ptp: the kernel's last value; below 0: not read */
};

/**
 * @brief Open the control endpoint and bind its socket.
 *
 * @param[out] out Endpoint.
 * @param conf Settings; copied.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, and the caller closes it by control_close(); or a negative errno with an error
 *        message.
 */
int control_open(struct control **out, const struct control_conf *conf, struct err *err);
/**
 * @brief Close the control endpoint, after answering other nodes for a short time; NULL is allowed.
 *
 * Other nodes may still need answers: the call answers until 125 ms after the last barrier or
 * question, 0.4 s after a fault, 1 s at most.
 *
 * @param control Endpoint.
 */
void control_close(struct control *control);
/**
 * @brief Return the address to which the control endpoint's socket is bound, for the hello record.
 *
 * @param control Endpoint.
 * @param[out] address Bound address, for the hello record.
 */
void control_address(const struct control *control, struct sockaddr_storage *address);

/**
 * @brief Set the nodes of the run, send HELLO to this node's neighbours, and begin to answer
 * datagrams.
 *
 * @param control Endpoint.
 * @param peers All nodes of the run; copied.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -ENOMEM or -EAFNOSUPPORT with an error message.
 */
int control_join(struct control *control, const struct control_peers *peers, struct err *err);

/**
 * @brief Return the endpoint's socket descriptor, which the caller polls for reading.
 *
 * @param control Endpoint.
 * @return Descriptor, owned by the endpoint.
 */
int control_fd(const struct control *control);
/**
 * @brief Return the time at which control_work() must be called next, even if no datagram arrives.
 *
 * @param control Endpoint.
 * @return Time of CLOCK_MONOTONIC, ns; CLOCK_NEVER: no call is due.
 */
int64_t control_deadline(const struct control *control);
/**
 * @brief Read and answer received datagrams, and repeat the datagrams whose repetition is due.
 *
 * Never blocks.
 *
 * @param control Endpoint.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Number of datagrams read.
 */
unsigned control_work(struct control *control, int64_t now_ns);

/**
 * @brief Enter the next barrier (epochs count from 0) with this node's values; the previous barrier
 * must have passed or failed.
 *
 * @param control Endpoint.
 * @param mine This node's contribution; copied.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void control_barrier_enter(struct control *control, const struct barrier_values *mine,
                           int64_t now_ns);
/**
 * @brief Return the state of the barrier last entered.
 *
 * @param control Endpoint.
 * @param[out] all Reduction over all nodes, once the barrier is passed.
 * @return State; BARRIER_PASSED: `all` holds the reduction over all nodes, the same on each.
 */
enum barrier_state control_barrier_state(const struct control *control, struct barrier_values *all);
/**
 * @brief Return the fault for which the run is aborted, if this node has found or received one.
 *
 * An abort may arrive at any time, also outside barriers.
 *
 * @param control Endpoint.
 * @return Fault, owned by the endpoint; NULL: no fault so far.
 */
const struct control_fault *control_fault(const struct control *control);
/**
 * @brief Abort the run with a reason that all nodes receive.
 *
 * Does not wait.
 *
 * @param control Endpoint.
 * @param text Reason; copied.
 * @param impossible True: the request cannot be met (exit status 2); false: the node failed.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void control_abort(struct control *control, const char *text, bool impossible, int64_t now_ns);

/**
 * @brief Publish a blob (small data for other nodes) under an id that the caller chooses.
 *
 * Publishing the same id again replaces the blob for nodes that have not fetched it.
 *
 * @param control Endpoint.
 * @param id Number under which the blob is published.
 * @param blob Blob; copied.
 * @return 0; -ENOMEM.
 */
int control_publish(struct control *control, uint64_t id, const struct blob *blob);
/**
 * @brief Fetch a blob that another node publishes; repeated calls send the request again, with
 * back-off, until the blob arrives.
 *
 * Requests are sent only while this function is called.
 *
 * @param control Endpoint.
 * @param node Index of the publishing node.
 * @param id Number under which the blob is published.
 * @param[out] blob Blob.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return 0 with the blob; -EAGAIN: not yet, call again; -ENOMEM.
 */
int control_fetch(struct control *control, uint32_t node, uint64_t id, struct blob *blob,
                  int64_t now_ns);
/**
 * @brief Remove the blobs that this node has published or fetched from its memory: all, or those of
 * a phase.
 *
 * @param control Endpoint.
 * @param all True: remove all blobs; false: only those of a phase, with CONTROL_PHASE_BLOB in their
 *        ids.
 */
void control_forget(struct control *control, bool all);

/**
 * @brief Return the offset from this node's clock to run time (run time minus this node's clock) at
 * a past or future time of this clock.
 *
 * A later call may return a smaller bound. For ptp the kernel is queried, and its answer holds for
 * any time.
 *
 * @param control Endpoint.
 * @param at_ns Time of this node's clock, ns.
 * @return Offset and bound.
 */
struct offset_estimate control_clock_at(struct control *control, int64_t at_ns);
/**
 * @brief Return the clock mode of this node, and the relation of its clock to node 0's.
 *
 * @param control Endpoint.
 * @return Source of run time.
 */
struct control_clocks control_clocks(const struct control *control);
/**
 * @brief Send node 0's heartbeat to its children in the tree; node 0 calls this after the first
 * barrier.
 *
 * @param control Endpoint.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void control_beat(struct control *control, int64_t now_ns);
/**
 * @brief Return the time at which node 0's last heartbeat arrived.
 *
 * @param control Endpoint.
 * @return Time of CLOCK_MONOTONIC, ns; 0: no heartbeat so far.
 */
int64_t control_last_beat_ns(const struct control *control);

/**
 * @brief Return how many received control datagrams were dropped, because they belong to another
 * run or were forged, replayed or damaged.
 *
 * @param control Endpoint.
 * @return Number of datagrams.
 */
uint64_t control_dropped(const struct control *control);

#endif
