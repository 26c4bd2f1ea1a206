/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The battery: the same cases over every transport. It drives a transport's functions through whole
 * lives of lanes between ports of one process; the main thread prepares and connects lanes, and a
 * worker thread polls them. A transport's own file describes how to make its ports, in a few lines:
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

/* A phase that prepare must refuse, with a sentence that contains `says`. */
struct battery_refusal {
    const char *says;
    const char *options; /* "KEY=VALUE ..."; NULL: no option is changed */
    uint32_t size;       /* 0: the battery's */
    bool message;        /* of a ping-pong */
    bool no_load;
    bool schedule;
    bool forwards; /* every flow has a forwarder; one of several, unless it carries messages */
};

/* A port that open must refuse; it is in the namespace of the battery's first port, unless it names
 * one. */
struct battery_closed {
    struct port_conf conf;
    const char *says;
};

struct battery_subject {
    const struct transport *transport;
    const char *what; /* for messages: "dpdk on af_packet" */
    size_t ports;     /* 2; with 3 or more there are also chains */
    /* Makes what the ports need and describes them (strings live for ever). Returns NULL; or a
     * reason why this machine can't: the battery is skipped. */
    const char *(*make)(struct port_conf *confs);
    /* Options of the transport's own, "KEY=VALUE ...", beside those of the command line: of every
     * phase; of messages that wait for each other; NULL: none. */
    const char *options;
    const char *waiting;
    const char *
        overrun; /* ... of a phase that sends more than is received; NULL: there is no such phase */
    uint64_t rate_bps; /* of a port; 0: 8 Mbit/s */
    uint32_t
        sizes[BATTERY_SIZES]; /* each is tried alone, then all in one stream; 0 ends the list */
    uint32_t back_most;       /* maximum bytes of a ping-pong's messages; 0: any size above */
    /* Minimum bytes that each direction carries without a limit of the load, and maximum bytes that
     * a port's counter of sent frames counts as one frame; 0: not tested. */
    uint64_t unlimited;
    uint64_t counted_bytes;
    bool no_steps; /* its options allow no schedules */
    bool gives_up; /* ... or allow that one in four messages is lost or late */
    const struct battery_refusal *refusals; /* the last one has `says` NULL */
    const struct battery_closed *closed;    /* the same */
    /* Further cases of this transport's own, on the open ports; NULL: none. */
    void (*more)(struct transport_port **ports, const struct port_conf *confs);
    bool drops;     /* the network accepts no frames */
    bool only_more; /* run the further cases only */
    bool emulated;  /* the machine may be away for most of a phase: any load above 0 is enough, and
                       all of it must arrive */
};

/* Run all cases. Return what main returns: 0, 1, or 77 when the machine lacks what they need. Words
 * of the command line with a "=" are options. */
int battery_main(const struct battery_subject *subject, int argc, char **argv);

/* Return whether the command line has the word. */
bool battery_word(int argc, char **argv, const char *word);

/* For `more`: one phase among the subject's ports. */
#define BATTERY_FLOWS 32
struct battery_flow {
    uint32_t src;
    uint32_t dst;
    enum pattern_role role;
    double share;         /* of its port's load; 0: as much as each other flow */
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
    uint64_t woken[BATTERY_PORTS];      /* polls before which its wake-up descriptor was readable */
    struct pattern_plan *plan;          /* its flows are a schedule's; NULL: they are not */
    struct blob_exchange blob_exchange; /* between this run's lanes */
    const struct transport_secret *secrets[BATTERY_PORTS]; /* NULL: battery_secret */
    /* Check a port's lane before it is destroyed; NULL: no check. */
    void (*look)(struct battery_run *run, uint32_t rank, struct lane *lane);
};

/* For tests that run a phase themselves: its lanes, and the flows in the lanes' form. */
struct battery_stage {
    struct battery_run *run;
    struct lane *lanes[BATTERY_PORTS];
    struct schedule_executor *executors[BATTERY_PORTS]; /* of the run's plan */
    struct lane_flow flows[BATTERY_PORTS][BATTERY_FLOWS];
};

extern struct transport_port *battery_ports[BATTERY_PORTS];
extern const struct transport_secret battery_secret;

/* For tests without battery_main(): set the subject; its `transport` and `ports` count. */
void battery_use(const struct battery_subject *which);
/* Prepare a rank's lane. Return the transport's result and its sentence. */
int battery_prepare(struct battery_stage *stage, uint32_t rank, struct err *err);
/* Connect all lanes until they are ready: 0, or a failure with the transport's sentence; -ETIMEDOUT
 * after `limit_ns`. */
int battery_connect(struct battery_stage *stage, int64_t limit_ns, struct err *err);
/* Poll each lane once, as a worker would. Return the time of the next poll. */
int64_t battery_poll(struct battery_stage *stage);
/* Return whether the lanes have sent and received everything. */
bool battery_over(const struct battery_stage *stage);
/* Copy the lanes' counts to the run's flows. */
void battery_read(struct battery_stage *stage);
/* End a rank's lane, if it has one. */
void battery_destroy(struct battery_stage *stage, uint32_t rank);

/* Return a counter of port_hardware at one port, now. */
#define BATTERY_COUNTER(port, counter) battery_hardware(port).counter
struct port_hardware battery_hardware(size_t port);

/* Return a lane's results of a flow, valid until the next call; and one of its metrics, -1: there
 * is none of this name. */
const struct flow_reading *battery_reading(const struct transport *transport, struct lane *lane,
                                           const struct lane_flow *flow);
double battery_metric(const struct flow_reading *reading, const char *name);

/* Return the times that the last play measured, by its flows. */
extern struct latency battery_times[BATTERY_FLOWS][LATENCY_KINDS];

/* Set options of a run's phase, the transport's own, as a document does: "KEY=VALUE ...". */
void battery_set(struct phase *phase, const char *options);
/* A default run: one size of 256, 8 Mbit/s per port, 300 ms, and the subject's options. */
void battery_begin(struct battery_run *run);
void battery_add(struct battery_run *run, uint32_t src, uint32_t dst, enum pattern_role role);
/* Prepare, connect, run and drain; every step must succeed. */
void battery_play(struct battery_run *run);
/* Check that every flow delivered its load completely and once; it offered at least `least` frames
 * (tcp: payload bytes). */
void battery_whole(const struct battery_run *run, uint64_t least);

#endif
