/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs that no lane uses, kept connected for a later phase between the same two ports with
 * the same options; the one unused for longest gives way. It knows nothing of what it keeps.
 */
#ifndef VERBS_CACHE_H
#define VERBS_CACHE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* All that must be equal for an end to be of use again; unused bytes are 0. */
#define VERBS_KEY_BYTES 64
struct verbs_key {
    uint8_t bytes[VERBS_KEY_BYTES];
};

/* The first member of whatever is kept. */
struct verbs_kept {
    LIST_ENTRY(verbs_kept) bucket;
    TAILQ_ENTRY(verbs_kept) age;
    struct verbs_key key;
};

LIST_HEAD(verbs_bucket, verbs_kept);
TAILQ_HEAD(verbs_ages, verbs_kept);

#define VERBS_BUCKETS 1024u
struct verbs_cache {
    struct verbs_bucket buckets[VERBS_BUCKETS];
    struct verbs_ages ages; /* the oldest first */
    size_t count;
};

void verbs_cache_init(struct verbs_cache *cache);
/* The one with this key that was put in last; it is no longer in the cache. NULL: none. */
struct verbs_kept *verbs_cache_take(struct verbs_cache *cache, const struct verbs_key *key);
void verbs_cache_put(struct verbs_cache *cache, struct verbs_kept *kept);
/* Takes out the oldest when more than `most` are kept; NULL: there are no more. */
struct verbs_kept *verbs_cache_shed(struct verbs_cache *cache, size_t most);

#endif
