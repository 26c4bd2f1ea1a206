/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device's time stamps as local time, on simulated clocks: conversion, wrap, drift, and
 * impossible stamps. This file replaces DPDK's functions that read a device, and the local time (ld
 * --wrap).
 */
#define ALLOW_EXPERIMENTAL_API /* rte_eth_read_clock */
#include "arrival.h"

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"
#include "transport.h"
#include "unit.h"

#define FIELD 64      /* of the mbuf, where stamps lie */
#define FLAG (1 << 5) /* of its ol_flags */
#define HZ 156250000u /* as some NICs' clocks have */

#define READ_NS 2000 /* time that a reading of the device's clock takes */

static struct {
    uint64_t origin; /* ticks at local time 0 */
    bool broken;
    unsigned asked;
} device;
static int64_t local_ns;

/* The linker's names (ld --wrap) have no header. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    *now = (struct timespec){local_ns / NS_PER_S, local_ns % NS_PER_S};
    return 0;
}

static uint64_t device_ticks(int64_t at_ns)
{
    return device.origin + (uint64_t)((__int128)at_ns * HZ / NS_PER_S);
}

int rte_eth_read_clock(uint16_t id, uint64_t *ticks)
{
    assert_int_equal(id, 7);
    device.asked++;
    *ticks = device_ticks(local_ns + READ_NS / 2);
    local_ns += READ_NS;
    return device.broken ? -ENOTSUP : 0;
}

int rte_mbuf_dyn_rx_timestamp_register(int *field, uint64_t *flag)
{
    *field = FIELD;
    *flag = FLAG;
    return 0;
}

#define NOW_NS (10 * NS_PER_S)

/* A stamp is `age_ns` old, and the device's clock was first read `span_ns` before NOW_NS:
 * `expected_ns` is the frame's age by both. */
TEST(a_stamp_becomes_local_time)
{
    static const struct {
        uint64_t origin; /* of the device's clock */
        int64_t span_ns, age_ns, expected_ns;
    } cases[] = {
        {987654321, 5 * NS_PER_S, 100, 100},
        {987654321, 5 * NS_PER_S, 2500, 2500},
        {987654321, 5 * NS_PER_S, 62500000, 62500000},
        {987654321, 5 * NS_PER_S, 499999999, 499999999},
        /* Its ticks wrap between the stamp and now, then between the first look and the stamp. */
        {(uint64_t)-10 * HZ + 1000, 5 * NS_PER_S, 40000, 40000},
        {(uint64_t)-8 * HZ, 5 * NS_PER_S, 40000, 40000},
        /* Impossible stamps count as now: the rate is not known yet; the stamp is of the future,
         * too old, missing, or never changes. */
        {987654321, 50 * NS_PER_MS, 40000, 0},
        {987654321, 5 * NS_PER_S, -40000, 0},
        {987654321, 5 * NS_PER_S, 2 * NS_PER_S, 0},
        {0, 5 * NS_PER_S, NOW_NS, 0},
        {0, 0, 40000, 0},
    };

    for (EACH(c, cases)) {
        int64_t begin_ns = NOW_NS - c->span_ns, came_ns;
        struct arrival_clock clock = {.runs = true, .begin_ns = begin_ns};
        struct arrival_reading now = {.at_ns = NOW_NS};

        device.origin = c->origin;
        clock.begin_ticks = device_ticks(begin_ns);
        now.ticks = device_ticks(NOW_NS);
        came_ns = arrival_of(&clock, &now, device_ticks(NOW_NS - c->age_ns));
        assert_in_range(came_ns, NOW_NS - c->expected_ns - 7, NOW_NS - c->expected_ns + 7);
    }
}

/* A device that runs 200 ppm fast causes no error, since its rate is measured. If it changes its
 * rate by as much after half of the time, the error is 100 ppm of a frame's age. */
TEST(drift_is_seen_as_rate)
{
    static const double ticks[] = {10 * 1.0002, 5 + 5 * 1.0002};
    static const int64_t off_ns[] = {7, 107};

    for (size_t i = 0; i < 2; i++) {
        struct arrival_clock clock = {.runs = true, .begin_ns = 0};
        struct arrival_reading now = {.ticks = (uint64_t)(ticks[i] * HZ), .at_ns = NOW_NS};
        uint64_t stamp = now.ticks - (uint64_t)(1e-3 * 1.0002 * HZ);

        assert_in_range(arrival_of(&clock, &now, stamp), NOW_NS - NS_PER_MS - off_ns[i],
                        NOW_NS - NS_PER_MS + 7);
    }
}

/* The device's clock is read while a frame is taken, not before. */
TEST(a_frame_is_timed_by_the_device)
{
    static struct arrival_clock clock;
    static struct rte_mbuf frame = {.ol_flags = FLAG};
    int64_t stamped_ns;
    uint64_t stamp;

    device.origin = 12345;
    local_ns = 5 * NS_PER_S;
    arrival_begin(&clock, 7);
    assert_true(clock.runs);
    stamped_ns = local_ns += NS_PER_S;
    stamp = device_ticks(stamped_ns);
    memcpy((char *)&frame + FIELD, &stamp, sizeof stamp);
    local_ns += 3 * NS_PER_MS; /* it waits in the ring */
    assert_in_range(arrival_ns(&clock, &frame), stamped_ns - 10, stamped_ns + 10);
    frame.ol_flags = 0;
    device.asked = 0;
    assert_int_equal(arrival_ns(&clock, &frame), local_ns);
    assert_int_equal(device.asked, 0);
    frame.ol_flags = FLAG;
    device.broken = true;
    stamped_ns = local_ns;
    assert_int_equal(arrival_ns(&clock, &frame), stamped_ns); /* when it was taken */
    arrival_begin(&clock, 7);
    assert_false(clock.runs);
}

/* Only a run with latency probes pays for stamps, and only where the device's clock can be read. */
TEST(stamps_are_asked_for_where_they_are_used)
{
    const struct rte_eth_dev_info stamps = {.rx_offload_capa = RTE_ETH_RX_OFFLOAD_TIMESTAMP |
                                                               RTE_ETH_RX_OFFLOAD_IPV4_CKSUM};
    const struct rte_eth_dev_info none = {.rx_offload_capa = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM};
    const struct port_conf plain = {.name = "p"}, probed = {.name = "p", .timestamps = true};

    device.broken = false;
    assert_int_equal(arrival_offload(&plain, 7, &stamps), 0);
    assert_int_equal(arrival_offload(&probed, 7, &stamps), RTE_ETH_RX_OFFLOAD_TIMESTAMP);
    assert_int_equal(arrival_offload(&probed, 7, &none), 0);
    device.broken = true;
    assert_int_equal(arrival_offload(&probed, 7, &stamps), 0);
}
