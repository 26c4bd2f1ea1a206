/* SPDX-License-Identifier: BSD-3-Clause */
#include "barrier_sim.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 200000000ULL
#define NO_PACKET UINT32_MAX

enum event_kind { EVENT_PACKET, EVENT_TIMER, EVENT_JOIN, EVENT_ENTER, EVENT_KILL, EVENT_ABORT };

struct event {
    int64_t time_ns;
    uint64_t order; /* first in, first out at equal times */
    enum event_kind kind;
    uint32_t node;
    uint32_t packet;
    uint32_t life; /* the process that it is for */
    const char *text;
};

struct packet {
    struct datagram datagram;
    uint8_t key[DATAGRAM_KEY_BYTES];
    uint32_t next_free;
};

struct node {
    struct sim *sim;
    struct membership membership;
    bool running;
    bool dead;
    bool entered;      /* the barrier `passed` */
    uint32_t passed;   /* barriers */
    uint32_t life;     /* which process this is; 0: none yet */
    uint64_t arrivals; /* sent */
    uint64_t arrivals_most;
    int64_t timer_ns; /* the earliest timer event in the queue */
    bool join_set;
};

struct sim {
    struct sim_conf conf;
    uint64_t random;
    int64_t now_ns;
    struct node *nodes;
    struct event *heap;
    size_t heap_size, heap_room;
    uint64_t order;
    struct packet *packets;
    uint32_t packet_count, packet_room, packet_free;
    struct barrier_values *truth; /* by epoch */
    uint32_t *entered;            /* nodes, by epoch ... */
    int64_t *entered_ns;          /* ... the last of them when ... */
    int64_t *passed_ns;           /* ... and when the last passed */
    struct sim_count count;
    char failure[256];
};

uint64_t sim_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static bool chance(struct sim *sim, double probability)
{
    return (double)(sim_random(&sim->random) >> 11) * 0x1p-53 < probability;
}

static int64_t within(struct sim *sim, int64_t range_ns)
{
    return range_ns ? (int64_t)(sim_random(&sim->random) % (uint64_t)range_ns) : 0;
}

static void fail(struct sim *sim, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct sim *sim, const char *format, ...)
{
    va_list args;

    if (sim->failure[0])
        return;
    va_start(args, format);
    vsnprintf(sim->failure, sizeof(sim->failure), format, args);
    va_end(args);
}

static void *grown(void *memory, size_t size)
{
    void *larger = realloc(memory, size);

    if (!larger)
        abort();
    return larger;
}

/* ---- queue of events: a binary heap ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void push(struct sim *sim, struct event event)
{
    size_t at = sim->heap_size++;

    if (sim->heap_size > sim->heap_room) {
        sim->heap_room = sim->heap_room ? sim->heap_room * 2 : 1024;
        sim->heap = grown(sim->heap, sim->heap_room * sizeof(*sim->heap));
    }
    event.order = sim->order++;
    for (; at > 0 && before(&event, &sim->heap[(at - 1) / 2]); at = (at - 1) / 2)
        sim->heap[at] = sim->heap[(at - 1) / 2];
    sim->heap[at] = event;
}

static struct event pop(struct sim *sim)
{
    struct event first = sim->heap[0], last = sim->heap[--sim->heap_size];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < sim->heap_size) {
        if (child + 1 < sim->heap_size && before(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!before(&sim->heap[child], &last))
            break;
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = last;
    return first;
}

/* ---- network ---- */

static uint32_t packet_new(struct sim *sim)
{
    uint32_t packet = sim->packet_free;

    if (packet != NO_PACKET) {
        sim->packet_free = sim->packets[packet].next_free;
        return packet;
    }
    if (sim->packet_count == sim->packet_room) {
        sim->packet_room = sim->packet_room ? sim->packet_room * 2 : 1024;
        sim->packets = grown(sim->packets, sim->packet_room * sizeof(*sim->packets));
    }
    return sim->packet_count++;
}

static void carry(struct sim *sim, const struct datagram *datagram, const uint8_t *key)
{
    int64_t delay_ns = sim->conf.delay_ns + within(sim, sim->conf.jitter_ns);
    uint32_t packet;

    if (chance(sim, sim->conf.loss))
        return;
    packet = packet_new(sim);
    sim->packets[packet].datagram = *datagram;
    memcpy(sim->packets[packet].key, key, DATAGRAM_KEY_BYTES);
    push(sim, (struct event){.time_ns = sim->now_ns + delay_ns,
                             .kind = EVENT_PACKET,
                             .node = datagram->recipient,
                             .packet = packet});
}

static void node_dies(struct node *node)
{
    node->running = false;
    node->dead = true;
}

static void outlet_send(void *context, struct datagram *datagram)
{
    struct node *node = context;
    const uint8_t *key = node->membership.key;
    struct sim *sim = node->sim;

    if (!node->running)
        return;
    sim->count.sent[datagram->type]++;
    datagram->transmit_ns = sim->now_ns;
    carry(sim, datagram, key);
    if (chance(sim, sim->conf.duplicate))
        carry(sim, datagram, key);
    if (datagram->type == DATAGRAM_ARRIVAL && ++node->arrivals == node->arrivals_most)
        node_dies(node);
}

/* ---- nodes ---- */

static struct barrier_values values_of(const struct sim *sim, uint32_t node, uint32_t epoch)
{
    uint64_t state = sim->conf.seed ^ ((uint64_t)node << 32 | epoch);
    struct barrier_values values;

    barrier_values_clear(&values);
    for (unsigned i = 0; i < BARRIER_MAXIMA_CALLER; i++)
        values.maximum[i] = (int64_t)sim_random(&state);
    values.states = UINT32_C(1) << (sim_random(&state) % 32);
    return values;
}

static void plan_entry(struct sim *sim, struct node *node)
{
    if (node->passed < sim->conf.epochs)
        push(sim, (struct event){.time_ns = sim->now_ns + sim->conf.pause_ns +
                                            within(sim, sim->conf.entry_ns),
                                 .kind = EVENT_ENTER,
                                 .node = (uint32_t)(node - sim->nodes),
                                 .life = node->life});
}

static bool same_values(const struct barrier_values *a, const struct barrier_values *b)
{
    return !memcmp(a->maximum, b->maximum, BARRIER_MAXIMA_CALLER * sizeof(a->maximum[0])) &&
           a->states == b->states;
}

static void check_pass(struct sim *sim, struct node *node)
{
    uint32_t index = (uint32_t)(node - sim->nodes);

    if (node->dead)
        fail(sim, "node %u passed barrier %u after its run was over", index, node->passed);
    else if (sim->entered[node->passed] != sim->conf.nodes)
        fail(sim, "node %u passed barrier %u when %u of %u had entered", index, node->passed,
             sim->entered[node->passed], sim->conf.nodes);
    else if (!same_values(barrier_values(&node->membership.barrier), &sim->truth[node->passed]))
        fail(sim, "node %u passed barrier %u with a wrong reduction", index, node->passed);
}

/* After anything happened to a node: has it passed, and when is it due again? */
static void follow_up(struct sim *sim, struct node *node)
{
    int64_t due_ns;

    if (!node->running)
        return;
    if (node->entered && membership_state(&node->membership) == BARRIER_PASSED) {
        check_pass(sim, node);
        sim->passed_ns[node->passed] = sim->now_ns;
        node->entered = false;
        node->passed++;
        plan_entry(sim, node);
    }
    due_ns = membership_deadline(&node->membership);
    if (due_ns == CLOCK_NEVER || due_ns >= node->timer_ns)
        return;
    node->timer_ns = due_ns;
    push(sim, (struct event){.time_ns = due_ns,
                             .kind = EVENT_TIMER,
                             .node = (uint32_t)(node - sim->nodes),
                             .life = node->life});
}

/* Whether a node has heard of this process. */
static bool is_known(const struct sim *sim, const struct node *node)
{
    for (uint32_t i = 0; i < sim->conf.nodes; i++) {
        struct neighbours *neighbours = &sim->nodes[i].membership.neighbours;
        const struct neighbour *neighbour =
            neighbours->count ? neighbours_find(neighbours, (uint32_t)(node - sim->nodes)) : NULL;

        if (neighbour && neighbour->nonce == node->membership.nonce)
            return true;
    }
    return false;
}

/* A new process in this place. If nobody has heard of the one before, the new one is as good;
 * otherwise the run is over for this node. */
static void node_joins(struct sim *sim, struct node *node)
{
    const struct datagram_outlet outlet = {outlet_send, node};
    struct membership_conf conf = {
        .self = (uint32_t)(node - sim->nodes),
        .count = sim->conf.nodes,
        .run_id = "simulated",
        .timeout_ns = sim->conf.timeout_ns,
        .cores = sim->conf.cores,
    };

    if (node->life && !is_known(sim, node)) {
        node->dead = false;
        sim->entered[0] -= node->entered;
    } else if (node->life) {
        node->dead = true;
    }
    conf.boot = sim->conf.machines ? 1 + conf.self % sim->conf.machines : 1;
    conf.key[0] = conf.self == sim->conf.outcast ? 2 : 1;
    conf.nonce = sim_random(&sim->random) | 1;
    node->life++;
    node->running = true;
    node->entered = false;
    node->passed = 0;
    node->timer_ns = CLOCK_NEVER;
    membership_init(&node->membership, &conf, &outlet);
    membership_start(&node->membership);
    plan_entry(sim, node);
}

static void node_enters(struct sim *sim, struct node *node)
{
    uint32_t index = (uint32_t)(node - sim->nodes);
    struct barrier_values values = values_of(sim, index, node->passed);

    if (membership_fault(&node->membership))
        return;
    node->entered = true;
    if (!node->dead) {
        sim->entered[node->passed]++;
        sim->entered_ns[node->passed] = sim->now_ns;
        barrier_values_merge(&sim->truth[node->passed], &values);
    }
    membership_enter(&node->membership, &values, sim->now_ns);
}

static void node_receives(struct sim *sim, struct node *node, uint32_t index)
{
    struct packet *packet = &sim->packets[index];
    struct datagram datagram = packet->datagram;
    bool sealed = node->running && !memcmp(node->membership.key, packet->key, DATAGRAM_KEY_BYTES);

    packet->next_free = sim->packet_free;
    sim->packet_free = index;
    if (!node->running)
        return;
    if (!sealed || !membership_receive(&node->membership, &datagram, sim->now_ns))
        sim->count.dropped++;
}

static void happen(struct sim *sim, const struct event *event)
{
    struct node *node = &sim->nodes[event->node];

    if (event->life && event->life != node->life)
        return;
    if (event->kind == EVENT_JOIN)
        node_joins(sim, node);
    else if (event->kind == EVENT_PACKET)
        node_receives(sim, node, event->packet);
    else if (!node->running)
        return;
    else if (event->kind == EVENT_ENTER)
        node_enters(sim, node);
    else if (event->kind == EVENT_KILL)
        node_dies(node);
    else if (event->kind == EVENT_ABORT)
        membership_abort(&node->membership, event->text, false, sim->now_ns);
    else if (event->time_ns == node->timer_ns) {
        node->timer_ns = CLOCK_NEVER;
        membership_tick(&node->membership, sim->now_ns);
    }
    follow_up(sim, node);
}

/* ---- the simulation ---- */

struct sim *sim_new(const struct sim_conf *conf)
{
    struct sim *sim = calloc(1, sizeof(*sim));

    if (!sim)
        abort();
    sim->conf = *conf;
    sim->random = conf->seed;
    sim->packet_free = NO_PACKET;
    sim->nodes = calloc(conf->nodes, sizeof(*sim->nodes));
    sim->truth = calloc(conf->epochs, sizeof(*sim->truth));
    sim->entered = calloc(conf->epochs, sizeof(*sim->entered));
    sim->entered_ns = calloc(conf->epochs, sizeof(*sim->entered_ns));
    sim->passed_ns = calloc(conf->epochs, sizeof(*sim->passed_ns));
    if (!sim->nodes || !sim->truth || !sim->entered || !sim->entered_ns || !sim->passed_ns)
        abort();
    for (uint32_t epoch = 0; epoch < conf->epochs; epoch++)
        barrier_values_clear(&sim->truth[epoch]);
    for (uint32_t i = 0; i < conf->nodes; i++)
        sim->nodes[i].sim = sim;
    return sim;
}

void sim_free(struct sim *sim)
{
    free(sim->nodes);
    free(sim->truth);
    free(sim->entered);
    free(sim->entered_ns);
    free(sim->passed_ns);
    free(sim->heap);
    free(sim->packets);
    free(sim);
}

void sim_join_at(struct sim *sim, uint32_t node, int64_t time_ns)
{
    sim->nodes[node].join_set = true;
    push(sim, (struct event){.time_ns = time_ns, .kind = EVENT_JOIN, .node = node});
}

void sim_kill_at(struct sim *sim, uint32_t node, int64_t time_ns)
{
    push(sim, (struct event){.time_ns = time_ns, .kind = EVENT_KILL, .node = node});
}

void sim_kill_after_arrivals(struct sim *sim, uint32_t node, uint64_t arrivals)
{
    sim->nodes[node].arrivals_most = arrivals;
}

void sim_restart_at(struct sim *sim, uint32_t node, int64_t time_ns)
{
    push(sim, (struct event){.time_ns = time_ns, .kind = EVENT_JOIN, .node = node});
}

void sim_abort_at(struct sim *sim, uint32_t node, int64_t time_ns, const char *text)
{
    push(sim, (struct event){.time_ns = time_ns, .kind = EVENT_ABORT, .node = node, .text = text});
}

const char *sim_run(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->conf.nodes; i++)
        if (!sim->nodes[i].join_set)
            sim_join_at(sim, i, within(sim, sim->conf.late_ns));
    while (sim->heap_size && !sim->failure[0]) {
        struct event event = pop(sim);

        sim->now_ns = event.time_ns;
        happen(sim, &event);
        if (++sim->count.events == EVENTS_MAX)
            fail(sim, "it does not end");
    }
    sim->count.ended_ns = sim->now_ns;
    return sim->failure[0] ? sim->failure : NULL;
}

uint32_t sim_passed(const struct sim *sim, uint32_t node)
{
    return sim->nodes[node].passed;
}

bool sim_dead(const struct sim *sim, uint32_t node)
{
    return sim->nodes[node].dead;
}

const struct control_fault *sim_fault(const struct sim *sim, uint32_t node)
{
    return membership_fault(&sim->nodes[node].membership);
}

const struct membership *sim_group(const struct sim *sim, uint32_t node)
{
    return &sim->nodes[node].membership;
}

const struct sim_count *sim_counts(const struct sim *sim)
{
    return &sim->count;
}

int64_t sim_barrier_ns(const struct sim *sim, uint32_t epoch)
{
    return sim->passed_ns[epoch] - sim->entered_ns[epoch];
}
