/* SPDX-License-Identifier: BSD-3-Clause */
#include "blob_store.h"

#include "prng.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS (BLOB_STORE_SETS * BLOB_STORE_WAYS)
#define STORED_FIRST 64
/* A request that nobody has called for since is given up. */
#define ABANDONED_NS NS_PER_S

struct stored_blob {
    uint64_t id;
    bool used;
    struct blob blob;
};

enum request_state { REQUEST_FREE, REQUEST_OPEN, REQUEST_ANSWERED };

struct blob_request {
    uint64_t id;
    uint32_t node;
    enum request_state state;
    int64_t asked_ns;  /* first asked */
    int64_t called_ns; /* last time that the caller wanted it */
    struct backoff backoff;
    struct blob blob;
};

int blob_store_init(struct blob_store *blob_store, const struct datagram_outlet *outlet)
{
    *blob_store = (struct blob_store){.outlet = *outlet, .due_ns = CLOCK_NEVER};
    blob_store->stored_blobs = calloc(STORED_FIRST, sizeof(*blob_store->stored_blobs));
    blob_store->stored_places = STORED_FIRST;
    blob_store->requests = calloc(REQUESTS, sizeof(*blob_store->requests));
    blob_store->open = calloc(REQUESTS, sizeof(*blob_store->open));
    if (blob_store->stored_blobs && blob_store->requests && blob_store->open)
        return 0;
    blob_store_free(blob_store);
    return -ENOMEM;
}

void blob_store_free(struct blob_store *blob_store)
{
    free(blob_store->stored_blobs);
    free(blob_store->requests);
    free(blob_store->open);
    *blob_store = (struct blob_store){.due_ns = CLOCK_NEVER};
}

/* The blob's place, or the free one where it belongs; there always is one. */
static struct stored_blob *stored_place(const struct blob_store *blob_store, uint64_t id)
{
    uint32_t mask = blob_store->stored_places - 1;
    uint32_t place = (uint32_t)prng_bits(id, 0) & mask;

    while (blob_store->stored_blobs[place].used && blob_store->stored_blobs[place].id != id)
        place = (place + 1) & mask;
    return &blob_store->stored_blobs[place];
}

static int stored_grow(struct blob_store *blob_store)
{
    struct stored_blob *old = blob_store->stored_blobs;
    uint32_t places = blob_store->stored_places;
    struct stored_blob *grown = calloc((size_t)places * 2, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    blob_store->stored_blobs = grown;
    blob_store->stored_places = places * 2;
    for (uint32_t i = 0; i < places; i++)
        if (old[i].used)
            *stored_place(blob_store, old[i].id) = old[i];
    free(old);
    return 0;
}

int blob_store_publish(struct blob_store *blob_store, uint64_t id, const struct blob *blob)
{
    struct stored_blob *stored = stored_place(blob_store, id);

    if (blob->size > sizeof(blob->bytes))
        return -EINVAL;
    if (!stored->used && blob_store->stored_count >= blob_store->stored_places / 2) {
        if (stored_grow(blob_store) < 0)
            return -ENOMEM;
        stored = stored_place(blob_store, id);
    }
    blob_store->stored_count += !stored->used;
    *stored = (struct stored_blob){.id = id, .used = true, .blob = *blob};
    return 0;
}

/* Closes the gap: what was put further on because this place was taken moves back to it (Knuth, The
 * Art of Computer Programming 3, 6.4, algorithm R). */
void blob_store_withdraw(struct blob_store *blob_store, uint64_t id)
{
    uint32_t mask = blob_store->stored_places - 1;
    struct stored_blob *stored_blobs = blob_store->stored_blobs;
    uint32_t gap = (uint32_t)(stored_place(blob_store, id) - stored_blobs);

    if (!stored_blobs[gap].used)
        return;
    for (uint32_t next = (gap + 1) & mask; stored_blobs[next].used; next = (next + 1) & mask) {
        uint32_t home = (uint32_t)prng_bits(stored_blobs[next].id, 0) & mask;

        if (((next - home) & mask) < ((next - gap) & mask))
            continue;
        stored_blobs[gap] = stored_blobs[next];
        gap = next;
    }
    stored_blobs[gap].used = false;
    blob_store->stored_count--;
}

const struct blob *blob_store_published(const struct blob_store *blob_store, uint64_t id)
{
    const struct stored_blob *stored = stored_place(blob_store, id);

    return stored->used ? &stored->blob : NULL;
}

static struct blob_request *set_of(const struct blob_store *blob_store, uint32_t node, uint64_t id)
{
    uint64_t hash = prng_bits(node, id);

    return &blob_store->requests[hash % BLOB_STORE_SETS * BLOB_STORE_WAYS];
}

static struct blob_request *find(const struct blob_store *blob_store, uint32_t node, uint64_t id)
{
    struct blob_request *set = set_of(blob_store, node, id);

    for (unsigned way = 0; way < BLOB_STORE_WAYS; way++)
        if (set[way].state != REQUEST_FREE && set[way].node == node && set[way].id == id)
            return &set[way];
    return NULL;
}

static void forget_open(struct blob_store *blob_store, const struct blob_request *request)
{
    uint32_t index = (uint32_t)(request - blob_store->requests);

    for (uint32_t i = 0; i < blob_store->open_count; i++) {
        if (blob_store->open[i] != index)
            continue;
        blob_store->open[i] = blob_store->open[--blob_store->open_count];
        return;
    }
}

/* A free place in the set, else the one called for longest ago; NULL: all are being waited for. */
static struct blob_request *make_room(struct blob_store *blob_store, struct blob_request *set,
                                      int64_t now_ns)
{
    struct blob_request *oldest = NULL;

    for (unsigned way = 0; way < BLOB_STORE_WAYS; way++) {
        struct blob_request *request = &set[way];

        if (request->state == REQUEST_FREE)
            return request;
        if (request->state == REQUEST_OPEN && now_ns - request->called_ns < ABANDONED_NS)
            continue;
        if (!oldest || request->called_ns < oldest->called_ns)
            oldest = request;
    }
    if (oldest && oldest->state == REQUEST_OPEN)
        forget_open(blob_store, oldest);
    return oldest;
}

static void ask(struct blob_store *blob_store, const struct blob_request *request)
{
    struct datagram fetch = {
        .type = DATAGRAM_FETCH,
        .recipient = request->node,
        .epoch = DATAGRAM_NONE,
        .blob = {.id = request->id},
    };

    blob_store->outlet.send(blob_store->outlet.context, &fetch);
    if (request->backoff.due_ns < blob_store->due_ns)
        blob_store->due_ns = request->backoff.due_ns;
}

int blob_store_fetch(struct blob_store *blob_store, uint32_t node, uint64_t id, struct blob *blob,
                     int64_t now_ns)
{
    struct blob_request *request = find(blob_store, node, id);

    if (request) {
        request->called_ns = now_ns;
        if (request->state == REQUEST_OPEN)
            return -EAGAIN;
        *blob = request->blob;
        return 0;
    }
    request = make_room(blob_store, set_of(blob_store, node, id), now_ns);
    if (!request)
        return -EAGAIN;
    *request = (struct blob_request){
        .id = id, .node = node, .state = REQUEST_OPEN, .asked_ns = now_ns, .called_ns = now_ns};
    backoff_start(&request->backoff, now_ns);
    blob_store->open[blob_store->open_count++] = (uint32_t)(request - blob_store->requests);
    ask(blob_store, request);
    return -EAGAIN;
}

static void answer(struct blob_store *blob_store, const struct datagram *fetch)
{
    const struct blob *blob = blob_store_published(blob_store, fetch->blob.id);
    struct datagram datagram = {
        .type = DATAGRAM_BLOB,
        .recipient = fetch->sender,
        .to = fetch->from,
        .epoch = DATAGRAM_NONE,
        .blob = {.id = fetch->blob.id},
    };

    if (!blob)
        return;
    datagram.blob.blob = *blob;
    blob_store->outlet.send(blob_store->outlet.context, &datagram);
}

bool blob_store_receive(struct blob_store *blob_store, const struct datagram *datagram,
                        int64_t now_ns)
{
    struct blob_request *request;

    (void)now_ns;
    if (datagram->type == DATAGRAM_FETCH) {
        answer(blob_store, datagram);
        return true;
    }
    request = find(blob_store, datagram->sender, datagram->blob.id);
    if (!request)
        return false;
    if (request->state == REQUEST_ANSWERED)
        return true; /* both the request and its repetition were answered */
    if (datagram->origin_ns < request->asked_ns)
        return false;
    request->state = REQUEST_ANSWERED;
    request->blob = datagram->blob.blob;
    forget_open(blob_store, request);
    return true;
}

void blob_store_tick(struct blob_store *blob_store, int64_t now_ns)
{
    if (now_ns < blob_store->due_ns)
        return;
    blob_store->due_ns = CLOCK_NEVER;
    for (uint32_t i = blob_store->open_count; i > 0; i--) {
        struct blob_request *request = &blob_store->requests[blob_store->open[i - 1]];

        if (now_ns - request->called_ns >= ABANDONED_NS) {
            request->state = REQUEST_FREE;
            forget_open(blob_store, request);
            continue;
        }
        if (backoff_due(&request->backoff, now_ns))
            ask(blob_store, request);
        else if (request->backoff.due_ns < blob_store->due_ns)
            blob_store->due_ns = request->backoff.due_ns;
    }
}

int64_t blob_store_deadline(const struct blob_store *blob_store)
{
    return blob_store->due_ns;
}
