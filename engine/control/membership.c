/* SPDX-License-Identifier: BSD-3-Clause */
#include "membership.h"

#include <endian.h>
#include <sodium.h>
#include <string.h>

#define REFUSED_TEXT "the run began with another process in this node's place: was it restarted?"

enum seal { SEAL_HANDSHAKE, SEAL_WARNING, SEAL_SESSION };

static enum seal seal_of(enum datagram_type type)
{
    switch (type) {
    case DATAGRAM_JOIN:
    case DATAGRAM_SESSION:
        return SEAL_HANDSHAKE;
    case DATAGRAM_WARNING:
        return SEAL_WARNING;
    default:
        return SEAL_SESSION;
    }
}

/* One secret, a key for each purpose: BLAKE2b(key; purpose, bytes). */
static void derive(uint8_t out[DATAGRAM_KEY_BYTES], const uint8_t key[DATAGRAM_KEY_BYTES],
                   const char *purpose, const uint8_t *bytes, size_t size)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, key, DATAGRAM_KEY_BYTES, DATAGRAM_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)purpose, strlen(purpose) + 1);
    crypto_generichash_update(&state, bytes, size);
    crypto_generichash_final(&state, out, DATAGRAM_KEY_BYTES);
    sodium_memzero(&state, sizeof(state));
}

/* The run's hash covers its id and its size; all keys but the run's own come from it. */
static void derive_run(struct group *group, const struct group_conf *conf)
{
    crypto_generichash_state state;
    uint8_t count[4] = {(uint8_t)(conf->count >> 24), (uint8_t)(conf->count >> 16),
                        (uint8_t)(conf->count >> 8), (uint8_t)conf->count};

    crypto_generichash_init(&state, NULL, 0, DATAGRAM_HASH_BYTES);
    crypto_generichash_update(&state, count, sizeof(count));
    crypto_generichash_update(&state, (const uint8_t *)conf->run_id, strlen(conf->run_id));
    crypto_generichash_final(&state, group->run_hash, DATAGRAM_HASH_BYTES);
    memcpy(&group->run, group->run_hash, sizeof(group->run));
    group->run = be64toh(group->run);
    memcpy(group->run_key, conf->key, DATAGRAM_KEY_BYTES);
    derive(group->handshake_key, conf->key, "switchbench handshake", group->run_hash,
           DATAGRAM_HASH_BYTES);
    derive(group->warning_key, group->handshake_key, "switchbench warning", conf->nonce,
           DATAGRAM_NONCE_BYTES);
}

static void derive_session(struct group *group)
{
    uint8_t bytes[2 * DATAGRAM_HASH_BYTES];

    memcpy(bytes, group->run_hash, DATAGRAM_HASH_BYTES);
    memcpy(bytes + DATAGRAM_HASH_BYTES, group->session.root, DATAGRAM_HASH_BYTES);
    derive(group->session_key, group->run_key, "switchbench session", bytes, sizeof(bytes));
    group->keyed = true;
}

static void send_warning(struct group *group, struct datagram *datagram, const uint8_t *nonce)
{
    uint8_t key[DATAGRAM_KEY_BYTES];

    derive(key, group->handshake_key, "switchbench warning", nonce, DATAGRAM_NONCE_BYTES);
    datagram->type = DATAGRAM_WARNING;
    datagram->run = group->run;
    datagram->sender = group->neighbours.self;
    datagram->entered = group->barrier.epoch;
    group->outlet.send(group->outlet.context, datagram, key);
}

void group_send(struct group *group, struct datagram *datagram)
{
    const uint8_t *key = group_key(group, datagram->type);
    const uint8_t *nonce;

    datagram->run = group->run;
    datagram->sender = group->neighbours.self;
    datagram->entered = group->barrier.epoch;
    if (key) {
        group->outlet.send(group->outlet.context, datagram, key);
        return;
    }
    nonce = session_nonce_of(&group->session, datagram->recipient);
    if (datagram->type == DATAGRAM_ABORT && nonce)
        send_warning(group, datagram, nonce);
}

static void outlet_send(void *context, struct datagram *datagram)
{
    struct group *group = context;

    group_send(group, datagram);
    if (datagram->type == DATAGRAM_QUESTION && datagram->epoch == 0)
        session_probe(&group->session, datagram->recipient);
}

void group_init(struct group *group, const struct group_conf *conf,
                const struct group_outlet *outlet)
{
    const struct datagram_outlet inner = {outlet_send, group};
    struct session_conf session = {
        .boot = conf->boot, .timeout_ns = conf->timeout_ns, .cores = conf->cores};

    memset(group, 0, sizeof(*group));
    group->outlet = *outlet;
    memcpy(session.nonce, conf->nonce, DATAGRAM_NONCE_BYTES);
    derive_run(group, conf);
    neighbours_init(&group->neighbours, conf->self, conf->count);
    session_init(&group->session, &group->neighbours, &inner, &session);
    barrier_init(&group->barrier, &group->neighbours, &inner, conf->timeout_ns);
    flood_init(&group->flood, &group->neighbours, &inner);
}

/* What follows from the handshake's progress: the key, barrier 0, or a refusal. */
static void follow_session(struct group *group, int64_t now_ns)
{
    if (group->session.refused && !group->flood.begun)
        group_abort(group, REFUSED_TEXT, false, now_ns);
    if (!group->session.ready || group->keyed)
        return;
    derive_session(group);
    if (group->session.crowded)
        barrier_use_tree(&group->barrier);
    if (group->entering)
        barrier_enter(&group->barrier, &group->entered_values, now_ns);
    group->entering = false;
}

void group_start(struct group *group, int64_t now_ns)
{
    session_start(&group->session, now_ns);
    follow_session(group, now_ns);
}

void group_enter(struct group *group, const struct barrier_values *mine, int64_t now_ns)
{
    if (group->flood.begun) {
        group->entering = true;
        return;
    }
    if (group->keyed) {
        barrier_enter(&group->barrier, mine, now_ns);
        return;
    }
    group->entering = true;
    group->entered_values = *mine;
    session_expect(&group->session, now_ns);
}

enum barrier_state group_state(const struct group *group)
{
    if (!group->entering && barrier_passed(&group->barrier))
        return BARRIER_PASSED;
    return group->flood.begun ? BARRIER_FAILED : BARRIER_WAITING;
}

const struct control_fault *group_fault(const struct group *group)
{
    return group->flood.begun ? &group->flood.fault : NULL;
}

bool group_crowded(const struct group *group)
{
    return group->session.crowded;
}

static uint32_t epoch_at_hand(const struct group *group)
{
    return group->barrier.epoch == DATAGRAM_NONE ? 0 : group->barrier.epoch;
}

void group_abort(struct group *group, const char *text, bool impossible, int64_t now_ns)
{
    struct control_fault fault = {
        .impossible = impossible,
        .node = group->neighbours.self,
        .epoch = epoch_at_hand(group),
        .last_epoch = group->barrier.epoch,
    };
    size_t length = strnlen(text, sizeof(fault.text) - 1);

    for (size_t i = 0; i < length; i++)
        fault.text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    flood_start(&group->flood, &fault, now_ns);
}

static void name_missing(struct group *group, const struct neighbour *missing, int64_t now_ns)
{
    struct control_fault fault = {
        .missing = true,
        .node = missing->index,
        .epoch = epoch_at_hand(group),
        .last_epoch = missing->entered,
        .silence_ns = missing->heard_ns < 0 ? -1 : now_ns - missing->heard_ns,
    };

    flood_start(&group->flood, &fault, now_ns);
}

const uint8_t *group_key(const struct group *group, enum datagram_type type)
{
    switch (seal_of(type)) {
    case SEAL_HANDSHAKE:
        return group->handshake_key;
    case SEAL_WARNING:
        return group->warning_key;
    case SEAL_SESSION:
        break;
    }
    return group->keyed ? group->session_key : NULL;
}

/* After a fault the only answer is that fault; where we or they are not in the session, under the
 * key of warnings, with the nonce that they just showed. */
static bool receive_after_fault(struct group *group, const struct datagram *datagram,
                                int64_t now_ns)
{
    struct datagram warning = {
        .recipient = datagram->sender,
        .epoch = group->flood.fault.epoch,
        .abort = {.fault = group->flood.fault},
    };

    switch (datagram->type) {
    case DATAGRAM_ABORT:
    case DATAGRAM_WARNING:
        return flood_receive(&group->flood, datagram, now_ns);
    case DATAGRAM_QUESTION:
        flood_tell(&group->flood, datagram->sender);
        return true;
    case DATAGRAM_JOIN:
    case DATAGRAM_SESSION:
        if (datagram->type == DATAGRAM_JOIN || !group->keyed)
            send_warning(group, &warning, datagram->session.nonce);
        return true;
    default:
        return true;
    }
}

bool group_receive(struct group *group, const struct datagram *datagram, int64_t now_ns)
{
    struct neighbour *sender = neighbours_find(&group->neighbours, datagram->sender);
    bool in_step = true;

    if (sender && seal_of(datagram->type) == SEAL_SESSION)
        neighbour_heard(sender, datagram->entered, datagram->transmit_ns, now_ns);
    if (group->flood.begun)
        return receive_after_fault(group, datagram, now_ns);
    switch (datagram->type) {
    case DATAGRAM_JOIN:
    case DATAGRAM_SESSION:
        in_step = session_receive(&group->session, datagram, now_ns);
        if (sender && session_fresh(&group->session, datagram))
            neighbour_heard(sender, datagram->entered, datagram->transmit_ns, now_ns);
        follow_session(group, now_ns);
        return in_step;
    case DATAGRAM_ABORT:
    case DATAGRAM_WARNING:
        return flood_receive(&group->flood, datagram, now_ns);
    case DATAGRAM_ARRIVAL:
    case DATAGRAM_QUESTION:
    case DATAGRAM_PATIENCE:
        return barrier_receive(&group->barrier, datagram, now_ns);
    default:
        return true;
    }
}

void group_tick(struct group *group, int64_t now_ns)
{
    struct neighbour *missing;

    flood_tick(&group->flood, now_ns);
    if (group->flood.begun)
        return;
    missing = session_tick(&group->session, now_ns);
    if (!missing)
        missing = barrier_tick(&group->barrier, now_ns);
    if (missing)
        name_missing(group, missing, now_ns);
}

int64_t group_deadline(const struct group *group)
{
    int64_t session_ns = session_deadline(&group->session);
    int64_t barrier_ns = barrier_deadline(&group->barrier);

    if (group->flood.begun)
        return flood_deadline(&group->flood);
    return session_ns < barrier_ns ? session_ns : barrier_ns;
}

uint32_t group_awaited(const struct group *group)
{
    return group->entering ? session_awaited(&group->session) : barrier_awaited(&group->barrier);
}
