/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The control endpoint of a node: one UDP socket that carries barriers, partners' addresses,
 * aborts and heartbeats, every datagram authenticated.
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
    int64_t barrier_timeout_ns;      /**< a waiting node names whoever is missing after so long */
    struct clock_conf clock;         /**< the same on all nodes */
};

/**
 * @brief What all nodes of a run agree on.
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

/** @brief How this node knows run time, once a barrier is passed; before that CLOCK_AUTO. */
struct control_clocks {
    enum clock_mode mode;
    bool with_node_0;    /**< on its machine ... */
    bool one_clock;      /**< ... and its CLOCK_MONOTONIC shows the same */
    bool crowded;        /**< all nodes are on one machine, and more than its cores */
    uint64_t id;         /**< of our CLOCK_MONOTONIC: equal on nodes that share it */
    int64_t maxerror_ns; /**< ptp: as the kernel said last; below 0: it was not asked */
    int64_t esterror_ns;
};

/**
 * @brief Open the endpoint: bind its socket.
 *
 * @param out Takes the endpoint.
 * @param conf Settings; copied unless said otherwise.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0, and the caller closes it by control_close(); or a negative errno with a sentence.
 */
int control_open(struct control **out, const struct control_conf *conf, struct err *err);
/**
 * @brief Close the endpoint; NULL is none.
 *
 * Answers partners first while they may need it: 125 ms after the last barrier or question, 0.4 s
 * after a fault, 1 s at most.
 *
 * @param control Endpoint.
 */
void control_close(struct control *control);
/**
 * @brief Return the bound address, for the hello record.
 *
 * @param control Endpoint.
 * @param address Takes the bound address, for the hello record.
 */
void control_address(const struct control *control, struct sockaddr_storage *address);

/**
 * @brief Take the peers, greet them and begin to answer them.
 *
 * @param control Endpoint.
 * @param peers All nodes of the run; copied.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -ENOMEM or -EINVAL with a sentence.
 */
int control_join(struct control *control, const struct control_peers *peers, struct err *err);

/**
 * @brief Return the descriptor to poll for reading.
 *
 * @param control Endpoint.
 * @return Descriptor; the endpoint's.
 */
int control_fd(const struct control *control);
/**
 * @brief Return when control_work() is due even if nothing arrives.
 *
 * @param control Endpoint.
 * @return Time, ns; CLOCK_NEVER: never.
 */
int64_t control_deadline(const struct control *control);
/**
 * @brief Read and answer what has arrived, and send again what is due.
 *
 * Never blocks.
 *
 * @param control Endpoint.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return Datagrams read.
 */
unsigned control_work(struct control *control, int64_t now_ns);

/**
 * @brief Enter the next barrier (epochs count from 0 by themselves) with this node's values; the
 * one before must have been passed, or failed.
 *
 * @param control Endpoint.
 * @param mine This node's contribution; copied.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void control_barrier_enter(struct control *control, const struct barrier_values *mine,
                           int64_t now_ns);
/**
 * @brief Return where the barrier last entered stands.
 *
 * @param control Endpoint.
 * @param all Takes the reduction over all nodes, once the barrier is passed.
 * @return State; BARRIER_PASSED: `all` holds the reduction over all nodes, the same on each.
 */
enum barrier_state control_barrier_state(const struct control *control, struct barrier_values *all);
/**
 * @brief Return the fault that ends the run.
 *
 * An abort may come at any time, also outside barriers.
 *
 * @param control Endpoint.
 * @return Fault; the endpoint's; NULL: none so far.
 */
const struct control_fault *control_fault(const struct control *control);
/**
 * @brief Tell every node that this one gives up, and why.
 *
 * Does not wait.
 *
 * @param control Endpoint.
 * @param text Reason; copied.
 * @param impossible The run was asked for something that can't be (exit status 2).
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void control_abort(struct control *control, const char *text, bool impossible, int64_t now_ns);

/**
 * @brief Publish bytes for other nodes, under the publisher's own name for them.
 *
 * Publishing the same id again replaces them for nodes that have not fetched them. Possible before
 * joining.
 *
 * @param control Endpoint.
 * @param id Number under which the blob is published.
 * @param blob Blob; copied.
 * @return 0; -ENOMEM; -EINVAL: too large.
 */
int control_publish(struct control *control, uint64_t id, const struct blob *blob);
/**
 * @brief Fetch another node's published bytes: asks with back-off until the answer comes.
 *
 * It is asked for as long as this is called.
 *
 * @param control Endpoint.
 * @param node Index of the publishing node.
 * @param id Number under which the blob is published.
 * @param blob Takes the blob.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return 0 with the blob; -EAGAIN: not yet, call again; -EINVAL: no such node; -ENOMEM.
 */
int control_fetch(struct control *control, uint32_t node, uint64_t id, struct blob *blob,
                  int64_t now_ns);
/**
 * @brief Forget what was published and fetched.
 *
 * @param control Endpoint.
 * @param all All of it; false: what has CONTROL_PHASE_BLOB in its id.
 */
void control_forget(struct control *control, bool all);

/**
 * @brief Return run time minus this node's clock at a time of this clock, past or to come.
 *
 * Later it may be known better than it was then. For ptp the kernel is asked, and what it says
 * holds for any time.
 *
 * @param control Endpoint.
 * @param at_ns Time of this node's clock, ns.
 * @return Offset and bound.
 */
struct offset_estimate control_clock_at(struct control *control, int64_t at_ns);
/**
 * @brief Return how this node knows run time.
 *
 * @param control Endpoint.
 * @return Mode and errors.
 */
struct control_clocks control_clocks(const struct control *control);
/**
 * @brief Return whether the exchanges with which a run begins are answered, or can't be waited for.
 *
 * @param control Endpoint.
 * @return True: they are.
 */
bool control_clock_settled(const struct control *control);

/**
 * @brief Send a heartbeat down the tree; node 0 alone does, and not before the first barrier is
 * passed.
 *
 * @param control Endpoint.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void control_beat(struct control *control, int64_t now_ns);
/**
 * @brief Return when the last heartbeat came.
 *
 * @param control Endpoint.
 * @return Time, ns; 0: none so far.
 */
int64_t control_last_beat_ns(const struct control *control);

/**
 * @brief Return the datagrams that were counted and dropped: not of this run, forged, replayed or
 * damaged.
 *
 * @param control Endpoint.
 * @return Datagrams.
 */
uint64_t control_dropped(const struct control *control);

#endif
