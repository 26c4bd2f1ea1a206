/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief How many bytes are not what they have to be.
 *
 * Nearly always none, so whole pieces are compared first.
 */
#ifndef ENGINE_BYTE_COMPARE_H
#define ENGINE_BYTE_COMPARE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * @brief Count the bytes that differ.
 *
 * @param a Bytes found.
 * @param b Bytes expected.
 * @param bytes How many.
 * @return Bytes of `a` that are not those of `b`.
 */
static inline uint64_t differ_bytes(const uint8_t *a, const uint8_t *b, size_t bytes)
{
    uint64_t count = 0;

    if (memcmp(a, b, bytes) == 0)
        return 0;
    for (size_t i = 0; i < bytes; i++)
        count += a[i] != b[i];
    return count;
}

#endif
