/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel.h"

#include <assert.h>
#include <stdio.h>

static const char *const class_words[] = {"S", "W", "A", "B", "C", "D", NULL};

static uint32_t root_of(uint32_t n)
{
    uint32_t root = 1;

    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

unsigned kernel_log2(uint32_t power)
{
    unsigned bits = 0;

    while (power >> bits > 1)
        bits++;
    return bits;
}

static int check_ranks(const struct pattern_plan *plan, struct pattern_why *why)
{
    const struct kernel *kernel = &plan->kind->kernel;
    const struct kernel_problem *problem = plan->problem;
    uint32_t n = plan->n;
    /* Maximum ranks that share a dimension of this benchmark's grid. */
    uint32_t along =
        kernel->ranks == RANKS_SQUARE ? root_of(n) : UINT32_C(1) << (kernel_log2(n) + 1) / 2;

    if (kernel->ranks == RANKS_SQUARE && root_of(n) * root_of(n) != n)
        return pattern_refuse(why,
                              "%s needs a square number of ranks, not %u (the next lower is %u)",
                              plan->name, n, root_of(n) * root_of(n));
    if (kernel->ranks == RANKS_POWER_OF_TWO && (n & (n - 1)) != 0)
        return pattern_refuse(why,
                              "%s needs a power of two of ranks, not %u (the next lower is %u)",
                              plan->name, n, UINT32_C(1) << kernel_log2(n));
    if (kernel->least > 0 && problem->size[0] / along < kernel->least)
        return pattern_refuse(why,
                              "%s: %u points over %u ranks are fewer than the %u points per rank "
                              "that it needs: use fewer ranks or a larger class",
                              plan->name, problem->size[0], along, kernel->least);
    if (kernel->most != NULL && n > kernel->most(problem))
        return pattern_refuse(why,
                              "%s: this class has work for at most %llu ranks, not for %u: use "
                              "fewer ranks or a larger class",
                              plan->name, (unsigned long long)kernel->most(problem), n);
    return 0;
}

int kernel_make(struct pattern_plan *plan, const struct pattern_request *request,
                struct pattern_why *why)
{
    int class = pattern_choose("class", class_words, request->class, why);

    if (class < 0)
        return class;
    plan->problem = &plan->kind->kernel.problems[class];
    plan->iterations = plan->problem->iterations;
    snprintf(plan->label, sizeof(plan->label), "%s class %s", plan->name, class_words[class]);
    return check_ranks(plan, why);
}

struct kernel_grid kernel_grid_of(uint32_t rank, const uint32_t ranks[3])
{
    return (struct kernel_grid){
        .ranks = {ranks[0], ranks[1], ranks[2]},
        .at = {rank % ranks[0], rank / ranks[0] % ranks[1], rank / ranks[0] / ranks[1]},
    };
}

uint32_t kernel_at(const struct kernel_grid *grid, unsigned dimension, int64_t distance)
{
    uint32_t at[3] = {grid->at[0], grid->at[1], grid->at[2]};
    int64_t ranks = grid->ranks[dimension];

    at[dimension] = (uint32_t)((at[dimension] + distance % ranks + ranks) % ranks);
    return (at[2] * grid->ranks[1] + at[1]) * grid->ranks[0] + at[0];
}

uint32_t kernel_share(uint32_t points, uint32_t ranks, uint32_t number)
{
    return points / ranks + (number < points % ranks);
}

void kernel_work(struct steps *steps, double operations)
{
    assert(operations / steps->n < KERNEL_WORK_MAX);
    steps_work(steps, (uint64_t)(operations / steps->n));
}
