/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A transport: how bytes travel.
 *
 * One documented table of functions; each transport exports one symbol, its table. A transport
 * knows ports, lanes and flows; it never sees the barrier, the documents or the records.
 *
 *     port   what a rank sends through; opened once, lives for the whole run
 *     phase  what is asked of all ports at once: traffic, sizes, load, times
 *     queue  a port's sending and receiving side as one core uses it; a port has one or more
 *     lane   one queue's share of one phase; prepared by the main thread, then polled by one
 *            worker thread, then destroyed by the main thread
 *
 * With several queues a flow is sent by one lane, so that its sender does not reorder, and may be
 * received by any: the device spreads what comes by a hash over its addresses and ports. So each
 * lane of a port knows all flows that the port receives, and counts its own part of each.
 *
 * Life of a lane: prepare, connect until it is ready, [worker: poll ... poll, account], read_flow,
 * destroy. One thread at a time has it.
 */
#ifndef ENGINE_TRANSPORT_H
#define ENGINE_TRANSPORT_H

#include "blob.h"
#include "counters.h"
#include "err.h"
#include "histogram.h"
#include "option.h"
#include "pattern.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TRANSPORT_SIZES_MAX 64
#define TRANSPORT_KEY_BYTES 32

/**
 * @brief What all ports of the node share.
 *
 * No secret: ports are opened before the run's key is known.
 */
struct transport_run {
    const char *run_id;
    const char *node; /**< this node's name: unique in the run, used for file prefixes */
};

/**
 * @brief What data connections are authenticated with, once the node has joined the run.
 *
 * Derive from the key, never print it.
 */
struct transport_secret {
    uint8_t key[TRANSPORT_KEY_BYTES];
    const char *run_id;
};

/**
 * @brief One port as the job document gives it.
 *
 * Strings may be NULL: not given. Owned by the caller for the port's whole life.
 */
struct port_conf {
    const char *name;    /**< "node12:e0", for messages */
    const char *network; /**< the ports that can reach each other */
    const char *netns;   /**< network namespace that holds the interface: a name below /run/netns or
                            a path; NULL: the process's own */
    const char *iface;   /**< kernel interface: tcp, udp; dpdk by af_packet or af_xdp */
    const char *pci;     /**< "0000:3b:00.0": dpdk takes the device itself */
    const char *vdev;    /**< any DPDK device arguments: "net_null0", "net_ring0", ... */
    const char *driver;  /**< dpdk on `iface`: af_packet (default) | af_xdp */
    const char *rdma;    /**< "mlx5_2/1" */
    const char *mac; /**< dpdk's own addresses as a guest on the network (the kernel must not own */
    const char *ipv4;    /**< them); "keep" as mac: the device's own. "198.19.0.1/16" */
    const char *ipv6;    /**< "2001:2:0:1::1/64" */
    const char *gateway; /**< dpdk: next hop for peers outside the prefix; NULL: all are on link */
    const char *tcp_address; /**< address that the kernel owns on `iface`; NULL: its first one */
    uint64_t line_rate_bps;  /**< layer 1; 0: ask the driver */
    uint32_t queue_frames;   /**< receive ring of af_packet and af_xdp; 0: default */
    uint32_t queues;         /**< dpdk: how many; 0: one ... */
    bool queues_at_most;     /**< ... and fewer will do */
    bool timestamps;         /**< dpdk: latency probes come: their device time of arrival is used */
    bool shared;             /**< carries other traffic too (DESIGN 10) */
};

/**
 * @brief What an open port says of itself: for its record and its partners, and while it is used.
 *
 * "" or 0: unknown.
 */
struct port_facts {
    char driver[32];
    char mac[18];
    char ipv4[16];
    char ipv6[46];
    uint64_t link_bps;  /**< what the driver says; veth's 10G is not believed by anyone */
    uint32_t frame_max; /**< largest frame, FCS included; 0 for tcp */
    int numa_node;      /**< -1: none */
    uint32_t queues;    /**< in use; each has a lane in every phase */
    double core_fps;    /**< frames/s that one core can send here at most; 0: no bound known */
    char offloads[96];  /**< in use, by the driver's names, comma separated */
    uint32_t mtu;       /**< tcp: the interface's, without Ethernet header and FCS; verbs: active */
    char congestion[16]; /**< tcp: the system's congestion control */
    char rdma[72];       /**< verbs: device and port, "mlx5_2/1" */
    char link_layer[12]; /**< verbs: "InfiniBand" or "Ethernet" */
    char gid[46];        /**< verbs: chosen where the options do not say ... */
    int gid_index;       /**< ... and its place in the table; -1: none */
    bool independent;    /**< no other transport uses its device: it may stay open beside them */
    struct blob address; /**< what a partner must know to reach the port */
    int connect_fd; /**< readable when a call of connect for its lanes would get further; -1: none
                     */
    /** @brief What may change at any time. */
    bool link_up;
    uint64_t rejected;       /**< connections it dropped because they did not show the run's key; */
    char last_rejected[128]; /**< if any, who the last one was and why */
    struct port_hardware hardware; /**< PORT_HARDWARE_UNKNOWN: not asked for */
};

enum traffic {
    TRAFFIC_STREAM,   /**< at a rate from start to stop */
    TRAFFIC_TRANSFER, /**< `transfer_bytes` of payload per flow, to completion */
    TRAFFIC_PROBE,    /**< `probes` frames or messages per flow, slowly: can they be reached? */
    TRAFFIC_PINGPONG, /**< one message of a flow in ping-pong, again and again
                         (doc/reference/messages.md) */
    TRAFFIC_SCHEDULE, /**< steps that wait for each other (doc/developer/schedules.md) */
    TRAFFIC_BURST,    /**< counted frames at the load's rate, then silence */
};

/** @brief Each port sends bursts of exactly so many frames, which its flows send in turn. */
struct burst_options {
    uint64_t frames;     /**< of one burst, of a port that has the whole load */
    uint64_t own_frames; /**< the same of this port: fewer where listed shares leave it less */
    int64_t gap_ns;      /**< from the end of one to the begin of the next */
    uint64_t count;      /**< 0: until the stop, and the last one whole */
};

/**
 * @brief How ping-pong messages go.
 *
 * Each flow has one in flight; `random`: each port has one, by a random flow for each. All
 * zero: `sizes` in turn, from start to stop.
 */
struct pingpong_options {
    uint64_t count;    /**< round trips of each flow (random: of each port); 0: until the stop */
    uint32_t min_size; /**< sizes are drawn, uniformly in their logarithm; 0: `sizes` in turn */
    uint32_t max_size;
    bool random;
    bool samples;           /**< keep every single time */
    int64_t start_delay_ns; /**< nothing is sent for so long after the start */
    int64_t timeout_ns;     /**< what a message may wait in queues on the way; 0: 250 ms */
};
#define PINGPONG_SAMPLES_MAX 10000000u

/** @brief How the schedule of a dependent phase is executed (schedule_executor.h). */
struct schedule_options {
    uint64_t count;  /**< repetitions that are measured, by whole batches; 0: until the stop */
    uint32_t batch;  /**< repetitions that follow each other without a barrier; never 0 */
    uint32_t warmup; /**< batches that are not measured */
    bool compute;    /**< data are really reduced, and the result is verified */
};

/** @brief One round trip. */
struct sample {
    uint64_t time_ns : 48;
    uint64_t dst : 16; /**< rank */
    uint32_t size;     /**< bytes */
    uint32_t begun_us; /**< since the phase's start */
};

/** @brief Which times of a flow a transport can measure (doc/reference/latency.md). */
enum latency_kind {
    LATENCY_ONE_WAY, /**< destination: from a frame's stamp to its arrival, of what was delivered */
    LATENCY_IPDV,    /**< destination: what two frames that follow each other differ in it */
    LATENCY_ROUND_TRIP, /**< source: of probes that the destination sends back */
    LATENCY_PINGPONG,   /**< source: of ping-pong messages */
    LATENCY_KINDS
};

/**
 * @brief What is measured beside the load.
 *
 * All zero: nothing.
 */
struct latency_options {
    double
        probe_fps; /**< probes a flow sends in a second; 0: none; below 0: the transport chooses */
    bool stamps;   /**< one-way delay and its variation, of all that arrives in the window */
};

/** @brief One of a flow's times, as far as one or more lanes saw it. */
struct latency {
    struct histogram histogram;
    uint64_t sent; /**< probes or messages that should come back; 0: nothing was to */
};

/** @brief Offered load of one port, shared by the flows that it sends in the phase. */
struct load {
    double rate_bps; /**< layer 1 bit/s; 0: rate_fps holds */
    double rate_fps; /**< frames/s (messages/s) */
    bool unlimited;  /**< as fast as the transport goes (tcp and verbs at 100 %) */
    double part;     /**< of the trial's load, that these are; other ports may have more. 0: all */
};

/**
 * @brief What is asked of every port in one phase.
 *
 * Owned by the caller, constant but for the times, which the barrier decides after `connect` and
 * before `start`.
 */
struct phase {
    uint32_t trial;
    uint32_t number;
    uint16_t tag;  /**< keeps runs, trials, networks and phases apart on the wire */
    uint64_t seed; /**< for initial offsets of flows and the like */
    enum traffic traffic;
    bool messages; /**< `sizes` are of ping-pong's messages, also in the probe before it: a
                      transport of frames sends each in a frame of its own */
    uint64_t transfer_bytes;
    uint32_t probes;
    int64_t probe_timeout_ns; /**< a probe leaves out whom it can't reach in so long; 0: 10 s */
    /**
     * @brief Frame sizes with FCS (dpdk, udp) or message sizes (tcp blocks, verbs, what goes there
     * and back), sent in this order again and again: one size, or an IMIX genome (RFC 6985).
     */
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    uint32_t size_count;
    struct load load;
    bool in_turn; /**< one frame of each flow in their order (RFC 2889, 5.1.3); else in any order */
    const void *options; /**< the transport's own, as its option table fills them */
    struct pingpong_options pingpong;
    struct schedule_options schedule;
    struct burst_options burst;
    struct latency_options latency;
    /** @brief Local CLOCK_MONOTONIC ns: sending begins, window opens and closes, sending ends. */
    int64_t start_ns;
    int64_t open_ns;
    int64_t close_ns;
    int64_t stop_ns;
};

/**
 * @brief Return whether a phase lasts from start to stop; else until what was asked for is done.
 *
 * @param phase Phase.
 * @return True: it does.
 */
static inline bool phase_is_timed(const struct phase *phase)
{
    return phase->traffic == TRAFFIC_STREAM ||
           (phase->traffic == TRAFFIC_BURST && phase->burst.count == 0) ||
           (phase->traffic == TRAFFIC_PINGPONG && phase->pingpong.count == 0) ||
           (phase->traffic == TRAFFIC_SCHEDULE && phase->schedule.count == 0);
}

/** @brief Return when measuring begins: with the window, or with a phase that has none. */
static inline int64_t phase_measures_from(const struct phase *phase)
{
    return phase_is_timed(phase) ? phase->open_ns : phase->start_ns;
}

/** @brief Return when measuring ends: with the window; CLOCK_NEVER of a phase that has none. */
static inline int64_t phase_measures_to(const struct phase *phase)
{
    return phase_is_timed(phase) ? phase->close_ns : INT64_MAX;
}

/**
 * @brief Return the mean size, of one size or a genome.
 *
 * @param phase Phase.
 * @return Bytes.
 */
static inline uint32_t phase_mean_size(const struct phase *phase)
{
    uint64_t sum = 0;

    assert(phase->size_count > 0); /* documents.c refuses an empty list */
    for (uint32_t i = 0; i < phase->size_count; i++)
        sum += phase->sizes[i];
    return (uint32_t)(sum / phase->size_count);
}

/** @brief One flow of a port in a phase, from the pattern to its records. */
struct lane_flow {
    uint32_t src; /**< ranks */
    uint32_t dst;
    enum pattern_role role;
    double share;          /**< of what its port sends; 0: the port's flows divide it evenly */
    uint32_t number;       /**< among the port's flows */
    struct blob partner;   /**< address of the other end */
    struct flow_side side; /**< what this end counts */
};

struct transport_port; /* each transport's own */
struct prober;
struct schedule_executor;

/** @brief A small blob that one end of a flow leaves for the other end of it, in this phase. */
struct blob_key {
    uint32_t src; /**< the flow: ranks */
    uint32_t dst;
    bool from_source; /**< who wrote it; false: the destination */
    uint16_t piece;   /**< the writer's own number for it */
};

/**
 * @brief How a lane passes blobs to the partners of its flows while it connects: over the run's
 * authenticated datagrams, or directly where both ends are on one node.
 *
 * Main thread only.
 */
struct blob_exchange {
    void *context;
    /**
     * @brief Leaves a blob; a lane may only write as itself.
     *
     * 0 or a negative errno.
     */
    int (*publish)(void *context, const struct blob_key *key, const struct blob *blob);
    /**
     * @brief The partner's.
     *
     * -EAGAIN: asked for, not here yet; call again.
     */
    int (*fetch)(void *context, const struct blob_key *key, struct blob *blob);
};

struct lane_request {
    struct transport_port *port;
    const struct transport_secret *secret; /**< the node's: lives as long as its ports */
    const struct phase *phase;
    uint32_t rank;           /**< this port's rank in the trial's network */
    uint32_t ranks;          /**< how many there are */
    struct lane_flow *flows; /**< those that the lane sends, then those that it receives */
    uint32_t send_count;
    uint32_t receive_count;
    /**
     * @brief All flows that the port sends, by whichever queue: an answer to a probe may come by
     * any.
     *
     * NULL: they are the lane's.
     */
    const struct lane_flow *port_sends;
    uint32_t port_send_count;
    struct port_count *count;
    uint64_t line_rate_bps;        /**< as resolved: configured or the driver's; 0 unknown */
    uint32_t queue;                /**< 0 to port_facts.queues - 1 */
    struct lane *first_queue_lane; /**< the port's, prepared before; NULL: this is queue 0's */
    double share_from; /**< of the port's load, of the lanes of the queues before, ... */
    double share_to;   /**< ... and with this lane's; 0: it has all */
    const struct blob_exchange *blob_exchange; /**< lives as long as the lane */
    bool sleeps;                               /**< the worker gives its core away between bursts */
    struct schedule_executor
        *executor; /**< of a schedule (schedule_executor.h), the caller's; else NULL */
};

/** @brief Return the flows that a lane receives. */
static inline struct lane_flow *lane_receives(const struct lane_request *request)
{
    return request->flows + request->send_count;
}

/** @brief What the flows of a lane have moved. */
struct lane_moved {
    uint64_t offered; /**< payload that they have sent */
    uint64_t delivered;
    uint64_t line_bytes; /**< delivered at layer 1 for frames, else payload */
};

/** @brief Add what a flow's side has moved. */
static inline void lane_count_moved(struct lane_moved *moved, const struct flow_side *side,
                                    bool sent)
{
    const struct flow_count *live = &side->live;

    moved->offered += sent ? live->payload_bytes : 0;
    moved->delivered += sent ? 0 : live->payload_bytes;
    if (!sent)
        moved->line_bytes += live->frames > 0 ? live->frame_bytes + live->frames * FRAME_OVERHEAD_L1
                                              : live->payload_bytes;
}

/** @brief The part of a lane that the worker reads; each transport's lane begins with it. */
struct lane {
    struct lane_request request;
    int64_t stop_ns;    /**< the phase's; the worker pulls it forward to end early */
    int64_t started_ns; /**< when sending was really opened and closed on this lane: */
    int64_t stopped_ns; /**< set by poll; 0 before */
    int64_t arrived_ns; /**< when the last frame or byte of this phase came; 0: none */
    bool tx_done;       /**< it will send nothing more in this phase */
    bool rx_done;       /**< it knows that nothing more will come (end marks, transfer whole); a
                           transport that can't know leaves it false: silence decides */
    struct lane_moved moved; /**< by its flows, when all of them were accounted last */
    bool judges_order; /**< in this phase it counts duplicated, reordered and late messages, as
                          transports of frames always do; set by prepare */
    /**
     * @brief Steps: it learns from the network when a partner is gone, and waits until then; the
     * limit of a drain does not hold.
     *
     * Set by poll.
     */
    bool own_partner_timeout;
    int wake_fd; /**< readable when poll would get further, for a worker that sleeps; -1: nothing
                    tells but the time that poll returns; set by prepare */
    bool woken;  /**< its wake_fd ended the worker's sleep; poll takes it back */
    /**
     * @brief Gives the core away until poll would get further, or until then; for a worker that
     * sleeps and has this lane alone.
     *
     * False: not now; it sleeps by wake_fd. NULL: always. Set by prepare.
     */
    bool (*wait)(struct lane *lane, int64_t until_ns);
    const struct prober *prober; /**< its round trips (prober.h), set by prepare; their samples
                                    are whole once the worker has let go of the lane */
    char variant[112]; /**< which hot paths were chosen, for the records; set by prepare or connect
                        */
    struct err error;  /**< a fault in poll (a connection lost): text set, lane goes on idle */
};

#define FLOW_METRICS_MAX 16

/** @brief What a lane knows of one side of a flow, beside its counts. */
struct flow_reading {
    /** @brief The transport's own, e.g. {"retransmitted_segments", 3}. */
    struct flow_metric {
        const char *name; /**< static string, snake case with its unit */
        double value;
    } metrics[FLOW_METRICS_MAX];
    unsigned metric_count;
    struct latency latency[LATENCY_KINDS];
    bool measured[LATENCY_KINDS]; /**< in this phase */
};

/** @brief What a lane accounts at once. */
enum account {
    ACCOUNT_ALL,  /**< all flows, at the end */
    ACCOUNT_SOME, /**< some more of them, a few microseconds' work */
    ACCOUNT_MARK, /**< none: an end of the window is here. What passed until now is before it,
                     whenever it is accounted: it takes no longer for many flows than for one */
};

/** @brief What the core asks of a transport instead of its name. */
enum transport_capability {
    TRANSPORT_FRAMES = 1 << 0,       /**< sizes are of frames, which it counts; else of messages */
    TRANSPORT_PINGPONG = 1 << 1,     /**< carries ping-pong messages */
    TRANSPORT_SCHEDULES = 1 << 2,    /**< executes schedules */
    TRANSPORT_KNOWS_END = 1 << 3,    /**< sets rx_done by end marks; else silence ends a drain */
    TRANSPORT_NEEDS_IFACE = 1 << 4,  /**< a port is a kernel interface ... */
    TRANSPORT_NEEDS_RDMA = 1 << 5,   /**< ... or an RDMA device, whose counters it reads ... */
    TRANSPORT_TAKES_DEVICE = 1 << 6, /**< ... or any device, which the transport drives itself: a
                                        PCI device leaves its kernel driver for it */
    TRANSPORT_BURSTS = 1 << 7,       /**< sends bursts of a counted length */
};

struct transport {
    const char *name;      /**< the configuration's word */
    unsigned capabilities; /**< TRANSPORT_ bits */
    const struct option_table *options;

    /**
     * @brief Opens a port.
     *
     * May take a second. Errors: -ENODEV, -EPERM, -EINVAL ... with the sentence.
     */
    int (*open)(struct transport_port **port, const struct port_conf *conf,
                const struct transport_run *run, struct err *err);
    void (*close)(struct transport_port *port);
    /** @brief Cheap; must not block. `counters`: with those of the hardware. */
    void (*facts)(struct transport_port *port, struct port_facts *facts, bool counters);

    /**
     * @brief Checks a phase against a port and makes the lane of one of its queues: memory,
     * sockets, templates.
     *
     * Everything that the port can't do is refused here, with what it can. Must not wait for a
     * partner. The lanes of a phase are destroyed together.
     */
    int (*prepare)(struct lane **lane, const struct lane_request *request, struct err *err);
    /**
     * @brief Called again and again by the main thread until it returns 0: ready to start.
     *
     * -EAGAIN: not yet (a partner has not answered; the sentence may name one, for whoever gives it
     * up). -EINPROGRESS: not yet, and it waits for nobody: no limit holds. Any other value: failed.
     * Must not block.
     */
    int (*connect)(struct lane *lane, int64_t now_ns, struct err *err);

    /**
     * @brief Worker: the hot path.
     *
     * Receives and accounts what is there, sends what is due between start_ns and stop_ns. Must not
     * block, allocate or log. The first call, shortly before start_ns, begins the phase. Returns
     * when it next has something to send (CLOCK_NEVER: it only listens).
     */
    int64_t (*poll)(struct lane *lane, int64_t now_ns);
    /**
     * @brief Worker: brings the live counts of the lane's flows up to date, or notes that an end of
     * the window is here.
     *
     * Returns whether all flows are up to date since the last such end, or since it last said so.
     * NULL: poll keeps the counts.
     */
    bool (*account)(struct lane *lane, enum account what);
    /**
     * @brief Worker: between phases, some times a second: answer the network (ARP, ND), throw away
     * the rest.
     *
     * NULL: nothing to do.
     */
    void (*idle)(struct transport_port *port, int64_t now_ns);

    /**
     * @brief Adds the times that the lane measured of one of its port's flows to `reading`, and
     * sets the metrics (RTT, retransmissions).
     *
     * After the worker has let go of the lane.
     */
    void (*read_flow)(struct lane *lane, const struct lane_flow *flow,
                      struct flow_reading *reading);
    void (*destroy)(struct lane *lane);
};

/** @brief Return whether it has one of these capabilities. */
static inline bool transport_can(const struct transport *transport, unsigned capabilities)
{
    return (transport->capabilities & capabilities) != 0;
}

/** @brief What a partner must know to reach the port. */
static inline struct blob transport_address(const struct transport *transport,
                                            struct transport_port *port)
{
    struct port_facts facts = {0};

    transport->facts(port, &facts, false);
    return facts.address;
}

#endif
