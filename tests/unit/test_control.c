/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control endpoints on loopback, in one thread: several of one run, and one whose peer is this
 * test. test_barrier.c covers missing nodes, nodes that give up and replays; test_clocks.py and
 * test_by_hand.py cover clocks, another key and another namespace.
 */
#include "datagram.h"
#include "endpoint.h"
#include "unit.h"

#include <arpa/inet.h>
#include <poll.h>

#define NODES_MAX 8
#define LONG_NS (10 * NS_PER_S)

static struct control *nodes[NODES_MAX];
static struct sockaddr_storage addresses[NODES_MAX];
static uint32_t count;

static struct sockaddr_storage loopback(int family)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};

    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    return address;
}

/* Return false if this machine lacks the address family. */
static bool open_node(uint32_t node, int family)
{
    struct control_conf conf = {.address = loopback(family), .barrier_timeout_ns = LONG_NS};
    struct err err = {0};

    if (control_open(&nodes[node], &conf, &err) < 0)
        return false;
    control_address(nodes[node], &addresses[node]);
    return true;
}

static void join(uint32_t node)
{
    const struct control_peers peers = {
        .self = node, .count = count, .addresses = addresses, .run_id = "test", .key = {1}};
    struct err err = {0};

    if (control_join(nodes[node], &peers, &err) < 0)
        fail_msg("%s", err.text);
}

/* --- several of one run --- */

static const struct blob small = {.size = 5, .bytes = "first"};

static int fetch(uint32_t by, uint32_t from, uint64_t id, int64_t now_ns)
{
    struct blob blob = {0};
    int code = control_fetch(nodes[by], from, id, &blob, now_ns);

    if (code == 0)
        assert_memory_equal(&blob, &small, sizeof(blob));
    return code;
}

/* Wait briefly, then let every node work. */
static void pump(void)
{
    struct pollfd readable[NODES_MAX];

    for (uint32_t i = 0; i < count; i++)
        readable[i] = (struct pollfd){.fd = control_fd(nodes[i]), .events = POLLIN};
    poll(readable, count, 1);
    for (uint32_t i = 0; i < count; i++)
        control_work(nodes[i], clock_now());
}

/* So many nodes pass barriers with the reduction, and fetch the blobs that the last one publishes.
 */
static void meet(uint32_t nodes_count, int family)
{
    const struct blob other = {.size = 2};
    uint32_t last = nodes_count - 1;

    count = nodes_count;
    for (uint32_t i = 0; i < count; i++)
        if (!open_node(i, family))
            skip();
    for (uint32_t i = 0; i < count; i++)
        join(i);
    assert_int_equal(fetch(0, last, 7, clock_now()), -EAGAIN);
    assert_int_equal(control_publish(nodes[last], 7, &other), 0);
    assert_int_equal(control_publish(nodes[last], 7, &small), 0); /* replaced */
    for (int epoch = 0; epoch < 5; epoch++) {
        for (uint32_t i = 0; i < count; i++) {
            const struct barrier_values mine = {
                .maximum = {epoch * 100 + (int)i, -(int)i, INT64_MIN, INT64_MAX, 0, (int)i},
                .states = 1U << i};

            control_barrier_enter(nodes[i], &mine, clock_now());
        }
        for (uint32_t i = 0; i < count; i++) {
            int64_t end_ns = clock_now() + LONG_NS;
            struct barrier_values all;

            while (control_barrier_state(nodes[i], &all) == BARRIER_WAITING && clock_now() < end_ns)
                pump();
            assert_int_equal(control_barrier_state(nodes[i], &all), BARRIER_PASSED);
            assert_true(all.maximum[0] == epoch * 100 + (int)count - 1 && all.maximum[1] == 0 &&
                        all.maximum[2] == INT64_MIN && all.states == (1U << count) - 1);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        while (fetch(i, last, 7, clock_now()) == -EAGAIN)
            pump();
        assert_true(control_fault(nodes[i]) == NULL && control_dropped(nodes[i]) == 0);
    }
    assert_int_equal(control_publish(nodes[last], CONTROL_PHASE_BLOB | 7, &small), 0);
    control_forget(nodes[last], false);
    assert_int_equal(fetch(last, last, CONTROL_PHASE_BLOB | 7, clock_now()), -EAGAIN);
    assert_int_equal(fetch(last, last, 7, clock_now()), 0);
    control_forget(nodes[last], true);
    assert_int_equal(fetch(last, last, 7, clock_now()), -EAGAIN);
    assert_int_equal(fetch(0, last, 7, clock_now()), last > 0 ? 0 : -EAGAIN); /* it has it */
    /* A node that is closed lingers for its partners; here all do so at once. */
    for (int64_t end_ns = clock_now() + 130 * NS_PER_MS; clock_now() < end_ns;)
        pump();
    for (uint32_t i = 0; i < count; i++)
        control_close(nodes[i]);
}

TEST(nodes_of_one_run_meet)
{
    for (uint32_t n = 1; n <= NODES_MAX; n += n < 4 ? 1 : 4)
        meet(n, AF_INET);
    meet(3, AF_INET6);
}

/* --- one against this test, which is node 0 --- */

static int peer;
static uint8_t key[DATAGRAM_KEY_BYTES];
static struct datagram heard; /* the last */

/* Read the datagrams that node 1 has sent. Return how many have a type; 0: any type. */
static unsigned hear(unsigned type)
{
    uint8_t bytes[DATAGRAM_MAX];
    struct datagram datagram;
    unsigned found = 0;
    ssize_t size;

    while ((size = recv(peer, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
        assert_true(datagram_read(&datagram, bytes, (size_t)size, key));
        found += type == 0 || datagram.type == type;
        heard = datagram.type == type ? datagram : heard;
    }
    return found;
}

static void meet_peer(void)
{
    const struct sockaddr_storage own = loopback(AF_INET);
    socklen_t size = sizeof(addresses[0]);

    count = 3;
    peer = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(peer, (const struct sockaddr *)&own, sizeof(struct sockaddr_in)), 0);
    assert_int_equal(getsockname(peer, (struct sockaddr *)&addresses[0], &size), 0);
    addresses[2] = addresses[0];
    assert_true(open_node(1, AF_INET));
    datagram_key(key, (const uint8_t[DATAGRAM_KEY_BYTES]){1}, "test", count);
    join(1);
    assert_int_equal(hear(DATAGRAM_HELLO), 2); /* to each of its neighbours */
}

static void give(const void *bytes, size_t size, bool dropped)
{
    uint64_t before = control_dropped(nodes[1]);

    assert_int_equal(sendto(peer, bytes, size, 0, (const struct sockaddr *)&addresses[1],
                            sizeof(struct sockaddr_in)),
                     size);
    control_work(nodes[1], clock_now());
    assert_int_equal(control_dropped(nodes[1]), before + dropped);
}

static void give_sealed(struct datagram datagram, bool dropped)
{
    uint8_t bytes[DATAGRAM_MAX];

    give(bytes, datagram_write(&datagram, key, bytes), dropped);
}

/* Requests repeat with back-off while the blob is called for; an answer counts only if it belongs
 * to this request. */
TEST(asks_for_a_blob_until_its_answer_comes)
{
    struct datagram answer = {.type = DATAGRAM_BLOB, .recipient = 1, .from = 9, .id = 7};
    struct datagram wrong[5];
    unsigned asked = 0;
    int64_t now_ns;

    meet_peer();
    now_ns = clock_now();
    for (int64_t at_ns = now_ns; at_ns < now_ns + NS_PER_S; at_ns += NS_PER_MS) {
        assert_int_equal(fetch(1, 0, 7, at_ns), -EAGAIN);
        asked += hear(DATAGRAM_FETCH);
        assert_true(at_ns > now_ns + NS_PER_MS || asked == 1); /* 2 ms have not passed */
    }
    assert_in_range(asked, 25, 45);
    control_work(nodes[1], now_ns + 2 * NS_PER_S); /* control_fetch() is not called */
    assert_int_equal(hear(DATAGRAM_FETCH), 0);
    assert_true(heard.id == 7 && heard.recipient == 0);

    answer.to = heard.from;
    answer.origin_ns = heard.transmit_ns;
    answer.blob = small;
    for (unsigned i = 0; i < 5; i++)
        wrong[i] = answer;
    wrong[0].origin_ns -= 2 * NS_PER_S; /* sent before the question */
    wrong[1].to++;                      /* to another process */
    wrong[2].sender = 2;
    wrong[3].id = 8;
    wrong[4].recipient = 2;
    for (unsigned i = 0; i < 5; i++)
        give_sealed(wrong[i], true);
    assert_int_equal(fetch(1, 0, 7, now_ns), -EAGAIN);
    give_sealed(answer, false);
    answer.blob.size = 0;
    give_sealed(answer, false); /* a repetition was answered, too: the first counts */
    assert_int_equal(fetch(1, 0, 7, now_ns), 0);
    control_close(nodes[1]);
    close(peer);
}

TEST(drops_and_counts_what_is_not_of_this_run)
{
    static const uint8_t zeros[2 * DATAGRAM_MAX];
    struct datagram hello = {.type = DATAGRAM_HELLO, .recipient = 1, .from = 9};
    uint8_t bytes[DATAGRAM_MAX];

    meet_peer();
    give(zeros, 0, true);
    give(zeros, sizeof(zeros), true);
    give("hello", 5, true);
    hello.recipient = 2;
    give_sealed(hello, true);
    hello.recipient = hello.sender = 1; /* itself */
    give_sealed(hello, true);
    hello.sender = 3; /* none of three */
    give_sealed(hello, true);
    hello.sender = 0;
    give(bytes, datagram_write(&hello, zeros, bytes), true); /* under another key */
    give_sealed((struct datagram){.type = DATAGRAM_PING, .recipient = 1, .from = 9, .to = 8}, true);
    assert_int_equal(hear(0), 0);
    give_sealed(hello, false);
    assert_int_equal(hear(DATAGRAM_HELLO), 1);
    assert_null(control_fault(nodes[1]));
    control_close(nodes[1]);
    close(peer);
}

/* --- opening and joining --- */

TEST(says_what_can_not_be)
{
    struct control_conf conf = {.address = loopback(AF_INET), .barrier_timeout_ns = LONG_NS};
    struct sockaddr_storage two[2] = {{.ss_family = AF_INET}, {.ss_family = AF_INET6}};
    struct control_peers peers = {.count = 2, .addresses = two, .run_id = "", .key = {1}};
    struct err unusable = {0}, mixed = {0};
    struct control *control;

    assert_int_equal(control_open(&control, &conf, &unusable), 0);
    assert_int_equal(control_deadline(control), CLOCK_NEVER);
    assert_int_equal(control_barrier_state(control, NULL), BARRIER_WAITING);
    assert_int_equal(control_join(control, &peers, &mixed), -EAFNOSUPPORT);
    assert_says(mixed.text, "node 1");
    control_address(control, &conf.address);
    control_close(control);
    conf.netns = "no-such-namespace";
    assert_int_equal(control_open(&control, &conf, &unusable), -ENOENT);
    assert_says(unusable.text, "no-such-namespace");
    assert_null(control);
}
