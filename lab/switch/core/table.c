/* SPDX-License-Identifier: BSD-3-Clause */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>

#define USED 0x100
#define LEARN_QUEUE 16 /* addresses that may wait to be learned */

/* Return the table entry of an address, or the free entry where it belongs. */
static struct table_entry *seek(const struct table *table, uint64_t mac)
{
    uint32_t at = (uint32_t)(mac * 0x9e3779b97f4a7c15 >> 32) & table->mask;

    while (table->entries[at].key != 0 && table->entries[at].key >> 16 != mac)
        at = (at + 1) & table->mask;
    return &table->entries[at];
}

int table_open(struct table *table, const struct model_table_conf *conf)
{
    uint32_t places = 16;

    while (places < 2 * conf->size)
        places *= 2;
    *table = (struct table){
        .conf = conf,
        .mask = places - 1,
        .ageing_ns = conf->ageing_ms * NS_PER_MS,
        .learn_gap_ns = conf->learn_per_s > 0 ? 1000000000 / conf->learn_per_s : 0,
        .next_learn_ns = INT64_MIN,
        .oldest_ns = INT64_MAX,
    };
    table->entries = calloc(places, sizeof *table->entries);
    table->spare = calloc(places, sizeof *table->spare);
    return table->entries != NULL && table->spare != NULL ? 0 : -ENOMEM;
}

void table_close(struct table *table)
{
    free(table->entries);
    free(table->spare);
}

static bool has_aged(const struct table *table, const struct table_entry *entry, int64_t now_ns)
{
    return now_ns - entry->seen_ns > table->ageing_ns;
}

/* Remove the aged entries of an address table: the others are inserted into the spare array, so
 * that no search chain has a gap. */
static void sweep(struct table *table, int64_t now_ns)
{
    struct table_entry *old = table->entries;

    table->entries = table->spare;
    table->spare = old;
    memset(table->entries, 0, ((size_t)table->mask + 1) * sizeof *old);
    table->oldest_ns = INT64_MAX;
    for (uint32_t i = 0; i <= table->mask; i++) {
        if (old[i].key == 0)
            continue;
        if (has_aged(table, &old[i], now_ns)) {
            table->truth.aged++;
            table->truth.entries--;
            continue;
        }
        *seek(table, old[i].key >> 16) = old[i];
        if (old[i].seen_ns < table->oldest_ns)
            table->oldest_ns = old[i].seen_ns;
    }
}

/* Return whether the switch has time to learn one more address: learning one occupies its processor
 * for some time. Addresses whose learning waits are in the table at once. */
static bool may_learn(struct table *table, int64_t now_ns)
{
    int64_t start_ns = now_ns > table->next_learn_ns ? now_ns : table->next_learn_ns;

    if (start_ns - now_ns > LEARN_QUEUE * table->learn_gap_ns) {
        table->truth.refused_rate++;
        return false;
    }
    table->next_learn_ns = start_ns + table->learn_gap_ns;
    return true;
}

static void insert(struct table *table, uint64_t mac, unsigned port, int64_t now_ns)
{
    if (table->truth.entries >= table->conf->size && now_ns - table->oldest_ns > table->ageing_ns)
        sweep(table, now_ns);
    if (table->truth.entries >= table->conf->size) {
        table->truth.refused_full++;
        return;
    }
    if (!may_learn(table, now_ns))
        return;
    *seek(table, mac) = (struct table_entry){mac << 16 | USED | port, now_ns};
    table->truth.entries++;
    table->truth.learned++;
    if (now_ns < table->oldest_ns)
        table->oldest_ns = now_ns;
}

void table_clear(struct table *table)
{
    memset(table->entries, 0, ((size_t)table->mask + 1) * sizeof *table->entries);
    table->oldest_ns = INT64_MAX;
    table->truth.entries = 0;
}

void table_learn(struct table *table, uint64_t mac, unsigned port, int64_t now_ns)
{
    struct table_entry *entry = seek(table, mac);
    uint64_t key = mac << 16 | USED | port;
    bool aged;

    if (entry->key == 0) {
        insert(table, mac, port, now_ns);
        return;
    }
    aged = has_aged(table, entry, now_ns);
    if ((aged || entry->key != key) && !may_learn(table, now_ns))
        return;
    table->truth.aged += aged;
    table->truth.learned += aged;
    table->truth.moved += !aged && entry->key != key;
    entry->key = key;
    entry->seen_ns = now_ns;
}

int table_find(const struct table *table, uint64_t mac, int64_t now_ns)
{
    const struct table_entry *entry = seek(table, mac);

    if (entry->key == 0 || has_aged(table, entry, now_ns))
        return MODEL_NO_PORT;
    return (int)(entry->key & 0xff);
}

/* --- flows --- */

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

int model_port(const struct model_conf *conf, const char *name)
{
    for (unsigned i = 0; name != NULL && i < conf->port_count; i++)
        if (strcmp(conf->ports[i].name, name) == 0)
            return (int)i;
    return MODEL_NO_PORT;
}
