/* SPDX-License-Identifier: BSD-3-Clause */
#include "cpu_placement.h"

#include "sysfs.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static_assert(CORES_WORKERS_MAX <= UINT8_MAX + 1, "a worker's number fits in a lane's byte");
static_assert(CORES_MAX <= CPU_SETSIZE, "a core's number fits in a set");

#define PRECEDENCE_NICE (-20)
#define QUEUES_OF_ITSELF 4u /* maximum queues of a port that names no number */

/* --- the choice --- */

static const struct core *find(const struct cores_ask *ask, uint32_t number)
{
    for (size_t i = 0; i < ask->usable_count; i++)
        if (ask->usable[i].number == (int)number)
            return &ask->usable[i];
    return NULL;
}

static int check_named(const struct cores_ask *ask, struct err *err)
{
    for (size_t i = 0; i < ask->named_count; i++) {
        if (find(ask, ask->named[i]) == NULL)
            return err_set(err, -EINVAL,
                           "cores: %u is none of the %zu cores that this node may use (%d to %d)",
                           ask->named[i], ask->usable_count, ask->usable[0].number,
                           ask->usable[ask->usable_count - 1].number);
        for (size_t j = 0; j < i; j++)
            if (ask->named[i] == ask->named[j])
                return err_set(err, -EINVAL, "cores: duplicate value %u", ask->named[i]);
    }
    return 0;
}

/* Decide whether workers poll or sleep, by the rules in cpu_placement.h. */
static int decide(const struct cores_ask *ask, bool *polls, struct err *err)
{
    bool spare = ask->usable_count > (ask->named_count > 0 ? ask->named_count : 1);

    *polls = ask->policy == WORKER_POLL;
    if (ask->policy == WORKER_AUTO)
        *polls = ask->named_count > 0 ? spare : ask->usable_count > ask->lane_count + 1;
    if (ask->policy == WORKER_POLL && !spare)
        return err_set(
            err, -EINVAL,
            "worker: poll takes %s of the %zu cores that this node may use, and its main "
            "thread needs one: %s, or worker: sleep",
            ask->named_count > 0 ? "all" : "one", ask->usable_count,
            ask->named_count > 0 ? "list fewer cores" : "allow the node two cores");
    return 0;
}

/* Assign a free core to each lane, if possible on the NUMA node of the lane's port: of the named
 * cores, else of all cores from the last one. Lanes share workers if no core is free. */
static void deal(struct cores_choice *choice, const struct cores_ask *ask)
{
    size_t count = ask->named_count > 0 ? ask->named_count : ask->usable_count - 1;
    const struct core *candidates[CORES_MAX];

    for (size_t i = 0; i < count; i++)
        candidates[i] = ask->named_count > 0 ? find(ask, ask->named[i])
                                             : &ask->usable[ask->usable_count - 1 - i];
    choice->workers = 0;
    for (size_t lane = 0; lane < ask->lane_count; lane++) {
        int numa = ask->lanes[lane];
        size_t best = count;

        for (size_t i = 0; i < count && choice->workers < CORES_WORKERS_MAX; i++)
            if (candidates[i] != NULL &&
                (best == count ||
                 (numa >= 0 && candidates[best]->numa != numa && candidates[i]->numa == numa)))
                best = i;
        choice->worker[lane] = choice->workers > 0 ? (uint8_t)(lane % choice->workers) : 0;
        if (best == count)
            continue;
        choice->worker[lane] = (uint8_t)choice->workers;
        choice->core[choice->workers++] = candidates[best]->number;
        candidates[best] = NULL;
    }
}

int cores_choose(struct cores_choice *choice, const struct cores_ask *ask, struct err *err)
{
    bool polls;
    int rc;

    *choice = (struct cores_choice){.sleeps = true, .workers = 1, .core = {-1}};
    if (ask->lane_count > CORES_LANES_MAX)
        return err_set(
            err, -EINVAL,
            "the node's ports have %zu queues in total, and a node can have %d: set fewer queues",
            ask->lane_count, CORES_LANES_MAX);
    if (ask->usable_count == 0) /* more cores than a mask holds: cores cannot be chosen */
        return ask->named_count > 0
                   ? err_set(
                         err, -EINVAL,
                         "cores: remove this key: this machine has too many cores to choose from")
                   : 0;
    if ((rc = check_named(ask, err)) != 0 || (rc = decide(ask, &polls, err)) != 0)
        return rc;
    choice->sleeps = !polls;
    if (polls || ask->named_count > 0)
        deal(choice, ask);
    return 0;
}

uint32_t cores_queues(const struct cores_ask *ask, size_t ports)
{
    size_t most = ask->named_count > 0    ? ask->named_count
                  : ask->usable_count > 2 ? ask->usable_count - 2
                                          : 1;
    size_t each = ports > 0 ? most / ports : 1;

    if (ask->policy == WORKER_SLEEP || each == 0)
        return 1;
    return each < QUEUES_OF_ITSELF ? (uint32_t)each : QUEUES_OF_ITSELF;
}

/* --- this machine --- */

static int numa_of_core(int core)
{
    int numa = -1;
    glob_t nodes;

    sysfs_glob(&nodes, "/sys/devices/system/cpu/cpu%d/node[0-9]*", core);
    if (nodes.gl_pathc > 0)
        numa = atoi(strrchr(nodes.gl_pathv[0], '/') + strlen("/node"));
    globfree(&nodes);
    return numa;
}

/* Read the cores of this process's cpuset: set a mask of all cores, and read the cores that the
 * kernel left in it. */
static int widest(cpu_set_t *cores)
{
    cpu_set_t before, every;
    int rc = sched_getaffinity(0, sizeof before, &before);

    memset(&every, 0xff, sizeof every);
    if (rc != 0 || sched_setaffinity(0, sizeof every, &every) != 0)
        return -errno;
    rc = sched_getaffinity(0, sizeof *cores, cores);
    (void)sched_setaffinity(0, sizeof before, &before);
    return rc;
}

size_t cores_usable(struct core cores[CORES_MAX], bool all)
{
    cpu_set_t allowed;
    size_t count = 0;

    CPU_ZERO(&allowed);
    if ((all ? widest(&allowed) : sched_getaffinity(0, sizeof allowed, &allowed)) != 0)
        return 0;
    for (int core = 0; core < CORES_MAX; core++)
        if (CPU_ISSET((size_t)core, &allowed))
            cores[count++] = (struct core){core, numa_of_core(core)};
    return count;
}

void cores_yield(const struct cores_choice *choice)
{
    cpu_set_t others = {{0}}, allowed;
    DIR *threads = choice->sleeps || widest(&others) != 0 ? NULL : opendir("/proc/self/task");
    struct dirent *entry;

    for (size_t i = 0; i < choice->workers && threads != NULL; i++)
        CPU_CLR((size_t)choice->core[i], &others);
    while (threads != NULL && (entry = readdir(threads)) != NULL) {
        pid_t thread = (pid_t)atoi(entry->d_name);

        if (thread == 0 || sched_getaffinity(thread, sizeof allowed, &allowed) != 0)
            continue;
        /* The thread moves to those of its cores that no worker has, or to any other such core. */
        CPU_AND(&allowed, &allowed, &others);
        (void)sched_setaffinity(thread, sizeof allowed,
                                CPU_COUNT(&allowed) > 0 ? &allowed : &others);
    }
    if (threads != NULL)
        closedir(threads);
}

bool reserve_cores(enum cores_precedence precedence)
{
    /* Priority of the thread without a claim, as the process was started. */
    static _Thread_local struct {
        bool known;
        int policy;
        struct sched_param param;
        int nice;
    } own;
    const struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
    int nice;

    if (!own.known) {
        own.policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
        own.nice = getpriority(PRIO_PROCESS, (id_t)gettid());
        own.known = sched_getparam(0, &own.param) == 0;
    }
    if (own.policy == SCHED_FIFO || own.policy == SCHED_RR)
        return true;
    if (precedence == CORES_AT_ONCE &&
        sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &least) == 0)
        return true;
    nice = precedence == CORES_AS_OTHERS ? own.nice : PRECEDENCE_NICE;
    (void)sched_setscheduler(0, own.policy, &own.param);
    return setpriority(PRIO_PROCESS, (id_t)gettid(), nice) == 0 && precedence != CORES_AT_ONCE;
}
