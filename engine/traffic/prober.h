/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Round trips as their source sees them (doc/reference/latency.md, messages.md): when a
 * flow's next latency probe leaves or its next ping-pong message begins, and which came back.
 *
 * Frames and messages have the same prober; how bytes travel is their lane's. Each flow of the port
 * has a log of what left, by number, so that nothing that was not sent counts as back, and nothing
 * counts twice. The lanes of a port's queues share it: an answer may come by any.
 *
 * Probes leave at times that are even to a half of their distance (additive random sampling): exact
 * distances might march in step with something in the network. Of ping-pong a turn has one message
 * in flight: each flow, or with partners drawn at random the whole lane.
 *
 * The main thread makes a prober and reads it afterwards, one worker runs it; nothing here
 * allocates or makes a system call in between but for the clock.
 *
 * @see RFC 2330, section 11.1
 */
#ifndef ENGINE_PROBER_H
#define ENGINE_PROBER_H

#include "prng.h"
#include "transport.h"

#include <stdatomic.h>

#define PROBER_SHARE 0.001 /**< of the line that all probes and answers of a port may take */
#define PROBER_FPS 1000.0  /**< a flow's, at most */

#define PROBER_ENDED UINT64_MAX

/** @brief What this lane knows of a flow's round trips. */
struct prober_flow {
    uint64_t sent;          /**< that are measured: they left in the window */
    uint64_t oldest;        /**< none before it is in flight; of messages, whose lane asks for it */
    struct histogram times; /**< of those that came back */
};

/** @brief What has one ping-pong message in flight. */
struct prober_turn {
    uint32_t flow; /**< whose message it is or was */
    bool in_flight;
    int64_t begun_ns;
    uint64_t played; /**< messages that have ended: they are back, or given up */
};

struct prober {
    struct lane *lane;         /**< whose request, stop and times it goes by */
    bool answers;              /**< the phase has probes: those that come are answered */
    bool plays;                /**< the phase is a ping-pong */
    bool ended;                /**< nothing of a ping-pong is in flight, and nothing will begin */
    double rate_fps;           /**< probes of each flow a second */
    uint32_t count;            /**< flows of the port; 0: none is probed */
    uint16_t *flow_of;         /**< by destination rank: place among them + 1; 0: none */
    struct prober_flow *flows; /**< of the port */
    /** @brief By flow: how many have left, and the stamps of the last `room` of them, by number;
     * PROBER_ENDED once it is back. Written by the lane that sends the flow; the same of all queues
     * of the port, and the first one's. */
    _Atomic uint64_t *log;
    bool is_first;
    uint32_t room;     /**< stamps of a flow, a power of two */
    int64_t in_flight; /**< sent by this lane, less what came back by it */
    /** @brief Probes: the flow, of those that the lane sends, whose turn it is, and when. */
    uint32_t at;
    int64_t next_ns; /**< CLOCK_NEVER: none leaves (any more) */
    int64_t until_ns;
    double gap_ns;   /**< from one to the next, in the mean */
    uint64_t random; /**< of their distances; or of a ping-pong's partners */
    /** @brief Ping-pong. */
    struct prober_turn *turns;
    uint32_t turn_count;
    struct sample *samples; /**< single times, in the order in which messages ended */
    size_t sample_count;
    size_t sample_room;
};

/**
 * @brief Return how many probes a flow sends in a second: what the phase asks for, or by the line.
 *
 * Whether there are any depends on the phase alone, so that both ends of a flow agree.
 *
 * @param request Lane that is asked for.
 * @param line_bytes Bytes of a probe at layer 1.
 * @return Probes a second; 0: none.
 */
double prober_rate(const struct lane_request *request, double line_bytes);

/**
 * @brief Return whether the load yields to each probe and answer: probes are on top of the load
 * where the line has room for both.
 *
 * @param request Lane that is asked for, with its `port_sends`.
 * @param line_bytes Bytes of a probe at layer 1.
 * @param rate_fps Probes of each flow a second.
 * @return True: it yields.
 */
bool prober_displaces(const struct lane_request *request, double line_bytes, double rate_fps);

/**
 * @brief Prepare the round trips of the lane's flows; the lane stays where it is.
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
 * @brief Free what prober_make() made.
 *
 * @param prober Prober.
 */
void prober_free(struct prober *prober);
/**
 * @brief Begin the phase, whose times are known: probes leave in its window, or where it has none
 * while the lane sends.
 *
 * @param prober Prober.
 * @param seed Random seed.
 */
void prober_begin(struct prober *prober, uint64_t seed);

/**
 * @brief Return whether the probe of the lane's flow `at` is due. Once it has left, or is left out,
 * prober_step() chooses the next one.
 *
 * @param prober Prober.
 * @param sends The lane sends its load now.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return True: it is.
 */
bool prober_due(struct prober *prober, bool sends, int64_t now_ns);
/**
 * @brief Choose the next probe; of those of a flow that should have left meanwhile one will.
 *
 * @param prober Prober.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void prober_step(struct prober *prober, int64_t now_ns);

/**
 * @brief Return a flow's place among the port's.
 *
 * @param prober Prober that probes the flow.
 * @param flow Flow.
 * @return Place, from 0.
 */
static inline uint32_t prober_place(const struct prober *prober, const struct lane_flow *flow)
{
    return prober->flow_of[flow->dst] - 1u;
}
/** @brief Return where it is logged how many of a flow have left. */
static inline _Atomic uint64_t *prober_count(const struct prober *prober, uint32_t flow)
{
    return &prober->log[(size_t)flow * (1 + prober->room)];
}
/** @brief Return where the stamp of one of them is logged. */
static inline _Atomic uint64_t *prober_entry(const struct prober *prober, uint32_t flow,
                                             uint64_t number)
{
    return prober_count(prober, flow) + 1 + number % prober->room;
}
/**
 * @brief Return how many of a flow have left: the next one's number.
 *
 * @param prober Prober.
 * @param flow Place of the flow.
 * @return Number, from 0.
 */
static inline uint64_t prober_left(const struct prober *prober, uint32_t flow)
{
    return atomic_load_explicit(prober_count(prober, flow), memory_order_relaxed);
}
/**
 * @brief Note that the next one of a flow leaves; called before it is sent.
 *
 * @param prober Prober.
 * @param flow Place of the flow.
 * @param stamp_ns Time, ns since the phase's start.
 */
void prober_leaves(struct prober *prober, uint32_t flow, int64_t stamp_ns);
/**
 * @brief Take back that it left: the driver did not take it.
 *
 * @param prober Prober.
 * @param flow Place of the flow.
 */
void prober_stays(struct prober *prober, uint32_t flow);
/**
 * @brief End what left: it is back, or given up.
 *
 * @param prober Prober.
 * @param flow Place of the flow.
 * @param number Its number, the low 32 bits.
 * @param stamp_ns Its stamp, ns since the phase's start.
 * @param came_ns Time of CLOCK_MONOTONIC at which it came back, ns; 0: it is given up.
 * @return False: it is forged, to what never left, or not then; nothing is counted.
 */
bool prober_back(struct prober *prober, uint32_t flow, uint32_t number, uint64_t stamp_ns,
                 int64_t came_ns);
/**
 * @brief Return the stamp of what is in flight.
 *
 * @param prober Prober.
 * @param flow Place of the flow.
 * @param number Number, one of the last `room`.
 * @return ns since the phase's start; PROBER_ENDED: it is back, or given up.
 */
static inline uint64_t prober_stamp(const struct prober *prober, uint32_t flow, uint64_t number)
{
    return atomic_load_explicit(prober_entry(prober, flow, number), memory_order_relaxed);
}
/**
 * @brief Find a flow's oldest one in flight; what left before a time is given up.
 *
 * @param prober Prober.
 * @param flow Place of the flow.
 * @param before_ns Time, ns since the phase's start; below 0: nothing is given up.
 */
void prober_forget(struct prober *prober, uint32_t flow, int64_t before_ns);

/**
 * @brief Return the random sizes of the messages between two ranks; none where the phase has none.
 *
 * @param phase Phase.
 * @param flow Flow.
 * @return Sizes.
 */
struct prng_sizes prober_drawn(const struct phase *phase, const struct lane_flow *flow);
/**
 * @brief Return the bytes of a ping-pong's message, which both ends know: the phase's sizes in
 * turn, or random.
 *
 * @param phase Phase.
 * @param flow Flow.
 * @param number Number of the message, from 0.
 * @return Bytes.
 */
uint32_t prober_bytes(const struct phase *phase, const struct lane_flow *flow, uint64_t number);
/**
 * @brief Return when messages may begin: the phase's start, or later where nodes compute first.
 *
 * @param phase Phase.
 * @return Time, ns.
 */
int64_t prober_opens_ns(const struct phase *phase);
/**
 * @brief Begin the messages of a ping-pong that may begin, and give those up that are lost: four
 * round trips at line rate after they began, and the document's timeout for queues on the way.
 *
 * @param prober Prober.
 * @param loses The transport loses messages.
 * @param send Sends the message that has just begun, of the lane's flow.
 * @return When to call again; the present time: one began.
 */
int64_t prober_play(struct prober *prober, bool loses,
                    void (*send)(struct lane *lane, uint32_t flow));

/**
 * @brief Add a flow's round trips to a reading; afterwards, in the main thread.
 *
 * @param prober Prober.
 * @param flow Flow of the port.
 * @param reading Takes the times; unchanged where the flow has none.
 */
void prober_read(const struct prober *prober, const struct lane_flow *flow,
                 struct flow_reading *reading);

#endif
