/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The Internet checksum (RFC 1071): one's complement sums of 16-bit words. Words are summed as
 * they lie in memory, whatever the machine's byte order; the result is stored as it is.
 */
#ifndef ENGINE_DPDK_CHECKSUM_H
#define ENGINE_DPDK_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Folds carries back until 16 bits are left. A sum of anything but zeros never folds to 0. */
static inline uint16_t checksum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* Adds 64 bits with end-around carry: 2^64 is 1 modulo 0xffff, as 2^16 is. */
static inline uint64_t checksum_add64(uint64_t sum, uint64_t value)
{
    sum += value;
    return sum + (sum < value);
}

/* Adds `size` bytes to `sum`; an odd last byte counts as if a zero followed it. The data must
 * begin at an even offset of what is summed. */
static inline uint64_t checksum_add(uint64_t sum, const void *data, size_t size)
{
    const uint8_t *at = data;
    uint64_t eight;
    uint32_t four;
    uint16_t two;

    for (; size >= 8; size -= 8, at += 8) {
        memcpy(&eight, at, 8);
        sum = checksum_add64(sum, eight);
    }
    if (size >= 4) {
        memcpy(&four, at, 4);
        sum = checksum_add64(sum, four);
        size -= 4;
        at += 4;
    }
    if (size >= 2) {
        memcpy(&two, at, 2);
        sum = checksum_add64(sum, two);
        size -= 2;
        at += 2;
    }
    if (size > 0) {
        two = 0;
        memcpy(&two, at, 1);
        sum = checksum_add64(sum, two);
    }
    return sum;
}

#endif
