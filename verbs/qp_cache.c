/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_cache.h"

#include <string.h>

/* FNV-1a. */
static struct qp_bucket *bucket_of(struct qp_cache *cache, const struct qp_key *key)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < QP_KEY_BYTES; i++)
        hash = (hash ^ key->bytes[i]) * 16777619u;
    return &cache->buckets[hash % QP_BUCKETS];
}

void qp_cache_init(struct qp_cache *cache)
{
    for (size_t i = 0; i < QP_BUCKETS; i++)
        LIST_INIT(&cache->buckets[i]);
    TAILQ_INIT(&cache->ages);
    cache->count = 0;
}

static struct cached_qp *take_out(struct qp_cache *cache, struct cached_qp *cached)
{
    LIST_REMOVE(cached, bucket);
    TAILQ_REMOVE(&cache->ages, cached, age);
    cache->count--;
    return cached;
}

struct cached_qp *qp_cache_take(struct qp_cache *cache, const struct qp_key *key)
{
    struct cached_qp *cached;

    LIST_FOREACH(cached, bucket_of(cache, key), bucket)
    if (memcmp(&cached->key, key, sizeof *key) == 0)
        return take_out(cache, cached);
    return NULL;
}

void qp_cache_put(struct qp_cache *cache, struct cached_qp *cached)
{
    LIST_INSERT_HEAD(bucket_of(cache, &cached->key), cached, bucket);
    TAILQ_INSERT_TAIL(&cache->ages, cached, age);
    cache->count++;
}

struct cached_qp *qp_cache_evict(struct qp_cache *cache, size_t most)
{
    return cache->count > most ? take_out(cache, TAILQ_FIRST(&cache->ages)) : NULL;
}
