/* SPDX-License-Identifier: BSD-3-Clause */
#include "compute_load.h"

#include "clock.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#define POINTS 8 /* independent of each other, so that a core's units are kept busy */
#define STEPS 8000u
#define OPERATIONS_A_STEP 3u /* r * x * (1 - x) */
#define GROWTH 3.9           /* chaotic: no value repeats or vanishes */

struct computing_thread {
    pthread_t thread;
    struct compute *compute;
    struct compute_part alone;
    struct compute_part beside;
    double x[POINTS];
};

struct compute {
    struct compute_conf conf;
    atomic_bool stop;
    unsigned running;
    struct computing_thread threads[];
};

static void *work(void *context)
{
    struct computing_thread *thread = context;
    const struct compute_conf *conf = &thread->compute->conf;
    double *x = thread->x;

    clock_sleep_until(conf->start_ns);
    while (!atomic_load(&thread->compute->stop)) {
        int64_t begun_ns = clock_now(), ended_ns;
        struct compute_part *part = NULL; /* NULL for a piece that crosses a boundary */

        for (unsigned step = 0; step < STEPS; step++)
            for (unsigned i = 0; i < POINTS; i++)
                x[i] = GROWTH * x[i] * (1 - x[i]);
        ended_ns = clock_now();
        if (ended_ns <= conf->messages_ns)
            part = &thread->alone;
        else if (begun_ns >= conf->messages_ns)
            part = &thread->beside;
        if (part != NULL) {
            part->operations += (uint64_t)STEPS * POINTS * OPERATIONS_A_STEP;
            histogram_add(&part->pieces, (uint64_t)(ended_ns - begun_ns), 1);
        }
        if (conf->share < 1)
            clock_sleep_until(ended_ns + (int64_t)((double)(ended_ns - begun_ns) *
                                                   (1 - conf->share) / conf->share));
    }
    return NULL;
}

int compute_start(struct compute **compute, const struct compute_conf *conf)
{
    struct compute *c = calloc(1, sizeof *c + conf->threads * sizeof *c->threads);
    int rc = 0;

    if (c == NULL)
        return -ENOMEM;
    c->conf = *conf;
    for (unsigned i = 0; i < conf->threads && rc == 0; i++) {
        struct computing_thread *thread = &c->threads[i];

        thread->compute = c;
        for (unsigned p = 0; p < POINTS; p++)
            thread->x[p] = 0.1 + 0.05 * p;
        rc = pthread_create(&thread->thread, NULL, work, thread);
        c->running += rc == 0;
    }
    if (rc == 0)
        *compute = c;
    else
        compute_free(c);
    return -rc;
}

void compute_stop(struct compute *compute)
{
    atomic_store(&compute->stop, true);
    for (; compute->running > 0; compute->running--)
        pthread_join(compute->threads[compute->running - 1].thread, NULL);
}

void compute_sum(const struct compute *compute, struct compute_part *alone,
                 struct compute_part *beside)
{
    for (unsigned i = 0; i < compute->conf.threads; i++) {
        const struct computing_thread *thread = &compute->threads[i];

        alone->operations += thread->alone.operations;
        beside->operations += thread->beside.operations;
        histogram_merge(&alone->pieces, &thread->alone.pieces);
        histogram_merge(&beside->pieces, &thread->beside.pieces);
    }
}

void compute_free(struct compute *compute)
{
    if (compute == NULL)
        return;
    compute_stop(compute);
    free(compute);
}
