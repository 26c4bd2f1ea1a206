/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_destroyer.h"

#include "lock.h"
#include "qp.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE_S 2

struct verbs_reaper {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct verbs_pair *first; /* to be destroyed, linked by `next_dead` */
    struct verbs_pair **last;
    bool ending;
    bool done; /* the thread touches nothing any more */
};

static void destroy(struct verbs_pair *pair)
{
    if (pair->ah != NULL)
        ibv_destroy_ah(pair->ah);
    if (pair->qp != NULL)
        ibv_destroy_qp(pair->qp);
    if (pair->id != NULL)
        rdma_destroy_id(pair->id);
    if (pair->cq != NULL)
        ibv_destroy_cq(pair->cq);
    free(pair);
}

static struct verbs_pair *take_first(struct verbs_reaper *reaper)
{
    struct verbs_pair *pair = reaper->first;

    reaper->first = pair->next_dead;
    if (reaper->first == NULL)
        reaper->last = &reaper->first;
    return pair;
}

static void *reap(void *context)
{
    struct verbs_reaper *reaper = context;

    pthread_mutex_lock(&reaper->lock);
    for (;;) {
        struct verbs_pair *pair;

        while (reaper->first == NULL && !reaper->ending)
            pthread_cond_wait(&reaper->changed, &reaper->lock);
        if (reaper->first == NULL)
            break;
        pair = take_first(reaper);
        pthread_mutex_unlock(&reaper->lock);
        destroy(pair);
        pthread_mutex_lock(&reaper->lock);
    }
    reaper->done = true;
    pthread_cond_broadcast(&reaper->changed);
    pthread_mutex_unlock(&reaper->lock);
    return NULL;
}

static int start_thread(struct verbs_reaper *reaper)
{
    sigset_t all;
    sigset_t before;
    int code;

    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    code = pthread_create(&reaper->thread, NULL, reap, reaper);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

struct verbs_reaper *verbs_reaper_start(void)
{
    struct verbs_reaper *reaper = calloc(1, sizeof *reaper);
    pthread_condattr_t attributes;

    if (reaper == NULL)
        return NULL;
    reaper->last = &reaper->first;
    lock_init(&reaper->lock);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&reaper->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start_thread(reaper) == 0) {
        pthread_setname_np(reaper->thread, "sb-reaper");
        return reaper;
    }
    pthread_cond_destroy(&reaper->changed);
    pthread_mutex_destroy(&reaper->lock);
    free(reaper);
    return NULL;
}

void verbs_reaper_take(struct verbs_reaper *reaper, struct verbs_pair *pair)
{
    pair->next_dead = NULL;
    if (reaper == NULL) {
        destroy(pair);
        return;
    }
    pthread_mutex_lock(&reaper->lock);
    *reaper->last = pair;
    reaper->last = &pair->next_dead;
    pthread_cond_signal(&reaper->changed);
    pthread_mutex_unlock(&reaper->lock);
}

/* Lock held. */
static bool await_end(struct verbs_reaper *reaper)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    reaper->ending = true;
    pthread_cond_broadcast(&reaper->changed);
    while (!reaper->done)
        if (pthread_cond_timedwait(&reaper->changed, &reaper->lock, &until) != 0)
            return reaper->done;
    return true;
}

bool verbs_reaper_end(struct verbs_reaper *reaper)
{
    bool done;

    if (reaper == NULL)
        return true;
    pthread_mutex_lock(&reaper->lock);
    done = await_end(reaper);
    pthread_mutex_unlock(&reaper->lock);
    if (!done) {
        pthread_detach(reaper->thread);
        return false;
    }
    pthread_join(reaper->thread, NULL);
    pthread_cond_destroy(&reaper->changed);
    pthread_mutex_destroy(&reaper->lock);
    free(reaper);
    return true;
}
