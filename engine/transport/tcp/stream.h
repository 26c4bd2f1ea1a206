/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One stream as both ends know it: which blocks it is made of (the script), how far one has come
 * (the cursor), the end that makes it (the source) and the end that verifies it (the sink). No
 * I/O here: a source names the bytes to send next, a sink is fed what came, in pieces of any size.
 */
#ifndef ENGINE_TCP_STREAM_H
#define ENGINE_TCP_STREAM_H

#include "counters.h"
#include "prng.h"
#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* --- payload --- */

/* The bytes that blocks carry: a fixed pseudo-random sequence, repeated, entered at a place that
 * depends on the block's sequence and stream. Both ends hold the same buffer, so sending copies
 * nothing in user space and verifying is a memcmp. The place does not depend on the ranks, so a
 * forwarding rank sends on the payload as it came. The period is a prime, so that data that moved
 * by a power of two (a page, a buffer) is not mistaken for the right data. */
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

/* --- script --- */

struct tcp_script {
    const uint32_t *sizes; /* of the blocks in turn, again and again; owned by the lane */
    uint32_t size_count;
    struct prng_sizes drawn; /* unless its most is 0: instead of `sizes` */
    uint64_t total; /* bytes, then the end mark (the last block is shortened); or FLOW_ENDLESS */
    uint16_t stream;
    uint16_t tag;
    uint16_t src;
    uint16_t dst;
};

struct tcp_cursor {
    uint64_t sequence; /* of the present block */
    uint64_t before;   /* bytes of the blocks before it */
    uint32_t length;   /* of the present block; 0: the script is at its end */
    uint32_t position; /* in the present block */
};

void tcp_cursor_start(struct tcp_cursor *at, const struct tcp_script *script);
/* Begins the next block. */
void tcp_cursor_next(struct tcp_cursor *at, const struct tcp_script *script);
struct tcp_block_header tcp_cursor_header(const struct tcp_cursor *at,
                                          const struct tcp_script *script);

static inline uint64_t tcp_cursor_bytes(const struct tcp_cursor *at)
{
    return at->before + at->position;
}

/* How many bytes of the present block are header. */
static inline uint32_t tcp_cursor_header_bytes(const struct tcp_cursor *at)
{
    return at->length < TCP_HEADER_BYTES ? at->length : TCP_HEADER_BYTES;
}

/* --- source --- */

struct tcp_source {
    struct tcp_script script;
    struct tcp_cursor at;
    bool stopping;      /* begin no further block */
    uint32_t mark_sent; /* bytes of the end mark that are sent */
};

/* What one system call is to send. Rebuilt from the source each time: it keeps nothing. */
#define TCP_BATCH_IOVS 1024
struct tcp_batch {
    struct iovec iov[TCP_BATCH_IOVS];
    struct tcp_block_header headers[TCP_BATCH_IOVS];
    unsigned count; /* of iov */
    size_t bytes;
};

/* All blocks are sent: now the end mark. */
static inline bool tcp_source_at_end(const struct tcp_source *source)
{
    return source->at.position == 0 && (source->stopping || source->at.length == 0);
}

/* The next bytes of the blocks, `budget` at most but for what completes a header. */
void tcp_source_fill(const struct tcp_source *source, struct tcp_batch *batch, size_t budget);
/* `bytes` of blocks were sent: accounts them at the flow's side. */
void tcp_source_sent(struct tcp_source *source, size_t bytes, struct flow_side *side);
struct tcp_end_mark tcp_source_end_mark(const struct tcp_source *source);

/* --- sink --- */

struct tcp_sink {
    struct tcp_script script;
    struct tcp_cursor at;
    struct flow_side *side;
    bool damaged;   /* the present block has had other bytes than expected */
    bool misplaced; /* it is another block than the one that was due: nothing in it counts */
    bool ending;    /* the end mark is being read */
    bool ended;     /* it was read: nothing may follow */
    bool whole;     /* and the stream was as long as it says */
    union {
        uint8_t seen[TCP_HEADER_BYTES]; /* header or end mark so far */
        struct tcp_block_header header;
        struct tcp_end_mark mark;
    };
    const struct tcp_script *onward; /* a forwarding rank's next hop: its ranks are written over
                                        those in the headers as they pass; else NULL */
};

/* Verifies `bytes` that came next and accounts them: payload_bytes are those that were what and
 * where they had to be (headers included, the end mark not), messages are blocks without a wrong
 * byte. What follows an end mark is corrupted. Writes to `data` where `onward` asks for it. */
void tcp_sink_feed(struct tcp_sink *sink, uint8_t *data, size_t bytes);

#endif
