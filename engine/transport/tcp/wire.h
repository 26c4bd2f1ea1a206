/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What travels on a TCP connection, in network byte order.
 *
 *     acceptor    challenge                     proof
 *     connector              claim                     block block ... block end-mark
 *
 * A block is one message of exactly as many bytes as the configuration says: a header of 16 bytes
 * and then payload that both ends can compute (stream.h). A block shorter than a header is the
 * header's first bytes. The kind comes first, so that one byte tells a block from the end mark.
 */
#ifndef ENGINE_TCP_WIRE_H
#define ENGINE_TCP_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define TCP_MAGIC 0x53774254u /* "SwBT"; changes with the protocol */
#define TCP_NONCE_BYTES 16
#define TCP_MAC_BYTES 16

struct tcp_challenge {
    uint32_t magic;
    uint8_t nonce[TCP_NONCE_BYTES];
};

/* Who connects and what for. */
struct tcp_claim {
    uint32_t magic;
    uint32_t trial;
    uint32_t phase;
    uint32_t src; /* ranks */
    uint32_t dst;
    uint16_t tag;
    uint16_t stream; /* which of the flow's connections */
    uint8_t nonce[TCP_NONCE_BYTES];
    uint8_t mac[TCP_MAC_BYTES]; /* over the challenge's nonce and all of the above */
};

struct tcp_proof {
    uint8_t mac[TCP_MAC_BYTES]; /* over both nonces and the claim, as the acceptor */
};

enum tcp_block_kind { TCP_KIND_BLOCK = 0xb1, TCP_KIND_END = 0xe4 };

struct tcp_block_header {
    uint8_t kind;
    uint8_t stream;
    uint16_t tag;      /* the phase's */
    uint32_t sequence; /* of the block in its stream, modulo 2^32 */
    uint32_t length;   /* of the block, header included */
    uint16_t src;      /* ranks: a forwarding rank replaces these two and nothing else */
    uint16_t dst;
};

/* After the last block: what the stream was, so that the receiver knows that it has it all. */
struct tcp_end_mark {
    uint8_t kind;
    uint8_t stream;
    uint16_t tag;
    uint32_t blocks; /* modulo 2^32 */
    uint64_t bytes;  /* of all blocks */
};

#define TCP_HEADER_BYTES 16u

static_assert(sizeof(struct tcp_challenge) == 20, "layout");
static_assert(sizeof(struct tcp_claim) == 56, "layout");
static_assert(offsetof(struct tcp_claim, mac) == 40, "layout");
static_assert(sizeof(struct tcp_proof) == 16, "layout");
static_assert(sizeof(struct tcp_block_header) == TCP_HEADER_BYTES, "layout");
static_assert(offsetof(struct tcp_block_header, src) == 12, "layout");
static_assert(sizeof(struct tcp_end_mark) == TCP_HEADER_BYTES, "layout");

#endif
