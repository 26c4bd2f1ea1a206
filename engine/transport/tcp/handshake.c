/* SPDX-License-Identifier: BSD-3-Clause */
#include "handshake.h"

#include <arpa/inet.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

void tcp_key_derive(uint8_t key[TCP_KEY_BYTES], const struct transport_secret *secret)
{
    static const char purpose[] = "switchbench tcp";
    crypto_generichash_state state;
    const char *run_id = secret->run_id ? secret->run_id : "";

    if (sodium_is_zero(secret->key, sizeof secret->key))
        abort(); /* unlike assert, in release builds too */
    crypto_generichash_init(&state, secret->key, sizeof secret->key, TCP_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)purpose, sizeof purpose);
    crypto_generichash_update(&state, (const uint8_t *)run_id, strlen(run_id));
    crypto_generichash_final(&state, key, TCP_KEY_BYTES);
    sodium_memzero(&state, sizeof state);
}

void tcp_challenge_make(struct tcp_challenge *challenge)
{
    challenge->magic = htonl(TCP_MAGIC);
    randombytes_buf(challenge->nonce, sizeof challenge->nonce);
}

bool tcp_challenge_valid(const struct tcp_challenge *challenge)
{
    return challenge->magic == htonl(TCP_MAGIC);
}

/* The role makes the two directions' MACs differ, so neither can be sent back as the other. */
static void make_mac(uint8_t mac[TCP_MAC_BYTES], char role, const struct tcp_claim *claim,
                     const struct tcp_challenge *challenge, const uint8_t *key)
{
    uint8_t text[1 + sizeof *challenge + offsetof(struct tcp_claim, mac)];

    text[0] = (uint8_t)role;
    memcpy(text + 1, challenge, sizeof *challenge);
    memcpy(text + 1 + sizeof *challenge, claim, offsetof(struct tcp_claim, mac));
    crypto_generichash(mac, TCP_MAC_BYTES, text, sizeof text, key, TCP_KEY_BYTES);
}

static bool is_mac(const uint8_t mac[TCP_MAC_BYTES], char role, const struct tcp_claim *claim,
                   const struct tcp_challenge *challenge, const uint8_t *key)
{
    uint8_t due[TCP_MAC_BYTES];

    make_mac(due, role, claim, challenge, key);
    return sodium_memcmp(due, mac, sizeof due) == 0;
}

/* From host to network byte order, or back. */
static struct tcp_place swap(const struct tcp_place *place)
{
    return (struct tcp_place){
        .trial = htonl(place->trial),
        .phase = htonl(place->phase),
        .src = htonl(place->src),
        .dst = htonl(place->dst),
        .tag = htons(place->tag),
        .stream = htons(place->stream),
    };
}

void tcp_claim_make(struct tcp_claim *claim, const struct tcp_place *place,
                    const struct tcp_challenge *challenge, const uint8_t *key)
{
    *claim = (struct tcp_claim){.magic = htonl(TCP_MAGIC), .place = swap(place)};
    randombytes_buf(claim->nonce, sizeof claim->nonce);
    make_mac(claim->mac, 'c', claim, challenge, key);
}

bool tcp_claim_valid(const struct tcp_claim *claim, const struct tcp_challenge *challenge,
                     const uint8_t *key, struct tcp_place *place)
{
    *place = swap(&claim->place);
    return claim->magic == htonl(TCP_MAGIC) && is_mac(claim->mac, 'c', claim, challenge, key);
}

void tcp_proof_make(struct tcp_proof *proof, const struct tcp_claim *claim,
                    const struct tcp_challenge *challenge, const uint8_t *key)
{
    make_mac(proof->mac, 'a', claim, challenge, key);
}

bool tcp_proof_valid(const struct tcp_proof *proof, const struct tcp_claim *claim,
                     const struct tcp_challenge *challenge, const uint8_t *key)
{
    return is_mac(proof->mac, 'a', claim, challenge, key);
}
