/* SPDX-License-Identifier: BSD-3-Clause */
#include "prefill.h"

#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string.h>

static void fill_buffer(struct rte_mempool *pool, void *context, void *object, unsigned index)
{
    const struct prefill *prefill = context;
    struct rte_mbuf *buffer = object;
    uint8_t *frame = (uint8_t *)buffer->buf_addr + RTE_PKTMBUF_HEADROOM;

    (void)pool;
    (void)index;
    if (prefill->longest > prefill->headers)
        memcpy(frame + prefill->headers, fill_table()->bytes, prefill->longest - prefill->headers);
    memcpy(frame, prefill->template, FRAME_TEMPLATE);
    buffer->data_off = RTE_PKTMBUF_HEADROOM;
    buffer->ol_flags = 0;
    buffer->pkt_len = prefill->length;
    buffer->data_len = (uint16_t)prefill->length;
}

void prefill_mbufs(struct rte_mempool *pool, const struct prefill *prefill)
{
    struct prefill copy = *prefill; /* DPDK's callback takes no const */

    rte_mempool_obj_iter(pool, fill_buffer, &copy);
}
