/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Small blobs that nodes leave for each other: addresses of ports, what connections need.
 *
 * A map without I/O. What a node has published and what it has fetched stay until they are cleared.
 */
#ifndef ENGINE_BLOB_STORE_H
#define ENGINE_BLOB_STORE_H

#include "backoff.h"
#include "blob.h"

struct blob_entry {
    uint32_t node; /**< who publishes it */
    uint64_t id;   /**< the publisher's own name for it */
    bool is_here;
    int64_t asked_ns;       /**< when it was first asked for */
    struct backoff backoff; /**< until it is asked for again */
    struct blob blob;
};

/** @brief All zero: empty. */
struct blob_store {
    void *tree; /**< tsearch(3): by node and id */
};

/**
 * @brief Find a blob's entry.
 *
 * @param store Store.
 * @param node Index of the publisher.
 * @param id The publisher's name for it.
 * @return Entry, the store's; NULL: there is none.
 */
struct blob_entry *blob_store_find(const struct blob_store *store, uint32_t node, uint64_t id);
/**
 * @brief Find a blob's entry, or make one that is not here and was not asked for.
 *
 * @param store Store.
 * @param node Index of the publisher.
 * @param id The publisher's name for it.
 * @return Entry, the store's; NULL: out of memory.
 */
struct blob_entry *blob_store_make(struct blob_store *store, uint32_t node, uint64_t id);
/**
 * @brief Remove all entries.
 *
 * @param store Store.
 */
void blob_store_clear(struct blob_store *store);

#endif
