/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A thread for which DPDK has no number left: it goes on, and the log says so once.
 */
#include "eal.h"
#include "log.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

int __wrap_rte_thread_register(void);
void __wrap_log_print(enum log_level level, const char *format, ...);

static unsigned asked, said;

int __wrap_rte_thread_register(void)
{
    asked++;
    return -1;
}

void __wrap_log_print(enum log_level level, const char *format, ...)
{
    assert_int_equal(level, LOG_LEVEL_WARNING);
    assert_non_null(strstr(format, "threads at most"));
    said++;
}

static void threads_beyond_the_most_are_told_once(void **state)
{
    for (unsigned i = 0; i < 3; i++)
        eal_thread();
    assert_int_equal(asked, 3);
    assert_int_equal(said, 1);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_beyond_the_most_are_told_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
