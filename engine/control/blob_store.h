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
 * @brief Makes an empty store.
 * @param blob_store of the caller, who clears it at the end
 * @param outlet is handed what is to be sent
 */
void blob_store_init(struct blob_store *blob_store, const struct datagram_outlet *outlet);

/** @brief Forgets what was published, fetched and asked for. */
void blob_store_clear(struct blob_store *blob_store);

/**
 * @brief Publishes a blob; an id that is published already gets this one.
 * @param id the publisher's own name for it
 * @param blob is copied
 * @return 0, -EINVAL (too large) or -ENOMEM
 */
int blob_store_publish(struct blob_store *blob_store, uint64_t id, const struct blob *blob);

/**
 * @brief Takes a blob of another node, or of this one, which is asked for as long as it is called
 * for.
 *
 * A request that nobody has called for since a second is given up.
 *
 * @param node the publisher's index, or BLOB_STORE_OWN
 * @param id the publisher's name for it
 * @param blob is written
 * @param now_ns the present time
 * @return 0; -EAGAIN: not here yet, call again; -ENOMEM
 */
int blob_store_fetch(struct blob_store *blob_store, uint32_t node, uint64_t id, struct blob *blob,
                     int64_t now_ns);

/** @brief Handles FETCH and BLOB. Returns false for an answer that nobody waits for. */
bool blob_store_receive(struct blob_store *blob_store, const struct datagram *datagram);

/** @brief Repeats the requests that are due, and gives up those that nobody calls for. */
void blob_store_tick(struct blob_store *blob_store, int64_t now_ns);

/** @brief Returns when the next tick is due; CLOCK_NEVER: nothing is asked for. */
int64_t blob_store_deadline(const struct blob_store *blob_store);

#endif
