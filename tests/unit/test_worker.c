/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The worker against a transport made for the test: who is polled when, the window's copies, and
 * each way in which a phase ends. Times are short and only their order is asserted.
 */
#include "clock.h"
#include "worker.h"

#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

/* A lane that counts a frame a poll between start and stop, and receives what it sends. */
struct fake_lane {
    struct lane base;
    unsigned starts;
    unsigned polls;
    bool deaf;    /* receives nothing */
    bool floods;  /* each poll finds a frame for somebody else */
    bool endless; /* never says that all is sent */
    /* Until then messages come that count nowhere, then all is through; 0: it does not meet. */
    int64_t meets_until_ns;
    bool own_partner_timeout; /* ... or none comes, and it knows that one will */
    unsigned wakes;           /* it was told of */
};

static atomic_uint idles;

static void fake_start(struct lane *lane, int64_t now_ns)
{
    ((struct fake_lane *)lane)->starts++;
}

static int64_t fake_poll(struct lane *lane, int64_t now_ns)
{
    struct fake_lane *fake = (struct fake_lane *)lane;
    const struct phase *phase = lane->request.phase;

    fake->polls++;
    if (fake->floods)
        lane->request.count->misdelivered++;
    if (now_ns < phase->start_ns)
        return phase->start_ns;
    if (now_ns >= lane->stop_ns) {
        if (lane->stopped_ns == 0)
            lane->stopped_ns = now_ns;
        lane->tx_done = !fake->endless;
        return CLOCK_NEVER;
    }
    if (lane->started_ns == 0)
        lane->started_ns = now_ns;
    lane->request.sends[0].side->live.frames++;
    if (!fake->deaf) {
        lane->request.receives[0].side->live.frames++;
        lane->arrived_ns = now_ns;
    }
    return now_ns + NS_PER_MS;
}

/* A rank that idles in a schedule: it only meets the others. */
static int64_t meeting_poll(struct lane *lane, int64_t now_ns)
{
    const struct fake_lane *fake = (const struct fake_lane *)lane;

    lane->own_partner_timeout = fake->own_partner_timeout && now_ns < fake->meets_until_ns;
    if (now_ns < fake->meets_until_ns) {
        if (!fake->own_partner_timeout)
            lane->arrived_ns = now_ns;
        return now_ns + NS_PER_MS;
    }
    lane->tx_done = lane->rx_done = fake->meets_until_ns > 0;
    return CLOCK_NEVER;
}

/* What its descriptor says is taken as it comes. */
static int64_t woken_poll(struct lane *lane, int64_t now_ns)
{
    struct fake_lane *fake = (struct fake_lane *)lane;
    uint64_t events;

    if (lane->woken) {
        lane->woken = false;
        fake->wakes++;
        (void)!read(lane->wake_fd, &events, sizeof events);
    }
    return fake_poll(lane, now_ns);
}

#define GAP_NS (NS_PER_MS / 10) /* between frames that come to a lane that is away */
#define AWAY_NS (10 * NS_PER_MS)
#define BURST 32u

static uint64_t came_until(const struct phase *phase, int64_t now_ns)
{
    int64_t end_ns = now_ns < phase->stop_ns ? now_ns : phase->stop_ns;

    return end_ns > phase->start_ns ? (uint64_t)((end_ns - phase->start_ns) / GAP_NS) : 0;
}

/* Frames come all the time and are taken a burst at a poll; before each end of the window the
 * worker is away, until that has long passed. */
static int64_t away_poll(struct lane *lane, int64_t now_ns)
{
    struct fake_lane *fake = (struct fake_lane *)lane;
    const struct phase *phase = lane->request.phase;
    uint64_t *taken = &lane->request.receives[0].side->live.frames;
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

static const struct transport fake_transport = {
    .name = "fake",
    .capabilities = TRANSPORT_FRAMES,
    .start = fake_start,
    .poll = fake_poll,
    .idle = fake_idle,
};

static const struct transport knowing_transport = {
    .name = "knowing",
    .capabilities = TRANSPORT_KNOWS_END,
    .start = fake_start,
    .poll = fake_poll,
};

static const struct transport away_transport = {
    .name = "away",
    .capabilities = TRANSPORT_FRAMES,
    .start = fake_start,
    .poll = away_poll,
};

static const struct transport woken_transport = {
    .name = "woken",
    .capabilities = TRANSPORT_FRAMES,
    .start = fake_start,
    .poll = woken_poll,
};

static const struct transport meeting_transport = {
    .name = "meeting",
    .capabilities = TRANSPORT_KNOWS_END,
    .start = fake_start,
    .poll = meeting_poll,
};

#define LANES 3

struct scene {
    struct fake_lane fakes[LANES];
    struct worker_lane lanes[LANES];
    struct lane_flow sends[LANES];
    struct lane_flow receives[LANES];
    struct flow_side sides[2 * LANES];
    struct port_count counts[LANES];
    atomic_ullong foreign[LANES];
    struct phase phase;
    struct worker_task task;
    struct worker *worker;
    int event_fd;
};

static void set_scene(struct scene *scene, const struct transport *transport)
{
    struct worker_conf conf = {.sleeps = true, .core = -1, .seed = 5};
    struct err err = {0};
    int64_t start_ns = clock_now() + 5 * NS_PER_MS;

    memset(scene, 0, sizeof *scene);
    scene->event_fd = eventfd(0, 0);
    conf.event_fd = scene->event_fd;
    assert_int_equal(worker_start(&scene->worker, &conf, &err), 0);
    scene->phase = (struct phase){.start_ns = start_ns,
                                  .open_ns = start_ns + 20 * NS_PER_MS,
                                  .close_ns = start_ns + 60 * NS_PER_MS,
                                  .stop_ns = start_ns + 80 * NS_PER_MS};
    for (int i = 0; i < LANES; i++) {
        struct lane *lane = &scene->fakes[i].base;

        scene->sends[i].side = &scene->sides[i];
        scene->receives[i].side = &scene->sides[LANES + i];
        lane->stop_ns = scene->phase.stop_ns;
        lane->wake_fd = -1;
        lane->request = (struct lane_request){.phase = &scene->phase,
                                              .sends = &scene->sends[i],
                                              .send_count = 1,
                                              .receives = &scene->receives[i],
                                              .receive_count = 1,
                                              .count = &scene->counts[i]};
        scene->lanes[i] = (struct worker_lane){
            .transport = transport, .lane = lane, .foreign = &scene->foreign[i]};
    }
    scene->task = (struct worker_task){.lanes = scene->lanes,
                                       .count = LANES,
                                       .phase = &scene->phase,
                                       .nominal_end_ns = scene->phase.stop_ns,
                                       .drain_timeout_ns = 30 * NS_PER_MS,
                                       .drain_max_ns = 200 * NS_PER_MS};
}

static void play(struct scene *scene)
{
    struct pollfd ready = {.fd = scene->event_fd, .events = POLLIN};
    uint64_t events;

    worker_run(scene->worker, &scene->task);
    assert_int_equal(poll(&ready, 1, 10000), 1);
    assert_int_equal(read(scene->event_fd, &events, sizeof events), sizeof events);
    assert_true(worker_done(scene->worker));
}

static void strike(struct scene *scene)
{
    worker_end(scene->worker);
    close(scene->event_fd);
}

static void the_window_is_copied_on_each_lane(void **state)
{
    struct scene scene;

    set_scene(&scene, &fake_transport);
    play(&scene);
    assert_int_equal(scene.task.end, TASK_DRAINED);
    for (int i = 0; i < LANES; i++) {
        const struct worker_lane *lane = &scene.lanes[i];
        const struct flow_window *window = &lane->lane->request.sends[0].side->window;
        uint64_t all = lane->lane->request.sends[0].side->live.frames;

        assert_true(lane->opened_ns >= scene.phase.open_ns);
        assert_true(lane->closed_ns >= scene.phase.close_ns);
        assert_true(lane->closed_ns > lane->opened_ns);
        assert_true(window->open.frames > 0);
        assert_true(window->close.frames > window->open.frames);
        assert_true(all >= window->close.frames);
        assert_int_equal(((struct fake_lane *)lane->lane)->starts, 1);
        assert_true(lane->lane->started_ns >= scene.phase.start_ns);
    }
    strike(&scene);
}

/* What waits when a late worker comes back has come before the window opened, or closed. */
static void a_backlog_is_not_counted_in_the_window(void **state)
{
    struct scene scene;

    set_scene(&scene, &away_transport);
    play(&scene);
    for (int i = 0; i < LANES; i++) {
        const struct worker_lane *lane = &scene.lanes[i];
        const struct flow_window *window = &lane->lane->request.receives[0].side->window;

        assert_int_equal(window->open.frames, came_until(&scene.phase, lane->opened_ns));
        assert_int_equal(window->close.frames, came_until(&scene.phase, lane->closed_ns));
    }
    strike(&scene);
}

/* The others would make a system call each to find that nothing has come for them. */
static void of_a_wake_its_own_lane_is_told(void **state)
{
    struct scene scene;

    set_scene(&scene, &woken_transport);
    for (int i = 0; i < LANES; i++)
        scene.fakes[i].base.wake_fd = eventfd(i == 1, EFD_NONBLOCK);
    play(&scene);
    for (int i = 0; i < LANES; i++) {
        assert_int_equal(scene.fakes[i].wakes, i == 1);
        close(scene.fakes[i].base.wake_fd);
    }
    strike(&scene);
}

static void silence_after_the_stop_ends_a_drain(void **state)
{
    struct scene scene;

    set_scene(&scene, &fake_transport);
    scene.fakes[0].deaf = scene.fakes[1].deaf = scene.fakes[2].deaf = true;
    play(&scene);
    assert_int_equal(scene.task.end, TASK_DRAINED);
    assert_true(clock_now() >= scene.phase.stop_ns + scene.task.drain_timeout_ns);
    strike(&scene);
}

static void silence_says_nothing_to_a_transport_that_knows(void **state)
{
    struct scene scene;

    set_scene(&scene, &knowing_transport);
    play(&scene); /* no lane ever says rx_done */
    assert_int_equal(scene.task.end, TASK_LIMIT);
    assert_true(clock_now() >= scene.phase.stop_ns + scene.task.drain_max_ns);
    strike(&scene);
}

static void a_sender_that_never_ends_meets_the_limit(void **state)
{
    struct scene scene;

    set_scene(&scene, &fake_transport);
    scene.fakes[1].endless = true;
    play(&scene);
    assert_int_equal(scene.task.end, TASK_LIMIT);
    strike(&scene);
}

/* Messages of barriers, and those without bytes, move nothing that counts. */
static void a_schedule_goes_on_while_messages_come(void **state)
{
    struct scene scene;

    set_scene(&scene, &meeting_transport);
    scene.phase.traffic = TRAFFIC_SCHEDULE;
    for (int i = 0; i < LANES; i++)
        scene.fakes[i].meets_until_ns = scene.phase.stop_ns + 3 * scene.task.drain_max_ns;
    play(&scene);
    assert_int_equal(scene.task.end, TASK_DRAINED);
    assert_true(clock_now() >= scene.fakes[0].meets_until_ns);
    strike(&scene);

    set_scene(&scene, &meeting_transport);
    scene.phase.traffic = TRAFFIC_SCHEDULE;
    for (int i = 0; i < LANES; i++) {
        scene.fakes[i].meets_until_ns = scene.phase.stop_ns + 3 * scene.task.drain_max_ns;
        scene.fakes[i].own_partner_timeout = i == 1;
    }
    play(&scene);
    assert_int_equal(scene.task.end, TASK_DRAINED);
    assert_true(clock_now() >= scene.fakes[0].meets_until_ns);
    strike(&scene);

    set_scene(&scene, &meeting_transport);
    scene.phase.traffic = TRAFFIC_SCHEDULE;
    play(&scene); /* nothing comes */
    assert_int_equal(scene.task.end, TASK_LIMIT);
    strike(&scene);
}

static void a_broken_lane_delays_nobody(void **state)
{
    struct scene scene;

    set_scene(&scene, &knowing_transport);
    for (int i = 0; i < LANES; i++)
        strcpy(scene.fakes[i].base.error.text, "connection lost");
    play(&scene);
    assert_int_equal(scene.task.end, TASK_DRAINED);
    strike(&scene);
}

static void flooding_stops_the_task_and_names_the_lane(void **state)
{
    struct scene scene;
    const struct lane *flooded;

    set_scene(&scene, &fake_transport);
    scene.task.flood_limit = 3;
    scene.fakes[2].floods = true;
    play(&scene);
    assert_int_equal(scene.task.end, TASK_FLOODED);
    flooded = scene.lanes[scene.task.flooded].lane;
    assert_ptr_equal(flooded, &scene.fakes[2].base);
    assert_true(clock_now() < scene.phase.stop_ns + 10 * NS_PER_S);
    strike(&scene);
}

/* The limit is a port's, whichever of its queues the frames come to. */
static void queues_of_a_port_flood_together(void **state)
{
    struct scene scene;

    set_scene(&scene, &fake_transport);
    scene.task.flood_limit = 1000000;
    scene.lanes[1].foreign = scene.lanes[2].foreign;
    scene.fakes[1].base.request.count->misdelivered = 600000;
    scene.fakes[2].base.request.count->misdelivered = 400000;
    play(&scene);
    assert_int_equal(scene.task.end, TASK_DRAINED);
    assert_int_equal(atomic_load(&scene.foreign[2]), 1000000);
    strike(&scene);

    set_scene(&scene, &fake_transport);
    scene.task.flood_limit = 999999;
    scene.lanes[1].foreign = scene.lanes[2].foreign;
    scene.fakes[1].base.request.count->misdelivered = 600000;
    scene.fakes[2].base.request.count->misdelivered = 400000;
    play(&scene);
    assert_int_equal(scene.task.end, TASK_FLOODED);
    strike(&scene);
}

static void stopping_ends_at_once_and_keeps_the_counts(void **state)
{
    struct scene scene;
    struct pollfd ready = {.events = POLLIN};

    set_scene(&scene, &fake_transport);
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
        assert_true(scene.sides[i].live.frames > 0);
        assert_int_equal(scene.sides[i].window.close.frames, scene.sides[i].live.frames);
    }
    strike(&scene);
}

static void ports_are_visited_between_phases(void **state)
{
    struct scene scene;
    struct worker_port port = {.transport = &fake_transport};
    unsigned seen;

    set_scene(&scene, &fake_transport);
    assert_int_equal(worker_set_ports(scene.worker, &port, 1), 0);
    for (int i = 0; i < 1000 && atomic_load(&idles) < 2; i++)
        clock_sleep_until(clock_now() + 5 * NS_PER_MS);
    assert_true(atomic_load(&idles) >= 2);
    assert_int_equal(worker_set_ports(scene.worker, NULL, 0), 0);
    seen = atomic_load(&idles);
    clock_sleep_until(clock_now() + 60 * NS_PER_MS);
    assert_int_equal(atomic_load(&idles), seen);
    strike(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_window_is_copied_on_each_lane),
        cmocka_unit_test(a_backlog_is_not_counted_in_the_window),
        cmocka_unit_test(of_a_wake_its_own_lane_is_told),
        cmocka_unit_test(silence_after_the_stop_ends_a_drain),
        cmocka_unit_test(silence_says_nothing_to_a_transport_that_knows),
        cmocka_unit_test(a_sender_that_never_ends_meets_the_limit),
        cmocka_unit_test(a_schedule_goes_on_while_messages_come),
        cmocka_unit_test(a_broken_lane_delays_nobody),
        cmocka_unit_test(flooding_stops_the_task_and_names_the_lane),
        cmocka_unit_test(queues_of_a_port_flood_together),
        cmocka_unit_test(stopping_ends_at_once_and_keeps_the_counts),
        cmocka_unit_test(ports_are_visited_between_phases),
    };

    return cmocka_run_group_tests_name("worker", tests, NULL, NULL);
}
