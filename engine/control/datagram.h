/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control datagram: what nodes say to each other over UDP, its bytes, and its seal. No I/O:
 * bytes in, a struct out, or the other way round. The parser is strict: every field in its range,
 * the exact length for its type, so that a datagram has one form only.
 *
 *     offset size
 *          0    2  "SB"
 *          2    1  version
 *          3    1  type
 *          4    8  hash of the run's id
 *         12    4  sender's index
 *         16    4  recipient's index
 *         20    4  the epoch that the sender last entered, DATAGRAM_NONE before the first
 *         24    4  epoch that this is about
 *         28    1  round that this is about
 *         29    3  zero
 *         32   24  origin, receive, transmit time stamp
 *         56   16  sender's offset to node 0's clock, and its bound
 *         72    n  body, by type
 *       72+n   16  seal: BLAKE2b keyed, over all before
 *
 * Numbers are big-endian. The time stamps are those of RFC 5905, 8 (the fourth, destination, is
 * taken on arrival and not sent), in ns of the clock of the node that took them: origin is the
 * transmit stamp of the last datagram that the sender had from this recipient, receive the time
 * when that came; both DATAGRAM_NO_TIME when there was none.
 *
 * A barrier's values are 2 bytes, bit i: maximum i says something; 8 bytes for each that does; and
 * 4 bytes of states. Most barriers say little, and a seal costs by the block of 128 bytes.
 */
#ifndef ENGINE_DATAGRAM_H
#define ENGINE_DATAGRAM_H

#include "blob.h"
#include "values.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DATAGRAM_VERSION 3
#define DATAGRAM_KEY_BYTES 32
#define DATAGRAM_SEAL_BYTES 16
#define DATAGRAM_NONCE_BYTES 16
#define DATAGRAM_HASH_BYTES 32
#define DATAGRAM_MAX 400
#define DATAGRAM_NONE UINT32_MAX
#define DATAGRAM_NO_TIME INT64_MIN

enum datagram_type {
    DATAGRAM_JOIN = 1, /* child to parent: nonces, the hash of the subtree (handshake.h) */
    DATAGRAM_SESSION,  /* parent to child: nonces, the hash of the whole tree */
    DATAGRAM_WARNING,  /* an abort to a node that has no session key yet */
    DATAGRAM_ARRIVAL,  /* barrier: all of rounds 0..round-1 arrived, their values (barrier.h) */
    DATAGRAM_QUESTION, /* barrier: your arrival of this round has not come */
    DATAGRAM_PATIENCE, /* barrier: because I wait myself, in the end for `awaited` */
    DATAGRAM_ABORT,    /* a node is missing or gives up (abort_broadcast.h) */
    DATAGRAM_FETCH,    /* asks for a published blob */
    DATAGRAM_BLOB,     /* and its answer */
    DATAGRAM_BEAT,     /* node 0 lives */
    DATAGRAM_PING,     /* asks for time stamps */
    DATAGRAM_PONG,     /* and its answer */
    DATAGRAM_TYPES
};

struct datagram_handshake {
    uint8_t nonce[DATAGRAM_NONCE_BYTES]; /* the sender's */
    uint8_t echo[DATAGRAM_NONCE_BYTES];  /* the recipient's, as the sender knows it; else zero */
    uint8_t hash[DATAGRAM_HASH_BYTES];   /* of the subtree or of the whole; zero unless `whole` */
    uint64_t boot;                       /* hash of what makes the sender's clock one with others */
    uint64_t root_boot;                  /* node 0's; in SESSION with `whole` */
    bool whole;
    bool refused; /* SESSION: the run began with another process in the recipient's place */
    /* With `whole`. JOIN: the subtree is on one machine; SESSION: all nodes are, and are more than
     * its cores. */
    bool crowded;
};

struct datagram_abort {
    bool heard; /* the sender has this abort from the recipient, and needs no answer */
    struct control_fault fault;
};

struct datagram_blob {
    uint64_t id;
    struct blob blob; /* empty in FETCH */
};

struct datagram {
    enum datagram_type type;
    uint64_t run;
    uint32_t sender;
    uint32_t recipient;
    uint32_t entered;
    uint32_t epoch;
    uint8_t round;
    int64_t origin_ns;
    int64_t receive_ns;
    int64_t transmit_ns;
    int64_t root_offset_ns;
    int64_t root_bound_ns; /* -1: unknown */
    union {
        struct datagram_handshake handshake; /* JOIN, SESSION */
        struct barrier_values values;        /* ARRIVAL */
        uint32_t awaited;                    /* PATIENCE */
        struct datagram_abort abort;         /* WARNING, ABORT */
        struct datagram_blob blob;           /* FETCH, BLOB */
    };
};

/* Where the state machines hand over what they want sent: type, recipient, epoch, round and body
 * are filled in, the rest is the outlet's work. */
struct datagram_outlet {
    void (*send)(void *context, struct datagram *datagram);
    void *context;
};

/* Writes the datagram and its seal; returns its size. An abort's text must be printable ASCII. */
size_t datagram_write(const struct datagram *datagram, const uint8_t key[DATAGRAM_KEY_BYTES],
                      uint8_t bytes[DATAGRAM_MAX]);

/* Reads a datagram without judging its seal. 0, or -EBADMSG. */
int datagram_read(struct datagram *datagram, const uint8_t *bytes, size_t size);

/* Whether the seal of these bytes was made with this key; in constant time. */
bool datagram_sealed(const uint8_t *bytes, size_t size, const uint8_t key[DATAGRAM_KEY_BYTES]);

#endif
