/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A tcp lane inside. The main thread makes the connections (prepare.c, settle.c), a worker moves
 * the bytes (work.c, relay.c), the main thread reads what the kernel knows of them (measure.c).
 *
 * Offered bytes are those that a socket took. TCP_NOTSENT_LOWAT bounds what a socket holds unsent
 * (30 ms of line): a paced flow holds next to nothing, a greedy one as much when the window closes
 * as when it opened, so that buffered bytes do not make the window's offered load larger.
 */
#ifndef ENGINE_TCP_LANE_H
#define ENGINE_TCP_LANE_H

#include "flow_rate.h"
#include "port.h"
#include "stream.h"

#include <stddef.h>

#define TCP_STREAMS_MAX 256
#define TCP_READ_BYTES (256u * 1024)  /* one read, and a relay's buffer */
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
    struct tcp_in *twin; /* the way back by the same connection; NULL: it has one of its own */
    struct tcp_source source;
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    union {
        uint8_t bytes[sizeof(struct tcp_challenge)];
        struct tcp_challenge challenge;
        struct tcp_proof proof;
    } answer; /* as far as it was read */
    unsigned answer_bytes;
    int64_t closed_ns; /* when the partner first closed it in the handshake; 0: it did not */
    int64_t recall_ns; /* when it is called again (fd -1), and after how long the time after */
    int64_t recall_gap_ns;
};

/* What a relay holds between its two connections: bytes taken from one, not yet by the other. */
struct tcp_relay {
    uint8_t *ring; /* TCP_READ_BYTES */
    uint64_t in;   /* counts of bytes; their difference is what it holds */
    uint64_t out;
    uint32_t segment; /* of the connection out */
};

/* A connection that this lane receives from; fd -1: not there yet. */
struct tcp_in {
    int fd;
    bool lost; /* a probe's that never came: nobody waits for it */
    struct lane_flow *flow;
    struct tcp_out *twin; /* as tcp_out's */
    struct tcp_sink sink;
    struct tcp_relay relay; /* ring NULL: it does not forward */
};

struct tcp_probes;   /* probes.c: round trips beside a load */
struct tcp_pingpong; /* pingpong.c: what a lane has whose messages go there and back */
struct tcp_steps;    /* steps.c: what a lane has that executes a schedule */

struct tcp_lane {
    struct lane lane;
    struct transport_port *port;
    unsigned streams; /* per flow */
    unsigned stride;  /* connections per flow: its streams, and one behind them for probes */
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    struct tcp_flow *flows;
    struct tcp_out *outs;
    struct tcp_in *ins;
    unsigned out_count, outs_ready, outs_ended;
    unsigned in_count, ins_ready, ins_whole;
    int epoll; /* events carry an index: outs, then ins */
    int64_t settle_since_ns;
    uint64_t rejected_before;      /* dropped by the port when the lane began to settle */
    int64_t refill_ns;             /* a full socket is worth another look after so long */
    int64_t look_ns;               /* what comes may gather for so long before it is read */
    size_t most_read;              /* in the present poll from one connection ... */
    bool more;                     /* ... and there is probably more */
    struct tcp_pingpong *pingpong; /* NULL: they do not */
    struct tcp_probes *probes;     /* NULL: none are sent */
    struct tcp_steps *steps;       /* NULL: it has no schedule */
    /* The variants, chosen by prepare. */
    int64_t (*poll)(struct tcp_lane *lane, int64_t now_ns);
    int64_t (*send)(struct tcp_lane *lane, int64_t now_ns);
    size_t (*push)(struct tcp_lane *lane, struct tcp_out *out, size_t budget);
    void (*receive)(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns);
    uint8_t *buffer; /* TCP_READ_BYTES */
    struct tcp_batch batch;
};

int tcp_lane_prepare(struct lane **lane, const struct lane_request *request, struct err *err);
int tcp_lane_settle(struct lane *lane, int64_t now_ns, struct err *err);
void tcp_lane_start(struct lane *lane, int64_t now_ns);
int tcp_lane_wake_fd(struct lane *lane);
int64_t tcp_lane_poll(struct lane *lane, int64_t now_ns);
unsigned tcp_lane_measure(struct lane *lane, const struct lane_flow *flow, struct measure *out,
                          unsigned room);
void tcp_lane_finish(struct lane *lane);

/* --- between the files of a lane --- */

/* All that the phase asks of a socket that sends. */
int tcp_socket_options(const struct tcp_lane *lane, int fd, struct err *err);

/* Of a connection that both ranks send on, each end has two descriptors, one to send and one to
 * receive. The lower rank calls. */
static inline bool tcp_is_called(const struct tcp_out *out)
{
    return out->twin != NULL && out->flow->flow->src > out->flow->flow->dst;
}

/* Calls a partner that has closed the connection in the handshake. */
int tcp_connect_again(struct tcp_lane *lane, struct tcp_out *out, struct err *err);

/* The script of one stream of a flow. */
struct tcp_script tcp_lane_script(const struct tcp_lane *lane, const struct lane_flow *flow,
                                  unsigned stream);

/* Payload bytes among the bytes that a full segment of this connection takes at layer 1. */
double tcp_payload_share(int fd, bool v6);
/* Bytes of a full segment of this connection. */
uint32_t tcp_segment_bytes(int fd);
/* The kernel still tries to connect (as opposed to: the partner does not answer). */
bool tcp_connecting(int fd);

/* The fault of a connection in poll: sets the lane's error; `why` 0: it ended early. */
void tcp_fault_out(struct tcp_lane *lane, const struct tcp_out *out, int why);
void tcp_fault_in(struct tcp_lane *lane, const struct tcp_in *in, int why);

/* Pushes of one connection: bytes that were taken, 0 when it is full (writable is false then) or
 * has failed (the lane's error is set then). */
size_t tcp_push_copy(struct tcp_lane *lane, struct tcp_out *out, size_t budget);
size_t tcp_push_zero_copy(struct tcp_lane *lane, struct tcp_out *out, size_t budget);
/* Reads the completions of zero-copy sends, which would otherwise use up the socket's memory. */
void tcp_zero_copy_reap(int fd);
/* Sends what is left of the end mark, then shuts down. */
void tcp_push_end(struct tcp_lane *lane, struct tcp_out *out);
/* What became of a send: as a push returns it. */
size_t tcp_push_result(struct tcp_lane *lane, struct tcp_out *out, ssize_t sent, size_t asked);

/* A connection, by its place among those out or in, that is not one of its flow's streams. */
static inline bool tcp_is_probe(const struct tcp_lane *lane, unsigned place)
{
    return place % lane->stride >= lane->streams;
}

/* probes.c: probes a second of each flow; 0: none. */
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

/* The worker's poll of a lane whose messages go one way. */
int64_t tcp_stream_poll(struct tcp_lane *lane, int64_t now_ns);
/* All that was sent is acknowledged. */
bool tcp_drained(const struct tcp_lane *lane);

/* pingpong.c: refuses what can't go there and back; makes and frees what a lane needs for it. */
int tcp_pingpong_check(const struct lane_request *request, struct err *err);
int tcp_pingpong_make(struct tcp_lane *lane);
void tcp_pingpong_free(struct tcp_lane *lane);
int64_t tcp_pingpong_poll(struct tcp_lane *lane, int64_t now_ns);
bool tcp_pingpong_latency(struct lane *lane, const struct lane_flow *flow, enum latency_kind kind,
                          struct latency *sum);
size_t tcp_pingpong_samples(struct lane *lane, const struct sample **samples);

/* steps.c: the same for a schedule; `rest` as in the transport's table. */
int tcp_steps_check(const struct lane_request *request, struct err *err);
int tcp_steps_make(struct tcp_lane *lane);
void tcp_steps_free(struct tcp_lane *lane);
void tcp_steps_start(struct tcp_lane *lane);
int64_t tcp_steps_poll(struct tcp_lane *lane, int64_t now_ns);
bool tcp_steps_rest(struct lane *lane, int64_t until_ns);

/* work.c: notes what the kernel says of the connections; or waits for it first, so long at most.
 * How many it spoke of; below 0: a signal came. */
int tcp_take_events(struct tcp_lane *lane, int64_t now_ns);
int tcp_await_events(struct tcp_lane *lane, int64_t now_ns, int most_ms);

int64_t tcp_generate(struct tcp_lane *lane, int64_t now_ns);
int64_t tcp_relay_send(struct tcp_lane *lane, int64_t now_ns);
void tcp_receive(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns);
void tcp_relay_receive(struct tcp_lane *lane, struct tcp_in *in, int64_t now_ns);
/* `got` bytes (or recv's failure) at `data`: verifies and accounts them. */
void tcp_received(struct tcp_lane *lane, struct tcp_in *in, uint8_t *data, ssize_t got,
                  int64_t now_ns);

#endif
