/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clock offsets over simulated paths (symmetric, asymmetric, jittered, queueing, lossy) between
 * clocks that drift and change their rates; the clocks of this machine. Each path has 200 runs,
 * from seeds: the reported bound covers the true offset in all of them, at each time of a query.
 * tests/system/test_clocks.py covers the modes of the clock and the bounds of ptp.
 */
#include "prng.h"
#include "run_clock.h"
#include "unit.h"

#include <math.h>
#include <sys/timex.h>

#define US NS_PER_US
#define MS NS_PER_MS
#define S NS_PER_S
#define ROUNDING_NS 3 /* each clock shows whole nanoseconds */
#define NODES 8
#define QUICK 16 /* number of first exchanges, as in endpoint.c */
#define DRIFT_NS(ns) ((ns)*RUN_CLOCK_DRIFT_PPM / 1000000)

#define RUNS 200u /* runs of each path */

/* A clock as a function of true time: it drifts, turns up and down, and may be stepped. */
struct crystal {
    int64_t start_ns;
    double ppm;
    double turn_ppm; /* amplitude ... */
    double turn_s;   /* ... and period */
    int64_t step_at_ns;
    int64_t step_ns;
};

static int64_t shows(const struct crystal *crystal, int64_t true_ns)
{
    double s = (double)true_ns * 1e-9, turned_s = 0;

    if (crystal->turn_s > 0)
        turned_s = crystal->turn_ppm * 1e-6 * crystal->turn_s / (2 * M_PI) *
                   (1 - cos(2 * M_PI * s / crystal->turn_s));
    return crystal->start_ns + true_ns + (int64_t)((s * crystal->ppm * 1e-6 + turned_s) * 1e9) +
           (crystal->step_ns != 0 && true_ns >= crystal->step_at_ns ? crystal->step_ns : 0);
}

static double uniform(uint64_t *random)
{
    return ((double)(prng_next(random) >> 11) + 0.5) * 0x1p-53;
}

/* One direction of a path: a minimum delay; an exponential one; and, with a probability, a busy
 * queue, whose backlog has a heavy tail (Pareto, shape 1.5). */
struct way {
    int64_t min_ns;
    double mean_ns;
    double busy;
    double backlog_ns;
};

static int64_t delay(uint64_t *random, const struct way *way)
{
    double ns = -way->mean_ns * log(uniform(random));

    if (uniform(random) < way->busy)
        ns += way->backlog_ns * pow(uniform(random), -1 / 1.5);
    return way->min_ns + (int64_t)(ns < 1e9 ? ns : 1e9);
}

struct path {
    const char *name;
    struct way there, back;
    double loss;
    double ppm; /* maximum drift of each clock, either way */
    double turn_ppm, turn_s;
    int64_t useful_ns; /* maximum of the mean bound at the end */
};

#define STEADY ((struct way){20000, 3000, 0, 0})
#define QUEUED ((struct way){20000, 5000, 0.5, 30000})

static const struct path paths[] = {
    {"symmetric", STEADY, STEADY, 0, 100, 0, 0, 60 * US},
    {"jittered", {20000, 50000, 0, 0}, {20000, 50000, 0, 0}, 0.1, 100, 0, 0, 120 * US},
    {"queueing", QUEUED, QUEUED, 0.05, 50, 0, 0, 100 * US},
    {"one way queueing", STEADY, {20000, 5000, 0.9, 300000}, 0, 50, 0, 0, 300 * US},
    {"asymmetric", {20000, 3000, 0, 0}, {900000, 3000, 0, 0}, 0, 100, 0, 0, 500 * US},
    {"asymmetric, queueing", QUEUED, {400000, 9000, 0.3, 1e6}, 0, 100, 0, 0, 500 * US},
    {"lossy", {300000, 9000, 0.3, 1e6}, {20000, 9000, 0, 0}, 0.5, 100, 0, 0, 300 * US},
    {"turning", STEADY, STEADY, 0, 95, 5, 120, 60 * US},
    {"turning, queueing", QUEUED, QUEUED, 0.1, 95, 5, 60, 100 * US},
};
#define PATHS (COUNT(paths))

/* Nodes in a tree, whose root's clock is the run's; a path joins each with its parent. */
struct world {
    const struct path *path;
    struct node {
        struct crystal crystal;
        struct run_clock clock;
    } nodes[NODES];
    uint64_t random;
};

/* Return the clock of a node that has to measure. */
static void begin(struct run_clock *clock, bool is_root)
{
    run_clock_init(clock, is_root);
    run_clock_decide(clock, CLOCK_ESTIMATED, false, is_root);
}

static void begin_world(struct world *world, const struct path *path, uint64_t seed)
{
    *world = (struct world){.path = path, .random = seed};
    for (unsigned i = 0; i < NODES; i++) {
        begin(&world->nodes[i].clock, i == 0);
        world->nodes[i].crystal = (struct crystal){
            .start_ns = (int64_t)(uniform(&world->random) * 1000) * S,
            .ppm = (2 * uniform(&world->random) - 1) * path->ppm,
            .turn_ppm = path->turn_ppm,
            .turn_s = path->turn_s > 0 ? path->turn_s * (1 + uniform(&world->random)) : 0,
        };
    }
}

static void learn(struct run_clock *clock, int64_t origin_ns, int64_t receive_ns,
                  int64_t transmit_ns, int64_t arrive_ns)
{
    run_clock_heard(clock, &(struct offset_stamps){origin_ns, receive_ns, transmit_ns, arrive_ns},
                    (struct offset_estimate){0, 0});
}

/* Run one exchange of a node with its parent. Return the time of the answer. */
static int64_t exchange(struct world *world, unsigned node, int64_t now_ns)
{
    const struct node *parent = &world->nodes[node & (node - 1)];
    const struct crystal *ours = &world->nodes[node].crystal, *theirs = &parent->crystal;
    int64_t there_ns = now_ns + delay(&world->random, &world->path->there);
    int64_t reply_ns = there_ns + 10 * US;
    int64_t back_ns = reply_ns + delay(&world->random, &world->path->back);
    const struct offset_stamps stamps = {shows(ours, now_ns), shows(theirs, there_ns),
                                         shows(theirs, reply_ns), shows(ours, back_ns)};

    if (uniform(&world->random) >= world->path->loss)
        run_clock_heard(&world->nodes[node].clock, &stamps,
                        run_clock_estimate(&parent->clock, shows(theirs, reply_ns)));
    return back_ns;
}

/* Return the bound of a node's estimate at a time; check that it covers the true offset. */
static int64_t covering_bound(const struct world *world, unsigned node, int64_t true_ns)
{
    int64_t now_ns = shows(&world->nodes[node].crystal, true_ns);
    int64_t truth_ns = shows(&world->nodes[0].crystal, true_ns) - now_ns;
    struct offset_estimate estimate = run_clock_estimate(&world->nodes[node].clock, now_ns);

    if (estimate.bound_ns >= 0 &&
        llabs(estimate.offset_ns - truth_ns) > estimate.bound_ns + ROUNDING_NS)
        fail_msg("%s: wrong by more than %lld ns", world->path->name, (long long)estimate.bound_ns);
    return estimate.bound_ns;
}

/* A minute of exchanges, frequent at first; estimates of now, of future times and of past times. */
static int64_t run_path(const struct path *path, uint64_t seed)
{
    struct world world;
    int64_t now_ns = S;

    begin_world(&world, path, seed);
    for (unsigned i = 0; now_ns < 60 * S; i++) {
        exchange(&world, 1, now_ns);
        now_ns += i < QUICK ? 5 * MS : (int64_t)(uniform(&world.random) * 0.2e9);
        covering_bound(&world, 1, now_ns + 3 * MS);
        covering_bound(&world, 1, now_ns + (int64_t)(uniform(&world.random) * 10e9));
        covering_bound(&world, 1, now_ns - (int64_t)(uniform(&world.random) * 10e9));
    }
    return covering_bound(&world, 1, now_ns);
}

TEST(covers_the_truth)
{
    for (unsigned p = 0; p < PATHS; p++) {
        int64_t sum_ns = 0;

        for (unsigned run = 0; run < RUNS; run++) {
            int64_t bound_ns = run_path(&paths[p], 1000 * p + run);

            assert_true(bound_ns >= 0);
            sum_ns += bound_ns;
        }
        print_message("%-20s: %u of %u runs hold; bound %.1f us\n", paths[p].name, RUNS, RUNS,
                      (double)sum_ns / RUNS / 1e3);
        assert_true(sum_ns <= paths[p].useful_ns * RUNS);
    }
}

/* ---- single properties ---- */

/* Run an exchange that begins at a local time and takes as long each way; the parent's clock is
 * ahead. */
#define EXCHANGE(at_ns, ahead_ns, way_ns)                                                          \
    ((struct offset_stamps){(at_ns), (at_ns) + (ahead_ns) + (way_ns),                              \
                            (at_ns) + (ahead_ns) + (way_ns), (at_ns) + 2 * (way_ns)})
#define EARLY EXCHANGE(S, 4 * S, 10 * US)
#define LATE EXCHANGE(11 * S, 4 * S, 100 * US)

/* The estimate at a time after some exchanges with node 0, each exact to 5 ns; bound -1: none. */
TEST(each_history_says_this_much)
{
    static const struct offset_stamps untimely[] = {
        {INT64_MIN, 1, 1, 1}, {1, -1, 1, 1}, {1, 1, INT64_MAX, 1}, {1, 1, 1, INT64_MAX / 2}};
    static const struct {
        const char *what;
        struct offset_stamps exchanges[3];
        int64_t at_ns;
        struct offset_estimate known;
    } cases[] = {
        {"RFC 5905's offset, and half its delay", {{1000, 8100, 8150, 1350}}, 1350, {6950, 151}},
        {"there was none", {{-1, 0, 500, 100}}, 100, {0, -1}},
        {"backwards", {{90, 400, 700, 100}}, 100, {0, -1}},
        /* A neighbour echoes this node's last datagram, however old it is. */
        {"it may have drifted",
         {{S, 5 * S + 10 * US, 15 * S + 10 * US, 11 * S + 20 * US}},
         11 * S + 20 * US,
         {4 * S + DRIFT_NS(10 * S) / 2, 10 * US + DRIFT_NS(10 * S) / 2}},
        {"ten seconds later", {EARLY}, 11 * S, {4 * S, 10 * US + DRIFT_NS(10 * S)}},
        {"the worse but later", {EARLY, LATE}, 11 * S + 200 * US, {4 * S + 20, 100 * US + 21}},
        {"and each for its own time", {EARLY, LATE}, S + 20 * US, {4 * S, 10 * US}},
        {"a slot keeps the least round trip",
         {EXCHANGE(S, 0, 90 * US), EXCHANGE(S + MS, 0, 10 * US), EXCHANGE(S + 2 * MS, 0, 90 * US)},
         S + MS + 20 * US,
         {0, 10 * US}},
        /* It does not echo a datagram that was overtaken. */
        {"the latest word counts", {{10, 500, 900, 1000}, {990, 800, 800, 1001}}, 1000, {195, 296}},
    };
    struct run_clock clock;

    begin(&clock, false);
    for (EACH(it, untimely))
        run_clock_heard(&clock, it, (struct offset_estimate){0, 0});
    assert_int_equal(run_clock_estimate(&clock, 1).bound_ns, -1);
    for (EACH(c, cases)) {
        struct offset_estimate right = c->known, known;

        begin(&clock, false);
        for (unsigned k = 0; k < 3 && c->exchanges[k].arrive_ns != 0; k++)
            run_clock_heard(&clock, &c->exchanges[k], (struct offset_estimate){0, 0});
        known = run_clock_estimate(&clock, c->at_ns);
        if (llabs(known.bound_ns - right.bound_ns) > (right.bound_ns < 0 ? 0 : 5) ||
            llabs(known.offset_ns - right.offset_ns) > 5)
            fail_msg("%s: %lld +- %lld", c->what, (long long)known.offset_ns,
                     (long long)known.bound_ns);
    }
}

/* The ring holds some minutes, and drops the oldest. */
TEST(the_oldest_samples_give_way)
{
    const int64_t slot_ns = RUN_CLOCK_SLOT_NS, samples = RUN_CLOCK_SAMPLES;
    struct run_clock clock;

    begin(&clock, false);
    for (int64_t i = 1; i <= 3 * samples; i++)
        learn(&clock, i * slot_ns - 2000, i * slot_ns, i * slot_ns, i * slot_ns);
    assert_in_range(run_clock_estimate(&clock, 3 * samples * slot_ns).bound_ns, 1000, 1010);
    assert_in_range(run_clock_estimate(&clock, 2 * samples * slot_ns).bound_ns, 1000,
                    1010 + DRIFT_NS(2 * slot_ns));
    assert_true(run_clock_estimate(&clock, samples * slot_ns).bound_ns >
                DRIFT_NS((samples - 2) * slot_ns));
}

TEST(learns_anew_after_a_step)
{
    static const int64_t steps_ns[] = {10 * S, -10 * S, 1 * MS, -1 * MS, 400 * US, -400 * US};
    const struct path path = {.name = "stepped", .there = STEADY, .back = STEADY, .ppm = 50};

    for (size_t i = 0; i < COUNT(steps_ns); i++) {
        struct crystal *stepped;
        struct world world;

        begin_world(&world, &path, i);
        world.nodes[0].crystal.start_ns += 100 * S;
        /* CLOCK_MONOTONIC never goes back. */
        stepped = &world.nodes[steps_ns[i] < 0].crystal;
        stepped->step_at_ns = 20 * S;
        stepped->step_ns = llabs(steps_ns[i]);
        for (int64_t now_ns = S; now_ns < 21 * S; now_ns += S / 4) {
            exchange(&world, 1, now_ns);
            if (now_ns < 20 * S || now_ns >= 20 * S + S / 2) /* two exchanges later */
                covering_bound(&world, 1, now_ns + MS);
        }
        assert_in_range(covering_bound(&world, 1, 21 * S), 1, 200 * US);
    }
}

TEST(run_time_sums_along_the_tree)
{
    const struct way way = {20000, 30000, 0.1, 100000};
    const struct path path = {"tree", way, way, 0, 100, 0.3, 60, 0};
    struct world world;
    int64_t now_ns = S;

    begin_world(&world, &path, 5);
    assert_int_equal(covering_bound(&world, 7, 0), -1);
    for (unsigned round = 0; round < 2000; round++) {
        now_ns = exchange(&world, 1 + (unsigned)(prng_next(&world.random) % (NODES - 1)), now_ns) +
                 (int64_t)(uniform(&world.random) * 0.02e9);
        for (unsigned i = 0; i < NODES; i++)
            assert_true(covering_bound(&world, i, now_ns) >= 0 || round < 200);
    }
    for (unsigned i = 1; i < NODES; i++)
        assert_true(covering_bound(&world, i, now_ns) < 150 * US * __builtin_popcount(i));
}

/* Results of adjtimex as kernels give them. */
TEST(judges_what_the_kernel_says)
{
    static const struct {
        struct timex kernel;
        int state;
        bool synchronized;
    } cases[] = {
        {{.status = STA_PLL, .maxerror = 1500}, TIME_OK, true},
        {{.status = STA_NANO, .maxerror = 1500}, TIME_INS, true},
        {{.status = STA_UNSYNC, .maxerror = 16000000}, TIME_ERROR, false},
        {{.status = STA_UNSYNC | STA_PLL, .maxerror = 5}, TIME_OK, false},
        {{.status = 0}, -1, false},
    };
    struct kernel_sync_status found;

    for (EACH(c, cases)) {
        kernel_sync_classify(&found, c->state, &c->kernel);
        assert_int_equal(found.synchronized, c->synchronized);
        assert_int_equal(found.maxerror_ns, c->kernel.maxerror * 1000);
    }
}
