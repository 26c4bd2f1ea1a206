/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A frame on its way through a socket of the kernel.
 */
#ifndef ENGINE_KERNEL_SOCKET_FRAME_H
#define ENGINE_KERNEL_SOCKET_FRAME_H

#include "frame_lane.h"

#include <sys/socket.h>

/** @brief A frame to be sent (of which `bytes` are the first FRAME_TEMPLATE), or received. */
struct socket_frame {
    uint8_t *bytes;
    uint32_t length;
    uint32_t place;                      /**< to be sent: the partner's */
    const struct sockaddr_storage *from; /**< received; NULL: the frame says it */
};

#endif
