/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_pair.h"

#include "clock.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

void ring_pair_open(struct ring_pair *pair, bool crossed)
{
    static const struct transport_run run = {.run_id = "test", .node = "n"};
    const char *why = ring_ports_make(&pair->rings, 2, crossed, pair->confs);
    struct err err = {""};

    if (why != NULL)
        fail_msg("%s", why);
    for (unsigned i = 0; i < 2; i++)
        if (transport_dpdk.open(&pair->ports[i], &pair->confs[i], &run, &err) != 0)
            fail_msg("%s", err.text);
}

void ring_pair_close(struct ring_pair *pair)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.close(pair->ports[i]);
}

static void connect_rank(struct ring_pair *pair, uint32_t rank)
{
    struct lane_flow *flow = &pair->flows[rank];
    struct lane_request request = {.port = pair->ports[rank],
                                   .phase = &pair->phase,
                                   .rank = rank,
                                   .ranks = 2,
                                   .sends = flow,
                                   .send_count = rank == 0,
                                   .receives = flow,
                                   .receive_count = rank == 1,
                                   .count = &pair->counts[rank],
                                   .line_rate_bps = pair->confs[rank].line_rate_bps};
    int64_t now_ns = pair->phase.start_ns / 2;
    struct err err = {""};
    int rc;

    *flow = (struct lane_flow){.src = 0, .dst = 1, .side = &pair->sides[rank]};
    flow->partner = transport_address(&transport_dpdk, pair->ports[1 - rank]);
    if (transport_dpdk.prepare(&pair->lanes[rank], &request, &err) != 0)
        fail_msg("%s", err.text);
    while ((rc = transport_dpdk.connect(pair->lanes[rank], now_ns, &err)) == -EINPROGRESS)
        now_ns += NS_PER_MS;
    assert_int_equal(rc, 0);
}

void ring_pair_connect(struct ring_pair *pair, const struct phase *phase)
{
    pair->phase = *phase;
    memset(pair->sides, 0, sizeof pair->sides);
    memset(pair->counts, 0, sizeof pair->counts);
    connect_rank(pair, 1);
    connect_rank(pair, 0);
}

void ring_pair_destroy(struct ring_pair *pair)
{
    for (unsigned i = 0; i < 2; i++)
        transport_dpdk.destroy(pair->lanes[i]);
}
