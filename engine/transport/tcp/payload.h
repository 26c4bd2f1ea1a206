/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The bytes that blocks carry: a fixed pseudo-random sequence, repeated, entered at a place that
 * depends on the block's sequence and stream. Both ends hold the same buffer, so sending copies
 * nothing in user space and verifying is a memcmp. The place does not depend on the ranks, so a
 * forwarding rank sends on the payload as it came.
 *
 * The period is a prime, so that data that moved by a power of two (a page, a buffer) is not
 * mistaken for the right data.
 */
#ifndef ENGINE_TCP_PAYLOAD_H
#define ENGINE_TCP_PAYLOAD_H

#include <stdint.h>

#define TCP_PAYLOAD_PERIOD 65521u
#define TCP_PAYLOAD_RUN 65536u /* this many bytes can be read from any place */

extern uint8_t tcp_payload[TCP_PAYLOAD_PERIOD + TCP_PAYLOAD_RUN];

/* Fills the buffer; the main thread, before anything else of this header. May be repeated. */
void tcp_payload_init(void);

/* The payload of a block from byte `position` of the block on, TCP_PAYLOAD_RUN bytes of it. */
static inline const uint8_t *tcp_payload_at(uint64_t sequence, uint16_t stream, uint32_t position)
{
    uint64_t place = sequence * 7919u + stream * 104729u + position;

    return tcp_payload + place % TCP_PAYLOAD_PERIOD;
}

#endif
