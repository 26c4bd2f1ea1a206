/* SPDX-License-Identifier: BSD-3-Clause */
#include "control_bed.h"

#include "barrier_sim.h"
#include "clock.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LINGER_NS (130 * NS_PER_MS)
#define LINGER_FAULT_NS (450 * NS_PER_MS)
#define BARRIER_LIMIT_NS (20 * NS_PER_S)

static struct sockaddr_storage loopback(int family)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family};

    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    return address;
}

static socklen_t size_of(const struct sockaddr_storage *address)
{
    return address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

static bool open_relay(struct bed *bed)
{
    struct sockaddr_storage address = loopback(bed->family);
    socklen_t size = sizeof(bed->relay_address);

    bed->relay = socket(bed->family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (bed->relay < 0)
        return false;
    if (bind(bed->relay, (struct sockaddr *)&address, size_of(&address)) < 0) {
        close(bed->relay);
        return false;
    }
    getsockname(bed->relay, (struct sockaddr *)&bed->relay_address, &size);
    return true;
}

bool bed_open(struct bed *bed, uint32_t count, int family, int64_t timeout_ns)
{
    struct control_conf conf = {.address = loopback(family), .barrier_timeout_ns = timeout_ns};
    struct err err = {0};

    memset(bed, 0, sizeof(*bed));
    bed->count = count;
    bed->family = family;
    bed->random = count;
    if (!open_relay(bed))
        return false;
    bed->records = calloc(BED_RECORDS_MAX, sizeof(*bed->records));
    assert_non_null(bed->records);
    for (uint32_t i = 0; i < count; i++) {
        if (control_open(&bed->nodes[i], &conf, &err) < 0)
            fail_msg("%s", err.text);
        control_address(bed->nodes[i], &bed->addresses[i]);
    }
    return true;
}

void bed_kill(struct bed *bed, uint32_t node)
{
    control_close(bed->nodes[node]);
    bed->nodes[node] = NULL;
}

/* A node that is closed lingers for its partners, longer after a fault; here all do so at once. */
void bed_close(struct bed *bed)
{
    bool fault = false;

    for (uint32_t i = 0; i < bed->count; i++)
        fault |= bed->nodes[i] && control_fault(bed->nodes[i]);
    bed_pump_for(bed, fault ? LINGER_FAULT_NS : LINGER_NS);
    for (uint32_t i = 0; i < bed->count; i++)
        bed_kill(bed, i);
    close(bed->relay);
    free(bed->records);
}

void bed_join(struct bed *bed, uint32_t node, const char *run_id, uint8_t key)
{
    struct sockaddr_storage addresses[BED_NODES_MAX];
    const struct control_peers peers = {
        .self = node, .count = bed->count, .addresses = addresses, .run_id = run_id, .key = {key}};
    struct err err = {0};

    for (uint32_t i = 0; i < bed->count; i++)
        addresses[i] = bed->relay_address;
    if (control_join(bed->nodes[node], &peers, &err) < 0)
        fail_msg("%s", err.text);
}

void bed_join_all(struct bed *bed)
{
    for (uint32_t i = 0; i < bed->count; i++)
        bed_join(bed, i, "test", 1);
}

void bed_inject(struct bed *bed, uint32_t node, const uint8_t *bytes, size_t size)
{
    const struct sockaddr_storage *address = &bed->addresses[node];

    if (sendto(bed->relay, bytes, size, 0, (const struct sockaddr *)address, size_of(address)) < 0)
        fail_msg("the relay can't send");
}

static void relay_one(struct bed *bed, const uint8_t *bytes, size_t size)
{
    struct datagram datagram;

    if (datagram_read(&datagram, bytes, size) < 0 || datagram.recipient >= bed->count)
        fail_msg("a node sent a malformed datagram");
    if (bed->recording && bed->record_count < BED_RECORDS_MAX) {
        struct bed_record *record = &bed->records[bed->record_count++];

        record->size = (uint16_t)size;
        memcpy(record->bytes, bytes, size);
    }
    if ((double)(sim_random(&bed->random) >> 11) * 0x1p-53 >= bed->loss)
        bed_inject(bed, datagram.recipient, bytes, size);
}

static void relay_all(struct bed *bed)
{
    uint8_t bytes[DATAGRAM_MAX + 1];
    ssize_t size;

    while ((size = recv(bed->relay, bytes, sizeof(bytes), 0)) > 0)
        relay_one(bed, bytes, (size_t)size);
}

void bed_pump(struct bed *bed)
{
    struct pollfd readable[BED_NODES_MAX + 1] = {{.fd = bed->relay, .events = POLLIN}};
    uint32_t live = 1;

    for (uint32_t i = 0; i < bed->count; i++)
        if (bed->nodes[i])
            readable[live++] = (struct pollfd){.fd = control_fd(bed->nodes[i]), .events = POLLIN};
    poll(readable, live, 1);
    relay_all(bed);
    for (uint32_t i = 0; i < bed->count; i++)
        if (bed->nodes[i])
            control_work(bed->nodes[i], clock_now());
    relay_all(bed);
}

void bed_pump_for(struct bed *bed, int64_t duration_ns)
{
    int64_t end_ns = clock_now() + duration_ns;

    while (clock_now() < end_ns)
        bed_pump(bed);
}

enum barrier_state bed_state(struct bed *bed, uint32_t node)
{
    return control_barrier_state(bed->nodes[node], NULL);
}

void bed_barrier(struct bed *bed, const struct barrier_values *mine)
{
    const struct barrier_values nothing = {
        .maximum = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN}};
    int64_t end_ns = clock_now() + BARRIER_LIMIT_NS;
    uint32_t waiting;

    for (uint32_t i = 0; i < bed->count; i++)
        if (bed->nodes[i])
            control_barrier_enter(bed->nodes[i], mine ? &mine[i] : &nothing, clock_now());
    do {
        bed_pump(bed);
        waiting = 0;
        for (uint32_t i = 0; i < bed->count; i++)
            waiting += bed->nodes[i] && bed_state(bed, i) == BARRIER_WAITING;
        if (clock_now() > end_ns)
            fail_msg("the barrier does not end");
    } while (waiting);
}
