/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#define TESTS_MAX 32

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;
const char *unit_argument = "";

void unit_add(const char *name, CMUnitTestFunction test, CMFixtureFunction before,
              CMFixtureFunction after)
{
    if (count == TESTS_MAX)
        abort();
    tests[count++] = (struct CMUnitTest){name, test, before, after, NULL};
}

int main(int argc, char **argv)
{
    if (argc > 1)
        unit_argument = argv[1];
    /* The macro's function wants an array of known length. */
    return _cmocka_run_group_tests(argv[0], tests, count, NULL, NULL);
}
