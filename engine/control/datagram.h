/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The control datagram: what nodes say to each other over UDP, its bytes, and its seal.
 *
 * No I/O: bytes in, a struct out, or the other way round. The parser is strict: every field in its
 * range, the exact length for its type, so that a datagram has one form only.
 *
 *     offset size
 *          0    2  "SB"
 *          2    1  version
 *          3    1  type
 *          4    4  sender's index
 *          8    4  recipient's index
 *         12    4  the epoch that the sender last entered, DATAGRAM_NONE before the first
 *         16    4  epoch that this is about
 *         20    1  round that this is about
 *         21    3  zero
 *         24    8  the nonce of the sender's process
 *         32    8  the recipient's, as the sender knows it; 0: it does not
 *         40   24  origin, receive, transmit time stamp
 *         64   16  sender's offset to node 0's clock, and its bound
 *         80    n  body, by type
 *       80+n   16  seal: BLAKE2b keyed, over all before
 *
 * Numbers are big-endian. The time stamps are those of RFC 5905, 8 (the fourth, destination, is
 * taken on arrival and not sent), in ns of the clock of the node that took them: origin is the
 * transmit stamp of the last datagram that the sender had from this recipient, receive the time
 * when that came; both DATAGRAM_NO_TIME when there was none.
 *
 * A barrier's values are 2 bytes, bit i: maximum i says something; 8 bytes for each that does; and
 * 4 bytes of states. Most barriers say little, and a seal costs by the block of 128 bytes.
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

#define DATAGRAM_VERSION 4
#define DATAGRAM_KEY_BYTES 32
#define DATAGRAM_SEAL_BYTES 16
#define DATAGRAM_MAX 400
#define DATAGRAM_NONE UINT32_MAX
#define DATAGRAM_NO_TIME INT64_MIN

enum datagram_type {
    DATAGRAM_HELLO = 1, /**< this is my nonce (membership.h) */
    DATAGRAM_ARRIVAL,   /**< barrier: all of rounds 0..round-1 arrived, their values (barrier.h) */
    DATAGRAM_QUESTION,  /**< barrier: your arrival of this round has not come */
    DATAGRAM_PATIENCE,  /**< barrier: because I wait myself */
    DATAGRAM_ABORT,     /**< a node is missing or gives up (membership.h) */
    DATAGRAM_FETCH,     /**< asks for a published blob */
    DATAGRAM_BLOB,      /**< and its answer */
    DATAGRAM_BEAT,      /**< node 0 lives; down the tree */
    DATAGRAM_PING,      /**< asks for time stamps */
    DATAGRAM_PONG,      /**< and its answer */
    DATAGRAM_TYPES
};

struct datagram_abort {
    bool heard; /**< the sender has this abort from the recipient, and needs no answer */
    struct control_fault fault;
};

struct datagram_blob {
    uint64_t id;
    struct blob blob; /**< empty in FETCH */
};

struct datagram {
    enum datagram_type type;
    uint32_t sender;
    uint32_t recipient;
    uint32_t entered;
    uint32_t epoch;
    uint8_t round;
    uint64_t from; /**< nonces: the sender's, ... */
    uint64_t to;   /**< ... and the recipient's, or 0 */
    int64_t origin_ns;
    int64_t receive_ns;
    int64_t transmit_ns;
    int64_t root_offset_ns;
    int64_t root_bound_ns; /**< -1: unknown */
    union {
        struct barrier_values values; /**< ARRIVAL */
        struct datagram_abort abort;  /**< ABORT */
        struct datagram_blob blob;    /**< FETCH, BLOB */
    };
};

/**
 * @brief Where the state machines hand over what they want sent: type, recipient, epoch, round and
 * body are filled in, the rest is the outlet's work.
 */
struct datagram_outlet {
    void (*send)(void *context, struct datagram *datagram);
    void *context;
};

/**
 * @brief Write the datagram and its seal.
 *
 * An abort's text must be printable ASCII.
 *
 * @param datagram Datagram.
 * @param key Key of the run.
 * @param bytes Takes the bytes.
 * @return Bytes written.
 */
size_t datagram_write(const struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES],
                      uint8_t bytes[DATAGRAM_MAX]);

/**
 * @brief Read a datagram without judging its seal.
 *
 * @param datagram Takes what was read.
 * @param bytes Bytes.
 * @param size Bytes that there are or that may be written.
 * @return 0; -EBADMSG: not exactly the form of its type.
 */
int datagram_read(struct datagram *datagram, const uint8_t *bytes, size_t size);

/**
 * @brief Return whether the seal of these bytes was made with this key; in constant time.
 *
 * @param bytes Bytes.
 * @param size Bytes that there are or that may be written.
 * @param key Key of the run.
 * @return True: it was.
 */
bool datagram_sealed(const uint8_t *bytes, size_t size, const uint8_t key[DATAGRAM_KEY_BYTES]);

#endif
