/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A device's time stamps as local time, with a clock made here in place of a device's: conversion,
 * wrap, drift, and stamps that can't be. The functions of DPDK that ask a device are this file's.
 */
#define ALLOW_EXPERIMENTAL_API /* rte_eth_read_clock */
#include "arrival.h"

#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>
#undef NS_PER_S /* DPDK's, of another type than clock.h's */
#include "clock.h"
#include "transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define FIELD 64      /* of the mbuf, where stamps lie */
#define FLAG (1 << 5) /* of its ol_flags */
#define HZ 156250000u /* as some NICs' clocks have */

static struct {
    uint64_t origin; /* ticks at local time 0 */
    bool broken;
    unsigned asked;
    int64_t asked_ns;
} device;

static uint64_t device_ticks(int64_t local_ns)
{
    return device.origin + (uint64_t)((__int128)local_ns * HZ / NS_PER_S);
}

int rte_eth_read_clock(uint16_t id, uint64_t *ticks)
{
    assert_int_equal(id, 7);
    device.asked++;
    device.asked_ns = clock_now();
    *ticks = device_ticks(device.asked_ns);
    return device.broken ? -ENOTSUP : 0;
}

int rte_mbuf_dyn_rx_timestamp_register(int *field, uint64_t *flag)
{
    *field = FIELD;
    *flag = FLAG;
    return 0;
}

/* A clock that was looked at first `span_ns` before local time 10 s. */
static struct arrival_clock a_clock(int64_t span_ns)
{
    return (struct arrival_clock){.runs = true,
                                  .begin_ns = 10 * NS_PER_S - span_ns,
                                  .begin_ticks = device_ticks(10 * NS_PER_S - span_ns)};
}

static int64_t arrived(const struct arrival_clock *clock, uint64_t stamp)
{
    struct arrival_reading now = {device_ticks(10 * NS_PER_S), 10 * NS_PER_S};

    return arrival_of(clock, &now, stamp);
}

static void ticks_become_local_time(void **state)
{
    struct arrival_clock clock;

    device.origin = 987654321;
    clock = a_clock(5 * NS_PER_S);
    for (int64_t age_ns = 100; age_ns < NS_PER_S / 2; age_ns *= 3) {
        int64_t then_ns = 10 * NS_PER_S - age_ns;

        assert_in_range(arrived(&clock, device_ticks(then_ns)), then_ns - 7, then_ns + 7);
    }
}

static void a_wrap_between_is_nothing(void **state)
{
    struct arrival_clock clock;
    int64_t then_ns = 10 * NS_PER_S - 40000;

    /* 0 lies between the stamp and now, then between the first look and the stamp. */
    device.origin = 0 - (uint64_t)10 * HZ + 1000;
    clock = a_clock(5 * NS_PER_S);
    assert_true(device_ticks(then_ns) > device_ticks(10 * NS_PER_S));
    assert_in_range(arrived(&clock, device_ticks(then_ns)), then_ns - 7, then_ns + 7);
    device.origin = 0 - (uint64_t)8 * HZ;
    clock = a_clock(5 * NS_PER_S);
    assert_true(clock.begin_ticks > device_ticks(then_ns));
    assert_in_range(arrived(&clock, device_ticks(then_ns)), then_ns - 7, then_ns + 7);
}

/* A device that runs 200 ppm fast is no matter: its rate is what was seen. One that changed its
 * rate by so much after half of the time is off by 100 ppm of a frame's age. */
static void drift_is_seen_as_rate(void **state)
{
    struct arrival_clock clock = {.runs = true, .begin_ns = 0};
    struct arrival_reading now = {.ticks = (uint64_t)(10 * 1.0002 * HZ), .at_ns = 10 * NS_PER_S};
    uint64_t stamp = now.ticks - (uint64_t)(1e-3 * 1.0002 * HZ);
    int64_t then_ns = 10 * NS_PER_S - NS_PER_MS;

    assert_in_range(arrival_of(&clock, &now, stamp), then_ns - 7, then_ns + 7);
    now.ticks = (uint64_t)(5 * HZ + 5 * 1.0002 * HZ);
    stamp = now.ticks - (uint64_t)(1e-3 * 1.0002 * HZ);
    assert_in_range(arrival_of(&clock, &now, stamp), then_ns - 107, then_ns + 7);
}

static void what_can_not_be_is_now(void **state)
{
    struct arrival_clock young = a_clock(50 * NS_PER_MS), clock = a_clock(5 * NS_PER_S);
    struct arrival_clock stuck = {.runs = true, .begin_ticks = device_ticks(10 * NS_PER_S)};
    int64_t now_ns = 10 * NS_PER_S;

    assert_int_equal(arrived(&young, device_ticks(now_ns - 40000)), now_ns);
    assert_int_equal(arrived(&clock, device_ticks(now_ns + 40000)), now_ns);
    assert_int_equal(arrived(&clock, device_ticks(now_ns - 2 * NS_PER_S)), now_ns);
    assert_int_equal(arrived(&clock, 0), now_ns); /* of 32 bits, or none */
    assert_int_equal(arrived(&stuck, device_ticks(now_ns - 40000)), now_ns);
}

/* The device's clock is read while a frame is looked at, not before. */
static void a_frame_is_timed_by_the_device(void **state)
{
    static struct arrival_clock clock;
    static struct rte_mbuf frame;
    int64_t stamped_ns, came_ns, before_ns;
    uint64_t stamp;

    device.origin = 12345;
    arrival_begin(&clock, 7);
    assert_true(clock.runs);
    clock.begin_ns -= NS_PER_S; /* a second ago */
    clock.begin_ticks -= HZ;
    frame.ol_flags = FLAG;
    stamped_ns = clock_now();
    stamp = device_ticks(stamped_ns);
    memcpy((char *)&frame + FIELD, &stamp, sizeof stamp);
    for (before_ns = clock_now(); before_ns < stamped_ns + 3 * NS_PER_MS;)
        before_ns = clock_now(); /* it waits in the ring */
    came_ns = arrival_ns(&clock, &frame);
    /* Off by half of what reading the clock took, and by the look at the start. */
    assert_true(came_ns >= stamped_ns - 20000 - (clock_now() - before_ns));
    assert_true(came_ns <= stamped_ns + 20000 + (clock_now() - before_ns));
    frame.ol_flags = 0;
    device.asked = 0;
    before_ns = clock_now();
    assert_true(arrival_ns(&clock, &frame) >= before_ns);
    assert_int_equal(device.asked, 0);
    frame.ol_flags = FLAG;
    device.broken = true;
    assert_true(arrival_ns(&clock, &frame) >= before_ns);
    arrival_begin(&clock, 7);
    assert_false(clock.runs);
}

/* Only a run with latency probes pays for stamps, and only where the device's clock can be read. */
static void stamps_are_asked_for_where_they_are_used(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ticks_become_local_time),
        cmocka_unit_test(a_wrap_between_is_nothing),
        cmocka_unit_test(drift_is_seen_as_rate),
        cmocka_unit_test(what_can_not_be_is_now),
        cmocka_unit_test(a_frame_is_timed_by_the_device),
        cmocka_unit_test(stamps_are_asked_for_where_they_are_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
