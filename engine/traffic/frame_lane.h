/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A lane of frames: units that may be lost, of a transport that only moves bytes.
 *
 * frame_setup.c makes a lane; frame_lane.c keeps its times and its counts; frame_single.c sends
 * single frames that are answered; frame_hot.h is the hot path, which a transport's one hot
 * file includes behind its hooks, so that the compiler makes variants of it. A transport's own lane
 * begins with `struct frame_lane`. A frame is FRAME_TEMPLATE bytes that differ by stream, of which
 * the signature differs by frame, and fill.
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

#define FRAME_BURST_MAX 128u     /**< frames that one call of a driver or kernel sends, max */
#define FRAME_NO_SIZE 0xff       /**< a length that no frame of the phase has */
#define FRAME_FORWARD_QUEUE 512u /**< frames; a power of two */
#define FRAME_ACCOUNT_SOME 64u   /**< streams that are accounted at once, or those of one flow */
#define FRAME_SAMPLE_OF 128      /**< of so many frames the times of two neighbours are measured */
#define FRAME_RETRY_NS (20 * NS_PER_US) /**< until a full device is tried again by a sleeper */

/** One of a phase's different sizes. */
struct frame_size {
    uint32_t frame_bytes;   /**< with FCS */
    uint32_t payload_bytes; /**< behind the headers */
    uint32_t cost;          /**< to the pace: bits at layer 1, or 1 when the load is in frames/s */
    uint16_t length;        /**< in memory */
};

/** What a flow sends from one UDP source port, with a sequence of its own: two cache lines that
 * hold all that its next frame needs. Frames and bytes follow from the sequence. */
struct sender_stream {
    struct frame_template template; /**< of the phase's first size */
    uint64_t sequence;              /**< of the next frame */
    int64_t last_ns;                /**< when its last frame was sent */
    struct flow_side *side;
    uint32_t place; /**< flow as asked for, times UDP source ports, plus source port: never moves */
    uint16_t size_index; /**< place in the phase's list of sizes */
    uint16_t base;       /**< signature_base() */
} __attribute__((aligned(64)));
static_assert(sizeof(struct sender_stream) == 128, "a stream is two cache lines");

/* --- frame_judge.c: what becomes of a sound frame of a lane's flows: in order, reordered,
 * duplicate, late or forged, by its sequence alone --- */

/** How far ahead of the expected number a frame's number can be: as far as the fastest sender can
 * have come since the last frame. A greater jump is forged, and refused: otherwise it would make
 * every honest frame behind it late. */
struct sequence_limit {
    double frames_per_ns; /**< of the fastest sender; raised by each flow */
    double at_once;
    int64_t start_ns; /**< the phase's: stamps count from there; 0: not known yet */
};

/** What came of one of a flow's streams: the one cache line that a frame in order touches. */
struct receiver_stream {
    struct sequence sequence;
    uint64_t frames; /**< delivered */
    uint64_t bytes;  /**< theirs, in memory */
    int64_t last_ns;
    int64_t stamp_ns; /**< of the first frame of the last 64 numbers, or behind the last gap */
    struct flow_side *side;
} __attribute__((aligned(64)));
static_assert(sizeof(struct receiver_stream) == 64, "a stream is one cache line");

struct receiver {
    struct sequence_limit limit;         /**< of its senders */
    struct receiver_stream *streams;     /**< by flow, and UDP source port within it */
    struct sequence_past *pasts;         /**< the streams' */
    struct reordering *reorderings;      /**< theirs, too */
    struct delay_stats *delay_stats;     /**< the streams'; NULL: they are not measured */
    struct delay_stats_buckets *buckets; /**< the flows' */
    bool sampled;                        /**< two frames of FRAME_SAMPLE_OF are measured */
    /** By source rank, of all that there may be: number of a flow + 1; 0: none. Its pages are
     * touched as flows need them, so that few flows cost little. */
    uint16_t *flow_of;
    uint32_t count;   /**< flows */
    uint32_t sources; /**< UDP source ports a flow */
    uint16_t tag;     /**< as on the wire, and so are */
    uint16_t rank;    /**< the frames' destination, and */
    uint16_t own;     /**< the port's */
    uint64_t left;    /**< frames of a transfer or a check, yet to come; UINT64_MAX: not known */
};

/** A sound frame of the lane's flows. */
struct received {
    const struct signature *signature;
    struct receiver_stream *stream;
    uint32_t sequence;
    int32_t ahead;   /**< of the number that was expected next; set where delays are measured */
    uint32_t length; /**< in memory */
};

/**
 * @brief Take a flow into account.
 *
 * @param limit Limit.
 * @param flow Flow.
 * @param load Load.
 */
void sequence_limit_add(struct sequence_limit *limit, const struct lane_flow *flow,
                        const struct load *load, uint64_t line_bps, uint32_t least_bytes);

/** @brief Judge a frame that is not the next one; whether it is delivered. */
bool frame_judge_out_of_order(const struct receiver *receiver, const struct received *frame,
                              int64_t now_ns);

/** @brief Judge a frame by its sequence and count it in its stream; whether it is delivered. */
static inline __attribute__((always_inline)) bool
frame_judge(const struct receiver *receiver, struct received *frame, int64_t now_ns, bool timed)
{
    struct receiver_stream *stream = frame->stream;

    if (timed)
        frame->ahead = (int32_t)(frame->sequence - (uint32_t)stream->sequence.next);
    if (!sequence_follows(&stream->sequence, frame->sequence) &&
        !frame_judge_out_of_order(receiver, frame, now_ns))
        return false;
    stream->frames++;
    stream->bytes += frame->length;
    stream->last_ns = now_ns;
    return true;
}

/* --- turns: in which order flows with unequal shares send. Each flow has as many places in the
 * table as its share says, as far apart as they can be. --- */

#define TURNS_MAX 65536u /**< of one table: a share is met to half of one of so many */

struct turns {
    uint32_t *flow; /**< by turn; NULL: all flows have one turn each, in their order */
    uint32_t count; /**< turns */
};

/**
 * @brief Of flows with a `share`; of flows without, there is no table.
 *
 * 0, or -ENOMEM. The caller frees the table of flows.
 */
int turns_make(struct turns *turns, const struct lane_flow *flows, uint32_t count);
/**
 * @brief Return the frames of its port's burst that a lane sends; over all lanes of the port they
 * come to exactly the port's.
 *
 * @param request Lane.
 * @return Frames.
 */
uint64_t turns_burst(const struct lane_request *request);

/** Which stream is next: its place, or where there are `turns` a place among them and the first of
 * the streams that this round is of (each is of another UDP source port). */
struct rotation {
    uint32_t at;
    uint32_t round;
    uint32_t run; /**< frames of this stream so far, where several follow each other */
};

/** How far the flows' live counts are up to date with their streams, by some flows at a time
 * between bursts: a walk over thousands would let a ring overflow. Until all are behind an end of
 * the window, those of each burst are accounted before they change. Flows that are sent come first.
 */
struct accounting {
    uint8_t *marks;          /**< by flow: ends of the window that it is behind */
    uint8_t ends;            /**< that are past */
    bool marked;             /**< there is a flow that is not behind the last of them */
    uint32_t next;           /**< to be accounted; 0: all are */
    struct lane_moved moved; /**< by those before it */
};

struct sender {
    struct sender_stream *streams;    /**< in the order of sending; as a rule a seeded random one */
    uint32_t *index_of;               /**< by a stream's place, from the begin on */
    struct turns turns;               /**< of flows with unequal shares; else none */
    struct frame_template *templates; /**< of all sizes, by stream's place; NULL: one size */
    struct pace pace;
    uint64_t left;        /**< frames yet to be sent, all streams; UINT64_MAX: until the stop ... */
    uint64_t burst;       /**< ... and of each burst; 0: there are none */
    uint64_t bursts_left; /**< behind the present one; UINT64_MAX: until the stop */
    uint64_t late_frames; /**< of a burst: the most that were due at once beside the first */
    uint64_t missing;     /**< frames that the load asked for and that were not sent */
    uint32_t count;       /**< streams */
    uint32_t cost;        /**< mean of a frame */
    struct rotation next;
};

/** Frames that wait to be sent on. The queue bridges a full send ring, nothing more. */
struct forward_entry {
    void *frame;
    uint32_t stream;
    uint32_t length; /**< in memory */
};
struct forwarder {
    struct forward_entry *queue; /**< NULL: the lane does not forward */
    uint32_t head;               /**< free-running */
    uint32_t tail;
    uint64_t *dropped; /**< where frames count that found no room */
};

enum frame_state { FRAME_NEW, FRAME_WAITS, FRAME_SENDS, FRAME_LISTENS };

struct frame_lane;

/** A frame beside the load: a probe, a message, or what is sent back of one. */
struct frame_single {
    uint32_t place;  /**< the flow's in the lane's request */
    uint16_t tag;    /**< host byte order */
    uint16_t source; /**< UDP source port's number */
    uint32_t frame_bytes;
    uint32_t sequence;
    int64_t stamp_ns; /**< since the phase's start, by the clock of the flow's source */
};

/** A received frame that the hot path does not count, as its transport sees it. */
struct frame_seen {
    const struct signature *signature;
    const void *buffer; /**< the transport's */
    uint32_t length;    /**< in memory */
    uint32_t damaged;   /**< number + 1 of its flow where its signature is damaged; 0: unknown */
    bool ours;          /**< it is addressed to this port */
};

typedef int64_t (*frame_send)(struct frame_lane *lane, int64_t now_ns);
typedef uint32_t (*frame_receive)(struct frame_lane *lane, int64_t now_ns);

/** What a transport does for a lane off its hot path. */
struct frame_ops {
    /** Whether the port carries such frames; an error with the sentence. */
    int (*check_size)(const struct frame_lane *lane, uint32_t frame_bytes, struct err *err);
    /** Keeps how the partner at a place (as in frame_single) is reached in `partner`, and returns
     * its line rate. An error with the sentence. */
    int (*resolve)(struct frame_lane *lane, uint32_t place, void *partner, uint64_t *line_bps,
                   struct err *err);
    /** The first bytes of a flow's frames of one size. */
    void (*write_template)(const struct frame_lane *lane, uint32_t place, uint16_t source,
                           const struct frame_size *size, struct frame_template *template);
    /** The variants for what the lane is asked for now. */
    frame_send (*choose_send)(const struct frame_lane *lane);
    frame_receive (*choose_receive)(const struct frame_lane *lane);
    const char *(*send_name)(const struct frame_lane *lane); /**< for the records */
    /** The phase begins, on the worker's thread; NULL: nothing to do. */
    void (*begin)(struct frame_lane *lane, int64_t now_ns);
    /** Sends one frame beside the load; false: the device had no room. */
    bool (*send_single)(struct frame_lane *lane, const struct frame_single *single);
    /** Whether a frame is as it was sent, whatever its length. */
    bool (*is_sound)(const struct frame_lane *lane, const struct frame_seen *seen);
    /** Its UDP source port's number; NULL: 0. */
    uint16_t (*source_of)(const struct frame_lane *lane, const struct frame_seen *seen);
    /** Local time of its arrival; NULL: now. */
    int64_t (*arrived)(const struct frame_lane *lane, const struct frame_seen *seen);
    /** Its worker's descriptor woke it; NULL: nothing to do. */
    void (*woken)(struct frame_lane *lane);
    /** Work that is due at certain times; returns when it is again. NULL: none. */
    int64_t (*housekeep)(struct frame_lane *lane, int64_t now_ns);
    /** Has the kernel send what waits behind the last burst; whether some may wait still. */
    bool (*flush)(struct frame_lane *lane);
};

/** What a document says of each lane of frames: the first of a transport's own options. */
struct frame_options {
    uint16_t burst;         /**< frames by one call of a driver or kernel, max */
    uint16_t catch_up;      /**< frames that a late sender may send beyond its schedule */
    uint32_t window_frames; /**< a flow of a stream sends so many from the window's opening on, and
                               then none; 0: as many as the load gives from start to stop */
    double dither; /**< each departure late by 0 to so many times from one to the next, at random */
};

/** Their entries in the table of options of `struct in`. */
#define FRAME_OPTIONS(in, member)                                                                  \
    {OPTION(OPTION_NUMBER, in, "burst", member burst), .min = 1, .max = FRAME_BURST_MAX,           \
     .initial = 32},                                                                               \
        {OPTION(OPTION_NUMBER, in, "catch_up", member catch_up), .min = 1, .max = UINT16_MAX,      \
         .initial = PACE_CATCH_UP},                                                                \
        {OPTION(OPTION_NUMBER, in, "window_frames", member window_frames), .max = UINT32_MAX},     \
    {                                                                                              \
        OPTION(OPTION_REAL, in, "dither", member dither)                                           \
    }

/** What a transport says of a lane before it is made. */
struct frame_conf {
    const struct frame_ops *ops;
    const char *name;       /**< the port's */
    const char *clock;      /**< of probes' arrivals, for the records; NULL: the host's */
    const char *header;     /**< of the frames, for the records */
    size_t partner_bytes;   /**< of what `resolve` keeps */
    uint32_t offset;        /**< of the signature in memory */
    uint32_t outside;       /**< bytes of a frame that are not in memory, FCS included */
    uint32_t least;         /**< bytes of the shortest frame */
    uint32_t most;          /**< and of the longest */
    uint32_t receive_burst; /**< frames received by one call, max; 0: as sent */
    uint32_t sources;       /**< UDP source ports a flow, from the transport's options; so are */
    double falls_to;        /**< percent of the load ... */
    double falls_after_ns;  /**< ... from so long after the start on; 0: it stays */
    uint32_t every_max;     /**< flows of which every frame's time is measured */
    uint16_t queues;        /**< of the port */
    bool to_all;            /**< frames go to all ports: one flow is sent, all are counted */
    bool trains;            /**< frames of one flow may follow each other */
    bool flushes;           /**< the last burst may wait in the kernel */
};

struct frame_lane {
    struct lane lane;      /**< first: the worker's part */
    frame_send send;       /**< sends what is due; returns when more will be */
    frame_receive receive; /**< receives a burst and returns its length */
    bool timing;           /**< the window is open: frames are measured as they are received */
    bool responds;         /**< what is received may be a reason to send at once */
    uint32_t train;        /**< frames of one stream that follow each other in this burst */
    int64_t start_ns;
    struct frame_conf conf;
    struct frame_options options; /**< with `catch_up` in frames of the phase's mean size */
    struct accounting accounting;
    struct sender sender;
    struct receiver receiver;
    struct forwarder forwarder;
    struct prober prober;
    uint16_t tags[2]; /**< of probes, and of answers to them and to messages, as on the wire */
    bool displaces;   /**< the load yields to each probe and answer */
    void *partners;   /**< by place, of conf.partner_bytes each */
    struct frame_size sizes[TRANSPORT_SIZES_MAX]; /**< different ones */
    uint32_t size_count;
    uint8_t order[TRANSPORT_SIZES_MAX]; /**< the phase's list, as places in `sizes` */
    uint32_t order_count;
    uint8_t size_of_length[FILL_BYTES + 1];
    enum frame_state state;
    int64_t timer_ns;    /**< when the state may change */
    int64_t flush_ns;    /**< when the kernel's ring is to be emptied; CLOCK_NEVER: it is */
    int64_t falls_ns;    /**< when the load falls; CLOCK_NEVER: it does not (any more) */
    int64_t look_gap_ns; /**< where nothing tells that a frame has come: adaptive_poll() */
    uint64_t random;     /**< state of all that is random in the lane */
    void *memory;        /**< all that stands by flow, stream or rank */
};

/* --- a lane's life -----------------------------------------------------------------------------*/

/** @brief Allocate a transport's own lane of so many bytes, zero but for its request.
 * @return Lane, which frame_lane_free() takes back; NULL: out of memory. */
void *frame_lane_new(size_t bytes, const struct lane_request *request);
/** @brief Check a lane's request against what every transport of frames can do, and make what the
 * lane keeps: sizes, partners, streams, tables.
 * @return 0, -ENOMEM, -EINVAL or an error of a hook, with the sentence; free it then, too. */
int frame_lane_make(struct frame_lane *lane, const struct frame_conf *conf, struct err *err);
void frame_lane_free(struct frame_lane *lane);
/** @brief Write the streams' templates, once partners are known. */
void frame_lane_build(struct frame_lane *lane);
/** @brief Drop the frames that still wait to be sent on, and count them; `release` frees one. */
void frame_lane_drop(struct frame_lane *lane, void (*release)(void *frame));
/** @brief Begin the phase: poll calls it first. */
void frame_lane_begin(struct frame_lane *lane, int64_t now_ns);

/** As the transport's functions of these names. */
int64_t frame_lane_poll(struct lane *lane, int64_t now_ns);
bool frame_lane_account(struct lane *lane, enum account what);
void frame_lane_read_flow(struct lane *lane, const struct lane_flow *flow,
                          struct flow_reading *reading);

/** @brief Bring the live counts of a flow up to date, and its counts at the ends of the window. */
void frame_account_flow(struct frame_lane *lane, uint32_t number);

/** @brief Count a frame that is not as the lane's flows send them: a probe, which is answered or
 * measured, a damaged, a misdelivered or a foreign one. `seen` is at least a signature long. */
void frame_lane_unexpected(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns);

/** @brief Return the rank at the other end of one of the lane's flows. */
static inline uint32_t frame_partner_rank(const struct frame_lane *lane, uint32_t place)
{
    const struct lane_request *request = &lane->lane.request;

    return place < request->send_count ? request->flows[place].dst : request->flows[place].src;
}

/** @brief Return what a frame costs the pace: bits at layer 1, or 1 of a load in frames a second.
 */
static inline uint32_t frame_cost(const struct phase *phase, uint32_t frame_bytes)
{
    return phase->load.unlimited || phase->load.rate_bps <= 0
               ? 1
               : 8 * (frame_bytes + FRAME_OVERHEAD_L1);
}

/* --- frame_single.c: probes, and ping-pong, of which each message is one frame ----------------*/

/** @brief Return the bytes of a message's frame, with FCS. */
static inline uint32_t frame_message_size(const struct frame_lane *lane, uint32_t bytes)
{
    uint32_t size = lane->conf.offset + SIGNATURE_BYTES + lane->conf.outside + bytes;

    return size > lane->conf.least ? size : lane->conf.least;
}

/** @brief Send the probe that is due; return when the next one is. */
int64_t frame_probe(struct frame_lane *lane, int64_t now_ns);
/** @brief Begin the messages that are due and give up those that are lost: a ping-pong's `send`.
 * Returns when to call again. */
int64_t frame_play(struct frame_lane *lane, int64_t now_ns);
/** @brief Answer a sound probe or message, or measure an answer, and count it; false: it is none.
 */
bool frame_single_take(struct frame_lane *lane, const struct frame_seen *seen, int64_t now_ns);

/* --- whose turn it is --------------------------------------------------------------------------*/

/** @brief Look after what was just sent: it may wait in a kernel's ring until more is sent. */
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

/** @brief Return the stream that is next. `mixed` (constant): turns are looked at, and trains. */
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

    if (mixed && ++next->run < lane->train)
        return;
    next->run = 0;
    if (!mixed || !sender_has_turns(sender)) {
        next->at = next->at + 1 < sender->count ? next->at + 1 : 0;
    } else if (++next->at == sender->turns.count) {
        next->at = 0;
        next->round = next->round + flows < sender->count ? next->round + flows : 0;
    }
}

#endif
