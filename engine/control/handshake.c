/* SPDX-License-Identifier: BSD-3-Clause */
#include "handshake.h"

#include <sodium.h>
#include <string.h>

uint32_t handshake_parent(uint32_t index)
{
    return index & (index - 1);
}

static bool is_root(const struct handshake *handshake)
{
    return handshake->neighbours->self == 0;
}

static uint32_t child_index(const struct handshake *handshake, uint32_t child)
{
    return handshake->neighbours->self + (UINT32_C(1) << child);
}

/* The child's place, or -1: `index` is no child. */
static int child_place(const struct handshake *handshake, uint32_t index)
{
    if (index <= handshake->neighbours->self ||
        handshake_parent(index) != handshake->neighbours->self)
        return -1;
    return __builtin_ctz(index);
}

static uint32_t count_children(const struct neighbours *neighbours)
{
    uint32_t most =
        neighbours->self ? (uint32_t)__builtin_ctz(neighbours->self) : neighbours->rounds;
    uint32_t children = 0;

    while (children < most && neighbours->self + (UINT64_C(1) << children) < neighbours->count)
        children++;
    return children;
}

void handshake_init(struct handshake *handshake, struct neighbours *neighbours,
                    const struct datagram_outlet *outlet, const struct handshake_conf *conf)
{
    *handshake = (struct handshake){
        .neighbours = neighbours,
        .outlet = *outlet,
        .conf = *conf,
        .child_count = count_children(neighbours),
        .expected_ns = -1,
    };
    backoff_stop(&handshake->backoff);
}

static struct datagram draft(const struct handshake *handshake, enum datagram_type type,
                             uint32_t recipient)
{
    struct datagram datagram = {
        .type = type,
        .recipient = recipient,
        .epoch = DATAGRAM_NONE,
        .handshake = {.boot = handshake->conf.boot},
    };

    memcpy(datagram.handshake.nonce, handshake->conf.nonce, DATAGRAM_NONCE_BYTES);
    return datagram;
}

/* The answer to a neighbour's probe: we live, but have no session key; or we have one, and not with
 * that process. */
static void answer_probe(const struct handshake *handshake, const struct datagram *probe)
{
    struct datagram join = draft(handshake, DATAGRAM_JOIN, probe->sender);

    join.handshake.refused = handshake->ready;
    memcpy(join.handshake.echo, probe->handshake.nonce, DATAGRAM_NONCE_BYTES);
    handshake->outlet.send(handshake->outlet.context, &join);
}

void handshake_probe(const struct handshake *handshake, uint32_t index)
{
    struct datagram probe = draft(handshake, DATAGRAM_SESSION, index);

    handshake->outlet.send(handshake->outlet.context, &probe);
}

static void send_join(const struct handshake *handshake)
{
    struct datagram join =
        draft(handshake, DATAGRAM_JOIN, handshake_parent(handshake->neighbours->self));

    join.handshake.whole = handshake->gathered && handshake->parent_known;
    if (handshake->parent_known)
        memcpy(join.handshake.echo, handshake->parent_nonce, DATAGRAM_NONCE_BYTES);
    if (join.handshake.whole) {
        memcpy(join.handshake.hash, handshake->hash, DATAGRAM_HASH_BYTES);
        join.handshake.crowded = handshake->together;
    }
    handshake->outlet.send(handshake->outlet.context, &join);
}

/* Tells a child what there is: our nonce, and R once we have it. `echo` is the child's nonce as it
 * just said it, or as it reported it; NULL: not known. */
static void send_session(const struct handshake *handshake, uint32_t child, const uint8_t *echo)
{
    const struct handshake_child *known = &handshake->children[child];
    struct datagram datagram = draft(handshake, DATAGRAM_SESSION, child_index(handshake, child));
    bool same = echo && known->reported && !memcmp(known->nonce, echo, DATAGRAM_NONCE_BYTES);

    if (echo)
        memcpy(datagram.handshake.echo, echo, DATAGRAM_NONCE_BYTES);
    datagram.handshake.whole = handshake->ready && same;
    datagram.handshake.refused = handshake->ready && !same;
    if (datagram.handshake.whole) {
        memcpy(datagram.handshake.hash, handshake->root, DATAGRAM_HASH_BYTES);
        datagram.handshake.root_boot = handshake->root_boot;
        datagram.handshake.crowded = handshake->crowded;
    }
    handshake->outlet.send(handshake->outlet.context, &datagram);
}

/* By what node 0 says, which its parent passed on. */
static void become_ready(struct handshake *handshake, const struct datagram_handshake *said)
{
    memcpy(handshake->root, said->hash, DATAGRAM_HASH_BYTES);
    handshake->root_boot = said->root_boot;
    handshake->crowded = said->crowded;
    handshake->ready = true;
    backoff_stop(&handshake->backoff);
    for (uint32_t child = handshake->child_count; child > 0; child--)
        send_session(handshake, child - 1, handshake->children[child - 1].nonce);
}

static void hash_subtree(struct handshake *handshake)
{
    crypto_generichash_state state;
    uint32_t self = handshake->neighbours->self;
    uint8_t index[4] = {(uint8_t)(self >> 24), (uint8_t)(self >> 16), (uint8_t)(self >> 8),
                        (uint8_t)self};

    crypto_generichash_init(&state, NULL, 0, DATAGRAM_HASH_BYTES);
    crypto_generichash_update(&state, index, sizeof(index));
    crypto_generichash_update(&state, handshake->conf.nonce, DATAGRAM_NONCE_BYTES);
    for (uint32_t child = 0; child < handshake->child_count; child++)
        crypto_generichash_update(&state, handshake->children[child].hash, DATAGRAM_HASH_BYTES);
    crypto_generichash_final(&state, handshake->hash, DATAGRAM_HASH_BYTES);
}

/* Node 0 has heard of all. */
static void conclude(struct handshake *handshake)
{
    uint32_t cores = handshake->conf.cores;
    struct datagram_handshake said = {
        .root_boot = handshake->conf.boot,
        .crowded = handshake->together && cores > 0 && handshake->neighbours->count > cores,
    };

    memcpy(said.hash, handshake->hash, DATAGRAM_HASH_BYTES);
    become_ready(handshake, &said);
}

/* Passes the hash on once all children have reported, and again when one of them was replaced. */
static void gather(struct handshake *handshake)
{
    bool together = true;

    for (uint32_t child = 0; child < handshake->child_count; child++) {
        if (!handshake->children[child].reported)
            return;
        together &= handshake->children[child].together;
    }
    hash_subtree(handshake);
    handshake->together = together;
    handshake->gathered = true;
    if (is_root(handshake))
        conclude(handshake);
    else if (handshake->parent_known)
        send_join(handshake);
}

void handshake_start(struct handshake *handshake, int64_t now_ns)
{
    backoff_start(&handshake->backoff, now_ns);
    gather(handshake);
    if (!is_root(handshake))
        send_join(handshake);
}

bool handshake_fresh(const struct handshake *handshake, const struct datagram *datagram)
{
    return !memcmp(datagram->handshake.echo, handshake->conf.nonce, DATAGRAM_NONCE_BYTES);
}

static bool take_join(struct handshake *handshake, const struct datagram *datagram)
{
    int place = child_place(handshake, datagram->sender);
    struct handshake_child *child;

    if (place < 0)
        return handshake_fresh(handshake, datagram); /* the answer to a probe */
    child = &handshake->children[place];
    if (datagram->handshake.refused) {
        handshake->refused |= !handshake->ready && handshake_fresh(handshake, datagram);
        return true;
    }
    if (!handshake->ready && datagram->handshake.whole && handshake_fresh(handshake, datagram) &&
        (!child->reported || memcmp(child->hash, datagram->handshake.hash, DATAGRAM_HASH_BYTES))) {
        memcpy(child->nonce, datagram->handshake.nonce, DATAGRAM_NONCE_BYTES);
        memcpy(child->hash, datagram->handshake.hash, DATAGRAM_HASH_BYTES);
        child->together =
            datagram->handshake.crowded && datagram->handshake.boot == handshake->conf.boot;
        child->reported = true;
        gather(handshake);
        if (handshake->ready)
            return true; /* becoming ready has told the child */
    }
    send_session(handshake, (uint32_t)place, datagram->handshake.nonce);
    return true;
}

static bool take_session(struct handshake *handshake, const struct datagram *datagram)
{
    bool probe = sodium_is_zero(datagram->handshake.echo, DATAGRAM_NONCE_BYTES);
    bool known;

    if (is_root(handshake) || datagram->sender != handshake_parent(handshake->neighbours->self)) {
        if (probe && !handshake->ready)
            answer_probe(handshake, datagram);
        return probe;
    }
    known = handshake->parent_known &&
            !memcmp(handshake->parent_nonce, datagram->handshake.nonce, DATAGRAM_NONCE_BYTES);
    if (!handshake_fresh(handshake, datagram)) {
        if (handshake->ready && !known)
            answer_probe(handshake, datagram);
        return probe;
    }
    if (handshake->ready)
        return true;
    memcpy(handshake->parent_nonce, datagram->handshake.nonce, DATAGRAM_NONCE_BYTES);
    handshake->parent_boot = datagram->handshake.boot;
    handshake->parent_known = true;
    handshake->refused |= datagram->handshake.refused;
    if (datagram->handshake.whole && handshake->gathered)
        become_ready(handshake, &datagram->handshake);
    else if (!known && handshake->gathered)
        send_join(handshake);
    return true;
}

bool handshake_receive(struct handshake *handshake, const struct datagram *datagram, int64_t now_ns)
{
    (void)now_ns;
    return datagram->type == DATAGRAM_JOIN ? take_join(handshake, datagram)
                                           : take_session(handshake, datagram);
}

void handshake_expect(struct handshake *handshake, int64_t now_ns)
{
    handshake->expected_ns = now_ns;
}

/* Counts one more question to a tree neighbour and judges its silence. */
static struct neighbour *ask(struct handshake *handshake, uint32_t index, int64_t now_ns)
{
    struct neighbour *neighbour = neighbours_find(handshake->neighbours, index);

    neighbour->asked++;
    if (handshake->expected_ns < 0)
        return NULL;
    return neighbour_silent(neighbour, now_ns - handshake->expected_ns, handshake->conf.timeout_ns,
                            now_ns)
               ? neighbour
               : NULL;
}

struct neighbour *handshake_tick(struct handshake *handshake, int64_t now_ns)
{
    struct neighbour *missing = NULL;

    if (!backoff_due(&handshake->backoff, now_ns))
        return NULL;
    for (uint32_t child = 0; child < handshake->child_count && !missing; child++) {
        if (handshake->children[child].reported)
            continue;
        send_session(handshake, child, NULL);
        missing = ask(handshake, child_index(handshake, child), now_ns);
    }
    if (is_root(handshake) || missing)
        return missing;
    send_join(handshake);
    return ask(handshake, handshake_parent(handshake->neighbours->self), now_ns);
}

int64_t handshake_deadline(const struct handshake *handshake)
{
    return handshake->backoff.due_ns;
}

uint32_t handshake_awaited(const struct handshake *handshake)
{
    if (handshake->ready)
        return DATAGRAM_NONE;
    for (uint32_t child = 0; child < handshake->child_count; child++)
        if (!handshake->children[child].reported)
            return child_index(handshake, child);
    return handshake_parent(handshake->neighbours->self);
}

const uint8_t *handshake_nonce_of(const struct handshake *handshake, uint32_t index)
{
    int place = child_place(handshake, index);

    if (place >= 0)
        return handshake->children[place].reported ? handshake->children[place].nonce : NULL;
    if (is_root(handshake) || index != handshake_parent(handshake->neighbours->self))
        return NULL;
    return handshake->parent_known ? handshake->parent_nonce : NULL;
}
