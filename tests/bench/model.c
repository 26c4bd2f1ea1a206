/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Frames a second that one core carries through the modelled switch: 30 ports of 1G (net_ring),
 * 64-byte frames, each port always with frames at hand. The frames' makers and takers run on the
 * same core between the turns; the time is that of the turns alone, devices included. Beside it a
 * bare loop that reads the same rings and writes to the destination's, without a switch.
 *
 *     model [SECONDS [ROUNDS]]
 */
#include "clock.h"
#include "common.h"
#include "dpdk_bed.h"
#include "port_array.h"
#include "signature.h"

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PORTS 30u
#define RATE_BPS 1000000000ull
#define SIZE 64u
#define RING 256u
#define AHEAD 64u /* frames that wait at each port */
#define POOL (PORTS * 4 * RING - 1)
#define ROUNDS 5

enum traffic_kind { NEIGHBOURS, ALL_TO_ALL };

struct world {
    struct rte_ring *in[PORTS], *out[PORTS]; /* of each device: what it receives and sends */
    uint16_t port[PORTS];
    struct rte_mempool *pool;
    unsigned next[PORTS];
    uint32_t sequence;
    uint64_t taken;
};

static struct world world;

static unsigned destination(enum traffic_kind load, unsigned from)
{
    unsigned step = 1;

    if (load == ALL_TO_ALL)
        step = world.next[from] = world.next[from] % (PORTS - 1) + 1;
    return (from + step) % PORTS;
}

static void fill(struct rte_mbuf *frame, unsigned from, unsigned to)
{
    struct signature signature = {.tag = htobe16(BED_TAG)};
    struct signature_time time = signature_time(1000);
    uint8_t *at;

    rte_pktmbuf_reset(frame);
    frame->data_len = SIZE - MODEL_FCS;
    frame->pkt_len = SIZE - MODEL_FCS;
    at = rte_pktmbuf_mtod(frame, uint8_t *);
    memset(at, 0, 12);
    at[0] = at[6] = 2;
    at[5] = (uint8_t)to;
    at[11] = (uint8_t)from;
    at[12] = 0x88;
    at[13] = 0xb5;
    signature_stamp(&signature, world.sequence++, &time, signature_base(&signature) + time.sum);
    memcpy(at + 14, &signature, sizeof signature);
}

static void feed(enum traffic_kind load)
{
    struct rte_mbuf *frames[AHEAD];

    for (unsigned i = 0; i < PORTS; i++) {
        unsigned missing = rte_ring_count(world.in[i]);

        missing = missing < AHEAD ? AHEAD - missing : 0;
        if (missing == 0 || rte_pktmbuf_alloc_bulk(world.pool, frames, missing) != 0)
            continue;
        for (unsigned k = 0; k < missing; k++)
            fill(frames[k], i, destination(load, i));
        if (rte_ring_enqueue_bulk(world.in[i], (void **)frames, missing, NULL) == 0)
            bed_fail("a ring is too small");
    }
}

static void take(void)
{
    struct rte_mbuf *frames[RING];

    for (unsigned i = 0; i < PORTS; i++) {
        unsigned count = rte_ring_dequeue_burst(world.out[i], (void **)frames, RING, NULL);

        rte_pktmbuf_free_bulk(frames, count);
        world.taken += count;
    }
}

static void bare_turn(void)
{
    for (unsigned i = 0; i < PORTS; i++) {
        struct rte_mbuf *frames[32];
        uint16_t count = rte_eth_rx_burst(world.port[i], 0, frames, 32);

        for (uint16_t k = 0; k < count; k++) {
            unsigned to = rte_pktmbuf_mtod(frames[k], uint8_t *)[5];

            if (rte_eth_tx_burst(world.port[to], 0, &frames[k], 1) == 0)
                rte_pktmbuf_free(frames[k]);
        }
    }
}

struct setting {
    const char *name;
    enum traffic_kind load;
    bool bare;
    bool by_tag;
    bool fault;
    double reach; /* M frames/s; 0: none */
};

static void describe(struct description *description, const struct setting *setting)
{
    static char name[] = "bench";
    static struct switch_text text = {.name = name};
    static struct port_text ports[PORTS];
    static struct device_text devices[PORTS];
    static struct model_fault_conf fault;
    static char names[PORTS][16], vdevs[PORTS][24];

    *description = (struct description){.text = &text};
    for (unsigned i = 0; i < PORTS; i++) {
        snprintf(names[i], sizeof names[i], "p%u", i);
        snprintf(vdevs[i], sizeof vdevs[i], "net_ring_p%u", i);
        devices[i] = (struct device_text){.vdev = vdevs[i]};
        ports[i] = (struct port_text){.devices = &devices[i], .devices_count = 1};
        description->ports[i] = (struct model_port_conf){
            .name = names[i], .rate = {.step = {{0, RATE_BPS}}, .step_count = 1}};
    }
    text.ports = ports;
    text.ports_count = PORTS;
    fault = (struct model_fault_conf){.kind = MODEL_FAULT_CORRUPT,
                                      .one_in = 100000,
                                      .in = -1,
                                      .out = -1,
                                      .to = -1,
                                      .measured = true};
    description->conf = (struct model_conf){
        .seed = 1,
        .ports = description->ports,
        .port_count = PORTS,
        .mtu = 1500,
        .buffer_bytes = 1 << 20,
        .input_bytes = 1 << 20,
        .table = {.size = 8192, .ageing_ns = 300000000000},
        .by_tag = setting->by_tag,
        .faults = &fault,
        .fault_count = setting->fault ? 1 : 0,
    };
}

static void learn(struct port_array *port_array)
{
    for (unsigned i = 0; i < PORTS; i++) {
        struct rte_mbuf *frame = rte_pktmbuf_alloc(world.pool);

        fill(frame, i, (i + 1) % PORTS);
        (void)rte_ring_enqueue(world.in[i], frame);
        for (unsigned k = 0; k < 5; k++)
            port_array_turn(port_array, clock_now());
        take();
    }
}

/* Million frames a second that came out, by the time of the turns. */
static double measure(const struct setting *setting, double seconds, double ticks_per_ns)
{
    struct description description;
    struct port_array port_array;
    struct err err = {""};
    uint64_t ticks = 0, begun;
    int64_t end_ns;

    describe(&description, setting);
    if (!setting->bare) {
        if (port_array_open(&port_array, &description, &err) != 0)
            bed_fail(err.text);
        learn(&port_array);
    }
    for (unsigned i = 0; i < PORTS && setting->bare; i++)
        if (rte_eth_dev_start(world.port[i]) != 0)
            bed_fail("a port does not start again");
    world.taken = 0;
    end_ns = clock_now() + (int64_t)(seconds * 1e9);
    while (clock_now() < end_ns) {
        feed(setting->load);
        begun = rte_rdtsc();
        if (setting->bare)
            bare_turn();
        else
            port_array_turn(&port_array, clock_now());
        ticks += rte_rdtsc() - begun;
        take();
    }
    for (unsigned i = 0; i < PORTS && setting->bare; i++)
        (void)rte_eth_dev_stop(world.port[i]);
    if (!setting->bare)
        port_array_close(&port_array);
    return (double)world.taken * ticks_per_ns * 1e3 / (double)ticks;
}

static void open_world(void)
{
    for (unsigned i = 0; i < PORTS; i++) {
        char name[16];

        snprintf(name, sizeof name, "p%u", i);
        bed_make_rings(name, &world.in[i], &world.out[i], RING);
        snprintf(name, sizeof name, "net_ring_p%u", i);
        if (rte_eth_dev_get_port_by_name(name, &world.port[i]) != 0)
            bed_fail("no ring port here");
    }
    world.pool =
        rte_pktmbuf_pool_create("frames", POOL, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (world.pool == NULL)
        bed_fail("no memory for frames");
}

int main(int argc, char **argv)
{
    static const struct setting settings[] = {
        {.name = "neighbours", .load = NEIGHBOURS, .reach = 5},
        {.name = "all to all, 870 flows", .load = ALL_TO_ALL, .reach = 5},
        {.name = "... with tags and a fault",
         .load = ALL_TO_ALL,
         .by_tag = true,
         .fault = true,
         .reach = 5},
        {.name = "bare loop, all to all", .load = ALL_TO_ALL, .bare = true},
    };
    enum { SETTINGS = sizeof settings / sizeof *settings };
    double seconds = argc > 1 ? atof(argv[1]) : 0.5, ticks_per_ns = bench_tsc_rate();
    unsigned rounds = argc > 2 ? (unsigned)atoi(argv[2]) : ROUNDS;
    double rates[SETTINGS][64];

    if (seconds <= 0 || rounds < 1 || rounds > 64)
        return 2;
    open_world();
    for (unsigned i = 0; i < rounds; i++)
        for (unsigned k = 0; k < SETTINGS; k++)
            rates[k][i] = measure(&settings[k], seconds, ticks_per_ns);
    for (unsigned k = 0; k < SETTINGS; k++) {
        double median = bench_median(rates[k], rounds);

        printf("%s: median %.2f M frames/s of %u (%.2f to %.2f), %.0f cycles a frame\n",
               settings[k].name, median, rounds, rates[k][0], rates[k][rounds - 1],
               ticks_per_ns * 1e3 / median);
        if (settings[k].reach > 0)
            bench_at_least(settings[k].name, median, "M frames/s", settings[k].reach);
    }
    return 0;
}
