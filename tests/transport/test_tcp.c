/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport: ports of this process on loopback addresses or, with root, in namespaces on
 * one bridge, driven by one thread that does the work of the main thread and the workers. The
 * battery (tests/transport/tcp.c) covers the functions of all transports.
 */
#include "battery.h"
#include "clock.h"
#include "netlab.h"
#include "schedule_executor.h"
#include "tcp/tcp_lane.h"
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define LIMIT_NS (20 * NS_PER_S)
#define ADDRESS_AT 4 /* places of address and TCP port in the transport's blob */
#define PORT_AT 2

extern const struct transport transport_tcp;

static struct battery_subject subject = {.transport = &transport_tcp};
static struct battery_run run;
static struct battery_stage stage = {.run = &run};
static unsigned descriptors;
static int64_t stream_ns;
static struct err err;

static struct tcp_options *options(void)
{
    return (struct tcp_options *)run.options;
}

static unsigned open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* Open a rank's port, in a namespace or at its loopback address. */
static void open_port(uint32_t i, const char *netns, const char *address)
{
    static const struct transport_run named = {.run_id = "test", .node = "node"};
    static struct port_conf confs[BATTERY_PORTS];
    static char names[BATTERY_PORTS][2][24];

    if (battery_ports[i] != NULL)
        transport_tcp.close(battery_ports[i]);
    snprintf(names[i][0], sizeof names[i][0], "node%u:lo", i);
    snprintf(names[i][1], sizeof names[i][1], "127.0.0.%u", i + 2);
    confs[i] = (struct port_conf){.name = names[i][0],
                                  .netns = netns,
                                  .iface = netns != NULL ? "eth0" : NULL,
                                  .tcp_address = netns != NULL ? address : names[i][1]};
    if (transport_open(&transport_tcp, &battery_ports[i], &confs[i], &named, &err) != 0)
        fail_msg("open: %s", err.text);
}

static void open_bed(uint32_t ranks, bool namespaces)
{
    descriptors = open_descriptors();
    stream_ns = 200 * NS_PER_MS;
    subject.ports = ranks;
    battery_use(&subject);
    battery_begin(&run);
    run.phase.traffic = TRAFFIC_TRANSFER;
    run.phase.transfer_bytes = 1000000;
    run.phase.sizes[0] = 65536;
    run.phase.load = (struct load){.unlimited = true};
    for (uint32_t i = 0; i < ranks; i++)
        open_port(i, namespaces ? netlab_namespace(i) : NULL, NULL);
}

static struct blob address_of(uint32_t rank)
{
    return transport_address(&transport_tcp, battery_ports[rank]);
}

static struct battery_flow *add(uint32_t src, uint32_t dst, enum pattern_role role)
{
    battery_add(&run, src, dst, role);
    return &run.flows[run.flow_count - 1];
}

/* End the phase, and its flows. */
static void finish(void)
{
    for (uint32_t i = 0; i < subject.ports; i++)
        battery_destroy(&stage, i);
    run.phase.number++;
    run.flow_count = 0;
}

static int prepare(void)
{
    int rc = 0;

    err.text[0] = '\0';
    for (uint32_t i = 0; rc == 0 && i < subject.ports; i++)
        rc = battery_prepare(&stage, i, &err);
    return rc;
}

static int connect_rank(uint32_t rank, int64_t later_ns)
{
    err.text[0] = '\0';
    return transport_tcp.connect(stage.lanes[rank], clock_now() + later_ns, &err);
}

static int connect_all(int64_t limit_ns)
{
    return battery_connect(&stage, limit_ns, &err);
}

static void poll_all(void)
{
    battery_poll(&stage);
    battery_read(&stage);
}

static void start(void)
{
    struct phase *phase = &run.phase;

    phase->open_ns = phase->start_ns = clock_now() + 2 * NS_PER_MS;
    phase->close_ns = phase->stop_ns =
        phase->start_ns + (phase->traffic == TRAFFIC_STREAM ? stream_ns : 60 * NS_PER_S);
    poll_all();
}

static void ready_to_run(void)
{
    if (prepare() != 0 || connect_all(LIMIT_NS) != 0)
        fail_msg("not ready: %s", err.text);
    start();
}

/* Poll until a condition holds. */
#define POLL_UNTIL(condition)                                                                      \
    for (int64_t until_ns = clock_now() + LIMIT_NS; !(condition);) {                               \
        assert_true(clock_now() < until_ns);                                                       \
        poll_all();                                                                                \
    }

static const char *error_of(uint32_t rank)
{
    return stage.lanes[rank] != NULL ? stage.lanes[rank]->error.text : "";
}

static void run_on(void)
{
    POLL_UNTIL(battery_over(&stage))
    for (uint32_t i = 0; i < subject.ports; i++)
        assert_string_equal(error_of(i), "");
}

/* Run to the end: everything sent has arrived, and is right. */
static void run_whole(void)
{
    run_on();
    battery_read(&stage);
    battery_whole(&run, 1);
}

static void play(void)
{
    ready_to_run();
    run_whole();
}

/* Prepared lanes connect, run completely and end: nothing delayed them. */
static void is_not_held_up(void)
{
    assert_int_equal(connect_all(LIMIT_NS), 0);
    start();
    run_whole();
    finish();
}

static void check_refusal(int rc, int code, const char *words)
{
    assert_int_equal(rc, code);
    assert_says(err.text, words);
}

static int setup(void **state)
{
    open_bed(4, false);
    return 0;
}

/* Every test also checks that it leaves no descriptor open. */
static int teardown(void **state)
{
    finish();
    pattern_plan_free(run.plan);
    for (uint32_t i = 0; i < BATTERY_PORTS; i++) {
        if (battery_ports[i] != NULL)
            transport_tcp.close(battery_ports[i]);
        battery_ports[i] = NULL;
    }
    return open_descriptors() == descriptors ? 0 : -1;
}

#define TCP(name) TEST_BETWEEN(name, setup, teardown)

static double metric_of(uint32_t rank, const char *name)
{
    struct lane *lane = stage.lanes[rank];

    return battery_metric(battery_reading(&transport_tcp, lane, lane->request.flows), name);
}

/* --- streams --- */

TCP(options_are_used)
{
    add(0, 1, PATTERN_GENERATE);
    *options() = (struct tcp_options){
        .streams = 1, .send_buffer = 65536, .receive_buffer = 100000, .congestion = "reno"};
    play();
    assert_string_equal(stage.lanes[0]->variant, "congestion control reno");
    assert_int_equal((int)metric_of(0, "send_buffer_bytes"), 131072);
    assert_int_equal((int)metric_of(1, "receive_buffer_bytes"), 200000);
    assert_int_equal((int)metric_of(1, "send_buffer_bytes"), -1);
}

/* While the tail does not read, the head must stop: no rank buffers without a limit. */
TCP(a_chain_slows_its_head)
{
    const uint64_t *sent = &stage.flows[0][0].side.live.payload_bytes;
    uint64_t before = 0;
    int64_t begun_ns = clock_now(), moved_ns = begun_ns;

    for (uint32_t i = 0; i < 3; i++)
        add(i, i + 1, i == 0 ? PATTERN_GENERATE : PATTERN_FORWARD);
    run.phase.traffic = TRAFFIC_STREAM;
    stream_ns = 20 * NS_PER_S;
    options()->send_buffer = options()->receive_buffer = 100000;
    ready_to_run();
    while (before == 0 || clock_now() < moved_ns + 300 * NS_PER_MS) {
        for (uint32_t i = 0; i < 3; i++)
            transport_tcp.poll(stage.lanes[i], clock_now());
        moved_ns = *sent == before ? moved_ns : clock_now();
        before = *sent;
        assert_true(moved_ns < begun_ns + stream_ns / 2);
    }
    for (uint32_t i = 0; i < 4; i++)
        stage.lanes[i]->stop_ns = clock_now();
    run_whole();
}

/* The receiver dies in the middle of the stream; or when everything with the end mark is written
 * but not all has arrived, so that the rest is never acknowledged; or the sender dies. The next
 * phase is not affected. */
TCP(a_partner_dies)
{
    enum { MID_STREAM, WRITTEN, SENDER };

    for (uint32_t how = MID_STREAM; how <= SENDER; how++) {
        const struct battery_flow *flow = add(0, 1, PATTERN_GENERATE);
        uint32_t dead = how == SENDER ? 0 : 1, left = 1 - dead;

        run.phase.transfer_bytes = how == WRITTEN ? 150000 : UINT64_C(1) << 40;
        options()->receive_buffer = how == WRITTEN ? 1 : 0;
        options()->send_buffer = how == WRITTEN ? 200000 : 0;
        ready_to_run();
        while (how == WRITTEN && stage.lanes[0]->stopped_ns == 0)
            transport_tcp.poll(stage.lanes[0], clock_now());
        POLL_UNTIL(how == WRITTEN || flow->destination.live.payload_bytes >= 1000000)
        assert_int_equal(flow->destination.corrupted, 0);
        battery_destroy(&stage, dead);
        POLL_UNTIL(error_of(left)[0] != '\0')
        assert_says(error_of(left), dead == 1 ? "(rank 1) broke" : "(rank 0) broke");
        assert_false(stage.lanes[left]->tx_done && stage.lanes[left]->rx_done);
        assert_int_equal(transport_tcp.poll(stage.lanes[left], clock_now()), CLOCK_NEVER);
        finish();
    }
    add(0, 1, PATTERN_GENERATE);
    run.phase.transfer_bytes = 1000000;
    play();
}

/* --- without the key --- */

static const uint8_t nonsense[1000] = "GET / HTTP/1.0\r\n\r\n";

static uint64_t rejected_by(uint32_t rank, const char *because)
{
    struct port_facts facts;

    transport_tcp.facts(battery_ports[rank], &facts, false);
    if (facts.rejected > 0)
        assert_says(facts.last_rejected, because);
    return facts.rejected;
}

static int call(struct blob blob)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memcpy(&address.sin_port, blob.bytes + PORT_AT, sizeof address.sin_port);
    memcpy(&address.sin_addr, blob.bytes + ADDRESS_AT, sizeof address.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Hundreds of foreign connections. Silent ones take the places of half-open connections, up to a
 * limit, until they were silent for a second; those that send garbage or have closed already are
 * rejected, 64 in a turn and as many that were accepted before. The others wait in the backlog,
 * where they wake no thread. The flow's own connection gets its place, and the port counts the
 * rejected ones. */
TCP(strangers_hold_up_nobody)
{
    static const struct {
        unsigned count, half_open, turns;
        uint64_t least, most; /* rejected in a turn */
        bool silent;
    } cases[] = {{700, 512, 1, 0, 0, true}, {500, 4096, 3, 64, 128, false}};
    static int strangers[700];

    for (EACH(c, cases)) {
        const int64_t now_ns = clock_now();
        struct pollfd waits = {.events = POLLIN};
        struct transport_port *port;

        open_port(1, NULL, NULL);
        port = battery_ports[1];
        waits.fd = port->epoll;
        port->half_open_most = c->half_open;
        for (unsigned i = 0; i < c->count; i++) {
            strangers[i] = call(address_of(1));
            if (!c->silent && i % 2 > 0)
                assert_true(send(strangers[i], nonsense, sizeof nonsense, MSG_NOSIGNAL) > 0);
            else if (!c->silent)
                shutdown(strangers[i], SHUT_WR);
        }
        add(0, 1, PATTERN_GENERATE);
        assert_int_equal(prepare(), 0);
        assert_int_equal(poll(&waits, 1, 0), 1);
        for (unsigned turn = 0; turn < c->turns; turn++) {
            const uint64_t before = port->ip.facts.rejected;

            for (unsigned i = 0; i < 20; i++)
                assert_int_equal(
                    transport_tcp.connect(stage.lanes[1], now_ns + turn * 16 * NS_PER_MS, &err),
                    -EAGAIN);
            assert_in_range(port->ip.facts.rejected - before, c->least, c->most);
            assert_int_equal(poll(&waits, 1, 0), 0);
        }
        assert_true(port->half_open <= c->half_open);
        is_not_held_up();
        if (c->silent) {
            assert_in_range(port->ip.facts.rejected, 700 - 512, 700);
            clock_sleep_until(clock_now() + NS_PER_S); /* the remaining ones are as silent, too */
            assert_int_equal(rejected_by(1, "it sent no proof of the run's key in time"), 700);
        }
        for (unsigned i = 0; i < c->count; i++)
            close(strangers[i]);
    }
    assert_int_equal(rejected_by(0, ""), 0);
}

/* The main thread was away for seconds, and more claims wait than it reads in a turn; or a flow's
 * own claim comes later than its partner waits while many connect, and the source connects again.
 */
TCP(a_late_claim_counts)
{
    for (unsigned late = 0; late < 2; late++) {
        struct transport_port *port;
        int silent;

        open_port(1, NULL, NULL);
        port = battery_ports[1];
        add(0, 1, PATTERN_GENERATE);
        options()->streams = late ? 1 : 100;
        assert_int_equal(prepare(), 0);
        assert_int_equal(connect_rank(0, 0), -EAGAIN);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(connect_rank(1, 0), -EAGAIN);
        if (!late)
            assert_int_equal(connect_rank(0, 0), -EAGAIN);
        port->half_open_most = late ? 1 : 20;
        silent = call(address_of(1));
        assert_int_equal(connect_rank(1, 2 * NS_PER_S), late ? -EAGAIN : 0);
        assert_int_equal(port->ip.facts.rejected, late);
        assert_int_equal(rejected_by(1, "127.0.0.2"), late);
        is_not_held_up();
        close(silent);
    }
}

/* A listener whose address a flow's source gets as its destination's. */
static int mislead(struct battery_flow *flow)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    flow->other[0] = address_of(flow->dst);
    memcpy(flow->other[0].bytes + PORT_AT, &address.sin_port, sizeof address.sin_port);
    memcpy(flow->other[0].bytes + ADDRESS_AT, &address.sin_addr, sizeof address.sin_addr);
    return fd;
}

/* A foreign end that connects; and one that accepts, and returns the claim's own MAC. */
TCP(both_ends_must_hold_the_key)
{
    const size_t claim_bytes = TCP_CLAIM_END - TCP_CHALLENGE_END;
    struct transport_secret other = battery_secret;
    struct tcp_handshake shake;
    int listener, fd;

    other.key[0] ^= 1;
    run.secrets[3] = &other;
    add(3, 1, PATTERN_GENERATE);
    assert_int_equal(prepare(), 0);
    check_refusal(connect_all(LIMIT_NS), -ECONNABORTED, "this run's key");
    assert_true(rejected_by(1, "127.0.0.5:") > 1); /* it has connected again */
    assert_true(rejected_by(1, "it does not prove this run's key") > 1);
    run.secrets[3] = NULL;
    finish();
    listener = mislead(add(0, 1, PATTERN_GENERATE));
    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_rank(0, 0), -EAGAIN);
    fd = accept(listener, NULL, NULL);
    tcp_challenge_make(&shake);
    assert_true(send(fd, &shake, TCP_CHALLENGE_END, 0) > 0);
    assert_int_equal(connect_all(50 * NS_PER_MS), -ETIMEDOUT);
    assert_int_equal(recv(fd, &shake.magic, claim_bytes, MSG_WAITALL), claim_bytes);
    assert_true(send(fd, shake.claim, sizeof shake.claim, 0) > 0);
    check_refusal(connect_all(LIMIT_NS), -EPROTO, "does not hold this run's key");
    close(fd);
    close(listener);
}

static void derive(uint8_t *key, char byte, const char *run_id)
{
    struct transport_secret secret = {.run_id = run_id};

    memset(secret.key, byte, sizeof secret.key);
    tcp_key_derive(key, &secret);
}

/* A claim and a proof are valid only for their challenge, key and run, and any changed bit is
 * found; neither is valid as the other. (A key of zeros: tests/system/test_faults.py.) */
TCP(nothing_is_forged_or_replayed)
{
    struct tcp_handshake shake = {.place = {3, 70000, 65535, 1, 0xabcd, 9}}, other;
    uint8_t key[TCP_KEY_BYTES], other_key[TCP_KEY_BYTES];

    derive(key, 'k', "run");
    tcp_challenge_make(&shake);
    tcp_prove(&shake, TCP_CONNECTOR, key);
    tcp_prove(&shake, TCP_ACCEPTOR, key);
    assert_true(tcp_is_proven(&shake, TCP_CONNECTOR, key) &&
                tcp_is_proven(&shake, TCP_ACCEPTOR, key));
    for (size_t i = 0; i < 8 * sizeof shake; i++) {
        other = shake;
        ((uint8_t *)&other)[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_int_equal(tcp_is_proven(&other, TCP_CONNECTOR, key), i / 8 >= TCP_CLAIM_END);
        assert_int_equal(tcp_is_proven(&other, TCP_ACCEPTOR, key),
                         i / 8 >= offsetof(struct tcp_handshake, claim) && i / 8 < TCP_CLAIM_END);
    }
    other = shake;
    tcp_challenge_make(&other); /* a later one */
    assert_false(tcp_is_proven(&other, TCP_CONNECTOR, key) ||
                 tcp_is_proven(&other, TCP_ACCEPTOR, key));
    other = shake;
    tcp_prove(&other, TCP_CONNECTOR, key); /* with another nonce */
    assert_false(tcp_is_proven(&other, TCP_ACCEPTOR, key));
    memcpy(other.proof, other.claim, sizeof other.proof);
    assert_false(tcp_is_proven(&other, TCP_ACCEPTOR, key));
    for (unsigned i = 0; i < 2; i++) {
        derive(other_key, i == 0 ? 'K' : 'k', i == 0 ? "run" : "another run");
        assert_false(tcp_is_proven(&shake, TCP_CONNECTOR, other_key) ||
                     tcp_is_proven(&shake, TCP_ACCEPTOR, other_key));
    }
}

/* --- partners that are not there --- */

/* Nothing listens at some partners, nor after a chain's head; or a partner's kernel answers, but
 * its transport never does. A connectivity check finds them all, and waits a quarter longer than
 * its time. */
TCP(a_check_finds_all_that_have_no_way)
{
    static const struct {
        uint32_t pairs[5][2];
        unsigned count, unreachable; /* of these, the */
        bool chain, silent, reached[5];
    } cases[] = {
        {{{0, 1}, {2, 3}, {1, 0}, {3, 2}, {0, 2}}, 5, 2, .reached = {[2] = true, true, true}},
        {{{0, 1}, {1, 2}, {2, 3}}, 3, 1, .chain = true},
        {{{0, 1}, {1, 0}}, 2, 1, .silent = true, .reached = {[1] = true}},
    };

    run.phase.traffic = TRAFFIC_PROBE;
    run.phase.probes = 3;
    run.phase.probe_timeout_ns = 400 * NS_PER_MS;
    for (EACH(c, cases)) {
        int listener = -1;

        for (unsigned i = 0; i < c->count; i++)
            add(c->pairs[i][0], c->pairs[i][1],
                c->chain && i > 0 ? PATTERN_FORWARD : PATTERN_GENERATE);
        for (unsigned i = 0; i < c->unreachable; i++) { /* TCP port 1 */
            run.flows[i].other[0] = address_of(run.flows[i].dst);
            memcpy(run.flows[i].other[0].bytes + PORT_AT, (const uint8_t[]){0, 1}, 2);
        }
        if (c->silent)
            listener = mislead(&run.flows[0]);
        assert_int_equal(prepare(), 0);
        assert_int_equal(connect_all(200 * NS_PER_MS), -ETIMEDOUT);
        assert_int_equal(connect_all(LIMIT_NS), 0);
        start();
        run_on();
        for (uint32_t i = 0; i < run.flow_count; i++)
            assert_int_equal(run.flows[i].destination.live.messages, c->reached[i] ? 3 : 0);
        finish();
        close(listener);
    }
}

/* Rank 0 is one phase ahead of rank 1: its connection waits while a whole phase runs on the same
 * ports, and is then used; a connection whose source gave up is not. */
TCP(a_partner_is_a_phase_ahead)
{
    for (unsigned gives_up = 0; gives_up < 2; gives_up++) {
        static struct battery_run next;
        static struct battery_stage later = {.run = &next};
        struct lane *ahead;

        add(0, 1, PATTERN_GENERATE);
        next = run;
        next.phase.number++;
        assert_int_equal(battery_prepare(&later, 0, &err), 0);
        ahead = later.lanes[0];
        assert_int_equal(prepare(), 0);
        for (unsigned step = 0; step < 3; step++) { /* it has made its claim before the other */
            assert_int_equal(transport_tcp.connect(ahead, clock_now(), &err), -EAGAIN);
            assert_int_equal(connect_rank(1, 0), -EAGAIN);
        }
        is_not_held_up();
        add(0, 1, PATTERN_GENERATE);
        if (gives_up) {
            battery_destroy(&later, 0);
            play();
        } else {
            assert_int_equal(battery_prepare(&later, 1, &err), 0);
            POLL_UNTIL((transport_tcp.connect(later.lanes[1], clock_now(), &err) |
                        transport_tcp.connect(ahead, clock_now(), &err)) == 0)
            battery_destroy(&later, 0);
            battery_destroy(&later, 1);
        }
        finish();
    }
}

/* The sentence names the awaited partner: one that accepts the connection and sends nothing, one
 * that never connects, and one whose kernel does not answer. */
TCP(a_partner_that_is_awaited_is_named)
{
    static const struct {
        unsigned flow;
        uint32_t rank;
        const char *says;
    } cases[] = {
        {0, 0, "(rank 1): the connection is open, but the partner is not ready"},
        {0, 1, "no connection came from rank 0 (127.0.0.2"},
        {1, 0, "(rank 2): timed out; nothing answers there"},
    };
    int silent = mislead(add(0, 1, PATTERN_GENERATE));
    int deaf = mislead(add(0, 2, PATTERN_GENERATE));
    int caller;

    assert_int_equal(listen(deaf, 0), 0);
    caller = call(
        run.flows[1].other[0]); /* its queue is full: the kernel answers no further connection */
    for (EACH(c, cases)) {
        run.flow_count = 1;
        run.flows[0] = run.flows[c->flow];
        assert_int_equal(prepare(), 0);
        assert_int_equal(connect_rank(c->rank, 0), -EAGAIN); /* the wait begins */
        check_refusal(connect_rank(c->rank, 2 * NS_PER_S), -EAGAIN, c->says);
        for (uint32_t rank = 0; rank < subject.ports; rank++)
            battery_destroy(&stage, rank);
    }
    close(caller);
    close(deaf);
    close(silent);
}

TCP(too_many_connections_are_refused)
{
    struct rlimit before, few;

    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = open_descriptors() + 20;
    setrlimit(RLIMIT_NOFILE, &few);
    add(0, 1, PATTERN_GENERATE);
    options()->streams = 200;
    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_rank(0, 0), -EMFILE);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_says(err.text, "ulimit -n");
}

/* --- schedules --- */

static void begin_schedule(const struct pattern_request *request, uint64_t count)
{
    char why[256] = "";

    subject.ports = request->n;
    for (uint32_t i = 0; i < subject.ports; i++)
        open_port(i, NULL, NULL);
    pattern_plan_free(run.plan);
    run.plan = NULL;
    assert_int_equal(pattern_plan_make(&run.plan, request, why, sizeof why), 0);
    run.phase.traffic = TRAFFIC_SCHEDULE;
    run.phase.number = 0;
    run.phase.schedule =
        (struct schedule_options){.count = count, .batch = 1, .warmup = 1, .compute = count > 0};
    for (uint32_t rank = 0; rank < request->n; rank++) {
        struct pattern_flow flows[BATTERY_FLOWS];
        size_t found = pattern_flows(run.plan, 0, rank, PATTERN_SENDS, flows, BATTERY_FLOWS);

        for (size_t i = 0; i < found; i++)
            add(flows[i].src, flows[i].dst, flows[i].role);
    }
    ready_to_run();
}

static const struct tcp_end *end_of(uint32_t rank, unsigned index)
{
    return tcp_lane_end((const struct tcp_lane *)(void *)stage.lanes[rank], index);
}

static ino_t inode_of(int fd)
{
    struct stat found;

    assert_int_equal(fstat(fd, &found), 0);
    return found.st_ino;
}

/* Acknowledgements are in the other direction's segments: two ranks have one connection, whether or
 * not messages go both ways. */
TCP(two_ranks_have_one_connection)
{
    static const struct pattern_request requests[] = {
        {.name = "exchange", .n = 2, .bytes = 8},        /* two messages of one flow in a step */
        {.name = "exchange", .n = 2, .bytes = 8u << 20}, /* which arrive in parts */
        {.name = "bcast", .n = BATTERY_PORTS, .bytes = 1000},
        {.name = "aapc", .n = BATTERY_PORTS, .local = true, .bytes = 8},
    };

    for (EACH(request, requests)) {
        begin_schedule(request, 3);
        run_on();
        for (uint32_t i = 0; i < subject.ports; i++) {
            const struct message_lane *lane = (const struct message_lane *)stage.lanes[i];

            assert_int_equal(stage.executors[i]->execution.verified, 3);
            for (unsigned o = 0; o < lane->out_count; o++)
                for (unsigned n = lane->out_count; n < message_lane_ends(lane); n++)
                    assert_int_equal(inode_of(end_of(i, o)->fd) == inode_of(end_of(i, n)->fd),
                                     end_of(i, o)->base.flow->dst == end_of(i, n)->base.flow->src);
        }
        finish();
    }
}

/* When a rank dies all others end, whatever rank they wait for. A partner of the dead rank names
 * it, unless it first sees a connection closed by another rank that ended. The kernel keeps idle
 * connections alive. */
TCP(a_dead_partner_ends_all)
{
    const struct pattern_request request = {
        .name = "exchange", .n = BATTERY_PORTS, .bytes = 1u << 20};
    const struct message_lane *lane;
    uint32_t named = 0;
    int fd, value = 0;
    socklen_t size = sizeof value;

    begin_schedule(&request, 0);
    lane = (const struct message_lane *)stage.lanes[0];
    fd = end_of(0, lane->out_count)->fd;
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
    assert_true(value != 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &size), 0);
    assert_in_range(value, 1, 30);
    POLL_UNTIL(clock_now() >= run.phase.start_ns + 50 * NS_PER_MS)
    battery_destroy(&stage, 2);
    POLL_UNTIL(error_of(0)[0] != '\0' && error_of(1)[0] != '\0' && error_of(3)[0] != '\0' &&
               error_of(4)[0] != '\0')
    for (uint32_t i = 0; i < BATTERY_PORTS; i++)
        named += strstr(error_of(i), "(rank 2) broke") != NULL;
    assert_in_range(named, 1, BATTERY_PORTS - 1);
}

/* --- between namespaces: each test skips without root --- */

static int setup_namespaces(void **state)
{
    static bool made;

    if (!made && geteuid() == 0) {
        assert_null(netlab_make(2, 1500));
        made = true;
    }
    open_bed(made ? 2 : 0, true);
    return 0;
}

#define NAMESPACES(name) TEST_BETWEEN(name, setup_namespaces, teardown)
#define NEEDS_ROOT                                                                                 \
    if (subject.ports == 0)                                                                        \
    skip()
#define IP(...) assert_true(netlab_run("ip -n " __VA_ARGS__))

/* 10 Mbit/s at layer 1 are 10 * 1448 / 1538 Mbit/s of payload at MTU 1500. A worker on a busy core
 * polls when between one and two segments are due: its pace must not cut segments, whose headers
 * would be additional load. */
NAMESPACES(a_rate_is_at_layer_1_in_full_segments)
{
    const double rate = 10e6 / 8 * 1448 / 1538;
    const struct battery_flow *flow;
    double payload, segments;

    NEEDS_ROOT;
    flow = add(0, 1, PATTERN_GENERATE);
    run.phase.traffic = TRAFFIC_STREAM;
    run.phase.load = (struct load){.rate_bps = 10e6};
    stream_ns = NS_PER_S;
    ready_to_run();
    while (!battery_over(&stage)) {
        clock_sleep_until(clock_now() + NS_PER_MS);
        poll_all();
    }
    run_whole();
    payload = (double)flow->source.live.payload_bytes;
    segments = metric_of(0, "segments_sent");
    /* the intended bytes include the block that was begun before the stop */
    assert_true((double)flow->source.intended > rate * 0.999 &&
                (double)flow->source.intended < rate * 1.001 + 65536);
    assert_true(payload > rate * 0.5 && payload < rate * 1.001 + 65536);
    assert_true(segments >= payload / 1448 && segments < 1.1 * payload / 1448 + 20);
}

/* Connections work over IPv6; between two families, and on one host, they are refused. */
NAMESPACES(address_families)
{
    static const struct {
        const char *address, *says;
        int code;
    } cases[] = {{NULL, "another address family", -EAFNOSUPPORT},
                 {"fd00:7::1", "network namespace of its own", -EINVAL}};
    struct port_facts facts;

    NEEDS_ROOT;
    for (size_t i = 0; i < 2; i++) {
        IP("%s address add fd00:7::%zu/64 dev eth0 nodad", netlab_namespace(i), i + 1);
        IP("%s link set lo up", netlab_namespace(i));
    }
    add(0, 1, PATTERN_GENERATE);
    add(1, 0, PATTERN_GENERATE);
    open_port(0, netlab_namespace(0), "fd00:7::1");
    open_port(1, netlab_namespace(1), "fd00:7::2");
    transport_tcp.facts(battery_ports[1], &facts, false);
    assert_string_equal(facts.ipv6, "fd00:7::2");
    play();
    for (EACH(c, cases)) {
        const char *address = c->address != NULL ? c->address : "10.99.0.1";

        finish();
        add(0, 1, PATTERN_GENERATE);
        open_port(1, netlab_namespace(0), address);
        check_refusal(prepare(), c->code, c->says);
    }
}
