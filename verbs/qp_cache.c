/* SPDX-License-Identifier: BSD-3-Clause */
#include "qp_cache.h"

#include <string.h>

/* FNV-1a. */
static struct verbs_bucket *bucket_of(struct verbs_cache *cache, const struct verbs_key *key)
{
    uint32_t hash = 2166136261u;

    for (size_t i = 0; i < VERBS_KEY_BYTES; i++)
        hash = (hash ^ key->bytes[i]) * 16777619u;
    return &cache->buckets[hash % VERBS_BUCKETS];
}

void verbs_cache_init(struct verbs_cache *cache)
{
    for (size_t i = 0; i < VERBS_BUCKETS; i++)
        LIST_INIT(&cache->buckets[i]);
    TAILQ_INIT(&cache->ages);
    cache->count = 0;
}

static struct verbs_kept *take_out(struct verbs_cache *cache, struct verbs_kept *kept)
{
    LIST_REMOVE(kept, bucket);
    TAILQ_REMOVE(&cache->ages, kept, age);
    cache->count--;
    return kept;
}

struct verbs_kept *verbs_cache_take(struct verbs_cache *cache, const struct verbs_key *key)
{
    struct verbs_kept *kept;

    LIST_FOREACH(kept, bucket_of(cache, key), bucket)
    if (memcmp(&kept->key, key, sizeof *key) == 0)
        return take_out(cache, kept);
    return NULL;
}

void verbs_cache_put(struct verbs_cache *cache, struct verbs_kept *kept)
{
    LIST_INSERT_HEAD(bucket_of(cache, &kept->key), kept, bucket);
    TAILQ_INSERT_TAIL(&cache->ages, kept, age);
    cache->count++;
}

struct verbs_kept *verbs_cache_shed(struct verbs_cache *cache, size_t most)
{
    return cache->count > most ? take_out(cache, TAILQ_FIRST(&cache->ages)) : NULL;
}
