/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs that no lane uses, kept connected for a later phase between the same two ports with
 * the same options; the least recently used is evicted. No device.
 */
#ifndef VERBS_QP_CACHE_H
#define VERBS_QP_CACHE_H

#include "qp_config.h"

#include <sys/queue.h>

/* The first member of a queue pair. */
struct cached_qp {
    LIST_ENTRY(cached_qp) bucket;
    TAILQ_ENTRY(cached_qp) age;
    const struct qp_config *config;
};

#define QP_BUCKETS 1024u
struct qp_cache {
    LIST_HEAD(, cached_qp) buckets[QP_BUCKETS];
    TAILQ_HEAD(, cached_qp) ages; /* the oldest first */
    size_t count;
};

void qp_cache_init(struct qp_cache *cache);
void qp_cache_put(struct qp_cache *cache, struct cached_qp *qp);
/* The one of this config that was put in last; it is no longer in the cache. NULL: none. */
struct cached_qp *qp_cache_take(struct qp_cache *cache, const struct qp_config *config);
/* Takes out the oldest while more than `max` are kept; NULL: there are no more. */
struct cached_qp *qp_cache_evict(struct qp_cache *cache, size_t max);

#endif
