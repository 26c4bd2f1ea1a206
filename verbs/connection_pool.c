/* SPDX-License-Identifier: BSD-3-Clause */
#include "connection_pool.h"

#include "lock.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define BUCKETS 1024u
#define STOP_TIMEOUT_S 2

TAILQ_HEAD(qp_list, verbs_qp);

struct connection_pool {
    /* Kept: by the hash of their config, and the least recently used first. */
    LIST_HEAD(, verbs_qp) buckets[BUCKETS];
    struct qp_list ages;
    size_t kept;
    /* To be destroyed, by the thread: */
    bool has_thread; /* false: the main thread destroys them, and waits */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct qp_list doomed;
    bool stopping;
};

/* --- the destroyer --- */

/* The kernel's call returns when nothing refers to the queue pair any more. On Soft-RoCE that
 * includes packets that a NIC's driver has sent but not yet freed, and some drivers (virtio_net)
 * free them only when they send again: on a quiet link the call takes up to 50 s (rxe's
 * __rxe_cleanup). */
static void *destroy_all(void *context)
{
    struct connection_pool *pool = context;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        struct verbs_qp *qp;

        while (TAILQ_EMPTY(&pool->doomed) && !pool->stopping)
            pthread_cond_wait(&pool->changed, &pool->lock);
        qp = TAILQ_FIRST(&pool->doomed);
        if (qp == NULL)
            break;
        TAILQ_REMOVE(&pool->doomed, qp, age);
        pthread_mutex_unlock(&pool->lock);
        verbs_qp_destroy(qp);
        pthread_mutex_lock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

static void start_thread(struct connection_pool *pool)
{
    sigset_t all;
    sigset_t before;

    sigfillset(&all); /* signals are the main thread's */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pool->has_thread = pthread_create(&pool->thread, NULL, destroy_all, pool) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (pool->has_thread)
        pthread_setname_np(pool->thread, "sb-qp-destroyer");
}

/* False: it is still at work. */
static bool stop_thread(struct connection_pool *pool)
{
    struct timespec until;

    if (!pool->has_thread)
        return true;
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += STOP_TIMEOUT_S;
    if (pthread_clockjoin_np(pool->thread, NULL, CLOCK_MONOTONIC, &until) == 0)
        return true;
    pthread_detach(pool->thread);
    return false;
}

void connection_pool_free(struct verbs_qp *qp)
{
    struct connection_pool *pool = qp->port->pool;

    verbs_qp_stop(qp);
    if (!pool->has_thread) {
        verbs_qp_destroy(qp);
        return;
    }
    pthread_mutex_lock(&pool->lock);
    TAILQ_INSERT_TAIL(&pool->doomed, qp, age);
    pthread_cond_signal(&pool->changed);
    pthread_mutex_unlock(&pool->lock);
}

/* --- what is kept --- */

static void take_out(struct connection_pool *pool, struct verbs_qp *qp)
{
    LIST_REMOVE(qp, bucket);
    TAILQ_REMOVE(&pool->ages, qp, age);
    pool->kept--;
}

static struct verbs_qp *take_kept(struct connection_pool *pool, const struct qp_config *config)
{
    struct verbs_qp *qp = LIST_FIRST(&pool->buckets[qp_config_hash(config) % BUCKETS]);

    while (qp != NULL && !qp_config_equal(&qp->config, config))
        qp = LIST_NEXT(qp, bucket);
    if (qp != NULL)
        take_out(pool, qp);
    return qp;
}

static void evict(struct connection_pool *pool, size_t max)
{
    while (pool->kept > max) {
        struct verbs_qp *qp = TAILQ_FIRST(&pool->ages);

        take_out(pool, qp);
        connection_pool_free(qp);
    }
}

void connection_pool_keep(struct verbs_qp *qp, size_t max)
{
    struct connection_pool *pool = qp->port->pool;

    LIST_INSERT_HEAD(&pool->buckets[qp_config_hash(&qp->config) % BUCKETS], qp, bucket);
    TAILQ_INSERT_TAIL(&pool->ages, qp, age);
    pool->kept++;
    evict(pool, max);
}

/* --- the pool --- */

int connection_pool_open(struct transport_port *port)
{
    struct connection_pool *pool = calloc(1, sizeof *pool);

    if (pool == NULL)
        return -ENOMEM;
    TAILQ_INIT(&pool->ages);
    TAILQ_INIT(&pool->doomed);
    lock_init(&pool->lock);
    pthread_cond_init(&pool->changed, NULL);
    start_thread(pool);
    port->pool = pool;
    return 0;
}

bool connection_pool_close(struct transport_port *port)
{
    struct connection_pool *pool = port->pool;

    if (pool == NULL)
        return true;
    evict(pool, 0);
    if (!stop_thread(pool))
        return false;
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
    port->pool = NULL;
    return true;
}

int connection_pool_acquire(struct transport_port *port, const struct qp_config *config,
                            struct verbs_qp **qp, struct err *err)
{
    int rc;

    *qp = take_kept(port->pool, config);
    if (*qp != NULL) {
        verbs_qp_reuse(*qp, config);
        return 0;
    }
    rc = verbs_qp_make(qp, port, config, err);
    /* Queue pairs that no lane uses make room for what is needed now. */
    while (rc == -ENOMEM && port->pool->kept > 0) {
        err->text[0] = '\0';
        evict(port->pool, port->pool->kept / 2);
        rc = verbs_qp_make(qp, port, config, err);
    }
    return rc;
}
