/* SPDX-License-Identifier: BSD-3-Clause
 *
 * An interface as the journal keeps it, on the real kernel: what it was like is read, another takes
 * its place under another name, and is made the same. In a network namespace of this process;
 * exits 77 without the privilege to have one.
 */
#include "interface.h"

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED 77
#define ADDRESSES "ip -o address show dev a0; ip -o -6 address show dev a0; "
#define ROUTES "ip route show table all; ip -6 route show table all; "

static void must(const char *command)
{
    if (system(command) != 0)
        fail_msg("%s", command);
}

/* What ip(8) says of it, without its number. */
static void picture(char *text, size_t size)
{
    FILE *pipe = popen("(" ADDRESSES ROUTES "ip -o link show a0) | sed 's/^[0-9]*: //; "
                       "s/\\(link-netnsid\\|qlen\\) .*//; s/ linkdown//' | grep -v fe80 | sort",
                       "r");
    size_t length;

    assert_non_null(pipe);
    length = fread(text, 1, size - 1, pipe);
    text[length] = '\0';
    assert_int_equal(pclose(pipe), 0);
}

/* The same once a0 has lost its carrier: the kernel says so a while after its peer is down. */
static void picture_without_carrier(char *text, size_t size)
{
    for (int i = 0; i < 50; i++) {
        picture(text, size);
        if (strstr(text, "NO-CARRIER") != NULL && strstr(text, "state LOWERLAYERDOWN") != NULL)
            return;
        (void)usleep(100000);
    }
    fail_msg("a0 keeps its carrier: %s", text);
}

static void make_dressed(void)
{
    must("ip link add a0 type veth peer name b0");
    must("echo 0 >/proc/sys/net/ipv6/conf/a0/accept_dad");
    must("ip link set a0 address 02:00:00:00:00:07 mtu 1300 up; ip link set b0 up");
    must("ip address add 10.1.2.3/24 dev a0; ip address add 10.1.2.4/24 dev a0 label a0:second");
    must("ip address add 10.5.0.1 peer 10.5.0.2/32 dev a0");
    must("ip -6 address add 2001:db8::1/64 dev a0 nodad");
    must("ip route add 10.7.0.0/16 via 10.1.2.9 metric 5 table 100 src 10.1.2.4 mtu 1200");
    must("ip route add 10.8.0.0/16 nexthop via 10.1.2.7 weight 2 nexthop via 10.1.2.8");
    must("ip route add 10.9.0.0/16 via 192.0.2.1 dev a0 onlink");
    must("ip -6 route add 2001:db8:1::/48 via 2001:db8::9 metric 9");
}

static json_t *read_state(const char *name)
{
    struct err err = {""};
    json_t *state = NULL;

    if (bind_interface_read(name, &state, &err) != 0)
        fail_msg("%s", err.text);
    return state;
}

static void write_state(const char *name, const json_t *state)
{
    struct err err = {""};

    if (bind_interface_write(name, state, &err) != 0)
        fail_msg("%s", err.text);
}

/* Another device takes its place. */
static void replace(const char *name)
{
    char command[96];

    must("ip link del a0");
    snprintf(command, sizeof command, "ip link add %s type veth peer name b0", name);
    must(command);
    must("ip link set b0 up");
}

static void test_another_becomes_the_same(void **state)
{
    char before[8192], after[8192];
    json_t *was;

    make_dressed();
    picture(before, sizeof before);
    assert_non_null(strstr(before, "10.8.0.0/16"));
    was = read_state("a0");
    assert_int_equal(json_array_size(json_object_get(was, "routes")), 4);
    replace("z9");
    must("echo 0 >/proc/sys/net/ipv6/conf/z9/accept_dad");
    write_state("z9", was);
    picture(after, sizeof after);
    assert_string_equal(after, before);
    write_state("a0", was); /* and again, when there is nothing to do */
    picture(after, sizeof after);
    assert_string_equal(after, before);
    json_decref(was);
    must("ip link del a0");
}

/* Routes that were noted without carrier say so in flags that the kernel takes from nobody. */
static void test_routes_of_a_link_without_carrier(void **state)
{
    char before[8192], after[8192];
    json_t *was;

    make_dressed();
    must("ip link set b0 down");
    picture_without_carrier(before, sizeof before);
    was = read_state("a0");
    replace("a0");
    must("echo 0 >/proc/sys/net/ipv6/conf/a0/accept_dad");
    write_state("a0", was);
    must("ip link set b0 down");
    picture_without_carrier(after, sizeof after);
    assert_string_equal(after, before);
    json_decref(was);
    must("ip link del a0");
}

static void test_an_interface_that_was_down(void **state)
{
    json_t *was, *now;

    must("ip link add a0 type veth peer name b0");
    was = read_state("a0");
    must("ip link set a0 up");
    write_state("a0", was);
    now = read_state("a0");
    assert_true(json_equal(was, now));
    json_decref(was);
    json_decref(now);
    must("ip link del a0");
}

static void test_offloads(void **state)
{
    json_t *was, *now;

    must("ip link add a0 type veth peer name b0");
    was = bind_offloads_read("a0");
    assert_true(json_is_true(json_object_get(was, "rx-gro")) ||
                json_is_false(json_object_get(was, "rx-gro")));
    now = json_deep_copy(was);
    json_object_set_new(now, "rx-gro", json_boolean(!json_is_true(json_object_get(was, "rx-gro"))));
    json_object_set_new(now, "no-such-feature", json_true());
    assert_int_equal(bind_offloads_write("a0", now), 0);
    json_object_del(now, "no-such-feature");
    json_decref(was);
    was = bind_offloads_read("a0");
    assert_true(json_equal(was, now));
    json_decref(was);
    json_decref(now);
    must("ip link del a0");
}

static void test_no_such_interface(void **state)
{
    struct err err = {""};
    json_t *nothing = NULL;

    assert_true(bind_interface_read("nowhere", &nothing, &err) < 0);
    assert_non_null(strstr(err.text, "Interface nowhere can't be read"));
    assert_null(nothing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_another_becomes_the_same),
        cmocka_unit_test(test_routes_of_a_link_without_carrier),
        cmocka_unit_test(test_an_interface_that_was_down),
        cmocka_unit_test(test_offloads),
        cmocka_unit_test(test_no_such_interface),
    };

    if (unshare(CLONE_NEWNET) < 0) {
        puts("needs the privilege to make a network namespace");
        return SKIPPED;
    }
    return cmocka_run_group_tests_name("bind: interfaces", tests, NULL, NULL);
}
