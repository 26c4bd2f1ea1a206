/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which RDMA device an interface or a PCI address means, on a sysfs made of files.
 */
#include "verbs.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char sys[] = "/tmp/sb-verbs-device-XXXXXX";
static char name[72];

/* Makes the folders of a path below `sys`, the last part included when it ends with a slash. */
static void make_folders(const char *path)
{
    char whole[512];

    snprintf(whole, sizeof whole, "%s/%s", sys, path);
    for (char *slash = strchr(whole + strlen(sys) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash = '/';
    }
}

static void write_file(const char *path, const char *text)
{
    char whole[512];
    FILE *file;

    make_folders(path);
    snprintf(whole, sizeof whole, "%s/%s", sys, path);
    file = fopen(whole, "we");
    assert_non_null(file);
    fprintf(file, "%s\n", text);
    fclose(file);
}

#define PCI "bus/pci/devices/0000:3b:00.0"

/* A RoCE device with two ports, an InfiniBand one with IPoIB, and an interface with neither. */
static int make_sys(void **state)
{
    if (mkdtemp(sys) == NULL)
        return -1;
    write_file("class/infiniband/mlx5_0/ports/1/gid_attrs/ndevs/0", "eth1");
    write_file("class/infiniband/mlx5_0/ports/2/gid_attrs/ndevs/0", "eth10");
    write_file("class/infiniband/mlx5_0/ports/2/gid_attrs/ndevs/1", "eth10");
    write_file("class/infiniband/rxe0/ports/1/gid_attrs/ndevs/0", "eth0");
    make_folders("class/infiniband/mlx4_0/ports/1/gid_attrs/ndevs/");
    make_folders(PCI "/infiniband/mlx4_0/ports/1/");
    make_folders(PCI "/infiniband/mlx4_0/ports/2/");
    make_folders("class/net/ib1/device/infiniband/mlx4_0/ports/1/");
    make_folders("class/net/ib1/device/infiniband/mlx4_0/ports/2/");
    write_file("class/net/ib1/dev_port", "1");
    make_folders("class/net/eth5/");
    return 0;
}

static int remove_sys(void **state)
{
    char command[64];

    snprintf(command, sizeof command, "rm -r %s", sys);
    return system(command);
}

static void by_gids(void **state)
{
    assert_true(verbs_device_of_interface(sys, "eth1", name, sizeof name));
    assert_string_equal(name, "mlx5_0/1");
    assert_true(verbs_device_of_interface(sys, "eth10", name, sizeof name));
    assert_string_equal(name, "mlx5_0/2");
    assert_true(verbs_device_of_interface(sys, "eth0", name, sizeof name));
    assert_string_equal(name, "rxe0/1");
}

static void by_ipoib(void **state)
{
    assert_true(verbs_device_of_interface(sys, "ib1", name, sizeof name));
    assert_string_equal(name, "mlx4_0/2");
}

static void by_pci(void **state)
{
    assert_true(verbs_device_of_pci(sys, "0000:3b:00.0", name, sizeof name));
    assert_string_equal(name, "mlx4_0/1");
}

static void none(void **state)
{
    char small[8];

    assert_false(verbs_device_of_interface(sys, "eth5", name, sizeof name));
    assert_false(verbs_device_of_interface(sys, "eth99", name, sizeof name));
    assert_false(verbs_device_of_pci(sys, "0000:00:00.0", name, sizeof name));
    assert_false(verbs_device_of_interface("/nowhere", "eth1", name, sizeof name));
    assert_false(verbs_device_of_interface(sys, "eth1", small, sizeof small));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_gids),
        cmocka_unit_test(by_ipoib),
        cmocka_unit_test(by_pci),
        cmocka_unit_test(none),
    };

    return cmocka_run_group_tests_name("verbs_device", tests, make_sys, remove_sys);
}
