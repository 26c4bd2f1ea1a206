/* SPDX-License-Identifier: BSD-3-Clause
 *
 * When a task is over: all that was sent has come, silence says that the rest never will, or one of
 * the limits says that it is waited for no longer.
 */
#include "clock.h"
#include "worker_task.h"

/* Frames for others that have come to the lane's port, as far as its workers have told. */
static uint64_t count_foreign(struct worker_lane *lane)
{
    uint64_t own = lane->lane->request.count->misdelivered;
    uint64_t fresh = own - lane->foreign_told;

    lane->foreign_told = own;
    return atomic_fetch_add(lane->foreign, fresh) + fresh;
}

static bool flooded(struct worker_task *task)
{
    for (size_t i = 0; task->flood_limit > 0 && i < task->count; i++) {
        if (count_foreign(&task->lanes[i]) > task->flood_limit) {
            task->flooded = i;
            return true;
        }
    }
    return false;
}

static int64_t last_arrival(const struct worker_task *task)
{
    int64_t last_ns = 0;

    for (size_t i = 0; i < task->count; i++)
        if (task->lanes[i].lane->arrived_ns > last_ns)
            last_ns = task->lanes[i].lane->arrived_ns;
    return last_ns;
}

static int64_t later(int64_t a_ns, int64_t b_ns)
{
    return a_ns > b_ns ? a_ns : b_ns;
}

/* What all lanes of a task say of their end. A broken lane waits for nothing more. */
struct lanes_state {
    bool sent;          /* none will send more */
    bool received;      /* all know that nothing more will come */
    bool silence_tells; /* those that do not know it never will */
};

static struct lanes_state ask_lanes(const struct worker_task *task)
{
    struct lanes_state all = {true, true, true};

    for (size_t i = 0; i < task->count; i++) {
        const struct lane *lane = task->lanes[i].lane;
        bool broken = lane->error.text[0] != '\0';
        bool whole = lane->rx_done || broken;

        all.sent = all.sent && (lane->tx_done || broken);
        all.received = all.received && whole;
        all.silence_tells = all.silence_tells && (whole || !transport_can(task->lanes[i].transport,
                                                                          TRANSPORT_KNOWS_END));
    }
    return all;
}

static bool silent(const struct worker_task *task, int64_t now_ns)
{
    return now_ns - later(task->nominal_end_ns, last_arrival(task)) >= task->drain_timeout_ns;
}

/* When something last moved. Messages of a schedule without bytes, and its barriers', are in no
 * count: a rank that idles receives no others. */
static int64_t last_moved(const struct worker_task *task)
{
    if (task->phase->traffic != TRAFFIC_SCHEDULE)
        return task->moved_ns;
    return later(task->moved_ns, last_arrival(task));
}

static bool a_lane_times_partners(const struct worker_task *task)
{
    for (size_t i = 0; i < task->count; i++)
        if (task->lanes[i].lane->own_partner_timeout && task->lanes[i].lane->error.text[0] == '\0')
            return true;
    return false;
}

/* A stream's drain is bounded from its stop, a transfer's and a schedule's from when something last
 * moved: they take as long as the network needs. */
static bool limit_reached(const struct worker_task *task, int64_t now_ns)
{
    bool timed = phase_is_timed(task->phase) && task->phase->traffic != TRAFFIC_SCHEDULE;
    int64_t since_ns = task->nominal_end_ns;

    if (a_lane_times_partners(task))
        return false;
    if (!timed)
        since_ns = later(since_ns, last_moved(task));
    return now_ns - since_ns >= task->drain_max_ns;
}

bool drain_is_over(struct worker_task *task, bool stop, int64_t now_ns)
{
    struct lanes_state all = ask_lanes(task);

    if (stop)
        task->end = TASK_STOPPED;
    else if (flooded(task))
        task->end = TASK_FLOODED;
    else if (all.sent && ((all.received && now_ns >= task->phase->close_ns) ||
                          (all.silence_tells && silent(task, now_ns))))
        task->end = TASK_DRAINED;
    else if (limit_reached(task, now_ns))
        task->end = TASK_LIMIT;
    else
        return false;
    return true;
}
