/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lending devices and giving them back, on a machine made of files: what is refused, what is
 * written down, and that everything is as before after a failure or a kill at each single step.
 */
#include "bind_tree.h"
#include "check.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define AT(name) "/sys/bus/pci/devices/" TREE_A "/" name
#define STEPS_MAX 40 /* more than any of the calls writes */

static const char *const both[] = {TREE_A, TREE_B};
static const struct bind_request two = {both, 2, "vfio-pci", 0};
static const struct bind_request huge = {both, 2, "vfio-pci", 64};
static const struct bind_request one = {both, 1, "vfio-pci", 0};

static int make(void **state)
{
    tree_make();
    return 0;
}

static int drop(void **state)
{
    tree_remove();
    return 0;
}

static void must(int code, const struct err *err)
{
    if (code != 0)
        fail_msg("%d: %s", code, err->text);
}

static void bind_now(const struct bind_request *request)
{
    struct err err = {""};

    must(bind_devices(&tree.place, request, &err), &err);
}

static void restore_now(void)
{
    struct err err = {""};

    must(bind_restore(&tree.place, &err), &err);
}

static void assert_picture(const char *before)
{
    char *now = tree_picture();

    assert_string_equal(now, before);
    free(now);
}

static bool has_journal(void)
{
    return access(tree.journal, F_OK) == 0;
}

static json_t *read_journal(void)
{
    json_error_t error;
    json_t *journal = json_load_file(tree.journal, 0, &error);

    assert_non_null(journal);
    return journal;
}

static void test_there_and_back(void **state)
{
    char *before = tree_picture();

    bind_now(&huge);
    assert_true(tree.journaled);
    assert_true(has_journal());
    assert_non_null(strstr(tree.said, TREE_B ": from ixgbe to vfio-pci."));
    assert_false(tree_has("/sys/class/net/eth7"));
    restore_now();
    assert_false(has_journal());
    assert_non_null(strstr(tree.said, TREE_A ": back at ixgbe."));
    assert_picture(before);
    free(before);
}

static void test_the_last_is_first_to_come_back(void **state)
{
    bind_now(&two);
    tree.said[0] = '\0';
    restore_now();
    assert_true(strstr(tree.said, TREE_B) < strstr(tree.said, TREE_A));
}

static void test_what_is_written_down(void **state)
{
    json_t *journal, *device;
    const char *pci, *driver, *override, *setting, *mac;
    int version, numa, vfs, pages;

    tree_file(AT("driver_override"), "ixgbe");
    tree_file(AT("sriov_numvfs"), "4");
    bind_now(&huge);
    journal = read_journal();
    device = json_array_get(json_object_get(journal, "devices"), 0);
    assert_int_equal(json_unpack(journal, "{s:i, s:{s:i}}", "switchbench_bind", &version,
                                 "hugepages",
                                 "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", &pages),
                     0);
    assert_int_equal(json_unpack(device, "{s:s, s:s, s:s, s:i, s:i, s:[{s:s, s:{s:s}}]}", "pci",
                                 &pci, "driver", &driver, "driver_override", &override, "numa",
                                 &numa, "vfs", &vfs, "interfaces", "mac", &mac, "settings",
                                 "ipv4/rp_filter", &setting),
                     0);
    assert_int_equal(version, 1);
    assert_int_equal(pages, 3);
    assert_string_equal(pci, TREE_A);
    assert_string_equal(driver, "ixgbe");
    assert_string_equal(override, "ixgbe");
    assert_string_equal(mac, "02:00:00:00:00:01");
    assert_string_equal(setting, "2");
    assert_int_equal(numa, 1);
    assert_int_equal(vfs, 4);
    json_decref(journal);
}

/* Virtual functions are taken away before, and made again after. */
static void test_virtual_functions(void **state)
{
    char *before;

    tree_file(AT("sriov_numvfs"), "4");
    before = tree_picture();
    bind_now(&one);
    restore_now();
    assert_picture(before);
    free(before);
}

static void test_a_failure_at_each_step(void **state)
{
    char *before = tree_picture();
    int step = 1;

    for (; step < STEPS_MAX; step++) {
        struct err err = {""};
        int code;

        tree.writes = 0;
        tree.fails_at = step;
        code = bind_devices(&tree.place, &huge, &err);
        tree.fails_at = 0;
        if (code == 0)
            break;
        assert_int_equal(code, -EIO);
        assert_non_null(strstr(err.text, strerror(EIO)));
        assert_false(has_journal());
        assert_picture(before);
    }
    assert_in_range(step, 8, STEPS_MAX - 1); /* 2 x (override, unbind, bind), and the hugepages */
    free(before);
}

/* Runs `call` in a child that dies at its `step`th write; false: it did not come so far. */
static bool killed_at(int step, void (*call)(void))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        tree.writes = 0;
        tree.dies_at = step;
        call();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 9;
}

static void bind_both(void)
{
    bind_now(&huge);
}

static void test_a_kill_at_each_step_of_binding(void **state)
{
    char *before = tree_picture();
    int step = 1;

    while (killed_at(step, bind_both)) {
        assert_true(has_journal());
        restore_now();
        assert_false(has_journal());
        assert_picture(before);
        step++;
    }
    assert_in_range(step, 8, STEPS_MAX);
    free(before);
}

static void test_a_kill_at_each_step_of_restoring(void **state)
{
    char *before = tree_picture();
    int step = 1;
    bool killed = true;

    for (; killed; step++) {
        bind_now(&huge);
        killed = killed_at(step, restore_now);
        restore_now();
        assert_picture(before);
    }
    assert_in_range(step, 8, STEPS_MAX);
    free(before);
}

/* One device that does not come back keeps neither the other nor the journal from its part. */
static void test_a_failure_while_restoring(void **state)
{
    char *before = tree_picture();
    struct err err = {""};

    bind_now(&two);
    tree.writes = 0;
    tree.fails_at = 1;
    assert_int_equal(bind_restore(&tree.place, &err), -EIO);
    assert_true(has_journal());
    assert_true(tree_has("/sys/class/net/eth7"));
    tree.fails_at = 0;
    restore_now();
    assert_picture(before);
    free(before);
}

static void test_a_reboot(void **state)
{
    bind_now(&two);
    tree_file("/proc/sys/kernel/random/boot_id", "0e2a8ad2-0000-4000-8000-000000000002");
    tree.writes = 0;
    tree.said[0] = '\0';
    restore_now();
    assert_int_equal(tree.writes, 0);
    assert_non_null(strstr(tree.said, "booted since"));
    assert_false(has_journal());
}

/* The devices being back by themselves, they can be bound again without a restore. */
static void test_binding_after_a_reboot(void **state)
{
    char *before = tree_picture();
    char *journal = strdup(tree.journal);
    char kept[sizeof tree.journal + 8];

    bind_now(&two);
    snprintf(kept, sizeof kept, "%s.kept", tree.journal);
    assert_int_equal(rename(tree.journal, kept), 0);
    assert_int_equal(link(kept, tree.journal), 0);
    restore_now();
    assert_int_equal(rename(kept, journal), 0);
    tree_file("/proc/sys/kernel/random/boot_id", "0e2a8ad2-0000-4000-8000-000000000002");
    bind_now(&two);
    assert_non_null(strstr(tree.said, "booted since"));
    restore_now();
    tree_file("/proc/sys/kernel/random/boot_id", "0e2a8ad2-0000-4000-8000-000000000001");
    assert_picture(before);
    free(journal);
    free(before);
}

static void test_what_is_done_is_not_done_again(void **state)
{
    struct err err = {""};

    restore_now();
    assert_non_null(strstr(tree.said, "nothing to restore"));
    bind_now(&two);
    tree.writes = 0;
    assert_int_equal(bind_devices(&tree.place, &two, &err), BIND_ALREADY);
    assert_int_equal(bind_devices(&tree.place, &one, &err), BIND_ALREADY);
    assert_int_equal(bind_check(&tree.place, &two, &err), BIND_ALREADY);
    assert_int_equal(tree.writes, 0);
}

static void assert_refused(const struct bind_request *request, int code, const char *part)
{
    struct err err = {""}, again = {""};
    bool journal = has_journal();
    int rc;

    tree.writes = 0;
    rc = bind_devices(&tree.place, request, &err);
    if (rc != code || strstr(err.text, part) == NULL)
        fail_msg("%d: '%s' instead of %d '%s'", rc, err.text, code, part);
    assert_int_equal(bind_check(&tree.place, request, &again), code);
    assert_string_equal(again.text, err.text);
    assert_int_equal(tree.writes, 0);
    assert_int_equal(has_journal(), journal);
}

static void test_a_second_journal(void **state)
{
    bind_now(&one);
    assert_refused(&two, -EEXIST, "restore first");
}

static void test_a_journal_of_another_version(void **state)
{
    struct err err = {""};

    tree_file("/lib/journal", "{\"switchbench_bind\": 2, \"devices\": []}");
    assert_refused(&one, -EINVAL, "not a journal that this version can read");
    assert_int_equal(bind_restore(&tree.place, &err), -EINVAL);
    tree_file("/lib/journal", "{");
    assert_refused(&one, -EINVAL, "can't be read");
}

/* A journal that somebody else wrote, or that leads root elsewhere. */
static void test_a_journal_that_leads_elsewhere(void **state)
{
    static const struct {
        const char *text;
    } planted[] = {
        {"{\"switchbench_bind\": 1, \"devices\": [{\"pci\": \"../../..\", \"driver\": \"x\"}]}"},
        {"{\"switchbench_bind\": 1, \"devices\": [{\"pci\": \"" TREE_A
         "\", \"driver\": \"../../up\"}]}"},
        {"{\"switchbench_bind\": 1, \"devices\": [{\"pci\": \"" TREE_A
         "\", \"driver_override\": \"a/b\"}]}"},
        {"{\"switchbench_bind\": 1, \"devices\": [{\"pci\": \"" TREE_A "\", \"interfaces\": ["
         "{\"settings\": {\"ipv4/../../../kernel/core_pattern\": \"|/bin/x\"}}]}]}"},
        {"{\"switchbench_bind\": 1, \"hugepages_reserved\": 1, \"hugepages\": {"
         "\"/sys/kernel/mm/hugepages/../../../x/nr_hugepages\": 1}, \"devices\": []}"},
    };

    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        struct err err = {""};

        tree_file("/lib/journal", planted[i].text);
        assert_int_equal(bind_restore(&tree.place, &err), -EINVAL);
        assert_non_null(strstr(err.text, "nothing is restored from it"));
        assert_int_equal(tree.writes, 0);
    }
}

static void test_a_journal_of_others(void **state)
{
    char folder[sizeof tree.journal], kept[sizeof tree.journal + 8];
    struct err err = {""};

    bind_now(&one);
    assert_int_equal(chmod(tree.journal, 0666), 0);
    assert_int_equal(bind_restore(&tree.place, &err), -EINVAL);
    assert_non_null(strstr(err.text, "writable by nobody else"));
    assert_int_equal(chmod(tree.journal, 0644), 0);

    snprintf(folder, sizeof folder, "%s", tree.journal);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(bind_restore(&tree.place, &err), -EINVAL);
    assert_int_equal(chmod(folder, 0755), 0);

    snprintf(kept, sizeof kept, "%s.kept", tree.journal);
    assert_int_equal(rename(tree.journal, kept), 0);
    assert_int_equal(symlink(kept, tree.journal), 0);
    err.text[0] = '\0';
    assert_int_equal(bind_restore(&tree.place, &err), -EINVAL);
    assert_non_null(strstr(err.text, "it is a link"));
    assert_int_equal(rename(kept, tree.journal), 0);
    restore_now();
}

/* What stands where the journal is written first is removed, not followed. */
static void test_a_link_beside_the_journal(void **state)
{
    char beside[sizeof tree.journal + 16], target[sizeof tree.journal + 16];

    snprintf(beside, sizeof beside, "%s.%d", tree.journal, (int)getpid());
    snprintf(target, sizeof target, "%s.target", tree.journal);
    tree_file("/lib/journal.target", "mine");
    assert_int_equal(symlink(target, beside), 0);
    bind_now(&one);
    assert_int_equal(access(beside, F_OK), -1);
    restore_now();
    assert_int_equal(unlink(target), 0);
}

static void test_no_place_for_the_journal(void **state)
{
    struct err err = {""};

    tree.place.journal = "/proc/self/nowhere/journal";
    assert_true(bind_check(&tree.place, &one, &err) < 0);
    assert_true(bind_devices(&tree.place, &one, &err) < 0);
    assert_non_null(strstr(err.text, "without it no device is touched"));
    assert_int_equal(tree.writes, 0);
}

static void test_while_somebody_uses_them(void **state)
{
    struct err err = {""};
    int held;

    bind_now(&one);
    must(bind_hold(&tree.place, &held, &err), &err);
    assert_int_equal(bind_restore(&tree.place, &err), -EBUSY);
    assert_non_null(strstr(err.text, "in use by a run"));
    close(held);
    err.text[0] = '\0';
    tree_file("/proc/4242/comm", "dpdk-testpmd");
    tree_link("/proc/4242/fd/5", "/dev/vfio/7");
    assert_int_equal(bind_restore(&tree.place, &err), -EBUSY);
    assert_non_null(strstr(err.text, "Process 4242 (dpdk-testpmd)"));
    tree_drop("/proc/4242");
    restore_now();
}

/* --- refusals: one change to the machine, and what is said --- */

static void nothing(void) {}

static void bond(void)
{
    tree_link("/sys/class/net/eth7/upper_bond0", "../bond0");
    tree_file("/sys/class/net/bond0/bonding/mode", "802.3ad 4");
}

static void vlan(void)
{
    tree_link("/sys/class/net/eth7/upper_eth7.5", "../eth7.5");
}

static void soft_roce(void)
{
    tree_file("/sys/class/infiniband/rxe0/parent", "eth7");
}

static void default_route(void)
{
    snprintf(tree.guarded, sizeof tree.guarded, TREE_A);
}

static void no_group(void)
{
    tree_drop(AT("iommu_group"));
}

static void shared_group(void)
{
    tree_file("/sys/bus/pci/devices/0000:3b:00.7/class", "0x040300");
    tree_link("/sys/bus/pci/devices/0000:3b:00.7/driver", "../../drivers/snd_hda_intel");
    tree_link("/sys/kernel/iommu_groups/7/devices/0000:3b:00.7", "x");
}

static void user_driver(void)
{
    tree_link(AT("driver"), "../../drivers/uio_pci_generic");
}

static void bifurcated(void)
{
    tree_link(AT("driver"), "../../drivers/mlx5_core");
}

static void other_namespace(void)
{
    tree_drop(AT("net"));
}

static void no_module(void)
{
    tree_drop("/sys/bus/pci/drivers/vfio-pci");
}

static void lent_function(void)
{
    tree_link(AT("virtfn0"), "../0000:3b:10.0");
    tree_link("/sys/bus/pci/devices/0000:3b:10.0/driver", "../../drivers/vfio-pci");
}

static void no_permission(void)
{
    tree_drop(AT("driver_override"));
}

static const char *const gone[] = {"0000:5e:00.0"};
static const char *const disk[] = {TREE_DISK};
static const char *const word[] = {"eth7"};

static const struct {
    void (*change)(void);
    struct bind_request request;
    int code;
    const char *part;
} refusals[] = {
    {bond, {both, 1, "vfio-pci", 0}, -EPERM, "is a member of bond bond0"},
    {vlan, {both, 1, "vfio-pci", 0}, -EPERM, "eth7.5 sits on interface eth7"},
    {soft_roce, {both, 1, "vfio-pci", 0}, -EPERM, "RDMA device rxe0 sits on interface eth7"},
    {default_route, {both, 2, "vfio-pci", 0}, -EPERM, "carries the default route"},
    {no_group, {both, 1, "vfio-pci", 0}, -EPERM, "has no IOMMU group"},
    {shared_group, {both, 1, "vfio-pci", 0}, -EPERM, "0000:3b:00.7, which snd_hda_intel drives"},
    {user_driver, {both, 1, "vfio-pci", 0}, -EPERM, "no journal says by whom"},
    {bifurcated, {both, 1, "vfio-pci", 0}, -EINVAL, "needs no binding"},
    {other_namespace, {both, 1, "vfio-pci", 0}, -EPERM, "no interface in this network namespace"},
    {lent_function, {both, 1, "vfio-pci", 0}, -EPERM, "virtual function (virtfn0)"},
    {no_permission, {both, 1, "vfio-pci", 0}, -EPERM, "be root"},
    {no_module, {both, 1, "vfio-pci", 0}, -ENODEV, "modprobe vfio-pci"},
    {nothing, {gone, 1, "vfio-pci", 0}, -ENODEV, "There is no PCI device 0000:5e:00.0"},
    {nothing, {disk, 1, "vfio-pci", 0}, -EINVAL, "is not a network device (class 0x010601)"},
    {nothing, {word, 1, "vfio-pci", 0}, -EINVAL, "eth7 is not a PCI address"},
    {nothing, {both, 1, "ixgbe", 0}, -EINVAL, "through the driver ixgbe"},
};

static void test_refusals(void **state)
{
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        tree_remove();
        tree_make();
        refusals[i].change();
        assert_refused(&refusals[i].request, refusals[i].code, refusals[i].part);
    }
}

static void test_what_needs_no_binding(void **state)
{
    assert_true(bind_needed(&tree.place, TREE_A));
    bifurcated();
    assert_false(bind_needed(&tree.place, TREE_A));
}

static void test_what_is_not_refused(void **state)
{
    static const struct bind_request uio = {both, 1, "uio_pci_generic", 0};

    no_group();
    bind_now(&uio);
    restore_now();
    tree_file("/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y");
    bind_now(&one);
    restore_now();
    tree_remove();
    tree_make();
    shared_group(); /* a neighbour without a driver, or a bridge, does not matter */
    tree_drop("/sys/bus/pci/devices/0000:3b:00.7/driver");
    bind_now(&one);
    restore_now();
    tree_link("/sys/bus/pci/devices/0000:3b:00.7/driver", "../../drivers/pcieport");
    tree_file("/sys/bus/pci/devices/0000:3b:00.7/class", "0x060400");
    bind_now(&one);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)
    const struct CMUnitTest tests[] = {
        TEST(test_there_and_back),
        TEST(test_the_last_is_first_to_come_back),
        TEST(test_what_is_written_down),
        TEST(test_virtual_functions),
        TEST(test_a_failure_at_each_step),
        TEST(test_a_kill_at_each_step_of_binding),
        TEST(test_a_kill_at_each_step_of_restoring),
        TEST(test_a_failure_while_restoring),
        TEST(test_a_reboot),
        TEST(test_binding_after_a_reboot),
        TEST(test_what_is_done_is_not_done_again),
        TEST(test_a_second_journal),
        TEST(test_a_journal_of_another_version),
        TEST(test_a_journal_that_leads_elsewhere),
        TEST(test_a_journal_of_others),
        TEST(test_a_link_beside_the_journal),
        TEST(test_no_place_for_the_journal),
        TEST(test_while_somebody_uses_them),
        TEST(test_refusals),
        TEST(test_what_needs_no_binding),
        TEST(test_what_is_not_refused),
    };

    return cmocka_run_group_tests_name("bind", tests, NULL, NULL);
}
