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

static const char reason[] = "no link on e0";

/* One run; `number` says where and when, of `cases_of` many. */
static uint32_t cases_of(const struct scenario *scenario, uint32_t nodes)
{
    if (scenario->fate == DIES_WITHIN)
        return 3 * rounds_of(nodes);
    if (scenario->fate == ABSENT)
        return nodes;
    return seeds(scenario->seeds);
}

static void set_fate(struct sim *sim, enum fate fate, uint32_t nodes, uint32_t number,
                     uint32_t victim)
{
    switch (fate) {
    case ABSENT:
        sim_join_at(sim, victim, 0);
        sim_kill_at(sim, victim, 0);
        break;
    case DIES:
        sim_kill_at(sim, victim, 2 * S);
        break;
    case DIES_WITHIN:
        sim_kill_after_arrivals(sim, victim, number);
        break;
    case TWO_DIE:
        sim_kill_at(sim, victim, 500 * MS);
        sim_kill_at(sim, (victim + (number % 2 ? 1 : nodes / 2)) % nodes, (500 + number) * MS);
        break;
    case RETURNS:
        sim_restart_at(sim, victim, (int64_t)number * number * 3 * MS);
        break;
    case GIVES_UP:
        sim_abort_at(sim, victim, S, reason);
        break;
    default:
        break;
    }
}

/* What a node may say at the end: all barriers passed, or a fault that names who is at fault. */
static const char *judge(const struct sim *sim, const struct scenario *scenario,
                         const struct sim_conf *conf, uint32_t node, uint32_t victim)
{
    const struct control_fault *fault = sim_fault(sim, node);
    bool returned_in_time = scenario->fate == RETURNS && !sim_fault(sim, victim ? 0 : 1);

    if (sim_dead(sim, node) || (scenario->fate == STRANGER && node == victim))
        return NULL; /* it knows nothing of the others */
    if (scenario->fate == LIVES || returned_in_time)
        return sim_passed(sim, node) == conf->epochs && !fault ? NULL : "not through";
    if (!fault)
        return "was not told";
    if (scenario->fate == DIES_WITHIN || scenario->fate == TWO_DIE)
        return sim_dead(sim, fault->node) ? NULL : "blames a node that lives";
    if (fault->node != victim)
        return "names another";
    if (scenario->fate == GIVES_UP)
        return !fault->missing && !strcmp(fault->text, reason) && sim_counts(sim)->ended_ns < 2 * S
                   ? NULL
                   : "does not tell the reason in time";
    if ((scenario->fate == ABSENT || scenario->fate == STRANGER) && sim_passed(sim, node) > 0)
        return "passed without it";
    if (scenario->fate == DIES && !(fault->missing && fault->silence_ns >= conf->timeout_ns &&
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
    const uint64_t *sent;
    struct sim *sim;
    const char *failure;

    conf.loss = loss;
    conf.late_ns = scenario->late_ns > 0 ? scenario->late_ns : conf.late_ns;
    conf.entry_ns = scenario->entry_ns > 0 ? scenario->entry_ns : conf.entry_ns;
    conf.timeout_ns = scenario->timeout_ns > 0 ? scenario->timeout_ns : conf.timeout_ns;
    if (scenario->fate == STRANGER)
        conf.outcast = victim;
    sim = sim_new(&conf);
    set_fate(sim, scenario->fate, nodes, number, victim);
    failure = sim_run(sim);
    for (uint32_t node = 0; node < nodes && !failure; node++)
        failure = judge(sim, scenario, &conf, node, victim);
    if (failure)
        fail_msg("%s: %u nodes, case %u: %s", scenario->what, nodes, number, failure);
    sent = sim_counts(sim)->sent;
    if (scenario->fate == LIVES && scenario->calm && conf.loss <= 0) {
        assert_int_equal(sent[DATAGRAM_ARRIVAL], (uint64_t)nodes * rounds_of(nodes) +
                                                     arrivals_of(nodes) * (conf.epochs - 1));
        assert_int_equal(sent[DATAGRAM_PATIENCE] + sent[DATAGRAM_ABORT], 0);
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
    struct sim_conf conf = calm(2, 1, 1);
    struct sim *sim = sim_new(&conf);

    sim_abort_at(sim, 0, S, "over");
    assert_null(sim_run(sim));
    assert_int_equal(sim_fault(sim, 1)->node, 0);
    assert_int_equal(sim_counts(sim)->sent[DATAGRAM_ABORT], 2);
    sim_free(sim);
    for (uint32_t nodes = 3; nodes <= 33; nodes += 5) {
        conf = calm(nodes, 1, nodes);
        conf.loss = 0.3;
        sim = sim_new(&conf);
        sim_join_at(sim, 1, 3600 * S);
        sim_kill_at(sim, 1, 3600 * S);
        sim_abort_at(sim, nodes - 1, S, reason);
        assert_null(sim_run(sim));
        for (uint32_t node = 0; node < nodes; node++)
            assert_true(node == 1 || !strcmp(sim_fault(sim, node)->text, reason));
        sim_free(sim);
    }
}

/* ---- the state machine, datagram by datagram ---- */

struct sent {
    struct datagram last;
    unsigned count;
};

static void keep(void *context, struct datagram *datagram)
{
    struct sent *sent = context;

    sent->last = *datagram;
    sent->count++;
}

struct bare {
    struct sent sent;
    struct neighbours neighbours;
    struct barrier barrier;
};

static void bare_init(struct bare *bare, uint32_t self, uint32_t count)
{
    const struct datagram_outlet outlet = {keep, &bare->sent};

    memset(bare, 0, sizeof(*bare));
    neighbours_init(&bare->neighbours, self, count);
    barrier_init(&bare->barrier, &bare->neighbours, &outlet, S);
}

static bool give(struct bare *bare, enum datagram_type type, uint32_t sender, uint32_t epoch,
                 uint8_t round)
{
    struct datagram datagram = {.type = type, .sender = sender, .epoch = epoch, .round = round};

    if (type == DATAGRAM_ARRIVAL)
        barrier_values_clear(&datagram.values);
    return barrier_receive(&bare->barrier, &datagram, 0);
}

static void answers_for_the_barrier_it_has_passed(void **state)
{
    struct barrier_values mine = {.states = 5};
    struct bare bare;

    bare_init(&bare, 0, 2);
    barrier_enter(&bare.barrier, &mine, 0);
    assert_true(give(&bare, DATAGRAM_ARRIVAL, 1, 0, 0));
    assert_true(barrier_passed(&bare.barrier));
    barrier_enter(&bare.barrier, &(struct barrier_values){.states = 8}, 0);
    assert_true(give(&bare, DATAGRAM_QUESTION, 1, 0, 0));
    assert_int_equal(bare.sent.last.type, DATAGRAM_ARRIVAL);
    assert_int_equal(bare.sent.last.epoch, 0);
    assert_int_equal(bare.sent.last.values.states, 5);
    assert_false(barrier_passed(&bare.barrier));
}

static void drops_what_is_out_of_step(void **state)
{
    static const struct {
        enum datagram_type type;
        uint32_t sender, epoch;
        uint8_t round;
    } wrong[] = {
        {DATAGRAM_ARRIVAL, 4, 1, 0}, /* an epoch that is over for good */
        {DATAGRAM_ARRIVAL, 4, 5, 0}, /* nobody can be so far */
        {DATAGRAM_ARRIVAL, 3, 3, 0}, /* not the partner of round 0 */
        {DATAGRAM_ARRIVAL, 4, 3, 3}, /* no such round */
        {DATAGRAM_ARRIVAL, 4, 3, 255}, {DATAGRAM_QUESTION, 4, 3, 0}, {DATAGRAM_QUESTION, 1, 1, 0},
    };
    struct barrier_values mine = {0};
    struct bare bare;

    bare_init(&bare, 0, 5);
    for (uint32_t epoch = 0; epoch <= 3; epoch++) {
        barrier_enter(&bare.barrier, &mine, 0);
        for (uint8_t round = 0; round < 3 && epoch < 3; round++)
            assert_true(give(&bare, DATAGRAM_ARRIVAL, 5 - (1U << round), epoch, round));
    }
    bare.sent.count = 0;
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_false(give(&bare, wrong[i].type, wrong[i].sender, wrong[i].epoch, wrong[i].round));
    assert_int_equal(bare.sent.count, 0);
    assert_true(give(&bare, DATAGRAM_ARRIVAL, 4, 4, 0)); /* one ahead: kept for then */
    assert_int_equal(bare.barrier.round, 0);
}

static void a_node_that_waits_asks_for_patience(void **state)
{
    struct barrier_values mine = {0};
    struct bare bare;

    bare_init(&bare, 0, 8);
    barrier_enter(&bare.barrier, &mine, 0);
    assert_true(give(&bare, DATAGRAM_QUESTION, 2, 0, 1));
    assert_int_equal(bare.sent.last.type, DATAGRAM_PATIENCE);
    assert_true(give(&bare, DATAGRAM_QUESTION, 1, 0, 0));
    assert_int_equal(bare.sent.last.type, DATAGRAM_ARRIVAL);
    assert_true(give(&bare, DATAGRAM_QUESTION, 1, 1, 0)); /* of a course that it does not know */
    assert_int_equal(bare.sent.last.type, DATAGRAM_PATIENCE);
    assert_true(give(&bare, DATAGRAM_ARRIVAL, 7, 1, 0));
    assert_int_equal(bare.barrier.slots[1].came, 0);
    assert_false(give(&bare, DATAGRAM_QUESTION, 7, 0, 0));
}

/* A node whose process was stopped for long must not blame its partners for that. */
static void asks_often_before_it_blames(void **state)
{
    struct barrier_values mine = {0};
    struct bare bare;
    int64_t now_ns = 100 * S;
    unsigned asked = 0;

    bare_init(&bare, 0, 4);
    barrier_enter(&bare.barrier, &mine, 0);
    while (!barrier_tick(&bare.barrier, now_ns)) {
        asked++;
        now_ns = barrier_deadline(&bare.barrier);
    }
    assert_true(asked >= 8);
    assert_int_equal(bare.sent.count, asked + 1);
}

static void membership_make(struct membership *membership, struct sent *sent, uint32_t self,
                            uint64_t nonce)
{
    const struct datagram_outlet outlet = {keep, sent};
    const struct membership_conf conf = {.self = self,
                                         .count = 2,
                                         .run_id = "run",
                                         .key = {7},
                                         .nonce = nonce,
                                         .boot = 1,
                                         .timeout_ns = S};

    membership_init(membership, &conf, &outlet);
    membership_start(membership);
}

static void two_know_each_other_after_three_datagrams(void **state)
{
    struct sent from_first = {0}, from_second = {0};
    struct membership first, second;

    membership_make(&first, &from_first, 0, 1);
    membership_make(&second, &from_second, 1, 2);
    assert_int_equal(from_first.last.to, 0);
    assert_true(membership_receive(&second, &from_first.last, 0));
    assert_int_equal(from_second.last.to, 1);
    assert_int_equal(second.neighbours.all[0].nonce, 0); /* it may be of an earlier run */
    assert_int_equal(second.neighbours.all[0].heard_ns, -1);
    assert_true(membership_receive(&first, &from_second.last, 0));
    assert_int_equal(first.neighbours.all[0].nonce, 2);
    assert_int_equal(from_first.last.to, 2);
    assert_true(membership_receive(&second, &from_first.last, 0));
    assert_int_equal(second.neighbours.all[0].nonce, 1);
}

/* What was said to an earlier process in this place, under the same key and run id, changes nothing
 * and is no sign of life. */
static void nothing_replays_across_runs(void **state)
{
    struct datagram old = {.type = DATAGRAM_ARRIVAL, .sender = 0, .from = 1, .to = 2, .epoch = 0};
    struct sent sent = {0};
    struct membership again;

    barrier_values_clear(&old.values);
    membership_make(&again, &sent, 1, 3);
    membership_enter(&again, &old.values, 0);
    sent.count = 0;
    for (old.type = DATAGRAM_HELLO; old.type < DATAGRAM_TYPES; old.type++)
        if (old.type != DATAGRAM_FETCH)
            assert_false(membership_receive(&again, &old, 0));
    assert_int_equal(sent.count, 0);
    old.to = 0; /* it may be the first word of a node of this run */
    for (old.type = DATAGRAM_HELLO; old.type < DATAGRAM_TYPES; old.type++)
        assert_true(membership_receive(&again, &old, 0));
    assert_int_equal(sent.last.type, DATAGRAM_HELLO);
    assert_int_equal(membership_state(&again), BARRIER_WAITING);
    assert_null(membership_fault(&again));
    assert_int_equal(again.neighbours.all[0].heard_ns, -1);
    assert_int_equal(again.neighbours.all[0].nonce, 0);
}

static void names_who_was_replaced(void **state)
{
    struct datagram hello = {.type = DATAGRAM_HELLO, .sender = 1, .from = 5, .to = 9};
    struct sent sent = {0};
    struct membership membership;

    membership_make(&membership, &sent, 0, 9);
    assert_true(membership_receive(&membership, &hello, 0));
    assert_null(membership_fault(&membership));
    hello.from = 6;
    assert_true(membership_receive(&membership, &hello, 0));
    assert_non_null(membership_fault(&membership));
    assert_int_equal(membership_fault(&membership)->node, 1);
    assert_non_null(strstr(membership_fault(&membership)->text, "was it restarted?"));
    assert_int_equal(sent.last.type, DATAGRAM_ABORT);
    assert_int_equal(sent.last.to, 6); /* the new one is told */
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
                    assert_int_equal(sim_passed(sim, node), 2);
                    assert_int_equal(sim_group(sim, node)->barrier.tree,
                                     machines == 1 && cores < nodes);
                }
                sim_free(sim);
            }
}

static void finds_every_neighbour_and_no_other(void **state)
{
    for (uint32_t count = 1; count <= 130; count++) {
        for (uint32_t self = 0; self < count; self++) {
            struct neighbours neighbours;
            uint32_t found = 0;

            neighbours_init(&neighbours, self, count);
            for (uint32_t other = 0; other < count; other++) {
                const struct neighbour *neighbour = neighbours_find(&neighbours, other);

                assert_true(!neighbour || neighbour->index == other);
                found += neighbour != NULL;
            }
            assert_int_equal(found, neighbours.size);
            for (uint32_t round = 0; round < neighbours.rounds; round++) {
                assert_non_null(neighbours_find(&neighbours, neighbours_ahead(&neighbours, round)));
                assert_non_null(
                    neighbours_find(&neighbours, neighbours_behind(&neighbours, round)));
            }
            assert_true(self == 0 || neighbours_find(&neighbours, neighbours_parent(self)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_every_neighbour_and_no_other),
        cmocka_unit_test(answers_for_the_barrier_it_has_passed),
        cmocka_unit_test(drops_what_is_out_of_step),
        cmocka_unit_test(a_node_that_waits_asks_for_patience),
        cmocka_unit_test(asks_often_before_it_blames),
        cmocka_unit_test(two_know_each_other_after_three_datagrams),
        cmocka_unit_test(nothing_replays_across_runs),
        cmocka_unit_test(names_who_was_replaced),
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
