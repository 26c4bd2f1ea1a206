/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The flows that a switch has seen, with their counts. A flow is known by its addresses, the port
 * it came in by, the port it was to leave by and, where flows are told apart by phase, its tag.
 * Those beyond `most` are counted together by the ports of their way, without addresses and tag.
 * Flows stay where they are in memory: frames point to them.
 */
#ifndef MODEL_FLOWS_H
#define MODEL_FLOWS_H

#include "model.h"

#define FLOWS_CHUNK 256

struct flows {
    struct model_flow **chunks;
    uint32_t count;
    uint32_t most;
    struct model_flow **places; /* open addressing */
    uint32_t mask;
    struct model_flow *beyond; /* by way: input and output */
    uint32_t *ways;            /* of `beyond`, those in use */
    uint32_t way_count;
};

int flows_open(struct flows *flows, uint32_t most);
void flows_close(struct flows *flows);

/* The flow of that key, made when it is new. */
struct model_flow *flows_get(struct flows *flows, const uint64_t key[2]);

/* Whether it is one of `beyond`: the counts of several flows, or of one that is not known. */
bool flow_is_beyond(const struct model_flow *flow);

void flows_key(uint64_t key[2], const struct model_flow_name *name);

/* By number, those of `beyond` last. */
uint32_t flows_count(const struct flows *flows);
const struct model_flow *flows_at(const struct flows *flows, uint32_t index);
/* All counts to zero. */
void flows_clear(struct flows *flows);

#endif
