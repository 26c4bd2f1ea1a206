/* SPDX-License-Identifier: BSD-3-Clause */
#include "memory.h"

#include <stddef.h>

#include <cmocka.h>

static void test_seven_eighths_of_what_is_available(void **state)
{
    assert_int_equal(memory_spare_of("MemTotal:       8000 kB\nMemFree:  10 kB\n"
                                     "MemAvailable:    800 kB\nBuffers: 5 kB\n"),
                     700 * 1024);
    assert_int_equal(memory_spare_of("MemAvailable:    0 kB\n"), 0);
}

static void test_not_known(void **state)
{
    assert_true(memory_spare_of("") == UINT64_MAX);
    assert_true(memory_spare_of("MemAvailable: much\n") == UINT64_MAX);
}

static void test_this_machine(void **state)
{
    assert_true(memory_spare() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seven_eighths_of_what_is_available),
        cmocka_unit_test(test_not_known),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
