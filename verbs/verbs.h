/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Internal interface of the verbs transport. A port is one port of an RDMA device (port.c),
 * with its registered memory and its queue pairs (qp.c). A lane has the streams of a phase (lane.c,
 * on ../engine/traffic/message_lane.h), each on a queue pair; a worker moves the messages
 * (stream.c).
 *
 * A queue pair serves one stream in one direction: this end is its sender or its receiver. Only
 * credits, sent as headers alone, use the opposite direction. A queue pair's ring has places for
 * received messages or credits, filled and freed in order.
 *
 * Credits keep the sender from sending without a place at the receiver: receivers are never "not
 * ready", and nothing is overwritten before it was verified.
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

#define VERBS_PROBES_OUT 64u   /* per flow in flight, at most */
#define VERBS_BATCH 64u        /* messages posted, and completions polled, at once */
#define VERBS_GRH_BYTES 40u    /* before each received datagram (UD) */
#define VERBS_RING_MIN 2u      /* places of a ring: a message and the end mark */
#define VERBS_CREDIT_SLOTS 16u /* places for a sender's received credits */
#define VERBS_CREDIT_STRIDE 128u
#define VERBS_HEADER_STRIDE 32u
#define VERBS_CONTROL_WRS 4u          /* send queue entries for credits and end marks */
#define VERBS_PIECE_BYTES (64u << 10) /* maximum payload in a piece of a schedule's message */

/* --- options of a trial below `verbs` --- */

enum verbs_service { VERBS_RC, VERBS_UC, VERBS_UD };
enum verbs_operation { VERBS_SEND, VERBS_WRITE /* with immediate data */ };

#define VERBS_AUTOMATIC (-1)

/** @brief Options that define a queue pair, which serves only lanes with equal options. */
struct verbs_qp_options {
    enum verbs_service service;
    enum verbs_operation operation;
    uint32_t depth;    /**< messages posted and not completed, per queue pair; never 0 */
    int32_t gid_index; /**< VERBS_AUTOMATIC */
    uint32_t service_level;
    uint32_t traffic_class;
    uint32_t pkey_index;
    uint32_t retry;   /**< 0 to 6, passed on unchanged */
    uint32_t timeout; /**< 4.096 us x 2^timeout; never 0 */
};

/**
 * @brief Options of the verbs transport (doc/how-to/verbs.md).
 *
 * 0 is "automatic" unless stated otherwise.
 */
struct verbs_options {
    struct verbs_qp_options qp;
    uint16_t queue_pairs; /**< per flow; never 0 */
    uint16_t mtu;         /**< path MTU in bytes */
};

/* --- port.c --- */

#define VERBS_GID_BYTES 16
#define VERBS_IPV4_AT 12  /* offset in a mapped GID */
#define VERBS_GID_TEXT 46 /* "::ffff:10.0.0.1" or "fe80::1" */

/** Address data of a port, which its partners need before a phase; sent in the layout of this
 * struct. */
struct verbs_address {
    uint8_t ethernet;
    uint8_t zero;
    uint16_t lid;                 /**< network byte order */
    uint8_t gid[VERBS_GID_BYTES]; /**< chosen automatically */
};

/** Memory that is registered with the device; `at` NULL: none. */
struct registered_memory {
    uint8_t *at;
    size_t bytes;
    bool huge; /**< allocated in hugepages */
    struct ibv_mr *region;
};

/**
 * Port of an RDMA device. The main thread owns it; a worker only posts to and polls the queue pairs
 * of its lane.
 */
struct transport_port {
    const struct port_conf *conf;
    char device[64];
    uint8_t number; /**< number of the device's port */
    char label[96]; /**< "node1:e0 (mlx5_2/1)" */
    char driver[32];
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /**< shared by all completion queues */
    struct ibv_device_attr limits;
    struct ibv_port_attr attributes;
    bool ethernet;              /**< RoCE; false: InfiniBand */
    bool software;              /**< rxe: frames within one host use no wire */
    struct ibv_gid_entry *gids; /**< table of this port */
    size_t gid_count;
    const struct ibv_gid_entry *gid; /**< default; NULL: none */
    char netdev[IF_NAMESIZE];        /**< "": none */
    char ipv4[INET_ADDRSTRLEN];      /**< of the GID; "": none */
    char ipv6[INET6_ADDRSTRLEN];
    bool up;
    bool fatal;                       /**< the device has failed */
    size_t memory_bytes;              /**< registered */
    size_t memory_max;                /**< a quarter of the machine's memory */
    struct registered_memory payload; /**< source of everything that this port sends */
    bool destroys;                    /**< the thread that destroys queue pairs runs */
    pthread_t destroyer;
    int doomed; /**< pipe that carries pointers to queue pairs to destroy */
};

int verbs_port_open(struct transport_port *port, const struct port_conf *conf,
                    const struct transport_run *run, struct err *err);
void verbs_port_close(struct transport_port *port);
void verbs_port_facts(struct transport_port *port, struct port_facts *facts, bool counters);
/** Read the device's events: link changes, failures. Never blocks. */
void verbs_port_events(struct transport_port *port);

/**
 * Find the RDMA port of a network interface: the interface has the port's GIDs (RoCE, Soft-RoCE),
 * or is on the port's PCI device (IPoIB). Write its name, such as "mlx5_2/1", into `name` of `size`
 * bytes; `sys` is the mount point of sysfs. Return false if there is none.
 */
bool verbs_device_of_interface(const char *sys, const char *iface, char *name, size_t size);
/** Write the name of the first port of the RDMA device at a PCI address ("0000:3b:00.0"); return
 * false if there is none. */
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

/**
 * Return the best GID of an Ethernet port's table; NULL: the table is empty.
 *
 * The GID decides the packets' form: RoCE v2 has routable IP and UDP headers, v1 only an EtherType;
 * a mapped IPv4 address makes IPv4 packets. The order of preference is: RoCE v2 before v1; then the
 * wanted family (4, 6, or 0: any, IPv4 first); link-local addresses last of their kind; then the
 * lowest index.
 */
const struct ibv_gid_entry *verbs_gid_choose(const struct ibv_gid_entry *table, size_t count,
                                             int family);
/** Return the GID at an index of the port's GID table; NULL: the table has no such index. */
const struct ibv_gid_entry *verbs_port_gid(const struct transport_port *port, int index);
/** Read the address of a partner's port from its blob; return false if the blob is no address of
 * this transport. */
bool verbs_address_read(struct verbs_address *address, const struct blob *blob);
static inline uint32_t verbs_mtu_bytes(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

/** Convert a path MTU in bytes to its code; return false if InfiniBand has no such path MTU. */
static inline bool verbs_mtu_code(uint32_t bytes, enum ibv_mtu *mtu)
{
    for (*mtu = IBV_MTU_256; *mtu <= IBV_MTU_4096; (*mtu)++)
        if (verbs_mtu_bytes(*mtu) == bytes)
            return true;
    return false;
}

/* --- qp.c: registered memory and queue pairs --- */

/**
 * Allocate `bytes` bytes with undefined content, and register them with the port's device.
 *
 * From 256 KiB on the memory is in hugepages where the host has free ones, else in transparent
 * hugepages where the kernel provides them. Returns 0; -ENOMEM: no memory; -EPERM: above the user's
 * limit of locked memory; each with an error message.
 */
int registered_memory_make(struct transport_port *port, size_t bytes,
                           struct registered_memory *memory, struct err *err);
void registered_memory_free(struct transport_port *port, struct registered_memory *memory);
/** Set the error message for a failed registration of memory, by the errno `code` of ibv_reg_mr();
 * return the error's code. */
int registered_memory_error(const char *label, size_t bytes, int code, struct err *err);
/**
 * Ensure that port->payload holds at least `bytes` bytes of payload; no lane may use it now.
 * Returns 0 or a negative errno with an error message.
 */
int verbs_port_payload(struct transport_port *port, size_t bytes, struct err *err);

enum qp_role { QP_SENDER, QP_RECEIVER };

/** Configuration of one end of a queue pair: role, options, and sizes of its ring. */
struct qp_config {
    /** @brief Entry of the port's table; NULL: none (one InfiniBand subnet). */
    const struct ibv_gid_entry *gid;
    struct verbs_qp_options options;
    enum qp_role role;
    uint32_t stream;
    uint32_t mtu;    /**< maximum path MTU in bytes */
    uint32_t slots;  /**< of the ring; 0: none */
    uint32_t stride; /**< of a slot, a multiple of 64 */
};

/** Values that the two ends of a queue pair exchange to connect it. Sent in the layout of this
 * struct. */
struct qp_info {
    uint32_t version;
    uint32_t number;    /**< of the queue pair */
    uint32_t packet;    /**< first packet sequence number, 24 bits */
    uint32_t queue_key; /**< UD */
    uint8_t gid[VERBS_GID_BYTES];
    uint64_t ring;     /**< address of `slots` places for messages, each `stride` bytes */
    uint32_t ring_key; /**< rkey of the ring */
    uint32_t slots;
    uint32_t stride;
    uint16_t lid; /**< InfiniBand */
    uint16_t mtu; /**< bytes, maximum */
};

/** Read the info of a partner's queue pair from its blob; return false if the info has another
 * version or byte order.
 */
bool qp_info_read(struct qp_info *info, const struct blob *blob);
/** Return whether messages of `stride` bytes fit into the places of the ring that a partner's info
 * describes. */
bool qp_info_fits(const struct qp_info *info, uint32_t stride);

/** Registered memory for messages that consist of a header alone: `out` for sending, `in` for
 * receives without a place in the ring. */
struct verbs_control {
    _Alignas(64) struct message_header out;
    _Alignas(64) struct message_header in;
};
static_assert(sizeof(struct verbs_control) == 128, "layout");

/** Receive work request for one place of the ring. */
struct verbs_receive {
    struct ibv_recv_wr work;
    struct ibv_sge place;
};

struct verbs_qp {
    struct transport_port *port;
    struct qp_config config;
    struct ibv_qp *ibv;
    struct ibv_cq *cq;
    struct ibv_ah *ah; /**< UD */
    struct registered_memory memory;
    struct verbs_control *control;
    uint8_t *headers; /**< `depth` headers; NULL: none */
    uint8_t *ring;
    struct verbs_receive *receives; /**< one per place, linked in a circle */
    uint32_t inline_bytes;
    uint32_t packet;    /**< first packet sequence number */
    uint32_t queue_key; /**< UD */
    uint16_t mtu;       /**< negotiated path MTU */
};

/**
 * Make a queue pair in state INIT with its receives posted. Returns 0 or a negative errno with an
 * error message.
 */
int verbs_qp_make(struct verbs_qp **qp, struct transport_port *port, const struct qp_config *config,
                  struct err *err);
/** Free a queue pair's memory at once, and destroy the queue pair later. */
void verbs_qp_free(struct verbs_qp *qp);
/** Write the info of a queue pair for its partner. */
void verbs_qp_describe(const struct verbs_qp *qp, struct qp_info *info);
/** Connect a queue pair to the partner's. Returns 0 or a negative errno with an error message. */
int verbs_qp_connect(struct verbs_qp *qp, const struct qp_info *theirs, struct err *err);
/** Post the receive work requests of `count` places of the ring, from `first` on. Returns 0 or an
 * errno. */
int verbs_qp_post_receives(struct verbs_qp *qp, uint32_t first, uint32_t count);

/** Start a port's thread that destroys queue pairs. Returns 0 or a negative errno. */
int verbs_destroyer_start(struct transport_port *port);
/**
 * Stop the thread that destroys queue pairs: wait up to 2 s until all are destroyed. Return false
 * if some remain; the port must then stay open until the process ends.
 */
bool verbs_destroyer_stop(struct transport_port *port);

/* --- lane.c --- */

struct verbs_lane;

/** End of a stream, with its queue pair and the partner's info. */
struct verbs_end {
    struct message_end base;
    struct verbs_qp *qp;
    struct qp_config config;
    uint32_t stride; /**< bytes per place for its messages, the minimum at the receiver */
    struct qp_info theirs;
    bool connected;    /**< false: our info is sent, and the partner's is awaited */
    bool control_busy; /**< a credit or an end mark is being sent */
    bool failed;
};

/** Return whether a stream's end is at the flow's source, rather than at the flow's destination. */
static inline bool verbs_at_source(const struct verbs_end *end)
{
    return end->base.sends == (end->base.use != MESSAGE_ANSWER);
}

/** Return the rank at the other end of a stream. */
static inline uint32_t verbs_partner(const struct verbs_end *end)
{
    return verbs_at_source(end) ? end->base.flow->dst : end->base.flow->src;
}

/**
 * Sending end of a stream. A message counts as offered when it is completed: with RC when the
 * partner's device has acknowledged it, with UC and UD when it has left this device.
 */
struct verbs_out {
    struct verbs_end end;
    uint64_t done_bytes;   /**< payload bytes of completed messages */
    uint64_t allowed;      /**< messages for which the receiver has given credit */
    uint64_t *bytes_after; /**< payload bytes up to each signalled message; `span` entries */
    uint32_t span;         /**< maximum messages posted and not completed */
    uint32_t next;         /**< index in bytes_after and among the headers */
    uint32_t remote;       /**< place in the receiver's ring */
    uint32_t signal_every; /**< messages */
    uint32_t unsignalled;  /**< messages posted since the last signalled one */
    uint64_t waits;        /**< number of times that messages were due without a free place */
    /** @brief Unreliable services: time at which a credit last arrived, or was given up. */
    int64_t moved_ns;
    /** @brief Header of the messages that are being posted; a member, so that the compiler copies
     * it as one piece. */
    struct message_header header;
    unsigned eofs; /**< end marks posted */
    int64_t eof_ns;
    struct ibv_send_wr works[VERBS_BATCH];   /**< linked */
    struct ibv_sge gathers[2 * VERBS_BATCH]; /**< two per work request */
};

struct verbs_in {
    struct verbs_end end;
    uint32_t place;         /**< place of the ring for the next message */
    uint32_t arrived;       /**< schedules: places from `place` on that wait for their step */
    uint32_t *lengths;      /**< schedules: received bytes by place; NULL: other traffic */
    uint32_t to_post;       /**< receives to be posted again */
    uint32_t to_post_place; /**< first place of the receives to be posted again */
    uint64_t credited;      /**< messages for which the sender has credit */
    int64_t credited_ns;
    int64_t moved_ns;     /**< time of the last message */
    uint64_t total;       /**< messages by the end mark */
    uint32_t total_bytes; /**< bytes by the end mark, modulo 2^32 */
    bool eof_seen;        /**< the end mark has arrived */
};

struct verbs_lane {
    struct message_lane base;
    struct transport_port *port;
    struct verbs_options options; /**< effective: nothing is automatic unless stated */
    uint16_t mtu;                 /**< maximum path MTU */
    uint32_t slots, stride;       /**< ring of a stream of the load */
    uint32_t signal_every;        /**< interval of the load's signalled messages */
    bool events;
    bool armed;            /**< a completion makes the port's channel readable */
    struct ibv_mr *memory; /**< memory of a schedule's rank */
    double payload_share;  /**< payload's share of layer-1 bytes of the load */
    unsigned connected;    /**< index of the first end that is not connected */
    int64_t connecting_since_ns;
    int64_t poll_gap_ns;
};

/** Return the stream end at an index of a lane: first the senders, then the receivers. */
static inline struct verbs_end *verbs_lane_end(const struct verbs_lane *lane, unsigned index)
{
    return (struct verbs_end *)(void *)message_lane_end(&lane->base, index);
}

/* --- stream.c --- */

extern const struct message_hooks verbs_hooks;
/** Set the fields of a sending end that depend on its partner's info; called once the end is
 * connected. */
void verbs_out_connected(struct verbs_out *out);

/**
 * Kind of a completion, stored in the top byte of its work request's id; the other bytes are a
 * count of messages. A receive's id is only its place in the ring, so its kind is 0.
 */
enum verbs_work { VERBS_WORK_RECEIVE, VERBS_WORK_MESSAGE, VERBS_WORK_CONTROL, VERBS_WORK_EOF };
#define VERBS_WORK_SHIFT 56
#define VERBS_WORK_ID(kind, count) ((uint64_t)(kind) << VERBS_WORK_SHIFT | (count))

#endif
