/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A lock's holder runs at the priority of whoever waits for it: the kernel says so while a
 * real-time thread waits for the lock of an ordinary one.
 */
#include "lock.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

#define SKIPPED 77

static pthread_mutex_t lock;

/* Below 0 for a real-time priority, field 18 of proc(5)'s stat. */
static int present_priority(void)
{
    FILE *stat = fopen("/proc/thread-self/stat", "re");
    int priority = 0;

    if (stat == NULL || fscanf(stat,
                               "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
                               "%*d %*d %d",
                               &priority) != 1)
        perror("/proc/thread-self/stat");
    if (stat != NULL)
        fclose(stat);
    return priority;
}

static void *wait_for_lock(void *context)
{
    (void)context;
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    const struct sched_param param = {.sched_priority = 10};
    pthread_attr_t attributes;
    pthread_t waiter;

    lock_init(&lock);
    pthread_mutex_lock(&lock);
    pthread_attr_init(&attributes);
    pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attributes, SCHED_FIFO);
    pthread_attr_setschedparam(&attributes, &param);
    if (present_priority() < 0 || pthread_create(&waiter, &attributes, wait_for_lock, NULL) != 0) {
        printf("skipped: this process may not be real-time, or is\n");
        return SKIPPED;
    }
    while (present_priority() != -1 - param.sched_priority) /* the test's time-out ends it */
        sched_yield();
    pthread_mutex_unlock(&lock);
    pthread_join(waiter, NULL);
    return present_priority() < 0;
}
