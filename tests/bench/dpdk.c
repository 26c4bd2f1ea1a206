/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the dpdk transport costs: 64-byte ipv4-udp frames with flow, sequence and time, through its
 * lanes. Seconds are of CPU time where one thread sends; cycles are the TSC's.
 *
 * engine [SECONDS [FLOWS]]: frames that a worker on a core of its own sends on net_null.
 *
 * forward [CHUNKS]: of a chain, on ring ports: a frame is dequeued, verified and judged as every
 * received frame is, rewritten with the next hop's headers, sequence and time, and enqueued.
 *
 * judge FLOWS: receiving on ring ports: headers, checksums and signature are verified, the flow is
 * found, its sequence judged, the frame freed; without and with reading the stamps. And for how
 * long the worker accounts flows without a look at the ring.
 *
 * `forward` and `judge` count the polls alone, 512 frames at a time; filling and emptying the rings
 * is not counted.
 */
#include <rte_cycles.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"
#include "eal.h"
#include "frame.h"
#include "frame_lane.h"
#include "transport.h"
#include "worker.h"

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
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
    const struct blob partner = transport_address(&transport_dpdk, bed->port);
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
                                           .partner = partner};
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
    if (transport_open(&transport_dpdk, &bed->port, &bed->conf, &bench_run, &err) != 0)
        bench_fail(err.text);
    make_flows(bed);
    request.port = bed->port;
    request.flows = bed->flows;
    if (transport_prepare(&transport_dpdk, &bed->lane, &request, &err) != 0 ||
        transport_dpdk.connect(bed->lane, clock_now(), &err) != 0)
        bench_fail(err.text);
}

/* Open or close the window in which the lane measures times, from the next poll on. */
static void bed_time(struct bed *bed, bool timed)
{
    bed->phase.open_ns = 0;
    bed->phase.close_ns = timed ? INT64_MAX / 2 : 0;
    ((struct frame_lane *)bed->lane)->timer_ns = 0;
}

/* Return the frames that these flows have sent or received so far. */
static uint64_t count_frames(struct bed *bed, uint32_t from, uint32_t flows)
{
    uint64_t frames = 0;

    transport_dpdk.account(bed->lane, ACCOUNT_ALL);
    for (uint32_t i = from; i < from + flows; i++)
        frames += bed->flows[i].side.live.frames;
    return frames;
}

static void bed_close(struct bed *bed)
{
    transport_dpdk.destroy(bed->lane);
    transport_dpdk.close(bed->port);
    free(bed->flows);
}

/* --- frames in memory --- */

#define CHUNKS 2000     /* of a measurement */
#define FEED_CHUNK 512u /* frames that are ready at a time: as many as a device's ring holds */

#define BUFFERS 2047u
#define ROOM (FRAME_TEMPLATE + RTE_PKTMBUF_HEADROOM)
#define SENDER_BURST 32
#define DELAY_SHIFT 18 /* 2^32 to 16 us */

struct source {
    struct frame_template template;
    struct signature_time time; /* of its burst */
    uint32_t sent;              /* of that */
    uint32_t next;
};

static struct rte_ring *in, *out;
static struct rte_mempool *feed_pool;
static struct frame_shape shape;
static struct source *sources; /* in a random order */
static uint32_t count, at, random_delay;
static int64_t start_ns; /* 0: stamps are 0 */

/* Discard the frames that the port has sent. Return their number. */
static uint32_t feed_drain(void)
{
    struct rte_mbuf *frames[2 * FEED_CHUNK];
    uint32_t sent = rte_ring_dequeue_burst(out, (void **)frames, 2 * FEED_CHUNK, NULL);

    rte_pktmbuf_free_bulk(frames, sent);
    return sent;
}

static struct rte_ring *make_ring(const char *name)
{
    struct rte_ring *ring =
        rte_ring_create(name, 2 * FEED_CHUNK, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);

    if (ring == NULL)
        bench_fail("no ring here");
    return ring;
}

/* Open `bed` on a port of two rings, start it, and make a stream from each source of its flows. */
static void feed_open(struct bed *bed)
{
    struct err err = {""};

    srandom(1); /* the same order in every run */
    if (eal_start("bench", &err) != 0)
        bench_fail(err.text);
    in = make_ring("feed_in");
    out = make_ring("feed_out");
    if (rte_eth_from_rings("feed", &in, 1, &out, 1, 0) < 0)
        bench_fail("no ring port here");
    bed->conf.vdev = "net_ring_feed";
    bed_open(bed);
    count = bed->receive_count;
    frame_shape(&shape, &bed->options, BED_TAG);
    sources = aligned_alloc(_Alignof(struct source), count * sizeof *sources);
    feed_pool = rte_pktmbuf_pool_create("feed", BUFFERS, 256, 0, ROOM, SOCKET_ID_ANY);
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
    bed->phase.start_ns = clock_now(); /* the lane starts on this thread, without end */
    bed->phase.stop_ns = INT64_MAX / 2;
    transport_dpdk.poll(bed->lane, clock_now());
    start_ns = bed->stamps ? bed->phase.start_ns : 0;
    (void)feed_drain();
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

/* Put FEED_CHUNK frames into the ring. Where the bed measures times, frames are stamped as if their
 * senders' bursts of 32 had been in flight for up to 16 us: each sender's burst has one stamp, and
 * bursts of different senders are mixed frame by frame. */
static void feed_fill(void)
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
        signature_stamp(signature, source->next++, time, signature_base(signature) + time->sum);
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

/* --- sending on net_null --- */

/* Return the CPU time of all threads except this one. */
static int64_t others_ns(void)
{
    struct timespec all, own;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &all);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &own);
    return (all.tv_sec - own.tv_sec) * NS_PER_S + all.tv_nsec - own.tv_nsec;
}

/* Run the worker's loop until the phase's stop. */
static void send_by_worker(double seconds, uint32_t flows)
{
    struct bed bed = {.send_count = flows, .conf = {.vdev = "net_null0,no-rx=1"}};
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
    bench_show_frames((double)count_frames(&bed, 0, flows), (double)(others_ns() - used_ns));
    bed_close(&bed);
}

/* --- on ring ports --- */

/* Return the mean ticks of a frame. The first tenth is not counted, and chunks that took twice as
 * long as most are left out: the hypervisor or the kernel had the core. */
static double measure(struct bed *bed, size_t chunks)
{
    double *ticks = calloc(chunks + 1, sizeof *ticks), limit, sum = 0;
    size_t warm = chunks / 10, used = 0;

    if (chunks == 0 || ticks == NULL)
        bench_fail("needs chunks, and memory to note them");
    for (size_t i = 0; i < chunks; i++) {
        feed_fill();
        ticks[i] = (double)feed_poll(bed);
        if (feed_drain() != bed->send_count * FEED_CHUNK)
            bench_fail("frames were not forwarded");
    }
    limit = 2 * bench_median(ticks + warm, chunks - warm);
    for (; used < chunks - warm && ticks[warm + used] <= limit; used++)
        sum += ticks[warm + used];
    free(ticks);
    return sum / (double)used / FEED_CHUNK;
}

static void forward(size_t chunks)
{
    struct bed bed = {.rank = 1, .send_count = 1, .receive_count = 1, .forwards = true};

    feed_open(&bed);
    bench_show_frames(1, measure(&bed, chunks) / bench_tsc_rate());
    if (count_frames(&bed, 0, 1) != (uint64_t)chunks * FEED_CHUNK)
        bench_fail("the forwarder did not count what it forwarded");
    bed_close(&bed);
}

/* Return the ticks for which the ring is not polled while flows are accounted: the maximum of a
 * round over all flows, except while the kernel took the core away. */
static uint64_t longest_pause(struct bed *bed)
{
    struct rusage before, after;
    uint64_t longest = 0;
    bool all;

    transport_dpdk.account(bed->lane, ACCOUNT_MARK);
    do {
        uint64_t begin;

        feed_fill();
        getrusage(RUSAGE_THREAD, &before);
        begin = __rdtsc();
        all = transport_dpdk.account(bed->lane, ACCOUNT_SOME);
        begin = __rdtsc() - begin;
        getrusage(RUSAGE_THREAD, &after);
        if (after.ru_nivcsw == before.ru_nivcsw && begin > longest)
            longest = begin;
        feed_poll(bed);
    } while (!all);
    return longest;
}

static void judge(uint32_t flows)
{
    struct bed bed = {.receive_count = flows, .stamps = true};
    size_t warm = 2 * flows / FEED_CHUNK + 100; /* every flow has begun */
    double ours, timed;

    feed_open(&bed);
    bed_time(&bed, false);
    measure(&bed, warm);
    ours = measure(&bed, CHUNKS);
    bed_time(&bed, true);
    timed = measure(&bed, CHUNKS);
    if (count_frames(&bed, 0, flows) != (warm + 2 * CHUNKS) * FEED_CHUNK || bed.count.foreign != 0)
        bench_fail("the receiver counted other frames than were sent");
    printf("%.2f cycles a frame, %.2f with times; accounting pauses for %.1f us\n", ours, timed,
           (double)longest_pause(&bed) / bench_tsc_rate() / 1e3);
    bed_close(&bed);
}

int main(int argc, char **argv)
{
    const char *command = argc > 1 ? argv[1] : "";
    double number = argc > 2 ? atof(argv[2]) : 0, seconds = number > 0 ? number : 1;
    int flows = argc > 3 ? atoi(argv[3]) : 1;

    if (strcmp(command, "engine") == 0 && flows >= 1 && flows <= 65535)
        send_by_worker(seconds, (uint32_t)flows);
    else if (strcmp(command, "forward") == 0)
        forward(argc > 2 ? (size_t)number : 20000);
    else if (strcmp(command, "judge") == 0 && number >= 1 && number <= 65535)
        judge((uint32_t)number);
    else
        return 2;
    return 0;
}
