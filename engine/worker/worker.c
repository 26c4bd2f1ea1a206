/* SPDX-License-Identifier: BSD-3-Clause */
#include "worker.h"

#include "clock.h"
#include "cpu_placement.h"
#include "lock.h"
#include "prng.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>
#include <unistd.h>

#define LISTEN_NS (800 * NS_PER_US)  /* a sleeping worker looks at its ports at least so often */
#define CHECK_NS (2 * NS_PER_MS)     /* interval of checks for an end, a stop or a flood */
#define IDLE_NS (20 * NS_PER_MS)     /* between phases ports are visited so often */
#define QUIET_NS (50 * NS_PER_US)    /* ... and so often by one that polls for nothing to send */
#define AWAY_NS NS_PER_MS            /* a lane that was not polled for so long has a backlog ... */
#define BACKLOG_POLLS 256            /* ... of which so many polls take more than a ring holds */
#define PROGRESS_NS (50 * NS_PER_MS) /* progress is summed so often */
#define MARK_SOME 256u               /* flows of an interval's mark at once */

struct worker {
    struct worker_conf conf;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct worker_task *task; /* NULL: none waits or runs */
    bool running;             /* the thread is in the task or visits the ports */
    bool ending;
    struct worker_port *ports;
    size_t port_count;
    atomic_bool stop;
};

/* --- interval marks: a ring with one writer and one reader ------------------------------------*/

struct interval_ring {
    uint32_t flows;
    uint32_t filled;        /* flows of the mark in progress */
    _Atomic uint32_t made;  /* number of marks; written by the worker */
    _Atomic uint32_t taken; /* number of taken marks; written by the main thread */
    struct interval_mark marks[INTERVAL_ROOM];
    uint64_t bytes[]; /* by mark, by flow */
};

struct interval_ring *interval_ring_make(uint32_t flows)
{
    struct interval_ring *ring =
        calloc(1, sizeof *ring + (size_t)flows * INTERVAL_ROOM * sizeof ring->bytes[0]);

    if (ring == NULL)
        return NULL;
    ring->flows = flows;
    for (size_t i = 0; i < INTERVAL_ROOM; i++)
        ring->marks[i].bytes = &ring->bytes[i * flows];
    return ring;
}

void interval_ring_free(struct interval_ring *ring)
{
    free(ring);
}

int64_t interval_ring_mark(struct interval_ring *ring, const struct interval_grid *grid,
                           const struct lane_flow *flows, int64_t now_ns, uint32_t most)
{
    uint32_t made = atomic_load_explicit(&ring->made, memory_order_relaxed);
    uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_acquire);
    struct interval_mark *mark = &ring->marks[made % INTERVAL_ROOM];
    int64_t last = grid->close_ns == CLOCK_NEVER ? INT64_MAX
                                                 : (grid->close_ns - grid->open_ns) / grid->step_ns;
    int64_t number = (now_ns - grid->open_ns) / grid->step_ns;

    if (now_ns < grid->open_ns)
        return grid->open_ns;
    number = number < last ? number : last;
    if (made - taken < INTERVAL_ROOM) {
        if (ring->filled == 0) {
            mark->at_ns = now_ns;
            mark->number = (uint32_t)number;
        }
        number = mark->number;
        for (; ring->filled < ring->flows && most > 0; ring->filled++, most--)
            mark->bytes[ring->filled] = flows[ring->filled].side.live.payload_bytes;
        if (ring->filled < ring->flows)
            return now_ns;
        ring->filled = 0;
        atomic_store_explicit(&ring->made, made + 1, memory_order_release);
    }
    return number == last ? CLOCK_NEVER : grid->open_ns + (number + 1) * grid->step_ns;
}

const struct interval_mark *interval_ring_first(const struct interval_ring *ring)
{
    uint32_t taken = atomic_load_explicit(&ring->taken, memory_order_relaxed);

    return atomic_load_explicit(&ring->made, memory_order_acquire) == taken
               ? NULL
               : &ring->marks[taken % INTERVAL_ROOM];
}

void interval_ring_drop(struct interval_ring *ring)
{
    atomic_fetch_add_explicit(&ring->taken, 1, memory_order_release);
}

/* --- counts -----------------------------------------------------------------------------------*/

/* Update a lane's counts by the transport's `account`, or do the same work for a transport whose
 * poll keeps the counts up to date.
 */
static bool account(const struct worker_lane *lane, enum account what)
{
    const struct lane_request *request = &lane->lane->request;
    struct lane_moved moved = {0};

    if (lane->transport->account != NULL)
        return lane->transport->account(lane->lane, what);
    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        bool sent = i < request->send_count;
        struct flow_side *side = &request->flows[i].side;

        lane_count_moved(&moved, side, sent);
        if (what == ACCOUNT_MARK)
            *(lane->opened_ns == 0 ? &side->window.open : &side->window.close) = side->live;
    }
    lane->lane->moved = moved;
    return what != ACCOUNT_MARK;
}

/* Return the time of the next end of the window (opening or closing) that a lane has not passed;
 * CLOCK_NEVER: it has passed both. */
static int64_t next_end_ns(const struct phase *phase, const struct worker_lane *lane)
{
    if (lane->opened_ns == 0)
        return phase->open_ns;
    return lane->closed_ns == 0 ? phase->close_ns : CLOCK_NEVER;
}

/* Mark, in a lane's counts, the ends of the window that are due by `until_ns`, with the present
 * time. */
static void mark_window(const struct phase *phase, struct worker_lane *lane, int64_t now_ns,
                        int64_t until_ns)
{
    while (lane->closed_ns == 0 && next_end_ns(phase, lane) <= until_ns) {
        (void)account(lane, ACCOUNT_MARK);
        lane->accounting = true;
        *(lane->opened_ns == 0 ? &lane->opened_ns : &lane->closed_ns) = now_ns;
    }
}

/* Store a lane's next interval mark if it is due; one call stores only some of the lane's flows. */
static void mark_interval(struct worker_task *task, struct worker_lane *lane, int64_t now_ns,
                          uint32_t most)
{
    int64_t due_ns = interval_ring_mark(lane->interval_ring, &task->grid,
                                        lane_receives(&lane->lane->request), now_ns, most);

    lane->marking = due_ns <= now_ns;
    if (!lane->marking)
        task->interval_due_ns = MIN(task->interval_due_ns, due_ns);
}

static void publish_progress(struct worker_task *task, struct worker_lane *lane, int64_t now_ns)
{
    const struct lane_moved *now = &lane->lane->moved;

    if (now->offered != atomic_load(&lane->offered_bytes) ||
        now->delivered != atomic_load(&lane->delivered_bytes))
        task->moved_ns = now_ns;
    atomic_store(&lane->offered_bytes, now->offered);
    atomic_store(&lane->delivered_bytes, now->delivered);
    atomic_store(&lane->line_bytes, now->line_bytes);
    atomic_store(&lane->published_ns, now_ns);
}

/* Update the progress counts and interval marks of all lanes when they are due. One call updates
 * only some of many flows, because a port's receive ring that is not polled may be full within
 * microseconds. Return whether a lane has more to update. */
static bool count_lanes(struct worker_task *task, int64_t now_ns, int64_t *summed_ns)
{
    bool marks = now_ns >= task->interval_due_ns, sums = now_ns - *summed_ns >= PROGRESS_NS;
    bool more = false;

    if (marks)
        task->interval_due_ns = CLOCK_NEVER;
    if (sums)
        *summed_ns = now_ns;
    for (size_t i = 0; i < task->count; i++) {
        struct worker_lane *lane = task->lanes[i];

        lane->accounting |= marks || sums;
        lane->marking |= marks && lane->interval_ring != NULL;
        if (lane->accounting && account(lane, ACCOUNT_SOME)) {
            lane->accounting = false;
            publish_progress(task, lane, now_ns);
        }
        if (!lane->accounting && lane->marking)
            mark_interval(task, lane, now_ns,
                          lane->transport->account != NULL ? MARK_SOME : UINT32_MAX);
        more |= lane->accounting || lane->marking;
    }
    return more;
}

/* --- polls ------------------------------------------------------------------------------------*/

/* Poll each lane once, in a new random order, and mark the ends of the window that it passes.
 * Frames that arrived, or were due, before an end must be counted before its mark: a worker that
 * comes late polls until none is left, at most BACKLOG_POLLS times. `now_ns` takes the time of the
 * last lane's poll; reading the clock again would cost as much as sending three frames. */
static int64_t poll_lanes(struct worker *worker, struct worker_task *task, int64_t *now_ns)
{
    int64_t wake_ns = CLOCK_NEVER;

    *now_ns = clock_now();
    for (size_t i = task->count; i > 1; i--) {
        size_t j = prng_below(&worker->conf.seed, (uint32_t)i);
        struct worker_lane *swap = task->lanes[i - 1];

        task->lanes[i - 1] = task->lanes[j];
        task->lanes[j] = swap;
    }
    for (size_t i = 0; i < task->count; i++) {
        struct worker_lane *lane = task->lanes[i];
        int64_t end_ns = next_end_ns(task->phase, lane), due_ns;
        unsigned polls = BACKLOG_POLLS;

        if (i > 0)
            *now_ns = clock_now();
        due_ns = lane->transport->poll(lane->lane, *now_ns);
        if (*now_ns >= end_ns) {
            bool away = *now_ns - lane->polled_ns >= AWAY_NS;

            while (away && due_ns <= *now_ns && --polls > 0) {
                *now_ns = clock_now();
                due_ns = lane->transport->poll(lane->lane, *now_ns);
            }
            mark_window(task->phase, lane, *now_ns, *now_ns);
            end_ns = next_end_ns(task->phase, lane);
        }
        lane->polled_ns = *now_ns;
        wake_ns = MIN(wake_ns, MIN(due_ns, end_ns));
    }
    return wake_ns;
}

/* Stop the sending of each lane, and complete the lanes' windows and counts, at the end of a
 * task. */
static void close_lanes(struct worker_task *task)
{
    int64_t now_ns = clock_now();

    for (size_t i = 0; i < task->count; i++) {
        struct worker_lane *lane = task->lanes[i];

        lane->lane->stop_ns = MIN(lane->lane->stop_ns, now_ns);
        if (task->end == TASK_STOPPED || task->end == TASK_FLOODED)
            lane->transport->poll(lane->lane, now_ns);
        mark_window(task->phase, lane, now_ns, CLOCK_NEVER);
    }
    for (size_t i = 0; i < task->count; i++) {
        struct worker_lane *lane = task->lanes[i];

        (void)account(lane, ACCOUNT_ALL);
        if (lane->marking)
            mark_interval(task, lane, clock_now(), UINT32_MAX);
        publish_progress(task, lane, clock_now());
    }
}

/* --- drain ------------------------------------------------------------------------------------*/

/* Add each lane's frames for other ranks to the count of its port; return whether a port has more
 * than the limit. */
static bool flooded(struct worker_task *task)
{
    for (size_t i = 0; task->flood_limit > 0 && i < task->count; i++) {
        struct worker_lane *lane = task->lanes[i];
        uint64_t fresh = lane->lane->request.count->misdelivered - lane->foreign_counted;

        lane->foreign_counted += fresh;
        if (atomic_fetch_add(lane->foreign, fresh) + fresh > task->flood_limit) {
            task->flooded = lane;
            return true;
        }
    }
    return false;
}

/* Return whether a task is over: all sent data were received, silence shows that the rest is lost,
 * or the drain's limit is reached. A failed lane does not wait.
 *
 * The drain limit of a stream begins at its stop; that of a transfer or a schedule begins when
 * something last moved, because they take as long as the network needs. Messages without payload
 * and the messages of a schedule's barriers are not counted, but may be all that an idle rank
 * receives. */
static bool drain_is_over(struct worker_task *task, bool stop, int64_t now_ns)
{
    bool sent = true;            /* no lane sends more */
    bool received = true;        /* all lanes know that they receive nothing more */
    bool silence_tells = true;   /* the other lanes learn it by silence only */
    bool times_partners = false; /* a lane has its own limit for partners */
    int64_t came_ns = task->nominal_end_ns, since_ns = came_ns;

    for (size_t i = 0; i < task->count; i++) {
        const struct lane *lane = task->lanes[i]->lane;
        bool broken = lane->error.text[0] != '\0', whole = lane->rx_done || broken;

        sent &= lane->tx_done || broken;
        received &= whole;
        silence_tells &= whole || !transport_can(task->lanes[i]->transport, TRANSPORT_KNOWS_END);
        times_partners |= lane->own_partner_timeout && !broken;
        came_ns = MAX(came_ns, lane->arrived_ns);
    }
    if (task->phase->traffic == TRAFFIC_SCHEDULE)
        since_ns = MAX(came_ns, task->moved_ns);
    else if (!phase_is_timed(task->phase))
        since_ns = MAX(since_ns, task->moved_ns);
    if (stop)
        task->end = TASK_STOPPED;
    else if (flooded(task))
        task->end = TASK_FLOODED;
    else if (sent && ((received && now_ns >= task->phase->close_ns) ||
                      (silence_tells && now_ns - came_ns >= task->drain_timeout_ns)))
        task->end = TASK_DRAINED;
    else if (!times_partners && now_ns - since_ns >= task->drain_max_ns)
        task->end = TASK_LIMIT;
    else
        return false;
    return true;
}

/* --- sleep ------------------------------------------------------------------------------------*/

/* Sleep until `wake_ns`, or until the descriptor of a lane is readable; then set `woken` of the
 * lane. A single lane may wait by its own function. `fds` has one element per lane. */
static void wait_until_due(struct worker_task *task, int64_t wake_ns, struct pollfd *fds)
{
    struct lane *first = task->lanes[0]->lane;
    struct timespec left;
    int64_t left_ns;

    if (task->count == 1 && first->wait != NULL && first->wait(first, wake_ns))
        return;
    for (size_t i = 0; i < task->count; i++) /* descriptors below 0 are ignored */
        fds[i] = (struct pollfd){.fd = task->lanes[i]->lane->wake_fd, .events = POLLIN};
    left_ns = wake_ns - clock_now();
    left = (struct timespec){.tv_sec = left_ns / NS_PER_S, .tv_nsec = left_ns % NS_PER_S};
    if (left_ns <= 0 || ppoll(fds, task->count, &left, NULL) <= 0)
        return;
    for (size_t i = 0; i < task->count; i++)
        task->lanes[i]->lane->woken |= fds[i].revents != 0;
}

/* --- a task -----------------------------------------------------------------------------------*/

static void run_task(struct worker *worker, struct worker_task *task)
{
    struct pollfd *fds = calloc(task->count + 1, sizeof *fds);
    int64_t checked_ns = 0, summed_ns = 0, now_ns;

    task->moved_ns = task->awake_ns = 0;
    for (;;) {
        int64_t wake_ns = poll_lanes(worker, task, &now_ns), check_ns = CHECK_NS;

        if (task->awake_ns == 0)
            task->awake_ns = clock_now();
        /* Lanes without further events may have finished: check before sleeping. */
        if (wake_ns == CLOCK_NEVER)
            check_ns = worker->conf.sleeps ? 0 : QUIET_NS;
        if (now_ns - checked_ns >= check_ns) {
            if (drain_is_over(task, atomic_load(&worker->stop), now_ns))
                break;
            checked_ns = now_ns;
        }
        if (!count_lanes(task, now_ns, &summed_ns) && worker->conf.sleeps && fds != NULL) {
            wait_until_due(task, MIN(wake_ns, now_ns + LISTEN_NS), fds);
        }
    }
    free(fds);
    close_lanes(task);
}

/* Wait for a task, and serve the idle ports meanwhile; return false if the worker must end. The
 * caller holds the lock before and after the call. */
static bool await_task(struct worker *worker)
{
    while (worker->task == NULL && !worker->ending) {
        int64_t wake_ns = clock_now() + IDLE_NS;
        struct timespec until = {wake_ns / NS_PER_S, wake_ns % NS_PER_S};

        if (pthread_cond_timedwait(&worker->changed, &worker->lock, &until) != ETIMEDOUT)
            continue;
        worker->running = true;
        pthread_mutex_unlock(&worker->lock);
        for (size_t i = 0; i < worker->port_count; i++)
            if (worker->ports[i].transport->idle != NULL)
                worker->ports[i].transport->idle(worker->ports[i].port, clock_now());
        pthread_mutex_lock(&worker->lock);
        worker->running = false;
        pthread_cond_broadcast(&worker->changed);
    }
    return !worker->ending;
}

static void *work(void *context)
{
    struct worker *worker = context;
    uint64_t one = 1;

    if (worker->conf.sleeps)
        reserve_cores(CORES_IN_TIME);
    pthread_mutex_lock(&worker->lock);
    while (await_task(worker)) {
        struct worker_task *task = worker->task;

        worker->running = true;
        pthread_mutex_unlock(&worker->lock);
        run_task(worker, task);
        pthread_mutex_lock(&worker->lock);
        worker->running = false;
        worker->task = NULL;
        atomic_store(&worker->stop, false);
        pthread_cond_broadcast(&worker->changed);
        (void)!write(worker->conf.event_fd, &one, sizeof one);
    }
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}

int worker_start(struct worker **worker, const struct worker_conf *conf, struct err *err)
{
    struct worker *w = calloc(1, sizeof *w);
    pthread_condattr_t condition;
    pthread_attr_t attributes;
    cpu_set_t cores;
    int rc;

    if (w == NULL)
        return err_set(err, -ENOMEM, "out of memory");
    w->conf = *conf;
    lock_init(&w->lock);
    pthread_condattr_init(&condition);
    pthread_condattr_setclock(&condition, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &condition);
    pthread_condattr_destroy(&condition);
    pthread_attr_init(&attributes);
    if (conf->core >= 0) {
        CPU_ZERO(&cores);
        CPU_SET((size_t)conf->core, &cores);
        pthread_attr_setaffinity_np(&attributes, sizeof cores, &cores);
    }
    rc = pthread_create(&w->thread, &attributes, work, w);
    pthread_attr_destroy(&attributes);
    if (rc != 0) {
        free(w);
        return err_set(err, -rc, "can't start a worker on core %d: %s", conf->core, strerror(rc));
    }
    *worker = w;
    return 0;
}

void worker_end(struct worker *worker)
{
    if (worker == NULL)
        return;
    atomic_store(&worker->stop, true);
    pthread_mutex_lock(&worker->lock);
    worker->ending = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    pthread_join(worker->thread, NULL);
    pthread_cond_destroy(&worker->changed);
    pthread_mutex_destroy(&worker->lock);
    free(worker->ports);
    free(worker);
}

int worker_set_ports(struct worker *worker, const struct worker_port *ports, size_t count)
{
    struct worker_port *copy = NULL; /* giving ports back never fails */

    if (count > 0 && (copy = calloc(count, sizeof *copy)) == NULL)
        return -ENOMEM;
    if (count > 0)
        memcpy(copy, ports, count * sizeof *copy);
    pthread_mutex_lock(&worker->lock);
    while (worker->running)
        pthread_cond_wait(&worker->changed, &worker->lock);
    free(worker->ports);
    worker->ports = copy;
    worker->port_count = count;
    pthread_mutex_unlock(&worker->lock);
    return 0;
}

void worker_run(struct worker *worker, struct worker_task *task)
{
    pthread_mutex_lock(&worker->lock);
    worker->task = task;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

bool worker_done(struct worker *worker)
{
    bool done;

    pthread_mutex_lock(&worker->lock);
    done = worker->task == NULL;
    pthread_mutex_unlock(&worker->lock);
    return done;
}

void worker_stop(struct worker *worker)
{
    atomic_store(&worker->stop, true);
}
