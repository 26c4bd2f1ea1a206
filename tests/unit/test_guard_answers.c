/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard fails closed: each of the kernel's answers is damaged in turn on its way to the guard
 * (ld --wrap), and a port that is allowed otherwise is blocked. A dump that the kernel interrupted
 * is repeated. In a network namespace of this process; exits 77 without the privilege to make one.
 */
#include "guard.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#define SKIPPED 77
#define ANSWERS_MAX 200

/* Changes a datagram of so many bytes, and returns how many of them are left. */
typedef ssize_t damage_fn(struct nlmsghdr *first, ssize_t bytes);

static damage_fn *damage;
static int answers; /* so far */
static int damaged; /* the number of the datagram to be damaged; -1: all */

ssize_t __real_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buffer, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *buffer, size_t size, int flags)
{
    ssize_t got = __real_recv(fd, buffer, size, flags);

    if (got > 0 && damage != NULL && (damaged < 0 || damaged == answers))
        got = damage(buffer, got);
    answers += got > 0;
    return got;
}

static ssize_t cut_off(struct nlmsghdr *first, ssize_t bytes)
{
    return bytes - 4;
}

static ssize_t replace_by_error(struct nlmsghdr *first, ssize_t bytes)
{
    const int code = -EIO;

    first->nlmsg_type = NLMSG_ERROR;
    memcpy(NLMSG_DATA(first), &code, sizeof code);
    return bytes;
}

/* A dump that ends without saying so; what is no dump's end is lost. */
static ssize_t lose_the_end(struct nlmsghdr *first, ssize_t bytes)
{
    int left = (int)bytes;

    for (struct nlmsghdr *at = first; mnl_nlmsg_ok(at, left); at = mnl_nlmsg_next(at, &left))
        if (at->nlmsg_type == NLMSG_DONE || at->nlmsg_type == NLMSG_ERROR)
            at->nlmsg_type = NLMSG_NOOP;
    return bytes;
}

static ssize_t interrupt(struct nlmsghdr *first, ssize_t bytes)
{
    if (first->nlmsg_flags & NLM_F_MULTI)
        first->nlmsg_flags |= NLM_F_DUMP_INTR;
    return bytes;
}

/* The controller's route is looked up, too. */
static int check(damage_fn *how, int which, struct err *err)
{
    static const struct guard_rules rules = {.driver = "af_packet", .controller = "198.18.9.9"};
    int code;

    *err = (struct err){0};
    damage = how;
    damaged = which;
    answers = 0;
    code = guard_check_interface(NULL, "v0", &rules, err);
    damage = NULL;
    return code;
}

static void assert_blocked(damage_fn *how, const char *what)
{
    int which = 0, blocked = 0;
    struct err err;

    assert_int_equal(check(NULL, 0, &err), 0);
    for (; which < answers; which++) {
        if (check(how, which, &err) == 0 && answers > which)
            fail_msg("%s: answer %d is damaged, and the port is allowed", what, which);
        blocked += err.text[0] != '\0';
        assert_int_equal(check(NULL, 0, &err), 0); /* and how many answers there are */
    }
    /* Links, routes, the controller's route */
    assert_in_range(blocked, 3, ANSWERS_MAX);
}

static void test_an_answer_is_cut_off(void **state)
{
    assert_blocked(cut_off, "cut off");
}

static void test_an_error_instead_of_an_answer(void **state)
{
    assert_blocked(replace_by_error, "an error");
}

static void test_an_end_is_missing(void **state)
{
    struct err err;

    assert_true(check(lose_the_end, -1, &err) < 0);
    assert_non_null(strstr(err.text, "not known whether traffic there is safe"));
}

static void test_an_interrupted_dump_is_repeated(void **state)
{
    struct err err;
    int usual;

    assert_int_equal(check(NULL, 0, &err), 0);
    usual = answers;
    assert_int_equal(check(interrupt, 0, &err), 0);
    assert_true(answers > usual);
}

static void test_a_dump_that_is_always_interrupted(void **state)
{
    struct err err;

    assert_true(check(interrupt, -1, &err) < 0);
    assert_non_null(strstr(err.text, "not known whether traffic there is safe"));
}

/* What an interrupted dump has said does not count twice, nor does what has changed since. */
static void test_a_repeated_dump_sees_the_default_route(void **state)
{
    struct err err;

    assert_int_equal(system("ip route add default via 198.18.0.2"), 0);
    for (int which = 0; which < 6; which++) {
        assert_int_equal(check(interrupt, which, &err), -EPERM);
        assert_non_null(strstr(err.text, "carries the IPv4 default route"));
    }
    assert_int_equal(system("ip route del default"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_cut_off),
        cmocka_unit_test(test_an_error_instead_of_an_answer),
        cmocka_unit_test(test_an_end_is_missing),
        cmocka_unit_test(test_an_interrupted_dump_is_repeated),
        cmocka_unit_test(test_a_dump_that_is_always_interrupted),
        cmocka_unit_test(test_a_repeated_dump_sees_the_default_route),
    };

    if (unshare(CLONE_NEWNET) < 0) {
        puts("needs the privilege to make a network namespace");
        return SKIPPED;
    }
    if (system("ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up && "
               "ip address add 198.18.0.1/24 dev v0 && ip link add w0 type veth peer name w1 && "
               "ip link set w0 up && ip link set w1 up && ip address add 198.18.9.1/24 dev w0") !=
        0)
        return 1;
    return cmocka_run_group_tests_name("guard: damaged answers", tests, NULL, NULL);
}
