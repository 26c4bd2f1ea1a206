/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * @brief Signature in the first 18 bytes of every frame's payload.
 *
 * It is at the start, not the end, so that its offset is equal and even in frames of every size
 * (odd ones too), in the cache line that follows the headers, and survives truncation.
 *
 * Its nine words always sum to 0xffff, the zero of one's complement arithmetic: the last word is
 * the checksum complement (RFC 7820). So a UDP checksum that is right for the headers and the
 * payload behind the signature stays right whatever sequence and time are written.
 */
#ifndef ENGINE_SIGNATURE_H
#define ENGINE_SIGNATURE_H

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* --- sums of one's complement (RFC 1071) --- */

/**
 * @brief Fold a one's complement sum to 16 bits, by adding its carries.
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
 * @brief Return whether a checksum is correct: the sum, which must not be 0, folds to 0xffff, the
 * other zero of one's complement arithmetic.
 *
 * The test for divisibility costs one multiplication.
 *
 * @param sum Sum of 16-bit words.
 * @return True: the checksum is correct.
 */
static inline bool checksum_right(uint64_t sum)
{
    return sum % 0xffff == 0;
}

/**
 * @brief Add `size` bytes to a one's complement sum; an odd last byte counts as if followed by a
 * zero.
 *
 * The data must begin at an even offset of the summed range. Holds 2^32 words before the sum could
 * overflow. (Four bytes at a time: 2^32 is 1 modulo 0xffff too, and there are no carries to
 * handle.)
 */
static inline __attribute__((always_inline)) uint64_t checksum_add(uint64_t sum, const void *data,
                                                                   size_t size)
{
    const uint8_t *at = data;
    uint32_t four;

    for (; size >= 4; size -= 4, at += 4) {
        memcpy(&four, at, 4);
        sum += four;
    }
    four = 0;
    memcpy(&four, at, size);
    return sum + four;
}

/* --- the signature --- */

/** @brief Layout of a signature, in network byte order. */
struct signature {
    uint16_t tag;      /**< of run, trial, network and phase */
    uint16_t src;      /**< ranks */
    uint16_t dst;      /**< */
    uint32_t sequence; /**< of the stream; unwrapped to 64 bits by the receiver */
    uint32_t ns_high;  /**< nanoseconds since the phase's start at the sender, 48 bits: */
    uint16_t ns_low;   /**< 78 hours */
    uint16_t complement;
} __attribute__((packed));

#define SIGNATURE_BYTES 18

/**
 * @brief Constants that are XORed with a phase's tag to make the tag of its probes, and the tag of
 * answers to probes and messages.
 */
#define SIGNATURE_PROBE 0x5a3c
#define SIGNATURE_ANSWER 0xa5c3

static_assert(sizeof(struct signature) == SIGNATURE_BYTES, "the signature's layout");

/** @brief Time stamp for the signatures of a burst, and the sum of the stamp's 16-bit words, which
 * the checksum needs. */
struct signature_time {
    uint32_t high;
    uint16_t low;
    uint32_t sum;
};

/**
 * @brief Return the sum of the two 16-bit words of a 32-bit field, as part of a one's complement
 * sum.
 *
 * @return Sum.
 */
static inline uint32_t signature_words(uint32_t field)
{
    return (field & 0xffff) + (field >> 16);
}

/**
 * @brief Convert a time to the time stamp of a burst's signatures, with the sum of the stamp's
 * 16-bit words, which the checksum needs.
 *
 * @return Time.
 */
static inline struct signature_time signature_time(int64_t since_start_ns)
{
    uint64_t ns = since_start_ns > 0 ? (uint64_t)since_start_ns : 0;
    struct signature_time time = {htobe32((uint32_t)(ns >> 16)), htobe16((uint16_t)ns), 0};

    time.sum = signature_words(time.high) + time.low;
    return time;
}

/**
 * @brief Return the sum of a signature's tag and ranks, in the signature's byte order; it is equal
 * in all frames of a stream.
 *
 * @param signature Signature.
 * @return Sum.
 */
static inline uint32_t signature_base(const struct signature *signature)
{
    return (uint32_t)signature->tag + signature->src + signature->dst;
}

/**
 * @brief Write the fields of a signature that differ between frames: sequence number, time and
 * checksum complement.
 *
 * @param signature Signature.
 */
static inline void signature_stamp(struct signature *signature, uint32_t sequence,
                                   const struct signature_time *time, uint32_t base_sum)
{
    uint32_t field = htobe32(sequence);
    uint32_t sum = base_sum + signature_words(field);

    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    signature->sequence = field;
    signature->ns_high = time->high;
    signature->ns_low = time->low;
    signature->complement = (uint16_t)~sum;
}

/**
 * @brief Return whether the checksum of a signature is correct.
 *
 * @param signature Signature.
 * @return True: the checksum is correct.
 */
static inline bool signature_sound(const struct signature *signature)
{
    uint64_t sum = checksum_add(0, signature, sizeof *signature);

    return sum != 0 && checksum_right(sum);
}

/**
 * @brief Return the time stamp of a signature, in one load of its six bytes and two bytes of the
 * sequence before it.
 *
 * @param signature Signature.
 * @return Time stamp, ns since the phase's start at the sender.
 */
static inline uint64_t signature_ns(const struct signature *signature)
{
    const uint8_t *end = (const uint8_t *)&signature->complement;
    uint64_t ns;

    memcpy(&ns, end - sizeof ns, sizeof ns);
    return be64toh(ns) & ((UINT64_C(1) << 48) - 1);
}

/* --- fill: the bytes behind the signature in every frame and datagram, equal pseudo-random
 * bytes in each (a prefix of one table), so a receiver compares instead of summing. --- */

#define FILL_BYTES 9216u /**< length of the longest frame */

/**
 * @brief Table of the fill, the pseudo-random bytes behind each signature: its bytes, and at sum[n]
 * the one's complement sum of the first n bytes.
 *
 * Made once.
 */
struct fill {
    uint8_t bytes[FILL_BYTES];
    uint16_t sum[FILL_BYTES + 1];
};
/**
 * @brief Return the table of the fill, the pseudo-random bytes behind each signature.
 *
 * @return Table; static.
 */
const struct fill *fill_table(void);

/**
 * @brief First bytes of a frame: headers (66 at most), signature, and fill up to a round number
 * that is copied without a loop.
 *
 * Copying over a shorter frame writes fill behind its end, which is harmless.
 */
#define FRAME_TEMPLATE 96u
struct frame_template {
    uint8_t bytes[FRAME_TEMPLATE];
} __attribute__((aligned(32)));

#endif
