/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard's judgement on maps drawn by hand (bonds, VLANs, VRFs, namespaces out of sight: what
 * the kernel of the moment may not have), and its reading of /proc and /sys in a folder of ours.
 * Needs no privilege.
 */
#include "guard.h"
#include "guard_host.h"
#include "guard_servers.h"
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define LINKS_MAX 8
#define SENTENCES 3

struct drawn {
    const char *what;
    struct topology_link links[LINKS_MAX]; /* all in namespace 0 but where said; ends at index 0 */
    const char *port;
    int used; /* ifindex of the default route; -1: none */
    int code;
    const char *says[SENTENCES];
};

#define HERE .peer_nsid = NSID_NONE
#define THERE .peer_nsid = 4, .peer_space = SPACE_UNKNOWN

static const struct drawn drawings[] = {
    {"a plain interface",
     {{.index = 2, .name = "eth0", HERE}, {.index = 3, .name = "eth1", HERE}},
     "eth1",
     2,
     0,
     {NULL}},
    {"the default route itself",
     {{.index = 2, .name = "eth0", HERE}},
     "eth0",
     2,
     -EPERM,
     {"Interface eth0 carries the IPv4 default route (table main)", "an interface that nothing"}},
    {"a VLAN above carries it",
     {{.index = 2, .name = "eth0", HERE},
      {.index = 5, .name = "eth0.7", .kind = "vlan", .peer = 2, HERE}},
     "eth0",
     5,
     -EPERM,
     {"shares a cable or a bridge with eth0.7, which carries"}},
    {"a VLAN whose lower device carries it",
     {{.index = 2, .name = "eth0", HERE},
      {.index = 5, .name = "eth0.7", .kind = "vlan", .peer = 2, HERE}},
     "eth0.7",
     2,
     -EPERM,
     {"with eth0, which carries"}},
    {"a VLAN on a bond whose other VLAN carries it",
     {{.index = 2, .name = "eth0", .master = 4, HERE},
      {.index = 3, .name = "eth1", .master = 4, HERE},
      {.index = 4, .name = "bond0", .kind = "bond", HERE},
      {.index = 5, .name = "bond0.7", .kind = "vlan", .peer = 4, HERE},
      {.index = 6, .name = "bond0.8", .kind = "vlan", .peer = 4, HERE}},
     "bond0.8",
     5,
     -EPERM,
     {"with bond0.7, which carries the IPv4 default route"}},
    {"a bond that carries nothing",
     {{.index = 2, .name = "eth0", .master = 4, HERE},
      {.index = 4, .name = "bond0", .kind = "bond", HERE}},
     "bond0",
     -1,
     -EPERM,
     {"Interface bond0 is a bond"}},
    {"a member of a bond",
     {{.index = 2, .name = "eth0", .master = 4, HERE},
      {.index = 4, .name = "bond0", .kind = "bond", HERE}},
     "eth0",
     -1,
     -EPERM,
     {"with bond0, which is a bond"}},
    {"a member of a team",
     {{.index = 2, .name = "eth0", .master = 4, HERE},
      {.index = 4, .name = "team0", .kind = "team", HERE}},
     "eth0",
     -1,
     -EPERM,
     {"which is a team"}},
    {"a bond beside the port",
     {{.index = 2, .name = "eth0", .master = 4, HERE},
      {.index = 4, .name = "bond0", .kind = "bond", HERE},
      {.index = 7, .name = "eth5", HERE}},
     "eth5",
     4,
     0,
     {NULL}},
    {"a VRF: other members have other cables",
     {{.index = 2, .name = "eth0", .master = 4, HERE},
      {.index = 3, .name = "eth1", .master = 4, HERE},
      {.index = 4, .name = "vrf0", .kind = "vrf", HERE}},
     "eth1",
     2,
     0,
     {NULL}},
    {"a macvlan on a device out of sight",
     {{.index = 2, .name = "mv0", .kind = "macvlan", .peer = 2, THERE}},
     "mv0",
     -1,
     -EPERM,
     {"Interface mv0 sits on a device of a network namespace that can't be seen"}},
    {"a veth whose other end is out of sight",
     {{.index = 2, .name = "eth0", .kind = "veth", .peer = 9, THERE}},
     "eth0",
     -1,
     0,
     {NULL}},
    {"a default route by a device that is not told",
     {{.index = 2, .name = "eth0", HERE}},
     "eth0",
     ANY_DEVICE,
     -EPERM,
     {"may carry the IPv4 default route"}},
    {"the loopback",
     {{.index = 1, .name = "lo", .loopback = true, HERE}},
     "lo",
     -1,
     -EPERM,
     {"lo is the loopback"}},
};

static void draw(struct topology *map, const struct drawn *drawn)
{
    struct critical_use use = {.index = drawn->used, .what = "the IPv4 default route (table main)"};

    *map = (struct topology){0};
    for (size_t i = 0; i < LINKS_MAX && drawn->links[i].index; i++)
        assert_int_equal(topology_add_link(map, &drawn->links[i]), 0);
    if (drawn->used >= 0)
        assert_int_equal(topology_add_use(map, &use), 0);
    topology_find(map, 0, drawn->port)->reached = true;
    topology_mark_connected(map);
}

static int judge(const struct drawn *drawn, const struct guard_rules *rules, struct err *err)
{
    struct topology map;
    int code;

    *err = (struct err){0};
    draw(&map, drawn);
    code = guard_judge(&map, topology_find(&map, 0, drawn->port), NULL, rules, err);
    topology_free(&map);
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
        struct err err;
        int code = judge(&drawings[i], &rules, &err);

        if (code != drawings[i].code)
            fail_msg("%s: %d instead of %d: %s", drawings[i].what, code, drawings[i].code,
                     err.text);
        if (code == 0)
            assert_string_equal(err.text, "");
        for (size_t k = 0; k < SENTENCES && drawings[i].says[k]; k++)
            assert_says(&err, drawings[i].says[k]);
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
    const struct drawn *loopback = &drawings[sizeof(drawings) / sizeof(*drawings) - 1];
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

/* A veth whose other end is a port of a bridge in another namespace, beside the uplink. */
static void test_across_namespaces(void **state)
{
    const struct topology_link links[] = {
        {.space = 1, .index = 2, .name = "eth0", .kind = "veth", .peer = 7, .peer_nsid = 0},
        {.space = 0, .index = 2, .name = "eth0", .master = 3, HERE},
        {.space = 0, .index = 3, .name = "br0", .kind = "bridge", HERE},
        {.space = 0, .index = 7, .name = "v7", .kind = "veth", .master = 3, HERE},
        {.space = 1, .index = 3, .name = "eth1", HERE},
    };
    const struct critical_use use = {.space = 0, .index = 3, .what = "the IPv6 default route"};
    struct guard_rules rules = {.driver = "tcp"};
    struct topology map = {0};
    struct err err = {0};

    for (size_t i = 0; i < sizeof(links) / sizeof(*links); i++)
        assert_int_equal(topology_add_link(&map, &links[i]), 0);
    assert_int_equal(topology_add_use(&map, &use), 0);
    topology_find(&map, 1, "eth0")->reached = true;
    topology_mark_connected(&map);
    assert_true(topology_find(&map, 0, "eth0")->reached);
    assert_false(topology_find(&map, 1, "eth1")->reached);
    assert_int_equal(guard_judge(&map, topology_find(&map, 1, "eth0"), "n1", &rules, &err), -EPERM);
    assert_says(&err, "Interface eth0 of network namespace n1 shares a cable or a bridge with ");
    assert_says(&err, "which carries the IPv6 default route");
    topology_free(&map);
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

static const char *in_root(const char *path)
{
    static char whole[PATH_MAX];

    snprintf(whole, sizeof(whole), "%s/%s", root, path);
    return whole;
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

static int note(void *data, const char *address, const char *what)
{
    char *all = data;

    snprintf(all + strlen(all), 2048 - strlen(all), "%s=%s;", address, what);
    return 0;
}

static void test_storage(void **state)
{
    char all[2048] = "";

    file("proc/self", "mounts",
         "proc /proc proc rw 0 0\n"
         "/dev/sda1 / ext4 rw,addr=10.9.9.9 0 0\n"
         "srv:/home /home nfs4 rw,vers=4.2,clientaddr=10.0.0.7,addr=10.0.0.5 0 0\n"
         "srv6:/x /x nfs rw,addr=2001:db8::5 0 0\n"
         "//win/share /mnt/win\\040share cifs rw,addr=10.0.0.6,file_mode=0755 0 0\n"
         "10.0.1.1@tcp:10.0.1.2@tcp:/scratch /scratch lustre rw 0 0\n"
         "10.0.2.1:6789,10.0.2.2:6789:/ /ceph ceph rw,name=a 0 0\n");
    file("sys/class/iscsi_connection/connection1:0", "persistent_address", "10.0.3.1\n");
    file("sys/class/iscsi_connection/connection1:0", "address", "(null)\n");
    file("sys/class/nvme/nvme0", "address", "0000:01:00.0\n");
    file("sys/class/nvme/nvme1", "address", "traddr=10.0.4.1,trsvcid=4420\n");
    file("sys/class/nvme/nvme2", "address", "traddr=nn-0x20:pn-0x21\n");

    assert_int_equal(guard_host_storage(root, note, all), 0);
    assert_string_equal(all, "10.0.0.5=mounted storage (nfs4 at /home);"
                             "2001:db8::5=mounted storage (nfs at /x);"
                             "10.0.0.6=mounted storage (cifs at /mnt/win share);"
                             "10.0.1.1=mounted storage (lustre at /scratch);"
                             "10.0.1.2=mounted storage (lustre at /scratch);"
                             "10.0.2.1=mounted storage (ceph at /ceph);"
                             "10.0.2.2=mounted storage (ceph at /ceph);"
                             "10.0.3.1=mounted storage (iSCSI);"
                             "10.0.4.1=mounted storage (NVMe over fabrics);");
}

static void assert_has(const struct guard_interfaces *interfaces, const char *a, const char *b,
                       const char *c)
{
    const char *const names[] = {a, b, c};

    assert_int_equal(interfaces->count, 3);
    for (size_t i = 0; i < 3; i++) {
        size_t at = 0;

        while (at < 3 && strcmp(interfaces->names[at], names[i]) != 0)
            at++;
        if (at == 3)
            fail_msg("%s is not found", names[i]);
    }
}

static void test_pci(void **state)
{
    struct guard_interfaces interfaces;
    struct err err = {0};

    folder("sys/devices/pci0000:3a/0000:3b:00.0/net/ens1f0");
    folder("sys/devices/pci0000:3a/0000:3b:00.01/net/other");
    folder("sys/devices/pci0000:3a/0000:3b:02.0/virtio3/net/vf0");
    folder("sys/devices/virtual/net/br0");
    folder("sys/bus/pci/devices");
    folder("sys/class/net/ens1f0");
    folder("sys/class/net/other");
    folder("sys/class/net/vf0");
    folder("sys/class/net/br0");
    link_to("sys/devices/pci0000:3a/0000:3b:00.0", "sys/class/net/ens1f0/device");
    link_to("sys/devices/pci0000:3a/0000:3b:00.01", "sys/class/net/other/device");
    link_to("sys/devices/pci0000:3a/0000:3b:02.0/virtio3", "sys/class/net/vf0/device");
    link_to("sys/devices/pci0000:3a/0000:3b:00.0", "sys/bus/pci/devices/0000:3b:00.0");
    link_to("sys/devices/pci0000:3a/0000:3b:02.0", "sys/bus/pci/devices/0000:3b:02.0");

    assert_int_equal(guard_host_pci(root, "0000:3b:00.0", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 1);
    assert_string_equal(interfaces.names[0], "ens1f0");
    assert_int_equal(guard_host_pci(root, "0000:3b:02.0", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 1);
    assert_string_equal(interfaces.names[0], "vf0");

    /* A virtual function shares its physical function's cable, and the other way round. */
    link_to("sys/devices/pci0000:3a/0000:3b:00.0", "sys/devices/pci0000:3a/0000:3b:02.0/physfn");
    link_to("sys/devices/pci0000:3a/0000:3b:02.0", "sys/devices/pci0000:3a/0000:3b:00.0/virtfn0");
    assert_int_equal(guard_host_pci(root, "0000:3b:02.0", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 2);
    assert_int_equal(guard_host_pci(root, "0000:3b:00.0", &interfaces, &err), 0);
    assert_int_equal(interfaces.count, 2);

    /* So does a sibling, whose only link to it is by way of the physical function. */
    folder("sys/devices/pci0000:3a/0000:3b:02.1/net/vf1");
    folder("sys/class/net/vf1");
    link_to("sys/devices/pci0000:3a/0000:3b:02.1", "sys/class/net/vf1/device");
    link_to("sys/devices/pci0000:3a/0000:3b:02.1", "sys/bus/pci/devices/0000:3b:02.1");
    link_to("sys/devices/pci0000:3a/0000:3b:00.0", "sys/devices/pci0000:3a/0000:3b:02.1/physfn");
    link_to("sys/devices/pci0000:3a/0000:3b:02.1", "sys/devices/pci0000:3a/0000:3b:00.0/virtfn1");
    assert_int_equal(guard_host_pci(root, "0000:3b:02.1", &interfaces, &err), 0);
    assert_has(&interfaces, "ens1f0", "vf0", "vf1");
    guard_host_siblings(root, "vf1", &interfaces);
    assert_has(&interfaces, "ens1f0", "vf0", "vf1");
    guard_host_siblings(root, "br0", &interfaces);
    assert_int_equal(interfaces.count, 0);

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

/* What the caller says of the connection is not all: the sockets of those who started us tell. */
static void test_ancestors(void **state)
{
    char all[2048] = "";

    file("proc/300", "stat", "300 (sh) weird) S 200 300");
    file("proc/200", "stat", "200 (sshd) S 1 200");
    file("proc/1", "stat", "1 (init) S 0 1");
    folder("proc/300/fd");
    folder("proc/200/fd");
    assert_int_equal(symlinkat("socket:[4711]", AT_FDCWD, in_root("proc/200/fd/3")), 0);
    assert_int_equal(symlinkat("socket:[4712]", AT_FDCWD, in_root("proc/200/fd/4")), 0);
    assert_int_equal(symlinkat("socket:[4713]", AT_FDCWD, in_root("proc/200/fd/5")), 0);
    file("proc/self/net", "tcp",
         "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  "
         "timeout inode\n"
         "   0: 0100000A:0016 0500000A:C350 01 00000000:00000000 00:00000000 00000000     0        "
         "0 4711 1 0\n"
         "   1: 0100000A:0016 0600000A:C350 01 00000000:00000000 00:00000000 00000000     0        "
         "0 9999 1 0\n"
         "   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        "
         "0 4712 1 0\n");
    file("proc/self/net", "tcp6",
         "  sl  local_address rem_address st\n"
         "   0: B80D0120000000000000000001000000:0016 B80D0120000000000000000005000000:C350 01 "
         "00000000:00000000 00:00000000 00000000     0        0 4713 1 0\n");
    assert_int_equal(guard_host_ancestors(root, 300, note, all), 0);
    assert_string_equal(all, "10.0.0.5=the connection of a process that started this node;"
                             "2001:db8::5=the connection of a process that started this node;");
}

/* The kernel takes its time for the tables of connections: they are opened for sockets alone. */
static void test_tables_are_read_for_sockets_alone(void **state)
{
    char all[2048] = "", elsewhere[PATH_MAX], event[4096];
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

    snprintf(elsewhere, sizeof(elsewhere), "%s/alone", root);
    file("alone/proc/500", "stat", "500 (switchbench) S 1 500");
    folder("alone/proc/500/fd");
    assert_int_equal(symlinkat("pipe:[4711]", AT_FDCWD, in_root("alone/proc/500/fd/3")), 0);
    file("alone/proc/self/net", "tcp", "  sl  local_address rem_address   st\n");
    assert_true(inotify_add_watch(watch, in_root("alone/proc/self/net/tcp"), IN_OPEN) >= 0);
    assert_int_equal(guard_host_ancestors(elsewhere, 500, note, all), 0);
    assert_int_equal(read(watch, event, sizeof(event)), -1);
    assert_int_equal(errno, EAGAIN);

    assert_int_equal(symlinkat("socket:[4712]", AT_FDCWD, in_root("alone/proc/500/fd/4")), 0);
    assert_int_equal(guard_host_ancestors(elsewhere, 500, note, all), 0);
    assert_true(read(watch, event, sizeof(event)) > 0);
    assert_string_equal(all, "");
    close(watch);
}

/* A node's ports are checked one after the other, and the search costs more than all else. */
static void test_servers_are_found_once(void **state)
{
    struct guard_servers kept = {0}, later = {0};
    char all[2048] = "", elsewhere[PATH_MAX];

    snprintf(elsewhere, sizeof(elsewhere), "%s/once", root);
    file("once/proc/400", "stat", "400 (switchbench) S 1 400");
    file("once/proc/self", "mounts", "fs1:/home /home nfs4 rw,addr=192.0.2.9 0 0\n");
    assert_int_equal(guard_servers_find(&kept, elsewhere, 400), 0);
    file("once/proc/self", "mounts", "fs2:/data /data nfs4 rw,addr=192.0.2.10 0 0\n");
    assert_int_equal(guard_servers_find(&kept, elsewhere, 400), 0);
    assert_int_equal(guard_servers_each(&kept, note, all), 0);
    assert_string_equal(all, "192.0.2.9=mounted storage (nfs4 at /home);");

    all[0] = '\0';
    assert_int_equal(guard_servers_find(&later, elsewhere, 400), 0);
    assert_int_equal(guard_servers_each(&later, note, all), 0);
    assert_string_equal(all, "192.0.2.10=mounted storage (nfs4 at /data);");
    guard_servers_free(&later);
    guard_servers_free(&kept);
    assert_int_equal(kept.found, false);

    /* What can't be found out is no answer: the next port asks again. */
    assert_int_equal(guard_servers_find(&kept, "/nowhere", 400), -ENOENT);
    assert_int_equal(kept.found, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawings),
        cmocka_unit_test(test_shared),
        cmocka_unit_test(test_across_namespaces),
        cmocka_unit_test(test_storage),
        cmocka_unit_test(test_pci),
        cmocka_unit_test(test_rdma),
        cmocka_unit_test(test_ancestors),
        cmocka_unit_test(test_tables_are_read_for_sockets_alone),
        cmocka_unit_test(test_servers_are_found_once),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
