/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The guard: its judgement on maps made by hand (bonds, VLANs, VRFs, invisible namespaces, which
 * the present kernel may lack), its reading of /sys in a temporary folder, and its judgement of
 * real devices in temporary network namespaces. It fails closed: each of the kernel's answers is
 * replaced in turn by an error (ld --wrap; test_netlink.c covers other damage). Without the
 * privilege to make a namespace the second half is skipped.
 */
#include "guard.h"
#include "guard_map.h"
#include "netns.h"
#include "unit.h"

#include <glob.h>
#include <libmnl/libmnl.h>
#include <limits.h>
#include <linux/netlink.h>
#include <sys/socket.h>

/* --- maps drawn by hand --- */

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

TEST_ROWS(each_drawing_is_judged, "map")
{
    char *const *fields = row->fields;
    const bool passes = strcmp(fields[4], "-") == 0;
    const struct guard_rules rules = {.shared = strcmp(fields[3], "shared") == 0,
                                      .takes_frames = strcmp(fields[3], "takes") == 0};
    struct guard_map map = {0};
    struct err err = {0};
    int code;

    draw(&map, fields[0]);
    if (strcmp(fields[2], "-") != 0)
        assert_int_equal(
            guard_map_add_use(&map, atoi(fields[2]), "the IPv4 default route (table main)"), 0);
    code = guard_judge(&map, guard_map_find(&map, fields[1]), NULL, &rules, &err);
    guard_map_free(&map);
    assert_judged(fields[5], code, passes ? 0 : -EPERM, &err, passes ? NULL : fields[4]);
}

/* --- /sys --- */

/* Devices in a temporary folder, made by sh(1). IPoIB: the GID table names no interface, but one
 * lies on the same PCI device. RoCE: any GID may name an interface, not only the first. mlx5_9: a
 * function without any kernel interface. odd0: neither GIDs nor a device. */
static const char layout[] =
    "pci=sys/bus/pci/devices rdma=sys/class/infiniband && "
    "mkdir -p $pci/0000:3b:00.0/net/ens1f0 $pci/0000:3b:02.0/virtio3/net/vf0 "
    "  $pci/0000:5b:00.0/net/ib0 $pci/0000:6b:00.0 $rdma/mlx5_0/ports/1/gid_attrs/ndevs "
    "  $rdma/mlx5_9/ports/1 $rdma/odd0/ports/1 $rdma/rxe0/ports/1/gid_attrs/ndevs && "
    "ln -s $PWD/$pci/0000:5b:00.0 $rdma/mlx5_0/device && "
    "ln -s $PWD/$pci/0000:6b:00.0 $rdma/mlx5_9/device && "
    "cd $rdma/rxe0/ports/1/gid_attrs/ndevs && "
    "echo >0 && echo eth7 >1 && echo eth7.5 >2 && echo eth7 >3";

TEST(interfaces_are_found_in_sys)
{
    static const struct {
        const char *device;
        int code;
        size_t count;
        const char *says; /* name of the first interface, or the sentence */
    } cases[] = {
        {"0000:3b:00.0", 0, 1, "ens1f0"},
        {"0000:3b:02.0", 0, 1, "vf0"},
        {"0000:3c:00.0", -ENODEV, 0, "There is no PCI device 0000:3c:00.0"},
        {"0000/etc", -EINVAL, 0, "is not a PCI address"},
        {"mlx5_0/1", 0, 1, "ib0"},
        {"mlx5_0", 0, 1, "ib0"},
        {"rxe0/1", 0, 2, "eth7"},
        {"mlx5_9/1", 0, 0, ""},
        {"odd0/1", -EPERM, 0, "RDMA port odd0/1 belongs to no interface"},
        {"odd0/2", -ENODEV, 0, "There is no RDMA port odd0/2"},
        {"../net/1", -ENODEV, 0, ""},
    };
    const char *root = unit_folder(layout);

    for (EACH(c, cases)) {
        struct guard_interfaces found = {0};
        struct err err = {0};
        int code = (strncmp(c->device, "0000", 4) == 0 ? guard_host_pci : guard_host_rdma)(
            root, c->device, &found, &err);

        assert_int_equal(found.count, c->count);
        assert_judged(c->device, code, c->code, &err, code < 0 ? c->says : NULL);
        if (found.count > 0)
            assert_string_equal(found.names[0], c->says);
    }
    unit_folder_remove();
}

/* --- real devices --- */

/* Two namespaces of this process, `$h` and `$a` in a command: the test's thread is in `here`, not
 * in `away`. */
static char here[32];

#define QUIET "2>/dev/null"
#define must(command) assert_true(ip("", command))

/* Run one command of ip(8). Return whether it worked. */
static bool ip(const char *quiet, const char *command)
{
    char whole[320];

    snprintf(whole, sizeof(whole), "ip %s %s", command, quiet);
    return system(whole) == 0;
}

static int away_with(void **state)
{
    ip(QUIET, "netns del $h");
    ip(QUIET, "netns del $a");
    return 0;
}

static void fresh(void)
{
    char other[32];

    snprintf(here, sizeof(here), "sb-guard-%d-h", (int)getpid());
    snprintf(other, sizeof(other), "sb-guard-%d-a", (int)getpid());
    setenv("h", here, 1);
    setenv("a", other, 1);
    away_with(NULL);
    if (!ip(QUIET, "netns add $h") || !ip(QUIET, "netns add $a")) {
        print_message("making a network namespace needs root\n");
        skip();
    }
    must("-n $h link set lo up");
    must("-n $h link add v0 type veth peer name v1 netns $a");
    must("-n $h link add w0 type veth peer name w1 netns $a");
    must("-n $h link set v0 up && ip -n $h link set w0 up");
    must("-n $a link set v1 up && ip -n $a link set w1 up");
}

/* "> v0 EINVAL words": the expected result; code and words are optional. */
static void check_step(const char *step, const char *controller)
{
    static const struct {
        const char *name;
        int code;
    } codes[] = {{" EINVAL", -EINVAL}, {" ENODEV", -ENODEV}};
    const struct guard_rules rules = {.controller = controller};
    const char *netns = step[0] == '<' ? NULL : here, *says = step + 2 + strcspn(step + 2, " ");
    int right = *says ? -EPERM : 0, previous = -1, code;
    struct err err = {0};
    char device[96];

    snprintf(device, sizeof(device), "%.*s", (int)(says - step - 2), step + 2);
    for (EACH(c, codes))
        if (strncmp(says, c->name, strlen(c->name)) == 0) {
            right = c->code;
            says += strlen(c->name);
        }
    if (netns == NULL)
        assert_int_equal(netns_enter(here, &previous, &err), 0);
    code = strncmp(device, "net_", 4) == 0 ? guard_check_vdev(netns, device, &rules, &err)
           : strchr(device, ':') != NULL   ? guard_check_pci(device, &rules, &err)
                                           : guard_check_interface(netns, device, &rules, &err);
    if (netns == NULL)
        netns_leave(previous);
    assert_judged(step, code, right, &err, *says ? says + 1 : NULL);
}

/* The commands and results of guard.txt. */
TEST_BETWEEN(each_scenario_is_judged, NULL, away_with)
{
    FILE *scenarios = fopen(unit_argument, "r");
    char line[256], controller[64] = "";
    bool begins = true, ends = false;

    assert_non_null(scenarios);
    while (fgets(line, sizeof(line), scenarios) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, "map |", 5) == 0)
            continue;
        if (line[0] == '\0') {
            begins = true;
            continue;
        }
        if (begins) {
            fresh();
            controller[0] = '\0';
            begins = ends = false;
        }
        if (ends || line[0] == '#' || sscanf(line, "controller %63s", controller) == 1)
            continue;
        if (line[0] == '?')
            ends = !ip(QUIET, line + 1);
        else if (line[0] == '>' || line[0] == '<')
            check_step(line, controller[0] != '\0' ? controller : NULL);
        else
            must(line);
    }
    fclose(scenarios);
}

/* --- damaged answers --- */

/* Damage a datagram of `bytes` bytes. Return the bytes that are left. */
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

static ssize_t replace_by_error(struct nlmsghdr *first, ssize_t bytes)
{
    const int code = -EIO;

    first->nlmsg_type = NLMSG_ERROR;
    memcpy(NLMSG_DATA(first), &code, sizeof code);
    return bytes;
}

static ssize_t interrupt(struct nlmsghdr *first, ssize_t bytes)
{
    if (first->nlmsg_flags & NLM_F_MULTI)
        first->nlmsg_flags |= NLM_F_DUMP_INTR;
    return bytes;
}

/* Check with the controller's route, which is looked up, too. */
static int check_damaged(damage_fn *how, int which, struct err *err)
{
    static const struct guard_rules rules = {.controller = "198.18.9.9"};
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

TEST_BETWEEN(a_damaged_answer_blocks, NULL, away_with)
{
    struct err err;
    int usual;

    fresh();
    must("-n $h addr add 198.18.0.1/24 dev v0");
    must("-n $h addr add 198.18.9.1/24 dev w0");
    assert_int_equal(check_damaged(NULL, 0, &err), 0);
    usual = answers;
    assert_in_range(usual, 3, 200); /* links, routes, the controller's route */
    for (int which = 0; which < usual; which++)
        if (check_damaged(replace_by_error, which, &err) == 0 || err.text[0] == '\0')
            fail_msg("answer %d is damaged, and the port is allowed", which);
    assert_true(check_damaged(interrupt, -1, &err) < 0);
    assert_says(err.text, "not known whether traffic there is safe");
    assert_int_equal(check_damaged(interrupt, 0, &err), 0); /* the dump is repeated */
    assert_true(answers > usual);
    must("-n $h route add default via 198.18.0.2");
    for (int which = 0; which < 6; which++) {
        assert_int_equal(check_damaged(interrupt, which, &err), -EPERM);
        assert_non_null(strstr(err.text, "carries the IPv4 default route"));
    }
}
