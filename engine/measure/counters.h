/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Counters of flows and ports during a phase.
 *
 * A counter is written by the one worker that owns the flow's side or the port, and read by the
 * main thread after the worker has finished the phase; so nothing here is atomic. Counts of
 * progress that are read while a phase runs are copied by the worker itself.
 *
 * "Frame bytes" include the FCS (RFC 2544); layer-1 bytes are frame bytes + 20 (preamble, start
 * delimiter, inter-frame gap); payload is an application's data: the bytes behind the header for
 * dpdk, the stream's bytes for tcp.
 *
 * @see RFC 2285, section 3.5, and RFC 2544, section 4, for loads and frame sizes
 */
#ifndef ENGINE_COUNTERS_H
#define ENGINE_COUNTERS_H

#include "device_counters.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/param.h>

#define FRAME_OVERHEAD_L1 20u /**< preamble 7, start delimiter 1, gap 12 bytes (IEEE 802.3) */
#define FRAME_FCS 4u
#define MISDELIVERED_SLOTS 256u /**< flows counted separately: 4 KB per queue; a power of two */
#define FLOW_ENDLESS UINT64_MAX /**< bytes of a stream without an end */

/**
 * @brief Traffic of one side of one flow since the phase began.
 *
 * The source counts sent traffic (offered, RFC 2285), the destination verified traffic (delivered).
 */
struct flow_count {
    uint64_t frames; /**< raw frames only: tcp and verbs see none */
    uint64_t frame_bytes;
    uint64_t payload_bytes;
    uint64_t messages; /**< tcp: whole blocks; verbs: messages */
};

/** @brief Counts of one side of a flow at the opening and at the closing of the measurement
 * window. */
struct flow_window {
    struct flow_count open;
    struct flow_count close;
};

/**
 * @brief Counters of one side of one flow (source or destination) in one phase.
 *
 * Counters of errors belong to the destination; 0 at the source.
 */
struct flow_side {
    /**
     * @brief Counts since the phase began. flow_side_add() adds up the counters from here to
     * `intended` over a port's queues.
     */
    struct flow_count live;
    struct flow_window window;
    uint64_t duplicated;
    uint64_t reordered; /**< RFC 4737: a sequence smaller than an earlier one */
    /** @brief Frames that arrived too late to be classified as duplicate or reordered: more than
     * 1,024 sequence numbers behind. */
    uint64_t late;
    uint64_t forged;    /**< dpdk, udp: so far ahead that the sender cannot have sent it yet */
    uint64_t numbers;   /**< dpdk: sum over streams of the largest sequence + 1 */
    uint64_t corrupted; /**< dpdk: bad checksum or payload; tcp: unexpected bytes */
    uint64_t intended;  /**< source: frames (tcp: bytes) intended by the load until the stop */
    int64_t gap_ns;     /**< dpdk: send time of the frame after the last gap, since the start */
    int64_t first_ns;   /**< local time of the first frame or byte; 0: none */
    int64_t last_ns;
    bool is_copy; /**< source: the frames are those of another flow of the port, sent to all */
};

/** @brief Update the times of the first and last traffic of a flow's side: the last to the present
 * time, the first only if it is not set. */
static inline void flow_side_time(struct flow_side *side, int64_t now_ns)
{
    side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
    side->last_ns = now_ns;
}

/** @brief Count of misdelivered frames of one flow: frames that arrived at a port but are addressed
 * to another rank. */
struct misdelivered_flow {
    uint64_t frames; /**< 0: a free slot */
    uint16_t src;    /**< ranks in the frames' signatures */
    uint16_t dst;
};

/**
 * @brief Table of a port's misdelivered flows: flows to other ranks, which a switch flooded or sent
 * to the wrong port.
 *
 * The table has a fixed size, because the number of such flows depends on the switch; flows without
 * a slot are counted together.
 */
struct misdelivered_flows {
    struct misdelivered_flow flows[MISDELIVERED_SLOTS]; /**< open addressing */
    uint64_t others;                                    /**< frames of flows without a slot */
};

/**
 * @brief Add frames to the count of a misdelivered flow, or to `others` if the table is full.
 *
 * @param misdelivered Table of misdelivered flows.
 * @param part Flow with the number of frames to add.
 */
static inline void misdelivered_add(struct misdelivered_flows *misdelivered,
                                    const struct misdelivered_flow *part)
{
    uint32_t first = part->src * 31u + part->dst;

    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++) {
        struct misdelivered_flow *slot = &misdelivered->flows[(first + i) % MISDELIVERED_SLOTS];

        if (slot->frames == 0) {
            *slot = *part;
            return;
        }
        if (slot->src == part->src && slot->dst == part->dst) {
            slot->frames += part->frames;
            return;
        }
    }
    misdelivered->others += part->frames;
}

/**
 * @brief Counters of one port in one phase; a port with several queues has one struct per queue,
 * written by the queue's worker.
 */
struct port_count {
    uint64_t misdelivered;    /**< frames of this trial for another rank (flooding) */
    uint64_t foreign;         /**< frames of other programs, runs or phases */
    uint64_t arp_nd_sent;     /**< learning, ARP and ND frames sent by this port */
    uint64_t arp_nd_received; /**< ARP, ND and PAUSE frames received by this port */
    uint64_t send_refused;    /**< frames that the driver did not take at the first attempt */
    /**
     * @brief Frames of latency probes and their answers; in ping-pong, answers and end marks:
     * neither load nor loss.
     */
    uint64_t probes_sent;
    uint64_t probes_received;
    struct misdelivered_flows misdelivered_flows; /**< misdelivered frames by flow */
};

/**
 * @brief Return a count minus a part of this count; -1 if the difference is unknown.
 *
 * @param count Whole count; below 0: unknown.
 * @param part Part of it; below 0: unknown.
 * @return Difference; -1: unknown, because one of the two is unknown or the part is larger.
 */
static inline int64_t count_rest(int64_t count, int64_t part)
{
    return part < 0 || count < part ? -1 : count - part;
}

/** @brief Add an array of 64-bit counts to another, element by element; each array has `bytes`
 * bytes. */
static inline void counts_add(void *sum, const void *part, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)part)[i];
}

/**
 * @brief Add the counters that one queue of a port has of a flow's side to the sum over the port's
 * queues.
 *
 * @param[out] sum Sum.
 * @param part What is added.
 */
static inline void flow_side_add(struct flow_side *sum, const struct flow_side *part)
{
    counts_add(sum, part, offsetof(struct flow_side, gap_ns));
    sum->gap_ns = MAX(sum->gap_ns, part->gap_ns);
    if (part->first_ns > 0 && (sum->first_ns == 0 || part->first_ns < sum->first_ns))
        sum->first_ns = part->first_ns;
    sum->last_ns = MAX(sum->last_ns, part->last_ns);
}

/**
 * @brief Add the port counters of one queue to the sum over the port's queues.
 *
 * @param[out] sum Sum.
 * @param part What is added.
 */
static inline void port_count_add(struct port_count *sum, const struct port_count *part)
{
    counts_add(sum, part, offsetof(struct port_count, misdelivered_flows));
    for (uint32_t i = 0; i < MISDELIVERED_SLOTS; i++)
        if (part->misdelivered_flows.flows[i].frames > 0)
            misdelivered_add(&sum->misdelivered_flows, &part->misdelivered_flows.flows[i]);
    sum->misdelivered_flows.others += part->misdelivered_flows.others;
}

/** @brief Counters of a port's device and driver. Only differences of two readings have a meaning.
 * -1: unknown. */
struct port_hardware {
    int64_t received_frames;
    int64_t sent_frames;     /**< frames that left, without dropped_send */
    int64_t dropped_receive; /**< no room in the receive ring, or no buffer */
    int64_t dropped_send;    /**< in this host: queueing discipline, driver */
    int64_t no_carrier;      /**< part of sent_frames that the kernel dropped without a carrier */
    int64_t errors;          /**< bad FCS, length */
    int64_t pause_received;  /**< PAUSE and PFC frames */
    /** @brief Requests that an RDMA device repeated. This counter and the following, up to
     * ecn_marked, exist for RDMA only. */
    int64_t retransmitted;   /**< repeated requests, after a time-out or a sequence error */
    int64_t out_of_sequence; /**< packets out of order, or after a lost one */
    int64_t not_ready;       /**< receiver-not-ready negative acknowledgements */
    int64_t cnp_sent;        /**< congestion notification packets */
    int64_t cnp_handled;
    int64_t ecn_marked;              /**< RoCE packets received with congestion experienced */
    int64_t device[DEVICE_COUNTERS]; /**< of the interface's driver; PAUSE is in pause_received */
};

#define PORT_HARDWARE_UNKNOWN                                                                      \
    ((struct port_hardware){                                                                       \
        -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, {-1, -1, -1, -1, -1, -1, -1}})

#endif
