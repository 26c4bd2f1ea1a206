/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs that no lane uses, kept connected for a later phase between the same two ports with
 * the same options; the one unused for longest gives way. It knows nothing of what it keeps.
 */
#ifndef VERBS_QP_CACHE_H
#define VERBS_QP_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* All that must be equal for an end to be of use again; unused bytes are 0. */
#define QP_KEY_BYTES 64
struct qp_key {
    uint8_t bytes[QP_KEY_BYTES];
};

/* The first member of whatever is cached. */
struct cached_qp {
    LIST_ENTRY(cached_qp) bucket;
    TAILQ_ENTRY(cached_qp) age;
    struct qp_key key;
};

LIST_HEAD(qp_bucket, cached_qp);
TAILQ_HEAD(qp_ages, cached_qp);

#define QP_BUCKETS 1024u
struct qp_cache {
    struct qp_bucket buckets[QP_BUCKETS];
    struct qp_ages ages; /* the oldest first */
    size_t count;
};

void qp_cache_init(struct qp_cache *cache);
/* The one with this key that was put in last; it is no longer in the cache. NULL: none. */
struct cached_qp *qp_cache_take(struct qp_cache *cache, const struct qp_key *key);
void qp_cache_put(struct qp_cache *cache, struct cached_qp *cached);
/* Takes out the oldest when more than `most` are cached; NULL: there are no more. */
struct cached_qp *qp_cache_evict(struct qp_cache *cache, size_t most);

#endif
