/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Prober of round trips at their source (doc/reference/latency.md, messages.md): decides
 * when a flow's next latency probe leaves or its next ping-pong message begins, and matches
 * answers.
 *
 * Frames and messages have the same prober; their lane moves the bytes. Each flow of the port has a
 * log of sent numbers, so that an answer to nothing does not count, and no answer counts twice. The
 * lanes of a port's queues share the log: an answer may arrive by any.
 *
 * Probes leave at times that vary by up to half of their distance (additive random sampling): exact
 * distances might coincide with a period of the network. In ping-pong each flow has one
 * message in flight.
 *
 * The main thread makes a prober and reads it afterwards, one worker runs it; in between nothing
 * here allocates or makes a system call, except for the clock.
 *
 * @see RFC 2330, section 11.1
 */
#ifndef ENGINE_PROBER_H
#define ENGINE_PROBER_H

#include "transport.h"

#include <stdatomic.h>

#define PROBER_SHARE                                                                               \
    0.001                 /**< max share of the line rate for all probes and answers of a port     \
                           */
#define PROBER_FPS 1000.0 /**< maximum of a flow */

#define PROBER_ENDED UINT64_MAX

/** @brief Round trips of one flow that this lane has measured. */
struct prober_flow {
    uint64_t sent;          /**< probes or messages sent in the window */
    uint64_t oldest;        /**< no message before this number is in flight; unused for probes */
    struct histogram times; /**< round trips of answered probes or messages */
};

struct prober {
    struct lane *lane;         /**< source of the request, stop and times */
    bool answers;              /**< the phase has probes, and received ones are answered */
    bool pingpong;             /**< the phase is a ping-pong */
    bool ended;                /**< no ping-pong message is in flight, and none will begin */
    double rate_fps;           /**< probes per second of each flow */
    uint32_t count;            /**< flows of the port; 0: no probes */
    uint16_t *flow_of;         /**< by destination rank: index of its flow + 1; 0: none */
    struct prober_flow *flows; /**< flows of the port */
    /**
     * @brief Log by flow: number of sent probes or messages, and the stamps of the last `room` of
     * them by number; PROBER_ENDED after its answer. Written by the lane that sends the flow;
     * shared by all queues of the port, and owned by the first.
     */
    _Atomic uint64_t *log;
    bool is_first;
    uint32_t room;     /**< stamps per flow, a power of two */
    int64_t in_flight; /**< sent by this lane, less those answered by it */
    /** @brief Next latency probe: the index of its flow among the lane's flows, and its due
     * time. */
    uint32_t at;
    int64_t next_ns; /**< CLOCK_NEVER: no further one leaves */
    int64_t until_ns;
    double gap_ns;   /**< mean time between probes */
    uint64_t random; /**< state of the random distances */
};

/**
 * @brief Return how many latency probes per second a flow sends: as the phase sets, or derived from
 * the line rate.
 *
 * Whether a flow has probes depends on the phase alone, so that both ends of the flow agree.
 *
 * @param request Request of the lane.
 * @param line_bytes Bytes of a probe at layer 1.
 * @return Probes per second; 0: no probes.
 */
double prober_rate(const struct lane_request *request, double line_bytes);

/**
 * @brief Return whether the load sends less for each probe and answer, because load and probes
 * together exceed the line rate.
 *
 * @param request Request of the lane, with its `port_sends`.
 * @param line_bytes Bytes of a probe at layer 1.
 * @param rate_fps Probes per second of each flow.
 * @return True: the load sends less.
 */
bool prober_displaces(const struct lane_request *request, double line_bytes, double rate_fps);

/**
 * @brief Make the prober of a lane's flows; the lane must stay at its address in memory.
 *
 * @param prober Prober, all zero; to be freed by prober_free(), also after a failure.
 * @param lane Lane; its request gets `port_sends` if it has none.
 * @param rate_fps Probes per second of each flow; 0: no probes, unless the phase is a ping-pong.
 * @param first Prober of the port's first queue, which must outlive this one; NULL: this is the
 *        first.
 * @return 0; -ENOMEM.
 */
int prober_make(struct prober *prober, struct lane *lane, double rate_fps,
                const struct prober *first);
/**
 * @brief Free the memory of a prober.
 *
 * @param prober Prober.
 */
void prober_free(struct prober *prober);
/**
 * @brief Start the prober when a phase begins. Probes are sent in the phase's window or, in a phase
 * without a window, while the lane sends.
 *
 * @param prober Prober.
 * @param seed Random seed.
 */
void prober_begin(struct prober *prober, uint64_t seed);

/**
 * @brief Return whether the next latency probe, of the flow prober->at, is due. After sending or
 * skipping the probe, the caller calls prober_step().
 *
 * @param prober Prober.
 * @param sends True: the lane sends its load now.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: the probe is due.
 */
bool prober_due(struct prober *prober, bool sends, int64_t now_ns);
/**
 * @brief Choose the flow and the time of the next probe; several overdue probes of a flow become
 * one.
 *
 * @param prober Prober.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void prober_step(struct prober *prober, int64_t now_ns);

/**
 * @brief Return the index of a flow among the port's flows.
 *
 * @param prober Prober that probes the flow.
 * @param flow Flow.
 * @return Index, from 0.
 */
static inline uint32_t prober_place(const struct prober *prober, const struct lane_flow *flow)
{
    return prober->flow_of[flow->dst] - 1u;
}
/** @brief Return the log entry with a flow's number of sent probes or messages. */
static inline _Atomic uint64_t *prober_count(const struct prober *prober, uint32_t flow)
{
    return &prober->log[(size_t)flow * (1 + prober->room)];
}
/** @brief Return the log entry with the stamp of a flow's probe or message. */
static inline _Atomic uint64_t *prober_entry(const struct prober *prober, uint32_t flow,
                                             uint64_t number)
{
    return prober_count(prober, flow) + 1 + number % prober->room;
}
/**
 * @brief Return how many probes or messages a flow has sent; this is also the number of its next
 * one.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @return Number, from 0.
 */
static inline uint64_t prober_left(const struct prober *prober, uint32_t flow)
{
    return atomic_load_explicit(prober_count(prober, flow), memory_order_relaxed);
}
/**
 * @brief Log the time stamp of a flow's next probe or message; called directly before the probe or
 * message is sent.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param stamp_ns Time, ns since the phase's start.
 */
void prober_leaves(struct prober *prober, uint32_t flow, int64_t stamp_ns);
/**
 * @brief Undo prober_leaves() for a probe or message that the driver did not take.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 */
void prober_stays(struct prober *prober, uint32_t flow);
/**
 * @brief End a probe or message in flight: measure its round trip if its answer has arrived, or
 * give it up.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param number Its number, the low 32 bits.
 * @param stamp_ns Its stamp, ns since the phase's start.
 * @param came_ns Time of CLOCK_MONOTONIC at which the answer arrived, ns; 0: the probe or message
 *        is given up.
 * @return False: no probe or message with this number and stamp is in flight, so the answer is
 *        forged; nothing is counted.
 */
bool prober_back(struct prober *prober, uint32_t flow, uint32_t number, uint64_t stamp_ns,
                 int64_t came_ns);
/**
 * @brief Return the stamp of a probe or message in flight.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param number Number, one of the last `room`.
 * @return Stamp, ns since the phase's start; PROBER_ENDED: it is answered or given up.
 */
static inline uint64_t prober_stamp(const struct prober *prober, uint32_t flow, uint64_t number)
{
    return atomic_load_explicit(prober_entry(prober, flow, number), memory_order_relaxed);
}
/**
 * @brief Give up the unanswered messages of a flow that were sent before a given time, and find the
 * oldest message still in flight.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param before_ns Time, ns since the phase's start; below 0: no message is given up.
 */
void prober_forget(struct prober *prober, uint32_t flow, int64_t before_ns);

/** @brief Return the size in bytes of the ping-pong message with a given number; both ends of the
 * flow compute the same size. */
static inline uint32_t prober_bytes(const struct phase *phase, uint64_t number)
{
    return phase->sizes[number % phase->size_count];
}
/**
 * @brief Begin the ping-pong messages that are due, and give up lost messages. A message is lost if
 * it is unanswered after four round trips at line rate plus the phase's answer_timeout_ns.
 *
 * @param prober Prober.
 * @param loses True: the transport can lose messages.
 * @param send Function that sends the message of the given flow that has just begun.
 * @return Time of the next call, ns; the present time if a message began.
 */
int64_t prober_pingpong(struct prober *prober, bool loses,
                        void (*send)(struct lane *lane, uint32_t flow));

/**
 * @brief Add the measured round trips of a flow to its results; called by the main thread after the
 * phase.
 *
 * @param prober Prober.
 * @param flow Flow of the port.
 * @param[out] reading Times; unchanged where the flow has none.
 */
void prober_read(const struct prober *prober, const struct lane_flow *flow,
                 struct flow_reading *reading);

#endif
