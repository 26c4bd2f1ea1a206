/* SPDX-License-Identifier: BSD-3-Clause */
#include "blob_store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REQUESTS (MAILBOX_SETS * MAILBOX_WAYS)
#define LETTERS_FIRST 64
/* A request that nobody has called for since is given up. */
#define ABANDONED_NS NS_PER_S

struct mailbox_letter {
    uint64_t id;
    bool used;
    struct blob blob;
};

enum request_state { REQUEST_FREE, REQUEST_OPEN, REQUEST_ANSWERED };

struct mailbox_request {
    uint64_t id;
    uint32_t node;
    enum request_state state;
    int64_t asked_ns;  /* first asked */
    int64_t called_ns; /* last time that the caller wanted it */
    struct backoff backoff;
    struct blob blob;
};

/* The finalizer of splitmix64 (Steele, Lea, Flood 2014): ids may be counters or bit fields. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

int mailbox_init(struct mailbox *mailbox, const struct datagram_outlet *outlet)
{
    *mailbox = (struct mailbox){.outlet = *outlet, .due_ns = CLOCK_NEVER};
    mailbox->letters = calloc(LETTERS_FIRST, sizeof(*mailbox->letters));
    mailbox->letter_places = LETTERS_FIRST;
    mailbox->requests = calloc(REQUESTS, sizeof(*mailbox->requests));
    mailbox->open = calloc(REQUESTS, sizeof(*mailbox->open));
    if (mailbox->letters && mailbox->requests && mailbox->open)
        return 0;
    mailbox_free(mailbox);
    return -ENOMEM;
}

void mailbox_free(struct mailbox *mailbox)
{
    free(mailbox->letters);
    free(mailbox->requests);
    free(mailbox->open);
    *mailbox = (struct mailbox){.due_ns = CLOCK_NEVER};
}

/* The letter's place, or the free one where it belongs; there always is one. */
static struct mailbox_letter *letter_place(const struct mailbox *mailbox, uint64_t id)
{
    uint32_t mask = mailbox->letter_places - 1;
    uint32_t place = (uint32_t)mix(id) & mask;

    while (mailbox->letters[place].used && mailbox->letters[place].id != id)
        place = (place + 1) & mask;
    return &mailbox->letters[place];
}

static int letters_grow(struct mailbox *mailbox)
{
    struct mailbox_letter *old = mailbox->letters;
    uint32_t places = mailbox->letter_places;
    struct mailbox_letter *grown = calloc((size_t)places * 2, sizeof(*grown));

    if (!grown)
        return -ENOMEM;
    mailbox->letters = grown;
    mailbox->letter_places = places * 2;
    for (uint32_t i = 0; i < places; i++)
        if (old[i].used)
            *letter_place(mailbox, old[i].id) = old[i];
    free(old);
    return 0;
}

int mailbox_publish(struct mailbox *mailbox, uint64_t id, const struct blob *blob)
{
    struct mailbox_letter *letter = letter_place(mailbox, id);

    if (blob->size > sizeof(blob->bytes))
        return -EINVAL;
    if (!letter->used && mailbox->letter_count >= mailbox->letter_places / 2) {
        if (letters_grow(mailbox) < 0)
            return -ENOMEM;
        letter = letter_place(mailbox, id);
    }
    mailbox->letter_count += !letter->used;
    *letter = (struct mailbox_letter){.id = id, .used = true, .blob = *blob};
    return 0;
}

/* Closes the gap: what was put further on because this place was taken moves back to it (Knuth, The
 * Art of Computer Programming 3, 6.4, algorithm R). */
void mailbox_withdraw(struct mailbox *mailbox, uint64_t id)
{
    uint32_t mask = mailbox->letter_places - 1;
    struct mailbox_letter *letters = mailbox->letters;
    uint32_t gap = (uint32_t)(letter_place(mailbox, id) - letters);

    if (!letters[gap].used)
        return;
    for (uint32_t next = (gap + 1) & mask; letters[next].used; next = (next + 1) & mask) {
        uint32_t home = (uint32_t)mix(letters[next].id) & mask;

        if (((next - home) & mask) < ((next - gap) & mask))
            continue;
        letters[gap] = letters[next];
        gap = next;
    }
    letters[gap].used = false;
    mailbox->letter_count--;
}

const struct blob *mailbox_published(const struct mailbox *mailbox, uint64_t id)
{
    const struct mailbox_letter *letter = letter_place(mailbox, id);

    return letter->used ? &letter->blob : NULL;
}

static struct mailbox_request *set_of(const struct mailbox *mailbox, uint32_t node, uint64_t id)
{
    uint64_t hash = mix(id ^ mix(node));

    return &mailbox->requests[hash % MAILBOX_SETS * MAILBOX_WAYS];
}

static struct mailbox_request *find(const struct mailbox *mailbox, uint32_t node, uint64_t id)
{
    struct mailbox_request *set = set_of(mailbox, node, id);

    for (unsigned way = 0; way < MAILBOX_WAYS; way++)
        if (set[way].state != REQUEST_FREE && set[way].node == node && set[way].id == id)
            return &set[way];
    return NULL;
}

static void forget_open(struct mailbox *mailbox, const struct mailbox_request *request)
{
    uint32_t index = (uint32_t)(request - mailbox->requests);

    for (uint32_t i = 0; i < mailbox->open_count; i++) {
        if (mailbox->open[i] != index)
            continue;
        mailbox->open[i] = mailbox->open[--mailbox->open_count];
        return;
    }
}

/* A free place in the set, else the one called for longest ago; NULL: all are being waited for. */
static struct mailbox_request *make_room(struct mailbox *mailbox, struct mailbox_request *set,
                                         int64_t now_ns)
{
    struct mailbox_request *oldest = NULL;

    for (unsigned way = 0; way < MAILBOX_WAYS; way++) {
        struct mailbox_request *request = &set[way];

        if (request->state == REQUEST_FREE)
            return request;
        if (request->state == REQUEST_OPEN && now_ns - request->called_ns < ABANDONED_NS)
            continue;
        if (!oldest || request->called_ns < oldest->called_ns)
            oldest = request;
    }
    if (oldest && oldest->state == REQUEST_OPEN)
        forget_open(mailbox, oldest);
    return oldest;
}

static void ask(struct mailbox *mailbox, const struct mailbox_request *request)
{
    struct datagram fetch = {
        .type = DATAGRAM_FETCH,
        .recipient = request->node,
        .epoch = DATAGRAM_NONE,
        .blob = {.id = request->id},
    };

    mailbox->outlet.send(mailbox->outlet.context, &fetch);
    if (request->backoff.due_ns < mailbox->due_ns)
        mailbox->due_ns = request->backoff.due_ns;
}

int mailbox_fetch(struct mailbox *mailbox, uint32_t node, uint64_t id, struct blob *blob,
                  int64_t now_ns)
{
    struct mailbox_request *request = find(mailbox, node, id);

    if (request) {
        request->called_ns = now_ns;
        if (request->state == REQUEST_OPEN)
            return -EAGAIN;
        *blob = request->blob;
        return 0;
    }
    request = make_room(mailbox, set_of(mailbox, node, id), now_ns);
    if (!request)
        return -EAGAIN;
    *request = (struct mailbox_request){
        .id = id, .node = node, .state = REQUEST_OPEN, .asked_ns = now_ns, .called_ns = now_ns};
    backoff_start(&request->backoff, now_ns);
    mailbox->open[mailbox->open_count++] = (uint32_t)(request - mailbox->requests);
    ask(mailbox, request);
    return -EAGAIN;
}

static void answer(struct mailbox *mailbox, const struct datagram *fetch)
{
    const struct blob *blob = mailbox_published(mailbox, fetch->blob.id);
    struct datagram datagram = {
        .type = DATAGRAM_BLOB,
        .recipient = fetch->sender,
        .epoch = DATAGRAM_NONE,
        .blob = {.id = fetch->blob.id},
    };

    if (!blob)
        return;
    datagram.blob.blob = *blob;
    mailbox->outlet.send(mailbox->outlet.context, &datagram);
}

bool mailbox_receive(struct mailbox *mailbox, const struct datagram *datagram, int64_t now_ns)
{
    struct mailbox_request *request;

    (void)now_ns;
    if (datagram->type == DATAGRAM_FETCH) {
        answer(mailbox, datagram);
        return true;
    }
    request = find(mailbox, datagram->sender, datagram->blob.id);
    if (!request)
        return false;
    if (request->state == REQUEST_ANSWERED)
        return true; /* both the request and its repetition were answered */
    if (datagram->origin_ns < request->asked_ns)
        return false;
    request->state = REQUEST_ANSWERED;
    request->blob = datagram->blob.blob;
    forget_open(mailbox, request);
    return true;
}

void mailbox_tick(struct mailbox *mailbox, int64_t now_ns)
{
    if (now_ns < mailbox->due_ns)
        return;
    mailbox->due_ns = CLOCK_NEVER;
    for (uint32_t i = mailbox->open_count; i > 0; i--) {
        struct mailbox_request *request = &mailbox->requests[mailbox->open[i - 1]];

        if (now_ns - request->called_ns >= ABANDONED_NS) {
            request->state = REQUEST_FREE;
            forget_open(mailbox, request);
            continue;
        }
        if (backoff_due(&request->backoff, now_ns))
            ask(mailbox, request);
        else if (request->backoff.due_ns < mailbox->due_ns)
            mailbox->due_ns = request->backoff.due_ns;
    }
}

int64_t mailbox_deadline(const struct mailbox *mailbox)
{
    return mailbox->due_ns;
}
