/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of devices: drivers' outputs of `ethtool -S`, in files whose first lines say what they
 * amount to (made in the form of the drivers' sources; the figures are made up); a real veth. */
#include "device_counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

static void read_file(const char *driver, int64_t wanted[], int64_t found[])
{
    char path[512], line[256], name[128];
    long long value;
    FILE *file;

    snprintf(path, sizeof path, "%s/ethtool/%s.txt", SOURCE_FOLDER, driver);
    file = fopen(path, "r");
    assert_non_null(file);
    for (int i = 0; i < DEVICE_COUNTERS; i++)
        wanted[i] = found[i] = -1;
    assert_non_null(fgets(line, sizeof line, file));
    for (char *word = strtok(line + 1, " \n"); word != NULL; word = strtok(NULL, " \n"))
        for (int i = 0; i < DEVICE_COUNTERS; i++)
            if (strcmp(word, device_counter_name(i)) == 0)
                wanted[i] = strtoll(strtok(NULL, " \n"), NULL, 10);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, " %127[^:]: %lld", name, &value) != 2)
            continue;
        enum device_counter counter = device_counter_of(name);
        if (counter < DEVICE_COUNTERS)
            found[counter] = (found[counter] > 0 ? found[counter] : 0) + value;
    }
    fclose(file);
}

static void test_drivers(void **state)
{
    static const char *const drivers[] = {"mlx5", "ice", "i40e", "ixgbe", "bnxt", "ena", "virtio"};
    int64_t wanted[DEVICE_COUNTERS], found[DEVICE_COUNTERS];

    (void)state;
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        read_file(drivers[i], wanted, found);
        for (int c = 0; c < DEVICE_COUNTERS; c++)
            if (found[c] != wanted[c])
                fail_msg("%s: %s is %lld, not %lld", drivers[i], device_counter_name(c),
                         (long long)found[c], (long long)wanted[c]);
    }
}

/* An interface without statistics counts nothing: unknown, not 0. */
static void test_an_interface_without_statistics(void **state)
{
    struct device_statistics statistics;
    int64_t counters[DEVICE_COUNTERS];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    (void)state;
    device_statistics_find(&statistics, fd, "lo");
    assert_int_equal(statistics.used, 0);
    device_counters_read(&statistics, fd, "lo", counters);
    for (int c = 0; c < DEVICE_COUNTERS; c++)
        assert_int_equal(counters[c], -1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drivers),
        cmocka_unit_test(test_an_interface_without_statistics),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
