/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which calls of rdma_cm a port keeps: those that its own ends expect, and no stranger's.
 */
#include "callers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define STRANGERS 100000u

static void strangers_take_no_room(void **state)
{
    struct verbs_callers callers = {0};
    struct verbs_caller caller;
    char id = 0, stranger = 0;

    (void)state;
    verbs_callers_expect(&callers, &caller, 77);
    for (uint32_t i = 0; i < STRANGERS; i++)
        assert_false(verbs_callers_came(&callers, 1000 + i, i, &stranger));
    assert_null(caller.id);
    assert_null(caller.next);
    assert_true(verbs_callers_came(&callers, 77, 5, &id));
    assert_false(verbs_callers_came(&callers, 77, 6, &stranger)); /* a copy of it */
    assert_ptr_equal(caller.id, &id);
    assert_int_equal(caller.number, 5);
    verbs_callers_forget(&callers, &caller);
    assert_null(callers.first);
}

/* The end goes before its call is answered, or before it comes. */
static void ends_that_go_leave_nothing(void **state)
{
    struct verbs_callers callers = {0};
    struct verbs_caller ends[3];
    char id = 0;

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        verbs_callers_expect(&callers, &ends[i], i + 1);
    assert_true(verbs_callers_came(&callers, 2, 9, &id));
    verbs_callers_forget(&callers, &ends[1]);
    verbs_callers_forget(&callers, &ends[1]);
    verbs_callers_forget(&callers, &ends[2]);
    assert_false(verbs_callers_came(&callers, 3, 9, &id));
    verbs_callers_forget(&callers, &ends[0]);
    assert_null(callers.first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_take_no_room),
        cmocka_unit_test(ends_that_go_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
