/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief An Ethernet switch as a value: frames in with their times, frames out with theirs.
 *
 * No I/O, no clock, nothing of DPDK's: time is simulated, in nanoseconds that the caller passes in,
 * and everything random comes from the seed, so that the same frames at the same times give the
 * same result. One model is one switch module; modules are joined by trunk ports.
 * doc/developer/switch.md says what each part does, by formula.
 *
 *     wire in -> table, faults -> [fabric of limited capacity] -> queue -> wire out
 *
 * The order of events of one moment is fixed: departures, arrivals (each by port), fabric, frames
 * held back, PAUSE renewals, matching.
 *
 * @see doc/developer/switch.md; IEEE 802.1Q, 8.6 and 8.8; IEEE 802.3, annex 31B
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include "err.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define MODEL_PORTS_MAX 64
#define MODEL_STEPS_MAX 16
#define MODEL_FAULTS_MAX 256
#define MODEL_FLOWS_MAX 65536
#define MODEL_TABLE_MAX (1u << 20)
#define MODEL_NEVER INT64_MAX
#define MODEL_FLOOD 0xfe /**< in place of an output: all ports but the source's */
#define MODEL_NO_PORT (-1)

/**
 * @brief What a frame costs on the wire: FCS 4, preamble and start delimiter 8, gap 12 (IEEE
 * 802.3).
 */
#define MODEL_FCS 4
#define MODEL_LAYER1 20
#define MODEL_SIZE_MIN 64

struct model;
struct model_flow;

/**
 * @brief The caller owns the memory; between model_receive() and `leave` or `release` the model
 * owns the frame.
 *
 * It fits in one cache line, so that a packet's headroom can hold it.
 */
struct model_frame {
    struct model_frame *next; /**< the model's, until the frame has left; then the caller's */
    uint8_t *data;            /**< destination address first; set by the caller */
    void *host;               /**< the caller's */
    struct model_flow *flow;  /**< the model's, up to the end */
    int64_t time_ns;
    uint32_t length; /**< without FCS; set by the caller */
    uint16_t marks;
    uint8_t in;
    uint8_t out;   /**< the port by which it leaves */
    uint8_t meant; /**< the port by which it was to leave, or MODEL_FLOOD */
};
static_assert(sizeof(struct model_frame) <= 64, "one cache line");

/** @brief What the model needs of its surroundings. */
struct model_host {
    void *context;
    /** @brief A frame of that length for the model to fill; NULL: no memory. */
    struct model_frame *(*make)(void *context, uint32_t length);
    void (*release)(void *context, struct model_frame *frame);
    /** @brief The frame's last bit left by frame->out at `at_ns`; the caller owns it again. */
    void (*leave)(void *context, struct model_frame *frame, int64_t at_ns);
};

/**
 * @brief A rate by the number of active ports, linear between the steps and constant outside; one
 * step is a constant, none is no limit.
 *
 * `ports` ascend.
 */
struct model_rates {
    struct model_step {
        uint32_t ports;
        uint64_t bps; /**< layer 1 */
    } step[MODEL_STEPS_MAX];
    unsigned step_count;
};

enum model_queueing { MODEL_OUTPUT, MODEL_INPUT, MODEL_VOQ };

struct model_port_conf {
    const char *name;
    uint64_t rate_bps; /**< layer 1; 0: no limit, or a trunk's `senders` */
    bool trunk; /**< another module's port: what comes was shaped by that one's rate already */
    struct model_rates
        senders;              /**< of a trunk: its rate by the number of ports that send over it */
    uint64_t buffer_bytes;    /**< 0: the switch's */
    uint32_t vlan;            /**< two ports have one VLAN to themselves; 0: none */
    const char *cable;        /**< the port at the other end of its cable; NULL: what follows */
    const char *vdev, *iface; /**< the caller's: what is plugged in; neither: nothing */
};

/* The kinds, and their words in a description. Dead and slow are a port's, the others a frame's. */
/* clang-format off */
#define MODEL_FAULT_KINDS(X)                                                                       \
    X(DROP, "drop") X(DUPLICATE, "duplicate") X(REORDER, "reorder") X(CORRUPT, "corrupt")          \
    X(WRONG_PORT, "wrong-port") X(FLOOD, "flood") X(DEAD, "dead") X(SLOW, "slow")
/* clang-format on */
#define MODEL_FAULT_ENUM(kind, word) MODEL_FAULT_##kind,
enum model_fault_kind { MODEL_FAULT_KINDS(MODEL_FAULT_ENUM) MODEL_FAULTS };

/**
 * @brief Strikes one in `one_in` of the frames that fit, by its own random numbers.
 *
 * Of several faults that fit, the first that strikes takes the frame.
 */
struct model_fault_conf {
    enum model_fault_kind kind;
    uint32_t one_in;  /**< at least 1 */
    uint64_t at_most; /**< strikes; 0: any number */
    /** @brief Which frames: all that are set must fit. Ports by their names; NULL: any. */
    const char *in, *out;
    bool measured; /**< only frames that bear a sound signature */
    /** @brief How. */
    uint32_t displacement;          /**< reorder: so many later frames of its flow go first */
    uint32_t hold_ms;               /**< ... or as many as come in this time */
    uint32_t first_byte, last_byte; /**< corrupt: where the bit lies; last 0: the end */
    const char *to;                 /**< wrong port: which; NULL: any, at random */
    const char *port;               /**< dead, slow */
    uint64_t rate_bps;              /**< slow */
};

/** @brief A description, as its document has it (doc/developer/switch.md). */
struct model_conf {
    uint64_t seed;
    struct model_port_conf *ports; /**< 2 to MODEL_PORTS_MAX */
    unsigned port_count;
    uint32_t mtu;
    enum model_queueing queueing;
    uint64_t
        buffer_bytes; /**< of each output (queueing input, voq: each input), or of all together */
    bool shared;
    uint32_t recovery_ms; /**< an output that overflowed drops all for so long behind it; 0: none */
    bool drop_undersize;  /**< frames below 64 bytes, which a link without padding may bring */
    uint64_t input_bytes; /**< before a fabric of limited capacity, each port */
    struct model_rates capacity; /**< the module's, by its active ports */
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
    bool by_tag; /**< flows are told apart by their signature's tag too (one a phase) */
    struct model_fault_conf *faults; /**< MODEL_FAULTS_MAX at most */
    unsigned fault_count;
};

/** @brief Why a frame did not leave. */
enum model_drop {
    MODEL_DROP_QUEUE,    /**< no room in the queue */
    MODEL_DROP_INPUT,    /**< no room before the fabric */
    MODEL_DROP_FAULT,    /**< planted */
    MODEL_DROP_DEAD,     /**< planted: its port is dead */
    MODEL_DROP_SIZE,     /**< longer than the MTU allows, or too short */
    MODEL_DROP_FILTERED, /**< nowhere to go: the destination is where it came from */
    MODEL_DROP_RECOVERY, /**< its output overflowed shortly before */
    MODEL_DROP_RESET,    /**< the switch was reset */
    MODEL_DROP_MEMORY,   /**< no memory for a copy: the host's doing */
    MODEL_DROP_HOST,     /**< the device behind the port took no more: the host's doing */
    MODEL_DROP_LINK,     /**< no station is plugged in */
    MODEL_DROPS
};

/** @brief received + copies = delivered + astray + dropped + what is still inside. */
struct model_counts {
    uint64_t received, received_bytes;   /**< bytes with FCS */
    uint64_t delivered, delivered_bytes; /**< left by the destination's port, or flooded: by all */
    uint64_t astray;                     /**< left by another port */
    uint64_t copies;                     /**< made by duplication and flooding */
    uint64_t dropped[MODEL_DROPS];
    uint64_t flooded; /**< frames, not copies: their destination was not known, or planted */
    /** @brief Planted, and left the switch: */
    uint64_t duplicated, reordered, corrupted, misdelivered;
};

struct model_flow {
    uint64_t key[2];
    struct model_counts counts;
    uint32_t held; /**< frames of it that are held back */
};

/** @brief Whose counts these are. */
struct model_flow_name {
    uint64_t source, destination; /**< addresses */
    unsigned in;
    unsigned out; /**< a port or MODEL_FLOOD: where it was to go */
    bool tagged;
    uint16_t tag;
};

struct model_port_truth {
    uint64_t received, received_bytes;
    uint64_t sent, sent_bytes;
    uint64_t dropped[MODEL_DROPS];
    uint64_t pause_sent, pause_received, control_received;
    uint64_t queue_high_bytes; /**< high-water mark of the output's queue */
    uint64_t input_high_bytes; /**< of what came by this port and was inside */
    uint64_t queue_bytes;      /**< in the output's queue now */
    uint64_t input_bytes;      /**< that came by this port and are inside now */
};

struct model_fault_truth {
    uint64_t fitting; /**< frames that it could have struck */
    uint64_t struck;
};

struct model_table_truth {
    uint64_t entries, learned, moved, aged, refused_full, refused_rate;
};

/**
 * @brief Read six bytes as a number: the first is the most significant.
 *
 * @param at Six bytes.
 * @return Address, 48 bits.
 */
static inline uint64_t model_mac(const uint8_t *at)
{
    uint64_t mac = 0;

    for (unsigned i = 0; i < 6; i++)
        mac = mac << 8 | at[i];
    return mac;
}

/**
 * @brief Check a description.
 *
 * @param conf Description.
 * @param err Takes the sentence of a failure; unchanged on success.
 * @return 0; -EINVAL with what is wrong.
 */
int model_check(const struct model_conf *conf, struct err *err);

/**
 * @brief Make a switch.
 *
 * @param model Takes the switch.
 * @param conf Description that model_check() accepts, with all that it points to; must outlive the
 *        switch.
 * @param host What the model needs of its surroundings; must outlive it.
 * @param now_ns Where its time begins, ns.
 * @return 0; -ENOMEM.
 */
int model_open(struct model **model, const struct model_conf *conf, const struct model_host *host,
               int64_t now_ns);
/**
 * @brief Close the switch; releases the frames that are inside.
 *
 * @param model Switch.
 */
void model_close(struct model *model);

/**
 * @brief Take a frame from the station at a port: it begins on the wire when the wire is free, but
 * not before the model's own time.
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
 * @brief Return when the next frame from this station could begin: later while one is on the wire,
 * or the station has been told to pause.
 *
 * @param model Switch.
 * @param port Port, from 0.
 * @return Time of the model, ns.
 */
int64_t model_wire_free(const struct model *model, unsigned port);

/**
 * @brief Let everything happen that is due.
 *
 * @param model Switch.
 * @param until_ns Time of the model, ns.
 */
void model_run(struct model *model, int64_t until_ns);

/**
 * @brief Return when something will happen next.
 *
 * @param model Switch.
 * @return Time of the model, ns; MODEL_NEVER: when a frame comes.
 */
int64_t model_next(const struct model *model);

/**
 * @brief Take back that a frame left, after `leave`: the device did not take it (MODEL_DROP_HOST),
 * or there is none (MODEL_DROP_LINK).
 *
 * The frame stays the caller's.
 *
 * @param model Switch.
 * @param frame Frame.
 * @param why MODEL_DROP_HOST or MODEL_DROP_LINK.
 */
void model_refused(struct model *model, const struct model_frame *frame, enum model_drop why);

/**
 * @brief Reset the switch: it forgets its addresses, drops what waits at its outputs (queueing
 * output), and all that comes for a while.
 *
 * @param model Switch.
 * @param down_ns How long the switch takes nothing, ns.
 */
void model_reset(struct model *model, int64_t down_ns);

/**
 * @brief Set all counts to zero, high-water marks to the present, faults to their seeds; for a
 * model with nothing inside.
 *
 * @param model Switch.
 */
void model_clear(struct model *model);

/** @brief All that a switch has counted; the model's, and true until it runs again. */
struct model_truth {
    const struct model_flow *flows;
    unsigned flow_count;           /**< MODEL_FLOWS_MAX at most */
    const struct model_flow *rest; /**< the flows beyond these together; they have no name */
    /** @brief Flows with frames that left by a wrong port, by that port: `out` is where they left
     * by, and of the counts `misdelivered` alone is kept. */
    const struct model_flow *wrong;
    unsigned wrong_count;
    const struct model_port_truth *ports;
    const struct model_fault_truth *faults; /**< by their places in the description */
    const struct model_table_truth *table;
    uint64_t inside; /**< frames */
};

/**
 * @brief Return what a switch has counted.
 *
 * @param model Switch.
 * @return Counts.
 */
struct model_truth model_truth(const struct model *model);
/**
 * @brief Return whose counts a flow has.
 *
 * @param flow Flow.
 * @return Name.
 */
struct model_flow_name model_flow_name(const struct model_flow *flow);
extern const char *const model_drop_names[MODEL_DROPS];
extern const char *const model_fault_names[MODEL_FAULTS + 1]; /* NULL at the end */

#endif
