/* SPDX-License-Identifier: BSD-3-Clause */
#include "battery.h"

#include "clock.h"
#include "counters.h"
#include "prober.h"
#include "schedule_executor.h"
#include "unit.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>

#define CONNECT_NS (10 * NS_PER_S)
#define SILENCE_NS (300 * NS_PER_MS)
#define LIMIT_NS (20 * NS_PER_S)
#define START_NS (100 * NS_PER_MS)
#define SLEEP_NS (500 * NS_PER_US)

static const struct battery_subject *subject;
static struct {
    int count;
    char **list;
} words; /* of the command line */
static struct port_conf confs[BATTERY_PORTS];
static uint16_t next_tag = 0x5b00;
struct transport_port *battery_ports[BATTERY_PORTS];

static bool can(unsigned ability)
{
    return transport_can(subject->transport, ability);
}

static bool counts_frames(void)
{
    return can(TRANSPORT_FRAMES);
}

/* The metrics that lanes of the phase publish; the newest value of a key counts. */
#define STORED_MAX 4096
static struct stored_blob {
    struct blob_key key;
    struct blob blob;
} stored[STORED_MAX];
static size_t stored_count;

static int publish(void *context, const struct blob_key *key, const struct blob *blob)
{
    assert_true(stored_count < STORED_MAX);
    stored[stored_count++] = (struct stored_blob){*key, *blob};
    return 0;
}

static int fetch(void *context, const struct blob_key *key, struct blob *blob)
{
    for (size_t i = stored_count; i-- > 0;)
        if (stored[i].key.src == key->src && stored[i].key.dst == key->dst &&
            stored[i].key.from_source == key->from_source && stored[i].key.piece == key->piece) {
            *blob = stored[i].blob;
            return 0;
        }
    return -EAGAIN;
}

/* "KEY=VALUE" */
static void set_option(struct phase *phase, const char *word)
{
    const struct option *option = subject->transport->options->options;
    char *data = (char *)(uintptr_t)phase->options;
    size_t key = strcspn(word, "=");
    const char *text = word + key + 1;
    uint64_t value = strtoull(text, NULL, 10);
    double real = (double)value;

    while (option->key != NULL &&
           (strlen(option->key) != key || strncmp(option->key, word, key) != 0))
        option++;
    if (option->key == NULL)
        fail_msg("there is no option %s", word);
    if (option->type == OPTION_TEXT) {
        snprintf(data + option->offset, option->size, "%s", text);
        return;
    }
    if (option->type == OPTION_WORD)
        while (strcmp(option->words[value], text) != 0)
            value++;
    memcpy(data + option->offset, option->type == OPTION_REAL ? (void *)&real : (void *)&value,
           option->size);
    if (option->given > 0)
        data[option->given] = true;
}

void battery_set(struct phase *phase, const char *options)
{
    char *copy = strdup(options != NULL ? options : ""), *rest = copy, *word;

    while ((word = strsep(&rest, " ")) != NULL)
        if (word[0] != '\0')
            set_option(phase, word);
    free(copy);
}

void battery_begin(struct battery_run *run)
{
    memset(run, 0, sizeof *run);
    run->duration_ns = 300 * NS_PER_MS;
    run->phase = (struct phase){
        .tag = next_tag++,
        .seed = 1,
        .traffic = TRAFFIC_STREAM,
        .sizes = {256},
        .size_count = 1,
        .load = {.rate_bps = subject->rate_bps > 0 ? (double)subject->rate_bps : 8e6},
        .options = run->options,
    };
    option_defaults(subject->transport->options->options, run->options);
    run->blob_exchange = (struct blob_exchange){run, publish, fetch};
    stored_count = 0;
    battery_set(&run->phase, subject->options);
    for (int i = 1; i < words.count; i++)
        if (strchr(words.list[i], '=') != NULL)
            set_option(&run->phase, words.list[i]);
}

void battery_add(struct battery_run *run, uint32_t src, uint32_t dst, enum pattern_role role)
{
    assert_true(run->flow_count < BATTERY_FLOWS);
    run->flows[run->flow_count++] = (struct battery_flow){.src = src, .dst = dst, .role = role};
}

const struct transport_secret battery_secret = {.key = {1, 2, 3}, .run_id = "battery"};

/* Make a port's request: its flows, with the partners' addresses. */
static struct lane_request request_of(struct battery_stage *stage, uint32_t rank)
{
    struct battery_run *run = stage->run;
    struct lane_request request = {
        .port = battery_ports[rank],
        .secret = run->secrets[rank] != NULL ? run->secrets[rank] : &battery_secret,
        .phase = &run->phase,
        .rank = rank,
        .ranks = (uint32_t)subject->ports,
        .flows = stage->flows[rank],
        .count = &run->counts[rank],
        .line_rate_bps = run->line_rate_bps,
        .blob_exchange = &run->blob_exchange,
        .sleeps = true,
    };

    for (uint32_t k = 0; k < 2 * run->flow_count; k++) { /* sent ones, then received ones */
        bool sends = k < run->flow_count;
        uint32_t i = sends ? k : k - (uint32_t)run->flow_count;
        const struct battery_flow *flow = &run->flows[i];

        if ((sends ? flow->src : flow->dst) != rank)
            continue;
        request.flows[request.send_count + request.receive_count] = (struct lane_flow){
            .src = flow->src,
            .dst = flow->dst,
            .role = flow->role,
            .share = flow->share,
            .number = i,
            .partner = flow->other[!sends].size > 0
                           ? flow->other[!sends]
                           : transport_address(subject->transport,
                                               battery_ports[sends ? flow->dst : flow->src])};
        *(sends ? &request.send_count : &request.receive_count) += 1;
    }
    return request;
}

void battery_use(const struct battery_subject *which)
{
    subject = which;
}

int battery_prepare(struct battery_stage *stage, uint32_t rank, struct err *err)
{
    struct lane_request request = request_of(stage, rank);
    struct battery_run *run = stage->run;

    if (run->plan != NULL && executor_make(&stage->executors[rank], &run->phase, run->plan, rank,
                                           request.ranks, err) != 0)
        fail_msg("executor: %s", err->text);
    request.executor = stage->executors[rank];
    return transport_prepare(subject->transport, &stage->lanes[rank], &request, err);
}

static void prepare(struct battery_stage *stage, struct battery_run *run)
{
    struct err err = {""};

    memset(stage, 0, sizeof *stage);
    stage->run = run;
    for (uint32_t rank = 0; rank < subject->ports; rank++)
        if (battery_prepare(stage, rank, &err) != 0)
            fail_msg("prepare: %s", err.text);
}

void battery_destroy(struct battery_stage *stage, uint32_t rank)
{
    if (stage->lanes[rank] != NULL)
        subject->transport->destroy(stage->lanes[rank]);
    stage->lanes[rank] = NULL;
    executor_free(stage->executors[rank]);
    stage->executors[rank] = NULL;
}

int battery_connect(struct battery_stage *stage, int64_t limit_ns, struct err *err)
{
    int64_t until_ns = clock_now() + limit_ns;
    bool waiting = true;

    while (waiting) {
        waiting = false;
        for (uint32_t rank = 0; rank < subject->ports; rank++) {
            int rc;

            err->text[0] = '\0';
            rc = subject->transport->connect(stage->lanes[rank], clock_now(), err);
            if (rc != 0 && rc != -EAGAIN)
                return rc;
            waiting = waiting || rc == -EAGAIN;
        }
        if (waiting && clock_now() >= until_ns)
            return -ETIMEDOUT;
        if (waiting)
            clock_sleep_until(clock_now() + SLEEP_NS);
    }
    return 0;
}

static void set_times(struct battery_run *run)
{
    struct phase *phase = &run->phase;

    phase->start_ns = clock_now() + START_NS;
    phase->open_ns = phase->start_ns + run->duration_ns / 4;
    phase->close_ns = phase->start_ns + run->duration_ns * 3 / 4;
    phase->stop_ns = phase->start_ns + run->duration_ns;
}

bool battery_over(const struct battery_stage *stage)
{
    bool sent = true, received = true;
    int64_t last_ns = stage->run->phase.start_ns, now_ns = clock_now();

    for (uint32_t rank = 0; rank < subject->ports; rank++) {
        const struct lane *lane = stage->lanes[rank];

        sent = sent && lane->tx_done;
        received = received && lane->rx_done;
        last_ns = lane->arrived_ns > last_ns ? lane->arrived_ns : last_ns;
        last_ns = lane->stopped_ns > last_ns ? lane->stopped_ns : last_ns;
    }
    return sent && (received || (!can(TRANSPORT_KNOWS_END) && now_ns - last_ns > SILENCE_NS));
}

/* Each worker has a core of its own, as the engine's have: the kernel keeps the order of what one
 * core sends, but not of what two send. */
static void stay_on_this_core(void)
{
    cpu_set_t core;
    int number = sched_getcpu();

    CPU_ZERO(&core);
    if (number < 0)
        return;
    CPU_SET((unsigned)number, &core);
    (void)pthread_setaffinity_np(pthread_self(), sizeof core, &core);
}

/* Return whether a worker that slept for this lane would be awake now. */
static bool is_woken(struct lane *lane)
{
    struct pollfd wake = {.fd = lane->wake_fd, .events = POLLIN};

    return poll(&wake, 1, 0) > 0;
}

int64_t battery_poll(struct battery_stage *stage)
{
    int64_t wake_ns = clock_now() + SLEEP_NS;

    for (uint32_t rank = 0; rank < subject->ports; rank++) {
        struct lane *lane = stage->lanes[rank];
        int64_t next_ns;

        if (lane == NULL)
            continue;
        lane->woken = is_woken(lane);
        stage->run->woken[rank] += lane->woken;
        next_ns = subject->transport->poll(lane, clock_now());
        if (subject->transport->account != NULL)
            subject->transport->account(lane, ACCOUNT_ALL);
        wake_ns = next_ns < wake_ns ? next_ns : wake_ns;
    }
    return wake_ns;
}

static void *work(void *context)
{
    struct battery_stage *stage = context;
    int64_t begun_ns = clock_now();

    stay_on_this_core();
    while (!battery_over(stage) && clock_now() - begun_ns < LIMIT_NS)
        clock_sleep_until(battery_poll(stage));
    return NULL;
}

struct latency battery_times[BATTERY_FLOWS][LATENCY_KINDS];

void battery_read(struct battery_stage *stage)
{
    for (uint32_t rank = 0; rank < subject->ports; rank++) {
        const struct lane *lane = stage->lanes[rank];

        for (uint32_t i = 0;
             lane != NULL && i < lane->request.send_count + lane->request.receive_count; i++) {
            const struct lane_flow *flow = &stage->flows[rank][i];
            struct battery_flow *of = &stage->run->flows[flow->number];

            *(i < lane->request.send_count ? &of->source : &of->destination) = flow->side;
        }
    }
}

const struct flow_reading *battery_reading(const struct transport *transport, struct lane *lane,
                                           const struct lane_flow *flow)
{
    static struct flow_reading reading;

    memset(&reading, 0, sizeof reading);
    transport->read_flow(lane, flow, &reading);
    return &reading;
}

double battery_metric(const struct flow_reading *reading, const char *name)
{
    for (unsigned i = 0; i < reading->metric_count; i++)
        if (strcmp(reading->metrics[i].name, name) == 0)
            return reading->metrics[i].value;
    return -1;
}

static void read_times(struct lane *lane)
{
    const struct lane_request *request = &lane->request;

    for (uint32_t i = 0; i < request->send_count + request->receive_count; i++) {
        const struct lane_flow *flow = &request->flows[i];
        const struct flow_reading *reading = battery_reading(subject->transport, lane, flow);

        for (int kind = 0; kind < LATENCY_KINDS; kind++)
            if (reading->measured[kind])
                battery_times[flow->number][kind] = reading->latency[kind];
    }
}

static void finish(struct battery_stage *stage)
{
    memset(battery_times, 0, sizeof battery_times);
    battery_read(stage);
    for (uint32_t rank = 0; rank < subject->ports; rank++) {
        struct lane *lane = stage->lanes[rank];

        if (lane->error.text[0] != '\0')
            fail_msg("lane: %s", lane->error.text);
        assert_true(lane->tx_done || subject->drops);
        assert_true(lane->started_ns >= stage->run->phase.start_ns);
        read_times(lane);
        if (stage->run->look != NULL)
            stage->run->look(stage->run, rank, lane);
        battery_destroy(stage, rank);
    }
}

void battery_play(struct battery_run *run)
{
    static struct battery_stage stage;
    struct err err = {""};
    pthread_t worker;

    prepare(&stage, run);
    if (battery_connect(&stage, CONNECT_NS, &err) != 0)
        fail_msg("connect: %s", err.text);
    set_times(run);
    assert_int_equal(pthread_create(&worker, NULL, work, &stage), 0);
    pthread_join(worker, NULL);
    finish(&stage);
}

void battery_whole(const struct battery_run *run, uint64_t least)
{
    for (size_t i = 0; i < run->flow_count; i++) {
        const struct flow_side *from = &run->flows[i].source, *to = &run->flows[i].destination;
        uint64_t offered = counts_frames() ? from->live.frames : from->live.payload_bytes;

        assert_true(offered >= (subject->emulated ? 1 : least));
        assert_int_equal(to->live.frames, from->live.frames);
        assert_int_equal(to->live.frame_bytes, from->live.frame_bytes);
        assert_int_equal(to->live.payload_bytes, from->live.payload_bytes);
        assert_int_equal(to->live.messages, from->live.messages);
        assert_int_equal(to->duplicated + to->reordered + to->late + to->corrupted, 0);
        assert_true(from->first_ns > 0 && from->last_ns >= from->first_ns);
        assert_true(to->first_ns >= from->first_ns && to->last_ns >= to->first_ns);
    }
    for (size_t i = 0; i < subject->ports; i++)
        assert_int_equal(run->counts[i].misdelivered, 0);
}

struct port_hardware battery_hardware(size_t port)
{
    struct port_facts facts;

    subject->transport->facts(battery_ports[port], &facts, true);
    return facts.hardware;
}

/* Flows between neighbouring ports both ways, between all ports, and through all ports. */
enum flows { PAIRS, ALL, CHAIN };

static struct battery_run run; /* of the case */

static void begin_case(enum flows flows)
{
    uint32_t ports_count = (uint32_t)subject->ports;

    battery_begin(&run);
    for (uint32_t src = 0; src < ports_count; src++)
        for (uint32_t dst = 0; dst < ports_count; dst++)
            if (flows == CHAIN ? src + 1 == dst : flows == ALL ? src != dst : (src ^ 1) == dst)
                battery_add(&run, src, dst,
                            flows == CHAIN && src > 0 ? PATTERN_FORWARD : PATTERN_GENERATE);
}

/* A percentile is the value at its rank in the sample, and no time is longer than the run. */
static void check_times(const struct latency *latency, uint64_t least_count)
{
    const struct histogram *times = &latency->histogram;

    assert_true(times->count >= (subject->emulated ? 1 : least_count));
    assert_true(times->min_ns <= histogram_quantile(times, 0.5));
    assert_true(histogram_quantile(times, 0.5) <= histogram_quantile(times, 0.99));
    assert_true(histogram_quantile(times, 0.99) <= times->max_ns);
    assert_true(times->max_ns < (uint64_t)(subject->emulated ? LIMIT_NS : NS_PER_S));
    assert_int_equal(times->beyond, 0);
}

/* --- phases: what each must show follows from what it is ---------------------------------------*/

static const struct row {
    const char *what;
    enum flows flows;
    uint64_t least; /* frames of a flow (tcp: payload bytes) */
    enum traffic traffic;
    int64_t duration_ms; /* 0: as usual */
    uint64_t bytes;      /* of a transfer */
    double probe_fps;
    uint64_t line_rate_bps;
    double fps; /* a load in frames or messages, of which flows to port 0 have 3/4; 0: the usual */
    bool all_sizes, stamps;
    bool of_frames; /* for transports that count them */
} rows[] = {
    {"to one partner", PAIRS, .least = 100},
    {"what a phase leaves behind is not the next one's", PAIRS, .least = 100},
    {"to all", ALL, .least = 50},
    {"shares of a load in frames", ALL, 10, .fps = 1000},
    {"all sizes in one stream", PAIRS, 10, .all_sizes = true},
    {"a transfer", PAIRS, 1, TRAFFIC_TRANSFER, 10000, .bytes = 100001},
    {"which does not end before its probes are back", PAIRS, 1, TRAFFIC_TRANSFER, 10000, 200000,
     500, .stamps = true, .of_frames = true},
    {"a connectivity check", ALL, 5, TRAFFIC_PROBE, 5000, .line_rate_bps = 10000000},
    {"probes beside a load, and stamps", PAIRS, 100, TRAFFIC_STREAM, 1000, 0, 200, .stamps = true},
    {"probes on top of the load", PAIRS, 1, TRAFFIC_STREAM, 300, 0, 500, 100000000,
     .of_frames = true},
    {"where the line has no room for both", PAIRS, 1, TRAFFIC_STREAM, 300, 0, 500, 8000000,
     .of_frames = true},
    {"a chain", CHAIN, .least = 100},
    {"a chain of all sizes", CHAIN, 10, .all_sizes = true},
};

#define CHECKS 5 /* of a connectivity check */

/* Give each port's flow to the lowest rank 3/4 of the port's load, where there are others. */
static void set_shares(double fps)
{
    run.phase.load = (struct load){.rate_fps = fps};
    run.phase.in_turn = true; /* as all patterns with shares */
    for (size_t i = 0; i < run.flow_count; i++) {
        struct battery_flow *flow = &run.flows[i];

        flow->share = subject->ports == 2             ? 1
                      : flow->dst == (flow->src == 0) ? 0.75
                                                      : 0.25 / (double)(subject->ports - 2);
    }
}

/* The intended load was offered, except for what a busy machine prevented. Probes are additional;
 * the load yields to them where the line is full. */
static void check_load(const struct battery_flow *flow)
{
    uint64_t offered = counts_frames() ? flow->source.live.frames : flow->source.live.payload_bytes;
    uint64_t intended = flow->source.intended, probes = run.counts[flow->src].probes_sent;
    double bits = 8.0 * (run.phase.sizes[0] + FRAME_OVERHEAD_L1);

    assert_true(offered <= intended);
    assert_true(offered >= intended / 2 || subject->emulated || run.phase.latency.probe_fps > 0);
    if (run.line_rate_bps > 0)
        assert_float_equal((double)intended + ((double)run.line_rate_bps > run.phase.load.rate_bps
                                                   ? 0
                                                   : (double)probes),
                           run.phase.load.rate_bps / bits * (double)run.duration_ns / NS_PER_S, 5);
}

/* Probes return beside a load, which does not count them. */
static void check_probes(const struct row *row, size_t flow)
{
    const struct latency *times = battery_times[flow], *trip = &times[LATENCY_ROUND_TRIP];
    uint64_t due = (uint64_t)((run.phase.close_ns - run.phase.open_ns) * row->probe_fps / NS_PER_S);
    uint64_t arrived = run.flows[flow].destination.live.frames;
    bool ends_early = row->traffic == TRAFFIC_TRANSFER;

    check_times(trip, ends_early ? 20 : due / 2);
    assert_in_range(trip->sent, trip->histogram.count, ends_early ? UINT64_MAX : due * 2);
    assert_true(subject->gives_up || trip->sent == trip->histogram.count);
    assert_true(trip->histogram.min_ns > 1000);
    if (!run.phase.latency.stamps)
        return;
    check_times(&times[LATENCY_ONE_WAY], 50);
    assert_in_range(times[LATENCY_ONE_WAY].histogram.count, ends_early ? arrived : 50, arrived);
}

static void play_row(const struct row *row)
{
    begin_case(row->flows);
    run.phase.traffic = row->traffic;
    run.phase.transfer_bytes = row->bytes;
    run.phase.probes = row->traffic == TRAFFIC_PROBE ? CHECKS : 0;
    run.phase.latency = (struct latency_options){.probe_fps = row->probe_fps,
                                                 .stamps = row->stamps && counts_frames()};
    run.line_rate_bps = row->line_rate_bps;
    if (row->duration_ms > 0)
        run.duration_ns = row->duration_ms * NS_PER_MS;
    for (uint32_t i = 0; row->all_sizes && i < BATTERY_SIZES && subject->sizes[i] != 0; i++) {
        run.phase.sizes[i] = subject->sizes[i];
        run.phase.size_count = i + 1;
    }
    if (row->all_sizes)
        run.phase.load.rate_bps *= 2;
    if (row->fps > 0)
        set_shares(row->fps);
    battery_play(&run);
    battery_whole(&run, row->least);
    for (size_t i = 0; i < run.flow_count; i++) {
        const struct flow_count *came = &run.flows[i].destination.live;

        if (row->traffic == TRAFFIC_STREAM && !row->all_sizes && row->flows != CHAIN)
            check_load(&run.flows[i]);
        if (row->fps > 0) {
            const double unit = counts_frames() ? 1 : run.phase.sizes[0];
            const double due = row->fps * run.flows[i].share * (double)run.duration_ns / NS_PER_S;

            assert_float_equal((double)run.flows[i].source.intended, due * unit,
                               (2 + due / 50) * unit);
        }
        if (row->traffic == TRAFFIC_TRANSFER)
            assert_in_range(came->payload_bytes, row->bytes,
                            row->bytes + (counts_frames() ? run.phase.sizes[0] : 0));
        if (row->traffic == TRAFFIC_TRANSFER && !counts_frames())
            assert_int_equal(run.flows[i].source.intended, row->bytes);
        if (row->traffic == TRAFFIC_PROBE)
            assert_int_equal(came->frames + came->messages, CHECKS);
        if (row->flows == CHAIN)
            assert_int_equal(came->payload_bytes, run.flows[0].source.live.payload_bytes);
        if (row->probe_fps > 0)
            check_probes(row, i);
    }
    for (size_t i = 0; i < subject->ports; i++)
        assert_true(run.counts[i].probes_sent == 0 || run.counts[i].probes_received > 0);
}

static void each_row_keeps_its_laws(void **state)
{
    for (EACH(row, rows)) {
        if ((row->of_frames && !counts_frames()) || (row->flows == CHAIN && subject->ports < 3))
            continue;
        print_message("%s\n", row->what);
        play_row(row);
    }
    for (uint32_t i = 0; i < BATTERY_SIZES && subject->sizes[i] != 0; i++) {
        begin_case(PAIRS);
        run.phase.sizes[0] = subject->sizes[i];
        battery_play(&run);
        battery_whole(&run, 10);
    }
}

/* A load without a limit, both ways at once; the second time over the first one's connections. The
 * ports' own counters show at least what was sent. */
static void case_unlimited(void **state)
{
    for (unsigned turn = 0; turn < 2; turn++) {
        int64_t sent = -BATTERY_COUNTER(0, sent_frames);

        battery_begin(&run);
        run.phase.load = (struct load){.unlimited = true};
        run.phase.sizes[0] = subject->back_most > 0 ? 1000 : 65536;
        run.duration_ns = subject->emulated ? NS_PER_S : run.duration_ns;
        battery_add(&run, 0, 1, PATTERN_GENERATE);
        battery_add(&run, 1, 0, PATTERN_GENERATE);
        battery_play(&run);
        sent += BATTERY_COUNTER(0, sent_frames);
        if (!subject->gives_up)
            battery_whole(&run, subject->unlimited);
        for (size_t i = 0; i < run.flow_count; i++) {
            const struct flow_side *from = &run.flows[i].source, *to = &run.flows[i].destination;

            assert_int_equal(to->corrupted, 0);
            assert_true(to->live.messages * 2 > from->live.messages);
        }
        assert_true((uint64_t)sent * subject->counted_bytes >=
                    run.flows[0].source.live.payload_bytes);
    }
}

/* --- messages there and back --- */

static bool came_back(uint64_t count, uint64_t sent)
{
    return count == sent || (subject->gives_up && count < sent && count >= sent * 3 / 4);
}

/* Every message arrived once and undamaged, returned, and took a plausible time. */
static void case_pingpong(void **state)
{
    static const uint32_t sizes[] = {4, 100, 1400, 4096, 1 << 20};

    for (EACH(size, sizes)) {
        if (subject->back_most > 0 && *size > subject->back_most)
            continue;
        begin_case(PAIRS);
        run.phase.traffic = TRAFFIC_PINGPONG;
        run.phase.messages = true;
        run.phase.latency.stamps = true; /* ping-pong measures no delays of its own */
        battery_set(&run.phase, subject->waiting);
        run.phase.sizes[0] = *size;
        if (subject->emulated || *size > 1 << 16) /* there are several */
            run.duration_ns = (subject->emulated && *size > 1 << 16 ? 8 : 2) * NS_PER_S;
        battery_play(&run);
        if (!subject->gives_up)
            battery_whole(&run, 1);
        for (size_t f = 0; f < run.flow_count; f++) {
            const struct latency *times = &battery_times[f][LATENCY_PINGPONG];

            assert_true(times->histogram.count > 0 && times->histogram.min_ns > 0);
            assert_true(came_back(times->histogram.count, times->sent));
            assert_true(times->histogram.max_ns < (uint64_t)run.duration_ns);
            assert_int_equal(battery_times[f][LATENCY_ONE_WAY].histogram.count, 0);
            assert_int_equal(run.flows[f].source.live.payload_bytes % *size, 0);
            assert_int_equal(run.flows[f].destination.corrupted, 0);
        }
    }
}

/* --- schedules --- */

#define REPETITIONS 2u
#define BATCH 2u

static void look_at_execution(struct battery_run *played, uint32_t rank, struct lane *lane)
{
    const struct execution *execution = &lane->request.executor->execution;

    assert_int_equal(execution->repetitions, REPETITIONS);
    assert_in_range(execution->verified, counts_frames() ? 0 : REPETITIONS / BATCH,
                    counts_frames() ? 0 : REPETITIONS);
    assert_true(execution->sum_ns > 0);
}

/* Steps that wait for each other, with messages from no bytes to more than is ever in flight. */
static void case_schedule(void **state)
{
    static const uint64_t sizes[] = {0, 8, 5000, 1200000};

    for (EACH(size, sizes)) {
        const struct pattern_request request = {
            .name = "aapc", .n = (uint32_t)subject->ports, .local = true, .bytes = *size};
        char why[256] = "";

        begin_case(ALL);
        battery_set(&run.phase, subject->waiting);
        run.phase.traffic = TRAFFIC_SCHEDULE;
        run.phase.schedule = (struct schedule_options){
            .count = REPETITIONS, .batch = BATCH, .warmup = 1, .compute = !counts_frames()};
        run.look = look_at_execution;
        if (pattern_plan_make(&run.plan, &request, why, sizeof why) != 0)
            fail_msg("%s", why);
        battery_play(&run);
        if (*size > 0)
            battery_whole(&run, 1);
        for (size_t f = 0; f < run.flow_count; f++)
            assert_int_equal(run.flows[f].destination.live.messages, REPETITIONS + BATCH);
        pattern_plan_free(run.plan);
    }
}

/* --- what is refused, and a port's facts --- */

static void spoil(struct phase *phase, const struct battery_refusal *refusal)
{
    battery_set(phase, refusal->options);
    if (refusal->size > 0)
        phase->sizes[0] = refusal->size;
    if (refusal->no_load)
        phase->load = (struct load){.rate_bps = 0};
    phase->messages = refusal->message;
    if (refusal->message || refusal->schedule)
        phase->traffic = refusal->message ? TRAFFIC_PINGPONG : TRAFFIC_SCHEDULE;
}

static void case_refusals(void **state)
{
    static struct battery_stage stage;
    for (const struct battery_refusal *at = subject->refusals; at->says != NULL; at++) {
        struct err err = {""};

        begin_case(at->forwards && !at->message ? ALL : PAIRS);
        spoil(&run.phase, at);
        for (size_t i = 0; i < run.flow_count; i++)
            run.flows[i].role = at->forwards ? PATTERN_FORWARD : PATTERN_GENERATE;
        stage.run = &run;
        assert_true(battery_prepare(&stage, 0, &err) < 0);
        assert_says(err.text, at->says);
    }
}

static const struct transport_run named = {.run_id = "battery", .node = "battery"};

static void case_closed(void **state)
{
    for (const struct battery_closed *at = subject->closed; at->says != NULL; at++) {
        struct transport_port *port = NULL;
        struct port_conf conf = at->conf;
        struct err err = {""};

        conf.name = "n:e0";
        if (conf.netns == NULL)
            conf.netns = confs[0].netns;
        assert_true(transport_open(subject->transport, &port, &conf, &named, &err) < 0);
        assert_null(port);
        assert_says(err.text, at->says);
    }
}

/* An overload of a receiver: the senders' counts equal what arrived and what the receiving host
 * counts as dropped. */
static void case_overrun(void **state)
{
    int64_t dropped = -BATTERY_COUNTER(1, dropped_receive);
    uint64_t lost = 0, received = 0;

    battery_begin(&run);
    run.phase.load = (struct load){.unlimited = true};
    battery_set(&run.phase, subject->overrun);
    for (uint32_t rank = 0; rank < subject->ports; rank++)
        if (rank != 1)
            battery_add(&run, rank, 1, PATTERN_GENERATE);
    battery_play(&run);
    dropped += BATTERY_COUNTER(1, dropped_receive);
    for (size_t i = 0; i < run.flow_count; i++) {
        const struct flow_side *to = &run.flows[i].destination;

        lost += run.flows[i].source.live.frames - to->live.frames;
        received += to->live.frames;
        assert_int_equal(to->duplicated + to->reordered + to->late + to->corrupted, 0);
    }
    assert_true(received > 100 && lost > 0);
    assert_int_equal(dropped, lost);
}

static void case_facts(void **state)
{
    for (size_t i = 0; i < subject->ports; i++) {
        struct port_facts facts;

        subject->transport->facts(battery_ports[i], &facts, true);
        assert_true(facts.link_up && facts.hardware.dropped_receive <= 0);
        assert_true(facts.hardware.dropped_send <= 0 || subject->drops);
    }
}

static void case_more(void **state)
{
    subject->more(battery_ports, confs);
}

static int open_ports(void **state)
{
    for (size_t i = 0; i < subject->ports; i++) {
        struct err err = {""};

        if (transport_open(subject->transport, &battery_ports[i], &confs[i], &named, &err) != 0) {
            print_error("open: %s\n", err.text);
            return -1;
        }
    }
    return 0;
}

static int close_ports(void **state)
{
    for (size_t i = 0; i < subject->ports; i++)
        if (battery_ports[i] != NULL)
            subject->transport->close(battery_ports[i]);
    return 0;
}

static int run_cases(void)
{
    const struct {
        const char *name;
        CMUnitTestFunction function;
        bool left_out;
    } cases[] = {
        {"each row", each_row_keeps_its_laws, subject->only_more},
        {"unlimited", case_unlimited, subject->only_more || subject->unlimited == 0},
        {"ping-pong", case_pingpong, subject->only_more},
        {"schedule", case_schedule,
         subject->only_more || subject->no_steps || !can(TRANSPORT_KNOWS_END)},
        {"refusals", case_refusals, subject->refusals == NULL},
        {"closed", case_closed, subject->closed == NULL},
        {"facts", case_facts, false},
        {"more", case_more, subject->more == NULL},
        {"overrun", case_overrun, subject->overrun == NULL},
    };
    struct CMUnitTest tests[COUNT(cases)];
    size_t count = 0;

    for (EACH(c, cases))
        if (!c->left_out)
            tests[count++] = (struct CMUnitTest){.name = c->name, .test_func = c->function};
    /* The macro's function needs an array of known length. */
    return _cmocka_run_group_tests(subject->what, tests, count, open_ports, close_ports);
}

bool battery_word(int argc, char **argv, const char *word)
{
    int i = 1;

    while (i < argc && strcmp(argv[i], word) != 0)
        i++;
    return i < argc;
}

int battery_main(const struct battery_subject *which, int argc, char **argv)
{
    const char *reason;

    words.count = argc;
    words.list = argv;
    subject = which;
    if ((reason = subject->make(confs)) != NULL) {
        printf("skipped: %s: %s\n", subject->what, reason);
        return 77;
    }
    return run_cases() == 0 ? 0 : 1;
}
