/* SPDX-License-Identifier: BSD-3-Clause */
#include "neighbours.h"

#include <stddef.h>

static uint32_t log2_up(uint32_t number)
{
    return number < 2 ? 0 : 32 - (uint32_t)__builtin_clz(number - 1);
}

static uint32_t step(const struct neighbours *neighbours, uint64_t distance)
{
    return (uint32_t)((neighbours->self + distance) % neighbours->count);
}

uint32_t neighbours_parent(uint32_t index)
{
    return index & (index - 1);
}

uint32_t neighbours_ahead(const struct neighbours *neighbours, uint32_t round)
{
    return step(neighbours, UINT64_C(1) << round);
}

uint32_t neighbours_behind(const struct neighbours *neighbours, uint32_t round)
{
    return step(neighbours, neighbours->count - (UINT64_C(1) << round));
}

static void add(struct neighbours *neighbours, uint32_t index)
{
    if (index == neighbours->self || neighbours_find(neighbours, index) != NULL)
        return;
    neighbours->all[neighbours->size++] = (struct neighbour){
        .index = index,
        .entered = UINT32_MAX,
        .heard_ns = -1,
        .transmit_ns = INT64_MIN,
        .receive_ns = INT64_MIN,
    };
}

void neighbours_init(struct neighbours *neighbours, uint32_t self, uint32_t count)
{
    neighbours->self = self;
    neighbours->count = count;
    neighbours->rounds = log2_up(count);
    neighbours->size = 0;
    for (uint32_t round = 0; round < neighbours->rounds; round++)
        add(neighbours, neighbours_ahead(neighbours, round));
    for (uint32_t round = 0; round < neighbours->rounds; round++)
        add(neighbours, neighbours_behind(neighbours, round));
}

struct neighbour *neighbours_find(struct neighbours *neighbours, uint32_t index)
{
    for (uint32_t i = 0; i < neighbours->size; i++)
        if (neighbours->all[i].index == index)
            return &neighbours->all[i];
    return NULL;
}

bool neighbour_heard(struct neighbour *neighbour, uint32_t entered, int64_t transmit_ns,
                     int64_t now_ns)
{
    if (transmit_ns <= neighbour->transmit_ns)
        return false;
    neighbour->transmit_ns = transmit_ns;
    neighbour->receive_ns = now_ns;
    neighbour->heard_ns = now_ns;
    if (neighbour->entered == UINT32_MAX || (int32_t)(entered - neighbour->entered) > 0)
        neighbour->entered = entered; /* or it was overtaken on the way */
    neighbour->asked = 0;
    return true;
}

bool neighbour_silent(const struct neighbour *neighbour, int64_t waited_ns, int64_t timeout_ns,
                      int64_t now_ns)
{
    int64_t silence_ns = neighbour->heard_ns < 0 ? waited_ns : now_ns - neighbour->heard_ns;

    return waited_ns >= timeout_ns && silence_ns >= timeout_ns &&
           neighbour->asked >= NEIGHBOURS_ASKED_MIN;
}
