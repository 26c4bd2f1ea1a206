/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"

#include "eal.h"
#include "frame.h"
#include "frame_lane.h"

#include <rte_eth_ring.h>
#include <sys/resource.h>

_Noreturn void bench_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

double bench_tsc_rate(void)
{
    int64_t begin_ns = clock_now();
    uint64_t ticks = __rdtsc();

    clock_sleep_until(begin_ns + NS_PER_S / 20);
    return (double)(__rdtsc() - ticks) / (double)(clock_now() - begin_ns);
}

int64_t bench_cpu_ns(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

long bench_preemptions(void)
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

double bench_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
    return (values[count / 2] + values[(count - 1) / 2]) / 2;
}

void bench_verdict(const char *what, double value, const char *unit, bool at_most, double reach)
{
    bool good = at_most ? value <= reach : value >= reach;

    printf("%s: %.4g %s (reach: at %s %g): %s\n", what, value, unit, at_most ? "most" : "least",
           reach, good ? "PASS" : "RED");
    fflush(stdout);
}

void bench_show_frames(double frames, double ns)
{
    printf("%.0f frames/s, %.3f ns, %.2f cycles a frame\n", frames * 1e9 / ns, ns / frames,
           ns / frames * bench_tsc_rate());
}

/* --- a port and its lane --- */

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

void bed_open(struct bed *bed)
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

    bed->options = (struct dpdk_options){.header = HEADER_IPV4_UDP,
                                         .ttl = 64,
                                         .udp_sources = 1,
                                         .frame = {.burst = BED_BURST, .catch_up = BED_BURST}};
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

void bed_start(struct bed *bed)
{
    bed->phase.start_ns = clock_now();
    bed->phase.stop_ns = INT64_MAX / 2;
    transport_dpdk.poll(bed->lane, clock_now());
}

void bed_time(struct bed *bed, bool timed)
{
    bed->phase.open_ns = 0;
    bed->phase.close_ns = timed ? INT64_MAX / 2 : 0;
    ((struct frame_lane *)bed->lane)->timer_ns = 0;
}

void bed_burn(struct bed *bed, int64_t for_ns)
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

uint64_t bed_sent(struct bed *bed)
{
    return count_frames(bed, 0, bed->send_count);
}

uint64_t bed_received(struct bed *bed)
{
    return count_frames(bed, bed->send_count, bed->receive_count);
}

void bed_close(struct bed *bed)
{
    transport_dpdk.destroy(bed->lane);
    transport_dpdk.close(bed->port);
    free(bed->flows);
}

void bed_make_rings(const char *name, struct rte_ring **in, struct rte_ring **out, uint32_t size)
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
