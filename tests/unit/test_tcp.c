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

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define RANKS_MOST 5u
#define FLOWS_MOST 32u
#define LIMIT_NS (20 * NS_PER_S)
#define ADDRESS_AT 4 /* places of address and TCP port in the transport's blob */
#define PORT_AT 2
#define COUNT(array) (sizeof(array) / sizeof *(array))

extern const struct transport transport_tcp;

struct rank {
    struct port_conf conf;
    char name[24], address[16];
    struct transport_port *port;
    const struct transport_secret *secret;
    struct blob blob;
    struct lane *lane;
    struct schedule_executor *executor; /* of w.plan's phase 0 */
    struct port_count count;
    struct lane_flow sends[FLOWS_MOST], receives[FLOWS_MOST];
    uint32_t send_count, receive_count;
};

struct flow {
    uint32_t src, dst;
    enum pattern_role role;
    struct flow_side source, destination;
    const struct blob *other; /* the source is told this address instead; NULL: the true one */
};

static struct world {
    struct transport_run run;
    struct transport_secret secret;
    struct phase phase;
    struct tcp_options options;
    struct rank ranks[RANKS_MOST];
    uint32_t rank_count;
    struct flow flows[FLOWS_MOST];
    uint32_t flow_count;
    struct pattern_plan *plan;
    int64_t stream_ns;
    void (*pump)(void); /* called in each round */
    struct err err;
} w;

/* --- the world --- */

static unsigned open_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static void open_port(struct rank *rank)
{
    if (transport_tcp.open(&rank->port, &rank->conf, &w.run, &w.err) != 0)
        fail_msg("open: %s", w.err.text);
    rank->blob = transport_address(&transport_tcp, rank->port);
}

static void world_open(uint32_t ranks, bool namespaces)
{
    w = (struct world){
        .run = {.run_id = "test", .node = "node"},
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
                  .options = &w.options},
    };
    for (uint32_t i = 0; i < ranks; i++) {
        struct rank *rank = &w.ranks[i];

        snprintf(rank->name, sizeof rank->name, "node%u:lo", i);
        snprintf(rank->address, sizeof rank->address, "127.0.0.%u", i + 2);
        rank->secret = &w.secret;
        rank->conf = (struct port_conf){.name = rank->name};
        if (namespaces) {
            rank->conf.netns = netlab_namespace(i);
            rank->conf.iface = "eth0";
        } else {
            rank->conf.tcp_address = rank->address;
        }
        open_port(rank);
    }
}

static struct flow *add(uint32_t src, uint32_t dst, enum pattern_role role)
{
    struct flow *flow = &w.flows[w.flow_count++];

    *flow = (struct flow){.src = src, .dst = dst, .role = role};
    return flow;
}

static void finish(void)
{
    for (uint32_t i = 0; i < w.rank_count; i++) {
        struct rank *rank = &w.ranks[i];

        if (rank->lane != NULL)
            transport_tcp.destroy(rank->lane);
        executor_free(rank->executor);
        rank->lane = NULL;
        rank->executor = NULL;
        rank->send_count = rank->receive_count = 0;
    }
    w.phase.number++;
}

static int prepare_rank(uint32_t i)
{
    struct rank *rank = &w.ranks[i];
    struct lane_request request = {.port = rank->port,
                                   .secret = rank->secret,
                                   .phase = &w.phase,
                                   .rank = i,
                                   .ranks = w.rank_count,
                                   .sends = rank->sends,
                                   .receives = rank->receives,
                                   .count = &rank->count};

    for (uint32_t f = 0; f < w.flow_count; f++) {
        struct flow *flow = &w.flows[f];
        struct lane_flow mine = {.src = flow->src, .dst = flow->dst, .role = flow->role};

        if (flow->src == i) {
            mine.partner = flow->other != NULL ? *flow->other : w.ranks[flow->dst].blob;
            mine.side = &flow->source;
            rank->sends[rank->send_count++] = mine;
        } else if (flow->dst == i) {
            mine.partner = w.ranks[flow->src].blob;
            mine.side = &flow->destination;
            rank->receives[rank->receive_count++] = mine;
        }
    }
    request.send_count = rank->send_count;
    request.receive_count = rank->receive_count;
    if (w.plan != NULL)
        assert_int_equal(executor_make(&rank->executor, &w.phase, w.plan, i, w.rank_count, &w.err),
                         0);
    request.executor = rank->executor;
    return transport_tcp.prepare(&rank->lane, &request, &w.err);
}

static int prepare(void)
{
    int rc = 0;

    w.err.text[0] = '\0';
    for (uint32_t f = 0; f < w.flow_count; f++)
        w.flows[f].source = w.flows[f].destination = (struct flow_side){0};
    for (uint32_t i = 0; rc == 0 && i < w.rank_count; i++)
        rc = prepare_rank(i);
    return rc;
}

static int connect_rank(uint32_t rank, int64_t later_ns)
{
    w.err.text[0] = '\0';
    return transport_tcp.connect(w.ranks[rank].lane, clock_now() + later_ns, &w.err);
}

/* Until all are ready: 0, or a failure; -ETIMEDOUT after `limit_ns`. */
static int connect_all(int64_t limit_ns)
{
    int64_t until_ns = clock_now() + limit_ns;
    bool ready = false;

    while (!ready) {
        ready = true;
        if (w.pump != NULL)
            w.pump();
        for (uint32_t i = 0; i < w.rank_count; i++) {
            int rc = connect_rank(i, 0);

            if (rc != 0 && rc != -EAGAIN)
                return rc;
            ready = ready && rc == 0;
        }
        if (!ready && clock_now() >= until_ns)
            return -ETIMEDOUT;
    }
    return 0;
}

static void start(void)
{
    struct phase *phase = &w.phase;

    phase->start_ns = clock_now() + 2 * NS_PER_MS;
    phase->stop_ns =
        phase->start_ns + (phase->traffic == TRAFFIC_STREAM ? w.stream_ns : 60 * NS_PER_S);
    phase->open_ns = phase->start_ns;
    phase->close_ns = phase->stop_ns;
    for (uint32_t i = 0; i < w.rank_count; i++)
        transport_tcp.poll(w.ranks[i].lane, clock_now());
}

static void ready_to_run(void)
{
    if (prepare() != 0 || connect_all(LIMIT_NS) != 0)
        fail_msg("not ready: %s", w.err.text);
    start();
}

static void poll_all(void)
{
    if (w.pump != NULL)
        w.pump();
    for (uint32_t i = 0; i < w.rank_count; i++)
        if (w.ranks[i].lane != NULL)
            transport_tcp.poll(w.ranks[i].lane, clock_now());
}

static bool is_finished(void)
{
    for (uint32_t i = 0; i < w.rank_count; i++)
        if (!w.ranks[i].lane->tx_done || !w.ranks[i].lane->rx_done)
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
    return w.ranks[rank].lane != NULL ? w.ranks[rank].lane->error.text : "";
}

static void check_ended(void)
{
    for (uint32_t i = 0; i < w.rank_count; i++)
        assert_string_equal(error_of(i), "");
}

static void run(void)
{
    POLL_UNTIL(is_finished())
    check_ended();
}

static void check_verified(void)
{
    for (uint32_t i = 0; i < w.flow_count; i++) {
        const struct flow_side *from = &w.flows[i].source, *to = &w.flows[i].destination;

        assert_int_equal(to->corrupted + to->reordered, 0);
        assert_true(from->live.payload_bytes > 0);
        assert_int_equal(to->live.payload_bytes, from->live.payload_bytes);
        assert_int_equal(to->live.messages, from->live.messages);
    }
}

static void play(void)
{
    ready_to_run();
    run();
    check_verified();
}

static unsigned descriptors;

static int setup(void **state)
{
    descriptors = open_descriptors();
    world_open(4, false);
    return 0;
}

/* Every test also proves that it leaves no descriptor open. */
static int teardown(void **state)
{
    finish();
    pattern_plan_free(w.plan);
    for (uint32_t i = 0; i < w.rank_count; i++)
        transport_tcp.close(w.ranks[i].port);
    return open_descriptors() == descriptors ? 0 : -1;
}

static double metric_of(uint32_t rank, const char *name)
{
    struct lane *lane = w.ranks[rank].lane;
    const struct lane_flow *flow =
        lane->request.send_count > 0 ? &lane->request.sends[0] : &lane->request.receives[0];
    struct flow_reading reading = {0};

    transport_tcp.read_flow(lane, flow, &reading);
    for (unsigned i = 0; i < reading.metric_count; i++)
        if (strcmp(reading.metrics[i].name, name) == 0)
            return reading.metrics[i].value;
    return -1;
}

/* --- who is no partner --- */

static int call(const struct blob *blob)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memcpy(&address.sin_port, blob->bytes + PORT_AT, sizeof address.sin_port);
    memcpy(&address.sin_addr, blob->bytes + ADDRESS_AT, sizeof address.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* A listener, of which a flow's source is told instead of its destination. */
static int mislead(struct flow *flow)
{
    static struct blob blobs[2];
    struct blob *blob = &blobs[flow - w.flows];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *blob = w.ranks[flow->dst].blob;
    memcpy(blob->bytes + PORT_AT, &address.sin_port, sizeof address.sin_port);
    memcpy(blob->bytes + ADDRESS_AT, &address.sin_addr, sizeof address.sin_addr);
    flow->other = blob;
    return fd;
}

/* --- streams --- */

static void options_are_used(void **state)
{
    add(0, 1, PATTERN_GENERATE);
    w.options.send_buffer = 65536;
    w.options.receive_buffer = 100000;
    snprintf(w.options.congestion, sizeof w.options.congestion, "reno");
    play();
    assert_string_equal(w.ranks[0].lane->variant, "congestion control reno");
    assert_int_equal((int)metric_of(0, "send_buffer_bytes"), 131072);
    assert_int_equal((int)metric_of(1, "receive_buffer_bytes"), 200000);
    assert_int_equal((int)metric_of(1, "send_buffer_bytes"), -1);
}

/* While the tail does not read, the head must come to rest: nobody buffers without bound. */
static void a_chain_slows_its_head(void **state)
{
    uint64_t before = 0;

    for (uint32_t i = 0; i < 3; i++)
        add(i, i + 1, i == 0 ? PATTERN_GENERATE : PATTERN_FORWARD);
    w.phase.traffic = TRAFFIC_STREAM;
    w.stream_ns = 20 * NS_PER_S;
    w.options.send_buffer = w.options.receive_buffer = 100000;
    ready_to_run();
    for (unsigned round = 0; round < 2; round++) {
        before = w.flows[0].source.live.payload_bytes;
        for (int64_t until_ns = clock_now() + 300 * NS_PER_MS; clock_now() < until_ns;)
            for (uint32_t i = 0; i < 3; i++)
                transport_tcp.poll(w.ranks[i].lane, clock_now());
    }
    assert_true(before > 0);
    assert_int_equal(w.flows[0].source.live.payload_bytes, before);
    for (uint32_t i = 0; i < 4; i++)
        w.ranks[i].lane->stop_ns = clock_now();
    run();
    check_verified();
}

static void poll_until_sent(uint32_t rank)
{
    while (w.ranks[rank].lane->stopped_ns == 0)
        transport_tcp.poll(w.ranks[rank].lane, clock_now());
}

/* A byte is another than the one that was sent. */
static void a_wrong_byte_is_found(void **state)
{
    const struct flow *flow = add(0, 1, PATTERN_GENERATE);

    w.phase.transfer_bytes = 3000;
    w.phase.sizes[0] = 1000;
    ready_to_run();
    poll_until_sent(0);
    message_payload[500] ^= 1; /* as the receiver expects it in the first message */
    POLL_UNTIL(is_finished())
    message_payload[500] ^= 1;
    check_ended();
    assert_int_equal(flow->destination.corrupted, 1);
    assert_int_equal(flow->destination.live.payload_bytes, 2999);
    assert_int_equal(flow->destination.live.messages, 2);
}

/* In mid stream; and when all is written and the end mark behind it, but not all has arrived:
 * nobody will ever acknowledge the rest. The next phase has nothing of it. */
static void a_partner_dies(void **state)
{
    const struct flow *flow = add(0, 1, PATTERN_GENERATE);

    for (unsigned written = 0; written < 2; written++) {
        w.phase.transfer_bytes = written ? 150000 : UINT64_C(1) << 40;
        w.options.receive_buffer = written ? 1 : 0;
        w.options.send_buffer = written ? 200000 : 0;
        ready_to_run();
        if (written)
            poll_until_sent(0);
        else
            POLL_UNTIL(flow->destination.live.payload_bytes >= 1000000)
        assert_int_equal(flow->destination.corrupted, 0);
        transport_tcp.destroy(w.ranks[1].lane);
        w.ranks[1].lane = NULL;
        POLL_UNTIL(error_of(0)[0] != '\0')
        assert_non_null(strstr(error_of(0), "(rank 1) broke"));
        assert_false(w.ranks[0].lane->tx_done);
        assert_int_equal(transport_tcp.poll(w.ranks[0].lane, clock_now()), CLOCK_NEVER);
        finish();
    }
    w.options.receive_buffer = w.options.send_buffer = 0;
    ready_to_run();
    transport_tcp.destroy(w.ranks[0].lane);
    w.ranks[0].lane = NULL;
    POLL_UNTIL(error_of(1)[0] != '\0')
    assert_non_null(strstr(error_of(1), "rank 0"));
    assert_false(w.ranks[1].lane->rx_done);
    finish();
    play();
}

/* --- without the key --- */

#define SILENT 700
#define HALF_OPEN 64

static uint64_t rejected_by(uint32_t rank, const char *because)
{
    struct port_facts facts;

    transport_tcp.facts(w.ranks[rank].port, &facts, false);
    if (facts.rejected > 0 && strstr(facts.last_rejected, because) == NULL)
        fail_msg("'%s' does not say '%s'", facts.last_rejected, because);
    return facts.rejected;
}

static void call_silently(int silent[SILENT])
{
    w.ranks[1].port->half_open_most = HALF_OPEN;
    for (int i = 0; i < SILENT; i++)
        silent[i] = call(&w.ranks[1].blob);
}

/* More silent connections than may be half open at once, and one that talks nonsense: they crowd
 * out the flow's own, which is called again and comes through, and the port knows how many it
 * dropped. */
static void the_unauthenticated_hold_up_nobody(void **state)
{
    static const uint8_t nonsense[1000] = "GET / HTTP/1.0\r\n\r\n";
    int silent[SILENT], talker;
    char byte[64];

    add(0, 1, PATTERN_GENERATE);
    assert_int_equal(prepare(), 0);
    call_silently(silent);
    talker = call(&w.ranks[1].blob);
    assert_true(send(talker, nonsense, sizeof nonsense, MSG_NOSIGNAL) > 0);
    assert_int_equal(connect_all(LIMIT_NS), 0);
    assert_true(((struct tcp_lane *)(void *)w.ranks[0].lane)->outs[0].closed_ns > 0);
    start();
    run();
    check_verified();
    assert_true(recv(talker, byte, sizeof byte, 0) > 0); /* the challenge ... */
    assert_true(recv(talker, byte, sizeof byte, 0) <= 0);
    assert_in_range(rejected_by(1, "127.0.0.1 port "), SILENT - HALF_OPEN, SILENT + 2);
    assert_int_equal(rejected_by(0, ""), 0);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
    close(talker);
}

/* Whoever waits for the port to have something to connect sleeps on while idle connections crowd
 * it; a turn later some of them go. Those that stay count as rejected, too, a second later. */
static void idle_connections_wake_nobody(void **state)
{
    struct pollfd waits = {.events = POLLIN, .fd = w.ranks[1].port->epoll};
    int64_t now_ns = clock_now();
    struct tcp_arrival *arrival;
    int silent[SILENT];
    uint64_t dropped;

    add(0, 1, PATTERN_GENERATE);
    assert_int_equal(prepare(), 0);
    call_silently(silent);
    assert_int_equal(poll(&waits, 1, 0), 1);
    assert_int_equal(transport_tcp.connect(w.ranks[1].lane, now_ns, &w.err), -EAGAIN);
    assert_int_equal(poll(&waits, 1, 0), 0);
    dropped = rejected_by(1, "");
    for (int turn = 0; turn < 2; turn++) {
        now_ns += turn == 0 ? NS_PER_MS : 20 * NS_PER_MS;
        assert_int_equal(transport_tcp.connect(w.ranks[1].lane, now_ns, &w.err), -EAGAIN);
        assert_int_equal(rejected_by(1, "") > dropped, turn);
    }
    assert_int_equal(poll(&waits, 1, 0), 0);
    dropped = rejected_by(1, "");
    TAILQ_FOREACH(arrival, &w.ranks[1].port->arrivals[false], link)
    arrival->came_ns -= 2 * NS_PER_S;
    assert_int_equal(rejected_by(1, "it keeps silent"), dropped + HALF_OPEN);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

/* Ports are opened before the run's key is known: nobody may take what they derive from none for
 * it. */
static void a_key_of_zeros_opens_nothing(void **state)
{
    static const char text[] = "switchbench tcp\0test";
    static const uint8_t zeros[TRANSPORT_KEY_BYTES];
    const struct tcp_place place = {.trial = 7, .phase = 1, .dst = 1, .tag = 0x1234};
    struct tcp_challenge challenge;
    uint8_t key[TCP_KEY_BYTES];
    struct tcp_claim claim;
    int intruder = call(&w.ranks[1].blob);

    crypto_generichash(key, sizeof key, (const uint8_t *)text, sizeof text - 1, zeros,
                       sizeof zeros);
    add(0, 1, PATTERN_GENERATE);
    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_all(0), -ETIMEDOUT); /* once: the challenge is sent */
    assert_int_equal(recv(intruder, &challenge, sizeof challenge, MSG_WAITALL), sizeof challenge);
    tcp_claim_make(&claim, &place, &challenge, key);
    assert_int_equal(send(intruder, &claim, sizeof claim, MSG_NOSIGNAL), sizeof claim);
    assert_int_equal(connect_all(LIMIT_NS), 0);
    start();
    run();
    check_verified();
    assert_true(recv(intruder, &claim, sizeof claim, 0) <= 0);
    assert_int_equal(rejected_by(1, "it does not hold this run's key"), 1);
    close(intruder);
}

/* The one that calls, and the one that is called. */
static void both_ends_must_hold_the_key(void **state)
{
    struct transport_secret other = w.secret;
    struct tcp_challenge challenge;
    struct tcp_claim claim;
    int listener, fd;

    other.key[0] ^= 1;
    w.ranks[3].secret = &other;
    add(3, 1, PATTERN_GENERATE);
    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_all(LIMIT_NS), -ECONNABORTED);
    assert_non_null(strstr(w.err.text, "this run's key"));
    assert_true(rejected_by(1, "127.0.0.5 port ") > 0);
    assert_true(rejected_by(1, "it does not hold this run's key") > 0);
    finish();

    w.flow_count = 0;
    listener = mislead(add(0, 1, PATTERN_GENERATE));
    assert_int_equal(prepare(), 0);
    fd = accept(listener, NULL, NULL);
    tcp_challenge_make(&challenge);
    assert_true(send(fd, &challenge, sizeof challenge, 0) > 0);
    assert_int_equal(connect_all(50 * NS_PER_MS), -ETIMEDOUT);
    assert_int_equal(recv(fd, &claim, sizeof claim, MSG_WAITALL), sizeof claim);
    assert_true(send(fd, claim.mac, sizeof claim.mac, 0) > 0);
    assert_int_equal(connect_all(LIMIT_NS), -EPROTO);
    assert_non_null(strstr(w.err.text, "does not hold this run's key"));
    close(fd);
    close(listener);
}

static void derive(uint8_t *key, char byte, const char *run_id)
{
    struct transport_secret secret = {.run_id = run_id};

    memset(secret.key, byte, sizeof secret.key);
    tcp_key_derive(key, &secret);
}

/* A claim is valid for its challenge, key and run alone, and any changed bit of a claim or a proof
 * is found; a proof is no claim. */
static void nothing_is_forged_or_replayed(void **state)
{
    const struct tcp_place place = {3, 70000, 65535, 1, 0xabcd, 9};
    struct tcp_challenge challenge, later;
    struct tcp_claim claim, changed;
    struct tcp_proof proof, other;
    struct tcp_place back;
    uint8_t key[TCP_KEY_BYTES], other_key[TCP_KEY_BYTES];

    derive(key, 'k', "run");
    tcp_challenge_make(&challenge);
    tcp_challenge_make(&later);
    assert_true(tcp_challenge_valid(&challenge));
    tcp_claim_make(&claim, &place, &challenge, key);
    assert_true(tcp_claim_valid(&claim, &challenge, key, &back));
    assert_memory_equal(&back, &place, sizeof place);
    tcp_proof_make(&proof, &claim, &challenge, key);
    assert_true(tcp_proof_valid(&proof, &claim, &challenge, key));
    for (size_t i = 0; i < 8 * sizeof claim; i++) {
        changed = claim;
        ((uint8_t *)&changed)[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_false(tcp_claim_valid(&changed, &challenge, key, &back));
    }
    for (size_t i = 0; i < 8 * sizeof proof; i++) {
        other = proof;
        other.mac[i / 8] ^= (uint8_t)(1 << i % 8);
        assert_false(tcp_proof_valid(&other, &claim, &challenge, key));
    }
    assert_false(tcp_claim_valid(&claim, &later, key, &back));
    tcp_claim_make(&changed, &place, &challenge, key); /* with another nonce */
    assert_false(tcp_proof_valid(&proof, &changed, &challenge, key));
    memcpy(other.mac, claim.mac, sizeof other.mac);
    assert_false(tcp_proof_valid(&other, &claim, &challenge, key));
    for (unsigned i = 0; i < 2; i++) {
        derive(other_key, i == 0 ? 'K' : 'k', i == 0 ? "run" : "another run");
        assert_memory_not_equal(key, other_key, sizeof key);
        assert_false(tcp_claim_valid(&claim, &challenge, other_key, &back));
    }
}

/* Whoever derives a key before the run's is known must find out at once. */
static void a_key_of_zeros_ends_the_program(void **state)
{
    uint8_t key[TCP_KEY_BYTES];
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
}

/* --- partners that are not there --- */

static const struct blob *nowhere(uint32_t rank)
{
    static struct blob blobs[RANKS_MOST];

    blobs[rank] = w.ranks[rank].blob;
    blobs[rank].bytes[PORT_AT] = 0;
    blobs[rank].bytes[PORT_AT + 1] = 1; /* TCP port 1 */
    return &blobs[rank];
}

/* A load is refused where one pair has no way; its check says which have none, also of a chain. */
static void a_check_finds_all_that_have_no_way(void **state)
{
    for (unsigned chain = 0; chain < 2; chain++) {
        static const uint32_t pairs[2][5][2] = {{{0, 1}, {1, 0}, {2, 3}, {3, 2}, {0, 2}},
                                                {{0, 1}, {1, 2}, {2, 3}}};

        w.flow_count = 0;
        for (unsigned i = 0; i < (chain ? 3 : 5); i++)
            add(pairs[chain][i][0], pairs[chain][i][1],
                chain && i > 0 ? PATTERN_FORWARD : PATTERN_GENERATE);
        w.flows[0].other = nowhere(1);
        w.flows[3].other = chain ? NULL : nowhere(2);
        w.phase.traffic = TRAFFIC_TRANSFER;
        assert_int_equal(prepare() != 0 ? 0 : connect_all(3 * NS_PER_S), -ECONNREFUSED);
        assert_non_null(strstr(w.err.text, "127.0.0.2"));
        assert_non_null(strstr(w.err.text, "127.0.0.3 port 1 (rank 1): Connection refused"));
        finish();
        w.phase.traffic = TRAFFIC_PROBE;
        w.phase.probes = 3;
        assert_int_equal(prepare(), 0);
        (void)connect_all(100 * NS_PER_MS);
        for (uint32_t i = 0; i < w.rank_count; i++) /* those that nobody calls wait no longer */
            assert_int_equal(connect_rank(i, 13 * NS_PER_S), 0);
        start();
        run();
        for (uint32_t i = 0; i < w.flow_count; i++)
            assert_int_equal(w.flows[i].destination.live.messages,
                             chain || w.flows[i].other != NULL ? 0 : 3);
        finish();
    }
}

/* A check's place was given up, and its source, which is a little later, calls; or the partner's
 * kernel answers for it, and nobody else ever does. */
static void a_check_may_be_late(void **state)
{
    for (unsigned never = 0; never < 2; never++) {
        const struct flow *flow;
        int listener = -1;

        w.flow_count = 0;
        flow = add(0, 1, PATTERN_GENERATE);
        add(1, 0, PATTERN_GENERATE);
        if (never)
            listener = mislead(&w.flows[0]);
        w.phase.traffic = TRAFFIC_PROBE;
        w.phase.probes = 3;
        w.phase.probe_timeout_ns = 400 * NS_PER_MS;
        assert_int_equal(prepare(), 0);
        assert_int_equal(connect_rank(1, 0), -EAGAIN);
        assert_int_equal(connect_rank(1, 510 * NS_PER_MS), -EAGAIN);
        assert_true(((struct tcp_lane *)(void *)w.ranks[1].lane)->ins[0].lost);
        assert_int_equal(connect_all(LIMIT_NS), 0);
        start();
        run();
        assert_int_equal(flow->destination.live.messages, never ? 0 : 3);
        assert_int_equal(w.flows[1].destination.live.messages, 3);
        finish();
        close(listener);
    }
}

/* Rank 0 is a phase ahead of rank 1: its connection waits while a whole phase passes by on the same
 * ports, and is taken up; but not that of one that waited and gave up. */
static void a_partner_is_a_phase_ahead(void **state)
{
    for (unsigned gives_up = 0; gives_up < 2; gives_up++) {
        struct lane *ahead, *behind;
        struct flow_side sides[2] = {0};
        struct lane_flow flows[2];
        struct phase phase = w.phase;

        w.flow_count = 0;
        add(0, 1, PATTERN_GENERATE);
        phase.number = w.phase.number + 1;
        for (uint32_t i = 0; i < 2; i++) {
            struct lane_request request = {.port = w.ranks[i].port,
                                           .secret = &w.secret,
                                           .phase = &phase,
                                           .rank = i,
                                           .ranks = 2,
                                           .sends = &flows[i],
                                           .send_count = i == 0,
                                           .receives = &flows[i],
                                           .receive_count = i == 1,
                                           .count = &w.ranks[i].count};

            flows[i] =
                (struct lane_flow){.dst = 1, .partner = w.ranks[1 - i].blob, .side = &sides[i]};
            if (i == 1 && gives_up)
                break;
            assert_int_equal(transport_tcp.prepare(i == 0 ? &ahead : &behind, &request, &w.err), 0);
            if (i == 1)
                continue;
            assert_int_equal(transport_tcp.connect(ahead, clock_now(), &w.err), -EAGAIN);
            play();
            assert_int_equal(transport_tcp.connect(ahead, clock_now(), &w.err), -EAGAIN);
            finish();
        }
        if (gives_up) {
            transport_tcp.destroy(ahead);
            assert_int_equal(w.phase.number, phase.number);
            play();
            continue;
        }
        POLL_UNTIL((transport_tcp.connect(behind, clock_now(), &w.err) |
                    transport_tcp.connect(ahead, clock_now(), &w.err)) == 0)
        transport_tcp.destroy(ahead);
        transport_tcp.destroy(behind);
    }
}

/* Who is waited for is named: somebody who takes the call and says nothing, and one who never
 * calls. */
static void a_silent_partner_is_named(void **state)
{
    int listener = mislead(add(0, 1, PATTERN_GENERATE));

    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_all(100 * NS_PER_MS), -ETIMEDOUT);
    assert_int_equal(connect_rank(0, 29 * NS_PER_S), -EAGAIN);
    assert_int_equal(connect_rank(0, 31 * NS_PER_S), -ETIMEDOUT);
    assert_non_null(strstr(w.err.text, "(rank 1): it is connected, but the partner is not ready"));
    assert_int_equal(connect_rank(1, 31 * NS_PER_S), -ETIMEDOUT);
    assert_non_null(strstr(w.err.text, "no connection came from rank 0 (127.0.0.2"));
    close(listener);
}

/* While one partner still has time, the one whose time is up is named. */
static void who_is_out_of_time_is_named(void **state)
{
    int listener = mislead(add(0, 1, PATTERN_GENERATE));
    int deaf = mislead(add(0, 2, PATTERN_GENERATE));
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    int caller = socket(AF_INET, SOCK_STREAM, 0);

    /* Its queue is full: the kernel answers no further call. */
    assert_int_equal(listen(deaf, 0), 0);
    assert_int_equal(getsockname(deaf, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(connect(caller, (struct sockaddr *)&address, size), 0);
    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_rank(0, 0), -EAGAIN); /* the wait begins */
    assert_int_equal(connect_rank(0, 9 * NS_PER_S), -EAGAIN);
    assert_non_null(strstr(w.err.text, "(rank 1): it is connected, but the partner is not ready"));
    assert_int_equal(connect_rank(0, 11 * NS_PER_S), -ETIMEDOUT);
    assert_non_null(strstr(w.err.text, "(rank 2): "));
    close(caller);
    close(deaf);
    close(listener);
}

static void what_can_not_be_is_refused(void **state)
{
    static const struct {
        const char *iface, *address, *because;
        int code;
    } cases[] = {
        {NULL, NULL, "needs an interface", -EINVAL},
        {"nosuch0", NULL, "no interface nosuch0", -ENODEV},
        {NULL, "198.18.77.1", "198.18.77.1 is not on any interface", -EADDRNOTAVAIL},
        {"lo", "198.18.77.1", "not on interface lo", -EADDRNOTAVAIL},
        {"lo", "1.2.3", "not an IPv4 or IPv6 address", -EINVAL},
    };
    struct rlimit before, few;

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct port_conf conf = {
            .name = "node9:e0", .iface = cases[i].iface, .tcp_address = cases[i].address};
        struct transport_port *port;
        struct err err = {0};

        assert_int_equal(transport_tcp.open(&port, &conf, &w.run, &err), cases[i].code);
        assert_non_null(strstr(err.text, "node9:e0"));
        assert_non_null(strstr(err.text, cases[i].because));
    }
    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = open_descriptors() + 20;
    setrlimit(RLIMIT_NOFILE, &few);
    add(0, 1, PATTERN_GENERATE);
    w.options.streams = 200;
    assert_true(prepare() < 0);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_non_null(strstr(w.err.text, "ulimit -n"));
}

/* --- schedules --- */

static void begin_schedule(const struct pattern_request *request, uint64_t count)
{
    char why[256] = "";

    for (uint32_t i = request->n; i < w.rank_count; i++)
        transport_tcp.close(w.ranks[i].port);
    for (; w.rank_count < request->n; w.rank_count++) {
        struct rank *rank = &w.ranks[w.rank_count];

        *rank = (struct rank){.secret = &w.secret, .conf = {.name = "node:lo"}};
        snprintf(rank->address, sizeof rank->address, "127.0.0.%u", w.rank_count + 2);
        rank->conf.tcp_address = rank->address;
        open_port(rank);
    }
    w.rank_count = request->n;
    w.flow_count = 0;
    pattern_plan_free(w.plan);
    w.plan = NULL;
    assert_int_equal(pattern_plan_make(&w.plan, request, why, sizeof why), 0);
    w.phase.traffic = TRAFFIC_SCHEDULE;
    w.phase.number = 0;
    w.phase.schedule =
        (struct schedule_options){.count = count, .batch = 1, .warmup = 1, .compute = count > 0};
    for (uint32_t rank = 0; rank < request->n; rank++) {
        struct pattern_flow flows[FLOWS_MOST];
        size_t found = pattern_flows(w.plan, 0, rank, PATTERN_SENDS, flows, FLOWS_MOST);

        for (size_t i = 0; i < found; i++)
            add(flows[i].src, flows[i].dst, flows[i].role);
    }
}

static ino_t inode_of(int fd)
{
    struct stat found;

    assert_int_equal(fstat(fd, &found), 0);
    return found.st_ino;
}

/* Acknowledgements travel with what is sent the other way: two ranks have one connection, whether
 * or not messages go both ways. */
static void two_ranks_have_one_connection(void **state)
{
    static const struct pattern_request requests[] = {
        {.name = "exchange", .n = 2, .bytes = 8}, /* two messages of one flow in a step */
        {.name = "bcast", .n = RANKS_MOST, .bytes = 1000},
        {.name = "aapc", .n = RANKS_MOST, .local = true, .bytes = 8},
    };

    for (size_t r = 0; r < COUNT(requests); r++) {
        unsigned ends = 0, pairs = 0;

        begin_schedule(&requests[r], 3);
        ready_to_run();
        run();
        for (uint32_t i = 0; i < w.rank_count; i++) {
            const struct tcp_lane *lane = (const struct tcp_lane *)(void *)w.ranks[i].lane;

            assert_int_equal(w.ranks[i].executor->execution.verified, 3);
            ends += lane->base.out_count;
            for (unsigned in = 0; in < lane->base.in_count; in++) {
                bool alone = true;

                for (unsigned o = 0; o < lane->base.out_count; o++)
                    alone = alone && inode_of(lane->outs[o].fd) != inode_of(lane->ins[in].fd);
                ends += alone;
            }
        }
        for (uint32_t a = 0; a < w.flow_count; a++) {
            bool first = true; /* of two flows between the same ranks */

            for (uint32_t b = 0; b < a; b++)
                first = first &&
                        !(w.flows[a].src == w.flows[b].dst && w.flows[a].dst == w.flows[b].src);
            pairs += first;
        }
        assert_int_equal(ends, 2 * pairs);
        finish();
    }
}

/* A rank that has gone: all others learn of it, whomever they wait for; who had to do with it names
 * it, unless somebody else who has hung up for it was seen first. Of one that says nothing for long
 * the kernel is told to ask. */
static void a_dead_partner_ends_all(void **state)
{
    const struct pattern_request request = {.name = "exchange", .n = RANKS_MOST, .bytes = 1u << 20};
    const struct tcp_lane *lane;
    uint32_t named = 0;
    int value = 0;
    socklen_t size = sizeof value;

    begin_schedule(&request, 0);
    ready_to_run();
    lane = (const struct tcp_lane *)(void *)w.ranks[0].lane;
    assert_int_equal(getsockopt(lane->ins[0].fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
    assert_true(value != 0);
    assert_int_equal(getsockopt(lane->ins[0].fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &size), 0);
    assert_in_range(value, 1, 30);
    POLL_UNTIL(clock_now() >= w.phase.start_ns + 50 * NS_PER_MS)
    transport_tcp.destroy(w.ranks[2].lane);
    w.ranks[2].lane = NULL;
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
    const char *reason = made ? NULL : netlab_make(2, 1500);

    if (reason != NULL) {
        print_message("skipped: %s\n", reason);
        return -1;
    }
    made = true;
    descriptors = open_descriptors();
    world_open(2, true);
    return 0;
}

#define IP(...) assert_int_equal(netlab_run((const char *const[]){"ip", __VA_ARGS__, NULL}), 0)

/* Puts a rank's port at another address, perhaps in another namespace. */
static void move_to(uint32_t rank, size_t namespace, const char *address)
{
    transport_tcp.close(w.ranks[rank].port);
    w.ranks[rank].conf.netns = netlab_namespace(namespace);
    w.ranks[rank].conf.tcp_address = address;
    open_port(&w.ranks[rank]);
}

static void oversleep(void)
{
    clock_sleep_until(clock_now() + NS_PER_MS);
}

/* 80 Mbit/s at layer 1 are 80 * 1448 / 1538 Mbit/s of payload at MTU 1500. A worker on a busy core
 * comes when more is due than a segment, and less than two: its pace must not cut segments, whose
 * headers would be load of their own. */
static void a_rate_is_at_layer_1_in_full_segments(void **state)
{
    const double rate = 80e6 / 8 * 1448 / 1538;
    const struct flow_side *side = &w.flows[0].source;
    double payload, segments;

    add(0, 1, PATTERN_GENERATE);
    w.phase.traffic = TRAFFIC_STREAM;
    w.phase.load = (struct load){.rate_bps = 80e6};
    w.stream_ns = NS_PER_S;
    play();
    assert_true((double)side->intended > rate * 0.999);
    /* The block that was begun before the stop is asked for, too. */
    assert_true((double)side->intended < rate * 1.001 + 65536);
    assert_true((double)side->live.payload_bytes > rate * 0.5);
    assert_true((double)side->live.payload_bytes < rate * 1.001 + 65536);
    finish();
    w.phase.load.rate_bps = 10e6;
    w.pump = oversleep;
    play();
    payload = (double)side->live.payload_bytes;
    segments = metric_of(0, "segments_sent");
    assert_true(payload > 0.5 * 10e6 / 8);
    assert_true(segments >= payload / 1448 && segments < 1.1 * payload / 1448 + 20);
}

/* Over IPv6; between two families, and on one host, nothing is measured. */
static void address_families(void **state)
{
    struct port_facts facts;

    for (size_t i = 0; i < 2; i++) {
        IP("-n", netlab_namespace(i), "address", "add", i == 0 ? "fd00:7::1/64" : "fd00:7::2/64",
           "dev", "eth0", "nodad");
        IP("-n", netlab_namespace(i), "link", "set", "lo", "up");
    }
    add(0, 1, PATTERN_GENERATE);
    add(1, 0, PATTERN_GENERATE);
    move_to(0, 0, "fd00:7::1");
    move_to(1, 1, "fd00:7::2");
    transport_tcp.facts(w.ranks[1].port, &facts, false);
    assert_string_equal(facts.ipv6, "fd00:7::2");
    play();
    finish();
    move_to(1, 0, netlab_address(0));
    assert_int_equal(prepare(), -EAFNOSUPPORT);
    assert_non_null(strstr(w.err.text, "another address family"));
    finish();
    move_to(1, 0, "fd00:7::1");
    assert_int_equal(prepare(), -EINVAL);
    assert_non_null(strstr(w.err.text, "network namespace of its own"));
}

/* Nobody has the address; or one takes packets and never answers. A link that goes down is seen. */
static void no_way_is_named(void **state)
{
    struct port_facts facts;

    add(0, 1, PATTERN_GENERATE);
    w.ranks[1].blob.bytes[ADDRESS_AT + 3] = 200;
    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_all(LIMIT_NS), -EHOSTUNREACH);
    assert_non_null(strstr(w.err.text, "10.99.0.1"));
    assert_non_null(strstr(w.err.text, "10.99.0.200"));
    finish();
    w.ranks[1].blob.bytes[ADDRESS_AT + 3] = 201;
    IP("-n", netlab_namespace(0), "neighbour", "add", "10.99.0.201", "lladdr", "02:00:00:00:00:99",
       "dev", "eth0");
    assert_int_equal(prepare(), 0);
    assert_int_equal(connect_rank(0, 0), -EAGAIN);
    assert_int_equal(connect_rank(0, 11 * NS_PER_S), -ETIMEDOUT);
    assert_non_null(strstr(w.err.text, "from 10.99.0.1 port"));
    assert_non_null(strstr(w.err.text, "to 10.99.0.201 port"));
    assert_non_null(strstr(w.err.text, "timed out"));
    for (unsigned up = 0; up < 2; up++) {
        IP("-n", netlab_switch(), "link", "set", "p0", up ? "up" : "down");
        transport_tcp.facts(w.ranks[0].port, &facts, false);
        assert_int_equal(facts.link_up, up);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define NAMESPACES(name) cmocka_unit_test_setup_teardown(name, setup_namespaces, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(options_are_used),
        TEST(a_chain_slows_its_head),
        TEST(a_wrong_byte_is_found),
        TEST(a_partner_dies),
        TEST(the_unauthenticated_hold_up_nobody),
        TEST(idle_connections_wake_nobody),
        TEST(a_key_of_zeros_opens_nothing),
        TEST(both_ends_must_hold_the_key),
        TEST(nothing_is_forged_or_replayed),
        TEST(a_key_of_zeros_ends_the_program),
        TEST(a_check_finds_all_that_have_no_way),
        TEST(a_check_may_be_late),
        TEST(a_partner_is_a_phase_ahead),
        TEST(a_silent_partner_is_named),
        TEST(who_is_out_of_time_is_named),
        TEST(what_can_not_be_is_refused),
        TEST(two_ranks_have_one_connection),
        TEST(a_dead_partner_ends_all),
    };
    const struct CMUnitTest apart[] = {
        NAMESPACES(a_rate_is_at_layer_1_in_full_segments),
        NAMESPACES(address_families),
        NAMESPACES(no_way_is_named),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    if (geteuid() != 0)
        return failed;
    return failed + cmocka_run_group_tests_name("namespaces", apart, NULL, NULL);
}
