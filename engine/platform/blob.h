/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief A few bytes that one node publishes and another fetches: what a partner must know to reach
 * a port or a queue pair.
 *
 * The transport's own; opaque to all others.
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
