/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which queue pairs a port keeps, and which calls of rdma_cm: those that its own ends expect, and
 * no stranger's. No device is asked.
 */
#include "connection_pool.h"
#include "rdma_cm.h"

#include <stdlib.h>

#include <cmocka.h>

#define STRANGERS 100000u

/* --- queue pairs --- */

static struct verbs_control control;

static struct verbs_qp *keep(struct transport_port *port, uint16_t stream, size_t max)
{
    struct verbs_qp *qp = calloc(1, sizeof *qp);

    assert_non_null(qp);
    qp->port = port;
    qp->control = &control;
    qp->config = (struct qp_config){.stream = stream, .partner = {.lid = 7}};
    connection_pool_keep(qp, max);
    return qp;
}

static struct verbs_qp *acquire(struct transport_port *port, uint16_t stream)
{
    struct qp_config config = {.stream = stream, .partner = {.lid = 7}};
    struct verbs_qp *qp;
    struct err err = {""};

    assert_int_equal(connection_pool_acquire(port, &config, &qp, &err), 0);
    assert_true(qp->reused);
    return qp;
}

static void the_one_that_was_kept_last_serves_first(void **state)
{
    struct transport_port port = {0};
    struct verbs_qp *first, *last;

    assert_int_equal(connection_pool_open(&port), 0);
    first = keep(&port, 1, 8);
    keep(&port, 2, 8);
    last = keep(&port, 1, 8);
    atomic_store(&control.credit, 5); /* an earlier phase's */
    assert_ptr_equal(acquire(&port, 1), last);
    assert_int_equal(atomic_load(&control.credit), 0);
    assert_ptr_equal(acquire(&port, 1), first);
    connection_pool_free(first);
    connection_pool_free(last);
    assert_true(connection_pool_close(&port)); /* the sanitizer sees that none is left */
}

static void the_least_recently_used_is_evicted(void **state)
{
    struct transport_port port = {0};
    struct verbs_qp *kept[5];

    assert_int_equal(connection_pool_open(&port), 0);
    for (uint16_t i = 0; i < 5; i++)
        kept[i] = keep(&port, i, 5);
    connection_pool_keep(acquire(&port, 0), 5); /* used again: now 1 is the oldest */
    kept[1] = keep(&port, 5, 4);                /* 1 and 2 go */
    assert_ptr_equal(acquire(&port, 0), kept[0]);
    assert_ptr_equal(acquire(&port, 3), kept[3]);
    assert_ptr_equal(acquire(&port, 4), kept[4]);
    assert_ptr_equal(acquire(&port, 5), kept[1]);
    for (size_t i = 0; i < 5; i++)
        if (i != 2)
            connection_pool_free(kept[i]);
    assert_true(connection_pool_close(&port));
}

/* --- calls --- */

static struct rdma_cm_id id, stranger;

static void strangers_take_no_room(void **state)
{
    struct verbs_cm cm = {0};
    struct transport_port port = {.cm = &cm};
    struct verbs_qp qp = {0};
    struct cm_call call = {0};

    verbs_cm_expect(&port, &call);
    assert_int_not_equal(call.token, 0);
    for (uint32_t i = 1; i <= STRANGERS; i++)
        assert_false(verbs_cm_came(&cm, call.token + i, i, &stranger));
    assert_null(call.caller);
    assert_ptr_equal(LIST_FIRST(&cm.expected), &call);
    assert_null(LIST_NEXT(&call, link));
    assert_true(verbs_cm_came(&cm, call.token, 5, &id));
    assert_false(verbs_cm_came(&cm, call.token, 6, &stranger)); /* a copy of it */
    assert_ptr_equal(call.caller, &id);
    assert_int_equal(call.caller_number, 5);
    call.caller = NULL; /* as if it were answered */
    verbs_cm_forget(&call, &qp);
    assert_true(LIST_EMPTY(&cm.expected));
}

/* The end goes before its call is answered, or before it comes. */
static void ends_that_go_leave_nothing(void **state)
{
    struct verbs_cm cm = {0};
    struct transport_port port = {.cm = &cm};
    struct verbs_qp qp = {0};
    struct cm_call ends[3] = {0};

    for (unsigned i = 0; i < 3; i++)
        verbs_cm_expect(&port, &ends[i]);
    assert_true(verbs_cm_came(&cm, ends[1].token, 9, &id));
    ends[1].caller = NULL;
    verbs_cm_forget(&ends[1], &qp);
    verbs_cm_forget(&ends[1], &qp);
    verbs_cm_forget(&ends[2], &qp);
    assert_false(verbs_cm_came(&cm, ends[2].token, 9, &id));
    verbs_cm_forget(&ends[0], &qp);
    assert_true(LIST_EMPTY(&cm.expected));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_was_kept_last_serves_first),
        cmocka_unit_test(the_least_recently_used_is_evicted),
        cmocka_unit_test(strangers_take_no_room),
        cmocka_unit_test(ends_that_go_leave_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
