/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames a second that one core carries through the modelled switch: 30 ports of 1G (net_ring),
 * 64-byte frames all to all, each port always with frames at hand. The frames' makers and takers
 * run on the same core between the turns; the time is that of the turns alone, devices included.
 *
 *     model [SECONDS [ROUNDS]]
 */
#include "bench.h"
#include "describe.h"
#include "port_array.h"
#include "signature.h"

#define PORTS 30u
#define SIZE 64u
#define RING 256u
#define AHEAD 64u /* frames that wait at each port */
#define WARM 10   /* turns */
#define ROUNDS_MAX 64u

static struct rte_ring *in[PORTS], *out[PORTS]; /* of each device: what it receives and sends */
static struct rte_mempool *pool;
static uint64_t taken;

static void fill(struct rte_mbuf *frame, unsigned from, unsigned to)
{
    static uint32_t sequence;
    const uint8_t head[] = {2, 0, 0, 0, 0, (uint8_t)to, 2, 0, 0, 0, 0, (uint8_t)from, 0x88, 0xb5};
    struct signature signature = {.tag = htobe16(BED_TAG)};
    struct signature_time time = signature_time(1000);
    char *at = rte_pktmbuf_append(frame, SIZE - MODEL_FCS);

    signature_stamp(&signature, sequence++, &time, signature_base(&signature) + time.sum);
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, &signature, sizeof signature);
}

/* So many frames wait at each port. */
static void feed(unsigned ahead)
{
    static unsigned next[PORTS];

    for (unsigned i = 0; i < PORTS; i++)
        for (unsigned k = rte_ring_count(in[i]); k < ahead; k++) {
            struct rte_mbuf *frame = rte_pktmbuf_alloc(pool);

            if (frame == NULL)
                return; /* the others are inside */
            next[i] = next[i] % (PORTS - 1) + 1;
            fill(frame, i, (i + next[i]) % PORTS);
            if (rte_ring_enqueue(in[i], frame) != 0)
                bench_fail("a ring is too small");
        }
}

static void take(void)
{
    struct rte_mbuf *frames[RING];

    for (unsigned i = 0; i < PORTS; i++) {
        unsigned count = rte_ring_dequeue_burst(out[i], (void **)frames, RING, NULL);

        rte_pktmbuf_free_bulk(frames, count);
        taken += count;
    }
}

/* Million frames a second that came out, by the time of the turns. */
static double measure(const char *more, double seconds)
{
    char yaml[4096];
    int size =
        snprintf(yaml, sizeof yaml, "switch: {name: bench, buffer: 1048576%s, ports: [", more);
    struct description description;
    struct port_array port_array;
    struct err err = {""};
    uint64_t ticks = 0;

    for (unsigned i = 0; i < PORTS; i++)
        size += snprintf(yaml + size, sizeof yaml - (size_t)size,
                         "{name: p%u, rate_bps: 1000000000, vdev: net_ring_p%u}, ", i, i);
    size += snprintf(yaml + size, sizeof yaml - (size_t)size, "]}\n");
    if (describe_read(&description, yaml, (size_t)size, &err) != 0 ||
        port_array_open(&port_array, &description.conf, &err) != 0)
        bench_fail(err.text);
    for (int64_t i = 0, end_ns = INT64_MAX; clock_now() < end_ns; i++) {
        uint64_t begun;

        feed(i < WARM ? 1 : AHEAD); /* first the switch hears where all are */
        begun = __rdtsc();
        port_array_turn(&port_array, clock_now());
        ticks += __rdtsc() - begun;
        take();
        if (i == WARM) {
            taken = ticks = 0;
            end_ns = clock_now() + (int64_t)(seconds * 1e9);
        }
    }
    port_array_close(&port_array);
    mapping_free(&description.memory);
    return (double)taken * bench_tsc_rate() * 1e3 / (double)ticks;
}

int main(int argc, char **argv)
{
    static const char *const settings[] = {
        "", ", flows: tags, faults: [{kind: corrupt, one_in: 100000, measured: true}]"};
    double seconds = argc > 1 ? atof(argv[1]) : 0.5;
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : 5;
    double rates[2][ROUNDS_MAX];

    if (seconds <= 0 || rounds < 1 || rounds > ROUNDS_MAX)
        return 2;
    for (unsigned i = 0; i < PORTS; i++) {
        char name[16];

        snprintf(name, sizeof name, "p%u", i);
        bed_make_rings(name, &in[i], &out[i], RING);
    }
    pool = rte_pktmbuf_pool_create("frames", PORTS * 4 * RING - 1, 256, 0,
                                   RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (pool == NULL)
        bench_fail("no memory for frames");
    for (unsigned i = 0; i < rounds; i++)
        for (unsigned k = 0; k < 2; k++)
            rates[k][i] = measure(settings[k], seconds);
    for (unsigned k = 0; k < 2; k++) {
        const char *what = k == 0 ? "all to all, 870 flows" : "... with tags and a fault";
        double median = bench_median(rates[k], rounds);

        printf("%s: %.2f to %.2f M frames/s\n", what, rates[k][0], rates[k][rounds - 1]);
        bench_verdict(what, median, "M frames/s", false, 5);
    }
    return 0;
}
