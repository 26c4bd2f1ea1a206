/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Greeting, barrier and abort in a simulator: many nodes in one process, with simulated time, and a
 * network that delays, loses, doubles and reorders. Every run ends, with everybody through and the
 * same reduction, or with everybody naming a node that is really dead. All of it by dissemination
 * and by the tree. More seeds and 65,536 nodes with SWITCHBENCH_LONG=1.
 */
#include "membership.h"
#include "prng.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* --- the simulator --- */

#define EVENTS_MAX 200000000ULL

static char running[128]; /* what is simulated, for a failure's text */
#define broken(...)                                                                                \
    do {                                                                                           \
        print_error("%s\n", running);                                                              \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

struct sim_conf {
    uint32_t nodes;
    uint32_t epochs;
    uint64_t seed;
    double loss;
    double duplicate;
    int64_t delay_ns;   /* least time on the way */
    int64_t jitter_ns;  /* uniformly added to it */
    int64_t late_ns;    /* nodes join within so long of the beginning, uniformly */
    int64_t pause_ns;   /* from when they could enter a barrier until they do, at least ... */
    int64_t entry_ns;   /* ... and uniformly up to so much more */
    int64_t timeout_ns; /* the nodes' */
    uint32_t cores;     /* of node 0's machine; 0: not to be counted */
    uint32_t machines;  /* over which the nodes are spread in turn; 0: one */
    uint32_t outcast;   /* a node of another run (other key) that stands in one's place, or NONE */
};

enum sim_kind {
    SIM_JOIN,    /* the node's first process begins, and not at a random time */
    SIM_RESTART, /* a new process takes its place, with a new nonce, and begins at barrier 0 */
    SIM_KILL,    /* its process ends; what is on the way to it is lost */
    SIM_ABORT,   /* it gives up, because of SIM_REASON */
    SIM_ENTER,   /* these are the simulator's own: it enters a barrier, */
    SIM_TIMER,   /* something is due, */
    SIM_PACKET,  /* a datagram comes */
};
#define SIM_REASON "no link on e0"

struct sim_node {
    struct sim *sim;
    struct membership membership;
    bool running;
    bool dead;              /* or restarted after its run had begun */
    bool entered;           /* the barrier `passed` */
    uint32_t passed;        /* barriers */
    uint32_t life;          /* which process this is; 0: none yet */
    uint64_t arrivals;      /* sent */
    uint64_t arrivals_most; /* its process ends when it has sent so many; 0: it does not */
    int64_t timer_ns;       /* the earliest timer event in the queue */
    bool joins;             /* its first SIM_JOIN is planned */
};

/* What went on in one barrier. */
struct sim_epoch {
    struct barrier_values truth;
    uint32_t entered; /* nodes */
};

struct sim {
    struct sim_conf conf;
    uint64_t random;
    int64_t now_ns;
    struct sim_node *nodes;
    struct sim_epoch *epochs;
    struct sim_event *heap;
    size_t heap_size, heap_room;
    uint64_t order;
    uint64_t sent[DATAGRAM_TYPES];
};

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
        broken("node %u passed barrier %u after its run was over", index, node->passed);
    else if (epoch->entered != sim->conf.nodes)
        broken("node %u passed barrier %u when %u of %u had entered", index, node->passed,
               epoch->entered, sim->conf.nodes);
    else if (memcmp(found->maximum, epoch->truth.maximum,
                    BARRIER_MAXIMA_CALLER * sizeof(found->maximum[0])) != 0 ||
             found->states != epoch->truth.states)
        broken("node %u passed barrier %u with a wrong reduction", index, node->passed);
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

static struct sim *sim_new(const struct sim_conf *conf)
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

static void sim_free(struct sim *sim)
{
    for (size_t i = 0; i < sim->heap_size; i++)
        free(sim->heap[i].packet);
    free(sim->nodes);
    free(sim->epochs);
    free(sim->heap);
    free(sim);
}

/* What happens to a node; without a SIM_JOIN of its own it joins at a random time. */
static void sim_plan(struct sim *sim, enum sim_kind kind, uint32_t node, int64_t time_ns)
{
    sim->nodes[node].joins |= kind == SIM_JOIN;
    push(sim, (struct sim_event){.time_ns = time_ns, .kind = kind, .node = node});
}

/* Runs until nothing is due. */
static void sim_run(struct sim *sim)
{
    uint64_t events = 0;

    for (uint32_t i = 0; i < sim->conf.nodes; i++)
        if (!sim->nodes[i].joins)
            sim_plan(sim, SIM_JOIN, i, within(sim, sim->conf.late_ns));
    while (sim->heap_size > 0) {
        struct sim_event event = pop(sim);

        sim->now_ns = event.time_ns;
        happen(sim, &event);
        free(event.packet);
        if (events++ == EVENTS_MAX)
            broken("it does not end");
    }
}

#define US NS_PER_US
#define MS NS_PER_MS
#define S NS_PER_S

static bool by_tree; /* else by dissemination */

static bool long_tier(void)
{
    const char *text = getenv("SWITCHBENCH_LONG");

    return text && !strcmp(text, "1");
}

static unsigned seeds(unsigned quick)
{
    return long_tier() ? 100 : quick;
}

static uint32_t rounds_of(uint32_t nodes)
{
    uint32_t rounds = 0;

    while ((UINT64_C(1) << rounds) < nodes)
        rounds++;
    return rounds;
}

static struct sim_conf calm(uint32_t nodes, uint32_t epochs, uint64_t seed)
{
    return (struct sim_conf){
        .nodes = nodes,
        .epochs = epochs,
        .seed = seed,
        .delay_ns = 20 * US,
        .jitter_ns = 30 * US,
        .pause_ns = 20 * MS, /* so that all know their neighbours when the first one enters */
        .timeout_ns = 5 * S,
        .cores = by_tree ? 1 : 0,
        .outcast = DATAGRAM_NONE,
    };
}

/* Arrivals that `nodes` send in a barrier after the first. */
static uint64_t arrivals_of(uint32_t nodes)
{
    return by_tree && nodes > 1 ? 2 * ((uint64_t)nodes - 1) : (uint64_t)nodes * rounds_of(nodes);
}

/* Loss, duplication, datagrams that overtake each other by milliseconds, nodes out of step. */
static struct sim_conf rough(uint32_t nodes, uint32_t epochs, uint64_t seed, double loss)
{
    struct sim_conf conf = calm(nodes, epochs, seed);

    conf.loss = loss;
    conf.duplicate = 0.1;
    conf.jitter_ns = 5 * MS;
    conf.pause_ns = 0;
    conf.entry_ns = 10 * MS;
    conf.late_ns = 20 * MS;
    return conf;
}

/* ---- who lives passes, and who dies is named ---- */

enum fate {
    LIVES,
    ABSENT,      /* it never joins, in the place of each node in turn */
    DIES,        /* between barriers */
    DIES_WITHIN, /* after each number of arrivals sent, so in each round of barriers 0 to 2 */
    TWO_DIE,
    RETURNS, /* at any time while neighbours greet each other and after it */
    GIVES_UP,
    STRANGER, /* it has another key */
};

/* Nodes from `first` to `last` by `step`, with seeds 1 to `seeds`. */
struct scenario {
    const char *what;
    enum fate fate;
    uint32_t first, last, step;
    uint32_t epochs;
    unsigned seeds;
    bool calm;   /* neither loss nor disorder */
    double loss; /* of even seeds; odd ones have none where it alternates */
    bool alternates;
    int64_t late_ns, entry_ns, timeout_ns; /* 0: as usual */
};

static const struct scenario scenarios[] = {
    {"datagrams are counted", LIVES, 1, 65, 1, 3, 1, .calm = true},
    {"datagrams of 1,000 nodes are counted", LIVES, 1000, 1000, 1, 2, 1, .calm = true},
    {"no loss", LIVES, 1, 65, 1, 4, 5, .loss = 0},
    {"little loss", LIVES, 1, 65, 1, 4, 5, .loss = 0.01},
    {"much loss", LIVES, 1, 65, 1, 4, 5, .loss = 0.3},
    {"epochs stay apart over many barriers", LIVES, 7, 7, 1, 200, 2, .loss = 0.3},
    {"a thousand nodes", LIVES, 1000, 1000, 1, 3, 1, .loss = 0.3},
    {"thousands of nodes", LIVES, 4096, 4096, 1, 2, 1, .calm = true, .loss = 0.01},
    /* Seconds later, longer than the time-out of who has not reached barrier 0. */
    {"late joiners are waited for", LIVES, 2, 33, 31, 2, 3, .loss = 0.3, .alternates = true,
     .late_ns = 4 * S},
    /* A slow partner is not a missing one: it answers, so nobody gives up, however long it takes.
     */
    {"the slow are never blamed", LIVES, 9, 9, 1, 3, 1, .loss = 0.3, .entry_ns = 60 * S,
     .timeout_ns = 3 * S},
    {"who never joined", ABSENT, 2, 17, 1, 1, 1, .loss = 0.3},
    {"who dies between barriers", DIES, 2, 40, 3, 1000, 3, .loss = 0.15, .alternates = true},
    {"who dies within a barrier", DIES_WITHIN, 2, 21, 1, 1000, 1, .loss = 0.3},
    {"one of two dead", TWO_DIE, 3, 33, 2, 1000, 3, .loss = 0.3},
    {"who comes back", RETURNS, 2, 13, 1, 400, 12, .loss = 0.3, .alternates = true},
    {"who gives up", GIVES_UP, 2, 65, 7, 1000, 1, .loss = 0.3},
    /* Nobody waits in a barrier, so nobody asks: the flood alone must reach all. */
    {"who gives up outside barriers", GIVES_UP, 2, 65, 1, 1, 5, .loss = 0.3},
    {"who has another key", STRANGER, 12, 12, 1, 2, 12, .calm = true},
};

/* One run; `number` says where and when, of `cases_of` many. */
static uint32_t cases_of(const struct scenario *scenario, uint32_t nodes)
{
    if (scenario->fate == DIES_WITHIN)
        return 3 * rounds_of(nodes);
    if (scenario->fate == ABSENT)
        return nodes;
    return seeds(scenario->seeds);
}

static void set_fate(struct sim *sim, enum fate fate, uint32_t number, uint32_t victim)
{
    uint32_t nodes = sim->conf.nodes;

    switch (fate) {
    case ABSENT:
        sim_plan(sim, SIM_JOIN, victim, 0);
        sim_plan(sim, SIM_KILL, victim, 0);
        break;
    case DIES:
        sim_plan(sim, SIM_KILL, victim, 2 * S);
        break;
    case DIES_WITHIN:
        sim->nodes[victim].arrivals_most = number;
        break;
    case TWO_DIE:
        sim_plan(sim, SIM_KILL, victim, 500 * MS);
        sim_plan(sim, SIM_KILL, (victim + (number % 2 ? 1 : nodes / 2)) % nodes,
                 (500 + number) * MS);
        break;
    case RETURNS:
        sim_plan(sim, SIM_RESTART, victim, (int64_t)number * number * 3 * MS);
        break;
    case GIVES_UP:
        sim_plan(sim, SIM_ABORT, victim, S);
        break;
    default:
        break;
    }
}

/* What a node may say at the end: all barriers passed, or a fault that names who is at fault. */
static void judge(const struct sim *sim, const struct scenario *scenario, uint32_t number,
                  uint32_t victim)
{
    const struct sim_node *node = &sim->nodes[number];
    const struct control_fault *fault = &node->membership.fault;
    enum fate fate = scenario->fate;
    bool told = node->membership.aborted;
    bool returned_in_time = fate == RETURNS && !sim->nodes[victim ? 0 : 1].membership.aborted;

    if (node->dead || (fate == STRANGER && number == victim))
        return; /* it knows nothing of the others */
    if (fate == LIVES || returned_in_time) {
        if (node->passed != sim->conf.epochs || told)
            broken("node %u is not through", number);
        return;
    }
    if (!told)
        broken("node %u was not told", number);
    if (fate == DIES_WITHIN || fate == TWO_DIE ? !sim->nodes[fault->node].dead
                                               : fault->node != victim)
        broken("node %u blames node %u", number, fault->node);
    if (fate == GIVES_UP &&
        (fault->missing || strcmp(fault->text, SIM_REASON) != 0 || sim->now_ns >= 2 * S))
        broken("node %u does not tell the reason in time", number);
    if ((fate == ABSENT || fate == STRANGER) && node->passed > 0)
        broken("node %u passed without it", number);
    if (fate == DIES && !(fault->missing && fault->silence_ns >= sim->conf.timeout_ns &&
                          fault->last_epoch + 1 >= fault->epoch))
        broken("node %u was not silent for so long", victim);
}

static void play(const struct scenario *scenario, uint32_t nodes, uint32_t number)
{
    uint32_t victim = scenario->fate == GIVES_UP && scenario->epochs > 1 ? nodes - 1
                      : scenario->fate == DIES                           ? number * 7 % nodes
                      : scenario->fate == TWO_DIE                        ? number * 11 % nodes
                                                                         : number % nodes;
    double loss = scenario->alternates && number % 2 == 0 ? 0 : scenario->loss;
    uint64_t seed = number * 64 + nodes;
    struct sim_conf conf = scenario->calm ? calm(nodes, scenario->epochs, seed)
                                          : rough(nodes, scenario->epochs, seed, loss);
    struct sim *sim;

    conf.loss = loss;
    conf.late_ns = scenario->late_ns > 0 ? scenario->late_ns : conf.late_ns;
    conf.entry_ns = scenario->entry_ns > 0 ? scenario->entry_ns : conf.entry_ns;
    conf.timeout_ns = scenario->timeout_ns > 0 ? scenario->timeout_ns : conf.timeout_ns;
    if (scenario->fate == STRANGER)
        conf.outcast = victim;
    snprintf(running, sizeof(running), "%s: %u nodes, case %u", scenario->what, nodes, number);
    sim = sim_new(&conf);
    set_fate(sim, scenario->fate, number, victim);
    sim_run(sim);
    for (uint32_t node = 0; node < nodes; node++)
        judge(sim, scenario, node, victim);
    if (scenario->fate == LIVES && scenario->calm && conf.loss <= 0) {
        assert_int_equal(sim->sent[DATAGRAM_ARRIVAL], (uint64_t)nodes * rounds_of(nodes) +
                                                          arrivals_of(nodes) * (conf.epochs - 1));
        assert_int_equal(sim->sent[DATAGRAM_PONG] + sim->sent[DATAGRAM_ABORT], 0);
    }
    sim_free(sim);
}

static void every_run_ends_as_it_should(void **state)
{
    static const struct scenario most[] = {
        {"65,536 nodes are counted", LIVES, 65536, 65536, 1, 2, 1, .calm = true},
        {"65,536 nodes", LIVES, 65536, 65536, 1, 1, 1, .loss = 0.3},
    };

    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        for (uint32_t n = scenarios[i].first; n <= scenarios[i].last; n += scenarios[i].step)
            for (uint32_t number = 1; number <= cases_of(&scenarios[i], n); number++)
                play(&scenarios[i], n, number);
    for (size_t i = 0; i < 2 && long_tier(); i++)
        play(&most[i], most[i].first, 1);
}

/* Two nodes, no loss: one tells, the other acknowledges, and that is all. Before the first barrier
 * is passed all are told, too. */
static void floods_no_more_than_needed(void **state)
{
    for (uint32_t nodes = 2; nodes <= 32; nodes += 5) {
        struct sim_conf conf = calm(nodes, 1, nodes);
        struct sim *sim;

        conf.loss = nodes > 2 ? 0.3 : 0;
        sim = sim_new(&conf);
        if (nodes > 2) { /* node 1 is not there */
            sim_plan(sim, SIM_JOIN, 1, 3600 * S);
            sim_plan(sim, SIM_KILL, 1, 3600 * S);
        }
        sim_plan(sim, SIM_ABORT, nodes - 1, S);
        sim_run(sim);
        for (uint32_t node = 0; node < nodes; node++)
            assert_true((node == 1 && nodes > 2) ||
                        !strcmp(sim->nodes[node].membership.fault.text, SIM_REASON));
        if (nodes == 2)
            assert_int_equal(sim->sent[DATAGRAM_ABORT], 2);
        sim_free(sim);
    }
}

static void takes_the_tree_where_cores_are_few(void **state)
{
    for (uint32_t nodes = 2; nodes <= 20; nodes++)
        for (uint32_t machines = 1; machines <= nodes; machines++)
            for (uint32_t cores = nodes - 1; cores <= nodes; cores++) {
                struct sim_conf conf = rough(nodes, 2, nodes, 0.2);
                struct sim *sim;

                conf.cores = cores;
                conf.machines = machines;
                sim = sim_new(&conf);
                sim_run(sim);
                for (uint32_t node = 0; node < nodes; node++) {
                    assert_int_equal(sim->nodes[node].passed, 2);
                    assert_int_equal(sim->nodes[node].membership.crowded,
                                     machines == 1 && cores < nodes);
                }
                sim_free(sim);
            }
}

/* --- datagram by datagram: what networks and nodes of this run do not do --- */

static struct membership member;
static struct datagram last; /* sent */
static unsigned sent;

static void note_sent(void *context, struct datagram *datagram)
{
    last = *datagram;
    sent++;
}

/* Process 1 of a node of so many. */
static void begin_as(uint32_t self, uint32_t count)
{
    const struct membership_conf conf = {
        .self = self, .count = count, .nonce = 1, .boot = 1, .timeout_ns = S, .send = note_sent};

    membership_start(&member, &conf);
    sent = 0;
}

static void begin(uint32_t count)
{
    begin_as(0, count);
}

/* From process 2 of another node, which names `to`. */
static bool give(uint8_t type, uint32_t sender, uint32_t epoch, uint8_t round, uint64_t to)
{
    static int64_t transmit_ns;
    struct datagram datagram = {.type = type,
                                .sender = sender,
                                .epoch = epoch,
                                .round = round,
                                .from = 2,
                                .to = to,
                                .transmit_ns = ++transmit_ns};

    if (type == DATAGRAM_ARRIVAL)
        barrier_values_clear(&datagram.values);
    return membership_receive(&member, &datagram, 0);
}

static void enter(uint32_t states)
{
    struct barrier_values mine;

    barrier_values_clear(&mine);
    mine.states = states;
    membership_enter(&member, &mine, 0);
}

static void each_datagram_is_answered_or_dropped(void **state)
{
    static const struct {
        const char *what;
        uint32_t nodes, passed; /* barriers, before it is in the next one */
        uint8_t type;
        uint32_t sender, epoch;
        uint8_t round;
        bool dropped;
        uint8_t answer; /* 0: none */
    } cases[] = {
        {"an epoch that is over for good", 5, 3, DATAGRAM_ARRIVAL, 4, 1, 0, true, 0},
        {"nobody can be so far", 5, 3, DATAGRAM_ARRIVAL, 4, 5, 0, true, 0},
        {"not the partner of round 0", 5, 3, DATAGRAM_ARRIVAL, 3, 3, 0, true, 0},
        {"no such round", 5, 3, DATAGRAM_ARRIVAL, 4, 3, 3, true, 0},
        {"no such round by far", 5, 3, DATAGRAM_ARRIVAL, 4, 3, 255, true, 0},
        {"not who waits for us", 5, 3, DATAGRAM_QUESTION, 4, 3, 0, true, 0},
        {"asks long after", 5, 3, DATAGRAM_QUESTION, 1, 1, 0, true, 0},
        {"one ahead: kept for then", 5, 3, DATAGRAM_ARRIVAL, 4, 4, 0, false, 0},
        {"of the barrier that was passed", 5, 3, DATAGRAM_QUESTION, 1, 2, 0, false,
         DATAGRAM_ARRIVAL},
        {"of a round that was sent", 8, 0, DATAGRAM_QUESTION, 1, 0, 0, false, DATAGRAM_ARRIVAL},
        {"of one that was not", 8, 0, DATAGRAM_QUESTION, 2, 0, 1, false, DATAGRAM_PONG},
        {"of a course that it does not know", 8, 0, DATAGRAM_QUESTION, 1, 1, 0, false,
         DATAGRAM_PONG},
        {"an arrival of that", 8, 0, DATAGRAM_ARRIVAL, 7, 1, 0, false, 0},
        {"from no neighbour", 8, 0, DATAGRAM_QUESTION, 3, 0, 0, true, 0},
        {"a heartbeat to node 0", 8, 0, DATAGRAM_BEAT, 1, 0, 0, true, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool taken;

        begin(cases[i].nodes);
        for (uint32_t node = 1; node < cases[i].nodes; node++)
            give(DATAGRAM_HELLO, node, 0, 0, 1);
        for (uint32_t epoch = 0; epoch <= cases[i].passed; epoch++) {
            enter(1U << epoch);
            for (uint8_t round = 0; round < 3 && epoch < cases[i].passed; round++)
                assert_true(
                    give(DATAGRAM_ARRIVAL, cases[i].nodes - (1U << round), epoch, round, 1));
        }
        sent = 0;
        taken = give(cases[i].type, cases[i].sender, cases[i].epoch, cases[i].round, 1);
        if (taken == cases[i].dropped || sent != (cases[i].answer != 0) ||
            (sent > 0 && last.type != cases[i].answer) || member.round != 0 ||
            (sent > 0 && last.type == DATAGRAM_ARRIVAL && last.values.states != 1U << last.epoch))
            fail_msg("%s: taken %d, sent %u of type %u, round %u", cases[i].what, taken, sent,
                     last.type, member.round);
    }
}

/* A node whose process was stopped for long must not blame its partners for that. */
static void asks_often_before_it_blames(void **state)
{
    int64_t now_ns = 100 * S;

    begin(4);
    enter(0);
    sent = 0;
    for (; !member.aborted; now_ns = member.backoff.due_ns)
        membership_tick(&member, now_ns);
    assert_true(sent >= 8 + 3); /* questions; all neighbours are told */
}

/* What was said to an earlier process in this place, under the same key and run id, changes nothing
 * and is no sign of life; what may be the first word of a node of this run is greeted only. */
static void nothing_replays_across_runs(void **state)
{
    for (uint64_t to = 9; to != 1; to = to == 9 ? 0 : 1) {
        begin(2);
        enter(0);
        sent = 0;
        for (uint8_t type = DATAGRAM_HELLO; type < DATAGRAM_TYPES; type++) {
            assert_int_equal(give(type, 1, 0, 0, to), to == 0);
            assert_true(sent == 0 || (last.type == DATAGRAM_HELLO && last.to == 2));
        }
        assert_int_equal(sent, to == 0 ? DATAGRAM_TYPES - 1 : 0);
        assert_int_equal(membership_state(&member), BARRIER_WAITING);
        assert_false(member.aborted);
        assert_int_equal(member.neighbours[0].heard_ns, -1);
        assert_int_equal(member.neighbours[0].nonce, 0);
    }
}

/* Of node 2 of 4: node 0 is its parent, and node 3 its child. What was said before is no sign of
 * life. */
static void heartbeats_go_down_the_tree_once(void **state)
{
    static const struct {
        uint32_t sender;
        int64_t transmit_ns;
        bool taken;
    } beats[] = {{0, 5, true}, {0, 5, false}, {0, 4, false}, {3, 9, false}, {0, 6, true}};
    struct datagram overtaken = {
        .type = DATAGRAM_PONG, .sender = 0, .from = 2, .to = 1, .transmit_ns = 8};

    begin_as(2, 4);
    for (size_t i = 0; i < sizeof beats / sizeof beats[0]; i++) {
        const struct datagram beat = {.type = DATAGRAM_BEAT,
                                      .sender = beats[i].sender,
                                      .from = 2,
                                      .to = 1,
                                      .transmit_ns = beats[i].transmit_ns};
        int64_t now_ns = 100 + (int64_t)i;
        const struct neighbour *sender = membership_neighbour(&member, beat.sender);

        sent = 0;
        last.type = 0;
        assert_int_equal(membership_receive(&member, &beat, now_ns), beats[i].taken);
        assert_int_equal(member.beat_ns == now_ns, beats[i].taken);
        assert_int_equal(last.type == DATAGRAM_BEAT && last.recipient == 3, beats[i].taken);
        assert_int_equal(sender->heard_ns == now_ns, beats[i].taken || beats[i].sender == 3);
    }
    assert_true(membership_receive(&member, &overtaken, 200));
    overtaken.type = DATAGRAM_BEAT;
    overtaken.transmit_ns = 7;
    assert_true(membership_receive(&member, &overtaken, 201));
    assert_int_equal(member.beat_ns, 201);
}

static void names_who_was_replaced(void **state)
{
    struct datagram hello = {.type = DATAGRAM_HELLO, .sender = 1, .from = 6, .to = 1};

    begin(2);
    assert_true(give(DATAGRAM_HELLO, 1, 0, 0, 1));
    assert_false(member.aborted);
    assert_true(membership_receive(&member, &hello, 0));
    assert_true(member.aborted);
    assert_int_equal(member.fault.node, 1);
    assert_non_null(strstr(member.fault.text, "was it restarted?"));
    assert_int_equal(last.type, DATAGRAM_ABORT);
    assert_int_equal(last.to, 6); /* the new one is told */
}

static void a_reason_is_made_printable(void **state)
{
    begin(2);
    membership_abort(&member, "no link;\n\xc3\xa4 see the cable", true, 0);
    assert_string_equal(last.fault.text, "no link;??? see the cable");
    assert_true(last.fault.impossible && !last.fault.missing && last.fault.node == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_datagram_is_answered_or_dropped),
        cmocka_unit_test(asks_often_before_it_blames),
        cmocka_unit_test(nothing_replays_across_runs),
        cmocka_unit_test(heartbeats_go_down_the_tree_once),
        cmocka_unit_test(names_who_was_replaced),
        cmocka_unit_test(a_reason_is_made_printable),
        cmocka_unit_test(takes_the_tree_where_cores_are_few),
    };
    const struct CMUnitTest simulated[] = {
        cmocka_unit_test(every_run_ends_as_it_should),
        cmocka_unit_test(floods_no_more_than_needed),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    failed += cmocka_run_group_tests_name("dissemination", simulated, NULL, NULL);
    by_tree = true;
    failed += cmocka_run_group_tests_name("tree", simulated, NULL, NULL);
    return failed;
}
