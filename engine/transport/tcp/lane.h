/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A tcp lane inside. The main thread makes the lane (prepare.c) and its connections (connect.c), a
 * worker moves the bytes as the phase's mode says, the main thread reads what the kernel knows of
 * them (flow_metrics.c).
 *
 * Offered bytes are those that a socket took. TCP_NOTSENT_LOWAT bounds what a socket holds unsent
 * (30 ms of line): a paced flow holds next to nothing, an unpaced one as much when the window
 * closes as when it opened, so that buffered bytes do not make the window's offered load larger.
 */
#ifndef ENGINE_TCP_LANE_H
#define ENGINE_TCP_LANE_H

#include "flow_rate.h"
#include "port.h"
#include "stream.h"
#include "tcp_options.h"

#include <stddef.h>
#include <sys/epoll.h>

#define TCP_STREAMS_MAX 256
#define TCP_READ_BYTES (256u * 1024)  /* one read, and a forwarder's buffer */
#define TCP_WRITE_BYTES (256u * 1024) /* one write */
#define TCP_PROBE_MESSAGE 64u         /* bytes of a probe of the round trip beside a load */
#define TCP_PROBE_BYTES 10000u        /* a probe's block at most: more than a jumbo segment */

/* One flow that this lane sends. */
struct tcp_flow {
    struct lane_flow *flow;
    struct sockaddr_storage partner;
    struct tcp_out *outs; /* `streams` of them */
    struct pace pace;     /* in bytes of payload */
    int64_t gather_ns;    /* what is due within this time is sent together */
    uint32_t segment;     /* a pace allows multiples of so many bytes */
    unsigned turn;        /* the stream that begins the next round */
    unsigned open;        /* streams that have not ended */
    bool unpaced;
};

/* TCP_OUT_LOST: a probe's, whose partner can't be reached; it has ended before it began. */
enum tcp_out_state { TCP_OUT_CHALLENGE, TCP_OUT_PROOF, TCP_OUT_READY, TCP_OUT_LOST };

/* A connection that this lane sends on. */
struct tcp_out {
    int fd;
    enum tcp_out_state state;
    bool writable; /* until the kernel says that it is full */
    bool ended;    /* end mark sent, writing shut down */
    struct tcp_flow *flow;
    struct tcp_in *reverse; /* the way back by the same connection; NULL: it has one of its own */
    struct tcp_source source;
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    struct tcp_proof proof;
    unsigned answer_bytes; /* read of the challenge or the proof, whichever is due */
    int64_t closed_ns;     /* when the partner first closed it in the handshake; 0: it did not */
    int64_t recall_ns;     /* when it is called again (fd -1), and the wait before the next call */
    int64_t recall_gap_ns;
};

/* What a forwarder holds between its two connections: received, and not yet sent. */
struct tcp_forward {
    uint8_t *ring;    /* TCP_READ_BYTES */
    uint64_t in;      /* bytes received ... */
    uint64_t out;     /* ... and sent since the beginning */
    uint32_t segment; /* of the connection out */
};

/* A connection that this lane receives from; fd -1: not there yet. */
struct tcp_in {
    int fd;
    bool lost; /* a probe's that never came: the lane does not wait for it */
    struct lane_flow *flow;
    struct tcp_out *reverse; /* as tcp_out's */
    struct tcp_sink sink;
    struct tcp_forward forward; /* ring NULL: it does not forward */
};

struct tcp_lane;

/* What each kind of traffic does in its own way. */
struct tcp_mode {
    int (*make)(struct tcp_lane *lane); /* what it needs beyond the connections; NULL: nothing */
    void (*free)(struct tcp_lane *lane);
    void (*start)(struct tcp_lane *lane); /* NULL: nothing to do */
    int64_t (*poll)(struct tcp_lane *lane, int64_t now_ns);
    void (*receive)(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns); /* bytes are there */
    int64_t (*send)(struct tcp_lane *lane, int64_t now_ns); /* of tcp_stream_poll */
    uint32_t out_events; /* what is to be heard of connections, beside EPOLLOUT | EPOLLET ... */
    uint32_t in_events;  /* ... and EPOLLIN */
    bool wakes;          /* a sleeping worker is woken by a message; a stream's bytes may gather */
};
extern const struct tcp_mode tcp_stream_mode, tcp_forward_mode, tcp_pingpong_mode,
    tcp_schedule_mode;

struct tcp_probes;   /* probes.c: round trips beside a load */
struct tcp_pingpong; /* pingpong.c: what a lane has whose messages go there and back */
struct tcp_schedule; /* schedule_transport.c: what a lane has that executes a schedule */

struct tcp_lane {
    struct lane lane;
    struct transport_port *port;
    const struct tcp_mode *mode;
    unsigned streams; /* per flow */
    unsigned stride;  /* connections per flow: its streams, and one behind them for probes */
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    struct tcp_flow *flows;
    struct tcp_out *outs;
    struct tcp_in *ins;
    uint32_t *flow_from; /* by source rank: place in the request's `receives` + 1; 0: none */
    unsigned out_count, outs_ready, outs_ended;
    unsigned in_count, ins_ready, ins_whole;
    int epoll; /* events carry an index: outs, then ins */
    int64_t connect_since_ns;
    uint64_t rejected_before; /* dropped by the port when the lane began to connect */
    int64_t refill_ns;        /* a full socket is tried again after so long */
    int64_t look_ns;          /* what comes may gather for so long before it is read */
    size_t most_read;         /* in the present poll from one connection ... */
    bool more;                /* ... and there is probably more */
    struct tcp_pingpong *pingpong;
    struct tcp_probes *probes; /* NULL: none are sent */
    struct tcp_schedule *schedule;
    uint8_t *buffer; /* TCP_READ_BYTES */
    struct tcp_batch batch;
};

static inline bool tcp_lane_is_probe(const struct tcp_lane *lane)
{
    return lane->lane.request.phase->traffic == TRAFFIC_PROBE;
}

static inline bool tcp_lane_has_failed(const struct tcp_lane *lane)
{
    return lane->lane.error.text[0] != '\0';
}

/* A connection, by its place among those out or in, that is not one of its flow's streams. */
static inline bool tcp_is_probe(const struct tcp_lane *lane, unsigned place)
{
    return place % lane->stride >= lane->streams;
}

/* Of a connection that both ranks send on, each end has two descriptors, one to send and one to
 * receive. The lower rank calls. */
static inline bool tcp_is_passive(const struct tcp_out *out)
{
    return out->reverse != NULL && out->flow->flow->src > out->flow->flow->dst;
}

/* A connection sends nothing more. */
static inline void tcp_out_ended(struct tcp_lane *lane, struct tcp_out *out)
{
    out->ended = true;
    out->flow->open--;
    lane->outs_ended++;
}

/* A connection has been read, whose end mark had come before or not. */
static inline void tcp_in_read(struct tcp_lane *lane, const struct tcp_in *in, bool ended_before)
{
    lane->ins_whole += !ended_before && in->sink.whole;
    lane->lane.rx_done = lane->ins_whole == lane->in_count;
}

/* The first and the last time at which something passed. */
static inline void tcp_side_time(struct flow_side *side, int64_t now_ns)
{
    side->first_ns = side->first_ns > 0 ? side->first_ns : now_ns;
    side->last_ns = now_ns;
}

/* --- the transport's table --- */

int tcp_lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err);
int tcp_lane_connect(struct lane *lane, int64_t now_ns, struct err *err);
void tcp_lane_start(struct lane *lane, int64_t now_ns);
int64_t tcp_lane_poll(struct lane *lane, int64_t now_ns);
unsigned tcp_lane_flow_metrics(struct lane *lane, const struct lane_flow *flow,
                               struct flow_metric *out, unsigned room);
void tcp_lane_destroy(struct lane *lane);
bool tcp_schedule_wait(struct lane *lane, int64_t until_ns);
bool tcp_pingpong_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                          struct latency *sum);

/* --- prepare.c --- */

/* All that the phase asks of a socket that sends. */
int tcp_socket_options(const struct tcp_lane *lane, int fd, struct err *err);
/* Calls a partner again that has closed the connection in the handshake. */
int tcp_connect_again(struct tcp_lane *lane, struct tcp_out *out, struct err *err);

/* --- fault.c: sentences about connections --- */

/* A connection in poll: sets the lane's error; `why` 0: it ended early. */
void tcp_fault_out(struct tcp_lane *lane, const struct tcp_out *out, int why);
void tcp_fault_in(struct tcp_lane *lane, const struct tcp_in *in, int why);
/* A connection that is not there: returns `code`. */
int tcp_refuse_out(const struct tcp_lane *lane, const struct tcp_out *out, int code,
                   const char *why, struct err *err);
int tcp_refuse_in(const struct tcp_lane *lane, const struct tcp_in *in, int code, struct err *err);

/* --- flow_metrics.c: what the kernel knows of a connection --- */

/* Payload bytes among the bytes that a full segment takes at layer 1. */
double tcp_payload_share(int fd);
/* Bytes of a full segment. */
uint32_t tcp_segment_bytes(int fd);
/* The kernel still tries to connect (as opposed to: the partner does not answer). */
bool tcp_connecting(int fd);

/* --- send.c --- */

/* What became of a send: bytes that were taken, 0 when the connection is full (writable is false
 * then) or has failed (the lane's error is set then). */
size_t tcp_push_result(struct tcp_lane *lane, struct tcp_out *out, ssize_t sent, size_t asked);
/* Reads the completions of zero-copy sends, which would otherwise use up the socket's memory. */
void tcp_zero_copy_reap(int fd);
/* Sends what is left of the end mark, then shuts down. */
void tcp_push_end(struct tcp_lane *lane, struct tcp_out *out);
/* Chooses the flow's pace: its connections are there, and tell their segments. */
void tcp_set_pace(struct tcp_lane *lane, struct tcp_flow *flow);
/* Sends what the flows' loads allow now; returns when the next is due. */
int64_t tcp_generate(struct tcp_lane *lane, int64_t now_ns);

/* --- stream_poll.c --- */

/* Notes what the kernel says of the connections, after at most so long. How many it spoke of;
 * below 0: a signal came. */
int tcp_await_events(struct tcp_lane *lane, int64_t now_ns, int most_ms);
static inline int tcp_take_events(struct tcp_lane *lane, int64_t now_ns)
{
    return tcp_await_events(lane, now_ns, 0);
}
/* `got` bytes (or recv's failure) at `data`: verifies and accounts them. */
void tcp_received(struct tcp_lane *lane, struct tcp_in *in, uint8_t *data, ssize_t got,
                  int64_t now_ns);
int64_t tcp_stream_poll(struct tcp_lane *lane, int64_t now_ns);
/* All that was sent is acknowledged. */
bool tcp_drained(const struct tcp_lane *lane);

/* --- probes.c --- */

/* Probes a second of each flow; 0: none. */
double tcp_probes_rate(const struct lane_request *request);
/* Makes the script of a stream that of probes. */
void tcp_probes_script(struct tcp_script *script);
int tcp_probes_make(struct tcp_lane *lane);
void tcp_probes_free(struct tcp_lane *lane);
int tcp_probes_fd(const struct tcp_lane *lane);
int tcp_probes_watch(struct tcp_lane *lane, int fd, unsigned index);
void tcp_probes_start(struct tcp_lane *lane);
/* Beside the streams' poll; returns when the next is due. */
int64_t tcp_probes_poll(struct tcp_lane *lane, int64_t now_ns);
bool tcp_probes_latency(const struct tcp_lane *lane, const struct lane_flow *flow,
                        struct latency *sum);

#endif
