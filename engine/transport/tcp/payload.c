/* SPDX-License-Identifier: BSD-3-Clause */
#include "payload.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

uint8_t tcp_payload[TCP_PAYLOAD_PERIOD + TCP_PAYLOAD_RUN];

static_assert(TCP_PAYLOAD_RUN < 2 * TCP_PAYLOAD_PERIOD, "one repetition fills the buffer");

void tcp_payload_init(void)
{
    static const uint8_t seed[randombytes_SEEDBYTES] = "Switchbench tcp payload";

    randombytes_buf_deterministic(tcp_payload, TCP_PAYLOAD_PERIOD, seed);
    for (size_t i = TCP_PAYLOAD_PERIOD; i < sizeof tcp_payload; i++)
        tcp_payload[i] = tcp_payload[i - TCP_PAYLOAD_PERIOD];
}
