/* SPDX-License-Identifier: BSD-3-Clause */
#include "membership.h"

#include <assert.h>
#include <string.h>

#define ASKED_MIN 8 /* a node is not reported missing before this number of questions */
#define REPLACED_TEXT "another process has taken this node's place: was the node restarted?"

/* Maxima of the first barrier, which carry properties of the nodes. */
enum introduction {
    BOOT_MOST = BARRIER_MAXIMA_CALLER,
    BOOT_LEAST, /* negated, so that its maximum is the least */
    ROOT_BOOT,
    ROOT_CORES,
    INTRODUCTIONS
};

static_assert(INTRODUCTIONS == BARRIER_MAXIMA, "a barrier has room for them");

/* --- neighbours --- */

uint32_t membership_parent(uint32_t index)
{
    return index & (index - 1);
}

static uint32_t ahead_of(const struct membership *m, uint64_t distance)
{
    return (uint32_t)((m->conf.self + distance) % m->conf.count);
}

static uint32_t behind(const struct membership *m, uint64_t distance)
{
    return ahead_of(m, m->conf.count - distance);
}

struct neighbour *membership_neighbour(struct membership *m, uint32_t index)
{
    for (uint32_t i = 0; i < m->neighbour_count; i++)
        if (m->neighbours[i].index == index)
            return &m->neighbours[i];
    return NULL;
}

static void add_neighbour(struct membership *m, uint32_t index)
{
    if (index != m->conf.self && membership_neighbour(m, index) == NULL)
        m->neighbours[m->neighbour_count++] = (struct neighbour){
            .index = index,
            .entered = DATAGRAM_NONE,
            .heard_ns = -1,
            .transmit_ns = DATAGRAM_NO_TIME,
            .receive_ns = DATAGRAM_NO_TIME,
        };
}

/* Store the state of a datagram's sender (last entered barrier, time stamps), unless a newer
 * datagram came before. */
static void note_heard(struct neighbour *neighbour, const struct datagram *datagram, int64_t now_ns)
{
    if (datagram->transmit_ns <= neighbour->transmit_ns)
        return;
    neighbour->transmit_ns = datagram->transmit_ns;
    neighbour->receive_ns = neighbour->heard_ns = now_ns;
    if (neighbour->entered == DATAGRAM_NONE ||
        (int32_t)(datagram->entered - neighbour->entered) > 0)
        neighbour->entered = datagram->entered; /* a lower number is of an overtaken datagram */
    neighbour->asked = 0;
}

/* --- sending --- */

void membership_send(struct membership *m, struct datagram *datagram)
{
    const struct neighbour *neighbour = membership_neighbour(m, datagram->recipient);

    datagram->sender = m->conf.self;
    datagram->entered = m->epoch;
    datagram->from = m->conf.nonce;
    if (datagram->to == 0 && neighbour != NULL)
        datagram->to = neighbour->nonce;
    m->conf.send(m->conf.context, datagram);
}

static void send_plain(struct membership *m, enum datagram_type type, uint32_t recipient,
                       uint64_t nonce)
{
    struct datagram datagram = {
        .type = type, .recipient = recipient, .to = nonce, .epoch = DATAGRAM_NONE};

    membership_send(m, &datagram);
}

void membership_beat(struct membership *m, int64_t now_ns)
{
    m->beat_ns = now_ns;
    for (uint32_t i = 0; i < m->neighbour_count; i++) {
        uint32_t index = m->neighbours[i].index;

        if (index != 0 && membership_parent(index) == m->conf.self)
            send_plain(m, DATAGRAM_BEAT, index, 0);
    }
}

void membership_start(struct membership *m, const struct membership_conf *conf)
{
    *m = (struct membership){.conf = *conf, .epoch = DATAGRAM_NONE};
    while (UINT64_C(1) << m->rounds < conf->count)
        m->rounds++;
    for (uint32_t round = 0; round < m->rounds; round++)
        add_neighbour(m, ahead_of(m, UINT64_C(1) << round));
    for (uint32_t round = 0; round < m->rounds; round++)
        add_neighbour(m, behind(m, UINT64_C(1) << round));
    backoff_stop(&m->backoff);
    for (unsigned i = 0; i < MEMBERSHIP_SLOTS; i++)
        barrier_values_clear(&m->slots[i].values);
    for (uint32_t i = 0; i < m->neighbour_count; i++)
        send_plain(m, DATAGRAM_HELLO, m->neighbours[i].index, 0);
}

/* --- the abort --- */

static void tell(struct membership *m, const struct neighbour *neighbour)
{
    struct datagram datagram = {
        .type = DATAGRAM_ABORT,
        .recipient = neighbour->index,
        .epoch = m->fault.epoch,
        .fault = m->fault,
    };

    datagram.fault.heard = neighbour->knows_fault;
    membership_send(m, &datagram);
}

/* Send the fault to each neighbour that has not confirmed it. Return false if all neighbours
 * have. */
static bool tell_all(struct membership *m)
{
    bool told = false;

    for (uint32_t i = 0; i < m->neighbour_count; i++) {
        if (m->neighbours[i].knows_fault)
            continue;
        tell(m, &m->neighbours[i]);
        told = true;
    }
    return told;
}

/* Abort the run for a fault, unless the run is already aborted for an earlier fault. */
static void begin_abort(struct membership *m, const struct control_fault *fault, int64_t now_ns)
{
    if (m->aborted)
        return;
    m->aborted = true;
    m->fault = *fault;
    backoff_start(&m->backoff, now_ns);
    tell_all(m);
}

/* Make the fault that this node reports of the node `node`, which last entered the barrier
 * `last_epoch`. */
static struct control_fault fault_of(const struct membership *m, uint32_t node, uint32_t last_epoch)
{
    return (struct control_fault){
        .node = node, .epoch = m->epoch == DATAGRAM_NONE ? 0 : m->epoch, .last_epoch = last_epoch};
}

void membership_abort(struct membership *m, const char *text, bool impossible, int64_t now_ns)
{
    struct control_fault fault = fault_of(m, m->conf.self, m->epoch);
    size_t length = strnlen(text, sizeof(fault.text) - 1);

    fault.impossible = impossible;
    for (size_t i = 0; i < length; i++)
        fault.text[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
    begin_abort(m, &fault, now_ns);
}

static bool receive_abort(struct membership *m, struct neighbour *sender,
                          const struct control_fault *fault, int64_t now_ns)
{
    if (fault->node >= m->conf.count)
        return false;
    sender->knows_fault = true;
    begin_abort(m, fault, now_ns);
    if (!fault->heard)
        tell(m, sender);
    return true;
}

/* --- the barrier --- */

/* Return whether a barrier uses the binomial tree. The first barrier does not, since its values
 * decide whether the tree is used. */
static bool by_tree(const struct membership *m, uint32_t epoch)
{
    return m->crowded && epoch > 0;
}

static uint32_t rounds_of(const struct membership *m, uint32_t epoch)
{
    return m->rounds * (by_tree(m, epoch) ? 2 : 1);
}

/* Partners of this node in a round of a barrier: the recipient of its arrival, and the node whose
 * arrival ends the round; DATAGRAM_NONE: none. */
struct partners {
    uint32_t to;
    uint32_t from;
};

/* Return this node's partners in a round of a barrier. In the tree, a round covers the edges
 * between children and their parents, whose index is 2^k lower. */
static struct partners partners_of(const struct membership *m, uint32_t epoch, uint32_t round)
{
    struct partners partners = {DATAGRAM_NONE, DATAGRAM_NONE};
    bool upwards = round < m->rounds, is_child;
    uint64_t distance = UINT64_C(1) << (upwards ? round : 2 * m->rounds - 1 - round);
    uint32_t other = DATAGRAM_NONE;

    if (!by_tree(m, epoch))
        return (struct partners){ahead_of(m, distance), behind(m, distance)};
    is_child = m->conf.self & distance;
    if (m->conf.self & (distance - 1))
        return partners;
    if (is_child)
        other = m->conf.self - (uint32_t)distance;
    else if (m->conf.self + distance < m->conf.count)
        other = m->conf.self + (uint32_t)distance;
    *(is_child == upwards ? &partners.to : &partners.from) = other;
    return partners;
}

static bool is_waiting(const struct membership *m)
{
    return m->epoch != DATAGRAM_NONE && m->round < rounds_of(m, m->epoch);
}

enum barrier_state membership_state(const struct membership *m)
{
    if (!m->is_over && m->epoch != DATAGRAM_NONE && !is_waiting(m))
        return BARRIER_PASSED;
    return m->aborted ? BARRIER_FAILED : BARRIER_WAITING;
}

const struct barrier_values *membership_values(const struct membership *m)
{
    return &m->slots[m->epoch % MEMBERSHIP_SLOTS].values;
}

static void merge(struct barrier_values *into, const struct barrier_values *from)
{
    for (unsigned i = 0; i < BARRIER_MAXIMA; i++)
        into->maximum[i] = MAX(into->maximum[i], from->maximum[i]);
    into->states |= from->states;
}

static void send_arrival(struct membership *m, uint32_t epoch, uint32_t round)
{
    struct datagram arrival = {
        .type = DATAGRAM_ARRIVAL,
        .recipient = partners_of(m, epoch, round).to,
        .epoch = epoch,
        .round = (uint8_t)round,
        .values = m->slots[epoch % MEMBERSHIP_SLOTS].values,
    };

    membership_send(m, &arrival);
}

/* Advance to the first round whose arrival has not come yet, and begin each round on the way;
 * `has_begun`: the present round was begun already. At the end of the first barrier, store what its
 * values say of all nodes. */
static void advance(struct membership *m, bool has_begun, int64_t now_ns)
{
    const int64_t *said = membership_values(m)->maximum;
    uint64_t came = m->slots[m->epoch % MEMBERSHIP_SLOTS].came;

    for (; is_waiting(m); m->round++, has_begun = false) {
        struct partners partners = partners_of(m, m->epoch, m->round);

        if (!has_begun) {
            m->since_ns = now_ns;
            if (partners.to != DATAGRAM_NONE)
                send_arrival(m, m->epoch, m->round);
            backoff_start(&m->backoff, now_ns);
        }
        if ((came >> m->round & 1) == 0 && partners.from != DATAGRAM_NONE)
            return;
    }
    backoff_stop(&m->backoff);
    m->active_ns = now_ns;
    if (m->met)
        return;
    m->met = true;
    m->root_boot = said[ROOT_BOOT];
    m->crowded = said[BOOT_MOST] == -said[BOOT_LEAST] && said[ROOT_CORES] > 0 &&
                 m->conf.count > said[ROOT_CORES];
}

void membership_enter(struct membership *m, const struct barrier_values *mine, int64_t now_ns)
{
    struct barrier_values values = *mine;
    uint32_t next = m->epoch + 2;

    m->active_ns = now_ns;
    if (m->aborted) {
        m->is_over = true;
        return;
    }
    assert(!is_waiting(m));
    values.maximum[BOOT_MOST] = m->met ? INT64_MIN : m->conf.boot;
    values.maximum[BOOT_LEAST] = m->met ? INT64_MIN : -m->conf.boot;
    values.maximum[ROOT_BOOT] = m->met || m->conf.self > 0 ? INT64_MIN : m->conf.boot;
    values.maximum[ROOT_CORES] = m->met || m->conf.self > 0 ? INT64_MIN : m->conf.cores;
    m->epoch++;
    m->round = 0;
    barrier_values_clear(&m->slots[next % MEMBERSHIP_SLOTS].values);
    m->slots[next % MEMBERSHIP_SLOTS].came = 0;
    merge(&m->slots[m->epoch % MEMBERSHIP_SLOTS].values, &values);
    advance(m, false, now_ns);
}

/* Handle an arrival or a question of a barrier; return false if the datagram cannot be from a node
 * of this run that is in this barrier or the one before or after. */
static bool receive_barrier(struct membership *m, const struct datagram *datagram, int64_t now_ns)
{
    uint32_t epoch = datagram->epoch, round = datagram->round, slot = epoch % MEMBERSHIP_SLOTS;
    int32_t ahead = (int32_t)(epoch - m->epoch);
    /* A node in the first barrier does not know yet whether the next one uses the tree. */
    bool is_unknown = m->epoch == 0 && ahead == 1 && is_waiting(m);
    /* The arrivals before this round have all come, so that this node's was sent. */
    bool was_sent = ahead == 0 ? round <= m->round : ahead == -1;

    if (ahead < -1 || ahead > 1 || (m->epoch == DATAGRAM_NONE && ahead != 1) ||
        (!is_unknown && round >= rounds_of(m, epoch)))
        return false;
    if (datagram->type == DATAGRAM_QUESTION) {
        m->active_ns = now_ns;
        if (!was_sent)
            send_plain(m, DATAGRAM_PONG, datagram->sender, 0);
        else if (datagram->sender == partners_of(m, epoch, round).to)
            send_arrival(m, epoch, round);
        else
            return false;
        return true;
    }
    if (is_unknown)
        return true;
    if (datagram->sender != partners_of(m, epoch, round).from)
        return false;
    merge(&m->slots[slot].values, &datagram->values);
    m->slots[slot].came |= UINT64_C(1) << round;
    if (ahead == 0 && is_waiting(m))
        advance(m, true, now_ns);
    return true;
}

/* --- receiving --- */

/* Store the nonce of a neighbour's process, and send HELLO. If the neighbour had another nonce
 * before, its process was replaced, and the run is aborted. */
static void take_nonce(struct membership *m, struct neighbour *neighbour, uint64_t nonce,
                       int64_t now_ns)
{
    struct control_fault fault = fault_of(m, neighbour->index, neighbour->entered);
    bool replaced = neighbour->nonce != 0;

    strcpy(fault.text, REPLACED_TEXT);
    neighbour->nonce = nonce;
    if (replaced)
        begin_abort(m, &fault, now_ns);
    send_plain(m, DATAGRAM_HELLO, neighbour->index, nonce);
    if (!m->aborted && is_waiting(m)) /* the neighbour can be asked now */
        m->backoff.due_ns = now_ns;
}

bool membership_receive(struct membership *m, const struct datagram *datagram, int64_t now_ns)
{
    struct neighbour *sender = membership_neighbour(m, datagram->sender);

    if (sender == NULL || (datagram->to != 0 && datagram->to != m->conf.nonce))
        return false;
    if (datagram->to == 0) {
        send_plain(m, DATAGRAM_HELLO, datagram->sender, datagram->from);
        return true;
    }
    if (sender->nonce != datagram->from)
        take_nonce(m, sender, datagram->from, now_ns);
    note_heard(sender, datagram, now_ns);
    if (datagram->type == DATAGRAM_ABORT)
        return receive_abort(m, sender, &datagram->fault, now_ns);
    if (m->aborted) { /* the only answer is the fault */
        if (datagram->type == DATAGRAM_QUESTION || datagram->type == DATAGRAM_HELLO)
            tell(m, sender);
        return true;
    }
    switch (datagram->type) {
    case DATAGRAM_ARRIVAL:
    case DATAGRAM_QUESTION:
        return receive_barrier(m, datagram, now_ns);
    case DATAGRAM_PING:
        send_plain(m, DATAGRAM_PONG, datagram->sender, 0);
        return true;
    case DATAGRAM_BEAT:
        if (m->conf.self == 0 || datagram->sender != membership_parent(m->conf.self) ||
            datagram->transmit_ns <= m->beat_sent_ns)
            return false;
        m->beat_sent_ns = datagram->transmit_ns;
        membership_beat(m, now_ns);
        return true;
    default:
        return true;
    }
}

void membership_tick(struct membership *m, int64_t now_ns)
{
    struct datagram question = {
        .type = DATAGRAM_QUESTION, .epoch = m->epoch, .round = (uint8_t)m->round};
    struct control_fault fault;
    struct neighbour *partner;

    if (!backoff_due(&m->backoff, now_ns))
        return;
    if (m->aborted) {
        if (++m->tells == MEMBERSHIP_TELLS || !tell_all(m))
            backoff_stop(&m->backoff);
        return;
    }
    question.recipient = partners_of(m, m->epoch, m->round).from;
    partner = membership_neighbour(m, question.recipient);
    /* Nothing came for the time-out, though this node waited that long and asked often? */
    if (now_ns - MAX(m->since_ns, partner->heard_ns) < m->conf.timeout_ns ||
        partner->asked < ASKED_MIN) {
        partner->asked++;
        membership_send(m, &question);
        return;
    }
    fault = fault_of(m, partner->index, partner->entered);
    fault.missing = 1;
    fault.silence_ns = partner->heard_ns < 0 ? -1 : now_ns - partner->heard_ns;
    begin_abort(m, &fault, now_ns);
}
