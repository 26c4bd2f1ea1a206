/* SPDX-License-Identifier: BSD-3-Clause */
#include "handshake.h"

#include <sodium.h>
#include <string.h>

uint32_t session_parent(uint32_t index)
{
    return index & (index - 1);
}

static bool is_root(const struct session *session)
{
    return session->neighbours->self == 0;
}

static uint32_t child_index(const struct session *session, uint32_t child)
{
    return session->neighbours->self + (UINT32_C(1) << child);
}

/* The child's place, or -1: `index` is no child. */
static int child_place(const struct session *session, uint32_t index)
{
    if (index <= session->neighbours->self || session_parent(index) != session->neighbours->self)
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

void session_init(struct session *session, struct neighbours *neighbours,
                  const struct datagram_outlet *outlet, const struct session_conf *conf)
{
    *session = (struct session){
        .neighbours = neighbours,
        .outlet = *outlet,
        .conf = *conf,
        .child_count = count_children(neighbours),
        .expected_ns = -1,
    };
    backoff_stop(&session->backoff);
}

static struct datagram draft(const struct session *session, enum datagram_type type,
                             uint32_t recipient)
{
    struct datagram datagram = {
        .type = type,
        .recipient = recipient,
        .epoch = DATAGRAM_NONE,
        .session = {.boot = session->conf.boot},
    };

    memcpy(datagram.session.nonce, session->conf.nonce, DATAGRAM_NONCE_BYTES);
    return datagram;
}

/* The answer to a neighbour's probe: we live, but have no session key; or we have one, and not with
 * that process. */
static void answer_probe(const struct session *session, const struct datagram *probe)
{
    struct datagram join = draft(session, DATAGRAM_JOIN, probe->sender);

    join.session.refused = session->ready;
    memcpy(join.session.echo, probe->session.nonce, DATAGRAM_NONCE_BYTES);
    session->outlet.send(session->outlet.context, &join);
}

void session_probe(const struct session *session, uint32_t index)
{
    struct datagram probe = draft(session, DATAGRAM_SESSION, index);

    session->outlet.send(session->outlet.context, &probe);
}

static void send_join(const struct session *session)
{
    struct datagram join = draft(session, DATAGRAM_JOIN, session_parent(session->neighbours->self));

    join.session.whole = session->gathered && session->parent_known;
    if (session->parent_known)
        memcpy(join.session.echo, session->parent_nonce, DATAGRAM_NONCE_BYTES);
    if (join.session.whole) {
        memcpy(join.session.hash, session->hash, DATAGRAM_HASH_BYTES);
        join.session.crowded = session->together;
    }
    session->outlet.send(session->outlet.context, &join);
}

/* Tells a child what there is: our nonce, and R once we have it. `echo` is the child's nonce as it
 * just said it, or as it reported it; NULL: not known. */
static void send_session(const struct session *session, uint32_t child, const uint8_t *echo)
{
    const struct session_child *known = &session->children[child];
    struct datagram datagram = draft(session, DATAGRAM_SESSION, child_index(session, child));
    bool same = echo && known->reported && !memcmp(known->nonce, echo, DATAGRAM_NONCE_BYTES);

    if (echo)
        memcpy(datagram.session.echo, echo, DATAGRAM_NONCE_BYTES);
    datagram.session.whole = session->ready && same;
    datagram.session.refused = session->ready && !same;
    if (datagram.session.whole) {
        memcpy(datagram.session.hash, session->root, DATAGRAM_HASH_BYTES);
        datagram.session.root_boot = session->root_boot;
        datagram.session.crowded = session->crowded;
    }
    session->outlet.send(session->outlet.context, &datagram);
}

/* By what node 0 says, which its parent passed on. */
static void become_ready(struct session *session, const struct datagram_session *said)
{
    memcpy(session->root, said->hash, DATAGRAM_HASH_BYTES);
    session->root_boot = said->root_boot;
    session->crowded = said->crowded;
    session->ready = true;
    backoff_stop(&session->backoff);
    for (uint32_t child = session->child_count; child > 0; child--)
        send_session(session, child - 1, session->children[child - 1].nonce);
}

static void hash_subtree(struct session *session)
{
    crypto_generichash_state state;
    uint32_t self = session->neighbours->self;
    uint8_t index[4] = {(uint8_t)(self >> 24), (uint8_t)(self >> 16), (uint8_t)(self >> 8),
                        (uint8_t)self};

    crypto_generichash_init(&state, NULL, 0, DATAGRAM_HASH_BYTES);
    crypto_generichash_update(&state, index, sizeof(index));
    crypto_generichash_update(&state, session->conf.nonce, DATAGRAM_NONCE_BYTES);
    for (uint32_t child = 0; child < session->child_count; child++)
        crypto_generichash_update(&state, session->children[child].hash, DATAGRAM_HASH_BYTES);
    crypto_generichash_final(&state, session->hash, DATAGRAM_HASH_BYTES);
}

/* Node 0 has heard of all. */
static void conclude(struct session *session)
{
    uint32_t cores = session->conf.cores;
    struct datagram_session said = {
        .root_boot = session->conf.boot,
        .crowded = session->together && cores > 0 && session->neighbours->count > cores,
    };

    memcpy(said.hash, session->hash, DATAGRAM_HASH_BYTES);
    become_ready(session, &said);
}

/* Passes the hash on once all children have reported, and again when one of them was replaced. */
static void gather(struct session *session)
{
    bool together = true;

    for (uint32_t child = 0; child < session->child_count; child++) {
        if (!session->children[child].reported)
            return;
        together &= session->children[child].together;
    }
    hash_subtree(session);
    session->together = together;
    session->gathered = true;
    if (is_root(session))
        conclude(session);
    else if (session->parent_known)
        send_join(session);
}

void session_start(struct session *session, int64_t now_ns)
{
    backoff_start(&session->backoff, now_ns);
    gather(session);
    if (!is_root(session))
        send_join(session);
}

bool session_fresh(const struct session *session, const struct datagram *datagram)
{
    return !memcmp(datagram->session.echo, session->conf.nonce, DATAGRAM_NONCE_BYTES);
}

static bool take_join(struct session *session, const struct datagram *datagram)
{
    int place = child_place(session, datagram->sender);
    struct session_child *child;

    if (place < 0)
        return session_fresh(session, datagram); /* the answer to a probe */
    child = &session->children[place];
    if (datagram->session.refused) {
        session->refused |= !session->ready && session_fresh(session, datagram);
        return true;
    }
    if (!session->ready && datagram->session.whole && session_fresh(session, datagram) &&
        (!child->reported || memcmp(child->hash, datagram->session.hash, DATAGRAM_HASH_BYTES))) {
        memcpy(child->nonce, datagram->session.nonce, DATAGRAM_NONCE_BYTES);
        memcpy(child->hash, datagram->session.hash, DATAGRAM_HASH_BYTES);
        child->together = datagram->session.crowded && datagram->session.boot == session->conf.boot;
        child->reported = true;
        gather(session);
        if (session->ready)
            return true; /* becoming ready has told the child */
    }
    send_session(session, (uint32_t)place, datagram->session.nonce);
    return true;
}

static bool take_session(struct session *session, const struct datagram *datagram)
{
    bool probe = sodium_is_zero(datagram->session.echo, DATAGRAM_NONCE_BYTES);
    bool known;

    if (is_root(session) || datagram->sender != session_parent(session->neighbours->self)) {
        if (probe && !session->ready)
            answer_probe(session, datagram);
        return probe;
    }
    known = session->parent_known &&
            !memcmp(session->parent_nonce, datagram->session.nonce, DATAGRAM_NONCE_BYTES);
    if (!session_fresh(session, datagram)) {
        if (session->ready && !known)
            answer_probe(session, datagram);
        return probe;
    }
    if (session->ready)
        return true;
    memcpy(session->parent_nonce, datagram->session.nonce, DATAGRAM_NONCE_BYTES);
    session->parent_boot = datagram->session.boot;
    session->parent_known = true;
    session->refused |= datagram->session.refused;
    if (datagram->session.whole && session->gathered)
        become_ready(session, &datagram->session);
    else if (!known && session->gathered)
        send_join(session);
    return true;
}

bool session_receive(struct session *session, const struct datagram *datagram, int64_t now_ns)
{
    (void)now_ns;
    return datagram->type == DATAGRAM_JOIN ? take_join(session, datagram)
                                           : take_session(session, datagram);
}

void session_expect(struct session *session, int64_t now_ns)
{
    session->expected_ns = now_ns;
}

/* Counts one more question to a tree neighbour and judges its silence. */
static struct neighbour *ask(struct session *session, uint32_t index, int64_t now_ns)
{
    struct neighbour *neighbour = neighbours_find(session->neighbours, index);

    neighbour->asked++;
    if (session->expected_ns < 0)
        return NULL;
    return neighbour_silent(neighbour, now_ns - session->expected_ns, session->conf.timeout_ns,
                            now_ns)
               ? neighbour
               : NULL;
}

struct neighbour *session_tick(struct session *session, int64_t now_ns)
{
    struct neighbour *missing = NULL;

    if (!backoff_due(&session->backoff, now_ns))
        return NULL;
    for (uint32_t child = 0; child < session->child_count && !missing; child++) {
        if (session->children[child].reported)
            continue;
        send_session(session, child, NULL);
        missing = ask(session, child_index(session, child), now_ns);
    }
    if (is_root(session) || missing)
        return missing;
    send_join(session);
    return ask(session, session_parent(session->neighbours->self), now_ns);
}

int64_t session_deadline(const struct session *session)
{
    return session->backoff.due_ns;
}

uint32_t session_awaited(const struct session *session)
{
    if (session->ready)
        return DATAGRAM_NONE;
    for (uint32_t child = 0; child < session->child_count; child++)
        if (!session->children[child].reported)
            return child_index(session, child);
    return session_parent(session->neighbours->self);
}

const uint8_t *session_nonce_of(const struct session *session, uint32_t index)
{
    int place = child_place(session, index);

    if (place >= 0)
        return session->children[place].reported ? session->children[place].nonce : NULL;
    if (is_root(session) || index != session_parent(session->neighbours->self))
        return NULL;
    return session->parent_known ? session->parent_nonce : NULL;
}
