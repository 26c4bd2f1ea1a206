/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk_feed.h"

#include "clock.h"
#include "frame.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdlib.h>

#define BUFFERS 2047u
#define CACHE 256u
#define ROOM (FRAME_TEMPLATE + RTE_PKTMBUF_HEADROOM)
#define SWAP_EVERY 128
#define REPEAT_EVERY 1024
#define SENDER_BURST 32
#define DELAY_SHIFT 18 /* 2^32 to 16 us */

struct source {
    struct frame_template template;
    struct signature_time time; /* of its burst */
    uint32_t sent;              /* of that */
    uint32_t next;
    bool held; /* next - 2 has not been sent yet */
};

struct feed {
    struct rte_ring *in;
    struct rte_ring *out;
    struct rte_mempool *pool;
    struct source *sources;
    uint32_t *order;
    uint32_t count;
    uint32_t at;
    uint32_t payload; /* offset of the signature */
    uint64_t made;
    struct feed_truth truth;
    int64_t start_ns; /* 0: stamps are 0 */
    uint32_t random;
};

static void make_source(struct source *source, const struct frame_shape *shape, uint32_t from,
                        uint32_t to)
{
    struct frame_end ends[2] = {{.ipv4 = {198, 19, (uint8_t)(from >> 8), (uint8_t)from}},
                                {.ipv4 = {198, 18, 0, 1}}};

    ends[0].rank = (uint16_t)from;
    ends[1].rank = (uint16_t)to;
    frame_template(&source->template, shape, ends, 0, BED_SIZE);
}

/* Fisher-Yates, with the same order in every run. */
static void shuffle(struct feed *feed)
{
    srandom(1);
    for (uint32_t i = 0; i < feed->count; i++)
        feed->order[i] = i;
    for (uint32_t i = feed->count; i > 1; i--) {
        uint32_t j = (uint32_t)random() % i, kept = feed->order[i - 1];

        feed->order[i - 1] = feed->order[j];
        feed->order[j] = kept;
    }
}

struct feed *feed_make(const struct bed *bed)
{
    struct dpdk_options options = {.header = HEADER_IPV4_UDP, .ttl = 64};
    struct feed *feed = calloc(1, sizeof *feed);
    struct frame_shape shape;

    if (feed == NULL)
        bed_fail("out of memory");
    bed_make_rings("feed", &feed->in, &feed->out, 2 * FEED_CHUNK);
    frame_shape(&shape, &options, BED_TAG);
    feed->payload = shape.payload;
    feed->count = bed->receive_count;
    feed->order = calloc(feed->count, sizeof *feed->order);
    feed->sources = aligned_alloc(_Alignof(struct source), feed->count * sizeof *feed->sources);
    feed->pool = rte_pktmbuf_pool_create("feed", BUFFERS, CACHE, 0, ROOM, SOCKET_ID_ANY);
    if (feed->order == NULL || feed->sources == NULL || feed->pool == NULL)
        bed_fail("out of memory");
    for (uint32_t i = 0; i < feed->count; i++) {
        feed->sources[i] = (struct source){.next = 0};
        make_source(&feed->sources[i], &shape, i < bed->rank ? i : i + 1, bed->rank);
    }
    shuffle(feed);
    return feed;
}

/* The number that a source sends now. */
static uint32_t choose(struct feed *feed, struct source *source, bool reorder)
{
    feed->truth.delivered++;
    if (source->held) {
        source->held = false;
        feed->truth.reordered++;
        return source->next - 2;
    }
    feed->made++;
    if (reorder && feed->made % SWAP_EVERY == 0) {
        source->held = true;
        source->next += 2;
        return source->next - 1;
    }
    if (reorder && feed->made % REPEAT_EVERY == 1 && source->next > 0) {
        feed->truth.delivered--;
        feed->truth.duplicated++;
        return source->next - 1;
    }
    return source->next++;
}

void feed_stamp(struct feed *feed, int64_t start_ns)
{
    feed->start_ns = start_ns;
}

/* Knuth's MMIX generator: the delay's spread matters, not its shape. */
static const struct signature_time *choose_time(struct feed *feed, struct source *source,
                                                int64_t now_ns)
{
    if (feed->start_ns != 0 && source->sent++ % SENDER_BURST == 0) {
        feed->random = feed->random * 1664525 + 1013904223;
        source->time = signature_time(now_ns - feed->start_ns - (feed->random >> DELAY_SHIFT));
    }
    return &source->time;
}

void feed_fill(struct feed *feed, bool reorder)
{
    int64_t now_ns = clock_now();
    struct rte_mbuf *frames[FEED_CHUNK];

    if (rte_pktmbuf_alloc_bulk(feed->pool, frames, FEED_CHUNK) != 0)
        bed_fail("frames got lost");
    for (uint32_t i = 0; i < FEED_CHUNK; i++) {
        struct source *source = &feed->sources[feed->order[feed->at]];
        uint8_t *frame = (uint8_t *)rte_pktmbuf_append(frames[i], BED_SIZE - FRAME_FCS);
        struct signature *signature = (struct signature *)(frame + feed->payload);
        const struct signature_time *time;

        time = choose_time(feed, source, now_ns);
        memcpy(frame, source->template.bytes, BED_SIZE - FRAME_FCS);
        signature_stamp(signature, choose(feed, source, reorder), time,
                        signature_base(signature) + time->sum);
        feed->at = feed->at + 1 < feed->count ? feed->at + 1 : 0;
    }
    if (rte_ring_enqueue_bulk(feed->in, (void **)frames, FEED_CHUNK, NULL) != FEED_CHUNK)
        bed_fail("the ring is not empty");
}

uint32_t feed_drain(struct feed *feed)
{
    struct rte_mbuf *frames[2 * FEED_CHUNK];
    uint32_t count = rte_ring_dequeue_burst(feed->out, (void **)frames, 2 * FEED_CHUNK, NULL);

    rte_pktmbuf_free_bulk(frames, count);
    return count;
}

struct feed_truth feed_truth(const struct feed *feed)
{
    return feed->truth;
}
