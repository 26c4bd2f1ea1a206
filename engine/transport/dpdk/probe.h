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
#include "probe_frames.h"

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
