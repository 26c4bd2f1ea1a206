/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The lane of transports whose messages arrive or fail (tcp, verbs).
 *
 * It owns pace, message boundaries, verification, end marks, latency probes, ping-pong, schedules
 * and forwarding. A transport moves bytes, by the hooks below; its lane begins with a message_lane,
 * and its ends of streams begin with a message_end.
 *
 * Each flow has `stride` streams from its source to its destination: those of the load, and behind
 * them one of latency probes if the phase has any. Where messages are answered (probes, ping-pong)
 * the last of them has a reply stream from the destination to the source. Ends are numbered: first
 * those that send, then those that receive; of each the ends of flows, `stride` each, stand before
 * those of reply streams, one for each flow.
 *
 * A forwarder sends the bytes of its own stream as far as it has received and verified those of the
 * stream before it: all of them are known.
 */
#ifndef ENGINE_MESSAGE_LANE_H
#define ENGINE_MESSAGE_LANE_H

#include "message.h"
#include "pacer.h"
#include "prober.h"
#include "transport.h"

#define MESSAGE_GATHER_NS 1000000  /* what is due within this time may be sent together */
#define MESSAGE_PROBE_BYTES 64u    /* of a latency probe */
#define MESSAGE_CHECK_BYTES 10000u /* of a message of the connectivity check, at most */

struct message_lane;

/** One flow that the lane sends. */
struct message_flow {
    struct lane_flow *flow;
    struct pace pace;     /**< in bytes of payload */
    double payload_share; /**< of what the messages take at layer 1; set by the transport's start */
    uint32_t segment;  /**< a pace allows multiples of so many bytes, which are gathered for up to
                            MESSAGE_GATHER_NS; 0: any number, at once. As payload_share. */
    int64_t gather_ns; /**< what is due within this time is sent together */
    unsigned turn;     /**< the stream that begins the next round */
    unsigned open;     /**< streams of the load that have not ended */
};

/** What a stream is for; both of its ends have the same. */
enum message_use {
    MESSAGE_LOAD,
    MESSAGE_ASK,   /**< its messages are answered: latency probes, ping-pong */
    MESSAGE_ANSWER /**< answers, from the destination of the flow to its source */
};

/** One end of a stream. */
struct message_end {
    struct message_stream stream; /**< counts at the flow's side, or at `own` */
    struct message_lane *lane;
    struct lane_flow *flow;
    enum message_use use;
    bool sends;
    bool stopping;            /**< begins no further message */
    bool ended;               /**< message_end_over */
    struct message_end *pair; /**< an end the other way. Of a load, that which receives what this
                                   one sends on, or the messages of the flow back (schedules); of
                                   what is answered, that of the answers. NULL: there is none */
    int64_t came_ns;          /**< when the last message of a stream that is no load came whole */
    uint32_t window;          /**< probes that may be in flight; set by the transport */
    uint64_t done;            /**< messages whose memory may be used again */

    /* Of a schedule, whose messages go in pieces of a header and payload each: */
    size_t op;            /**< the executor's operation that is in progress, + 1; 0: none */
    uint64_t moved;       /**< payload of it */
    bool whole;           /**< all of it was sent, and waits until ... */
    uint64_t awaited;     /**< ... so many messages are done */
    uint8_t *memory;      /**< payload of the present piece; NULL: no schedule */
    uint32_t piece_bytes; /**< payload of a piece at most, the same at both ends; set by the
                               transport where it has a limit */
    struct flow_side own;
};

/** How a transport moves bytes. All are the worker's; none blocks, allocates or logs. A failure is
 * the lane's error. */
struct message_hooks {
    size_t out_bytes; /**< sizes of the transport's own ends that send ... */
    size_t in_bytes;  /**< ... and that receive */
    /** The phase begins: sets each flow's payload_share and segment. */
    void (*begin)(struct message_lane *lane);
    /** Sends messages of up to `budget` bytes from the end's cursor on, or one that is larger;
     * counts them at the end's side, at once or when they are acknowledged. Returns the bytes. Of a
     * schedule only moves the position in the present piece. */
    uint64_t (*post)(struct message_end *out, uint64_t budget, int64_t now_ns);
    /** Leaves the next message out; NULL: the transport loses none. */
    void (*skip)(struct message_end *out);
    /** All messages were posted: sends the end mark; called again until message_end_over. */
    void (*finish)(struct message_end *out, int64_t now_ns);
    /** Takes what has come and what was acknowledged, on all streams; while `stepping` only notes
     * which have something. True: something moved. */
    bool (*reap)(struct message_lane *lane, int64_t now_ns);
    /** All that was sent is acknowledged. NULL: ended says so. */
    bool (*drained)(struct message_lane *lane);
    /** When poll is to be called again: the lane has something to send at `due_ns`. */
    int64_t (*next)(struct message_lane *lane, bool moved, int64_t due_ns, int64_t now_ns);
    /** Receives some of a schedule's present piece: its header into stream.header, its payload into
     * `memory`; moves the position. */
    void (*take)(struct message_end *in);
};

struct message_lane {
    struct lane lane;
    const struct message_hooks *hooks;
    const char *label; /**< the port's name, for sentences */
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    unsigned streams; /**< of a flow's load */
    unsigned stride;  /**< of a flow: with the one of its probes */
    double probe_fps; /**< of each flow; 0: none */
    bool forwards;
    bool unreliable;
    bool replies;    /**< the last stream of each flow is answered */
    bool schedules;  /**< it executes a schedule */
    bool stepping;   /**< one is in progress: messages are taken when their steps have come */
    bool step_moved; /**< messages moved when it was last run */
    bool *op_done;   /**< by the executor's operation: of the present step, whether it is through */
    struct message_flow *flows;
    void *outs; /**< the transport's own ends: message_lane_end */
    void *ins;
    unsigned out_count, outs_ended;
    unsigned in_count, ins_ended;
    uint32_t *flow_of[2]; /**< by rank: place in the request's sends to it (0), or in its receives
                               from it (1), + 1; 0: none */
    bool begun;           /**< poll was called */
    int64_t opens_ns;     /**< nothing is sent before */
    int64_t refill_ns;    /**< a full stream is tried again after so long */
    struct prober prober;
};

/** What a transport has decided about a phase, for message_lane_make. */
struct message_plan {
    const char *transport; /**< for sentences */
    const char *label;
    const char *streams_key; /**< the option that says ... */
    unsigned streams;        /**< ... how many a flow's load has; a connectivity check has one */
    uint32_t check_bytes;    /**< of a connectivity check's message at most */
    double probe_fps;        /**< latency probes of each flow a second; 0: none */
    bool unreliable;
    bool sampled; /**< of a load not every byte is compared */
};

/** @brief Makes the lane's ends and what the phase's traffic needs; checks what every transport of
 * messages checks in the same way.
 * @param lane Zero but for what the transport has in front of it; freed by message_lane_free, on
 * failure too.
 * @return 0, -EINVAL or -ENOMEM with the sentence. */
int message_lane_make(struct message_lane *lane, const struct lane_request *request,
                      const struct message_hooks *hooks, const struct message_plan *plan,
                      struct err *err);
void message_lane_free(struct message_lane *lane);

/** @brief The lane's ends, by their number. */
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

/** @brief Whether the phase is a connectivity check. */
static inline bool message_lane_checks(const struct message_lane *lane)
{
    return lane->lane.request.phase->traffic == TRAFFIC_PROBE;
}

static inline bool message_lane_failed(const struct message_lane *lane)
{
    return lane->lane.error.text[0] != '\0';
}

/** @brief The stream is a latency probe's, or that of its answers. */
static inline bool message_end_probes(const struct message_end *end)
{
    return end->lane->probe_fps > 0 && end->use != MESSAGE_LOAD;
}

/** @brief Payload bytes that a forwarder has received and not sent on. */
static inline uint64_t message_end_ahead(const struct message_end *out)
{
    const struct message_stream *in = &out->pair->stream;

    return in->at.before + (in->ending ? 0 : in->at.position) - out->stream.at.before -
           out->stream.at.position;
}

/** @brief Nothing more will pass here: the last message and its end mark are through, or lost. */
void message_end_over(struct message_end *end);

/* --- in the transport's table --- */

int64_t message_lane_poll(struct lane *lane, int64_t now_ns);
/** @brief As the table's `read_flow`, without metrics. */
void message_lane_read_flow(struct lane *lane, const struct lane_flow *flow,
                            struct flow_reading *reading);

#endif
