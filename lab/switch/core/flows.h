/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The flows that a switch has seen, with their counts. A flow is known by its addresses, the port
 * it came in by, the port it was to leave by and, where flows are told apart by phase, its tag.
 * Those beyond the first MODEL_FLOWS_MAX are counted together. Flows stay where they are in memory:
 * frames point to them.
 */
#ifndef MODEL_FLOWS_H
#define MODEL_FLOWS_H

#include "model.h"

struct flows {
    struct model_flow *all; /* the last is the rest: all that have no place of their own */
    uint32_t count;
    struct model_flow **places; /* open addressing */
};

int flows_open(struct flows *flows);
void flows_close(struct flows *flows);

/* The flow of that key, made when it is new; the rest when there is no place. */
struct model_flow *flows_get(struct flows *flows, const uint64_t key[2]);

static inline const struct model_flow *flows_rest(const struct flows *flows)
{
    return &flows->all[MODEL_FLOWS_MAX];
}

void flows_key(uint64_t key[2], const struct model_flow_name *name);

/* All counts to zero. */
void flows_clear(struct flows *flows);

#endif
