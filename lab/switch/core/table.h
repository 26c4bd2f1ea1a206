/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The address table: which port a station was last heard on. It holds a limited number of
 * addresses, learns so many a second at most, and forgets one that was silent for the ageing time.
 * A full table learns nothing new: frames to the others are flooded.
 */
#ifndef MODEL_TABLE_H
#define MODEL_TABLE_H

#include "model.h"

struct table_entry {
    uint64_t key; /* address << 16 | TABLE_USED | port; 0: free */
    int64_t seen_ns;
};

struct table {
    struct table_entry *entries;
    struct table_entry *spare; /* for sweeping */
    uint32_t mask;
    uint32_t size;
    int64_t ageing_ns;
    int64_t learn_gap_ns;
    int64_t next_learn_ns;
    int64_t oldest_ns; /* no entry was seen before */
    struct model_table_truth truth;
};

#define TABLE_SIZE_MAX (1u << 20)

int table_open(struct table *table, const struct model_conf *conf);
void table_close(struct table *table);

/* Forgets all stations. */
void table_clear(struct table *table);

/* The station `mac` was heard on `port`. */
void table_learn(struct table *table, uint64_t mac, unsigned port, int64_t now_ns);

/* Its port, or MODEL_NO_PORT. */
int table_find(const struct table *table, uint64_t mac, int64_t now_ns);

#endif
