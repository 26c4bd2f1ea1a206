/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blobs that nodes publish under ids of their own and fetch from each other; no I/O. A request is
 * repeated with back-off until the answer comes; a node that has not published the id (yet) stays
 * silent. What was fetched is remembered in a table of fixed size: BLOB_STORE_WAYS places for each
 * hash, of which the one asked for longest ago gives way.
 */
#ifndef ENGINE_BLOB_STORE_H
#define ENGINE_BLOB_STORE_H

#include "backoff.h"
#include "datagram.h"

#define BLOB_STORE_SETS 1024
#define BLOB_STORE_WAYS 4

struct stored_blob;  /* published: id and blob */
struct blob_request; /* asked for, and its answer */

struct blob_store {
    struct datagram_outlet outlet;
    struct stored_blob *stored_blobs; /* open addressing, a power of two of places */
    uint32_t stored_places;
    uint32_t stored_count;
    struct blob_request *requests; /* BLOB_STORE_SETS x BLOB_STORE_WAYS */
    uint32_t *open;                /* indices of requests without answer */
    uint32_t open_count;
    int64_t due_ns; /* of the first repetition; CLOCK_NEVER: none */
};

/* 0 or -ENOMEM. */
int blob_store_init(struct blob_store *blob_store, const struct datagram_outlet *outlet);
void blob_store_free(struct blob_store *blob_store);

/* Publishing an id again replaces its blob. 0, -EINVAL (too large) or -ENOMEM. */
int blob_store_publish(struct blob_store *blob_store, uint64_t id, const struct blob *blob);
/* Forgets an id, published or not: nobody will ask for it any more. */
void blob_store_withdraw(struct blob_store *blob_store, uint64_t id);
/* Our own; NULL: not published. */
const struct blob *blob_store_published(const struct blob_store *blob_store, uint64_t id);

/* 0 with the blob; -EAGAIN: asked, or no room now: call again. */
int blob_store_fetch(struct blob_store *blob_store, uint32_t node, uint64_t id, struct blob *blob,
                     int64_t now_ns);
/* FETCH and BLOB. False: an answer that nobody waits for. */
bool blob_store_receive(struct blob_store *blob_store, const struct datagram *datagram,
                        int64_t now_ns);
void blob_store_tick(struct blob_store *blob_store, int64_t now_ns);
int64_t blob_store_deadline(const struct blob_store *blob_store);

#endif
