/* SPDX-License-Identifier: BSD-3-Clause */
#include "prober.h"

#include "clock.h"

void verbs_prober_begin(struct verbs_prober *prober, int64_t from_ns)
{
    probe_scheduler_begin(&prober->schedule, prober->schedule.gap_ns, from_ns,
                          prober->schedule.seed);
}

static uint32_t place_of(uint64_t sequence)
{
    return (uint32_t)(sequence % VERBS_PROBES_OUT);
}

static bool has_room(const struct verbs_prober *prober)
{
    return prober->out < prober->max && prober->begun_ns[place_of(prober->sent)] == 0;
}

static void forget_lost(struct verbs_prober *prober, int64_t now_ns)
{
    for (uint32_t i = 0; i < VERBS_PROBES_OUT; i++) {
        if (prober->begun_ns[i] == 0 || now_ns - prober->begun_ns[i] < prober->timeout_ns)
            continue;
        prober->begun_ns[i] = 0;
        prober->out--;
    }
}

bool verbs_prober_due(struct verbs_prober *prober, int64_t now_ns)
{
    if (now_ns < prober->schedule.next_ns)
        return false;
    probe_scheduler_step(&prober->schedule, now_ns);
    if (!has_room(prober))
        forget_lost(prober, now_ns);
    return has_room(prober);
}

void verbs_prober_sent(struct verbs_prober *prober, int64_t begun_ns, bool counts)
{
    uint32_t place = place_of(prober->sent);
    uint64_t bit = UINT64_C(1) << place;

    prober->begun_ns[place] = begun_ns;
    prober->counts = counts ? prober->counts | bit : prober->counts & ~bit;
    prober->measured += counts;
    prober->sent++;
    prober->out++;
}

void verbs_prober_replies(struct verbs_prober *prober, uint64_t due, uint64_t seen, int64_t at_ns)
{
    for (; seen != 0; seen &= seen - 1) {
        uint64_t behind = (uint64_t)__builtin_ctzll(seen) + 1;
        uint64_t sequence = due - behind;
        uint32_t place = place_of(sequence);

        /* The place of one that was given up may be another's by now. */
        if (behind > due || sequence + VERBS_PROBES_OUT < prober->sent ||
            prober->begun_ns[place] == 0)
            continue;
        if (at_ns != 0 && (prober->counts >> place & 1) != 0)
            histogram_add(&prober->times, (uint64_t)(at_ns - prober->begun_ns[place]));
        prober->begun_ns[place] = 0;
        prober->out--;
    }
}

bool verbs_prober_waits(struct verbs_prober *prober, int64_t now_ns)
{
    if (prober->out > 0)
        forget_lost(prober, now_ns);
    return prober->out > 0;
}
