/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Control datagram that nodes exchange over UDP: its fields, its bytes and its seal.
 *
 * No I/O. `struct datagram` is laid out as its bytes are sent, little-endian, from the beginning as
 * far as its type and its values reach. A seal of 16 bytes follows: BLAKE2b keyed, over all bytes
 * before. The parser is strict: every field in its range, the exact length for its type.
 *
 * The time stamps are those of RFC 5905, 8 (the fourth, destination, is taken on arrival and not
 * sent), in ns of the clock of the node that took them. Origin is the transmit stamp of the last
 * datagram that the sender had from this recipient, receive is the time of its arrival; both are
 * DATAGRAM_NO_TIME when there was none.
 *
 * Unset maxima at the end of a barrier's values are not sent. Most barriers set few, and a seal
 * costs by the block of 128 bytes.
 *
 * @see RFC 5905, section 8, for the time stamps
 */
#ifndef ENGINE_DATAGRAM_H
#define ENGINE_DATAGRAM_H

#include "blob.h"
#include "values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATAGRAM_VERSION 5
#define DATAGRAM_KEY_BYTES 32
#define DATAGRAM_SEAL_BYTES 16
#define DATAGRAM_NONE UINT32_MAX
#define DATAGRAM_NO_TIME INT64_MIN

enum datagram_type {
    DATAGRAM_HELLO = 1, /**< the sender's nonce (membership.h) */
    DATAGRAM_ARRIVAL,   /**< barrier: all arrivals of rounds 0..round-1 with their values */
    DATAGRAM_QUESTION,  /**< barrier: the recipient's arrival of this round is missing */
    DATAGRAM_ABORT,     /**< a node is missing or gives up */
    DATAGRAM_FETCH,     /**< request for a published blob */
    DATAGRAM_BLOB,      /**< answer to FETCH; origin is FETCH's transmit stamp */
    DATAGRAM_BEAT,      /**< heartbeat of node 0, sent down the tree */
    DATAGRAM_PING,      /**< request for time stamps */
    DATAGRAM_PONG,      /**< answer to PING, and to QUESTION from a node that waits itself */
    DATAGRAM_TYPES
};

struct datagram {
    char magic[2]; /**< "SB", set by datagram_write(), as is the version */
    uint8_t version;
    uint8_t type;
    uint32_t sender; /**< index of the node, as is the recipient */
    uint32_t recipient;
    uint32_t entered; /**< epoch that the sender last entered; DATAGRAM_NONE before the first */
    uint32_t epoch;   /**< epoch of the datagram, followed by its round */
    uint8_t round;
    uint8_t zero[3];
    uint64_t from; /**< nonce of the sender's process */
    uint64_t to;   /**< nonce of the recipient's process; 0: unknown to the sender */
    int64_t origin_ns;
    int64_t receive_ns;
    int64_t transmit_ns;
    int64_t root_offset_ns; /**< sender's offset to node 0's clock */
    int64_t root_bound_ns;  /**< bound of this offset; -1: unknown */
    union {
        struct barrier_values values; /**< ARRIVAL */
        struct control_fault fault;   /**< ABORT; its text is printable ASCII */
        struct {
            uint64_t id;
            struct blob blob; /**< not in FETCH */
        };                    /**< FETCH, BLOB */
    };
};

#define DATAGRAM_MAX (sizeof(struct datagram) + DATAGRAM_SEAL_BYTES)

/**
 * @brief Derive the key of a run's datagrams.
 *
 * @param key Takes the key.
 * @param run_key The run's, which comes from the controller.
 * @param run_id The run's name.
 * @param count Nodes.
 */
void datagram_key(uint8_t key[DATAGRAM_KEY_BYTES], const uint8_t run_key[DATAGRAM_KEY_BYTES],
                  const char *run_id, uint32_t count);
/**
 * @brief Write the seal of some bytes directly behind the bytes.
 *
 * @param bytes Bytes, with room for DATAGRAM_SEAL_BYTES more.
 * @param size Bytes to be sealed.
 * @param key Key of the datagrams.
 */
void datagram_seal(uint8_t *bytes, size_t size, const uint8_t key[DATAGRAM_KEY_BYTES]);
/**
 * @brief Write a datagram and its seal as bytes.
 *
 * @param datagram Datagram; its magic, version and count of maxima are set.
 * @param key Key of the datagrams.
 * @param bytes Takes the bytes.
 * @return Bytes written.
 */
size_t datagram_write(struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES],
                      uint8_t bytes[DATAGRAM_MAX]);
/**
 * @brief Read a datagram if its seal matches the key, compared in constant time.
 *
 * @param datagram Takes what was read.
 * @param bytes Bytes.
 * @param size Bytes that there are.
 * @param key Key of the datagrams.
 * @return False: it was not, or the bytes are not exactly the form of their type.
 */
bool datagram_read(struct datagram *datagram, const uint8_t *bytes, size_t size,
                   const uint8_t key[DATAGRAM_KEY_BYTES]);

#endif
