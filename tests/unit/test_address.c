/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Socket addresses as text, both ways.
 */
#include "address.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void text_comes_back(void **state)
{
    static const char *const texts[] = {
        "192.0.2.1:7600",     "0.0.0.0:0", "255.255.255.255:65535",
        "[2001:db8::1]:7600", "[::]:0",    "[2001:db8:1111:2222:3333:4444:5555:6666]:65535",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sockaddr_storage address;
        char text[ADDRESS_TEXT_MAX];
        struct err err = {0};

        assert_int_equal(address_parse(texts[i], &address, &err), 0);
        address_format(&address, text, sizeof text);
        assert_string_equal(text, texts[i]);
    }
}

static void fields_are_in_network_order(void **state)
{
    struct sockaddr_storage address;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;
    struct err err = {0};

    assert_int_equal(address_parse("192.0.2.1:258", &address, &err), 0);
    assert_int_equal(v4->sin_family, AF_INET);
    assert_memory_equal(&v4->sin_addr, "\xc0\x00\x02\x01", 4);
    assert_memory_equal(&v4->sin_port, "\x01\x02", 2);
}

static void a_mapped_address_is_ipv6(void **state)
{
    struct sockaddr_storage address;
    struct err err = {0};

    assert_int_equal(address_parse("[::ffff:192.0.2.1]:1", &address, &err), 0);
    assert_int_equal(address.ss_family, AF_INET6);
}

static void nonsense_is_named(void **state)
{
    static const char *const texts[] = {
        "",
        ":",
        ":7600",
        "192.0.2.1",
        "192.0.2.1:",
        "192.0.2.1:65536",
        "192.0.2.1:-1",
        "192.0.2.1:+1",
        "192.0.2.1: 1",
        "192.0.2.1:1 ",
        "192.0.2.1:0x10",
        "192.0.2.1:18446744073709551617",
        "192.0.2.256:1",
        "192.0.2:1",
        "node1:7600",
        "2001:db8::1:7600",
        "[192.0.2.1]:7600",
        "[2001:db8::1:7600",
        "2001:db8::1]:7600",
        "[]:7600",
        "[2001:db8:1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa]:1",
    };

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sockaddr_storage address;
        struct err err = {0};

        assert_int_equal(address_parse(texts[i], &address, &err), -EINVAL);
        assert_int_equal(err.text[0], '\'');
        assert_memory_equal(err.text + 1, texts[i], strlen(texts[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_comes_back),
        cmocka_unit_test(fields_are_in_network_order),
        cmocka_unit_test(a_mapped_address_is_ipv6),
        cmocka_unit_test(nonsense_is_named),
    };

    return cmocka_run_group_tests_name("address", tests, NULL, NULL);
}
