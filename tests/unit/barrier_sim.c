/* SPDX-License-Identifier: BSD-3-Clause */
#include "barrier_sim.h"

#include "prng.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVENTS_MAX 200000000ULL

struct sim_event {
    int64_t time_ns;
    uint64_t order; /* first in, first out at equal times */
    enum sim_kind kind;
    uint32_t node;
    uint32_t life;           /* the process that it is for; 0: any */
    struct datagram *packet; /* of SIM_PACKET */
    uint8_t key;             /* under which it is sealed: the first byte */
};

static bool chance(struct sim *sim, double probability)
{
    return (double)(prng_next(&sim->random) >> 11) * 0x1p-53 < probability;
}

static int64_t within(struct sim *sim, int64_t range_ns)
{
    return range_ns ? (int64_t)(prng_next(&sim->random) % (uint64_t)range_ns) : 0;
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

static void *must(void *memory)
{
    if (!memory)
        abort();
    return memory;
}

/* --- queue of events: a binary heap --- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void push(struct sim *sim, struct sim_event event)
{
    size_t at = sim->heap_size++;

    if (sim->heap_size > sim->heap_room) {
        sim->heap_room = sim->heap_room ? sim->heap_room * 2 : 1024;
        sim->heap = must(realloc(sim->heap, sim->heap_room * sizeof(*sim->heap)));
    }
    event.order = sim->order++;
    for (; at > 0 && before(&event, &sim->heap[(at - 1) / 2]); at = (at - 1) / 2)
        sim->heap[at] = sim->heap[(at - 1) / 2];
    sim->heap[at] = event;
}

static struct sim_event pop(struct sim *sim)
{
    struct sim_event first = sim->heap[0], last = sim->heap[--sim->heap_size];
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

/* --- network --- */

static void node_dies(struct sim_node *node)
{
    node->running = false;
    node->dead = true;
}

static void carry(void *context, struct datagram *datagram)
{
    struct sim_node *node = context;
    struct sim *sim = node->sim;

    if (!node->running)
        return;
    sim->sent[datagram->type]++;
    datagram->transmit_ns = sim->now_ns;
    for (int copies = chance(sim, sim->conf.duplicate) ? 2 : 1; copies > 0; copies--) {
        int64_t delay_ns = sim->conf.delay_ns + within(sim, sim->conf.jitter_ns);
        struct datagram *packet;

        if (chance(sim, sim->conf.loss))
            continue;
        packet = must(malloc(sizeof(*packet)));
        *packet = *datagram;
        push(sim, (struct sim_event){.time_ns = sim->now_ns + delay_ns,
                                     .kind = SIM_PACKET,
                                     .node = datagram->recipient,
                                     .packet = packet,
                                     .key = node->membership.conf.key[0]});
    }
    if (datagram->type == DATAGRAM_ARRIVAL && ++node->arrivals == node->arrivals_most)
        node_dies(node);
}

/* --- nodes --- */

static struct barrier_values values_of(const struct sim *sim, uint32_t node, uint32_t epoch)
{
    uint64_t state = sim->conf.seed ^ ((uint64_t)node << 32 | epoch);
    struct barrier_values values;

    barrier_values_clear(&values);
    for (unsigned i = 0; i < BARRIER_MAXIMA_CALLER; i++)
        values.maximum[i] = (int64_t)prng_next(&state);
    values.states = UINT32_C(1) << (prng_next(&state) % 32);
    return values;
}

static void plan_own(struct sim *sim, struct sim_node *node, enum sim_kind kind, int64_t time_ns)
{
    push(sim, (struct sim_event){.time_ns = time_ns,
                                 .kind = kind,
                                 .node = (uint32_t)(node - sim->nodes),
                                 .life = node->life});
}

static void plan_entry(struct sim *sim, struct sim_node *node)
{
    if (node->passed < sim->conf.epochs)
        plan_own(sim, node, SIM_ENTER,
                 sim->now_ns + sim->conf.pause_ns + within(sim, sim->conf.entry_ns));
}

static void check_pass(struct sim *sim, const struct sim_node *node)
{
    const struct barrier_values *found = membership_values(&node->membership);
    const struct sim_epoch *epoch = &sim->epochs[node->passed];
    uint32_t index = (uint32_t)(node - sim->nodes);

    if (node->dead)
        fail(sim, "node %u passed barrier %u after its run was over", index, node->passed);
    else if (epoch->entered != sim->conf.nodes)
        fail(sim, "node %u passed barrier %u when %u of %u had entered", index, node->passed,
             epoch->entered, sim->conf.nodes);
    else if (memcmp(found->maximum, epoch->truth.maximum,
                    BARRIER_MAXIMA_CALLER * sizeof(found->maximum[0])) != 0 ||
             found->states != epoch->truth.states)
        fail(sim, "node %u passed barrier %u with a wrong reduction", index, node->passed);
}

/* After anything happened to a node: has it passed, and when is it due again? */
static void follow_up(struct sim *sim, struct sim_node *node)
{
    int64_t due_ns = node->membership.backoff.due_ns;

    if (!node->running)
        return;
    if (node->entered && membership_state(&node->membership) == BARRIER_PASSED) {
        check_pass(sim, node);
        node->entered = false;
        node->passed++;
        plan_entry(sim, node);
    }
    if (due_ns == CLOCK_NEVER || due_ns >= node->timer_ns)
        return;
    node->timer_ns = due_ns;
    plan_own(sim, node, SIM_TIMER, due_ns);
}

/* Whether a node has heard of this process. */
static bool is_known(struct sim *sim, const struct sim_node *node)
{
    for (uint32_t i = 0; i < sim->conf.nodes; i++) {
        const struct neighbour *neighbour =
            membership_neighbour(&sim->nodes[i].membership, (uint32_t)(node - sim->nodes));

        if (neighbour && neighbour->nonce == node->membership.conf.nonce)
            return true;
    }
    return false;
}

/* A new process in this place. If nobody has heard of the one before, the new one is as good;
 * otherwise the run is over for this node. */
static void node_joins(struct sim *sim, struct sim_node *node)
{
    uint32_t self = (uint32_t)(node - sim->nodes);
    struct membership_conf conf = {
        .self = self,
        .count = sim->conf.nodes,
        .key = {self == sim->conf.outcast ? 2 : 1},
        .nonce = prng_next(&sim->random) | 1,
        .boot = sim->conf.machines ? 1 + self % sim->conf.machines : 1,
        .timeout_ns = sim->conf.timeout_ns,
        .cores = sim->conf.cores,
        .send = carry,
        .context = node,
    };

    if (node->life && !is_known(sim, node)) {
        node->dead = false;
        sim->epochs[0].entered -= node->entered;
    } else if (node->life) {
        node->dead = true;
    }
    node->life++;
    node->running = true;
    node->entered = false;
    node->passed = 0;
    node->timer_ns = CLOCK_NEVER;
    membership_start(&node->membership, &conf);
    plan_entry(sim, node);
}

static void node_enters(struct sim *sim, struct sim_node *node)
{
    struct barrier_values values = values_of(sim, (uint32_t)(node - sim->nodes), node->passed);
    struct sim_epoch *epoch = &sim->epochs[node->passed];

    if (node->membership.aborted)
        return;
    node->entered = true;
    epoch->entered += !node->dead;
    for (unsigned i = 0; i < BARRIER_MAXIMA_CALLER && !node->dead; i++)
        if (values.maximum[i] > epoch->truth.maximum[i])
            epoch->truth.maximum[i] = values.maximum[i];
    if (!node->dead)
        epoch->truth.states |= values.states;
    membership_enter(&node->membership, &values, sim->now_ns);
}

static void happen(struct sim *sim, const struct sim_event *event)
{
    struct sim_node *node = &sim->nodes[event->node];
    struct membership *membership = &node->membership;

    if ((event->life && event->life != node->life) || (!node->running && event->kind > SIM_RESTART))
        return;
    switch (event->kind) {
    case SIM_JOIN:
    case SIM_RESTART:
        node_joins(sim, node);
        break;
    case SIM_KILL:
        node_dies(node);
        break;
    case SIM_ABORT:
        membership_abort(membership, SIM_REASON, false, sim->now_ns);
        break;
    case SIM_ENTER:
        node_enters(sim, node);
        break;
    case SIM_TIMER:
        if (event->time_ns != node->timer_ns)
            break;
        node->timer_ns = CLOCK_NEVER;
        membership_tick(membership, sim->now_ns);
        break;
    case SIM_PACKET:
        if (event->key == membership->conf.key[0])
            membership_receive(membership, event->packet, sim->now_ns);
        break;
    }
    follow_up(sim, node);
}

/* --- the simulation --- */

struct sim *sim_new(const struct sim_conf *conf)
{
    struct sim *sim = must(calloc(1, sizeof(*sim)));

    sim->conf = *conf;
    sim->random = conf->seed;
    sim->nodes = must(calloc(conf->nodes, sizeof(*sim->nodes)));
    sim->epochs = must(calloc(conf->epochs, sizeof(*sim->epochs)));
    for (uint32_t epoch = 0; epoch < conf->epochs; epoch++)
        barrier_values_clear(&sim->epochs[epoch].truth);
    for (uint32_t i = 0; i < conf->nodes; i++)
        sim->nodes[i].sim = sim;
    return sim;
}

void sim_free(struct sim *sim)
{
    for (size_t i = 0; i < sim->heap_size; i++)
        free(sim->heap[i].packet);
    free(sim->nodes);
    free(sim->epochs);
    free(sim->heap);
    free(sim);
}

void sim_plan(struct sim *sim, enum sim_kind kind, uint32_t node, int64_t time_ns)
{
    sim->nodes[node].joins |= kind == SIM_JOIN;
    push(sim, (struct sim_event){.time_ns = time_ns, .kind = kind, .node = node});
}

const char *sim_run(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->conf.nodes; i++)
        if (!sim->nodes[i].joins)
            sim_plan(sim, SIM_JOIN, i, within(sim, sim->conf.late_ns));
    for (uint64_t events = 0; sim->heap_size && !sim->failure[0]; events++) {
        struct sim_event event = pop(sim);

        sim->now_ns = event.time_ns;
        happen(sim, &event);
        free(event.packet);
        if (events == EVENTS_MAX)
            fail(sim, "it does not end");
    }
    return sim->failure[0] ? sim->failure : NULL;
}
