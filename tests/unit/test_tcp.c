/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport: ports of this process on loopback addresses or, with root, in namespaces on
 * one bridge, driven by one thread as the main thread and the workers would. What all transports
 * can do is proven by the battery (tests/transport/tcp.c).
 */
#include "../transport/netlab.h"
#include "clock.h"
#include "schedule_executor.h"
#include "tcp/tcp_lane.h"
#include "unit.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define RANKS_MOST 5u
#define FLOWS_MOST 32u
#define LIMIT_NS (20 * NS_PER_S)
#define ADDRESS_AT 4 /* places of address and TCP port in the transport's blob */
#define PORT_AT 2

extern const struct transport transport_tcp;

struct rank {
    struct port_conf conf;
    char name[24], address[16];
    struct transport_port *port;
    const struct transport_secret *secret;
    struct blob blob; /* what partners are told */
    struct lane *lane;
    struct schedule_executor *executor; /* of bed.plan's phase 0 */
    struct port_count count;
    struct lane_flow flows[2 * FLOWS_MOST]; /* of each side */
};

struct flow {
    uint32_t src, dst;
    enum pattern_role role;
    const struct flow_side *source, *destination; /* once it is prepared */
    struct blob other; /* what the source is told instead of the destination's; size 0: nothing */
};

static struct bed {
    struct transport_secret secret;
    struct phase phase;
    struct tcp_options options;
    struct rank ranks[RANKS_MOST];
    uint32_t rank_count;
    struct flow flows[FLOWS_MOST];
    uint32_t flow_count;
    struct pattern_plan *plan;
    unsigned descriptors;
    int64_t stream_ns;
    struct err err;
} bed;

static unsigned open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

/* Opens a rank's port, in a namespace or at its loopback address. */
static void open_port(uint32_t i, const char *netns, const char *address)
{
    static const struct transport_run run = {.run_id = "test", .node = "node"};
    struct rank *rank = &bed.ranks[i];

    if (rank->port != NULL)
        transport_tcp.close(rank->port);
    snprintf(rank->name, sizeof rank->name, "node%u:lo", i);
    snprintf(rank->address, sizeof rank->address, "127.0.0.%u", i + 2);
    rank->secret = &bed.secret;
    rank->conf = (struct port_conf){.name = rank->name,
                                    .netns = netns,
                                    .iface = netns != NULL ? "eth0" : NULL,
                                    .tcp_address = netns != NULL ? address : rank->address};
    if (transport_tcp.open(&rank->port, &rank->conf, &run, &bed.err) != 0)
        fail_msg("open: %s", bed.err.text);
    rank->blob = transport_address(&transport_tcp, rank->port);
}

static void open_bed(uint32_t ranks, bool namespaces)
{
    bed = (struct bed){.descriptors = open_descriptors(),
                       .secret = {.key = "a key that only this test knows", .run_id = "test"},
                       .options = {.streams = 1, .nodelay = true},
                       .rank_count = ranks,
                       .stream_ns = 200 * NS_PER_MS,
                       .phase = {.trial = 7,
                                 .number = 1,
                                 .tag = 0x1234,
                                 .traffic = TRAFFIC_TRANSFER,
                                 .transfer_bytes = 1000000,
                                 .sizes = {65536},
                                 .size_count = 1,
                                 .load = {.unlimited = true},
                                 .options = &bed.options}};
    for (uint32_t i = 0; i < ranks; i++)
        open_port(i, namespaces ? netlab_namespace(i) : NULL, NULL);
}

static struct flow *add(uint32_t src, uint32_t dst, enum pattern_role role)
{
    struct flow *flow = &bed.flows[bed.flow_count++];

    *flow = (struct flow){.src = src, .dst = dst, .role = role};
    return flow;
}

static void destroy(uint32_t rank)
{
    if (bed.ranks[rank].lane != NULL)
        transport_tcp.destroy(bed.ranks[rank].lane);
    bed.ranks[rank].lane = NULL;
    executor_free(bed.ranks[rank].executor);
    bed.ranks[rank].executor = NULL;
}

/* The phase ends, and its flows with it. */
static void finish(void)
{
    for (uint32_t i = 0; i < bed.rank_count; i++)
        destroy(i);
    bed.phase.number++;
    bed.flow_count = 0;
}

static int prepare_rank(uint32_t i, const struct phase *phase, struct lane **lane)
{
    struct rank *rank = &bed.ranks[i];
    struct lane_request request = {.port = rank->port,
                                   .secret = rank->secret,
                                   .phase = phase,
                                   .rank = i,
                                   .ranks = bed.rank_count,
                                   .flows = rank->flows,
                                   .count = &rank->count};

    bed.err.text[0] = '\0';
    for (uint32_t f = 0; f < 2 * bed.flow_count; f++) { /* sent ones, then received ones */
        bool sends = f < bed.flow_count;
        struct flow *flow = &bed.flows[f % bed.flow_count];
        struct lane_flow *mine = &rank->flows[request.send_count + request.receive_count];

        if ((sends ? flow->src : flow->dst) != i)
            continue;
        *mine = (struct lane_flow){.src = flow->src, .dst = flow->dst, .role = flow->role};
        mine->partner = sends && flow->other.size > 0
                            ? flow->other
                            : bed.ranks[sends ? flow->dst : flow->src].blob;
        *(sends ? &flow->source : &flow->destination) = &mine->side;
        *(sends ? &request.send_count : &request.receive_count) += 1;
    }
    if (bed.plan != NULL)
        assert_int_equal(
            executor_make(&rank->executor, phase, bed.plan, i, bed.rank_count, &bed.err), 0);
    request.executor = rank->executor;
    return transport_tcp.prepare(lane, &request, &bed.err);
}

static int prepare(void)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < bed.rank_count; i++)
        rc = prepare_rank(i, &bed.phase, &bed.ranks[i].lane);
    return rc;
}

static int connect_rank(uint32_t rank, int64_t later_ns)
{
    bed.err.text[0] = '\0';
    return transport_tcp.connect(bed.ranks[rank].lane, clock_now() + later_ns, &bed.err);
}

/* Until all are ready: 0, or a failure; -ETIMEDOUT after `limit_ns`. */
static int connect_all(int64_t limit_ns)
{
    int64_t until_ns = clock_now() + limit_ns;

    for (;;) {
        bool ready = true;

        for (uint32_t i = 0; i < bed.rank_count; i++) {
            int rc = connect_rank(i, 0);

            if (rc != 0 && rc != -EAGAIN)
                return rc;
            ready = ready && rc == 0;
        }
        if (ready || clock_now() >= until_ns)
            return ready ? 0 : -ETIMEDOUT;
    }
}

static void poll_all(void)
{
    for (uint32_t i = 0; i < bed.rank_count; i++)
        if (bed.ranks[i].lane != NULL)
            transport_tcp.poll(bed.ranks[i].lane, clock_now());
}

static void start(void)
{
    struct phase *phase = &bed.phase;

    phase->open_ns = phase->start_ns = clock_now() + 2 * NS_PER_MS;
    phase->close_ns = phase->stop_ns =
        phase->start_ns + (phase->traffic == TRAFFIC_STREAM ? bed.stream_ns : 60 * NS_PER_S);
    poll_all();
}

static void ready_to_run(void)
{
    if (prepare() != 0 || connect_all(LIMIT_NS) != 0)
        fail_msg("not ready: %s", bed.err.text);
    start();
}

static bool is_finished(void)
{
    for (uint32_t i = 0; i < bed.rank_count; i++)
        if (!bed.ranks[i].lane->tx_done || !bed.ranks[i].lane->rx_done)
            return false;
    return true;
}

/* Polls until a condition holds. */
#define POLL_UNTIL(condition)                                                                      \
    for (int64_t until_ns = clock_now() + LIMIT_NS; !(condition);) {                               \
        assert_true(clock_now() < until_ns);                                                       \
        poll_all();                                                                                \
    }

static const char *error_of(uint32_t rank)
{
    return bed.ranks[rank].lane != NULL ? bed.ranks[rank].lane->error.text : "";
}

static void run(void)
{
    POLL_UNTIL(is_finished())
    for (uint32_t i = 0; i < bed.rank_count; i++)
        assert_string_equal(error_of(i), "");
}

/* Runs to the end: all that was sent has come, and is right. */
static void run_whole(void)
{
    run();
    for (uint32_t i = 0; i < bed.flow_count; i++) {
        const struct flow_side *from = bed.flows[i].source, *to = bed.flows[i].destination;

        assert_int_equal(to->corrupted + to->reordered, 0);
        assert_true(from->live.payload_bytes > 0);
        assert_int_equal(to->live.payload_bytes, from->live.payload_bytes);
        assert_int_equal(to->live.messages, from->live.messages);
    }
}

static void play(void)
{
    ready_to_run();
    run_whole();
}

/* The lanes that are prepared connect, run whole and end: nothing has held them up. */
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
    assert_says(bed.err.text, words);
}

static int setup(void **state)
{
    open_bed(4, false);
    return 0;
}

/* Every test also proves that it leaves no descriptor open. */
static int teardown(void **state)
{
    finish();
    pattern_plan_free(bed.plan);
    for (uint32_t i = 0; i < RANKS_MOST; i++)
        if (bed.ranks[i].port != NULL)
            transport_tcp.close(bed.ranks[i].port);
    return open_descriptors() == bed.descriptors ? 0 : -1;
}

#define TCP(name) TEST_BETWEEN(name, setup, teardown)

static double metric_of(uint32_t rank, const char *name)
{
    struct lane *lane = bed.ranks[rank].lane;
    const struct lane_flow *flow = &lane->request.flows[0];
    struct flow_reading reading = {0};

    transport_tcp.read_flow(lane, flow, &reading);
    for (unsigned i = 0; i < reading.metric_count; i++)
        if (strcmp(reading.metrics[i].name, name) == 0)
            return reading.metrics[i].value;
    return -1;
}

/* --- streams --- */

TCP(options_are_used)
{
    add(0, 1, PATTERN_GENERATE);
    bed.options = (struct tcp_options){
        .streams = 1, .send_buffer = 65536, .receive_buffer = 100000, .congestion = "reno"};
    play();
    assert_string_equal(bed.ranks[0].lane->variant, "congestion control reno");
    assert_int_equal((int)metric_of(0, "send_buffer_bytes"), 131072);
    assert_int_equal((int)metric_of(1, "receive_buffer_bytes"), 200000);
    assert_int_equal((int)metric_of(1, "send_buffer_bytes"), -1);
}

/* While the tail does not read, the head must come to rest: nobody buffers without bound. */
TCP(a_chain_slows_its_head)
{
    const uint64_t *sent = &bed.ranks[0].flows[0].side.live.payload_bytes;
    uint64_t before = 0;
    int64_t begun_ns = clock_now(), moved_ns = begun_ns;

    for (uint32_t i = 0; i < 3; i++)
        add(i, i + 1, i == 0 ? PATTERN_GENERATE : PATTERN_FORWARD);
    bed.phase.traffic = TRAFFIC_STREAM;
    bed.stream_ns = 20 * NS_PER_S;
    bed.options.send_buffer = bed.options.receive_buffer = 100000;
    ready_to_run();
    while (before == 0 || clock_now() < moved_ns + 300 * NS_PER_MS) {
        for (uint32_t i = 0; i < 3; i++)
            transport_tcp.poll(bed.ranks[i].lane, clock_now());
        moved_ns = *sent == before ? moved_ns : clock_now();
        before = *sent;
        assert_true(moved_ns < begun_ns + bed.stream_ns / 2);
    }
    for (uint32_t i = 0; i < 4; i++)
        bed.ranks[i].lane->stop_ns = clock_now();
    run_whole();
}

/* The receiver dies in mid stream; when all is written and the end mark behind it, but not all has
 * arrived, so that nobody will ever acknowledge the rest; and the sender. The next phase has
 * nothing of it. */
TCP(a_partner_dies)
{
    enum { MID_STREAM, WRITTEN, SENDER };

    for (uint32_t how = MID_STREAM; how <= SENDER; how++) {
        const struct flow *flow = add(0, 1, PATTERN_GENERATE);
        uint32_t dead = how == SENDER ? 0 : 1, left = 1 - dead;

        bed.phase.transfer_bytes = how == WRITTEN ? 150000 : UINT64_C(1) << 40;
        bed.options.receive_buffer = how == WRITTEN ? 1 : 0;
        bed.options.send_buffer = how == WRITTEN ? 200000 : 0;
        ready_to_run();
        while (how == WRITTEN && bed.ranks[0].lane->stopped_ns == 0)
            transport_tcp.poll(bed.ranks[0].lane, clock_now());
        POLL_UNTIL(how == WRITTEN || flow->destination->live.payload_bytes >= 1000000)
        assert_int_equal(flow->destination->corrupted, 0);
        destroy(dead);
        POLL_UNTIL(error_of(left)[0] != '\0')
        assert_says(error_of(left), dead == 1 ? "(rank 1) broke" : "(rank 0) broke");
        assert_false(bed.ranks[left].lane->tx_done && bed.ranks[left].lane->rx_done);
        assert_int_equal(transport_tcp.poll(bed.ranks[left].lane, clock_now()), CLOCK_NEVER);
        finish();
    }
    add(0, 1, PATTERN_GENERATE);
    bed.phase.transfer_bytes = 1000000;
    play();
}

/* --- without the key --- */

static const uint8_t nonsense[1000] = "GET / HTTP/1.0\r\n\r\n";

static uint64_t rejected_by(uint32_t rank, const char *because)
{
    struct port_facts facts;

    transport_tcp.facts(bed.ranks[rank].port, &facts, false);
    if (facts.rejected > 0)
        assert_says(facts.last_rejected, because);
    return facts.rejected;
}

static int call(const struct blob *blob)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memcpy(&address.sin_port, blob->bytes + PORT_AT, sizeof address.sin_port);
    memcpy(&address.sin_addr, blob->bytes + ADDRESS_AT, sizeof address.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* Strangers by the hundred. Silent ones take the places of the half open, up to so many, until they
 * were silent for a second; those who talk nonsense or have closed already are rejected, 64 in a
 * turn and as many that were accepted before. The others wait in the backlog, where they wake
 * nobody. The flow's own connection gets its place, and the port knows how many it rejected. */
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
        port = bed.ranks[1].port;
        waits.fd = port->epoll;
        port->half_open_most = c->half_open;
        for (unsigned i = 0; i < c->count; i++) {
            strangers[i] = call(&bed.ranks[1].blob);
            if (!c->silent && i % 2 > 0)
                assert_true(send(strangers[i], nonsense, sizeof nonsense, MSG_NOSIGNAL) > 0);
            else if (!c->silent)
                shutdown(strangers[i], SHUT_WR);
        }
        add(0, 1, PATTERN_GENERATE);
        assert_int_equal(prepare(), 0);
        assert_int_equal(poll(&waits, 1, 0), 1);
        for (unsigned turn = 0; turn < c->turns; turn++) {
            const uint64_t before = port->rejected;

            for (unsigned i = 0; i < 20; i++)
                assert_int_equal(transport_tcp.connect(bed.ranks[1].lane,
                                                       now_ns + turn * 16 * NS_PER_MS, &bed.err),
                                 -EAGAIN);
            assert_in_range(port->rejected - before, c->least, c->most);
            assert_int_equal(poll(&waits, 1, 0), 0);
        }
        assert_true(port->half_open <= c->half_open);
        is_not_held_up();
        if (c->silent) {
            assert_in_range(port->rejected, 700 - 512, 700);
            clock_sleep_until(clock_now() + NS_PER_S); /* those that are left are as silent, too */
            assert_int_equal(rejected_by(1, "it keeps silent"), 700);
        }
        for (unsigned i = 0; i < c->count; i++)
            close(strangers[i]);
    }
    assert_int_equal(rejected_by(0, ""), 0);
}

/* The main thread was away for seconds, and more claims lie there than it reads at once; or a
 * flow's own claim comes later than its partner waits in a crowd, and the source calls again. */
TCP(a_late_claim_counts)
{
    for (unsigned late = 0; late < 2; late++) {
        struct transport_port *port;
        int silent;

        open_port(1, NULL, NULL);
        port = bed.ranks[1].port;
        add(0, 1, PATTERN_GENERATE);
        bed.options.streams = late ? 1 : 100;
        assert_int_equal(prepare(), 0);
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(connect_rank(1, 0), -EAGAIN);
        if (!late)
            assert_int_equal(connect_rank(0, 0), -EAGAIN);
        port->half_open_most = late ? 1 : 20;
        silent = call(&bed.ranks[1].blob);
        assert_int_equal(connect_rank(1, 2 * NS_PER_S), -EAGAIN);
        assert_int_equal(port->rejected, late);
        assert_int_equal(rejected_by(1, "127.0.0.2"), late);
        is_not_held_up();
        close(silent);
    }
}

/* A listener, of which a flow's source is told instead of its destination. */
static int mislead(struct flow *flow)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    flow->other = bed.ranks[flow->dst].blob;
    memcpy(flow->other.bytes + PORT_AT, &address.sin_port, sizeof address.sin_port);
    memcpy(flow->other.bytes + ADDRESS_AT, &address.sin_addr, sizeof address.sin_addr);
    return fd;
}

/* The one that calls; and the one that is called, which sends the claim's own MAC back. */
TCP(both_ends_must_hold_the_key)
{
    const size_t claim_bytes = TCP_CLAIM_END - TCP_CHALLENGE_END;
    struct transport_secret other = bed.secret;
    struct tcp_handshake shake;
    int listener, fd;

    other.key[0] ^= 1;
    bed.ranks[3].secret = &other;
    add(3, 1, PATTERN_GENERATE);
    assert_int_equal(prepare(), 0);
    check_refusal(connect_all(LIMIT_NS), -ECONNABORTED, "this run's key");
    assert_true(rejected_by(1, "127.0.0.5 port ") > 1); /* it has called again */
    assert_true(rejected_by(1, "it does not hold this run's key") > 1);
    bed.ranks[3].secret = &bed.secret;
    finish();
    listener = mislead(add(0, 1, PATTERN_GENERATE));
    assert_int_equal(prepare(), 0);
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

/* A claim and a proof are valid for their challenge, key and run alone, and any changed bit is
 * found; neither is the other. Whoever derives a key before the run's is known finds out at once.
 */
TCP(nothing_is_forged_or_replayed)
{
    struct tcp_handshake shake = {.place = {3, 70000, 65535, 1, 0xabcd, 9}}, other;
    uint8_t key[TCP_KEY_BYTES], other_key[TCP_KEY_BYTES];
    pid_t child = fork();
    int status;

    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        derive(key, 0, "run");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
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

/* Nothing listens at some partners, nor behind a chain's head; or a partner's kernel answers, and
 * nobody else ever does. A check finds them all, and waits a quarter longer than it is asked to. */
TCP(a_check_finds_all_that_have_no_way)
{
    static const struct {
        uint32_t pairs[5][2];
        unsigned count, unreachable; /* of them, the first */
        bool chain, silent, reached[5];
    } cases[] = {
        {{{0, 1}, {2, 3}, {1, 0}, {3, 2}, {0, 2}}, 5, 2, .reached = {[2] = true, true, true}},
        {{{0, 1}, {1, 2}, {2, 3}}, 3, 1, .chain = true},
        {{{0, 1}, {1, 0}}, 2, 1, .silent = true, .reached = {[1] = true}},
    };

    bed.phase.traffic = TRAFFIC_PROBE;
    bed.phase.probes = 3;
    bed.phase.probe_timeout_ns = 400 * NS_PER_MS;
    for (EACH(c, cases)) {
        int listener = -1;

        for (unsigned i = 0; i < c->count; i++)
            add(c->pairs[i][0], c->pairs[i][1],
                c->chain && i > 0 ? PATTERN_FORWARD : PATTERN_GENERATE);
        for (unsigned i = 0; i < c->unreachable; i++) { /* TCP port 1 */
            bed.flows[i].other = bed.ranks[bed.flows[i].dst].blob;
            memcpy(bed.flows[i].other.bytes + PORT_AT, (const uint8_t[]){0, 1}, 2);
        }
        if (c->silent)
            listener = mislead(&bed.flows[0]);
        assert_int_equal(prepare(), 0);
        assert_int_equal(connect_all(200 * NS_PER_MS), -ETIMEDOUT);
        assert_int_equal(connect_all(LIMIT_NS), 0);
        start();
        run();
        for (uint32_t i = 0; i < bed.flow_count; i++)
            assert_int_equal(bed.flows[i].destination->live.messages, c->reached[i] ? 3 : 0);
        finish();
        close(listener);
    }
}

/* Rank 0 is a phase ahead of rank 1: its connection waits while a whole phase passes by on the same
 * ports, and is taken up; but not that of one that waited and gave up. */
TCP(a_partner_is_a_phase_ahead)
{
    for (unsigned gives_up = 0; gives_up < 2; gives_up++) {
        struct phase next = bed.phase;
        struct lane *ahead, *behind;

        next.number++;
        add(0, 1, PATTERN_GENERATE);
        assert_int_equal(prepare_rank(0, &next, &ahead), 0);
        assert_int_equal(prepare(), 0);
        for (unsigned step = 0; step < 3; step++) { /* it has made its claim before the other */
            assert_int_equal(transport_tcp.connect(ahead, clock_now(), &bed.err), -EAGAIN);
            assert_int_equal(connect_rank(1, 0), -EAGAIN);
        }
        is_not_held_up();
        add(0, 1, PATTERN_GENERATE);
        if (gives_up) {
            transport_tcp.destroy(ahead);
            play();
        } else {
            assert_int_equal(prepare_rank(1, &next, &behind), 0);
            POLL_UNTIL((transport_tcp.connect(behind, clock_now(), &bed.err) |
                        transport_tcp.connect(ahead, clock_now(), &bed.err)) == 0)
            transport_tcp.destroy(ahead);
            transport_tcp.destroy(behind);
        }
        finish();
    }
}

/* Who is waited for is named: a partner that takes the call and says nothing, and one that never
 * calls; and while one still has time, another whose time is up. */
TCP(a_partner_that_is_awaited_is_named)
{
    static const struct {
        unsigned flows;
        uint32_t rank;
        int64_t later_s;
        int code;
        const char *says;
    } cases[] = {
        {2, 0, 9, -EAGAIN, "(rank 1): it is connected, but the partner is not ready"},
        {2, 0, 11, -ETIMEDOUT, "(rank 2): timed out; nothing answers there"},
        {1, 0, 31, -ETIMEDOUT, "(rank 1): it is connected, but"},
        {1, 1, 29, -EAGAIN, "no connection came from rank 0 (127.0.0.2"},
        {1, 1, 31, -ETIMEDOUT, "no connection came from rank 0 (127.0.0.2"},
    };
    int silent = mislead(add(0, 1, PATTERN_GENERATE));
    int deaf = mislead(add(0, 2, PATTERN_GENERATE));
    int caller;

    assert_int_equal(listen(deaf, 0), 0);
    caller = call(&bed.flows[1].other); /* its queue is full: the kernel answers no further call */
    for (EACH(c, cases)) {
        bed.flow_count = c->flows;
        assert_int_equal(prepare(), 0);
        assert_int_equal(connect_rank(c->rank, 0), -EAGAIN); /* the wait begins */
        check_refusal(connect_rank(c->rank, c->later_s * NS_PER_S), c->code, c->says);
        for (uint32_t rank = 0; rank < bed.rank_count; rank++)
            destroy(rank);
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
    bed.options.streams = 200;
    assert_true(prepare() < 0);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_says(bed.err.text, "ulimit -n");
}

/* --- schedules --- */

static void begin_schedule(const struct pattern_request *request, uint64_t count)
{
    char why[256] = "";

    bed.rank_count = request->n;
    for (uint32_t i = 0; i < bed.rank_count; i++)
        open_port(i, NULL, NULL);
    pattern_plan_free(bed.plan);
    bed.plan = NULL;
    assert_int_equal(pattern_plan_make(&bed.plan, request, why, sizeof why), 0);
    bed.phase.traffic = TRAFFIC_SCHEDULE;
    bed.phase.number = 0;
    bed.phase.schedule =
        (struct schedule_options){.count = count, .batch = 1, .warmup = 1, .compute = count > 0};
    for (uint32_t rank = 0; rank < request->n; rank++) {
        struct pattern_flow flows[FLOWS_MOST];
        size_t found = pattern_flows(bed.plan, 0, rank, PATTERN_SENDS, flows, FLOWS_MOST);

        for (size_t i = 0; i < found; i++)
            add(flows[i].src, flows[i].dst, flows[i].role);
    }
    ready_to_run();
}

static const struct tcp_end *end_of(uint32_t rank, unsigned index)
{
    return tcp_lane_end((const struct tcp_lane *)(void *)bed.ranks[rank].lane, index);
}

static ino_t inode_of(int fd)
{
    struct stat found;

    assert_int_equal(fstat(fd, &found), 0);
    return found.st_ino;
}

/* Acknowledgements travel with what is sent the other way: two ranks have one connection, whether
 * or not messages go both ways. */
TCP(two_ranks_have_one_connection)
{
    static const struct pattern_request requests[] = {
        {.name = "exchange", .n = 2, .bytes = 8}, /* two messages of one flow in a step */
        {.name = "bcast", .n = RANKS_MOST, .bytes = 1000},
        {.name = "aapc", .n = RANKS_MOST, .local = true, .bytes = 8},
    };

    for (EACH(request, requests)) {
        begin_schedule(request, 3);
        run();
        for (uint32_t i = 0; i < bed.rank_count; i++) {
            const struct message_lane *lane = (const struct message_lane *)bed.ranks[i].lane;

            assert_int_equal(bed.ranks[i].executor->execution.verified, 3);
            for (unsigned o = 0; o < lane->out_count; o++)
                for (unsigned n = lane->out_count; n < message_lane_ends(lane); n++)
                    assert_int_equal(inode_of(end_of(i, o)->fd) == inode_of(end_of(i, n)->fd),
                                     end_of(i, o)->base.flow->dst == end_of(i, n)->base.flow->src);
        }
        finish();
    }
}

/* A rank that has gone: all others learn of it, whomever they wait for; who had to do with it names
 * it, unless somebody else who has hung up for it was seen first. Of one that says nothing for long
 * the kernel is told to ask. */
TCP(a_dead_partner_ends_all)
{
    const struct pattern_request request = {.name = "exchange", .n = RANKS_MOST, .bytes = 1u << 20};
    const struct message_lane *lane;
    uint32_t named = 0;
    int fd, value = 0;
    socklen_t size = sizeof value;

    begin_schedule(&request, 0);
    lane = (const struct message_lane *)bed.ranks[0].lane;
    fd = end_of(0, lane->out_count)->fd;
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
    assert_true(value != 0);
    assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &size), 0);
    assert_in_range(value, 1, 30);
    POLL_UNTIL(clock_now() >= bed.phase.start_ns + 50 * NS_PER_MS)
    destroy(2);
    POLL_UNTIL(error_of(0)[0] != '\0' && error_of(1)[0] != '\0' && error_of(3)[0] != '\0' &&
               error_of(4)[0] != '\0')
    for (uint32_t i = 0; i < RANKS_MOST; i++)
        named += strstr(error_of(i), "(rank 2) broke") != NULL;
    assert_in_range(named, 1, RANKS_MOST - 1);
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
    if (bed.rank_count == 0)                                                                       \
    skip()
#define IP(...) assert_true(netlab_run("ip -n " __VA_ARGS__))

/* 10 Mbit/s at layer 1 are 10 * 1448 / 1538 Mbit/s of payload at MTU 1500. A worker on a busy core
 * comes when more is due than a segment, and less than two: its pace must not cut segments, whose
 * headers would be load of their own. */
NAMESPACES(a_rate_is_at_layer_1_in_full_segments)
{
    const double rate = 10e6 / 8 * 1448 / 1538;
    const struct flow *flow;
    double payload, segments;

    NEEDS_ROOT;
    flow = add(0, 1, PATTERN_GENERATE);
    bed.phase.traffic = TRAFFIC_STREAM;
    bed.phase.load = (struct load){.rate_bps = 10e6};
    bed.stream_ns = NS_PER_S;
    ready_to_run();
    while (!is_finished()) {
        clock_sleep_until(clock_now() + NS_PER_MS);
        poll_all();
    }
    run_whole();
    payload = (double)flow->source->live.payload_bytes;
    segments = metric_of(0, "segments_sent");
    /* The block that was begun before the stop is asked for, too. */
    assert_true((double)flow->source->intended > rate * 0.999 &&
                (double)flow->source->intended < rate * 1.001 + 65536);
    assert_true(payload > rate * 0.5 && payload < rate * 1.001 + 65536);
    assert_true(segments >= payload / 1448 && segments < 1.1 * payload / 1448 + 20);
}

/* Over IPv6; between two families, and on one host, nothing is measured. */
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
    transport_tcp.facts(bed.ranks[1].port, &facts, false);
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
