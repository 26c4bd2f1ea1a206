/* SPDX-License-Identifier: BSD-3-Clause */
#include "barrier.h"

#include <assert.h>

void barrier_values_merge(struct barrier_values *into, const struct barrier_values *from)
{
    for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
        if (from->maximum[i] > into->maximum[i])
            into->maximum[i] = from->maximum[i];
    into->states |= from->states;
}

/* The first barrier finds out which course the others take. */
static bool by_tree(const struct barrier *barrier, uint32_t epoch)
{
    return barrier->tree && epoch > 0;
}

static uint32_t rounds_of(const struct barrier *barrier, uint32_t epoch)
{
    return barrier->neighbours->rounds * (by_tree(barrier, epoch) ? 2 : 1);
}

/* Who gets our arrival of a round, and whose arrival ends it; DATAGRAM_NONE: nobody. */
struct partners {
    uint32_t to;
    uint32_t from;
};

/* In the tree a round is about the edge between a child and its parent, 2^k before it. */
static struct partners partners_of(const struct barrier *barrier, uint32_t epoch, uint32_t round)
{
    const struct neighbours *neighbours = barrier->neighbours;
    struct partners partners = {DATAGRAM_NONE, DATAGRAM_NONE};
    bool upwards = round < neighbours->rounds, is_child;
    uint64_t distance = UINT64_C(1) << (upwards ? round : 2 * neighbours->rounds - 1 - round);
    uint32_t other = DATAGRAM_NONE;

    if (!by_tree(barrier, epoch))
        return (struct partners){neighbours_ahead(neighbours, round),
                                 neighbours_behind(neighbours, round)};
    is_child = neighbours->self & distance;
    if (neighbours->self & (distance - 1))
        return partners;
    if (is_child)
        other = neighbours->self - (uint32_t)distance;
    else if (neighbours->self + distance < neighbours->count)
        other = neighbours->self + (uint32_t)distance;
    *(is_child == upwards ? &partners.to : &partners.from) = other;
    return partners;
}

static struct barrier_slot *slot_of(struct barrier *barrier, uint32_t epoch)
{
    return &barrier->slots[epoch % BARRIER_SLOTS];
}

static void slot_clear(struct barrier_slot *slot)
{
    barrier_values_clear(&slot->values);
    slot->came = 0;
}

void barrier_init(struct barrier *barrier, struct neighbours *neighbours,
                  const struct datagram_outlet *outlet, int64_t timeout_ns)
{
    *barrier = (struct barrier){
        .neighbours = neighbours,
        .outlet = *outlet,
        .timeout_ns = timeout_ns,
        .rounds = neighbours->rounds,
        .epoch = DATAGRAM_NONE,
        .round = neighbours->rounds,
    };
    backoff_stop(&barrier->backoff);
    for (unsigned i = 0; i < BARRIER_SLOTS; i++)
        slot_clear(&barrier->slots[i]);
}

void barrier_use_tree(struct barrier *barrier)
{
    assert(barrier->epoch == 0 && barrier_passed(barrier));
    barrier->tree = true;
}

bool barrier_passed(const struct barrier *barrier)
{
    return barrier->epoch != DATAGRAM_NONE && barrier->round == barrier->rounds;
}

const struct barrier_values *barrier_values(const struct barrier *barrier)
{
    return &barrier->slots[barrier->epoch % BARRIER_SLOTS].values;
}

static bool waiting(const struct barrier *barrier)
{
    return barrier->round < barrier->rounds;
}

void barrier_hurry(struct barrier *barrier, int64_t now_ns)
{
    if (waiting(barrier))
        barrier->backoff.due_ns = now_ns;
}

static void hand_out(struct barrier *barrier, struct datagram *datagram)
{
    barrier->outlet.send(barrier->outlet.context, datagram);
}

static void send_arrival(struct barrier *barrier, uint32_t epoch, uint32_t round)
{
    struct datagram arrival = {
        .type = DATAGRAM_ARRIVAL,
        .recipient = partners_of(barrier, epoch, round).to,
        .epoch = epoch,
        .round = (uint8_t)round,
        .values = slot_of(barrier, epoch)->values,
    };

    hand_out(barrier, &arrival);
}

static void await_round(struct barrier *barrier, int64_t now_ns)
{
    barrier->since_ns = now_ns;
    if (partners_of(barrier, barrier->epoch, barrier->round).to != DATAGRAM_NONE)
        send_arrival(barrier, barrier->epoch, barrier->round);
    backoff_start(&barrier->backoff, now_ns);
}

/* The round that the node is in. */
static bool is_over(const struct barrier *barrier, const struct barrier_slot *slot)
{
    return slot->came >> barrier->round & 1 ||
           partners_of(barrier, barrier->epoch, barrier->round).from == DATAGRAM_NONE;
}

static void advance(struct barrier *barrier, int64_t now_ns)
{
    const struct barrier_slot *slot = slot_of(barrier, barrier->epoch);

    while (waiting(barrier) && is_over(barrier, slot)) {
        barrier->round++;
        if (waiting(barrier))
            await_round(barrier, now_ns);
    }
    if (!waiting(barrier))
        backoff_stop(&barrier->backoff);
}

void barrier_enter(struct barrier *barrier, const struct barrier_values *mine, int64_t now_ns)
{
    assert(!waiting(barrier));
    barrier->epoch++;
    barrier->round = 0;
    barrier->rounds = rounds_of(barrier, barrier->epoch);
    slot_clear(slot_of(barrier, barrier->epoch + 1));
    barrier_values_merge(&slot_of(barrier, barrier->epoch)->values, mine);
    if (waiting(barrier))
        await_round(barrier, now_ns);
    advance(barrier, now_ns);
}

/* Whether the arrivals that `round` of `epoch` builds on have all come, so that ours was sent. */
static bool arrived(const struct barrier *barrier, uint32_t epoch, uint32_t round)
{
    if (epoch != barrier->epoch)
        return epoch + 1 == barrier->epoch;
    return round <= barrier->round;
}

static bool take_arrival(struct barrier *barrier, const struct datagram *datagram, int64_t now_ns)
{
    struct barrier_slot *slot = slot_of(barrier, datagram->epoch);

    if (datagram->sender != partners_of(barrier, datagram->epoch, datagram->round).from)
        return false;
    barrier_values_merge(&slot->values, &datagram->values);
    slot->came |= UINT64_C(1) << datagram->round;
    if (datagram->epoch == barrier->epoch)
        advance(barrier, now_ns);
    return true;
}

static bool answer(struct barrier *barrier, const struct datagram *question)
{
    struct datagram patience = {
        .type = DATAGRAM_PATIENCE,
        .recipient = question->sender,
        .epoch = question->epoch,
        .round = question->round,
    };

    if (!arrived(barrier, question->epoch, question->round))
        hand_out(barrier, &patience);
    else if (question->sender == partners_of(barrier, question->epoch, question->round).to)
        send_arrival(barrier, question->epoch, question->round);
    else
        return false;
    return true;
}

bool barrier_receive(struct barrier *barrier, const struct datagram *datagram, int64_t now_ns)
{
    int32_t ahead = (int32_t)(datagram->epoch - barrier->epoch);
    /* A node in the first barrier does not know by which course the next one goes. */
    bool is_unknown = barrier->epoch == 0 && ahead == 1 && waiting(barrier);

    if (ahead < -1 || ahead > 1 || (barrier->epoch == DATAGRAM_NONE && ahead != 1) ||
        (!is_unknown && datagram->round >= rounds_of(barrier, datagram->epoch)))
        return false;
    switch (datagram->type) {
    case DATAGRAM_ARRIVAL:
        return is_unknown || take_arrival(barrier, datagram, now_ns);
    case DATAGRAM_QUESTION:
        return answer(barrier, datagram);
    default: /* PATIENCE: the sender lives */
        return true;
    }
}

struct neighbour *barrier_tick(struct barrier *barrier, int64_t now_ns)
{
    struct neighbour *partner;
    struct datagram question = {
        .type = DATAGRAM_QUESTION,
        .epoch = barrier->epoch,
        .round = (uint8_t)barrier->round,
    };

    if (!backoff_due(&barrier->backoff, now_ns))
        return NULL;
    question.recipient = partners_of(barrier, barrier->epoch, barrier->round).from;
    partner = neighbours_find(barrier->neighbours, question.recipient);
    if (neighbour_silent(partner, now_ns - barrier->since_ns, barrier->timeout_ns, now_ns))
        return partner;
    partner->asked++;
    hand_out(barrier, &question);
    return NULL;
}

int64_t barrier_deadline(const struct barrier *barrier)
{
    return barrier->backoff.due_ns;
}
