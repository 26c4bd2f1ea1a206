/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a task is over: all that was sent has come, silence says that the rest never will, or one of
 * the limits says that it is waited for no longer.
 */
#include "clock.h"
#include "worker.h"

static int64_t later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* Adds the frames for others that came by each lane to its port's; whether a port has more of them
 * than the limit. */
static bool flooded(struct worker_task *task)
{
    for (size_t i = 0; task->flood_limit > 0 && i < task->count; i++) {
        struct worker_lane *lane = &task->lanes[i];
        uint64_t fresh = lane->lane->request.count->misdelivered - lane->foreign_told;

        lane->foreign_told += fresh;
        if (atomic_fetch_add(lane->foreign, fresh) + fresh > task->flood_limit) {
            task->flooded = i;
            return true;
        }
    }
    return false;
}

/* What all lanes of a task say of their end. A broken lane waits for nothing more. */
struct lanes_state {
    bool sent;            /* none will send more */
    bool received;        /* all know that nothing more will come */
    bool silence_tells;   /* those that do not know it never will */
    bool times_partners;  /* one of them does */
    int64_t last_come_ns; /* when something came last */
};

static struct lanes_state ask_lanes(const struct worker_task *task)
{
    struct lanes_state all = {.sent = true, .received = true, .silence_tells = true};

    for (size_t i = 0; i < task->count; i++) {
        const struct lane *lane = task->lanes[i].lane;
        bool knows = transport_can(task->lanes[i].transport, TRANSPORT_KNOWS_END);
        bool broken = lane->error.text[0] != '\0', whole = lane->rx_done || broken;

        all.sent &= lane->tx_done || broken;
        all.received &= whole;
        all.silence_tells &= whole || !knows;
        all.times_partners |= lane->own_partner_timeout && !broken;
        all.last_come_ns = later(all.last_come_ns, lane->arrived_ns);
    }
    return all;
}

/* A stream's drain is bounded from its stop, a transfer's and a schedule's from when something last
 * moved: they take as long as the network needs. Messages of a schedule without bytes, and its
 * barriers', are in no count: a rank that idles receives no others. */
static int64_t waits_since_ns(const struct worker_task *task, const struct lanes_state *all)
{
    if (task->phase->traffic == TRAFFIC_SCHEDULE)
        return later(task->nominal_end_ns, later(task->moved_ns, all->last_come_ns));
    return phase_is_timed(task->phase) ? task->nominal_end_ns
                                       : later(task->nominal_end_ns, task->moved_ns);
}

bool drain_is_over(struct worker_task *task, bool stop, int64_t now_ns)
{
    struct lanes_state all = ask_lanes(task);
    int64_t silent_ns = now_ns - later(task->nominal_end_ns, all.last_come_ns);

    if (stop)
        task->end = TASK_STOPPED;
    else if (flooded(task))
        task->end = TASK_FLOODED;
    else if (all.sent && ((all.received && now_ns >= task->phase->close_ns) ||
                          (all.silence_tells && silent_ns >= task->drain_timeout_ns)))
        task->end = TASK_DRAINED;
    else if (!all.times_partners && now_ns - waits_since_ns(task, &all) >= task->drain_max_ns)
        task->end = TASK_LIMIT;
    else
        return false;
    return true;
}
