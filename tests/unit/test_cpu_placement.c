/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which cores the workers get, and whether they poll: by rule, on machines made up here.
 */
#include "cpu_placement.h"

#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#define MACHINE 16

static struct core machine[MACHINE];
static int no_numa[CORES_LANES_MAX];

/* Cores 0 to 15, the lower half on NUMA node 0. */
static struct cores_ask a_machine(size_t cores, size_t lanes)
{
    for (int i = 0; i < MACHINE; i++)
        machine[i] = (struct core){i, i < MACHINE / 2 ? 0 : 1};
    memset(no_numa, -1, sizeof no_numa);
    return (struct cores_ask){
        .usable = machine, .usable_count = cores, .lanes = no_numa, .lane_count = lanes};
}

static struct cores_choice chosen(const struct cores_ask *ask)
{
    struct cores_choice choice;
    struct err err = {""};

    if (cores_choose(&choice, ask, &err) != 0)
        fail_msg("%s", err.text);
    return choice;
}

static void refused(const struct cores_ask *ask, const char *says)
{
    struct cores_choice choice;
    struct err err = {""};

    assert_true(cores_choose(&choice, ask, &err) < 0);
    if (strstr(err.text, says) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, says);
}

static void auto_polls_where_a_core_stays_free(void **state)
{
    struct cores_ask ask = a_machine(6, 4);
    struct cores_choice choice = chosen(&ask);

    assert_false(choice.sleeps);
    assert_int_equal(choice.workers, 4);
    for (int lane = 0; lane < 4; lane++) {
        assert_int_equal(choice.worker[lane], lane);
        assert_int_equal(choice.core[lane], 5 - lane);
    }
    ask = a_machine(5, 4); /* one for each lane and one for all the rest: too few */
    choice = chosen(&ask);
    assert_true(choice.sleeps);
    assert_int_equal(choice.workers, 1);
    assert_int_equal(choice.core[0], -1);
    assert_int_equal(choice.worker[3], 0);
}

static void poll_takes_all_but_one(void **state)
{
    struct cores_ask ask = a_machine(3, 5);
    struct cores_choice choice;

    ask.policy = WORKER_POLL;
    choice = chosen(&ask);
    assert_int_equal(choice.workers, 2);
    assert_int_equal(choice.core[0], 2);
    assert_int_equal(choice.core[1], 1);
    for (size_t lane = 0; lane < 5; lane++)
        assert_int_equal(choice.worker[lane], lane % 2);
    ask.usable_count = 1;
    refused(&ask, "allow it two");
}

static void named_cores_are_taken_as_they_stand(void **state)
{
    static const uint32_t named[] = {2, 9};
    struct cores_ask ask = a_machine(16, 3);
    struct cores_choice choice;

    ask.named = named;
    ask.named_count = 2;
    choice = chosen(&ask);
    assert_false(choice.sleeps);
    assert_int_equal(choice.workers, 2);
    assert_int_equal(choice.core[0], 2);
    assert_int_equal(choice.core[1], 9);
    assert_int_equal(choice.worker[2], 0);
    ask.policy = WORKER_SLEEP;
    choice = chosen(&ask);
    assert_true(choice.sleeps);
    assert_int_equal(choice.core[1], 9);
}

static void a_port_gets_a_core_near_it(void **state)
{
    static const int lanes[] = {1, 0, 0, 1};
    struct cores_ask ask = a_machine(16, 4);
    struct cores_choice choice;

    ask.lanes = lanes;
    choice = chosen(&ask);
    for (size_t lane = 0; lane < 4; lane++)
        assert_int_equal(machine[choice.core[choice.worker[lane]]].numa, lanes[lane]);
}

static void what_can_not_be_is_refused(void **state)
{
    static const uint32_t absent[] = {3, 16}, twice[] = {3, 3}, both[] = {0, 1};
    struct cores_ask ask = a_machine(16, 2);

    ask.named = absent;
    ask.named_count = 2;
    refused(&ask, "16 is none of the 16 cores that this node may use (0 to 15)");
    ask.named = twice;
    refused(&ask, "duplicate value 3");
    ask.named = both;
    ask.usable_count = 2;
    ask.policy = WORKER_POLL;
    refused(&ask, "name fewer cores");
    ask.policy = WORKER_AUTO; /* nothing left for the main thread: they are shared */
    assert_true(chosen(&ask).sleeps);
    ask.named_count = 0;
    ask.lane_count = CORES_LANES_MAX + 1;
    refused(&ask, "4096");
}

static void more_lanes_than_workers_share(void **state)
{
    struct cores_ask ask = a_machine(16, 1000);
    struct cores_choice choice;

    ask.policy = WORKER_POLL;
    choice = chosen(&ask);
    assert_int_equal(choice.workers, 15);
    for (size_t lane = 0; lane < 1000; lane++)
        assert_true(choice.worker[lane] < choice.workers);
}

static void queues_leave_every_lane_a_core(void **state)
{
    struct cores_ask ask = a_machine(16, 0);

    for (size_t ports = 1; ports < 20; ports++) {
        uint32_t queues = cores_queues(&ask, ports);

        assert_true(queues >= 1 && queues <= 4);
        if (queues > 1)
            assert_true(ports * queues + 1 < 16);
    }
    assert_int_equal(cores_queues(&ask, 1), 4);
    ask.policy = WORKER_SLEEP;
    assert_int_equal(cores_queues(&ask, 1), 1);
}

static void this_machine_has_a_core(void **state)
{
    struct core cores[CORES_MAX];
    size_t count = cores_usable(cores, CORES_MAX, false);

    assert_true(count >= 1);
    assert_true(cores_usable(cores, CORES_MAX, true) >= count);
    assert_int_equal(cores_usable(cores, CORES_MAX, false), count); /* nothing has changed */
    for (size_t i = 1; i < count; i++)
        assert_true(cores[i].number > cores[i - 1].number);
    assert_int_equal(cores_numa_of_pci("ffff:ff:1f.7"), -1);
}

/* Whoever started the process with a nice of its own gets it back. */
static void what_was_claimed_is_given_back(void **state)
{
    int policy = sched_getscheduler(0);
    bool at_once;

    assert_int_equal(setpriority(PRIO_PROCESS, 0, 5), 0);
    at_once = reserve_cores(CORES_AT_ONCE);
    assert_int_equal(sched_getscheduler(0), at_once ? SCHED_FIFO | SCHED_RESET_ON_FORK : policy);
    reserve_cores(CORES_IN_TIME);
    assert_int_equal(sched_getscheduler(0), policy);
    reserve_cores(CORES_AS_OTHERS);
    assert_int_equal(sched_getscheduler(0), policy);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(auto_polls_where_a_core_stays_free),
        cmocka_unit_test(poll_takes_all_but_one),
        cmocka_unit_test(named_cores_are_taken_as_they_stand),
        cmocka_unit_test(a_port_gets_a_core_near_it),
        cmocka_unit_test(what_can_not_be_is_refused),
        cmocka_unit_test(more_lanes_than_workers_share),
        cmocka_unit_test(queues_leave_every_lane_a_core),
        cmocka_unit_test(this_machine_has_a_core),
        cmocka_unit_test(what_was_claimed_is_given_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
