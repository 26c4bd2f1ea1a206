/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Greeting, barrier and abort in the simulator (barrier_sim.h): every run ends, with everybody
 * through and the same reduction, or with everybody naming a node that is really dead. All of it by
 * dissemination and by the tree. More seeds and 65,536 nodes with SWITCHBENCH_LONG=1.
 */
#include "barrier_sim.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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
static const char *judge(const struct sim *sim, const struct scenario *scenario, uint32_t number,
                         uint32_t victim)
{
    const struct sim_node *node = &sim->nodes[number];
    const struct control_fault *fault = &node->membership.fault;
    bool told = node->membership.aborted;
    bool returned_in_time =
        scenario->fate == RETURNS && !sim->nodes[victim ? 0 : 1].membership.aborted;

    if (node->dead || (scenario->fate == STRANGER && number == victim))
        return NULL; /* it knows nothing of the others */
    if (scenario->fate == LIVES || returned_in_time)
        return node->passed == sim->conf.epochs && !told ? NULL : "not through";
    if (!told)
        return "was not told";
    if (scenario->fate == DIES_WITHIN || scenario->fate == TWO_DIE)
        return sim->nodes[fault->node].dead ? NULL : "blames a node that lives";
    if (fault->node != victim)
        return "names another";
    if (scenario->fate == GIVES_UP)
        return !fault->missing && !strcmp(fault->text, SIM_REASON) && sim->now_ns < 2 * S
                   ? NULL
                   : "does not tell the reason in time";
    if ((scenario->fate == ABSENT || scenario->fate == STRANGER) && node->passed > 0)
        return "passed without it";
    if (scenario->fate == DIES && !(fault->missing && fault->silence_ns >= sim->conf.timeout_ns &&
                                    fault->last_epoch + 1 >= fault->epoch))
        return "was not silent for so long";
    return NULL;
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
    const char *failure;

    conf.loss = loss;
    conf.late_ns = scenario->late_ns > 0 ? scenario->late_ns : conf.late_ns;
    conf.entry_ns = scenario->entry_ns > 0 ? scenario->entry_ns : conf.entry_ns;
    conf.timeout_ns = scenario->timeout_ns > 0 ? scenario->timeout_ns : conf.timeout_ns;
    if (scenario->fate == STRANGER)
        conf.outcast = victim;
    sim = sim_new(&conf);
    set_fate(sim, scenario->fate, number, victim);
    failure = sim_run(sim);
    for (uint32_t node = 0; node < nodes && !failure; node++)
        failure = judge(sim, scenario, node, victim);
    if (failure)
        fail_msg("%s: %u nodes, case %u: %s", scenario->what, nodes, number, failure);
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
        assert_null(sim_run(sim));
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
                assert_null(sim_run(sim));
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
