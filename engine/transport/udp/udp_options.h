/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a trial may say below `udp`.
 */
#ifndef ENGINE_UDP_OPTIONS_H
#define ENGINE_UDP_OPTIONS_H

#include "transport.h"

enum udp_offload { UDP_OFFLOAD_OFF, UDP_OFFLOAD_ON, UDP_OFFLOAD_AUTO };

struct udp_options {
    /**
     * @brief The kernel gets several frames of a flow as one packet, and passes them on as one to
     * the receiver: the receiving host then drops all of them or none.
     *
     * Automatic: on where a device with a wire divides the packet; virtual devices pass it on
     * whole.
     */
    enum udp_offload offload;
    uint32_t receive_buffer; /**< SO_RCVBUF in bytes; 0: 4 MiB, or what the kernel gives */
    uint16_t burst;          /**< frames per system call, max */
    uint16_t catch_up;       /**< frames that a late sender may send beyond its schedule */
    uint32_t window_frames;  /**< a flow of a stream sends so many from the window's opening on, and
                                then none; 0: as many as the load gives from start to stop */
    double dither; /**< each departure late by 0 to so many times from one to the next, at random */
};

extern const struct option_table udp_option_table;

#endif
