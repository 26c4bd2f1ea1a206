/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A small world for tests of the tcp transport: some ports in this process, a phase, its flows,
 * all driven by one thread as the main thread and the workers would.
 */
#ifndef TESTS_TCP_WORLD_H
#define TESTS_TCP_WORLD_H

#include "clock.h"
#include "schedule_executor.h"
#include "tcp/tcp.h"
#include "transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORLD_PORTS 8
#define WORLD_FLOWS 64

extern const struct transport transport_tcp;

/* One rank: a port, and its lane in the present phase. */
struct world_rank {
    struct port_conf conf;
    char name[24];
    char address[16];
    struct transport_port *port;
    const struct transport_secret *secret; /* NULL: the world's */
    struct blob blob;
    struct lane *lane;
    struct schedule_executor *executor; /* of world->plan's phase 0 */
    struct port_count count;
    struct lane_flow sends[WORLD_FLOWS];
    struct lane_flow receives[WORLD_FLOWS];
    uint32_t send_count;
    uint32_t receive_count;
};

struct world_flow {
    uint32_t src;
    uint32_t dst;
    enum pattern_role role;
    struct flow_side source;
    struct flow_side destination;
    const struct blob *detour; /* the source is told this address instead; NULL: the true one */
};

struct world {
    struct transport_run run;
    struct transport_secret secret;
    struct phase phase;
    struct tcp_options options; /* of the phase */
    uint64_t line_rate_bps;
    struct world_rank ranks[WORLD_PORTS];
    uint32_t rank_count;
    struct world_flow flows[WORLD_FLOWS];
    uint32_t flow_count;
    struct pattern_plan *plan; /* NULL: no schedule; owned by the test */
    int64_t stream_ns;         /* length of a stream, window in its middle half */
    void (*pump)(void *way);   /* called in each round: something in the middle */
    void *way;
    struct err err;
};

/* Ports at 127.0.0.2 and so on: the loopback interface, asked for by its addresses. */
void world_open(struct world *world, uint32_t ranks);
/* Ports on interface `iface` of the namespaces PREFIX0, PREFIX1 ... */
void world_open_netns(struct world *world, uint32_t ranks, const char *prefix, const char *iface);
void world_close(struct world *world);

struct world_flow *world_add(struct world *world, uint32_t src, uint32_t dst,
                             enum pattern_role role);
/* The flows of a scheduled plan, whose steps the ranks execute. */
void world_schedule(struct world *world, const struct pattern_request *request);
/* Makes the lanes of all ranks: 0 or the first refusal. */
int world_prepare(struct world *world);
/* Until all are ready, 0; or a failure; -ETIMEDOUT after `limit_ns`. */
int world_connect(struct world *world, int64_t limit_ns);
/* Sets the times, starts, polls until all has been sent and received (true) or `limit_ns` is over
 * (false). Copies the window's counters. */
bool world_run(struct world *world, int64_t limit_ns);
/* The two halves of world_run. */
void world_start(struct world *world);
/* A metric of one of a rank's flows; a test fails where there is none of that name. */
double world_metric(const struct world_rank *rank, const struct lane_flow *flow, const char *name);
void world_poll(struct world *world, int64_t now_ns);
bool world_finished(const struct world *world);
void world_finish(struct world *world);

/* All of it: true when everything came through. Asserts that nothing is refused. */
bool world_play(struct world *world, int64_t limit_ns);

unsigned world_open_descriptors(void);

#endif
