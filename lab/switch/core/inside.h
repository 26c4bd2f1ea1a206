/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Internal state of a model and functions between its parts; not for callers. A part calls only
 * parts above it in this header: table.c, queues.c, faults.c; switch.c calls all.
 */
#ifndef MODEL_INSIDE_H
#define MODEL_INSIDE_H

#include "event_queue.h"
#include "model.h"
#include "prng.h"

#include <stddef.h>

/* Address table: the port at which each station's frames arrived last. The table holds a limited
 * number of addresses, learns a limited number per second, and removes an address after the
 * ageing time without frames. A full table learns nothing new: frames to other addresses are
 * flooded. */
struct table_entry {
    uint64_t key; /* address << 16 | TABLE_USED | port; 0: free */
    int64_t seen_ns;
};

struct table {
    const struct model_table_conf *conf;
    struct table_entry *entries;
    struct table_entry *spare; /* second array for sweeps */
    uint32_t mask;
    int64_t ageing_ns;
    int64_t learn_gap_ns;
    int64_t next_learn_ns;
    int64_t oldest_ns; /* lower bound of the entries' times */
    struct model_table_truth truth;
};

/* Flows that a switch has forwarded, with their counts. A flow is identified by its addresses,
 * its input port, its intended output port and, where flows are distinguished by phase, its tag.
 * Flows beyond the first MODEL_FLOWS_MAX are counted together. A flow never moves in memory,
 * because frames point to it. */
struct flows {
    /* The last entry counts all flows without an entry of their own */
    struct model_flow all[MODEL_FLOWS_MAX + 1];
    uint32_t count;
    struct model_flow *places[2 * MODEL_FLOWS_MAX]; /* hash table with open addressing */
};

#define NS_PER_MS INT64_C(1000000)
#define RATE_SHIFT 20 /* times per byte are in 2^-20 ns */
#define TYPE_VLAN 0x8100
#define VLAN_TAG 4
#define HOLDS_MAX 1024

enum mark {
    MARK_STORED = 1 << 0, /* its bytes count in its input's share of the buffer */
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

/* Server that carries one frame at a time (a wire or a fabric), with the time at which it becomes
 * free. */
struct server {
    uint64_t byte_time; /* in 2^-20 ns; 0: no time */
    int64_t free_ns;
    uint64_t rest; /* fraction of free_ns */
};

struct input {
    struct fifo arriving; /* frames on the wire */
    struct server wire;
    int64_t paused_until_ns; /* until then, its station is paused */
    struct fifo waiting;     /* before the fabric; queueing input: all frames; voq: unused */
    uint64_t waiting_bytes;
    bool xoff;        /* a PAUSE frame has stopped the station */
    int64_t renew_ns; /* time at which the PAUSE is repeated */
};

struct output {
    struct fifo queue;
    int64_t load_ns;     /* time at which all frames would have left without drops for recovery */
    int64_t recovers_ns; /* end of the recovery, in which all frames are dropped */
    struct server wire;
    struct model_frame *sending;
    int64_t paused_until_ns;
    bool control_waits; /* a PAUSE frame of `control_quanta` is sent next */
    bool control_leaves;
    uint16_t control_quanta;
    uint64_t bps;        /* present rate; 0: no limit */
    uint64_t most_bytes; /* capacity of the queue */
    uint64_t from;       /* queueing input and voq: set of inputs with a frame for this output */
    unsigned grant;      /* first input considered for a grant */
};

struct fault {
    int in, out, to; /* ports; MODEL_NO_PORT: any */
    uint64_t random;
};

struct hold {
    struct model_frame *frame;
    unsigned out;
    uint32_t left; /* number of later frames that must still pass first */
    bool overtaken;
    int64_t until_ns;
};

struct model {
    struct event_queue event_queue;
    int64_t now_ns;
    int64_t down_until_ns; /* end of a reset */
    const struct model_conf *conf;
    const struct model_host *host;
    unsigned ports;
    uint64_t flood_mask; /* output ports of a flooded frame */
    uint64_t dead;
    int vlan_peer[MODEL_PORTS_MAX];  /* other port of the same VLAN, or MODEL_NO_PORT */
    int cable_peer[MODEL_PORTS_MAX]; /* port at the cable's other end, or MODEL_NO_PORT */
    uint64_t shared_bytes;           /* in all queues */
    uint64_t inside;                 /* frames inside the switch */
    bool reads_tags;                 /* true where a frame's signature matters */

    struct server fabric;
    bool has_fabric;
    struct model_frame *in_fabric;
    uint64_t fabric_waits; /* set of inputs with frames before the fabric */
    unsigned fabric_next;
    int64_t offered_from_ns; /* begin of the present window of collapse */
    uint64_t offered_bytes;
    double line_bytes; /* capacity of all ports in such a window */
    uint64_t line_bps;
    bool collapsed;

    uint64_t inputs_free; /* free inputs and outputs of the crossbar */
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
    struct flows wrong; /* flows by the wrong output port of their frames */
    /* By input: consecutive frames are often of one flow */
    struct model_flow *last_flow[MODEL_PORTS_MAX];
    struct input inputs[MODEL_PORTS_MAX];
    struct output outputs[MODEL_PORTS_MAX];
    struct model_port_truth truth[MODEL_PORTS_MAX];
};

/* --- agents in the order in which they act at one time: outputs, inputs, then these --- */

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

/* Return a frame's size with FCS, as users count it. */
static inline uint32_t frame_size(const struct model_frame *frame)
{
    return frame->length + MODEL_FCS;
}

/* Return the bytes that a frame occupies on a wire. */
static inline uint32_t wire_bytes(const struct model_frame *frame)
{
    uint32_t size = frame_size(frame);

    return (size < MODEL_SIZE_MIN ? MODEL_SIZE_MIN : size) + MODEL_LAYER1;
}

static inline uint16_t big_endian(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline bool is_group(uint64_t mac)
{
    return (mac >> 40 & 1) != 0;
}

static inline uint64_t bit(unsigned port)
{
    return (uint64_t)1 << port;
}

/* Return the index of the lowest set bit at or above `from`; if there is none, of the lowest set
 * bit. `set` is not empty. */
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

/* Let a server carry a number of bytes, from `start_ns` on or from when it becomes free; return the
 * time at which it has carried them. */
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

/* Remove all addresses from an address table. */
void table_clear(struct table *table);

/* Store the port at which the address `mac` is, unless the table's limits forbid it. */
void table_learn(struct table *table, uint64_t mac, unsigned port, int64_t now_ns);

/* Return the port at which an address is, or MODEL_NO_PORT. */
int table_find(const struct table *table, uint64_t mac, int64_t now_ns);

/* Return the flow with a key; add the flow if it is new. A full table returns the common entry of
 * all further flows. */
struct model_flow *flows_get(struct flows *flows, const uint64_t key[2]);

void flows_key(uint64_t key[2], const struct model_flow_name *name);

/* Reset the counts of all flows to zero. */
void flows_clear(struct flows *flows);

/* Return the port with a name; MODEL_NO_PORT for NULL or an unknown name. */
int model_port(const struct model_conf *conf, const char *name);

/* --- queues.c --- */

/* Return a copy of a frame; NULL: out of memory. */
struct model_frame *frame_copy(struct model *model, const struct model_frame *frame);
void frame_drop(struct model *model, struct model_frame *frame, enum model_drop why);
/* Queue a frame for one output; return false if the frame was dropped. */
bool frame_admit(struct model *model, struct model_frame *frame, unsigned out);
/* Queue copies of a frame for all ports except the port at which it arrived. */
void frame_flood(struct model *model, struct model_frame *frame);

/* Drop all frames waiting at an output. */
void output_empty(struct model *model, unsigned port, enum model_drop why);
void output_act(struct model *model, unsigned port);

/* Fabric: the server of limited capacity through which all frames of a module pass. */
void fabric_open(struct model *model);
void fabric_act(struct model *model);
/* Add the bytes of an arrived frame to the offered load of the module. */
void fabric_note(struct model *model, uint32_t bytes);

/* Match waiting frames at the inputs with free outputs (queueing at the inputs). */
void crossbar_act(struct model *model);

void pause_act(struct model *model);
/* Consume a frame to an address that no bridge forwards (IEEE 802.1Q 8.6.3), such as PAUSE; return
 * false for other frames. */
bool consume_control(struct model *model, struct model_frame *frame);

/* --- faults.c --- */

int faults_check(const struct model_conf *conf, struct err *err);
void faults_open(struct model *model);
void faults_clear(struct model *model);
/* Read the tag of a frame with a valid signature; return false for other frames. */
bool frame_tag(const struct model_frame *frame, uint16_t *tag);
/* Forward a frame to one output, or with MODEL_FLOOD to all ports; then release the frames that
 * were held back until this frame had passed. */
void frame_forward(struct model *model, struct model_frame *frame, unsigned out);
/* Apply the planted faults to a frame; return true if a fault has consumed the frame. */
bool apply_faults(struct model *model, struct model_frame *frame, unsigned out, bool measured);
void faults_act(struct model *model);

#endif
