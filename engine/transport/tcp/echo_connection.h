/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A connection on which messages go there and come back: for messages there and back (pingpong.c),
 * and for probes beside a stream (probes.c). Each end has what goes out (a source) and what comes
 * (a sink); the destination's end sends a message of its own for each whole one that came.
 */
#ifndef ENGINE_TCP_ECHO_CONNECTION_H
#define ENGINE_TCP_ECHO_CONNECTION_H

#include "lane.h"

struct tcp_echo {
    struct tcp_out *out; /* at the source's end, else NULL ... */
    struct tcp_in *in;   /* ... and at the destination's */
    struct tcp_source *source;
    struct tcp_sink *sink;
    struct flow_side *sent; /* where what goes out is counted */
    bool readable;          /* as far as is known: edge-triggered */
    bool writable;
    union { /* the way back's, at this end */
        struct tcp_source back_source;
        struct tcp_sink back_sink;
    };
    struct flow_side back; /* counts of it */
};

/* The ends of a connection that is planned: its script is known. */
void tcp_echo_out(struct tcp_echo *echo, struct tcp_out *out);
void tcp_echo_in(struct tcp_echo *echo, struct tcp_in *in);

/* Notes what an edge-triggered epoll says of the echoes; its events carry their index. */
void tcp_echo_events(struct tcp_echo *echoes, int epoll);

/* Sends what is left of the present message, as far as the kernel takes it. */
void tcp_echo_push(struct tcp_lane *lane, struct tcp_echo *echo);
/* Reads until nothing is left, or so many messages have come since the beginning. Returns when the
 * last bytes came; 0: none did. */
int64_t tcp_echo_pull(struct tcp_lane *lane, struct tcp_echo *echo, uint64_t messages);
/* Reads all that is there and answers each whole message. Returns as pull. */
int64_t tcp_echo_reply(struct tcp_lane *lane, struct tcp_echo *echo);

#endif
