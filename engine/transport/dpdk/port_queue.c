/* SPDX-License-Identifier: BSD-3-Clause */
#include "port_state.h"

#include <string.h>

bool queue_send(struct port_queue *queue, const uint8_t *frame, uint32_t length)
{
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(queue->receive_pool);

    if (buffer == NULL)
        return false;
    memcpy(rte_pktmbuf_append(buffer, (uint16_t)length), frame, length);
    if (rte_eth_tx_burst(queue->port->id, queue->pass, &buffer, 1) == 1) {
        queue->count->arp_nd_sent++;
        return true;
    }
    rte_pktmbuf_free(buffer);
    return false;
}

/* Return whether a frame is a MAC control frame, such as PAUSE (IEEE 802.3 annex 31B) or PFC (IEEE
 * 802.1Q 36), to the address that no bridge forwards. */
static bool is_pause(const uint8_t *frame, uint32_t length)
{
    static const uint8_t head[] = {0x01, 0x80, 0xc2, 0x00, 0x00, 0x01};
    uint16_t opcode;

    if (length < FRAME_ETHERNET + sizeof opcode || memcmp(frame, head, sizeof head) != 0 ||
        frame_u16(frame + 2 * FRAME_MAC) != htobe16(FRAME_TYPE_MAC_CONTROL))
        return false;
    opcode = be16toh(frame_u16(frame + FRAME_ETHERNET));
    return opcode == 0x0001 || opcode == 0x0101;
}

bool queue_handle_control_frame(struct port_queue *queue, const struct rte_mbuf *frame)
{
    uint8_t answer[RESPONDER_FRAME_MAX];
    uint32_t answer_length = 0;
    enum responder_verdict verdict =
        responder_handle(port_responder_lock(queue->port), rte_pktmbuf_mtod(frame, const uint8_t *),
                         rte_pktmbuf_data_len(frame), answer, &answer_length);

    port_responder_unlock(queue->port);
    if (verdict == RESPONDER_IGNORES) {
        if (!is_pause(rte_pktmbuf_mtod(frame, const uint8_t *), rte_pktmbuf_data_len(frame)))
            return false;
        atomic_fetch_add_explicit(&queue->port->pause_frames, 1, memory_order_relaxed);
    }
    queue->count->arp_nd_received++;
    if (verdict == RESPONDER_REPLIES)
        queue_send(queue, answer, answer_length);
    return true;
}
