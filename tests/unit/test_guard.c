/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard on real devices, in network namespaces made here: veth, bridge, macvlan, VLAN and
 * dummy as far as this kernel has them, default routes of both families in several tables, the
 * controller's route. Exits 77 without the privilege to make a namespace.
 */
#include "guard.h"
#include "netns.h"

#include <errno.h>
#include <glob.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED 77

static const struct guard_rules plain = {.driver = "af_packet"};

/* Two namespaces of this process: `here` is where the test's thread lives, `away` another. */
static char here[32], away[32];

/* Runs one command of ip(8) and returns whether it worked; `%h` and `%a` are the namespaces. */
static bool ip(const char *quiet, const char *command)
{
    char whole[256];
    size_t used = (size_t)snprintf(whole, sizeof(whole), "ip ");

    for (const char *at = command; *at; at++) {
        const char *name = *at != '%' ? NULL : at[1] == 'h' ? here : away;

        if (!name) {
            whole[used++] = *at;
            continue;
        }
        used += (size_t)snprintf(whole + used, sizeof(whole) - used, "%s", name);
        at++;
    }
    snprintf(whole + used, sizeof(whole) - used, " %s", quiet);
    return system(whole) == 0;
}

#define QUIET "2>/dev/null"
#define must(command) assert_true(ip("", command))

static void drop(void)
{
    ip(QUIET, "netns del %h");
    ip(QUIET, "netns del %a");
}

static bool make(void)
{
    return ip(QUIET, "netns add %h") && ip(QUIET, "netns add %a") && ip("", "-n %h link set lo up");
}

static int fresh(void **state)
{
    drop();
    if (!make())
        return -1;
    return ip("", "-n %h link add v0 type veth peer name v1 netns %a") &&
                   ip("", "-n %h link add w0 type veth peer name w1 netns %a") &&
                   ip("", "-n %h link set v0 up") && ip("", "-n %h link set w0 up") &&
                   ip("", "-n %a link set v1 up") && ip("", "-n %a link set w1 up")
               ? 0
               : -1;
}

static int away_with(void **state)
{
    drop();
    return 0;
}

static int check(const char *iface, const struct guard_rules *rules, struct err *err)
{
    *err = (struct err){0};
    return guard_check_interface(here, iface, rules, err);
}

/* Commands of ip(8) one after the other, the scenario ending where one with '?' fails; "> v0": then
 * interface v0 passes, or, with words behind it, is refused with these. */
#define STEPS_MAX 16
static const char *const scenarios[][STEPS_MAX] = {
    /* What an innocent interface may have. */
    {"-n %h addr add 198.18.0.1/24 dev v0", "-n %h route add 10.0.0.0/8 via 198.18.0.2",
     "-n %h -6 route add 2001:db8::/32 dev v0", "> v0", "> w0", "> lo is the loopback"},
    /* Default routes. */
    {"-n %h route add default dev v0", "> v0 v0 of network namespace",
     "> v0 carries the IPv4 default route (table main)", "> w0", "-n %h route del default", "> v0",
     "-n %h route add default dev v0 table 100", "> v0 IPv4 default route (table 100)", "> w0"},
    {"-n %h route add 128.0.0.0/1 dev v0", "> v0 IPv4 default route", "> w0"},
    {"-n %h -6 route add default dev v0", "> v0 IPv6 default route (table main)",
     "-n %h -6 route del default", "> v0", "-n %h -6 route add default dev v0 table 7777",
     "> v0 IPv6 default route (table 7777)", "> w0"},
    {"-n %h -6 route add 2000::/3 dev v0", "> v0 IPv6 default route", "> w0"},
    {"-n %h route add default nexthop dev w0 nexthop dev v0", "> v0 carries the IPv4 default",
     "> w0 carries the IPv4 default"},
    /* Routes that together lead to half of all addresses. */
    {"-n %h route add 0.0.0.0/2 dev v0", "-n %h route add 10.0.0.0/8 dev w0", "> v0",
     "-n %h route add 64.0.0.0/2 dev v0", "-n %h route add 192.0.0.0/2 dev v0",
     "> v0 carries a part of the IPv4 default route (table main)"},
    {"-n %h -6 route add 3000::/5 dev v0", "-n %h -6 route add fc00::/7 dev w0", "> v0",
     "-n %h -6 route add 2000::/4 dev v0",
     "> v0 carries a part of the IPv6 default route (table main)", "> w0"},
    /* What a tunnel carries leaves by the port below it; where that is not known, by any. */
    {"-n %h addr add 198.18.0.1/24 dev v0",
     "?-n %h link add vx0 type vxlan id 7 remote 198.18.0.2 dstport 4789", "-n %h link set vx0 up",
     "> v0", "> vx0 is a tunnel (vxlan)", "-n %h route add default dev vx0",
     "> v0 carries the IPv4 default route (table main) through tunnel vx0", "> w0",
     "-n %h link del vx0", "> v0",
     "-n %h link add vx0 type vxlan id 7 dev w0 group 239.1.1.1 dstport 4789",
     "-n %h link set vx0 up", "-n %h route add default dev vx0",
     "> w0 carries the IPv4 default route (table main) through tunnel vx0"},
    {"?-n %h tuntap add tun0 mode tun", "-n %h link set tun0 up", "> w0",
     "-n %h route add default dev tun0",
     "> w0 may carry the IPv4 default route (table main) through tunnel tun0",
     "> v0 through tunnel tun0"},
    /* A next hop object, also where the route has its number alone. */
    {"?-n %h nexthop add id 5 dev v0", "-n %h route add default nhid 5",
     "> v0 carries the IPv4 default route", "> w0",
     "netns exec %h sh -c 'echo 0 >/proc/sys/net/ipv4/nexthop_compat_mode'",
     "> v0 carry the IPv4 default route"},
    {"-n %h link add br0 type bridge", "-n %h link set v0 master br0", "-n %h link set br0 up",
     "> v0 is a member of bridge br0", "> br0", "-n %h route add default dev br0",
     "> br0 carries the IPv4 default route", "> w0"},
    {"?-n %h link add mv0 link v0 type macvlan mode bridge",
     "-n %h link add mv1 link v0 type macvlan mode bridge", "-n %h link set mv0 up",
     "-n %h link set mv1 up", "> mv0", "-n %h route add default dev mv0",
     "> v0 shares a cable with mv0, which carries",
     "> mv1 sits on v0, which shares a cable with mv0, which carries", "> w0"},
    /* The device below a macvlan stays in the namespace where it was made. */
    {"?-n %a link add mv0 link v1 type macvlan mode bridge", "-n %a link set mv0 netns %h",
     "-n %h link set mv0 up", "> mv0 sits on a device of another network namespace"},
    {"?-n %h link add v0.7 link v0 type vlan id 7", "-n %h link set v0.7 up", "> v0",
     "-n %h route add default dev v0.7", "> v0 shares a cable with v0.7, which carries",
     "> v0.7 carries the IPv4 default route"},
    {"?-n %h link add bond7 type bond", "-n %h link set v0 down", "-n %h link set v0 master bond7",
     "> bond7 is a bond", "> v0 is a member of bond bond7", "> w0"},
};

static void each_scenario_is_judged(void **state)
{
    static const struct guard_rules rules = {.driver = "af_packet"};

    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
        assert_int_equal(fresh(state), 0);
        for (size_t k = 0; k < STEPS_MAX && scenarios[i][k]; k++) {
            const char *step = scenarios[i][k], *says;
            char iface[16] = "";
            struct err err;
            int code;

            if (*step == '?' && !ip(QUIET, step + 1))
                break;
            if (*step != '>') {
                assert_true(*step == '?' || ip("", step));
                continue;
            }
            sscanf(step, "> %15s", iface);
            says = step + strlen("> ") + strlen(iface);
            code = check(iface, &rules, &err);
            if (*says ? code != -EPERM || !strstr(err.text, says + 1) : code != 0)
                fail_msg("scenario %zu: %s: %d: '%s'", i, step, code, err.text);
        }
    }
}

static void what_is_not_there(void **state)
{
    static const char *const parts[] = {"There is no interface nope in network namespace", "lo, ",
                                        "v0", "w0"};
    struct err err;

    assert_int_equal(check("nope", &plain, &err), -ENODEV);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        assert_non_null(strstr(err.text, parts[i]));
    err.text[0] = '\0';
    assert_int_equal(guard_check_interface("test-guard-none", "v0", &plain, &err), -ENOENT);
    assert_non_null(strstr(err.text, "test-guard-none"));
    err.text[0] = '\0';
    assert_int_equal(guard_check_pci("ffff:ff:1f.7", &plain, &err), -ENODEV);
    assert_non_null(strstr(err.text, "ffff:ff:1f.7"));
}

/* Addresses of the controller, which belong to the process: this thread lives in `here` meanwhile.
 * Seen from a process elsewhere, the same addresses in `here` mean other machines. */
static void the_controllers_way_is_blocked(void **state)
{
    static const struct {
        const char *controller, *iface;
        int code;
        const char *says;
    } cases[] = {
        {"198.18.0.2", "v0", -EPERM, "the controller's connection (from 198.18.0.2)"},
        {"198.18.0.2", "w0", 0, ""},
        {"2001:db8::2", "w0", -EPERM, ""},
        {"fe80::2%w0", "w0", -EPERM, ""},
        {"::ffff:198.18.0.2", "v0", -EPERM, ""},
        {"198.18.0.1", "v0", 0, ""},  /* this host itself */
        {"203.0.113.9", "v0", 0, ""}, /* no route leads there */
        {"not-an-address", "v0", -EINVAL, "not-an-address is not a numeric IP address"},
    };
    struct guard_rules rules = {.driver = "tcp", .controller = "198.18.0.2"};
    struct err err;
    int previous;

    must("-n %h addr add 198.18.0.1/24 dev v0");
    must("-n %h -6 addr add 2001:db8::1/64 dev w0 nodad");
    assert_int_equal(check("v0", &rules, &err), 0);
    assert_int_equal(netns_enter(here, &previous, &err), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        err.text[0] = '\0';
        rules.controller = cases[i].controller;
        assert_int_equal(guard_check_interface(NULL, cases[i].iface, &rules, &err), cases[i].code);
        assert_non_null(strstr(err.text, cases[i].says));
    }
    netns_leave(previous);
    if (!ip(QUIET, "-n %h link add vx0 type vxlan id 7 remote 198.18.0.2 dstport 4789"))
        return;
    must("-n %h link set vx0 up");
    must("-n %h route add 203.0.113.0/24 dev vx0");
    assert_int_equal(netns_enter(here, &previous, &err), 0);
    rules.controller = "203.0.113.9";
    err.text[0] = '\0';
    assert_int_equal(guard_check_interface(NULL, "v0", &rules, &err), -EPERM);
    assert_non_null(strstr(err.text, "(from 203.0.113.9) through tunnel vx0"));
    assert_int_equal(guard_check_interface(NULL, "w0", &rules, &err), 0);
    netns_leave(previous);
}

static void test_shared(void **state)
{
    struct guard_rules rules = {.driver = "af_packet", .shared = true};
    struct err err;

    must("-n %h route add default dev v0");
    assert_int_equal(check("v0", &rules, &err), -EPERM);
    assert_non_null(strstr(err.text, "af_packet does not"));
    rules.isolates_flows = true;
    assert_int_equal(check("v0", &rules, &err), 0);
}

/* A device without the kernel is nobody else's, whatever its interfaces were. */
static void test_device_without_kernel_is_never_shared(void **state)
{
    struct guard_rules rules = {
        .driver = "a PCI driver", .shared = true, .isolates_flows = true, .leaves_kernel = true};
    struct err err = {0};
    glob_t devices;
    const char *pci;

    if (glob("/sys/bus/pci/devices/*", 0, NULL, &devices) != 0)
        skip();
    pci = strrchr(devices.gl_pathv[0], '/') + 1; /* a bridge on all machines: no interface */
    assert_int_equal(guard_check_pci(pci, &rules, &err), -EPERM);
    assert_non_null(strstr(err.text, "can't be `shared: true`: DPDK has it without the kernel"));
    rules.leaves_kernel = false;
    assert_int_equal(guard_check_pci(pci, &rules, &err), 0);
    globfree(&devices);
}

static void test_device_arguments(void **state)
{
    static const struct {
        const char *vdev;
        int code;
    } devices[] = {
        {"net_null0", 0},
        {"net_ring0", 0},
        {"net_af_packet0,iface=w0", 0},
        {"net_af_packet0,iface=v0", -EPERM},
        {"net_af_xdp0,start_queue=0,iface=v0,queue_count=1", -EPERM},
        {"net_pcap0,tx_iface=w0,rx_iface=v0", -EPERM},
        {"net_failsafe0,dev(net_af_packet1,iface=v0),dev(net_null1)", -EPERM},
        {"net_bonding0,member=ffff:ff:1f.7", -ENODEV},
    };

    must("-n %h route add default dev v0");
    for (size_t i = 0; i < sizeof(devices) / sizeof(*devices); i++) {
        struct err err = {0};
        int code = guard_check_vdev(here, devices[i].vdev, &plain, &err);

        if (code != devices[i].code)
            fail_msg("%s: %d: %s", devices[i].vdev, code, err.text);
    }
}

#define in_namespaces(test) cmocka_unit_test_setup_teardown(test, fresh, away_with)

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_namespaces(each_scenario_is_judged),
        in_namespaces(what_is_not_there),
        in_namespaces(the_controllers_way_is_blocked),
        in_namespaces(test_shared),
        in_namespaces(test_device_arguments),
        cmocka_unit_test(test_device_without_kernel_is_never_shared),
    };
    bool possible;

    snprintf(here, sizeof(here), "sb-guard-%d-h", (int)getpid());
    snprintf(away, sizeof(away), "sb-guard-%d-a", (int)getpid());
    possible = make();
    drop();
    if (!possible) {
        printf("skipped: making a network namespace needs root\n");
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
