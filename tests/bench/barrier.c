/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Latency of the barrier over loopback: p control endpoints, one thread each, `rounds` barriers in
 * succession, the time of each on each node; datagrams a barrier as the kernel counts them; and
 * the cost of one seal. Usage: bench_barrier [barriers].
 */
#include "clock.h"
#include "datagram.h"
#include "endpoint.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 8

struct runner {
    struct control *control;
    unsigned barriers;
    int64_t *took_ns;
};

static void fail(const char *what)
{
    fprintf(stderr, "bench_barrier: %s\n", what);
    exit(1);
}

static void pump(struct control *control)
{
    int64_t wait_ns = control_deadline(control) - clock_now();
    struct timespec wait = {wait_ns / NS_PER_S, wait_ns % NS_PER_S};
    struct pollfd readable = {.fd = control_fd(control), .events = POLLIN};

    if (wait_ns > 0)
        ppoll(&readable, 1, &wait, NULL);
    control_work(control, clock_now());
}

static void *run(void *argument)
{
    struct runner *runner = argument;
    struct barrier_values mine = {.states = 1}, all;

    for (unsigned i = 0; i < runner->barriers; i++) {
        int64_t start_ns = clock_now();

        control_barrier_enter(runner->control, &mine, start_ns);
        while (control_barrier_state(runner->control, &all) == BARRIER_WAITING)
            pump(runner->control);
        if (control_barrier_state(runner->control, &all) != BARRIER_PASSED)
            fail("a barrier failed");
        runner->took_ns[i] = clock_now() - start_ns;
    }
    return NULL;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void open_all(struct runner *runners, uint32_t nodes)
{
    struct control_conf conf = {.barrier_timeout_ns = 5 * NS_PER_S};
    struct sockaddr_in *address = (struct sockaddr_in *)&conf.address;
    struct sockaddr_storage addresses[NODES_MAX];
    struct control_peers peers = {.count = nodes, .addresses = addresses, .run_id = "bench"};
    struct err err = {0};

    address->sin_family = AF_INET;
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (uint32_t i = 0; i < nodes; i++) {
        if (control_open(&runners[i].control, &conf, &err) < 0)
            fail(err.text);
        control_address(runners[i].control, &addresses[i]);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        peers.self = i;
        if (control_join(runners[i].control, &peers, &err) < 0)
            fail(err.text);
    }
}

static void *close_one(void *argument)
{
    control_close(((struct runner *)argument)->control);
    return NULL;
}

static void on_threads(struct runner *runners, uint32_t nodes, void *(*work)(void *))
{
    pthread_t threads[NODES_MAX];

    for (uint32_t i = 0; i < nodes; i++)
        if (pthread_create(&threads[i], NULL, work, &runners[i]))
            fail("no thread");
    for (uint32_t i = 0; i < nodes; i++)
        pthread_join(threads[i], NULL);
}

/* UDP datagrams that this namespace has sent; -1: unknown. */
static long long udp_sent(void)
{
    FILE *file = fopen("/proc/self/net/snmp", "r");
    char line[512];
    long long in, no_ports, errors, out = -1;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "Udp: %lld %lld %lld %lld", &in, &no_ports, &errors, &out) == 4)
            break;
    if (file)
        fclose(file);
    return out;
}

static void measure(uint32_t nodes, unsigned barriers)
{
    struct runner runners[NODES_MAX] = {0};
    int64_t *took_ns = calloc((size_t)nodes * barriers, sizeof(*took_ns));
    size_t count = (size_t)nodes * barriers;
    long long sent;

    if (!took_ns)
        fail("no memory");
    open_all(runners, nodes);
    for (uint32_t i = 0; i < nodes; i++)
        runners[i] = (struct runner){runners[i].control, 10, took_ns + (size_t)i * barriers};
    on_threads(runners, nodes, run); /* greeting and warm-up */
    for (uint32_t i = 0; i < nodes; i++)
        runners[i].barriers = barriers;
    sent = udp_sent();
    on_threads(runners, nodes, run);
    sent = udp_sent() - sent;
    qsort(took_ns, count, sizeof(*took_ns), compare);
    printf("%u nodes: p50 %.1f us, p99 %.1f us, max %.1f us, %.3f datagrams a barrier\n", nodes,
           (double)took_ns[count / 2] / 1e3, (double)took_ns[count * 99 / 100] / 1e3,
           (double)took_ns[count - 1] / 1e3, (double)sent / barriers);
    on_threads(runners, nodes, close_one);
    free(took_ns);
}

static void measure_seal(void)
{
    const struct datagram datagram = {.type = DATAGRAM_ARRIVAL};
    uint8_t bytes[DATAGRAM_MAX], key[DATAGRAM_KEY_BYTES] = {1};
    size_t size = datagram_write(&datagram, key, bytes);
    unsigned rounds = 200000, right = 0;
    int64_t start_ns = clock_now();

    for (unsigned i = 0; i < rounds; i++)
        right += datagram_sealed(bytes, size, key);
    if (right != rounds)
        fail("the seal is wrong");
    printf("seal of an arrival (%zu bytes): %.0f ns\n", size,
           (double)(clock_now() - start_ns) / rounds);
}

int main(int argc, char **argv)
{
    unsigned barriers = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 2000;

    if (barriers < 10 || barriers > 1000000)
        fail("barriers: 10 to 1000000");
    measure_seal();
    for (uint32_t nodes = 2; nodes <= NODES_MAX; nodes *= 2)
        measure(nodes, barriers);
    return 0;
}
