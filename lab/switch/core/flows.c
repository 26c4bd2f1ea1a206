/* SPDX-License-Identifier: BSD-3-Clause */
#include "flows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TAGGED 0x80                /* beside the port in the key; ports are below 64 */
#define BEYOND 0x40                /* the same */
#define OUTS (MODEL_PORTS_MAX + 1) /* of a way; the last: flooded */
#define WAYS (MODEL_PORTS_MAX * OUTS)

static_assert(MODEL_PORTS_MAX <= BEYOND, "the port's bits in a key");

void flows_key(uint64_t key[2], const struct model_flow_name *name)
{
    key[0] = name->source << 16 | (name->in | (name->tagged ? TAGGED : 0)) << 8 | name->out;
    key[1] = name->destination << 16 | name->tag;
}

bool flow_is_beyond(const struct model_flow *flow)
{
    return (flow->key[0] >> 8 & BEYOND) != 0;
}

struct model_flow_name model_flow_name(const struct model_flow *flow)
{
    return (struct model_flow_name){
        .source = flow->key[0] >> 16,
        .destination = flow->key[1] >> 16,
        .in = flow->key[0] >> 8 & (BEYOND - 1),
        .out = flow->key[0] & 0xff,
        .beyond = flow_is_beyond(flow),
        .tagged = (flow->key[0] >> 8 & TAGGED) != 0,
        .tag = (uint16_t)flow->key[1],
    };
}

int flows_open(struct flows *flows, uint32_t most)
{
    uint32_t places = 16;

    while (places < 2 * most)
        places *= 2;
    *flows = (struct flows){.most = most, .mask = places - 1};
    flows->places = calloc(places, sizeof(struct model_flow *));
    flows->chunks = calloc(most / FLOWS_CHUNK + 1, sizeof(struct model_flow *));
    flows->beyond = calloc(WAYS, sizeof *flows->beyond);
    flows->ways = calloc(WAYS, sizeof *flows->ways);
    return flows->places != NULL && flows->chunks != NULL && flows->beyond != NULL &&
                   flows->ways != NULL
               ? 0
               : -ENOMEM;
}

void flows_close(struct flows *flows)
{
    for (uint32_t i = 0; flows->chunks != NULL && i <= flows->most / FLOWS_CHUNK; i++)
        free(flows->chunks[i]);
    free(flows->chunks);
    free(flows->places);
    free(flows->beyond);
    free(flows->ways);
}

static struct model_flow *make(struct flows *flows, const uint64_t key[2])
{
    struct model_flow **chunk = &flows->chunks[flows->count / FLOWS_CHUNK];
    struct model_flow *flow;

    if (flows->count < flows->most && *chunk == NULL)
        *chunk = calloc(FLOWS_CHUNK, sizeof **chunk);
    if (flows->count >= flows->most || *chunk == NULL)
        return NULL;
    flow = &(*chunk)[flows->count++ % FLOWS_CHUNK];
    memcpy(flow->key, key, sizeof flow->key);
    return flow;
}

/* The one that all flows of this way share which have no place of their own. */
static struct model_flow *share(struct flows *flows, const uint64_t key[2])
{
    unsigned in = key[0] >> 8 & (BEYOND - 1), out = key[0] & 0xff;
    uint32_t way = in * OUTS + (out < MODEL_PORTS_MAX ? out : MODEL_PORTS_MAX);
    struct model_flow *flow = &flows->beyond[way];

    if (flow->key[0] == 0) {
        flow->key[0] = (in | BEYOND) << 8 | out;
        flows->ways[flows->way_count++] = way;
    }
    return flow;
}

struct model_flow *flows_get(struct flows *flows, const uint64_t key[2])
{
    uint64_t hash = (key[0] ^ key[1] * 0xbf58476d1ce4e5b9) * 0x9e3779b97f4a7c15;
    uint32_t at = (uint32_t)(hash >> 32) & flows->mask;
    struct model_flow *flow;

    while ((flow = flows->places[at]) != NULL) {
        if (flow->key[0] == key[0] && flow->key[1] == key[1])
            return flow;
        at = (at + 1) & flows->mask;
    }
    flow = make(flows, key);
    if (flow == NULL)
        return share(flows, key);
    return flows->places[at] = flow;
}

uint32_t flows_count(const struct flows *flows)
{
    return flows->count + flows->way_count;
}

const struct model_flow *flows_at(const struct flows *flows, uint32_t index)
{
    if (index >= flows->count)
        return &flows->beyond[flows->ways[index - flows->count]];
    return &flows->chunks[index / FLOWS_CHUNK][index % FLOWS_CHUNK];
}

void flows_clear(struct flows *flows)
{
    for (uint32_t i = 0; i < flows->count; i++)
        memset(&flows->chunks[i / FLOWS_CHUNK][i % FLOWS_CHUNK].counts, 0,
               sizeof(struct model_counts));
    for (uint32_t i = 0; i < flows->way_count; i++)
        memset(&flows->beyond[flows->ways[i]].counts, 0, sizeof(struct model_counts));
}
