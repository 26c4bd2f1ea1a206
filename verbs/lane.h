/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A verbs lane inside. The main thread makes and connects the queue pairs (prepare.c, settle.c,
 * cm.c), a worker moves the messages (source.c, sink.c, work.c), the main thread reads what came of
 * it (measure.c).
 *
 * Each queue pair of a flow is a stream of its own: messages in order, then an end eof. Offered is
 * what was completed: with RC what the partner's device has acknowledged, with UC and UD what left;
 * of reads what the reader says it has.
 */
#ifndef VERBS_LANE_H
#define VERBS_LANE_H

#include "flow_rate.h"
#include "message.h"
#include "port.h"
#include "qp.h"
#include "qp_info.h"

#define VERBS_BATCH 64u /* messages posted, and completions polled, at once */
#define VERBS_PROBE_BYTES 10000u
#define VERBS_MESSAGE_MAX (1u << 30)

/* What a completion is of: the top byte of its work request's id. Receives have none: their id is
 * their place in the ring. The rest is a count of messages. */
enum verbs_work { VERBS_WORK_RECEIVE, VERBS_WORK_MESSAGE, VERBS_WORK_CONTROL, VERBS_WORK_EOF };
#define VERBS_WORK_SHIFT 56
#define VERBS_WORK_ID(kind, count) ((uint64_t)(kind) << VERBS_WORK_SHIFT | (count))

/* A write's immediate data: the low bits of the message's sequence, or that it is the end eof. */
#define VERBS_IMMEDIATE_MASK 0x7fffffffu
#define VERBS_IMMEDIATE_EOF 0x80000000u

enum verbs_link {
    VERBS_LINK_PUBLISHED, /* our offer is out, the partner's is awaited */
    VERBS_LINK_AWAIT,     /* the partner must make a new end */
    VERBS_LINK_CALLING,   /* rdma_cm is at work */
    VERBS_LINK_READY,
};

/* One end of one stream: what a source and a sink have in common. */
struct verbs_endpoint {
    struct verbs_lane *lane;
    struct lane_flow *flow;
    struct verbs_qp *qp;
    struct qp_config config;
    struct verbs_script script;
    struct qp_info mine;
    struct qp_info theirs;
    enum verbs_link link;
    int called; /* rdma_cm: 0: connected; -EAGAIN: under way */
    bool source;
    bool is_reply;     /* a way back (pingpong.c): its source is the flow's destination */
    bool control_busy; /* a word is on its way to the partner */
    bool finished;     /* source: the end mark has arrived; sink: it has come */
    bool failed;
};

/* One flow that this lane sends. */
struct verbs_flow {
    struct lane_flow *flow;
    struct verbs_sender *senders; /* queue_pairs of them */
    struct pace pace;             /* in bytes of payload */
    unsigned turn;                /* the stream that begins the next round */
    unsigned open;                /* streams that have not ended */
    bool unpaced;
};

/* A stream that this lane sends on. */
struct verbs_sender {
    struct verbs_endpoint endpoint;
    struct verbs_receiver *from; /* forwards what this one takes; NULL: it generates */
    struct verbs_cursor at;
    uint64_t done;         /* messages completed ... */
    uint64_t done_bytes;   /* ... and their payload */
    uint64_t allowed;      /* messages that the sink has given places for */
    uint64_t *bytes_after; /* payload bytes up to a message that is signalled; `span` of them */
    uint32_t span;
    uint32_t next;        /* place in bytes_after and among the headers */
    uintptr_t payload;    /* the port's pattern as it was when the end was connected: that of */
                          /* a later lane may lie elsewhere */
    uint32_t remote;      /* place in the sink's ring */
    uint32_t unsignalled; /* messages posted since the last that is signalled */
    uint64_t told;        /* reads: messages that the sink knows of */
    uint64_t waits;       /* times that messages were due and no place was free */
    int64_t moved_ns;     /* unreliable services: when a credit last came, or was given up */
    struct verbs_header header; /* of the run that is made: the compiler keeps it in one piece */
    bool stopping;              /* begin no further message */
    bool closed;                /* it has ended, and was counted */
    unsigned eofs;              /* end marks posted */
    int64_t eof_ns;
    /* The variant, chosen by prepare: makes work requests of the next `count` messages, which are
     * all of the present length. */
    void (*fill)(struct verbs_sender *sender, struct ibv_send_wr *work, uint32_t count);
    struct ibv_send_wr *works; /* VERBS_BATCH, linked */
    struct ibv_sge *gathers;   /* two for each */
};

/* A stream that this lane receives. */
struct verbs_receiver {
    struct verbs_endpoint endpoint;
    struct verbs_sender *onward; /* forwards to; NULL: it does not */
    struct verbs_verifier verifier;
    uint32_t place;         /* of the ring, for the next message */
    uint32_t held;          /* places taken and not given back */
    uint32_t arrived;       /* schedules: places from `place` on that wait for their step ... */
    uint32_t *lengths;      /* ... by place, the bytes that came */
    uint32_t to_post;       /* receives to be posted again ... */
    uint32_t to_post_place; /* ... from this place on */
    uint64_t told;          /* credit that the source knows of */
    int64_t told_ns;
    int64_t came_ns;          /* the last message */
    struct verbs_cursor next; /* writes without immediate: the message for whose last byte the place
                                 is made ready; reads: the next to be asked for */
    uint32_t next_place;
    uint32_t remote;      /* reads: place in the source's ring */
    uint32_t unsignalled; /* reads */
    uint64_t known;       /* reads: messages that the source has ready */
    uint64_t total;       /* of the end mark ... */
    uint64_t total_bytes;
    bool eof_seen; /* ... which has come */
    bool whole;
    /* The variant: takes what has come. Returns how many messages. */
    unsigned (*take)(struct verbs_receiver *receiver, int64_t now_ns);
    struct ibv_recv_wr *receives; /* one for each slot, in a circle */
    struct ibv_sge *scatters;
    struct ibv_send_wr *works; /* reads: VERBS_BATCH, linked */
};

struct pingpong;       /* ../engine/pingpong.h */
struct verbs_probes;   /* probes.h: round trips beside a load */
struct verbs_schedule; /* steps.c: what a lane has that executes a schedule */

struct verbs_lane {
    struct lane lane;
    struct transport_port *port;
    struct verbs_options options; /* effective: nothing is automatic but where said */
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    unsigned streams; /* per flow */
    uint16_t mtu;     /* path MTU at most */
    bool reliable;
    bool forwards;
    bool events;
    bool armed; /* a completion makes the port's channel readable */
    struct verbs_flow *flows;
    struct verbs_sender *senders;     /* of what it sends, then the ways back of what it receives */
    struct verbs_receiver *receivers; /* of what it receives, then the ways back of what it sends */
    struct lane_flow *replies;        /* back.c: the ways back of what it sends, then of what it */
    struct flow_side *reply_sides;    /* receives, and their counts; NULL: there are none */
    struct pingpong *pingpong;        /* NULL: they are not timed one by one */
    struct verbs_probes *probes;      /* beside it; NULL: none are sent */
    struct verbs_schedule *schedule;  /* NULL: it has no schedule */
    struct verbs_probes *carries;     /* whose lane it is itself; NULL: a lane of the phase */
    unsigned sender_count, senders_finished;
    unsigned receiver_count, receivers_finished;
    unsigned ready;           /* ends that are connected */
    unsigned connected_count; /* ends before this one are */
    int64_t connecting_since_ns;
    int64_t look_ns;
    int64_t opens_ns; /* nothing is sent before */
    /* The variant, chosen by prepare: sends what is due; returns when the next is. */
    int64_t (*send)(struct verbs_lane *lane, int64_t now_ns);
};

int verbs_lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err);
int verbs_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
int verbs_port_connect_fd(struct transport_port *port);
int verbs_lane_wake_fd(struct lane *lane);
void verbs_lane_start(struct lane *lane, int64_t now_ns);
int64_t verbs_lane_poll(struct lane *lane, int64_t now_ns);
unsigned verbs_lane_flow_metrics(struct lane *lane, const struct lane_flow *flow,
                                 struct measure *out, unsigned room);
bool verbs_lane_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                        struct latency *sum);
size_t verbs_lane_samples(struct lane *lane, const struct sample **samples);
void verbs_lane_destroy(struct lane *lane);

/* --- between the files of a lane --- */

/* The lane's ends: senders, then receivers. */
struct verbs_endpoint *verbs_lane_endpoint(struct verbs_lane *lane, unsigned index);

/* The rank at the other end. */
static inline uint32_t verbs_endpoint_partner(const struct verbs_endpoint *endpoint)
{
    return endpoint->source != endpoint->is_reply ? endpoint->flow->dst : endpoint->flow->src;
}

/* An end is connected: fills what needs the partner's info. */
void verbs_sender_connected(struct verbs_sender *sender);
void verbs_receiver_connected(struct verbs_receiver *receiver);

/* A completion that failed: sets the lane's error, unless it only follows from another. */
void verbs_fault(struct verbs_endpoint *endpoint, const struct ibv_wc *completion);
/* The same for a post that was refused. */
void verbs_fault_post(struct verbs_endpoint *endpoint, int code);

/* Source: takes completions and credits; true: something moved. */
bool verbs_sender_reap(struct verbs_sender *sender, int64_t now_ns);
/* Posts messages of at most `budget` bytes, or one that is larger; returns the bytes. */
uint64_t verbs_sender_post(struct verbs_sender *sender, uint64_t budget, int64_t now_ns);
/* Leaves `count` messages out, as if they had been sent. */
void verbs_sender_skip(struct verbs_sender *sender, uint64_t count);
/* All messages are posted: sends the end mark once they are completed. */
void verbs_sender_finish(struct verbs_sender *sender, int64_t now_ns);
void verbs_sender_variant(struct verbs_sender *sender);

static inline bool verbs_sender_at_end(const struct verbs_sender *sender)
{
    return sender->stopping || sender->at.length == 0;
}

/* Sink: takes what has come; how many messages. */
unsigned verbs_receiver_poll(struct verbs_receiver *receiver, int64_t now_ns);
/* Gives back the places of the `count` messages that were taken first. */
void verbs_receiver_give_back(struct verbs_receiver *receiver, uint32_t count);
/* Posts receives again, tells the source. */
void verbs_receiver_tell(struct verbs_receiver *receiver, int64_t now_ns);
void verbs_receiver_variant(struct verbs_receiver *receiver);
/* Schedules: the message that came first and was not taken yet, and its length; NULL: there is
 * none.
 */
const uint8_t *verbs_receiver_arrived(const struct verbs_receiver *receiver, uint32_t *bytes);
/* It was taken, and held so many bytes; or it is taken as what it should be, the end eof. */
void verbs_receiver_took(struct verbs_receiver *receiver, uint32_t bytes);
void verbs_receiver_take_eof(struct verbs_receiver *receiver);

/* The variants of a lane's send. */
int64_t verbs_stream_send(struct verbs_lane *lane, int64_t now_ns);
int64_t verbs_pingpong_send(struct verbs_lane *lane, int64_t now_ns);

/* A lane of the phase, or that of the probes beside one. 0 or a refusal. */
int verbs_lane_make(struct verbs_lane **lane, const struct lane_request *request,
                    struct verbs_probes *carries, struct err *err);
/* One round of the worker over the lane's own streams; returns when it is to look again. */
int64_t verbs_lane_work(struct verbs_lane *lane, int64_t now_ns);
/* Bytes at layer 1 that a message of so many takes. */
double verbs_line_bytes(const struct verbs_lane *lane, uint32_t bytes);

/* back.c: makes the ways back of a lane's flows; answers what came; ends the streams that are
 * through. */
int verbs_replies_make(struct verbs_lane *lane);
void verbs_replies_free(struct verbs_lane *lane);
void verbs_replies_send(struct verbs_lane *lane, int64_t now_ns);
void verbs_streams_finish(struct verbs_lane *lane, int64_t now_ns);

/* pingpong.c: refuses what can't go there and back; makes and frees what a lane needs for it. */
int verbs_pingpong_check(const struct verbs_lane *lane, struct err *err);
int verbs_pingpong_make(struct verbs_lane *lane);
void verbs_pingpong_free(struct verbs_lane *lane);

/* steps.c: the same for a schedule, and the variant of a lane's send. */
int verbs_schedule_check(const struct verbs_lane *lane, struct err *err);
int verbs_schedule_make(struct verbs_lane *lane); /* -ENOMEM, without a sentence */
int verbs_schedule_register(struct verbs_lane *lane,
                            struct err *err); /* the ranks' memory, if any */
void verbs_schedule_free(struct verbs_lane *lane);
int64_t verbs_schedule_send(struct verbs_lane *lane, int64_t now_ns);
/* Bytes of a message's piece at most, with its header. */
uint32_t verbs_schedule_piece(const struct verbs_lane *lane);

/* Writes a word or the end mark to the partner's control words. */
struct verbs_post {
    enum verbs_work work;
    const void *from; /* in the pair's control words */
    uint32_t bytes;
    size_t offset; /* in the partner's */
    bool immediate;
};
void verbs_endpoint_write(struct verbs_endpoint *endpoint, const struct verbs_post *post);
/* Sends it as a message instead. */
void verbs_endpoint_send(struct verbs_endpoint *endpoint, const struct verbs_post *post);

#endif
