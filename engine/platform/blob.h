/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Small data that one node publishes and another fetches: the values by which a partner
 * reaches a port or a queue pair.
 *
 * Opaque to all except the transport.
 */
#ifndef ENGINE_BLOB_H
#define ENGINE_BLOB_H

#include <stdint.h>

#define BLOB_BYTES_MAX 128

struct blob {
    uint16_t size;
    uint8_t bytes[BLOB_BYTES_MAX];
};

#endif
