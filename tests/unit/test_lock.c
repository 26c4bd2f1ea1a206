/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lock's holder gets the core that whoever waits for it would get. On one core: an ordinary
 * thread holds the lock, a real-time thread keeps the core busy, and one that goes before both
 * waits.
 */
#include "lock.h"

#include "clock.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define SKIPPED 77
#define HOG_NS (500 * NS_PER_MS) /* before the kernel takes the core away from it for a while */

static pthread_mutex_t lock;
static atomic_bool held, waits, got;
static bool hog_gave_up;

static void *hold(void *context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    atomic_store(&held, true);
    while (!atomic_load(&waits))
        sched_yield();
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void *hog(void *context)
{
    int64_t until_ns = clock_now() + HOG_NS;

    (void)context;
    while (!atomic_load(&got) && !hog_gave_up)
        hog_gave_up = clock_now() > until_ns;
    return NULL;
}

static void *wait_for_lock(void *context)
{
    (void)context;
    atomic_store(&waits, true);
    pthread_mutex_lock(&lock);
    atomic_store(&got, true);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static int start(pthread_t *thread, void *(*work)(void *), int policy, int priority)
{
    const struct sched_param param = {.sched_priority = priority};
    pthread_attr_t attributes;
    cpu_set_t first;
    int rc;

    CPU_ZERO(&first);
    CPU_SET((size_t)sched_getcpu(), &first);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, policy);
    pthread_attr_setschedparam(&attributes, &param);
    pthread_attr_setaffinity_np(&attributes, sizeof first, &first);
    rc = pthread_create(thread, &attributes, work, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

int main(void)
{
    const struct sched_param above = {.sched_priority = 12};
    pthread_t holder, hogger, waiter;
    cpu_set_t here;

    CPU_ZERO(&here);
    CPU_SET((size_t)sched_getcpu(), &here);
    (void)sched_setaffinity(0, sizeof here, &here);
    if (sched_setscheduler(0, SCHED_FIFO, &above) != 0) {
        printf("skipped: this process may not be real-time\n");
        return SKIPPED;
    }
    lock_init(&lock);
    start(&holder, hold, SCHED_OTHER, 0);
    while (!atomic_load(&held))
        clock_sleep_until(clock_now() + NS_PER_MS);
    start(&hogger, hog, SCHED_FIFO, 10);
    start(&waiter, wait_for_lock, SCHED_FIFO, 11);
    pthread_join(waiter, NULL);
    pthread_join(hogger, NULL);
    pthread_join(holder, NULL);
    printf("%s\n", hog_gave_up ? "the holder did not get the core" : "ok");
    return hog_gave_up;
}
