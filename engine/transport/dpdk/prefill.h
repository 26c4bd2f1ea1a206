/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Buffers hold the phase's frame before it begins, so that sending one writes few bytes.
 */
#ifndef ENGINE_DPDK_PREFILL_H
#define ENGINE_DPDK_PREFILL_H

#include "frame.h"

struct rte_mempool;

/* What every buffer of a pool is made to hold: `template`, and fill from the end of its `headers`
 * (with the signature) to `longest` bytes. */
struct prefill {
    const struct frame_template *template;
    uint32_t headers;
    uint32_t longest; /* FRAME_TEMPLATE or more is written */
    uint32_t length;  /* of the frame in it */
};

void prefill_mbufs(struct rte_mempool *pool, const struct prefill *prefill);

#endif
