/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A modelled switch with stations, in simulated time: each station sends what its load says
 * whenever its wire is free, and what leaves the switch is noted.
 */
#ifndef TEST_MODEL_BED_H
#define TEST_MODEL_BED_H

#include "model.h"

#include <stddef.h>

#define BED_NS_PER_S 1000000000LL
#define BED_STATION(i) (0x025342000000ULL + (i))
#define BED_TAG 0x1234

/* To whom a station sends; of bed_join()'s pairs: TO_PEER, the station of the same port. */
enum bed_load { SILENT, TO_LAST, TO_PAIR, TO_NEXT, TO_ANY, TO_PEER };

struct bed_port {
    uint64_t sent, received;
    int64_t first_ns, last_ns; /* of what it received */
    uint64_t pauses;
};

struct model_bed {
    struct model_conf conf;
    struct model_port_conf ports[MODEL_PORTS_MAX];
    struct model_fault_conf faults[8];
    struct model_host host;
    struct model *model;
    struct bed_port port[MODEL_PORTS_MAX];
    enum bed_load load;
    unsigned talking; /* ports that send */
    uint32_t size;    /* of their frames, with FCS */
    uint64_t limit;   /* frames of each; 0: none */
    bool tagged;      /* they bear a signature with BED_TAG, and a number */
    uint64_t random;
    uint64_t hash;       /* of all that left, with their times */
    uint64_t made, gone; /* frames in memory */
    int64_t now_ns;
    struct model_bed *peer; /* joined by the last port of each */
    unsigned first_station;
    /* Called for each frame that leaves; may be NULL. */
    void (*note)(struct model_bed *bed, const struct model_frame *frame);
};

/* So many ports of one rate, with a plain switch's keys; change `conf`, then bed_open(). */
void bed_plain(struct model_bed *bed, unsigned ports, uint64_t rate_bps);
/* Opens it; each station says one word, so that the switch knows where it is. */
void bed_open(struct model_bed *bed);
/* Stations fall silent; every frame came back, and the counts of each flow add up. */
void bed_close(struct model_bed *bed);
/* Opens two plain ones, joined by a trunk behind the last port of each. */
void bed_join(struct model_bed beds[2], const struct model_rates *trunk);

/* One frame from a port now: from station to station, or any address. */
void bed_send(struct model_bed *bed, unsigned port, uint64_t from, uint64_t to, uint32_t size);
void bed_send_type(struct model_bed *bed, unsigned port, uint64_t from, uint64_t to, uint32_t size,
                   uint16_t type);
/* Runs for so long, stations sending whenever their wires are free; with a peer, both. */
void bed_run(struct model_bed *bed, int64_t for_ns);
/* Until nothing is inside. */
void bed_drain(struct model_bed *bed);
/* Frames that ports of a range receive in a window, after some time; in bit/s of layer 1. */
double bed_rate(struct model_bed *bed, unsigned first, unsigned count, int64_t settle_ns,
                int64_t window_ns);

/* Sums over all flows. */
struct model_counts bed_totals(const struct model_bed *bed);
uint64_t bed_dropped(const struct model_counts *counts);
const struct model_counts *bed_flow(const struct model_bed *bed, unsigned in, unsigned out);

#endif
