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
static void derive_run(struct membership *membership, const struct membership_conf *conf)
{
    crypto_generichash_state state;
    uint8_t count[4] = {(uint8_t)(conf->count >> 24), (uint8_t)(conf->count >> 16),
                        (uint8_t)(conf->count >> 8), (uint8_t)conf->count};

    crypto_generichash_init(&state, NULL, 0, DATAGRAM_HASH_BYTES);
    crypto_generichash_update(&state, count, sizeof(count));
    crypto_generichash_update(&state, (const uint8_t *)conf->run_id, strlen(conf->run_id));
    crypto_generichash_final(&state, membership->run_hash, DATAGRAM_HASH_BYTES);
    memcpy(&membership->run, membership->run_hash, sizeof(membership->run));
    membership->run = be64toh(membership->run);
    memcpy(membership->run_key, conf->key, DATAGRAM_KEY_BYTES);
    derive(membership->handshake_key, conf->key, "switchbench handshake", membership->run_hash,
           DATAGRAM_HASH_BYTES);
    derive(membership->warning_key, membership->handshake_key, "switchbench warning", conf->nonce,
           DATAGRAM_NONCE_BYTES);
}

static void derive_session(struct membership *membership)
{
    uint8_t bytes[2 * DATAGRAM_HASH_BYTES];

    memcpy(bytes, membership->run_hash, DATAGRAM_HASH_BYTES);
    memcpy(bytes + DATAGRAM_HASH_BYTES, membership->handshake.root, DATAGRAM_HASH_BYTES);
    derive(membership->session_key, membership->run_key, "switchbench session", bytes,
           sizeof(bytes));
    membership->keyed = true;
}

static void send_warning(struct membership *membership, struct datagram *datagram,
                         const uint8_t *nonce)
{
    uint8_t key[DATAGRAM_KEY_BYTES];

    derive(key, membership->handshake_key, "switchbench warning", nonce, DATAGRAM_NONCE_BYTES);
    datagram->type = DATAGRAM_WARNING;
    datagram->run = membership->run;
    datagram->sender = membership->neighbours.self;
    datagram->entered = membership->barrier.epoch;
    membership->outlet.send(membership->outlet.context, datagram, key);
}

void membership_send(struct membership *membership, struct datagram *datagram)
{
    const uint8_t *key = membership_key(membership, datagram->type);
    const uint8_t *nonce;

    datagram->run = membership->run;
    datagram->sender = membership->neighbours.self;
    datagram->entered = membership->barrier.epoch;
    if (key) {
        membership->outlet.send(membership->outlet.context, datagram, key);
        return;
    }
    nonce = handshake_nonce_of(&membership->handshake, datagram->recipient);
    if (datagram->type == DATAGRAM_ABORT && nonce)
        send_warning(membership, datagram, nonce);
}

static void outlet_send(void *context, struct datagram *datagram)
{
    struct membership *membership = context;

    membership_send(membership, datagram);
    if (datagram->type == DATAGRAM_QUESTION && datagram->epoch == 0)
        handshake_probe(&membership->handshake, datagram->recipient);
}

void membership_init(struct membership *membership, const struct membership_conf *conf,
                     const struct membership_outlet *outlet)
{
    const struct datagram_outlet inner = {outlet_send, membership};
    struct handshake_conf handshake = {
        .boot = conf->boot, .timeout_ns = conf->timeout_ns, .cores = conf->cores};

    memset(membership, 0, sizeof(*membership));
    membership->outlet = *outlet;
    memcpy(handshake.nonce, conf->nonce, DATAGRAM_NONCE_BYTES);
    derive_run(membership, conf);
    neighbours_init(&membership->neighbours, conf->self, conf->count);
    handshake_init(&membership->handshake, &membership->neighbours, &inner, &handshake);
    barrier_init(&membership->barrier, &membership->neighbours, &inner, conf->timeout_ns);
    abort_broadcast_init(&membership->abort_broadcast, &membership->neighbours, &inner);
}

/* What follows from the handshake's progress: the key, barrier 0, or a refusal. */
static void follow_session(struct membership *membership, int64_t now_ns)
{
    if (membership->handshake.refused && !membership->abort_broadcast.begun)
        membership_abort(membership, REFUSED_TEXT, false, now_ns);
    if (!membership->handshake.ready || membership->keyed)
        return;
    derive_session(membership);
    if (membership->handshake.crowded)
        barrier_use_tree(&membership->barrier);
    if (membership->entering)
        barrier_enter(&membership->barrier, &membership->entered_values, now_ns);
    membership->entering = false;
}

void membership_start(struct membership *membership, int64_t now_ns)
{
    handshake_start(&membership->handshake, now_ns);
    follow_session(membership, now_ns);
}

void membership_enter(struct membership *membership, const struct barrier_values *mine,
                      int64_t now_ns)
{
    if (membership->abort_broadcast.begun) {
        membership->entering = true;
        return;
    }
    if (membership->keyed) {
        barrier_enter(&membership->barrier, mine, now_ns);
        return;
    }
    membership->entering = true;
    membership->entered_values = *mine;
    handshake_expect(&membership->handshake, now_ns);
}

enum barrier_state membership_state(const struct membership *membership)
{
    if (!membership->entering && barrier_passed(&membership->barrier))
        return BARRIER_PASSED;
    return membership->abort_broadcast.begun ? BARRIER_FAILED : BARRIER_WAITING;
}

const struct control_fault *membership_fault(const struct membership *membership)
{
    return membership->abort_broadcast.begun ? &membership->abort_broadcast.fault : NULL;
}

bool membership_crowded(const struct membership *membership)
{
    return membership->handshake.crowded;
}

static uint32_t epoch_at_hand(const struct membership *membership)
{
    return membership->barrier.epoch == DATAGRAM_NONE ? 0 : membership->barrier.epoch;
}

void membership_abort(struct membership *membership, const char *text, bool impossible,
                      int64_t now_ns)
{
    struct control_fault fault = {
        .impossible = impossible,
        .node = membership->neighbours.self,
        .epoch = epoch_at_hand(membership),
        .last_epoch = membership->barrier.epoch,
    };
    size_t length = strnlen(text, sizeof(fault.text) - 1);

    for (size_t i = 0; i < length; i++)
        fault.text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    abort_broadcast_start(&membership->abort_broadcast, &fault, now_ns);
}

static void name_missing(struct membership *membership, const struct neighbour *missing,
                         int64_t now_ns)
{
    struct control_fault fault = {
        .missing = true,
        .node = missing->index,
        .epoch = epoch_at_hand(membership),
        .last_epoch = missing->entered,
        .silence_ns = missing->heard_ns < 0 ? -1 : now_ns - missing->heard_ns,
    };

    abort_broadcast_start(&membership->abort_broadcast, &fault, now_ns);
}

const uint8_t *membership_key(const struct membership *membership, enum datagram_type type)
{
    switch (seal_of(type)) {
    case SEAL_HANDSHAKE:
        return membership->handshake_key;
    case SEAL_WARNING:
        return membership->warning_key;
    case SEAL_SESSION:
        break;
    }
    return membership->keyed ? membership->session_key : NULL;
}

/* After a fault the only answer is that fault; where we or they are not in the session, under the
 * key of warnings, with the nonce that they just showed. */
static bool receive_after_fault(struct membership *membership, const struct datagram *datagram,
                                int64_t now_ns)
{
    struct datagram warning = {
        .recipient = datagram->sender,
        .epoch = membership->abort_broadcast.fault.epoch,
        .abort = {.fault = membership->abort_broadcast.fault},
    };

    switch (datagram->type) {
    case DATAGRAM_ABORT:
    case DATAGRAM_WARNING:
        return abort_broadcast_receive(&membership->abort_broadcast, datagram, now_ns);
    case DATAGRAM_QUESTION:
        abort_broadcast_tell(&membership->abort_broadcast, datagram->sender);
        return true;
    case DATAGRAM_JOIN:
    case DATAGRAM_SESSION:
        if (datagram->type == DATAGRAM_JOIN || !membership->keyed)
            send_warning(membership, &warning, datagram->handshake.nonce);
        return true;
    default:
        return true;
    }
}

bool membership_receive(struct membership *membership, const struct datagram *datagram,
                        int64_t now_ns)
{
    struct neighbour *sender = neighbours_find(&membership->neighbours, datagram->sender);
    bool in_step = true;

    if (sender && seal_of(datagram->type) == SEAL_SESSION)
        neighbour_heard(sender, datagram->entered, datagram->transmit_ns, now_ns);
    if (membership->abort_broadcast.begun)
        return receive_after_fault(membership, datagram, now_ns);
    switch (datagram->type) {
    case DATAGRAM_JOIN:
    case DATAGRAM_SESSION:
        in_step = handshake_receive(&membership->handshake, datagram, now_ns);
        if (sender && handshake_fresh(&membership->handshake, datagram))
            neighbour_heard(sender, datagram->entered, datagram->transmit_ns, now_ns);
        follow_session(membership, now_ns);
        return in_step;
    case DATAGRAM_ABORT:
    case DATAGRAM_WARNING:
        return abort_broadcast_receive(&membership->abort_broadcast, datagram, now_ns);
    case DATAGRAM_ARRIVAL:
    case DATAGRAM_QUESTION:
    case DATAGRAM_PATIENCE:
        return barrier_receive(&membership->barrier, datagram, now_ns);
    default:
        return true;
    }
}

void membership_tick(struct membership *membership, int64_t now_ns)
{
    struct neighbour *missing;

    abort_broadcast_tick(&membership->abort_broadcast, now_ns);
    if (membership->abort_broadcast.begun)
        return;
    missing = handshake_tick(&membership->handshake, now_ns);
    if (!missing)
        missing = barrier_tick(&membership->barrier, now_ns);
    if (missing)
        name_missing(membership, missing, now_ns);
}

int64_t membership_deadline(const struct membership *membership)
{
    int64_t session_ns = handshake_deadline(&membership->handshake);
    int64_t barrier_ns = barrier_deadline(&membership->barrier);

    if (membership->abort_broadcast.begun)
        return abort_broadcast_deadline(&membership->abort_broadcast);
    return session_ns < barrier_ns ? session_ns : barrier_ns;
}

uint32_t membership_awaited(const struct membership *membership)
{
    return membership->entering ? handshake_awaited(&membership->handshake)
                                : barrier_awaited(&membership->barrier);
}
