/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the parts of a model share: its state, and what one part asks of another. Not for callers.
 * Each part asks those above it here: table.c, queues.c, faults.c, and switch.c all of them.
 */
#ifndef MODEL_INSIDE_H
#define MODEL_INSIDE_H

#include "event_queue.h"
#include "model.h"
#include "prng.h"

#include <stddef.h>
#include <string.h>

/* The address table: which port a station was last heard on. It holds a limited number of
 * addresses, learns so many a second at most, and forgets one that was silent for the ageing time.
 * A full table learns nothing new: frames to the others are flooded. */
struct table_entry {
    uint64_t key; /* address << 16 | TABLE_USED | port; 0: free */
    int64_t seen_ns;
};

struct table {
    const struct model_table_conf *conf;
    struct table_entry *entries;
    struct table_entry *spare; /* for sweeping */
    uint32_t mask;
    int64_t ageing_ns;
    int64_t learn_gap_ns;
    int64_t next_learn_ns;
    int64_t oldest_ns; /* no entry was seen before */
    struct model_table_truth truth;
};

/* The flows that a switch has seen, with their counts. A flow is known by its addresses, the port
 * it came in by, the port it was to leave by and, where flows are told apart by phase, its tag.
 * Those beyond the first MODEL_FLOWS_MAX are counted together. Flows stay where they are in memory:
 * frames point to them. */
struct flows {
    struct model_flow all[MODEL_FLOWS_MAX + 1]; /* the last: all that have no place of their own */
    uint32_t count;
    struct model_flow *places[2 * MODEL_FLOWS_MAX]; /* open addressing */
};

#define NS_PER_MS INT64_C(1000000)
#define RATE_SHIFT 20 /* times of bytes are in 2^-20 ns */
#define TYPE_VLAN 0x8100
#define VLAN_TAG 4
#define HOLDS_MAX 1024

enum mark {
    MARK_STORED = 1 << 0, /* its bytes are counted in its input's share of the buffer */
    MARK_FLOODED = 1 << 1,
    MARK_DUPLICATE = 1 << 2,
    MARK_REORDERED = 1 << 3,
    MARK_CORRUPTED = 1 << 4,
    MARK_WRONG = 1 << 5,
};

struct fifo {
    struct model_frame *first;
    struct model_frame *last;
};

/* One thing at a time: a wire or a fabric, and when it is free. */
struct server {
    uint64_t byte_time; /* in 2^-20 ns; 0: no time */
    int64_t free_ns;
    uint64_t rest; /* the fraction of free_ns */
};

struct input {
    struct fifo arriving; /* on the wire */
    struct server wire;
    int64_t paused_until_ns; /* its station is */
    int64_t active_ns;       /* of the last frame */
    struct fifo waiting;     /* before the fabric; queueing input: all; voq: unused */
    uint64_t waiting_bytes;
    bool xoff;        /* the station has been told to pause */
    int64_t renew_ns; /* ... and is to be told again */
};

struct output {
    struct fifo queue;
    int64_t load_ns;     /* when all that came would have left, had nothing been dropped late */
    int64_t recovers_ns; /* it drops all until then */
    struct server wire;
    struct model_frame *sending;
    int64_t paused_until_ns;
    bool control_waits; /* a PAUSE frame of `control_quanta` is to go first */
    bool control_leaves;
    uint16_t control_quanta;
    uint64_t bps;        /* at present; 0: no limit */
    uint64_t most_bytes; /* in the queue */
    uint64_t from;       /* queueing input and voq: the inputs that have a frame for it */
    unsigned grant;      /* ... the input that comes first */
    int64_t over_ns[MODEL_PORTS_MAX]; /* a trunk: when each input last had a frame for it */
};

struct fault {
    int in, out, to; /* ports; MODEL_NO_PORT: any */
    uint64_t random;
};

struct hold {
    struct model_frame *frame;
    unsigned out;
    uint32_t left; /* frames that may still go first */
    bool overtaken;
    int64_t until_ns;
};

struct model {
    struct event_queue event_queue;
    int64_t now_ns;
    int64_t down_until_ns; /* it is reset */
    const struct model_conf *conf;
    const struct model_host *host;
    unsigned ports;
    uint64_t flood_mask; /* the ports that a flooded frame leaves by */
    uint64_t dead;
    int vlan_peer[MODEL_PORTS_MAX];  /* the other port of its VLAN, or MODEL_NO_PORT */
    int cable_peer[MODEL_PORTS_MAX]; /* the port at the other end of its cable, or MODEL_NO_PORT */
    uint64_t shared_bytes;           /* in all queues */
    uint64_t inside;                 /* frames */
    bool reads_tags;                 /* something depends on a frame's signature */

    struct server fabric;
    bool has_fabric;
    struct model_frame *in_fabric;
    uint64_t fabric_waits; /* inputs with frames before the fabric */
    unsigned fabric_next;
    uint64_t capacity_bps;
    unsigned active;
    int64_t recount_ns;
    int64_t offered_from_ns; /* the present window of collapse */
    uint64_t offered_bytes;
    double line_bytes; /* that all ports carry in such a window */
    uint64_t line_bps;
    bool collapsed;

    uint64_t inputs_free; /* the crossbar's */
    uint64_t outputs_free;
    uint64_t wanted; /* outputs whose `from` is not empty */
    unsigned match_first;
    struct fifo voq[MODEL_PORTS_MAX][MODEL_PORTS_MAX]; /* [input][output] */

    struct fault faults[MODEL_FAULTS_MAX];
    struct model_fault_truth fault_truth[MODEL_FAULTS_MAX];
    struct hold holds[HOLDS_MAX];
    unsigned hold_count;

    struct table table;
    struct flows flows;
    struct flows wrong; /* flows by the wrong port that frames of theirs left by */
    struct model_flow *last_flow[MODEL_PORTS_MAX]; /* by input: frames come in trains */
    struct input inputs[MODEL_PORTS_MAX];
    struct output outputs[MODEL_PORTS_MAX];
    struct model_port_truth truth[MODEL_PORTS_MAX];
};

/* --- who acts at a moment, in this order: outputs, inputs, and these --- */

enum agent { AGENT_FABRIC, AGENT_HOLDS, AGENT_RENEW, AGENT_MATCH, AGENTS };
static_assert(2 * MODEL_PORTS_MAX + AGENTS <= EVENT_QUEUE_MAX, "all agents have a place");

static inline unsigned agent_input(const struct model *model, unsigned port)
{
    return model->ports + port;
}

static inline unsigned agent_of(const struct model *model, enum agent agent)
{
    return 2 * model->ports + agent;
}

static inline void wake(struct model *model, unsigned agent, int64_t time_ns)
{
    event_queue_set(&model->event_queue, agent, time_ns);
}

/* --- frames --- */

static inline void fifo_push(struct fifo *fifo, struct model_frame *frame)
{
    frame->next = NULL;
    if (fifo->first == NULL)
        fifo->first = frame;
    else
        fifo->last->next = frame;
    fifo->last = frame;
}

static inline struct model_frame *fifo_pop(struct fifo *fifo)
{
    struct model_frame *frame = fifo->first;

    if (frame != NULL) {
        fifo->first = frame->next;
        frame->next = NULL;
    }
    return frame;
}

/* Size as people count it: with FCS. */
static inline uint32_t frame_size(const struct model_frame *frame)
{
    return frame->length + MODEL_FCS;
}

/* Bytes that it takes of a wire. */
static inline uint32_t wire_bytes(const struct model_frame *frame)
{
    uint32_t size = frame_size(frame);

    return (size < MODEL_SIZE_MIN ? MODEL_SIZE_MIN : size) + MODEL_LAYER1;
}

static inline uint16_t big_endian(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

/* Six bytes as model_mac() reads them; two bytes behind them are read too. */
static inline uint64_t mac_at(const uint8_t *at)
{
    uint64_t eight;

    memcpy(&eight, at, 8);
    return __builtin_bswap64(eight) >> 16;
}

static inline bool is_group(uint64_t mac)
{
    return (mac >> 40 & 1) != 0;
}

static inline uint64_t bit(unsigned port)
{
    return (uint64_t)1 << port;
}

/* The lowest bit at or above `from`, else the lowest at all. `set` is not empty. */
static inline unsigned next_bit(uint64_t set, unsigned from)
{
    uint64_t behind = from < 64 ? set >> from << from : 0;

    return (unsigned)__builtin_ctzll(behind != 0 ? behind : set);
}

/* --- servers --- */

static inline uint64_t byte_time(uint64_t bps)
{
    return bps > 0 ? (uint64_t)(8e9 * (1 << RATE_SHIFT) / (double)bps + 0.5) : 0;
}

/* Serves so many bytes from `start_ns` on, or as soon as it is free. Returns when it is done. */
static inline int64_t serve(struct server *server, int64_t start_ns, uint32_t bytes)
{
    uint64_t time;

    if (start_ns > server->free_ns) {
        server->free_ns = start_ns;
        server->rest = 0;
    }
    time = server->rest + bytes * server->byte_time;
    server->free_ns += (int64_t)(time >> RATE_SHIFT);
    server->rest = time & ((1 << RATE_SHIFT) - 1);
    return server->free_ns;
}

/* --- table.c --- */

int table_open(struct table *table, const struct model_table_conf *conf);
void table_close(struct table *table);

/* Forgets all stations. */
void table_clear(struct table *table);

/* The station `mac` was heard on `port`. */
void table_learn(struct table *table, uint64_t mac, unsigned port, int64_t now_ns);

/* Its port, or MODEL_NO_PORT. */
int table_find(const struct table *table, uint64_t mac, int64_t now_ns);

/* The flow of that key, made when it is new; the rest when there is no place. */
struct model_flow *flows_get(struct flows *flows, const uint64_t key[2]);

void flows_key(uint64_t key[2], const struct model_flow_name *name);

/* All counts to zero. */
void flows_clear(struct flows *flows);

/* The port of that name; MODEL_NO_PORT: none, or no name. */
int model_port(const struct model_conf *conf, const char *name);

/* --- queues.c --- */

/* A copy of a frame, NULL when there is no memory. */
struct model_frame *frame_copy(struct model *model, const struct model_frame *frame);
void frame_drop(struct model *model, struct model_frame *frame, enum model_drop why);
/* Towards one output; false: it was dropped. */
bool frame_admit(struct model *model, struct model_frame *frame, unsigned out);
/* Towards all ports but its source's. */
void frame_flood(struct model *model, struct model_frame *frame);

/* An output drops what waits. */
void output_empty(struct model *model, unsigned port, enum model_drop why);
void output_act(struct model *model, unsigned port);

/* The module's capacity. */
void fabric_open(struct model *model);
void fabric_act(struct model *model);
/* A frame came in: the offered load, the active ports. */
void fabric_note(struct model *model, unsigned in, uint32_t bytes);
uint64_t rates_at(const struct model_rates *rates, unsigned active);

/* Queueing at the inputs. */
void crossbar_act(struct model *model);

void pause_act(struct model *model);
/* Takes frames to the addresses that no bridge forwards (IEEE 802.1Q 8.6.3). True: it was one. */
bool consume_control(struct model *model, struct model_frame *frame);

/* --- faults.c --- */

int faults_check(const struct model_conf *conf, struct err *err);
void faults_open(struct model *model);
void faults_clear(struct model *model);
/* The frame's tag, if it bears a sound signature. */
bool frame_tag(const struct model_frame *frame, uint16_t *tag);
/* As frame_admit(), or to all ports with MODEL_FLOOD; frames that it overtakes by that are let go.
 */
void frame_forward(struct model *model, struct model_frame *frame, unsigned out);
/* True: a fault has taken the frame. */
bool apply_faults(struct model *model, struct model_frame *frame, unsigned out, bool measured);
void faults_act(struct model *model);

#endif
