/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief What a trial may say below `udp`.
 */
#ifndef ENGINE_UDP_OPTIONS_H
#define ENGINE_UDP_OPTIONS_H

#include "socket_options.h"

enum udp_offload { UDP_OFFLOAD_OFF, UDP_OFFLOAD_ON, UDP_OFFLOAD_AUTO };

struct udp_options {
    struct socket_options socket; /**< first */
    /**
     * @brief The kernel gets several frames of a flow as one packet, and passes them on as one to
     * the receiver: the receiving host then drops all of them or none.
     *
     * Automatic: on where a device with a wire divides the packet; virtual devices pass it on
     * whole.
     */
    enum udp_offload offload;
    uint32_t receive_buffer; /**< SO_RCVBUF in bytes; 0: 4 MiB, or what the kernel gives */
};

extern const struct option_table udp_option_table;

#endif
