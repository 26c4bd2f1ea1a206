/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Socket addresses as text, files of /sys and /proc, and what is left of a caller's environment
 * where the engine has more rights than the caller.
 */
#include "address.h"
#include "environment.h"
#include "sysfs.h"
#include "unit.h"

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
        address_format(&address, back, sizeof back);
        assert_string_equal(back, *it);
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
    char line[8], root[] = "/tmp/test_sysfs.XXXXXX", command[160];
    glob_t found;

    assert_non_null(mkdtemp(root));
    snprintf(command, sizeof command,
             "cd %s && : >e && printf '0x20\\nmore\\n' >n && echo a long line >t && "
             "ln -s ../drivers/ixgbe l",
             root);
    assert_int_equal(system(command), 0);
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
    snprintf(command, sizeof command, "rm -r %s", root);
    assert_int_equal(system(command), 0);
    assert_in_range(memory_spare(), 1, sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE));
}

TEST(only_what_is_needed_stays)
{
    static const char *const dangerous[] = {"IBV_DRIVERS", "RDMAV_DRIVERS", "LIBXDP_OBJECT_PATH",
                                            "SWITCHBENCH_BUNDLE", "VERBS_LOG_FILE"};
    const char *connection = "192.0.2.1 1 192.0.2.2 22";

    for (EACH(dangerou, dangerous))
        setenv(*dangerou, "/mine", 1);
    setenv("PATH", "/mine", 1);
    setenv("SSH_CONNECTION", connection, 1);
    assert_int_equal(environment_clean(), 0);
    for (EACH(dangerou, dangerous))
        assert_null(getenv(*dangerou));
    assert_string_equal(getenv("PATH"), "/usr/sbin:/usr/bin:/sbin:/bin");
    assert_string_equal(getenv("SSH_CONNECTION"), connection);
    unsetenv("SSH_CONNECTION");
    assert_int_equal(environment_clean(), 0);
    assert_null(getenv("SSH_CONNECTION"));
}
