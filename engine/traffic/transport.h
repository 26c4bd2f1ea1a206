/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Transport: the interface between the engine and the code that sends and receives data over
 * one kind of network access (tcp, udp, packet, dpdk, verbs).
 *
 * One documented table of functions; each transport exports one symbol, its table. A transport
 * knows ports, lanes and flows; it never sees the barrier, the documents or the records.
 *
 * @code{.unparsed}
 * port   sending and receiving device of a rank; opened once, lives for the whole run
 * phase  task of all ports at once: traffic, sizes, load, times
 * queue  a port's sending and receiving side for one core; a port has one or more
 * lane   one queue's share of one phase; prepared by the main thread, then polled by one
 *        worker thread, then destroyed by the main thread
 * @endcode
 *
 * With several queues a flow is sent by one lane, so that its sender does not reorder, and may be
 * received by any: the device distributes received frames by a hash over their addresses and ports.
 * So each lane of a port knows all flows that the port receives, and counts its own part of each.
 *
 * Life of a lane: prepare, connect until it is ready, [worker: poll ... poll, account], read_flow,
 * destroy. One thread at a time owns it.
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

#define CACHE_LINE 64u /**< bytes; lanes and what a worker writes begin at one of their own */
#define TRANSPORT_SIZES_MAX 64
#define TRANSPORT_KEY_BYTES 32

/**
 * @brief Names of the run and of this node; all ports of the node have the same.
 *
 * No secret: ports are opened before the run's key is known.
 */
struct transport_run {
    const char *run_id;
    const char *node; /**< name of this node: unique in the run, used for file prefixes */
};

/**
 * @brief Secret that authenticates data connections, once the node has joined the run.
 *
 * Keys are derived from it; it is never printed.
 */
struct transport_secret {
    uint8_t key[TRANSPORT_KEY_BYTES];
    const char *run_id;
};

/**
 * @brief Configuration of a port in the job document.
 *
 * Strings may be NULL: not set. Owned by the caller for the port's whole life.
 */
struct port_conf {
    const char *name;    /**< "node12:e0", for messages */
    const char *network; /**< network of ports that can reach each other */
    const char *netns;   /**< network namespace that holds the interface: a name below /run/netns or
                            a path; NULL: the process's own */
    const char *iface;   /**< kernel interface: tcp, udp; dpdk by af_packet or af_xdp */
    const char *pci;     /**< "0000:3b:00.0": dpdk takes the device itself */
    const char *vdev;    /**< any DPDK device arguments: "net_null0", "net_ring0", ... */
    const char *driver;  /**< dpdk on `iface`: af_packet (default) | af_xdp */
    const char *rdma;    /**< "mlx5_2/1" */
    const char *mac;     /**< dpdk's own addresses on the network, which the kernel must not own; */
    const char *ipv4;    /**< "keep" as mac: the device's own. "198.19.0.1/16" */
    const char *ipv6;    /**< "2001:2:0:1::1/64" */
    const char *gateway; /**< dpdk: next hop for peers outside the prefix; NULL: all are on link */
    const char *tcp_address; /**< address that the kernel owns on `iface`; NULL: its first one */
    uint64_t line_rate_bps;  /**< layer 1; 0: reported by the driver */
    uint32_t queue_frames;   /**< receive ring of af_packet and af_xdp; 0: default */
    uint32_t queues;         /**< dpdk: number of queues; 0: one */
    bool queues_at_most;     /**< dpdk: fewer queues are accepted */
    bool shared; /**< the port's network carries other traffic too (doc/reference/safety.md) */
};

/**
 * @brief Properties of an open port, for its record, its partners and its users.
 *
 * "" or 0: unknown.
 */
struct port_facts {
    char driver[32];
    char mac[18];
    char ipv4[16];
    char ipv6[46];
    uint64_t link_bps;  /**< as the driver reports; the invented 10G of veth is ignored */
    uint32_t frame_max; /**< largest frame, FCS included; 0 for tcp */
    int numa_node;      /**< -1: none */
    uint32_t queues;    /**< in use; each has a lane in every phase */
    char offloads[96];  /**< in use, by the driver's names, comma separated */
    uint32_t mtu;       /**< tcp: the interface's, without Ethernet header and FCS; verbs: active */
    char congestion[16]; /**< tcp: the system's congestion control */
    char rdma[72];       /**< verbs: device and port, "mlx5_2/1" */
    char link_layer[12]; /**< verbs: "InfiniBand" or "Ethernet" */
    char gid[46];        /**< verbs: default GID */
    int gid_index;       /**< verbs: index of this GID in the table; -1: none */
    bool independent; /**< no other transport uses its device: the port may stay open beside them */
    struct blob address; /**< data by which a partner reaches the port */
    /** @brief Descriptor that is readable when a call of `connect` for the port's lanes would make
     * progress; -1: none. */
    int connect_fd;
    /** @brief True: the link is up. This property and those below may change at any time. */
    bool link_up;
    uint64_t rejected;             /**< dropped connections without the run's key */
    char last_rejected[128];       /**< address of the last one, and the reason */
    struct port_hardware hardware; /**< PORT_HARDWARE_UNKNOWN: not requested */
};

enum traffic {
    TRAFFIC_STREAM,   /**< at a rate from start to stop */
    TRAFFIC_TRANSFER, /**< `transfer_bytes` of payload per flow, to completion */
    TRAFFIC_PROBE,    /**< `probes` frames or messages per flow, slowly: a connectivity check */
    /** @brief Repeated ping-pong, one message of a flow at a time (doc/reference/messages.md). */
    TRAFFIC_PINGPONG,
    TRAFFIC_SCHEDULE, /**< steps that wait for each other (doc/developer/schedules.md) */
    TRAFFIC_BURST,    /**< counted frames at the load's rate, then silence */
};

/**
 * @brief Options of bursts: each port sends bursts of a fixed number of frames, which its flows
 * send in rotation.
 */
struct burst_options {
    uint64_t frames; /**< frames per burst of a port with the whole load */
    /** @brief Frames per burst of this port: fewer if its flows' shares add up to less than 100 %.
     */
    uint64_t own_frames;
    int64_t gap_ns; /**< from the end of a burst to the begin of the next */
    uint64_t count; /**< 0: until the stop, with the last burst complete */
};

/** @brief Options of a phase that executes a schedule (schedule_executor.h). */
struct schedule_options {
    uint64_t count;  /**< measured repetitions, in whole batches; 0: until the stop */
    uint32_t batch;  /**< repetitions without a barrier between them; never 0 */
    uint32_t warmup; /**< batches that are not measured */
    bool compute;    /**< data are really reduced, and the result is verified */
};

/** @brief Kinds of latency that a transport can measure for a flow (doc/reference/latency.md). */
enum latency_kind {
    LATENCY_ONE_WAY, /**< destination: from a frame's stamp to its arrival, for delivered frames */
    LATENCY_ROUND_TRIP, /**< source: of probes that the destination returns */
    LATENCY_PINGPONG,   /**< source: of ping-pong messages */
    LATENCY_KINDS
};

/**
 * @brief Latency measurements of a phase in addition to its load.
 *
 * All zero: none.
 */
struct latency_options {
    double probe_fps; /**< probes per second of a flow; 0: none; below 0: the transport chooses */
    bool stamps;      /**< one-way delay of all frames that arrive in the window */
};

/** @brief Measured latencies of one flow and one kind, summed over the lanes that measured them. */
struct latency {
    struct histogram histogram;
    uint64_t sent; /**< probes or messages that expect an answer; 0: none */
};

/** @brief Offered load of one port, shared by the flows that it sends in the phase. */
struct load {
    double rate_bps; /**< layer 1 bit/s; 0: rate_fps applies */
    double rate_fps; /**< frames/s (messages/s) */
    bool unlimited;  /**< as fast as the transport goes (tcp and verbs at 100 %) */
    double part;     /**< share of the trial's load, of which other ports may have more; 0: all */
};

/**
 * @brief Task of every port in one phase: traffic, sizes, load, measurements and times.
 *
 * Owned by the caller, constant except for the times, which the barrier decides after `connect` and
 * before `start`.
 */
struct phase {
    uint32_t trial;
    uint32_t number;
    uint16_t tag;  /**< distinguishes runs, trials, networks and phases on the wire */
    uint64_t seed; /**< for initial offsets of flows and the like */
    enum traffic traffic;
    /**
     * @brief True: `sizes` are sizes of ping-pong messages, also in the connectivity check before
     * the trial. A transport of frames sends each message in a frame of its own.
     */
    bool messages;
    uint64_t transfer_bytes;
    uint32_t probes;
    int64_t
        probe_timeout_ns; /**< time after which a probe skips an unreachable partner; 0: never */
    /**
     * @brief Frame sizes with FCS (dpdk, udp) or message sizes (tcp blocks, verbs, ping-pong), sent
     * in this order repeatedly: one size, or an IMIX genome (RFC 6985).
     */
    uint32_t sizes[TRANSPORT_SIZES_MAX];
    uint32_t size_count;
    struct load load;
    bool in_turn; /**< one frame of each flow in rotation (RFC 2889, 5.1.3); else in any order */
    const void *options;       /**< options of the transport, as its option table fills them */
    int64_t answer_timeout_ns; /**< time that a ping-pong message may wait in queues on the way */
    struct schedule_options schedule;
    struct burst_options burst;
    struct latency_options latency;
    /**
     * @brief Times of the phase by local CLOCK_MONOTONIC, ns: begin of sending, opening and closing
     * of the window, end of sending.
     */
    int64_t start_ns;
    int64_t open_ns;
    int64_t close_ns;
    int64_t stop_ns;
};

/**
 * @brief Return whether a phase lasts from start to stop, rather than until its task is complete.
 *
 * @param phase Phase.
 * @return True: the phase lasts from start to stop.
 */
static inline bool phase_is_timed(const struct phase *phase)
{
    return phase->traffic == TRAFFIC_STREAM ||
           (phase->traffic == TRAFFIC_BURST && phase->burst.count == 0) ||
           phase->traffic == TRAFFIC_PINGPONG ||
           (phase->traffic == TRAFFIC_SCHEDULE && phase->schedule.count == 0);
}

/** @brief Return the time at which measuring begins: the window's opening, or the phase's start if
 * it has no window. */
static inline int64_t phase_measures_from(const struct phase *phase)
{
    return phase_is_timed(phase) ? phase->open_ns : phase->start_ns;
}

/** @brief Return the time at which measuring ends: the window's closing, or CLOCK_NEVER if the
 * phase has no window. */
static inline int64_t phase_measures_to(const struct phase *phase)
{
    return phase_is_timed(phase) ? phase->close_ns : INT64_MAX;
}

/**
 * @brief Return the mean size of a phase's frames or messages.
 *
 * @param phase Phase.
 * @return Bytes.
 */
static inline uint32_t phase_mean_size(const struct phase *phase)
{
    uint64_t sum = 0;

    assert(phase->size_count > 0); /* documents.c rejects an empty list */
    for (uint32_t i = 0; i < phase->size_count; i++)
        sum += phase->sizes[i];
    return (uint32_t)(sum / phase->size_count);
}

/** @brief Flow that a port sends or receives in a phase, with its counters. */
struct lane_flow {
    uint32_t src; /**< ranks */
    uint32_t dst;
    enum pattern_role role;
    double share;          /**< share of its port's load; 0: the port's flows divide it evenly */
    uint32_t number;       /**< number among the port's flows */
    struct blob partner;   /**< address of the other end */
    struct flow_side side; /**< counters of this end */
};

struct transport_port; /* each transport's own */
struct schedule_executor;

/** @brief Key of a blob that one end of a flow publishes for the other end in this phase. */
struct blob_key {
    uint32_t src; /**< ranks of the flow */
    uint32_t dst;
    bool from_source; /**< written by the source; false: by the destination */
    uint16_t piece;   /**< number chosen by the writer */
};

/**
 * @brief Exchange of blobs between the partners of a lane's flows while it connects: over the run's
 * authenticated datagrams, or directly where both ends are on one node.
 *
 * Main thread only.
 */
struct blob_exchange {
    void *context;
    /**
     * @brief Publish a blob; the key must name the lane's own end of the flow as the writer.
     *
     * Returns 0 or a negative errno.
     */
    int (*publish)(void *context, const struct blob_key *key, const struct blob *blob);
    /**
     * @brief Fetch the blob that the partner publishes under a key.
     *
     * Returns -EAGAIN if the blob was requested but has not arrived; call again.
     */
    int (*fetch)(void *context, const struct blob_key *key, struct blob *blob);
};

struct lane_request {
    struct transport_port *port;
    const struct transport_secret *secret; /**< of the node: lives as long as its ports */
    const struct phase *phase;
    uint32_t rank;           /**< rank of this port in the trial's network */
    uint32_t ranks;          /**< ranks in the trial's network */
    struct lane_flow *flows; /**< flows that the lane sends, then those that it receives */
    uint32_t send_count;
    uint32_t receive_count;
    /**
     * @brief All flows that the port sends by any queue, because an answer to a probe may arrive by
     * any.
     *
     * NULL: the lane's flows.
     */
    const struct lane_flow *port_sends;
    uint32_t port_send_count;
    struct port_count *count;
    uint64_t line_rate_bps; /**< configured, or the driver's; 0: unknown */
    uint32_t queue;         /**< 0 to port_facts.queues - 1 */
    /** @brief Lane of the same port's queue 0, which is prepared first; NULL for queue 0 itself. */
    struct lane *first_queue_lane;
    double share_from; /**< share of the port's load that the queues before this one send */
    double share_to;   /**< the same share including this queue; 0: this queue sends all */
    const struct blob_exchange *blob_exchange; /**< lives as long as the lane */
    bool sleeps;                               /**< the worker yields its core between bursts */
    struct schedule_executor
        /** @brief Executor of a schedule (schedule_executor.h), owned by the caller; else NULL. */
        *executor;
};

/** @brief Return the first of the flows that a lane receives; they follow the flows that it
 * sends. */
static inline struct lane_flow *lane_receives(const struct lane_request *request)
{
    return request->flows + request->send_count;
}

/** @brief Bytes that the flows of a lane have sent and received so far in the phase. */
struct lane_moved {
    uint64_t offered; /**< payload sent by them */
    uint64_t delivered;
    uint64_t line_bytes; /**< delivered at layer 1 for frames, else payload */
};

/** @brief Add the bytes of one side of a flow to the total of its lane. */
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

/** @brief Common part of all transports' lanes, which the worker reads; each transport's own lane
 * struct begins with it. */
struct lane {
    struct lane_request request;
    int64_t stop_ns;    /**< stop of the phase; the worker sets an earlier one to end early */
    int64_t started_ns; /**< actual begin of sending on this lane; set by poll, 0 before */
    int64_t stopped_ns; /**< actual end of sending on this lane; set by poll, 0 before */
    int64_t arrived_ns; /**< arrival of the last frame or byte of this phase; 0: none */
    bool tx_done;       /**< it will send nothing more in this phase */
    /**
     * @brief The lane will receive nothing more (end marks, transfer complete); a transport that
     * cannot know leaves false here: silence decides.
     */
    bool rx_done;
    struct lane_moved moved; /**< bytes of its flows at the last complete update of their counts */
    /**
     * @brief True: duplicated, reordered and late messages are counted in this phase, as frames
     * always are. Set by prepare().
     */
    bool judges_order;
    /**
     * @brief True: the lane itself detects that a partner is gone, as in schedules, so the drain's
     * limit does not apply to the lane. Set by poll.
     */
    bool own_partner_timeout;
    /**
     * @brief Descriptor that wakes a sleeping worker: readable when poll would make progress; -1:
     * the worker sleeps until the time that poll returned. Set by prepare.
     */
    int wake_fd;
    bool woken; /**< its wake_fd ended the worker's sleep; poll resets it */
    /**
     * @brief Yield the core until poll would make progress, or until `until_ns`; for a sleeping
     * worker that has only this lane.
     *
     * Returns false if this is impossible now: the worker sleeps by wake_fd. NULL: the worker
     * always sleeps by wake_fd. Set by prepare.
     */
    bool (*wait)(struct lane *lane, int64_t until_ns);
    char variant[112]; /**< chosen hot paths, for the records; set by prepare or connect */
    /** @brief Fault that poll found, such as a lost connection: its text is set, and the lane stays
     * idle. */
    struct err error;
};

#define FLOW_METRICS_MAX 16

/** @brief Metrics and latencies that a transport measured at one side of a flow, in addition to the
 * flow's counts. */
struct flow_reading {
    /** @brief Metrics of the transport, such as {"retransmitted_segments", 3}. */
    struct flow_metric {
        const char *name; /**< static string, snake case with its unit */
        double value;
    } metrics[FLOW_METRICS_MAX];
    unsigned metric_count;
    struct latency latency[LATENCY_KINDS];
    bool measured[LATENCY_KINDS]; /**< in this phase */
};

/** @brief Extent of one call of `account`: it updates the counts of all flows, of some flows, or of
 * none. */
enum account {
    ACCOUNT_ALL,  /**< all flows, at the end */
    ACCOUNT_SOME, /**< some more flows, a few microseconds' work */
    /**
     * @brief No flow: mark an end of the window. Traffic until now counts as before the mark, even
     * if it is accounted later: this call takes no longer for many flows than for one.
     */
    ACCOUNT_MARK,
};

/** @brief Capabilities of a transport, which the core tests instead of its name. */
enum transport_capability {
    TRANSPORT_FRAMES = 1 << 0,      /**< sizes are of frames, which it counts; else of messages */
    TRANSPORT_KNOWS_END = 1 << 1,   /**< sets rx_done by end marks; else silence ends a drain */
    TRANSPORT_NEEDS_IFACE = 1 << 2, /**< a port is a kernel interface */
    TRANSPORT_NEEDS_RDMA = 1 << 3,  /**< a port is an RDMA device, whose counters it reads */
    /**
     * @brief A port is any device, which the transport drives itself: a PCI device is unbound from
     * its kernel driver.
     */
    TRANSPORT_TAKES_DEVICE = 1 << 4,
};

struct transport {
    const char *name;      /**< word in the configuration */
    unsigned capabilities; /**< TRANSPORT_ bits */
    const struct option_table *options;
    size_t port_bytes; /**< size of the transport's own struct transport_port */
    size_t lane_bytes; /**< size of the transport's own lane */

    /**
     * @brief Open a port; transport_open() has allocated and zeroed the struct `port`.
     *
     * May take a second. Errors: -ENODEV, -EPERM, -EINVAL ... with an error message; close() is
     * called then, too.
     */
    int (*open)(struct transport_port *port, const struct port_conf *conf,
                const struct transport_run *run, struct err *err);
    void (*close)(struct transport_port *port); /**< and free its memory */
    /**
     * @brief Read a port's properties; with `counters` also the hardware's counters. Must be cheap,
     * and not block.
     */
    void (*facts)(struct transport_port *port, struct port_facts *facts, bool counters);

    /**
     * @brief Check whether a port can run a phase, and make the lane of one of the port's queues:
     * memory, sockets, templates. transport_prepare() has allocated the struct `lane`, which is
     * zero except for its request.
     *
     * Everything that the port cannot do is rejected here, with the valid values; destroy() is
     * called then, too. Must not wait for a partner. The lanes of a phase are destroyed together.
     */
    int (*prepare)(struct lane *lane, struct err *err);
    /**
     * @brief Connect a lane; called repeatedly by the main thread until it returns 0: ready to
     * start.
     *
     * -EAGAIN: not yet (a partner has not answered; the error message may name it, for a timeout).
     * -EINPROGRESS: not yet, without waiting for a partner: no limit applies. Any other value:
     * failed. Must not block.
     */
    int (*connect)(struct lane *lane, int64_t now_ns, struct err *err);

    /**
     * @brief Poll a lane: receive and send data. Called by the worker; this is the hot path.
     *
     * Receives and counts the data that arrived, and sends the data that are due between start_ns
     * and stop_ns. Must not block, allocate or log. The first call, shortly before start_ns, begins
     * the phase. Returns when it next has something to send (CLOCK_NEVER: it only listens).
     */
    int64_t (*poll)(struct lane *lane, int64_t now_ns);
    /**
     * @brief Update the counts of a lane's flows, or mark an end of the window; called by the
     * worker.
     *
     * Returns whether all flows are up to date since the last such end, or since it last returned
     * true. NULL: poll updates the counts.
     */
    bool (*account)(struct lane *lane, enum account what);
    /**
     * @brief Serve an idle port between phases, some times per second: answer ARP and ND, discard
     * other frames; called by the worker.
     *
     * NULL: nothing to do.
     */
    void (*idle)(struct transport_port *port, int64_t now_ns);

    /**
     * @brief Add the latencies that a lane measured of one flow to `reading`, and set the flow's
     * metrics (RTT, retransmissions).
     *
     * To be called after the worker has released the lane.
     */
    void (*read_flow)(struct lane *lane, const struct lane_flow *flow,
                      struct flow_reading *reading);
    void (*destroy)(struct lane *lane); /**< and free its memory */
};

/**
 * @brief Open a port of a transport.
 *
 * @param transport Transport.
 * @param[out] port Port, which the transport's close() ends.
 * @param conf Configuration; must outlive the port.
 * @param run Names of the run and the node.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno with an error message.
 */
int transport_open(const struct transport *transport, struct transport_port **port,
                   const struct port_conf *conf, const struct transport_run *run, struct err *err);
/**
 * @brief Make the lane of one queue of a port, for one phase.
 *
 * @param transport Transport.
 * @param[out] lane Lane, which the transport's destroy() ends.
 * @param request Request; copied.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0, or a negative errno with an error message.
 */
int transport_prepare(const struct transport *transport, struct lane **lane,
                      const struct lane_request *request, struct err *err);

/** @brief Return whether a transport has one of the given capabilities. */
static inline bool transport_can(const struct transport *transport, unsigned capabilities)
{
    return (transport->capabilities & capabilities) != 0;
}

/** @brief Return the address data by which a port's partners reach the port. */
static inline struct blob transport_address(const struct transport *transport,
                                            struct transport_port *port)
{
    struct port_facts facts = {0};

    transport->facts(port, &facts, false);
    return facts.address;
}

#endif
