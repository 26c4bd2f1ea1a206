/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A port's registered memory. Registering is slow, so memory is registered in slabs of some MiB,
 * from which queue pairs take ranges, one behind the other. A slab whose ranges are all given back
 * is empty and serves again, until the port is closed. Hugepages where the host has any free, else
 * transparent ones where the kernel gives them. Main thread only.
 */
#ifndef VERBS_REGISTERED_MEMORY_H
#define VERBS_REGISTERED_MEMORY_H

#include "err.h"

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_slab; /* registered_memory.c's */

struct registered_memory {
    struct ibv_pd *pd;
    const char *label; /* of the port, for sentences */
    struct memory_slab *slabs;
    size_t bytes; /* registered */
    size_t max;   /* a quarter of the machine's memory */
    bool huge;    /* the last slab has hugepages */
};

/* Bytes at `at`; at NULL: none. */
struct memory_range {
    uint8_t *at;
    size_t bytes;
    struct memory_slab *slab;
    uint32_t lkey;
    uint32_t rkey;
};

void registered_memory_init(struct registered_memory *memory, struct ibv_pd *pd, const char *label);
void registered_memory_close(struct registered_memory *memory);
/* Takes a range, aligned to 4 KiB, its content undefined. -ENOMEM: there is no more; -EPERM: the
 * user may not lock so much; each with the sentence. */
int registered_memory_take(struct registered_memory *memory, size_t bytes,
                           struct memory_range *range, struct err *err);
void registered_memory_give(struct memory_range *range);
/* Why the device did not register so many bytes of a port, by the errno that ibv_reg_mr left: the
 * sentence, and its error. */
int registered_memory_error(const char *label, size_t bytes, int code, struct err *err);

#endif
