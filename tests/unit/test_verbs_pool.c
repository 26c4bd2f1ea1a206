/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which queue pairs a port keeps. No device is asked.
 */
#include "connection_pool.h"

#include <stdlib.h>

#include <cmocka.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_was_kept_last_serves_first),
        cmocka_unit_test(the_least_recently_used_is_evicted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
