/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the dpdk transport costs: 64-byte ipv4-udp frames with flow, sequence and time, through its
 * lanes. Seconds are of CPU time where one thread sends; cycles are the TSC's.
 *
 * engine [SECONDS [FLOWS]]: frames that a worker on a core of its own sends on net_null.
 *
 * bare [SECONDS]: the limit, a loop that gets buffers from a pool, writes 16 bytes into each and
 * sends the burst.
 *
 * send SECONDS PORT: one end of a path between two processes, which sends one flow.
 *
 * receive SECONDS PORT: the other, which waits for the first frame, and from 0.2 s after it counts
 * what it verified.
 *
 * forward [CHUNKS]: of a chain, on ring ports: a frame is dequeued, verified and judged as every
 * received frame is, rewritten with the next hop's headers, sequence and time, and enqueued.
 *
 * judge FLOWS: receiving on ring ports: headers, checksums and signature are verified, the flow is
 * found, its sequence judged, the frame freed; without and with reading the stamps. And for how
 * long the worker accounts flows without a look at the ring.
 *
 * PORT: vdev=DEVICE, or iface=NAME driver=af_packet|af_xdp netns=NAME. `forward` and `judge` count
 * the polls alone, 512 frames at a time; filling and emptying the rings is not counted.
 */
#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"
#include "eal.h"
#include "frame.h"
#include "frame_lane.h"
#include "transport.h"
#include "worker.h"

#include <inttypes.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>
#include <x86intrin.h>

/* --- clocks and medians --- */

/* End the program with this sentence. */
static _Noreturn void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* Return the TSC ticks of a nanosecond, measured for 50 ms. */
static double bench_tsc_rate(void)
{
    int64_t begin_ns = clock_now();
    uint64_t ticks = __rdtsc();

    clock_sleep_until(begin_ns + NS_PER_S / 20);
    return (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
}

/* Return the time of CLOCK_THREAD_CPUTIME_ID or CLOCK_PROCESS_CPUTIME_ID. */
static int64_t bench_cpu_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* Return how often the kernel has taken the core away from this thread. */
static long bench_preemptions(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sort `values`. */
static double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

/* Print the cost of a frame, when `frames` frames took so many ns. */
static void bench_show_frames(double frames, double ns)
{
    printf("%.0f frames/s, %.3f ns, %.2f cycles a frame\n", frames * 1e9 / ns, ns / frames,
           ns / frames * bench_tsc_rate());
}

/* --- a port and its lane --- */

#define BED_BURST 64
#define BED_SIZE 64
#define BED_TAG 1

extern const struct transport transport_dpdk;

/* Fill in the members before `phase`, then call bed_open(). */
struct bed {
    struct port_conf conf;
    uint32_t rank;
    uint32_t send_count;    /* destinations: ranks 0 to n but its own; a load without limit */
    uint32_t receive_count; /* sources: ranks 0 to n but its own */
    bool forwards;          /* the sent flow is the received one, forwarded */
    bool stamps;            /* frames' times are measured while bed_time() is on */
    struct blob partner;    /* every flow's other end; empty: the port's own */
    struct phase phase;
    struct dpdk_options options; /* of the phase */
    struct transport_port *port;
    struct lane *lane;
    struct lane_flow *flows; /* sends, then receives */
    struct port_count count;
};

static const struct transport_run bench_run = {.run_id = "bench", .node = "bench"};

static void make_flows(struct bed *bed)
{
    uint32_t count = bed->send_count + bed->receive_count;

    bed->flows = calloc(count + 1, sizeof *bed->flows);
    if (bed->flows == NULL)
        bench_fail("out of memory");
    for (uint32_t i = 0; i < count; i++) {
        bool sends = i < bed->send_count;
        uint32_t peer = !sends ? i - bed->send_count : bed->forwards ? bed->rank : i;

        peer += peer >= bed->rank; /* the ranks but the own one */
        bed->flows[i] = (struct lane_flow){.src = sends ? bed->rank : peer,
                                           .dst = sends ? peer : bed->rank,
                                           .role = bed->forwards ? PATTERN_FORWARD : 0,
                                           .partner = bed->partner};
    }
}

static void bed_open(struct bed *bed)
{
    struct lane_request request = {
        .phase = &bed->phase,
        .rank = bed->rank,
        .ranks = 65536,
        .send_count = bed->send_count,
        .receive_count = bed->receive_count,
        .count = &bed->count,
    };
    struct err err = {""};

    bed->options = (struct dpdk_options){
        .header = HEADER_IPV4_UDP,
        .ttl = 64,
        .frame = {.burst = BED_BURST, .catch_up = BED_BURST, .udp_sources = 1}};
    bed->phase = (struct phase){.tag = BED_TAG,
                                .traffic = TRAFFIC_STREAM,
                                .sizes = {BED_SIZE},
                                .size_count = 1,
                                .load = {.unlimited = true},
                                .latency = {.stamps = bed->stamps},
                                .options = &bed->options};
    if (bed->conf.ipv4 == NULL)
        bed->conf.ipv4 = "198.18.0.1/16";
    if (bed->conf.name == NULL)
        bed->conf.name = "bench:e0";
    if (transport_dpdk.open(&bed->port, &bed->conf, &bench_run, &err) != 0)
        bench_fail(err.text);
    if (bed->partner.size == 0)
        bed->partner = transport_address(&transport_dpdk, bed->port);
    make_flows(bed);
    request.port = bed->port;
    request.flows = bed->flows;
    if (transport_dpdk.prepare(&bed->lane, &request, &err) != 0 ||
        transport_dpdk.connect(bed->lane, clock_now(), &err) != 0)
        bench_fail(err.text);
}

/* Start the lane on this thread, from now on without end. */
static void bed_start(struct bed *bed)
{
    bed->phase.start_ns = clock_now();
    bed->phase.stop_ns = INT64_MAX / 2;
    transport_dpdk.poll(bed->lane, clock_now());
}

/* Open or close the window in which the lane measures times, from the next poll on. */
static void bed_time(struct bed *bed, bool timed)
{
    bed->phase.open_ns = 0;
    bed->phase.close_ns = timed ? INT64_MAX / 2 : 0;
    ((struct frame_lane *)bed->lane)->timer_ns = 0;
}

/* Poll for a time, as a worker on a core of its own does. */
static void bed_burn(struct bed *bed, int64_t for_ns)
{
    int64_t now_ns = clock_now();

    for (int64_t end_ns = now_ns + for_ns; now_ns < end_ns; now_ns = clock_now())
        transport_dpdk.poll(bed->lane, now_ns);
}

static uint64_t count_frames(struct bed *bed, uint32_t from, uint32_t flows)
{
    uint64_t frames = 0;

    transport_dpdk.account(bed->lane, ACCOUNT_ALL);
    for (uint32_t i = from; i < from + flows; i++)
        frames += bed->flows[i].side.live.frames;
    return frames;
}

/* Return the frames that all flows have sent or received so far. */
static uint64_t bed_sent(struct bed *bed)
{
    return count_frames(bed, 0, bed->send_count);
}

static uint64_t bed_received(struct bed *bed)
{
    return count_frames(bed, bed->send_count, bed->receive_count);
}

static void bed_close(struct bed *bed)
{
    transport_dpdk.destroy(bed->lane);
    transport_dpdk.close(bed->port);
    free(bed->flows);
}

/* Make a port "net_ring_NAME" whose two rings the caller fills and empties; start DPDK. */
static void bed_make_rings(const char *name, struct rte_ring **in, struct rte_ring **out,
                           uint32_t size)
{
    struct err err = {""};
    char text[32];

    if (eal_start("bench", &err) != 0)
        bench_fail(err.text);
    snprintf(text, sizeof text, "%s_in", name);
    *in = rte_ring_create(text, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    snprintf(text, sizeof text, "%s_out", name);
    *out = rte_ring_create(text, size, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (*in == NULL || *out == NULL || rte_eth_from_rings(name, in, 1, out, 1, 0) < 0)
        bench_fail("no ring port here");
}

/* --- frames in memory --- */

#define FEED_CHUNK 512u /* frames that are ready at a time: as many as a device's ring holds */
#define FEED_PORT "net_ring_feed"

/* The counts that the receiver must have. */
struct feed_truth {
    uint64_t delivered, reordered, duplicated;
};

#define BUFFERS 2047u
#define CACHE 256
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
static struct rte_mempool *feed_pool;
static struct frame_shape shape;
static struct source *sources; /* in a random order */
static uint32_t count, at, random_delay;
static uint64_t made;
static int64_t start_ns; /* 0: stamps are 0 */
static struct feed_truth feed_truth;

/* Discard the frames that the port has sent. Return their number. */
static uint32_t feed_drain(void)
{
    struct rte_mbuf *frames[2 * FEED_CHUNK];
    uint32_t sent = rte_ring_dequeue_burst(out, (void **)frames, 2 * FEED_CHUNK, NULL);

    rte_pktmbuf_free_bulk(frames, sent);
    return sent;
}

/* Open `bed` on FEED_PORT, start it, and make a stream from each source of its flows. */
static void feed_open(struct bed *bed)
{
    srandom(1); /* the same order in every run */
    bed->conf.vdev = FEED_PORT;
    bed_make_rings("feed", &in, &out, 2 * FEED_CHUNK);
    bed_open(bed);
    count = bed->receive_count;
    frame_shape(&shape, &bed->options, BED_TAG);
    sources = aligned_alloc(_Alignof(struct source), count * sizeof *sources);
    feed_pool = rte_pktmbuf_pool_create("feed", BUFFERS, CACHE, 0, ROOM, SOCKET_ID_ANY);
    if (sources == NULL || feed_pool == NULL)
        bench_fail("out of memory");
    for (uint32_t i = 0; i < count; i++) { /* Fisher-Yates, inside out */
        uint32_t j = (uint32_t)random() % (i + 1), from = bed->flows[bed->send_count + i].src;
        const struct frame_end ends[2] = {
            {.ipv4 = {198, 19, (uint8_t)(from >> 8), (uint8_t)from}, .rank = (uint16_t)from},
            {.ipv4 = {198, 18, 0, 1}, .rank = (uint16_t)bed->rank}};

        sources[i] = sources[j];
        sources[j] = (struct source){.next = 0};
        frame_template(&sources[j].template, &shape, ends, 0, BED_SIZE);
    }
    bed_start(bed);
    start_ns = bed->stamps ? bed->phase.start_ns : 0;
    (void)feed_drain();
}

/* Return the number that a source sends now. */
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

/* Knuth's MMIX generator: only the delay's range matters, not its distribution. */
static const struct signature_time *choose_time(struct source *source, int64_t now_ns)
{
    if (start_ns != 0 && source->sent++ % SENDER_BURST == 0) {
        random_delay = random_delay * 1664525 + 1013904223;
        source->time = signature_time(now_ns - start_ns - (random_delay >> DELAY_SHIFT));
    }
    return &source->time;
}

/* Put FEED_CHUNK frames into the ring. `reorder`: one in 128 swaps places with the next frame of
 * its flow, and one in 1,024 comes twice. Where the bed measures times, frames are stamped as if
 * their senders' bursts of 32 had been in flight for up to 16 us: each sender's burst has one
 * stamp, and bursts of different senders are mixed frame by frame. */
static void feed_fill(bool reorder)
{
    int64_t now_ns = clock_now();
    struct rte_mbuf *frames[FEED_CHUNK];

    if (rte_pktmbuf_alloc_bulk(feed_pool, frames, FEED_CHUNK) != 0)
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

/* Poll the lane as often as the frames of feed_fill() need. Return the TSC ticks. */
static uint64_t feed_poll(struct bed *bed)
{
    uint64_t begin = __rdtsc();

    for (uint32_t i = 0; i < FEED_CHUNK / BED_BURST; i++)
        transport_dpdk.poll(bed->lane, clock_now());
    return __rdtsc() - begin;
}

static uint16_t port_id(const char *device)
{
    uint16_t id;

    if (rte_eth_dev_get_port_by_name(device, &id) != 0)
        bench_fail("no port");
    return id;
}

/* --- sending on net_null --- */

#define DEVICE "net_null0"
#define OFFSET 48 /* of the bytes that the bare loop writes: the engine's sequence */
#define POOL 1023

/* Return the CPU time of all threads except this one. */
static int64_t others_ns(void)
{
    return bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Run the worker's loop until the phase's stop. */
static void send_by_worker(double seconds, uint32_t flows)
{
    struct bed bed = {.send_count = flows, .conf = {.vdev = DEVICE ",no-rx=1"}};
    struct worker_conf conf = {.core = -1, .event_fd = eventfd(0, 0), .seed = 1};
    struct worker_lane lane = {.transport = &transport_dpdk}, *lanes = &lane;
    struct worker_task task = {.lanes = &lanes, .count = 1, .phase = &bed.phase};
    struct worker *worker;
    struct err err = {""};
    int64_t used_ns;
    uint64_t ended;

    bed_open(&bed);
    used_ns = others_ns();
    lane.lane = bed.lane;
    if (worker_start(&worker, &conf, &err) != 0)
        bench_fail(err.text);
    bed.phase.start_ns = bed.phase.open_ns = clock_now();
    bed.phase.stop_ns = bed.phase.close_ns = bed.phase.start_ns + (int64_t)(seconds * 1e9);
    task.nominal_end_ns = bed.phase.stop_ns;
    worker_run(worker, &task);
    if (read(conf.event_fd, &ended, sizeof ended) != sizeof ended)
        bench_fail("the worker did not end");
    worker_end(worker);
    bench_show_frames((double)bed_sent(&bed), (double)(others_ns() - used_ns));
    bed_close(&bed);
}

static void fill_frame(struct rte_mempool *pool, void *context, void *object, unsigned index)
{
    struct rte_mbuf *frame = object;

    (void)pool;
    (void)context;
    (void)index;
    rte_pktmbuf_reset(frame);
    frame->pkt_len = frame->data_len = BED_SIZE - FRAME_FCS;
}

/* A generator without the engine, on a port with the engine's configuration. */
static void send_bare(double seconds)
{
    struct bed bed = {.send_count = 1, .conf = {.vdev = DEVICE ",no-rx=1"}};
    struct rte_mbuf *frames[BED_BURST];
    uint64_t sent = 0, values[2] = {0, 0};
    int64_t used_ns, end_ns;
    struct rte_mempool *pool;
    uint16_t port;

    bed_open(&bed);
    port = port_id(DEVICE);
    eal_thread();
    pool = rte_pktmbuf_pool_create("bare", POOL, CACHE, 0, 2 * BED_SIZE + RTE_PKTMBUF_HEADROOM,
                                   SOCKET_ID_ANY);
    if (pool == NULL)
        bench_fail("out of memory");
    rte_mempool_obj_iter(pool, fill_frame, NULL);
    used_ns = bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    end_ns = clock_now() + (int64_t)(seconds * 1e9);
    while (clock_now() < end_ns)
        for (unsigned i = 0; i < 1000; i++) {
            if (rte_mempool_get_bulk(pool, (void **)frames, BED_BURST) != 0)
                bench_fail("frames got lost");
            for (unsigned j = 0; j < BED_BURST; j++) {
                values[0]++;
                memcpy(rte_pktmbuf_mtod(frames[j], uint8_t *) + OFFSET, values, sizeof values);
            }
            sent += rte_eth_tx_burst(port, 0, frames, BED_BURST);
        }
    bench_show_frames((double)sent, (double)(bench_cpu_ns(CLOCK_THREAD_CPUTIME_ID) - used_ns));
    bed_close(&bed);
}

/* --- between two processes --- */

#define PATIENCE_NS (20 * NS_PER_S)
#define WARM_NS (NS_PER_S / 5)

/* Both ends' addresses are known in advance, so that neither has to request the other's. */
static const struct port_conf ends[] = {
    {.name = "bench:sender", .mac = "02:00:00:00:01:01", .ipv4 = "198.18.0.1/16"},
    {.name = "bench:receiver", .mac = "02:00:00:00:01:02", .ipv4 = "198.18.0.2/16"},
};

static void read_port(struct port_conf *conf, const char *word)
{
    const struct {
        const char *name;
        const char **value;
    } keys[] = {{"vdev=", &conf->vdev},
                {"iface=", &conf->iface},
                {"driver=", &conf->driver},
                {"netns=", &conf->netns}};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strncmp(word, keys[i].name, strlen(keys[i].name)) == 0)
            *keys[i].value = word + strlen(keys[i].name);
}

static void send_frames(struct bed *bed, double seconds)
{
    int64_t begin_ns = clock_now();
    struct tms used;

    bed_burn(bed, (int64_t)(seconds * 1e9));
    times(&used);
    printf("%.0f frames/s, %.1f %% of its time in the kernel\n",
           (double)bed_sent(bed) * 1e9 / (double)(clock_now() - begin_ns),
           100 * (double)used.tms_stime / (double)(used.tms_utime + used.tms_stime));
}

static void receive_frames(struct bed *bed, double seconds)
{
    int64_t begin_ns, limit_ns = clock_now() + PATIENCE_NS;
    const struct flow_side *side = &bed->flows[0].side;
    uint64_t frames;

    while (bed->lane->arrived_ns == 0 && clock_now() < limit_ns)
        bed_burn(bed, NS_PER_MS);
    bed_burn(bed, WARM_NS);
    frames = bed_received(bed);
    begin_ns = clock_now();
    bed_burn(bed, (int64_t)(seconds * 1e9));
    frames = bed_received(bed) - frames;
    printf("%.0f frames/s, %" PRIu64 " duplicated, %" PRIu64 " reordered, %" PRIu64
           " corrupted, %" PRIu64 " misdelivered\n",
           (double)frames * 1e9 / (double)(clock_now() - begin_ns), side->duplicated,
           side->reordered, side->corrupted, bed->count.misdelivered);
    if (frames == 0 || side->duplicated + side->corrupted + bed->count.misdelivered > 0)
        bench_fail("the frames did not come through as they were sent");
}

static void run_end(bool receives, double seconds, char **words)
{
    struct bed bed = {.conf = ends[receives],
                      .rank = receives,
                      .send_count = !receives,
                      .receive_count = receives};
    struct bed other = {.conf = ends[!receives]}; /* of no use but to say what it looks like */

    for (; *words != NULL; words++)
        read_port(&bed.conf, *words);
    other.conf.vdev = "net_null9,no-rx=1";
    bed_open(&other);
    bed_close(&other);
    bed.partner = other.partner;
    bed_open(&bed);
    printf("ready\n");
    fflush(stdout);
    bed_start(&bed);
    if (receives)
        receive_frames(&bed, seconds);
    else
        send_frames(&bed, seconds);
    bed_close(&bed);
}

/* --- on ring ports --- */

/* Chunks that took twice as long as most are left out: the hypervisor or the kernel had the core.
 */
static void forward(size_t chunks)
{
    double *ticks = calloc(chunks + 1, sizeof *ticks), limit, sum = 0;
    struct bed bed = {.rank = 1, .send_count = 1, .receive_count = 1, .forwards = true};
    size_t warm = chunks / 10, used = 0;

    if (chunks == 0 || ticks == NULL)
        bench_fail("needs chunks, and memory to note them");
    feed_open(&bed);
    for (size_t i = 0; i < chunks; i++) {
        feed_fill(false);
        ticks[i] = (double)feed_poll(&bed);
        if (feed_drain() != FEED_CHUNK)
            bench_fail("frames were not forwarded");
    }
    if (bed_sent(&bed) != (uint64_t)chunks * FEED_CHUNK)
        bench_fail("the forwarder did not count what it forwarded");
    limit = 2 * bench_median(ticks + warm, chunks - warm);
    for (; used < chunks - warm && ticks[warm + used] <= limit; used++)
        sum += ticks[warm + used];
    bench_show_frames((double)used * FEED_CHUNK, sum / bench_tsc_rate());
    bed_close(&bed);
    free(ticks);
}

#define CHUNKS 2000

/* Return the ticks to receive and free a chunk without the engine. */
static uint64_t free_chunk(struct bed *bed)
{
    uint16_t port = port_id(bed->conf.vdev);
    struct rte_mbuf *frames[BED_BURST];
    uint64_t begin = __rdtsc();

    for (uint32_t i = 0; i < FEED_CHUNK / BED_BURST; i++)
        rte_pktmbuf_free_bulk(frames, rte_eth_rx_burst(port, 0, frames, BED_BURST));
    return __rdtsc() - begin;
}

/* Return the mean ticks of a frame over CHUNKS chunks, except those in which the kernel took the
 * core away. */
static double measure(uint64_t (*take)(struct bed *bed), struct bed *bed)
{
    uint64_t ticks = 0, frames = 0;

    for (unsigned i = 0; i < CHUNKS; i++) {
        long before = bench_preemptions();
        uint64_t taken;

        feed_fill(true);
        taken = take(bed);
        if (bench_preemptions() == before) {
            ticks += taken;
            frames += FEED_CHUNK;
        }
    }
    return frames > 0 ? (double)ticks / (double)frames : 0;
}

/* Return the ticks for which the ring is not polled while flows are accounted: the maximum of a
 * round over all flows. */
static uint64_t longest_pause(struct bed *bed)
{
    uint64_t longest = 0;
    bool all;

    transport_dpdk.account(bed->lane, ACCOUNT_MARK);
    do {
        long before = bench_preemptions();
        uint64_t begin;

        feed_fill(true);
        begin = __rdtsc();
        all = transport_dpdk.account(bed->lane, ACCOUNT_SOME);
        begin = __rdtsc() - begin;
        if (bench_preemptions() == before && begin > longest)
            longest = begin;
        feed_poll(bed);
    } while (!all);
    return longest;
}

/* Check that the receiver's counts equal the changes made to the frames, to the frame. */
static void check(struct bed *bed)
{
    struct feed_truth found = {.delivered = bed_received(bed)};

    for (uint32_t i = 0; i < bed->receive_count; i++) {
        found.reordered += bed->flows[i].side.reordered;
        found.duplicated += bed->flows[i].side.duplicated;
    }
    if (memcmp(&feed_truth, &found, sizeof found) != 0 || found.reordered == 0 ||
        found.duplicated == 0 || bed->count.foreign != 0)
        bench_fail("the receiver counted other frames than were sent");
}

static void judge(uint32_t flows)
{
    struct bed bed = {.receive_count = flows, .stamps = true};
    double ours, timed, device;

    feed_open(&bed);
    bed_time(&bed, false);
    for (unsigned i = 0; i < 2 * flows / FEED_CHUNK + 100; i++) { /* every flow has begun */
        feed_fill(true);
        feed_poll(&bed);
    }
    ours = measure(feed_poll, &bed);
    bed_time(&bed, true);
    timed = measure(feed_poll, &bed);
    check(&bed);
    device = measure(free_chunk, &bed);
    printf("%.2f cycles a frame, %.2f with times, %.2f of the device and the pool alone; "
           "accounting pauses for %.1f us\n",
           ours, timed, device, (double)longest_pause(&bed) / bench_tsc_rate() / 1e3);
    bed_close(&bed);
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    double number = argc > 2 ? atof(argv[2]) : 0, seconds = number > 0 ? number : 1;
    int flows = argc > 3 ? atoi(argv[3]) : 1;

    if (strcmp(command, "engine") == 0 && flows >= 1 && flows <= 65535)
        send_by_worker(seconds, (uint32_t)flows);
    else if (strcmp(command, "bare") == 0)
        send_bare(seconds);
    else if ((strcmp(command, "send") == 0 || strcmp(command, "receive") == 0) && argc > 3)
        run_end(command[0] == 'r', seconds, argv + 3);
    else if (strcmp(command, "forward") == 0)
        forward(argc > 2 ? (size_t)number : 20000);
    else if (strcmp(command, "judge") == 0 && number >= 1 && number <= 65535)
        judge((uint32_t)number);
    else
        return 2;
    return 0;
}
