/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A phase's computations before its start and while it runs: the load of a port, the margin from a
 * barrier to a start, the rate of a port's line, and interval marks between a worker and a reader
 * that may both be late.
 */
#include "phase.h"

#include "clock.h"
#include "unit.h"

/* --- loads: shares of a line, rates in bits and in frames, and what no line carries --- */

#define LINE_BPS 100000000u
#define FRAME 1518
#define MESSAGE 65536
#define FPS (LINE_BPS / 8.0 / (FRAME + FRAME_OVERHEAD_L1)) /* 8,127.4 */

static const struct transport frames = {.capabilities = TRANSPORT_FRAMES}, messages = {0};

static struct {
    struct node_port port;
    struct doc_load ask;
    struct doc_part doc;
    struct trial_part part;
    struct local_rank own;
    struct phase_lane lane;
} bed;

static struct phase_lane *lay(const struct transport *transport, uint64_t line_bps, bool shared,
                              double part)
{
    memset(&bed, 0, sizeof bed);
    bed.port.conf.name = "node1:e0";
    bed.port.conf.shared = shared;
    bed.port.line_rate_bps = line_bps;
    bed.doc.load = &bed.ask;
    bed.part.doc = &bed.doc;
    bed.own.part = &bed.part;
    bed.lane.own = &bed.own;
    bed.lane.transport = transport;
    bed.lane.port = &bed.port;
    bed.lane.phase.sizes[0] = transport == &frames ? FRAME : MESSAGE;
    bed.lane.phase.size_count = 1;
    bed.lane.part = part;
    return &bed.lane;
}

/* Loads such as "percent 95" become rates and texts, or a refusal. */
TEST_ROWS(a_load_is_resolved_or_refused, "load")
{
    char transport[12], kind[12], text[64];
    unsigned long long line_bps;
    double divisor, value;
    struct phase_lane *lane;
    struct err err = {0};
    int rc;

    assert_int_equal(sscanf(row->fields[0], "%11s %llu 1/%lf", transport, &line_bps, &divisor), 3);
    assert_int_equal(sscanf(row->fields[1], "%11s %lf", kind, &value), 2);
    lane = lay(strcmp(transport, "frames") == 0 ? &frames : &messages, line_bps,
               strstr(row->fields[0], " shared") != NULL, 1 / divisor);
    *(strcmp(kind, "percent") == 0 ? &bed.ask.percent
      : strcmp(kind, "bps") == 0   ? &bed.ask.bps
                                   : &bed.ask.fps) = value;
    rc = lane_resolve_load(lane, &err);
    if (rc != 0) {
        assert_int_equal(rc, -EINVAL);
        assert_says(err.text, "node1:e0");
        assert_says(err.text, row->fields[2]);
        return;
    }
    snprintf(text, sizeof text, "%.0f bps, %.2f fps%s", lane->phase.load.rate_bps,
             lane->phase.load.rate_fps, lane->phase.load.unlimited ? ", unlimited" : "");
    assert_string_equal(text, row->fields[2]);
    assert_float_equal(lane->phase.load.part, 1 / divisor, 0);
}

/* A slow start, since the network is not known yet. Three ranks that send to one take as long as
 * three that send to many each: 0.15 s. */
TEST(probes_are_slow_and_spread)
{
    static const struct {
        uint64_t line_bps;
        uint32_t probes;
        double fps;
    } probes[] = {{LINE_BPS, 3000, FPS / 10},           {1000000, 3000, FPS / 1000}, {0, 0, 1000},
                  {UINT64_C(100000000000), 3000, 1000}, {LINE_BPS, 3, 20},           {0, 30, 200}};

    for (EACH(probe, probes))
        assert_float_equal(lane_probe_fps(lay(&frames, probe->line_bps, false, 1), probe->probes),
                           probe->fps, 0.01);
}

/* --- ports: what is known of a line --- */

static struct port_facts now;

static void read_facts(struct transport_port *port, struct port_facts *facts, bool counters)
{
    *facts = now;
}

/* A device may know its speed, which partners get, only once it has a link. */
TEST(a_line_is_known_when_its_link_comes_up)
{
    static const struct transport transport = {.name = "fake", .facts = read_facts};
    static struct node_port port;
    struct node node = {.ports = &port, .port_count = 1};

    port = (struct node_port){.transport = &transport, .down_ns = clock_now()};
    for (int up = 0; up < 2; up++) {
        now = (struct port_facts){
            .link_up = up, .link_bps = up ? 1000000000 : 0, .address = {.size = up ? 8 : 4}};
        assert_int_equal(ports_watch_links(&node), 0);
        assert_int_equal(port.line_rate_bps, now.link_bps);
        assert_int_equal(port.address.size, up ? 8 : 0);
    }
    now = (struct port_facts){0}; /* nor after it has lost the link */
    port.had_link = false;        /* no record of it is written here */
    assert_int_equal(ports_watch_links(&node), 0);
    assert_int_equal(port.line_rate_bps, 1000000000);
}

/* --- margins: a safe guess first, then what the last starts needed --- */

/* Times that starts needed, each so many times, and the resulting margins. */
TEST_ROWS(margins_follow_what_starts_needed, "margin")
{
    const char *at = row->fields[0];
    struct start_margin margin;
    long long needed_us, hasty_us, careful_us;
    unsigned times;

    start_margin_init(&margin, true);
    for (int more; sscanf(at, "%u x %lld,%n", &times, &needed_us, &more) == 2; at += more)
        for (unsigned i = 0; i < times; i++)
            start_margin_note(&margin, needed_us * NS_PER_US);
    assert_int_equal(sscanf(row->fields[1], "%lld %lld", &hasty_us, &careful_us), 2);
    assert_int_equal(start_margin_next(&margin, true), hasty_us * NS_PER_US);
    assert_int_equal(start_margin_next(&margin, false), careful_us * NS_PER_US);
}

TEST(nodes_that_poll_start_sooner)
{
    struct start_margin margin;

    start_margin_init(&margin, false);
    assert_int_equal(start_margin_next(&margin, true), 2 * NS_PER_MS);
    start_margin_note(&margin, 1);
    assert_int_equal(start_margin_next(&margin, false), 500 * NS_PER_US);
}

/* --- interval marks --- */

#define STEP (100 * NS_PER_MS)
#define OPEN (5 * NS_PER_S)
#define FLOWS 3

static struct lane_flow flows[FLOWS];
static struct interval_grid grid = {.open_ns = OPEN, .step_ns = STEP};

static int64_t mark(struct interval_ring *ring, int64_t at_ns, uint64_t bytes)
{
    for (unsigned i = 0; i < FLOWS; i++)
        flows[i].side.live.payload_bytes = bytes + i;
    return interval_ring_mark(ring, &grid, flows, at_ns, UINT32_MAX);
}

static void expect(struct interval_ring *ring, uint32_t number, int64_t at_ns, uint64_t bytes)
{
    const struct interval_mark *first = interval_ring_first(ring);

    assert_non_null(first);
    assert_int_equal(first->number, number);
    assert_int_equal(first->at_ns, at_ns);
    for (unsigned i = 0; i < FLOWS; i++)
        assert_int_equal(first->bytes[i], bytes + i);
    interval_ring_drop(ring);
}

/* When a worker polls, when it has to poll again, and the mark that it makes; CLOCK_NEVER as its
 * time: none. A worker that slept over marks makes one of them, and returns to the grid. */
TEST(marks_are_on_a_grid)
{
    static const struct {
        int64_t close_ns;
        struct {
            int64_t at_ns, next_ns;
            int64_t number; /* -1: no mark */
        } marks[4];
    } cases[] = {
        {OPEN + 2 * STEP + STEP / 2,
         {{OPEN - 1, OPEN, -1}, /* warm-up */
          {OPEN + 3, OPEN + STEP, 0},
          {OPEN + STEP + 1, OPEN + 2 * STEP, 1},
          {OPEN + 2 * STEP, CLOCK_NEVER, 2}}}, /* no mark of the half step */
        {OPEN + 10 * STEP,
         {{OPEN - 1, OPEN, -1},
          {OPEN, OPEN + STEP, 0},
          {OPEN + 4 * STEP + 5, OPEN + 5 * STEP, 4},
          {OPEN + 99 * STEP, CLOCK_NEVER, 10}}},
    };

    for (EACH(c, cases)) {
        struct interval_ring *ring = interval_ring_make(FLOWS);

        grid.close_ns = c->close_ns;
        for (unsigned k = 0; k < 4; k++)
            assert_int_equal(mark(ring, c->marks[k].at_ns, 10 * k), c->marks[k].next_ns);
        for (unsigned k = 0; k < 4; k++)
            if (c->marks[k].number >= 0)
                expect(ring, (uint32_t)c->marks[k].number, c->marks[k].at_ns, 10 * k);
        assert_null(interval_ring_first(ring));
        interval_ring_free(ring);
    }
}

/* Marks without room in the ring are left out; marks in the ring are not changed. */
TEST(a_late_reader_finds_the_first_marks)
{
    struct interval_ring *ring = interval_ring_make(FLOWS);

    grid.close_ns = CLOCK_NEVER;
    for (uint32_t i = 0; i < INTERVAL_ROOM + 5; i++)
        assert_int_equal(mark(ring, OPEN + i * STEP, 1000 * i), OPEN + (i + 1) * STEP);
    expect(ring, 0, OPEN, 0);
    mark(ring, OPEN + 50 * STEP, 50000);
    for (uint32_t i = 1; i < INTERVAL_ROOM; i++)
        expect(ring, i, OPEN + i * STEP, 1000 * i);
    expect(ring, 50, OPEN + 50 * STEP, 50000);
    interval_ring_free(ring);
}
