/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Small blobs that nodes leave for each other: addresses of ports, what connections need.
 *
 * Without I/O. Who wants a blob asks its publisher (DATAGRAM_FETCH) again and again, with back-off,
 * until the answer comes (DATAGRAM_BLOB); a blob that is not published yet is not answered. What a
 * node has published and what it has fetched stay until it forgets them all.
 */
#ifndef ENGINE_BLOB_STORE_H
#define ENGINE_BLOB_STORE_H

#include "backoff.h"
#include "datagram.h"

#include <sys/queue.h>

#define BLOB_STORE_OWN DATAGRAM_NONE /**< as the publisher: this node */

struct blob_entry;
LIST_HEAD(blob_list, blob_entry);

struct blob_store {
    struct datagram_outlet outlet;
    void *tree;            /**< tsearch(3): by node and id */
    struct blob_list here; /**< published or fetched */
    struct blob_list open; /**< asked for */
    int64_t due_ns;        /**< of the first repetition; CLOCK_NEVER: none */
};

/**
 * @brief Begin with nothing published or fetched.
 *
 * @param blob_store Store.
 * @param outlet Takes what is to be sent; copied.
 */
void blob_store_init(struct blob_store *blob_store, const struct datagram_outlet *outlet);
/**
 * @brief Forget what was published, fetched and asked for.
 *
 * @param blob_store Store.
 */
void blob_store_clear(struct blob_store *blob_store);

/**
 * @brief Publish a blob; an id that is published already gets the new one.
 *
 * @param blob_store Store.
 * @param id Number under which the blob is published.
 * @param blob Blob; copied.
 * @return 0; -EINVAL: too large; -ENOMEM.
 */
int blob_store_publish(struct blob_store *blob_store, uint64_t id, const struct blob *blob);

/**
 * @brief Fetch a blob; a request that nobody has called for since a second is given up.
 *
 * @param blob_store Store.
 * @param node Index of the publishing node.
 * @param id Number under which the blob is published.
 * @param blob Takes the blob.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 * @return 0 with the blob; -EAGAIN: asked, call again; -ENOMEM.
 */
int blob_store_fetch(struct blob_store *blob_store, uint32_t node, uint64_t id, struct blob *blob,
                     int64_t now_ns);
/**
 * @brief Take a FETCH or BLOB.
 *
 * @param blob_store Store.
 * @param datagram Datagram.
 * @return False: an answer that nobody waits for.
 */
bool blob_store_receive(struct blob_store *blob_store, const struct datagram *datagram);
/**
 * @brief Ask again what is due.
 *
 * @param blob_store Store.
 * @param now_ns Present time of CLOCK_MONOTONIC, ns.
 */
void blob_store_tick(struct blob_store *blob_store, int64_t now_ns);
/**
 * @brief Return when blob_store_tick() has something to do.
 *
 * @param blob_store Store.
 * @return Time, ns; CLOCK_NEVER.
 */
int64_t blob_store_deadline(const struct blob_store *blob_store);

#endif
