/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard: its judgement on maps drawn by hand (bonds, VLANs, VRFs, namespaces out of sight: what
 * the kernel of the moment may not have), its reading of /sys in a folder of ours, and on real
 * devices in network namespaces made here. And it fails closed: each of the kernel's answers is
 * damaged in turn on its way to the guard (ld --wrap). Without the privilege to make a namespace
 * the second half is skipped (77).
 */
#include "guard.h"
#include "guard_map.h"
#include "netns.h"

#include <errno.h>
#include <glob.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define SKIPPED 77
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct guard_rules plain = {.driver = "af_packet"};

/* --- maps drawn by hand --- */

/* Interfaces as "INDEX NAME [KIND] [<LOWER] [^MASTER] [elsewhere]", comma separated; KIND "lo" is
 * the loopback. */
struct drawn {
    const char *what;
    const char *links;
    const char *port;
    int used;         /* ifindex of the default route; -1: none */
    const char *says; /* of the refusal; NULL: it passes */
};

static const struct drawn drawings[] = {
    {"a plain interface", "2 eth0, 3 eth1", "eth1", 2, NULL},
    {"the default route itself", "2 eth0", "eth0", 2,
     "Interface eth0 carries the IPv4 default route (table main)"},
    {"the loopback", "1 lo lo", "lo", -1, "lo is the loopback"},
    {"a VLAN above carries it", "2 eth0, 5 eth0.7 vlan <2, 6 eth0.7.8 vlan <5", "eth0", 6,
     "shares a cable with eth0.7.8, which carries"},
    {"a VLAN whose lower device carries it", "2 eth0, 5 eth0.7 vlan <2", "eth0.7", 2,
     "Interface eth0.7 sits on eth0, which carries"},
    {"a VLAN on a bond", "4 bond0 bond, 5 bond0.7 vlan <4", "bond0.7", -1,
     "sits on bond0, which is a bond"},
    {"a bond that carries nothing", "4 bond0 bond", "bond0", -1, "Interface bond0 is a bond"},
    {"a member of a team", "2 eth0 ^4, 4 team0 team", "eth0", -1, "is a member of team team0"},
    {"a member of a bridge, by a VLAN", "2 eth0 ^4, 3 eth0.5 vlan <2, 4 br0 bridge", "eth0.5", -1,
     "sits on eth0, which is a member of bridge br0"},
    {"a member of what is not known", "2 eth0 ^4", "eth0", -1,
     "is a member of a device that is not known"},
    {"a bond beside the port", "2 eth0 ^4, 4 bond0 bond, 7 eth5", "eth5", 4, NULL},
    {"a VRF: other members have other cables", "2 eth0 ^4, 3 eth1 ^4, 4 vrf0 vrf", "eth1", 2, NULL},
    {"a macvlan on a device out of sight", "2 mv0 macvlan <2 elsewhere", "mv0", -1,
     "Interface mv0 sits on a device of another network namespace"},
    {"devices in a circle", "2 a vlan <3, 3 b vlan <2, 4 eth0", "a", 4, NULL},
    {"a default route by a device that is not told", "2 eth0", "eth0", ANY_DEVICE,
     "may carry the IPv4 default route"},
};

static void draw(struct guard_map *map, const char *links)
{
    char text[256], *rest = text, *entry, *word;

    snprintf(text, sizeof text, "%s", links);
    while ((entry = strsep(&rest, ",")) != NULL) {
        struct guard_link link = {.index = (int)strtol(entry, &entry, 10)};

        entry += *entry == ' ';
        snprintf(link.name, sizeof link.name, "%s", strsep(&entry, " "));
        while ((word = strsep(&entry, " ")) != NULL) {
            if (*word == '<')
                link.lower = atoi(word + 1);
            else if (*word == '^')
                link.master = atoi(word + 1);
            else if (strcmp(word, "elsewhere") == 0)
                link.elsewhere = true;
            else if (strcmp(word, "lo") == 0)
                link.loopback = true;
            else
                snprintf(link.kind, sizeof link.kind, "%s", word);
        }
        assert_int_equal(guard_map_add_link(map, &link), 0);
    }
}

static void assert_judged(const char *what, int code, int right, const struct err *err,
                          const char *says)
{
    if (code != right || (says != NULL ? !strstr(err->text, says) : *err->text != 0))
        fail_msg("%s: %d: '%s'", what, code, err->text);
}

static void judge(const struct drawn *drawn, const struct guard_rules *rules, const char *says)
{
    struct guard_map map = {0};
    struct err err = {0};
    int code;

    draw(&map, drawn->links);
    if (drawn->used >= 0)
        assert_int_equal(
            guard_map_add_use(&map, drawn->used, "the IPv4 default route (table main)"), 0);
    code = guard_judge(&map, guard_map_find(&map, drawn->port), NULL, rules, &err);
    guard_map_free(&map);
    assert_judged(drawn->what, code, says != NULL ? -EPERM : 0, &err, says);
}

static void each_drawing_is_judged(void **state)
{
    /* What `shared: true` lifts, and where it can't: of an innocent port, a default route, lo. */
    static const struct {
        struct guard_rules rules;
        const char *says[3];
    } shared[] = {
        {{.driver = "mlx5", .shared = true, .isolates_flows = true},
         {NULL, NULL, "lo is the loopback"}},
        {{.driver = "af_packet", .shared = true},
         {"nothing was found there that needs it, so leave `shared` out",
          "isolated mode), which af_packet does not", "lo is the loopback"}},
        {{.driver = "ixgbe", .shared = true, .isolates_flows = true, .leaves_kernel = true},
         {"has to leave its kernel driver", "is never shared, whatever `shared` says",
          "lo is the loopback"}},
        {{.driver = "mlx5", .isolates_flows = true},
         {NULL, "or say `shared: true`", "lo is the loopback"}},
    };

    for (size_t i = 0; i < COUNT(drawings); i++)
        judge(&drawings[i], &plain, drawings[i].says);
    for (size_t i = 0; i < COUNT(shared); i++)
        for (size_t k = 0; k < 3; k++)
            judge(&drawings[k], &shared[i].rules, shared[i].says[k]);
}

/* --- /sys --- */

/* What is laid out in a folder of ours, by sh(1). IPoIB: the GID table names no interface, but one
 * lies on the same PCI device. RoCE: any GID may name one, not the first alone. mlx5_9: a function
 * without any kernel interface carries nothing that the kernel knows of. odd0: neither GIDs nor a
 * device. */
static const char layout[] =
    "cd %s && pci=sys/bus/pci/devices rdma=sys/class/infiniband && "
    "mkdir -p $pci/0000:3b:00.0/net/ens1f0 $pci/0000:3b:02.0/virtio3/net/vf0 "
    "  $pci/0000:5b:00.0/net/ib0 $pci/0000:6b:00.0 $rdma/mlx5_0/ports/1/gid_attrs/ndevs "
    "  $rdma/mlx5_9/ports/1 $rdma/odd0/ports/1 $rdma/rxe0/ports/1/gid_attrs/ndevs && "
    "ln -s $PWD/$pci/0000:5b:00.0 $rdma/mlx5_0/device && "
    "ln -s $PWD/$pci/0000:6b:00.0 $rdma/mlx5_9/device && "
    "cd $rdma/rxe0/ports/1/gid_attrs/ndevs && "
    "echo >0 && echo eth7 >1 && echo eth7.5 >2 && echo eth7 >3";

static void interfaces_are_found_in_sys(void **state)
{
    static const struct {
        const char *device;
        int code;
        size_t count;
        const char *says; /* the first one's name, or the sentence */
    } cases[] = {
        {"0000:3b:00.0", 0, 1, "ens1f0"},
        {"0000:3b:02.0", 0, 1, "vf0"},
        {"0000:3c:00.0", -ENODEV, 0, "There is no PCI device 0000:3c:00.0"},
        {"0000/etc", -EINVAL, 0, "is not a PCI address"},
        {"mlx5_0/1", 0, 1, "ib0"},
        {"mlx5_0", 0, 1, "ib0"},
        {"rxe0/1", 0, 2, "eth7"},
        {"mlx5_9/1", 0, 0, ""},
        {"odd0/1", -EPERM, 0, "RDMA port odd0/1: no interface and no device is found"},
        {"odd0/2", -ENODEV, 0, "There is no RDMA port odd0/2"},
        {"../net/1", -ENODEV, 0, ""},
    };
    char root[] = "/tmp/test_guard.XXXXXX", command[sizeof(layout) + sizeof(root)];

    assert_non_null(mkdtemp(root));
    snprintf(command, sizeof(command), layout, root);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct guard_interfaces found = {0};
        struct err err = {0};
        int code = (strncmp(cases[i].device, "0000", 4) == 0 ? guard_host_pci : guard_host_rdma)(
            root, cases[i].device, &found, &err);

        assert_int_equal(found.count, cases[i].count);
        assert_judged(cases[i].device, code, cases[i].code, &err, code < 0 ? cases[i].says : NULL);
        if (found.count > 0)
            assert_string_equal(found.names[0], cases[i].says);
    }
    snprintf(command, sizeof(command), "rm -rf %s", root);
    assert_int_equal(system(command), 0);
}

/* --- real devices --- */

/* Two namespaces of this process, `$h` and `$a` of a command: `here` is where the test's thread
 * lives, the other away. */
static char here[32];

/* Runs one command of ip(8) and returns whether it worked. */
static bool ip(const char *quiet, const char *command)
{
    char whole[256];

    snprintf(whole, sizeof(whole), "ip %s %s", command, quiet);
    return system(whole) == 0;
}

#define QUIET "2>/dev/null"
#define must(command) assert_true(ip("", command))

static int away_with(void **state)
{
    ip(QUIET, "netns del $h");
    ip(QUIET, "netns del $a");
    return 0;
}

static bool make(void)
{
    return ip(QUIET, "netns add $h") && ip(QUIET, "netns add $a") && ip("", "-n $h link set lo up");
}

static int fresh(void **state)
{
    static const char *const commands[] = {"-n $h link add v0 type veth peer name v1 netns $a",
                                           "-n $h link add w0 type veth peer name w1 netns $a",
                                           "-n $h link set v0 up",
                                           "-n $h link set w0 up",
                                           "-n $a link set v1 up",
                                           "-n $a link set w1 up"};
    bool made;

    away_with(state);
    made = make();
    for (size_t i = 0; i < COUNT(commands); i++)
        made = made && ip("", commands[i]);
    return made ? 0 : -1;
}

/* Commands of ip(8) one after the other, the scenario ending where one with '?' fails; "> v0": then
 * interface v0 passes, or, with words behind it, is refused with these. */
#define STEPS_MAX 16
static const char *const scenarios[][STEPS_MAX] = {
    /* What an innocent interface may have. */
    {"-n $h addr add 198.18.0.1/24 dev v0", "-n $h route add 10.0.0.0/8 via 198.18.0.2",
     "-n $h -6 route add 2001:db8::/32 dev v0", "> v0", "> w0", "> lo is the loopback"},
    /* Default routes. */
    {"-n $h route add default dev v0", "> v0 v0 of network namespace",
     "> v0 carries the IPv4 default route (table main)", "> w0", "-n $h route del default", "> v0",
     "-n $h route add default dev v0 table 100", "> v0 IPv4 default route (table 100)", "> w0"},
    {"-n $h route add 128.0.0.0/1 dev v0", "> v0 IPv4 default route", "> w0"},
    {"-n $h -6 route add default dev v0", "> v0 IPv6 default route (table main)",
     "-n $h -6 route del default", "> v0", "-n $h -6 route add default dev v0 table 7777",
     "> v0 IPv6 default route (table 7777)", "> w0"},
    {"-n $h -6 route add 2000::/3 dev v0", "> v0 IPv6 default route", "> w0"},
    {"-n $h route add default nexthop dev w0 nexthop dev v0", "> v0 carries the IPv4 default",
     "> w0 carries the IPv4 default"},
    /* Routes that together lead to half of all addresses. */
    {"-n $h route add 0.0.0.0/2 dev v0", "-n $h route add 10.0.0.0/8 dev w0", "> v0",
     "-n $h route add 64.0.0.0/2 dev v0", "-n $h route add 192.0.0.0/2 dev v0",
     "> v0 carries a part of the IPv4 default route (table main)"},
    {"-n $h -6 route add 3000::/5 dev v0", "-n $h -6 route add fc00::/7 dev w0", "> v0",
     "-n $h -6 route add 2000::/4 dev v0",
     "> v0 carries a part of the IPv6 default route (table main)", "> w0"},
    /* What a tunnel carries leaves by the port below it; where that is not known, by any. */
    {"-n $h addr add 198.18.0.1/24 dev v0",
     "?-n $h link add vx0 type vxlan id 7 remote 198.18.0.2 dstport 4789", "-n $h link set vx0 up",
     "> v0", "> vx0 is a tunnel (vxlan)", "-n $h route add default dev vx0",
     "> v0 carries the IPv4 default route (table main) through tunnel vx0", "> w0",
     "-n $h link del vx0", "> v0",
     "-n $h link add vx0 type vxlan id 7 dev w0 group 239.1.1.1 dstport 4789",
     "-n $h link set vx0 up", "-n $h route add default dev vx0",
     "> w0 carries the IPv4 default route (table main) through tunnel vx0"},
    {"?-n $h tuntap add tun0 mode tun", "-n $h link set tun0 up", "> w0",
     "-n $h route add default dev tun0",
     "> w0 may carry the IPv4 default route (table main) through tunnel tun0",
     "> v0 through tunnel tun0"},
    /* A next hop object, also where the route has its number alone. */
    {"?-n $h nexthop add id 5 dev v0", "-n $h route add default nhid 5",
     "> v0 carries the IPv4 default route", "> w0",
     "netns exec $h sh -c 'echo 0 >/proc/sys/net/ipv4/nexthop_compat_mode'",
     "> v0 carry the IPv4 default route"},
    {"-n $h link add br0 type bridge", "-n $h link set v0 master br0", "-n $h link set br0 up",
     "> v0 is a member of bridge br0", "> br0", "-n $h route add default dev br0",
     "> br0 carries the IPv4 default route", "> w0"},
    {"?-n $h link add mv0 link v0 type macvlan mode bridge",
     "-n $h link add mv1 link v0 type macvlan mode bridge", "-n $h link set mv0 up",
     "-n $h link set mv1 up", "> mv0", "-n $h route add default dev mv0",
     "> v0 shares a cable with mv0, which carries",
     "> mv1 sits on v0, which shares a cable with mv0, which carries", "> w0"},
    /* The device below a macvlan stays in the namespace where it was made. */
    {"?-n $a link add mv0 link v1 type macvlan mode bridge", "-n $a link set mv0 netns $h",
     "-n $h link set mv0 up", "> mv0 sits on a device of another network namespace"},
    {"?-n $h link add v0.7 link v0 type vlan id 7", "-n $h link set v0.7 up", "> v0",
     "-n $h route add default dev v0.7", "> v0 shares a cable with v0.7, which carries",
     "> v0.7 carries the IPv4 default route"},
    {"?-n $h link add bond7 type bond", "-n $h link set v0 down", "-n $h link set v0 master bond7",
     "> bond7 is a bond", "> v0 is a member of bond bond7", "> w0"},
};

static void each_scenario_is_judged(void **state)
{
    for (size_t i = 0; i < COUNT(scenarios); i++) {
        assert_int_equal(fresh(state), 0);
        for (size_t k = 0; k < STEPS_MAX && scenarios[i][k]; k++) {
            const char *step = scenarios[i][k], *says;
            struct err err = {0};
            char iface[16] = "";

            if (*step == '?' && !ip(QUIET, step + 1))
                break;
            if (*step != '>') {
                assert_true(*step == '?' || ip("", step));
                continue;
            }
            sscanf(step, "> %15s", iface);
            says = step + strlen("> ") + strlen(iface);
            says = *says ? says + 1 : NULL;
            assert_judged(step, guard_check_interface(here, iface, &plain, &err),
                          says != NULL ? -EPERM : 0, &err, says);
        }
    }
}

static void what_is_not_there(void **state)
{
    static const char *const parts[] = {"There is no interface nope in network namespace", "lo, ",
                                        "v0", "w0"};
    struct err err;

    err.text[0] = '\0';
    assert_int_equal(guard_check_interface(here, "nope", &plain, &err), -ENODEV);
    for (size_t i = 0; i < COUNT(parts); i++)
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

    must("-n $h addr add 198.18.0.1/24 dev v0");
    must("-n $h -6 addr add 2001:db8::1/64 dev w0 nodad");
    assert_int_equal(guard_check_interface(here, "v0", &rules, &err), 0);
    assert_int_equal(netns_enter(here, &previous, &err), 0);
    for (size_t i = 0; i < COUNT(cases); i++) {
        err.text[0] = '\0';
        rules.controller = cases[i].controller;
        assert_int_equal(guard_check_interface(NULL, cases[i].iface, &rules, &err), cases[i].code);
        assert_non_null(strstr(err.text, cases[i].says));
    }
    netns_leave(previous);
    if (!ip(QUIET, "-n $h link add vx0 type vxlan id 7 remote 198.18.0.2 dstport 4789"))
        return;
    must("-n $h link set vx0 up");
    must("-n $h route add 203.0.113.0/24 dev vx0");
    assert_int_equal(netns_enter(here, &previous, &err), 0);
    rules.controller = "203.0.113.9";
    err.text[0] = '\0';
    assert_int_equal(guard_check_interface(NULL, "v0", &rules, &err), -EPERM);
    assert_non_null(strstr(err.text, "(from 203.0.113.9) through tunnel vx0"));
    assert_int_equal(guard_check_interface(NULL, "w0", &rules, &err), 0);
    netns_leave(previous);
}

/* A device without the kernel is nobody else's, whatever its interfaces were. */
static void a_device_without_kernel_is_never_shared(void **state)
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

static void device_arguments_are_checked(void **state)
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

    must("-n $h route add default dev v0");
    for (size_t i = 0; i < COUNT(devices); i++) {
        struct err err = {0};
        int code = guard_check_vdev(here, devices[i].vdev, &plain, &err);

        if (code != devices[i].code)
            fail_msg("%s: %d: %s", devices[i].vdev, code, err.text);
    }
}

/* --- damaged answers --- */

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

/* With the controller's route, which is looked up, too. */
static int check_damaged(damage_fn *how, int which, struct err *err)
{
    static const struct guard_rules rules = {.driver = "af_packet", .controller = "198.18.9.9"};
    int code, previous;

    *err = (struct err){0};
    assert_int_equal(netns_enter(here, &previous, err), 0);
    damage = how;
    damaged = which;
    answers = 0;
    code = guard_check_interface(NULL, "v0", &rules, err);
    damage = NULL;
    netns_leave(previous);
    return code;
}

static void a_damaged_answer_blocks(void **state)
{
    static damage_fn *const each[] = {cut_off, replace_by_error}, *const all[] = {lose_the_end,
                                                                                  interrupt};
    struct err err;
    int usual;

    must("-n $h addr add 198.18.0.1/24 dev v0");
    must("-n $h addr add 198.18.9.1/24 dev w0");
    assert_int_equal(check_damaged(NULL, 0, &err), 0);
    usual = answers;
    assert_in_range(usual, 3, 200); /* links, routes, the controller's route */
    for (size_t i = 0; i < COUNT(each); i++)
        for (int which = 0; which < usual; which++)
            if (check_damaged(each[i], which, &err) == 0 || err.text[0] == '\0')
                fail_msg("kind %zu: answer %d is damaged, and the port is allowed", i, which);
    for (size_t i = 0; i < COUNT(all); i++) {
        assert_true(check_damaged(all[i], -1, &err) < 0);
        assert_non_null(strstr(err.text, "not known whether traffic there is safe"));
    }
    assert_int_equal(check_damaged(interrupt, 0, &err), 0); /* the dump is repeated */
    assert_true(answers > usual);
    must("-n $h route add default via 198.18.0.2");
    for (int which = 0; which < 6; which++) {
        assert_int_equal(check_damaged(interrupt, which, &err), -EPERM);
        assert_non_null(strstr(err.text, "carries the IPv4 default route"));
    }
}

#define in_namespaces(test) cmocka_unit_test_setup_teardown(test, fresh, away_with)

int main(void)
{
    const struct CMUnitTest everywhere[] = {
        cmocka_unit_test(each_drawing_is_judged),
        cmocka_unit_test(interfaces_are_found_in_sys),
        cmocka_unit_test(a_device_without_kernel_is_never_shared),
    };
    const struct CMUnitTest in_spaces[] = {
        in_namespaces(each_scenario_is_judged),        in_namespaces(what_is_not_there),
        in_namespaces(the_controllers_way_is_blocked), in_namespaces(device_arguments_are_checked),
        in_namespaces(a_damaged_answer_blocks),
    };
    int failed = cmocka_run_group_tests_name("guard: maps", everywhere, NULL, NULL);
    bool possible;

    snprintf(here, sizeof(here), "sb-guard-%d-a", (int)getpid());
    setenv("a", here, 1);
    snprintf(here, sizeof(here), "sb-guard-%d-h", (int)getpid());
    setenv("h", here, 1);
    possible = make();
    away_with(NULL);
    if (!possible && failed == 0) {
        printf("skipped: making a network namespace needs root\n");
        return SKIPPED;
    }
    return possible ? failed + cmocka_run_group_tests_name("guard", in_spaces, NULL, NULL) : failed;
}
