/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_pair.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct ring_pair pair;

static int open_rings(bool crossed)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    const char *why = ring_ports_make(&pair.rings, 2, crossed, pair.confs);
    struct err err = {""};

    if (why != NULL)
        fail_msg("%s", why);
    for (unsigned i = 0; i < 2; i++)
        if (transport_dpdk.open(&pair.ports[i], &pair.confs[i], &run, &err) != 0)
            fail_msg("%s", err.text);
    return 0;
}

int ring_pair_open_crossed(void **state)
{
    return open_rings(true);
}

int ring_pair_open(void **state)
{
    return open_rings(false);
}

int ring_pair_close(void **state)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.close(pair.ports[i]);
    return 0;
}

struct phase ring_pair_phase(enum traffic traffic, uint32_t size, double rate_fps,
                             const struct dpdk_options *options)
{
    return (struct phase){
        .tag = 7,
        .traffic = traffic,
        .sizes = {size},
        .size_count = 1,
        .load = {.rate_fps = rate_fps},
        .options = options,
        .start_ns = RING_PAIR_START_NS,
        .open_ns = RING_PAIR_START_NS,
        .close_ns = CLOCK_NEVER,
        .stop_ns = CLOCK_NEVER,
    };
}

static void connect_rank(uint32_t rank)
{
    struct lane_flow *flow = &pair.flows[rank];
    struct lane_request request = {.port = pair.ports[rank],
                                   .phase = &pair.phase,
                                   .rank = rank,
                                   .ranks = 2,
                                   .sends = flow,
                                   .send_count = rank == 0,
                                   .receives = flow,
                                   .receive_count = rank == 1,
                                   .count = &pair.counts[rank],
                                   .line_rate_bps = pair.confs[rank].line_rate_bps};
    int64_t now_ns = pair.phase.start_ns / 2;
    struct err err = {""};
    int rc;

    *flow = (struct lane_flow){.src = 0, .dst = 1, .side = &pair.sides[rank]};
    flow->partner = transport_address(&transport_dpdk, pair.ports[1 - rank]);
    if (transport_dpdk.prepare(&pair.lanes[rank], &request, &err) != 0)
        fail_msg("%s", err.text);
    while ((rc = transport_dpdk.connect(pair.lanes[rank], now_ns, &err)) == -EINPROGRESS)
        now_ns += NS_PER_MS;
    assert_int_equal(rc, 0);
}

void ring_pair_connect(const struct phase *phase)
{
    pair.phase = *phase;
    memset(pair.sides, 0, sizeof pair.sides);
    memset(pair.counts, 0, sizeof pair.counts);
    connect_rank(1);
    connect_rank(0);
}

void ring_pair_destroy(void)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.destroy(pair.lanes[i]);
}

void ring_pair_start(int64_t now_ns)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.poll(pair.lanes[i], now_ns);
}

double ring_pair_metric(uint32_t rank, const char *name)
{
    static struct flow_reading reading;

    reading = (struct flow_reading){.metric_count = 0};
    transport_dpdk.read_flow(pair.lanes[rank], &pair.flows[rank], &reading);
    for (unsigned i = 0; i < reading.metric_count; i++)
        if (strcmp(reading.metrics[i].name, name) == 0)
            return reading.metrics[i].value;
    fail_msg("no metric %s", name);
    return 0;
}

void ring_pair_lose_sent(unsigned port)
{
    void *frame;

    while (rte_ring_dequeue(pair.rings.sent[port], &frame) == 0)
        rte_pktmbuf_free(frame);
}

void ring_pair_poll(int64_t from_ns, int64_t until_ns, int64_t step_ns,
                    bool (*arrives)(const struct rte_mbuf *frame, int64_t now_ns))
{
    for (int64_t now_ns = from_ns; now_ns < until_ns; now_ns += step_ns) {
        void *frame;

        transport_dpdk.poll(pair.lanes[0], now_ns);
        while (arrives != NULL && rte_ring_dequeue(pair.rings.sent[0], &frame) == 0) {
            if (arrives(frame, now_ns))
                assert_int_equal(rte_ring_enqueue(pair.rings.received[1], frame), 0);
            else
                rte_pktmbuf_free(frame);
        }
        transport_dpdk.poll(pair.lanes[1], now_ns);
    }
}
