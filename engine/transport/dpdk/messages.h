/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lane whose messages go there and back (doc/reference/messages.md). When the next one begins is
 * pingpong.h's, their segmentation and reassembly are message.h's; here is what sends and receives
 * them.
 *
 * messages.c: a lane's channels: their making, when a message begins and when it is lost.
 * messages_send.c: frames of messages, answers and end marks, as the pace and the driver allow.
 * messages_receive.c: frames that came: verified, put together, answered.
 * schedule_transport.c: messages of a schedule (struct schedule_messages), sent step by step.
 */
#ifndef ENGINE_DPDK_MESSAGES_H
#define ENGINE_DPDK_MESSAGES_H

#include "lane_state.h"
#include "message.h"
#include "pingpong.h"

/* What is being sent one way. */
struct tx_message {
    uint64_t number;
    uint32_t bytes;
    uint32_t segments;
    uint32_t next; /* segment; `segments`: all are sent */
    uint32_t says; /* in place of its one segment's number; 0: it is no barrier's */
    bool mark;     /* a mark is to go, too, with `next_number` */
    bool end;      /* an end mark is to go, too */
    uint64_t next_number;
};

/* Headers of frames of one length, as they are sent and as they are expected. */
struct header_template {
    uint32_t length; /* in memory; 0: none yet */
    struct frame_template template;
};

struct header_expected {
    uint32_t length;
    struct frame_expect expect;
};

/* This port's end of one flow: at its source messages go out and answers come in, at its
 * destination it is the other way round. */
struct peer_channel {
    struct header_template full; /* frames have two lengths mostly: full, and a message's last */
    struct header_template last;
    struct header_expected full_in;
    struct header_expected last_in;
    struct lane_flow *flow;
    struct flow_side *sent;
    struct flow_side *got;
    struct flow_side answers; /* counts of the way back, which are no flow's */
    struct prng_sizes drawn;  /* of the flow's messages */
    struct tx_message out;
    struct reassembly in;
    /* Source. */
    int64_t due_ns; /* then the message under way is lost, or the end mark is sent again */
    uint64_t lost;  /* messages given up */
    unsigned end_marks;
    int64_t sent_ns; /* its last frame */
    struct segmentation segmentation;
    struct frame_end ends[2];
    uint16_t tags[2]; /* of what is sent, of what comes; as on the wire */
    uint16_t base;    /* signature_base() of what is sent */
    bool source;
    bool queued; /* it is among those that have something to send */
    bool ended;  /* source: its end mark was answered, or nobody answers; destination: one came */
};

/* A sound frame of ours. */
struct rx_segment {
    struct peer_channel *channel;
    uint32_t wire; /* the message's number, as far as it is said */
    uint32_t segment;
    uint32_t length; /* in memory */
    int64_t at_ns;
};

struct messages;

/* What a schedule does with its messages, which are not answered. dpdk_schedule is the table. */
struct schedule_messages {
    /* In prepare, before and after the channels are made. Errors with the sentence. */
    int (*check)(const struct lane_request *request, struct err *err);
    int (*make)(struct dpdk_lane *lane, struct err *err);
    void (*free)(struct messages *messages);
    unsigned (*flow_metrics)(const struct dpdk_lane *lane, const struct peer_channel *channel,
                             struct flow_metric *out, unsigned room);
    /* The lane's `send`. */
    int64_t (*send)(struct dpdk_lane *lane, int64_t now_ns);
    /* The driver has the last frame of the message that the channel was sending. */
    void (*message_sent)(struct dpdk_lane *lane, struct peer_channel *channel);
    /* A sound frame of a message, or a mark, that came. */
    void (*receive)(struct dpdk_lane *lane, const struct rx_segment *rx);
    /* The partner will send nothing more. */
    void (*partner_ended)(struct dpdk_lane *lane, const struct peer_channel *channel,
                          int64_t now_ns);
};

struct messages {
    struct pingpong game;
    const struct schedule_messages *schedule; /* NULL: they go there and back */
    struct schedule_lane *schedule_lane;      /* the schedule's own */
    struct peer_channel *channels; /* of the flows sent, as the game's; then of those received */
    uint32_t sends;
    uint32_t count;
    uint32_t open; /* channels of the flows sent that have not ended */
    /* By partner's rank: place + 1 among the channels, of flows sent and received; 0: none. Pages
     * are touched as flows need them. */
    uint32_t *source_of;
    uint32_t *destination_of;
    struct peer_channel **queue; /* those that have something to send, in turn; a ring of `count` */
    uint32_t head;
    uint32_t queued;
    int64_t look_ns; /* when something is due that is not sending */
    bool coming;     /* the last look at the port found frames: nothing is given up yet */
    /* The variant for this lane's header kind: everything from the EtherType to the signature. */
    bool (*headers_sound)(const struct frame_check *check, const struct frame_expect *expect,
                          const uint8_t *frame);
};

/* lane.c, for prepare, connect, start, and when the lane goes. `schedule` NULL: there and back. */
int messages_make(struct dpdk_lane *lane, const struct schedule_messages *schedule,
                  struct err *err);
void messages_build(struct dpdk_lane *lane);
void messages_start(struct dpdk_lane *lane);
void messages_free(struct dpdk_lane *lane);
unsigned messages_flow_metrics(const struct dpdk_lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room);

/* For sending, receiving and schedules. */

/* What is to come back is there: at `at_ns`, and the next message begins. */
void messages_back(struct dpdk_lane *lane, struct peer_channel *channel, int64_t at_ns);
/* The partner has answered the end mark. */
void messages_ended(struct dpdk_lane *lane, struct peer_channel *channel);
/* No message of this flow will begin any more: sent again until the partner answers. */
void messages_say_end(struct dpdk_lane *lane, struct peer_channel *channel, int64_t now_ns);
/* It has something to send from now on. */
void messages_enqueue(struct dpdk_lane *lane, struct peer_channel *channel);
/* Begins, gives up, sends end marks again: what is due. Returns when to call again. */
int64_t messages_look(struct dpdk_lane *lane, int64_t now_ns);

#endif
