/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Lane that sends and receives frames, which may be lost, over a transport that only moves
 * bytes.
 *
 * frame_setup.c makes a lane; frame_lane.c maintains its times and counts; frame_single.c sends
 * single frames that are answered; frame_hot.h is the hot path, which a transport's one hot file
 * includes behind its hooks, so that the compiler makes variants of it. A transport's own lane
 * begins with `struct frame_lane`. A frame consists of FRAME_TEMPLATE bytes that differ by stream,
 * in which the signature differs by frame, and of fill.
 */
#ifndef ENGINE_FRAME_LANE_H
#define ENGINE_FRAME_LANE_H

#include "clock.h"
#include "delay_stats.h"
#include "pacer.h"
#include "prober.h"
#include "sequence.h"
#include "signature.h"
#include "transport.h"

#include <assert.h>

#define FRAME_BURST_MAX 128u     /**< maximum frames sent by one call of a driver or kernel */
#define FRAME_NO_SIZE 0xff       /**< a length that no frame of the phase has */
#define FRAME_FORWARD_QUEUE 512u /**< frames; a power of two */
#define FRAME_ACCOUNT_SOME 64u   /**< streams accounted at once, or the streams of one flow */
#define FRAME_SAMPLE_OF 128      /**< one of this many frames has its time measured */
#define FRAME_MAC 6u
#define FRAME_RETRY_NS (20 * NS_PER_US) /**< time until a sleeping worker retries a full device */

/** Frame size of a phase, with the lengths and the cost of such frames. */
struct frame_size {
    uint32_t frame_bytes;   /**< with FCS */
    uint32_t payload_bytes; /**< behind the headers */
    uint32_t cost;   /**< cost to the pace: bits at layer 1, or 1 when the load is in frames/s */
    uint16_t length; /**< in memory */
};

/**
 * Sending stream of a flow: one UDP source port with its own sequence numbers, and all data for the
 * next frame in two cache lines. The counts of sent frames and bytes follow from the sequence
 * number.
 */
struct sender_stream {
    struct frame_template template; /**< for the phase's first size */
    uint64_t sequence;              /**< number of the next frame */
    int64_t last_ns;                /**< send time of its last frame */
    struct flow_side *side;
    /**
     * @brief Index of the stream, which never changes: number of the flow in the request times UDP
     * source ports, plus the source port.
     */
    uint32_t place;
    uint16_t size_index; /**< index in the phase's list of sizes */
    uint16_t base;       /**< signature_base() */
} __attribute__((aligned(64)));
static_assert(sizeof(struct sender_stream) == 128, "a stream is two cache lines");

/* --- frame_judge.c: classification of valid frames of a lane's flows as in order, reordered,
 * duplicate, late or forged, by sequence alone --- */

/**
 * Limit on how far a frame's sequence number can be ahead of the expected one: the number of frames
 * that the fastest sender can have sent since the last frame. A frame beyond the limit is forged
 * and rejected; otherwise every later valid frame would count as late.
 */
struct sequence_limit {
    double frames_per_ns; /**< of the fastest sender; raised by each flow */
    double at_once;
    int64_t start_ns; /**< of the phase: stamps count from there; 0: not known yet */
};

/** Receiving stream of a flow: one UDP source port of the flow, with all data that a frame in order
 * needs in one cache line. */
struct receiver_stream {
    struct sequence sequence;
    uint64_t frames; /**< delivered frames */
    uint64_t bytes;  /**< bytes of these in memory */
    int64_t last_ns;
    int64_t stamp_ns; /**< stamp of the first frame of the last 64 numbers, or after the last gap */
    struct flow_side *side;
} __attribute__((aligned(64)));
static_assert(sizeof(struct receiver_stream) == 64, "a stream is one cache line");

struct receiver {
    struct sequence_limit limit;         /**< limit of its senders */
    struct receiver_stream *streams;     /**< by flow, and UDP source port within it */
    struct sequence_past *pasts;         /**< one per stream */
    struct delay_stats *delay_stats;     /**< one per stream; NULL: not measured */
    struct delay_stats_buckets *buckets; /**< one per flow */
    bool sampled;                        /**< one frame of FRAME_SAMPLE_OF is measured */
    /**
     * Number of a flow + 1 by source rank, for all possible ranks; 0: none. Its pages are touched
     * as flows need them, so that few flows cost little.
     */
    uint16_t *flow_of;
    uint32_t count;   /**< number of flows */
    uint32_t sources; /**< UDP source ports per flow */
    uint16_t tag;     /**< in network byte order, as are the next two */
    uint16_t rank;    /**< destination rank of the frames */
    uint16_t own;     /**< rank of the port */
    uint64_t left;    /**< frames of a transfer or a check that are missing; UINT64_MAX: unknown */
};

/** Received frame that is valid and belongs to a flow of the lane. */
struct received {
    const struct signature *signature;
    struct receiver_stream *stream;
    uint32_t sequence;
    uint32_t length; /**< in memory */
};

/** @brief Classify a frame that is not the next in sequence; return whether it is delivered. */
bool frame_judge_out_of_order(const struct receiver *receiver, const struct received *frame,
                              int64_t now_ns);

/**
 * @brief Classify a frame by its sequence and count it in its stream; return whether it is
 * delivered.
 */
static inline __attribute__((always_inline)) bool
frame_judge(const struct receiver *receiver, const struct received *frame, int64_t now_ns)
{
    struct receiver_stream *stream = frame->stream;

    if (!sequence_follows(&stream->sequence, frame->sequence) &&
        !frame_judge_out_of_order(receiver, frame, now_ns))
        return false;
    stream->frames++;
    stream->bytes += frame->length;
    stream->last_ns = now_ns;
    return true;
}

/* --- turns: sending order of flows with unequal shares. Each flow has turns in proportion to
 * its share, spaced as evenly as possible. --- */

/** @brief Maximum number of turns in a table of turns; a flow's share of the load is exact to half
 * a turn. */
#define TURNS_MAX 65536u

struct turns {
    uint32_t *flow; /**< flow of each turn; NULL: all flows have one turn each, in their order */
    uint32_t count; /**< number of turns */
};

/**
 * @brief Make the table of turns, which is the sending order of flows with unequal shares; flows
 * without shares need no table.
 *
 * Returns 0 or -ENOMEM. The caller frees the table.
 */
int turns_make(struct turns *turns, const struct lane_flow *flows, uint32_t count);
/**
 * @brief Return how many frames of each burst of its port a lane sends; the numbers of all lanes of
 * the port add up to the port's burst.
 *
 * @param request Request of the lane.
 * @return Number of frames.
 */
uint64_t turns_burst(const struct lane_request *request);

/**
 * Position in the sending order: the index of the next stream, or with `turns` the index of a turn,
 * and the first stream of the present round (each round has another UDP source port).
 */
struct rotation {
    uint32_t at;
    uint32_t round;
};

/**
 * Progress of updating the flows' live counts from the counts of their streams. Only some flows are
 * updated between two bursts, because an update of thousands would let a receive ring overflow.
 * After an end of the window, a flow is updated before its next frame is counted. Sent flows come
 * first.
 */
struct accounting {
    uint8_t *marks;          /**< by flow: number of the window's ends for which it was updated */
    uint8_t ends;            /**< number of the window's ends so far */
    bool marked;             /**< some flow is not yet updated for the last end */
    uint32_t next;           /**< next flow to update; 0: all are up to date */
    struct lane_moved moved; /**< traffic of the flows before `next` */
};

struct sender {
    struct sender_stream *streams;    /**< in sending order, normally a seeded random one */
    uint32_t *index_of;               /**< position of a stream in this order, by its index */
    struct turns turns;               /**< for flows with unequal shares; else empty */
    struct frame_template *templates; /**< for all sizes, by a stream's index; NULL: one size */
    struct pace pace;
    uint64_t left;        /**< frames yet to be sent, all streams; UINT64_MAX: until the stop */
    uint64_t burst;       /**< frames of each burst; 0: no bursts */
    uint64_t bursts_left; /**< bursts after the present one; UINT64_MAX: until the stop */
    uint64_t late_frames; /**< of a burst: maximum frames due at once beside the first */
    uint64_t missing;     /**< frames of the load that were not sent */
    uint32_t count;       /**< number of streams */
    uint32_t cost;        /**< mean cost of a frame */
    struct rotation next;
};

/** Frame that waits to be forwarded, because the send ring was full. */
struct forward_entry {
    void *frame;
    uint32_t stream;
    uint32_t length; /**< in memory */
};
struct forwarder {
    struct forward_entry *queue; /**< NULL: the lane does not forward */
    uint32_t head;               /**< free-running */
    uint32_t tail;
    uint64_t *dropped; /**< counter of frames without room */
};

enum frame_state { FRAME_NEW, FRAME_WAITS, FRAME_SENDS, FRAME_LISTENS };

struct frame_lane;

/** Description of one frame to send: a frame of the load, a probe, a message, or an answer. */
struct frame_single {
    uint32_t place;  /**< index of the flow in the lane's request */
    uint16_t tag;    /**< host byte order */
    uint16_t source; /**< number of the UDP source port */
    bool to_all;     /**< to all ports rather than to the partner */
    uint32_t frame_bytes;
    uint32_t sequence;
    int64_t stamp_ns; /**< since the phase's start, by the clock of the flow's source */
};

/** Description of a received frame that the hot path does not count; filled by the transport. */
struct frame_seen {
    const struct signature *signature;
    uint32_t length;    /**< in memory */
    uint16_t source;    /**< UDP source port's number */
    const uint8_t *mac; /**< address of its sender, as a partner's data begin; NULL: none */
    bool ours;          /**< addressed to this port */
};

typedef int64_t (*frame_send)(struct frame_lane *lane, int64_t now_ns);
typedef uint32_t (*frame_receive)(struct frame_lane *lane, int64_t now_ns);

/** Functions that a transport provides for a lane of frames, outside of the hot path. */
struct frame_ops {
    /**
     * Store the address data of a partner in `partner`, and its line rate in `line_bps`; `place` is
     * the partner's index, as in frame_single. Returns 0, or a negative errno with an error
     * message.
     */
    int (*resolve)(struct frame_lane *lane, uint32_t place, void *partner, uint64_t *line_bps,
                   struct err *err);
    /** Write the headers of a frame, and the fill behind its signature if the transport copies the
     * fill. */
    void (*write_headers)(const struct frame_lane *lane, const struct frame_single *single,
                          struct frame_template *head);
    /** Choose the lane's send function (choose_send) or receive function (choose_receive) for its
     * present task; `name` takes the name of the variant, for the records. */
    frame_send (*choose_send)(const struct frame_lane *lane, const char **name);
    frame_receive (*choose_receive)(const struct frame_lane *lane);
    /** Begin the phase; called by the worker. NULL: nothing to do. */
    void (*begin)(struct frame_lane *lane, int64_t now_ns);
    /**
     * Send one frame outside of the load to the partner at index `place`: `head` holds its first
     * bytes, `length` its bytes in memory. Returns false if the device had no room.
     */
    bool (*send_single)(struct frame_lane *lane, uint32_t place, struct frame_template *head,
                        uint32_t length);
    /** Return whether the bytes of a received frame, of any length, are undamaged. */
    bool (*is_sound)(const struct frame_lane *lane, const struct frame_seen *seen);
    /** Handle a wake-up of the worker by the lane's descriptor; NULL: nothing to do. */
    void (*woken)(struct frame_lane *lane);
    /** Do the transport's periodic work; return the time of the next call. NULL: no periodic
     * work. */
    int64_t (*housekeep)(struct frame_lane *lane, int64_t now_ns);
    /**
     * Make the kernel send the frames that still wait in its ring after the last burst; return
     * whether some may still wait.
     */
    bool (*flush)(struct frame_lane *lane);
};

/** Options that all transports of frames have; first member of a transport's own options. */
struct frame_options {
    uint16_t burst;    /**< maximum frames of one call of a driver or kernel */
    uint16_t catch_up; /**< frames that a late sender may send beyond its schedule */
    /**
     * @brief Frames that each flow sends from the window's opening on (traffic stream); 0: as many
     * as the load asks for from start to stop.
     */
    uint32_t window_frames;
    /** @brief UDP source ports per flow, each a stream with its own sequence; 0 means 1. */
    uint16_t udp_sources;
    /** @brief Load after falls_after_ns in percent of the load before (traffic stream); 0: the load
     * is constant. */
    double falls_to;
    double falls_after_ns; /**< time after the phase's start (RFC 2544, 26.5) */
    /**
     * @brief Random delay of each departure, from 0 to this multiple of the time between frames.
     */
    double dither;
};

/** Entries of struct frame_options in the option table of a transport's options `struct in`. */
#define FRAME_OPTIONS(in, member)                                                                  \
    {OPTION(OPTION_NUMBER, in, "burst", member burst), .min = 1, .max = FRAME_BURST_MAX,           \
     .initial = 32},                                                                               \
        {OPTION(OPTION_NUMBER, in, "catch_up", member catch_up), .min = 1, .max = UINT16_MAX,      \
         .initial = PACE_CATCH_UP},                                                                \
        {OPTION(OPTION_NUMBER, in, "window_frames", member window_frames), .max = UINT32_MAX},     \
    {                                                                                              \
        OPTION(OPTION_REAL, in, "dither", member dither)                                           \
    }

/** Configuration of a lane of frames, set by the transport. */
struct frame_conf {
    const struct frame_ops *ops;
    const char *name;       /**< name of the port */
    const char *header;     /**< header kind of the frames, for the records */
    size_t partner_bytes;   /**< size of the data that `resolve` stores */
    uint32_t offset;        /**< offset of the signature in memory */
    uint32_t outside;       /**< bytes of a frame that are not in memory, FCS included */
    uint32_t least;         /**< bytes of the shortest frame */
    uint32_t most;          /**< bytes of the longest frame */
    uint32_t receive_burst; /**< maximum frames received by one call; 0: as sent */
    uint32_t every_max;     /**< maximum flows of which every frame's time is measured */
    uint16_t queues;        /**< of the port */
    bool to_all;            /**< frames go to all ports: one flow is sent, all are counted */
    bool flushes;           /**< the last burst may wait in the kernel */
};

struct frame_lane {
    struct lane lane;      /**< first member: the worker's part */
    frame_send send;       /**< sends due frames; returns when more will be due */
    frame_receive receive; /**< receives a burst and returns its length */
    bool timing;           /**< the window is open: frames are measured as they are received */
    bool responds;         /**< received frames may be a reason to send at once */
    int64_t start_ns;
    struct frame_conf conf;
    struct frame_options options; /**< with `catch_up` in frames of the phase's mean size */
    struct accounting accounting;
    struct sender sender;
    struct receiver receiver;
    struct forwarder forwarder;
    struct prober prober;
    /** @brief Tags of probes, and of answers to probes and messages, in network byte order. */
    uint16_t tags[2];
    bool displaces;                               /**< the load yields to each probe and answer */
    void *partners;                               /**< by index, of conf.partner_bytes each */
    struct frame_size sizes[TRANSPORT_SIZES_MAX]; /**< the different sizes */
    uint32_t size_count;
    uint8_t order[TRANSPORT_SIZES_MAX]; /**< the phase's list, as indices in `sizes` */
    uint32_t order_count;
    uint8_t size_of_length[FILL_BYTES + 1];
    enum frame_state state;
    int64_t timer_ns;    /**< when the state may change */
    int64_t flush_ns;    /**< when the kernel's ring is to be emptied; CLOCK_NEVER: it is empty */
    int64_t falls_ns;    /**< when the load falls; CLOCK_NEVER: never (again) */
    int64_t look_gap_ns; /**< poll interval without a wake-up: adaptive_poll() */
    uint64_t random;     /**< state of the lane's random numbers */
    void *memory;        /**< one block for all arrays by flow, stream or rank */
};

/* --- a lane's life -----------------------------------------------------------------------------*/

/** @brief Check a lane's request against the limits of all transports of frames, and make the
 * lane's sizes, partners, streams and tables.
 * @return 0, -ENOMEM, -EINVAL or an error of a hook, with an error message; free it then, too. */
int frame_lane_make(struct frame_lane *lane, const struct frame_conf *conf, struct err *err);
void frame_lane_free(struct frame_lane *lane);
/** @brief Write the frame templates of the lane's streams; partners' addresses must be resolved. */
void frame_lane_build(struct frame_lane *lane);
/** @brief Begin the phase of a lane of frames; called by the first call of frame_lane_poll(). */
void frame_lane_begin(struct frame_lane *lane, int64_t now_ns);

/** Functions of a lane of frames for the transport's table (struct transport): `poll`, `account`
 * and `read_flow`. */
int64_t frame_lane_poll(struct lane *lane, int64_t now_ns);
bool frame_lane_account(struct lane *lane, enum account what);
void frame_lane_read_flow(struct lane *lane, const struct lane_flow *flow,
                          struct flow_reading *reading);

/** @brief Update the live counts of a flow from its streams, and its counts at the ends of the
 * window. */
void frame_account_flow(struct frame_lane *lane, uint32_t number);

/** @brief Handle a received frame that is not part of the load of the lane's flows: answer or
 * measure a probe, or count a damaged, misdelivered or foreign frame.
 *
 * The frame `seen` is at least as long as a signature. */
void frame_lane_unexpected(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns);

/** @brief Return the rank at the other end of the lane's flow with index `place`. */
static inline uint32_t frame_partner_rank(const struct frame_lane *lane, uint32_t place)
{
    const struct lane_request *request = &lane->lane.request;

    return place < request->send_count ? request->flows[place].dst : request->flows[place].src;
}

/** @brief Return the address data that the transport's `resolve` stored for the partner with index
 * `place`. */
static inline void *frame_partner(const struct frame_lane *lane, uint32_t place)
{
    return (char *)lane->partners + place * lane->conf.partner_bytes;
}

/** @brief Return the cost of a frame for the pacer: its bits at layer 1, or 1 if the load is in
 * frames/s or unlimited. */
static inline uint32_t frame_cost(const struct phase *phase, uint32_t frame_bytes)
{
    return phase->load.unlimited || phase->load.rate_bps <= 0
               ? 1
               : 8 * (frame_bytes + FRAME_OVERHEAD_L1);
}

/* --- frame_single.c: probes, and ping-pong, in which each message is one frame ---------------- */

/** @brief Write the head of a frame: its headers, and its signature with its time and number. */
void frame_write_head(const struct frame_lane *lane, const struct frame_single *single,
                      struct frame_template *head);

/** @brief Return the size, with FCS, of the frame that carries a message of `bytes` bytes. */
static inline uint32_t frame_message_size(const struct frame_lane *lane, uint32_t bytes)
{
    uint32_t size = lane->conf.offset + SIGNATURE_BYTES + lane->conf.outside + bytes;

    return size > lane->conf.least ? size : lane->conf.least;
}

/** @brief Send the next latency probe if it is due; return the time at which the next one is
 * due. */
int64_t frame_probe(struct frame_lane *lane, int64_t now_ns);
/**
 * @brief Send the ping-pong messages that are due, and give up lost ones; return the time of the
 * next call. This is the function `send` of a lane in a ping-pong phase.
 */
int64_t frame_pingpong(struct frame_lane *lane, int64_t now_ns);
/**
 * @brief Handle a received probe, message or answer: answer a valid probe or message, measure a
 * valid answer, and count the frame. Return false for any other frame.
 */
bool frame_single_take(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns);

/* --- sending order --------------------------------------------------------------------------- */

/**
 * @brief Schedule a flush of the kernel's send ring, in which sent frames may wait until further
 * frames are sent.
 */
#define FRAME_FLUSH_NS NS_PER_MS
static inline void frame_flush_later(struct frame_lane *lane, int64_t now_ns)
{
    if (lane->conf.flushes)
        lane->flush_ns = now_ns + FRAME_FLUSH_NS;
}

static inline bool sender_has_turns(const struct sender *sender)
{
    return sender->turns.flow != NULL;
}

/**
 * @brief Return the stream that sends the next frame. `mixed` (a constant): the flows may have
 * unequal shares, and so a table of turns.
 */
static inline __attribute__((always_inline)) struct sender_stream *
rotation_stream(const struct sender *sender, const struct rotation *next, bool mixed)
{
    return &sender->streams[mixed && sender_has_turns(sender)
                                ? next->round + sender->turns.flow[next->at]
                                : next->at];
}

static inline __attribute__((always_inline)) void rotation_step(const struct frame_lane *lane,
                                                                struct rotation *next, bool mixed)
{
    const struct sender *sender = &lane->sender;
    uint32_t flows = lane->lane.request.send_count;

    if (!mixed || !sender_has_turns(sender)) {
        next->at = next->at + 1 < sender->count ? next->at + 1 : 0;
    } else if (++next->at == sender->turns.count) {
        next->at = 0;
        next->round = next->round + flows < sender->count ? next->round + flows : 0;
    }
}

#endif
