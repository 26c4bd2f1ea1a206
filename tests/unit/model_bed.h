/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A modelled switch with stations, in simulated time: what each station sends is asked of a
 * function whenever its wire is free, and what leaves the switch is noted.
 */
#ifndef TEST_MODEL_BED_H
#define TEST_MODEL_BED_H

#include "model.h"

#include <stddef.h>

#define BED_NS_PER_S 1000000000LL
#define BED_STATION(i) (0x025342000000ULL + (i))

struct model_bed;

/* One frame of a station. */
struct bed_frame {
    uint64_t source, destination;
    uint32_t size; /* with FCS */
    uint16_t ethertype;
    uint16_t tag; /* not 0: it bears a signature with this tag, and is an l2 frame */
    uint32_t sequence;
};

/* Fills in the next frame of that station; false: it has no more. */
typedef bool (*bed_source)(struct model_bed *bed, unsigned port, struct bed_frame *frame);

struct bed_port {
    uint64_t sent, received, received_bytes;
    uint32_t next; /* for a source's own use */
    bool silent;
    int64_t first_ns, last_ns; /* of what it received */
    uint64_t pauses;
};

struct model_bed {
    struct model_conf conf;
    struct model_port_conf ports[MODEL_PORTS_MAX];
    char names[MODEL_PORTS_MAX][16];
    struct model_fault_conf faults[8];
    struct model_host host;
    struct model *model;
    struct bed_port port[MODEL_PORTS_MAX];
    bed_source source;
    uint64_t hash;       /* of all that left, with their times */
    uint64_t made, gone; /* frames in memory */
    int64_t now_ns;
    struct model_bed *peer; /* trunk: port `trunk` of each */
    unsigned trunk;
    /* Called for each frame that leaves; may be NULL. */
    void (*note)(struct model_bed *bed, const struct model_frame *frame, int64_t at_ns);
    void *own;
};

/* So many ports of one rate, with a plain switch's keys; change `conf`, then bed_open(). */
void bed_plain(struct model_bed *bed, unsigned ports, uint64_t rate_bps);
void bed_open(struct model_bed *bed);
/* Checks that every frame came back, and that each flow's counts add up. */
void bed_close(struct model_bed *bed);

/* Each station says one word, so that the switch knows where it is. */
void bed_learn(struct model_bed *bed);

/* Sends one frame from a station now. */
void bed_send(struct model_bed *bed, unsigned port, const struct bed_frame *frame);

/* Runs until then, stations sending whenever their wires are free. */
void bed_run(struct model_bed *bed, int64_t until_ns);
/* Both modules of a pair at once, in steps short against a frame's time. */
void bed_run_pair(struct model_bed *a, struct model_bed *b, int64_t until_ns);
/* Until nothing is inside. */
void bed_drain(struct model_bed *bed);

/* Sums over all flows. */
struct model_counts bed_totals(const struct model_bed *bed);
uint64_t bed_dropped(const struct model_counts *counts);
const struct model_flow *bed_flow(const struct model_bed *bed, unsigned in, unsigned out);

#endif
