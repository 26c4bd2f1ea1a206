/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker against a simulated transport: when lanes are polled, the copies at the window's ends,
 * and each way in which a phase ends. Times are short, and tests check only their order.
 */
#include "clock.h"
#include "unit.h"
#include "worker.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

/* A lane that counts one frame per poll between start and stop, and receives its own frames. */
struct fake_lane {
    struct lane base;
    unsigned polls, wakes;
    bool deaf;    /* receives nothing */
    bool floods;  /* each poll receives a frame for another rank */
    bool endless; /* never reports all as sent */
    /* Until this time messages arrive that count nowhere, then all is through; 0: the lane does not
     * meet. */
    int64_t meets_until_ns;
    bool own_partner_timeout; /* ... or none arrives, and the lane knows that one will */
};

static atomic_uint idles;

static int64_t fake_poll(struct lane *lane, int64_t now_ns)
{
    struct fake_lane *fake = (struct fake_lane *)lane;
    const struct phase *phase = lane->request.phase;
    uint64_t events;

    fake->polls++;
    if (lane->woken) { /* its descriptor's readability is taken as it is */
        lane->woken = false;
        fake->wakes++;
        (void)!read(lane->wake_fd, &events, sizeof events);
    }
    lane->request.count->misdelivered += fake->floods;
    if (now_ns < phase->start_ns)
        return phase->start_ns;
    if (now_ns >= lane->stop_ns) {
        lane->stopped_ns = lane->stopped_ns == 0 ? now_ns : lane->stopped_ns;
        lane->tx_done = !fake->endless;
        return CLOCK_NEVER;
    }
    if (lane->started_ns == 0)
        lane->started_ns = now_ns;
    lane->request.flows[0].side.live.frames++;
    if (!fake->deaf) {
        lane->request.flows[1].side.live.frames++;
        lane->arrived_ns = now_ns;
    }
    return now_ns + NS_PER_MS;
}

/* A rank that is idle in a schedule: it only meets the others. */
static int64_t meeting_poll(struct lane *lane, int64_t now_ns)
{
    const struct fake_lane *fake = (const struct fake_lane *)lane;
    bool waits = now_ns < fake->meets_until_ns;

    lane->own_partner_timeout = fake->own_partner_timeout && waits;
    if (waits && !fake->own_partner_timeout)
        lane->arrived_ns = now_ns;
    lane->tx_done = lane->rx_done = fake->meets_until_ns > 0 && !waits;
    return waits ? now_ns + NS_PER_MS : CLOCK_NEVER;
}

#define GAP_NS (NS_PER_MS / 10) /* distance of frames that arrive while the worker is away */
#define AWAY_NS (10 * NS_PER_MS)
#define BURST 32u

static uint64_t came_until(const struct phase *phase, int64_t now_ns)
{
    int64_t end_ns = now_ns < phase->stop_ns ? now_ns : phase->stop_ns;

    return end_ns > phase->start_ns ? (uint64_t)((end_ns - phase->start_ns) / GAP_NS) : 0;
}

/* Frames arrive all the time, and a poll takes one burst; before each end of the window the worker
 * is away, until that time has long passed. */
static int64_t away_poll(struct lane *lane, int64_t now_ns)
{
    struct fake_lane *fake = (struct fake_lane *)lane;
    const struct phase *phase = lane->request.phase;
    uint64_t *taken = &lane->request.flows[1].side.live.frames;
    uint64_t waiting = came_until(phase, now_ns) - *taken;
    int64_t end_ns = fake->polls == 0 ? phase->open_ns : phase->close_ns;

    *taken += waiting < BURST ? waiting : BURST;
    if (*taken > 0)
        lane->arrived_ns = now_ns;
    if (fake->polls < 2 && now_ns >= end_ns - AWAY_NS && now_ns < end_ns) {
        fake->polls++;
        clock_sleep_until(end_ns + AWAY_NS);
    }
    lane->tx_done = now_ns >= lane->stop_ns;
    return waiting > BURST ? now_ns : now_ns + NS_PER_MS;
}

static void fake_idle(struct transport_port *port, int64_t now_ns)
{
    atomic_fetch_add(&idles, 1);
}

static const struct transport
    fake_transport = {.capabilities = TRANSPORT_FRAMES, .poll = fake_poll, .idle = fake_idle},
    away_transport = {.capabilities = TRANSPORT_FRAMES, .poll = away_poll},
    knowing_transport = {.capabilities = TRANSPORT_KNOWS_END, .poll = fake_poll},
    meeting_transport = {.capabilities = TRANSPORT_KNOWS_END, .poll = meeting_poll};

#define LANES 3

static struct scene {
    struct fake_lane fakes[LANES];
    struct worker_lane lanes[LANES], *order[LANES];
    struct lane_flow flows[LANES][2];
    struct port_count counts[LANES];
    atomic_ullong foreign[LANES];
    struct phase phase;
    struct worker_task task;
    struct worker *worker;
    int event_fd;
} scene;

static void set_scene(const struct transport *transport)
{
    struct worker_conf conf = {.sleeps = true, .core = -1, .seed = 5};
    struct err err = {0};
    int64_t start_ns = clock_now() + 5 * NS_PER_MS;

    memset(&scene, 0, sizeof scene);
    scene.event_fd = eventfd(0, 0);
    conf.event_fd = scene.event_fd;
    assert_int_equal(worker_start(&scene.worker, &conf, &err), 0);
    scene.phase = (struct phase){.start_ns = start_ns,
                                 .open_ns = start_ns + 20 * NS_PER_MS,
                                 .close_ns = start_ns + 60 * NS_PER_MS,
                                 .stop_ns = start_ns + 80 * NS_PER_MS};
    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &scene.fakes[i].base;

        lane->stop_ns = scene.phase.stop_ns;
        lane->wake_fd = -1;
        lane->request = (struct lane_request){.phase = &scene.phase,
                                              .flows = scene.flows[i],
                                              .send_count = 1,
                                              .receive_count = 1,
                                              .count = &scene.counts[i]};
        scene.lanes[i] = (struct worker_lane){
            .transport = transport, .lane = lane, .foreign = &scene.foreign[i]};
        scene.order[i] = &scene.lanes[i];
    }
    scene.task = (struct worker_task){.lanes = scene.order,
                                      .count = LANES,
                                      .phase = &scene.phase,
                                      .nominal_end_ns = scene.phase.stop_ns,
                                      .drain_timeout_ns = 30 * NS_PER_MS,
                                      .drain_max_ns = 200 * NS_PER_MS};
}

static void play(void)
{
    struct pollfd ready = {.fd = scene.event_fd, .events = POLLIN};
    uint64_t events;

    worker_run(scene.worker, &scene.task);
    assert_int_equal(poll(&ready, 1, 10000), 1);
    assert_int_equal(read(scene.event_fd, &events, sizeof events), sizeof events);
    assert_true(worker_done(scene.worker));
}

static int strike(void **state)
{
    worker_end(scene.worker);
    close(scene.event_fd);
    return 0;
}

/* Frames that wait when a late worker returns belong to the time before the window opened, or
 * closed. */
TEST_BETWEEN(a_backlog_is_not_counted_in_the_window, NULL, strike)
{
    set_scene(&away_transport);
    play();
    for (int i = 0; i < LANES; i++) {
        const struct worker_lane *lane = &scene.lanes[i];
        const struct flow_window *window = &lane->lane->request.flows[1].side.window;

        assert_in_range(lane->opened_ns, scene.phase.open_ns, scene.phase.close_ns);
        assert_true(lane->closed_ns >= scene.phase.close_ns);
        assert_true(window->close.frames > window->open.frames);
        assert_int_equal(window->open.frames, came_until(&scene.phase, lane->opened_ns));
        assert_int_equal(window->close.frames, came_until(&scene.phase, lane->closed_ns));
    }
}

/* Only the lane with a readable descriptor is woken: others would make a system call for nothing.
 */
TEST_BETWEEN(of_a_wake_its_own_lane_is_told, NULL, strike)
{
    set_scene(&fake_transport);
    for (int i = 0; i < LANES; i++)
        scene.fakes[i].base.wake_fd = eventfd(i == 1, EFD_NONBLOCK);
    play();
    for (int i = 0; i < LANES; i++) {
        assert_int_equal(scene.fakes[i].wakes, i == 1);
        close(scene.fakes[i].base.wake_fd);
    }
}

/* The earliest time at which a phase can end. */
enum after { AT_ONCE, TIMEOUT, LIMIT, MEETING };

static const struct ending {
    const char *what;
    const struct transport *transport;
    enum task_end end;
    enum after after;
    bool deaf, endless, meets, times_partner, broken;
    uint64_t flood_limit;
    uint64_t misdelivered[2]; /* to queues 1 and 2, which are of one port */
    int floods;               /* the lane that does */
} endings[] = {
    {"silence after the stop", &fake_transport, TASK_DRAINED, TIMEOUT, .deaf = true},
    {"silence says nothing to a transport that knows", &knowing_transport, TASK_LIMIT, LIMIT,
     .deaf = false},
    {"a sender never ends", &fake_transport, TASK_LIMIT, LIMIT, .endless = true},
    /* Messages of barriers, and messages without bytes, change no count. */
    {"messages come", &meeting_transport, TASK_DRAINED, MEETING, .meets = true},
    {"a message is known to come", &meeting_transport, TASK_DRAINED, MEETING, .meets = true,
     .times_partner = true},
    {"no message comes", &meeting_transport, TASK_LIMIT, LIMIT, .deaf = false},
    {"broken lanes delay nobody", &knowing_transport, TASK_DRAINED, AT_ONCE, .broken = true},
    {"a flood", &fake_transport, TASK_FLOODED, AT_ONCE, .flood_limit = 3, .floods = 2},
    {"queues below the limit", &fake_transport, TASK_DRAINED, TIMEOUT, .flood_limit = 1000000,
     .misdelivered = {600000, 400000}},
    {"queues of a port flood together", &fake_transport, TASK_FLOODED, AT_ONCE,
     .flood_limit = 999999, .misdelivered = {600000, 400000}},
};

TEST(each_phase_ends_its_way)
{
    for (EACH(ending, endings)) {
        int64_t after_ns[] = {0, 0, 0, 0};

        set_scene(ending->transport);
        after_ns[TIMEOUT] = scene.task.drain_timeout_ns;
        after_ns[LIMIT] = scene.task.drain_max_ns;
        after_ns[MEETING] = 3 * scene.task.drain_max_ns;
        if (ending->transport == &meeting_transport)
            scene.phase.traffic = TRAFFIC_SCHEDULE;
        scene.task.flood_limit = ending->flood_limit;
        scene.lanes[1].foreign = scene.lanes[2].foreign;
        for (int i = 0; i < LANES; i++) {
            struct fake_lane *fake = &scene.fakes[i];

            fake->deaf = ending->deaf;
            fake->endless = ending->endless && i == 1;
            fake->floods = ending->floods == i && i > 0;
            fake->own_partner_timeout = ending->times_partner && i == 1;
            fake->meets_until_ns = ending->meets ? scene.phase.stop_ns + after_ns[MEETING] : 0;
            if (ending->broken)
                strcpy(fake->base.error.text, "connection lost");
            if (i > 0)
                fake->base.request.count->misdelivered = ending->misdelivered[i - 1];
        }
        play();
        if (scene.task.end != ending->end)
            fail_msg("%s: it ends by %d", ending->what, scene.task.end);
        if (ending->after != AT_ONCE && clock_now() < scene.phase.stop_ns + after_ns[ending->after])
            fail_msg("%s: it ends too early", ending->what);
        if (ending->floods > 0)
            assert_ptr_equal(scene.task.flooded, &scene.lanes[ending->floods]);
        strike(NULL);
    }
}

TEST_BETWEEN(stopping_ends_at_once_and_keeps_the_counts, NULL, strike)
{
    struct pollfd ready = {.events = POLLIN};

    set_scene(&fake_transport);
    scene.phase.close_ns = scene.phase.stop_ns = scene.phase.start_ns + 3600 * NS_PER_S;
    for (int i = 0; i < LANES; i++)
        scene.fakes[i].base.stop_ns = scene.phase.stop_ns;
    scene.task.nominal_end_ns = scene.phase.stop_ns;
    ready.fd = scene.event_fd;
    worker_run(scene.worker, &scene.task);
    clock_sleep_until(scene.phase.start_ns + 30 * NS_PER_MS);
    worker_stop(scene.worker);
    assert_int_equal(poll(&ready, 1, 10000), 1);
    assert_int_equal(scene.task.end, TASK_STOPPED);
    for (int i = 0; i < LANES; i++) {
        assert_true(scene.lanes[i].closed_ns > 0);
        assert_true(scene.lanes[i].lane->stopped_ns > 0);
        assert_true(scene.flows[i][0].side.live.frames > 0);
        assert_int_equal(scene.flows[i][0].side.window.close.frames,
                         scene.flows[i][0].side.live.frames);
    }
}

TEST_BETWEEN(ports_are_visited_between_phases, NULL, strike)
{
    struct worker_port port = {.transport = &fake_transport};
    unsigned seen;

    set_scene(&fake_transport);
    assert_int_equal(worker_set_ports(scene.worker, &port, 1), 0);
    for (int i = 0; i < 1000 && atomic_load(&idles) < 2; i++)
        clock_sleep_until(clock_now() + 5 * NS_PER_MS);
    assert_true(atomic_load(&idles) >= 2);
    assert_int_equal(worker_set_ports(scene.worker, NULL, 0), 0);
    seen = atomic_load(&idles);
    clock_sleep_until(clock_now() + 60 * NS_PER_MS);
    assert_int_equal(atomic_load(&idles), seen);
}
