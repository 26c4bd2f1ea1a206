/* SPDX-License-Identifier: BSD-3-Clause */
#include "dissemination.h"

unsigned schedule_barrier_rounds(uint32_t ranks)
{
    unsigned rounds = 0;

    while (UINT32_C(1) << rounds < ranks)
        rounds++;
    return rounds;
}

uint32_t schedule_barrier_to(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + (UINT32_C(1) << round)) % ranks;
}

uint32_t schedule_barrier_from(uint32_t rank, unsigned round, uint32_t ranks)
{
    return (rank + ranks - (UINT32_C(1) << round)) % ranks;
}
