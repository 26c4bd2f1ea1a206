/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cores that workers get, and whether workers poll, by rule on simulated machines. The
 * priorities of this process, and of the holder of a lock.
 */
#include "cpu_placement.h"
#include "lock.h"
#include "unit.h"

#include <sched.h>
#include <sys/resource.h>

#define MACHINE 16

static struct core machine[MACHINE];
static int no_numa[CORES_LANES_MAX];

/* A machine of cores 0 to 15, the lower half on NUMA node 0. */
static struct cores_ask a_machine(size_t cores, size_t lanes)
{
    for (int i = 0; i < MACHINE; i++)
        machine[i] = (struct core){i, i < MACHINE / 2 ? 0 : 1};
    memset(no_numa, -1, sizeof no_numa);
    return (struct cores_ask){
        .usable = machine, .usable_count = cores, .lanes = no_numa, .lane_count = lanes};
}

/* A machine of some cores, the choice that is requested, and the cores of its first workers or the
 * refusal. */
TEST_ROWS(each_choice_follows_the_rules, "choice")
{
    static const char *const policies[] = {"auto", "sleep", "poll"};
    const char *named = row->fields[1];
    uint32_t cores[4];
    char policy[8], text[160];
    size_t usable, lanes, used;
    struct cores_choice choice;
    struct cores_ask ask;
    struct err err = {""};

    assert_int_equal(sscanf(row->fields[0], "%7s %zu %zu", policy, &usable, &lanes), 3);
    ask = a_machine(usable, lanes);
    while (strcmp(policies[ask.policy], policy) != 0)
        ask.policy++;
    ask.named = cores;
    for (int more; sscanf(named, " %u%n", &cores[ask.named_count], &more) == 1; named += more)
        ask.named_count++;
    if (cores_choose(&choice, &ask, &err) < 0) {
        assert_says(err.text, row->fields[2]);
        return;
    }
    used = (size_t)sprintf(text, "%zu that %s:", choice.workers, choice.sleeps ? "sleep" : "poll");
    for (size_t w = 0; w < 4 && w < choice.workers; w++)
        used += (size_t)sprintf(text + used, " %d", choice.core[w]);
    assert_string_equal(text, row->fields[2]);
    for (size_t lane = 0; lane < ask.lane_count; lane++)
        assert_int_equal(choice.worker[lane], lane % choice.workers);
}

TEST(a_port_gets_a_core_near_it)
{
    static const int lanes[] = {1, 0, 0, 1};
    struct cores_ask ask = a_machine(16, 4);
    struct cores_choice choice;

    ask.lanes = lanes;
    assert_int_equal(cores_choose(&choice, &ask, &(struct err){""}), 0);
    for (size_t lane = 0; lane < 4; lane++)
        assert_int_equal(machine[choice.core[choice.worker[lane]]].numa, lanes[lane]);
}

TEST(queues_leave_every_lane_a_core)
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

/* The nice value with which the process was started is restored. */
TEST(what_was_claimed_is_given_back)
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

/* Return field 18 of proc(5)'s stat, which is below 0 for a real-time priority. */
static int present_priority(void)
{
    FILE *stat = fopen("/proc/thread-self/stat", "re");
    int priority = 0;

    assert_non_null(stat);
    assert_int_equal(fscanf(stat,
                            "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                            "%*d %d",
                            &priority),
                     1);
    fclose(stat);
    return priority;
}

static void *wait_for_lock(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

/* The kernel shows a raised priority while a real-time thread waits for the lock of an ordinary
 * one. */
TEST(a_lock_s_holder_runs_at_the_priority_of_who_waits)
{
    const struct sched_param param = {.sched_priority = 10};
    pthread_attr_t attributes;
    pthread_mutex_t lock;
    pthread_t waiter;

    lock_init(&lock);
    pthread_mutex_lock(&lock);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &param);
    if (present_priority() < 0 || pthread_create(&waiter, &attributes, wait_for_lock, &lock) != 0)
        skip(); /* this process may not be real-time, or is */
    while (present_priority() != -1 - param.sched_priority) /* the test's time-out ends it */
        sched_yield();
    pthread_mutex_unlock(&lock);
    pthread_join(waiter, NULL);
    assert_true(present_priority() >= 0);
}
