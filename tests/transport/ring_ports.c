/* SPDX-License-Identifier: BSD-3-Clause */
#include "ring_ports.h"

#include "eal.h"
#include "frame.h"

#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define RING 1024
#define COPIES 4095

static struct rte_mempool *copies;

void ring_ports_describe(struct port_conf *conf, unsigned i, const char *vdev)
{
    static char texts[RING_PORTS][3][48];

    assert_true(i < RING_PORTS);
    snprintf(texts[i][0], sizeof texts[i][0], "node%u:e0", i);
    snprintf(texts[i][1], sizeof texts[i][1], "198.18.0.%u/16", i + 1);
    snprintf(texts[i][2], sizeof texts[i][2], "2001:2::%x/64", i + 1);
    *conf = (struct port_conf){
        .name = texts[i][0], .vdev = vdev, .ipv4 = texts[i][1], .ipv6 = texts[i][2]};
}

static struct rte_ring *make_ring(const char *what, unsigned i)
{
    char name[32];

    snprintf(name, sizeof name, "%s%u", what, i);
    return rte_ring_create(name, RING, 0, 0);
}

const char *ring_ports_make(struct ring_ports *ports, unsigned count, bool crossed,
                            struct port_conf *confs)
{
    static char vdevs[RING_PORTS][48];
    struct err err = {""};
    char name[32];

    assert_true(count <= RING_PORTS && (!crossed || count == 2));
    if (eal_start("rings", &err) != 0)
        return "DPDK does not start here";
    for (unsigned i = 0; i < count; i++)
        ports->received[i] = make_ring("received", i);
    for (unsigned i = 0; i < count; i++) {
        ports->sent[i] = crossed ? ports->received[1 - i] : make_ring("sent", i);
        if (ports->sent[i] == NULL || ports->received[i] == NULL)
            return "no memory for rings";
        snprintf(name, sizeof name, "wire%u", i);
        if (rte_eth_from_rings(name, &ports->received[i], 1, &ports->sent[i], 1, 0) < 0)
            return "DPDK has no ring driver here";
        snprintf(vdevs[i], sizeof vdevs[i], "net_ring_%s", name);
        ring_ports_describe(&confs[i], i, vdevs[i]);
    }
    copies =
        rte_pktmbuf_pool_create("copies", COPIES, 0, 0, FRAME_SIZE_MAX + RTE_PKTMBUF_HEADROOM, 0);
    return copies != NULL ? NULL : "no memory for copies";
}

struct rte_mbuf *ring_ports_copy(const struct rte_mbuf *frame)
{
    struct rte_mbuf *twin = rte_pktmbuf_copy(frame, copies, 0, UINT32_MAX);

    assert_non_null(twin);
    return twin;
}
