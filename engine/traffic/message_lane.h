/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Lane for transports of messages (tcp, verbs): the part that is common to these transports.
 *
 * It owns pace, message boundaries, verification, end marks, latency probes, ping-pong, schedules
 * and forwarding. A transport moves bytes, by the hooks below; its lane begins with a message_lane,
 * and its ends of streams begin with a message_end.
 *
 * Each flow has `stride` streams from its source to its destination: the streams of the load,
 * followed by one for latency probes if the phase has any. Where messages are answered (probes,
 * ping-pong), the last stream has a reply stream from the destination to the source. Ends are
 * numbered: first sending ends, then receiving ends; in each group the ends of flows, `stride`
 * each, come before those of reply streams, one per flow.
 *
 * A forwarder sends its own stream's bytes as far as it has received and verified the bytes of the
 * stream before it: the content of both streams is computed, not copied.
 */
#ifndef ENGINE_MESSAGE_LANE_H
#define ENGINE_MESSAGE_LANE_H

#include "message.h"
#include "pacer.h"
#include "prober.h"
#include "transport.h"

#define MESSAGE_GATHER_NS 1000000  /* data due within this time may be sent together */
#define MESSAGE_PROBE_BYTES 64u    /* bytes of a latency probe */
#define MESSAGE_CHECK_BYTES 10000u /* maximum bytes of a connectivity check's message */

struct message_lane;

/** State of a flow that the lane sends: its pace and its streams. */
struct message_flow {
    struct lane_flow *flow;
    struct pace pace;     /**< in bytes of payload */
    double payload_share; /**< payload's share of layer-1 bytes; set by the transport's start */
    /**
     * @brief Unit in bytes: the pacer releases due data in whole multiples of it, gathered for up
     * to MESSAGE_GATHER_NS; 0: due data are released at once. Set by the transport's begin().
     */
    uint32_t segment;
    int64_t gather_ns; /**< data due within this time are sent together */
    unsigned turn;     /**< stream that begins the next round */
    unsigned open;     /**< streams of the load that have not ended */
};

/** Purpose of a stream; both ends of a stream have the same value. */
enum message_use {
    MESSAGE_LOAD,
    MESSAGE_ASK,   /**< messages are answered: latency probes, ping-pong */
    MESSAGE_ANSWER /**< answers, from the destination of the flow to its source */
};

/** End of a stream in a lane: the sending or the receiving end. */
struct message_end {
    struct message_stream stream; /**< counts at the flow's side, or at `own` */
    struct message_lane *lane;
    struct lane_flow *flow;
    enum message_use use;
    bool sends;
    bool stopping; /**< begins no further message */
    bool ended;    /**< message_end_over() was called */
    /**
     * @brief End in the other direction. For a load: the end whose data this one forwards, or the
     * messages of the opposite flow (schedules); for answered messages: the end of the answers.
     * NULL: none.
     */
    struct message_end *pair;
    int64_t came_ns; /**< arrival of the last whole message of a stream outside of the load */
    uint32_t window; /**< maximum probes in flight; set by the transport */
    uint64_t done;   /**< messages whose memory may be used again */

    /* Members for a schedule, whose messages are sent in pieces of a header and payload each: */
    size_t op;        /**< executor's operation in progress, + 1; 0: none */
    uint64_t moved;   /**< payload of this operation so far */
    bool whole;       /**< all its payload was sent; it ends when `awaited` messages are done */
    uint64_t awaited; /**< number of messages to wait for */
    uint8_t *memory;  /**< payload of the present piece; NULL: no schedule */
    /**
     * @brief Maximum payload of a piece, equal at both ends; set by the transport where it has a
     * limit.
     */
    uint32_t piece_bytes;
    struct flow_side own;
};

/**
 * Functions with which a transport moves bytes. All run in the worker; none blocks, allocates or
 * logs. A failure becomes the lane's error.
 */
struct message_hooks {
    size_t out_bytes; /**< size of the transport's sending ends */
    size_t in_bytes;  /**< size of the transport's receiving ends */
    /** Begin the phase: set each flow's payload_share and segment. */
    void (*begin)(struct message_lane *lane);
    /**
     * Send messages of up to `budget` bytes in total from the end's cursor on, or one larger
     * message; return the number of bytes. Sent messages are counted at the end's side, at once or
     * when they are acknowledged. For a schedule, only the position in the present piece moves.
     */
    uint64_t (*post)(struct message_end *out, uint64_t budget, int64_t now_ns);
    /** Skip the next message of a stream; NULL: the transport loses no messages. */
    void (*skip)(struct message_end *out);
    /** Send the end mark, after all messages were posted; called again until message_end_over(). */
    void (*finish)(struct message_end *out, int64_t now_ns);
    /**
     * Handle received and acknowledged data on all streams; while `stepping`, only record which
     * streams have some. Returns true if there were any.
     */
    bool (*reap)(struct message_lane *lane, int64_t now_ns);
    /** Return whether all sent data are acknowledged. NULL: a lane is drained once all its ends are
     * `ended`. */
    bool (*drained)(struct message_lane *lane);
    /** Return the time of the next poll; the lane has something to send at `due_ns`. */
    int64_t (*next)(struct message_lane *lane, bool moved, int64_t due_ns, int64_t now_ns);
    /**
     * Receive the available part of a schedule's present piece: the header into stream.header, the
     * payload into `memory`; advance the position.
     */
    void (*take)(struct message_end *in);
};

struct message_lane {
    struct lane lane;
    const struct message_hooks *hooks;
    const char *label; /**< name of the port, for sentences */
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    unsigned streams; /**< streams of a flow's load */
    unsigned stride;  /**< streams of a flow, including that of its probes */
    double probe_fps; /**< probes per second of each flow; 0: none */
    bool forwards;
    bool unreliable;
    bool replies;    /**< the last stream of each flow is answered */
    bool schedules;  /**< executes a schedule */
    bool stepping;   /**< executes a schedule now: messages are taken when their steps have begun */
    bool step_moved; /**< messages moved in the last run */
    /**
     * @brief True for each complete operation of the present step, by the executor's index.
     */
    bool *op_done;
    struct message_flow *flows;
    void *outs; /**< the transport's own ends: message_lane_end() */
    void *ins;
    unsigned out_count, outs_ended;
    unsigned in_count, ins_ended;
    /**
     * @brief Index + 1 of each rank's flow in the request: [0] the flow sent to the rank, [1] the
     * flow received from the rank; 0: none.
     */
    uint32_t *flow_of[2];
    bool begun;        /**< poll was called */
    int64_t opens_ns;  /**< time before which nothing is sent */
    int64_t refill_ns; /**< time after which a full stream is retried */
    struct prober prober;
};

/** Settings of a lane for one phase, which the transport passes to message_lane_make(). */
struct message_plan {
    const char *transport; /**< name for sentences */
    const char *label;
    const char *streams_key; /**< option that sets `streams` */
    unsigned streams;        /**< streams of a flow's load; a connectivity check has one */
    uint32_t check_bytes;    /**< maximum bytes of a connectivity check's message */
    double probe_fps;        /**< latency probes per second of each flow; 0: none */
    bool unreliable;
    bool sampled; /**< only samples of a load's bytes are compared */
};

/** @brief Check a phase against the limits of all transports of messages, and make the lane's
 * stream ends and the state of its traffic.
 * @param lane Lane, zero except for its request and the transport's own members;
 * message_lane_free() frees it, also after a failure.
 * @return 0, -EINVAL or -ENOMEM with an error message. */
int message_lane_make(struct message_lane *lane, const struct message_hooks *hooks,
                      const struct message_plan *plan, struct err *err);
void message_lane_free(struct message_lane *lane);

/** @brief Return the number of the lane's stream ends, which message_lane_end() returns by index.
 */
static inline unsigned message_lane_ends(const struct message_lane *lane)
{
    return lane->out_count + lane->in_count;
}

static inline struct message_end *message_lane_end(const struct message_lane *lane, unsigned index)
{
    size_t in = (size_t)index - lane->out_count;

    return (struct message_end *)(void *)(index < lane->out_count
                                              ? (char *)lane->outs + index * lane->hooks->out_bytes
                                              : (char *)lane->ins + in * lane->hooks->in_bytes);
}

/** @brief Return whether the phase is a connectivity check. */
static inline bool message_lane_checks(const struct message_lane *lane)
{
    return lane->lane.request.phase->traffic == TRAFFIC_PROBE;
}

static inline bool message_lane_failed(const struct message_lane *lane)
{
    return lane->lane.error.text[0] != '\0';
}

/** @brief Return whether a flow's sender or receiver carries latency probes or their answers. */
static inline bool message_end_probes(const struct message_end *end)
{
    return end->lane->probe_fps > 0 && end->use != MESSAGE_LOAD;
}

/** @brief Return how many payload bytes a forwarder has received but not yet sent. */
static inline uint64_t message_end_ahead(const struct message_end *out)
{
    const struct message_stream *in = &out->pair->stream;

    return in->at.before + (in->ending ? 0 : in->at.position) - out->stream.at.before -
           out->stream.at.position;
}

/** @brief Mark one end of a stream as finished: the stream's last message and end mark are
 * complete, or lost. */
void message_end_over(struct message_end *end);

/* --- in the transport's table --- */

int64_t message_lane_poll(struct lane *lane, int64_t now_ns);
/** @brief Read the round trips of a flow for the transport's `read_flow`; the transport adds its
 * metrics. */
void message_lane_read_flow(struct lane *lane, const struct lane_flow *flow,
                            struct flow_reading *reading);

#endif
