/* SPDX-License-Identifier: BSD-3-Clause */
#include "sender_setup.h"

#include "burst.h"
#include "lane_sizes.h"
#include "partner.h"
#include "prefill.h"
#include "prng.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Of all that a lane chooses at random. */
struct sender_seed {
    uint64_t seed;
    uint64_t n; /* drawn from it */
};

/* Seeds are the configuration's, so the order is the same in every run. */
static uint64_t draw(struct sender_seed *seed)
{
    return prng_bits(seed->seed, seed->n++);
}

static void swap(struct sender_stream *a, struct sender_stream *b)
{
    struct sender_stream kept = *a;

    *a = *b;
    *b = kept;
}

/* Fisher-Yates. */
static void shuffle(struct sender *sender, struct sender_seed *seed)
{
    for (uint32_t i = sender->count; i > 1; i--)
        swap(&sender->streams[i - 1], &sender->streams[(uint32_t)(((draw(seed) >> 32) * i) >> 32)]);
}

/* The flows in their order, and again with the next of their UDP source ports. */
static void interleave(struct sender *sender, uint32_t sources)
{
    uint32_t flows = sender->count / sources;

    for (uint32_t i = 0; i < sender->count; i++)
        sender->streams[i].place = i % flows * sources + i / flows;
}

/* Frames that do not divide by a flow's streams: those with one more go first in each round, so
 * that the last round, cut short, is theirs. */
static void put_longer_first(struct dpdk_lane *lane)
{
    struct sender *sender = &lane->sender;
    uint32_t sources = lane->receiver.sources, front = 0;
    uint64_t quota = lane_frames(lane, 1);

    if (quota == UINT64_MAX)
        return;
    for (uint32_t i = 0; i < sender->count; i++)
        if (sender->streams[i].place % sources < quota % sources)
            swap(&sender->streams[front++], &sender->streams[i]);
}

/* The load in the pace's cost (bits at layer 1, or frames) a second; 0: unlimited. */
static double choose_rate(struct dpdk_lane *lane)
{
    const struct load *load = &lane->lane.request.phase->load;
    double rate = load->unlimited ? 0 : load->rate_bps > 0 ? load->rate_bps : load->rate_fps;

    if (lane->lane.request.share > 0)
        rate *= lane->lane.request.share;
    for (uint32_t i = 0; i < lane->size_count; i++)
        lane->sizes[i].cost = load->unlimited || load->rate_bps <= 0
                                  ? 1
                                  : 8 * (lane->sizes[i].frame_bytes + FRAME_OVERHEAD_L1);
    return rate;
}

/* The schedule begins at a seeded random moment of its first interval, so that the senders of a
 * phase do not march in step. */
static void schedule(struct dpdk_lane *lane, struct sender_seed *seed)
{
    const struct phase *phase = lane->lane.request.phase;
    struct sender *sender = &lane->sender;
    double rate = choose_rate(lane);
    uint64_t sum = 0;
    double part = (double)(draw(seed) >> 11) / (double)(UINT64_C(1) << 53);

    assert(lane->order_count > 0);
    for (uint32_t i = 0; i < lane->order_count; i++)
        sum += lane->sizes[lane->order[i]].cost;
    sender->cost = (uint32_t)(sum / lane->order_count);
    if (phase->traffic == TRAFFIC_BURST) { /* all ports at once, and nothing is given up */
        pace_init(&sender->pace, rate, PACE_CATCH_UP_ALL, phase->start_ns);
        return;
    }
    pace_init(&sender->pace, rate, dpdk_options(phase)->catch_up,
              phase->start_ns + (rate > 0 ? (int64_t)(part * sender->cost / rate * 1e9) : 0));
    pace_dither(&sender->pace, dpdk_options(phase)->dither, sender->cost, draw(seed));
}

int sender_make(struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct sender *sender = &lane->sender;
    uint32_t sources = lane->receiver.sources, flows = request->send_count;

    /* What goes to all is sent once. */
    if (dpdk_options(request->phase)->destination != DESTINATION_PORT)
        flows = RTE_MIN(flows, 1u);
    sender->count = flows * sources;
    sender->left = lane_frames(lane, flows);
    if (request->phase->traffic == TRAFFIC_BURST) {
        uint64_t count = request->phase->burst.count;

        sender->left = sender->burst = burst_of_lane(request);
        sender->bursts_left = count > 0 ? count - 1 : UINT64_MAX;
    }
    if (sender->count == 0)
        return 0;
    sender->streams =
        aligned_alloc(_Alignof(struct sender_stream), sender->count * sizeof *sender->streams);
    if (lane->size_count > 1)
        sender->templates =
            aligned_alloc(_Alignof(struct frame_template),
                          (size_t)sender->count * lane->size_count * sizeof *sender->templates);
    if (sender->streams == NULL || (lane->size_count > 1 && sender->templates == NULL))
        return -ENOMEM;
    for (uint32_t i = 0; i < sender->count; i++)
        sender->streams[i] = (struct sender_stream){.place = i};
    if (request->phase->in_turn)
        interleave(sender, sources);
    for (uint32_t i = 0; i < sender->count; i++)
        sender->streams[i].side = request->sends[sender->streams[i].place / sources].side;
    for (uint32_t i = flows; i < request->send_count; i++)
        request->sends[i].side->is_copy = true;
    return turns_make(&sender->turns, request->sends, flows);
}

static void build_templates(struct dpdk_lane *lane, struct sender_stream *stream, uint32_t index)
{
    const struct lane_request *request = &lane->lane.request;
    const struct lane_flow *flow = &request->sends[index / lane->receiver.sources];
    struct frame_template *templates = lane->sender.templates;
    struct frame_end ends[2];

    partner_ends(lane, flow, flow->dst, ends);
    partner_all(dpdk_options(request->phase)->destination, &ends[1]);
    templates =
        templates == NULL ? &stream->template : templates + (size_t)index * lane->size_count;
    for (uint32_t i = 0; i < lane->size_count; i++)
        frame_template(&templates[i], &lane->shape, ends,
                       (uint16_t)(index % lane->receiver.sources), lane->sizes[i].frame_bytes);
    stream->template = templates[0];
    stream->base = checksum_fold(
        signature_base((const struct signature *)(stream->template.bytes + lane->shape.payload)));
}

void sender_build(struct dpdk_lane *lane)
{
    struct sender *sender = &lane->sender;
    /* The first stream's frame of the first size, and fill to the greatest. */
    struct prefill prefill = {.headers = lane->shape.payload + SIGNATURE_BYTES,
                              .length = lane->sizes[0].length};

    for (uint32_t i = 0; i < sender->count; i++)
        build_templates(lane, &sender->streams[i], sender->streams[i].place);
    if (sender->count == 0 || lane->forwarder.queue != NULL)
        return;
    prefill.template = &sender->streams[0].template;
    for (uint32_t i = 0; i < lane->size_count; i++)
        prefill.longest = RTE_MAX(prefill.longest, (uint32_t)lane->sizes[i].length);
    prefill_mbufs(lane->queue->send_pool, &prefill);
}

uint64_t sender_begin(struct dpdk_lane *lane)
{
    const struct lane_request *request = &lane->lane.request;
    struct sender_seed seed = {.seed = request->phase->seed ^ (uint64_t)request->rank << 32 ^
                                       request->phase->number ^
                                       (uint64_t)lane->queue->number << 48};

    /* A forwarder's streams stay where the UDP source port finds them. */
    if (lane->forwarder.queue == NULL) {
        if (!request->phase->in_turn)
            shuffle(&lane->sender, &seed);
        put_longer_first(lane);
    }
    schedule(lane, &seed);
    return draw(&seed);
}

void sender_free(struct sender *sender)
{
    turns_free(&sender->turns);
    free(sender->templates);
    free(sender->streams);
}
