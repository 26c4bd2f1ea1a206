/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control endpoint of a node: one UDP socket that carries barriers, partners' addresses,
 * aborts and heartbeats, every datagram authenticated. Everything runs in the caller's thread:
 * poll control_fd() for reading and control_deadline() for time, then call control_work(). The
 * state machines behind it (engine/control/barrier.h, engine/clock/run_clock.h) do no I/O of their
 * own.
 *
 * Sources: Hensgen, Finkel, Manber 1988 (dissemination barrier); RFC 5905 (the four timestamps).
 */
#ifndef ENGINE_ENDPOINT_H
#define ENGINE_ENDPOINT_H

#include "blob.h"
#include "clock.h"
#include "err.h"
#include "values.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_KEY_BYTES 32

struct control; /* opaque */

struct control_conf {
    const char *netns;               /* namespace of the socket; NULL: the process's own */
    struct sockaddr_storage address; /* to bind; port 0: any */
    int64_t barrier_timeout_ns;      /* a waiting node names whoever is missing after so long */
    struct clock_conf clock;         /* the same on all nodes */
};

/* What all nodes of a run agree on. Copied by control_join. */
struct control_peers {
    uint32_t self; /* this node's index, 0..count-1 */
    uint32_t count;
    const struct sockaddr_storage *addresses; /* by index */
    const char *run_id;
    uint8_t key[CONTROL_KEY_BYTES];
};

/* Run time (run_clock.h) = local CLOCK_MONOTONIC + offset_ns, within +-bound_ns. */
struct control_clock {
    int64_t offset_ns;
    int64_t bound_ns; /* 0: our clock is run time's; -1: not known */
};

/* How this node knows run time, once a barrier is passed; before that CLOCK_AUTO. */
struct control_clocks {
    enum clock_mode mode;
    bool with_node_0;    /* on its machine ... */
    bool one_clock;      /* ... and its CLOCK_MONOTONIC shows the same */
    uint64_t id;         /* of our CLOCK_MONOTONIC: equal on nodes that share it */
    int64_t maxerror_ns; /* ptp: as the kernel said last; below 0: it was not asked */
    int64_t esterror_ns;
};

int control_open(struct control **control, const struct control_conf *conf, struct err *err);
/* Lingers first while partners may need an answer: 125 ms after the last barrier or question, 0.4 s
 * after a fault, 1 s at most. NULL: nothing to do. */
void control_close(struct control *control);
/* The bound address, for the hello record. */
void control_address(const struct control *control, struct sockaddr_storage *address);

/* Learns the peers, greets them and begins to answer them. */
int control_join(struct control *control, const struct control_peers *peers, struct err *err);

int control_fd(const struct control *control);
/* When control_work is due even if nothing arrives; CLOCK_NEVER: never. */
int64_t control_deadline(const struct control *control);
/* Reads and answers what has arrived, resends what is due. Never blocks. Returns how many datagrams
 * it read. */
unsigned control_work(struct control *control, int64_t now_ns);

/* Enters the next barrier (epochs count from 0 by themselves) with this node's values; the one
 * before must have been passed, or failed. */
void control_barrier_enter(struct control *control, const struct barrier_values *mine,
                           int64_t now_ns);
/* BARRIER_PASSED: `all` holds the reduction over all nodes, the same on each. */
enum barrier_state control_barrier_state(const struct control *control, struct barrier_values *all);
/* NULL: no fault so far. An abort may come at any time, also outside barriers. */
const struct control_fault *control_fault(const struct control *control);
/* Tells every node that this one gives up, and why; floods, does not wait. `impossible`: as above.
 */
void control_abort(struct control *control, const char *text, bool impossible, int64_t now_ns);

/* Another node's published bytes, by the publisher's own name for them. Publishing the same id
 * again replaces it for who has not fetched it; -ENOMEM, -EINVAL (too large). Possible before
 * joining. Fetching asks again with back-off until the answer comes; -EAGAIN: not yet, call again
 * (a request that nobody calls for is given up after 1 s); -EINVAL: no such node. What was
 * published and fetched is kept until it is forgotten. */
int control_publish(struct control *control, uint64_t id, const struct blob *blob);
int control_fetch(struct control *control, uint32_t node, uint64_t id, struct blob *blob,
                  int64_t now_ns);
void control_forget(struct control *control);

/* All nodes are on one machine, and more than its cores. Known once a barrier is passed. */
bool control_crowded(const struct control *control);

/* At a time of our clock, past or to come. Later it may be known better than it was then. ptp: the
 * kernel is asked, and what it says holds for any time. */
struct control_clock control_clock_at(struct control *control, int64_t at_ns);
struct control_clock control_clock(struct control *control);
struct control_clocks control_clocks(const struct control *control);
/* Estimated: whether the questions with which a run begins are answered, or can't be waited for. */
bool control_clock_settled(const struct control *control);

/* Heartbeats (by hand: node 0 sends them down the tree, authenticated): when the last one came; 0:
 * none so far. None is sent before the first barrier is passed. */
void control_beat(struct control *control, int64_t now_ns);
int64_t control_last_beat_ns(const struct control *control);

/* Datagrams counted and dropped: not ours, forged, replayed or damaged. */
uint64_t control_dropped(const struct control *control);

#endif
