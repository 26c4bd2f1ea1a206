/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's registered memory: some large pieces, each registered once and kept until the port is
 * closed, from which lanes and queue pairs take ranges. Hugepages where the host has any free,
 * else transparent ones where the kernel gives them. Main thread only.
 */
#ifndef VERBS_MEMORY_H
#define VERBS_MEMORY_H

#include "err.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct verbs_piece; /* memory.c's */

struct verbs_memory {
    struct ibv_pd *pd;
    const char *label; /* of the port, for sentences */
    struct verbs_piece *pieces;
    size_t bytes; /* registered */
    size_t most;  /* a quarter of the machine's memory */
    bool huge;    /* the last piece has hugepages */
};

/* Bytes at `at`; at NULL: none. */
struct verbs_range {
    uint8_t *at;
    size_t bytes;
    struct verbs_piece *piece;
    uint32_t lkey;
    uint32_t rkey;
};

void verbs_memory_init(struct verbs_memory *memory, struct ibv_pd *pd, const char *label);
void verbs_memory_close(struct verbs_memory *memory);
/* Takes a range, aligned to 4 KiB, its content undefined. -ENOMEM: there is no more; -EPERM: the
 * user may not lock so much; each with the sentence. */
int verbs_memory_take(struct verbs_memory *memory, size_t bytes, struct verbs_range *range,
                      struct err *err);
void verbs_memory_give(struct verbs_range *range);
/* Why the device did not register so many bytes of a port, by the errno that ibv_reg_mr left: the
 * sentence, and its error. */
int verbs_refuse_region(const char *label, size_t bytes, int code, struct err *err);

#endif
