/* SPDX-License-Identifier: BSD-3-Clause */
#include "dpdk_feed.h"

#include "clock.h"
#include "common.h"
#include "frame.h"

#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdlib.h>
#include <x86intrin.h>

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

static struct rte_ring *in, *out;
static struct rte_mempool *pool;
static struct frame_shape shape;
static struct source *sources; /* in a random order */
static uint32_t count, at, random_delay;
static uint64_t made;
static int64_t start_ns; /* 0: stamps are 0 */
struct feed_truth feed_truth;

static void make_source(struct source *source, uint32_t from, uint32_t to)
{
    struct frame_end ends[2] = {
        {.ipv4 = {198, 19, (uint8_t)(from >> 8), (uint8_t)from}, .rank = (uint16_t)from},
        {.ipv4 = {198, 18, 0, 1}, .rank = (uint16_t)to}};

    *source = (struct source){.next = 0};
    frame_template(&source->template, &shape, ends, 0, BED_SIZE);
}

void feed_open(struct bed *bed)
{
    srandom(1); /* the same order in every run */
    bed->conf.vdev = FEED_PORT;
    bed_make_rings("feed", &in, &out, 2 * FEED_CHUNK);
    bed_open(bed);
    count = bed->receive_count;
    frame_shape(&shape, &bed->options, BED_TAG);
    sources = aligned_alloc(_Alignof(struct source), count * sizeof *sources);
    pool = rte_pktmbuf_pool_create("feed", BUFFERS, CACHE, 0, ROOM, SOCKET_ID_ANY);
    if (sources == NULL || pool == NULL)
        bench_fail("out of memory");
    for (uint32_t i = 0; i < count; i++) { /* Fisher-Yates, inside out */
        uint32_t j = (uint32_t)random() % (i + 1);

        sources[i] = sources[j];
        make_source(&sources[j], bed->flows[bed->send_count + i].src, bed->rank);
    }
    bed_start(bed);
    start_ns = bed->stamps ? bed->phase.start_ns : 0;
    (void)feed_drain();
}

/* The number that a source sends now. */
static uint32_t choose(struct source *source, bool reorder)
{
    feed_truth.delivered++;
    if (source->held) {
        source->held = false;
        feed_truth.reordered++;
        return source->next - 2;
    }
    made++;
    if (reorder && made % SWAP_EVERY == 0) {
        source->held = true;
        source->next += 2;
        return source->next - 1;
    }
    if (reorder && made % REPEAT_EVERY == 1 && source->next > 0) {
        feed_truth.delivered--;
        feed_truth.duplicated++;
        return source->next - 1;
    }
    return source->next++;
}

/* Knuth's MMIX generator: the delay's spread matters, not its shape. */
static const struct signature_time *choose_time(struct source *source, int64_t now_ns)
{
    if (start_ns != 0 && source->sent++ % SENDER_BURST == 0) {
        random_delay = random_delay * 1664525 + 1013904223;
        source->time = signature_time(now_ns - start_ns - (random_delay >> DELAY_SHIFT));
    }
    return &source->time;
}

void feed_fill(bool reorder)
{
    int64_t now_ns = clock_now();
    struct rte_mbuf *frames[FEED_CHUNK];

    if (rte_pktmbuf_alloc_bulk(pool, frames, FEED_CHUNK) != 0)
        bench_fail("frames got lost");
    for (uint32_t i = 0; i < FEED_CHUNK; i++) {
        struct source *source = &sources[at];
        uint8_t *frame = (uint8_t *)rte_pktmbuf_append(frames[i], BED_SIZE - FRAME_FCS);
        struct signature *signature = (struct signature *)(frame + shape.payload);
        const struct signature_time *time = choose_time(source, now_ns);

        memcpy(frame, source->template.bytes, BED_SIZE - FRAME_FCS);
        signature_stamp(signature, choose(source, reorder), time,
                        signature_base(signature) + time->sum);
        at = at + 1 < count ? at + 1 : 0;
    }
    if (rte_ring_enqueue_bulk(in, (void **)frames, FEED_CHUNK, NULL) != FEED_CHUNK)
        bench_fail("the ring is not empty");
}

uint64_t feed_poll(struct bed *bed)
{
    uint64_t begin = __rdtsc();

    for (uint32_t i = 0; i < FEED_CHUNK / BED_BURST; i++)
        transport_dpdk.poll(bed->lane, clock_now());
    return __rdtsc() - begin;
}

uint32_t feed_drain(void)
{
    struct rte_mbuf *frames[2 * FEED_CHUNK];
    uint32_t sent = rte_ring_dequeue_burst(out, (void **)frames, 2 * FEED_CHUNK, NULL);

    rte_pktmbuf_free_bulk(frames, sent);
    return sent;
}
