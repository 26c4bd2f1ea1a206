/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The lane of transports whose messages arrive or fail (tcp, verbs).
 *
 * It owns pace, message boundaries, verification, end marks, latency probes, ping-pong, schedules
 * and forwarding. A transport moves bytes, by the hooks below; its lane begins with a message_lane,
 * and its ends of streams begin with a message_out and a message_in.
 *
 * Each flow has `stride` streams from its source to its destination: those of the load, and behind
 * them one of latency probes if the phase has any. Where messages are answered (probes, ping-pong)
 * the last of them has a reply stream from the destination to the source. In the lane's lists the
 * ends of flows, `stride` each, stand before those of reply streams, one for each flow.
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
struct message_in;

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
    bool unpaced;
};

/** What a stream is for; both of its ends have the same. */
enum message_use {
    MESSAGE_LOAD,
    MESSAGE_ASK,   /**< its messages are answered: latency probes, ping-pong */
    MESSAGE_ANSWER /**< answers, from the destination of the flow to its source */
};

/** The end of a stream that sends. */
struct message_out {
    struct message_lane *lane;
    struct lane_flow *flow;
    struct flow_side *side; /**< counts what it sends: the flow's, or `own` */
    struct message_script script;
    struct message_cursor at;
    enum message_use use;
    struct message_in *pair; /**< MESSAGE_LOAD: receives what this end sends on, or, of a schedule,
                                  the messages of the flow back; MESSAGE_ASK: receives its answers;
                                  MESSAGE_ANSWER: receives what it answers. NULL: there is none */
    uint64_t done;           /**< messages whose memory may be used again (schedules) */
    uint64_t held_round;     /**< of the lane's rounds: a schedule's message waits for one before */
    uint32_t window;         /**< probes that may be in flight; set by the transport */
    bool stopping;           /**< begins no further message */
    bool ended;              /**< message_out_ended */
    struct flow_side own;
};

/** The end of a stream that receives; its sink counts at the flow's side, or at `own`. */
struct message_in {
    struct message_lane *lane;
    struct lane_flow *flow;
    struct message_sink sink;
    enum message_use use;
    struct message_out *pair; /**< the end whose `pair` it is */
    int64_t came_ns;          /**< when the last message of a stream that is no load came whole */
    uint64_t held_round;      /**< as message_out's */
    bool ended;               /**< message_in_ended */
    struct flow_side own;
};

/** How far an open message of a schedule has come. */
struct message_progress {
    uint64_t moved;   /**< bytes of payload */
    uint64_t awaited; /**< of the end's `done`, until it is handed over */
    bool posted;      /**< all of it: the next message of its flow may follow */
    bool done;        /**< handed over, or received */
};

/** What became of a piece of a schedule's message. */
enum message_piece {
    PIECE_NONE,   /**< nothing moved */
    PIECE_PART,   /**< a part of it */
    PIECE_POSTED, /**< sent whole: its memory is free when out->done has come as far as it is now */
    PIECE_MOVED,  /**< received whole; or sent whole, and its memory is free */
};

/** How a transport moves bytes. All are the worker's; none blocks, allocates or logs. A failure is
 * the lane's error. */
struct message_hooks {
    size_t out_bytes; /**< sizes of the transport's own ends */
    size_t in_bytes;
    /** The phase begins: sets each flow's payload_share and segment. */
    void (*begin)(struct message_lane *lane);
    /** Sends messages of up to `budget` bytes from the end's cursor on, or one that is larger;
     * counts them at the end's side, at once or when they are acknowledged. Returns the bytes. */
    uint64_t (*post)(struct message_out *out, uint64_t budget, int64_t now_ns);
    /** Leaves the next message out; NULL: the transport loses none. */
    void (*skip)(struct message_out *out);
    /** All messages were posted: sends the end mark; called again until message_out_ended. */
    void (*finish)(struct message_out *out, int64_t now_ns);
    /** Takes what has come and what was acknowledged, on all streams; while `stepping` only notes
     * which have something. True: something moved. */
    bool (*reap)(struct message_lane *lane, int64_t now_ns);
    /** All that was sent is acknowledged. NULL: ended says so. */
    bool (*drained)(struct message_lane *lane);
    /** When poll is to be called again: the lane has something to send at `due_ns`. */
    int64_t (*next)(struct message_lane *lane, bool moved, int64_t due_ns, int64_t now_ns);

    /** Sends some of a piece of a schedule's message: what is left of its header (at.position bytes
     * are sent, which it moves on), and `bytes` of payload. *moved: of those. */
    enum message_piece (*send_piece)(struct message_out *out, const struct message_header *header,
                                     const uint8_t *payload, uint32_t bytes, uint32_t *moved);
    /** Receives some of one: the header into sink.header, which sink.at.position counts. */
    enum message_piece (*receive_piece)(struct message_in *in, uint8_t *payload, uint32_t bytes,
                                        uint32_t *moved);
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
    struct message_progress *progress; /**< as the executor's operations */
    uint64_t round;                    /**< how often a step's messages were gone through */
    struct message_flow *flows;
    void *outs; /**< the transport's own ends: message_lane_out */
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

static inline struct message_out *message_lane_out(const struct message_lane *lane, unsigned index)
{
    return (struct message_out *)(void *)((char *)lane->outs + index * lane->hooks->out_bytes);
}

static inline struct message_in *message_lane_in(const struct message_lane *lane, unsigned index)
{
    return (struct message_in *)(void *)((char *)lane->ins + index * lane->hooks->in_bytes);
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

/** @brief The end's last message, and its end mark, are through. */
void message_out_ended(struct message_out *out);
/** @brief Nothing more will come. */
void message_in_ended(struct message_in *in);

/** @brief The first and the last time at which something passed on a flow's side. */
static inline void message_side_time(struct flow_side *side, int64_t now_ns)
{
    side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
    side->last_ns = now_ns;
}

/* --- in the transport's table --- */

int64_t message_lane_poll(struct lane *lane, int64_t now_ns);
/** @brief As the table's `read_flow`, without metrics. */
void message_lane_read_flow(struct lane *lane, const struct lane_flow *flow,
                            struct flow_reading *reading);

#endif
