/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Handshake of a TCP connection, in which the ends prove to each other that they hold the
 * run's key, without any I/O: the acceptor sends a nonce, the connector claims a place with a keyed
 * MAC over this nonce and its own, the acceptor answers with a MAC of its own.
 *
 * Keyed BLAKE2b (crypto_generichash), 16 bytes. Later data on the connection are not authenticated,
 * but verified byte by byte.
 *
 * @code{.unparsed}
 * acceptor    challenge                     proof
 * connector              claim                     message ... message, end mark
 * @endcode
 */
#ifndef ENGINE_TCP_HANDSHAKE_H
#define ENGINE_TCP_HANDSHAKE_H

#include "transport.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TCP_KEY_BYTES 32
#define TCP_MAGIC 0x53774256u /**< "SwBV"; changes with the protocol */
#define TCP_NONCE_BYTES 16
#define TCP_MAC_BYTES 16

/**
 * @brief Identity of the stream that a connection claims to carry: phase, flow and number; in
 * network byte order.
 */
struct tcp_place {
    uint32_t trial;
    uint32_t phase;
    uint32_t src; /**< ranks */
    uint32_t dst;
    uint16_t tag;
    uint16_t stream; /**< number among the flow's connections */
};

/**
 * @brief Bytes of a handshake in their order: the challenge, the claim, the proof. In network byte
 * order.
 */
struct tcp_handshake {
    uint32_t greeting; /**< TCP_MAGIC */
    uint8_t acceptor_nonce[TCP_NONCE_BYTES];
    uint32_t magic;
    struct tcp_place place;
    uint8_t connector_nonce[TCP_NONCE_BYTES];
    uint8_t claim[TCP_MAC_BYTES]; /**< MAC over all of the above */
    uint8_t proof[TCP_MAC_BYTES]; /**< MAC over the same bytes, in the acceptor's role */
};

/** @brief Offsets, in bytes, at which the parts of a handshake end. */
enum { TCP_CHALLENGE_END = 20, TCP_CLAIM_END = 76, TCP_PROOF_END = 92 };
static_assert(offsetof(struct tcp_handshake, magic) == TCP_CHALLENGE_END, "layout");
static_assert(offsetof(struct tcp_handshake, proof) == TCP_CLAIM_END, "layout");
static_assert(sizeof(struct tcp_handshake) == TCP_PROOF_END, "layout");

/**
 * @brief Derive the key of the tcp transport from a run's secret, so that MACs with it are valid
 * for tcp only.
 *
 * A secret of zeros ends the program, since anybody could derive the same key.
 *
 * @param[out] key Key of the tcp transport.
 * @param secret Secret of the run.
 */
void tcp_key_derive(uint8_t key[TCP_KEY_BYTES], const struct transport_secret *secret);

/**
 * @brief Begin a handshake with the acceptor's challenge, which contains a new random nonce.
 *
 * @param[out] shake Challenge.
 */
void tcp_challenge_make(struct tcp_handshake *shake);
/**
 * @brief Role of an end that proves possession of the key: the MACs of the two roles differ, so
 * that neither MAC can be sent back as the other.
 */
enum tcp_role { TCP_CONNECTOR = 'c', TCP_ACCEPTOR = 'a' };

/**
 * @brief Add to a handshake the MAC of one end: the connector's claim, or the acceptor's proof.
 *
 * @param shake Handshake so far, with the place; the claim or the proof is added.
 * @param role Role of the end that makes the MAC.
 * @param key Key of the run.
 */
void tcp_prove(struct tcp_handshake *shake, enum tcp_role role, const uint8_t *key);
/**
 * @brief Return whether the claim or the proof in a handshake is the correct MAC of the bytes
 * before it.
 *
 * @param shake Handshake with the claim or the proof.
 * @param role Role of the end that made the MAC.
 * @param key Key of the run.
 * @return True: the MAC is correct.
 */
bool tcp_is_proven(const struct tcp_handshake *shake, enum tcp_role role, const uint8_t *key);

#endif
