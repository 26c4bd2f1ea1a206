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

void tcp_challenge_make(struct tcp_handshake *shake)
{
    shake->greeting = htonl(TCP_MAGIC);
    randombytes_buf(shake->acceptor_nonce, sizeof shake->acceptor_nonce);
}

static void make_mac(uint8_t mac[TCP_MAC_BYTES], const struct tcp_handshake *shake,
                     enum tcp_role role, const uint8_t *key)
{
    uint8_t text[1 + offsetof(struct tcp_handshake, claim)];

    text[0] = (uint8_t)role;
    memcpy(text + 1, shake, sizeof text - 1);
    crypto_generichash(mac, TCP_MAC_BYTES, text, sizeof text, key, TCP_KEY_BYTES);
}

void tcp_prove(struct tcp_handshake *shake, enum tcp_role role, const uint8_t *key)
{
    if (role == TCP_CONNECTOR) {
        shake->magic = htonl(TCP_MAGIC);
        randombytes_buf(shake->connector_nonce, sizeof shake->connector_nonce);
    }
    make_mac(role == TCP_CONNECTOR ? shake->claim : shake->proof, shake, role, key);
}

bool tcp_is_proven(const struct tcp_handshake *shake, enum tcp_role role, const uint8_t *key)
{
    uint8_t due[TCP_MAC_BYTES];

    make_mac(due, shake, role, key);
    return shake->magic == htonl(TCP_MAGIC) &&
           sodium_memcmp(due, role == TCP_CONNECTOR ? shake->claim : shake->proof, sizeof due) == 0;
}
