/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tcp transport on loopback addresses: no privilege needed.
 */
#include "tcp_detour.h"
#include "tcp_world.h"

#include "tcp/handshake.h"
#include "tcp/tcp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define LIMIT_NS (20 * NS_PER_S)
#define CLAIM_END sizeof(struct tcp_claim) /* where blocks begin on a connection */

static struct world *world; /* too large for a stack */
static unsigned descriptors;

static int setup(void **state)
{
    descriptors = world_open_descriptors();
    world = malloc(sizeof *world);
    world_open(world, 4);
    return world ? 0 : -1;
}

/* Every test also proves that it leaves no descriptor open. */
static int teardown(void **state)
{
    world_close(world);
    free(world);
    return world_open_descriptors() == descriptors ? 0 : -1;
}

static void assert_verified(const struct world_flow *flow)
{
    assert_int_equal(flow->destination.corrupted, 0);
    assert_int_equal(flow->destination.reordered, 0);
    assert_true(flow->source.live.payload_bytes > 0);
    assert_int_equal(flow->destination.live.payload_bytes, flow->source.live.payload_bytes);
    assert_int_equal(flow->destination.live.messages, flow->source.live.messages);
    assert_true(flow->destination.first_ns > 0);
    assert_true(flow->destination.last_ns >= flow->destination.first_ns);
}

static void assert_no_error(void)
{
    for (uint32_t i = 0; i < world->rank_count; i++)
        assert_string_equal(world->ranks[i].lane ? world->ranks[i].lane->error.text : "", "");
}

static void play_all(void)
{
    bool finished = world_play(world, LIMIT_NS);

    assert_no_error();
    assert_true(finished);
    for (uint32_t i = 0; i < world->flow_count; i++)
        assert_verified(&world->flows[i]);
}

/* --- streams --- */

static void buffers_and_congestion_control(void **state)
{
    world_add(world, 0, 1, PATTERN_GENERATE);
    world->options.send_buffer = 65536;
    world->options.receive_buffer = 100000;
    snprintf(world->options.congestion, sizeof world->options.congestion, "reno");
    play_all();
    assert_string_equal(world->ranks[0].lane->variant, "congestion control reno");
    assert_int_equal(world_metric(&world->ranks[0], &world->ranks[0].sends[0], "send_buffer_bytes"),
                     131072);
    assert_int_equal(
        world_metric(&world->ranks[1], &world->ranks[1].receives[0], "receive_buffer_bytes"),
        200000);
}

/* --- transfers, probes, chains --- */

/* As over the other transports (RFC 2330 11.1): the time at which the next one leaves, as poll
 * tells whoever may sleep until then, is not the same distance again and again. */
static void latency_probes_leave_at_random_distances(void **state)
{
    const int64_t gap_ns = 20 * NS_PER_MS;
    int64_t now_ns, shortest_ns = CLOCK_NEVER, longest_ns = 0;

    world_add(world, 0, 1, PATTERN_GENERATE);
    world->phase.load = (struct load){.rate_fps = 0.001};
    world->phase.latency.probe_fps = 50;
    world->stream_ns = 1000 * NS_PER_S;
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    world_start(world);
    now_ns = transport_tcp.poll(world->ranks[0].lane, world->phase.start_ns);
    for (unsigned i = 0; i < 100; i++) {
        int64_t next_ns = transport_tcp.poll(world->ranks[0].lane, now_ns);

        assert_in_range(next_ns - now_ns, 1, 2 * gap_ns);
        shortest_ns = next_ns - now_ns < shortest_ns ? next_ns - now_ns : shortest_ns;
        longest_ns = next_ns - now_ns > longest_ns ? next_ns - now_ns : longest_ns;
        now_ns = next_ns;
    }
    assert_in_range(shortest_ns, gap_ns / 2, gap_ns * 6 / 10);
    assert_in_range(longest_ns, gap_ns * 14 / 10, gap_ns * 3 / 2);
}

static void add_chain(void)
{
    for (uint32_t i = 0; i < 3; i++)
        world_add(world, i, i + 1, i == 0 ? PATTERN_GENERATE : PATTERN_FORWARD);
}

static void chain_forwards_a_transfer(void **state)
{
    add_chain();
    world->phase.traffic = TRAFFIC_TRANSFER;
    world->phase.transfer_bytes = 20000003;
    play_all();
    assert_int_equal(world->flows[2].destination.live.payload_bytes, 20000003);
}

/* While the tail does not read, the head must come to rest: nobody buffers without bound. */
static void chain_slows_its_head(void **state)
{
    uint64_t before;

    add_chain();
    world->stream_ns = 20 * NS_PER_S;
    world->options.send_buffer = world->options.receive_buffer = 100000;
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    world_start(world);
    for (unsigned round = 0; round < 2; round++) {
        before = world->flows[0].source.live.payload_bytes;
        for (int64_t until = clock_now() + 300 * NS_PER_MS; clock_now() < until;)
            for (uint32_t i = 0; i < 3; i++)
                transport_tcp.poll(world->ranks[i].lane, clock_now());
    }
    assert_true(before > 0);
    assert_int_equal(world->flows[0].source.live.payload_bytes, before);
    for (uint32_t i = 0; i < 4; i++)
        world->ranks[i].lane->stop_ns = clock_now();
    for (int64_t until = clock_now() + LIMIT_NS; !world_finished(world);) {
        assert_true(clock_now() < until);
        world_poll(world, clock_now());
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_verified(&world->flows[i]);
}

/* --- something in the middle --- */

static void flip_one(uint8_t *data, size_t bytes, uint64_t at)
{
    const uint64_t target = CLAIM_END + 500000;

    if (target >= at && target < at + bytes)
        data[target - at] ^= 0x01;
}

static void swap_two(uint8_t *data, size_t bytes, uint64_t at)
{
    /* Headers of the blocks 100 and 101, of 64 bytes each: swaps their sequences' last byte. */
    static const uint64_t places[] = {CLAIM_END + 100 * 64 + 7, CLAIM_END + 101 * 64 + 7};

    for (unsigned i = 0; i < 2; i++)
        if (places[i] >= at && places[i] < at + bytes)
            data[places[i] - at] ^= 100 ^ 101;
}

static void run_detour(struct detour *detour, void (*change)(uint8_t *, size_t, uint64_t))
{
    struct world_flow *flow = world_add(world, 0, 1, PATTERN_GENERATE);

    detour_open(detour, &world->ranks[1].blob);
    detour->change = change;
    flow->detour = &detour->blob;
    world->pump = detour_pump;
    world->way = detour;
    world->phase.traffic = TRAFFIC_TRANSFER;
    world->phase.transfer_bytes = 1000000;
}

static void detects_a_flipped_bit(void **state)
{
    static struct detour detour;

    run_detour(&detour, flip_one);
    assert_true(world_play(world, LIMIT_NS));
    assert_int_equal(world->flows[0].destination.corrupted, 1);
    assert_int_equal(world->flows[0].destination.live.payload_bytes, 999999);
    assert_int_equal(world->flows[0].destination.live.messages,
                     world->flows[0].source.live.messages - 1);
    detour_close(&detour);
}

static void detects_a_wrong_order(void **state)
{
    static struct detour detour;

    world->phase.sizes[0] = 64;
    run_detour(&detour, swap_two);
    assert_true(world_play(world, LIMIT_NS));
    assert_int_equal(world->flows[0].destination.reordered, 1);
    assert_int_equal(world->flows[0].destination.corrupted, 128);
    assert_int_equal(world->flows[0].destination.live.payload_bytes, 1000000 - 128);
    detour_close(&detour);
}

static void passes_unchanged(void **state)
{
    static struct detour detour;

    run_detour(&detour, NULL);
    play_all();
    detour_close(&detour);
}

static void partner_dies(void **state)
{
    static struct detour detour;
    int64_t until;

    run_detour(&detour, NULL);
    world->phase.transfer_bytes = UINT64_C(1) << 40;
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    world_start(world);
    while (world->flows[0].destination.live.payload_bytes < 1000000)
        world_poll(world, clock_now());
    detour_cut(&detour);
    until = clock_now() + LIMIT_NS;
    while (world->ranks[0].lane->error.text[0] == '\0' ||
           world->ranks[1].lane->error.text[0] == '\0') {
        assert_true(clock_now() < until);
        world_poll(world, clock_now());
    }
    assert_non_null(strstr(world->ranks[0].lane->error.text, "(rank 1) broke"));
    assert_non_null(strstr(world->ranks[1].lane->error.text, "rank 0"));
    assert_false(world->ranks[1].lane->rx_done);
    assert_int_equal(world->flows[0].destination.corrupted, 0);
    assert_int_equal(transport_tcp.poll(world->ranks[0].lane, clock_now()), CLOCK_NEVER);
    detour_close(&detour);
}

/* All is written and the end mark behind it, but not all has arrived: nobody will ever acknowledge
 * the rest. */
static void partner_dies_before_it_has_all(void **state)
{
    static struct detour detour;
    const struct lane *lane;
    int small = 1;
    int64_t until;

    run_detour(&detour, NULL);
    setsockopt(detour.listener, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    world->phase.transfer_bytes = 12000;
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    lane = world->ranks[0].lane;
    world->pump = NULL; /* the detour reads no more */
    world_start(world);
    while (lane->stopped_ns == 0)
        world_poll(world, clock_now());
    assert_int_equal(world->flows[0].source.live.payload_bytes, 12000);
    assert_false(lane->tx_done);
    detour_cut(&detour);
    until = clock_now() + LIMIT_NS;
    while (lane->error.text[0] == '\0') {
        assert_true(clock_now() < until);
        world_poll(world, clock_now());
    }
    assert_non_null(strstr(lane->error.text, "(rank 1) broke"));
    assert_false(lane->tx_done);
    detour_close(&detour);
}

/* The engine gives a phase up by finish alone. */
static void finish_in_mid_stream(void **state)
{
    world_add(world, 0, 1, PATTERN_GENERATE);
    world_add(world, 1, 2, PATTERN_FORWARD);
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    world_start(world);
    while (world->flows[1].destination.live.payload_bytes < 1000000)
        world_poll(world, clock_now());
    transport_tcp.destroy(world->ranks[1].lane);
    world->ranks[1].lane = NULL;
    for (int64_t until = clock_now() + LIMIT_NS; world->ranks[0].lane->error.text[0] == '\0' ||
                                                 world->ranks[2].lane->error.text[0] == '\0';) {
        assert_true(clock_now() < until);
        world_poll(world, clock_now());
    }
    world_finish(world);
    play_all();
}

/* --- without the key --- */

static int call(const struct blob *blob)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    memcpy(&address.sin_port, blob->bytes + 2, sizeof address.sin_port);
    memcpy(&address.sin_addr, blob->bytes + 4, sizeof address.sin_addr);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

/* More silent connections than may be half open at once, and one that talks nonsense: the flow
 * comes through, and the port knows how many it dropped. */
#define SILENT 700
#define HALF_OPEN 64
static void unauthenticated(void **state)
{
    static const uint8_t nonsense[1000] = "GET / HTTP/1.0\r\n\r\n";
    int silent[SILENT];
    int talker;
    char byte[64], last[128];
    uint64_t dropped;

    world->ranks[1].port->half_open_most = HALF_OPEN;
    for (int i = 0; i < SILENT; i++)
        silent[i] = call(&world->ranks[1].blob);
    talker = call(&world->ranks[1].blob);
    assert_true(send(talker, nonsense, sizeof nonsense, MSG_NOSIGNAL) > 0);
    world_add(world, 0, 1, PATTERN_GENERATE);
    play_all();
    assert_true(recv(talker, byte, sizeof byte, 0) > 0); /* the challenge ... */
    assert_true(recv(talker, byte, sizeof byte, 0) <= 0);
    dropped = tcp_port_rejected(world->ranks[1].port, last);
    assert_in_range(dropped, SILENT - HALF_OPEN, SILENT + 1);
    assert_non_null(strstr(last, "127.0.0.1 port "));
    assert_int_equal(tcp_port_rejected(world->ranks[0].port, last), 0);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
    close(talker);
}

/* Whoever waits for the port to have something to connect sleeps on while idle connections crowd
 * it; a turn later some of them go. */
static void idle_connections_wake_nobody(void **state)
{
    struct pollfd waits = {.events = POLLIN};
    struct port_facts facts;
    int64_t now_ns = clock_now();
    struct err err = {0};
    int silent[SILENT];
    char last[128];
    uint64_t dropped;

    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    world->ranks[1].port->half_open_most = HALF_OPEN;
    for (int i = 0; i < SILENT; i++)
        silent[i] = call(&world->ranks[1].blob);
    transport_tcp.facts(world->ranks[1].port, &facts, false);
    waits.fd = facts.connect_fd;
    assert_int_equal(poll(&waits, 1, 0), 1);
    assert_int_equal(transport_tcp.connect(world->ranks[1].lane, now_ns, &err), -EAGAIN);
    assert_int_equal(poll(&waits, 1, 0), 0);
    dropped = tcp_port_rejected(world->ranks[1].port, last);
    assert_int_equal(transport_tcp.connect(world->ranks[1].lane, now_ns + NS_PER_MS, &err),
                     -EAGAIN);
    assert_int_equal(tcp_port_rejected(world->ranks[1].port, last), dropped);
    now_ns += 20 * NS_PER_MS;
    assert_int_equal(transport_tcp.connect(world->ranks[1].lane, now_ns, &err), -EAGAIN);
    assert_true(tcp_port_rejected(world->ranks[1].port, last) > dropped);
    assert_int_equal(poll(&waits, 1, 0), 0);
    for (int i = 0; i < SILENT; i++)
        close(silent[i]);
}

/* Ports are opened before the run's key is known: nobody may take what they derive from none for
 * it. */
static void a_key_of_zeros_opens_nothing(void **state)
{
    static const char purpose[] = "switchbench tcp";
    static const uint8_t zeros[TRANSPORT_KEY_BYTES];
    const struct tcp_place place = {
        .trial = 7, .phase = 1, .src = 0, .dst = 1, .tag = 0x1234, .stream = 0};
    crypto_generichash_state hash;
    struct tcp_challenge challenge;
    uint8_t key[TCP_KEY_BYTES];
    struct tcp_claim claim;
    struct tcp_proof proof;
    int intruder = call(&world->ranks[1].blob);
    char last[128];

    crypto_generichash_init(&hash, zeros, sizeof zeros, sizeof key);
    crypto_generichash_update(&hash, (const uint8_t *)purpose, sizeof purpose);
    crypto_generichash_update(&hash, (const uint8_t *)"test", 4);
    crypto_generichash_final(&hash, key, sizeof key);
    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, 0), -ETIMEDOUT); /* once: the challenge is sent */
    assert_int_equal(recv(intruder, &challenge, sizeof challenge, MSG_WAITALL), sizeof challenge);
    tcp_claim_make(&claim, &place, &challenge, key);
    assert_int_equal(send(intruder, &claim, sizeof claim, MSG_NOSIGNAL), sizeof claim);
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    assert_true(world_run(world, LIMIT_NS));
    assert_verified(&world->flows[0]);
    assert_true(recv(intruder, &proof, sizeof proof, 0) <= 0);
    assert_int_equal(tcp_port_rejected(world->ranks[1].port, last), 1);
    assert_non_null(strstr(last, "it does not hold this run's key"));
    close(intruder);
}

static unsigned hang_ups;

static void hang_up_at_first(void *way)
{
    struct detour *detour = way;

    detour_pump(detour);
    if (detour->near >= 0 && hang_ups > 0) {
        hang_ups--;
        detour_cut(detour);
    }
}

/* As a partner does whose listener is crowded: who was rejected in the handshake calls again. */
static void calls_again(void **state)
{
    static struct detour detour;

    run_detour(&detour, NULL);
    world->pump = hang_up_at_first;
    hang_ups = 3;
    play_all();
    assert_int_equal(hang_ups, 0);
    detour_close(&detour);
}

static void wrong_key(void **state)
{
    struct transport_secret other = world->secret;
    char last[128];

    other.key[0] ^= 1;
    world->ranks[3].secret = &other;
    world_add(world, 3, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), -ECONNABORTED);
    assert_non_null(strstr(world->err.text, "this run's key"));
    assert_true(tcp_port_rejected(world->ranks[1].port, last) > 0);
    assert_non_null(strstr(last, "127.0.0.5 port "));
    assert_non_null(strstr(last, "it does not hold this run's key"));
}

static void spoil_proof(uint8_t *data, size_t bytes, uint64_t at)
{
    const uint64_t target = sizeof(struct tcp_challenge) + sizeof(struct tcp_proof) - 1;

    if (target >= at && target < at + bytes)
        data[target - at] ^= 0x80;
}

/* An acceptor must hold the key, too. */
static void impostor(void **state)
{
    static struct detour detour;

    run_detour(&detour, NULL);
    detour.change_back = spoil_proof;
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, 3 * NS_PER_S), -EPROTO);
    assert_non_null(strstr(world->err.text, "does not hold this run's key"));
    detour_close(&detour);
}

static void nobody_listens(void **state)
{
    struct blob blob = world->ranks[1].blob;
    struct world_flow *flow = world_add(world, 0, 1, PATTERN_GENERATE);

    blob.bytes[2] = 0;
    blob.bytes[3] = 1; /* TCP port 1 */
    flow->detour = &blob;
    assert_int_equal(world_prepare(world) ? 0 : world_connect(world, 3 * NS_PER_S), -ECONNREFUSED);
    assert_non_null(strstr(world->err.text, "127.0.0.2"));
    assert_non_null(strstr(world->err.text, "127.0.0.3 port 1"));
    assert_non_null(strstr(world->err.text, "Connection refused"));
}

/* As the engine connects a probe in which somebody never calls: until nobody waits any more. */
static void connect_late(void)
{
    struct err err = {0};
    int64_t until = clock_now() + LIMIT_NS;

    for (uint32_t i = 0; i < world->rank_count; i++) {
        int rc;

        while ((rc = transport_tcp.connect(world->ranks[i].lane, clock_now(), &err)) == -EAGAIN &&
               clock_now() < until)
            if (world_connect(world, 20 * NS_PER_MS) == -ETIMEDOUT)
                break;
        if (rc == -EAGAIN)
            rc = transport_tcp.connect(world->ranks[i].lane, clock_now() + 13 * NS_PER_S, &err);
        assert_int_equal(rc, 0);
    }
}

static void lead_astray(struct world_flow *flow, struct blob *nowhere)
{
    *nowhere = world->ranks[flow->dst].blob;
    nowhere->bytes[2] = 0;
    nowhere->bytes[3] = 1; /* TCP port 1 */
    flow->detour = nowhere;
}

/* A load is refused where one pair has no way; its probe says which have none. */
static void probes_find_all_that_have_no_way(void **state)
{
    struct blob nowhere[2];

    lead_astray(world_add(world, 0, 1, PATTERN_GENERATE), &nowhere[0]);
    world_add(world, 1, 0, PATTERN_GENERATE);
    world_add(world, 2, 3, PATTERN_GENERATE);
    lead_astray(world_add(world, 3, 2, PATTERN_GENERATE), &nowhere[1]);
    world_add(world, 0, 2, PATTERN_GENERATE);
    world->phase.traffic = TRAFFIC_PROBE;
    world->phase.probes = 3;
    assert_int_equal(world_prepare(world), 0);
    connect_late();
    assert_true(world_run(world, LIMIT_NS));
    assert_no_error();
    for (uint32_t i = 0; i < world->flow_count; i++) {
        const struct world_flow *flow = &world->flows[i];

        assert_int_equal(flow->destination.live.messages, flow->detour ? 0 : 3);
    }
}

/* Something in the middle that opens at a time. */
struct gate {
    struct detour detour;
    int64_t opens_ns;
};

static void pump_gate(void *context)
{
    struct gate *gate = context;

    if (clock_now() >= gate->opens_ns)
        detour_pump(&gate->detour);
}

/* The probe of a flow whose connection comes when the gate opens, and of one without a gate. */
static void probe_by_gate(struct gate *gate, int64_t opens_ns)
{
    struct world_flow *flow = world_add(world, 0, 1, PATTERN_GENERATE);

    world_add(world, 1, 0, PATTERN_GENERATE);
    detour_open(&gate->detour, &world->ranks[1].blob);
    gate->opens_ns = clock_now() + opens_ns;
    flow->detour = &gate->detour.blob;
    world->pump = pump_gate;
    world->way = gate;
    world->phase.traffic = TRAFFIC_PROBE;
    world->phase.probes = 3;
    world->phase.probe_timeout_ns = 400 * NS_PER_MS;
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    assert_true(world_run(world, LIMIT_NS));
    assert_no_error();
    assert_int_equal(world->flows[1].destination.live.messages, 3);
    detour_close(&gate->detour);
}

/* Its place was given up (500 ms), while its source was still patient (600 ms). */
static void probe_that_calls_late(void **state)
{
    static struct gate gate;

    probe_by_gate(&gate, 550 * NS_PER_MS);
    assert_int_equal(world->flows[0].destination.live.messages, 3);
}

/* Its partner's kernel answers for it, and nobody else ever does. */
static void probe_that_nobody_takes(void **state)
{
    static struct gate gate;

    probe_by_gate(&gate, LIMIT_NS);
    assert_int_equal(world->flows[0].destination.live.messages, 0);
}

/* Who forwards has nothing to send on; but it ends, and so does the next one. */
static void probe_of_a_chain_without_a_way(void **state)
{
    struct blob nowhere;

    add_chain();
    lead_astray(&world->flows[0], &nowhere);
    world->phase.traffic = TRAFFIC_PROBE;
    world->phase.probes = 3;
    assert_int_equal(world_prepare(world), 0);
    connect_late();
    assert_true(world_run(world, LIMIT_NS));
    assert_no_error();
    for (uint32_t i = 0; i < world->flow_count; i++)
        assert_int_equal(world->flows[i].destination.live.messages, 0);
}

/* The two lanes of a transfer from rank 0 to rank 1 in the phase after the world's. */
struct ahead {
    struct phase phase;
    struct flow_side sides[2];
    struct lane_flow flows[2];
    struct lane *lanes[2];
    struct err err;
};

static void prepare_ahead(struct ahead *ahead, uint32_t rank)
{
    struct lane_request request = {
        .port = world->ranks[rank].port,
        .secret = &world->secret,
        .phase = &ahead->phase,
        .rank = rank,
        .ranks = 2,
        .sends = &ahead->flows[0],
        .send_count = rank == 0,
        .receives = &ahead->flows[1],
        .receive_count = rank == 1,
        .count = &world->ranks[rank].count,
    };

    if (rank == 0) {
        memset(ahead, 0, sizeof *ahead);
        ahead->phase = world->phase;
        ahead->phase.number++;
        ahead->phase.traffic = TRAFFIC_TRANSFER;
        ahead->phase.transfer_bytes = 100000;
    }
    ahead->flows[rank] = (struct lane_flow){
        .src = 0, .dst = 1, .partner = world->ranks[1 - rank].blob, .side = &ahead->sides[rank]};
    assert_int_equal(transport_tcp.prepare(&ahead->lanes[rank], &request, &ahead->err), 0);
}

static int connect_ahead(struct ahead *ahead, uint32_t rank)
{
    return transport_tcp.connect(ahead->lanes[rank], clock_now(), &ahead->err);
}

/* Rank 0 is a phase ahead of rank 1: its connection waits while a whole phase passes by on the
 * same ports. */
static void run_ahead(struct ahead *ahead)
{
    prepare_ahead(ahead, 0);
    assert_int_equal(connect_ahead(ahead, 0), -EAGAIN);
    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    for (unsigned i = 0; i < 100; i++) {
        transport_tcp.connect(world->ranks[1].lane, clock_now(), &world->err);
        assert_int_equal(connect_ahead(ahead, 0), -EAGAIN);
    }
    assert_int_equal(world_connect(world, LIMIT_NS), 0);
    assert_true(world_run(world, LIMIT_NS));
    assert_verified(&world->flows[0]);
    assert_int_equal(connect_ahead(ahead, 0), -EAGAIN);
    world_finish(world);
}

static void partner_a_phase_ahead(void **state)
{
    struct ahead ahead;
    int64_t until = clock_now() + LIMIT_NS;

    run_ahead(&ahead);
    prepare_ahead(&ahead, 1);
    while (connect_ahead(&ahead, 1) | connect_ahead(&ahead, 0))
        assert_true(clock_now() < until);
    ahead.phase.start_ns = clock_now();
    ahead.phase.stop_ns = until;
    for (unsigned i = 0; i < 2; i++)
        transport_tcp.poll(ahead.lanes[i], clock_now());
    while (!ahead.lanes[1]->rx_done && clock_now() < until)
        for (unsigned i = 0; i < 2; i++)
            transport_tcp.poll(ahead.lanes[i], clock_now());
    assert_int_equal(ahead.sides[1].live.payload_bytes, 100000);
    for (unsigned i = 0; i < 2; i++)
        transport_tcp.destroy(ahead.lanes[i]);
}

/* A partner that waited and gave up must not be taken for the one that comes in its place. */
static void partner_gave_up(void **state)
{
    struct ahead ahead;

    run_ahead(&ahead);
    transport_tcp.destroy(ahead.lanes[0]);
    assert_int_equal(world->phase.number, ahead.phase.number);
    play_all();
}

/* Somebody takes the call and says nothing. */
static void partner_is_silent(void **state)
{
    static struct detour detour;

    run_detour(&detour, NULL);
    world->pump = NULL;
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(world_connect(world, 100 * NS_PER_MS), -ETIMEDOUT);
    assert_int_equal(
        transport_tcp.connect(world->ranks[0].lane, clock_now() + 29 * NS_PER_S, &world->err),
        -EAGAIN);
    assert_int_equal(
        transport_tcp.connect(world->ranks[0].lane, clock_now() + 31 * NS_PER_S, &world->err),
        -ETIMEDOUT);
    assert_non_null(strstr(world->err.text, "rank 1"));
    assert_non_null(strstr(world->err.text, "not ready for this phase"));
    detour_close(&detour);
}

static void source_never_calls(void **state)
{
    struct err err = {0};

    world_add(world, 0, 1, PATTERN_GENERATE);
    assert_int_equal(world_prepare(world), 0);
    assert_int_equal(transport_tcp.connect(world->ranks[1].lane, clock_now(), &err), -EAGAIN);
    assert_int_equal(transport_tcp.connect(world->ranks[1].lane, clock_now() + 31 * NS_PER_S, &err),
                     -ETIMEDOUT);
    assert_non_null(strstr(err.text, "no connection came from rank 0 (127.0.0.2"));
}

/* --- refusals --- */

static void refused(const char *because)
{
    assert_true(world_prepare(world) < 0);
    if (!strstr(world->err.text, because))
        fail_msg("the sentence `%s` does not say `%s`", world->err.text, because);
    world_finish(world);
}

static void refuses_more_than_it_may_open(void **state)
{
    struct rlimit before;
    struct rlimit few;

    getrlimit(RLIMIT_NOFILE, &before);
    few = before;
    few.rlim_cur = world_open_descriptors() + 20;
    setrlimit(RLIMIT_NOFILE, &few);
    world_add(world, 0, 1, PATTERN_GENERATE);
    world->options.streams = 200;
    refused("ulimit -n");
    setrlimit(RLIMIT_NOFILE, &before);
}

static void refuses_ports_that_do_not_exist(void **state)
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

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct port_conf conf = {
            .name = "node9:e0", .iface = cases[i].iface, .tcp_address = cases[i].address};
        struct transport_port *port;
        struct err err = {0};

        assert_int_equal(transport_tcp.open(&port, &conf, &world->run, &err), cases[i].code);
        assert_non_null(strstr(err.text, "node9:e0"));
        assert_non_null(strstr(err.text, cases[i].because));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(buffers_and_congestion_control),
        TEST(latency_probes_leave_at_random_distances),
        TEST(chain_forwards_a_transfer),
        TEST(chain_slows_its_head),
        TEST(detects_a_flipped_bit),
        TEST(detects_a_wrong_order),
        TEST(passes_unchanged),
        TEST(partner_dies),
        TEST(partner_dies_before_it_has_all),
        TEST(finish_in_mid_stream),
        TEST(unauthenticated),
        TEST(idle_connections_wake_nobody),
        TEST(a_key_of_zeros_opens_nothing),
        TEST(calls_again),
        TEST(wrong_key),
        TEST(impostor),
        TEST(nobody_listens),
        TEST(probes_find_all_that_have_no_way),
        TEST(probe_of_a_chain_without_a_way),
        TEST(probe_that_calls_late),
        TEST(probe_that_nobody_takes),
        TEST(partner_a_phase_ahead),
        TEST(partner_gave_up),
        TEST(partner_is_silent),
        TEST(source_never_calls),
        TEST(refuses_more_than_it_may_open),
        TEST(refuses_ports_that_do_not_exist),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
