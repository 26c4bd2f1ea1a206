/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the tests of the patterns share: a plan or a failed test, and one flow of
 * a rank.
 */
#ifndef TEST_PATTERNS_UTIL_H
#define TEST_PATTERNS_UTIL_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "pattern.h"

#define NOBODY UINT32_MAX

static inline struct pattern_plan *plan_of(const struct pattern_request *request)
{
    struct pattern_plan *plan = NULL;
    char why[256] = "no memory";

    if (pattern_plan_make(&plan, request, why, sizeof(why)) != 0)
        fail_msg("%s of %u ranks: %s", request->name, request->n, why);
    return plan;
}

/* The one partner that a rank has on a side, or NOBODY; more than one fails the test. */
static inline uint32_t partner_of(const struct pattern_plan *plan, uint32_t phase, uint32_t rank,
                                  enum pattern_side side)
{
    struct pattern_flow flow;
    size_t count = pattern_flows(plan, phase, rank, side, &flow, 1);

    assert_true(count <= 1);
    if (count == 0)
        return NOBODY;
    return side == PATTERN_SENDS ? flow.dst : flow.src;
}

/* Slow variants, over more sizes and more phases, run where SWITCHBENCH_LONG=1. */
static inline bool long_run(void)
{
    const char *word = getenv("SWITCHBENCH_LONG");

    return word != NULL && word[0] == '1';
}

#endif
