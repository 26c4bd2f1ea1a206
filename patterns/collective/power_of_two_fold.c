/* SPDX-License-Identifier: BSD-3-Clause */
#include "collective.h"

struct power_of_two_fold fold_of(uint32_t n)
{
    struct power_of_two_fold fold = {.n = n, .power = 1};

    while (fold.power <= n / 2)
        fold.power *= 2;
    fold.rest = n - fold.power;
    return fold;
}

uint32_t fold_member(const struct power_of_two_fold *fold, uint32_t rank)
{
    if (rank >= 2 * fold->rest)
        return rank - fold->rest;
    return rank % 2 == 1 ? rank / 2 : FOLD_OUT;
}

uint32_t fold_rank(const struct power_of_two_fold *fold, uint32_t member)
{
    return member < fold->rest ? 2 * member + 1 : member + fold->rest;
}

uint32_t fold_first(const struct power_of_two_fold *fold, uint32_t member)
{
    return member < fold->rest ? 2 * member : member + fold->rest;
}
