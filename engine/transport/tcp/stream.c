/* SPDX-License-Identifier: BSD-3-Clause */
#include "stream.h"

#include "byte_compare.h"

#include <arpa/inet.h>
#include <endian.h>
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

static uint32_t least(uint32_t a, uint32_t b, size_t c)
{
    uint32_t ab = a < b ? a : b;

    return c < ab ? (uint32_t)c : ab;
}

static uint32_t block_length(const struct tcp_script *script, uint64_t sequence, uint64_t before)
{
    uint32_t size = script->drawn.most > 0 ? prng_size(&script->drawn, sequence)
                                           : script->sizes[sequence % script->size_count];
    uint64_t left = script->total - before;

    return left < size ? (uint32_t)left : size;
}

void tcp_cursor_start(struct tcp_cursor *at, const struct tcp_script *script)
{
    *at = (struct tcp_cursor){.length = block_length(script, 0, 0)};
}

void tcp_cursor_next(struct tcp_cursor *at, const struct tcp_script *script)
{
    at->before += at->length;
    at->sequence++;
    at->position = 0;
    at->length = block_length(script, at->sequence, at->before);
}

struct tcp_block_header tcp_cursor_header(const struct tcp_cursor *at,
                                          const struct tcp_script *script)
{
    return (struct tcp_block_header){
        .kind = TCP_KIND_BLOCK,
        .stream = (uint8_t)script->stream,
        .tag = htons(script->tag),
        .sequence = htonl((uint32_t)at->sequence),
        .length = htonl(at->length),
        .src = htons(script->src),
        .dst = htons(script->dst),
    };
}

/* --- source --- */

static void batch_add(struct tcp_batch *batch, const void *data, uint32_t bytes)
{
    /* iovec has no const; sendmsg only reads. */
    batch->iov[batch->count++] = (struct iovec){(void *)(uintptr_t)data, bytes};
    batch->bytes += bytes;
}

void tcp_source_fill(const struct tcp_source *source, struct tcp_batch *batch, size_t budget)
{
    struct tcp_cursor at = source->at;

    batch->count = 0;
    batch->bytes = 0;
    while (batch->bytes < budget && batch->count + 2 <= TCP_BATCH_IOVS && at.length > 0 &&
           !(source->stopping && at.position == 0)) {
        uint32_t head = tcp_cursor_header_bytes(&at);
        uint32_t bytes;

        if (at.position < head) {
            struct tcp_block_header *header = &batch->headers[batch->count];

            *header = tcp_cursor_header(&at, &source->script);
            batch_add(batch, (uint8_t *)header + at.position, head - at.position);
            at.position = head;
        }
        bytes = least(at.length - at.position, TCP_PAYLOAD_RUN,
                      budget > batch->bytes ? budget - batch->bytes : 0);
        if (bytes > 0)
            batch_add(batch, tcp_payload_at(at.sequence, source->script.stream, at.position),
                      bytes);
        at.position += bytes;
        if (at.position == at.length)
            tcp_cursor_next(&at, &source->script);
    }
}

void tcp_source_sent(struct tcp_source *source, size_t bytes, struct flow_side *side)
{
    struct tcp_cursor *at = &source->at;

    side->live.payload_bytes += bytes;
    while (bytes >= at->length - at->position && at->length > 0) {
        bytes -= at->length - at->position;
        tcp_cursor_next(at, &source->script);
        side->live.messages++;
    }
    at->position += (uint32_t)bytes;
}

struct tcp_end_mark tcp_source_end_mark(const struct tcp_source *source)
{
    return (struct tcp_end_mark){
        .kind = TCP_KIND_END,
        .stream = (uint8_t)source->script.stream,
        .tag = htons(source->script.tag),
        .blocks = htonl((uint32_t)source->at.sequence),
        .bytes = htobe64(source->at.before),
    };
}

/* --- sink --- */

static void account(struct tcp_sink *sink, size_t bytes, uint64_t wrong)
{
    sink->side->live.payload_bytes += bytes - wrong;
    if (wrong > 0) {
        sink->side->corrupted += wrong;
        sink->damaged = true;
    }
}

/* A whole header of this stream, but of another block than the one that is due: blocks changed
 * their order, or some are missing. What is due stays where it is due. */
static bool is_misplaced(const struct tcp_sink *sink, const struct tcp_block_header *due)
{
    struct tcp_block_header here = sink->header;

    if (here.sequence == due->sequence)
        return false;
    here.sequence = due->sequence;
    here.length = due->length;
    return memcmp(&here, due, sizeof here) == 0;
}

static void judge_header(struct tcp_sink *sink)
{
    struct tcp_block_header due = tcp_cursor_header(&sink->at, &sink->script);
    uint32_t bytes = tcp_cursor_header_bytes(&sink->at);

    if (bytes < TCP_HEADER_BYTES || !is_misplaced(sink, &due)) {
        account(sink, bytes, differ_bytes(sink->seen, (const uint8_t *)&due, bytes));
        return;
    }
    sink->misplaced = true;
    account(sink, bytes, bytes);
    if ((int32_t)(ntohl(sink->header.sequence) - (uint32_t)sink->at.sequence) < 0)
        sink->side->reordered++;
}

/* Gives the header in passing the ranks of the next hop. */
static void redirect(const struct tcp_sink *sink, uint8_t *data, uint32_t bytes)
{
    struct tcp_block_header header = tcp_cursor_header(&sink->at, sink->onward);
    uint32_t from = sink->at.position;
    const uint32_t ranks = offsetof(struct tcp_block_header, src);

    for (uint32_t i = from > ranks ? from : ranks; i < from + bytes; i++)
        data[i - from] = ((const uint8_t *)&header)[i];
}

static size_t feed_header(struct tcp_sink *sink, uint8_t *data, size_t bytes)
{
    uint32_t head = tcp_cursor_header_bytes(&sink->at);
    uint32_t take = least(head - sink->at.position, head, bytes);

    memcpy(sink->seen + sink->at.position, data, take);
    if (sink->onward)
        redirect(sink, data, take);
    sink->at.position += take;
    if (sink->at.position == head)
        judge_header(sink);
    return take;
}

static size_t feed_payload(struct tcp_sink *sink, const uint8_t *data, size_t bytes)
{
    uint32_t take = least(sink->at.length - sink->at.position, TCP_PAYLOAD_RUN, bytes);

    if (sink->misplaced)
        account(sink, take, take);
    else
        account(sink, take,
                differ_bytes(
                    data, tcp_payload_at(sink->at.sequence, sink->script.stream, sink->at.position),
                    take));
    sink->at.position += take;
    return take;
}

static void end_block(struct tcp_sink *sink)
{
    sink->side->live.messages += !sink->damaged;
    tcp_cursor_next(&sink->at, &sink->script);
    sink->damaged = false;
    sink->misplaced = false;
}

static size_t feed_mark(struct tcp_sink *sink, const uint8_t *data, size_t bytes)
{
    uint32_t take = least(TCP_HEADER_BYTES - sink->at.position, TCP_HEADER_BYTES, bytes);

    memcpy(sink->seen + sink->at.position, data, take);
    sink->at.position += take;
    if (sink->at.position == TCP_HEADER_BYTES) {
        sink->ended = true;
        sink->whole = sink->mark.kind == TCP_KIND_END &&
                      be64toh(sink->mark.bytes) == sink->at.before &&
                      ntohl(sink->mark.blocks) == (uint32_t)sink->at.sequence &&
                      sink->mark.stream == (uint8_t)sink->script.stream &&
                      sink->mark.tag == htons(sink->script.tag);
        if (!sink->whole)
            sink->side->corrupted += TCP_HEADER_BYTES;
    }
    return take;
}

void tcp_sink_feed(struct tcp_sink *sink, uint8_t *data, size_t bytes)
{
    size_t done = 0;

    while (done < bytes && !sink->ended) {
        /* A finished script leaves nothing but the end mark to come. */
        if (sink->at.position == 0 && !sink->ending)
            sink->ending = data[done] == TCP_KIND_END || sink->at.length == 0;
        if (sink->ending)
            done += feed_mark(sink, data + done, bytes - done);
        else if (sink->at.position < tcp_cursor_header_bytes(&sink->at))
            done += feed_header(sink, data + done, bytes - done);
        else
            done += feed_payload(sink, data + done, bytes - done);
        if (!sink->ending && sink->at.position == sink->at.length)
            end_block(sink);
    }
    sink->side->corrupted += bytes - done;
}
