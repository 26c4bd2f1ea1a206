/* SPDX-License-Identifier: BSD-3-Clause */
#include "flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TAGGED 0x80 /* beside the port in the key; ports are below 64 */
#define PLACES (2 * MODEL_FLOWS_MAX)

void flows_key(uint64_t key[2], const struct model_flow_name *name)
{
    key[0] = name->source << 16 | (name->in | (name->tagged ? TAGGED : 0)) << 8 | name->out;
    key[1] = name->destination << 16 | name->tag;
}

struct model_flow_name model_flow_name(const struct model_flow *flow)
{
    return (struct model_flow_name){
        .source = flow->key[0] >> 16,
        .destination = flow->key[1] >> 16,
        .in = flow->key[0] >> 8 & (TAGGED - 1),
        .out = flow->key[0] & 0xff,
        .tagged = (flow->key[0] >> 8 & TAGGED) != 0,
        .tag = (uint16_t)flow->key[1],
    };
}

int flows_open(struct flows *flows)
{
    flows->all = calloc(MODEL_FLOWS_MAX + 1, sizeof *flows->all);
    flows->places = calloc(PLACES, sizeof(struct model_flow *));
    return flows->all != NULL && flows->places != NULL ? 0 : -ENOMEM;
}

void flows_close(struct flows *flows)
{
    free(flows->all);
    free(flows->places);
}

struct model_flow *flows_get(struct flows *flows, const uint64_t key[2])
{
    uint64_t hash = (key[0] ^ key[1] * 0xbf58476d1ce4e5b9) * 0x9e3779b97f4a7c15;
    uint32_t at = (uint32_t)(hash >> 32) % PLACES;
    struct model_flow *flow;

    while ((flow = flows->places[at]) != NULL) {
        if (flow->key[0] == key[0] && flow->key[1] == key[1])
            return flow;
        at = (at + 1) % PLACES;
    }
    if (flows->count == MODEL_FLOWS_MAX)
        return &flows->all[MODEL_FLOWS_MAX];
    flow = flows->places[at] = &flows->all[flows->count++];
    memcpy(flow->key, key, sizeof flow->key);
    return flow;
}

void flows_clear(struct flows *flows)
{
    for (uint32_t i = 0; i < flows->count; i++)
        flows->all[i].counts = (struct model_counts){0};
    flows->all[MODEL_FLOWS_MAX].counts = (struct model_counts){0};
}
