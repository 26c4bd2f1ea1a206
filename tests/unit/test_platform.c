/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Socket addresses as text, files of /sys and /proc, the environment that remains where the engine
 * has more rights than its caller, and counters of devices: drivers' outputs of `ethtool -S`, in
 * files whose first lines have the expected sums (in the form of the drivers' sources; the figures
 * are made up).
 */
#include "address.h"
#include "device_counters.h"
#include "sysfs.h"
#include "unit.h"

#include <sys/socket.h>

TEST(each_address_comes_back_or_is_refused)
{
    static const char *const good[] = {
        "192.0.2.1:7600",      "0.0.0.0:0", "255.255.255.255:65535",
        "[2001:db8::1]:7600",  "[::]:0",    "[2001:db8:1111:2222:3333:4444:5555:6666]:65535",
        "[::ffff:192.0.2.1]:1"};
    char bad[] = ";:;:7600;192.0.2.1;192.0.2.1:;192.0.2.1:65536;192.0.2.1:-1;192.0.2.1:+1;"
                 "192.0.2.1: 1;192.0.2.1:1 ;192.0.2.1:0x10;192.0.2.1:18446744073709551617;"
                 "192.0.2.256:1;192.0.2:1;node1:7600;2001:db8::1:7600;[192.0.2.1]:7600;"
                 "[2001:db8::1:7600;2001:db8::1]:7600;[]:7600;"
                 "[2001:db8:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]:1";
    char *rest = bad, *text;
    struct sockaddr_storage address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;

    for (EACH(it, good)) {
        char back[ADDRESS_TEXT_MAX];
        struct err err = {0};

        assert_int_equal(address_parse(*it, &address, &err), 0);
        assert_int_equal(address.ss_family, *it[0] == '[' ? AF_INET6 : AF_INET);
        assert_string_equal(address_text(&address, back), *it);
    }
    while ((text = strsep(&rest, ";")) != NULL) {
        struct err err = {0};

        assert_int_equal(address_parse(text, &address, &err), -EINVAL);
        assert_int_equal(err.text[0], '\'');
        assert_memory_equal(err.text + 1, text, strlen(text));
    }
    assert_int_equal(address_parse("192.0.2.1:258", &address, &(struct err){0}), 0);
    assert_memory_equal(&v4->sin_addr, "\xc0\x00\x02\x01", 4);
    assert_memory_equal(&v4->sin_port, "\x01\x02", 2);
}

TEST(files_of_sys_are_read)
{
    static const struct {
        char file;
        bool found;
        const char *line;
        long long number;
    } cases[] = {{'e', false, "", 5},
                 {'n', true, "0x20", 32},
                 {'t', true, "a long ", 5},
                 {'-', false, "", 5}};
    const char *root = unit_folder(": >e && printf '0x20\\nmore\\n' >n && echo a long line >t && "
                                   "ln -s ../drivers/ixgbe l");
    char line[8];
    glob_t found;

    for (EACH(c, cases)) {
        assert_int_equal(sysfs_line(line, sizeof line, "%s/%c", root, c->file), c->found);
        assert_string_equal(line, c->line);
        assert_int_equal(sysfs_number(5, "%s/%c", root, c->file), c->number);
        assert_int_equal(sysfs_exists("%s/%c", root, c->file), c->file != '-');
        sysfs_link(line, sizeof line, "%s/%c", root, c->file);
        assert_string_equal(line, "");
    }
    sysfs_link(line, sizeof line, "%s/l", root);
    assert_string_equal(line, "ixgbe");
    sysfs_glob(&found, "%s/[el]", root);
    assert_int_equal(found.gl_pathc, 2);
    globfree(&found);
    sysfs_glob(&found, "%s/[xy]", root);
    assert_int_equal(found.gl_pathc, 0);
    globfree(&found);
    unit_folder_remove();
    assert_in_range(memory_spare(), 1, sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

/* --- counters of devices --- */

static void read_file(const char *driver, int64_t wanted[], int64_t found[])
{
    char path[512], line[256], name[128];
    long long value;
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.txt", unit_argument, driver);
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

TEST(counters_of_drivers_are_named)
{
    static const char *const drivers[] = {"mlx5", "ice", "i40e", "ixgbe", "bnxt", "ena", "virtio"};
    int64_t wanted[DEVICE_COUNTERS], found[DEVICE_COUNTERS];

    for (EACH(driver, drivers)) {
        read_file(*driver, wanted, found);
        for (int c = 0; c < DEVICE_COUNTERS; c++)
            if (found[c] != wanted[c])
                fail_msg("%s: %s is %lld, not %lld", *driver, device_counter_name(c),
                         (long long)found[c], (long long)wanted[c]);
    }
}

/* An interface without statistics has unknown counts, not 0. */
TEST(an_interface_without_statistics_counts_nothing)
{
    struct device_statistics statistics;
    int64_t counters[DEVICE_COUNTERS];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    device_statistics_find(&statistics, fd, "lo");
    assert_int_equal(statistics.used, 0);
    device_counters_read(&statistics, fd, "lo", counters);
    for (int c = 0; c < DEVICE_COUNTERS; c++)
        assert_int_equal(counters[c], -1);
    close(fd);
}
