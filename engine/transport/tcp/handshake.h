/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief How the ends of a connection prove to each other that they hold the run's key, without any
 * I/O: the acceptor sends a nonce, the connector claims a place with a keyed MAC over that nonce
 * and its own, the acceptor answers with a MAC of its own.
 *
 * Keyed BLAKE2b (crypto_generichash), 16 bytes. What follows on the connection is not
 * authenticated, but verified byte by byte.
 *
 *     acceptor    challenge                     proof
 *     connector              claim                     message ... message, end mark
 *
 * All of it travels in network byte order.
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

struct tcp_challenge {
    uint32_t magic;
    uint8_t nonce[TCP_NONCE_BYTES];
};

/** @brief The place that a connection claims: stream `stream` of a flow in a phase. */
struct tcp_place {
    uint32_t trial;
    uint32_t phase;
    uint32_t src; /**< ranks */
    uint32_t dst;
    uint16_t tag;
    uint16_t stream; /**< which of the flow's connections */
};

/** @brief Who connects and what for. */
struct tcp_claim {
    uint32_t magic;
    struct tcp_place place; /**< in network byte order */
    uint8_t nonce[TCP_NONCE_BYTES];
    uint8_t mac[TCP_MAC_BYTES]; /**< over the challenge's nonce and all of the above */
};

struct tcp_proof {
    uint8_t mac[TCP_MAC_BYTES]; /**< over both nonces and the claim, as the acceptor */
};

static_assert(sizeof(struct tcp_challenge) == 20, "layout");
static_assert(sizeof(struct tcp_claim) == 56 && offsetof(struct tcp_claim, mac) == 40, "layout");
static_assert(sizeof(struct tcp_proof) == 16, "layout");

/**
 * @brief Derive this transport's key of a run: no MAC here is of use elsewhere.
 *
 * The run's key must be known: a key of zeros ends the program, since anybody could derive the
 * same.
 *
 * @param key Takes the key.
 * @param secret The run's.
 */
void tcp_key_derive(uint8_t key[TCP_KEY_BYTES], const struct transport_secret *secret);

/**
 * @brief Make a challenge with a nonce of its own.
 *
 * @param challenge Takes the challenge.
 */
void tcp_challenge_make(struct tcp_challenge *challenge);
/**
 * @brief Return whether the other side speaks this protocol.
 *
 * @param challenge Challenge, as it came.
 * @return True: it does.
 */
bool tcp_challenge_valid(const struct tcp_challenge *challenge);

/**
 * @brief Claim a place, in answer to a challenge.
 *
 * @param claim Takes the claim.
 * @param place Place, in host byte order.
 * @param challenge Challenge that is answered.
 * @param key Key of the run.
 */
void tcp_claim_make(struct tcp_claim *claim, const struct tcp_place *place,
                    const struct tcp_challenge *challenge, const uint8_t *key);
/**
 * @brief Return whether a claim was made with the key for this challenge.
 *
 * @param claim Claim, as it came.
 * @param challenge Challenge that it answers.
 * @param key Key of the run.
 * @param place Takes what a valid one claims, in host byte order.
 * @return True: it was.
 */
bool tcp_claim_valid(const struct tcp_claim *claim, const struct tcp_challenge *challenge,
                     const uint8_t *key, struct tcp_place *place);

/**
 * @brief Make the acceptor's proof.
 *
 * @param proof Takes the proof.
 * @param claim Claim that is answered.
 * @param challenge Challenge that the claim answered.
 * @param key Key of the run.
 */
void tcp_proof_make(struct tcp_proof *proof, const struct tcp_claim *claim,
                    const struct tcp_challenge *challenge, const uint8_t *key);
/**
 * @brief Return whether a proof was made with the key for this claim.
 *
 * @param proof Proof, as it came.
 * @param claim Claim that it answers.
 * @param challenge Challenge that the claim answered.
 * @param key Key of the run.
 * @return True: it was.
 */
bool tcp_proof_valid(const struct tcp_proof *proof, const struct tcp_claim *claim,
                     const struct tcp_challenge *challenge, const uint8_t *key);

#endif
