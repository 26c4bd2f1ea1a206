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

static void run(struct sim *sim, const struct sim_conf *conf)
{
    const char *failure = sim_run(sim);

    if (failure)
        fail_msg("%u nodes, loss %.2f, seed %llu: %s", conf->nodes, conf->loss,
                 (unsigned long long)conf->seed, failure);
}

static void assert_all_through(const struct sim *sim, const struct sim_conf *conf)
{
    for (uint32_t node = 0; node < conf->nodes; node++) {
        if (sim_dead(sim, node))
            continue; /* it came back when all was over */
        if (sim_passed(sim, node) != conf->epochs || sim_fault(sim, node))
            fail_msg("%u nodes, seed %llu: node %u passed %u of %u barriers%s", conf->nodes,
                     (unsigned long long)conf->seed, node, sim_passed(sim, node), conf->epochs,
                     sim_fault(sim, node) ? ", with a fault" : "");
    }
}

/* Everybody who lives has a fault, and all the faults that say "missing" name a dead node. */
static void assert_dead_named(const struct sim *sim, const struct sim_conf *conf)
{
    for (uint32_t node = 0; node < conf->nodes; node++) {
        const struct control_fault *fault = sim_fault(sim, node);

        if (sim_dead(sim, node))
            continue;
        if (!fault)
            fail_msg("%u nodes, seed %llu: node %u was not told", conf->nodes,
                     (unsigned long long)conf->seed, node);
        if (!sim_dead(sim, fault->node))
            fail_msg("%u nodes, seed %llu: node %u blames node %u, which lives", conf->nodes,
                     (unsigned long long)conf->seed, node, fault->node);
    }
}

static void assert_named(const struct sim *sim, const struct sim_conf *conf, uint32_t culprit)
{
    for (uint32_t node = 0; node < conf->nodes; node++) {
        const struct control_fault *fault = sim_fault(sim, node);

        if (sim_dead(sim, node))
            continue;
        if (!fault || fault->node != culprit)
            fail_msg("%u nodes, seed %llu: node %u names %d and not %u", conf->nodes,
                     (unsigned long long)conf->seed, node, fault ? (int)fault->node : -1, culprit);
    }
}

static void through(const struct sim_conf *conf)
{
    struct sim *sim = sim_new(conf);

    run(sim, conf);
    assert_all_through(sim, conf);
    sim_free(sim);
}

/* ---- everybody lives ---- */

static void exact_number_of_datagrams(const struct sim_conf *conf)
{
    struct sim *sim = sim_new(conf);

    run(sim, conf);
    assert_all_through(sim, conf);
    assert_int_equal(sim_counts(sim)->sent[DATAGRAM_ARRIVAL],
                     (uint64_t)conf->nodes * rounds_of(conf->nodes) +
                         arrivals_of(conf->nodes) * (conf->epochs - 1));
    assert_int_equal(sim_counts(sim)->sent[DATAGRAM_PATIENCE], 0);
    assert_int_equal(sim_counts(sim)->sent[DATAGRAM_ABORT], 0);
    sim_free(sim);
}

static void costs_no_datagram_more_without_loss(void **state)
{
    struct sim_conf conf;

    for (uint32_t nodes = 1; nodes <= 65; nodes++) {
        conf = calm(nodes, 3, nodes);
        exact_number_of_datagrams(&conf);
    }
    conf = calm(1000, 2, 1);
    exact_number_of_datagrams(&conf);
}

static void ends_under_loss_duplication_and_reordering(void **state)
{
    static const double losses[] = {0, 0.01, 0.3};

    for (uint32_t nodes = 1; nodes <= 65; nodes++) {
        for (unsigned seed = 1; seed <= seeds(5); seed++) {
            for (unsigned i = 0; i < 3; i++) {
                struct sim_conf conf = rough(nodes, 4, seed, losses[i]);

                through(&conf);
            }
        }
    }
}

static void keeps_epochs_apart_over_many_barriers(void **state)
{
    for (unsigned seed = 1; seed <= seeds(2); seed++) {
        struct sim_conf conf = rough(7, 200, seed, 0.3);

        through(&conf);
    }
}

static void serves_thousands_of_nodes(void **state)
{
    struct sim_conf conf = rough(1000, 3, 5, 0.3);

    through(&conf);
    conf = calm(4096, 2, 6);
    conf.loss = 0.01;
    through(&conf);
}

static void serves_65536_nodes(void **state)
{
    struct sim_conf conf = calm(65536, 2, 7);

    if (!long_tier())
        skip();
    exact_number_of_datagrams(&conf);
    conf = rough(65536, 1, 8, 0.3);
    through(&conf);
}

/* A node that joins seconds later, longer than the time-out, is waited for as long as nobody has
 * reached barrier 0 for that long; here the time-out is longer. */
static void waits_for_late_joiners(void **state)
{
    for (unsigned seed = 1; seed <= seeds(3); seed++) {
        for (uint32_t nodes = 2; nodes <= 33; nodes += 31) {
            struct sim_conf conf = rough(nodes, 2, seed, seed % 2 ? 0.3 : 0);

            conf.late_ns = 4 * S;
            through(&conf);
        }
    }
}

/* A slow partner is not a missing one: it answers, so nobody gives up, however long it takes. */
static void never_blames_the_slow(void **state)
{
    struct sim_conf conf = rough(9, 3, 4, 0.3);

    conf.entry_ns = 60 * S;
    conf.timeout_ns = 3 * S;
    through(&conf);
}

/* ---- somebody dies ---- */

static void names_who_never_joined(void **state)
{
    for (uint32_t nodes = 2; nodes <= 17; nodes++) {
        for (uint32_t absent = 0; absent < nodes; absent++) {
            struct sim_conf conf = rough(nodes, 1, nodes * 100 + absent, 0.3);
            struct sim *sim = sim_new(&conf);

            sim_join_at(sim, absent, 0);
            sim_kill_at(sim, absent, 0);
            run(sim, &conf);
            assert_dead_named(sim, &conf);
            for (uint32_t node = 0; node < nodes; node++)
                assert_int_equal(sim_passed(sim, node), 0);
            sim_free(sim);
        }
    }
}

static void names_who_dies_between_barriers(void **state)
{
    for (uint32_t nodes = 2; nodes <= 40; nodes += 3) {
        for (unsigned seed = 1; seed <= seeds(3); seed++) {
            struct sim_conf conf = rough(nodes, 1000, seed, seed % 3 * 0.15);
            struct sim *sim = sim_new(&conf);
            uint32_t victim = (uint32_t)(seed * 7) % nodes;

            sim_kill_at(sim, victim, 2 * S);
            run(sim, &conf);
            assert_dead_named(sim, &conf);
            assert_named(sim, &conf, victim);
            for (uint32_t node = 0; node < nodes; node++) {
                if (node == victim)
                    continue;
                assert_true(sim_fault(sim, node)->missing);
                assert_true(sim_fault(sim, node)->silence_ns >= conf.timeout_ns);
                assert_true(sim_fault(sim, node)->last_epoch + 1 >= sim_fault(sim, node)->epoch);
            }
            sim_free(sim);
        }
    }
}

/* After each number of arrivals sent, so in each round of barriers 0 to 2. */
static void names_who_dies_within_a_barrier(void **state)
{
    for (uint32_t nodes = 2; nodes <= 21; nodes++) {
        for (uint32_t arrivals = 1; arrivals <= 3 * rounds_of(nodes); arrivals++) {
            struct sim_conf conf = rough(nodes, 1000, nodes * 100 + arrivals, 0.3);
            struct sim *sim = sim_new(&conf);

            sim_kill_after_arrivals(sim, arrivals % nodes, arrivals);
            run(sim, &conf);
            assert_dead_named(sim, &conf);
            sim_free(sim);
        }
    }
}

static void names_one_of_two_dead(void **state)
{
    for (uint32_t nodes = 3; nodes <= 33; nodes += 2) {
        for (unsigned seed = 1; seed <= seeds(3); seed++) {
            struct sim_conf conf = rough(nodes, 1000, seed, 0.3);
            struct sim *sim = sim_new(&conf);
            uint32_t first = (uint32_t)(seed * 11) % nodes;

            sim_kill_at(sim, first, 500 * MS);
            sim_kill_at(sim, (first + (seed % 2 ? 1 : nodes / 2)) % nodes, 500 * MS + seed * MS);
            run(sim, &conf);
            assert_dead_named(sim, &conf);
            sim_free(sim);
        }
    }
}

/* At any time while neighbours greet each other and after it. */
static void refuses_who_comes_back(void **state)
{
    for (uint32_t nodes = 2; nodes <= 13; nodes++) {
        for (unsigned seed = 1; seed <= seeds(12); seed++) {
            struct sim_conf conf = rough(nodes, 400, seed * 64 + nodes, seed % 2 ? 0.3 : 0);
            struct sim *sim = sim_new(&conf);
            uint32_t again = seed % nodes;

            sim_restart_at(sim, again, (int64_t)seed * seed * 3 * MS);
            run(sim, &conf);
            if (sim_fault(sim, again ? 0 : 1))
                assert_named(sim, &conf, again);
            else
                assert_all_through(sim, &conf);
            sim_free(sim);
        }
    }
}

static void names_who_has_another_key(void **state)
{
    struct sim_conf conf = calm(12, 2, 3);

    for (uint32_t outcast = 0; outcast < conf.nodes; outcast++) {
        struct sim *sim;

        conf.outcast = outcast;
        sim = sim_new(&conf);
        run(sim, &conf);
        for (uint32_t node = 0; node < conf.nodes; node++) {
            assert_non_null(sim_fault(sim, node));
            assert_int_equal(sim_passed(sim, node), 0);
            if (node != outcast)
                assert_int_equal(sim_fault(sim, node)->node, outcast);
        }
        sim_free(sim);
    }
}

static void tells_everybody_who_gives_up_and_why(void **state)
{
    static const char reason[] = "no link on e0";

    for (uint32_t nodes = 2; nodes <= 65; nodes += 7) {
        struct sim_conf conf = rough(nodes, 1000, nodes, 0.3);
        struct sim *sim = sim_new(&conf);

        sim_abort_at(sim, nodes - 1, S, reason);
        run(sim, &conf);
        for (uint32_t node = 0; node < nodes; node++) {
            assert_non_null(sim_fault(sim, node));
            assert_false(sim_fault(sim, node)->missing);
            assert_int_equal(sim_fault(sim, node)->node, nodes - 1);
            assert_string_equal(sim_fault(sim, node)->text, reason);
        }
        assert_true(sim_counts(sim)->ended_ns < 2 * S);
        sim_free(sim);
    }
}

/* Nobody waits in a barrier, so nobody asks: the flood alone must reach all. */
static void tells_everybody_outside_barriers(void **state)
{
    for (uint32_t nodes = 2; nodes <= 65; nodes++) {
        for (unsigned seed = 1; seed <= seeds(5); seed++) {
            struct sim_conf conf = rough(nodes, 1, seed, 0.3);
            struct sim *sim = sim_new(&conf);

            sim_abort_at(sim, seed % nodes, S, "over");
            run(sim, &conf);
            assert_named(sim, &conf, seed % nodes);
            assert_true(sim_counts(sim)->ended_ns < 2 * S);
            sim_free(sim);
        }
    }
}

/* Two nodes, no loss: one tells, the other acknowledges, and that is all. */
static void floods_no_more_than_needed(void **state)
{
    struct sim_conf conf = calm(2, 1, 1);
    struct sim *sim = sim_new(&conf);

    sim_abort_at(sim, 0, S, "over");
    run(sim, &conf);
    assert_named(sim, &conf, 0);
    assert_int_equal(sim_counts(sim)->sent[DATAGRAM_ABORT], 2);
    sim_free(sim);
}

/* Before the first barrier is passed. */
static void tells_everybody_who_gives_up_first(void **state)
{
    static const char reason[] = "no such interface";

    for (uint32_t nodes = 3; nodes <= 33; nodes += 5) {
        struct sim_conf conf = calm(nodes, 1, nodes);
        struct sim *sim = sim_new(&conf);

        conf.loss = 0.3;
        sim_join_at(sim, 1, 3600 * S);
        sim_kill_at(sim, 1, 3600 * S);
        sim_abort_at(sim, nodes - 1, S, reason);
        run(sim, &conf);
        for (uint32_t node = 0; node < nodes; node++) {
            if (node == 1)
                continue;
            assert_non_null(sim_fault(sim, node));
            assert_string_equal(sim_fault(sim, node)->text, reason);
        }
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

static void assert_course(struct sim_conf conf, bool tree)
{
    struct sim *sim = sim_new(&conf);

    run(sim, &conf);
    assert_all_through(sim, &conf);
    for (uint32_t node = 0; node < conf.nodes; node++)
        assert_int_equal(sim_group(sim, node)->barrier.tree, tree);
    sim_free(sim);
}

static void takes_the_tree_where_cores_are_few(void **state)
{
    struct sim_conf conf;

    for (uint32_t nodes = 2; nodes <= 20; nodes++) {
        conf = rough(nodes, 2, nodes, 0.2);
        conf.cores = nodes - 1;
        assert_course(conf, true);
        conf.cores = nodes;
        assert_course(conf, false);
        conf.cores = 0;
        assert_course(conf, false);
        conf.cores = 1;
        for (conf.machines = 2; conf.machines <= nodes; conf.machines++)
            assert_course(conf, false);
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
        cmocka_unit_test(costs_no_datagram_more_without_loss),
        cmocka_unit_test(ends_under_loss_duplication_and_reordering),
        cmocka_unit_test(keeps_epochs_apart_over_many_barriers),
        cmocka_unit_test(serves_thousands_of_nodes),
        cmocka_unit_test(serves_65536_nodes),
        cmocka_unit_test(waits_for_late_joiners),
        cmocka_unit_test(never_blames_the_slow),
        cmocka_unit_test(names_who_never_joined),
        cmocka_unit_test(names_who_dies_between_barriers),
        cmocka_unit_test(names_who_dies_within_a_barrier),
        cmocka_unit_test(names_one_of_two_dead),
        cmocka_unit_test(refuses_who_comes_back),
        cmocka_unit_test(names_who_has_another_key),
        cmocka_unit_test(tells_everybody_who_gives_up_and_why),
        cmocka_unit_test(tells_everybody_outside_barriers),
        cmocka_unit_test(floods_no_more_than_needed),
        cmocka_unit_test(tells_everybody_who_gives_up_first),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    failed += cmocka_run_group_tests_name("dissemination", simulated, NULL, NULL);
    by_tree = true;
    failed += cmocka_run_group_tests_name("tree", simulated, NULL, NULL);
    return failed;
}
