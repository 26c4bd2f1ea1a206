/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Blobs that nodes publish under ids of their own and fetch from each other; no I/O. A request is
 * repeated with back-off until the answer comes; a node that has not published the id (yet) stays
 * silent. What was fetched is remembered in a table of fixed size: MAILBOX_WAYS places for each
 * hash, of which the one asked for longest ago gives way.
 */
#ifndef ENGINE_BLOB_STORE_H
#define ENGINE_BLOB_STORE_H

#include "backoff.h"
#include "datagram.h"

#define MAILBOX_SETS 1024
#define MAILBOX_WAYS 4

struct mailbox_letter;  /* published: id and blob */
struct mailbox_request; /* asked for, and its answer */

struct mailbox {
    struct datagram_outlet outlet;
    struct mailbox_letter *letters; /* open addressing, a power of two of places */
    uint32_t letter_places;
    uint32_t letter_count;
    struct mailbox_request *requests; /* MAILBOX_SETS x MAILBOX_WAYS */
    uint32_t *open;                   /* indices of requests without answer */
    uint32_t open_count;
    int64_t due_ns; /* of the first repetition; CLOCK_NEVER: none */
};

/* 0 or -ENOMEM. */
int mailbox_init(struct mailbox *mailbox, const struct datagram_outlet *outlet);
void mailbox_free(struct mailbox *mailbox);

/* Publishing an id again replaces its blob. 0, -EINVAL (too large) or -ENOMEM. */
int mailbox_publish(struct mailbox *mailbox, uint64_t id, const struct blob *blob);
/* Forgets an id, published or not: nobody will ask for it any more. */
void mailbox_withdraw(struct mailbox *mailbox, uint64_t id);
/* Our own; NULL: not published. */
const struct blob *mailbox_published(const struct mailbox *mailbox, uint64_t id);

/* 0 with the blob; -EAGAIN: asked, or no room now: call again. */
int mailbox_fetch(struct mailbox *mailbox, uint32_t node, uint64_t id, struct blob *blob,
                  int64_t now_ns);
/* FETCH and BLOB. False: an answer that nobody waits for. */
bool mailbox_receive(struct mailbox *mailbox, const struct datagram *datagram, int64_t now_ns);
void mailbox_tick(struct mailbox *mailbox, int64_t now_ns);
int64_t mailbox_deadline(const struct mailbox *mailbox);

#endif
