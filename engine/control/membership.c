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
    backoff_stop(&membership->backoff);
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

    if (membership->aborted) {
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
    return membership->aborted ? BARRIER_FAILED : BARRIER_WAITING;
}

const struct control_fault *membership_fault(const struct membership *membership)
{
    return membership->aborted ? &membership->fault : NULL;
}

/* ---- the abort ---- */

static void tell(struct membership *membership, const struct neighbour *neighbour)
{
    struct datagram datagram = {
        .type = DATAGRAM_ABORT,
        .recipient = neighbour->index,
        .epoch = membership->fault.epoch,
        .abort = {.heard = neighbour->knows_fault, .fault = membership->fault},
    };

    membership_send(membership, &datagram);
}

/* False: all neighbours know of the fault. */
static bool tell_all(struct membership *membership)
{
    bool told = false;

    for (uint32_t i = 0; i < membership->neighbours.size; i++) {
        if (membership->neighbours.all[i].knows_fault)
            continue;
        tell(membership, &membership->neighbours.all[i]);
        told = true;
    }
    return told;
}

/* The first fault stands. */
static void begin_abort(struct membership *membership, const struct control_fault *fault,
                        int64_t now_ns)
{
    if (membership->aborted)
        return;
    membership->aborted = true;
    membership->fault = *fault;
    backoff_start(&membership->backoff, now_ns);
    tell_all(membership);
}

/* A fault that this node has found: of `node`, which was last in barrier `last_epoch`. */
static struct control_fault fault_of(const struct membership *membership, uint32_t node,
                                     uint32_t last_epoch)
{
    uint32_t epoch = membership->barrier.epoch;

    return (struct control_fault){
        .node = node, .epoch = epoch == DATAGRAM_NONE ? 0 : epoch, .last_epoch = last_epoch};
}

void membership_abort(struct membership *membership, const char *text, bool impossible,
                      int64_t now_ns)
{
    struct control_fault fault =
        fault_of(membership, membership->neighbours.self, membership->barrier.epoch);
    size_t length = strnlen(text, sizeof(fault.text) - 1);

    fault.impossible = impossible;
    for (size_t i = 0; i < length; i++)
        fault.text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    begin_abort(membership, &fault, now_ns);
}

static bool receive_abort(struct membership *membership, struct neighbour *sender,
                          const struct datagram_abort *abort, int64_t now_ns)
{
    if (abort->fault.node >= membership->neighbours.count)
        return false;
    sender->knows_fault = true;
    begin_abort(membership, &abort->fault, now_ns);
    if (!abort->heard)
        tell(membership, sender);
    return true;
}

/* The neighbour shows the nonce of a process that we do not know. */
static void take_nonce(struct membership *membership, struct neighbour *neighbour, uint64_t nonce,
                       int64_t now_ns)
{
    struct control_fault fault = fault_of(membership, neighbour->index, neighbour->entered);
    bool replaced = neighbour->nonce != 0;

    strcpy(fault.text, REPLACED_TEXT);
    neighbour->nonce = nonce;
    if (replaced)
        begin_abort(membership, &fault, now_ns);
    greet(membership, neighbour->index, nonce);
    barrier_hurry(&membership->barrier, now_ns);
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
    if (datagram->type == DATAGRAM_ABORT)
        return receive_abort(membership, sender, &datagram->abort, now_ns);
    if (membership->aborted) { /* the only answer is that fault */
        if (datagram->type == DATAGRAM_QUESTION || datagram->type == DATAGRAM_HELLO)
            tell(membership, sender);
        return true;
    }
    switch (datagram->type) {
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
    struct control_fault fault;
    struct neighbour *missing;

    if (membership->aborted) {
        if (backoff_due(&membership->backoff, now_ns) &&
            (++membership->tells == MEMBERSHIP_TELLS || !tell_all(membership)))
            backoff_stop(&membership->backoff);
        return;
    }
    missing = barrier_tick(&membership->barrier, now_ns);
    if (missing == NULL)
        return;
    fault = fault_of(membership, missing->index, missing->entered);
    fault.missing = true;
    fault.silence_ns = missing->heard_ns < 0 ? -1 : now_ns - missing->heard_ns;
    begin_abort(membership, &fault, now_ns);
}

int64_t membership_deadline(const struct membership *membership)
{
    return membership->aborted ? membership->backoff.due_ns
                               : barrier_deadline(&membership->barrier);
}
