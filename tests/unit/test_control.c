/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control endpoint on real sockets (control_bed.h): barriers, blobs, abort, the missing named,
 * heartbeats; forged, foreign, replayed and damaged datagrams dropped and counted; the clock on one
 * machine, and against a process whose clock is set off by a time namespace.
 */
#include "control_bed.h"

#include "clock.h"
#include "offset_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMEOUT_NS (300 * NS_PER_MS)
#define LONG_NS (10 * NS_PER_S)
#define CLOCK_AHEAD_S 5000

/* Barriers with their reduction, by any number of nodes, over both families, with loss. */
static void barriers_of(uint32_t count, int family, double loss)
{
    struct barrier_values mine[BED_NODES_MAX], all;
    struct bed bed;

    if (!bed_open(&bed, count, family, LONG_NS))
        skip();
    bed.loss = loss;
    bed_join_all(&bed);
    for (int epoch = 0; epoch < 20; epoch++) {
        for (uint32_t i = 0; i < count; i++)
            mine[i] = (struct barrier_values){
                .maximum = {epoch * 100 + (int)i, -(int)i, INT64_MIN, INT64_MAX, 0, (int)i},
                .states = 1U << i};
        bed_barrier(&bed, mine);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(control_barrier_state(bed.nodes[i], &all), BARRIER_PASSED);
            assert_int_equal(all.maximum[0], epoch * 100 + (int)count - 1);
            assert_int_equal(all.maximum[1], 0);
            assert_int_equal(all.maximum[2], INT64_MIN);
            assert_int_equal(all.maximum[5], count - 1);
            assert_int_equal(all.states, (1U << count) - 1);
            assert_null(control_fault(bed.nodes[i]));
        }
    }
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(control_dropped(bed.nodes[i]), 0);
    bed.loss = 0;
    bed_close(&bed);
}

static void passes_barriers_with_the_reduction(void **state)
{
    for (uint32_t count = 1; count <= BED_NODES_MAX; count++)
        barriers_of(count, AF_INET, 0);
    barriers_of(5, AF_INET, 0.2);
}

static void passes_barriers_over_ipv6(void **state)
{
    barriers_of(3, AF_INET6, 0);
}

/* ---- the missing: who they are is the simulator's (test_barrier.c) ---- */

static void names_the_node_that_died(void **state)
{
    struct bed bed;

    assert_true(bed_open(&bed, 6, AF_INET, TIMEOUT_NS));
    bed_join_all(&bed);
    for (int epoch = 0; epoch < 4; epoch++)
        bed_barrier(&bed, NULL);
    bed_kill(&bed, 0);
    bed_barrier(&bed, NULL);
    for (uint32_t i = 1; i < 6; i++) {
        const struct control_fault *fault = control_fault(bed.nodes[i]);

        assert_int_equal(bed_state(&bed, i), BARRIER_FAILED);
        assert_true(fault->missing);
        assert_int_equal(fault->node, 0);
        assert_int_equal(fault->epoch, 4);
        assert_int_equal(fault->last_epoch, 3);
        assert_in_range(fault->silence_ns, TIMEOUT_NS, 10 * TIMEOUT_NS);
    }
    bed_close(&bed);
}

static void tells_all_who_gives_up_and_why(void **state)
{
    struct bed bed;

    assert_true(bed_open(&bed, 7, AF_INET, LONG_NS));
    bed_join_all(&bed);
    bed_barrier(&bed, NULL);
    control_abort(bed.nodes[4], "node4:e0 has no link;\n\xc3\xa4 see the cable", true, clock_now());
    bed_pump_for(&bed, 100 * NS_PER_MS);
    bed_barrier(&bed, NULL);
    for (uint32_t i = 0; i < 7; i++) {
        const struct control_fault *fault = control_fault(bed.nodes[i]);

        assert_int_equal(bed_state(&bed, i), BARRIER_FAILED);
        assert_true(!fault->missing && fault->impossible);
        assert_int_equal(fault->node, 4);
        assert_string_equal(fault->text, "node4:e0 has no link;??? see the cable");
    }
    bed_close(&bed);
}

/* ---- blobs and heartbeats ---- */

/* Repetition and what is forgotten are the store's (test_blob_store.c). */
static void fetches_what_others_publish(void **state)
{
    struct blob blob = {.size = 5, .bytes = "first"};
    struct bed bed;

    assert_true(bed_open(&bed, 4, AF_INET, LONG_NS));
    assert_int_equal(control_publish(bed.nodes[2], 7, &blob), 0); /* before it has joined */
    assert_int_equal(control_fetch(bed.nodes[0], 2, 7, &blob, clock_now()), -EAGAIN);
    bed_join_all(&bed);
    assert_int_equal(control_fetch(bed.nodes[0], 4, 7, &blob, clock_now()), -EINVAL);
    bed.loss = 0.3;
    for (uint32_t i = 0; i < bed.count; i++) {
        struct blob got = {0};

        while (control_fetch(bed.nodes[i], 2, 7, &got, clock_now()) == -EAGAIN)
            bed_pump(&bed);
        assert_memory_equal(&got, &blob, sizeof blob);
        assert_int_equal(control_dropped(bed.nodes[i]), 0);
    }
    bed.loss = 0;
    control_forget(bed.nodes[2]);
    assert_int_equal(control_fetch(bed.nodes[2], 2, 7, &blob, clock_now()), -EAGAIN);
    bed_close(&bed);
}

static void hears_the_heartbeat_of_node_0_only(void **state)
{
    int64_t before_ns, last_ns;
    struct bed bed;

    assert_true(bed_open(&bed, 3, AF_INET, LONG_NS));
    bed_join_all(&bed);
    bed_barrier(&bed, NULL);
    assert_int_equal(control_last_beat_ns(bed.nodes[2]), 0);
    control_beat(bed.nodes[1], clock_now());
    bed_pump_for(&bed, 20 * NS_PER_MS);
    assert_int_equal(control_last_beat_ns(bed.nodes[2]), 0);

    before_ns = clock_now();
    bed.recording = true;
    control_beat(bed.nodes[0], before_ns);
    bed_pump_for(&bed, 20 * NS_PER_MS);
    assert_int_equal(control_last_beat_ns(bed.nodes[0]), before_ns);
    for (uint32_t i = 1; i < 3; i++)
        assert_in_range(control_last_beat_ns(bed.nodes[i]), before_ns, clock_now());

    /* Said again, it is no sign of life. */
    last_ns = control_last_beat_ns(bed.nodes[1]);
    for (uint32_t i = 0; i < bed.record_count; i++)
        bed_inject(&bed, 1, bed.records[i].bytes, bed.records[i].size);
    bed_pump_for(&bed, 20 * NS_PER_MS);
    assert_int_equal(control_last_beat_ns(bed.nodes[1]), last_ns);
    assert_int_equal(control_dropped(bed.nodes[1]), bed.record_count);
    bed_close(&bed);
}

/* ---- what must be dropped ---- */

/* Injects one datagram; it must be counted, and nobody may say anything in return. */
static void assert_dropped(struct bed *bed, uint32_t node, const uint8_t *bytes, size_t size)
{
    uint64_t before = control_dropped(bed->nodes[node]);
    uint32_t said = bed->record_count;

    bed_inject(bed, node, bytes, size);
    for (int i = 0; i < 200 && control_dropped(bed->nodes[node]) == before; i++)
        bed_pump(bed);
    bed_pump(bed);
    assert_int_equal(control_dropped(bed->nodes[node]), before + 1);
    assert_int_equal(bed->record_count, said);
}

/* The first recorded datagram of this type for this node. */
static const struct bed_record *recorded(const struct bed *bed, uint32_t node,
                                         enum datagram_type type)
{
    for (uint32_t i = 0; i < bed->record_count; i++) {
        const struct bed_record *record = &bed->records[i];

        if (record->bytes[3] == type && record->bytes[11] == node)
            return record;
    }
    fail_msg("no datagram of type %d was recorded", type);
    return NULL;
}

static void drops_forged_and_damaged_datagrams(void **state)
{
    static const uint8_t wrong_key[DATAGRAM_KEY_BYTES] = {9};
    uint8_t bytes[2 * DATAGRAM_MAX] = {0};
    const struct bed_record *good;
    struct datagram datagram;
    struct bed bed;

    assert_true(bed_open(&bed, 3, AF_INET, LONG_NS));
    bed.recording = true;
    bed_join_all(&bed);
    bed_barrier(&bed, NULL);
    good = recorded(&bed, 1, DATAGRAM_ARRIVAL);

    assert_dropped(&bed, 1, bytes, 0);
    assert_dropped(&bed, 1, bytes, sizeof(bytes));
    assert_dropped(&bed, 1, (const uint8_t *)"hello", 5);
    assert_dropped(&bed, 2, good->bytes, good->size); /* to another recipient */
    memcpy(bytes, good->bytes, good->size);
    for (size_t i = 0; i < good->size; i++) {
        bytes[i] ^= 0x10;
        assert_dropped(&bed, 1, bytes, good->size);
        bytes[i] ^= 0x10;
    }
    for (unsigned type = 1; type < DATAGRAM_TYPES; type++) {
        assert_int_equal(datagram_read(&datagram, good->bytes, good->size), 0);
        datagram.type = type;
        if (type != DATAGRAM_ARRIVAL)
            memset(&datagram.values, 0, sizeof(datagram.values));
        assert_dropped(&bed, 1, bytes, datagram_write(&datagram, wrong_key, bytes));
    }
    bed_barrier(&bed, NULL);
    assert_int_equal(bed_state(&bed, 1), BARRIER_PASSED);
    bed_close(&bed);
}

/* It does not name the recipient's process, or asks for a blob, as anybody may. */
static bool is_first_word(const struct bed_record *record)
{
    static const uint8_t nobody[8];

    return record->bytes[3] == DATAGRAM_FETCH || !memcmp(record->bytes + 32, nobody, 8);
}

/* The same job file run again: same key, same run id, same nodes. Everything that the first run
 * said to a process of its own is dropped in the second. */
static void drops_what_an_earlier_run_said(void **state)
{
    struct bed first, second;
    uint32_t replayed = 0;

    assert_true(bed_open(&first, 3, AF_INET, LONG_NS));
    first.recording = true;
    bed_join_all(&first);
    bed_barrier(&first, NULL);
    bed_barrier(&first, NULL);
    control_beat(first.nodes[0], clock_now());
    control_abort(first.nodes[0], "over", false, clock_now());
    bed_pump_for(&first, 20 * NS_PER_MS);

    assert_true(bed_open(&second, 3, AF_INET, LONG_NS));
    bed_join_all(&second);
    bed_barrier(&second, NULL);
    second.recording = true;
    for (uint32_t i = 0; i < first.record_count; i++) {
        const struct bed_record *record = &first.records[i];

        if (is_first_word(record))
            continue; /* it is answered by HELLO, and changes nothing: test_barrier.c */
        assert_dropped(&second, record->bytes[11], record->bytes, record->size);
        replayed++;
    }
    assert_true(replayed >= 12);
    assert_null(control_fault(second.nodes[1]));
    bed_close(&second);
    bed_close(&first);
}

/* What a node has said in this run may be said again by others: it is no sign of its life. */
static void a_replay_keeps_nobody_alive(void **state)
{
    const struct control_fault *fault;
    struct bed bed;
    int64_t until_ns;

    assert_true(bed_open(&bed, 2, AF_INET, TIMEOUT_NS));
    bed_join_all(&bed);
    bed.recording = true;
    bed_barrier(&bed, NULL);
    bed_kill(&bed, 1);
    control_barrier_enter(bed.nodes[0], &(struct barrier_values){0}, clock_now());
    until_ns = clock_now() + 20 * TIMEOUT_NS;
    while (bed_state(&bed, 0) == BARRIER_WAITING && clock_now() < until_ns) {
        for (uint32_t i = 0; i < bed.record_count; i++)
            if (bed.records[i].bytes[11] == 0)
                bed_inject(&bed, 0, bed.records[i].bytes, bed.records[i].size);
        bed.recording = false;
        bed_pump_for(&bed, TIMEOUT_NS / 20);
    }
    assert_int_equal(bed_state(&bed, 0), BARRIER_FAILED);
    fault = control_fault(bed.nodes[0]);
    assert_true(fault->missing);
    assert_int_equal(fault->node, 1);
    assert_true(fault->silence_ns >= TIMEOUT_NS);
    bed_close(&bed);
}

static void another_run_or_key_is_not_in_the_barrier(void **state)
{
    for (int different = 0; different < 2; different++) {
        struct bed bed;

        assert_true(bed_open(&bed, 2, AF_INET, TIMEOUT_NS));
        bed_join(&bed, 0, "test", 1);
        bed_join(&bed, 1, different ? "test" : "tesu", different ? 2 : 1);
        bed_barrier(&bed, NULL);
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(bed_state(&bed, i), BARRIER_FAILED);
            assert_int_equal(control_fault(bed.nodes[i])->node, 1 - i);
            assert_true(control_dropped(bed.nodes[i]) > 0);
        }
        bed_close(&bed);
    }
}

/* ---- clocks ---- */

static void one_machine_has_one_clock(void **state)
{
    struct bed bed;

    assert_true(bed_open(&bed, 6, AF_INET, LONG_NS));
    assert_int_equal(control_clock(bed.nodes[5]).bound_ns, -1);
    bed.recording = true;
    bed_join_all(&bed);
    bed_barrier(&bed, NULL);
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(control_clock(bed.nodes[i]).bound_ns, 0);
        assert_int_equal(control_clock(bed.nodes[i]).offset_ns, 0);
    }
    bed_pump_for(&bed, 100 * NS_PER_MS);
    for (uint32_t i = 0; i < bed.record_count; i++)
        assert_int_not_equal(bed.records[i].bytes[3], DATAGRAM_PING);
    bed_close(&bed);
}

/* Node 1 in a process whose CLOCK_MONOTONIC is set off; tells its last estimate through a pipe. */
static void run_far_clock(struct bed *bed, int out)
{
    struct timespec wait = {.tv_nsec = 200 * NS_PER_US};
    int64_t end_ns = clock_now() + 300 * NS_PER_MS;
    struct control_clock clock;

    bed_join(bed, 1, "clocks", 1);
    control_barrier_enter(bed->nodes[1], &(struct barrier_values){0}, clock_now());
    while (clock_now() < end_ns) {
        control_work(bed->nodes[1], clock_now());
        nanosleep(&wait, NULL);
    }
    clock = control_clock(bed->nodes[1]);
    _exit(write(out, &clock, sizeof(clock)) == sizeof(clock) ? 0 : 1);
}

static bool set_clock_off(void)
{
    char line[64];
    int fd, length;
    bool done;

    if (unshare(CLONE_NEWTIME) < 0)
        return false;
    fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    length = snprintf(line, sizeof(line), "monotonic %d 0\n", CLOCK_AHEAD_S);
    done = fd >= 0 && write(fd, line, (size_t)length) == length;
    if (fd >= 0)
        close(fd);
    return done;
}

/* The time namespace holds for the children of who made it: a child makes it, its child runs. */
static pid_t start_far_clock(struct bed *bed, int out)
{
    pid_t middle = fork();

    if (middle != 0)
        return middle;
    if (!set_clock_off())
        _exit(77);
    if (fork() == 0)
        run_far_clock(bed, out);
    _exit(wait(&(int){0}) > 0 ? 0 : 1);
}

static unsigned count_recorded(const struct bed *bed, enum datagram_type type)
{
    unsigned count = 0;

    for (uint32_t i = 0; i < bed->record_count; i++)
        count += bed->records[i].bytes[3] == type;
    return count;
}

static void measures_a_clock_that_is_set_off(void **state)
{
    struct control_clock clock = {.bound_ns = -1};
    struct control *far;
    int pipes[2], status = 0;
    unsigned pings, pongs;
    struct bed bed;
    pid_t child;

    assert_true(bed_open(&bed, 2, AF_INET, LONG_NS));
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    child = start_far_clock(&bed, pipes[1]);
    assert_true(child > 0);
    far = bed.nodes[1];
    bed.nodes[1] = NULL; /* its socket is the child's to read */
    bed.recording = true;
    bed_join(&bed, 0, "clocks", 1);
    control_barrier_enter(bed.nodes[0], &(struct barrier_values){0}, clock_now());
    while (waitpid(child, &status, WNOHANG) == 0)
        bed_pump(&bed);
    if (WEXITSTATUS(status) == 0)
        assert_int_equal(read(pipes[0], &clock, sizeof(clock)), sizeof(clock));
    control_close(far);
    close(pipes[0]);
    close(pipes[1]);
    pings = count_recorded(&bed, DATAGRAM_PING);
    pongs = count_recorded(&bed, DATAGRAM_PONG);
    bed_close(&bed);
    if (WEXITSTATUS(status) == 77)
        skip(); /* no time namespaces here, or no right to make one */
    assert_int_equal(status, 0);
    assert_in_range(clock.bound_ns, 1, 20 * NS_PER_MS);
    assert_true(llabs(clock.offset_ns + CLOCK_AHEAD_S * NS_PER_S) <= clock.bound_ns);
    assert_in_range(pings, 32, 80);
    assert_in_range(pongs, 32, pings);
}

/* ---- opening and joining ---- */

static void says_what_can_not_be(void **state)
{
    struct control_conf conf = {.barrier_timeout_ns = LONG_NS};
    struct sockaddr_storage addresses[2] = {{.ss_family = AF_INET}, {.ss_family = AF_INET6}};
    struct control_peers peers = {.count = 2, .addresses = addresses, .run_id = "", .key = {1}};
    struct control *control, *second;
    struct err err = {0};

    assert_int_equal(control_open(&control, &conf, &err), -EAFNOSUPPORT);
    assert_non_null(strstr(err.text, "neither IPv4 nor IPv6"));
    conf.address.ss_family = AF_INET;
    conf.netns = "no-such-namespace";
    err.text[0] = '\0';
    assert_int_equal(control_open(&control, &conf, &err), -ENOENT);
    assert_non_null(strstr(err.text, "no-such-namespace"));
    conf.netns = NULL;
    ((struct sockaddr_in *)&conf.address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(control_open(&control, &conf, &err), 0);
    assert_int_equal(control_deadline(control), CLOCK_NEVER);
    assert_int_equal(control_barrier_state(control, NULL), BARRIER_WAITING);
    control_address(control, &conf.address);
    err.text[0] = '\0';
    assert_int_equal(control_open(&second, &conf, &err), -EADDRINUSE);
    assert_non_null(strstr(err.text, "in use"));
    assert_null(second);

    err.text[0] = '\0';
    assert_int_equal(control_join(control, &peers, &err), -EAFNOSUPPORT);
    assert_non_null(strstr(err.text, "Node 1"));
    peers.self = 2;
    assert_int_equal(control_join(control, &peers, &err), -EINVAL);
    peers.self = 0;
    peers.count = 1;
    assert_int_equal(control_join(control, &peers, &err), 0);
    assert_int_equal(control_join(control, &peers, &err), -EALREADY);
    control_close(control);
}

static void makes_its_socket_in_another_namespace(void **state)
{
    struct control_conf conf = {.address.ss_family = AF_INET, .barrier_timeout_ns = LONG_NS};
    char path[64], before[64] = "", after[64] = "";
    struct control *here, *there = NULL;
    struct err err = {0};
    int ready[2], code;
    char byte = 0;
    pid_t child;

    assert_int_equal(pipe(ready), 0);
    child = fork();
    if (child == 0) {
        byte = unshare(CLONE_NEWNET) == 0;
        if (write(ready[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    assert_true(child > 0);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(control_open(&here, &conf, &err), 0);
    control_address(here, &conf.address);
    snprintf(path, sizeof(path), "/proc/%d/ns/net", child);
    conf.netns = path;
    assert_true(readlink("/proc/thread-self/ns/net", before, sizeof(before) - 1) > 0);
    code = byte ? control_open(&there, &conf, &err) : 0;
    assert_true(readlink("/proc/thread-self/ns/net", after, sizeof(after) - 1) > 0);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    close(ready[0]);
    close(ready[1]);
    control_close(here);
    control_close(there);
    if (!byte)
        skip(); /* no right to make a network namespace */
    assert_string_equal(before, after);
    if (code < 0)
        fail_msg("%s", err.text); /* the same port is taken in this namespace, but not in that */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(passes_barriers_with_the_reduction),
        cmocka_unit_test(passes_barriers_over_ipv6),
        cmocka_unit_test(names_the_node_that_died),
        cmocka_unit_test(tells_all_who_gives_up_and_why),
        cmocka_unit_test(fetches_what_others_publish),
        cmocka_unit_test(hears_the_heartbeat_of_node_0_only),
        cmocka_unit_test(drops_forged_and_damaged_datagrams),
        cmocka_unit_test(drops_what_an_earlier_run_said),
        cmocka_unit_test(a_replay_keeps_nobody_alive),
        cmocka_unit_test(another_run_or_key_is_not_in_the_barrier),
        cmocka_unit_test(one_machine_has_one_clock),
        cmocka_unit_test(measures_a_clock_that_is_set_off),
        cmocka_unit_test(says_what_can_not_be),
        cmocka_unit_test(makes_its_socket_in_another_namespace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
