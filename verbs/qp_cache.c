/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_cache.h"

void qp_cache_init(struct qp_cache *cache)
{
    for (size_t i = 0; i < QP_BUCKETS; i++)
        LIST_INIT(&cache->buckets[i]);
    TAILQ_INIT(&cache->ages);
    cache->count = 0;
}

void qp_cache_put(struct qp_cache *cache, struct cached_qp *qp)
{
    LIST_INSERT_HEAD(&cache->buckets[qp_config_hash(qp->config) % QP_BUCKETS], qp, bucket);
    TAILQ_INSERT_TAIL(&cache->ages, qp, age);
    cache->count++;
}

static struct cached_qp *take_out(struct qp_cache *cache, struct cached_qp *qp)
{
    LIST_REMOVE(qp, bucket);
    TAILQ_REMOVE(&cache->ages, qp, age);
    cache->count--;
    return qp;
}

struct cached_qp *qp_cache_take(struct qp_cache *cache, const struct qp_config *config)
{
    struct cached_qp *qp;

    LIST_FOREACH(qp, &cache->buckets[qp_config_hash(config) % QP_BUCKETS], bucket)
    if (qp_config_equal(qp->config, config))
        return take_out(cache, qp);
    return NULL;
}

struct cached_qp *qp_cache_evict(struct qp_cache *cache, size_t max)
{
    return cache->count > max ? take_out(cache, TAILQ_FIRST(&cache->ages)) : NULL;
}
