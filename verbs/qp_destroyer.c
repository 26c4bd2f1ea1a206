/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_destroyer.h"

#include "lock.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define STOP_TIMEOUT_S 2

struct qp_destroyer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct doomed *first;
    struct doomed **last;
    bool stopping;
};

static void *destroy_all(void *context)
{
    struct qp_destroyer *destroyer = context;

    pthread_mutex_lock(&destroyer->lock);
    for (;;) {
        struct doomed *doomed;

        while (destroyer->first == NULL && !destroyer->stopping)
            pthread_cond_wait(&destroyer->changed, &destroyer->lock);
        doomed = destroyer->first;
        if (doomed == NULL)
            break;
        destroyer->first = doomed->next;
        if (doomed->next == NULL)
            destroyer->last = &destroyer->first;
        pthread_mutex_unlock(&destroyer->lock);
        doomed->destroy(doomed);
        pthread_mutex_lock(&destroyer->lock);
    }
    pthread_mutex_unlock(&destroyer->lock);
    return NULL;
}

static int start_thread(struct qp_destroyer *destroyer)
{
    sigset_t all;
    sigset_t before;
    int code;

    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&destroyer->thread, NULL, destroy_all, destroyer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

static void free_destroyer(struct qp_destroyer *destroyer)
{
    pthread_cond_destroy(&destroyer->changed);
    pthread_mutex_destroy(&destroyer->lock);
    free(destroyer);
}

struct qp_destroyer *qp_destroyer_start(void)
{
    struct qp_destroyer *destroyer = calloc(1, sizeof *destroyer);

    if (destroyer == NULL)
        return NULL;
    destroyer->last = &destroyer->first;
    lock_init(&destroyer->lock);
    pthread_cond_init(&destroyer->changed, NULL);
    if (start_thread(destroyer) != 0) {
        free_destroyer(destroyer);
        return NULL;
    }
    pthread_setname_np(destroyer->thread, "sb-qp-destroyer");
    return destroyer;
}

void qp_destroyer_add(struct qp_destroyer *destroyer, struct doomed *doomed)
{
    doomed->next = NULL;
    if (destroyer == NULL) {
        doomed->destroy(doomed);
        return;
    }
    pthread_mutex_lock(&destroyer->lock);
    *destroyer->last = doomed;
    destroyer->last = &doomed->next;
    pthread_cond_signal(&destroyer->changed);
    pthread_mutex_unlock(&destroyer->lock);
}

bool qp_destroyer_stop(struct qp_destroyer *destroyer)
{
    struct timespec until;

    if (destroyer == NULL)
        return true;
    pthread_mutex_lock(&destroyer->lock);
    destroyer->stopping = true;
    pthread_cond_signal(&destroyer->changed);
    pthread_mutex_unlock(&destroyer->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_TIMEOUT_S;
    if (pthread_clockjoin_np(destroyer->thread, NULL, CLOCK_MONOTONIC, &until) != 0) {
        pthread_detach(destroyer->thread);
        return false;
    }
    free_destroyer(destroyer);
    return true;
}
