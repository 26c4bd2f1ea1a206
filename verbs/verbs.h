/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The verbs transport inside. A port is one port of one RDMA device (port.c), with its
 * registered memory and its queue pairs (qp.c). A lane is the streams of a phase (lane.c, on
 * ../engine/traffic/message_lane.h), each a queue pair; a worker moves the messages (stream.c).
 *
 * A queue pair serves one stream, one way: this end is its sender or its receiver. The little that
 * goes the other way uses the same queue pair: credits, which are sent as headers alone.
 *
 *     ring     places for what comes, filled and given back in turn: messages, or credits
 *
 * Credits keep the sender from sending what the receiver has no place for: so receivers are never
 * "not ready", and nothing is overwritten before it was verified.
 */
#ifndef VERBS_H
#define VERBS_H

#include "message_lane.h"

#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/queue.h>

#define VERBS_PROBE_QPS 2u     /* of each flow */
#define VERBS_PROBES_OUT 64u   /* of a flow in flight, at most */
#define VERBS_BATCH 64u        /* messages posted, and completions polled, at once */
#define VERBS_GRH_BYTES 40u    /* before each datagram that is received (UD) */
#define VERBS_RING_MIN 2u      /* places of a ring: a message and the end mark */
#define VERBS_CREDIT_SLOTS 16u /* where a sender receives credits */
#define VERBS_CREDIT_STRIDE 128u
#define VERBS_HEADER_STRIDE 32u
#define VERBS_CONTROL_WRS 4u          /* of the send queue, for credits and end marks */
#define VERBS_PIECE_BYTES (64u << 10) /* of payload in a piece of a schedule's message, at most */

/* --- what a trial may say below `verbs` --- */

enum verbs_service { VERBS_RC, VERBS_UC, VERBS_UD };
enum verbs_operation { VERBS_SEND, VERBS_WRITE /* with immediate data */ };
enum verbs_completion { VERBS_COMPLETION_AUTO, VERBS_COMPLETION_POLL, VERBS_COMPLETION_EVENT };

#define VERBS_AUTOMATIC (-1)

/** @brief What decides on a queue pair: one that was made with these serves only for equal ones. */
struct verbs_qp_options {
    enum verbs_service service;
    enum verbs_operation operation;
    uint32_t depth;       /**< messages posted and not completed, by queue pair; never 0 */
    int32_t inline_bytes; /**< VERBS_AUTOMATIC; 0: none */
    int32_t gid_index;    /**< VERBS_AUTOMATIC */
    uint32_t service_level;
    uint32_t traffic_class;
    uint32_t pkey_index;
    uint32_t retry; /**< 0 to 6: taken as it is */
    uint32_t rnr_retry;
    uint32_t timeout; /**< 4.096 us x 2^timeout; never 0 */
};

/**
 * @brief What each means in the field's words: doc/how-to/verbs.md.
 *
 * 0 is "automatic" unless said otherwise.
 */
struct verbs_options {
    struct verbs_qp_options qp;
    uint16_t queue_pairs;  /**< by flow; never 0 */
    uint16_t signal_every; /**< messages */
    uint16_t mtu;          /**< path MTU in bytes */
    enum verbs_completion completion;
    uint32_t reuse; /**< queue pairs kept connected for later phases, by port; 0: none */
};

/* --- port.c --- */

#define VERBS_GID_BYTES 16
#define VERBS_IPV4_AT 12  /* in a mapped GID */
#define VERBS_GID_TEXT 46 /* "::ffff:10.0.0.1" or "fe80::1" */

/** What partners must know of a port before a phase; travels as it lies in memory. */
struct verbs_address {
    uint8_t ethernet;
    uint8_t zero;
    uint16_t lid;                 /**< network byte order */
    uint8_t gid[VERBS_GID_BYTES]; /**< of the automatic choice */
};

/** Registered memory; none at NULL. */
struct registered_memory {
    uint8_t *at;
    size_t bytes;
    bool huge; /**< in hugepages */
    struct ibv_mr *region;
};

TAILQ_HEAD(qp_list, verbs_qp);

/** A port's queue pairs from phase to phase: those that are kept connected for a later phase
 * between the same two ports with the same options, and those that a thread of its own destroys. */
struct connection_pool {
    struct qp_list kept; /**< the least recently used first */
    size_t count;        /**< of them */
    bool open;
    pthread_t destroyer;
    int doomed; /**< a pipe, by which it gets pointers to queue pairs */
};

/** All of it is the main thread's; a worker only posts to and polls the queue pairs of its lane. */
struct transport_port {
    const struct port_conf *conf;
    char device[64];
    uint8_t number; /**< of the device's ports */
    char label[96]; /**< "node1:e0 (mlx5_2/1)" */
    char driver[32];
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /**< of all its completion queues */
    struct ibv_device_attr limits;
    struct ibv_port_attr attributes;
    bool ethernet;              /**< RoCE; false: InfiniBand */
    bool software;              /**< rxe: what goes to this same host takes no wire */
    struct ibv_gid_entry *gids; /**< the port's own */
    size_t gid_count;
    const struct ibv_gid_entry *gid; /**< where the options do not say; NULL: it has none */
    char netdev[IF_NAMESIZE];        /**< "": none */
    char ipv4[INET_ADDRSTRLEN];      /**< of the netdev; "": none, or unknown */
    char ipv6[INET6_ADDRSTRLEN];
    bool up;
    bool fatal;                       /**< the device has failed */
    size_t memory_bytes;              /**< registered */
    size_t memory_max;                /**< a quarter of the machine's memory */
    struct registered_memory payload; /**< of whatever this port sends */
    struct connection_pool pool;
};

int verbs_port_open(struct transport_port **port, const struct port_conf *conf,
                    const struct transport_run *run, struct err *err);
void verbs_port_close(struct transport_port *port);
void verbs_port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
/** Reads what the device says of itself: link changes, failures. Never blocks. */
void verbs_port_events(struct transport_port *port);

/** Writes "mlx5_2/1" into `name` of `size` bytes. `sys` is where sysfs is mounted. An interface has
 * a port's GIDs (RoCE, Soft-RoCE), or lies on the port's PCI device (IPoIB). False: none. */
bool verbs_device_of_interface(const char *sys, const char *iface, char *name, size_t size);
/** The first port of the RDMA device of a PCI address ("0000:3b:00.0"). */
bool verbs_device_of_pci(const char *sys, const char *pci, char *name, size_t size);

static inline bool verbs_gid_is_ipv4(const uint8_t gid[VERBS_GID_BYTES])
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};

    return memcmp(gid, prefix, sizeof prefix) == 0;
}

static inline const char *verbs_gid_text(const uint8_t gid[VERBS_GID_BYTES],
                                         char text[VERBS_GID_TEXT])
{
    return inet_ntop(AF_INET6, gid, text, VERBS_GID_TEXT);
}

/** The best for an Ethernet port, where the GID decides how packets look: version 2 has routable IP
 * and UDP headers, version 1 only an EtherType; a mapped IPv4 address makes IPv4 packets. RoCE v2
 * before v1; of the wanted family (4, 6, or 0: any, IPv4 first) before the other; link-local last
 * of its kind; the lowest index of equals. NULL: the table is empty. */
const struct ibv_gid_entry *verbs_gid_choose(const struct ibv_gid_entry *table, size_t count,
                                             int family);
/** By its index; NULL: the table has no such entry. */
const struct ibv_gid_entry *verbs_port_gid(const struct transport_port *port, int index);
/** A partner's. False: not one of this transport. */
bool verbs_address_read(struct verbs_address *address, const struct blob *blob);
static inline uint32_t verbs_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

/** False: no path MTU has so many bytes. */
static inline bool verbs_mtu_code(uint32_t bytes, enum ibv_mtu *mtu)
{
    for (*mtu = IBV_MTU_256; *mtu <= IBV_MTU_4096; (*mtu)++)
        if (verbs_mtu_bytes(*mtu) == bytes)
            return true;
    return false;
}

/* --- qp.c: registered memory, queue pairs, and those that a port keeps --- */

/** Registers so many bytes, their content undefined: in hugepages where it is 256 KiB and the
 * host has any free, else in transparent ones where the kernel gives them. -ENOMEM: there is no
 * more; -EPERM: the user may not lock so much; each with the sentence. */
int registered_memory_make(struct transport_port *port, size_t bytes,
                           struct registered_memory *memory, struct err *err);
void registered_memory_free(struct transport_port *port, struct registered_memory *memory);
/** Why the device did not register so many bytes, by the errno that ibv_reg_mr left: the sentence,
 * and its error. */
int registered_memory_error(const char *label, size_t bytes, int code, struct err *err);
/** So many bytes of payload from any place can be sent from port->payload, which no lane uses now.
 * 0 or a refusal. */
int verbs_port_payload(struct transport_port *port, size_t bytes, struct err *err);

enum qp_role { QP_SENDER, QP_RECEIVER };

/** What one end of a queue pair is like: whose partner it is, its role, its options, its ring. It
 * has no holes: a queue pair of one serves as one of an equal other, connected as it is. */
struct qp_config {
    const struct ibv_gid_entry *gid; /**< of the port's table; NULL: none (one InfiniBand subnet) */
    struct verbs_qp_options options;
    struct verbs_address partner;
    enum qp_role role;
    uint32_t stream;
    uint32_t mtu;    /**< path MTU in bytes, max */
    uint32_t slots;  /**< of the ring; 0: none */
    uint32_t stride; /**< of a slot, 64 n */
    uint32_t zero;
};
static_assert(sizeof(struct qp_config) == sizeof(void *) + 88, "layout without holes");

/** What the two ends of a queue pair tell each other to connect it. Travels as it lies in memory.
 */
struct qp_info {
    uint32_t version;
    uint32_t number;       /**< of the queue pair */
    uint32_t connected_to; /**< the number of the partner's queue pair; 0: new */
    uint32_t turn;         /**< how many messages have passed, modulo 2^32 */
    uint32_t packet;       /**< first packet sequence number, 24 bits */
    uint32_t queue_key;    /**< UD */
    uint8_t gid[VERBS_GID_BYTES];
    uint64_t ring;     /**< address of `slots` places for messages, each `stride` bytes ... */
    uint32_t ring_key; /**< ... and its rkey */
    uint32_t slots;
    uint32_t stride;
    uint32_t first; /**< the phase's first message is for, or in, this place of the ring */
    uint16_t lid;   /**< InfiniBand */
    uint16_t mtu;   /**< bytes, max */
};

/** False: not of this version, or of a host with another byte order. */
bool qp_info_read(struct qp_info *info, const struct blob *blob);
/** Whether a sender may send by it: messages that take `stride` bytes in a place of its ring. */
bool qp_info_fits(const struct qp_info *info, uint32_t stride);
/** Both ends come to the same from the same two infos. True: they hold the two ends of one
 * connected queue pair, and nothing is to be done. False: each connects to what the other is. */
bool qp_info_connected(const struct qp_info *mine, const struct qp_info *theirs);

/** Headers alone, in registered memory: what this end sends of them, and what comes where a receive
 * has no place for it. */
struct verbs_control {
    _Alignas(64) struct message_header out;
    _Alignas(64) struct message_header in;
};
static_assert(sizeof(struct verbs_control) == 128, "layout");

/** A receive of one place of the ring. */
struct verbs_receive {
    struct ibv_recv_wr work;
    struct ibv_sge place;
};

struct verbs_qp {
    /** The connection pool's, while no lane uses it: */
    TAILQ_ENTRY(verbs_qp) age;

    struct transport_port *port;
    struct qp_config config;
    struct ibv_qp *ibv;
    struct ibv_cq *cq;
    struct ibv_ah *ah; /**< UD */
    struct registered_memory memory;
    struct verbs_control *control;
    uint8_t *headers; /**< `depth` of them; NULL: none */
    uint8_t *ring;
    struct verbs_receive *receives; /**< of each place, linked in a circle */
    uint32_t inline_bytes;
    uint32_t packet;    /**< first packet sequence number */
    uint32_t queue_key; /**< UD */
    uint32_t partner;   /**< its queue pair's number; 0: not connected */
    uint32_t turn;      /**< messages that have passed, modulo 2^32 */
    uint32_t place;     /**< the ring's next */
    uint16_t mtu;       /**< path MTU as agreed */
    bool reused;
    int64_t setup_ns; /**< how long making and connecting it took */
};

/** Takes a kept one back to how it was made, but for its place in the ring. 0 or a refusal. */
int verbs_qp_reset(struct verbs_qp *qp, struct err *err);
/** What its partner must know. */
void verbs_qp_describe(const struct verbs_qp *qp, struct qp_info *info);
/** Connects it to the partner's. 0 or a refusal. */
int verbs_qp_connect(struct verbs_qp *qp, const struct qp_info *theirs, struct err *err);
/** Posts the receives of `count` places of the ring, from `first` on. 0 or an errno. */
int verbs_qp_post_receives(struct verbs_qp *qp, uint32_t first, uint32_t count);

/** 0 or a negative errno. */
int connection_pool_open(struct transport_port *port);
/** Waits up to 2 s until all queue pairs are destroyed. False: some are not, and so the port must
 * be left to the end of the process. */
bool connection_pool_close(struct transport_port *port);
/** The queue pair of this config that was kept last; else a new one, in
 * state INIT with its receives posted. 0 or a refusal. */
int connection_pool_acquire(struct transport_port *port, const struct qp_config *config,
                            struct verbs_qp **qp, struct err *err);
/** Keeps it, and of all that are kept the `max` that were used last. */
void connection_pool_keep(struct verbs_qp *qp, size_t max);
/** Gives its memory back at once, and destroys it later. */
void connection_pool_free(struct verbs_qp *qp);

/* --- lane.c --- */

struct verbs_lane;

/** One end of a stream. */
struct verbs_end {
    struct message_end base;
    struct verbs_qp *qp;
    struct qp_config config;
    uint32_t stride; /**< of a place for its messages, at the receiver at least */
    struct qp_info theirs;
    bool connected;    /**< else our info is out, and the partner's is awaited */
    bool control_busy; /**< a credit or an end mark is on its way to the partner */
    bool failed;
};

/** It is at the flow's source; else at its destination. */
static inline bool verbs_at_source(const struct verbs_end *end)
{
    return end->base.sends == (end->base.use != MESSAGE_ANSWER);
}

/** The rank at the other end. */
static inline uint32_t verbs_partner(const struct verbs_end *end)
{
    return verbs_at_source(end) ? end->base.flow->dst : end->base.flow->src;
}

/** Offered is what was completed: with RC what the partner's device has acknowledged, with UC and
 * UD what left. */
struct verbs_out {
    struct verbs_end end;
    uint64_t done_bytes;   /**< payload of the messages that are done */
    uint64_t allowed;      /**< messages that the receiver has given places for */
    uint64_t *bytes_after; /**< payload bytes up to a message that is signalled; `span` of them */
    uint32_t span;         /**< messages that can be posted and not completed */
    uint32_t next;         /**< place in bytes_after and among the headers */
    uint32_t remote;       /**< place in the receiver's ring */
    uint32_t signal_every; /**< messages */
    uint32_t unsignalled;  /**< messages posted since the last that is signalled */
    uint64_t waits;        /**< times that messages were due and no place was free */
    int64_t moved_ns;      /**< unreliable services: when a credit last came, or was given up */
    struct message_header
        header;    /**< of the run that is made: the compiler keeps it in one piece */
    unsigned eofs; /**< end marks posted */
    int64_t eof_ns;
    struct ibv_send_wr works[VERBS_BATCH];   /**< linked */
    struct ibv_sge gathers[2 * VERBS_BATCH]; /**< two for each */
};

struct verbs_in {
    struct verbs_end end;
    uint32_t place;         /**< of the ring, for the next message */
    uint32_t arrived;       /**< schedules: places from `place` on that wait for their step ... */
    uint32_t *lengths;      /**< ... by place, the bytes that came; NULL: another traffic */
    uint32_t to_post;       /**< receives to be posted again ... */
    uint32_t to_post_place; /**< ... from this place on */
    uint64_t credited;      /**< messages that the sender knows to be dealt with */
    int64_t credited_ns;
    int64_t moved_ns;     /**< when the last message came */
    uint64_t total;       /**< of the end mark ... */
    uint32_t total_bytes; /**< modulo 2^32 */
    bool eof_seen;        /**< ... which has come */
};

struct verbs_lane {
    struct message_lane base;
    struct transport_port *port;
    struct verbs_options options; /**< effective: nothing is automatic but where said */
    uint16_t mtu;                 /**< path MTU, max */
    uint32_t slots, stride;       /**< of the ring of a stream of the load */
    bool events;
    bool armed;            /**< a completion makes the port's channel readable */
    struct ibv_mr *memory; /**< of a schedule's rank */
    double payload_share;  /**< of the load at layer 1 */
    size_t keep_max;       /**< queue pairs that the port keeps when it is destroyed */
    unsigned connected;    /**< ends before this one are connected */
    int64_t connecting_since_ns;
    int64_t poll_gap_ns;
};

/** Of those that send, then of those that receive. */
static inline struct verbs_end *verbs_lane_end(const struct verbs_lane *lane, unsigned index)
{
    return (struct verbs_end *)(void *)message_lane_end(&lane->base, index);
}

/* --- stream.c --- */

extern const struct message_hooks verbs_hooks;
/** The end is connected: fills what needs the partner's info. */
void verbs_out_connected(struct verbs_out *out);
/** Whether its queue pair is at rest, in the same state as its partner's end: all that was sent has
 * come. */
bool verbs_end_is_clean(struct verbs_end *end);

/** What a completion is of: the top byte of its work request's id. Receives have none: their id is
 * their place in the ring. The rest is a count of messages. */
enum verbs_work { VERBS_WORK_RECEIVE, VERBS_WORK_MESSAGE, VERBS_WORK_CONTROL, VERBS_WORK_EOF };
#define VERBS_WORK_SHIFT 56
#define VERBS_WORK_ID(kind, count) ((uint64_t)(kind) << VERBS_WORK_SHIFT | (count))

#endif
