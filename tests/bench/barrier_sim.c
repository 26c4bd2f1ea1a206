/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The barrier among 65,536 simulated nodes: the real state machines (engine/control/membership.h)
 * on a model of a network that takes 10 us a hop and up to half as much more, and loses some
 * datagrams. A barrier takes from the moment when the last node enters it until the last one has
 * passed. Reach: twice the theory (log2 n hops) without loss, 20 ms at 1 %; O(log n) memory a node.
 *
 * Usage: bench_barrier_sim [nodes] [barriers]
 */
#include "../unit/barrier_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NODES 65536u
#define BARRIERS 5u /* measured; one more, with the greeting, goes before */
#define BARRIERS_MAX 1000u
#define HOP_NS (10 * NS_PER_US)
#define JITTER_NS (5 * NS_PER_US)
#define LOSS_MOST_NS (20 * NS_PER_MS)

/* At what loss the slowest barrier may take how long; 0: nothing is asked. */
struct rung {
    double loss;
    double hops_most; /* times log2 n hops */
    int64_t most_ns;
};

static const struct rung rungs[] = {
    {.loss = 0, .hops_most = 2},
    {.loss = 0.001},
    {.loss = 0.01, .most_ns = LOSS_MOST_NS},
};

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static uint32_t rounds_of(uint32_t nodes)
{
    uint32_t rounds = 0;

    while (UINT32_C(1) << rounds < nodes)
        rounds++;
    return rounds;
}

/* Runs one simulation; sorted times of its barriers, and the datagrams of one. */
static double simulate(uint32_t nodes, uint32_t barriers, double loss, int64_t *took_ns)
{
    const struct sim_conf conf = {
        .nodes = nodes,
        .epochs = barriers + 1,
        .seed = 1,
        .loss = loss,
        .delay_ns = HOP_NS,
        .jitter_ns = JITTER_NS,
        .pause_ns = NS_PER_MS,
        .entry_ns = 100 * NS_PER_US,
        .timeout_ns = 5 * NS_PER_S,
        .outcast = DATAGRAM_NONE,
    };
    struct sim *sim = sim_new(&conf);
    const char *failure = sim_run(sim);
    const uint64_t *sent = sim_counts(sim)->sent;
    double datagrams;

    if (failure) {
        fprintf(stderr, "bench_barrier_sim: %s\n", failure);
        exit(1);
    }
    for (uint32_t i = 0; i < barriers; i++)
        took_ns[i] = sim_barrier_ns(sim, i + 1);
    qsort(took_ns, barriers, sizeof *took_ns, compare);
    datagrams =
        (double)(sent[DATAGRAM_ARRIVAL] + sent[DATAGRAM_QUESTION] + sent[DATAGRAM_PATIENCE]);
    sim_free(sim);
    return datagrams / (barriers + 1) / nodes;
}

static void measure(const struct rung *rung, uint32_t nodes, uint32_t barriers)
{
    int64_t took_ns[BARRIERS_MAX];
    double datagrams = simulate(nodes, barriers, rung->loss, took_ns);
    int64_t theory_ns = rounds_of(nodes) * HOP_NS;
    int64_t slowest_ns = took_ns[barriers - 1];
    int64_t most_ns =
        rung->hops_most > 0 ? (int64_t)(rung->hops_most * (double)theory_ns) : rung->most_ns;

    printf("loss %.1f %%: median %.0f us, slowest of %u %.0f us, %.2f x theory; %.1f datagrams a "
           "node and barrier",
           rung->loss * 100, (double)took_ns[barriers / 2] / 1e3, barriers,
           (double)slowest_ns / 1e3, (double)took_ns[barriers / 2] / (double)theory_ns, datagrams);
    if (most_ns > 0)
        printf("; reach %.0f us: %s", (double)most_ns / 1e3,
               slowest_ns <= most_ns ? "PASS" : "RED");
    printf("\n");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint32_t nodes = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : NODES;
    uint32_t barriers = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : BARRIERS;

    if (nodes < 2 || nodes > NODES || barriers < 1 || barriers > BARRIERS_MAX) {
        fprintf(stderr, "usage: bench_barrier_sim [2..%u nodes] [1..%u barriers]\n", NODES,
                BARRIERS_MAX);
        return 2;
    }
    printf("%u nodes, %.0f to %.0f us a hop, theory %u hops = %.0f us; state %zu bytes a node "
           "(neighbours for %u rounds)\n",
           nodes, (double)HOP_NS / 1e3, (double)(HOP_NS + JITTER_NS) / 1e3, rounds_of(nodes),
           rounds_of(nodes) * (double)HOP_NS / 1e3, sizeof(struct membership),
           NEIGHBOURS_ROUNDS_MAX);
    for (size_t i = 0; i < sizeof rungs / sizeof rungs[0]; i++)
        measure(&rungs[i], nodes, barriers);
    return 0;
}
