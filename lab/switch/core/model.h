/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Simulated Ethernet switch: the caller passes in frames with their arrival times, and gets
 * these frames back with their departure times.
 *
 * No I/O, no clock and no DPDK: time is simulated, in nanoseconds that the caller passes in, and
 * all randomness comes from the seed, so that the same frames at the same times give the same
 * result. One model is one switch module; modules are joined by trunk ports.
 * doc/developer/switch.md describes each part by formula.
 *
 * @code{.unparsed}
 * wire in -> table, faults -> [fabric of limited capacity] -> queue -> wire out
 * @endcode
 *
 * Events of one time have a fixed order: departures, arrivals (each by port), fabric, held frames,
 * PAUSE renewals, matching.
 *
 * @see doc/developer/switch.md; IEEE 802.1Q, 8.6 and 8.8; IEEE 802.3, annex 31B
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "err.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MODEL_PORTS_MAX 64
#define MODEL_FAULTS_MAX 256
#define MODEL_FLOWS_MAX 65536
#define MODEL_TABLE_MAX (1u << 20)
#define MODEL_NEVER INT64_MAX
#define MODEL_FLOOD 0xfe /**< in place of an output: all ports except the source's */
#define MODEL_NO_PORT (-1)

/**
 * @brief Bytes of a frame on the wire besides its data: FCS 4, preamble and start delimiter 8, gap
 * 12 (IEEE 802.3).
 */
#define MODEL_FCS 4
#define MODEL_LAYER1 20
#define MODEL_SIZE_MIN 64

struct model;
struct model_flow;

/**
 * @brief Frame of a model; the caller owns its memory, and the model owns the frame from
 * model_receive() until `leave` or `release`.
 *
 * The struct fits in one cache line, so that a packet's headroom can hold it.
 */
struct model_frame {
    struct model_frame *next; /**< used by the model until the frame has left, then by the caller */
    uint8_t *data;            /**< destination address first; set by the caller */
    void *host;               /**< the caller's */
    struct model_flow *flow;  /**< used by the model until the frame has left */
    int64_t time_ns;
    uint32_t length; /**< without FCS; set by the caller */
    uint16_t marks;
    uint8_t in;
    uint8_t out;   /**< actual output port */
    uint8_t meant; /**< intended output port, or MODEL_FLOOD */
};
static_assert(sizeof(struct model_frame) <= 64, "one cache line");

/** @brief Functions that the model calls for memory and for frames that leave. */
struct model_host {
    void *context;
    /** @brief Allocate a frame of a given length, which the model fills; return NULL if there is no
     * memory. */
    struct model_frame *(*make)(void *context, uint32_t length);
    void (*release)(void *context, struct model_frame *frame);
    /**
     * @brief Take over a frame whose last bit left by the port frame->out at the time `at_ns`; the
     * model no longer owns the frame.
     */
    void (*leave)(void *context, struct model_frame *frame, int64_t at_ns);
};

enum model_queueing { MODEL_OUTPUT, MODEL_INPUT, MODEL_VOQ };

struct model_port_conf {
    const char *name;
    uint64_t rate_bps; /**< layer 1; 0: no limit */
    bool trunk;        /**< port to another module, whose output has already shaped the frames */
    uint64_t buffer_bytes;    /**< 0: the switch's value */
    uint32_t vlan;            /**< VLAN of exactly two ports; 0: none */
    const char *cable;        /**< port at the cable's other end; NULL: a device below */
    const char *vdev, *iface; /**< devices of the caller at the port; both NULL: none */
};

/* Kinds of faults, and their words in a description. Dead and slow affect a port, the others
 * frames. */
/* clang-format off */
#define MODEL_FAULT_KINDS(X)                                                                       \
    X(DROP, "drop") X(DUPLICATE, "duplicate") X(REORDER, "reorder") X(CORRUPT, "corrupt")          \
    X(WRONG_PORT, "wrong-port") X(FLOOD, "flood") X(DEAD, "dead") X(SLOW, "slow")
/* clang-format on */
#define MODEL_FAULT_ENUM(kind, word) MODEL_FAULT_##kind,
enum model_fault_kind { MODEL_FAULT_KINDS(MODEL_FAULT_ENUM) MODEL_FAULTS };

/**
 * @brief Planted fault, which affects one in `one_in` matching frames by its own random numbers.
 *
 * Where several faults match a frame, the first that strikes takes the frame.
 */
struct model_fault_conf {
    enum model_fault_kind kind;
    uint32_t one_in;  /**< at least 1 */
    uint64_t at_most; /**< maximum frames; 0: any number */
    /**
     * @brief Conditions under which a fault matches a frame; all must hold. Ports are given by
     * name; NULL: any port.
     */
    const char *in, *out;
    bool measured; /**< only frames with a valid signature */
    /** @brief Effect of a planted fault on a frame or port. */
    uint32_t displacement; /**< reorder: number of later frames of the flow that pass first */
    uint32_t hold_ms;      /**< reorder: time limit of the wait for them */
    const char *to;        /**< wrong port: the port; NULL: any, at random */
    const char *port;      /**< dead, slow */
    uint64_t rate_bps;     /**< slow */
};

/** @brief Configuration of a switch, as its document describes it (doc/developer/switch.md). */
struct model_conf {
    uint64_t seed;
    struct model_port_conf *ports; /**< 2 to MODEL_PORTS_MAX */
    unsigned port_count;
    uint32_t mtu;
    enum model_queueing queueing;
    /**
     * @brief Buffer of each output (queueing input, voq: of each input), or of all ports
     * together.
     */
    uint64_t buffer_bytes;
    bool shared;
    /** @brief Time for which an output drops all frames after its queue overflowed, ms; 0: none. */
    uint32_t recovery_ms;
    bool drop_undersize;  /**< drop frames below 64 bytes, which a link without padding may carry */
    uint64_t input_bytes; /**< of each port, before a fabric of limited capacity */
    uint64_t capacity_bps; /**< capacity of the module, layer 1; 0: no limit */
    struct model_collapse_conf {
        double above, to, recover; /**< % of the sum of all ports' rates; above 0: none */
        uint32_t window_ms;
    } collapse;
    struct model_table_conf {
        uint32_t size;        /**< 1 to MODEL_TABLE_MAX */
        uint32_t learn_per_s; /**< 0: any number */
        uint32_t ageing_ms;
    } table;
    int64_t latency_ns;
    struct model_pause_conf {
        bool send;
        uint64_t high_bytes, low_bytes;
    } pause;
    bool by_tag; /**< flows are also distinguished by their signature's tag (one per phase) */
    struct model_fault_conf *faults; /**< at most MODEL_FAULTS_MAX */
    unsigned fault_count;
};

/** @brief Reason for which a frame was dropped. */
enum model_drop {
    MODEL_DROP_QUEUE,    /**< no room in the queue */
    MODEL_DROP_INPUT,    /**< no room before the fabric */
    MODEL_DROP_FAULT,    /**< planted fault */
    MODEL_DROP_DEAD,     /**< planted fault: dead port */
    MODEL_DROP_SIZE,     /**< longer than the MTU allows, or too short */
    MODEL_DROP_FILTERED, /**< no output: the destination is at the input port */
    MODEL_DROP_RECOVERY, /**< its output overflowed shortly before */
    MODEL_DROP_RESET,    /**< the switch was reset */
    MODEL_DROP_MEMORY,   /**< no memory for a copy, a fault of the host */
    MODEL_DROP_HOST,     /**< the device at the port took no more, a fault of the host */
    MODEL_DROP_LINK,     /**< no station is connected */
    MODEL_DROPS
};

/** @brief Counts of frames: received + copies = delivered + astray + dropped + still inside. */
struct model_counts {
    uint64_t received, received_bytes;   /**< bytes with FCS */
    uint64_t delivered, delivered_bytes; /**< left by the intended port, or flooded: by all */
    uint64_t astray;                     /**< left by another port */
    uint64_t copies;                     /**< made by duplication and flooding */
    uint64_t dropped[MODEL_DROPS];
    uint64_t flooded; /**< frames, not copies, with an unknown destination or a planted flood */
    /** @brief Counts of frames that left the switch with the effect of a planted fault. */
    uint64_t duplicated, reordered, corrupted, misdelivered;
};

struct model_flow {
    uint64_t key[2];
    struct model_counts counts;
    uint32_t held; /**< its frames that are held back */
};

/** @brief Identity of a flow in the modelled switch: addresses, ports and tag. */
struct model_flow_name {
    uint64_t source, destination; /**< addresses */
    unsigned in;
    unsigned out; /**< intended output, a port or MODEL_FLOOD */
    bool tagged;
    uint16_t tag;
};

struct model_port_truth {
    uint64_t received, received_bytes;
    uint64_t sent, sent_bytes;
    uint64_t dropped[MODEL_DROPS];
    uint64_t pause_sent, pause_received, control_received;
    uint64_t queue_bytes; /**< bytes now in the output's queue */
    uint64_t input_bytes; /**< bytes now inside that arrived by this port */
};

struct model_fault_truth {
    uint64_t fitting; /**< matching frames */
    uint64_t struck;
};

struct model_table_truth {
    uint64_t entries, learned, moved, aged, refused_full, refused_rate;
};

/**
 * @brief Convert six bytes of an address to a number, most significant byte first.
 *
 * @param at Six bytes; the two bytes behind them are read, too.
 * @return Address, 48 bits.
 */
static inline uint64_t model_mac(const uint8_t *at)
{
    uint64_t eight;

    memcpy(&eight, at, 8);
    return __builtin_bswap64(eight) >> 16;
}

/**
 * @brief Check a switch's configuration.
 *
 * @param conf Description.
 * @param[out] err Error message, set on failure; unchanged on success.
 * @return 0; -EINVAL with an error message.
 */
int model_check(const struct model_conf *conf, struct err *err);

/**
 * @brief Make a switch from a checked configuration.
 *
 * @param[out] model Switch.
 * @param conf Description that model_check() accepts, with all that it points to; must outlive the
 *        switch.
 * @param host Functions that the model calls; must outlive the switch.
 * @param now_ns Begin of the model's time, ns.
 * @return 0; -ENOMEM.
 */
int model_open(struct model **model, const struct model_conf *conf, const struct model_host *host,
               int64_t now_ns);
/**
 * @brief Close a switch and release the frames inside.
 *
 * @param model Switch.
 */
void model_close(struct model *model);

/**
 * @brief Take a frame from the station at a port. The frame begins on the wire when the wire is
 * free, but not before the model's present time.
 *
 * The model owns the frame from now on.
 *
 * @param model Switch.
 * @param port Port, from 0.
 * @param frame Frame.
 * @param earliest_ns The frame begins on the wire at this time of the model at the earliest, ns.
 */
void model_receive(struct model *model, unsigned port, struct model_frame *frame,
                   int64_t earliest_ns);

/**
 * @brief Return the earliest time at which the next frame of the station at a port can begin on the
 * wire: after the frame that is on the wire now, and after a PAUSE.
 *
 * @param model Switch.
 * @param port Port, from 0.
 * @return Time of the model, ns.
 */
int64_t model_wire_free(const struct model *model, unsigned port);

/**
 * @brief Process all events of a switch that are due until a time.
 *
 * @param model Switch.
 * @param until_ns Time of the model, ns.
 */
void model_run(struct model *model, int64_t until_ns);

/**
 * @brief Return the time of a switch's next event.
 *
 * @param model Switch.
 * @return Time of the model, ns; MODEL_NEVER: no event until a frame arrives.
 */
int64_t model_next(const struct model *model);

/**
 * @brief Count as dropped a frame that the model passed to `leave` but that was not sent: the
 * device did not take the frame (MODEL_DROP_HOST), or the port has no device (MODEL_DROP_LINK).
 *
 * The frame stays the caller's.
 *
 * @param model Switch.
 * @param frame Frame.
 * @param why MODEL_DROP_HOST or MODEL_DROP_LINK.
 */
void model_refused(struct model *model, const struct model_frame *frame, enum model_drop why);

/**
 * @brief Reset a switch: remove its learned addresses, drop waiting frames (queueing output), and
 * drop all frames that arrive for a while.
 *
 * @param model Switch.
 * @param down_ns Time for which the switch drops all arriving frames, ns.
 */
void model_reset(struct model *model, int64_t down_ns);

/**
 * @brief Reset the counts of a switch to zero, and the random numbers of its faults to their seeds.
 * No frame may be inside the switch.
 *
 * @param model Switch.
 */
void model_clear(struct model *model);

/** @brief Counts of a switch; the model owns them, and they are valid until it runs again. */
struct model_truth {
    const struct model_flow *flows;
    unsigned flow_count;           /**< at most MODEL_FLOWS_MAX */
    const struct model_flow *rest; /**< sum of all further flows, without a name */
    /**
     * @brief Flows of which frames left by a wrong port, one entry per flow and wrong port: `out`
     * is the wrong port, and only the count `misdelivered` is set.
     */
    const struct model_flow *wrong;
    unsigned wrong_count;
    const struct model_port_truth *ports;
    const struct model_fault_truth *faults; /**< in the order of the configuration */
    const struct model_table_truth *table;
    uint64_t inside; /**< frames */
};

/**
 * @brief Return the counts of a switch.
 *
 * @param model Switch.
 * @return Counts.
 */
struct model_truth model_truth(const struct model *model);
/**
 * @brief Return the addresses, ports and tag of a flow.
 *
 * @param flow Flow.
 * @return Name.
 */
struct model_flow_name model_flow_name(const struct model_flow *flow);
extern const char *const model_drop_names[MODEL_DROPS];
extern const char *const model_fault_names[MODEL_FAULTS + 1]; /* ends with NULL */

#endif
