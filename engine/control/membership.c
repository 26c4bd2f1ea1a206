/* SPDX-License-Identifier: BSD-3-Clause */
#include "membership.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#define REPLACED_TEXT "another process has taken its place: was it restarted?"

/* What nodes say of themselves in the first barrier. */
enum introduction {
    BOOT_MOST = BARRIER_MAXIMA_CALLER,
    BOOT_LEAST, /* negated: a maximum */
    ROOT_BOOT,
    ROOT_CORES,
    INTRODUCTIONS
};

static_assert(INTRODUCTIONS == BARRIER_MAXIMA, "a barrier has room for them");

/* BLAKE2b(run key; purpose, number of nodes, run id). */
static void derive_key(struct membership *membership, const struct membership_conf *conf)
{
    static const char purpose[] = "switchbench control";
    crypto_generichash_state state;
    uint8_t count[4] = {(uint8_t)(conf->count >> 24), (uint8_t)(conf->count >> 16),
                        (uint8_t)(conf->count >> 8), (uint8_t)conf->count};

    crypto_generichash_init(&state, conf->key, DATAGRAM_KEY_BYTES, DATAGRAM_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)purpose, sizeof(purpose));
    crypto_generichash_update(&state, count, sizeof(count));
    crypto_generichash_update(&state, (const uint8_t *)conf->run_id, strlen(conf->run_id));
    crypto_generichash_final(&state, membership->key, DATAGRAM_KEY_BYTES);
    sodium_memzero(&state, sizeof(state));
}

void membership_send(struct membership *membership, struct datagram *datagram)
{
    const struct neighbour *neighbour =
        neighbours_find(&membership->neighbours, datagram->recipient);

    datagram->sender = membership->neighbours.self;
    datagram->entered = membership->barrier.epoch;
    datagram->from = membership->nonce;
    if (datagram->to == 0 && neighbour)
        datagram->to = neighbour->nonce;
    membership->outlet.send(membership->outlet.context, datagram);
}

static void outlet_send(void *context, struct datagram *datagram)
{
    membership_send(context, datagram);
}

static void greet(struct membership *membership, uint32_t recipient, uint64_t nonce)
{
    struct datagram hello = {
        .type = DATAGRAM_HELLO, .recipient = recipient, .to = nonce, .epoch = DATAGRAM_NONE};

    membership_send(membership, &hello);
}

void membership_init(struct membership *membership, const struct membership_conf *conf,
                     const struct datagram_outlet *outlet)
{
    const struct datagram_outlet inner = {outlet_send, membership};

    *membership = (struct membership){
        .outlet = *outlet, .nonce = conf->nonce, .boot = conf->boot, .cores = conf->cores};
    derive_key(membership, conf);
    neighbours_init(&membership->neighbours, conf->self, conf->count);
    barrier_init(&membership->barrier, &membership->neighbours, &inner, conf->timeout_ns);
    abort_broadcast_init(&membership->abort_broadcast, &membership->neighbours, &inner);
}

void membership_start(struct membership *membership)
{
    for (uint32_t i = 0; i < membership->neighbours.size; i++)
        greet(membership, membership->neighbours.all[i].index, 0);
}

/* Once the first barrier is passed: what all have said of themselves. */
static void meet(struct membership *membership)
{
    const int64_t *said;

    if (membership->met || !barrier_passed(&membership->barrier))
        return;
    said = barrier_values(&membership->barrier)->maximum;
    membership->met = true;
    membership->root_boot = said[ROOT_BOOT];
    membership->crowded = said[BOOT_MOST] == -said[BOOT_LEAST] && said[ROOT_CORES] > 0 &&
                          membership->neighbours.count > said[ROOT_CORES];
    if (membership->crowded)
        barrier_use_tree(&membership->barrier);
}

void membership_enter(struct membership *membership, const struct barrier_values *mine,
                      int64_t now_ns)
{
    struct barrier_values values = *mine;

    if (membership->abort_broadcast.begun) {
        membership->is_over = true;
        return;
    }
    for (unsigned i = BARRIER_MAXIMA_CALLER; i < BARRIER_MAXIMA; i++)
        values.maximum[i] = INT64_MIN;
    if (!membership->met) {
        values.maximum[BOOT_MOST] = membership->boot;
        values.maximum[BOOT_LEAST] = -membership->boot;
    }
    if (!membership->met && membership->neighbours.self == 0) {
        values.maximum[ROOT_BOOT] = membership->boot;
        values.maximum[ROOT_CORES] = membership->cores;
    }
    barrier_enter(&membership->barrier, &values, now_ns);
    meet(membership);
}

enum barrier_state membership_state(const struct membership *membership)
{
    if (!membership->is_over && barrier_passed(&membership->barrier))
        return BARRIER_PASSED;
    return membership->abort_broadcast.begun ? BARRIER_FAILED : BARRIER_WAITING;
}

const struct control_fault *membership_fault(const struct membership *membership)
{
    return membership->abort_broadcast.begun ? &membership->abort_broadcast.fault : NULL;
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

/* The neighbour shows the nonce of a process that we do not know. */
static void take_nonce(struct membership *membership, struct neighbour *neighbour, uint64_t nonce,
                       int64_t now_ns)
{
    struct control_fault fault = {
        .node = neighbour->index,
        .epoch = epoch_at_hand(membership),
        .last_epoch = neighbour->entered,
        .text = REPLACED_TEXT,
    };
    bool replaced = neighbour->nonce != 0;

    neighbour->nonce = nonce;
    if (replaced)
        abort_broadcast_start(&membership->abort_broadcast, &fault, now_ns);
    greet(membership, neighbour->index, nonce);
    barrier_hurry(&membership->barrier, now_ns);
}

/* After a fault the only answer is that fault. */
static bool receive_after_fault(struct membership *membership, const struct datagram *datagram,
                                int64_t now_ns)
{
    if (datagram->type == DATAGRAM_ABORT)
        return abort_broadcast_receive(&membership->abort_broadcast, datagram, now_ns);
    if (datagram->type == DATAGRAM_QUESTION || datagram->type == DATAGRAM_HELLO)
        abort_broadcast_tell(&membership->abort_broadcast, datagram->sender);
    return true;
}

bool membership_receive(struct membership *membership, const struct datagram *datagram,
                        int64_t now_ns)
{
    struct neighbour *sender = neighbours_find(&membership->neighbours, datagram->sender);
    bool in_step = true;

    if (datagram->type == DATAGRAM_FETCH)
        return true; /* all may ask */
    if (datagram->to == 0 && sender)
        greet(membership, datagram->sender, datagram->from);
    if (datagram->to != membership->nonce)
        return datagram->to == 0 && sender;
    if (!sender)
        return datagram->type == DATAGRAM_BLOB;
    if (sender->nonce != datagram->from)
        take_nonce(membership, sender, datagram->from, now_ns);
    neighbour_heard(sender, datagram->entered, datagram->transmit_ns, now_ns);
    if (membership->abort_broadcast.begun)
        return receive_after_fault(membership, datagram, now_ns);
    switch (datagram->type) {
    case DATAGRAM_ABORT:
        return abort_broadcast_receive(&membership->abort_broadcast, datagram, now_ns);
    case DATAGRAM_ARRIVAL:
    case DATAGRAM_QUESTION:
    case DATAGRAM_PATIENCE:
        in_step = barrier_receive(&membership->barrier, datagram, now_ns);
        meet(membership);
        return in_step;
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
    missing = barrier_tick(&membership->barrier, now_ns);
    if (missing)
        name_missing(membership, missing, now_ns);
}

int64_t membership_deadline(const struct membership *membership)
{
    return membership->abort_broadcast.begun
               ? abort_broadcast_deadline(&membership->abort_broadcast)
               : barrier_deadline(&membership->barrier);
}
