/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_destroyer.h"

#include "lock.h"
#include "qp.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define PATIENCE_S 2

struct qp_destroyer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct verbs_qp *first; /* to be destroyed, linked by `next_dead` */
    struct verbs_qp **last;
    bool ending;
    bool done; /* the thread touches nothing any more */
};

static void destroy(struct verbs_qp *qp)
{
    if (qp->ah != NULL)
        ibv_destroy_ah(qp->ah);
    if (qp->ibv != NULL)
        ibv_destroy_qp(qp->ibv);
    if (qp->id != NULL)
        rdma_destroy_id(qp->id);
    if (qp->cq != NULL)
        ibv_destroy_cq(qp->cq);
    free(qp);
}

static struct verbs_qp *take_first(struct qp_destroyer *destroyer)
{
    struct verbs_qp *qp = destroyer->first;

    destroyer->first = qp->next_dead;
    if (destroyer->first == NULL)
        destroyer->last = &destroyer->first;
    return qp;
}

static void *reap(void *context)
{
    struct qp_destroyer *destroyer = context;

    pthread_mutex_lock(&destroyer->lock);
    for (;;) {
        struct verbs_qp *qp;

        while (destroyer->first == NULL && !destroyer->ending)
            pthread_cond_wait(&destroyer->changed, &destroyer->lock);
        if (destroyer->first == NULL)
            break;
        qp = take_first(destroyer);
        pthread_mutex_unlock(&destroyer->lock);
        destroy(qp);
        pthread_mutex_lock(&destroyer->lock);
    }
    destroyer->done = true;
    pthread_cond_broadcast(&destroyer->changed);
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
    code = pthread_create(&destroyer->thread, NULL, reap, destroyer);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return code;
}

struct qp_destroyer *qp_destroyer_start(void)
{
    struct qp_destroyer *destroyer = calloc(1, sizeof *destroyer);
    pthread_condattr_t attributes;

    if (destroyer == NULL)
        return NULL;
    destroyer->last = &destroyer->first;
    lock_init(&destroyer->lock);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&destroyer->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    if (start_thread(destroyer) == 0) {
        pthread_setname_np(destroyer->thread, "sb-destroyer");
        return destroyer;
    }
    pthread_cond_destroy(&destroyer->changed);
    pthread_mutex_destroy(&destroyer->lock);
    free(destroyer);
    return NULL;
}

void qp_destroyer_add(struct qp_destroyer *destroyer, struct verbs_qp *qp)
{
    qp->next_dead = NULL;
    if (destroyer == NULL) {
        destroy(qp);
        return;
    }
    pthread_mutex_lock(&destroyer->lock);
    *destroyer->last = qp;
    destroyer->last = &qp->next_dead;
    pthread_cond_signal(&destroyer->changed);
    pthread_mutex_unlock(&destroyer->lock);
}

/* Lock held. */
static bool await_end(struct qp_destroyer *destroyer)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    destroyer->ending = true;
    pthread_cond_broadcast(&destroyer->changed);
    while (!destroyer->done)
        if (pthread_cond_timedwait(&destroyer->changed, &destroyer->lock, &until) != 0)
            return destroyer->done;
    return true;
}

bool qp_destroyer_stop(struct qp_destroyer *destroyer)
{
    bool done;

    if (destroyer == NULL)
        return true;
    pthread_mutex_lock(&destroyer->lock);
    done = await_end(destroyer);
    pthread_mutex_unlock(&destroyer->lock);
    if (!done) {
        pthread_detach(destroyer->thread);
        return false;
    }
    pthread_join(destroyer->thread, NULL);
    pthread_cond_destroy(&destroyer->changed);
    pthread_mutex_destroy(&destroyer->lock);
    free(destroyer);
    return true;
}
