/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief The Internet checksum (RFC 1071): one's complement sums of 16-bit words.
 *
 * Words are summed as they lie in memory, whatever the machine's byte order; the result is stored
 * as it is.
 */
#ifndef ENGINE_CHECKSUM_H
#define ENGINE_CHECKSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/**
 * @brief Fold carries back until 16 bits are left.
 *
 * A sum of anything but zeros never folds to 0.
 *
 * @param sum Sum of 16-bit words.
 * @return 16 bits.
 */
static inline uint16_t checksum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/**
 * @brief Return whether the words of a sum that is not zero are right: they come to 0xffff, the
 * other zero of one's complement arithmetic, which is to be divisible by it.
 *
 * One multiplication.
 *
 * @param sum Sum of 16-bit words.
 * @return True: they are.
 */
static inline bool checksum_right(uint64_t sum)
{
    return sum % 0xffff == 0;
}

/**
 * @brief Adds `size` bytes to `sum`; an odd last byte counts as if a zero followed it.
 *
 * The data must begin at an even offset of what is summed. Holds 2^32 words before the sum could
 * overflow. (Four bytes at a time: 2^32 is 1 modulo 0xffff too, and there are no carries to look
 * after.)
 */
static inline __attribute__((always_inline)) uint64_t checksum_add(uint64_t sum, const void *data,
                                                                   size_t size)
{
    const uint8_t *at = data;
    uint32_t four;
    uint16_t two;

    for (; size >= 4; size -= 4, at += 4) {
        memcpy(&four, at, 4);
        sum += four;
    }
    if (size >= 2) {
        memcpy(&two, at, 2);
        sum += two;
        size -= 2;
        at += 2;
    }
    if (size > 0) {
        two = 0;
        memcpy(&two, at, 1);
        sum += two;
    }
    return sum;
}

#endif
