/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard's judgement on maps drawn by hand (bonds, VLANs, VRFs, namespaces out of sight: what
 * the kernel of the moment may not have), and its reading of /proc and /sys in a folder of ours.
 * Needs no privilege.
 */
#include "guard.h"
#include "guard_map.h"

#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

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

static int judge(const struct drawn *drawn, const struct guard_rules *rules, struct err *err)
{
    struct guard_map map = {0};
    int code;

    *err = (struct err){0};
    draw(&map, drawn->links);
    if (drawn->used >= 0)
        assert_int_equal(
            guard_map_add_use(&map, drawn->used, "the IPv4 default route (table main)"), 0);
    code = guard_judge(&map, guard_map_find(&map, drawn->port), NULL, rules, err);
    guard_map_free(&map);
    return code;
}

static void assert_says(const struct err *err, const char *part)
{
    if (!strstr(err->text, part))
        fail_msg("'%s' does not say '%s'", err->text, part);
}

static void test_drawings(void **state)
{
    static const struct guard_rules rules = {.driver = "af_packet"};

    for (size_t i = 0; i < sizeof(drawings) / sizeof(*drawings); i++) {
        const char *says = drawings[i].says;
        struct err err;
        int code = judge(&drawings[i], &rules, &err);

        if (code != (says ? -EPERM : 0) || (says ? !strstr(err.text, says) : *err.text != 0))
            fail_msg("%s: %d: %s", drawings[i].what, code, err.text);
    }
}

/* What `shared: true` lifts, and where it can't. */
static void test_shared(void **state)
{
    static const struct guard_rules isolating = {
        .driver = "mlx5", .shared = true, .isolates_flows = true};
    static const struct guard_rules kernel = {.driver = "af_packet", .shared = true};
    static const struct guard_rules leaving = {
        .driver = "ixgbe", .shared = true, .isolates_flows = true, .leaves_kernel = true};
    static const struct guard_rules could = {.driver = "mlx5", .isolates_flows = true};
    const struct drawn *innocent = &drawings[0], *route = &drawings[1];
    const struct drawn *loopback = &drawings[2];
    struct err err;

    assert_int_equal(judge(route, &isolating, &err), 0);
    assert_int_equal(judge(innocent, &isolating, &err), 0);
    assert_int_equal(judge(loopback, &isolating, &err), -EPERM);

    assert_int_equal(judge(route, &kernel, &err), -EPERM);
    assert_says(&err, "isolated mode), which af_packet does not");
    assert_int_equal(judge(innocent, &kernel, &err), -EPERM);
    assert_says(&err, "nothing was found there that needs it, so leave `shared` out");

    assert_int_equal(judge(route, &leaving, &err), -EPERM);
    assert_says(&err, "is never shared, whatever `shared` says");
    assert_int_equal(judge(innocent, &leaving, &err), -EPERM);
    assert_says(&err, "has to leave its kernel driver");

    assert_int_equal(judge(route, &could, &err), -EPERM);
    assert_says(&err, "or say `shared: true`");
}

/* A tree of our own in place of / */

static char root[] = "/tmp/test_guard_topology.XXXXXX";

static void folder(const char *path)
{
    char whole[PATH_MAX];

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
    assert_true(mkdir(whole, 0755) == 0 || errno == EEXIST);
}

static void file(const char *in, const char *name, const char *text)
{
    char whole[PATH_MAX];
    FILE *stream;

    folder(in);
    snprintf(whole, sizeof(whole), "%s/%s/%s", root, in, name);
    stream = fopen(whole, "we");
    assert_non_null(stream);
    assert_true(fputs(text, stream) >= 0);
    assert_int_equal(fclose(stream), 0);
}

static void link_to(const char *target, const char *path)
{
    char whole[PATH_MAX], there[PATH_MAX];

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    snprintf(there, sizeof(there), "%s/%s", root, target);
    assert_int_equal(symlink(there, whole), 0);
}

static int make_root(void **state)
{
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    char command[sizeof(root) + 16];

    snprintf(command, sizeof(command), "rm -rf %s", root);
    return system(command);
}

static void test_pci(void **state)
{
    struct guard_interfaces interfaces;
    struct err err = {0};

    folder("sys/bus/pci/devices/0000:3b:00.0/net/ens1f0");
    folder("sys/bus/pci/devices/0000:3b:02.0/virtio3/net/vf0");
    assert_int_equal(guard_host_pci(root, "0000:3b:00.0", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 1);
    assert_string_equal(interfaces.names[0], "ens1f0");
    assert_int_equal(guard_host_pci(root, "0000:3b:02.0", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 1);
    assert_string_equal(interfaces.names[0], "vf0");

    assert_int_equal(guard_host_pci(root, "0000:3c:00.0", &interfaces, &err), -ENODEV);
    assert_says(&err, "There is no PCI device 0000:3c:00.0");
    err.text[0] = '\0';
    assert_int_equal(guard_host_pci(root, "../../etc", &interfaces, &err), -EINVAL);
    assert_says(&err, "is not a PCI address");
}

/* IPoIB: the GID table names no interface, but one lies on the same PCI device. RoCE: any GID may
 * name one, not the first alone. */
static void test_rdma(void **state)
{
    struct guard_interfaces interfaces;
    struct err err = {0};

    folder("sys/devices/pci0000:5a/0000:5b:00.0/net/ib0");
    folder("sys/class/net/ib0");
    link_to("sys/devices/pci0000:5a/0000:5b:00.0", "sys/class/net/ib0/device");
    folder("sys/class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs");
    link_to("sys/devices/pci0000:5a/0000:5b:00.0", "sys/class/infiniband/mlx5_0/device");
    assert_int_equal(guard_host_rdma(root, "mlx5_0/1", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 1);
    assert_string_equal(interfaces.names[0], "ib0");
    assert_int_equal(guard_host_rdma(root, "mlx5_0", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 1);

    folder("sys/class/infiniband/rxe0/ports/1/gid_attrs");
    file("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs", "0", "\n");
    file("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs", "1", "eth7\n");
    file("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs", "2", "eth7.5\n");
    file("sys/class/infiniband/rxe0/ports/1/gid_attrs/ndevs", "3", "eth7\n");
    assert_int_equal(guard_host_rdma(root, "rxe0/1", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 2);

    /* A function without any kernel interface carries nothing that the kernel knows of. */
    folder("sys/devices/pci0000:6a/0000:6b:00.0");
    folder("sys/class/infiniband/mlx5_9/ports/1");
    link_to("sys/devices/pci0000:6a/0000:6b:00.0", "sys/class/infiniband/mlx5_9/device");
    assert_int_equal(guard_host_rdma(root, "mlx5_9/1", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 0);

    /* Neither GIDs nor a device: unknown is blocked. */
    folder("sys/class/infiniband/odd0/ports/1");
    assert_int_equal(guard_host_rdma(root, "odd0/1", &interfaces, &err), -EPERM);
    assert_says(&err, "RDMA port odd0/1: no interface and no device is found");
    err.text[0] = '\0';
    assert_int_equal(guard_host_rdma(root, "odd0/2", &interfaces, &err), -ENODEV);
    assert_says(&err, "There is no RDMA port odd0/2");
    assert_int_equal(guard_host_rdma(root, "../net/1", &interfaces, &err), -ENODEV);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawings),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_pci),
        cmocka_unit_test(test_rdma),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
