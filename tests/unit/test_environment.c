/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is left of a caller's environment where the engine has more rights than the caller.
 */
#include "environment.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void only_what_is_needed_stays(void **state)
{
    static const char *const dangerous[] = {"IBV_DRIVERS", "RDMAV_DRIVERS", "LIBXDP_OBJECT_PATH",
                                            "SWITCHBENCH_BUNDLE", "VERBS_LOG_FILE"};
    const char *connection = "192.0.2.1 1 192.0.2.2 22";

    for (size_t i = 0; i < sizeof dangerous / sizeof dangerous[0]; i++)
        setenv(dangerous[i], "/mine", 1);
    setenv("PATH", "/mine", 1);
    setenv("SSH_CONNECTION", connection, 1);
    assert_int_equal(environment_clean(), 0);
    for (size_t i = 0; i < sizeof dangerous / sizeof dangerous[0]; i++)
        assert_null(getenv(dangerous[i]));
    assert_string_equal(getenv("PATH"), "/usr/sbin:/usr/bin:/sbin:/bin");
    assert_string_equal(getenv("SSH_CONNECTION"), connection);
}

static void nobody_is_made_up(void **state)
{
    unsetenv("SSH_CONNECTION");
    assert_int_equal(environment_clean(), 0);
    assert_null(getenv("SSH_CONNECTION"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_needed_stays),
        cmocka_unit_test(nobody_is_made_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
