/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery: the same cases over every transport. It drives a transport's table through whole
 * lives of lanes between ports of one process, the main thread preparing and connecting, a worker
 * thread polling. A transport's own file says how to make its ports, in a few lines:
 *
 *     static const struct battery_subject subject = {...};
 *     int main(int argc, char **argv) { return battery_main(&subject, argc, argv); }
 */
#ifndef TESTS_TRANSPORT_BATTERY_H
#define TESTS_TRANSPORT_BATTERY_H

#include "transport.h"

#include <stddef.h>

#define BATTERY_PORTS 5
#define BATTERY_SIZES 8

/* A phase that prepare must refuse; the sentence must hold `says`. */
struct battery_refusal {
    const char *says;
    const char *options; /* "KEY=VALUE ..."; NULL: none is changed */
    uint32_t size;       /* 0: the battery's */
    bool message;        /* of a ping-pong */
    bool no_load;
    bool schedule;
    bool forwards; /* every flow is a forwarder's; one of many, unless it is a message's */
};

/* A port that open must refuse; its namespace is that of the battery's first, unless it has one. */
struct battery_closed {
    struct port_conf conf;
    const char *says;
};

struct battery_subject {
    const struct transport *transport;
    const char *what; /* for messages: "dpdk on af_packet" */
    size_t ports;     /* 2; 3 or more: chains too */
    /* Makes what the ports need and describes them (strings live for ever). Returns NULL; or a
     * reason why this machine can't: the battery is skipped. */
    const char *(*make)(struct port_conf *confs);
    /* Options of the transport's own, "KEY=VALUE ...", beside those of the command line: of every
     * phase; of messages that wait for each other; NULL: none. */
    const char *options;
    const char *waiting;
    const char *overrun; /* ... of a phase that sends more than is received; NULL: there is none */
    uint64_t rate_bps;   /* of a port; 0: 8 Mbit/s */
    uint32_t sizes[BATTERY_SIZES]; /* tried one by one, then all in one stream; 0 ends */
    uint32_t back_most; /* bytes of messages there and back at most; 0: as large as all */
    /* Bytes at least that go each way as fast as it goes, and at most in what a port's counters of
     * sent frames count as one; 0: that is not tried. */
    uint64_t unlimited;
    uint64_t counted_bytes;
    bool no_steps; /* as its options are it executes no schedules */
    bool gives_up; /* ... or may lose, or be too late with, one in four messages */
    const struct battery_refusal *refusals; /* the last one's `says` is NULL */
    const struct battery_closed *closed;    /* the same */
    /* Further cases of this transport's own, on the open ports; NULL: none. */
    void (*more)(struct transport_port **ports, const struct port_conf *confs);
    bool drops;     /* the network takes nothing of what is sent */
    bool drops_one; /* the receiving host counts several drops as one */
    bool only_more; /* leave the common cases out */
    bool emulated; /* the machine may be away for most of a phase: how much is offered is no matter,
                    * if it is something, and all of it must arrive */
};

/* Runs all cases; what main returns: 0, 1, or 77 when the machine lacks what it needs. Words of the
 * command line with a "=" are options. */
int battery_main(const struct battery_subject *subject, int argc, char **argv);

/* Whether the command line has the word. */
bool battery_word(int argc, char **argv, const char *word);

/* For `more`: one phase among the subject's ports. */
#define BATTERY_FLOWS 32
struct battery_flow {
    uint32_t src;
    uint32_t dst;
    enum pattern_role role;
    double share;         /* of its port's load; 0: as much as the others */
    struct blob other[2]; /* address of its other end for the source, and for the destination;
                           * size 0: the port's */
    struct flow_side source;
    struct flow_side destination;
};
struct battery_run {
    struct phase phase; /* times are set by battery_play, by `duration_ns` */
    max_align_t options[OPTION_BYTES_MAX / sizeof(max_align_t)]; /* of `phase` */
    int64_t duration_ns;
    struct battery_flow flows[BATTERY_FLOWS];
    size_t flow_count;
    struct port_count counts[BATTERY_PORTS];
    uint64_t line_rate_bps;
    uint64_t woken[BATTERY_PORTS];      /* polls before which its wake descriptor was readable */
    struct pattern_plan *plan;          /* its flows are a schedule's; NULL: they are not */
    struct blob_exchange blob_exchange; /* between this run's lanes */
    const struct transport_secret *secrets[BATTERY_PORTS]; /* NULL: battery_secret */
    /* Looks at a port's lane before it is destroyed; NULL: it is not looked at. */
    void (*look)(struct battery_run *run, uint32_t rank, struct lane *lane);
};

/* For tests that drive a run's phases themselves: its lanes, and the flows as these see them. */
struct battery_stage {
    struct battery_run *run;
    struct lane *lanes[BATTERY_PORTS];
    struct schedule_executor *executors[BATTERY_PORTS]; /* of the run's plan */
    struct lane_flow flows[BATTERY_PORTS][BATTERY_FLOWS];
};

extern struct transport_port *battery_ports[BATTERY_PORTS];
extern const struct transport_secret battery_secret;

/* Instead of battery_main(): the subject; its `transport` and `ports` count. */
void battery_use(const struct battery_subject *which);
/* Prepares a rank's lane. Returns what the transport does, with its sentence. */
int battery_prepare(struct battery_stage *stage, uint32_t rank, struct err *err);
/* Connects all lanes until they are ready: 0, or a failure with the transport's sentence;
 * -ETIMEDOUT after `limit_ns`. */
int battery_connect(struct battery_stage *stage, int64_t limit_ns, struct err *err);
/* Polls each lane once, as a worker would. Returns the time at which to poll again. */
int64_t battery_poll(struct battery_stage *stage);
/* Whether all is sent and received, as far as the lanes know. */
bool battery_over(const struct battery_stage *stage);
/* Copies what the lanes have counted to the run's flows. */
void battery_read(struct battery_stage *stage);
/* Ends a rank's lane, if it has one. */
void battery_destroy(struct battery_stage *stage, uint32_t rank);

/* A counter of port_hardware at one port, now. */
#define BATTERY_COUNTER(port, counter) battery_hardware(port).counter
struct port_hardware battery_hardware(size_t port);

/* What a lane has measured of a flow, until the next call; and one of its metrics, -1: there is
 * none of this name. */
const struct flow_reading *battery_reading(const struct transport *transport, struct lane *lane,
                                           const struct lane_flow *flow);
double battery_metric(const struct flow_reading *reading, const char *name);

/* The times that the last play measured, by its flows. */
extern struct latency battery_times[BATTERY_FLOWS][LATENCY_KINDS];

/* Sets options of a run's phase, the transport's own, as a document does: "KEY=VALUE ...". */
void battery_set(struct phase *phase, const char *options);
/* One size of 256, 8 Mbit/s a port, 300 ms, and the subject's options. */
void battery_begin(struct battery_run *run);
void battery_add(struct battery_run *run, uint32_t src, uint32_t dst, enum pattern_role role);
/* Prepares, connects, runs and drains; every step must succeed. */
void battery_play(struct battery_run *run);
/* Every flow delivered what it offered, whole and once; offered at least `least` frames (tcp:
 * payload bytes). */
void battery_whole(const struct battery_run *run, uint64_t least);

#endif
