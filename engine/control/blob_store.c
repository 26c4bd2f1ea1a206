/* SPDX-License-Identifier: BSD-3-Clause */
#include "blob_store.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

#define ABANDONED_NS NS_PER_S
#define OWN BLOB_STORE_OWN

struct blob_entry {
    uint32_t node; /* who publishes it */
    uint64_t id;
    LIST_ENTRY(blob_entry) next;
    bool is_here;
    struct blob blob;
    int64_t asked_ns;  /* first asked */
    int64_t called_ns; /* last time that the caller wanted it */
    struct backoff backoff;
};

static int compare(const void *a, const void *b)
{
    const struct blob_entry *x = a, *y = b;

    if (x->node != y->node)
        return x->node < y->node ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static struct blob_entry *find(const struct blob_store *blob_store, uint32_t node, uint64_t id)
{
    const struct blob_entry wanted = {.node = node, .id = id};
    struct blob_entry *const *found = tfind(&wanted, &blob_store->tree, compare);

    return found != NULL ? *found : NULL;
}

static struct blob_entry *make(struct blob_store *blob_store, uint32_t node, uint64_t id)
{
    struct blob_entry *entry = calloc(1, sizeof(*entry));

    if (entry == NULL)
        return NULL;
    *entry = (struct blob_entry){.node = node, .id = id};
    if (tsearch(entry, &blob_store->tree, compare) == NULL) {
        free(entry);
        return NULL;
    }
    LIST_INSERT_HEAD(&blob_store->open, entry, next);
    return entry;
}

static void drop(struct blob_store *blob_store, struct blob_entry *entry)
{
    tdelete(entry, &blob_store->tree, compare);
    LIST_REMOVE(entry, next);
    free(entry);
}

static void put(struct blob_store *blob_store, struct blob_entry *entry, const struct blob *blob)
{
    if (!entry->is_here) {
        LIST_REMOVE(entry, next);
        LIST_INSERT_HEAD(&blob_store->here, entry, next);
    }
    entry->is_here = true;
    entry->blob = *blob;
}

void blob_store_init(struct blob_store *blob_store, const struct datagram_outlet *outlet)
{
    *blob_store = (struct blob_store){.outlet = *outlet, .due_ns = CLOCK_NEVER};
}

void blob_store_clear(struct blob_store *blob_store)
{
    while (!LIST_EMPTY(&blob_store->here))
        drop(blob_store, LIST_FIRST(&blob_store->here));
    while (!LIST_EMPTY(&blob_store->open))
        drop(blob_store, LIST_FIRST(&blob_store->open));
    blob_store->due_ns = CLOCK_NEVER;
}

int blob_store_publish(struct blob_store *blob_store, uint64_t id, const struct blob *blob)
{
    struct blob_entry *entry = find(blob_store, OWN, id);

    if (blob->size > sizeof(blob->bytes))
        return -EINVAL;
    if (entry == NULL && (entry = make(blob_store, OWN, id)) == NULL)
        return -ENOMEM;
    put(blob_store, entry, blob);
    return 0;
}

static void ask(struct blob_store *blob_store, const struct blob_entry *entry)
{
    struct datagram fetch = {
        .type = DATAGRAM_FETCH,
        .recipient = entry->node,
        .epoch = DATAGRAM_NONE,
        .blob = {.id = entry->id},
    };

    blob_store->outlet.send(blob_store->outlet.context, &fetch);
    if (entry->backoff.due_ns < blob_store->due_ns)
        blob_store->due_ns = entry->backoff.due_ns;
}

int blob_store_fetch(struct blob_store *blob_store, uint32_t node, uint64_t id, struct blob *blob,
                     int64_t now_ns)
{
    struct blob_entry *entry = find(blob_store, node, id);

    if (entry != NULL && entry->is_here) {
        *blob = entry->blob;
        return 0;
    }
    if (entry == NULL && node == OWN)
        return -EAGAIN;
    if (entry == NULL) {
        entry = make(blob_store, node, id);
        if (entry == NULL)
            return -ENOMEM;
        entry->asked_ns = now_ns;
        backoff_start(&entry->backoff, now_ns);
        ask(blob_store, entry);
    }
    entry->called_ns = now_ns;
    return -EAGAIN;
}

/* What is not published is not answered: who asks asks again. */
static void answer(struct blob_store *blob_store, const struct datagram *fetch)
{
    const struct blob_entry *entry = find(blob_store, OWN, fetch->blob.id);
    struct datagram datagram = {
        .type = DATAGRAM_BLOB,
        .recipient = fetch->sender,
        .to = fetch->from,
        .epoch = DATAGRAM_NONE,
        .blob = {.id = fetch->blob.id},
    };

    if (entry == NULL)
        return;
    datagram.blob.blob = entry->blob;
    blob_store->outlet.send(blob_store->outlet.context, &datagram);
}

bool blob_store_receive(struct blob_store *blob_store, const struct datagram *datagram)
{
    struct blob_entry *entry;

    if (datagram->type == DATAGRAM_FETCH) {
        answer(blob_store, datagram);
        return true;
    }
    entry = find(blob_store, datagram->sender, datagram->blob.id);
    if (entry == NULL)
        return false;
    if (entry->is_here)
        return true; /* both the request and its repetition were answered */
    if (datagram->origin_ns < entry->asked_ns)
        return false;
    put(blob_store, entry, &datagram->blob.blob);
    return true;
}

void blob_store_tick(struct blob_store *blob_store, int64_t now_ns)
{
    struct blob_entry *entry, *following;

    if (now_ns < blob_store->due_ns)
        return;
    blob_store->due_ns = CLOCK_NEVER;
    for (entry = LIST_FIRST(&blob_store->open); entry != NULL; entry = following) {
        following = LIST_NEXT(entry, next);
        if (now_ns - entry->called_ns >= ABANDONED_NS)
            drop(blob_store, entry);
        else if (backoff_due(&entry->backoff, now_ns))
            ask(blob_store, entry);
        else if (entry->backoff.due_ns < blob_store->due_ns)
            blob_store->due_ns = entry->backoff.due_ns;
    }
}

int64_t blob_store_deadline(const struct blob_store *blob_store)
{
    return blob_store->due_ns;
}
