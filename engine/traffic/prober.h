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
    0.001                 /**< share of the line that all probes and answers of a port may take    \
                           */
#define PROBER_FPS 1000.0 /**< maximum of a flow */

#define PROBER_ENDED UINT64_MAX

/** @brief Round trips of a flow, as measured by this lane. */
struct prober_flow {
    uint64_t sent;          /**< measured ones: they left in the window */
    uint64_t oldest;        /**< none before it is in flight; for messages, whose lane needs it */
    struct histogram times; /**< of answered probes or messages */
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
    /** @brief Probes: index of the lane's flow that is next, and its time. */
    uint32_t at;
    int64_t next_ns; /**< CLOCK_NEVER: no further one leaves */
    int64_t until_ns;
    double gap_ns;   /**< mean time between probes */
    uint64_t random; /**< state of the random distances */
};

/**
 * @brief Return a flow's probes per second: as the phase sets, or derived from the line rate.
 *
 * Whether there are any depends on the phase alone, so that both ends of a flow agree.
 *
 * @param request Request of the lane.
 * @param line_bytes Bytes of a probe at layer 1.
 * @return Probes a second; 0: none.
 */
double prober_rate(const struct lane_request *request, double line_bytes);

/**
 * @brief Return whether the load yields to each probe and answer: probes come on top of the load
 * where the line has room for both.
 *
 * @param request Request of the lane, with its `port_sends`.
 * @param line_bytes Bytes of a probe at layer 1.
 * @param rate_fps Probes of each flow a second.
 * @return True: it yields.
 */
bool prober_displaces(const struct lane_request *request, double line_bytes, double rate_fps);

/**
 * @brief Prepare the round trips of a lane's flows; the lane must not move in memory.
 *
 * @param prober All zero; prober_free() takes it back, on failure too.
 * @param lane Lane; its request gets `port_sends` if it has none.
 * @param rate_fps Probes of each flow a second; 0: none, unless the phase is a ping-pong.
 * @param first Prober of the port's first queue, which lives as long; NULL: this is it.
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
 * @brief Begin a phase whose times are set: probes leave in its window, or, without a window, while
 * the lane sends.
 *
 * @param prober Prober.
 * @param seed Random seed.
 */
void prober_begin(struct prober *prober, uint64_t seed);

/**
 * @brief Return whether the probe of the lane's flow `at` is due. After it has left, or was
 * skipped, prober_step() chooses the next one.
 *
 * @param prober Prober.
 * @param sends The lane sends its load now.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: it is.
 */
bool prober_due(struct prober *prober, bool sends, int64_t now_ns);
/**
 * @brief Choose the next probe; several overdue probes of a flow become one.
 *
 * @param prober Prober.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void prober_step(struct prober *prober, int64_t now_ns);

/**
 * @brief Return a flow's index among the port's flows.
 *
 * @param prober Prober that probes the flow.
 * @param flow Flow.
 * @return Place, from 0.
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
 * @brief Return a flow's number of sent probes or messages, which is the number of the next one.
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
 * @brief Log that a flow's next probe or message leaves, before it is sent.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param stamp_ns Time, ns since the phase's start.
 */
void prober_leaves(struct prober *prober, uint32_t flow, int64_t stamp_ns);
/**
 * @brief Count a probe or message as unsent when the driver did not take it.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 */
void prober_stays(struct prober *prober, uint32_t flow);
/**
 * @brief End a probe or message in flight, by its answer or as given up.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param number Its number, the low 32 bits.
 * @param stamp_ns Its stamp, ns since the phase's start.
 * @param came_ns Time of CLOCK_MONOTONIC at which it came back, ns; 0: it is given up.
 * @return False: it is forged, to what never left, or not then; nothing is counted.
 */
bool prober_back(struct prober *prober, uint32_t flow, uint32_t number, uint64_t stamp_ns,
                 int64_t came_ns);
/**
 * @brief Return the stamp of a probe or message in flight.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param number Number, one of the last `room`.
 * @return ns since the phase's start; PROBER_ENDED: it is back, or given up.
 */
static inline uint64_t prober_stamp(const struct prober *prober, uint32_t flow, uint64_t number)
{
    return atomic_load_explicit(prober_entry(prober, flow, number), memory_order_relaxed);
}
/**
 * @brief Find a flow's oldest message in flight, giving up messages that left before a time.
 *
 * @param prober Prober.
 * @param flow Index of the flow among the port's flows.
 * @param before_ns Time, ns since the phase's start; below 0: nothing is given up.
 */
void prober_forget(struct prober *prober, uint32_t flow, int64_t before_ns);

/** @brief Return the bytes of a phase's nth ping-pong message, computed at both ends. */
static inline uint32_t prober_bytes(const struct phase *phase, uint64_t number)
{
    return phase->sizes[number % phase->size_count];
}
/**
 * @brief Begin the ping-pong messages that are due, and give up lost ones: after four round trips
 * at line rate, and the document's timeout for queues on the way.
 *
 * @param prober Prober.
 * @param loses The transport loses messages.
 * @param send Sends the message that has just begun, of the lane's flow.
 * @return When to call again; the present time: one began.
 */
int64_t prober_pingpong(struct prober *prober, bool loses,
                        void (*send)(struct lane *lane, uint32_t flow));

/**
 * @brief Add a flow's round trips to a reading, in the main thread after the phase.
 *
 * @param prober Prober.
 * @param flow Flow of the port.
 * @param[out] reading Times; unchanged where the flow has none.
 */
void prober_read(const struct prober *prober, const struct lane_flow *flow,
                 struct flow_reading *reading);

#endif
