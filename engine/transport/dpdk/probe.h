/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Probes for latency: frames like the load's, few of them among it, which the destination sends
 * back (as the tagged frames of RFC 2544 26.2, but there and back, so that one clock measures).
 * Bytes in, bytes out: no I/O and nothing of DPDK's.
 *
 * A probe differs from the load's frames in its tag alone, so the network treats it alike. The
 * answer has a third tag, the two ranks changed about, and the probe's sequence and stamp: who sent
 * the probe needs to remember nothing.
 */
#ifndef ENGINE_DPDK_PROBE_H
#define ENGINE_DPDK_PROBE_H

#include "frame.h"

#define PROBE_LOAD_SHARE 0.001 /* of the line that all probes and answers of a port may take */
#define PROBE_FLOW_FPS 1000.0  /* a flow's, at most */

/* Tags of a phase whose frames have `tag`: all three differ. */
static inline uint16_t probe_tag(uint16_t tag)
{
    return tag ^ 0x5a3c;
}

static inline uint16_t probe_answer_tag(uint16_t tag)
{
    return tag ^ 0xa5c3;
}

/* What a port sends in a phase, for the automatic rate. */
struct probe_budget {
    uint64_t line_rate_bps; /* 0: not known, then `load` stands for it */
    struct load load;
    uint32_t frame_bytes; /* mean, with FCS */
    uint32_t flows;       /* that the port sends and receives: it answers those */
};

/* Probes a flow sends in a second. */
double probe_rate(const struct probe_budget *budget);

/* One probe or answer. */
struct probe {
    const struct frame_shape *shape; /* the load's */
    struct frame_end ends[2];        /* from, to */
    uint16_t udp_source;
    uint16_t tag;
    uint32_t size; /* with FCS */
    uint32_t sequence;
    uint64_t stamp_ns; /* since the phase's start, by the clock of who sent the probe */
};

/* Writes `size` less FCS bytes. The buffer has room for FRAME_TEMPLATE at least. */
void probe_write(const struct probe *probe, uint8_t *frame);

#endif
