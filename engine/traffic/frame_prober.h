/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Latency probes among frames, as a lane keeps them: when each of its flows
 * sends one, and the round trips of those that came back.
 *
 * How a frame travels is the transport's.
 */
#ifndef ENGINE_FRAME_PROBER_H
#define ENGINE_FRAME_PROBER_H

#include "counters.h"
#include "probe_scheduler.h"
#include "signature.h"
#include "transport.h"

#include <stdatomic.h>

#define PROBE_LOAD_SHARE 0.001 /**< of the line that all probes and answers of a port may take */
#define PROBE_FLOW_FPS 1000.0  /**< a flow's, at most */

/**
 * @brief Return the tag of a phase's probes.
 *
 * @param tag Tag of the phase's frames.
 * @return Tag.
 */
static inline uint16_t probe_tag(uint16_t tag)
{
    return tag ^ 0x5a3c;
}

/**
 * @brief Return the tag of answers to a phase's probes.
 *
 * @param tag Tag of the phase's frames.
 * @return Tag.
 */
static inline uint16_t probe_answer_tag(uint16_t tag)
{
    return tag ^ 0xa5c3;
}

/** @brief What a port sends in a phase. */
struct probe_budget {
    uint64_t line_rate_bps; /**< 0: not known, then `load` stands for it */
    struct load load;
    uint32_t frame_bytes; /**< mean, with FCS */
    uint32_t flows;       /**< that the port sends and receives: it answers those */
};

/**
 * @brief Return how many probes a flow sends in a second.
 *
 * @param budget What a port sends.
 * @return Probes per second.
 */
double probe_rate(const struct probe_budget *budget);

/**
 * @brief Return the share of each probe and answer that the load yields to it: probes are on top of
 * the load as far as the line has room for both.
 *
 * @param budget What a port sends.
 * @return 0 to 1.
 */
double probe_displaces(const struct probe_budget *budget, double rate_fps);

/**
 * @brief Probes that a flow has sent.
 *
 * The lane that sends the flow writes; the answers may come by any of the port's queues.
 */
struct frame_prober_sent {
    _Atomic uint32_t count;
    _Atomic uint64_t *stamps; /**< of the last so many, by number; FRAME_PROBER_ANSWERED once
                                 an answer has come: a second one counts no more */
};
#define FRAME_PROBER_ANSWERED UINT64_MAX

struct frame_prober {
    bool answers;                   /**< the phase has probes: those that come are answered */
    uint16_t tags[2];               /**< of probes, and of answers to them, as on the wire */
    double rate_fps;                /**< of each flow; 0: none is sent */
    double displaces;               /**< share of a probe or answer that the load yields to it */
    double displaced;               /**< cost that the load has still to yield, below 1 */
    struct histogram *round_trips;  /**< of each flow that the port sends */
    struct frame_prober_sent *sent; /**< the same of all queues of the port ... */
    _Atomic uint64_t *stamps;       /**< ... held by the first queue's; NULL: by another's */
    uint32_t room;                  /**< stamps of a flow, a power of two */
    uint16_t *flow_of;              /**< by destination rank: number in `flows` + 1; 0: none */
    uint32_t count;
    uint32_t at; /**< the flow, of those that the lane sends, whose turn it is */
    struct probe_scheduler schedule;
    int64_t next_ns; /**< when the next one leaves; CLOCK_NEVER: none does (any more) */
    int64_t until_ns;
    int64_t in_flight; /**< sent by this lane, less answers that came by it */
};

/**
 * @brief Main thread: in prepare, 0 or -ENOMEM; and when the lane goes.
 *
 * `first`: of the port's first queue, whose lane lives as long; NULL: this is it.
 */
int frame_prober_make(struct frame_prober *prober, struct lane_request *request,
                      const struct frame_prober *first);
/** @brief Free a prober; NULL is none. */
void frame_prober_free(struct frame_prober *prober);

/**
 * @brief Worker.
 *
 * At the start, when the window is known.
 */
void frame_prober_start(struct frame_prober *prober, const struct lane_request *request,
                        uint64_t seed);
/**
 * @brief Return whether the probe of the lane's flow `at` is due; `sends`: the lane sends its load
 * now.
 *
 * Once it is sent, or left out, frame_prober_next chooses the next one.
 *
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
bool frame_prober_is_due(struct frame_prober *prober, const struct lane *lane, bool sends,
                         int64_t now_ns);
void frame_prober_next(struct frame_prober *prober, const struct lane *lane, int64_t now_ns);
/** @brief The number of a flow's next probe. */
static inline uint32_t frame_prober_number(const struct frame_prober *prober,
                                           const struct lane_flow *flow)
{
    return atomic_load_explicit(&prober->sent[prober->flow_of[flow->dst] - 1].count,
                                memory_order_relaxed);
}
/**
 * @brief The next probe of the flow leaves, so long after the phase's start: called before it is
 * sent; and takes it back where the driver did not take it.
 */
void frame_prober_leaves(struct frame_prober *prober, const struct lane_flow *flow,
                         int64_t stamp_ns);
void frame_prober_stays(struct frame_prober *prober, const struct lane_flow *flow);
/**
 * @brief Measures an answer that came so long after the phase's start.
 *
 * False: it is forged, to a probe that was never sent, or not then; nothing is counted.
 */
bool frame_prober_measure(struct frame_prober *prober, const struct signature *answer,
                          int64_t came_ns);

/** @brief The cost that the load's pace does without for one probe or answer of `cost`. */
static inline uint64_t frame_prober_displaced(struct frame_prober *prober, uint32_t cost)
{
    uint64_t whole;

    prober->displaced += prober->displaces * cost;
    whole = (uint64_t)prober->displaced;
    prober->displaced -= (double)whole;
    return whole;
}

/** @brief Main thread, afterwards; false: the flow was not probed. */
bool frame_prober_sum(const struct frame_prober *prober, const struct lane_flow *flow,
                      struct latency *sum);

#endif
