/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Control endpoints of one run on loopback, in one thread, pumped in turn: barriers, blobs,
 * forged datagrams dropped and counted. Every datagram goes through a
 * relay (the nodes know only its address), which records, loses or forwards it, and through which a
 * test can send whatever it likes.
 */
#include "datagram.h"
#include "endpoint.h"
#include "prng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LONG_NS (10 * NS_PER_S)
#define LINGER_NS (130 * NS_PER_MS)
#define NODES_MAX 8
#define RECORDS_MAX 4096

struct record {
    size_t size;
    union {
        struct datagram datagram;
        uint8_t bytes[DATAGRAM_MAX];
    };
};

static struct {
    uint32_t count;
    int family;
    struct control *nodes[NODES_MAX];
    struct sockaddr_storage addresses[NODES_MAX], relay_address;
    int relay;
    bool recording;
    double loss;
    uint64_t random;
    struct record records[RECORDS_MAX];
    uint32_t record_count;
} bed;

/* --- the bed --- */

static struct sockaddr_storage loopback(int family)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};

    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    return address;
}

/* False: the family is not to be had here. */
static bool open_nodes(uint32_t count, int family)
{
    struct control_conf conf = {.address = loopback(family), .barrier_timeout_ns = LONG_NS};
    socklen_t size = sizeof(bed.relay_address);
    struct err err = {0};

    memset(&bed, 0, sizeof(bed));
    bed.count = count;
    bed.family = family;
    bed.random = count;
    bed.relay = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bed.relay < 0 || bind(bed.relay, (struct sockaddr *)&conf.address, size) < 0) {
        close(bed.relay);
        return false;
    }
    getsockname(bed.relay, (struct sockaddr *)&bed.relay_address, &size);
    for (uint32_t i = 0; i < count; i++) {
        if (control_open(&bed.nodes[i], &conf, &err) < 0)
            fail_msg("%s", err.text);
        control_address(bed.nodes[i], &bed.addresses[i]);
    }
    return true;
}

static void join(uint32_t node, const char *run_id, uint8_t key)
{
    struct sockaddr_storage addresses[NODES_MAX];
    const struct control_peers peers = {
        .self = node, .count = bed.count, .addresses = addresses, .run_id = run_id, .key = {key}};
    struct err err = {0};

    for (uint32_t i = 0; i < bed.count; i++)
        addresses[i] = bed.relay_address;
    if (control_join(bed.nodes[node], &peers, &err) < 0)
        fail_msg("%s", err.text);
}

static void make(uint32_t count)
{
    assert_true(open_nodes(count, AF_INET));
    for (uint32_t i = 0; i < count; i++)
        join(i, "test", 1);
}

/* To a node, as if from the network. */
static void inject(uint32_t node, const void *bytes, size_t size)
{
    if (sendto(bed.relay, bytes, size, 0, (const struct sockaddr *)&bed.addresses[node],
               sizeof(bed.addresses[node])) < 0)
        fail_msg("the relay can't send");
}

static void relay_all(void)
{
    struct record record;
    ssize_t size;

    while ((size = recv(bed.relay, record.bytes, sizeof(record.bytes), 0)) > 0) {
        record.size = (size_t)size;
        if (bed.recording && bed.record_count < RECORDS_MAX)
            bed.records[bed.record_count++] = record;
        if ((double)(prng_next(&bed.random) >> 11) * 0x1p-53 >= bed.loss)
            inject(record.datagram.recipient, record.bytes, record.size);
    }
}

/* Waits a little for the sockets, relays, lets every node work. */
static void pump(void)
{
    struct pollfd readable[NODES_MAX + 1] = {{.fd = bed.relay, .events = POLLIN}};
    uint32_t live = 1;

    for (uint32_t i = 0; i < bed.count; i++)
        readable[live++] = (struct pollfd){.fd = control_fd(bed.nodes[i]), .events = POLLIN};
    poll(readable, live, 1);
    relay_all();
    for (uint32_t i = 0; i < bed.count; i++)
        control_work(bed.nodes[i], clock_now());
    relay_all();
}

static void pump_for(int64_t duration_ns)
{
    for (int64_t end_ns = clock_now() + duration_ns; clock_now() < end_ns;)
        pump();
}

static enum barrier_state state_of(uint32_t node)
{
    return control_barrier_state(bed.nodes[node], NULL);
}

/* All enter; then pumps until each has passed or failed. `mine` NULL: nothing to say. */
static void pass(const struct barrier_values *mine)
{
    int64_t end_ns = clock_now() + 20 * NS_PER_S;
    struct barrier_values nothing;
    uint32_t waiting;

    barrier_values_clear(&nothing);
    for (uint32_t i = 0; i < bed.count; i++)
        control_barrier_enter(bed.nodes[i], mine ? &mine[i] : &nothing, clock_now());
    do {
        pump();
        waiting = 0;
        for (uint32_t i = 0; i < bed.count; i++)
            waiting += state_of(i) == BARRIER_WAITING;
        if (clock_now() > end_ns)
            fail_msg("the barrier does not end");
    } while (waiting);
}

/* A node that is closed lingers for its partners; here all do so at once. */
static void end(void)
{
    bed.loss = 0;
    pump_for(LINGER_NS);
    for (uint32_t i = 0; i < bed.count; i++)
        control_close(bed.nodes[i]);
    close(bed.relay);
}

/* --- barriers: who is missing or gives up is the simulator's (test_barrier.c); clocks, another key
 * and another namespace are test_clocks.py's and test_by_hand.py's --- */

static void barriers_of(uint32_t count, int family, double loss)
{
    struct barrier_values mine[NODES_MAX], all;

    if (!open_nodes(count, family))
        skip();
    bed.loss = loss;
    for (uint32_t i = 0; i < count; i++)
        join(i, "test", 1);
    for (int epoch = 0; epoch < 20; epoch++) {
        for (uint32_t i = 0; i < count; i++)
            mine[i] = (struct barrier_values){
                .maximum = {epoch * 100 + (int)i, -(int)i, INT64_MIN, INT64_MAX, 0, (int)i},
                .states = 1U << i};
        pass(mine);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(control_barrier_state(bed.nodes[i], &all), BARRIER_PASSED);
            assert_int_equal(all.maximum[0], epoch * 100 + (int)count - 1);
            assert_int_equal(all.maximum[1], 0);
            assert_int_equal(all.maximum[2], INT64_MIN);
            assert_int_equal(all.maximum[5], count - 1);
            assert_int_equal(all.states, (1U << count) - 1);
            assert_null(control_fault(bed.nodes[i]));
            assert_int_equal(control_dropped(bed.nodes[i]), 0);
        }
    }
    end();
}

static void passes_barriers_with_the_reduction(void **state)
{
    for (uint32_t count = 1; count <= NODES_MAX; count++)
        barriers_of(count, AF_INET, 0);
    barriers_of(5, AF_INET, 0.2);
    barriers_of(3, AF_INET6, 0);
}

/* --- blobs and heartbeats --- */

static int fetch(uint32_t by, uint64_t id, int64_t now_ns)
{
    const struct blob right = {.size = 5, .bytes = "first"};
    struct blob blob = {0};
    int code = control_fetch(bed.nodes[by], 2, id, &blob, now_ns);

    if (code == 0)
        assert_memory_equal(&blob, &right, sizeof(blob));
    return code;
}

static void fetches_what_others_publish(void **state)
{
    const struct blob blob = {.size = 5, .bytes = "first"}, large = {.size = BLOB_BYTES_MAX + 1};
    struct blob other = {.size = 2};

    assert_true(open_nodes(4, AF_INET));
    assert_int_equal(control_publish(bed.nodes[2], 7, &large), -EINVAL);
    assert_int_equal(control_publish(bed.nodes[2], 7, &other), 0); /* before it has joined */
    assert_int_equal(control_publish(bed.nodes[2], 7, &blob), 0);  /* replaced */
    assert_int_equal(fetch(0, 7, clock_now()), -EAGAIN);
    for (uint32_t i = 0; i < bed.count; i++)
        join(i, "test", 1);
    assert_int_equal(control_fetch(bed.nodes[0], 4, 7, &other, clock_now()), -EINVAL);
    bed.loss = 0.3;
    for (uint32_t i = 0; i < bed.count; i++) {
        while (fetch(i, 7, clock_now()) == -EAGAIN)
            pump();
        assert_int_equal(control_dropped(bed.nodes[i]), 0);
    }
    bed.loss = 0;
    assert_int_equal(control_publish(bed.nodes[2], CONTROL_PHASE_BLOB | 7, &blob), 0);
    control_forget(bed.nodes[2], false);
    assert_int_equal(fetch(2, CONTROL_PHASE_BLOB | 7, clock_now()), -EAGAIN);
    assert_int_equal(fetch(2, 7, clock_now()), 0);
    control_forget(bed.nodes[2], true);
    assert_int_equal(fetch(2, 7, clock_now()), -EAGAIN);
    assert_int_equal(fetch(0, 7, clock_now()), 0); /* it has it */
    end();
}

/* The first recorded datagram of this type for this node; NULL: there is none. */
static const struct record *recorded(uint32_t node, enum datagram_type type)
{
    for (uint32_t i = 0; i < bed.record_count; i++)
        if (bed.records[i].datagram.type == type && bed.records[i].datagram.recipient == node)
            return &bed.records[i];
    return NULL;
}

static unsigned count_recorded(enum datagram_type type)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < bed.record_count; i++)
        count += bed.records[i].datagram.type == type;
    return count;
}

/* Injects one datagram; it must be counted, and nobody may say anything in return. */
static void assert_dropped(uint32_t node, const void *bytes, size_t size)
{
    uint64_t before = control_dropped(bed.nodes[node]);
    uint32_t said = bed.record_count;

    inject(node, bytes, size);
    for (int i = 0; i < 200 && control_dropped(bed.nodes[node]) == before; i++)
        pump();
    pump();
    assert_int_equal(control_dropped(bed.nodes[node]), before + 1);
    assert_int_equal(bed.record_count, said);
}

/* With back-off while it is called for; what is not published is not answered; an answer counts if
 * it is to this question. */
static void asks_for_a_blob_until_its_answer_comes(void **state)
{
    const struct blob blob = {.size = 5, .bytes = "first"};
    uint8_t run_key[DATAGRAM_KEY_BYTES] = {1}, key[DATAGRAM_KEY_BYTES], bytes[DATAGRAM_MAX];
    struct datagram answer;
    int64_t now_ns;

    make(4);
    pump_for(10 * NS_PER_MS);
    bed.recording = true;
    now_ns = clock_now();
    for (int64_t at_ns = now_ns; at_ns < now_ns + NS_PER_S; at_ns += NS_PER_MS) {
        assert_int_equal(fetch(0, 7, at_ns), -EAGAIN);
        if (at_ns == now_ns + NS_PER_MS)
            assert_int_equal(count_recorded(DATAGRAM_FETCH), 1); /* 2 ms have not passed */
        relay_all();
    }
    assert_in_range(count_recorded(DATAGRAM_FETCH), 25, 45);
    pump_for(100 * NS_PER_MS); /* nobody calls */
    assert_in_range(count_recorded(DATAGRAM_FETCH), 25, 45);
    assert_int_equal(count_recorded(DATAGRAM_BLOB), 0);

    answer = recorded(2, DATAGRAM_FETCH)->datagram;
    answer = (struct datagram){.type = DATAGRAM_BLOB,
                               .sender = 2,
                               .from = 9,
                               .to = answer.from,
                               .origin_ns = answer.transmit_ns - NS_PER_S,
                               .id = 7,
                               .blob = blob};
    datagram_key(key, run_key, "test", 4);
    assert_dropped(0, bytes, datagram_write(&answer, key, bytes)); /* said before we asked */
    answer.origin_ns += NS_PER_S;
    answer.to++;
    assert_dropped(0, bytes, datagram_write(&answer, key, bytes)); /* to another process */
    answer.to--;
    answer.sender = 3;
    assert_dropped(0, bytes, datagram_write(&answer, key, bytes));
    answer.sender = 2;
    answer.id = 8;
    assert_dropped(0, bytes, datagram_write(&answer, key, bytes));
    assert_int_equal(fetch(0, 7, now_ns), -EAGAIN);
    assert_int_equal(control_publish(bed.nodes[2], 7, &blob), 0);
    while (fetch(0, 7, clock_now() + NS_PER_S) == -EAGAIN)
        pump();
    inject(0, recorded(0, DATAGRAM_BLOB)->bytes, recorded(0, DATAGRAM_BLOB)->size); /* doubled */
    pump();
    assert_int_equal(control_dropped(bed.nodes[0]), 4);
    end();
}

/* --- what must be dropped --- */

static void drops_forged_and_damaged_datagrams(void **state)
{
    static const uint8_t wrong_key[DATAGRAM_KEY_BYTES] = {9};
    uint8_t bytes[2 * DATAGRAM_MAX] = {0};
    struct record good;

    make(3);
    bed.recording = true;
    pass(NULL);
    good = *recorded(1, DATAGRAM_ARRIVAL);

    assert_dropped(1, bytes, 0);
    assert_dropped(1, bytes, sizeof(bytes));
    assert_dropped(1, "hello", 5);
    assert_dropped(2, good.bytes, good.size); /* to another recipient */
    assert_dropped(1, bytes, datagram_write(&good.datagram, wrong_key, bytes));
    pass(NULL);
    assert_int_equal(state_of(1), BARRIER_PASSED);
    end();
}

/* --- opening and joining --- */

static void assert_refused(int code, int right, struct err *err, const char *says)
{
    assert_int_equal(code, right);
    assert_non_null(strstr(err->text, says));
    err->text[0] = '\0';
}

static void says_what_can_not_be(void **state)
{
    struct control_conf conf = {.barrier_timeout_ns = LONG_NS};
    struct sockaddr_storage addresses[2] = {{.ss_family = AF_INET}, {.ss_family = AF_INET6}};
    struct control_peers peers = {.count = 2, .addresses = addresses, .run_id = "", .key = {1}};
    struct control *control, *second;
    struct err err = {0};

    assert_refused(control_open(&control, &conf, &err), -EAFNOSUPPORT, &err,
                   "neither IPv4 nor IPv6");
    conf.address = loopback(AF_INET);
    conf.netns = "no-such-namespace";
    assert_refused(control_open(&control, &conf, &err), -ENOENT, &err, "no-such-namespace");
    conf.netns = NULL;
    assert_int_equal(control_open(&control, &conf, &err), 0);
    assert_int_equal(control_deadline(control), CLOCK_NEVER);
    assert_int_equal(control_barrier_state(control, NULL), BARRIER_WAITING);
    control_address(control, &conf.address);
    assert_refused(control_open(&second, &conf, &err), -EADDRINUSE, &err, "in use");
    assert_null(second);
    assert_refused(control_join(control, &peers, &err), -EAFNOSUPPORT, &err, "Node 1");
    peers.self = 2;
    assert_refused(control_join(control, &peers, &err), -EINVAL, &err, "2 nodes");
    peers.self = 0;
    peers.count = 1;
    assert_int_equal(control_join(control, &peers, &err), 0);
    assert_refused(control_join(control, &peers, &err), -EALREADY, &err, "already");
    control_close(control);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_barriers_with_the_reduction),
        cmocka_unit_test(fetches_what_others_publish),
        cmocka_unit_test(asks_for_a_blob_until_its_answer_comes),
        cmocka_unit_test(drops_forged_and_damaged_datagrams),
        cmocka_unit_test(says_what_can_not_be),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
