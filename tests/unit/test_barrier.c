/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Greeting, barrier and abort in a simulator: many nodes in one process, with simulated time, and a
 * network that delays, loses, doubles and reorders datagrams. Every run ends in one of two ways:
 * all nodes pass with the same reduction, or all nodes name a node that is really dead. Each
 * scenario runs by dissemination and by the tree. SWITCHBENCH_LONG=1 adds seeds and 65,536 nodes.
 */
#include "membership.h"
#include "prng.h"
#include "unit.h"

#define US NS_PER_US
#define MS NS_PER_MS
#define S NS_PER_S
#define EVENTS_MAX 200000000ULL

/* --- the simulator --- */

enum sim_kind {
    SIM_JOIN,   /* a process starts in the node's place, with a new nonce, at barrier 0 */
    SIM_KILL,   /* its process ends; datagrams on the way to it are lost */
    SIM_ABORT,  /* it gives up, for SIM_REASON */
    SIM_ENTER,  /* it enters a barrier */
    SIM_TIMER,  /* a timer of the node is due */
    SIM_PACKET, /* a datagram arrives */
};
#define SIM_REASON "no link on e0"

struct sim_event {
    int64_t time_ns;
    uint64_t order; /* first in, first out at equal times */
    enum sim_kind kind;
    uint32_t node;
    uint32_t life;           /* the process to which it is sent; 0: any */
    struct datagram *packet; /* of SIM_PACKET */
    uint8_t key;             /* the first byte of the key that seals it */
};

struct sim_node {
    struct membership membership;
    bool running;
    bool dead;              /* or restarted after its run had begun */
    bool entered;           /* the barrier `passed` */
    bool joins;             /* its SIM_JOIN is planned, and not at a random time */
    uint32_t passed;        /* barriers */
    uint32_t life;          /* number of the process; 0: none has started yet */
    uint64_t arrivals;      /* sent */
    uint64_t arrivals_most; /* its process ends after so many sent ones; 0: it does not end */
    int64_t timer_ns;       /* the earliest timer event in the queue */
};

enum fate {
    LIVES,
    SPREAD,      /* the nodes are spread over machines with as many cores, or one more */
    ABSENT,      /* one node never joins: each in turn */
    DIES,        /* between barriers */
    DIES_WITHIN, /* after each number of sent arrivals, and so in each round of barriers 0 to 2 */
    TWO_DIE,
    RETURNS, /* at any time while neighbours greet each other and after it */
    GIVES_UP,
    GIVES_UP_EARLY, /* before the first barrier, as node 1 never joins */
    STRANGER,       /* it has another key */
};

/* A row of barrier.txt: nodes from `first` to `last` by `step`, with seeds 1 to `seeds`. */
struct scenario {
    const char *what;
    enum fate fate;
    uint32_t first, last, step;
    uint32_t epochs;
    unsigned seeds;
    bool calm;   /* datagrams come in order, and all nodes know their neighbours when the first one
                    enters; else datagrams come twice and overtake each other by milliseconds */
    double loss; /* of even seeds; odd seeds have none where it alternates */
    bool alternates;
    int64_t late_ns, entry_ns, timeout_ns; /* 0: as usual */
    uint32_t stride;    /* from a case's victim to the next case's; 0: always the last node */
    const char *events; /* "NODE EVENT MS, ...": events and times of nodes; -1 is the victim */
};

static struct {
    const struct scenario *scenario;
    uint32_t count, victim;
    uint32_t cores,
        machines; /* 0: datagrams are not counted; nodes are spread in turn over machines */
    uint64_t seed, random, order;
    double loss;
    int64_t now_ns;
    struct sim_node *nodes;
    struct sim_epoch {
        struct barrier_values truth;
        uint32_t entered; /* nodes */
    } * epochs;
    struct sim_event *heap;
    size_t heap_size, heap_room;
    uint64_t sent[DATAGRAM_TYPES];
} sim;

#define broken(...)                                                                                \
    do {                                                                                           \
        print_error("%s: %u nodes, seed %llu\n", sim.scenario->what, sim.count,                    \
                    (unsigned long long)sim.seed);                                                 \
        fail_msg(__VA_ARGS__);                                                                     \
    } while (0)

static bool chance(double probability)
{
    return (double)(prng_next(&sim.random) >> 11) * 0x1p-53 < probability;
}

static int64_t within(int64_t range_ns)
{
    return range_ns ? (int64_t)(prng_next(&sim.random) % (uint64_t)range_ns) : 0;
}

static int64_t timeout_ns(void)
{
    return sim.scenario->timeout_ns > 0 ? sim.scenario->timeout_ns : 5 * S;
}

static uint32_t index_of(const struct sim_node *node)
{
    return (uint32_t)(node - sim.nodes);
}

/* --- queue of events: a binary heap --- */

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->order < b->order;
}

static void push(struct sim_event event)
{
    size_t at = sim.heap_size++;

    if (sim.heap_size > sim.heap_room) {
        sim.heap_room = sim.heap_room ? sim.heap_room * 2 : 1024;
        sim.heap = realloc(sim.heap, sim.heap_room * sizeof(*sim.heap));
        assert_non_null(sim.heap);
    }
    event.order = sim.order++;
    for (; at > 0 && before(&event, &sim.heap[(at - 1) / 2]); at = (at - 1) / 2)
        sim.heap[at] = sim.heap[(at - 1) / 2];
    sim.heap[at] = event;
}

static struct sim_event pop(void)
{
    struct sim_event first = sim.heap[0], last = sim.heap[--sim.heap_size];
    size_t at = 0, child;

    while ((child = 2 * at + 1) < sim.heap_size) {
        if (child + 1 < sim.heap_size && before(&sim.heap[child + 1], &sim.heap[child]))
            child++;
        if (!before(&sim.heap[child], &last))
            break;
        sim.heap[at] = sim.heap[child];
        at = child;
    }
    sim.heap[at] = last;
    return first;
}

/* Plan an event of a node, for any process that is in its place at that time. */
static void plan(enum sim_kind kind, uint32_t node, int64_t time_ns)
{
    sim.nodes[node].joins |= kind == SIM_JOIN;
    push((struct sim_event){.time_ns = time_ns, .kind = kind, .node = node});
}

/* Plan an event for the process that is in the node's place now. */
static void plan_own(const struct sim_node *node, enum sim_kind kind, int64_t time_ns)
{
    push((struct sim_event){
        .time_ns = time_ns, .kind = kind, .node = index_of(node), .life = node->life});
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

    if (!node->running)
        return;
    sim.sent[datagram->type]++;
    datagram->transmit_ns = sim.now_ns;
    for (int copies = chance(sim.scenario->calm ? 0 : 0.1) ? 2 : 1; copies > 0; copies--) {
        int64_t delay_ns = 20 * US + within(sim.scenario->calm ? 30 * US : 5 * MS);
        struct datagram *packet;

        if (chance(sim.loss))
            continue;
        packet = malloc(sizeof(*packet));
        assert_non_null(packet);
        *packet = *datagram;
        push((struct sim_event){.time_ns = sim.now_ns + delay_ns,
                                .kind = SIM_PACKET,
                                .node = datagram->recipient,
                                .packet = packet,
                                .key = node->membership.conf.key[0]});
    }
    if (datagram->type == DATAGRAM_ARRIVAL && ++node->arrivals == node->arrivals_most)
        node_dies(node);
}

/* --- nodes --- */

static void plan_entry(struct sim_node *node)
{
    bool calm = sim.scenario->calm;
    int64_t entry_ns = sim.scenario->entry_ns > 0 ? sim.scenario->entry_ns : calm ? 0 : 10 * MS;

    if (node->passed < sim.scenario->epochs)
        plan_own(node, SIM_ENTER, sim.now_ns + (calm ? 20 * MS : 0) + within(entry_ns));
}

/* After an event of a node: note whether it has passed a barrier, and plan its next timer. */
static void follow_up(struct sim_node *node)
{
    const struct barrier_values *found = membership_values(&node->membership);
    const struct sim_epoch *epoch = &sim.epochs[node->passed];
    int64_t due_ns = node->membership.backoff.due_ns;

    if (!node->running)
        return;
    if (node->entered && membership_state(&node->membership) == BARRIER_PASSED) {
        if (node->dead || epoch->entered != sim.count)
            broken("node %u passed barrier %u when %u had entered", index_of(node), node->passed,
                   epoch->entered);
        if (memcmp(found->maximum, epoch->truth.maximum,
                   BARRIER_MAXIMA_CALLER * sizeof(found->maximum[0])) != 0 ||
            found->states != epoch->truth.states)
            broken("node %u passed barrier %u with a wrong reduction", index_of(node),
                   node->passed);
        node->entered = false;
        node->passed++;
        plan_entry(node);
    }
    if (due_ns == CLOCK_NEVER || due_ns >= node->timer_ns)
        return;
    node->timer_ns = due_ns;
    plan_own(node, SIM_TIMER, due_ns);
}

/* Return whether any node knows this process by its nonce. */
static bool is_known(const struct sim_node *node)
{
    for (uint32_t i = 0; i < sim.count; i++) {
        const struct neighbour *neighbour =
            membership_neighbour(&sim.nodes[i].membership, index_of(node));

        if (neighbour && neighbour->nonce == node->membership.conf.nonce)
            return true;
    }
    return false;
}

/* Start a new process in this place. If no node knows the one before, the new one takes part;
 * otherwise the run is over for this node. */
static void node_joins(struct sim_node *node)
{
    uint32_t self = index_of(node);
    struct membership_conf conf = {
        .self = self,
        .count = sim.count,
        .key = {sim.scenario->fate == STRANGER && self == sim.victim ? 2 : 1},
        .nonce = prng_next(&sim.random) | 1,
        .boot = sim.machines > 0 ? 1 + self % sim.machines : 1,
        .timeout_ns = timeout_ns(),
        .cores = sim.cores,
        .send = carry,
        .context = node,
    };

    if (node->life > 0) {
        node->dead = is_known(node);
        sim.epochs[0].entered -= node->entered && !node->dead;
    }
    node->life++;
    node->running = true;
    node->entered = false;
    node->passed = 0;
    node->timer_ns = CLOCK_NEVER;
    membership_start(&node->membership, &conf);
    plan_entry(node);
}

static void node_enters(struct sim_node *node)
{
    uint64_t state = sim.seed ^ ((uint64_t)index_of(node) << 32 | node->passed);
    struct sim_epoch *epoch = &sim.epochs[node->passed];
    struct barrier_values values;

    if (node->membership.aborted)
        return;
    barrier_values_clear(&values);
    for (unsigned i = 0; i < BARRIER_MAXIMA_CALLER; i++) {
        values.maximum[i] = (int64_t)prng_next(&state);
        if (!node->dead && values.maximum[i] > epoch->truth.maximum[i])
            epoch->truth.maximum[i] = values.maximum[i];
    }
    values.states = UINT32_C(1) << (prng_next(&state) % 32);
    epoch->truth.states |= node->dead ? 0 : values.states;
    epoch->entered += !node->dead;
    node->entered = true;
    membership_enter(&node->membership, &values, sim.now_ns);
}

static void happen(const struct sim_event *event)
{
    struct sim_node *node = &sim.nodes[event->node];
    struct membership *membership = &node->membership;

    if ((event->life && event->life != node->life) || (!node->running && event->kind > SIM_JOIN))
        return;
    switch (event->kind) {
    case SIM_JOIN:
        node_joins(node);
        break;
    case SIM_KILL:
        node_dies(node);
        break;
    case SIM_ABORT:
        membership_abort(membership, SIM_REASON, false, sim.now_ns);
        break;
    case SIM_ENTER:
        node_enters(node);
        break;
    case SIM_TIMER:
        if (event->time_ns != node->timer_ns)
            break;
        node->timer_ns = CLOCK_NEVER;
        membership_tick(membership, sim.now_ns);
        break;
    case SIM_PACKET:
        if (event->key == membership->conf.key[0])
            membership_receive(membership, event->packet, sim.now_ns);
        break;
    }
    follow_up(node);
}

/* Run until nothing is due. */
static void sim_run(void)
{
    int64_t late_ns = sim.scenario->late_ns > 0 ? sim.scenario->late_ns
                      : sim.scenario->calm      ? 0
                                                : 20 * MS;

    for (uint32_t i = 0; i < sim.count; i++)
        if (!sim.nodes[i].joins)
            plan(SIM_JOIN, i, within(late_ns));
    for (uint64_t events = 0; sim.heap_size > 0; events++) {
        struct sim_event event = pop();

        sim.now_ns = event.time_ns;
        happen(&event);
        free(event.packet);
        if (events == EVENTS_MAX)
            broken("it does not end");
    }
}

/* --- live nodes pass, and dead ones are named --- */

static bool by_tree; /* else by dissemination */

static bool is_long(void)
{
    const char *text = getenv("SWITCHBENCH_LONG");

    return text && !strcmp(text, "1");
}

static uint32_t rounds_of(uint32_t nodes)
{
    uint32_t rounds = 0;

    while ((UINT64_C(1) << rounds) < nodes)
        rounds++;
    return rounds;
}

/* Return the number of cases of a scenario; a case's number gives its place and time. */
static uint32_t cases_of(const struct scenario *scenario, uint32_t nodes)
{
    switch (scenario->fate) {
    case DIES_WITHIN:
        return 3 * rounds_of(nodes);
    case ABSENT:
        return nodes;
    case SPREAD:
        return 2 * nodes;
    default:
        return is_long() && scenario->first < 65536 ? 100 : scenario->seeds;
    }
}

static void sim_begin(const struct scenario *scenario, uint32_t nodes, uint32_t number)
{
    bool spread = scenario->fate == SPREAD;

    memset(&sim, 0, sizeof(sim));
    sim.scenario = scenario;
    sim.count = nodes;
    sim.victim = scenario->stride > 0 ? number * scenario->stride % nodes : nodes - 1;
    sim.machines = spread ? (number + 1) / 2 : 0;
    sim.cores = spread ? nodes - number % 2 : by_tree;
    sim.seed = sim.random = number * 64 + nodes;
    sim.loss = scenario->alternates && number % 2 == 0 ? 0 : scenario->loss;
    sim.nodes = calloc(nodes, sizeof(*sim.nodes));
    sim.epochs = calloc(scenario->epochs + 1, sizeof(*sim.epochs));
    assert_true(sim.nodes != NULL && sim.epochs != NULL);
    for (uint32_t epoch = 0; epoch < scenario->epochs; epoch++)
        barrier_values_clear(&sim.epochs[epoch].truth);
}

static void set_fate(uint32_t number)
{
    static const char *const kinds[] = {
        [SIM_JOIN] = "join", [SIM_KILL] = "kill", [SIM_ABORT] = "abort"};
    uint32_t victim = sim.victim;
    int node, ms, more;
    char name[8];

    for (const char *at = sim.scenario->events;
         sscanf(at, "%d %7s %d,%n", &node, name, &ms, &more) == 3; at += more)
        for (enum sim_kind kind = SIM_JOIN; kind <= SIM_ABORT; kind++)
            if (strcmp(kinds[kind], name) == 0)
                plan(kind, node < 0 ? victim : (uint32_t)node, ms * MS);
    if (sim.scenario->fate == DIES_WITHIN)
        sim.nodes[victim].arrivals_most = number;
    if (sim.scenario->fate == TWO_DIE)
        plan(SIM_KILL, (victim + (number % 2 ? 1 : sim.count / 2)) % sim.count,
             (500 + number) * MS);
    if (sim.scenario->fate == RETURNS) {
        plan(SIM_JOIN, victim, (int64_t)number * number * 3 * MS);
        sim.nodes[victim].joins = false;
    }
}

/* Check a node at the end: it has passed all barriers, or its fault names the right node. */
static void judge(uint32_t number)
{
    enum fate fate = sim.scenario->fate;
    uint32_t victim = sim.victim;
    const struct sim_node *node = &sim.nodes[number];
    const struct control_fault *fault = &node->membership.fault;
    bool told = node->membership.aborted;
    bool returned_in_time = fate == RETURNS && !sim.nodes[victim ? 0 : 1].membership.aborted;

    if (node->dead || (fate == STRANGER && number == victim))
        return; /* it knows nothing of the others */
    if (fate == LIVES || fate == SPREAD || returned_in_time) {
        if (node->passed != sim.scenario->epochs || told)
            broken("node %u is not through", number);
        if (fate == SPREAD &&
            node->membership.crowded != (sim.machines == 1 && sim.cores < sim.count))
            broken("node %u takes the wrong course", number);
        return;
    }
    if (!told)
        broken("node %u was not told", number);
    if (fate == DIES_WITHIN || fate == TWO_DIE ? !sim.nodes[fault->node].dead
                                               : fault->node != victim)
        broken("node %u blames node %u", number, fault->node);
    if ((fate == GIVES_UP || fate == GIVES_UP_EARLY) &&
        (fault->missing || strcmp(fault->text, SIM_REASON) != 0 || sim.now_ns >= 2 * S))
        broken("node %u does not tell the reason in time", number);
    if ((fate == ABSENT || fate == STRANGER) && node->passed > 0)
        broken("node %u passed without it", number);
    if (fate == DIES && !(fault->missing && fault->silence_ns >= timeout_ns() &&
                          fault->last_epoch + 1 >= fault->epoch))
        broken("node %u was not silent for so long", victim);
}

/* Without loss no node asks, and no datagram is sent twice. */
static void check_sent(void)
{
    enum fate fate = sim.scenario->fate;
    uint64_t nodes = sim.count, first = nodes * rounds_of(sim.count);
    uint64_t later = by_tree && nodes > 1 ? 2 * (nodes - 1) : first;

    assert_int_equal(sim.sent[DATAGRAM_ABORT], fate == GIVES_UP ? 2 : 0);
    if (fate == LIVES)
        assert_true(sim.sent[DATAGRAM_ARRIVAL] == first + later * (sim.scenario->epochs - 1) &&
                    sim.sent[DATAGRAM_PONG] == 0);
}

static void play(const struct scenario *scenario, uint32_t nodes, uint32_t number)
{
    sim_begin(scenario, nodes, number);
    set_fate(number);
    sim_run();
    for (uint32_t node = 0; node < nodes; node++)
        judge(node);
    if (scenario->calm && sim.loss <= 0 && scenario->fate != STRANGER)
        check_sent();
    free(sim.nodes);
    free(sim.epochs);
    free(sim.heap);
}

/* Return the number behind a key; 0: the key is absent. */
static double option(const struct unit_row *row, const char *key)
{
    const char *at = strstr(row->fields[4], key);

    return at != NULL ? atof(at + strlen(key)) : 0;
}

static void play_row(const struct unit_row *row)
{
    static const char *const fates[] = {"lives",          "spread",  "absent",  "dies",
                                        "dies within",    "two die", "returns", "gives up",
                                        "gives up early", "stranger"};
    struct scenario scenario = {.what = row->fields[0],
                                .calm = strstr(row->fields[4], "calm") != NULL,
                                .loss = option(row, "loss "),
                                .alternates = strstr(row->fields[4], "alternates") != NULL,
                                .late_ns = (int64_t)option(row, "late ") * S,
                                .entry_ns = (int64_t)option(row, "entry ") * S,
                                .timeout_ns = (int64_t)option(row, "timeout ") * S,
                                .events = row->fields[5]};

    while (strcmp(fates[scenario.fate], row->fields[1]) != 0)
        scenario.fate++;
    scenario.stride = strstr(row->fields[4], "each ") != NULL ? (uint32_t)option(row, "each ") : 1;
    assert_int_equal(
        sscanf(row->fields[2], "%u %u %u", &scenario.first, &scenario.last, &scenario.step), 3);
    assert_int_equal(sscanf(row->fields[3], "%u %u", &scenario.epochs, &scenario.seeds), 2);
    for (uint32_t n = scenario.first; n <= scenario.last; n += scenario.step)
        for (uint32_t number = 1; number <= cases_of(&scenario, n); number++)
            play(&scenario, n, number);
}

TEST(every_run_ends_as_it_should)
{
    for (unsigned course = 0; course < 2; course++) {
        by_tree = course == 1;
        unit_each_row("scenario", play_row);
        if (is_long())
            unit_each_row("long", play_row);
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

/* Start process 1 of a node among `count` nodes. */
static void begin(uint32_t self, uint32_t count)
{
    const struct membership_conf conf = {
        .self = self, .count = count, .nonce = 1, .boot = 1, .timeout_ns = S, .send = note_sent};

    membership_start(&member, &conf);
    sent = 0;
}

/* Deliver a datagram from process 2 of another node, addressed to process `to`. */
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

TEST_ROWS(each_datagram_is_answered_or_dropped, "datagram")
{
    static const char *const types[DATAGRAM_TYPES] = {[DATAGRAM_ARRIVAL] = "arrival",
                                                      [DATAGRAM_QUESTION] = "question",
                                                      [DATAGRAM_BEAT] = "beat",
                                                      [DATAGRAM_PONG] = "pong"};
    unsigned nodes, passed, sender, epoch, round;
    uint8_t type = DATAGRAM_ARRIVAL;
    char name[16];

    assert_int_equal(sscanf(row->fields[1], "%u %u", &nodes, &passed), 2);
    assert_int_equal(sscanf(row->fields[2], "%15s %u %u %u", name, &sender, &epoch, &round), 4);
    while (types[type] == NULL || strcmp(types[type], name) != 0)
        type++;
    begin(0, nodes);
    for (uint32_t node = 1; node < nodes; node++)
        give(DATAGRAM_HELLO, node, 0, 0, 1);
    for (uint32_t at = 0; at <= passed; at++) {
        enter(1U << at);
        for (uint8_t k = 0; k < 3 && at < passed; k++)
            assert_true(give(DATAGRAM_ARRIVAL, nodes - (1U << k), at, k, 1));
    }
    sent = 0;
    assert_int_equal(give(type, sender, epoch, (uint8_t)round, 1),
                     strcmp(row->fields[3], "dropped") != 0);
    assert_int_equal(member.round, 0);
    assert_string_equal(sent > 0 ? types[last.type] : "", sent > 0 ? row->fields[3] : "");
    assert_int_equal(sent, strcmp(row->fields[3], "dropped") != 0 &&
                               strcmp(row->fields[3], "taken") != 0);
    assert_true(sent == 0 || last.type != DATAGRAM_ARRIVAL ||
                last.values.states == 1U << last.epoch);
}

/* A process that was stopped for long does not blame its partners. */
TEST(asks_often_before_it_blames)
{
    begin(0, 4);
    enter(0);
    sent = 0;
    for (int64_t now_ns = 100 * S; !member.aborted; now_ns = member.backoff.due_ns)
        membership_tick(&member, now_ns);
    assert_true(sent >= 8 + 3); /* questions, and the fault, to each neighbour */
}

/* A datagram to an earlier process in this place, under the same key and run id, changes nothing
 * and is no sign of life; a datagram that may be the first one of a node of this run is answered by
 * a greeting only. */
TEST(nothing_replays_across_runs)
{
    for (uint64_t to = 9; to != 1; to = to == 9 ? 0 : 1) {
        begin(0, 2);
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

/* Node 2 of 4 has the parent 0 and the child 3. A repeated datagram is no sign of life; one that
 * was overtaken still is. */
TEST(heartbeats_go_down_the_tree_once)
{
    static const struct {
        uint8_t type;
        uint32_t sender;
        int64_t transmit_ns;
        bool taken, heard;
    } beats[] = {
        {DATAGRAM_BEAT, 0, 5, true, true},   {DATAGRAM_BEAT, 0, 5, false, false},
        {DATAGRAM_BEAT, 0, 4, false, false}, {DATAGRAM_BEAT, 3, 9, false, true},
        {DATAGRAM_BEAT, 0, 6, true, true},   {DATAGRAM_PONG, 0, 8, true, true},
        {DATAGRAM_BEAT, 0, 7, true, false},
    };

    begin(2, 4);
    for (EACH(beat, beats)) {
        const struct datagram datagram = {.type = beat->type,
                                          .sender = beat->sender,
                                          .from = 2,
                                          .to = 1,
                                          .transmit_ns = beat->transmit_ns};
        bool goes_on = beat->taken && beat->type == DATAGRAM_BEAT;
        int64_t now_ns = 100 + (beat - beats);

        last.type = 0;
        assert_int_equal(membership_receive(&member, &datagram, now_ns), beat->taken);
        assert_int_equal(member.beat_ns == now_ns, goes_on);
        assert_int_equal(last.type == DATAGRAM_BEAT && last.recipient == 3, goes_on);
        assert_int_equal(membership_neighbour(&member, beat->sender)->heard_ns == now_ns,
                         beat->heard);
    }
}

TEST(names_who_was_replaced)
{
    struct datagram hello = {.type = DATAGRAM_HELLO, .sender = 1, .from = 6, .to = 1};

    begin(0, 2);
    assert_true(give(DATAGRAM_HELLO, 1, 0, 0, 1));
    assert_false(member.aborted);
    assert_true(membership_receive(&member, &hello, 0));
    assert_true(member.aborted && member.fault.node == 1);
    assert_says(member.fault.text, "was the node restarted?");
    assert_true(last.type == DATAGRAM_ABORT && last.to == 6); /* it is sent to the new process */
}

TEST(a_reason_is_made_printable)
{
    begin(0, 2);
    membership_abort(&member, "no link;\n\xc3\xa4 see the cable", true, 0);
    assert_string_equal(last.fault.text, "no link;??? see the cable");
    assert_true(last.fault.impossible && !last.fault.missing && last.fault.node == 0);
}
