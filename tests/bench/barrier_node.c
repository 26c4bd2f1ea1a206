/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One node of barrier_mpi.py: a process that goes through barriers as switchbench-node does, by
 * node_barrier() on a control endpoint, and prints how long each took, in ns, one a line.
 *
 * Usage: barrier_node INDEX COUNT BARRIERS NETWORK, where node i has the IPv4 address
 * NETWORK + i + 1. The same number of barriers, not measured, go before.
 */
#include "clock.h"
#include "node.h"
#include "registry.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define PORT 7600
#define NODES_MAX 64

static void fail(const char *what)
{
    fprintf(stderr, "barrier_node: %s\n", what);
    exit(1);
}

static struct sockaddr_storage address_of(in_addr_t network, uint32_t index)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *ipv4 = (struct sockaddr_in *)&address;

    ipv4->sin_family = AF_INET;
    ipv4->sin_port = htons(PORT);
    ipv4->sin_addr.s_addr = htonl(ntohl(network) + index + 1);
    return address;
}

/* All descriptors that the node's loop waits for, as main.c opens them; the input stays empty. */
static void open_node(struct node *node)
{
    struct err err = {0};
    sigset_t none;
    int pipe_fds[2];

    sigemptyset(&none);
    node->signal_fd = signalfd(-1, &none, SFD_NONBLOCK | SFD_CLOEXEC);
    node->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (pipe(pipe_fds) < 0)
        fail("no pipe");
    node->input_fd = pipe_fds[0];
    if (input_open(&node->input, node->input_fd, false, transports, &err) < 0 ||
        records_open(&node->records, open("/dev/null", O_WRONLY), "bench", &err) < 0)
        fail(err.text);
}

static void join(struct node *node, in_addr_t network, uint32_t count)
{
    struct control_conf conf = {
        .address = address_of(network, node->self),
        .barrier_timeout_ns = 10 * NS_PER_S,
    };
    struct sockaddr_storage addresses[NODES_MAX];
    struct control_peers peers = {
        .self = node->self, .count = count, .addresses = addresses, .run_id = "bench"};
    struct err err = {0};

    for (uint32_t i = 0; i < count; i++)
        addresses[i] = address_of(network, i);
    if (control_open(&node->control, &conf, &err) < 0 ||
        control_join(node->control, &peers, &err) < 0)
        fail(err.text);
    node->joined = true;
}

static void pass(struct node *node, size_t barriers, int64_t *took_ns)
{
    for (size_t i = 0; i < barriers; i++) {
        struct barrier_values values;
        int64_t start_ns = clock_now();

        barrier_values_clear(&values);
        if (node_barrier(node, &values) < 0)
            fail("a barrier failed");
        took_ns[i] = clock_now() - start_ns;
    }
}

int main(int argc, char **argv)
{
    static const struct doc_job job;                        /* no heartbeat_timeout */
    struct node node = {.job = &job, .cores.sleeps = true}; /* as in a lab */
    size_t barriers = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
    uint32_t count = argc == 5 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    int64_t *took_ns = calloc(barriers + 1, sizeof *took_ns);

    if (barriers == 0 || count == 0 || count > NODES_MAX || took_ns == NULL)
        fail("usage: barrier_node INDEX COUNT BARRIERS NETWORK");
    node.self = (uint32_t)strtoul(argv[1], NULL, 10);
    open_node(&node);
    join(&node, inet_addr(argv[4]), count);
    pass(&node, 1, took_ns);
    set_thread_priority(&node, true); /* as in a trial, which comes after a first barrier */
    pass(&node, barriers, took_ns);
    pass(&node, barriers, took_ns);
    for (size_t i = 0; i < barriers; i++)
        printf("%lld\n", (long long)took_ns[i]);
    control_close(node.control);
    records_close(node.records);
    input_close(node.input);
    free(took_ns);
    return 0;
}
